"""The way of one change: when it was made, when it came to each server, by which proof, and over which links.

A hop needs a link. Which link it was is told by the supplier's log where that names what it sends; else there may be only
one supplier that had the change before; else it stays unknown. The clocks of several servers are compared as they are: where
a change seems to arrive before it was there to send, the hop says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.engine.observation_queries import rows_about
from workbench.model import Problem
from workbench.safety import printable
from workbench.systems import format_with
from workbench.topology.timeline import EVER, OWN_TIME, Timeline

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.topology.topology import Link

MADE, APPLIED, IN_LOG, COVERED, UNKNOWN = "made", "applied", "in_log", "covered", "unknown"
"""Of an arrival: made there; applied; only found in its log; not shown, but its vector covers it; nothing shows it.

Other words are outcomes of the table `applied` that came instead: refused, dropped, cancelled, skipped, acknowledged.
"""

SENT, ONLY_HOLDER = "sent", "only_holder"
"""How a hop is known: the supplier's log says that it sent it; no other supplier with a link there had it before."""

_ROWS = {
    "applied": ["suffix", "offset", "outcome", "position", "at", "code", "connection", "replicated"],
    "operations": ["suffix", "offset", "step", "position", "at", "connection"],
    "messages": ["suffix", "offset", "code", "position", "at", "link"],
}


@dataclass(frozen=True)
class Arrival:
    """A change at one server. `at`: when it certainly was there, by the server's own clock; None: nothing tells when."""

    server: str
    suffix: str | None
    outcome: str
    at: datetime | None = None
    evidence: str | None = None
    snapshot: str | None = None
    file: str | None = None
    offset: int | None = None
    connection: str | None = None


@dataclass(frozen=True)
class Hop:
    """How the change came to a server.

    supplier  None: unknown; `candidates` are those that may have sent it
    by        `sent` or `only_holder`; None where the supplier is unknown
    sent_at   when the supplier's log says that it sent it, by the supplier's clock
    seconds   from the supplier's arrival to this one; below zero the clocks disagree, or the proof is late
    """

    consumer: str
    supplier: str | None = None
    link: str | None = None
    by: str | None = None
    sent_at: datetime | None = None
    seconds: float | None = None
    clocks_disagree: bool = False
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """The way of one change. `made_at` is the time in its position, by its origin's clock; None if it carries none."""

    position: str
    origin: str
    made_at: datetime | None
    arrivals: tuple[Arrival, ...]
    hops: tuple[Hop, ...]


def arrivals(case: Case, position: str, suffix: str | None = None) -> Way:
    """When this change was made, when it arrived at each server, by which proof, and over which links it came.

    Arrivals stand in the order of time, those without a time last.
    """
    line = Timeline(case)
    key = line.system.typed(position)
    if key is None:
        raise Problem(f"{printable(position)[:60]} is not a position", "", "give one as `workbench explain` shows it")
    origin = line.system.origin_of(key)
    line.check_origin(origin)
    places = line.chosen(None, suffix)
    rows = list(_rows(line, key))
    held = _in_logs(line, key)
    found = [_arrival(line, place, key, origin, rows, held) for place in places]
    if all(one.outcome in (UNKNOWN, COVERED) for one in found):
        what = f"no server shows the change {line.system.show(key)}"
        raise Problem(what, case.name, "give a position that a log or an access log of the case names")
    about = {one.suffix for one in found if one.outcome not in (UNKNOWN, COVERED)}
    found = [one for one in found if one.suffix in about]
    found.sort(key=lambda one: (one.at or EVER, one.outcome != MADE, one.server))
    came = [one for one in found if one.outcome in (APPLIED, IN_LOG)]
    hops = tuple(_hop(line, one, found, rows) for one in came)
    return Way(line.system.show(key), origin, line.system.moment(key), tuple(found), hops)


def _rows(line: Timeline, key: str) -> Iterator[dict[str, Any]]:
    """Every row of any log that names the position; parts that cannot hold it are told by their statistics."""
    for one in line.case.inputs:
        for table, columns in _ROWS.items() if one.kind else ():
            for part in line.case.parts(table, one):
                for row in rows_about(part["path"], key, columns):
                    if table == "applied" and one.suffix and not row["suffix"]:
                        continue  # a result of a tree that nobody collected
                    about = {"table": table, "server": one.server, "snapshot": one.snapshot, "file": one.file}
                    word = format_with(one.kind).evidence or table
                    yield {**row, **about, "evidence": word, "suffix": row["suffix"] or one.suffix}


