"""Two servers that make changes as one origin: what their logs hold of it, told apart by content.

A position that both logs hold may stand for two changes, each made on its own server in the same second. Nobody is sent the
second one: every server takes it for the one that it has.

    s1   6b068ce1000000010000  add    uid=anna,…
    s4   6b068ce1000000010000  modify uid=bert,…       a clash: one position, two changes
    s1   6b068ce1000100010000  add    uid=carl,…       only in the log of s1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.parquet_read import read_part
from workbench.engine.positions import Positions
from workbench.engine.selective_read import rows_at
from workbench.intake.inputs import Input
from workbench.model import EVIDENCE_SHOWN
from workbench.topology.topology import Replica

_WHAT = ["entry", "target", "operation", "body"]


@dataclass
class Compared:
    """What the log of one server holds of an origin, held against the log of the other server that uses it.

    only    records whose position the other log does not hold
    clashes records whose position stands for another change there
    first   the first few of both, as rows of evidence
    """

    server: str
    other: str
    only: int = 0
    clashes: int = 0
    first: list[dict[str, Any]] = field(default_factory=list)


def compared_logs(case: Case, origin: str, one: Replica, other: Replica, begins: str) -> Compared | None:
    """The log of the first server held against that of the second, a part at a time; None without both logs.

    `begins`: what lies before it the log of the second server cannot show.
    """
    if one.log is None or other.log is None:
        return None
    found = Compared(one.server, other.server)
    for here, rows in _records(case, one.log, origin):
        there: dict[tuple[int, int], dict[str, Any]] = {}
        for some, theirs in rows_at(case.parts("changes", other.log), here, _Only(origin), _WHAT):
            places = zip(some.hi.tolist(), some.lo.tolist(), strict=True)
            there |= dict(zip(places, theirs.to_pylist(), strict=True))
        for place, row in zip(zip(here.hi.tolist(), here.lo.tolist(), strict=True), rows.to_pylist(), strict=True):
            if place not in there:
                if row["position"] > begins:
                    found.only += 1
                    _keep(found, "only_here", row)
            elif _another(row, there[place]):
                found.clashes += 1
                _keep(found, "clash", row, there[place])
    return found


class _Only(dict[str, int]):
    """Origin -> number: that of the origin is 0, others that stand beside its records are -1."""

    def __init__(self, origin: str) -> None:
        super().__init__({origin: 0})

    def __missing__(self, name: str) -> int:
        return -1


_AT_ONCE = 50_000
"""Records that are held in memory at a time."""


def _records(case: Case, log: Input, origin: str) -> Iterator[tuple[Positions, pa.Table]]:
    """The changes of the origin in a log, in the order of positions, some at a time."""
    mine = (pc.field("kind") == "change") & (pc.field("origin") == origin)
    for part in case.parts("changes", log):
        table = read_part(part["path"], ["origin", "hi", "lo", "position", *_WHAT], mine)
        table = table.sort_by([("hi", "ascending"), ("lo", "ascending")])
        for begin in range(0, len(table), _AT_ONCE):
            some = table.slice(begin, _AT_ONCE).combine_chunks()
            hi, lo = some["hi"].to_numpy(), some["lo"].to_numpy()
            # A log that holds a position twice is taken at its first record.
            first = np.flatnonzero(np.concatenate([[True], (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1])]))
            yield Positions(np.zeros(len(first), np.int32), hi[first], lo[first]), some.take(pa.array(first))


def _another(row: dict[str, Any], other: dict[str, Any]) -> bool:
    """True if the two records are not of one change: another entry, another operation, or other values."""
    return any(row[key] is not None and other[key] is not None and row[key] != other[key]
               for key in ("entry", "operation", "body"))  # fmt: skip


def _keep(found: Compared, what: str, row: dict[str, Any], other: dict[str, Any] | None = None) -> None:
    if sum(one["what"] == what for one in found.first) < EVIDENCE_SHOWN // 2:
        about = {"what": what, "server": found.server, "position": row["position"]}
        about |= {"operation": row["operation"], "target": row["target"]}
        if other:
            about |= {"other": found.other, "other_operation": other["operation"], "other_target": other["target"]}
        found.first.append(about)
