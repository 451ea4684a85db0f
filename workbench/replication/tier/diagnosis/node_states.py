"""What each node of a tree is doing: the one word for what registry, answer and log say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.replication.tier.diagnosis.commit_times import overdue
from workbench.replication.tier.diagnosis.registering import registering_above
from workbench.replication.tier.diagnosis.standstill import held_above
from workbench.replication.tier.rules import conditions

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def state_of(tiers: Tiers, name: str) -> str:
    """What a node is doing, in the words of the conditions; of a node of the source cluster whether it answers."""
    source = tiers.source_of(name) or ""
    row, place, answered = tiers.seen.nodes.get(name), tiers.place(name), tiers.seen.answered(name)
    # Of one that was seen to get on since its report nothing but its reports stands still.
    goes_on = (old := tiers.outrun_rows.get(name)) is not None and old.goes_on
    age = 0.0 if goes_on else tiers.seen.age(name)
    if tiers.retired(name):
        return conditions.RETIRED
    if (not tiers.source_is_known and answered is not False) or name in tiers.guessed:
        return conditions.UNTOLD
    if name in tiers.roots(source):
        silent = age is not None and age >= tiers.told.stale_after
        return (
            conditions.FROZEN
            if answered is False and silent
            else conditions.UNREACHABLE
            if answered is False
            else (conditions.HUNG if silent and answered is None else conditions.HEALTHY)
        )
    if row is None and answered is None:
        return conditions.UNTOLD
    # Without the registry, or its table of who pulls from whom, only the end of a node's log tells anything of it.
    if row is None or (not tiers.seen.knows_pulls_of(name) and (row["state"] or "").lower() == "active"):
        silent = age is not None and age >= tiers.told.stale_after
        if not answered:
            return conditions.HUNG if silent else conditions.UNREACHABLE if answered is False else _by_lag(tiers, name)
        if tiers.has_no_row(name) and tiers.seen.knows_pulls_of(name) and not (place and place.parents):
            return conditions.ORPHAN
        return conditions.STOPPED if silent else _by_lag(tiers, name)
    parent = tiers.parent(name)
    pulls = bool(place and place.parents) and (answered is False or not tiers.contradicts(name))
    waits = not pulls and row is not None
    offered = tiers.offered(name) if waits and tiers.needs(name) else None
    problem = conditions.problem_of(place)
    if problem == conditions.ORPHAN and pulls and registering_above(tiers, name):
        problem = None
    return conditions.condition(
        conditions.NodeFacts(
            row["state"] if row else None,
            age,
            tiers.told.stale_after,
            answered,
            pulls,
            problem,
            name in tiers.said_stop,
            tiers.last(name),
            tiers.head_above(name),
            parent is not None and held_above(tiers, name, parent),
            None if overdue(tiers, name) else tiers.told.delays.get(name),
            tiers.may_be_served(name) or not tiers.needs(name) or name in tiers.doubts,
            None if offered is None else bool(offered),
            name in tiers.seen.cut_since,
            name in tiers.seen.ahead,
        )
    )


def _by_lag(tiers: Tiers, name: str) -> str:
    if tiers.needs(name) and name in tiers.seen.cut_since:
        return conditions.CUT_BACK
    return conditions.BEHIND if tiers.needs(name) else conditions.HEALTHY
