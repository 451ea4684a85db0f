"""In which entries do two servers differ? By sums over the values of each entry: nothing is sorted side by side.

Compared is what is there: the present values, a removed secret by the change that made it. Deleted values are kept on one
server longer than on another, and which change made an equal value may be told by one of them only: neither is a difference.

A few hundred thousand values are summed right here; more by Spark, which gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.digests import mix
from workbench.engine.parquet_read import Part, read_part, some_at_once
from workbench.tables import Numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMMED_HERE = 500_000
"""States of both servers together, up to which Spark would take longer to start than this takes."""

COMPARED_HERE = 8_000_000
"""States of all servers together, up to which `unequal` needs no Spark: it holds two numbers for each entry."""

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
    without: Collection[str] = (),
) -> Differing:
    """The entries of which the parts of two servers tell different values; `named` keeps to targets that hold this text.

    `without`: attributes, in small letters, that do not count.

    With Spark it is done in slices of the entries: between them `progress` is told, and may raise to end it.
    """
    here, there = ([part["path"] for part in parts] for parts in (one, other))
    if spark is None:
        return _here(here, there, named, limit, without)
    total = sum(part["rows"] for part in (*one, *other))
    slices = []
    for number in range(_SLICES):
        if progress:
            progress(total * number // _SLICES, total)
        slices.append(_by_spark(spark, here, there, named, limit, number, without))
    rows = sorted((row for some in slices for row in some.first), key=lambda row: (row["target"], row["entry"]))
    total, only_one, only_other = (
        sum(getattr(some, name) for some in slices) for name in ("total", "only_one", "only_other")
    )
    return Differing(total, rows[:limit], only_one, only_other)


def _here(one: Sequence[str], other: Sequence[str], named: str, limit: int, without: Collection[str]) -> Differing:
    sums = pd.merge(
        *(_summed(paths, without) for paths in (one, other)), on="entry", how="outer", suffixes=("_one", "_other")
    )
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


def _summed(paths: Sequence[str], without: Collection[str]) -> pd.DataFrame:
    """Of each entry: the number of its values, and the sum of their hashes, in which their order does not count."""
    tables = [_plain(read_part(path, _READ, pc.field("state") == PRESENT)) for path in paths]
    states = pa.concat_tables(tables).to_pandas() if tables else pd.DataFrame(columns=_READ)
    states = states.assign(value=states["value"].fillna(states["position"]).fillna(""))
    if without:
        names = states["attribute"].fillna("").str.lower().str.partition(";")[0]
        states = states[~names.isin([*without])]
    # A value has a row for each thing that changes did to it.
    states = states.drop_duplicates(["entry", "attribute", "value"])
    hashes = pd.util.hash_pandas_object(states[["attribute", "value"]].astype("object"), index=False)
    states = states.assign(sum=hashes.astype(np.uint64))
    whole = states.groupby("entry", sort=False).agg(target=("target", "max"), count=("sum", "size"), sum=("sum", "sum"))
    return whole.reset_index()


def _plain(table: pa.Table) -> pa.Table:
    return pa.table({name: pc.cast(table[name], pa.string()) for name in table.column_names})


def _by_spark(
    spark: SparkSession,
    one: Sequence[str],
    other: Sequence[str],
    named: str,
    limit: int,
    number: int,
    without: Collection[str],
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
        if without:
            plain = f.substring_index(f.lower(f.coalesce("attribute", f.lit(""))), ";", 1)
            present = present.where(~plain.isin(*without))
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


# --- several servers at once


@dataclass(frozen=True)
class Unequal:
    """The entries in which any of several servers differ: how many, and the ids of the first so many."""

    total: int
    first: list[str]

    @property
    def whole(self) -> bool:
        """True if all of them are named."""
        return self.total == len(self.first)


def unequal(
    servers: Mapping[str, Sequence[Part]],
    without: Collection[str],
    made_by: Collection[str],
    limit: int,
    spark: SparkSession | None = None,
) -> Unequal:
    """The entries that are not the same on all servers, their names included.

    `without`: attributes, in small letters, that do not count. `made_by`: the marks whose position tells one removed secret from
    another.
    """
    paths = {server: [part["path"] for part in parts] for server, parts in servers.items()}
    if spark is not None:
        return _unequal_by_spark(spark, paths, without, made_by, limit)
    ids, keys, sums = [], [], []
    for server in paths:
        # Of one server each entry counts once: also one that a damaged file holds twice.
        entry, key, total = _summed_once(paths[server], without, made_by)
        ids.append(entry)
        keys.append(key)
        sums.append(total)
    names, key, total = pa.chunked_array(ids, pa.string()), np.concatenate(keys), np.concatenate(sums)
    if not len(key):
        return Unequal(0, [])
    order = np.argsort(key, kind="stable")
    key, total = key[order], total[order]
    begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    counts = np.diff(np.append(begins, len(key)))
    same = (counts == len(paths)) & (np.minimum.reduceat(total, begins) == np.maximum.reduceat(total, begins))
    found = names.take(pa.array(order[begins[~same]])).to_pylist()
    return Unequal(len(found), sorted(found)[:limit])


def _summed_once(
    paths: Sequence[str], without: Collection[str], made_by: Collection[str]
) -> tuple[pa.Array, Numbers, Numbers]:
    """Of each entry of one server: its id, the hash of that, and the sum of the hashes of its values."""
    found = [one for one in some_at_once(lambda path: _sums_in(path, without, made_by), paths) if len(one[0])]
    if not found:
        return pa.array([], pa.string()), np.array([], np.uint64), np.array([], np.uint64)
    ids = pa.concat_arrays([one[0] for one in found])
    key, total = np.concatenate([one[1] for one in found]), np.concatenate([one[2] for one in found])
    order = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.concatenate([[True], key[order][1:] != key[order][:-1]]))
    return ids.take(pa.array(order[begins])), key[order][begins], np.add.reduceat(total[order], begins)


_COMPARED = ["entry", "target", "attribute", "value", "mark", "position"]


def _sums_in(path: str, without: Collection[str], made_by: Collection[str]) -> tuple[pa.Array, Numbers, Numbers]:
    """The same of the entries of one part, in the order of the part."""
    rows = _plain(read_part(path, _COMPARED, (pc.field("state") == PRESENT) & pc.field("entry").is_valid()))
    names = rows["attribute"].combine_chunks().dictionary_encode()
    words = [(name or "").lower() for name in names.dictionary.to_pylist()]
    counts = np.array([word.partition(";")[0] not in without for word in words], bool)[np.asarray(names.indices)]
    # Of a secret only the change that made it is known.
    secret = np.asarray(pc.is_null(rows["value"]))
    counts &= ~secret | np.asarray(pc.fill_null(pc.is_in(rows["mark"], pa.array([*made_by], pa.string())), True))
    keep = np.flatnonzero(counts)
    if not len(keep):
        return pa.array([], pa.string()), np.array([], np.uint64), np.array([], np.uint64)
    rows, at = rows.take(pa.array(keep)), np.asarray(names.indices)[keep]
    value = pc.coalesce(rows["value"], rows["position"], pa.scalar("")).combine_chunks()
    entries = rows["entry"].combine_chunks().dictionary_encode()
    code = np.asarray(entries.indices)
    hashed = mix(_hashes(value), _hashes(pa.array(words, pa.string()))[at])
    # A value has a row for each thing that changes did to it, one behind the other.
    again = np.zeros(len(code), bool)
    again[1:] = (code[1:] == code[:-1]) & (hashed[1:] == hashed[:-1])
    code, hashed = code[~again], hashed[~again]
    begins = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))
    total = np.add.reduceat(hashed, begins)
    first = np.flatnonzero(~again)[begins]
    target = pc.replace_substring_regex(pc.utf8_lower(rows["target"].take(pa.array(first))), r",\s+", ",")
    total = mix(total, _hashes(pc.fill_null(target, "").combine_chunks()))
    ids = entries.dictionary.take(pa.array(code[begins]))
    return ids, _hashes(ids), total


def _hashes(texts: pa.Array) -> Numbers:
    found: Numbers = pd.util.hash_array(texts.to_numpy(zero_copy_only=False), categorize=False)
    return found


def _unequal_by_spark(
    spark: SparkSession,
    paths: Mapping[str, Sequence[str]],
    without: Collection[str],
    made_by: Collection[str],
    limit: int,
) -> Unequal:
    from pyspark.sql import functions as f

    from workbench.engine.evidence import read_table

    name = f.lower("attribute")
    of_secrets = f.col("value").isNotNull() | f.col("mark").isNull() | f.col("mark").isin(*made_by)
    counts = (f.col("state") == PRESENT) & f.col("entry").isNotNull() & of_secrets
    counts &= ~f.substring_index(name, ";", 1).isin(*without)
    sums = None
    for server, its in paths.items():
        value = f.coalesce("value", "position", f.lit("")).alias("value")
        target = f.regexp_replace(f.lower("target"), r",\s+", ",").alias("target")
        rows = read_table(spark, "entry_states", list(its)).where(counts)
        rows = rows.select("entry", target, name.alias("attribute"), value).dropDuplicates(
            ["entry", "attribute", "value"]
        )
        # Half of each hash: their sum stays a number however many states an entry has.
        half = f.shiftrightunsigned(f.xxhash64("attribute", "value"), 32)
        mine = rows.groupBy("entry").agg(f.max("target").alias("target"), f.sum(half).alias("sum"))
        mine = mine.select("entry", f.xxhash64("target", "sum").alias("sum"), f.lit(server).alias("server"))
        sums = mine if sums is None else sums.unionByName(mine)
    assert sums is not None
    whole = sums.groupBy("entry").agg(f.count("*").alias("n"), f.min("sum").alias("low"), f.max("sum").alias("high"))
    found = whole.where((f.col("n") != len(paths)) | (f.col("low") != f.col("high"))).select("entry").cache()
    try:
        first = [row["entry"] for row in found.orderBy("entry").limit(limit).collect()]
        return Unequal(found.count(), first)
    finally:
        found.unpersist()
