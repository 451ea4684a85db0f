"""What replicas of a stream say of themselves: how far they applied, what waits in their queues, and what these lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow.compute as pc

from workbench.cases.case import Case
from workbench.engine.rows import rows_where
from workbench.engine.streams import StreamLog
from workbench.fleet.topology import Topology
from workbench.rules.segments import COMMITTED, EVENT, INCOMPLETE, ROLLED_BACK, TAIL
from workbench.systems import format_with

Commit = tuple[int, str]
"""The number of a commit, and the position of its transaction."""
_WHOLE = frozenset({COMMITTED, ROLLED_BACK, EVENT})


@dataclass(frozen=True)
class Piece:
    """A transaction of which a queue holds a part. `missing`: numbers of messages, `tail`, or empty: not known which."""

    outcome: str
    missing: str


@dataclass(frozen=True)
class Applied:
    """How far a replica applied a master's commits, as it says itself.

    commit   the last commit that it applied; None: it does not say
    queued   commits that wait in its queue, whole
    whole    all rows of its queue could be read
    stopped  parts of it that stand still -> the last error
    in_part  position -> what its queue holds in part
    """

    server: str
    master: str
    source: str | None
    commit: int | None
    queued: tuple[int, ...]
    stopped: Mapping[str, str | None] = field(default_factory=dict)
    whole: bool = True
    in_part: Mapping[str, Piece] = field(default_factory=dict)


@dataclass(frozen=True)
class Behind:
    """What a replica has not applied of the log of its master, told by the numbers of commits.

    waits  origin -> how many of its commits lie behind the last one that it applied, the first and the last of them
    gaps   the first of these that are not in its queue, although later ones are: it will not ask for them again
    lacks  how many such there are
    parts  those of which its queue holds a part: its applier would apply that part
    after  origin -> how many of those that wait are the first that the queue lacks, whole or in part, or stand behind it
    """

    applied: Applied
    waits: dict[str, tuple[int, Commit, Commit]]
    gaps: list[tuple[Commit, str]]
    lacks: int
    parts: list[tuple[Commit, str]]
    after: Mapping[str, int]


def applied_of(case: Case, shown: Topology, logs: Mapping[str, StreamLog]) -> list[Applied]:
    """What the replicas of the snapshot say of themselves, for each of their masters."""
    label = shown.snapshot
    rows = [row for row in case.arrow("appliers").to_pylist() if row["snapshot"] == label]
    queued: dict[str, set[int]] = {}
    parts: dict[str, dict[str, Piece]] = {}
    cut: set[str] = set()
    for one in case.inputs:
        if not one.kind or one.snapshot != label or format_with(one.kind).is_log:
            continue
        cut |= {one.server} if one.rejected else set()
        held = case.parts("transactions", one)
        whole = pc.field("outcome").isin(sorted(_WHOLE)) & pc.field("commit").is_valid()
        queued.setdefault(one.server, set()).update(rows_where(held, ["commit"], whole)["commit"].to_pylist())
        in_part = ~pc.field("outcome").isin(sorted(_WHOLE))
        for row in rows_where(held, ["position", "outcome", "missing"], in_part).to_pylist():
            parts.setdefault(one.server, {})[row["position"]] = Piece(row["outcome"], row["missing"] or "")
    found = []
    for server, master in sorted({(row["server"], row["master"]) for row in rows}):
        mine = [row for row in rows if (row["server"], row["master"]) == (server, master)]
        commits = [row["commit"] for row in mine if row["commit"] is not None]
        stopped = {row["part"]: row["error"] for row in mine if (row["status"] or "").upper() == "STOPPED"}
        # Each master numbers commits by itself, and nothing tells which of several the log that is there belongs to.
        alone = {row["master"] for row in rows if row["server"] == server} == {master}
        found.append(
            Applied(
                server,
                master,
                _master(logs, server) if alone else None,
                max(commits, default=None),
                tuple(sorted(queued.get(server, ()))),
                stopped,
                server not in cut,
                parts.get(server, {}),
            )
        )
    return found


def _master(logs: Mapping[str, StreamLog], server: str) -> str | None:
    """The one other server whose log numbers its commits; of several nobody knows."""
    told = [name for name, log in logs.items() if name != server and log.by_commit]
    return told[0] if len(told) == 1 else None


def behind_of(one: Applied, log: StreamLog, after: int, limit: int) -> Behind:
    """What a replica has not applied behind a commit of its master's log."""
    waits: dict[str, tuple[int, Commit, Commit]] = {}
    gaps: list[tuple[Commit, str]] = []
    parts: list[tuple[Commit, str]] = []
    queued, fetched, lacks = set(one.queued), max(one.queued, default=after), 0
    first_hole: int | None = None
    for batch in log.after(after):
        for origin in pc.unique(batch["origin"]).to_pylist():
            rows = batch.filter(pc.equal(batch["origin"], origin))
            commits = list(zip(rows["commit"].to_pylist(), rows["position"].to_pylist(), strict=True))
            count, first, last = waits.get(origin, (0, commits[0], commits[0]))
            waits[origin] = count + len(commits), min(first, *commits), max(last, *commits)
            for commit in commits if one.whole else ():
                part = one.in_part.get(commit[1])
                # What has its end was fetched whole; without one, more may still come, unless later commits are there.
                if part and (part.outcome == INCOMPLETE or commit[0] < fetched):
                    parts.append((commit, origin))
                elif part or commit[0] > fetched or commit[0] in queued:
                    continue
                else:
                    gaps.append((commit, origin))
                    lacks += 1
                first_hole = min(first_hole or commit[0], commit[0])
            gaps, parts = sorted(gaps)[:limit], sorted(parts)[:limit]
    held: dict[str, int] = {}
    if first_hole is not None:
        for batch in log.after(first_hole - 1):
            for row in pc.value_counts(batch["origin"]).to_pylist():
                held[row["values"]] = held.get(row["values"], 0) + row["counts"]
    return Behind(one, waits, gaps, lacks, parts, held)


def lacking_said(piece: Piece) -> str:
    """What a queue lacks of a transaction, in words."""
    if piece.missing == TAIL or not piece.missing:
        return "its end"
    numbers = piece.missing.split()
    return f"message{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}"
