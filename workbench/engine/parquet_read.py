"""Reading parts of the evidence: whole, by their statistics, as a stream, or several at once. Damage is a Problem."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import SEEK_END
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from workbench.model import Problem
from workbench.tables import Numbers

_BATCH = 1 << 14
_READERS = 4

Part = Mapping[str, Any]
"""What a case says of a part, with its path (`Case.parts`)."""

One = TypeVar("One")
Other = TypeVar("Other")


def damaged(path: str) -> Problem:
    """What to say of a part that is not as it was written."""
    return Problem("a part of the evidence is damaged or gone", path, "load the inputs into a new case")


@contextmanager
def undamaged(path: str) -> Iterator[None]:
    """Reading a part in here raises Problem if it is damaged or gone."""
    try:
        yield
    except (OSError, ValueError, KeyError, pa.ArrowException):  # a damaged footer can hold names that are no text
        raise damaged(path) from None


@contextmanager
def opened(part: Part, *few: str) -> Iterator[pq.ParquetFile]:
    """A part of which only some rows are read; columns with few texts as dictionaries.

    Its footer is that of the manifest: where a damaged one names row groups and columns, reading can end the whole process.
    """
    path = part["path"]
    with undamaged(path), pa.OSFile(path) as file:
        if footer_of(file) != part["footer"]:
            raise damaged(path)
        yield pq.ParquetFile(file, read_dictionary=list(few), page_checksum_verification=True)


def footer_of(file: Any) -> int:
    """A checksum of the footer of a Parquet file: the pages carry their own."""
    size = file.seek(0, SEEK_END)
    file.seek(max(0, size - 8))
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(0, size - 8 - length))
    return zlib.crc32(file.read(length + 8))


def read_part(path: str, columns: list[str], filters: pc.Expression | None = None) -> pa.Table:
    """Columns of one part of a table; those with few texts as dictionaries. Raises Problem if it is damaged or gone."""
    few = [name for name in ("file", "origin") if name in columns]
    how: dict[str, Any] = {"read_dictionary": few, "page_checksum_verification": True}
    with undamaged(path):
        if filters is None:
            with pa.OSFile(path) as file:  # half as long as `read_table`, which takes each file for a data set
                table = pq.ParquetFile(file, **how).read(columns, use_threads=False)
        else:
            table = pq.read_table(path, columns=columns, filters=filters, use_threads=False, partitioning=None, **how)
        table.validate(full=True)  # the checksums leave out the headers of the pages
    if set(table.column_names) != set(columns):
        raise damaged(path)
    return table.select(columns)


def stream_part(path: str, columns: list[str], where: pc.Expression | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one part for which `where` holds, batch by batch: of a part of any size only one batch is held."""
    with undamaged(path):
        kind = ds.ParquetFileFormat(page_checksum_verification=True)
        part = ds.dataset(path, format=kind, partitioning=None)
        how: dict[str, Any] = {"batch_size": _BATCH, "batch_readahead": 1, "use_threads": False}
        for batch in part.to_batches(columns=columns, filter=where, **how):
            if batch.num_rows:
                batch.validate(full=True)
                yield batch


def read_near(part: Part, columns: list[str], hi: Numbers) -> pa.Table:
    """Columns of a sorted part, of the row groups that can hold one of these numbers of `hi`."""
    with opened(part, "origin") as file:
        table = file.read_row_groups(groups_near(file, hi), columns, use_threads=False)
        table.validate(full=True)
    return table


def parts_near(parts: Iterable[Part], hi: Numbers) -> list[tuple[Part, slice]]:
    """The sorted parts that can hold one of these ascending numbers of `hi`, each with the place of those that it can hold."""
    parts = [part for part in parts if "first" in part]
    ends = np.array([(part["first"][0], part["last"][0]) for part in parts], np.int64).reshape(-1, 2)
    begin, end = np.searchsorted(hi, ends[:, 0], "left"), np.searchsorted(hi, ends[:, 1], "right")
    return [(parts[at], slice(int(begin[at]), int(end[at]))) for at in np.flatnonzero(begin < end).tolist()]


def groups_near(file: pq.ParquetFile, sought: Numbers, column: str = "hi") -> list[int]:
    """The row groups of a sorted part that can hold one of these ascending numbers of a column."""
    at = file.schema_arrow.get_field_index(column)
    found = []
    for number in range(file.num_row_groups):
        ends = file.metadata.row_group(number).column(at).statistics
        if (
            ends is None
            or not ends.has_min_max
            or np.searchsorted(sought, ends.min, "left") < np.searchsorted(sought, ends.max, "right")
        ):
            found.append(number)
    return found


def some_at_once(read: Callable[[One], Other], parts: Iterable[One]) -> Iterator[Other]:
    """What is read of each part, in their order: a few are read while one is looked at, and no more are held."""
    with ThreadPoolExecutor(_READERS) as pool:  # reading and unpacking release the interpreter lock
        waiting: deque[Future[Other]] = deque()
        for part in parts:
            waiting.append(pool.submit(read, part))
            if len(waiting) > 2 * _READERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
