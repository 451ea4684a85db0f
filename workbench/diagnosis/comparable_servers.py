"""Which servers may be compared by position: those of one suffix whose data have one beginning."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from workbench.topology.topology import Replica, Topology


class Comparable(NamedTuple):
    """Servers of one suffix whose positions mean the same: their data have one beginning.

    whole     there are no others of the suffix
    doubtful  origins that several of its servers use: one position may stand for several changes
    """

    suffix: str | None
    replicas: tuple[Replica, ...]
    whole: bool
    doubtful: frozenset[str]


def comparable(shown: Topology) -> list[Comparable]:
    """The groups of servers that may be compared, the largest of a suffix last. One of unknown generation counts to that.

    Servers without data count for less than any with some.
    """
    found: list[Comparable] = []
    for suffix in dict.fromkeys(replica.suffix for replica in shown.replicas):
        mine = [one for one in shown.replicas if one.suffix == suffix]
        used = Counter(one.origin for one in mine if one.origin)
        doubtful = frozenset(origin for origin, times in used.items() if times > 1)
        sizes = Counter(one.generation for one in mine if one.generation)
        filled = Counter(one.generation for one in mine if one.generation and not one.empty)
        generations: list[str | None] = [*sorted(sizes, key=lambda one: (filled[one], sizes[one], one))] or [None]
        largest = generations[-1]
        for generation in generations:
            alike = tuple(one for one in mine if (one.generation or largest) == generation)
            found.append(Comparable(suffix, alike, len(sizes) < 2, doubtful))
    return found
