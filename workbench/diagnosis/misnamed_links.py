"""Links that name one collected server and lead to another one, where no other link of the supplier leads to the named one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.model import step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link, Topology


def meant_for(shown: Topology, link: Link) -> str | None:
    """The server that the link names though it leads to another one; None: its name is no evidence of that.

    b-to-h leads to the address of r, and no link of b to that of h        h
    b-to-h leads to the address of r, b-to-r does, too, and is on          None: two lead to one server
    """
    others = [
        one for one in shown.links if (one.supplier, one.suffix) == (link.supplier, link.suffix) and one is not link
    ]
    if link.consumer is None or link.consumer in {one.consumer for one in others if one.enabled is not False}:
        return None
    servers = {one.server for one in shown.replicas if one.suffix == link.suffix} - {link.supplier}
    named = [server for server in sorted(servers) if _names(link.name, server)]
    if len(named) != 1 or named[0] == link.consumer or _names(link.name, link.consumer, loosely=True):
        return None
    leads_there = any(named[0] in (one.consumer, one.failure and one.failure.means) for one in others)
    return None if leads_there else named[0]


def address_first(context: DetectorContext, link: Link) -> Mapping[str, str | None] | None:
    """What comes before such a link is switched on: where it is to lead; None for another link."""
    meant = meant_for(context.topology, link)
    if meant is None:
        return None
    return step(
        f"see first where {link.name} is to lead: correct its address, or rename it",
        f"its name says {meant}, and its address is that of {link.consumer}: switched on as it is, it feeds {link.consumer}, and "
        f"{meant} gets nothing from {link.supplier} itself",
    )


def _names(name: str, server: str, loosely: bool = False) -> bool:
    """True if a server stands in the name of a link as a whole word; `loosely`: also west1 as west-1."""
    word = r"[^0-9A-Za-z]*".join(re.findall("[0-9A-Za-z]", server)) if loosely else re.escape(server)
    found = rf"(?:^|[^0-9A-Za-z]){word}(?:$|[^0-9A-Za-z])"
    return re.search(found, name, re.IGNORECASE) is not None
