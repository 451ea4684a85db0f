"""The records of one changelog of a case between two CSNs, in the order in which a session reads them."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from heapq import merge
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.rules.sending import Bound
from workbench.systems.ds389.csn import halves, order_key, origin_of
from workbench.tables import Numbers

_PARTS_KEPT = 8


class Records:
    """The changes and the dummy records of one changelog file; its parts are read as they are needed."""

    def __init__(self, case: Any, log: Any) -> None:
        def paths(table: str) -> list[dict[str, Any]]:
            mine = (part for part in log.parts if part["table"] == table)
            return [{**part, "path": str(case.evidence / table / part["name"])} for part in mine]

        self._parts = sorted(paths("positions"), key=lambda part: tuple(part["first"]))
        self._kept: OrderedDict[str, tuple[Numbers, Numbers]] = OrderedDict()
        self._marks: list[str] = []
        if log.facts.get("helpers"):
            for part in paths("changes"):
                found = pq.read_table(part["path"], columns=["position"], filters=pc.field("kind") == "anchor")
                self._marks += found["position"].to_pylist()
            self._marks.sort()

        self._last = {rid: seen["max"] for rid, seen in log.facts.get("by_origin", {}).items()}

    def ends_before(self, csn: str) -> bool:
        """True if it has changes of the replica ID of this CSN, and none so high."""
        return csn > (self._last.get(origin_of(csn)) or csn)

    def holds(self, csn: str) -> bool:
        """True if there is a record of exactly this CSN."""
        return next(self.between(Bound(csn, True), csn), None) is not None

    def between(self, low: Bound, upto: str | None) -> Iterator[str]:
        """The records from the bound on up to `upto`, this one included; None: to the end."""
        end = halves(upto) if upto is not None else None
        marks = iter(self._marks[low.place(self._marks) : None if upto is None else bisect_right(self._marks, upto)])
        mark = next(marks, None)
        for csn in self._changes(low, end):
            while mark is not None and mark < csn:
                yield mark
                mark = next(marks, None)
            if mark == csn:
                mark = next(marks, None)
            yield csn
        while mark is not None:
            yield mark
            mark = next(marks, None)

    def _changes(self, low: Bound, end: tuple[int, int] | None) -> Iterator[str]:
        begin, last = halves(low.position), ""
        mine = [
            part for part in self._parts if tuple(part["last"]) >= begin and (not end or tuple(part["first"]) <= end)
        ]
        for together in _overlapping(mine):
            for pair in merge(*(self._within(part["path"], low, end) for part in together)):
                csn = order_key("", *pair)
                if csn != last:
                    yield csn
                last = csn

    def _within(self, path: str, low: Bound, end: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
        hi, lo = self._read(path)
        begin = halves(low.position)
        for at in range(int(np.searchsorted(hi, begin[0], "left")), len(hi)):
            pair = int(hi[at]), int(lo[at])
            if end is not None and pair > end:
                return
            if pair > begin or (pair == begin and low.included):
                yield pair

    def _read(self, path: str) -> tuple[Numbers, Numbers]:
        if path not in self._kept:
            rows = pq.read_table(path, columns=["hi", "lo"], use_threads=False, partitioning=None)
            self._kept[path] = rows["hi"].to_numpy(), rows["lo"].to_numpy()
            if len(self._kept) > _PARTS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(path)
        return self._kept[path]


def _overlapping(parts: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The parts, those together whose positions lie among each other: only of an unsorted export there are such."""
    together: list[dict[str, Any]] = []
    for part in parts:
        if together and tuple(part["first"]) > max(tuple(one["last"]) for one in together):
            yield together
            together = []
        together.append(part)
    if together:
        yield together
