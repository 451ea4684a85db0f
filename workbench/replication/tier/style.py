"""The style of a physical log that is pulled along a tree of nodes, as the contract asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.contracts.replication import Explanation, PlanGrounds, Sections
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.engine.logs import StoredLog
from workbench.model import Finding, System
from workbench.replication.tier.diagnosis.heads import proven_beyond
from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.diagnosis.sources import on_furthest, saving_first
from workbench.replication.tier.diagnosis.tree_rows import judged_by_tier, trees
from workbench.replication.tier.explanation import placed, verdicts_by_tier, would_give
from workbench.replication.tier.plan_counts import TierCounts
from workbench.replication.tier.plan_model import model_of_tiers
from workbench.replication.tier.sections import tiers_text
from workbench.rules.assumptions import NOT_CUT_BACK
from workbench.rules.repair_model import Model
from workbench.rules.send_session import NOTHING, SEND, SENT
from workbench.topology.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.diagnosis.detector_context import DetectorContext


class TierReplication:
    """Nodes pull the log of a source from each other, as a registry places them in a tree."""

    def judge(
        self, case: Case, shown: Topology, limit: int, rules: str | None = None, spark: SparkSession | None = None
    ) -> tuple[list[dict[str, Any]], Verdicts]:
        """By registry, reports and dumps of logs; with a session dumps also by Spark."""
        return judged_by_tier(case, shown, limit, spark)

    def tables(self, judged: Verdicts, limit: int) -> Mapping[str, list[dict[str, Any]]]:
        """The trees."""
        return {"trees": trees(judged.tiers)} if judged.tiers is not None else {}

    def grounded(self, findings: Iterable[Finding], judged: Verdicts) -> Iterator[Finding]:
        """What rests on the database that is taken for the source, and on a log that was not cut back between two reports."""
        tiers = judged.tiers
        below = _below_a_proven_head(tiers) if tiers is not None else frozenset[str]()
        for finding in saving_first(on_furthest(findings, tiers), tiers):
            rests = finding.code == "PENDING_CHANGES" and finding.server in below
            yield replace(finding, assumes=(*finding.assumes, NOT_CUT_BACK)) if rests else finding

    def sections(self, system: System, found: Mapping[str, Any]) -> Sections:
        """The trees, which are the matrix."""
        return Sections(tiers_text(found), pairs_shown=not found["trees"])

    def plan_model(self, context: DetectorContext, suffix: str | None, grounds: PlanGrounds) -> Model:
        """Of the tree, with what each node has and asks for."""
        assert context.verdicts.tiers is not None
        return model_of_tiers(context.verdicts.tiers, context.verdicts.pending)

    def plan_counts(self, context: DetectorContext, suffix: str | None, model: Model) -> TierCounts:
        """With the records of the nodes."""
        return TierCounts(context, suffix, model)

    def explain(
        self, case: Case, shown: Topology, position: str, logs: Mapping[str, StoredLog] | None = None
    ) -> Explanation:
        """By how far each node is, and whether another one could give it the record."""
        tiers = Tiers(case, shown)
        key = placed(tiers, position)
        return Explanation(key, verdicts_by_tier(tiers, key), partial(_pulled, tiers))


def _below_a_proven_head(tiers: Tiers) -> frozenset[str]:
    """The nodes of trees whose source is further than it told itself, by a later row of another node.

    S@s1 told {9:500}, A@a1 later {9:900}     S@s1 went on meanwhile, or was cut back from there
    """
    return frozenset(
        name
        for source in tiers.sources
        if proven_beyond(tiers, source) is not None
        for name in tiers.members[source]
        if name not in tiers.roots(source)
    )


def _pulled(tiers: Tiers, key: str, consumer: str, suffix: str | None) -> Iterator[dict[str, Any]]:
    """Whether each other node could give the record to this one."""
    for supplier, link, sent, why in would_give(tiers, key, consumer):
        sender = {"supplier": supplier, "link": link, "link_enabled": True if link else None}
        yield {**sender, "decision": SEND if sent else NOTHING, "outcome": SENT if sent else None, "why": why}
