"""Digests of positions: per file, origin and bucket of time, so that two servers are compared without reading changes.

A digest is a count, the exclusive or of the positions and the sum of a 64-bit mix of each. Equal digests mean equal
positions (as sure as a 64-bit hash); of two digests that differ by one position, the exclusive or *is* that position.
None of the three depends on order, so digests of parts fold into those of the file.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def mix(hi: np.ndarray, lo: np.ndarray) -> np.ndarray:
    """A 64-bit mix of each position (the finaliser of splitmix64 over both halves), as unsigned integers."""
    z = hi.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + lo.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _folded(origin: np.ndarray, bucket: np.ndarray, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One row per (origin, bucket): sums of `count` and `mix`, exclusive ors of the others."""
    order = np.lexsort((bucket, origin))
    origin, bucket = origin[order], bucket[order]
    new = np.ones(len(order), bool)
    new[1:] = (origin[1:] != origin[:-1]) | (bucket[1:] != bucket[:-1])
    first = np.flatnonzero(new)
    result = {"origin": origin[first], "bucket": bucket[first]}
    for name, column in values.items():
        how = np.bitwise_xor if name.startswith("xor") else np.add
        result[name] = how.reduceat(column[order], first) if len(first) else column[:0]
    return result


def _table(origins: list[str], folded: dict[str, np.ndarray]) -> pa.Table:
    names = pa.DictionaryArray.from_arrays(pa.array(folded["origin"], pa.int32()), pa.array(origins, pa.string()))
    columns = {name: folded[name].view(np.int64) for name in ("bucket", "count", "xor_hi", "xor_lo", "mix")}
    return pa.table({"origin": names.cast(pa.string()), **columns})


def digest(origin: pa.DictionaryArray, hi: np.ndarray, lo: np.ndarray, bucket_shift: int) -> pa.Table:
    """The digests of positions; `hi >> bucket_shift` is the bucket."""
    ones = np.ones(len(hi), np.int64)
    values = {"count": ones, "xor_hi": hi, "xor_lo": lo, "mix": mix(hi, lo)}
    return _table(origin.dictionary.to_pylist(), _folded(np.asarray(origin.indices), hi >> bucket_shift, values))


def fold(digests: pa.Table) -> pa.Table:
    """Digests of parts of one file as those of the file."""
    origin = digests["origin"].combine_chunks().dictionary_encode()
    names = ("count", "xor_hi", "xor_lo", "mix")
    values = {name: digests[name].to_numpy() for name in names}
    values["mix"] = values["mix"].view(np.uint64)
    return _table(
        origin.dictionary.to_pylist(), _folded(np.asarray(origin.indices), digests["bucket"].to_numpy(), values)
    )
