"""What a server claims to hold, and how two such claims compare: vectors are origin -> (first, last) position.

Positions are order keys (`workbench.model`): comparing their text is comparing the positions, nothing is parsed.
"No position" is None and lies below every position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

KNOWN, NOTHING_SEEN, MALFORMED = "known", "nothing_seen", "malformed"


@dataclass(frozen=True, slots=True)
class Span:
    """What a vector says of one origin: the first position since the vector began, and the last one held."""

    min: str | None = None
    max: str | None = None

    @property
    def state(self) -> str:
        """`known`; `nothing_seen` (the origin is listed, no change of it came); `malformed` (one end only, or reversed).

        Malformed is not the same as nothing seen: a server that holds a last position without a first one treats the
        origin as unknown, and would send or ask for everything of it.
        """
        if self.min is None and self.max is None:
            return NOTHING_SEEN
        return KNOWN if self.min is not None and self.max is not None and self.min <= self.max else MALFORMED


Vector = Mapping[str, Span]


def last(vector: Vector, origin: str) -> str | None:
    """The last position that the vector claims of the origin; None without one."""
    span = vector.get(origin)
    return span.max if span else None


def covers(vector: Vector, origin: str, position: str) -> bool:
    """True if the vector claims the position: it lies at or below the last one of its origin."""
    held = last(vector, origin)
    return held is not None and position <= held


def newer(ahead: Vector, behind: Vector) -> list[str]:
    """Origins of which `ahead` claims more than `behind`, in the order of `ahead`; one without a position claims nothing."""
    return [
        origin for origin, span in ahead.items() if span.max is not None and span.max > (last(behind, origin) or "")
    ]


def gaps(ahead: Vector, behind: Vector) -> dict[str, tuple[str | None, str]]:
    """What `ahead` claims and `behind` does not: origin -> (after this position, up to this one); None: from the first."""
    return {origin: (last(behind, origin), ahead[origin].max or "") for origin in newer(ahead, behind)}


def advanced(vector: Vector, origin: str, position: str) -> dict[str, Span]:
    """The vector after the position was seen; an origin that was not listed, or had seen nothing, begins there.

    A position above the last one moves it; one below the first one moves that; any other changes nothing.
    """
    span = vector.get(origin, Span())
    low = position if span.min is None or position < span.min else span.min
    high = position if span.max is None or position > span.max else span.max
    return {**vector, origin: Span(low, high)}


def floor(vectors: Iterable[Vector]) -> dict[str, str | None]:
    """The smallest last position of each origin that any of the vectors lists: what all hold. None: one holds nothing.

    >>> floor([{"1": Span("a", "c")}, {"1": Span("a", "b"), "2": Span("d", "d")}])
    {'1': 'b', '2': None}
    """
    vectors = list(vectors)
    origins = dict.fromkeys(origin for vector in vectors for origin in vector)
    return {origin: min(last(vector, origin) or "" for vector in vectors) or None for origin in origins}


IN_SYNC, BEHIND, AHEAD, ONLY_LEFT, ONLY_RIGHT, NEITHER = (
    "in_sync",
    "behind",
    "ahead",
    "only_left",
    "only_right",
    "neither",
)


def compare(left: Vector, right: Vector) -> dict[str, str]:
    """How `right` stands to `left` per origin of either: in_sync, behind, ahead, or whose claim is the only one."""
    relations = {}
    for origin in dict.fromkeys((*left, *right)):
        mine, theirs = last(left, origin), last(right, origin)
        if mine is None or theirs is None:
            relations[origin] = NEITHER if mine is theirs else ONLY_RIGHT if mine is None else ONLY_LEFT
        else:
            relations[origin] = IN_SYNC if mine == theirs else BEHIND if theirs < mine else AHEAD
    return relations
