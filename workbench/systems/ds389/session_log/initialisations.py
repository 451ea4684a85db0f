"""Consumers without whole data, by what the agreements that lead to them keep of their last total initialisation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.intake.inputs import stores_of
from workbench.rules.initialisations import Initialisation, unfilled
from workbench.rules.link_failures import LinkKey
from workbench.systems.ds389.rules.proving import owners_of, store_of
from workbench.systems.ds389.session_log.lines import WITH_TEXT, Place, session_logs

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.systems.ds389.session_log.addresses import Addresses
    from workbench.topology.topology import Link, Topology

Row = Mapping[str, Any]

_OFFLINE = ("import_end", "restore")
"""Codes of messages that tell of data out of a file."""
_TELLING = (
    *_OFFLINE,
    "import_begin",
    "import_failed",
    "total_receive",
    "replica_offline",
    "replica_online",
    "starting",
)
"""These, and those that tell of which suffix an import was."""
_SECOND = timedelta(seconds=1)
_ENDS_WITH_IT = timedelta(seconds=60)
"""What a consumer logs so soon is the end of the initialisation that broke off."""


def goes_on(places: Addresses, link: Link, row: Row) -> bool:
    """True if an agreement says that it fills its consumer, and still asks for that or its supplier's log tells that it began.

    A request of before a stop is in no entry, and the sentence of a filling that was broken off may stay behind.
    """
    if "Total update in progress" not in (row.get("init_status") or ""):
        return False
    line, began = places.fillings.begun.get((link.supplier, link.name)), row.get("init_started_at")
    logged = line[1].at if line else None
    return row.get("init_outcome") is None or bool(logged and began and logged >= began - _SECOND)


def left_unfilled(places: Addresses, statuses: Mapping[LinkKey, Row]) -> dict[tuple[str, str | None], Initialisation]:
    """(consumer, suffix) -> its last initialisation, which ended badly, where nothing tells that it was filled since.

    A consumer of which no file tells which server it is stands under its address.
    """
    of: dict[str | None, list[Initialisation]] = {}
    for link in places.shown.links:
        consumer = link.consumer or (link.failure.means if link.failure else None) or link.address
        row = statuses.get((link.supplier, link.suffix, link.name), {})
        if consumer:
            times = row.get("init_started_at"), row.get("init_ended_at")
            session = last_success(row)
            outcome = None if goes_on(places, link, row) else row.get("init_outcome")
            told = Initialisation(link.supplier, link.name, consumer, *times, outcome, session)
            # An agreement that never initialised anybody tells nothing, unless a session of it succeeded.
            if told.at or told.outcome or session:
                of.setdefault(link.suffix, []).append(told)
    found = {(name, suffix): one for suffix, some in of.items() for name, one in unfilled(some).items()}
    return {key: one for key, one in found.items() if not filled_from_a_file(places.case, *key, one)}


class BrokenOff(NamedTuple):
    """A replacement of the data of a replica that failed or goes on, by the server's own log.

    at     when it failed, else when it began
    lines  of the log that prove it
    """

    server: str
    suffix: str | None
    at: datetime | None
    lines: tuple[tuple[Row, Place], ...]


def broken_off(case: Case, shown: Topology) -> list[BrokenOff]:
    """Replicas that went offline for new data, which did not arrive whole, and that did not come online or start since."""
    return [one for one, failed in _offline(case, shown) if failed]


def still_offline(case: Case, shown: Topology) -> list[BrokenOff]:
    """Replicas that went offline for new data, which are arriving: `at` is when that began."""
    return [one for one, failed in _offline(case, shown) if not failed]


def _offline(case: Case, shown: Topology) -> Iterator[tuple[BrokenOff, bool]]:
    """Replicas that are offline by the end of the server's own log, and whether the import failed since."""
    went = {one.server for one in case.inputs if one.facts.get("codes", {}).get("replica_offline")}
    known = {(one.server, one.suffix) for one in shown.replicas}
    for log in session_logs(case.until(shown.snapshot)) if went else ():
        offline: dict[str | None, tuple[Row, Place]] = {}
        broke: dict[str | None, tuple[Row, Place]] = {}
        codes = ("starting", "replica_offline", "replica_online", "import_failed")
        for row, place in log.lines(codes, [*WITH_TEXT, "suffix"]) if log.server in went else ():
            if row["code"] == "starting":
                offline.clear()
                broke.clear()
            elif row["code"] == "replica_online":
                offline.pop(row["suffix"], None)
                broke.pop(row["suffix"], None)
            elif row["code"] == "replica_offline":
                offline[row["suffix"]] = row, place
                broke.pop(row["suffix"], None)
            elif len(offline) == 1:  # of several nothing tells whose import that was
                broke[next(iter(offline))] = row, place
        for suffix, went_at in offline.items():
            last = broke.get(suffix, went_at)
            lines = (went_at, last) if suffix in broke else (went_at,)
            if {(log.server, suffix), (log.server, None)} & known:  # of one that could not be read its log alone tells
                yield BrokenOff(log.server, suffix, last[1].at, lines), suffix in broke


def last_success(row: Row) -> datetime | None:
    """When the last session over an agreement succeeded, or the present one was let in; None: the status tells of none.

    The sentence tells it. The number 0 alone stands in front of others, too: `Error (0) agreement disabled`, `Error (0) No
    replication sessions started since server startup`.
    """
    sentence = row.get("status") or ""
    if row.get("status_code") != 0 or row.get("state") == "red":
        return None
    if "Incremental update succeeded" in sentence:
        return row.get("ended_at")
    return row.get("started_at") if "Incremental update started" in sentence else None


def filled_from_a_file(case: Case, server: str, suffix: str | None, since: Initialisation) -> bool | None:
    """True if the server's own log tells of an import or a restore of the suffix after that.

    None: it tells of an import of one of its suffixes, and nothing tells of which.
    """
    rows = [
        (row, place)
        for log in session_logs(case)
        if log.server == server
        for row, place in log.lines(_TELLING, [*WITH_TEXT, "suffix"])
    ]
    stores = stores_of(case.inputs, server)
    owners = owners_of((row for row, _ in rows), stores)
    upto = since.at + _ENDS_WITH_IT if since.at else None
    later = [row for row, place in rows if upto and row["code"] in _OFFLINE and place.at and place.at > upto]
    of = {suffix if row["code"] == "restore" else row["suffix"] or owners.get(store_of(row)) for row in later}
    others = {*stores.values(), *owners.values(), *(row["suffix"] for row, _ in rows)} - {suffix, None}
    if suffix in of or (None in of and not others):
        return True
    return None if None in of else False


def filled_at(logs: Iterable[Any], server: str, suffix: str | None) -> datetime | None:
    """When the server last got the data of the suffix as a whole, as its own log tells; None: it does not."""
    moments = [
        place.at
        for log in logs
        if log.server == server
        for row, place in log.lines(("replica_online",), [*WITH_TEXT, "suffix"])
        if place.at and row["suffix"] == suffix
    ]
    return max(moments, default=None)
