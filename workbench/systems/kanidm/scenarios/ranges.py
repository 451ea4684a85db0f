"""Kinds about the ranges of two servers of today: what is supplied, what is answered, and what goes by age."""

from __future__ import annotations

from typing import Any

from workbench.input_validation import Inputs
from workbench.systems.kanidm.rules.ranges import (
    OK,
    preflight,
    range_diff,
    ranges_of,
    reply,
    supplied,
    supplier_view,
    trimmed,
)
from workbench.systems.kanidm.scenarios.fields import Cid, Ranges, Time, listed, listed_or_none


class TwoRanges(Inputs):
    """The ranges of both, the supplier's as it shows them."""

    consumer: Ranges
    supplier: Ranges


def compared(given: TwoRanges) -> dict[str, Any]:
    """How they compare."""
    found = range_diff(given.consumer, given.supplier)
    return {
        "status": found.status,
        "ranges": listed(found.owed) if found.status == OK else None,
        "lag_range": listed_or_none(found.lag),
        "adv_range": listed_or_none(found.advance),
    }


class Pull(Inputs):
    """Both servers' domains and ranges, and the supplier's cut-off."""

    consumer_domain: str
    supplier_domain: str
    consumer: Ranges
    supplier: Ranges
    cut_off: Time


def answered(given: Pull) -> dict[str, Any]:
    """What the consumer hears, and what it makes of it."""
    made = reply((given.consumer_domain, given.supplier_domain), given.consumer, given.supplier, given.cut_off)
    return {
        "diff": made.compared.status if made.compared else None,
        "message": made.message,
        "consumer_state": made.consumer,
        "logged_as_success": made.consumer == OK,
        "stalled": made.stalled,
    }


class Shown(Inputs):
    """A server's ranges, and its cut-off."""

    ranges: Ranges
    trim_ts: Time


def shown(given: Shown) -> dict[str, Any]:
    """The ranges that it shows as a supplier."""
    return {"ranges": listed(supplier_view(given.ranges, given.trim_ts))}


class Trimmed(Inputs):
    """The CIDs of a RUV, and the cut-off."""

    ruv_cids: list[Cid]
    trim_ts: Time


def left_after_trim(given: Trimmed) -> dict[str, Any]:
    """What is left of the RUV."""
    kept = trimmed(given.ruv_cids, given.trim_ts)
    after = ranges_of(kept)
    return {
        "kept": [list(cid) for cid in kept],
        "ranges_after": listed(after),
        "servers_removed": sorted({origin for _, origin in given.ruv_cids} - after.keys()),
    }


class Carried(Inputs):
    """The CIDs of the supplier, and what it owes."""

    supplier_cids: list[Cid]
    ranges: Ranges


def carried(given: Carried) -> dict[str, Any]:
    """What the message says of each origin."""
    found = supplied(given.supplier_cids, given.ranges)
    return {
        "ranges": {origin: {"m": one.after, "a": list(one.anchors), "x": one.upto} for origin, one in found.items()}
    }


class Preflight(Inputs):
    """What the consumer knows of itself, the last times of a message, and its clock."""

    own_server: str
    own_max: dict[str, Time]
    incoming_max: dict[str, Time]
    txn_ts: Time
    advance_window_s: Time


def preflighted(given: Preflight) -> dict[str, Any]:
    """May it be applied?"""
    own = given.own_max.get(given.own_server)
    made = preflight(given.own_server, own, given.incoming_max, given.txn_ts, given.advance_window_s)
    return {"status": "ok" if made.status == OK else made.status, "ahead_of_clock": list(made.ahead)}
