"""What a supplier answers to a consumer that pulls, under the rules of the real servers and those of the design note."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.rules.entries import ALL_SEEN, Answer, Peer, Pulling, gate, owed
from workbench.systems.kanidm.cid import DIGITS, SECOND
from workbench.systems.kanidm.rules.ranges import (
    DOMAIN_MISMATCH,
    NO_OVERLAP,
    OK,
    REFRESH_REQUIRED,
    SUPPLY,
    Compared,
    reply,
)

CHANGELOG_MAX_AGE = 7 * 24 * 3600 * SECOND
"""How long a server remembers: CIDs of origins that were quiet for longer, and tombstones, go."""


def _real(supplier: Peer, consumer: Peer) -> Answer:
    # A log does not tell the domain of its server: what is not told is no other one.
    known = consumer.generation or supplier.generation or ""
    domains = (consumer.generation or known, supplier.generation or known)
    found = reply(domains, consumer.ranges, supplier.ranges, supplier.now - CHANGELOG_MAX_AGE)
    if found.compared is None:
        return Answer(DOMAIN_MISMATCH, found.message, unrelated=True, reasons=[("domain", "they are of two domains")])
    one, reasons = found.compared, list(_why(found.compared))
    supplies, replaces = found.message == SUPPLY, found.message == REFRESH_REQUIRED
    return Answer(one.status, found.message, False, supplies, replaces, one.owed, one.lag, one.advance, reasons)


def _why(one: Compared) -> Iterator[tuple[str, str]]:
    if one.status == OK and not one.owed:
        yield ALL_SEEN, "the consumer's vector covers all that the supplier's does"
    if one.status == NO_OVERLAP:
        yield "overlap", "the consumer knows none of the origins that the supplier still shows"
    if one.lag:
        yield "lag", "the consumer is behind what the supplier still remembers: it has to be refreshed"
    if one.advance:
        yield "advance", "the supplier is behind what the consumer still remembers: it supplies nothing"


def _design(supplier: Peer, consumer: Peer) -> Answer:
    shut = sorted(origin for origin, one in gate(supplier.ranges, consumer.ranges).items() if not one.open)
    if shut:
        return Answer(
            "closed", "", reasons=[("gate", f"the consumer has not seen as far back as {', '.join(shut)} goes")]
        )
    found = owed(supplier.ranges, consumer.ranges)
    return Answer("open", "", supplies=bool(found), owed=found)


def _now(facts: Mapping[str, Any]) -> int | None:
    time = facts.get("ts_max_ns")
    return time if isinstance(time, int) else None


def _times(cids: pa.Array) -> np.ndarray[Any, Any]:
    times: np.ndarray[Any, Any] = pc.utf8_slice_codeunits(cids, 0, DIGITS).cast(pa.int64()).to_numpy()
    return times


PULLING = Pulling({"kanidm": _real, "design": _design}, _now, CHANGELOG_MAX_AGE, _times)
