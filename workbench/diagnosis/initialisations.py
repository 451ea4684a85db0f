"""The total initialisations of a server that the links to it tell of: those that may have filled it, and those that broke off."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.selective_read import rows_where
from workbench.rules.initialisations import ABORTED, SUCCEEDED

if TYPE_CHECKING:
    from workbench.topology.suffix_evidence import Evidence
    from workbench.topology.topology import Replica

Told = list[tuple[str, datetime, datetime]]
"""(supplier, began, ended), in the order of time."""


def initialisations(evidence: Evidence, replica: Replica) -> Told:
    """Those that succeeded, or of which nothing tells how they ended: by the links, and by the logs of their suppliers."""
    return sorted({*_told(evidence, replica, (SUCCEEDED, None)), *_logged(evidence, replica)}, key=lambda one: one[1])


def broken_off(evidence: Evidence, replica: Replica) -> Told:
    """Those that broke off while data was sent: the old data of the server is gone, and the new is not whole."""
    return _told(evidence, replica, (ABORTED,))


def _leading_to(evidence: Evidence, replica: Replica) -> set[tuple[str, str]]:
    """Supplier and name of the links that lead to a replica."""
    return {
        (link.supplier, link.name)
        for link in evidence.shown.links
        if link.consumer == replica.server and link.suffix == replica.suffix
    }


def _logged(evidence: Evidence, replica: Replica) -> Told:
    """Those that the logs of suppliers tell of from begin to end: a link forgets its last one when the supplier restarts.

    Such a line names the link and where it led to: of a name that links of two suffixes bear it tells nothing.
    """
    proving = evidence.shown.proving
    if not proving.sends_whole:
        return []
    others = {(link.supplier, link.name) for link in evidence.shown.links if link.suffix != replica.suffix}
    names = _leading_to(evidence, replica) - others
    where = pc.field("code").isin(pa.array([proving.sends_whole, proving.sent_whole])) & pc.field("at").is_valid()
    found = set()
    # The line has the host up to its first dot.
    led_to = {
        (link.supplier, link.name): f"({host.partition('.')[0]}:{port})"
        for link in evidence.shown.links
        if link.suffix == replica.suffix and link.consumer == replica.server
        for host, _, port in [(link.address or "").rpartition(":")]
    }
    for supplier in sorted({supplier for supplier, _ in names}):
        # A log that is collected again begins with the lines that it had before.
        rows = {
            (row["at"], row["link"], row["code"])
            for part in evidence.parts("messages", supplier)
            for row in rows_where([part], ["at", "code", "link", "text"], where).to_pylist()
            if (supplier, row["link"]) in names and led_to[supplier, row["link"]] in (row["text"] or "")
        }
        began: dict[str, datetime] = {}
        for at, link, code in sorted(rows):
            if code == proving.sends_whole:
                began[link] = at
            elif link in began:
                found.add((supplier, began.pop(link), at))
    return sorted(found, key=lambda one: one[1])


def _told(evidence: Evidence, replica: Replica, outcomes: Collection[str | None]) -> Told:
    to_here = _leading_to(evidence, replica)
    known = {one.snapshot for one in evidence.inputs}
    found = {
        (row["server"], row["init_started_at"], row["init_ended_at"])
        for row in evidence.rows("links")
        if (row["server"], row["name"]) in to_here and row["snapshot"] in known and row["suffix"] == replica.suffix
        if row["init_started_at"] and row["init_ended_at"] and row["init_ended_at"] >= row["init_started_at"]
        if row["init_outcome"] in outcomes
    }
    return sorted(found, key=lambda one: one[1])
