"""The total initialisations of a server that the links to it tell of: those that may have filled it, and those that broke off."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.rules.initialisations import ABORTED, SUCCEEDED

if TYPE_CHECKING:
    from workbench.fleet.told import Evidence
    from workbench.fleet.topology import Replica

Told = list[tuple[str, datetime, datetime]]
"""(supplier, began, ended), in the order of time."""


def initialisations(evidence: Evidence, replica: Replica) -> Told:
    """Those that succeeded, or of which nothing tells how they ended."""
    return _told(evidence, replica, (SUCCEEDED, None))


def broken_off(evidence: Evidence, replica: Replica) -> Told:
    """Those that broke off while data was sent: the old data of the server is gone, and the new is not whole."""
    return _told(evidence, replica, (ABORTED,))


def _told(evidence: Evidence, replica: Replica, outcomes: Collection[str | None]) -> Told:
    to_here = {
        (link.supplier, link.name)
        for link in evidence.shown.links
        if link.consumer == replica.server and link.suffix == replica.suffix
    }
    known = {one.snapshot for one in evidence.inputs}
    found = {
        (row["server"], row["init_started_at"], row["init_ended_at"])
        for row in evidence.rows("links")
        if (row["server"], row["name"]) in to_here and row["snapshot"] in known and row["suffix"] == replica.suffix
        if row["init_started_at"] and row["init_ended_at"] and row["init_ended_at"] >= row["init_started_at"]
        if row["init_outcome"] in outcomes
    }
    return sorted(found, key=lambda one: one[1])
