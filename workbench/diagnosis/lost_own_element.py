"""Servers whose vector lost what it said of their own changes: no session with them can begin until they make the next change.

bern was made a hub, which took origin 2 out of its vector, and a supplier again; alba and carl name 2 with its first change:

    a session with bern has to begin at that change, the logs of alba and carl were trimmed    nothing is sent, 199 changes wait
    bern makes one change as 2: its vector names the newest change of 2 again                  sessions begin where bern stands

Only where its log or its entries show the newest change that others know of it: else that change would hide what it lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.diagnosis.changes_thrown_away import kept_by_entries
from workbench.diagnosis.closed_ways import runs
from workbench.diagnosis.former_origins import sends
from workbench.diagnosis.former_suppliers import origins_of
from workbench.model import counted, listed, step
from workbench.rules.send_session import ANCHOR_NOT_FOUND, SEND, plan
from workbench.rules.vectors import Span, last

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

SAYS_SO = "BROKEN_VECTOR"
"""Code of the finding that says it of the server."""


class LostElement(NamedTuple):
    """What a server's vector lost.

    origin     as which it makes changes; `again`: as which it made them before it was made a hub, as now it makes none
    suppliers  whose sessions begin once it has made a change, and bring all that waits; `links`: over which
    waits      how many changes wait
    """

    origin: str
    again: bool
    suppliers: tuple[str, ...]
    links: tuple[str, ...]
    waits: int


def lost_elements(context: DetectorContext) -> Mapping[tuple[str, str | None], LostElement]:
    """(server, suffix) -> what its vector lost; ask `context.once`."""
    if not context.topology.system.supplying:
        return {}
    found = {}
    for one in context.topology.replicas:
        about = one.server, one.suffix
        waits = [row for row in context.verdicts.pending if (row["server"], row["suffix"]) == about]
        to_it = [pair for pair in context.pairs if (pair["consumer"], pair["suffix"]) == about and runs(pair)]
        if not waits or not one.claims or one.empty or any(pair["decision"] == SEND for pair in to_it):
            continue
        # Of a server that has another origin now, no change brings the element of the former one back.
        for origin in [one.origin] if one.origin else origins_of(context, one):
            stuck = [pair for pair in to_it if _begins_at(context, pair, origin)]
            if last(one.vector, origin) or not stuck or not (newest := _has_its_own(context, one, origin)):
                continue
            if begin := [pair for pair in stuck if _brings(context, one, pair, origin, newest, waits)]:
                found[about] = LostElement(
                    origin,
                    one.origin is None,
                    tuple(sorted({pair["supplier"] for pair in begin})),
                    tuple(sorted({pair["link"] for pair in begin})),
                    sum(row["count"] for row in waits),
                )
    return found


def _begins_at(context: DetectorContext, pair: Mapping[str, Any], origin: str) -> bool:
    """True if a session would have to begin at a change of this origin, and finds no record of it."""
    system, anchor = context.topology.system, pair["anchor"]
    return pair["decision"] == ANCHOR_NOT_FOUND and bool(anchor) and system.origin_of(anchor) == origin


def _has_its_own(context: DetectorContext, one: Replica, origin: str) -> str:
    """The newest of its own changes that others know, if the server is shown to have all of them; empty: it is not."""
    others = (other for other in context.topology.replicas if other.suffix == one.suffix and other is not one)
    newest = max((other.top(origin) for other in others), default="")
    lacks = any(
        (row["server"], row["suffix"], row["origin"]) == (one.server, one.suffix, origin)
        for row in (*context.verdicts.missing, *context.verdicts.pending)
    )
    if not newest or lacks or "missing" in context.verdicts.cut():
        return ""
    logged = one.log.facts.get("by_origin", {}).get(origin, {}).get("max") if one.log else None
    if (logged or "") >= newest:
        return newest
    shown = context.topology.system.show(newest)
    return newest if shown in (kept_by_entries(context, one.suffix, origin, one.server, [shown]) or ()) else ""


def _brings(
    context: DetectorContext, one: Replica, pair: Mapping[str, Any], origin: str, newest: str, waits: list[Any]
) -> bool:
    """True if a session begins once the vector names the newest change of its own, and brings all that waits."""
    supplier, supplying = context.replica(pair["supplier"], pair["suffix"]), context.topology.supplying
    if supplier is None or supplier.log is None or pair["unrelated"]:
        return False
    rules, log = next(iter(supplying.rule_sets.values()))(), context.case.log(supplier.log)
    planned = plan(rules, log, supplier.vector, {**one.vector, origin: Span(newest, newest)}, origin)
    return planned.decision == SEND and all(sends(context, planned, row) for row in waits)


def one_change_first(context: DetectorContext, server: str, suffix: str | None) -> Mapping[str, Any] | None:
    """What brings such a server what it waits for, by the finding that says how; None for another."""
    about = context.once(lost_elements).get((server, suffix))
    if about is None:
        return None
    again = f"make {server} a supplier again, with origin {about.origin}, and " if about.again else ""
    return step(
        f"do what {SAYS_SO} says of {server}: {again}make one change on it",
        f"with it its vector names its own changes again, and sessions of {listed(about.links)} begin: {server} need not be "
        "initialised",
    )


def lost_says(server: str, about: LostElement) -> str:
    """What is wrong with such a vector, in words."""
    names = f"it names no change of its own replica ID {about.origin}, as where a server was made a hub and a supplier again"
    if about.again:
        names = f"it names no change of replica ID {about.origin}, with which {server} made changes before it was made a hub"
    return (
        f"{names}: sessions over {listed(about.links)} would have to begin at a record that the changelogs there do not have; "
        f"with one change of {server} as {about.origin} they begin, and bring the {counted(about.waits)} that {server} waits for"
    )
