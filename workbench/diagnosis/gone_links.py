"""Links that the snapshot before shows and this one does not: what used to bring a server what it waits for."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from workbench.intake.links import listing
from workbench.model import listed

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def telling(context: DetectorContext) -> set[str]:
    """The servers whose list of links was collected with the last snapshot, be it empty."""
    shown = context.topology.snapshot
    return {server for (label, _), server in listing(context.case.inputs).items() if label == shown}


def gone_links(context: DetectorContext, consumers: Collection[str], suffix: str | None) -> str:
    """The links to any of these servers that are gone since the snapshot before, as the end of a sentence; empty: none is known.

    Of a server whose list of links was not collected again nothing is known.
    """
    before, shown = context.earlier, context.topology
    if before is None:
        return ""
    again = telling(context)
    kept = {(link.supplier, link.suffix, link.name) for link in shown.links}
    gone = sorted(
        {
            f"{link.name} from {link.supplier} to {link.consumer}"
            for link in before.links
            if link.consumer in consumers and link.suffix == suffix and link.supplier in again
            if (link.supplier, link.suffix, link.name) not in kept
        }
    )
    if not gone:
        return ""
    the = f"the link {gone[0]} is" if len(gone) == 1 else f"the links {listed(gone, 'and', 3)} are"
    return f"; {the} gone since the snapshot before"
