"""One job for every kind of session: what the engine relies on, and where it ran. Its result is plain data."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.functions import arrow_udf, col


def job(spark: Any) -> dict[str, Any]:
    """Parquet there and back, an Arrow UDF, mapInArrow with code of the package, times, missing values."""
    path = tempfile.mkdtemp() + "/table"

    @arrow_udf("long")
    def doubled(number: pa.Array) -> pa.Array:
        import pyarrow.compute as pc

        return pc.multiply(number, 2)

    def ask_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import workbench.model
        from workbench.systems import systems

        systems()  # lists a folder: it has to work inside a zip
        file = workbench.model.__file__
        for batch in batches:
            facts = workbench.model.merge_facts({"seen": number} for number in batch["doubled"].to_pylist())
            row = {"rows": batch.num_rows, "seen": facts.get("seen", 0), "file": file}
            yield pa.RecordBatch.from_pylist([row])

    spark.range(1000, numPartitions=2).withColumn("doubled", doubled(col("id"))).write.parquet(path)
    workers = spark.read.parquet(path).mapInArrow(ask_worker, "rows long, seen long, file string").toPandas()

    facts = spark.sql(
        "SELECT java_method('java.lang.System', 'getProperty', 'java.home') AS java, current_timezone() AS zone, "
        "timestamp'2024-01-01 00:00:00' AS time, unix_seconds(timestamp'2024-01-01 00:00:00') AS seconds"
    ).toPandas()
    names = spark.createDataFrame(pd.DataFrame({"name": ["x", None], "number": [1.0, None]}))
    with warnings.catch_warnings(action="ignore"):
        try:  # Arrow refuses this column; without Arrow it becomes text
            spark.createDataFrame(pd.DataFrame({"mixed": [1, "x"]})).collect()
            fell_back = True
        except (pa.ArrowException, PySparkException):
            fell_back = False
    return {
        "rows": int(workers["rows"].sum()),
        "seen": int(workers["seen"].sum()),
        "package": sorted(set(workers["file"])),
        "java": facts["java"][0],
        "zone": facts["zone"][0],
        "moment": [str(facts["time"][0]), int(facts["seconds"][0])],
        "missing": names.where("name IS NULL AND number IS NULL").count(),
        "fell_back": fell_back,
    }
