"""All changes of one suffix that anything in a case names, and who holds which: by digests, and by reading where they differ.

A *source* is one sorted set of positions: the log of a server, a log collected earlier, or what other evidence names. Two
sources with equal digests of a bucket hold the same there; of two that differ by one position the digests tell which;
everything else is read, run by run of neighbouring buckets, so that memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from workbench.engine.digests import digest, mix
from workbench.engine.logs import StoredLog
from workbench.engine.parquet_read import Part
from workbench.engine.positions import NONE, Positions, of_arrow, place, union
from workbench.engine.selective_read import named_in
from workbench.model import System
from workbench.tables import Numbers

Pair = tuple[int, int]
"""(hi, lo)"""

LOWEST: Pair = (0, -1)
HIGHEST: Pair = ((1 << 63) - 1, (1 << 63) - 1)

_RUN = 500_000
"""Positions that are read at once."""


class Span(NamedTuple):
    """From `low`, excluded, to `high`, included."""

    low: Pair
    high: Pair

    @property
    def empty(self) -> bool:
        """True if nothing can lie in it."""
        return self.low >= self.high

    def of(self, some: Positions) -> Positions:
        """Those of sorted positions that lie in it."""
        if self.empty:
            return NONE
        return some[place(some.hi, some.lo, self.low, "right") : place(some.hi, some.lo, self.high, "right")]


@dataclass(frozen=True)
class Digests:
    """Of one origin in one source, by bucket in ascending order."""

    bucket: Numbers
    count: Numbers
    mix: Numbers
    xor_hi: Numbers
    xor_lo: Numbers

    def at(self, buckets: Numbers) -> Digests:
        """The same for the given buckets, which hold all of its own; zeros where it has none."""
        place = np.searchsorted(buckets, self.bucket)

        def spread(values: Numbers) -> Numbers:
            whole = np.zeros(len(buckets), values.dtype)
            whole[place] = values
            return whole

        return Digests(buckets, *map(spread, (self.count, self.mix, self.xor_hi, self.xor_lo)))


class _Growing:
    """The digests of what one source holds and what was found to be lacking there."""

    def __init__(self, mine: Digests, shift: int) -> None:
        self._bucket, self._shift = mine.bucket, shift
        self._count, self._mix = mine.count.copy(), mine.mix.copy()
        self._xor_hi, self._xor_lo = mine.xor_hi.copy(), mine.xor_lo.copy()

    def take(self, theirs: Digests, left: Numbers) -> tuple[Numbers, Numbers]:
        """Of the buckets `left`, add the position that `theirs` have besides, where it is one; (hi, lo) of those, sorted.

        Where they have it all the same, or all but one, nothing is left to look for.
        """
        left &= (theirs.count != self._count) | (theirs.mix != self._mix)
        at = np.flatnonzero(left & (abs(theirs.count - self._count) == 1))
        hi, lo = theirs.xor_hi[at] ^ self._xor_hi[at], theirs.xor_lo[at] ^ self._xor_lo[at]
        more = theirs.count[at] > self._count[at]
        apart = np.where(more, theirs.mix[at] - self._mix[at], self._mix[at] - theirs.mix[at])
        sure = (mix(hi, lo) == apart) & (hi >> self._shift == self._bucket[at])
        left[at[sure]] = False
        new = sure & more
        at, hi, lo = at[new], hi[new], lo[new]
        self._count[at] += 1
        self._mix[at] = theirs.mix[at]
        self._xor_hi[at], self._xor_lo[at] = theirs.xor_hi[at], theirs.xor_lo[at]
        order = np.lexsort((lo, hi))
        return hi[order], lo[order]


_COLUMNS = ("bucket", "count", "mix", "xor_hi", "xor_lo")


def _by_origin(table: pa.Table) -> dict[str, Digests]:
    origin = table["origin"].combine_chunks()
    codes, columns = np.asarray(origin.indices), {name: table[name].to_numpy() for name in _COLUMNS}
    columns["mix"] = columns["mix"].view(np.uint64)
    found = {}
    for code, name in enumerate(origin.dictionary.to_pylist()):
        mine = np.flatnonzero(codes == code)
        mine = mine[np.argsort(columns["bucket"][mine], kind="stable")]
        found[name] = Digests(*(columns[key][mine] for key in _COLUMNS))
    return found


class Source:
    """The log of one file as a source."""

    def __init__(self, log: StoredLog, numbers: Mapping[str, int]) -> None:
        self.log, self._numbers = log, numbers

    @cached_property
    def digests(self) -> dict[str, Digests]:
        """By origin."""
        return _by_origin(self.log.digests)

    def between(self, low: Pair, high: Pair) -> Positions:
        """Its positions from `low`, included, to `high`, excluded."""
        found = self.log.between(low, high)
        return of_arrow(found.origin, found.hi, found.lo, self._numbers)

    def contains(self, wanted: Positions) -> Numbers:
        """For each position: does the source hold it?"""
        return self.log.contains(wanted, self._numbers)


class UnloggedPositions:
    """Positions in memory as a source: those that no log holds any more."""

    def __init__(self, positions: Positions, names: Sequence[str], shift: int) -> None:
        self.positions = positions
        origin = pa.DictionaryArray.from_arrays(pa.array(positions.origin, pa.int32()), pa.array(names, pa.string()))
        table = digest(origin, positions.hi, positions.lo, shift)
        table = table.set_column(0, "origin", table["origin"].dictionary_encode())
        self.digests = {name: one for name, one in _by_origin(table).items() if len(one.bucket)}

    def between(self, low: Pair, high: Pair) -> Positions:
        """Its positions from `low`, included, to `high`, excluded."""
        some = self.positions
        return some[place(some.hi, some.lo, low) : place(some.hi, some.lo, high)]

    @classmethod
    def in_no_log(
        cls, parts: Iterable[Part], numbers: Mapping[str, int], logs: Sequence[Source], names: Sequence[str], shift: int
    ) -> UnloggedPositions:
        """The changes that results of operations and states of entries name (`parts`), and no log holds."""
        found: list[Positions] = []
        for left in named_in(parts, numbers):
            for log in logs:
                left = left[~log.contains(left)] if len(left) else left
            found.append(left)
        return cls(union(found), names, shift)

    def contains(self, wanted: Positions) -> Numbers:
        """For each position: does the source hold it?"""
        return wanted.within(self.positions)


AnySource = Source | UnloggedPositions


class PositionIndex:
    """The sources of one suffix."""

    def __init__(self, system: System, sources: Sequence[AnySource], names: Sequence[str]) -> None:
        self.system, self.sources, self.names = system, list(sources), list(names)
        self.answered: dict[tuple[int, str], tuple[Span, Positions]] = {}
        """What `lacking` said, by source and origin."""
        self._spread: dict[str, tuple[Numbers, list[Digests]]] = {}

    def _digests(self, origin: str) -> tuple[Numbers, list[Digests]]:
        """The buckets of the origin in any source, and the digests of each source for them."""
        if origin not in self._spread:
            nothing = Digests(*(np.array([], kind) for kind in (np.int64, np.int64, np.uint64, np.int64, np.int64)))
            mine = [source.digests.get(origin, nothing) for source in self.sources]
            buckets = np.unique(np.concatenate([one.bucket for one in mine])) if mine else nothing.bucket
            self._spread[origin] = buckets, [one.at(buckets) for one in mine]
        return self._spread[origin]

    def lacking(self, number: int, origin: str, span: Span) -> Positions:
        """What any other source holds of the origin within the span, and source `number` does not."""
        if span.empty:
            return NONE
        found = self._lacking(number, origin, span)
        self.answered[number, origin] = span, found
        return found

    def _lacking(self, number: int, origin: str, span: Span) -> Positions:
        shift, code = self.system.bucket_shift, self.names.index(origin)
        buckets, digests = self._digests(origin)
        if not len(buckets):
            return NONE
        inside = (buckets >= span.low[0] >> shift) & (buckets <= span.high[0] >> shift)
        whole = _Growing(digests[number], shift)
        others = {other: theirs for other, theirs in enumerate(digests) if other != number}
        left = {other: inside & (theirs.count > 0) for other, theirs in others.items()}
        found: list[Positions] = []
        # What one source adds may be all that another one has besides: so all are asked again as long as something is added.
        added = True
        while added:
            added = False
            for other, theirs in others.items():
                hi, lo = whole.take(theirs, left[other])
                if len(hi):
                    found.append(Positions(np.full(len(hi), code, np.int32), hi, lo))
                    added = True
        seen: list[tuple[Numbers, Digests]] = []
        for other, theirs in others.items():
            need = left[other].copy()
            for looked, before in seen:  # what an earlier one held in the same way was looked at there
                need &= ~(looked & (theirs.count == before.count) & (theirs.mix == before.mix))
            seen.append((need, theirs))
            found += self._read_apart(number, other, code, buckets, need, theirs.count + digests[number].count)
        return span.of(union(found))

    def _read_apart(
        self, number: int, other: int, code: int, buckets: Numbers, need: Numbers, rows: Numbers
    ) -> Iterator[Positions]:
        for low, high in self._runs(buckets, need, rows):
            theirs = only(self.sources[other].between(low, high), code)
            yield theirs.minus(only(self.sources[number].between(low, high), code))

    def _runs(self, buckets: Numbers, need: Numbers, rows: Numbers) -> Iterator[tuple[Pair, Pair]]:
        """Bounds of runs of neighbouring buckets that are needed, each of so many rows that they are read at once."""
        shift, at = self.system.bucket_shift, np.flatnonzero(need)
        begin = 0
        while begin < len(at):
            end, held = begin + 1, int(rows[at[begin]])
            while end < len(at) and at[end] == at[end - 1] + 1 and held + int(rows[at[end]]) <= _RUN:
                held += int(rows[at[end]])
                end += 1
            yield (int(buckets[at[begin]]) << shift, 0), ((int(buckets[at[end - 1]]) + 1) << shift, 0)
            begin = end

    def holding(self, sources: Iterable[int], some: Positions) -> dict[int, Numbers]:
        """For each of these sources and each position: does the source hold it?

        Of sources with equal digests of its bucket one is read; one without any there holds it not.
        """
        found = {source: np.zeros(len(some), bool) for source in sources}
        for code in np.unique(some.origin).tolist():
            mine = np.flatnonzero(some.origin == code)
            buckets, digests = self._digests(self.names[code])
            if not len(buckets):
                continue
            at = np.minimum(np.searchsorted(buckets, some.hi[mine] >> self.system.bucket_shift), len(buckets) - 1)
            known = buckets[at] == some.hi[mine] >> self.system.bucket_shift
            before: list[int] = []
            for source, holds in found.items():
                theirs = digests[source]
                need = known & (theirs.count[at] > 0)
                for other in before:
                    like = need & (theirs.count == digests[other].count)[at] & (theirs.mix == digests[other].mix)[at]
                    holds[mine[like]] = found[other][mine[like]]
                    need &= ~like
                asked = mine[need]
                if len(asked):
                    holds[asked] = self.sources[source].contains(some[asked])
                before.append(source)
        return found

    def tally(
        self, origin: str, span: Span, among: Iterable[int] | None = None
    ) -> tuple[int, Pair | None, Pair | None]:
        """How many changes of the origin the sources hold within the span, each counted once; the first and the last."""
        count, first, last = 0, None, None
        for some, counted in self._counted(origin, span, among):
            if some is None:
                count += counted
            elif len(some):
                count += len(some)
                ends = [(int(some.hi[at]), int(some.lo[at])) for at in (0, -1)]
                first = ends[0] if first is None else min(first, ends[0])
                last = ends[1] if last is None else max(last, ends[1])
        return count, first, last

    def _counted(self, origin: str, span: Span, among: Iterable[int] | None) -> Iterator[tuple[Positions | None, int]]:
        """Positions that were read, or (None, number) of buckets in which all sources that hold any hold the same.

        The first and the last bucket with any are read, because the span may begin or end inside, and for the ends.
        """
        if span.empty:
            return
        shift, code = self.system.bucket_shift, self.names.index(origin)
        buckets, digests = self._digests(origin)
        chosen = list(range(len(digests)) if among is None else among)
        inside = (buckets >= span.low[0] >> shift) & (buckets <= span.high[0] >> shift)
        counts = [digests[number].count for number in chosen]
        most = np.max(counts, axis=0, initial=0) if counts else np.zeros(len(buckets), np.int64)
        inside &= most > 0
        if not inside.any():
            return
        alike, mixed = np.ones(len(buckets), bool), np.zeros(len(buckets), np.uint64)
        for number in chosen:
            full = digests[number].count == most
            mixed[full] = digests[number].mix[full]
        for number in chosen:
            theirs = digests[number]
            alike &= (theirs.count == 0) | ((theirs.count == most) & (theirs.mix == mixed))
        at = np.flatnonzero(inside)
        # Bounds may cut the outermost buckets; the next ones are read as well, for these may turn out empty within the span.
        read = inside & ~alike
        read[at[:2]] = read[at[-2:]] = True
        yield None, int(most[inside & ~read].sum())
        for low, high in self._runs(buckets, read, most * len(chosen)):
            held = [only(self.sources[number].between(low, high), code) for number in chosen]
            yield span.of(union(held)), 0

    def chunks(self, origin: str, span: Span) -> Iterator[Positions]:
        """All changes of the origin within the span that any source holds, in ascending order, some at a time."""
        if span.empty:
            return
        shift, code = self.system.bucket_shift, self.names.index(origin)
        buckets, digests = self._digests(origin)
        inside = (buckets >= span.low[0] >> shift) & (buckets <= span.high[0] >> shift)
        # Neighbours in the table need not be neighbours in time: a run may bridge empty buckets.
        rows = np.sum([one.count for one in digests], axis=0) if digests else np.zeros(len(buckets), np.int64)
        for low, high in self._runs(buckets, inside & (rows > 0), rows):
            some = span.of(union(only(source.between(low, high), code) for source in self.sources))
            if len(some):
                yield some


def only(some: Positions, code: int) -> Positions:
    """Those of one origin."""
    return some[some.origin == code]


def in_holes(some: Positions, holes: Iterable[tuple[Pair, Pair]]) -> Numbers:
    """For each position: does it lie in a stretch in which something could not be read?"""
    inside = np.zeros(len(some), bool)
    for low, high in holes:
        low_, high_ = Span(LOWEST, low).of(some), Span(LOWEST, high).of(some)
        inside[len(low_) : len(high_)] = True
    return inside
