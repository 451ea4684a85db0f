"""Suppliers that began to fill a server and have not ended it, by their logs: as soon as both answer, they begin it again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.systems.ds389.logged.addresses import Addresses
from workbench.systems.ds389.logged.initialisations import filled_at
from workbench.systems.ds389.logged.lines import WITH_TEXT, Place, session_logs

if TYPE_CHECKING:
    from workbench.cases.case import Case
    from workbench.fleet.topology import Topology

_BEGUN = "total_begin"
_OVER = frozenset({"total_end", "total_failed", "acquired", "released"})
"""Lines of an agreement after which its filling is over: it ended, or sessions run again."""
_ADDRESS = re.compile(r"\(([^()\s]+:\d+)\)")


def lasting_requests(case: Case, shown: Topology) -> dict[tuple[str, str], tuple[Mapping[str, Any], Place]]:
    """Supplier and agreement -> the line of a filling that its last start began: until it starts again it keeps the request.

    A server that stops while it fills another one leaves the request in the agreement's entry, and reads it at its start
    (`auto_initialize`): each time that the agreement is started anew, the filling begins again.
    """
    found: dict[tuple[str, str], tuple[Mapping[str, Any], Place]] = {}
    for log in session_logs(case.until(shown.snapshot)):
        begun: set[str] = set()
        before: set[str] = set()
        for row, place in log.lines((_BEGUN, *_OVER, "starting"), WITH_TEXT):
            name = row["link"] or ""
            if row["code"] == "starting":
                found = {key: line for key, line in found.items() if key[0] != log.server}
                before, begun = begun, set()
            elif row["code"] != _BEGUN:
                begun.discard(name)
            else:
                begun.add(name)
                if name in before:
                    found.setdefault((log.server, name), (row, place))
                before.discard(name)
    return found


def filling_goes_on(row: Mapping[str, Any]) -> bool:
    """True if an agreement says that its filling has begun and not ended: while it is tried again there is no sentence."""
    began, ended = row.get("init_started_at"), row.get("init_ended_at")
    begun = "Total update in progress" in (row.get("init_status") or "")
    return row.get("init_outcome") is None and (begun or bool(began and not (ended and ended >= began)))


def fillers(case: Case, shown: Topology, server: str, suffix: str | None) -> list[str]:
    """The suppliers whose logs say that they began to fill a server, and not that this ended."""
    places = Addresses(case, shown)
    elsewhere = {(link.supplier, link.name) for link in shown.links if link.suffix != suffix}
    logs = session_logs(case.until(shown.snapshot))
    whole = filled_at(logs, server, suffix)
    found = set()
    for log in logs:
        begun: dict[str, datetime | None] = {}
        for row, place in log.lines((_BEGUN, *_OVER, "starting"), WITH_TEXT):
            name = row["link"] or ""
            if row["code"] == "starting":  # what it began again since has a line of its own
                begun.clear()
            elif row["code"] in _OVER:
                begun.pop(name, None)
            elif (
                (log.server, name) not in elsewhere
                and (address := _ADDRESS.search(row["text"] or ""))
                and places.is_at(server, address[1])
            ):
                begun[name] = place.at
        if any(whole is None or (at and at > whole) for at in begun.values()):
            found.add(log.server)
    return sorted(found)
