"""One record of a physical log: which node has it, and who could give it to the others."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from workbench.engine.selective_read import rows_where
from workbench.model import Problem
from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.diagnosis.unjudged import (
    HOLE_BEFORE,
    NO_ANSWER,
    UNKNOWN_SAYS,
    why_unjudged,
    why_unknown_behind,
)
from workbench.replication.tier.rules.tiers import Lsn
from workbench.rules.verdicts import MISSING, NOT_COVERED, PENDING, PRESENT, UNKNOWN, Verdict

SHOWS, PASSED, LACKS, NOT_THERE = "log_shows", "log_goes_past", "log_lacks", "no_record_there"
PARTED, LOST_SINCE = "log_parted", "log_went_back"
SAYS = {
    SHOWS: "its log holds a record there",
    PASSED: "its log goes past that place, and a node's log is the beginning of its source's",
    LACKS: "its log goes past that place and holds no record there, although that of another node does",
    PARTED: "its log is not that of its source any more at that place: what stands there is another history",
    LOST_SINCE: "its log goes past that place; that of its source went back behind it between two snapshots: what stands there "
    "now may be another record",
    NOT_THERE: "its log goes past that place, and in no log that was collected does a record begin there",
}


def placed(tiers: Tiers, key: str) -> str:
    """The order key with its source database, where a person typed the place alone. Raises Problem if there are several."""
    system = tiers.shown.system
    if system.origin_of(key):
        return key
    if len(tiers.sources) != 1:
        known = ", ".join(tiers.sources)
        raise Problem(
            f"{system.show(key)} may be a place in the log of several databases",
            tiers.seen.label,
            f"write the database in front of it: {known}" if known else "load files that tell the source database",
        )
    return system.order_key(tiers.sources[0], *system.halves(key))


def verdicts_by_tier(tiers: Tiers, key: str) -> list[Verdict]:
    """The verdict of every node that takes part; none where the source itself is not as far, so that nothing names the place."""
    source, place = tiers.shown.system.origin_of(key), tiers.shown.system.halves(key)
    head = tiers.known_head(source) if source in tiers.members else None
    if head is None or place > head:
        return []
    holding = {name for name in tiers.logs.parts if _holds(tiers, name, place)}
    return [
        Verdict(name, None, *told)
        for name in tiers.members[source]
        if (told := _verdict(tiers, name, place, holding)) is not None
    ]


def _verdict(tiers: Tiers, name: str, place: Lsn, holding: set[str]) -> tuple[str, str, str] | None:
    last = tiers.last(name)
    if last is None:
        return UNKNOWN, NO_ANSWER, UNKNOWN_SAYS[NO_ANSWER]
    if (why := why_unjudged(tiers, name)) and name not in holding:
        return UNKNOWN, why, UNKNOWN_SAYS[why]
    if place > last:
        if why := why_unknown_behind(tiers, name, last):
            return UNKNOWN, why, UNKNOWN_SAYS[why]
        return PENDING, "not_covered", NOT_COVERED
    if any(hole.server == name and hole.first <= place <= hole.last for hole in tiers.earlier.holes):
        return UNKNOWN, HOLE_BEFORE, UNKNOWN_SAYS[HOLE_BEFORE]
    both = tiers.logs.beside_source(name)
    if both is not None and (place in both.differing.first or (both.parts is not None and place >= both.parts)):
        return UNKNOWN, PARTED, SAYS[PARTED]
    if name in holding:
        return PRESENT, SHOWS, SAYS[SHOWS]
    span = tiers.logs.span(name)
    if span and span[0] <= place <= span[1]:
        if holding:
            return MISSING, LACKS, SAYS[LACKS]
        return UNKNOWN, NOT_THERE, SAYS[NOT_THERE]
    if any(
        fall.at_top and fall.behind < place <= fall.then for fall in tiers.falls if fall.source == tiers.source_of(name)
    ):
        return UNKNOWN, LOST_SINCE, SAYS[LOST_SINCE]
    return PRESENT, PASSED, SAYS[PASSED]


def _holds(tiers: Tiers, name: str, place: Lsn) -> bool:
    at = (pc.field("hi") == place[0]) & (pc.field("lo") == place[1])
    parts = [
        part
        for part in tiers.logs.parts[name]
        if "first" not in part or tuple(part["first"]) <= place <= tuple(part["last"])
    ]
    return bool(parts) and len(rows_where(parts, ["hi"], at)) > 0


def would_give(tiers: Tiers, key: str, consumer: str) -> Iterator[tuple[str, str | None, bool, str]]:
    """Each other node of the tree: its name, its link to this one, whether it could give it the record now, and why."""
    place, source, needed = tiers.shown.system.halves(key), tiers.source_of(consumer), tiers.last(consumer)
    links = {link.supplier: link.name for link in tiers.shown.links if link.consumer == consumer}
    for name in tiers.members[source] if source else ():
        if name == consumer:
            continue
        last, first = tiers.last(name), tiers.seen.first_file(name)
        if unsure := next((why for node in (consumer, name) if (why := why_unjudged(tiers, node))), None):
            sent, why = False, f"nothing tells whether the two have one log: {UNKNOWN_SAYS[unsure]}"
        elif last is None or last < place:
            sent, why = False, "it has not got there itself"
        elif needed is None or not tiers.seen.has_file(name, needed[0]):
            told = needed is not None and first is not None
            sent, why = False, "nothing tells which log files it still has, or where the node is"
            hole = next((file for file in tiers.seen.holes(name) if needed and file >= needed[0]), None)
            why = (
                f"it has no log file {hole}, which the node needs"
                if hole is not None
                else f"its oldest log file is {first}, and the node needs file {needed[0]} first"
                if needed and told
                else why
            )
        elif not tiers.there(name):
            sent, why = False, "it has the files, but does not answer"
        else:
            sent, why = True, "it has the files that the node needs"
            why += "" if name in links else "; the node would have to pull from it"
        yield name, links.get(name), sent, why
