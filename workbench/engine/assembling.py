"""The transactions of a loaded stream, as parts of the table `transactions`: in this process, or on the workers of Spark.

A part of the table `segments` holds whole records, and most transactions stand in one record, or in several near each other. So
each worker puts together what stands in its part alone; only the rows of transactions that stand in several parts have to be
brought together. Which ones these are is told by hashes of their numbers. Of a transaction of any size a worker holds the rows
of `segments`, one for each piece of a statement, and never a value.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.engine.assembly import READ, Starts, assembled, damaged, starts_of
from workbench.engine.partition_writer import ROWS_PER_PART, write_part
from workbench.model import Problem, Source, merge_facts
from workbench.replication.stream.rules.segments import COMMITTED
from workbench.tables import Numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = 1_000_000
"""Rows of segments that are put together in this process: seconds, and some hundred megabytes."""

_AT_ONCE = 200_000
_FEWEST_TASKS = 4
_TASK_ROWS = 2_000_000
_HASHES = 16_000_000
"""Hashes that are sorted at once: 128 MB."""


def assemble(
    parts: Sequence[Mapping[str, Any]], staging: Path, source: Source, lost: bool, spark: SparkSession | None = None
) -> dict[str, Any]:
    """Write the transactions of one stream; `parts` are those of its segments under `staging`.

    Returns the `parts` of transactions, and `by_origin` how many of them were committed, the lowest and the highest. `lost`
    says that something of the stream could not be read. With a session given, and many rows, Spark does it.
    """
    paths = [staging / "segments" / part["name"] for part in parts]
    if spark is not None and sum(part["rows"] for part in parts) > HERE:
        return _by_spark(spark, paths, staging, source, lost)
    return _written(assembled(_read(paths), lost), staging, source) if paths else {"parts": [], "by_origin": {}}


def _read(paths: Sequence[Path]) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(path).read(READ) for path in paths])


def _written(transactions: pa.Table, staging: Path, source: Source) -> dict[str, Any]:
    slices = [transactions.slice(at, ROWS_PER_PART) for at in range(0, len(transactions), ROWS_PER_PART)]
    parts = [write_part(staging, "transactions", one, source) for one in slices]
    which = pc.equal(transactions["outcome"], COMMITTED)
    committed = transactions.select(["origin", "position"]).filter(which)
    of = committed.group_by("origin").aggregate([("position", "count"), ("position", "min"), ("position", "max")])
    each = zip(
        *(of[name].to_pylist() for name in ("origin", "position_count", "position_min", "position_max")), strict=True
    )
    return {
        "parts": parts,
        "by_origin": {origin: {"count": count, "min": low, "max": high} for origin, count, low, high in each},
    }


def _by_spark(spark: SparkSession, paths: Sequence[Path], staging: Path, source: Source, lost: bool) -> dict[str, Any]:
    aside = staging / ".assembling"
    aside.mkdir()
    try:
        return merge_facts(_put_together(spark, paths, aside, staging, source, lost))
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put_together(
    spark: SparkSession, paths: Sequence[Path], aside: Path, staging: Path, source: Source, lost: bool
) -> list[dict[str, Any]]:
    """What `_written` tells of all transactions; `aside` is a folder for what lies between."""
    from workbench.engine.evidence import on_workers

    count = max(_FEWEST_TASKS, len(paths) // 16)
    tasks = [range(task, len(paths), count) for task in range(min(count, len(paths)))]

    def tell(task: int) -> Iterator[dict[str, Any]]:
        for number in tasks[task]:
            segments = pq.ParquetFile(paths[number]).read(["origin", "position", "offset", "event", "sound"])
            segments = segments.filter(segments["origin"].is_valid())  # what is lost has none
            np.save(aside / f"{number}.npy", np.unique(_hashes(segments)))
            starts = {origin: places.tolist() for origin, places in starts_of(segments).items()}
            yield {"starts": starts, "damaged": damaged(segments)}

    told = on_workers(spark, len(tasks), tell, staging)
    lost = lost or any(one["damaged"] for one in told)
    found: dict[str, list[int]] = {}
    for one in told:
        for origin, places in one["starts"].items():
            found.setdefault(origin, []).extend(places)
    starts = {origin: np.unique(np.array(places, np.int64)) for origin, places in found.items()}
    spread = aside / "in-several.npy"
    np.save(spread, _in_several([aside / f"{number}.npy" for number in range(len(paths))]))

    def put_together(task: int) -> Iterator[dict[str, Any]]:
        others = np.load(spread, mmap_mode="r")
        for number in tasks[task]:
            segments = _read([paths[number]])
            waits = _within(_hashes(segments), others)
            if waits.any():
                pq.write_table(segments.filter(pa.array(waits)), aside / f"{number}.parquet")
                segments = segments.filter(pa.array(~waits))
            yield _written(assembled(segments, lost, starts), staging, source) | {"wait": int(waits.sum())}

    made = on_workers(spark, len(tasks), put_together, staging)
    wait, waiting = sum(one.pop("wait") for one in made), sorted(aside.glob("*.parquet"))
    if wait > HERE:
        made += _brought_together(spark, waiting, wait, staging, source, lost, starts)
    elif waiting:
        made.append(_written(assembled(_read(waiting), lost, starts), staging, source))
    return made


def _hashes(segments: pa.Table) -> Numbers:
    """Of each row a hash of its server and the number of its transaction. Two of one hash are taken for spread, and no more."""
    return _mixed(_text_hashes(segments["origin"]), _text_hashes(segments["position"]))


def _text_hashes(texts: pa.ChunkedArray) -> Numbers:
    """Hashes of texts, eight bytes at each step."""
    whole = pa.array(texts.cast(pa.large_string()).combine_chunks())
    ends, data = np.frombuffer(whole.buffers()[1], np.int64), bytes(whole.buffers()[2] or b"")
    ends = ends[whole.offset : whole.offset + len(whole) + 1]
    words: Numbers = np.ndarray(len(data) + 1, "<u8", data + bytes(8), strides=(1,))
    place, left = ends[:-1].copy(), np.diff(ends)
    found = left.astype(np.uint64)
    longer = np.flatnonzero(left > 0)
    while len(longer):
        beyond = np.maximum(8 - left[longer], 0).astype(np.uint64) * np.uint64(8)
        found[longer] = _mixed(found[longer], words[place[longer]] << beyond)
        place[longer] += 8
        left[longer] -= 8
        longer = longer[left[longer] > 0]
    return found


def _mixed(hashes: Numbers, others: Numbers) -> Numbers:
    mixed = (hashes ^ others) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


def _in_several(files: Sequence[Path]) -> Numbers:
    """The hashes that stand in several of these files, ascending; each file holds its own once, ascending."""
    # Each file is opened when it is asked: of a large log there are more than a process may hold open.
    count = sum(len(np.load(file, mmap_mode="r")) for file in files)
    shares = -(-count // _HASHES)
    borders = [(1 << 64) * share // shares for share in range(shares + 1)] if shares else []
    found = [np.zeros(0, np.uint64)]
    for low, high in pairwise(borders):
        here = np.concatenate([_between(np.load(file, mmap_mode="r"), low, high) for file in files])
        here.sort()
        found.append(np.unique(here[1:][here[1:] == here[:-1]]))
    return np.concatenate(found)


def _between(hashes: Numbers, low: int, high: int) -> Numbers:
    ends = [np.searchsorted(hashes, np.uint64(low)), np.searchsorted(hashes, np.uint64(high - 1), "right")]
    return np.array(hashes[ends[0] : ends[1]])


def _within(hashes: Numbers, others: Numbers) -> np.ndarray[Any, Any]:
    """Which hashes are among the others, which ascend."""
    if not len(others):
        return np.zeros(len(hashes), bool)
    return np.asarray(others[np.minimum(np.searchsorted(others, hashes), len(others) - 1)] == hashes)


def _brought_together(
    spark: SparkSession, paths: Sequence[Path], rows: int, staging: Path, source: Source, lost: bool, starts: Starts
) -> list[dict[str, Any]]:
    """The same of rows that stand apart. Spark sorts them, and a worker goes through them as they come."""
    from pyspark.errors import PySparkException

    from workbench.engine.evidence import cause_of

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for group in _whole_keys(batches):
            made = _written(assembled(group, lost, starts), staging, source)
            yield pa.RecordBatch.from_pydict({"made": [json.dumps(made)]})

    try:
        segments = spark.read.parquet(*map(str, paths)).select(*READ)
        keyed = segments.repartition(max(_FEWEST_TASKS, -(-rows // _TASK_ROWS)), "origin", "position")
        ordered = keyed.sortWithinPartitions("origin", "position", "offset", "number")
        return [json.loads(row.made) for row in ordered.mapInArrow(work, "made string").collect()]
    except PySparkException as error:
        raise Problem(f"the transactions could not be put together: {cause_of(error)}", str(staging.parent)) from None


def _whole_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Rows of which those of one key stand together, as tables of whole keys, some hundred thousand rows at a time."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= _AT_ONCE:
            table = pa.Table.from_batches(waiting).combine_chunks()
            border = _last_border(table)
            if border:
                yield table.slice(0, border)
            rest = table.slice(border)
            waiting, count = rest.to_batches(), len(rest) if border else 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _last_border(table: pa.Table) -> int:
    """Where the last key begins; 0 if all rows are of one."""
    last = table.slice(len(table) - 1)
    same = pc.and_(
        pc.equal(table["position"], last["position"][0]),
        pc.equal(table["origin"], last["origin"][0]),
    )
    others = np.flatnonzero(~np.asarray(same.combine_chunks().to_numpy(zero_copy_only=False), dtype=bool))
    return int(others[-1]) + 1 if len(others) else 0
