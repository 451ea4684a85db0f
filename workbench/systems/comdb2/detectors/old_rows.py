"""Rows of the registry that tell of an older state: nodes that go on, and whose reports do not arrive there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, first_few, step
from workbench.systems.comdb2.detectors.shown import evidence_of, place_text, some, span_text, tiers_of

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def reports_stand_still(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that got on since their last report, which is older than the limit; once, where that is so of the whole registry."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        old = {name: tiers.outrun_rows[name] for name in tiers.members[source] if name in tiers.outrun_rows}
        if whole := [name for name, row in old.items() if row.whole]:
            yield _registry_stands_still(tiers, source, whole)
        for name in (one for one, row in old.items() if row.goes_on and not row.whole):
            yield _row_stands_still(tiers, source, name)


def _registry_stands_still(tiers: Tiers, source: str, names: list[str]) -> Finding:
    ages = [tiers.seen.age(name) or 0.0 for name in names]
    return Finding(
        "REPORTS_STAND_STILL",
        "warning",
        f"the rows of all {len(names)} nodes that answer are old, those of {source} among them: {span_text(min(ages))} to "
        f"{span_text(max(ages))}: the registry takes no reports any more, and its rows tell nothing of how the nodes are now",
        origin=source,
        evidence=first_few(evidence_of(tiers, name) for name in names),
        fix=(
            step(
                "see that the database that holds the registry is there and takes writes, then collect again",
                "who pulls goes on pulling without it; who registers anew meanwhile finds no source",
                f"restart none of {some(names)} before: a node registers when it starts",
            ),
        ),
    )


def _row_stands_still(tiers: Tiers, source: str, name: str) -> Finding:
    reported, answered = place_text(tiers.seen.reported(name)), place_text(tiers.seen.probed(name))
    return Finding(
        "REPORTS_STAND_STILL",
        "warning",
        f"{name} answers from {answered} and goes on; its row is {span_text(tiers.seen.age(name) or 0.0)} old and "
        f"says {reported}: its reports do not arrive in the registry any more",
        server=name,
        origin=source,
        items=(reported or "",),
        evidence=(evidence_of(tiers, name),),
        fix=(
            step(
                f"see that {name} reaches the database that holds the registry, and look at what its log says of it",
                "the registry offers nobody a node below the source whose report is older than ten minutes, nor what is below it",
                "do not restart it: it replicates, and while it does not reach the registry it would find no source",
            ),
        ),
    )
