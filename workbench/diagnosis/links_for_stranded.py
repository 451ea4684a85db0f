"""Stranded changes that wait for nothing but a link: their server is a supplier, and a session of it would send them all.

both agreements of carl were deleted, and it made 59 changes since    alba and bern wait for them, and no link leads to them
an agreement is made from carl to alba                                a session brings alba all 59, and alba passes them on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.closed_ways import has_some, unlogged
from workbench.diagnosis.gone_links import gone_links
from workbench.diagnosis.passed_over_changes import passed_over
from workbench.diagnosis.pending_fixes import turned_away
from workbench.model import listed, step
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 3


def agreement_first(
    context: DetectorContext, server: str, rows: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The step that has the stranded changes of one origin sent over a new link; None where nothing proves that it brings all."""
    suffix, origin, typed = rows[0]["suffix"], rows[0]["origin"], context.topology.system.typed
    leads_away = any((link.supplier, link.suffix) == (server, suffix) for link in context.topology.links)
    waiting = [row for row in context.verdicts.pending if (row["suffix"], row["origin"]) == (suffix, origin)]
    missed = any((row["suffix"], row["origin"]) == (suffix, origin) for row in context.verdicts.missing)
    if context.topology.pulling or leads_away or missed or not waiting or any(map(unlogged, waiting)):
        return None
    replica, positions = context.replica(server, suffix), [typed(row["position"]) or "" for row in rows]
    if replica is None or replica.origin != origin:
        return None
    # Its vector is read before its log: what it made in between is of its own origin, and the next vector covers it.
    end = last(replica.vector, origin) or ""
    covered = [position for position in positions if position <= end]
    taking = []
    for pair in context.pairs:
        to = context.replica(pair["consumer"], suffix)
        if (pair["supplier"], pair["suffix"]) != (server, suffix) or to is None or not (to.origin and to.keeps_log):
            continue
        sent = pair["to_send"].get(origin) if has_some(pair, origin) and not pair["unrelated"] else None
        reaches = sent is not None and bool(covered) and (typed(sent["last"]) or "") >= max(covered)
        reaches = reaches and sent is not None and sent["count"] >= len(covered)
        if reaches and not passed_over(context, pair) and not turned_away(context, suffix, server, to.server):
            taking.append(to.server)
    if not taking:
        return None
    them, gone = "it" if len(rows) == 1 else "them", gone_links(context, taking, suffix)
    return step(
        f"make an agreement from {server} to {listed(sorted(taking), 'or', _NAMED)}",
        f"no link leads away from {server}; a session over a new one sends {them}{gone}",
        f"do not initialise {server} before that: it throws {them} away for good, and do not initialise its new consumer over "
        "that agreement either: a session is enough",
    )
