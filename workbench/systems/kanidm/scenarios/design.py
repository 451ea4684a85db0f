"""Kinds about the early design note: what its rules say of its own examples, and of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from workbench.input_validation import Inputs
from workbench.model import Problem
from workbench.replication.entry.rules import entries as rules
from workbench.replication.entry.rules.entries import Operation
from workbench.replication.entry.rules.entries import Ranges as RangesOf
from workbench.systems.kanidm.scenarios.fields import Cid, Ranges, Time, listed

MOST = 100_000
"""CIDs that one answer lists, where every whole number is a change."""


class TwoVectors(Inputs):
    """The vectors of both."""

    supplier_ruv: Ranges
    consumer_ruv: Ranges


def may_supply(given: TwoVectors) -> dict[str, Any]:
    """May this pair talk?"""
    found = rules.gate(given.supplier_ruv, given.consumer_ruv)
    return {
        "allowed": all(one.open for one in found.values()),
        "per_rid": {
            origin: {"consumer_max": one.consumer_max, "supplier_min": one.supplier_min, "ok": one.open}
            for origin, one in found.items()
        },
    }


class CidsToSend(TwoVectors):
    """The same, and the CIDs that the supplier has; without them every whole number is one."""

    changelog: list[Cid] | None = None


def cids_to_send(given: CidsToSend) -> dict[str, Any]:
    """Which changes, in which order?"""
    supplier, consumer = given.supplier_ruv, given.consumer_ruv
    allowed = rules.may_supply(supplier, consumer)
    owed = rules.owed(supplier, consumer) if allowed else {}
    known = rules.dense(owed) if given.changelog is None else iter(given.changelog)
    ahead = {
        origin: {"supplier_max": last, "consumer_max": consumer[origin][1]}
        for origin, (_, last) in supplier.items()
        if origin in consumer and consumer[origin][1] > last
    }
    cids = rules.among(_few(known) if given.changelog is None else known, owed)
    return {
        "allowed": allowed,
        "cids": [list(cid) for cid in cids],
        "ranges": listed(owed),
        "consumer_ahead": ahead,
    }


def _few(cids: Iterator[rules.Cid]) -> Iterable[rules.Cid]:
    some = list(islice(cids, MOST + 1))
    if len(some) > MOST:
        raise Problem(
            f"more than {MOST:,} CIDs would be listed: every whole number of the ranges is one",
            "inputs",
            "give the changelog",
        )
    return some


class RuvAfter(TwoVectors):
    """The same, and what the consumer is."""

    consumer_kind: Literal["supplier", "read-only"] = "supplier"


def ruv_after(given: RuvAfter) -> dict[str, Any]:
    """What does the consumer claim afterwards?"""
    supplier, consumer = given.supplier_ruv, given.consumer_ruv
    after: RangesOf = consumer
    if rules.may_supply(supplier, consumer):
        after = rules.vector_after(supplier, consumer, given.consumer_kind == "read-only")
    return {"consumer_ruv_after": listed(after)}


class SortCids(Inputs):
    """CIDs in any order."""

    cids: list[Cid]


def sort_cids(given: SortCids) -> dict[str, Any]:
    """By time, then by server."""
    return {"cids": [list(cid) for cid in sorted(given.cids)]}


class Step(Inputs):
    """The last own time, and the clock."""

    last_csn: Time
    clock: Time


class NextCsn(Inputs):
    """Steps, each for itself."""

    steps: list[Step]


def next_csn(given: NextCsn) -> dict[str, Any]:
    """The time of the next change."""
    return {"csn": [rules.next_time(one.last_csn, one.clock) for one in given.steps]}


# --- operations

if TYPE_CHECKING:
    Logged = tuple[int, str, str, str, Any]
else:
    Logged = Annotated[
        tuple[Time, str, Literal["add", "del", "replace"], str, str | list[str] | None],
        BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given),
        WithJsonSchema({"type": "array", "format": "[time, server, add|del|replace, attribute, value]"}),
    ]


def _operations(log: Iterable[Logged]) -> list[Operation]:
    return [Operation(*one[:4], None if isinstance(one[4], list) else one[4]) for one in log]


class Replay(Inputs):
    """An entry, and what all servers did to it."""

    initial: dict[str, list[str]]
    log: list[Logged]


def replay(given: Replay) -> dict[str, Any]:
    """What do the changelogs add up to?"""
    return {"final": rules.replayed(given.initial, _operations(given.log))}


class SuppressedNoops(Inputs):
    """What a server logged for the others, and what it was asked to do."""

    server_log: list[Logged]
    audit: list[Logged]


def suppressed_noops(given: SuppressedNoops) -> dict[str, Any]:
    """Which purge was wrongly left out?"""
    replaced = [(time, server, attribute) for time, server, do, attribute, _ in given.audit if do == "replace"]
    missing = rules.left_out(_operations(given.server_log), replaced)
    return {"missing": [[time, server, "del", attribute] for time, server, attribute in missing]}


# --- whole entries

if TYPE_CHECKING:
    ListedCid = tuple[int, str, list[str]]
else:
    ListedCid = Annotated[
        tuple[Time, str, list[str]],
        BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given),
        WithJsonSchema({"type": "array", "format": "[time, server, [entry, ...]]"}),
    ]


class EntrySession(Inputs):
    """The vectors of all servers, who feeds whom, and which entries each CID changed."""

    ruv_before: dict[str, Ranges]
    supplier: str
    consumer: str
    supplier_cid_list: list[ListedCid]
    consumer_cid_list: list[ListedCid] | None = None


def _by_cid(rows: Iterable[ListedCid]) -> dict[rules.Cid, list[str]]:
    found: dict[rules.Cid, list[str]] = {}
    for time, server, changed in rows:
        found.setdefault((time, server), []).extend(changed)
    return found


def entry_session(given: EntrySession) -> dict[str, Any]:
    """Which entries go whole to the other side?"""
    for name in (given.supplier, given.consumer):
        if name not in given.ruv_before:
            raise Problem("inputs.ruv_before has no vector of the supplier, or of the consumer")
    own = None if given.consumer_cid_list is None else _by_cid(given.consumer_cid_list)
    supplier, consumer = given.ruv_before[given.supplier], given.ruv_before[given.consumer]
    made = rules.entry_session(supplier, consumer, _by_cid(given.supplier_cid_list), own)
    after = None
    if made.listed_after is not None:
        after = [[*cid, list(made.listed_after[cid])] for cid in sorted(made.listed_after)]
    return {
        "allowed": made.allowed,
        "cids": [list(cid) for cid in made.cids],
        "entries": list(made.entries),
        "consumer_after": listed(made.consumer_after),
        "consumer_cid_list_after": after,
    }


class ReadonlyCondition(Inputs):
    """The vectors of a source and of a read-only consumer."""

    source: Ranges
    destination: Ranges


def readonly_condition(given: ReadonlyCondition) -> dict[str, Any]:
    """May this source feed this consumer without a flip-flop?"""
    blocking = rules.flips(given.source, given.destination)
    allowed = not blocking
    after = rules.vector_after(given.source, given.destination) if allowed else given.destination
    return {
        "allowed": allowed,
        "blocking": [
            {"rid": one.origin, "source_max": one.source_max, "destination_max": one.destination_max}
            for one in blocking
        ],
        "ranges": listed(rules.owed(given.source, given.destination)) if allowed else {},
        "destination_after": listed(after),
    }


class Trim(Inputs):
    """An own vector and changelog, who the peers are, and what each of them answered; null: not polled."""

    own_ruv: Ranges
    own_rid: str
    gruv: dict[str, Ranges | None]
    peers_known: list[str]
    changelog: list[Cid]


def trim(given: Trim) -> dict[str, Any]:
    """How far may the own changelog be cut?"""
    made = rules.trim(given.own_ruv, given.own_rid, given.gruv, given.peers_known, given.changelog)
    return {
        "trim_floor": made.floor,
        "trim": made.after is not given.own_ruv,
        "removed": [list(cid) for cid in made.removed],
        "own_ruv_after": listed(made.after),
    }


class TombstonePurge(Inputs):
    """A tombstone, and the vectors of all replicas; null: not polled."""

    tombstone: Cid
    replica_ruvs: Annotated[dict[str, Ranges | None], Field(min_length=1)]


def tombstone_purge(given: TombstonePurge) -> dict[str, Any]:
    """May it go?"""
    everyone = rules.held(given.tombstone, given.replica_ruvs)
    return {
        "purge": not everyone,
        "blocking": list(everyone.replicas),
        "blocking_rids": list(everyone.origins),
        "purge_if_only_own_rid_counts": not rules.held(given.tombstone, given.replica_ruvs, own_origin_only=True),
    }
