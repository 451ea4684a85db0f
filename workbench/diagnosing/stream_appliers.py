"""What replicas of a stream say of themselves: how far they applied, what waits in their queues, and what these lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from workbench.cases.case import Case
from workbench.engine.rows import rows_where
from workbench.engine.streams import StreamLog
from workbench.fleet.topology import Topology
from workbench.rules.segments import COMMITTED, EVENT, REPEATED, ROLLED_BACK, TAIL
from workbench.systems import format_with

Commit = tuple[int, str]
"""The number of a commit, and the position of its transaction."""
_WHOLE = frozenset({COMMITTED, ROLLED_BACK, EVENT})
_CHANGES_NOTHING = frozenset({ROLLED_BACK, EVENT})
"""What has the number of a commit, too, and brings nothing to a replica."""
APPLIER, IO = "applier", "io"
"""The threads of a replica: one applies what the other one fetched."""


@dataclass(frozen=True)
class Piece:
    """A transaction of which a queue holds a part.

    missing  numbers of messages, `tail`, or empty: not known which
    commit   its commit, which only its last message has; None: that one is not there
    """

    missing: str
    commit: int | None

    @property
    def begins(self) -> bool:
        """Whether an applier reads messages of it: it takes what has an end, and begins with the first message."""
        return self.commit is not None and "1" not in self.missing.split()


@dataclass(frozen=True)
class Applied:
    """How far a replica applied a master's commits, as it says itself.

    commit   the last commit that it applied; None: it does not say
    queued   commits that wait in its queue, whole; None: its queue was not collected
    whole    all rows of its queue could be read
    stopped  threads of it that stand still -> the last error
    in_part  position -> what its queue holds in part of what it has not applied
    """

    server: str
    master: str
    source: str | None
    commit: int | None
    queued: tuple[int, ...] | None
    stopped: Mapping[str, str | None] = field(default_factory=dict)
    whole: bool = True
    in_part: Mapping[str, Piece] = field(default_factory=dict)


@dataclass(frozen=True)
class Waits:
    """What a replica has not applied of one origin.

    count  how many commits that change something; first, last: of these
    queued, to_fetch  of them, those in its queue and those that it will ask for, before the first that its queue lacks
    unread  of these before, those of which nothing tells whether its queue has them, for rows of it cannot be read
    behind_gap  the others: the first that the queue lacks, whole or in part, and what follows it
    """

    count: int
    first: Commit
    last: Commit
    queued: int
    to_fetch: int
    unread: int
    behind_gap: int

    def held(self, stopped: Mapping[str, str | None]) -> int:
        """How many of those before a gap do not come as long as these threads stand still."""
        if APPLIER in stopped:
            return self.queued + self.to_fetch + self.unread
        return self.to_fetch + self.unread if IO in stopped else 0


@dataclass(frozen=True)
class Behind:
    """What a replica has not applied of the log of its master, told by the numbers of commits.

    waits  by origin
    gaps   the first of the commits that are not in its queue, although later ones are: it will not ask for them again
    lacks  how many such there are
    parts  the first of those of which its queue holds a part; in_part: how many such there are
    seen   the highest commit that it applied or has in its queue: it asks for what is above that
    purged  numbers of commits that it neither applied nor has in its queue, below the first of the log: the first, the last, how
            many; None: there is none, or the log lost records
    """

    applied: Applied
    waits: dict[str, Waits]
    gaps: list[tuple[Commit, str]]
    lacks: int
    parts: list[tuple[Commit, str]]
    in_part: int
    seen: int
    purged: tuple[int, int, int] | None

    def brings(self, origin: str) -> bool:
        """True if something of what it waits for comes: it stands before a gap, or the replica will ask its master for it."""
        waits = self.waits[origin]
        return waits.behind_gap < waits.count or waits.last[0] > self.seen


def applied_of(case: Case, shown: Topology, logs: Mapping[str, StreamLog]) -> list[Applied]:
    """What the replicas of the snapshot say of themselves, for each of their masters."""
    label = shown.snapshot
    rows = [row for row in case.arrow("appliers").to_pylist() if row["snapshot"] == label]
    queued: dict[str, set[int]] = {}
    parts: dict[str, dict[tuple[str, str], Piece]] = {}
    cut: set[str] = set()
    for one in case.inputs:
        if not one.kind or one.snapshot != label or format_with(one.kind).is_log:
            continue
        cut |= {one.server} if one.rejected else set()
        if not format_with(one.kind).streams:
            continue
        held = case.parts("transactions", one)
        whole = pc.field("outcome").isin(sorted(_WHOLE)) & pc.field("commit").is_valid()
        queued.setdefault(one.server, set()).update(rows_where(held, ["commit"], whole)["commit"].to_pylist())
        in_part = ~pc.field("outcome").isin(sorted(_WHOLE | {REPEATED}))
        for row in rows_where(held, ["origin", "position", "missing", "commit"], in_part).to_pylist():
            piece = Piece(row["missing"] or "", row["commit"])
            parts.setdefault(one.server, {})[row["origin"], row["position"]] = piece
    found = []
    for server, master in sorted({(row["server"], row["master"]) for row in rows}):
        mine = [row for row in rows if (row["server"], row["master"]) == (server, master)]
        commits = [row["commit"] for row in mine if row["commit"] is not None]
        stopped = {row["part"]: row["error"] for row in mine if (row["status"] or "").upper() == "STOPPED"}
        # Each master numbers commits by itself, and nothing tells which of several the log that is there belongs to.
        alone = {row["master"] for row in rows if row["server"] == server} == {master}
        source, commit = _master(logs, server) if alone else None, max(commits, default=None)
        there = queued.get(server)
        waits = None if there is None else tuple(sorted(one for one in there if commit is None or one > commit))
        left = _not_applied(parts.get(server, {}), commit, logs[source] if source else None)
        found.append(Applied(server, master, source, commit, waits, stopped, server not in cut, left))
    return found


def _not_applied(parts: Mapping[tuple[str, str], Piece], commit: int | None, log: StreamLog | None) -> dict[str, Piece]:
    """What a queue holds in part, without what is left in it of transactions that were applied before."""
    found: dict[str, Piece] = {}
    for origin in sorted({origin for origin, _ in parts}):
        mine = {position: piece for (of, position), piece in parts.items() if of == origin}
        logged = log.rows_of(origin, sorted(mine)) if log else {}
        for position, piece in mine.items():
            of_log = logged.get(position, {}).get("commit")
            at = piece.commit if of_log is None else of_log
            if commit is None or at is None or at > commit:
                found[position] = piece
    return found


def _master(logs: Mapping[str, StreamLog], server: str) -> str | None:
    """The one other server whose log numbers its commits; of several nobody knows."""
    told = [name for name, log in logs.items() if name != server and log.by_commit]
    return told[0] if len(told) == 1 else None


def behind_of(one: Applied, log: StreamLog, after: int, limit: int) -> Behind:
    """What a replica has not applied behind a commit of its master's log."""
    gaps: list[tuple[Commit, str]] = []
    parts: list[tuple[Commit, str]] = []
    queued, lacks, in_part = set(one.queued or ()), 0, 0
    # It asks for what is above the highest commit that it has seen, whether it has all of that or not.
    seen = max([after, *queued, *(piece.commit for piece in one.in_part.values() if piece.commit is not None)])
    first_hole: int | None = None
    for origin, commits in _changing(log, after):
        for commit in commits if one.whole else ():
            part = one.in_part.get(commit[1])
            if commit[0] > seen or commit[0] in queued:  # of what was fetched last, more may still come
                continue
            if part:
                parts.append((commit, origin))
                in_part += 1
            else:
                gaps.append((commit, origin))
                lacks += 1
            first_hole = min(first_hole or commit[0], commit[0])
        gaps, parts = sorted(gaps)[:limit], sorted(parts)[:limit]
    waits: dict[str, Waits] = {}
    for origin, commits in _changing(log, after):
        before = [at for at, _ in commits if first_hole is None or at < first_hole]
        there, asked = sum(at in queued for at in before), sum(at > seen for at in before) if one.whole else 0
        counts = there, asked, len(before) - there - asked, len(commits) - len(before)
        mine = Waits(len(commits), min(commits), max(commits), *counts)
        waits[origin] = _together(waits[origin], mine) if origin in waits else mine
    return Behind(one, waits, gaps, lacks, parts, in_part, seen, _purged(one, log, after))


