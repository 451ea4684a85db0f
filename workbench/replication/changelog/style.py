"""The style of ordered logs of changes and vectors, as the contract asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.contracts.replication import Explanation, PlanGrounds, Sections
from workbench.diagnosis.unnamed_logs import drop_what_unnamed_logs_hold
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.diagnosis.verdicts import verdicts, verdicts_on
from workbench.engine.logs import StoredLog
from workbench.model import Finding, System
from workbench.replication.changelog.diagnosis.pair_matrix import (
    check_differences,
    check_equal,
    counted_logs,
    pair_matrix,
)
from workbench.replication.changelog.diagnosis.planned_sessions import session_in
from workbench.replication.changelog.plan_counts import LogCounts
from workbench.replication.changelog.plan_model import model_of_logs
from workbench.rules.repair_model import Model
from workbench.topology.topology import Topology, logs_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.diagnosis.detector_context import DetectorContext


class ChangelogReplication:
    """Servers keep ordered logs of changes, and send in sessions what the vector of their consumer does not cover."""

    def judge(
        self, case: Case, shown: Topology, limit: int, rules: str | None = None, spark: SparkSession | None = None
    ) -> tuple[list[dict[str, Any]], Verdicts]:
        """By the digests of logs and a few reads; with a session also by all positions."""
        logs = logs_of(case, shown)
        pairs = pair_matrix(shown, logs, rules)
        if spark is not None:
            check_equal(pairs, pair_matrix(shown, counted_logs(spark, shown, logs), rules))
        judged = verdicts(case, shown, logs, pairs, limit)
        drop_what_unnamed_logs_hold(case, shown, logs, judged)
        if spark is not None:
            check_differences(spark, [known for mine in judged.known.values() for known in mine], logs)
        return pairs, judged

    def tables(self, judged: Verdicts, limit: int) -> Mapping[str, list[dict[str, Any]]]:
        """None of its own."""
        return {}

    def grounded(self, findings: Iterable[Finding], judged: Verdicts) -> Iterator[Finding]:
        """They say themselves what they take for granted."""
        yield from findings

    def sections(self, system: System, found: Mapping[str, Any]) -> Sections:
        """None of its own."""
        return Sections()

    def plan_model(self, context: DetectorContext, suffix: str | None, grounds: PlanGrounds) -> Model:
        """Of all logs together, with their sessions."""
        return model_of_logs(context, suffix, grounds)

    def plan_counts(self, context: DetectorContext, suffix: str | None, model: Model) -> LogCounts:
        """With what no log has."""
        return LogCounts(context, suffix, model)

    def explain(
        self, case: Case, shown: Topology, position: str, logs: Mapping[str, StoredLog] | None = None
    ) -> Explanation:
        """By logs, vectors, results and states; and what each session would do with it."""
        logs = logs_of(case, shown) if logs is None else logs
        return Explanation(position, verdicts_on(case, shown, logs, position), partial(_suppliers, shown, logs))


def _suppliers(
    shown: Topology, logs: Mapping[str, StoredLog], key: str, consumer: str, suffix: str | None
) -> Iterator[dict[str, Any]]:
    """What a session of each other server with this one would do with the change now."""
    for supplier, other, link in shown.pairs():
        if (other.server, other.suffix) == (consumer, suffix):
            planned = session_in(shown, logs, supplier.server, consumer, suffix)
            row: dict[str, Any] = {"supplier": supplier.server, "link": link.name if link else None}
            row |= {"link_enabled": link.enabled if link else None, "decision": planned.row["decision"]}
            row |= {"link_failing": link.blocked if link else None}
            row |= {"link_fails": link.failure.short if link and link.failure and link.blocked else None}
            why = planned.row["reasons"][-1]["says"] if planned.row["reasons"] else ""
            yield {**row, "outcome": planned.outcome_of(key), "why": why}
