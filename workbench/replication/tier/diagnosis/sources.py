"""What findings take for granted where nothing tells which node of a fleet is the source: no registry, and no settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from workbench.model import Finding, step
from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.diagnosis.other_histories import above_of, all_above
from workbench.replication.tier.diagnosis.two_sources import placed_by_kin
from workbench.replication.tier.diagnosis.waiting import saved_first
from workbench.rules.assumptions import FURTHEST_IS_SOURCE, SOURCE_OF_KIN

PARTED = "LOG_DIVERGED"
_ORPHAN = "TOPOLOGY_ORPHAN"
_ON_THE_SOURCE = frozenset({"MISSED_CHANGE", "PENDING_CHANGES", PARTED, "LOG_GAP", "REINIT_REQUIRED", _ORPHAN})


def what_would_tell(tiers: Tiers) -> str:
    """What to collect so that it is known who follows whom: of tables that are there more reading tells no more."""
    settings = "the settings of the nodes"
    return (
        settings if tiers.seen.lists_pulls and tiers.seen.lists_nodes else f"the tables of the registry, or {settings}"
    )


@dataclass(frozen=True)
class OfItsOwn(Finding):
    """What the files of a server alone prove: it stands whichever node is the source."""


def on_furthest(findings: Iterable[Finding], tiers: Tiers | None) -> Iterator[Finding]:
    """The same findings; those that hold a log against one that is only taken for the source say so, and what to collect."""
    kin = placed_by_kin(tiers) if tiers is not None and tiers.source_is_known else frozenset[str]()
    for finding in findings:
        if finding.code in _ON_THE_SOURCE and finding.server in kin:
            finding = replace(finding, assumes=(*finding.assumes, SOURCE_OF_KIN))
        own = isinstance(finding, OfItsOwn)
        if (
            tiers is None
            or tiers.source_is_known
            or own
            or finding.code not in _ON_THE_SOURCE
            or finding.origin is None
        ):
            yield finding
            continue
        first = step(
            f"first collect {what_would_tell(tiers)}",
            f"nothing tells who follows whom: {finding.origin} is taken for the source because no log goes further",
        )
        # Which of two logs is cut back, or copied over, waits until it is known whose is right; to read again does no harm.
        # So does what is done to a node because it is of the source.
        waits = finding.code in (PARTED, _ORPHAN)
        steps = [one for one in finding.fix if not waits or (one["repair"] or "").startswith("read ")]
        yield replace(finding, assumes=(*finding.assumes, FURTHEST_IS_SOURCE), fix=(first, *steps))


def saving_first(findings: Iterable[Finding], tiers: Tiers | None) -> Iterator[Finding]:
    """The same findings; what is done to a node that may be the last to have something, or above such a node, begins with saving
    that.
    """
    for finding in findings:
        yield finding if tiers is None or not finding.fix else _saving_first(finding, tiers)


def _saving_first(finding: Finding, tiers: Tiers) -> Finding:
    for name, kept in tiers.last_holders.items():
        above = {name, *all_above(name, lambda node: above_of(tiers, node))}
        if finding.server in above and finding.server != kept.lost_by:
            caution = {"caution": f"{kept.says}: {name} may be the last to have that"}
            return replace(finding, fix=({**saved_first(tiers, kept), **caution}, *finding.fix))
    return finding