def _purged(one: Applied, log: StreamLog, after: int) -> tuple[int, int, int] | None:
    """Which numbers of commits a replica has not applied, and the log of its master begins behind.

    applied up to 2, queue empty, log begins with 5      3 and 4
    """
    if log.first_commit is None or log.lost:
        return None
    below = [commit for commit in one.queued or () if after < commit < log.first_commit]
    count = log.first_commit - 1 - after - len(below)
    if count <= 0 or not one.whole:
        return None
    absent = sorted({*range(after + 1, after + 2 + len(below))} - {*below})[0]
    last = log.first_commit - 1
    while last in below:
        last -= 1
    return absent, last, count


def _changing(log: StreamLog, after: int) -> Iterator[tuple[str, list[Commit]]]:
    """Origin and commits behind a commit that change something, some at a time."""
    for batch in log.after(after):
        batch = batch.filter(
            pc.invert(pc.is_in(batch["outcome"].cast(pa.string()), pa.array(sorted(_CHANGES_NOTHING))))
        )
        for origin in pc.unique(batch["origin"]).to_pylist():
            rows = batch.filter(pc.equal(batch["origin"], origin))
            yield origin, list(zip(rows["commit"].to_pylist(), rows["position"].to_pylist(), strict=True))


def _together(one: Waits, other: Waits) -> Waits:
    """Both as one."""
    return Waits(
        one.count + other.count,
        min(one.first, other.first),
        max(one.last, other.last),
        one.queued + other.queued,
        one.to_fetch + other.to_fetch,
        one.unread + other.unread,
        one.behind_gap + other.behind_gap,
    )


def lacking_said(piece: Piece) -> str:
    """What a queue lacks of a transaction, in words."""
    if piece.missing == TAIL or not piece.missing:
        return "its end"
    numbers = piece.missing.split()
    return f"message{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}"
