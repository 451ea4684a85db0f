"""What one Kanidm server would supply to another, judged by the ranges of both (`range_diff`), and what is forgotten by age.

A consumer pulls: it sends its whole ranges, and the supplier compares them with its own. One origin out of step stops the
whole session, also for the origins that are in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.replication.entry.rules.entries import Cid, Ranges

OK, REFRESH, UNWILLING, CRITICAL, NO_OVERLAP = "Ok", "Refresh", "Unwilling", "Critical", "NoRUVOverlap"
"""What a comparison comes to."""

DOMAIN_MISMATCH, NO_CHANGES, SUPPLY, REFRESH_REQUIRED, UNWILLING_TO_SUPPLY = (
    *("DomainMismatch", "NoChangesAvailable", "V1", "RefreshRequired", "UnwillingToSupply"),
)
"""What the supplier answers."""

APPLIED, SPLIT_DATA = "Ok", "ReplServerUuidSplitDataState"
"""What becomes of it at the consumer, beside REFRESH_REQUIRED."""

BEFORE_ALL = 0
"""What a consumer that knows nothing of an origin has seen of it."""


@dataclass(frozen=True)
class Compared:
    """How the ranges of a supplier and a consumer compare.

    status   Ok, or why nothing is supplied
    owed     origin -> (behind this time, up to this one); of another status than Ok nothing is told
    lag      origins that the consumer is too far behind: (supplier's first, consumer's last)
    advance  origins that the supplier is too far behind: (supplier's last, consumer's first)
    """

    status: str
    owed: Ranges = field(default_factory=dict)
    lag: Ranges = field(default_factory=dict)
    advance: Ranges = field(default_factory=dict)


def range_diff(consumer: Ranges, supplier: Ranges, before_all: int = BEFORE_ALL) -> Compared:
    """Compare, for each origin that the supplier shows; origins that only the consumer knows are not looked at.

    Two ranges that touch (the consumer's last is the supplier's first) are in order.
    """
    owed: dict[str, tuple[int, int]] = {}
    lag: dict[str, tuple[int, int]] = {}
    advance: dict[str, tuple[int, int]] = {}
    for origin, (first, last) in supplier.items():
        if origin not in consumer:
            owed[origin] = (before_all, last)
            continue
        theirs_first, theirs_last = consumer[origin]
        if theirs_last < first:
            lag[origin] = (first, theirs_last)
        elif last < theirs_first:
            advance[origin] = (last, theirs_first)
        elif theirs_last < last:
            owed[origin] = (theirs_last, last)
    if not consumer.keys() & supplier.keys():
        return Compared(NO_OVERLAP)
    if lag or advance:
        return Compared(CRITICAL if lag and advance else REFRESH if lag else UNWILLING, {}, lag, advance)
    return Compared(OK, owed)


_MESSAGES = {REFRESH: REFRESH_REQUIRED, **dict.fromkeys((UNWILLING, CRITICAL, NO_OVERLAP), UNWILLING_TO_SUPPLY)}


def message_of(compared: Compared) -> str:
    """What the supplier answers."""
    return _MESSAGES.get(compared.status) or (SUPPLY if compared.owed else NO_CHANGES)


class Reply(NamedTuple):
    """What one pull comes to.

    compared   None: the domains differ, and nothing was compared
    message    what the supplier answers
    consumer   what the consumer makes of it; Ok is logged as a success, and so is an answer that supplies nothing
    """

    compared: Compared | None
    message: str
    consumer: str

    @property
    def stalled(self) -> bool:
        """True if nothing moves, and will not by itself, while the consumer logs a success."""
        return self.message == UNWILLING_TO_SUPPLY


def reply(
    domains: tuple[str, str], consumer: Ranges, supplier: Ranges, cut_off: int, before_all: int = BEFORE_ALL
) -> Reply:
    """What a consumer hears that pulls now; `domains` are its own and the supplier's, `supplier` its ranges unfiltered."""
    if domains[0] != domains[1]:
        return Reply(None, DOMAIN_MISMATCH, REFRESH_REQUIRED)
    compared = range_diff(consumer, supplier_view(supplier, cut_off), before_all)
    message = message_of(compared)
    return Reply(compared, message, REFRESH_REQUIRED if message == REFRESH_REQUIRED else APPLIED)


def supplier_view(ranges: Ranges, cut_off: int) -> dict[str, tuple[int, int]]:
    """The origins that a supplier still shows: those with a change at the cut-off or behind it. The first times stay."""
    return {origin: one for origin, one in ranges.items() if one[1] >= cut_off}


# --- the CIDs behind the ranges


def ranges_of(cids: Iterable[Cid]) -> dict[str, tuple[int, int]]:
    """Origin -> first and last time."""
    times: dict[str, list[int]] = defaultdict(list)
    for time, origin in cids:
        times[origin].append(time)
    return {origin: (min(some), max(some)) for origin, some in times.items()}


def trimmed(cids: Iterable[Cid], cut_off: int) -> list[Cid]:
    """The CIDs that stay when those before the cut-off go, in their order. An origin without a CID is known no more."""
    return sorted(cid for cid in cids if cid[0] >= cut_off)


class Supplied(NamedTuple):
    """What a message carries of one origin: the range, and all times strictly inside that the supplier has."""

    after: int
    anchors: Sequence[int]
    upto: int


def supplied(cids: Iterable[Cid], owed: Ranges) -> dict[str, Supplied]:
    """What a message carries, by origin. The times inside come along although no entry may name them any more: without them a
    quiet origin's range would jump at the consumer, and seem to have a hole.
    """
    inside: dict[str, set[int]] = {origin: set() for origin in owed}
    for time, origin in cids:
        if origin in owed and owed[origin][0] < time < owed[origin][1]:
            inside[origin].add(time)
    return {origin: Supplied(after, sorted(inside[origin]), upto) for origin, (after, upto) in owed.items()}


# --- what a consumer checks before it applies anything


class Preflight(NamedTuple):
    """May the message be applied, and which of its origins have a clock too far ahead?"""

    status: str
    ahead: Sequence[str]


def preflight(own_origin: str, own_max: int | None, incoming: Mapping[str, int], now: int, window: int) -> Preflight:
    """`incoming`: origin -> last time of the message; `own_max`: the last own change that the consumer knows of.

    Others that have later changes of the consumer's own show that it was restored from an older state: nothing is applied,
    and the clocks are not looked at. A clock ahead by more than the window is a warning.
    """
    if own_max is not None and incoming.get(own_origin, own_max) > own_max:
        return Preflight(SPLIT_DATA, [])
    return Preflight(APPLIED, sorted(origin for origin, time in incoming.items() if time > now + window))
