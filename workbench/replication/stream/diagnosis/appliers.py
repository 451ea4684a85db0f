"""What replicas of a stream say of themselves: how far they applied, what waits in their queues, and what these lack."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.streams import StreamLog
from workbench.replication.stream.diagnosis.queues import (
    Key,
    Piece,
    Queue,
    Row,
    master_of,
    other_contents,
    queues_of,
    together,
    under_other_commits,
)
from workbench.replication.stream.rules.segments import EVENT, QUEUED, ROLLED_BACK, TAIL
from workbench.systems import format_with
from workbench.topology.topology import Topology

Commit = tuple[int, str]
"""The number of a commit, and the position of its transaction."""
_CHANGES_NOTHING = frozenset({ROLLED_BACK, EVENT})
"""What has the number of a commit, too, and brings nothing to a replica."""
_NO_ROWS: Mapping[Key, Row] = {}
_NOTHING_GONE: Mapping[Key, int] = {}
APPLIER, IO = "applier", "io"
"""The threads of a replica: one applies what the other one fetched."""


@dataclass(frozen=True)
class Applied:
    """How far a replica applied a master's commits, as it says itself.

    commit   the last commit that it applied; None: it does not say
    queued   commits that wait in its queue, whole; None: its queue was not collected
    whole    all rows of its queue could be read
    stopped  threads of it that stand still -> the last error
    in_part  position -> what its queue holds in part of what it has not applied
    waiting  what its queue holds whole of that
    unmatched  nothing tells which of the collected logs is that of this master
    assumed  the source is the one log that numbers its commits, and nothing in its queue shows that it is its master's
    """

    server: str
    master: str
    source: str | None
    commit: int | None
    queued: tuple[int, ...] | None
    stopped: Mapping[str, str | None] = field(default_factory=dict)
    whole: bool = True
    in_part: Mapping[str, Piece] = field(default_factory=dict)
    waiting: Mapping[Key, Row] = field(default_factory=dict)
    unmatched: bool = False
    assumed: bool = False


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
    unlike  the first of those that its queue holds with another content than the log; other: how many such there are
    under_others  how many of these have a commit under which the log has another transaction
    unlike_first  one of these comes before all that its queue lacks
    purged  numbers of commits that it neither applied nor has in its queue, below the first of the log: the first, the last, how
            many; None: there is none, or the log lost records
    at_least  its master gave numbers behind the end of the log, and nothing tells whether these are transactions: more may wait
    gone   what an earlier log of its master has, and neither its queue nor the present log: it fetches what follows instead
    broken  what the log of its master has in part, and its queue has not: it fetches a part, or passes over it
    unended  what the log of its master has without an end, and may stand among what it fetches
    unlogged  what its queue holds under numbers of commits under which the log of its master has nothing, and has later ones
    """

    applied: Applied
    waits: dict[str, Waits]
    gaps: list[tuple[Commit, str]]
    lacks: int
    parts: list[tuple[Commit, str]]
    in_part: int
    seen: int
    unlike: list[tuple[Commit, str]]
    other: int
    purged: tuple[int, int, int] | None
    at_least: bool = False
    gone: Sequence[tuple[Commit, str]] = ()
    unlogged: Sequence[tuple[Commit, str]] = ()
    unlike_first: bool = False
    under_others: int = 0
    broken: Sequence[tuple[Commit, str]] = ()
    unended: Sequence[str] = ()

    def brings(self, origin: str) -> bool:
        """True if something of what it waits for comes: it stands before a gap, or the replica will ask its master for it."""
        waits = self.waits[origin]
        return waits.behind_gap < waits.count or waits.last[0] > self.seen


@dataclass(frozen=True)
class Beyond:
    """What the replicas of a master tell of commits behind the end of its log, which was read before they were.

    waiting  what waits in their queues
    top      the highest number that one of them applied or has in its queue
    """

    waiting: Mapping[Key, Row]
    top: int


