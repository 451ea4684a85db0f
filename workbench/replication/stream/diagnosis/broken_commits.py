"""Commits of a master of which its own log has a part: a replica fetches that part, or passes over the whole.

log of m   104/1  104/2  104/3 end      all of it is fetched
log of m   104/1         104/3 end      messages 1 and 3 are fetched, and the applier ends behind message 1
log of m   104/1  104/2                 a replica asks by the number of a commit, which only the end has: it gets nothing
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from workbench.engine.selective_read import rows_where
from workbench.engine.streams import StreamLog
from workbench.replication.stream.diagnosis.by_earlier_log import whole_before_in
from workbench.replication.stream.diagnosis.queues import Key
from workbench.replication.stream.rules.segments import INCOMPLETE, UNFINISHED

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.appliers import Applied
    from workbench.replication.stream.diagnosis.log_comparison import Streams


class BrokenCommit(NamedTuple):
    """A commit of which the log of its master has a part; `earlier`: the earlier log that has it whole, in words, or empty."""

    commit: int
    outcome: str
    earlier: str


_COLUMNS = ["origin", "position", "outcome", "commit"]
_NONE: Mapping[Key, BrokenCommit] = {}


def broken_commits(streams: Streams, master: str) -> Mapping[Key, BrokenCommit]:
    """What the log of a master has in part, under the number that its end has there, or has in an earlier log."""
    log = streams.logs[master]
    if not log.by_commit:
        return _NONE
    found: dict[Key, BrokenCommit] = {}
    where = pc.field("outcome").isin([INCOMPLETE, UNFINISHED])
    for row in rows_where(log.parts, _COLUMNS, where).to_pylist():
        before = whole_before_in(streams, master, row["origin"], row["position"], {INCOMPLETE, UNFINISHED})
        commit = row["commit"] if row["commit"] or before is None else before.row["commit"]
        if commit:
            place = before.earlier.place if before else ""
            found[row["origin"], row["position"]] = BrokenCommit(commit, row["outcome"], place)
    return found


def without_number(log: StreamLog, one: Applied, after: int, known: Mapping[Key, BrokenCommit]) -> list[str]:
    """The positions of what the log of a master has without an end, if it may have one of the numbers that are not there.

    A transaction that is still open, or whose last statement failed, took no number: then none is absent.
    """
    if log.lost or log.last_commit is None or log.last_commit <= after:
        return []
    rows = rows_where(log.parts, _COLUMNS, pc.field("outcome") == UNFINISHED).to_pylist()
    mine = {(row["origin"], row["position"]) for row in rows} - known.keys() - one.waiting.keys()
    if not mine:
        return []
    there = {commit for batch in log.after(after) for commit in batch["commit"].to_pylist()}
    there |= {*(one.queued or ()), *(broken.commit for broken in known.values())}
    begins = max(after + 1, log.first_commit or 0)
    absent = any(commit not in there for commit in range(begins, log.last_commit))
    return sorted(position for _, position in mine) if absent else []
