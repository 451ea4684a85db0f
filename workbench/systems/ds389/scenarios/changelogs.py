"""trim, restore_order: what a changelog loses by age, and a server by writing too early."""

from __future__ import annotations

from typing import Any, Literal

from workbench.input_validation import Inputs
from workbench.systems.ds389.rules.restoring import OWN_RID_HOLE, after_restore
from workbench.systems.ds389.rules.trimming import at_risk, removable, trim_limits
from workbench.systems.ds389.scenarios.fields import Csn, Ruv


class Record(Inputs):
    """A record of the changelog, and how long ago it was logged (not: made)."""

    csn: Csn
    logged_age_s: int


class Agreement(Inputs):
    """What the supplier remembers of a consumer; a new agreement remembers nothing."""

    to: str
    enabled: bool
    remembered_consumer_ruv: Ruv | None


class Trim(Inputs):
    """A changelog, and what protects it."""

    supplier_ruv: Ruv
    max_age_s: int
    changelog: list[Record]
    agreements: list[Agreement]


class Event(Inputs):
    """Something of its own replica ID that reaches the restored server."""

    do: Literal["replayed", "own_write"]
    csn: Csn


class RestoreOrder(Inputs):
    """All CSNs are of the restored server's replica ID; `restored_to` is its last one right after the restore."""

    restored_to: Csn
    peers_hold: list[Csn]
    events: list[Event]


def trim(given: Trim) -> dict[str, Any]:
    """What may go by the safe rule, and which replica IDs the server does not treat by it."""
    remembered = [one.remembered_consumer_ruv.spans for one in given.agreements if one.remembered_consumer_ruv]
    limits = trim_limits(given.supplier_ruv.spans, remembered)
    ages = [(record.csn, record.logged_age_s) for record in given.changelog]
    return {
        "limit_per_rid": limits,
        "removable": removable(ages, limits, given.max_age_s),
        "trim_risk_rids": at_risk(limits),
    }


def restore_order(given: RestoreOrder) -> dict[str, Any]:
    """What the peers still have of the server's own changes, and whether it will ever get it."""
    events = ((event.do == "own_write", event.csn) for event in given.events)
    restored = after_restore(given.restored_to, given.peers_hold, events)
    return {
        "lost": restored.lost,
        "still_to_come": restored.still_to_come,
        "first_violation": restored.first_violation,
        "finding": OWN_RID_HOLE if restored.lost else None,
    }
