"""What earlier snapshots prove of logs, and nothing that was collected since shows to be over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import ITEMS_SHOWN, Finding, first_few, step
from workbench.systems.comdb2.detectors.shown import place_text, tiers_of

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def parted_before(context: DetectorContext) -> Iterator[Finding]:
    """Logs that had other records than the source's in an earlier snapshot, where nothing shows that they came together since."""
    tiers = tiers_of(context)
    for parting in tiers.earlier.partings:
        name, places = parting.server, [place_text(place) or "" for place in parting.places]
        yield Finding(
            "LOG_DIVERGED",
            "warning",
            f"{name}: in snapshot {parting.snapshot} it had other records than {parting.reference} at {parting.count:,} "
            f"place{'s' if parting.count > 1 else ''}, from {places[0]} on; no later dump of its log reaches over that place, "
            "and nothing shows that it cut them off",
            server=name,
            origin=tiers.source_of(name),
            items=tuple(places[:ITEMS_SHOWN]),
            evidence=first_few(({"snapshot": parting.snapshot, "at": place} for place in places), parting.count),
            fix=(
                step(
                    f"read the logs of {name} and {parting.reference} once more from {places[0]} on",
                    "ends at the same place are no proof: two histories may be equally long",
                    f"if they still differ, or {name} has that file no more and counts no cut since: do what LOG_DIVERGED says "
                    f"of {name} in snapshot {parting.snapshot} (`workbench diagnose --as-of {parting.snapshot}`)",
                ),
            ),
        )
