"""Nodes that stand beyond their source: when one of them connects anew, it cuts off what its source does not have.

S@s1 {9:1000}, A@a2 {9:1400}, asked in one go; no row says from whom A@a2 pulls
    registered, A@a2 looks for the newest commit that both have: what stands behind {9:1000} is thrown away
S@s1 {9:1000}, A@a1 {9:1400}, which pulls from it
    asked a moment after S@s1, A@a1 may simply have got more meanwhile
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from workbench.replication.tier.rules.conditions import ORPHAN, STOPPED
from workbench.replication.tier.rules.tiers import Lsn

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

IN_ONE_GO = timedelta(minutes=10)
"""Nodes that are asked one after the other are asked within that long."""


def gets_nothing(tiers: Tiers, name: str) -> bool:
    """Whether no row says that a node pulls, or its replication was stopped: it is where it was, whenever it was asked."""
    place = tiers.place(name)
    alone = tiers.states[name] == ORPHAN and tiers.seen.knows_pulls_of(name) and not (place and place.parents)
    return alone or tiers.states[name] == STOPPED


def stands_beyond(tiers: Tiers, name: str) -> Lsn | None:
    """The end of the source's log, if a node below it that was asked before it, or that gets nothing, answered a place behind."""
    source, last = tiers.source_of(name) or "", tiers.seen.probed(name)
    probe, head = tiers.seen.probes.get(name), tiers.head(source, True) if source else None
    if name in tiers.roots(source) or name in tiers.guessed or name in tiers.logs.parts or name in tiers.doubts:
        return None
    asked = [tiers.seen.probes[one]["at"] for one in tiers.roots(source) if tiers.seen.probed(one)]
    if last is None or probe is None or head is None or last <= head or probe["at"] is None or not all(asked):
        return None
    still = gets_nothing(tiers, name) and abs(probe["at"] - max(asked)) <= IN_ONE_GO
    return head if still or min(asked) > probe["at"] else None
