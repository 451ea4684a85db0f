"""What inputs are made of: CIDs and ranges as lists, and how answers write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from workbench.replication.entry.rules.entries import Cid as CidPair
from workbench.replication.entry.rules.entries import Ranges as RangesOf

LARGEST = 2**64
"""No time is later: nanoseconds since 1970 fit."""


def _as_pair(given: Any) -> Any:
    """A list as it is in JSON, as a pair."""
    return tuple(given) if isinstance(given, list) else given


def _in_order(ends: tuple[int, int]) -> tuple[int, int]:
    if ends[0] > ends[1]:
        raise ValueError("a range ends before it begins")
    return ends


def _pair_of(kinds: type, words: str) -> Any:
    return Annotated[kinds, BeforeValidator(_as_pair), WithJsonSchema({"type": "array", "format": words})]


Time = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]

if TYPE_CHECKING:
    Cid = CidPair
    Ranges = RangesOf
else:
    Cid = _pair_of(tuple[Time, str], "[time, server]")
    Ranges = dict[str, Annotated[_pair_of(tuple[Time, Time], "[first, last]"), AfterValidator(_in_order)]]


def listed(ranges: RangesOf) -> dict[str, list[int]]:
    """Ranges as an answer writes them."""
    return {origin: list(ends) for origin, ends in ranges.items()}


def listed_or_none(ranges: Mapping[str, tuple[int, int]]) -> dict[str, list[int]] | None:
    """Ranges as an answer writes them; None where there are none."""
    return listed(ranges) or None
