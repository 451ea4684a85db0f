"""The table of a plan for nodes that pull a log in tiers: its model knows ends of logs, and the diagnosis counts records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from workbench.diagnosis.plan_counts import PlanCounts, Row
from workbench.replication.tier.rules.repair_model import MOVED, TierModel
from workbench.rules.repair_model import MissingAt, Model


class _Records(NamedTuple):
    """What a node misses and waits for, in records; and whether the model knows of that.

    What lies behind the end of the source, as only a node below it shows, the model does not know.
    """

    missing: int
    pending: int
    known: bool


class TierCounts(PlanCounts):
    """The records that the diagnosis counts, if it lists all of them."""

    records: dict[str, _Records]

    def as_diagnosed(self, rows: Iterable[Row]) -> None:
        """The numbers of the diagnosis, whatever the model has."""
        self.records = {}
        for row in rows if not self.context.verdicts.cut() else ():
            name = row["server"]
            waits = self.waiting(name)
            row["missing"], row["pending"] = self.missing(name), sum(one["count"] for one in waits)
            known = any(one["suppliers"] for one in waits) or not self._shown_by_others(name)
            self.records[name] = _Records(row["missing"], row["pending"], known)

    def _shown_by_others(self, name: str) -> bool:
        tiers = self.context.verdicts.tiers
        return tiers is not None and tiers.head_above(name) != tiers.known_head(tiers.source_of(name) or "")

    def afterwards(self, row: Row, done: Model, hidden: frozenset[MissingAt]) -> None:
        """A hole stays until the log is replaced; what was not brought waits.

        A node that does not answer gets nothing by a plan; it waits as before, unless it was taken out of the tree.
        """
        name = row["server"]
        if name in self.records:
            assert isinstance(done, TierModel)
            missing, pending, known = self.records[name]
            row["missing"] = max(row["missing"], missing if name in done.spoilt else 0)
            waits = not known and done.condition.get(name) != MOVED
            waits |= done.is_silent(name) and not done.is_out(name)
            row["pending"] = pending if waits else min(row["pending"], pending)

    def filled_inside(self, before: Model, after: Model) -> int:
        """The records that logs lack inside: the model knows the ends alone."""
        assert isinstance(before, TierModel) and isinstance(after, TierModel)
        return sum(self.records[name].missing for name in before.spoilt - after.spoilt if name in self.records)
