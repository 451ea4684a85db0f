"""Changes of entries that not every server has, put together where the same servers have them: what a model of pulls moves.

origin a, seen by s1 up to 9, by s2 up to 5        s2 lacks changes 6 and 8, of which s1 has both: one fate of two changes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.engine.states import Lacked, Shown
from workbench.rules.entries import Ranges
from workbench.tables import Numbers


@dataclass(frozen=True)
class Fate:
    """Changes of one origin that the same servers have.

    first, last  their times
    count        how many changes
    holders      servers that have them, or what came later in their place
    doubted      servers of which nothing tells whether they ever had them
    compared     all servers whose entries were compared: of others their vector tells
    """

    origin: str
    first: int
    last: int
    count: int
    holders: frozenset[str]
    doubted: frozenset[str]
    compared: frozenset[str]

    def has(self, server: str, top: int) -> bool:
        """True if the server has them; `top`: up to where it has seen the origin."""
        return server in self.holders or (server not in self.compared and top >= self.last)


class _Lacking(NamedTuple):
    """What one server lacks: what it missed, what it waits for, and what nothing tells."""

    missed: Lacked
    waits: Lacked
    doubted: Lacked


class Fates:
    """The fates of one group of servers, counted as their entries are read.

    seen  what each of the servers claims: no pull tells two changes apart that lie between the ends of the same vectors
    """

    def __init__(self, servers: Sequence[str], seen: Sequence[Ranges]) -> None:
        self._servers = servers
        self._tops: dict[str, Numbers] = {}
        for origin in {origin for one in seen for origin in one}:
            self._tops[origin] = np.unique([one[origin][1] for one in seen if origin in one])
        self._found: dict[tuple[str, int, frozenset[str], frozenset[str]], tuple[int, int, int]] = {}

    def add(self, held: Shown, lacking: Sequence[tuple[Lacked, Lacked, Lacked]]) -> None:
        """Count these in: what each server missed, waits for, and may lack. What somebody missed is left to its verdict."""
        rows, who, doubts, missed = list[Numbers](), list[Numbers](), list[Numbers](), list[Numbers]()
        for number, told in enumerate(map(_Lacking._make, lacking)):
            for one, open_, gone in (
                (told.missed, False, True),
                (told.waits, False, False),
                (told.doubted, True, False),
            ):
                rows.append(np.stack([one.entry, one.attribute, one.time, one.origin], axis=1))
                who.append(np.full(len(one), number))
                doubts.append(np.full(len(one), open_))
                missed.append(np.full(len(one), gone))
        some, which = np.unique(np.concatenate(rows).astype(np.int64), axis=0, return_inverse=True)
        if not len(some):
            return
        which, server, doubted = which.ravel(), np.concatenate(who), np.concatenate(doubts)
        lacks, untold = (np.zeros((len(some), len(self._servers)), bool) for _ in range(2))
        lacks[which, server] = True
        untold[which[doubted], server[doubted]] = True
        left = np.ones(len(some), bool)
        left[which[np.concatenate(missed)]] = False
        self._count(held, some[left], lacks[left], untold[left])

    def _count(self, held: Shown, some: Numbers, lacks: Numbers, untold: Numbers) -> None:
        for number in np.unique(some[:, 3]).tolist():
            origin = held.origins[number]
            mine = np.flatnonzero(some[:, 3] == number)
            times = some[mine, 2]
            stretch = np.searchsorted(self._tops.get(origin, np.zeros(0, np.int64)), times)
            alike, at = np.unique(
                np.column_stack([stretch, lacks[mine], untold[mine]]).astype(np.int64), axis=0, return_inverse=True
            )
            for place, row in enumerate(alike):
                of, size = times[at.ravel() == place], len(self._servers)
                key = origin, int(row[0]), self._names(row[1 : size + 1]), self._names(row[size + 1 :])
                count, first, last = self._found.get(key, (0, int(of[0]), int(of[0])))
                self._found[key] = count + len(of), min(first, int(of.min())), max(last, int(of.max()))

    def _names(self, flags: Numbers) -> frozenset[str]:
        return frozenset(name for name, flag in zip(self._servers, flags, strict=True) if flag)

    def __iter__(self) -> Iterator[Fate]:
        for (origin, _, lacking, doubted), (count, first, last) in sorted(
            self._found.items(), key=lambda item: (item[0][0], item[1], sorted(item[0][2]))
        ):
            compared = frozenset(self._servers)
            yield Fate(origin, first, last, count, compared - lacking, doubted, compared)
