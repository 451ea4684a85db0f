"""What waits behind one link: what its consumer waits for, and what of it no other link brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.diagnosis.closed_ways import in_no_log, unlogged
from workbench.model import counted, listed, step
from workbench.rules.send_session import ANCHOR_NOT_FOUND
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = Mapping[str, Any]

_NAMED = 3
"""Servers and links that a sentence names."""


def lacked_behind(
    context: DetectorContext, pair: Row, alone: bool = False, without: Set[str] = frozenset()
) -> dict[str, Row]:
    """Of what a session would send, what the consumer waits for: some changes are sent, and taken by no server.

    Of what it waits for the supplier may have a part only. `alone`: what no other link that runs would bring; a link that is
    busy for the moment counts as running, unless `without` names its supplier.
    """
    waits = {
        row["origin"]: row
        for row in context.verdicts.pending
        if (row["server"], row["suffix"]) == (pair["consumer"], pair["suffix"])
    }
    found: dict[str, Row] = {}
    for origin, sent in pair["to_send"].items():
        row = waits.get(origin)
        by_others = _brought(context, row, without) if row and alone else (0, "")
        if row and by_others is not None:
            count, upto = by_others
            rest = {
                "count": max(min(sent["count"], row["count"]) - count, 1),
                "first": max(sent["first"], row["first"]),
            }
            found[origin] = {**row, **rest, **({"first": row["last"], "behind": upto} if upto else {})}
    return found


def _brought(context: DetectorContext, row: Row, without: Set[str]) -> tuple[int, str] | None:
    """Of what a server waits for how much others bring, and up to which change; None: all of it."""
    suppliers = {*row["suppliers"]} - without
    if {*(row.get("through") or ())} - without:
        return None  # these get it first: nothing tells how much
    sent = [
        pair["to_send"][row["origin"]]
        for pair in context.pairs
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


def count_behind(context: DetectorContext, pair: Row) -> int:
    """How many changes wait behind the link of a pair, as far as logs and vectors tell it."""
    return sum(one["count"] for one in pair["to_send"].values()) or held_without_anchor(context, pair)


def told_of_anchor(pair: Row) -> tuple[Mapping[str, Any], ...]:
    """What to do about a link whose sessions find no record to begin at, where a finding of its own says that of the pair."""
    if pair["decision"] != ANCHOR_NOT_FOUND or not pair["anchor_class"]:
        return ()
    return (
        step(
            f"do what the finding on the record that {pair['link']} has to begin at says (ANCHOR_PURGED, ANCHOR_MISSING)",
            f"the changelog of {pair['supplier']} can be read and lacks that record: a restart brings nothing",
        ),
    )


def held_without_anchor(context: DetectorContext, pair: Row) -> int:
    """How many changes that a consumer waits for its supplier has, where a session would find no record to begin at.

    Of a range that the supplier has a part of only, nothing is counted.
    """
    supplier = context.replica(pair["supplier"], pair["suffix"])
    if supplier is None or pair["decision"] != ANCHOR_NOT_FOUND or pair["to_send"]:
        return 0
    typed = context.topology.system.typed
    return sum(
        row["count"]
        for row in context.verdicts.pending
        if (row["server"], row["suffix"]) == (pair["consumer"], pair["suffix"])
        if (last(supplier.vector, row["origin"]) or "") >= (typed(row["last"]) or row["last"])
        if not row["suppliers"]  # else others bring them
    )


def held_in_no_log(context: DetectorContext, pair: Row) -> str:
    """What a consumer waits for and its supplier has, in words, where no log has any of it and no other server sends it.

    c made 5 changes, and was made a read-only consumer, which keeps no log, before it sent them: its access log shows them
    """
    if pair["to_send"]:
        return ""
    count = sum(
        _held(context, pair["supplier"], row)
        for row in context.verdicts.pending
        if (row["server"], row["suffix"]) == (pair["consumer"], pair["suffix"])
        if in_no_log(row) == row["count"] and not (row["suppliers"] or row.get("through"))
    )
    them, has = "it" if count == 1 else "them", f"{pair['supplier']} has {counted(count)}"
    return f"{has} that {pair['consumer']} waits for, and no collected changelog has {them}" if count else ""


def alone_without_log(context: DetectorContext, server: str, suffix: str | None) -> int:
    """How many changes a server alone has that others wait for and no log has: its data show them, and go if it is filled.

    c was a supplier, made 7, and was made a read-only consumer: its vector names its old origin no more, and it keeps no log
    """
    waiting: dict[tuple[str, str, str], list[Row]] = {}
    for row in context.verdicts.pending:
        if row["suffix"] == suffix and unlogged(row) and not (row["suppliers"] or row.get("through")):
            waiting.setdefault((row["origin"], row["first"], row["last"]), []).append(row)
    count = 0
    for rows in waiting.values():
        wait = {row["server"] for row in rows}
        others = [one.server for one in context.topology.replicas if one.suffix == suffix and one.server not in wait]
        if server in others and not any(_held(context, name, rows[0]) for name in others if name != server):
            count += min(_held(context, server, rows[0]), unlogged(rows[0]))
    return count


def _held(context: DetectorContext, server: str, row: Row) -> int:
    """How many of the changes of a row a server has, as its vector, its log of operations or its entries show."""
    replica, system, suffix = context.replica(server, row["suffix"]), context.topology.system, row["suffix"]
    if replica is None:
        return 0
    first, end = (system.typed(row[key]) or row[key] for key in ("first", "last"))
    if (last(replica.vector, row["origin"]) or "") >= end:
        return int(row["count"])
    within = (pc.field("origin") == row["origin"]) & (pc.field("position") >= first)
    found: set[str] = set()
    for table, where in (("applied", within & (pc.field("outcome") == "applied")), ("entry_states", within)):
        rows = context.rows(
            table, ["position"], where, snapshot=context.topology.snapshot, server=server, suffix=suffix
        )
        found |= {system.change_of(position) for batch in rows for position in batch["position"].to_pylist()}
    return min(sum(first <= position <= end for position in found), int(row["count"]))


def failing_suppliers(context: DetectorContext, consumer: str | None, suffix: str | None) -> frozenset[str]:
    """The servers of which a link to a consumer fails."""
    to = consumer, suffix
    return frozenset(
        link.supplier for link in context.topology.links if (link.consumer, link.suffix) == to and link.failure
    )


def suppliers_first(
    context: DetectorContext, row: Row, failing: Sequence[str], arrive: str
) -> Mapping[str, Any] | None:
    """What to do where each supplier of the failing links lacks all that a server waits for; None: one has some of it.

    h has made changes; no link leads from h to a, and a-to-c fails: c gets them from a only once a has them

    arrive  `they arrive`
    """
    suppliers = {
        link.supplier
        for link in context.topology.links
        if link.blocked and link.suffix == row["suffix"]
        if row["server"] in (link.consumer, link.failure and link.failure.means)
    }
    waiting = {
        other["server"]
        for other in context.verdicts.pending
        if (other["suffix"], other["origin"]) == (row["suffix"], row["origin"]) and other["first"] <= row["first"]
    }
    if not suppliers or not suppliers <= waiting:
        return None
    names, links = listed(sorted(suppliers), "and", _NAMED), listed(failing, "or", _NAMED)
    who, wait = (names, "waits for them itself") if len(suppliers) == 1 else ("one of these servers", "wait for them")
    return step(
        f"do what PENDING_CHANGES says of {names} for origin {row['origin']}, and what LINK_FAILING says on {links}",
        f"{names} {wait}: {arrive} only once {who} has them and {'the' if len(failing) == 1 else 'its'} link runs",
    )
