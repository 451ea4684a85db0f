"""ruv_parse, ruv_compare, generation, session_precheck: what the vectors say before a session begins."""

from __future__ import annotations

from typing import Any

from workbench.input_validation import Inputs
from workbench.rules import vectors
from workbench.rules.vectors import Span
from workbench.systems.ds389.rules.ruvs import (
    STATUS_NOT_INITIALIZED,
    min_differs,
    missing_behind,
    newer_than_remembered,
    numeric,
    opens_session,
    read_ruv,
    refusal,
    seconds_between,
)
from workbench.systems.ds389.scenarios.fields import Csn, Ruv, rid_or_none

ROLLED_BACK = "consumer_rolled_back_unnoticed"

_STATES = {
    vectors.IN_SYNC: "in_sync",
    vectors.BEHIND: "consumer_behind",
    vectors.AHEAD: "consumer_ahead",
    vectors.ONLY_LEFT: "unknown_to_consumer",
    vectors.ONLY_RIGHT: "unknown_to_supplier",
    vectors.NEITHER: "no_changes",
}


class RuvParse(Inputs):
    """Values of nsds50ruv, and replica IDs to look up in them."""

    values: list[str]
    lookup_rids: list[str]


class TwoRuvs(Inputs):
    """The vectors of both sides."""

    supplier_ruv: Ruv
    consumer_ruv: Ruv


class Generations(Inputs):
    """The vectors of both sides; a consumer that was never initialised sends none."""

    supplier_ruv: Ruv
    consumer_ruv: Ruv | None


class Precheck(Inputs):
    """What the supplier has and remembers, and, to judge its decision, what the consumer really has."""

    local_ruv: Ruv
    remembered_consumer_ruv: Ruv | None
    real_consumer_ruv: Ruv | None = None
    supplier_changelog: list[Csn] | None = None


def ruv_parse(given: RuvParse) -> dict[str, Any]:
    """The elements as the server takes them."""
    ruv = read_ruv(given.values)
    rids = {text: rid_or_none(text) for text in given.lookup_rids}
    return {
        "generation": ruv.generation,
        "elements": {
            rid: {"url": one.url, "min": one.min, "max": one.max, "last_modified": one.modified}
            for rid, one in ruv.elements.items()
        },
        "rejected": list(ruv.rejected),
        "lookup": {text: rid if rid in ruv.elements else None for text, rid in rids.items()},
    }


def ruv_compare(given: TwoRuvs) -> dict[str, Any]:
    """How the consumer stands to the supplier, replica ID by replica ID, whatever the generations are."""
    supplier, consumer = given.supplier_ruv.spans, given.consumer_ruv.spans
    relations = vectors.compare(supplier, consumer)

    def row(rid: str) -> dict[str, Any]:
        both = supplier.get(rid, Span()), consumer.get(rid, Span())
        state = _STATES[relations[rid]]
        return {"state": state, "seconds": seconds_between(*both), "min_differs": min_differs(*both)}

    return {
        "same_generation": refusal(given.supplier_ruv, given.consumer_ruv) is None,
        "rids": {rid: row(rid) for rid in numeric(relations)},
    }


def generation(given: Generations) -> dict[str, Any]:
    """Whether the two hold the same data set; if not, nothing is taken over from the other side."""
    reason = refusal(given.supplier_ruv, given.consumer_ruv)
    return {
        "decision": "blocked" if reason else "allowed",
        "reason": reason,
        "status_code": STATUS_NOT_INITIALIZED if reason else None,
        "exchange": reason is None,
    }


def session_precheck(given: Precheck) -> dict[str, Any]:
    """The supplier's decision, and whether it leaves alone a consumer that lacks something."""
    local = given.local_ruv.spans
    remembered = given.remembered_consumer_ruv.spans if given.remembered_consumer_ruv else None
    opened = opens_session(local, remembered)
    result: dict[str, Any] = {"open_session": opened, "newer_rids": newer_than_remembered(local, remembered)}
    if given.real_consumer_ruv is not None and given.supplier_changelog is not None:
        missing = missing_behind(local, given.real_consumer_ruv.spans, given.supplier_changelog)
        finding = ROLLED_BACK if missing and not opened else None
        result |= {"missing_on_consumer": missing, "finding": finding}
    return result