def told_beyond(applied: Sequence[Applied], log: StreamLog) -> Beyond:
    """The same of the replicas of the master whose log that is."""
    last, waiting, top = log.last_commit or 0, dict[Key, Row](), 0
    for replica in applied:
        if replica.source == log.server:
            waiting |= {key: row for key, row in replica.waiting.items() if row["commit"] > last}
            top = max(top, replica.commit or 0, *(replica.queued or ()), *_ended_parts(replica))
    return Beyond(waiting, top)


def past_their_logs(applied: Sequence[Applied], logs: Mapping[str, StreamLog]) -> frozenset[str]:
    """The replicas of a master whose log ends before what one of them applied or has in its queue.

    log of m ends with commit 4, s applied 6     the log was read before s was asked, or m lost its end
    """
    ends = {name: log.last_commit for name, log in logs.items() if log.by_commit}
    early = {name for name, last in ends.items() if last is not None and told_beyond(applied, logs[name]).top > last}
    return frozenset(replica.server for replica in applied if replica.source in early)


def _ended_parts(replica: Applied) -> list[int]:
    return [piece.commit for piece in replica.in_part.values() if piece.commit is not None]


def applied_of(case: Case, shown: Topology, logs: Mapping[str, StreamLog]) -> list[Applied]:
    """What the replicas of the snapshot say of themselves, for each of their masters."""
    label = shown.snapshot
    every = case.arrow("appliers")
    every = every.filter(pc.equal(every["snapshot"], label))
    queued = pc.fill_null(pc.equal(every["part"], QUEUED), False)
    rows = every.filter(pc.invert(queued)).to_pylist()
    queues = queues_of(case, label, masters_in(case, label))
    cut = {
        one.server
        for one in case.inputs
        if one.kind and one.snapshot == label and one.rejected and not format_with(one.kind).is_log
    }
    found = []
    for server, master in sorted({(row["server"], row["master"]) for row in rows}):
        mine = [row for row in rows if (row["server"], row["master"]) == (server, master)]
        commits = [row["commit"] for row in mine if row["commit"] is not None]
        stopped = {row["part"]: row["error"] for row in mine if (row["status"] or "").upper() == "STOPPED"}
        alone = {row["master"] for row in rows if row["server"] == server} == {master}
        of_server = queues.get(server)
        held = None if of_server is None else _of_master(of_server, master, alone)
        source, candidates = _master(logs, server, held, alone)
        if source is None and candidates and not (held and (held.whole or held.parts)):
            source = _by_earlier_queue(case, label, logs, server, master)
        commit = max(commits, default=None)
        waits = None if held is None else held.commits(commit)
        left = _not_applied(held.parts if held else {}, commit, logs[source] if source else None)
        whole = {
            key: row for key, row in (held.whole if held else {}).items() if commit is None or row["commit"] > commit
        }
        unmatched = source is None and candidates
        assumed = source is not None and not (held and master_of(held, [logs[source]]))
        told = server, master, source, commit, waits, stopped, server not in cut, left, whole, unmatched
        found.append(Applied(*told, assumed and _by_earlier_queue(case, label, logs, server, master) != source))
    return found


def masters_in(case: Case, label: str) -> dict[tuple[str, int], str]:
    """File and offset of each row of a queue in a snapshot -> the master that it names."""
    every = case.arrow("appliers")
    mine = pc.and_(pc.equal(every["snapshot"], label), pc.fill_null(pc.equal(every["part"], QUEUED), False))
    places = [every.filter(mine)[name].to_pylist() for name in ("file", "offset", "master")]
    return {(file, offset): master for file, offset, master in zip(*places, strict=True)}


def _of_master(queues: Mapping[str | None, Queue], master: str, alone: bool) -> Queue:
    """What a queue holds of one master: of a replica of one master alone all of it, whatever its rows name."""
    return together([*queues.values()]) if alone else queues.get(master, Queue())


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


