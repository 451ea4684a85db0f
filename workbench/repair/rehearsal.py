"""A plan done on its model, by the one who will do it on the servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.model import counted
from workbench.repair.plan_types import Plan, Step, Vectors
from workbench.rules.repair_model import Model


class Rehearsal:
    """The model, where a plan is done (`workbench.repair.plan_executor.Site`): it answers as the real servers should."""

    def __init__(self, plan: Plan, models: Mapping[str | None, Model], show: Callable[[str], str] = str) -> None:
        self._plan, self._show = plan, show
        self._models = {suffix: model.copy() for suffix, model in models.items()}
        self._lacked = {}
        for suffix, model in self._models.items():
            # What is on its way counts as arrived. The model itself stays as the case shows it: the first step is checked
            # against the vectors of the plan, and on those nothing has moved yet.
            later = model.copy()
            later.settle()
            self._lacked[suffix] = later.missing() | later.pending()
        self._applied: set[str] = set()

    def vectors(self, suffix: str | None) -> Vectors:
        """What every server of the model claims."""
        return {
            name: {origin: self._show(span.max) for origin, span in server.vector.items() if span.max}
            for name, server in self._models[suffix].servers.items()
        }

    def obstacles(self, step: Step, begun: bool) -> list[str]:
        """None: the model is what the plan was made on."""
        return []

    def memo(self, step: Step) -> dict[str, Any]:
        """Nothing has to be remembered."""
        return {}

    def done(self, step: Step, memo: Mapping[str, Any]) -> bool:
        """True if it was done in this rehearsal."""
        return step.key in self._applied

    def apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        """Let the model do what the step does, once what was on its way has arrived: so it was proven."""
        self._models[step.suffix].settle()
        self._models[step.suffix].do(step.effects)
        self._applied.add(step.key)

    def shortfall(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        """What the plan promised and the model lacks, once the last step of the suffix is done."""
        mine = [one for one in self._plan.steps if one.suffix == step.suffix]
        if step.key != mine[-1].key:
            return []
        return [
            f"{row['server']} still lacks {lacks:,} of {counted(row['count'])} of origin {row['origin']}"
            for row in self._plan.promise
            if row["suffix"] == step.suffix and (lacks := row["count"] - self._came(row))
        ]

    def _came(self, row: Mapping[str, Any]) -> int:
        """How many changes of an origin a server holds that it lacked when all began."""
        model, lacked = self._models[row["suffix"]], self._lacked[row["suffix"]]
        mine = (one for one in lacked & model.held() if one.server == row["server"])
        return model.changes(one for one in mine if model.lots[one.lot].origin == row["origin"])
