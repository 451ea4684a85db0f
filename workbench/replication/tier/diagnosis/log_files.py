"""Which file of the log a node gets no further without, and which of them its source has."""

from __future__ import annotations

from workbench.model import listed
from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.rules.conditions import FED, GONE, HUNG, NO_SOURCE, PENDING, STOPPED


def needed_file(tiers: Tiers, name: str) -> int | None:
    """The log file that a node needs before all else: that in which its log ends, or where its source has that one and cannot
    bring it to the end, the first behind it that lacks there.

    S@s1 has 10, 11, 12, 15, 16; A@a1 is in 12     13
    """
    needed, source = tiers.last(name), tiers.source_of(name)
    if needed is None or source is None or tiers.gap(name) is None:
        return needed[0] if needed else None
    lacking = (_first_lacking(tiers, one, needed[0]) for one in tiers.alive_roots(source) or tiers.roots(source))
    return max((file for file in lacking if file is not None), default=needed[0])


def _first_lacking(tiers: Tiers, name: str, file: int) -> int | None:
    """The first file from that one on that a node does not have; None: it has them all, or nothing tells."""
    first = tiers.seen.first_file(name)
    if first is None or file < first:
        return None if first is None else file
    return next((hole for hole in tiers.seen.holes(name) if hole >= file), None)


def source_has(tiers: Tiers, source: str, file: int) -> str:
    """What the source still has of its log, of which that file is not a part, in words."""
    roots = tiers.alive_roots(source) or tiers.roots(source)
    firsts = [first for one in roots if (first := tiers.seen.first_file(one)) is not None]
    holes = sorted({hole for one in roots for hole in tiers.seen.holes(one) if hole >= file})
    if not firsts or min(firsts) > file or not holes:
        return f"begins with file {min(tiers.source_firsts(source))}"
    return f"has files from {min(firsts)} on, but not {listed([str(hole) for hole in holes], 'and')}"


def misled(tiers: Tiers, name: str) -> str:
    """That the registry may send one to a node that lacks a file which it needs in the middle of its own; empty: it does not."""
    offer, last = tiers.offer(name), tiers.last(name)
    for one in offer.union if offer and last else ():
        if lacking := [hole for hole in tiers.seen.holes(one.name) if last and hole >= last[0]]:
            return f"the registry may send it to {one.name}, which has no log file {lacking[0]}"
    return ""


def listing_it(tiers: Tiers, name: str) -> list[str]:
    """Nodes of which a list of log files alone was collected, which shows the file that one needs next, and later ones."""
    needed, source = tiers.last(name), tiers.source_of(name)
    if needed is None or source is None or tiers.lacks_file(name) != "now":
        return []
    alone = [one for one in tiers.members[source] if tiers.last(one) is None and one in tiers.seen.files]
    alone = [one for one in alone if max(tiers.seen.files[one]) > needed[0] and one not in tiers.guessed]
    return [one for one in alone if tiers.seen.has_file(one, needed[0])]


def untold_holders(tiers: Tiers, name: str) -> list[str]:
    """Nodes of the tree of which nothing tells which log files they have, and that are not known to be behind: each may have the
    one that a node needs, which no other one has.
    """
    needed, source = tiers.last(name), tiers.source_of(name)
    if needed is None or source is None or tiers.lacks_file(name) != "now":
        return []
    untold = [one for one in tiers.members[source] if one != name and not tiers.seen.knows_files(one)]
    untold = [one for one in untold if (tiers.last(one) or (needed[0] + 1, 0)) > needed]
    return [one for one in untold if one not in tiers.guessed | tiers.not_elected and not tiers.retired(one)]


SOON = 1
"""A node whose next file is among so many oldest ones of the source loses it with the next deletions."""


def about_to_lose(tiers: Tiers, name: str) -> bool:
    """Whether the source has the file that a node needs next among its oldest ones, and nothing is known to keep it."""
    source, last = tiers.source_of(name) or "", tiers.last(name)
    firsts = tiers.source_firsts(source) if source else []
    if last is None or not firsts or not tiers.needs(name) or tiers.gap(name) or tiers.kept_for(name):
        return False
    if not 0 <= last[0] - min(firsts) <= SOON or (tiers.known_head(source) or last)[0] <= last[0]:
        return False
    if tiers.states[name] in FED and name not in tiers.standstills:
        # As near as any that pulls: what it lacks is less than a file, and it is in the oldest one because the source keeps few.
        lack = tiers.lag(last, tiers.known_head(source))
        near = next((one for one in lack if one is not None), None)
        if near is not None and tiers.file_size is not None and near < tiers.file_size:
            return False
    return tiers.lost_in(name) is not None or tiers.states[name] in (*GONE, HUNG, STOPPED, PENDING, NO_SOURCE)


def above_with_its_file(tiers: Tiers, name: str) -> tuple[str, int] | None:
    """A node that answers, stands at the head of the source, and from which a node pulls by its row, and the file that this one
    needs, which that one has. It may wait for a source itself: nothing shows that it serves nobody.
    """
    place, last = tiers.place(name), tiers.last(name)
    head = tiers.known_head(tiers.source_of(name) or "")
    able = (
        [one for one in place.parents if tiers.last(one) == head] if place and last and tiers.lacks_file(name) else []
    )
    able = [one for one in able if tiers.there(one) and last and tiers.has(one, last)]
    sound = [one for one in able if one not in tiers.logs.spoilt | tiers.not_elected | tiers.earlier.servers]
    return (sound[0], last[0]) if sound and last else None
