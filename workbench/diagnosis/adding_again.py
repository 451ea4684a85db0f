"""The agreements to switch off while an entry is deleted and added again, so that no other server keeps the old entry.

    s1 deletes ann      s3, which never had her, refuses that (32), and does not pass it on
    s1 changes bob      s3 takes that, and passes it on to s2: the vector of s2 covers the deletion now, which never comes
    s1 adds ann again   s2 still has the old ann, and keeps both, as a conflict

The repair is safe if a server without the entry feeds no other server during it (`workbench.rules.interleavings`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from workbench.model import listed

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 6
"""So many agreements are named."""


def apart_meanwhile(
    context: DetectorContext, lacking: Collection[str], suffix: str | None, writer: str = ""
) -> tuple[str, str]:
    """Return the step before an entry is deleted, and the step after it was added again; empty if neither is needed.

    lacking  the servers without the entry
    writer   the server that deletes the entry, and so has the deletion first
    """
    links = [link for link in context.topology.links if link.suffix == suffix and link.enabled is not False]
    cut = [link for link in links if link.supplier in lacking and link.consumer not in {*lacking, writer}]
    if not cut:
        return "", ""
    alike = len({link.name for link in cut}) < len(cut)
    names = sorted(f"{link.name} of {link.supplier}" if alike else link.name for link in cut)
    of_all = f"the {len(cut)} agreements of {listed(sorted({link.supplier for link in cut}))}"
    reached = {writer} if writer else {link.supplier for link in links} - {*lacking}
    left = [link for link in links if link not in cut and not link.blocked]
    while new := {link.consumer for link in left if link.supplier in reached and link.consumer} - reached:
        reached |= new
    alone = sorted({link.consumer for link in cut if link.consumer} - reached)
    gets = "gets" if len(alone) == 1 else "get"
    other = (
        f"see that {listed(alone)} {gets} what {writer or 'the supplier'} sends over another link, " if alone else ""
    )
    these = "this agreement" if len(cut) == 1 else "these agreements"
    return (
        f"{other}switch off {listed(names) if len(names) <= _NAMED else of_all}",
        f"switch {these} on again once every server has what was added",
    )
