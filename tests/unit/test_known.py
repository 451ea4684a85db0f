"""What the sources of a case hold together, by digests, against the sets themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.engine import position_index
from workbench.engine.digests import mix
from workbench.engine.position_index import HIGHEST, LOWEST, Pair, PositionIndex, Span, UnloggedPositions
from workbench.engine.positions import NONE, Positions, union
from workbench.systems.ds389 import SYSTEM

ORIGINS = ("1", "4711")
Place = tuple[int, int, int]
"""(origin, hi, lo)"""


def positions(some: set[Place]) -> Positions:
    rows = sorted(some, key=lambda place: (place[1], place[2], place[0]))
    return Positions(
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
    )


def places(some: Positions) -> list[Place]:
    return list(zip(some.origin.tolist(), some.hi.tolist(), some.lo.tolist(), strict=True))


@dataclass
class Sets:
    """Some sources as sets, a span, and how wide the buckets are."""

    sources: list[set[Place]]
    span: Span
    shift: int

    @property
    def known(self) -> PositionIndex:
        loose = [UnloggedPositions(positions(one), ORIGINS, self.shift) for one in self.sources]
        return PositionIndex(replace(SYSTEM, bucket_shift=self.shift), loose, ORIGINS)

    def of(self, origin: int, some: set[Place]) -> list[Place]:
        low, high = self.span
        return sorted(place for place in some if place[0] == origin and low < (place[1], place[2]) <= high)

    def held(self, origin: int, among: list[int] | None = None) -> list[Place]:
        chosen = range(len(self.sources)) if among is None else among
        return self.of(origin, set().union(*(self.sources[number] for number in chosen)))


# Small numbers, so that buckets, bounds and positions meet; the largest ones, because there numbers turn into floats.
his = st.one_of(st.integers(0, 40), st.integers((1 << 48) - 20, (1 << 48) - 1))
los = st.sampled_from([0, 1, 2, 0xFFFFFFFF])
bounds: st.SearchStrategy[Pair] = st.one_of(
    st.tuples(his, los), st.sampled_from([LOWEST, HIGHEST]), st.tuples(his, st.just(-1))
)


@st.composite
def sets(draw: st.DrawFn) -> Sets:
    """Sources that are much the same, as the logs of one fleet are."""
    base = draw(st.sets(st.tuples(st.integers(0, 1), his, los), max_size=30))
    sources = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["less", "other", "all", "nothing", "alone"]))
        gone = draw(st.sets(st.sampled_from(sorted(base)), max_size=3)) if base and kind in ("less", "other") else set()
        more = (
            draw(st.sets(st.tuples(st.integers(0, 1), his, los), max_size=3)) if kind in ("other", "alone") else set()
        )
        sources.append((base - gone if kind in ("less", "other", "all") else set()) | more)
    return Sets(sources, Span(draw(bounds), draw(bounds)), draw(st.sampled_from([0, 1, 3, 24, 47])))


@given(sets(), st.integers(0, 1))
@settings(max_examples=600, deadline=None)
def test_what_a_source_lacks(given_: Sets, origin: int) -> None:
    found = given_.known
    for number, mine in enumerate(given_.sources):
        others = set().union(*(other for at, other in enumerate(given_.sources) if at != number))
        assert places(found.lacking(number, ORIGINS[origin], given_.span)) == given_.of(origin, others - mine)


@given(sets(), st.integers(0, 1), st.data())
@settings(max_examples=600, deadline=None)
def test_how_many_there_are(given_: Sets, origin: int, data: st.DataObject) -> None:
    among = (
        data.draw(st.none() | st.lists(st.sampled_from(range(len(given_.sources))), unique=True))
        if given_.sources
        else None
    )
    held = given_.held(origin, among)
    ends = [(place[1], place[2]) for place in (held[0], held[-1])] if held else [None, None]
    assert given_.known.tally(ORIGINS[origin], given_.span, among) == (len(held), *ends)


@given(sets(), st.integers(0, 1), st.integers(1, 8))
@settings(max_examples=600, deadline=None)
def test_all_of_them_piece_by_piece(given_: Sets, origin: int, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(position_index, "_RUN", at_once)
        pieces = list(given_.known.chunks(ORIGINS[origin], given_.span))
        lacking = [given_.known.lacking(number, ORIGINS[origin], given_.span) for number in range(len(given_.sources))]
    assert all(len(piece) for piece in pieces)
    assert [place for piece in pieces for place in places(piece)] == given_.held(origin)
    for number, mine in enumerate(given_.sources):
        others = set().union(*(other for at, other in enumerate(given_.sources) if at != number))
        assert places(lacking[number]) == given_.of(origin, others - mine)


def test_one_more_that_is_no_more() -> None:
    """Of {a, b} and {c} the digests differ by one in number; their exclusive or is a position like any other."""
    a, b, c = (0, 0b0011, 5), (0, 0b0101, 5), (0, 0b1001, 5)
    whole = Sets([{a, b}, {c}], Span(LOWEST, HIGHEST), 24)
    assert (0, a[1] ^ b[1] ^ c[1], 5) not in (a, b, c)
    assert places(whole.known.lacking(1, "1", whole.span)) == [a, b]
    assert places(whole.known.lacking(0, "1", whole.span)) == [c]


def test_a_single_difference_is_found_without_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    every = {(0, hi, 7) for hi in range(100)}
    whole = Sets([every, every - {(0, 50, 7)}], Span(LOWEST, HIGHEST), 24)
    found = whole.known

    def never(*bounds: Pair) -> Positions:
        raise AssertionError("read")

    for source in found.sources:
        monkeypatch.setattr(source, "between", never)
    assert places(found.lacking(1, "1", whole.span)) == [(0, 50, 7)]


def test_equal_counts_and_exclusive_ors_are_not_taken_for_equal() -> None:
    """{0, 3} and {1, 2} have the same number and the same exclusive or; only the mix tells them apart."""
    left, right = {(0, 0, 1), (0, 3, 1)}, {(0, 1, 1), (0, 2, 1)}
    whole = Sets([left, right], Span(LOWEST, HIGHEST), 24)
    assert places(whole.known.lacking(0, "1", whole.span)) == sorted(right)
    assert whole.known.tally("1", whole.span)[0] == 4
    both = mix(np.array([0, 3]), np.array([1, 1])).sum(), mix(np.array([1, 2]), np.array([1, 1])).sum()
    assert both[0] != both[1]


@given(st.lists(st.sets(st.tuples(st.integers(0, 1), his, los), max_size=12), max_size=4))
@settings(max_examples=300, deadline=None)
def test_sets_of_positions(given_: list[set[Place]]) -> None:
    whole = union(map(positions, given_))
    every = set().union(*given_)
    assert places(whole) == places(positions(every))
    for one in given_:
        mine = positions(one)
        assert mine.within(whole).all()
        assert set(places(whole.minus(mine))) == every - one
        assert whole.within(mine).tolist() == [place in one for place in places(whole)]
    assert places(union([])) == places(NONE) == []
