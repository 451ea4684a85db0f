"""How a plan counts what servers lack: as the diagnosis does, which knows more of some servers than the model of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.diagnosis_text import how_it_arrives
from workbench.rules.repair_model import MissingAt, Model

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = dict[str, Any]
"""What one server lacks: `server`, `suffix`, `missing`, `pending`."""


class PlanCounts:
    """The counts of one suffix. A style adds what its model does not know.

    model      as the case shows it, before anything is tried on it
    unjudged   what the model takes for lacking and the diagnosis does not: it is counted neither now nor afterwards
    too_young  server -> how many changes it waits for that were made after the logs were read
    """

    def __init__(self, context: DetectorContext, suffix: str | None, model: Model) -> None:
        self.context, self.suffix, self.model = context, suffix, model
        self.unjudged = frozenset[MissingAt]()
        self.too_young: dict[str, int] = {}

    def as_diagnosed(self, rows: Iterable[Row]) -> None:
        """Put the numbers of the diagnosis into the rows that the model gives of what is so now."""

    def afterwards(self, row: Row, done: Model, hidden: frozenset[MissingAt]) -> None:
        """Count the same in a row that the model gives of when all is done.

        hidden  what counts as waiting, though the model passes over it (`hidden_without_steps`)
        """

    def newer(self, running: Model) -> Mapping[str, tuple[int, int]]:
        """Server -> how many changes that no log can have yet come to it over the links of a model, and how many do not."""
        return {}

    def passed_over(self) -> tuple[frozenset[MissingAt], list[str]]:
        """What servers wait for, and what the next session goes past because no log has it; and what a plan says of that."""
        return frozenset(), []

    def filled_inside(self, before: Model, after: Model) -> int:
        """How many changes a way brings that only the diagnosis counts as lacking."""
        return 0

    def not_judged(self, done: Model | None) -> int:
        """How many of the stretches that nobody can judge are open when all is done."""
        return sum(row["suffix"] == self.suffix for row in self.context.verdicts.unknown)

    def stuck(self, server: str) -> list[Mapping[str, Any]]:
        """What a server waits for and no collected server would send or pass on."""
        return [row for row in self.waiting(server) if how_it_arrives(row) != "waiting"]

    def waiting(self, server: str) -> list[Mapping[str, Any]]:
        """What a server waits for, by the diagnosis."""
        return [x for x in self.context.verdicts.pending if (x["server"], x["suffix"]) == (server, self.suffix)]

    def missing(self, server: str) -> int:
        """How many changes a server misses, by the diagnosis."""
        found = self.context.verdicts.missing
        return sum((row["server"], row["suffix"]) == (server, self.suffix) for row in found)