def _master(logs: Mapping[str, StreamLog], server: str, queue: Queue | None, alone: bool) -> tuple[str | None, bool]:
    """The server whose log numbers the commits of a master, and whether there are logs that may be it.

    Of a replica of one master it is the one log that is there; of several masters, or logs, its queue has to show it.
    """
    numbering = [log for name, log in logs.items() if name != server and log.by_commit]
    if alone and len(numbering) == 1:
        return numbering[0].server, True
    return (master_of(queue, numbering) if queue else None), bool(numbering)


def _by_earlier_queue(case: Case, label: str, logs: Mapping[str, StreamLog], server: str, master: str) -> str | None:
    """The server whose log has what an earlier queue held of a master of which the present queue has nothing; None: no one has.

    first snapshot   queue of master 2  204 (commit 4)      second snapshot   nothing of master 2; log of n  204 (commit 4)
    """
    labels = [*case.snapshots]
    numbering = [log for name, log in logs.items() if name != server and log.by_commit]
    for before in reversed(labels[: labels.index(label)]):
        queue = queues_of(case, before, masters_in(case, before)).get(server, {}).get(master)
        if queue and (source := master_of(queue, numbering)):
            return source
    return None


def behind_of(
    one: Applied,
    log: StreamLog,
    after: int,
    limit: int,
    beyond: Beyond,
    passed: Mapping[Key, Row] = _NO_ROWS,
    gone: Mapping[Key, int] = _NOTHING_GONE,
    broken: Mapping[Key, int] = _NOTHING_GONE,
    unended: Sequence[str] = (),
) -> Behind:
    """What a replica has not applied behind a commit of its master's log, and of what others tell `beyond` the end of that.

    passed  what another file has of the commits that the replica passed over
    gone    the commits that an earlier log of the master has, and the present one lacks
    broken  the commits of which the log of the master has a part; `unended`: those of which nothing tells the number
    """
    gaps: list[tuple[Commit, str]] = []
    parts: list[tuple[Commit, str]] = []
    queued, lacks, in_part = set(one.queued or ()), 0, 0
    # It asks for what is above the highest commit that it has seen, whether it has all of that or not.
    seen = max([after, *queued, *_ended_parts(one)])
    never = {key: commit for key, commit in gone.items() if commit > after and key not in one.waiting and one.whole}
    in_log = {key: commit for key, commit in broken.items() if commit > after and key not in one.waiting and one.whole}
    first_hole = min((*never.values(), *in_log.values()), default=None)
    waiting = [*_changing(log, {**beyond.waiting, **passed, **one.waiting}, after)]
    known = {(origin, position) for origin, commits in waiting for _, position in commits}
    waiting += [
        (origin, [(commit, at)]) for (origin, at), commit in (never | in_log).items() if (origin, at) not in known
    ]
    for origin, commits in waiting:
        for commit in commits if one.whole else ():
            part = one.in_part.get(commit[1])
            if commit[0] in queued or (commit[0] > seen and not _is_below(log, commit[0])):
                continue  # of what was fetched last, more may still come
            if part:
                parts.append((commit, origin))
                in_part += 1
            else:
                gaps.append((commit, origin))
                lacks += 1
            first_hole = min(first_hole or commit[0], commit[0])
        gaps, parts = sorted(gaps)[:limit], sorted(parts)[:limit]
    ahead = {key: row for key, row in one.waiting.items() if row["commit"] > after}
    others = under_other_commits(ahead, log)
    unlike = sorted({*other_contents(ahead, log), *others})
    first_unlike = min((commit for (commit, _), _ in unlike), default=None)
    unlike_first = first_unlike is not None and (first_hole is None or first_unlike < first_hole)
    first_hole = first_unlike if unlike_first else first_hole
    waits: dict[str, Waits] = {}
    for origin, commits in waiting:
        before = [at for at, _ in commits if first_hole is None or at < first_hole]
        there, asked = sum(at in queued for at in before), sum(at > seen for at in before) if one.whole else 0
        counts = there, asked, len(before) - there - asked, len(commits) - len(before)
        mine = Waits(len(commits), min(commits), max(commits), *counts)
        waits[origin] = _together(waits[origin], mine) if origin in waits else mine
    purged = _purged(one, log, after, {row["commit"] for row in passed.values()})
    end = max(after, log.last_commit or 0)
    numbered = {row["commit"] for row in (*beyond.waiting.values(), *one.waiting.values()) if row["commit"] > end}
    at_least = beyond.top - end > len(numbered)
    passing, broken_off = (sorted(((commit, at), of) for (of, at), commit in each.items()) for each in (never, in_log))
    lists = gaps, lacks, parts, in_part, seen, unlike[:limit], len(unlike)
    alone = unlogged(one, log, after, gone)
    return Behind(one, waits, *lists, purged, at_least, passing, alone, unlike_first, len(others), broken_off, unended)


