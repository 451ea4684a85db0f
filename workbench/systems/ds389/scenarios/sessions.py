"""The scenario kinds about one send session, by the rules of the server and by those of the design document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from workbench.input_validation import Inputs
from workbench.rules.send_session import (
    ANCHOR_NOT_FOUND,
    NOTHING,
    SEND,
    Design,
    Event,
    Rules,
    Session,
    SortedLog,
    replay,
)
from workbench.rules.vectors import covers, last
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.ruvs import Ruv as ReadRuv
from workbench.systems.ds389.rules.sending import NEVER, ONCE, Sending, missing_anchor_class
from workbench.systems.ds389.scenarios.fields import Csn, PerRid, RidNumber, Ruv, each_once


class Happening(Inputs):
    """Something that happens while a session runs."""

    do: Literal["changelog_add", "changelog_delete", "supplier_ruv_advance"]
    csn: Csn


def _count(text: Any) -> Any:
    """JSON has text for keys: "3" is after the third change."""
    if isinstance(text, str):
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise ValueError("is not a number of changes sent")
        return int(text)
    return text


Count = Annotated[int, BeforeValidator(_count), Field(ge=0)]

EachMoment = BeforeValidator(each_once(lambda text: text.lstrip("0"), "number"))
"""`{"1": ..., "01": ...}` are two lists for one moment: which is first?"""


class _BothSessions(Inputs):
    supplier_changelog: list[Csn]
    supplier_ruv: Ruv
    consumer_ruv: Ruv
    consumer_replica_id: RidNumber
    records_per_buffer: Annotated[int, Field(ge=1)]
    events_after_n_changes_sent: Annotated[dict[Count, list[Happening]], EachMoment]

    def played(self, rules: Rules) -> Session:
        """The session under the rule set."""
        return replay(
            rules,
            SortedLog(self.supplier_changelog, origin_of),
            self.supplier_ruv.spans,
            self.consumer_ruv.spans,
            str(self.consumer_replica_id),
            self.records_per_buffer,
            {
                number: [Event(one.do, one.csn) for one in events]
                for number, events in self.events_after_n_changes_sent.items()
            },
        )


class SendSession(_BothSessions):
    """Inputs of kind `session`."""

    ignore_missing_change: Literal["never", "once", "always"]
    cleaned_replica_ids: list[RidNumber]


class DesignSession(_BothSessions):
    """Inputs of kind `design_session`."""

    consumer_rid_policy: Literal["ignore", "include"]


def session(inputs: SendSession) -> dict[str, Any]:
    """What would this supplier send to this consumer now, from where, and why is each other record skipped?"""
    cleaned = frozenset(map(str, inputs.cleaned_replica_ids))
    played = inputs.played(Sending(inputs.ignore_missing_change, cleaned))
    return _told(played) | {"consumer_rid_ignored": played.about["consumer_rid_ignored"]}


def design_session(inputs: DesignSession) -> dict[str, Any]:
    """What would the design document have sent?"""
    played = inputs.played(Design(inputs.consumer_rid_policy))
    told = _told(played)
    return told | {**played.about, "first_sent": next(iter(told["sent"]), None)}


def _told(played: Session) -> dict[str, Any]:
    """What the contract asks, and the reasons: of each record [rule, the consumer's last, the stop], then of each start."""
    return {
        "decision": played.decision,
        "anchor_csn": played.anchor,
        "sent": played.sent,
        "outcome_in_order": [{"csn": step.position, "outcome": step.outcome} for step in played.steps],
        "session_end": played.end,
        "buffer_loads": played.loads,
        "why_in_order": [[step.rule, step.consumer, step.stop] for step in played.steps],
        "why_of_starts": [{"rule": reason.rule, **reason.values} for reason in played.reasons],
    }


class LostAnchor(Inputs):
    """An anchor that is not in the changelog."""

    anchor: Csn
    local_max: Csn | None
    purge_point: Csn | None


class MissingAnchorClass(Inputs):
    """Inputs of kind `missing_anchor_class`."""

    rows: list[LostAnchor]


_STATUS_TRANSIENT = 18
"""What the agreement shows for both: the status of the cause, 15, is overwritten at once."""


def missing_anchor_classes(inputs: MissingAnchorClass) -> dict[str, Any]:
    """Is a lost anchor purged, missing, or simply not there yet?"""
    classes = [missing_anchor_class(row.anchor, row.local_max, row.purge_point) for row in inputs.rows]
    return {"class": classes, "status_code": [0 if one == "not_seen" else _STATUS_TRANSIENT for one in classes]}


class Consumer(Inputs):
    """A server that was initialised, or fell behind."""

    name: str
    replica_id: RidNumber
    ruv: Ruv


class Supplier(Inputs):
    """A server that may help it."""

    ruv: Ruv
    changelog: list[Csn]
    purge_ruv: PerRid[Csn]


class MissedAfterInit(Inputs):
    """Inputs of kind `missed_after_init`."""

    consumer: Consumer
    suppliers: dict[str, Supplier]


def missed_after_init(inputs: MissedAfterInit) -> dict[str, Any]:
    """Which supplier can still bring this consumer up to date, and what would "ignore missing" lose?"""
    everything = {csn for supplier in inputs.suppliers.values() for csn in supplier.changelog}
    suppliers = {name: _offer(inputs.consumer, one, everything) for name, one in inputs.suppliers.items()}
    able = [name for name, offer in suppliers.items() if offer["decision"] == SEND]
    if able:
        best = min(able, key=lambda name: (-len(suppliers[name]["would_send"]), name))
        repair: Mapping[str, Any] = {"do": "resume_agreement", "supplier": best}
    else:
        nothing = all(offer["decision"] == NOTHING for offer in suppliers.values())
        repair = {"do": "none" if nothing else "reinitialize", "supplier": None}
    return {"suppliers": suppliers, "repair": repair}


def _offer(consumer: Consumer, supplier: Supplier, everything: set[str]) -> dict[str, Any]:
    def played(ignore_missing: str) -> Session:
        log = SortedLog(supplier.changelog, origin_of)
        ruvs = supplier.ruv.spans, consumer.ruv.spans
        return replay(Sending(ignore_missing), log, *ruvs, str(consumer.replica_id))

    now = played(NEVER)
    offer: dict[str, Any] = {"decision": now.decision, "anchor_csn": now.anchor, "would_send": now.sent}
    offer |= {"anchor_class": None, "if_ignored": None}
    if now.decision == ANCHOR_NOT_FOUND and now.anchor:
        rid = origin_of(now.anchor)
        offer["anchor_class"] = missing_anchor_class(
            now.anchor, last(supplier.ruv.spans, rid), supplier.purge_ruv.get(rid)
        )
        sent = played(ONCE).sent
        offer["if_ignored"] = {"sent": sent, "lost": _lost(consumer.ruv, sent, everything)}
    return offer


def _lost(before: ReadRuv, sent: list[str], everything: set[str]) -> list[str]:
    """What the consumer's RUV would cover although the change was never sent to it, so that nobody sends it any more."""
    highest: dict[str, str] = {}
    for csn in sent:
        highest[origin_of(csn)] = max(csn, highest.get(origin_of(csn), ""))
    return sorted(
        csn
        for csn in everything - set(sent)
        if csn <= highest.get(origin_of(csn), "") and not covers(before.spans, origin_of(csn), csn)
    )
