"""The queues of replicas: what each holds of each of its masters, and whose log the commits of a master are in.

A replica numbers its masters by itself, so no number names a log. What is in its queue does:

    queue of master 2  204 (commit 4)  205 (commit 5)       log of n  204 (commit 4)  205 (commit 5)      master 2 is n
    queue of master 2  empty                                log of n  204 (commit 4)  205 (commit 5)      nothing tells
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.selective_read import rows_where
from workbench.engine.streams import StreamLog
from workbench.engine.streams_unnumbered import committed_of, tables_of
from workbench.replication.stream.rules.segments import COMMITTED, EVENT, REPEATED, ROLLED_BACK
from workbench.replication.stream.rules.unnumbered import UNLIKE, contents_of_two
from workbench.systems import format_with

Row = Mapping[str, Any]
Key = tuple[str, str]
"""Origin and position."""

WHOLE = frozenset({COMMITTED, ROLLED_BACK, EVENT})
_COLUMNS = ["origin", "position", "outcome", "missing", "commit", "offset"]
_CONTENT = ["content", "ended", "rows", "ddl", "messages", "bytes"]
COLUMNS = [*_COLUMNS, *_CONTENT]
_HELD_AGAINST = 200
"""So many transactions of a queue are looked for in a log, to find out whose it is."""


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


@dataclass
class Queue:
    """What a replica's queue holds of one master, or of all of them: whole transactions with a commit, and parts of others."""

    whole: dict[Key, Row] = field(default_factory=dict)
    parts: dict[Key, Piece] = field(default_factory=dict)

    def commits(self, after: int | None) -> tuple[int, ...]:
        """The commits that are there, behind one."""
        return tuple(sorted({row["commit"] for row in self.whole.values() if after is None or row["commit"] > after}))


def queues_of(case: Case, label: str, masters: Mapping[tuple[str, int], str]) -> dict[str, dict[str | None, Queue]]:
    """Server -> master -> what was collected of its queue. Master None: a row that names none.

    `masters`: file and offset of a row -> its master.
    """
    found: dict[str, dict[str | None, Queue]] = {}
    for one in case.inputs:
        if not one.kind or one.snapshot != label or format_with(one.kind).is_log or not format_with(one.kind).streams:
            continue
        of_server = found.setdefault(one.server, {})
        rows = rows_where(case.parts("transactions", one), COLUMNS, pc.field("outcome") != REPEATED)
        for row in rows.to_pylist():
            queue = of_server.setdefault(masters.get((one.file, row["offset"])), Queue())
            key = row["origin"], row["position"]
            if row["outcome"] not in WHOLE:
                queue.parts[key] = Piece(row["missing"] or "", row["commit"])
            elif row["commit"] is not None:
                queue.whole[key] = row
    return found


def master_of(queue: Queue, logs: Iterable[StreamLog]) -> str | None:
    """The server whose log has what a queue holds, under the same commits; None: no log has it, or two have.

    Most of what both have has to be the same; of half of it the one log counts that has any of it alike.
    """
    counts = {log.server: _alike(queue, log) for log in logs}
    most = [name for name, (alike, other) in counts.items() if alike > other]
    half = [name for name, (alike, _) in counts.items() if alike]
    if not most and len(half) == 1 and counts[half[0]][0] == counts[half[0]][1]:
        return half[0]
    return most[0] if len(most) == 1 else None


def _alike(queue: Queue, log: StreamLog) -> tuple[int, int]:
    """How many of what both have are the same, and how many are not."""
    alike = other = 0
    for origin, rows in _by_origin(islice(queue.whole.items(), _HELD_AGAINST)).items():
        for position, row in log.rows_of(origin, sorted(rows)).items():
            same = row["commit"] == rows[position]["commit"] and not _is_unlike(log, row, rows[position], frozenset())
            alike, other = alike + same, other + (not same)
    for (origin, position), piece in islice(queue.parts.items(), _HELD_AGAINST):
        logged = log.rows_of(origin, [position]).get(position) if piece.commit is not None else None
        alike += logged is not None and logged["commit"] == piece.commit
        other += logged is not None and logged["commit"] != piece.commit
    return alike, other


def other_contents(whole: Mapping[Key, Row], log: StreamLog) -> list[tuple[tuple[int, str], str]]:
    """Commit with position, and origin, of what a queue holds with another content than the log of its master."""
    tables = frozenset(table for row in whole.values() for table in committed_of(row).rows)
    found = []
    for origin, rows in _by_origin(whole.items()).items():
        for position, row in log.rows_of(origin, sorted(rows)).items():
            if _is_unlike(log, row, rows[position], tables):
                found.append(((rows[position]["commit"], position), origin))
    return sorted(found)


def under_other_commits(whole: Mapping[Key, Row], log: StreamLog) -> list[tuple[tuple[int, str], str]]:
    """The same of what a queue holds under commits under which the log of the master has other transactions.

    queue   103 (commit 3)      log of m   303 (commit 3)      the queue is of another master, or m was made anew
    """
    where = pc.field("commit").isin(pa.array(sorted({row["commit"] for row in whole.values()}), pa.int64()))
    rows = rows_where(log.parts, ["origin", "position", "commit", "outcome"], where).to_pylist() if whole else []
    logged: dict[int, set[Key]] = {}
    for row in rows:
        logged.setdefault(row["commit"], set()).add((row["origin"], row["position"]))
    return sorted(
        ((row["commit"], key[1]), key[0])
        for key, row in whole.items()
        if row["commit"] in logged and key not in logged[row["commit"]]
    )


def _is_unlike(log: StreamLog, row: Row, queued: Row, tables: frozenset[str]) -> bool:
    """True if a queue holds another content than the log; `tables` are those that the queue has anything of.

    The row of a queue tells the number of a message, also where a filter took it out of the message.
    """
    if {row["outcome"], queued["outcome"]} == {COMMITTED, ROLLED_BACK}:
        return True
    if row["outcome"] != COMMITTED or queued["outcome"] != COMMITTED:
        return False
    mine = replace(committed_of(queued), numbered=False)
    return contents_of_two(committed_of(row), mine, tables_of(log), tables)[0] == UNLIKE


def _by_origin(rows: Iterable[tuple[Key, Row]]) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for (origin, position), row in rows:
        found.setdefault(origin, {})[position] = row
    return found


def together(queues: Sequence[Queue]) -> Queue:
    """Several as one."""
    found = Queue()
    for queue in queues:
        found.whole |= queue.whole
        found.parts |= queue.parts
    return found
