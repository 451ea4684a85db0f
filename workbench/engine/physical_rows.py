"""The records of a physical log by the column: read from sorted parts, each row group once, merged, and each place once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.parquet_read import Part, opened
from workbench.replication.tier.rules.physical_log import MOST, Place
from workbench.tables import Numbers

UNTOLD = int(np.iinfo(np.int64).min)
"""Stands for what a dump does not tell. It is below all else."""

BITS = np.uint64(32)
"""A place is one number: that of its file, and below these bits the place in the file."""

_VALUES = ["length", "kind", "generation", "content"]
_COLUMNS = ["hi", "lo", *_VALUES]


@dataclass
class Rows:
    """Records of one log in their order.

    key       place
    length    with the head
    rows      once each place stands here once: how many rows these were made of
    repeated  of these, how many only repeat another one
    at_odds   at which places rows contradict each other; None: at none
    """

    key: Numbers
    length: Numbers
    kind: Numbers
    generation: Numbers
    content: Numbers
    rows: int = 0
    repeated: int = 0
    at_odds: Numbers | None = None

    def __len__(self) -> int:
        return len(self.key)

    def cut(self, which: Any) -> Rows:
        """Some of them."""
        return Rows(self.key[which], *(getattr(self, name)[which] for name in _VALUES))


def places(keys: Numbers) -> list[Place]:
    """Keys as file and place."""
    return [(key >> 32, key & MOST - 1) for key in keys.tolist()]


def in_a_row(some: Sequence[Rows]) -> Rows:
    """Several behind each other."""
    if len(some) == 1:
        return some[0]
    nothing: Numbers = np.array([], np.int64)
    key = np.concatenate([nothing.astype(np.uint64), *(one.key for one in some)])
    values: list[Numbers] = [np.concatenate([nothing, *(getattr(one, name) for one in some)]) for name in _VALUES]
    length, kind, generation, content = values
    return Rows(key, length, kind, generation, content)


def merged(some: Sequence[Rows]) -> Rows:
    """Several in the order of their places, each place once; where a place stands in several rows, what they tell together."""
    found = in_a_row(some)
    if not (found.key[1:] > found.key[:-1]).all():
        found = found.cut(np.argsort(found.key, kind="stable"))
        again = found.key[1:] == found.key[:-1]
        if again.any():
            return _each_once(found, again)
    found.rows = len(found)
    return found


def _each_once(rows: Rows, again: Numbers) -> Rows:
    """`again` tells of all rows but the first whether they stand where the one before them stands."""
    starts = np.flatnonzero(np.append(True, ~again))
    counts = np.diff(np.append(starts, len(rows)))
    found, many = rows.cut(starts), np.flatnonzero(counts > 1)
    repeated = np.repeat(counts > 1, counts)
    begins = np.cumsum(counts[many]) - counts[many]
    at_odds = np.zeros(len(starts), bool)
    for name in _VALUES:
        values = getattr(rows, name)[repeated]
        most = np.maximum.reduceat(values, begins)
        least = np.minimum.reduceat(np.where(values == UNTOLD, np.iinfo(np.int64).max, values), begins)
        getattr(found, name)[many] = most
        if name != "kind":
            at_odds[many] |= (most != UNTOLD) & (least != most)
    found.rows, found.at_odds = len(rows), at_odds
    found.repeated = int((counts - 1)[~at_odds].sum())
    return found


class SortedPart:
    """A part of `records` that is read once from its beginning to its end; what was read and is not wanted yet is kept."""

    def __init__(self, part: Part, low: int, high: int, head: int) -> None:
        """Of the files from `low` on, below `high`; `head` bytes stand before the content of a record."""
        self.part, self.head = part, head
        self.ends = np.array([low << 32, (high << 32) - 1], np.uint64)
        self.kept: Rows | None = None
        self.groups: list[tuple[int, int, int]] = []
        """Key that none of its rows lies below, number of rows, number: of the row groups that were not read yet."""
        with opened(part) as file:
            columns = [file.schema_arrow.get_field_index(name) for name in ("hi", "lo")]
            lowest = low << 32
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                hi, lo = (group.column(at).statistics for at in columns)
                told = all(one is not None and one.has_min_max for one in (hi, lo))
                if told and not (hi.min < high and hi.max >= low):
                    continue
                # The lowest place of a group need not stand in its lowest file: the group before it knows better.
                lowest = max(lowest, (hi.min << 32) + lo.min) if told else lowest
                self.groups.append((lowest, group.num_rows, number))

    def until(self, key: int | None) -> Rows | None:
        """The rows below this key that were not given yet, None: all of them; None if there are none."""
        count = sum(key is None or lowest < key for lowest, _, _ in self.groups)
        some = [self.kept] if self.kept is not None else []
        if count:
            some.append(self._read([number for _, _, number in self.groups[:count]]))
            del self.groups[:count]
        if not some:
            return None
        rows = in_a_row(some)
        at = len(rows) if key is None else int(np.searchsorted(rows.key, np.uint64(key)))
        self.kept = rows.cut(slice(at, None)) if at < len(rows) else None
        return rows.cut(slice(0, at)) if at else None

    def _read(self, groups: list[int]) -> Rows:
        with opened(self.part) as file:
            table = file.read_row_groups(groups, _COLUMNS, use_threads=False)
            table.validate(full=True)
        hi, lo, length, kind, generation, content = (_numbers(table[name]) for name in _COLUMNS)
        key = (hi.astype(np.uint64) << BITS) | lo.astype(np.uint64)
        # No file is longer than its places can tell, so a record that claims to be tells nothing.
        length = np.where((length >= 0) & (length < MOST), length + self.head, UNTOLD)
        begin, end = np.searchsorted(key, self.ends[0]), np.searchsorted(key, self.ends[1], "right")
        return Rows(key, length, kind, generation, content).cut(slice(int(begin), int(end)))


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return np.asarray((pc.fill_null(column, UNTOLD) if column.null_count else column).to_numpy())
