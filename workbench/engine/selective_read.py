"""Few rows out of large tables: only the parts, the row groups and the columns that can hold them are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.engine.parquet_read import Part, groups_near, opened, parts_near, read_part, some_at_once
from workbench.engine.positions import Positions, of_arrow
from workbench.model import System


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
    ordered = ["kind", "origin", "hi", "lo", *columns]

    def read(one: tuple[Part, slice]) -> pa.Table:
        part, which = one
        with opened(part) as file:
            return _rows_at(file, wanted[which], ordered)

    for table in some_at_once(read, parts_near(parts, wanted.hi)):
        table = table.filter(pc.equal(table["kind"], "change"))
        table = table.sort_by([("hi", "ascending"), ("lo", "ascending")])
        origin = table["origin"].combine_chunks().cast(pa.string()).dictionary_encode()
        codes = np.array([numbers[name] for name in origin.dictionary.to_pylist()], np.int32)
        there = Positions(codes[np.asarray(origin.indices)], table["hi"].to_numpy(), table["lo"].to_numpy())
        which = np.flatnonzero(there.within(wanted))
        if len(which):
            yield there[which], table.take(pa.array(which)).select(list(columns))


def _rows_at(file: pq.ParquetFile, wanted: Positions, columns: Sequence[str]) -> pa.Table:
    """The rows whose hi is one of the wanted ones; of a row group without any nothing but hi is read."""
    found = []
    for group in groups_near(file, wanted.hi):
        hi = file.read_row_group(group, ["hi"], use_threads=False)["hi"].to_numpy()
        at = np.flatnonzero(np.isin(hi, wanted.hi))
        if len(at):
            found.append(file.read_row_group(group, columns, use_threads=False).take(pa.array(at)))
    return pa.concat_tables(found) if found else file.schema_arrow.empty_table().select(columns)


def rows_of(wanted: Iterable[tuple[Part, pa.Array]], key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The rows in which the column `key` has one of the values wanted of that part: the key and the columns, part by part.

    A column that is no order of time has no statistics that help: it is read whole, the others only where it has one.
    """

    def rows(one: tuple[Part, pa.Array]) -> pa.Table:
        part, values = one
        with opened(part) as file:
            found = []
            for group in range(file.num_row_groups):
                keys = file.read_row_group(group, [key], use_threads=False)
                at = pc.indices_nonzero(pc.is_in(keys[key], values))
                if len(at):
                    found.append(file.read_row_group(group, [key, *columns], use_threads=False).take(at))
            return pa.concat_tables(found) if found else pa.table({})

    yield from filter(len, some_at_once(rows, wanted))


def groups_that(
    part: Part, column: str, may_hold: Callable[[Any, Any], bool], columns: Sequence[str]
) -> Iterator[pa.Table]:
    """The groups of rows of which `may_hold` says so, by the lowest and highest value of a column; asked as they come."""
    with opened(part) as file:
        at = file.schema_arrow.get_field_index(column)
        for group in range(file.num_row_groups):
            ends = file.metadata.row_group(group).column(at).statistics
            if ends is None or not ends.has_min_max or may_hold(ends.min, ends.max):
                yield file.read_row_group(group, list(columns), use_threads=False)


def highest(parts: Iterable[Part], column: str) -> Any:
    """The highest value of a column, by its statistics: no row is read. None: there is no value."""
    found = None
    for part in parts:
        with opened(part) as about:
            at = about.schema_arrow.get_field_index(column)
            for group in range(about.num_row_groups):
                ends = about.metadata.row_group(group).column(at).statistics
                if ends is not None and ends.has_min_max:
                    found = ends.max if found is None else max(found, ends.max)
    return found


def named_in(parts: Iterable[Part], numbers: Mapping[str, int]) -> Iterator[Positions]:
    """The positions of the parts of the table `named`, part by part."""
    for part in parts:
        table = read_part(part["path"], ["origin", "hi", "lo"])
        yield of_arrow(table["origin"].combine_chunks(), table["hi"].to_numpy(), table["lo"].to_numpy(), numbers)


def changes_of(system: System, positions: pa.ChunkedArray) -> pa.Array:
    """The change that each position stands for."""
    packed = positions.combine_chunks().cast(pa.string()).dictionary_encode()
    whole = pa.array([system.change_of(one) for one in packed.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(packed.indices, whole).cast(pa.string())
