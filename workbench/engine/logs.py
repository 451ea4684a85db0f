"""The log of one server as a case holds it, asked without Spark and without reading it: `workbench.rules.send_session.Log`.

How many changes of an origin lie below a position is a sum of digest counts plus a look into the one bucket that holds the
position; the bucket's positions are read from the few sorted parts that overlap it. So counts, neighbours and pages of a
hundred million changes cost a handful of small reads, and the same question again costs none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.digests import fold
from workbench.engine.parquet_read import Part, damaged, parts_near, read_near, read_part, some_at_once
from workbench.engine.positions import Positions, of_arrow, place
from workbench.model import System
from workbench.rules.send_session import Bound, Tally
from workbench.tables import SCHEMAS, Numbers, joined

_PARTS_KEPT = 8
_BUCKETS_KEPT = 1024
_PAGE = 512
_COLUMNS = ["origin", "hi", "lo"]


@dataclass(frozen=True)
class Index:
    """How many positions of one origin lie in each bucket; `before` has one more entry, the sum of all."""

    buckets: Numbers
    before: Numbers

    def below(self, bucket: int) -> int:
        """Positions in the buckets before this one."""
        return int(self.before[np.searchsorted(self.buckets, bucket)])

    def holding(self, number: int) -> tuple[int, int]:
        """The bucket that holds the so-manieth position, and which one it is there; both from 0."""
        at = int(np.searchsorted(self.before, number, "right")) - 1
        return int(self.buckets[at]), number - int(self.before[at])


@dataclass(frozen=True)
class Stretch:
    """Positions between two bounds, sorted."""

    origin: pa.DictionaryArray
    hi: Numbers
    lo: Numbers


class StoredLog:
    """The changes that one file of a case shows.

    parts    of the table `positions`, with their paths and ends, as `Case.parts` gives them
    digests  the paths of its parts of the table `digests`
    marks    positions of records that can be a starting point and are no changes
    """

    def __init__(
        self,
        system: System,
        parts: Sequence[Mapping[str, Any]],
        digests: Iterable[str],
        marks: Iterable[str] = (),
    ) -> None:
        self.system = system
        self.parts = sorted(parts, key=lambda part: tuple(part["first"]))
        self.marks = sorted(marks)
        self._digests = list(digests)
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()
        self._buckets: OrderedDict[int, Stretch] = OrderedDict()
        self._ranks: dict[tuple[str | None, str, bool], int] = {}
        self._kept: dict[tuple[int, str | None], tuple[Numbers, Numbers]] = {}
        self._recent: tuple[tuple[str, bool], list[str]] = (("", False), [])

    # --- what the rules ask

    def origin_of(self, position: str) -> str:
        """Who made the change."""
        return self.system.origin_of(position)

    def origins(self) -> Iterable[str]:
        """The origins of its changes."""
        return self._digested[0]

    def holds(self, position: str) -> bool:
        """True if there is a record, change or mark, of exactly this position."""
        return self._rank(None, position, included=True) > self._rank(None, position, included=False) or (
            position in self.marks
        )

    def after(self, position: str) -> str | None:
        """The first record, change or mark, above the position."""
        following = self._at(None, self._rank(None, position, included=True))
        mark = next(iter(self.marks[bisect_right(self.marks, position) :]), None)
        return min(filter(None, (following, mark)), default=None)

    def first_of(self, origin: str) -> str | None:
        """The first change of the origin."""
        return self._at(origin, 0)

    def changes(self, origin: str, low: Bound) -> Iterator[str]:
        """The changes of the origin from the bound on, in order; read only as far as needed."""
        number = self._rank(origin, low.position, included=not low.included)
        index = self._index_of(origin)
        while index is not None and number < int(index.before[-1]):
            bucket, at = index.holding(number)
            hi, lo = self._held(bucket, origin)
            for pair in zip(hi[at:].tolist(), lo[at:].tolist(), strict=True):
                yield self.system.order_key(origin, *pair)
            number += len(hi) - at

    def tally(self, origin: str, low: Bound, high: str | None) -> Tally:
        """The changes of the origin from the bound to `high`, this one included; None: to the end."""
        begin = self._rank(origin, low.position, included=not low.included)
        index = self._index_of(origin)
        if index is None:
            return Tally()
        end = int(index.before[-1]) if high is None else self._rank(origin, high, included=True)
        return Tally(end - begin, self._at(origin, begin), self._at(origin, end - 1)) if begin < end else Tally()

    def below(self, hi: int, origin: str | None = None, exact: bool = True) -> int:
        """How many positions of the origin, or of all, have a first half below this one; not exact, to the border of its bucket.

        Exact answers read the bucket; for many of them over a long time, borders are near enough and read nothing.
        """
        index = self._index_of(origin)
        if index is None:
            return 0
        bucket = hi >> self.system.bucket_shift
        rank = index.below(bucket)
        return rank + place(*self._held(bucket, origin), (hi, 0), "left") if exact else rank

    # --- pages

    def page(self, bound: Bound, limit: int) -> Stretch:
        """The first so many positions from the bound on, of all origins."""
        low, whole = self.system.halves(bound.position), self._digested[1]
        begin = self._rank(None, bound.position, included=not bound.included)
        end = min(begin + limit, int(whole.before[-1]))
        if begin >= end:
            return _stretch([], low, low)
        bucket = whole.holding(end - 1)[0]
        found = self.between(low, ((bucket + 1) << self.system.bucket_shift, 0))
        skip = 0 if bound.included else place(found.hi, found.lo, low, "right")
        there = slice(skip, skip + limit)
        return Stretch(found.origin[there], found.hi[there], found.lo[there])

    def read(self, bound: Bound, limit: int) -> Iterator[str]:
        """So many records, changes and marks, from the bound on; read a page at a time, and no page twice in a row.

        Buffers of one record after the other would else cost a search in the parts for each.
        """
        while limit > 0:
            here, (begun, records) = (bound.position, not bound.included), self._recent
            if not (records and begun <= here and bound.place(records) < len(records)):
                records = list(islice(self.records(bound, None), _PAGE))
                self._recent = here, records
            found = records[(at := bound.place(records)) : at + limit]
            if not found:
                return
            yield from found
            limit, bound = limit - len(found), Bound(found[-1], False)

    def records(self, bound: Bound, upto: str | None) -> Iterator[str]:
        """All records, changes and marks, from the bound on up to `upto`, in order; read a page at a time."""
        end = None if upto is None else bisect_right(self.marks, upto)
        last = None
        for record in merge(self._changes(bound, upto), self.marks[bound.place(self.marks) : end]):
            if record != last:
                yield record
            last = record

    def _changes(self, bound: Bound, upto: str | None) -> Iterator[str]:
        while len((page := self.page(bound, _PAGE)).hi):
            for origin, hi, lo in zip(page.origin.to_pylist(), page.hi.tolist(), page.lo.tolist(), strict=True):
                change = self.system.order_key(origin, hi, lo)
                if upto is not None and change > upto:
                    return
                yield change
            bound = Bound(change, False)

    def of_origin(self, origin: str, above: str, upto: str) -> Iterator[str]:
        """The changes of the origin above one position and up to another, without the digests; read as far as needed."""
        low, high = (self.system.halves(position) if position else (0, -1) for position in (above, upto))
        width = 1 << self.system.bucket_shift
        while low < high:
            edge = min((low[0] + width, 0), (high[0], high[1] + 1))
            there = self.between((low[0], low[1] + 1), edge)
            for at in np.flatnonzero(np.asarray(pc.equal(there.origin, origin))).tolist():
                yield self.system.order_key(origin, int(there.hi[at]), int(there.lo[at]))
            low, width = (edge[0], edge[1] - 1), 2 * width

    # --- ranks

    @cached_property
    def _digested(self) -> tuple[dict[str, Index], Index]:
        """The index of each origin, and that of all."""
        origin = self.digests["origin"].combine_chunks()
        codes, bucket, count = (
            np.asarray(origin.indices),
            *(self.digests[name].to_numpy() for name in ("bucket", "count")),
        )
        indexes = {
            name: _index(bucket[codes == code], count[codes == code])
            for code, name in sorted(enumerate(origin.dictionary.to_pylist()), key=lambda pair: pair[1])
        }
        return indexes, _index(bucket, count)

    def _index_of(self, origin: str | None) -> Index | None:
        indexes, whole = self._digested
        return whole if origin is None else indexes.get(origin)

    def _rank(self, origin: str | None, position: str, included: bool) -> int:
        """How many positions (of the origin, or of all) lie below this one; itself too, with `included`."""
        known = self._ranks.get((origin, position, included))
        if known is not None:
            return known
        index = self._index_of(origin)
        if index is None:
            return 0
        pair = self.system.halves(position)
        bucket = pair[0] >> self.system.bucket_shift
        rank = index.below(bucket) + place(*self._held(bucket, origin), pair, "right" if included else "left")
        self._ranks[origin, position, included] = rank
        return rank

    def _at(self, origin: str | None, number: int) -> str | None:
        """The so-manieth position of the origin, or of all, from 0."""
        index = self._index_of(origin)
        if index is None or not 0 <= number < int(index.before[-1]):
            return None
        bucket, at = index.holding(number)
        hi, lo = self._held(bucket, origin)
        if origin is None:
            origin = self._bucket(bucket).origin[at].as_py()
        return self.system.order_key(origin, int(hi[at]), int(lo[at]))

    def _held(self, bucket: int, origin: str | None) -> tuple[Numbers, Numbers]:
        """The positions in one bucket, of the origin or of all."""
        key = bucket, origin
        if key not in self._kept:
            there = self._bucket(bucket)
            mine = slice(None) if origin is None else np.asarray(pc.equal(there.origin, origin))
            hi, lo = there.hi[mine], there.lo[mine]
            index = self._index_of(origin)
            if index and len(hi) != index.below(bucket + 1) - index.below(bucket):
                raise damaged(self._digests[0])
            self._kept[key] = hi, lo
        return self._kept[key]

    def _bucket(self, bucket: int) -> Stretch:
        if bucket not in self._buckets:
            shift = self.system.bucket_shift
            there = self.between((bucket << shift, 0), ((bucket + 1) << shift, 0))
            # Copied, because a slice would keep the whole part in memory that it was cut out of.
            origin = pa.DictionaryArray.from_arrays(np.array(there.origin.indices), there.origin.dictionary)
            self._buckets[bucket] = Stretch(origin, there.hi.copy(), there.lo.copy())
            if len(self._buckets) > _BUCKETS_KEPT:
                gone, _ = self._buckets.popitem(last=False)
                self._kept = {key: held for key, held in self._kept.items() if key[0] != gone}
        return self._buckets[bucket]

    # --- reading

    def between(self, low: tuple[int, int], high: tuple[int, int]) -> Stretch:
        """The positions from `low`, included, to `high`, excluded."""
        tables = [
            self._table(part["path"])
            for part in self.parts
            if tuple(part["first"]) < high and low <= tuple(part["last"])
        ]
        return _stretch(tables, low, high)

    def contains(self, wanted: Positions, numbers: Mapping[str, int]) -> Numbers:
        """For each of some sorted positions: is it there? `numbers` are those of the origins."""
        found = np.zeros(len(wanted), bool)

        def read(one: tuple[Part, slice]) -> pa.Table:
            path = one[0]["path"]
            return self._tables[path] if path in self._tables else read_near(one[0], _COLUMNS, wanted.hi[one[1]])

        near = parts_near(self.parts, wanted.hi)
        for (_, which), table in zip(near, some_at_once(read, near), strict=True):
            there = of_arrow(table["origin"].combine_chunks(), table["hi"].to_numpy(), table["lo"].to_numpy(), numbers)
            found[which] |= wanted[which].within(there)
        return found

    @cached_property
    def digests(self) -> pa.Table:
        """The digests of its positions, one row for each origin and bucket; the origins as a dictionary."""
        columns = ["origin", "bucket", "count", "mix", "xor_hi", "xor_lo"]
        tables = [read_part(path, columns) for path in self._digests]
        if len(tables) == 1:
            return tables[0]
        whole = joined(tables) if tables else SCHEMAS["digests"].empty_table()
        whole = fold(whole.select(columns))
        return whole.set_column(0, "origin", whole["origin"].dictionary_encode())

    def _table(self, path: str) -> pa.Table:
        if path not in self._tables:
            self._tables[path] = read_part(path, _COLUMNS)
            if len(self._tables) > _PARTS_KEPT:
                self._tables.popitem(last=False)
        self._tables.move_to_end(path)
        return self._tables[path]


def _stretch(tables: list[pa.Table], low: tuple[int, int], high: tuple[int, int]) -> Stretch:
    cut = []
    for table in tables:
        hi, lo = table["hi"].to_numpy(), table["lo"].to_numpy()
        begin, end = place(hi, lo, low), place(hi, lo, high)
        if begin < end:
            cut.append(table.slice(begin, end - begin))
    if not cut:
        nothing = np.array([], np.int64)
        return Stretch(pa.array([], pa.string()).dictionary_encode(), nothing, nothing)
    whole = joined(cut).combine_chunks()
    origin, hi, lo = whole["origin"].combine_chunks(), whole["hi"].to_numpy(), whole["lo"].to_numpy()
    if len(cut) > 1:
        order = np.lexsort((lo, hi))
        origin, hi, lo = origin.take(pa.array(order)), hi[order], lo[order]
    return Stretch(origin, hi, lo)


def _index(bucket: Numbers, count: Numbers) -> Index:
    if not len(bucket):
        return Index(np.array([], np.int64), np.array([0], np.int64))
    order = np.argsort(bucket, kind="stable")
    bucket, count = bucket[order], count[order]
    first = np.flatnonzero(np.concatenate([[True], bucket[1:] != bucket[:-1]]))
    sums = np.add.reduceat(count, first)
    return Index(bucket[first], np.concatenate([[0], np.cumsum(sums)]))


def marks_of(paths: Iterable[str]) -> list[str]:
    """The positions of the dummy records in these parts of the table `changes`: starting points that are no changes."""
    found: list[str] = []
    for path in paths:
        # Parts without any are told by the statistics of the column: nothing of them is read.
        table = read_part(path, ["position"], pc.field("kind") == "anchor")
        found += table["position"].cast(pa.string()).to_pylist()
    return sorted(found)
