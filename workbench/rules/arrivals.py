"""How one change travelled: when it arrived where, by the clocks of those who tell.

Hops are neighbours in the order of arrival, not links: clocks that disagree reorder them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

Arrival = tuple[int, str]
"""(milliseconds, server); they order by time, then by name."""


def first_arrivals(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """The first arrival at each server, in order."""
    first: dict[str, int] = {}
    for at, server in sorted(arrivals):
        first.setdefault(server, at)
    return [(at, server) for server, at in first.items()]


def hops(ordered: Iterable[Arrival]) -> list[tuple[str, str, int]]:
    """(from, to, lag) between neighbours of `first_arrivals`."""
    return [(here, there, later - at) for (at, here), (later, there) in pairwise(ordered)]


def spread(ordered: list[Arrival]) -> int | None:
    """From the first arrival to the last one; None without any."""
    return ordered[-1][0] - ordered[0][0] if ordered else None
