"""Servers that have to be restarted before they are filled: they cleaned an origin of which the source has changes."""

from __future__ import annotations

from workbench.model import listed
from workbench.repair.plan_types import View
from workbench.rules.vectors import last


def restarted_first(view: View, source: str, server: str) -> str:
    """Why this server is not filled from that one before it is restarted; empty: nothing is in the way.

    The data that come do not end that it drops the changes of a cleaned ID: what is made afterwards, it lacks again. The element
    of that ID is left out of the vector that comes with them, so that sessions may not begin either.
    """
    maker, vector = view.context.replica(source, view.suffix), view.model.servers[source].vector
    made_as, forgets = maker and maker.origin, view.model.servers[server].forgets
    origins = sorted(origin for origin in forgets if last(vector, origin) or origin == made_as)
    if not origins:
        return ""
    found = view.context.verdicts.remembers.get((server, view.suffix), {})
    unsure = any(origin in found and found[origin].log_ends for origin in origins)
    unless = " (its errors log ends too early to tell whether that was done)" if unsure else ""
    ids, them = ("replica IDs", "them") if origins[1:] else ("replica ID", "it")
    return (
        f"{server} cleaned {ids} {listed(origins)} and ignores {them} until it is restarted{unless}, and {source} has "
        f"changes of {them}: filled now, {server} would get the data, and drop what is made afterwards. Restart {server} first, "
        "then collect and plan anew"
    )
