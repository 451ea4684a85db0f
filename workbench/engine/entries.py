"""In which entries do two servers differ? By sums over the values of each entry: nothing is sorted side by side.

Compared is what is there: the present values, a removed secret by the change that made it. Deleted values are kept on one
server longer than on another, and which change made an equal value may be told by one of them only: neither is a difference.

A few hundred thousand values are summed right here; more by Spark, which gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.reading import Part, read_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMMED_HERE = 500_000
"""States of both servers together, up to which Spark would take longer to start than this takes."""

PRESENT = "present"

_SLICES = 4
"""More of them tell more often how far it is, and read the files once more each."""

_READ = ["entry", "target", "attribute", "value", "position"]


@dataclass(frozen=True)
class Differing:
    """The entries in which two servers differ.

    total       how many
    first       the first of them by name: entry, target, one and other (values on each of the two servers; 0: it is not there)
    only_one    how many only the first server has
    only_other  how many only the second one has
    """

    total: int
    first: list[dict[str, Any]]
    only_one: int = 0
    only_other: int = 0

    @property
    def unlike(self) -> int:
        """How many both have, with other values."""
        return self.total - self.only_one - self.only_other


Progress = Callable[[int, int], None]
"""Told how many values of how many are compared."""


def differing(
    one: Sequence[Part],
    other: Sequence[Part],
    named: str = "",
    limit: int = 200,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> Differing:
    """The entries of which the parts of two servers tell different values; `named` keeps to targets that hold this text.

    With Spark it is done in slices of the entries: between them `progress` is told, and may raise to end it.
    """
    here, there = ([part["path"] for part in parts] for parts in (one, other))
    if spark is None:
        return _here(here, there, named, limit)
    total = sum(part["rows"] for part in (*one, *other))
    slices = []
    for number in range(_SLICES):
        if progress:
            progress(total * number // _SLICES, total)
        slices.append(_by_spark(spark, here, there, named, limit, number))
    rows = sorted((row for some in slices for row in some.first), key=lambda row: (row["target"], row["entry"]))
    total, only_one, only_other = (
        sum(getattr(some, name) for some in slices) for name in ("total", "only_one", "only_other")
    )
    return Differing(total, rows[:limit], only_one, only_other)


def _here(one: Sequence[str], other: Sequence[str], named: str, limit: int) -> Differing:
    sums = pd.merge(*(_summed(paths) for paths in (one, other)), on="entry", how="outer", suffixes=("_one", "_other"))
    for end in ("one", "other"):
        sums[end] = sums[f"count_{end}"].fillna(0).astype("int64")
    same = (sums["sum_one"] == sums["sum_other"]) & (sums["one"] == sums["other"])
    found = sums[~same]
    found = found.assign(target=found["target_one"].fillna(found["target_other"]).fillna(""))
    if named:
        found = found[found["target"].str.lower().str.contains(named.lower(), regex=False)]
    only_one, only_other = (int((found[name] == 0).sum()) for name in ("other", "one"))
    return Differing(len(found), _rows(found.sort_values(["target", "entry"]).head(limit)), only_one, only_other)


def _rows(found: pd.DataFrame) -> list[dict[str, Any]]:
    columns = (found[name].tolist() for name in ("entry", "target", "one", "other"))
    return [
        {"entry": entry, "target": target, "one": int(here), "other": int(there)}
        for entry, target, here, there in zip(*columns, strict=True)
    ]


def _summed(paths: Sequence[str]) -> pd.DataFrame:
    """Of each entry: the number of its values, and the sum of their hashes, in which their order does not count."""
    tables = [_plain(read_part(path, _READ, pc.field("state") == PRESENT)) for path in paths]
    states = pa.concat_tables(tables).to_pandas() if tables else pd.DataFrame(columns=_READ)
    states = states.assign(value=states["value"].fillna(states["position"]).fillna(""))
    # A value has a row for each thing that changes did to it.
    states = states.drop_duplicates(["entry", "attribute", "value"])
    hashes = pd.util.hash_pandas_object(states[["attribute", "value"]].astype("object"), index=False)
    states = states.assign(sum=hashes.astype(np.uint64))
    whole = states.groupby("entry", sort=False).agg(target=("target", "max"), count=("sum", "size"), sum=("sum", "sum"))
    return whole.reset_index()


def _plain(table: pa.Table) -> pa.Table:
    return pa.table({name: pc.cast(table[name], pa.string()) for name in table.column_names})


def _by_spark(
    spark: SparkSession, one: Sequence[str], other: Sequence[str], named: str, limit: int, number: int
) -> Differing:
    from pyspark.sql import functions as f

    from workbench.engine.evidence import read_table

    def summed(paths: Sequence[str], end: str) -> Any:
        value = f.coalesce("value", "position", f.lit("")).alias("value")
        hashed = f.xxhash64("attribute", "value")
        # Half of each hash: their sum stays a number however many states an entry has.
        half = f.shiftrightunsigned(hashed, 32)
        mine = f.pmod(f.xxhash64("entry"), f.lit(_SLICES)) == number
        present = read_table(spark, "entry_states", list(paths)).where((f.col("state") == PRESENT) & mine)
        values = present.select("entry", "target", "attribute", value).dropDuplicates(["entry", "attribute", "value"])
        states = values.select("entry", "target", half.alias("half"))
        return states.groupBy("entry").agg(
            f.max("target").alias(f"target_{end}"),
            f.count("*").alias(f"count_{end}"),
            f.sum("half").alias(f"sum_{end}"),
        )

    both = summed(one, "one").join(summed(other, "other"), "entry", "full_outer")
    same = f.col("sum_one").eqNullSafe(f.col("sum_other")) & f.col("count_one").eqNullSafe(f.col("count_other"))
    target = f.coalesce("target_one", "target_other", f.lit("")).alias("target")
    counts = (f.coalesce(f"count_{end}", f.lit(0)).alias(end) for end in ("one", "other"))
    found = both.where(~same).select("entry", target, *counts)
    if named:
        found = found.where(f.contains(f.lower("target"), f.lit(named.lower())))
    found = found.cache()
    try:
        first = found.orderBy("target", "entry").limit(limit).toPandas()
        only_one, only_other = f.count_if(f.col("other") == 0), f.count_if(f.col("one") == 0)
        (counts_,) = found.agg(f.count("*"), only_one, only_other).collect()
        return Differing(counts_[0], _rows(first), counts_[1], counts_[2])
    finally:
        found.unpersist()
