"""What waits behind one link: what its consumer waits for, and what of it no other link brings."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from workbench.rules.sending import ANCHOR_NOT_FOUND
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation

Row = Mapping[str, Any]


def lacked_behind(
    situation: Situation, pair: Row, alone: bool = False, without: Set[str] = frozenset()
) -> dict[str, Row]:
    """Of what a session would send, what the consumer waits for: some changes are sent, and taken by no server.

    Of what it waits for the supplier may have a part only. `alone`: what no other link that runs would bring; a link that is
    busy for the moment counts as running, unless `without` names its supplier.
    """
    waits = {
        row["origin"]: row
        for row in situation.verdicts.pending
        if (row["server"], row["suffix"]) == (pair["consumer"], pair["suffix"])
    }
    found: dict[str, Row] = {}
    for origin, sent in pair["to_send"].items():
        row = waits.get(origin)
        by_others = _brought(situation, row, without) if row and alone else (0, "")
        if row and by_others is not None:
            count, upto = by_others
            rest = {
                "count": max(min(sent["count"], row["count"]) - count, 1),
                "first": max(sent["first"], row["first"]),
            }
            found[origin] = {**row, **rest, **({"first": row["last"], "behind": upto} if upto else {})}
    return found


def _brought(situation: Situation, row: Row, without: Set[str]) -> tuple[int, str] | None:
    """Of what a server waits for how much others bring, and up to which change; None: all of it."""
    suppliers = {*row["suppliers"]} - without
    if {*(row.get("through") or ())} - without:
        return None  # these get it first: nothing tells how much
    sent = [
        pair["to_send"][row["origin"]]
        for pair in situation.pairs
        if (pair["consumer"], pair["suffix"]) == (row["server"], row["suffix"])
        if pair["supplier"] in suppliers and row["origin"] in pair["to_send"]
    ]
    most = max(sent, key=lambda one: str(one["last"]), default=None)
    if most is None:
        return 0, ""
    hidden = row["count"] - most["count"]
    if most["last"] >= row["last"]:
        return (most["count"], "") if hidden > 0 and row.get("available", 0) > most["count"] else None
    return most["count"], most["last"]


def held_without_anchor(situation: Situation, pair: Row) -> int:
    """How many changes that a consumer waits for its supplier has, where a session would find no record to begin at.

    Of a range that the supplier has a part of only, nothing is counted.
    """
    supplier = situation.replica(pair["supplier"], pair["suffix"])
    if supplier is None or pair["decision"] != ANCHOR_NOT_FOUND or pair["to_send"]:
        return 0
    typed = situation.topology.system.typed
    return sum(
        row["count"]
        for row in situation.verdicts.pending
        if (row["server"], row["suffix"]) == (pair["consumer"], pair["suffix"])
        if (last(supplier.vector, row["origin"]) or "") >= (typed(row["last"]) or row["last"])
        if not row["suppliers"]  # else others bring them
    )


def failing_suppliers(situation: Situation, consumer: str | None, suffix: str | None) -> frozenset[str]:
    """The servers of which a link to a consumer fails."""
    to = consumer, suffix
    return frozenset(
        link.supplier for link in situation.topology.links if (link.consumer, link.suffix) == to and link.failure
    )
