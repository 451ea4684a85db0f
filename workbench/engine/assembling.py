"""The transactions of a loaded stream, as parts of the table `transactions`: in this process, or by Spark.

Spark brings the segments of one server and number together, sorted, and a worker goes through them as they come: of a
transaction of any size it holds the rows of `segments`, one for each piece of a statement, and never a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.engine.assembly import READ, STARTUP, UNKNOWN_KIND, assembled, starts_of
from workbench.engine.parts import ROWS_PER_PART, write_part
from workbench.model import Problem, Source, merge_facts
from workbench.rules.segments import COMMITTED, ROLLBACK, ROLLBACK_STATEMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = 1_000_000
"""Rows of segments that are put together in this process: seconds, and some hundred megabytes."""

_AT_ONCE = 200_000
_FEWEST_TASKS = 4
_TASK_ROWS = 2_000_000


def assemble(
    parts: Sequence[Mapping[str, Any]], staging: Path, source: Source, lost: bool, spark: SparkSession | None = None
) -> list[dict[str, Any]]:
    """Write the transactions of one stream; `parts` are those of its segments under `staging`.

    `lost` says that something of the stream could not be read. With a session given, and many rows, Spark does it. A part holds
    whole records: a reader gives those of a piece of the file at once.
    """
    paths = [str(staging / "segments" / part["name"]) for part in parts]
    if spark is not None and sum(part["rows"] for part in parts) > HERE:
        return _by_spark(spark, paths, sum(part["rows"] for part in parts), staging, source, lost)
    tables = [pq.ParquetFile(path).read(READ) for path in paths]
    return list(_written(assembled(pa.concat_tables(tables), lost), staging, source)) if tables else []


def _written(transactions: pa.Table, staging: Path, source: Source) -> Iterator[dict[str, Any]]:
    for at in range(0, len(transactions), ROWS_PER_PART):
        yield write_part(staging, "transactions", transactions.slice(at, ROWS_PER_PART), source)


_ODD = (
    "event is not null or sound = false or operation is null or operation in ('{rollback}', '{rollback_statement}') "
    "or startswith(operation, '{unknown}') or not (coalesce(segment = 1 and ended, false) "
    "or (segment is null and ended is null and not {lost})) "
    "or not (piece is null or coalesce(piece = 1 and piece_ended, false))"
)
"""Rows of transactions that are no plain commit in one message, as `workbench.engine.assembly` tells these."""


def _by_spark(
    spark: SparkSession, paths: list[str], rows: int, staging: Path, source: Source, lost: bool
) -> list[dict[str, Any]]:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from workbench.engine.evidence import cause_of

    segments = spark.read.parquet(*paths).select(*READ).where("origin is not null")
    segments = segments.withColumn("key", F.xxhash64("origin", "position"))
    (staging / "transactions").mkdir(exist_ok=True)
    try:
        # A handful, however long the log is: a server starts now and then.
        told = (
            segments.where(F.col("event") == STARTUP).select("event", "origin", "offset", "sound").distinct().toArrow()
        )
        starts = starts_of(told)
        lost = lost or not segments.where("not sound").isEmpty()

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for group in _whole_keys(batches):
                for part in _written(assembled(group, lost, starts), staging, source):
                    yield pa.RecordBatch.from_pydict({"part": [json.dumps(part)]})

        tasks = max(_FEWEST_TASKS, -(-rows // _TASK_ROWS))
        names = {"rollback": ROLLBACK, "rollback_statement": ROLLBACK_STATEMENT, "unknown": UNKNOWN_KIND}
        odd_row = F.expr(_ODD.format(**names, lost=str(lost).lower()))
        by_key = segments.groupBy("key").agg(
            (F.min("offset") != F.max("offset")).alias("several"), F.bool_or(odd_row).alias("odd")
        )
        odd = by_key.where("several or odd").select("key")
        # Most stand in one record, and are put together where they were read; only the others have to be brought together.
        alone = segments.join(odd, "key", "left_anti")
        keyed = segments.join(odd, "key", "left_semi").repartition(tasks, "origin", "position")
        ordered = keyed.sortWithinPartitions("origin", "position", "offset", "number")
        found = [one.drop("key").mapInArrow(work, "part string").collect() for one in (alone, ordered)]
        return [json.loads(row.part) for rows_of in found for row in rows_of]
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


def committed_in(paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Origin -> how many of its transactions were committed, the lowest of them and the highest."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        rows = pq.ParquetFile(path).read(["origin", "position", "outcome"])
        rows = rows.filter(pc.equal(rows["outcome"], COMMITTED))
        of = rows.group_by("origin").aggregate([("position", "count"), ("position", "min"), ("position", "max")])
        for row in of.to_pylist():
            ends = {"count": row["position_count"], "min": row["position_min"], "max": row["position_max"]}
            found[row["origin"]] = merge_facts([found.get(row["origin"], {}), ends])
    return found
