"""What a style of replication answers of a case. Its systems name it (`workbench.model.System.replication`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.case.case import Case
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.diagnosis.plan_counts import PlanCounts
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.engine.logs import StoredLog
    from workbench.model import Finding, System
    from workbench.rules.repair_model import Model
    from workbench.rules.verdicts import Verdict
    from workbench.topology.topology import Topology

Row = Mapping[str, Any]

Senders = Callable[[str, str, str | None], Iterable[Row]]
"""(position, consumer, suffix) -> what each other server would do with the change now."""


@dataclass(frozen=True)
class Explanation:
    """What is known of one change.

    position  its order key, with the origin where a person left that out
    verdicts  of each server on which anything is known of it; empty: nothing names it
    senders   who would send it to a server that lacks it
    """

    position: str
    verdicts: list[Verdict]
    senders: Senders


@dataclass(frozen=True)
class Sections:
    """Parts of the text of a diagnosis that one style alone has.

    tables       behind the changes
    outlook      behind the pair matrix
    pairs_shown  False: what the pair matrix would say, the tables say
    """

    tables: str = ""
    outlook: str = ""
    pairs_shown: bool = True


@dataclass(frozen=True)
class PlanGrounds:
    """What the model of a plan rests on beside the verdicts.

    codes      (code, server, link) of findings
    waiting    codes of findings on a link that opens no session, though its consumer is behind
    unapplied  server -> positions of changes that it answers with success and does not apply
    """

    codes: Iterable[tuple[str, str | None, str | None]] = ()
    waiting: Collection[str] = ()
    unapplied: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Replication(Protocol):
    """One style of replication."""

    def judge(
        self, case: Case, shown: Topology, limit: int, rules: str | None = None, spark: SparkSession | None = None
    ) -> tuple[list[dict[str, Any]], Verdicts]:
        """The pair matrix and the verdicts. With a session both are made once more by Spark; a difference is a Problem."""

    def tables(self, judged: Verdicts, limit: int) -> Mapping[str, list[dict[str, Any]]]:
        """The lists of `findings.json` that this style fills; `servers` are those of which there is nothing but a report."""

    def grounded(self, findings: Iterable[Finding], judged: Verdicts) -> Iterator[Finding]:
        """The same findings, each with what it takes for granted because of how this style replicates."""

    def sections(self, system: System, found: Row) -> Sections:
        """What a diagnosis, in the shape of `findings.json`, says of this style alone, as text."""

    def explain(
        self, case: Case, shown: Topology, position: str, logs: Mapping[str, StoredLog] | None = None
    ) -> Explanation:
        """What is known of one change, by its order key. `logs` remember what was read of them for earlier questions."""

    def plan_model(self, context: DetectorContext, suffix: str | None, grounds: PlanGrounds) -> Model:
        """The model of one suffix, on which repairs are tried."""

    def plan_counts(self, context: DetectorContext, suffix: str | None, model: Model) -> PlanCounts:
        """How a plan counts what the servers of one suffix lack, with what this model of it does not know."""
