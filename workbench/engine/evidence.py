"""Files to evidence tables, by Spark: hand shares of the files to the workers, collect the names of the parts they wrote."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from workbench.engine.partition_writer import Share, read_shares, streams
from workbench.engine.session import tagging
from workbench.model import Problem
from workbench.safety import printable
from workbench.tables import SCHEMAS

TASK = 128 << 20
"""What one task reads, of several shares: a Spark task with Python in it costs a tenth of a second before it reads a byte."""

_FEWEST_TASKS = 4
_ERROR = re.compile(r"workbench\.model\.Problem: (?P<told>.*)|[A-Za-z.]*(?:Error|Exception): ")


def _tasks(shares: Iterable[Share]) -> list[list[Share]]:
    """Shares spread over tasks of like size; no stream is divided."""
    weighed = sorted(streams(shares), key=lambda stream: -sum(share.size for share in stream))
    total = sum(share.size for stream in weighed for share in stream)
    # Of tasks of like size that do not come out even, the last would keep one worker busy and the others waiting.
    count = -(-max(total, 1) // (_FEWEST_TASKS * TASK)) * _FEWEST_TASKS
    tasks: list[list[Share]] = [[] for _ in range(min(len(weighed), count))]
    weights = [0] * len(tasks)
    for stream in weighed:
        lightest = weights.index(min(weights))
        tasks[lightest] += stream
        weights[lightest] += sum(share.size for share in stream) + 4096
    return tasks


def read_files(
    spark: SparkSession, shares: list[Share], staging: Path, watch: Callable[[int, int], None] | None = None
) -> list[dict[str, Any]]:
    """Read the shares on the workers; each answers with counts, facts and the parts it wrote under `staging`.

    `watch` is told now and then how many bytes are read and how many rows they held.
    """
    tasks = _tasks(shares)
    progress = staging / ".progress"
    progress.mkdir(exist_ok=True)

    def read(task: int) -> Iterator[dict[str, Any]]:
        for share, result in zip(tasks[task], read_shares(tasks[task], staging), strict=True):
            with suppress(OSError):  # only a progress bar hangs on it
                (progress / f"{share.number}-{share.start}-{share.size}-{result['rows']}").touch()
            yield result

    def look() -> None:
        if watch:
            done = [mark.name.split("-") for mark in progress.iterdir()]
            watch(sum(int(size) for *_, size, _ in done), sum(int(rows) for *_, rows in done))

    return on_workers(spark, len(tasks), read, staging, look)


def on_workers(
    spark: SparkSession,
    tasks: int,
    work: Callable[[int], Iterator[dict[str, Any]]],
    staging: Path,
    look: Callable[[], None] = lambda: None,
    doing: str = "write the evidence",
) -> list[dict[str, Any]]:
    """What `work` answers for each number below `tasks`, on the workers: little, for it is
    collected. It writes under `staging`.

    `look` is called now and then. If this raises, tasks may live on for some seconds: Spark tells them to end and does not
    wait. Take `staging` away then, and they can write nothing more.
    """
    tag = f"load-{uuid.uuid4().hex}"

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for result in work(task):
                    yield pa.RecordBatch.from_pydict({"result": [json.dumps(result)]})

    add, remove, interrupt = tagging(spark)

    def collect() -> list[Any]:
        add(tag)
        try:
            return job.collect()
        finally:
            remove(tag)

    if not tasks:
        return []
    job = spark.range(0, tasks, 1, tasks).mapInArrow(each, "result string")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(collect)
        try:
            while not running.done():
                wait_for([running], timeout=0.3)
                look()
        except BaseException:  # Ctrl-C: without this the pool would wait for the whole job
            # Again and again, because Spark may not have begun yet and then there is nothing to interrupt; by its tag,
            # because other jobs of a notebook's session are none of our business.
            while not running.done():
                interrupt(tag)
                wait_for([running], timeout=0.3)
            raise
    try:
        return [json.loads(row.result) for row in running.result()]
    except PySparkException as error:
        raise Problem(
            f"a worker could not {doing}: {cause_of(error)}", str(staging.parent), "mend that and load again"
        ) from None


def cause_of(error: PySparkException) -> str:
    """The last line of the worker's own error: what Spark wraps around it is a page of its own calls."""
    found = [match for line in str(error).splitlines() if (match := _ERROR.match(line.strip()))]
    told = found[-1]["told"] or found[-1].string if found else type(error).__name__
    return printable(told)[:200]


def read_table(spark: SparkSession, name: str, parts: list[str]) -> DataFrame:
    """An evidence table out of its parts; an empty one with the right columns if there are none."""
    columns = ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in SCHEMAS[name])
    return spark.read.schema(columns).parquet(*parts) if parts else spark.createDataFrame([], columns)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{_spark_type(kind.key_type)},{_spark_type(kind.item_type)}>"
    return (
        "timestamp" if pa.types.is_timestamp(kind) else {"bool": "boolean", "int64": "bigint"}.get(str(kind), str(kind))
    )
