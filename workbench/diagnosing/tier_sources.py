"""What findings take for granted where nothing tells which node of a fleet is the source: no registry, and no settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from workbench.diagnosing.by_tier import Tiers
from workbench.model import Finding, step
from workbench.rules.assumptions import FURTHEST_IS_SOURCE

PARTED = "LOG_DIVERGED"
_ON_THE_SOURCE = frozenset({"MISSED_CHANGE", "PENDING_CHANGES", PARTED, "LOG_GAP", "REINIT_REQUIRED"})


@dataclass(frozen=True)
class OfItsOwn(Finding):
    """What the files of a server alone prove: it stands whichever node is the source."""


def on_furthest(findings: Iterable[Finding], tiers: Tiers | None) -> Iterator[Finding]:
    """The same findings; those that hold a log against one that is only taken for the source say so, and what to collect."""
    for finding in findings:
        own = isinstance(finding, OfItsOwn)
        if tiers is None or tiers.source_is_known or own or finding.code not in _ON_THE_SOURCE:
            yield finding
            continue
        first = step(
            "first collect the tables of the registry, or the settings of the nodes",
            f"nothing tells who follows whom: {finding.origin} is taken for the source because its log goes furthest",
        )
        # Which of two logs is cut back, or copied over, waits until it is known whose is right; to read again does no harm.
        steps = [one for one in finding.fix if finding.code != PARTED or (one["repair"] or "").startswith("read ")]
        yield replace(finding, assumes=(*finding.assumes, FURTHEST_IS_SOURCE), fix=(first, *steps))
