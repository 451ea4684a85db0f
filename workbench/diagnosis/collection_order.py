"""Findings that rest on the order in which servers were collected, or on a log that was not cut meanwhile: they say so.

log of m ends with commit 4, s applied 6     the log was read before s was asked, or m lost its end
S@s1 told {9:500}, A@a1 later {9:900}        S@s1 went on meanwhile, or was cut back from there
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.model import Finding
from workbench.replication.stream.diagnosis.appliers import told_beyond
from workbench.replication.tier.diagnosis.heads import proven_beyond
from workbench.rules.assumptions import LOG_READ_FIRST, NOT_CUT_BACK

if TYPE_CHECKING:
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.replication.stream.diagnosis.log_comparison import Streams
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

PENDING, GAP = "PENDING_CHANGES", "QUEUE_GAP"


def with_order(findings: Iterable[Finding], verdicts: Verdicts) -> Iterator[Finding]:
    """The same findings, those that would be others if servers had been collected in another order with that."""
    of_streams = _past_a_log(verdicts.streams) if verdicts.streams is not None else frozenset[str]()
    of_tiers = _below_a_proven_head(verdicts.tiers) if verdicts.tiers is not None else frozenset[str]()
    for finding in findings:
        if finding.code in (PENDING, GAP) and finding.server in of_streams:
            yield replace(finding, assumes=(*finding.assumes, LOG_READ_FIRST))
        elif finding.code == PENDING and finding.server in of_tiers:
            yield replace(finding, assumes=(*finding.assumes, NOT_CUT_BACK))
        else:
            yield finding


def _past_a_log(streams: Streams) -> frozenset[str]:
    """The replicas of a master whose log ends before what one of them applied or has in its queue."""
    ends = {name: log.last_commit for name, log in streams.logs.items() if log.by_commit}
    early = {
        name
        for name, last in ends.items()
        if last is not None and told_beyond(streams.applied, streams.logs[name]).top > last
    }
    return frozenset(replica.server for replica in streams.applied if replica.source in early)


def _below_a_proven_head(tiers: Tiers) -> frozenset[str]:
    """The nodes of trees whose source is further than it told itself, by a later row of another node."""
    return frozenset(
        name
        for source in tiers.sources
        if proven_beyond(tiers, source) is not None
        for name in tiers.members[source]
        if name not in tiers.roots(source)
    )
