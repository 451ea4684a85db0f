"""What is brought to others before the only server that shows it throws its data away."""

from __future__ import annotations

from workbench.repair.plan_types import Need, View


def after_what_others_miss(view: View, need: Need) -> bool:
    """True of a server to be filled that alone shows what another one misses: that is brought there first, or goes with it."""
    if need.server is None or need.lacks or need.server not in view.model.servers:
        return False
    servers, missed = view.model.servers, {lack.lot for lack in view.model.missing()}
    others = set[int]().union(*(one.holds for name, one in servers.items() if name != need.server))
    return bool(missed & servers[need.server].holds - others)
