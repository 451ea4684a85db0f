"""Positions for changes that a model of a repair makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.model import System
    from workbench.topology.topology import Replica


class FreshPositions:
    """Positions above all that anybody knows, and whose they are."""

    def __init__(self, system: System, replicas: Sequence[Replica]) -> None:
        self._system = system
        known = [span.max for one in replicas for span in one.seen().values() if span.max]
        self._top = max((system.halves(position)[0] for position in known), default=0)
        self._lo = {system.origin_of(position): system.halves(position)[1] for position in known}
        self._origins: dict[str, str] = {}

    def __call__(self, origin: str, number: int) -> str:
        # Not the next one: some rules let the next number of the same second pass where others stop.
        position = self._system.order_key(origin, self._top + (number << 17), self._lo.get(origin, 0))
        self._origins[position] = origin
        return position

    def origin_of(self, position: str) -> str:
        """Whose a position is, also one that the model made."""
        return self._origins.get(position) or self._system.origin_of(position)
