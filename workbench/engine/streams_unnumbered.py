"""The contents of two logs held against each other, where messages of one or both have no numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow.compute as pc

from workbench.engine.parquet_read import stream_part
from workbench.engine.stream_diff import Cut, cuts
from workbench.engine.streams import StreamLog
from workbench.replication.stream.rules.segments import COMMITTED
from workbench.replication.stream.rules.unnumbered import LEFT_OUT, NOT_COMPARED, UNLIKE, Committed, contents_of_two

_COLUMNS = ["position", "content", "ended", "rows", "ddl", "messages", "bytes"]


@dataclass
class ContentsOfTwo:
    """What two logs have of the transactions that both committed.

    counts    how a content compares (`workbench.replication.stream.rules.unnumbered`) -> how many
    unlike    position and place, in the log of the source, of those of different contents
    left_out  tables that the copy has nothing of -> how many transactions changed them at the source
    """

    counts: Counter[str] = field(default_factory=Counter)
    unlike: list[tuple[int, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def unrelated(self) -> bool:
        """True if most of what both committed is not the same."""
        return 2 * self.counts[UNLIKE] > self.counts.total()

    @property
    def uncompared(self) -> int:
        """How many contents are not known to be the same."""
        return self.counts[LEFT_OUT] + self.counts[NOT_COMPARED]


@lru_cache(maxsize=10_000)
def rows_of_text(text: str) -> Mapping[str, Mapping[str, int]]:
    """The rows of a transaction by table and operation."""
    found: dict[str, dict[str, int]] = json.loads(text)
    return found


def committed_of(row: Mapping[str, Any]) -> Committed:
    """A row of the table `transactions`, as it is compared."""
    rows = rows_of_text(row["rows"] or "{}")
    return Committed(row["content"], row["ended"] is not None, rows, row["ddl"] or "", row["messages"], row["bytes"])


def tables_of(log: StreamLog) -> frozenset[str]:
    """The tables of which a log has committed anything, of all origins."""
    return frozenset(table for sums in log.sums.values() for table in sums.tables)


def whole_beside(source: StreamLog, other: StreamLog) -> Callable[[Mapping[str, Any] | None, Mapping[str, Any]], bool]:
    """Whether a transaction of another log holds all that the source committed, as far as two rows tell."""
    there, here = tables_of(source), tables_of(other)

    def is_whole(row: Mapping[str, Any] | None, beside: Mapping[str, Any]) -> bool:
        if row is None or row["outcome"] != COMMITTED:
            return True
        says, _ = contents_of_two(committed_of(row), committed_of(beside), there, here)
        return says not in (UNLIKE, LEFT_OUT)

    return is_whole


def contents_compared(source: StreamLog, copy: StreamLog, origin: str) -> ContentsOfTwo:
    """How the contents of the transactions compare that both logs committed; nothing where all of them have numbers."""
    found = ContentsOfTwo()
    if not any(log.sums[origin].unnumbered for log in (source, copy) if origin in log.sums):
        return found
    there, here = tables_of(source), tables_of(copy)
    for cut in cuts((source, copy)):
        mine = {row["position"]: row for row in _rows(copy, origin, cut)}
        theirs = {row["position"]: row for row in _rows(source, origin, cut) if row["position"] in mine}
        for position, row in theirs.items():
            says, tables = contents_of_two(committed_of(row), committed_of(mine[position]), there, here)
            found.counts[says] += 1
            found.left_out.update(tables)
            if says == UNLIKE:
                found.unlike.append((row[source.order] or 0, position))
    found.unlike.sort()
    return found


def _rows(log: StreamLog, origin: str, cut: Cut) -> Iterator[dict[str, Any]]:
    """What a log committed of an origin within a cut, in its order: of a number that was used twice the last one counts."""
    where = (pc.field("origin") == origin) & (pc.field("position") >= cut[0]) & (pc.field("outcome") == COMMITTED)
    where = where if cut[1] is None else where & (pc.field("position") < cut[1])
    rows = [
        row
        for part in log.parts
        for batch in stream_part(part["path"], list(dict.fromkeys([*_COLUMNS, log.order])), where)
        for row in batch.to_pylist()
    ]
    yield from sorted(rows, key=lambda row: row[log.order] or 0)
