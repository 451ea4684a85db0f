"""Servers that have to be restarted before they are filled: they cleaned an origin that the vector of the source names."""

from __future__ import annotations

from workbench.model import listed
from workbench.repair.plan_types import View
from workbench.rules.vectors import last


def restarted_first(view: View, source: str, server: str) -> str:
    """Why this server is not filled from that one before it is restarted; empty: nothing is in the way.

    The element of a cleaned ID is left out of the vector that comes with the data: no session can begin with the server then.
    """
    vector = view.model.servers[source].vector
    origins = sorted(origin for origin in view.model.servers[server].forgets if last(vector, origin))
    if not origins:
        return ""
    found = view.context.verdicts.remembers.get((server, view.suffix), {})
    unsure = any(origin in found and found[origin].log_ends for origin in origins)
    unless = " (its errors log ends too early to tell whether that was done)" if unsure else ""
    ids, them = ("replica IDs", "them") if origins[1:] else ("replica ID", "it")
    return (
        f"{server} cleaned {ids} {listed(origins)} and ignores {them} until it is restarted{unless}, and {source} claims "
        f"changes of {them}: filled now, {server} would get the data, and no session with it could begin. Restart {server} "
        "first, then collect and plan anew"
    )
