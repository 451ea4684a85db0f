"""What the model of a plan does not know of servers without a log: changes that only earlier files show."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.diagnosis.plan_counts import PlanCounts, Row
from workbench.rules.repair_model import MissingAt, Model


class EntryCounts(PlanCounts):
    """What no server has any more is missing now and afterwards."""

    def as_diagnosed(self, rows: Iterable[Row]) -> None:
        """The model knows of the rest."""
        for row in rows:
            row["missing"] += self._gone(row["server"])

    def afterwards(self, row: Row, done: Model, hidden: frozenset[MissingAt]) -> None:
        """Nothing brings it back."""
        row["missing"] += self._gone(row["server"])

    def _gone(self, server: str) -> int:
        gone = self.context.verdicts.gone
        return sum(server in one.missed_by for one in gone if one.change["suffix"] == self.suffix)
