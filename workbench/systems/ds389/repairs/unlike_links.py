"""Agreements to one server that do not leave out the same: what a repair sends over them arrives by luck."""

from __future__ import annotations

from workbench.fleet.topology import Link
from workbench.repairs.plans import View
from workbench.systems.ds389.rules.own_attributes import MEMBER_OF


def first_alike(view: View, *servers: str, link: Link | None = None) -> str:
    """Why no data may be sent to these servers yet; empty if it may. `link`: over this one alone.

    a-to-h leaves out mail, b-to-h sends it, h feeds r: a value of mail that is written on a may pass by h, and by r behind it.
    """
    above = {name for server in servers for name in view.situation.linked.above(server, view.suffix)}
    for contents in view.situation.verdicts.contents:
        for server in sorted(above) if contents.suffix == view.suffix else ():
            for name, out in sorted(contents.fractional.by_luck(server).items()):
                left_out = out - {MEMBER_OF}  # each server computes it
                if left_out and (link is None or (link.consumer, link.name) == (server, name)):
                    return (
                        f"{name} leaves out {', '.join(sorted(left_out))}, which another agreement to {server} sends: first have "
                        "them leave out the same"
                    )
    return ""