def _in_logs(line: Timeline, key: str) -> dict[tuple[str, str | None], dict[str, Any]]:
    """The servers whose logs hold the change, each with where it stands first, and when it was written if that is told."""
    hi, lo = line.system.halves(key)
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for one in line.case.inputs:
        place = one.server, one.suffix
        if not one.kind or not format_with(one.kind).is_log or place in found:
            continue
        parts = [part for part in one.parts if part["table"] == "positions"]
        if any(tuple(part["first"]) <= (hi, lo) <= tuple(part["last"]) for part in parts):
            for part in line.case.parts("changes", one):
                for row in rows_about(part["path"], key, ["kind", "position", "offset", "logged_at"]):
                    if row["kind"] == "change":
                        where = {"snapshot": one.snapshot, "file": one.file}
                        found[place] = {**row, **where, "evidence": format_with(one.kind).evidence}
    return found


def _arrival(
    line: Timeline,
    place: tuple[str, str | None],
    key: str,
    origin: str,
    rows: list[dict[str, Any]],
    held: Mapping[tuple[str, str | None], Mapping[str, Any]],
) -> Arrival:
    server, suffix = place
    # A line that names no suffix is of the server's only one; of several it may be of any.
    alone = sum(name == server for name, _ in line.replicas) == 1
    of = (None, suffix) if alone else (suffix,)
    mine = [
        row
        for row in rows
        if row["server"] == server and row["suffix"] in of and row["at"] and row["table"] != "messages"
    ]
    mine.sort(key=lambda row: row["at"])
    own = line.replicas[place] == origin

    def shown(outcome: str, row: Mapping[str, Any]) -> Arrival:
        where = (row.get(name) for name in ("evidence", "snapshot", "file", "offset", "connection"))
        return Arrival(server, suffix, outcome, row.get("at") or row.get("logged_at"), *where)

    for row in mine:
        if (
            row.get("outcome") == "applied"
            or (row.get("outcome") == "received" and not own)
            or row.get("step") in ("commit", "rolled_up")
        ):
            return shown(MADE if own and not row.get("replicated") else APPLIED, row)
    if place in held:
        begun = next((row for row in mine if row.get("step") == "begin"), None)
        # Changes that a server makes by itself leave no result: the pending list tells when it began.
        if begun or not own or held[place]["logged_at"]:
            return shown(MADE if own else IN_LOG, begun or held[place])
        return shown(MADE, {**held[place], "at": line.system.moment(key), "evidence": OWN_TIME})
    for row in mine:
        if row.get("outcome"):
            return shown(row["outcome"], row)
    claims = [claim for claim in line.claims(server, suffix, origin) if claim.own and claim.position >= key]
    if claims:
        return Arrival(server, suffix, COVERED, None, "vector", claims[0].snapshot, claims[0].file, claims[0].offset)
    return Arrival(server, suffix, UNKNOWN)


def _hop(line: Timeline, to: Arrival, found: list[Arrival], rows: list[dict[str, Any]]) -> Hop:
    """The link over which the change came to this server."""
    links = [link for link in line.links if link.consumer == to.server and link.suffix == to.suffix]
    shared = {(link.supplier, link.name) for link in line.links if link.suffix != to.suffix}
    there = {one.server: one for one in found if one.outcome in (MADE, APPLIED, IN_LOG)}
    sent = []
    for row in rows:
        if row["table"] == "messages" and row["code"] in line.system.sent and row["at"]:
            over = row["server"], row["link"]
            sent += [(row["at"], link) for link in links if (link.supplier, link.name) == over and over not in shared]
    if sent:
        # Sent twice, the first one that can have arrived counts; if all seem too late, the clocks disagree.
        sent.sort(key=lambda one: one[0])
        at, link = next((one for one in sent if to.at is None or one[0] <= to.at), sent[0])
        return _over(link, SENT, to, there.get(link.supplier), at)
    holders = [link for link in links if link.supplier in there]
    before = [link for link in holders if _before(there[link.supplier], to)]
    names = sorted({link.supplier for link in before or holders})
    if len(names) == 1:
        link = (before or holders)[0]
        return _over(link, ONLY_HOLDER, to, there[link.supplier], None)
    return Hop(to.server, candidates=tuple(names))


def _before(one: Arrival, other: Arrival) -> bool:
    """True unless the times say that the one came later; who made the change had it first, whatever its clock says."""
    return one.outcome == MADE or one.at is None or other.at is None or one.at <= other.at


def _over(link: Link, by: str, to: Arrival, source: Arrival | None, sent_at: datetime | None) -> Hop:
    began = source.at if source else None
    seconds = (to.at - began).total_seconds() if to.at and began else None
    early = bool(sent_at and to.at and to.at < sent_at) or (seconds is not None and seconds < 0)
    return Hop(to.server, link.supplier, link.name, by, sent_at, seconds, early)
