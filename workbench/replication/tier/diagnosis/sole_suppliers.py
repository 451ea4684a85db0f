"""Nodes that get the log file they need where they hang, which the source has no more; and what registering anew would do.

S@s1 begins with file 15; A@a1 has files from 10 on; A@a2, in file 13, pulls from A@a1
    A@a2 registers anew: the query drops S@s1, which lacks file 13, and all below it: A@a2 is offered nobody
    A@a1 is shut down: A@a2 looks for another source by itself, and finds none
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from workbench.replication.tier.diagnosis.log_files import needed_file
from workbench.replication.tier.diagnosis.tree_rows import senders

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


class Served(NamedTuple):
    """The log file that a node needs next, the nodes that it pulls from and that send it, and the last one up to which its source
    cannot serve it: until it is past that, only these can.
    """

    file: int
    suppliers: list[str]
    until: int


def served_where_it_hangs(tiers: Tiers, name: str) -> Served | None:
    """What keeps a node where it hangs: its source has no more the file that it needs, and those it pulls from bring it on."""
    if tiers.gap(name) != "source" or not (sending := senders(tiers, name)):
        return None
    file, source = needed_file(tiers, name) or 0, tiers.source_of(name) or ""
    wholes = (tiers.seen.whole_from(one) for one in tiers.alive_roots(source) or tiers.roots(source))
    return Served(file, sending, max(file, min(filter(None, wholes), default=file) - 1))


def left_where_they_hang(context: DetectorContext) -> Mapping[str, Served]:
    """Every such node, of all trees."""
    tiers = context.verdicts.tiers
    return left_of(tiers) if tiers is not None else {}


def left_of(tiers: Tiers) -> dict[str, Served]:
    """Every such node of these trees."""
    found = {name: served_where_it_hangs(tiers, name) for names in tiers.members.values() for name in names}
    return {name: served for name, served in sorted(found.items()) if served}


def cut_off_without(left: Mapping[str, Served], stopped: Collection[str]) -> list[str]:
    """The nodes that get nothing any more when these are shut down, or copied over: who is one of these registers anew, too."""
    return [name for name, served in left.items() if name in stopped or {*served.suppliers} <= {*stopped}]


def elsewhere(tiers: Tiers, name: str) -> list[str]:
    """The nodes that the registry would offer one now, that have its file, and from which it does not pull yet."""
    place = tiers.place(name)
    parents = place.parents if place else ()
    return [one for one in tiers.offered(name) or () if one not in parents]


def registers_in_vain(tiers: Tiers, name: str) -> str:
    """Why a node that gets its log gains nothing by registering anew; empty: it may, or it lacks nothing."""
    if tiers.offer(name) is None or not tiers.needs(name) or not senders(tiers, name) or elsewhere(tiers, name):
        return ""
    return (
        f"{name} needs log file {needed_file(tiers, name)}, and the registry would offer it no other node that has it"
    )


def offered_behind(tiers: Tiers, name: str) -> list[str]:
    """The nodes that the registry may send one to, and that are behind it: it would cut off what it has beyond, and wait.

    S@s2 serves three, S@s1 lacks file 13; A@a3 {13:9} is offered A@a1 {13:5}, and A@a1 is offered A@a3: A@a1 moves
    """
    last = tiers.last(name)
    return [one for one in elsewhere(tiers, name) if last is not None and (tiers.last(one) or last) < last]
