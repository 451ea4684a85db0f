"""Changes of entries that not every server has, put together where the same servers have them: what a model of pulls moves.

origin a, seen by s1 up to 9, by s2 up to 5        s2 lacks changes 6 and 8, of which s1 has both: one fate of two changes
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.engine.states import Lacked, Shown
from workbench.rules.entries import Ranges
from workbench.tables import Numbers

Waiting = Mapping[tuple[str, str], Mapping[tuple[int, int], int]]
"""Server and origin -> (number of a fate, number of the fate that makes it useless there) -> how many changes wait."""

Unsure = dict[tuple[str, int, str, str | None], frozenset[str]]
"""Origin, time, entry, attribute of a change that some server missed -> other servers that may have it or not."""


@dataclass(frozen=True)
class Fate:
    """Changes of one origin that the same servers have.

    first, last  their times
    count        how many changes
    holders      servers that have them, or what came later in their place
    doubted      servers of which nothing tells whether they ever had them
    missed       servers whose vector covers them, and that do not have them
    replaced     servers that wait for something later in their place as well
    compared     all servers whose entries were compared: of others their vector tells
    """

    origin: str
    first: int
    last: int
    count: int
    holders: frozenset[str]
    doubted: frozenset[str]
    missed: frozenset[str]
    replaced: frozenset[str]
    compared: frozenset[str]

    def has(self, server: str, top: int) -> bool:
        """True if the server has them; `top`: up to where it has seen the origin."""
        return server in self.holders or (server not in self.compared and top >= self.last)


class Lacking(NamedTuple):
    """What one server misses, waits for, and may have all the same. `replacing`: of what waits, which change makes it useless."""

    missed: Lacked
    waits: Lacked
    replacing: Numbers
    doubted: Lacked


class _Key(NamedTuple):
    origin: str
    stretch: int
    lacking: frozenset[str]
    doubted: frozenset[str]
    missed: frozenset[str]
    replaced: frozenset[str]


class Fates:
    """The fates of one group of servers, counted as their entries are read.

    seen  what each of the servers claims: no pull tells two changes apart that lie between the ends of the same vectors
    """

    def __init__(self, servers: Sequence[str], seen: Sequence[Ranges]) -> None:
        self._servers = servers
        self._tops: dict[str, Numbers] = {}
        for origin in {origin for one in seen for origin in one}:
            self._tops[origin] = np.unique([one[origin][1] for one in seen if origin in one])
        self._numbers: dict[_Key, int] = {}
        self._ends: list[tuple[int, int, int]] = []
        self._waiting: defaultdict[tuple[str, str], Counter[tuple[int, int]]] = defaultdict(Counter)
        self.unsure: Unsure = {}

    def add(self, held: Shown, lacking: Sequence[Lacking]) -> None:
        """Count these in: what each server missed, waits for, and may lack."""
        rows, who, flags = list[Numbers](), list[Numbers](), list[Numbers]()
        for number, told in enumerate(lacking):
            useless = told.replacing != np.arange(len(told.waits))
            for kind, some in enumerate((told.missed, told.waits, told.doubted)):
                rows.append(np.stack([some.entry, some.attribute, some.time, some.origin], axis=1))
                who.append(np.full(len(some), number))
                off = np.zeros(len(some), bool)
                flags.append(
                    np.stack([~off, off | (kind == 2), off | (kind == 0), useless if kind == 1 else off], axis=1)
                )
        changes, which = np.unique(np.concatenate(rows).astype(np.int64), axis=0, return_inverse=True)
        if not len(changes):
            return
        which, server, flag = which.ravel(), np.concatenate(who), np.concatenate(flags)
        marks = np.zeros((len(changes), flag.shape[1], len(self._servers)), bool)
        for kind in range(flag.shape[1]):
            marks[which[flag[:, kind]], kind, server[flag[:, kind]]] = True
        fate = self._count(held, changes, marks)
        for number in np.flatnonzero(marks[:, 1].any(1) & marks[:, 2].any(1)).tolist():
            entry, attribute, time, origin = changes[number].tolist()
            of = None if attribute < 0 else held.attributes[attribute]
            self.unsure[held.origins[origin], time, held.entries[entry], of] = self._names(marks[number, 1])
        begin = 0
        for name, told in zip(self._servers, lacking, strict=True):
            begin += len(told.missed)
            mine = fate[which[begin : begin + len(told.waits)]]
            begin += len(told.waits) + len(told.doubted)
            parts = np.column_stack([told.waits.origin, mine, mine[told.replacing]]).astype(np.int64)
            alike, counts = np.unique(parts, axis=0, return_counts=True)
            for (origin, own, later), count in zip(alike.tolist(), counts.tolist(), strict=True):
                self._waiting[name, held.origins[origin]][own, later] += count

    def _count(self, held: Shown, changes: Numbers, marks: Numbers) -> Numbers:
        """Put the changes together; the number of the fate of each."""
        fate = np.zeros(len(changes), np.int64)
        for number in np.unique(changes[:, 3]).tolist():
            origin = held.origins[number]
            mine = np.flatnonzero(changes[:, 3] == number)
            stretch = np.searchsorted(self._tops.get(origin, np.zeros(0, np.int64)), changes[mine, 2])
            parts = np.column_stack([stretch, marks[mine].reshape(len(mine), -1)]).astype(np.int64)
            alike, at = np.unique(parts, axis=0, return_inverse=True)
            for place, row in enumerate(alike):
                of = mine[at.ravel() == place]
                names = [self._names(part) for part in row[1:].reshape(marks.shape[1:])]
                fate[of] = self._numbered(_Key(origin, int(row[0]), *names), changes[of, 2])
        return fate

    def _numbered(self, key: _Key, times: Numbers) -> int:
        number = self._numbers.setdefault(key, len(self._ends))
        if number == len(self._ends):
            self._ends.append((0, int(times[0]), int(times[0])))
        count, first, last = self._ends[number]
        self._ends[number] = count + len(times), min(first, int(times.min())), max(last, int(times.max()))
        return number

    def _names(self, flags: Numbers) -> frozenset[str]:
        return frozenset(name for name, flag in zip(self._servers, flags, strict=True) if flag)

    def told(self, begin: int = 0) -> tuple[list[Fate], Waiting]:
        """All fates, in an order of their own, and what waits for which; their numbers begin with `begin`."""
        order = sorted(
            self._numbers.items(), key=lambda item: (item[0].origin, self._ends[item[1]], [*map(sorted, item[0][2:])])
        )
        place = {number: begin + at for at, (_, number) in enumerate(order)}
        compared = frozenset(self._servers)
        fates = []
        for key, number in order:
            count, first, last = self._ends[number]
            names = (compared - key.lacking, key.doubted, key.missed, key.replaced, compared)
            fates.append(Fate(key.origin, first, last, count, *names))
        waiting = {
            where: {(place[own], place[later]): count for (own, later), count in counts.items()}
            for where, counts in self._waiting.items()
        }
        return fates, waiting
