"""What each log lacks that another one holds, by one pass of Spark over the sorted positions of all logs: no digest is asked.

Time is cut into ranges, and a task reads those of all logs, block after block. Blocks that are alike, number by number, are
done with; one that is not is halved until little is left, and that is compared as sets. So a task holds a few blocks,
whatever the logs hold, nothing is shuffled, and what comes back is the differences themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.engine.logs import StoredLog
from workbench.engine.parquet_read import damaged, read_part
from workbench.engine.position_index import HIGHEST, PositionIndex, Source, Span, UnloggedPositions, only
from workbench.engine.positions import NONE, Positions, as_set, union
from workbench.model import Problem
from workbench.tables import Numbers, order_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Asked = tuple[int, str]
"""Number of a log, and an origin."""

TASK_ROWS = 12_000_000
"""Positions that one task reads: a Spark task with Python in it costs a tenth of a second before it reads a byte."""

_FEWEST_TASKS = 2
_BLOCK = 64_000
"""Positions of all logs that are compared at once: about a part, so that most blocks are a slice of one and nothing is copied."""
_LEFT = 1024
"""A block of so few positions is not halved any more."""
_PARTS_KEPT = 2
_ROWS = "question bigint, log bigint, origin string, hi bigint, lo bigint"


@dataclass(frozen=True)
class Question:
    """Within these spans: what do other logs hold of the origin that this one does not? `names`: all origins."""

    logs: Sequence[StoredLog]
    names: Sequence[str]
    spans: Mapping[Asked, Span]


class _Share(NamedTuple):
    """From one hi to another, both included, of the logs of a question."""

    question: int
    low: int
    high: int
    rows: int


def lacking(
    spark: SparkSession, questions: Sequence[Question], tasks: int | None = None
) -> list[dict[Asked, Positions]]:
    """Of each question what its logs lack, by log and origin; nothing stands under one that lacks nothing.

    `tasks` is how many Spark makes of it.
    """
    from pyspark.errors import PySparkException

    from workbench.engine.evidence import cause_of

    compared = [_Compared(question) for question in questions]
    shares = [share for number, one in enumerate(compared) for share in one.shares(number)]
    found: list[dict[Asked, Positions]] = [{} for _ in questions]
    if not shares:
        return found
    tasks = tasks or max(_FEWEST_TASKS, -(-sum(share.rows for share in shares) // TASK_ROWS))
    work_of = _dealt(shares, tasks)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for share in work_of[task]:
                    yield from compared[share.question].rows(share)

    job = spark.range(0, tasks, 1, tasks).mapInArrow(work, _ROWS)
    try:
        rows = job.toArrow()
    except PySparkException as error:
        raise Problem(f"the positions could not be compared: {cause_of(error)}") from None
    for (number, log, origin), some in _grouped(rows):
        code = questions[number].names.index(origin)
        found[number][log, origin] = Positions(np.full(len(some[0]), code, np.int32), *some)
    return found


def told_otherwise(
    spark: SparkSession, known: Sequence[PositionIndex], tasks: int | None = None
) -> Iterator[tuple[StoredLog, str]]:
    """The logs and origins of which the digests told other differences than the positions do."""
    questions = []
    for one in known:
        logs = [source.log for source in one.sources if isinstance(source, Source)]
        questions.append(Question(logs, one.names, {asked: span for asked, (span, _) in one.answered.items()}))
    for one, question, exact in zip(known, questions, lacking(spark, questions, tasks), strict=True):
        loose = [source.positions for source in one.sources if isinstance(source, UnloggedPositions)]
        for (log, origin), (span, told) in one.answered.items():
            code = one.names.index(origin)
            # What no log holds, every log lacks: that is how it was chosen.
            found = union([exact.get((log, origin), NONE), *(span.of(only(some, code)) for some in loose)])
            if not _alike(told, found):
                yield question.logs[log], origin


def _dealt(shares: Sequence[_Share], tasks: int) -> list[list[_Share]]:
    """The shares in their order, so many rows for each task: neighbours read the same parts."""
    dealt: list[list[_Share]] = [[] for _ in range(tasks)]
    total, before = sum(share.rows for share in shares), 0
    for share in shares:
        dealt[min(tasks - 1, before * tasks // max(1, total))].append(share)
        before += share.rows
    return dealt


def _grouped(rows: pa.Table) -> Iterator[tuple[tuple[int, int, str], tuple[Numbers, Numbers]]]:
    """(question, log, origin) with the halves of its positions, sorted."""
    origin = rows["origin"].combine_chunks().dictionary_encode()
    number, log, hi, lo = (rows[name].to_numpy() for name in ("question", "log", "hi", "lo"))
    codes = np.asarray(origin.indices)
    order = np.lexsort((lo, hi, codes, log, number))
    number, log, codes, hi, lo = (values[order] for values in (number, log, codes, hi, lo))
    new = (number[1:] != number[:-1]) | (log[1:] != log[:-1]) | (codes[1:] != codes[:-1])
    edges = [0, *(np.flatnonzero(new) + 1).tolist(), len(order)]
    for begin, end in pairwise(edges):
        if begin < end:
            who = int(number[begin]), int(log[begin]), origin.dictionary[int(codes[begin])].as_py()
            yield who, (hi[begin:end], lo[begin:end])


class _Compared:
    """One question as a worker has it: where the positions are, and which spans are asked for."""

    def __init__(self, question: Question) -> None:
        self.parts = [log.parts for log in question.logs]
        self._ends = [np.array([(p["first"][0], p["last"][0]) for p in one]).reshape(-1, 2) for one in self.parts]
        self.names = list(question.names)
        self.spans = {asked: span for asked, span in question.spans.items() if not span.empty}
        self.reach: dict[int, tuple[int, int]] = {}
        """Of each log that is asked for, the first and the last hi of its spans."""
        for (log, _), span in self.spans.items():
            low, high = self.reach.get(log, (span.low[0], span.high[0]))
            self.reach[log] = min(low, span.low[0]), max(high, span.high[0])
        self._kept: dict[str, Positions] = {}

    def shares(self, number: int) -> Iterator[_Share]:
        """The ranges of time within all that is asked for, each of about a block."""
        begins = sorted((part["first"][0], part["rows"]) for parts in self.parts for part in parts)
        if not self.reach or not begins:
            return
        low, last = min(low for low, _ in self.reach.values()), max(high for _, high in self.reach.values())
        rows = 0
        for (begin, held), (following, _) in pairwise([*begins, (HIGHEST[0], 0)]):
            rows += held if begin <= last else 0
            if rows >= _BLOCK and low < following <= last and begin < following:
                yield _Share(number, low, following - 1, rows)
                low, rows = following, 0
        yield _Share(number, low, last, rows)

    def rows(self, share: _Share) -> Iterator[pa.RecordBatch]:
        """What each log lacks in the range."""
        logs = [self._read(log, share.low, share.high) for log in range(len(self.parts))]
        names = [column.split()[0] for column in _ROWS.split(", ")]
        for log, origin, some in self._lacking(logs):
            about = [pa.array([value] * len(some)) for value in (share.question, log, origin)]
            yield pa.RecordBatch.from_arrays([*about, pa.array(some.hi), pa.array(some.lo)], names)

    def _lacking(self, logs: Sequence[Positions]) -> Iterator[tuple[int, str, Positions]]:
        for unlike in _unlike(logs, self.reach):
            held = [as_set(some) for some in unlike]
            whole = union(one for number, one in enumerate(held) if not any(_alike(one, two) for two in held[:number]))
            for log in self.reach:
                absent = whole.minus(held[log])
                for code in np.unique(absent.origin).tolist():
                    span = self.spans.get((log, self.names[code]))
                    some = span.of(absent[absent.origin == code]) if span else NONE
                    if len(some):
                        yield log, self.names[code], some

    def _read(self, log: int, low: int, high: int) -> Positions:
        """All positions of a log from one hi to another."""
        found, (first, last) = [], self._ends[log].T
        for at in np.flatnonzero((first <= high) & (low <= last)).tolist():
            some = self._part(self.parts[log][at])
            found.append(some[np.searchsorted(some.hi, low) : np.searchsorted(some.hi, high, "right")])
        found = [some for some in found if len(some)]
        if len(found) < 2:
            return found[0] if found else NONE
        whole = Positions(*(np.concatenate([getattr(one, name) for one in found]) for name in ("origin", "hi", "lo")))
        return whole if all(one.hi[-1] <= two.hi[0] for one, two in pairwise(found)) else _sorted(whole)

    def _part(self, part: Mapping[str, Any]) -> Positions:
        """One part, in order of hi; the last ones read are kept, for a range seldom ends where a part does."""
        path = part["path"]
        if path not in self._kept:
            table = read_part(path, ["origin", "hi", "lo"])
            origin = table["origin"].combine_chunks()
            known = {name: number for number, name in enumerate(self.names)}
            codes = np.array([known.get(name, -1) for name in origin.dictionary.to_pylist()], np.int32)
            some = Positions(codes[np.asarray(origin.indices)], table["hi"].to_numpy(), table["lo"].to_numpy())
            if (
                some.hi[1:] < some.hi[:-1]
            ).any():  # a part is sorted; should one not be, the answer is right all the same
                some = _sorted(some)
            ends = part["first"][0], part["last"][0]
            outside = len(some) and not ends[0] <= some.hi[0] <= some.hi[-1] <= ends[1]
            # Of an origin that no digest knows, and outside its ends, nobody would have looked for a position.
            if outside or (codes.min(initial=0) < 0 and (some.origin < 0).any()):
                raise damaged(path)
            self._kept[path] = some
            if len(self._kept) > _PARTS_KEPT * len(self.parts):
                del self._kept[next(iter(self._kept))]
        return self._kept[path]


def _sorted(some: Positions) -> Positions:
    return some[order_of(some.hi, some.lo)]


def _unlike(logs: Sequence[Positions], reach: Mapping[int, tuple[int, int]]) -> Iterator[Sequence[Positions]]:
    """Stretches of the logs, the same of each, in which one that is asked for lacks something."""
    longest = max(logs, key=len)
    there = [log for log in logs if len(log)]
    first, last = min((log.hi[0] for log in there), default=0), max((log.hi[-1] for log in there), default=-1)
    asked = [log for log, (low, high) in reach.items() if low <= last and first <= high]
    alike = all(_alike(longest, log) for log in there) if asked else True
    if alike and all(len(logs[log]) for log in asked):
        return
    middle = longest.hi[len(longest) // 2]
    if alike or len(longest) <= _LEFT or middle == longest.hi[0]:
        yield logs
        return
    places = [int(np.searchsorted(log.hi, middle)) for log in logs]
    yield from _unlike([log[:at] for log, at in zip(logs, places, strict=True)], reach)
    yield from _unlike([log[at:] for log, at in zip(logs, places, strict=True)], reach)


def _alike(one: Positions, other: Positions) -> bool:
    return one is other or (
        len(one) == len(other)
        and bool((one.hi == other.hi).all() and (one.lo == other.lo).all() and (one.origin == other.origin).all())
    )
