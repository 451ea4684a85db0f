"""How many changes the entries of one file show, of an origin and between two times."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.selective_read import rows_where
from workbench.intake.inputs import Input


def counted_between(
    case: Case, one: Input | None, origin: str, after: int, upto: int, listed: int = 0
) -> tuple[int, int, int]:
    """How many last changes of attributes, and tombstones, a file shows behind a time up to another; the first and the last.

    listed  the first time that the vector lists of the origin: entries changed before it only are found by nothing, and not sent
    """
    found = []
    for times in sent_times(case, one, origin, after, upto, listed):
        ends = pc.min_max(times).as_py()
        found.append((len(times), ends["min"], ends["max"]))
    if not found:
        return 0, 0, 0
    return sum(one[0] for one in found), min(one[1] for one in found), max(one[2] for one in found)


def sent_times(
    case: Case, one: Input | None, origin: str, after: int, upto: int, listed: int = 0
) -> Iterator[pa.ChunkedArray]:
    """The times of these changes, by part of the file."""
    where = (pc.field("origin") == origin) & (pc.field("hi") > after) & (pc.field("hi") <= upto)
    where &= pc.field("kind") != "created"
    for part in case.parts("states", one) if one else ():
        times = rows_where([part], ["hi"], where)["hi"]
        if len(times) and after < listed and pc.min(times).as_py() < listed:
            rows = rows_where([part], ["entry", "hi"], where)
            names = rows["entry"].cast(pa.string())
            fresh = pc.unique(names.filter(pc.greater_equal(rows["hi"], listed)))
            times = rows["hi"].filter(pc.is_in(names, fresh))
        if len(times):
            yield times


def changes_shown(case: Case, one: Input) -> dict[str, tuple[int, int, int]]:
    """Origin -> how many last changes of attributes, and tombstones, a file shows of it; the first and the last time."""
    found: dict[str, tuple[int, int, int]] = {}
    for part in case.parts("states", one):
        rows = rows_where([part], ["origin", "hi"], pc.field("kind") != "created")
        rows = rows.set_column(0, "origin", rows["origin"].cast(pa.string()))
        by = rows.group_by("origin").aggregate([("hi", "count"), ("hi", "min"), ("hi", "max")])
        for row in by.to_pylist():
            count, first, last = found.get(row["origin"], (0, row["hi_min"], row["hi_max"]))
            found[row["origin"]] = count + row["hi_count"], min(first, row["hi_min"]), max(last, row["hi_max"])
    return found
