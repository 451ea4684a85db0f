"""Changes of entries that not every server has, put together where the same servers have them: what a model of pulls moves.

origin a, seen by s1 up to 9, by s2 up to 5        s2 lacks changes 6 and 8, of which s1 has both: one fate of two changes
mail of an entry: s1 shows 3, s2 shows 7, s3 none  s3 lacks both; 7 stands for 3 wherever it comes, and s2 sends no 3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.engine.states import EntryStates, Lacked
from workbench.replication.entry.rules.entries import Ranges
from workbench.tables import Numbers

NONE = -1
"""No fate, or no single change."""


@dataclass(frozen=True)
class Fate:
    """Changes of one origin that the same servers show and lack, and that the same others replace.

    first, last  their times
    count        how many changes
    shown        servers whose entries show these very changes: no other server sends them
    holders      servers that have them, or something in their place
    doubted      servers of which nothing tells whether they ever had them
    missed       servers whose vector covers them, and that do not have them
    compared     all servers whose entries were compared: of others their vector tells
    settled_by   numbers of the fates that stand for these wherever they come: later changes of the attribute, deletions
    yields_to    numbers of those among them that stay where both come: of two deletions of one entry the earlier one
    change       entry and attribute (None: its deletion) of a single change that some server missed
    needless     of a deletion, servers that claim it and do not show the entry at all: as long as they do not, they lack nothing
    """

    origin: str
    first: int
    last: int
    count: int
    shown: frozenset[str]
    holders: frozenset[str]
    doubted: frozenset[str]
    missed: frozenset[str]
    compared: frozenset[str]
    settled_by: frozenset[int] = frozenset()
    yields_to: frozenset[int] = frozenset()
    change: tuple[str, str | None] | None = None
    needless: frozenset[str] = frozenset()

    def has(self, server: str, top: int) -> bool:
        """True if the server has them; `top`: up to where it has seen the origin."""
        return server in self.holders or (server not in self.compared and top >= self.last)

    def shows(self, server: str, top: int) -> bool:
        """True if the server has these very changes."""
        return server in self.shown or (server not in self.compared and top >= self.last)

    def awaited_by(self, server: str) -> bool:
        """True if the server lacks them, and its vector does not cover them."""
        return server in self.compared - self.holders - self.doubted - self.missed - self.needless


class Lacking(NamedTuple):
    """What one server misses, waits for, and may have all the same."""

    missed: Lacked
    waits: Lacked
    doubted: Lacked


class _Alike(NamedTuple):
    """What changes of one fate share, those that replace them left aside."""

    origin: str
    stretch: int
    deletion: bool
    lacking: frozenset[str]
    doubted: frozenset[str]
    missed: frozenset[str]
    shown: frozenset[str]
    change: tuple[str, str | None] | None


class _Key(NamedTuple):
    """`before`: a number of the earlier deletions of the entry; `after`: the fate of what replaces it next."""

    alike: _Alike
    before: int
    after: int


class Fates:
    """The fates of one group of servers, counted as their entries are read.

    seen   what each of the servers claims: no pull tells two changes apart that lie between the ends of the same vectors
    limit  so many changes that some server missed have a fate of their own, so that each can be written again
    every  what all servers have counts as well: another group of servers is there whose data may replace all of theirs
    """

    def __init__(self, servers: Sequence[str], seen: Sequence[Ranges], limit: int, every: bool = False) -> None:
        self._servers, self._left, self._every = servers, limit, every
        self._tops: dict[str, Numbers] = {}
        for origin in {origin for one in seen for origin in one}:
            self._tops[origin] = np.unique([one[origin][1] for one in seen if origin in one])
        self._numbers: dict[_Key, int] = {}
        self._before: dict[tuple[_Alike, int], int] = {}
        self._ends: list[tuple[int, int, int]] = []

    def add(self, held: EntryStates, lacking: Sequence[Lacking]) -> None:
        """Count these in: what each server missed, waits for, and may lack. All changes of an entry come at once."""
        rows, who, kinds = list[Numbers](), list[Numbers](), list[Numbers]()
        for number, told in enumerate(lacking):
            for kind, some in ((_MISSED, told.missed), (_LACKING, told.waits), (_DOUBTED, told.doubted)):
                rows.append(_rows(some))
                who.append(np.full(len(some), number))
                kinds.append(np.full(len(some), kind))
        server, mark = np.concatenate(who), np.concatenate(kinds)
        shown = [_rows(held.all())] if self._every else []
        every = np.concatenate([*rows, *shown]).astype(np.int64)
        if not len(every):
            return
        firsts, which = _unlike(every)
        changes, which = every[firsts], which[: len(server)]
        marks = np.zeros((len(changes), _SHOWN + 1, len(self._servers)), bool)
        marks[which, _LACKING, server] = True
        marks[which, mark, server] = True
        entry, attribute, time, origin = changes.T
        some = Lacked(entry, attribute, time, origin, np.zeros(len(entry), np.int64))
        marks[:, _SHOWN] = held.holders(some).T
        first = marks[:, _SHOWN].argmax(axis=1)  # of an entry that was made twice the changes of each are apart
        at, by = (np.where(attribute < 0, NONE, of[first, entry]) for of in (held.at, held.at_by))
        order = np.lexsort((origin, time, by, at, attribute, entry))
        chain = np.stack([entry, attribute, at, by], axis=1)[order]
        self._number(held, changes[order], chain, marks[order])

    def _number(self, held: EntryStates, changes: Numbers, chain: Numbers, marks: Numbers) -> None:
        """Give the changes their fates, the last of each chain first; deletions go before what they replace."""
        place, dead = np.arange(len(changes)), changes[:, 1] < 0
        begins = np.append(True, (chain[1:] != chain[:-1]).any(1))
        ends = np.append(begins[1:], True)
        which = np.cumsum(begins) - 1
        begin, end = np.flatnonzero(begins)[which], np.flatnonzero(ends)[which]
        new = np.append(True, changes[1:, 0] != changes[:-1, 0])
        of = np.flatnonzero(new)[np.cumsum(new) - 1]  # of an entry its deletions come first
        later = np.where(place < end, place + 1, np.where(~dead & dead[of], of, NONE))
        alike, kind = self._alike(held, changes, marks)
        before, fate = np.full(len(changes), NONE), np.full(len(changes), NONE)
        for some in _levels(place - begin, dead):  # an entry that was deleted once only has no deletion before
            for kinds, at in _each(some[place[some] > begin[some]], kind[place - 1], before[place - 1]):
                before[at] = self._before.setdefault((alike[kinds[0]], kinds[1]), len(self._before))
        for some in (*_levels(end - place, dead), *_levels(end - place, ~dead)):
            after = np.where(later >= 0, fate[later], NONE)
            for (number, early, late), at in _each(some, kind, before, after):
                fate[at] = self._numbered(_Key(alike[number], early, late), changes[at, 2])

    def _alike(self, held: EntryStates, changes: Numbers, marks: Numbers) -> tuple[list[_Alike], Numbers]:
        """What changes share, and which of it each of them has."""
        _, attribute, time, of_origin = changes.T
        stretch = np.zeros(len(changes), np.int64)
        for number in np.unique(of_origin).tolist():
            mine = of_origin == number
            stretch[mine] = np.searchsorted(self._tops.get(held.origins[number], np.zeros(0, np.int64)), time[mine])
        single = np.full(len(changes), NONE)
        alone = np.flatnonzero(marks[:, _MISSED].any(1))[: self._left]
        single[alone] = alone
        self._left -= len(alone)
        flat = marks.reshape(len(marks), -1)
        parts = np.column_stack([of_origin, stretch, attribute < 0, single, np.packbits(flat, axis=1)]).astype(np.int64)
        firsts, kind = _unlike(parts)
        found = []
        for row, at in zip(parts[firsts].tolist(), firsts.tolist(), strict=True):
            entry, of = held.entries[int(changes[at, 0])], int(attribute[at])
            change = (entry, None if of < 0 else held.attributes[of]) if row[3] >= 0 else None
            lacking, doubted, missed, shown = (self._names(part) for part in marks[at])
            origin = held.origins[row[0]]
            found.append(_Alike(origin, row[1], bool(row[2]), lacking, doubted, missed, shown, change))
        return found, kind

    def _numbered(self, key: _Key, times: Numbers) -> int:
        number = self._numbers.setdefault(key, len(self._ends))
        if number == len(self._ends):
            self._ends.append((0, int(times[0]), int(times[0])))
        count, first, last = self._ends[number]
        self._ends[number] = count + len(times), min(first, int(times.min())), max(last, int(times.max()))
        return number

    def _names(self, flags: Numbers) -> frozenset[str]:
        return frozenset(name for name, flag in zip(self._servers, flags, strict=True) if flag)

    def told(self, begin: int = 0) -> list[Fate]:
        """All fates, in an order of their own; their numbers begin with `begin`."""
        keys = list(self._numbers)
        earlier = {key.after: number for key, number in self._numbers.items() if key.alike.deletion}
        later = {number: key.after for key, number in self._numbers.items()}
        settled = [[*_along(later, number)] for number in range(len(keys))]
        yields = [[*_along(earlier, number)] for number in range(len(keys))]

        def turn(number: int) -> tuple[object, ...]:
            alike = keys[number].alike
            entry, attribute = alike.change or ("", "")
            names = [sorted(part) for part in (alike.lacking, alike.doubted, alike.missed, alike.shown)]
            after = [self._ends[other] for other in settled[number]]
            return alike.origin, self._ends[number], names, entry, attribute or "", after, number

        order = sorted(range(len(keys)), key=turn)
        place = {number: begin + at for at, number in enumerate(order)}
        compared = frozenset(self._servers)
        fates = []
        for number in order:
            alike, (count, first, last) = keys[number].alike, self._ends[number]
            early = frozenset(place[other] for other in yields[number])
            late = frozenset(place[other] for other in settled[number])
            holders = compared - alike.lacking
            if alike.deletion:
                others = (keys[other].alike.shown for other in (*settled[number], *yields[number]))
                holders &= alike.shown.union(*others)
            needless = compared - alike.lacking - holders
            names = (alike.shown, holders, alike.doubted, alike.missed, compared)
            fates.append(Fate(alike.origin, first, last, count, *names, late | early, early, alike.change, needless))
        return fates


_LACKING, _DOUBTED, _MISSED, _SHOWN = range(4)
"""What is marked of each change and server."""


def _rows(some: Lacked) -> Numbers:
    return np.stack([some.entry, some.attribute, some.time, some.origin], axis=1)


def _levels(rank: Numbers, which: Numbers) -> Iterator[Numbers]:
    """The places of these, those of the lowest rank first."""
    places = np.flatnonzero(which)
    for level in range(int(rank[places].max(initial=NONE)) + 1):
        yield places[rank[places] == level]


def _each(some: Numbers, *columns: Numbers) -> Iterator[tuple[list[int], Numbers]]:
    """What differs among these places in the columns, and the places of each."""
    if not len(some):
        return
    parts = np.column_stack([column[some] for column in columns]).astype(np.int64)
    firsts, which = _unlike(parts)
    order, counts = np.argsort(which, kind="stable"), np.bincount(which)
    yield from zip(parts[firsts].tolist(), np.split(some[order], np.cumsum(counts)[:-1]), strict=True)


def _unlike(rows: Numbers) -> tuple[Numbers, Numbers]:
    """The places of the first of each kind of row, in the order of the rows; and of which kind each row is."""
    order = np.lexsort(rows.T[::-1])
    inner = rows[order]
    new = np.append(True, (inner[1:] != inner[:-1]).any(1))
    which = np.empty(len(rows), np.int64)
    which[order] = np.cumsum(new) - 1
    return order[new], which


def _along(steps: Mapping[int, int], at: int) -> Iterator[int]:
    """Where the steps lead from a number, one after the other."""
    while (at := steps.get(at, NONE)) >= 0:
        yield at
