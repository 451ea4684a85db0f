"""Suppliers that began to fill a server and have not ended it, by their logs: as soon as both answer, they begin it again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.systems.ds389.session_log.initialisations import filled_at, still_offline
from workbench.systems.ds389.session_log.lines import WITH_TEXT, Place, session_logs

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.systems.ds389.session_log.addresses import Addresses
    from workbench.topology.topology import Link, Topology

_BEGUN = "total_begin"
_OVER = frozenset({"total_end", "total_failed", "acquired", "released"})
"""Lines of an agreement after which its filling is over: it ended, or sessions run again."""
_ADDRESS = re.compile(r"\(([^()\s]+:\d+)\)")
_Line = tuple[Mapping[str, Any], Place]


@dataclass
class Fillings:
    """What the logs of suppliers tell of the fillings that they began, by supplier and agreement.

    begun    the line of one that has not ended
    lasting  the line of one that began again after a stop had broken it off. A server that stops while it fills another one
             leaves the request in the agreement's entry, and reads it at its start (`auto_initialize`): until it starts again
             the filling begins each time that the agreement is started anew
    """

    begun: dict[tuple[str, str], _Line] = field(default_factory=dict)
    lasting: dict[tuple[str, str], _Line] = field(default_factory=dict)


def fillings_of(case: Case, shown: Topology) -> Fillings:
    """What all logs tell, in one pass."""
    found = Fillings()
    filling = {one.server for one in case.inputs if one.facts.get("codes", {}).get(_BEGUN)}
    for log in session_logs(case.until(shown.snapshot)) if filling else ():
        if log.server not in filling:
            continue
        begun: dict[str, _Line] = {}
        before: dict[str, _Line] = {}
        lasting: dict[str, _Line] = {}
        for row, place in log.lines((_BEGUN, *_OVER, "starting"), WITH_TEXT):
            name = row["link"] or ""
            if row["code"] == "starting":  # what it began again since has a line of its own
                before, begun, lasting = begun, {}, {}
            elif row["code"] != _BEGUN:
                begun.pop(name, None)
            else:
                begun[name] = row, place
                if before.pop(name, None):
                    lasting.setdefault(name, (row, place))
        found.begun |= {(log.server, name): line for name, line in begun.items()}
        found.lasting |= {(log.server, name): line for name, line in lasting.items()}
    return found


def address_of(row: Mapping[str, Any]) -> str:
    """The address in a line that tells of the beginning of a filling; empty: it has none."""
    found = _ADDRESS.search(row["text"] or "")
    return found[1] if found else ""


def tried_again(row: Mapping[str, Any]) -> bool:
    """True if an agreement began to fill its consumer, did not end, and has no sentence on it: it has not come through so far."""
    began, ended = row.get("init_started_at"), row.get("init_ended_at")
    told = row.get("init_status") or row.get("init_outcome")
    return bool(began and not told and not (ended and ended >= began))


def fillers(places: Addresses, server: str, suffix: str | None) -> list[str]:
    """The suppliers whose logs say that they began to fill a server, and not that this ended."""
    begun = places.fillings.begun
    elsewhere = {(link.supplier, link.name) for link in places.shown.links if link.suffix != suffix}
    lines = [
        (supplier, place.at)
        for (supplier, name), (row, place) in begun.items()
        if (supplier, name) not in elsewhere and places.is_of(server, address_of(row))
    ]
    if not lines:
        return []
    whole: datetime | None = filled_at(session_logs(places.case.until(places.shown.snapshot)), server, suffix)
    return sorted({supplier for supplier, at in lines if whole is None or (at and at > whole)})


def fills_anew(case: Case, link: Link, row: Mapping[str, Any], places: Addresses, consumer: str) -> bool:
    """True if the supplier goes on with a filling of a consumer that could not be read, as soon as that answers."""
    if link.supplier in fillers(places, consumer, link.suffix):
        return True
    offline = still_offline(case, places.shown) if tried_again(row) else []
    return any((one.server, one.suffix) == (consumer, link.suffix) for one in offline)
