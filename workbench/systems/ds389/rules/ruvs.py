"""The vector (RUV) of a server: what it says, and what two of them decide before a session is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workbench.rules import vectors
from workbench.rules.vectors import Span, Vector
from workbench.systems.ds389.csn import Element, origin_of, ruv_element, seconds

NOT_INITIALIZED, GENERATION_DIFFERS = "not_initialized", "generation_differs"

STATUS_NOT_INITIALIZED = 19
"""The status of the agreement for both: "not initialized" and "different database generation ID"."""


@dataclass(frozen=True)
class Ruv:
    """The values of nsds50ruv as the server takes them: of two with one replica ID, and of two generations, the first."""

    generation: str | None = None
    elements: Mapping[str, Element] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()

    @property
    def spans(self) -> Vector:
        """Replica ID -> its first and last CSN."""
        return {rid: Span(element.min, element.max) for rid, element in self.elements.items()}


def read_ruv(values: Iterable[str]) -> Ruv:
    """The values as a RUV; those that the server would not take are kept as they are."""
    generation, elements, rejected = None, dict[str, Element](), list[str]()
    for value in values:
        element = ruv_element(value)
        if element.problem:
            rejected.append(value)
        elif element.origin is None:
            generation = generation or element.generation
        else:
            elements.setdefault(element.origin, element)
    return Ruv(generation, elements, tuple(rejected))


def numeric(rids: Iterable[str]) -> list[str]:
    """Replica IDs in the order of their numbers."""
    return sorted(rids, key=int)


def refusal(supplier: Ruv, consumer: Ruv | None) -> str | None:
    """Why the two may not replicate at all; None if they may. An absent generation equals none, not even another absent."""
    if consumer is None:
        return NOT_INITIALIZED
    same = supplier.generation is not None and supplier.generation == consumer.generation
    return None if same else GENERATION_DIFFERS


def newer_than_remembered(local: Vector, remembered: Vector | None) -> list[str]:
    """The replica IDs of which the supplier has more than the consumer had when the last session began."""
    return [] if remembered is None else numeric(vectors.newer(local, remembered))


def opens_session(local: Vector, remembered: Vector | None) -> bool:
    """True if the supplier contacts the consumer: it decides by what it remembers, not by what the consumer has.

    So a consumer that was rolled back is left alone until the supplier gets any further change.
    """
    return remembered is None or bool(newer_than_remembered(local, remembered))


def missing_behind(local: Vector, consumer: Vector, changelog: Iterable[str]) -> list[str]:
    """The changes of the supplier's changelog that its vector claims and the consumer's does not."""
    return sorted(
        csn
        for csn in set(changelog)
        if vectors.covers(local, origin_of(csn), csn) and not vectors.covers(consumer, origin_of(csn), csn)
    )


def seconds_between(left: Span, right: Span) -> int | None:
    """How far the times of the two last CSNs are apart; None unless both have one."""
    return None if left.max is None or right.max is None else abs(seconds(left.max) - seconds(right.max))


def min_differs(left: Span, right: Span) -> bool:
    """True if both have CSNs and begin at different ones: their vectors began at different times, neither lags."""
    return left.min is not None and right.min is not None and left.min != right.min
