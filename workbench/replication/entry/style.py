"""The style of entries that carry the ids of their changes, as the contract asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.contracts.replication import Explanation, PlanGrounds, Sections
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.engine.logs import StoredLog
from workbench.model import Finding, System
from workbench.replication.entry.diagnosis.gone_verdicts import with_gone
from workbench.replication.entry.diagnosis.state_comparison import judged_by_entry, pulls, verdicts_by_entry
from workbench.replication.entry.plan_counts import EntryCounts
from workbench.replication.entry.plan_model import model_of_entries
from workbench.replication.entry.sections import floors_text
from workbench.rules.repair_model import Model
from workbench.rules.send_session import SENT
from workbench.topology.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.diagnosis.detector_context import DetectorContext


class EntryReplication:
    """Servers keep no log: each entry carries the ids of its changes, and consumers ask for what their ranges lack."""

    def judge(
        self, case: Case, shown: Topology, limit: int, rules: str | None = None, spark: SparkSession | None = None
    ) -> tuple[list[dict[str, Any]], Verdicts]:
        """By the states of all entries; with a session what servers lack also by Spark."""
        pairs = pulls(case, shown, rules)
        return pairs, judged_by_entry(case, shown, pairs, limit, spark)

    def tables(self, judged: Verdicts, limit: int) -> Mapping[str, list[dict[str, Any]]]:
        """None of its own."""
        return {}

    def grounded(self, findings: Iterable[Finding], judged: Verdicts) -> Iterator[Finding]:
        """They say themselves what they take for granted."""
        yield from findings

    def sections(self, system: System, found: Mapping[str, Any]) -> Sections:
        """Up to where each server has come, and what may be forgotten."""
        return Sections(outlook=floors_text(system, found))

    def plan_model(self, context: DetectorContext, suffix: str | None, grounds: PlanGrounds) -> Model:
        """Of all entries together, with who may pull from whom."""
        return model_of_entries(context, suffix)

    def plan_counts(self, context: DetectorContext, suffix: str | None, model: Model) -> EntryCounts:
        """With what only earlier files show."""
        return EntryCounts(context, suffix, model)

    def explain(
        self, case: Case, shown: Topology, position: str, logs: Mapping[str, StoredLog] | None = None
    ) -> Explanation:
        """By the states of entries and the ranges; and what each server would answer."""
        told = with_gone(case, shown, position, verdicts_by_entry(case, shown, position))
        return Explanation(position, told, partial(_answerers, case, shown))


def _answerers(case: Case, shown: Topology, key: str, consumer: str, suffix: str | None) -> Iterator[dict[str, Any]]:
    """What each other server would answer, and whether the change is in what it would send."""
    show, origin = shown.system.show, shown.system.origin_of(key)
    for row in pulls(case, shown):
        if (row["consumer"], row["suffix"]) == (consumer, suffix):
            sender = {name: row[name] for name in ("supplier", "link", "link_enabled", "decision")}
            after, upto = row["owed"].get(origin, ("", ""))
            why = row["reasons"][-1]["says"] if row["reasons"] else ""
            yield {**sender, "outcome": SENT if after < show(key) <= upto else None, "why": why}
