"""Kinds about logs and machines: do two logs meet, is a node behind, may one pull from the other, what is this LSN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from workbench.replication.tier.rules.log_retention import self_check
from workbench.replication.tier.rules.reconnection import CLASSES, allowed_source, overlaps
from workbench.systems.comdb2.scenarios.fields import Count, ListedLsn, Lsn, Seconds, Versioned
from workbench.systems.comdb2.scenarios.fields import lsn_read as read


class Ranges(Versioned):
    """The first and the last LSN of both."""

    source_first: Lsn
    source_last: Lsn
    replicant_first: Lsn
    replicant_last: Lsn
    physrep_max_rollback_files: Count = 0


def overlapping(given: Ranges) -> dict[str, Any]:
    """Whether the ranges meet."""
    ends = (given.source_first, given.source_last, given.replicant_first, given.replicant_last)
    return {"overlap": int(overlaps(*ends, given.physrep_max_rollback_files))}


class SelfChecked(Versioned):
    """Where the replicant and its source are, and for how long it has applied nothing."""

    my_lsn: ListedLsn
    source_row: ListedLsn
    idle_s: Seconds
    threshold_s: Seconds = 60


def self_checked(given: SelfChecked) -> dict[str, Any]:
    """What it says of itself, and what is so."""
    found = self_check(given.my_lsn, given.source_row, given.idle_s, given.threshold_s)
    return {"comdb2_prints_inactive_message": int(found.says_inactive), "really_behind": int(found.behind)}


def _class(name: str) -> str:
    if name.lower() not in CLASSES:
        raise ValueError(f"is no class of machines ({', '.join(CLASSES)})")
    return name.lower()


if TYPE_CHECKING:
    MachineClass = str
else:
    MachineClass = Annotated[
        str, AfterValidator(_class), WithJsonSchema({"type": "string", "format": "|".join(CLASSES)})
    ]


class Classes(Versioned):
    """The classes of both machines."""

    my_class: MachineClass
    source_class: MachineClass


def allowed(given: Classes) -> dict[str, Any]:
    """Whether it may pull from there."""
    return {"allowed": int(allowed_source(given.my_class, given.source_class))}


class LsnText(Versioned):
    """A text that may be an LSN."""

    text: str


def lsn_read(given: LsnText) -> dict[str, Any]:
    """Its file and place."""
    lsn = read(given.text)
    return {"lsn": list(lsn) if lsn else None}
