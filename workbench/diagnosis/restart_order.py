"""What comes before the start of a server that is down: links that would make it pass over changes, and whom it would fill.

c made 5 changes that reached a alone, was initialised from b, which lacks them, and made more since; b is down:

    b starts, a-to-b begins first     b gets the 5 from a, then the later ones from c
    b starts, c-to-b begins first     b gets the later ones alone: its vector covers the 5, and no session sends them again

A server that was stopped while it filled another one begins that again as it starts: the old changelog of that one goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.intake.readings import NO_SUFFIX
from workbench.model import counted, listed, step
from workbench.topology.suffix_evidence import former_makers

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


_NAMED = 3


def before_start(context: DetectorContext, server: str, suffix: str | None) -> list[Mapping[str, Any]]:
    """What to do before a server is started of which no vector was collected, step by step."""
    # A start is of all suffixes of the server.
    suffixes = sorted(
        {one.suffix for one in context.topology.replicas} | {suffix}, key=lambda name: (name != suffix, name or "")
    )
    asked = next(filter(None, (asked_first(context, server, name) for name in suffixes)), None)
    steps = (
        asked,
        own_first(context, server, suffix),
        saved_first(context, server, suffix),
        links_off_first(context, server, suffix),
    )
    return [one for one in steps if one]


def read_first(context: DetectorContext, unread: Sequence[str], suffix: str | None, count: int) -> Mapping[str, Any]:
    """What to do about so many changes that nothing sends, where other servers were not read: these may have them."""
    them = "it" if count == 1 else "them"
    down = context.topology.down.intersection(unread)
    before = [first for name in sorted(down) for first in before_start(context, name, suffix)]
    steps = "".join(f"{first['repair']}; " for first in before) + ("then " if before else "")
    asked = sorted(down) or [*dict.fromkeys(unread)]
    bare = sorted(
        one.server for one in context.topology.readings if one.server in down and one.down.startswith(NO_SUFFIX)
    )
    if bare and bare == asked:
        it, they = ("its", "it shows") if len(bare) == 1 else ("their", "they show")
        return step(
            f"see why {listed(bare, most=_NAMED)} replicates nothing any more, mend that, and collect again",
            f"{they} no replicated suffix: a start brings nothing, and {it} data may have {them}",
        )
    return step(
        f"{steps}start {listed(asked, most=_NAMED)} (restart it, if it runs and does not answer)"
        if down
        else f"collect from {listed(asked, most=_NAMED)}, too",
        f"{asked[0] if len(asked) == 1 else 'one of these'} may have {them}, or a link that brings {them}: nothing tells "
        "what was not collected",
        f"do not write {them} once more before that: an entry that is added twice is there twice when the first one arrives",
    )


def asked_first(context: DetectorContext, server: str, suffix: str | None) -> Mapping[str, Any] | None:
    """What to find out before the start of a server whose origin others have cleaned meanwhile; None: no log tells of that."""
    case, shown, code = context.case, context.topology, context.topology.proving.cleaned
    alike = [one for one in shown.replicas if one.suffix == suffix]
    elsewhere = {origin for one in shown.replicas if one.suffix != suffix for origin in one.vector}
    was = {origin for name, origin in former_makers(case, shown, suffix, by_links=True) if name == server} - elsewhere
    where = (pc.field("code") == code) & pc.field("origin").isin(pa.array(sorted(was), pa.string()))
    found: dict[str, set[str]] = {}
    for one in alike:
        for batch in (
            context.rows("messages", ["origin"], where, snapshot=shown.snapshot, server=one.server)
            if was and code
            else ()
        ):
            if one.server != server:
                found.setdefault(one.server, set()).update(batch.column("origin").to_pylist())
    cleaned, was = sorted(found), set[str]().union(*found.values())
    if not cleaned:
        return None
    return step(
        f"first find out whether {server} is to take part again: {listed(cleaned)} cleaned origin {listed(sorted(was))}, and it "
        "made changes as that; if not, leave it down, save what only its files have, and delete the links to it",
        "who cleaned an origin may drop what comes of it until restarted",
    )


def saved_first(
    context: DetectorContext, server: str, suffix: str | None, address: str | None = None
) -> Mapping[str, Any] | None:
    """What to do before the start of a server that then fills servers which have changes alone; None: it fills none of these.

    address  where the server may listen, if no file tells that it does
    """
    tells = context.topology.system.filled_again
    filled = tells()(context).get((server, suffix)) if tells else None
    if not filled:
        return None
    names = sorted({name for name, _ in filled})
    says = listed([f"the changelog of {name}, as {code} says" for name, code in filled])
    has, that = ("has", "that") if len(names) == 1 else ("have", "them")
    return step(
        f"{f'if {address} is {server}, ' if address else ''}first save {says}: as soon as {server} starts it may fill "
        f"{listed(names)} again, which throws {that} away",
        f"{listed(names)} {has} changes that no other collected server with a changelog has",
    )


def own_first(context: DetectorContext, server: str, suffix: str | None) -> Mapping[str, Any] | None:
    """What to do before the start of a server that others then fill; None: none of them does.

    b made 4 changes that reached h alone, and stopped while a filled it    as soon as b runs a goes on: without the 4
    """
    shown = context.topology
    filling = sorted(
        {
            link.supplier
            for link in shown.links
            if (link.consumer, link.suffix) == (server, suffix) and link.failure and link.failure.refills
        }
    )
    if not filling:
        return None
    made = {origin for name, origin in former_makers(context.case, shown, suffix, by_links=True) if name == server}
    made |= {one.origin for one in shown.replicas if (one.server, one.suffix) == (server, suffix) and one.origin}
    waiting = sorted(
        {
            row["server"]
            for row in context.verdicts.pending
            if row["suffix"] == suffix and row["server"] in filling and row["origin"] in made
        }
    )
    fills = (
        f"as soon as {server} runs, {listed(filling)} {'fills' if len(filling) == 1 else 'fill'} it with all data again"
    )
    copied = f"copy the database folder of {server}"
    if waiting:
        return step(
            f"first {copied}, and do what PENDING_CHANGES says of {listed(waiting)}",
            f"{fills}, and {listed(waiting)} {'lacks' if len(waiting) == 1 else 'lack'} changes that {server} made",
        )
    return step(f"first {copied}", f"{fills}: what only {server} has goes then")


def links_off_first(context: DetectorContext, server: str, suffix: str | None) -> Mapping[str, Any] | None:
    """What to do before a server is started of which no vector was collected; None: nothing is known to be in the way.

    In the way is a link whose supplier lacks changes that another supplier has, and has later ones of their origin.
    """
    shown = context.topology
    replica = context.replica(server, suffix)
    if shown.pulling or (replica is not None and replica.claims):
        return None
    links = [
        link for link in shown.links if (link.consumer, link.suffix) == (server, suffix) and link.enabled is not False
    ]
    suppliers = {link.supplier for link in links}
    hidden = [
        row
        for row in context.verdicts.missing
        if row["suffix"] == suffix
        and row["server"] in suppliers
        and suppliers.intersection(row["held_by"])
        and _has_later(context, row)
    ]
    if not hidden:
        return None
    lacking = sorted({row["server"] for row in hidden})
    names = sorted(link.name for link in links if link.supplier in lacking)
    changes = {(row["origin"], row["position"]) for row in hidden}
    origins = sorted({origin for origin, _ in changes})
    least = "at least " if "missing" in context.verdicts.cut() else ""
    holders = sorted(suppliers.intersection(name for row in hidden for name in row["held_by"]))
    them, lacks = "it" if len(changes) == 1 else "them", f"{listed(lacking)} {'lacks' if len(lacking) == 1 else 'lack'}"
    these = f"{least}{counted(len(changes))} of origin {listed(origins)} that {lacks} and {listed(holders)} "
    these += "has" if len(holders) == 1 else "have"
    off = f"switch off {listed(names)} before {server} is started, and leave {'it' if len(names) == 1 else 'them'} off until "
    off += f"{server} has the {these}; or first do what MISSED_CHANGE says of {listed(lacking)}"
    given = all((suppliers - {*lacking}).intersection(row["held_by"]) for row in hidden)
    return step(
        off if given else f"first do what MISSED_CHANGE says of {listed(lacking)}: there are {these}",
        f"if {server} lacks {them}, too, later changes of the same origin may come from {listed(lacking, 'or')} first: "
        f"the vector of {server} then covers {them}, and no session sends {them} there any more",
        f"whether {server} has {them} is not known, for its vector was not collected: collect again when it runs",
    )


def _has_later(context: DetectorContext, row: Mapping[str, Any]) -> bool:
    """True if the log of the server that lacks a change shows a later one of the same origin."""
    replica, system = context.replica(row["server"], row["suffix"]), context.topology.system
    if replica is None or replica.log is None:
        return False
    newest = replica.log.facts.get("by_origin", {}).get(row["origin"], {}).get("max")
    return bool(newest and newest > (system.typed(row["position"]) or ""))
