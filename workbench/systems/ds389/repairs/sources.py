"""From which server another one may be filled: what is not known of it, and whom it feeds alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.diagnosis.repair_sources import fed_by_it_alone, not_judged_on, unrecorded_on, up_to
from workbench.diagnosis.unsent_origins import unsent_by
from workbench.model import listed
from workbench.repair.obstacles import stopped_links
from workbench.systems.ds389.rules.link_reasons import INACTIVE, LOCKED

if TYPE_CHECKING:
    from workbench.repair.plan_types import View


def not_judged(view: View, source: str, server: str) -> str:
    """Why a server is not to be filled from one of which nothing tells whether it has what the server has; empty: it may be."""
    if why := unrecorded_on(view.context, source, server, view.suffix):
        return f"{why}: collect with --entries"
    found = not_judged_on(view.context, source, server, view.suffix)
    if not found:
        return ""
    ends = [view.context.replica(name, view.suffix) for name in (source, server)]
    there = all(one is not None and "entry_state" in one.evidence for one in ends)
    do = "" if there else ": collect with the entries (`workbench collect --entries`), and plan anew"
    return (
        f"nothing tells whether {source} has {up_to(sum(found.values()))} of origin {listed(sorted(found))} that {server} "
        f"has and would lose{do}"
    )


def took_unrecorded(view: View, source: str, server: str, way: str) -> str:
    """Why a server is filled only if a person asks for it where it, or its source, took changes that no log recorded."""
    for name in (source, server):
        if why := view.context.unrecorded.get((name, view.suffix)):
            goes = f"comes to {server}, too" if name == source else "is thrown away"
            return (
                f"{why}, and what clients did there {goes}: see first what of it is right (REPLICATION_WAS_OFF), then plan with "
                f"--for {server} --way {way}"
            )
    return ""


def not_its_own(view: View, source: str, server: str, way: str) -> str:
    """Why a server is filled from one only if asked for that alone has changes of an origin that it is no more.

    To fill all others from a server that was demoted replaces their data for a few changes that can be written again.
    """
    replica = view.context.replica(source, view.suffix)
    if replica is None or not (origins := unsent_by(view.context, replica)):
        return ""
    return (
        f"{source} alone has changes of origin {listed(sorted(origins))}, as which it makes changes no more: save them, and "
        f"write them again on a supplier (STRANDED_CHANGE); or plan with --for {server} --way {way}"
    )


def locked_login(view: View, server: str, login: str) -> str:
    """Why no session opens with this login at a server, over whatever agreement; empty: nothing shows that it is locked there."""
    statuses = view.context.statuses()
    for link in view.context.topology.links:
        row, why = statuses.get((link.supplier, link.suffix, link.name), {}), link.failure.short if link.failure else ""
        mine = link.consumer == server and login and (row.get("login") or "").lower() == login.lower()
        if mine and why in (LOCKED, INACTIVE):
            return f"{server} refuses {login}, as {link.name} shows ({why}): what LINK_FAILING says on it comes first"
    return ""


def feeds_alone(view: View, server: str) -> str:
    """Why a server is not to be filled yet that alone feeds another one, which all other links fail to reach; empty: it may be.

    Its log is new once it is filled: whoever is not level with it at that moment gets nothing more from it.
    """
    failing = stopped_links(view.context.topology, view.findings, view.suffix)
    found = fed_by_it_alone(view.context, server, view.suffix, failing)
    if found is None:
        return ""
    fed, failed = found
    return (
        f"{server} alone feeds {fed} while {', '.join(failed)} {'fails' if len(failed) == 1 else 'fail'}, and the log of a "
        f"filled server is new: {fed} might get nothing more; what LINK_FAILING says comes first"
    )
