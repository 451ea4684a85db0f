"""Sets of positions as arrays: sorted, each one once, with set operations that never touch a single position in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from workbench.model import System
from workbench.tables import Numbers

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions in ascending order; `origin` is the number of the origin in a list that its user keeps."""

    origin: Numbers
    hi: Numbers
    lo: Numbers

    def __len__(self) -> int:
        return len(self.hi)

    def __getitem__(self, which: Numbers | slice) -> Positions:
        """Those, in the given order: an ascending one."""
        return Positions(self.origin[which], self.hi[which], self.lo[which])

    def within(self, other: Positions) -> Numbers:
        """For each one: is it in the other set, too?"""
        found = np.zeros(len(self), bool)
        if len(self) and len(other):
            at, end = np.searchsorted(other.hi, self.hi, "left"), np.searchsorted(other.hi, self.hi, "right")
            while (left := np.flatnonzero(at < end)).size:  # as often as positions share one hi: a few times
                there = at[left]
                alike = (other.lo[there] == self.lo[left]) & (other.origin[there] == self.origin[left])
                found[left] |= alike
                at[left] += 1
                at[left[alike]] = end[left[alike]]
        return found

    def minus(self, other: Positions) -> Positions:
        """Those that the other set lacks."""
        return self[~self.within(other)]

    def keys(self, system: System, origins: Sequence[str]) -> list[str]:
        """Their order keys."""
        numbers = zip(self.origin.tolist(), self.hi.tolist(), self.lo.tolist(), strict=True)
        return [system.order_key(origins[origin], hi, lo) for origin, hi, lo in numbers]


NONE = Positions(np.array([], np.int32), np.array([], np.int64), np.array([], np.int64))


def union(sets: Iterable[Positions]) -> Positions:
    """All of them, each once."""
    sets = [one for one in sets if len(one)]
    if len(sets) < 2:
        return sets[0] if sets else NONE
    return as_set(Positions(*(np.concatenate([getattr(one, name) for one in sets]) for name in ("origin", "hi", "lo"))))


def as_set(some: Positions) -> Positions:
    """Positions in any order and any number of times, in ascending order and each once."""
    if (some.hi[1:] > some.hi[:-1]).all():
        return some
    order = np.lexsort((some.origin, some.lo, some.hi))
    whole = some[order]
    return whole[np.concatenate([[True], ~_same_as_next(whole)])]


def of_arrow(origin: pa.DictionaryArray, hi: Numbers, lo: Numbers, numbers: Mapping[str, int]) -> Positions:
    """Sorted positions of a table, with the numbers of their origins; one that stands twice is taken once."""
    codes = np.array([numbers[name] for name in origin.dictionary.to_pylist()], np.int32)
    found = Positions(codes[np.asarray(origin.indices)], hi, lo)
    return found[np.concatenate([[True], ~_same_as_next(found)])] if len(found) else found


def of_keys(system: System, keys: Iterable[str], numbers: Mapping[str, int]) -> Positions:
    """Positions given as order keys."""
    keys = sorted(set(keys))
    pairs = [system.halves(key) for key in keys]
    codes = [numbers[system.origin_of(key)] for key in keys]
    return union(
        [
            Positions(
                np.array(codes, np.int32),
                np.array([hi for hi, _ in pairs], np.int64),
                np.array([lo for _, lo in pairs], np.int64),
            )
        ]
    )


def _same_as_next(some: Positions) -> Numbers:
    alike = (some.hi[1:] == some.hi[:-1]) & (some.lo[1:] == some.lo[:-1])
    return alike & (some.origin[1:] == some.origin[:-1])


def place(hi: Numbers, lo: Numbers, pair: tuple[int, int], side: Literal["left", "right"] = "left") -> int:
    """How many of the sorted positions lie below the pair; with `right`, those equal to it count too."""
    # Behind the last number that a position can have, numpy would compare as floats and take the neighbours for equal.
    if pair[0] > _LARGEST:
        return len(hi)
    begin, end = int(np.searchsorted(hi, pair[0], "left")), int(np.searchsorted(hi, pair[0], "right"))
    if pair[1] > _LARGEST:
        return end
    return begin + int(np.searchsorted(lo[begin:end], pair[1], side))
