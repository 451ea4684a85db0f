"""What a supplier answers to a consumer that pulls, under the rules of the real servers and those of the design note."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.replication.entry.rules.entries import (
    ALL_SEEN,
    MAY_TURN_DOWN,
    TURNED_DOWN,
    Answer,
    Peer,
    Pulling,
    Ranges,
    gate,
    owed,
)
from workbench.systems.kanidm.cid import DIGITS, SECOND
from workbench.systems.kanidm.rules.ranges import (
    DOMAIN_MISMATCH,
    NO_OVERLAP,
    OK,
    REFRESH_REQUIRED,
    SPLIT_DATA,
    SUPPLY,
    Compared,
    preflight,
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
        says = "they are of two domains"
        return Answer(DOMAIN_MISMATCH, found.message, unrelated=True, refused=True, reasons=[("domain", says)])
    one, reasons = found.compared, list(_why(found.compared))
    split = found.message == SUPPLY and _restored(consumer, one.owed)
    if split:
        why = "changes of its origin, which two servers use" if consumer.shared else "own changes that it lost"
        restored = "" if consumer.shared else ", it was restored"
        reasons.append((TURNED_DOWN, f"the consumer refuses it: others have {why}{restored}"))
    elif found.message == SUPPLY and consumer.origin in one.owed and consumer.origin in consumer.ranges:
        reasons.append((MAY_TURN_DOWN, "others have own changes of the consumer that are younger than its files: it made "
                        "them since, or it was restored, and refuses what is sent"))  # fmt: skip
    return Answer(
        one.status,
        found.message,
        supplies=found.message == SUPPLY and not split,
        replaces=found.message == REFRESH_REQUIRED,
        refused=split or one.status != OK,
        owed=one.owed,
        lag=one.lag,
        advance=one.advance,
        reasons=reasons,
    )


def _restored(consumer: Peer, incoming: Ranges) -> bool:
    """True if changes of the consumer's own come that it does not know: it applies nothing then.

    A change made after its files were written proves nothing: servers are read moments apart. Where two servers use its
    origin, that change may be of the other one, and is refused all the same.
    """
    own = consumer.origin
    upto = {origin: last for origin, (_, last) in incoming.items() if consumer.shared or last <= consumer.now}
    if own is None or own not in consumer.ranges:
        return False
    return preflight(own, consumer.ranges[own][1], upto, consumer.now, 0).status == SPLIT_DATA


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
        says = f"the consumer has not seen as far back as {', '.join(shut)} goes"
        return Answer("closed", "", refused=True, reasons=[("gate", says)])
    found = owed(supplier.ranges, consumer.ranges)
    return Answer("open", "", supplies=bool(found), owed=found)


def _now(facts: Mapping[str, Any]) -> int | None:
    time = facts.get("ts_max_ns")
    return time if isinstance(time, int) else None


def _times(cids: pa.Array) -> np.ndarray[Any, Any]:
    times: np.ndarray[Any, Any] = pc.utf8_slice_codeunits(cids, 0, DIGITS).cast(pa.int64()).to_numpy()
    return times


PULLING = Pulling({"kanidm": _real, "design": _design}, _now, CHANGELOG_MAX_AGE, _times)
