"""Changes that never arrive as the links are: none leads to the server that waits, or none from a server that has them.

h was a hub, and was made a supplier; a and b feed it, and it feeds r alone:
    what h writes stands on h and r, and no link leads from there to a or b
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.diagnosis.gone_links import telling
from workbench.model import listed
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Row


def unlinked(context: DetectorContext, row: Row) -> bool:
    """True if the links of all servers are known, and none leads to the one that waits."""
    to_it = (link.consumer in (None, row["server"]) for link in context.topology.links if link.suffix == row["suffix"])
    return _known(context, row) and not any(to_it)


def without_way(context: DetectorContext, row: Row) -> str:
    """Why what a server waits for never comes, in words, where the links of all are known; empty: a link leads there."""
    server, suffix = row["server"], row["suffix"]
    if unlinked(context, row):
        return f"no link leads to {server}"
    blind = any(link.consumer is None for link in context.topology.links if link.suffix == suffix)
    if blind or not _known(context, row):
        return ""
    first = context.topology.system.typed(row["first"]) or ""
    mine = [one for one in context.topology.replicas if one.suffix == suffix]
    have = {one.server for one in mine if (last(one.seen(), row["origin"]) or "") >= first}
    if not have or have & context.linked.above(server, suffix, only_running=False):
        return ""
    return f"no link leads from {listed(sorted(have), 'or')} to {server}, directly or through others"


def _known(context: DetectorContext, row: Row) -> bool:
    shown, suffix = context.topology, row["suffix"]
    there = {one.server for one in shown.replicas if one.suffix in (None, suffix) and one.tells}
    links = [link for link in shown.links if link.suffix == suffix]
    if shown.pulling or shown.system.streaming or shown.system.tiering or shown.down:
        return False
    if any(link.consumer not in there for link in links):
        return False
    mine = [one for one in shown.replicas if one.suffix == suffix]
    sending, makers = {link.supplier for link in links} | telling(context), {one.origin for one in mine}
    told = all(one.server in sending for one in mine if one.keeps_log and one.server != row["server"])
    return told and all(origin in makers for one in mine for origin in one.vector)