def _is_below(log: StreamLog, commit: int) -> bool:
    """True if a log begins behind a commit: its server sends what it has, and nothing of that."""
    return log.first_commit is not None and commit < log.first_commit


def unlogged(one: Applied, log: StreamLog, after: int, gone: Mapping[Key, int]) -> list[tuple[Commit, str]]:
    """What a queue holds between two commits of its master's log, and that does not have; none where the log lost records.

    log of m    101 (commit 1)  102 (commit 2)  104 (commit 4)
    queue of s                  102 (commit 2)  103 (commit 3)      m lost 103, or did not commit it
    """
    first, last = log.first_commit, log.last_commit
    if log.lost or first is None or last is None:
        return []
    inside = {
        key: row for key, row in one.waiting.items() if max(after, first) < row["commit"] < last and key not in gone
    }
    there = {commit for batch in log.after(after) for commit in batch["commit"].to_pylist()} if inside else set()
    found = [((row["commit"], at), origin) for (origin, at), row in inside.items() if row["commit"] not in there]
    return sorted(each for each in found if not log.rows_of(each[1], [each[0][1]]))


def _purged(one: Applied, log: StreamLog, after: int, known: Collection[int]) -> tuple[int, int, int] | None:
    """Which numbers of commits a replica has not applied, and the log of its master begins behind, and no file has (`known`).

    applied up to 2, queue empty, log begins with 5      3 and 4
    """
    if log.first_commit is None or log.lost:
        return None
    below = {commit for commit in (*(one.queued or ()), *known) if after < commit < log.first_commit}
    count = log.first_commit - 1 - after - len(below)
    if count <= 0 or not one.whole:
        return None
    absent = min({*range(after + 1, after + 2 + len(below))} - below)
    last = log.first_commit - 1
    while last in below:
        last -= 1
    return absent, last, count


def _changing(log: StreamLog, queued: Mapping[Key, Row], after: int) -> Iterator[tuple[str, list[Commit]]]:
    """Origin and commits behind a commit that change something, some at a time: of the log, and what only queues have.

    A log that was purged, or was read before its replicas, lacks what their queues have of it.
    """
    there: set[int] = set()
    for batch in log.after(after):
        there.update(batch["commit"].to_pylist() if queued else ())
        batch = batch.filter(
            pc.invert(pc.is_in(batch["outcome"].cast(pa.string()), pa.array(sorted(_CHANGES_NOTHING))))
        )
        for origin in pc.unique(batch["origin"]).to_pylist():
            rows = batch.filter(pc.equal(batch["origin"], origin))
            yield origin, list(zip(rows["commit"].to_pylist(), rows["position"].to_pylist(), strict=True))
    alone: dict[str, list[Commit]] = {}
    for (origin, position), row in queued.items():
        if row["commit"] > after and row["commit"] not in there and row["outcome"] not in _CHANGES_NOTHING:
            alone.setdefault(origin, []).append((row["commit"], position))
    yield from sorted(alone.items())


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
