"""Comparing vectors, against the obvious over every pair of small ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

from workbench.rules import vectors

SPANS = [None, (None, None), ("a", "b"), ("b", "b"), ("c", "d"), (None, "c"), ("c", None), ("d", "a")]
"""An origin that is not listed; one of which nothing was seen; three well-formed ones; three malformed ones."""
POSITIONS = ["a", "b", "c", "d", "e"]


def small(module: ModuleType) -> Iterator[dict[str, Any]]:
    for one, other in product(SPANS, SPANS):
        yield {rid: module.Span(*span) for rid, span in (("1", one), ("2", other)) if span}


def check_vectors(module: ModuleType) -> None:
    """Everything that the module says of vectors, asked of the module or of a copy with a fault in it."""
    states = [module.Span(*span).state for span in SPANS if span]
    assert states == ["nothing_seen", "known", "known", "known", "malformed", "malformed", "malformed"]
    every = list(small(module))
    for left in every:
        highest = {rid: left[rid].max if rid in left else None for rid in ("1", "2", "3")}
        for rid in highest:
            assert module.last(left, rid) == highest[rid]
        for rid, position in product(("1", "2", "3"), POSITIONS):
            held = [known for known in POSITIONS if highest[rid] and known <= highest[rid]]
            assert module.covers(left, rid, position) == (position in held)
            before = dict(left)
            after = module.advanced(left, rid, position)
            assert left == before
            assert {other: span for other, span in after.items() if other != rid} == {
                other: span for other, span in left.items() if other != rid
            }
            span = left.get(rid, module.Span())
            assert after[rid].min == min(end for end in (span.min, position) if end)
            assert after[rid].max == max(end for end in (span.max, position) if end)
        for right in every:
            check_pair(module, left, right)


def check_pair(module: ModuleType, left: dict[str, Any], right: dict[str, Any]) -> None:
    ahead, relations, lowest = [], {}, {}
    for rid in [*left, *(rid for rid in right if rid not in left)]:
        mine, theirs = (side[rid].max if rid in side else None for side in (left, right))
        if mine and (not theirs or mine > theirs):
            ahead.append(rid)
        relations[rid] = {
            (False, False): "neither",
            (True, False): "only_left",
            (False, True): "only_right",
            (True, True): "in_sync" if mine == theirs else "ahead" if (theirs or "") > (mine or "") else "behind",
        }[bool(mine), bool(theirs)]
        lowest[rid] = min(mine, theirs) if mine and theirs else None
    assert module.newer(left, right) == ahead
    assert module.gaps(left, right) == {rid: (right[rid].max if rid in right else None, left[rid].max) for rid in ahead}
    assert list(module.compare(left, right).items()) == list(relations.items())
    assert list(module.floor(iter([left, right])).items()) == list(lowest.items())


def test_vectors_say_what_their_positions_say() -> None:
    check_vectors(vectors)


def test_what_all_hold_is_nothing_if_nobody_is_asked() -> None:
    assert vectors.floor([]) == {}
