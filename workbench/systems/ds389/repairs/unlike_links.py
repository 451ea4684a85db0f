"""What the agreements to a server leave out: no repair brings it there, and what one of them sends arrives by luck."""

from __future__ import annotations

from collections.abc import Collection

from workbench.diagnosis.fractional import unlike_lists
from workbench.repair.plan_types import View
from workbench.topology.topology import Link


def list_conflict(view: View, server: str, link: Link | None = None, names: Collection[str] = ()) -> str:
    """Why no data may be sent to a server yet; empty if it may. `link`: over this one alone; `names`: only these attributes.

    a-to-h leaves out mail, b-to-h sends it, h feeds r: a value of mail that is written on a may pass by h, and by r behind it.
    """
    above = view.context.linked.above(server, view.suffix)
    for contents in view.context.verdicts.contents:
        for at in sorted(above) if contents.suffix == view.suffix else ():
            unlike = [one for one in contents.fractional.by_luck(at, names) if link in (None, one.link, one.by)]
            if unlike:
                return f"{unlike_lists(unlike)} to {at}: they have to exclude the same first"
    return ""


def lost_by_lists(view: View, server: str) -> str:
    """The same, where the server lacks a value of an attribute that one of these agreements excludes: it would be lost again."""
    for contents in view.context.verdicts.contents:
        if contents.suffix == view.suffix:
            names = {one.attribute.lower() for one in contents.differences if server in one.servers and one.attribute}
            if names and (why := list_conflict(view, server, names=names)):
                return why
    return ""


def excluded_everywhere(view: View, server: str) -> frozenset[str]:
    """The attributes that no way to a server lets through, as far as links show it; a repair does not bring them either."""
    statuses = view.context.statuses()
    for contents in view.context.verdicts.contents:
        if contents.suffix == view.suffix and server in contents.fractional.need_not:
            return contents.fractional.need_not[server]
    lists = [
        frozenset((statuses.get((link.supplier, link.suffix, link.name), {}).get("excluded") or "").lower().split())
        for link in view.context.topology.links
        if (link.consumer, link.suffix) == (server, view.suffix)
    ]
    return frozenset.intersection(*lists) if lists else frozenset()
