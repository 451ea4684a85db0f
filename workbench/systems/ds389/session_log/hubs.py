"""Suppliers that a server takes for itself, and turns away with code 11.

A server that is asked for a session compares its own replica ID with the first element of the RUV that it is sent. A supplier
puts its own element first as it starts; a hub has none of its own.

    c was a supplier and was made a hub: the element of a stands first in its RUV, and a turns it away; b does not
    replica ID 2 was cleaned, and b, which lives, made a change: its element is back, behind that of a, until b is restarted
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.model import listed, step
from workbench.topology.suffix_evidence import former_makers, makes_none

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.systems.ds389.session_log.link_fixes import Agreement
    from workbench.topology.topology import Link, Replica, Topology

AS_HUB, NOT_FIRST = "its supplier is a hub", "taken for its own consumer"


def taken_for(case: Case, shown: Topology, supplier: Replica, consumer: Replica) -> bool:
    """True if the first element of the supplier's RUV is that of the consumer, and it is known that the IDs of both differ."""
    other = makes_none(case, shown, supplier.server, supplier.suffix) if supplier.origin is None else True
    other = other and bool(consumer.origin) and supplier.origin != consumer.origin
    return other and next(iter(supplier.vector), None) == consumer.origin


def once_of(case: Case, shown: Topology, link: Link) -> str:
    """The replica ID with which the supplier of a link made changes once; empty if none, or more than one, is known."""
    known = {origin for server, origin in former_makers(case, shown, link.suffix) if server == link.supplier}
    return known.pop() if len(known) == 1 else ""


def mistaken_says(link: Link, code: int, origin: str | None, was: str) -> str:
    """The failure in words. `origin`: the replica ID of the supplier, `was`: the one that it had."""
    if origin is not None:
        return (
            f"{link.consumer} takes {link.supplier} for itself (code {code}): the first element of the RUV of {link.supplier} is "
            f"that of {link.consumer}, where its own, of replica ID {origin}, should stand"
        )
    once = f", and was the supplier with replica ID {was} once" if was else ""
    return (
        f"{link.consumer} takes {link.supplier} for itself (code {code}): {link.supplier} is a hub{once}, and the first element "
        f"of its RUV is that of {link.consumer}"
    )


def own_element_first(link: Agreement, again: Mapping[str, str | None]) -> tuple[Mapping[str, str | None], ...]:
    """What mends the agreement of a supplier whose own element does not stand first."""
    restart = step(
        f"restart {link.supplier}, `dsctl INSTANCE restart` there",
        "a supplier puts its own element first in its RUV as it starts",
        "a cleaning of its replica ID takes that element out: a task that goes on would do so again",
    )
    return (restart, again)


def of_mistaken(
    link: Agreement, promote: str, again: Mapping[str, str | None], delete: str
) -> tuple[Mapping[str, str | None], ...]:
    """What mends such an agreement, with the commands."""
    why = (
        f"a server compares its replica ID with the first element of the RUV that it is sent; with an ID of its own the element "
        f"of {link.supplier} stands first there"
    )
    if link.was:
        supplier = step(
            f"make {link.supplier} a supplier again, with the replica ID that it had, {promote}",
            why,
            f"only if replica ID {link.was} was neither cleaned since nor given to another server",
        )
    else:
        supplier = step(
            f"if {link.consumer} is to get changes from {link.supplier}, make that a supplier, {promote}", why
        )
    if not link.fed_by:
        return (supplier, again)
    feed = f"{listed(link.fed_by)} feed{'s' * (len(link.fed_by) == 1)} {link.consumer}, too"
    keep = step(
        f"or, if {link.supplier} is to stay a hub, delete the agreement, {delete}",
        f"a hub makes no changes, and {feed}",
        f"first do what STRANDED_CHANGE says of {link.supplier}, if anything" if link.was else None,
    )
    return (supplier, again, keep)
