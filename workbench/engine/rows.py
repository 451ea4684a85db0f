"""Few rows out of large tables: only the parts, the row groups and the columns that can hold them are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.engine.logs import place, read_part
from workbench.engine.positions import Positions, of_arrow
from workbench.model import Problem

Part = Mapping[str, Any]


def rows_where(parts: Iterable[Part], columns: Sequence[str], where: pc.Expression) -> pa.Table:
    """The rows of a table that fit; its column statistics pass over what cannot."""
    found = [read_part(part["path"], list(columns), where) for part in parts]
    plain = [pa.table({name: _plain(table[name]) for name in columns}) for table in found if len(table)]
    return pa.concat_tables(plain) if plain else pa.table({name: pa.array([], pa.string()) for name in columns})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def rows_at(
    parts: Iterable[Part], wanted: Positions, numbers: Mapping[str, int], columns: Sequence[str]
) -> Iterator[tuple[Positions, pa.Table]]:
    """The rows of `changes` at sorted positions: some of these at a time, with one row for each."""
    for part in parts:
        if "first" not in part:
            continue
        begin = place(wanted.hi, wanted.lo, tuple(part["first"]))
        end = place(wanted.hi, wanted.lo, tuple(part["last"]), "right")
        if begin >= end:
            continue
        some = wanted[begin:end]
        try:
            file = pq.ParquetFile(part["path"], page_checksum_verification=True)
            groups = _groups(file, some)
            if not groups:
                continue
            table = file.read_row_groups(groups, columns=["kind", "origin", "hi", "lo", *columns], use_threads=False)
        except (OSError, pa.ArrowException):
            raise Problem(
                "a part of the evidence is damaged or gone", part["path"], "load the inputs into a new case"
            ) from None
        table = table.filter(pc.equal(table["kind"], "change"))
        table = table.sort_by([("hi", "ascending"), ("lo", "ascending")])
        origin = table["origin"].combine_chunks().cast(pa.string()).dictionary_encode()
        codes = np.array([numbers[name] for name in origin.dictionary.to_pylist()], np.int32)
        there = Positions(codes[np.asarray(origin.indices)], table["hi"].to_numpy(), table["lo"].to_numpy())
        which = np.flatnonzero(there.within(some))
        if len(which):
            yield there[which], table.take(pa.array(which)).select(list(columns))


def _groups(file: pq.ParquetFile, wanted: Positions) -> list[int]:
    """The row groups that can hold one of the positions."""
    at = file.schema_arrow.get_field_index("hi")
    found = []
    for number in range(file.num_row_groups):
        ends = file.metadata.row_group(number).column(at).statistics
        if (
            ends is None
            or not ends.has_min_max
            or np.searchsorted(wanted.hi, ends.min, "left") < np.searchsorted(wanted.hi, ends.max, "right")
        ):
            found.append(number)
    return found


def named_in(parts: Iterable[Part], numbers: Mapping[str, int]) -> Iterator[Positions]:
    """The positions of the parts of the table `named`, part by part."""
    for part in parts:
        table = read_part(part["path"], ["origin", "hi", "lo"])
        yield of_arrow(table["origin"].combine_chunks(), table["hi"].to_numpy(), table["lo"].to_numpy(), numbers)
