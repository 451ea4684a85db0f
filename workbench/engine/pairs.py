"""The exact counts for many pairs of servers, by one pass of Spark over the sorted positions of all logs.

What a session would do depends on its log only by a few questions (`workbench.rules.send_session.Log`): is this position there,
what comes next, how many changes of an origin lie between two positions. So each plan is first asked of a log that
answers nothing and notes the questions (`Questions`); the positions in them cut every log into slots; one pass counts the
slots and keeps their ends; and the same plan is asked again, of the slots (`SlotLog`).

The workers read the sorted parts themselves and answer a few numbers for each slot. Nothing is shuffled but these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from workbench.engine.logs import StoredLog
from workbench.engine.parquet_read import read_part
from workbench.engine.positions import place
from workbench.model import Problem, System
from workbench.rules.send_session import Bound, Log, Tally
from workbench.tables import order_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Asker = Callable[[Log], Any]
"""A plan that wants to know something of a log."""

TASK_ROWS = 4_000_000
"""Positions that one task reads: a Spark task with Python in it costs a tenth of a second before it reads a byte."""

_FEWEST_TASKS = 2
_SLOTS = "log string, origin string, slot bigint, changes bigint, hi bigint, lo bigint, last_hi bigint, last_lo bigint"


class Questions:
    """A log that holds nothing and notes which positions it is asked about: all origins at once, and one by one."""

    def __init__(self, log: StoredLog, first: Mapping[str, str] | None) -> None:
        self._log, self._first = log, first
        self.asked_for_first = False
        self.everywhere: set[str] = set()
        self.of: dict[str, set[str]] = {}

    @property
    def marks(self) -> Collection[str]:
        """The marks: a change may be sent because one lies right before it."""
        self.everywhere.update(self._log.marks)
        return self._log.marks

    def origin_of(self, position: str) -> str:
        """Who made the change."""
        return self._log.origin_of(position)

    def origins(self) -> Iterable[str]:
        """The origins of its changes, as far as they are known before they are read."""
        return self._first or self._log.origins()

    def holds(self, position: str) -> bool:
        """Yes: a plan that stops here asks no more."""
        self.everywhere.add(position)
        return True

    def after(self, position: str) -> str | None:
        """The same position, so that the plan goes on."""
        self.everywhere.add(position)
        return position

    def first_of(self, origin: str) -> str | None:
        """The first change of the origin, if it is known already."""
        self.asked_for_first = True
        return (self._first or {}).get(origin)

    def changes(self, origin: str, low: Bound) -> Iterator[str]:
        """Nothing."""
        self.of.setdefault(origin, set()).add(low.position)
        return iter(())

    def tally(self, origin: str, low: Bound, high: str | None) -> Tally:
        """Nothing."""
        self.everywhere.add(low.position)
        if high is not None:
            self.of.setdefault(origin, set()).add(high)
        return Tally()

    def points(self, origin: str) -> list[str]:
        """The positions that cut the changes of the origin into slots."""
        return sorted(self.everywhere | self.of.get(origin, set()))


class SlotLog:
    """A log of which only slots were counted. Slot 2i lies below the point i, slot 2i + 1 is the point itself."""

    def __init__(self, log: StoredLog, asked: Questions, counted: Mapping[str, Mapping[int, Tally]]) -> None:
        self._log, self._counted = log, counted
        self._points = {origin: asked.points(origin) for origin in counted}
        self._filled = {origin: sorted(slots) for origin, slots in counted.items()}
        self._sums = {
            origin: list(accumulate((counted[origin][slot].changes for slot in filled), initial=0))
            for origin, filled in self._filled.items()
        }

    def _slot(self, origin: str, number: int) -> Tally:
        return self._counted[origin].get(number, Tally())

    @property
    def marks(self) -> Collection[str]:
        """The marks, in any order: a few."""
        return self._log.marks

    def origin_of(self, position: str) -> str:
        """Who made the change."""
        return self._log.origin_of(position)

    def origins(self) -> Iterable[str]:
        """The origins of its changes."""
        return sorted(self._counted)

    def holds(self, position: str) -> bool:
        """True if there is a record, change or mark, of exactly this position."""
        return position in self.marks or any(
            self._slot(origin, self._begin(origin, Bound(position, True))[0]).first == position
            for origin in self._counted
        )

    def after(self, position: str) -> str | None:
        """The first record, change or mark, above the position."""
        found = [self.tally(origin, Bound(position, False), None).first for origin in self._counted]
        marks = [mark for mark in self.marks if mark > position]
        return min(filter(None, [*found, *marks]), default=None)

    def first_of(self, origin: str) -> str | None:
        """The first change of the origin."""
        return self._counted[origin][self._filled[origin][0]].first if origin in self._counted else None

    def changes(self, origin: str, low: Bound) -> Iterator[str]:
        """The changes of the origin from the bound on, in order; only the first one is known from the slots."""
        found = self.tally(origin, low, None)
        if found.first and found.last:
            yield found.first
            yield from self._log.of_origin(origin, found.first, found.last)

    def tally(self, origin: str, low: Bound, high: str | None) -> Tally:
        """The changes of the origin from the bound to `high`, this one included; None: to the end."""
        if origin not in self._counted:
            return Tally()
        begin, skipped = self._begin(origin, low)
        end, more = (2 * len(self._points[origin]) + 1, None) if high is None else self._end(origin, high)
        filled, sums = self._filled[origin], self._sums[origin]
        left, right = bisect_left(filled, begin), bisect_left(filled, end)
        slots = [self._counted[origin][filled[at]] for at in (left, right - 1)] if left < right else []
        changes = sums[max(left, right)] - sums[left]
        if skipped is not None and slots:  # the bound lies inside the first slot
            slots[0] = Tally(0, next(self._log.of_origin(origin, low.position, slots[0].last or ""), None))
            changes -= sum(1 for _ in self._log.of_origin(origin, skipped, low.position))
        if more is not None and begin <= end:  # `high` lies inside the slot behind
            inside = list(self._log.of_origin(origin, max(more, low.position), high or ""))
            if inside:
                slots.append(Tally(len(inside), inside[0], inside[-1]))
                changes += len(inside)
        return Tally(changes, slots[0].first, slots[-1].last) if slots else Tally()

    def _begin(self, origin: str, low: Bound) -> tuple[int, str | None]:
        """The first slot from the bound on. If the bound lies inside it: the point before the slot, else None."""
        points = self._points[origin]
        at = bisect_left(points, low.position)
        if at < len(points) and points[at] == low.position:
            return 2 * at + (1 if low.included else 2), None
        slot = self._slot(origin, 2 * at)
        # A start that came out of `after`: no change of any origin lies between the point before it and itself.
        if slot.first is None or slot.first > low.position or (low.included and slot.first == low.position):
            return 2 * at, None
        if slot.last is not None and slot.last <= low.position and not low.included:
            return 2 * at + 1, None
        if low.included:
            raise LookupError(f"nobody asked where {low.position} lies among the changes of {origin}")
        return 2 * at, points[at - 1] if at else ""

    def _end(self, origin: str, high: str) -> tuple[int, str | None]:
        """The slot behind the last one up to `high`. If `high` lies inside that slot: the point before it, else None."""
        points = self._points[origin]
        at = bisect_left(points, high)
        if at < len(points) and points[at] == high:
            return 2 * at + 2, None
        slot = self._slot(origin, 2 * at)
        if slot.last is None or slot.last <= high:
            return 2 * at + 1, None
        outside = slot.first is not None and slot.first > high
        return 2 * at, None if outside else points[at - 1] if at else ""


def exact_logs(
    spark: SparkSession, logs: Mapping[str, StoredLog], askers: Mapping[str, Sequence[Asker]], tasks: int | None = None
) -> dict[str, SlotLog]:
    """The logs by name, each ready to be asked by its `askers`: one pass over all, two if one asks for first changes.

    The names are those of the files in the table `positions`. `tasks` is how many Spark makes of it.
    """
    asked = {name: _ask(log, askers.get(name, ()), None) for name, log in logs.items()}
    if any(questions.asked_for_first for questions in asked.values()):
        ends = _count(spark, logs, {name: Questions(log, None) for name, log in logs.items()}, tasks)
        firsts = {name: {origin: slots[0].first or "" for origin, slots in ends[name].items()} for name in logs}
        asked = {name: _ask(log, askers.get(name, ()), firsts[name]) for name, log in logs.items()}
    counted = _count(spark, logs, asked, tasks)
    return {name: SlotLog(log, asked[name], counted[name]) for name, log in logs.items()}


def _ask(log: StoredLog, askers: Iterable[Asker], first: Mapping[str, str] | None) -> Questions:
    questions = Questions(log, first)
    for ask in askers:
        ask(questions)
    return questions


def _count(
    spark: SparkSession, logs: Mapping[str, StoredLog], asked: Mapping[str, Questions], tasks: int | None
) -> dict[str, dict[str, dict[int, Tally]]]:
    """Log -> origin -> slot -> how many changes, and the ends."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    from workbench.engine.evidence import cause_of

    counted: dict[str, dict[str, dict[int, Tally]]] = {name: {} for name in logs}
    paths = {part["path"]: part["rows"] for log in logs.values() for part in log.parts}
    if not paths:
        return counted
    tasks = tasks or max(_FEWEST_TASKS, -(-sum(paths.values()) // TASK_ROWS))
    shares = [list(paths)[number::tasks] for number in range(tasks)]
    system = next(iter(logs.values())).system
    cuts = {name: _Cuts(system, questions) for name, questions in asked.items()}

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for path in shares[number]:
                    yield from _slots_of(path, cuts)

    found = (
        spark.range(0, tasks, 1, tasks)
        .mapInArrow(work, _SLOTS)
        .groupBy("log", "origin", "slot")
        .agg(
            f.sum("changes").alias("changes"),
            f.min(f.struct("hi", "lo")).alias("first"),
            f.max(f.struct("last_hi", "last_lo")).alias("last"),
        )
    )
    try:
        rows = found.toArrow().to_pylist()
    except PySparkException as error:
        raise Problem(f"the positions could not be counted: {cause_of(error)}") from None
    for row in rows:
        origin = row["origin"]
        ends = (system.order_key(origin, *row[end].values()) for end in ("first", "last"))
        counted[row["log"]].setdefault(origin, {})[row["slot"]] = Tally(row["changes"], *ends)
    return counted


class _Cuts:
    """The points of one log as numbers, per origin."""

    def __init__(self, system: System, asked: Questions) -> None:
        self._everywhere = sorted(map(system.halves, asked.everywhere))
        self._of = {
            origin: sorted({*self._everywhere, *map(system.halves, points)}) for origin, points in asked.of.items()
        }

    def of(self, origin: str) -> list[tuple[int, int]]:
        return self._of.get(origin, self._everywhere)


def _slots_of(path: str, cuts: Mapping[str, _Cuts]) -> Iterator[pa.RecordBatch]:
    """One row for every slot that has positions of this part."""
    table = read_part(path, ["file", "origin", "hi", "lo"])
    hi, lo = table["hi"].to_numpy(), table["lo"].to_numpy()
    file, origin = (table[name].combine_chunks() for name in ("file", "origin"))
    group = np.asarray(file.indices).astype(np.int64) * len(origin.dictionary) + np.asarray(origin.indices)
    order = order_of(hi, lo)
    if (order[1:] < order[:-1]).any():  # a part is sorted; should one not be, its counts are right all the same
        hi, lo, group = hi[order], lo[order], group[order]
    rows: list[tuple[Any, ...]] = []
    for number in np.unique(group).tolist():
        name, who = (
            kind.dictionary[at].as_py()
            for kind, at in zip((file, origin), divmod(number, len(origin.dictionary)), strict=True)
        )
        if name in cuts:
            mine = group == number
            mine_hi, mine_lo = hi[mine], lo[mine]
            points = cuts[name].of(who)
            edges = [0, *(place(mine_hi, mine_lo, point, side) for point in points for side in ("left", "right"))]
            edges.append(len(mine_hi))
            for slot, (begin, end) in enumerate(pairwise(edges)):
                if begin < end:
                    ends = (mine_hi[begin], mine_lo[begin], mine_hi[end - 1], mine_lo[end - 1])
                    rows.append((name, who, slot, end - begin, *map(int, ends)))
    if rows:
        fields = [column.split()[0] for column in _SLOTS.split(", ")]
        yield pa.RecordBatch.from_pydict(dict(zip(fields, map(list, zip(*rows, strict=True)), strict=True)))
