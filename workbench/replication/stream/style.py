"""The style of transactions in segments, as the contract asks for it."""

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
from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.diagnosis.rows import applier_rows, copy_rows, log_rows, replica_rows
from workbench.replication.stream.diagnosis.sources import with_sources
from workbench.replication.stream.diagnosis.stream_verdicts import judged_by_stream
from workbench.replication.stream.explanation import named_position, verdicts_by_stream, would_send
from workbench.replication.stream.plan_counts import StreamCounts
from workbench.replication.stream.plan_model import model_of_streams
from workbench.replication.stream.sections import streams_text
from workbench.rules.repair_model import Model
from workbench.rules.send_session import NOTHING, SEND, SENT
from workbench.topology.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.diagnosis.detector_context import DetectorContext

_OF_QUEUES = frozenset({"PENDING_CHANGES", "QUEUE_GAP"})
"""Findings that would be others if servers had been collected in another order, or if a replica had another master."""


class StreamReplication:
    """A source writes transactions to its log; replicas fetch them into a queue and apply them in the order of commits."""

    def judge(
        self, case: Case, shown: Topology, limit: int, rules: str | None = None, spark: SparkSession | None = None
    ) -> tuple[list[dict[str, Any]], Verdicts]:
        """By the logs held against each other; with a session also by Spark."""
        return judged_by_stream(case, shown, limit, spark)

    def tables(self, judged: Verdicts, limit: int) -> Mapping[str, list[dict[str, Any]]]:
        """Logs, copies, appliers and transactions; as servers the replicas of which there is no log."""
        streams = judged.streams
        if streams is None:
            return {}
        return {
            "servers": replica_rows(streams),
            "streams": log_rows(streams),
            "fleet": copy_rows(streams),
            "appliers": applier_rows(streams),
            "transactions": streams.odd(limit),
        }

    def grounded(self, findings: Iterable[Finding], judged: Verdicts) -> Iterator[Finding]:
        """What rests on the source that was taken for that of an origin, and on the order in which servers were collected."""
        streams = judged.streams
        for finding in with_sources(findings, streams.sources if streams is not None else {}):
            of_queue = streams is not None and finding.server is not None and finding.code in _OF_QUEUES
            more = streams.assumes_of_queue(finding.server or "") if streams is not None and of_queue else ()
            yield replace(finding, assumes=tuple(dict.fromkeys((*finding.assumes, *more)))) if more else finding

    def sections(self, system: System, found: Mapping[str, Any]) -> Sections:
        """Logs, copies and appliers."""
        return Sections(streams_text(found), pairs_shown=bool(found["pairs"]))  # one log alone tells all that it can

    def plan_model(self, context: DetectorContext, suffix: str | None, grounds: PlanGrounds) -> Model:
        """Of all logs together: what each has of the stream."""
        assert context.verdicts.streams is not None
        return model_of_streams(context.verdicts.streams)

    def plan_counts(self, context: DetectorContext, suffix: str | None, model: Model) -> StreamCounts:
        """With what queues tell."""
        return StreamCounts(context, suffix, model)

    def explain(
        self, case: Case, shown: Topology, position: str, logs: Mapping[str, StoredLog] | None = None
    ) -> Explanation:
        """By the logs that hold it, and what each other log holds behind the last transaction that both have."""
        streams = Streams(case, shown)
        position = named_position(streams, position)
        return Explanation(position, verdicts_by_stream(streams, position), partial(_streamers, streams))


def _streamers(streams: Streams, key: str, consumer: str, suffix: str | None) -> Iterator[dict[str, Any]]:
    """Whether the transaction is in what each other log holds behind the last one that both have."""
    for supplier, sent, why in would_send(streams, key, consumer):
        sender = {"supplier": supplier, "link": None, "link_enabled": None, "decision": SEND if sent else NOTHING}
        yield {**sender, "outcome": SENT if sent else None, "why": why}
