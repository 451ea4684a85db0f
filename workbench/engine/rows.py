"""Few rows out of large tables: only the parts, the row groups and the columns that can hold them are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.engine.logs import damaged, place, read_part
from workbench.engine.positions import Positions, of_arrow

Part = Mapping[str, Any]

_READERS = 4


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

    def among(part: Part) -> Positions:
        begin = place(wanted.hi, wanted.lo, tuple(part["first"]))
        return wanted[begin : place(wanted.hi, wanted.lo, tuple(part["last"]), "right")]

    def read(part: Part) -> pa.Table:
        with _undamaged(part), pa.OSFile(part["path"]) as opened:
            file = pq.ParquetFile(opened, page_checksum_verification=True)
            return _rows_at(file, among(part), ordered)

    reached = (part for part in parts if "first" in part and len(among(part)))
    for table in _some_at_once(read, reached):
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
    for group in _groups(file, wanted):
        hi = file.read_row_group(group, ["hi"], use_threads=False)["hi"].to_numpy()
        at = np.flatnonzero(np.isin(hi, wanted.hi))
        if len(at):
            found.append(file.read_row_group(group, columns, use_threads=False).take(pa.array(at)))
    return pa.concat_tables(found) if found else file.schema_arrow.empty_table().select(columns)


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


def rows_of(parts: Iterable[Part], key: str, wanted: pa.Array, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The rows in which the column `key` has one of the wanted values: the key and the columns, part by part.

    A column that is no order of time has no statistics that help: it is read whole, the others only where it has one.
    """

    def rows(part: Part) -> pa.Table:
        with _undamaged(part), pa.OSFile(part["path"]) as opened:
            file = pq.ParquetFile(opened, page_checksum_verification=True)
            found = []
            for group in range(file.num_row_groups):
                keys = file.read_row_group(group, [key], use_threads=False)
                at = pc.indices_nonzero(pc.is_in(keys[key], wanted))
                if len(at):
                    found.append(file.read_row_group(group, [key, *columns], use_threads=False).take(at))
            return pa.concat_tables(found) if found else pa.table({})

    yield from filter(len, _some_at_once(rows, parts))


def _some_at_once(read: Callable[[Part], pa.Table], parts: Iterable[Part]) -> Iterator[pa.Table]:
    """What is read of each part, in their order: a few are read while one is looked at, and no more are held."""
    with ThreadPoolExecutor(_READERS) as pool:  # reading and unpacking release the interpreter lock
        waiting: deque[Future[pa.Table]] = deque()
        for part in parts:
            waiting.append(pool.submit(read, part))
            if len(waiting) > 2 * _READERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _undamaged(part: Part) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, KeyError):
        raise damaged(part["path"]) from None


def named_in(parts: Iterable[Part], numbers: Mapping[str, int]) -> Iterator[Positions]:
    """The positions of the parts of the table `named`, part by part."""
    for part in parts:
        table = read_part(part["path"], ["origin", "hi", "lo"])
        yield of_arrow(table["origin"].combine_chunks(), table["hi"].to_numpy(), table["lo"].to_numpy(), numbers)
