"""Origins that no collected server is: is their server gone, or was it just not collected?

No link has to lead to a supplier that feeds others. That it lives is shown by its changes alone: they arrive.

    a: agreements to b and h      b: agreements to a and h      c: agreements to a and b, not collected
    The newest change of origin 3 reached a 47 s before a was read: c lives, and what it alone has is in no collected file.

A server that was taken away made its last change before that, too. So a person must have deleted a link since, or the change
must be old: only then the origin counts as dead. The deleted link may have been one of several to a server that lives: as long
as the change is young, no plan cleans the origin unless a person asks for that by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.intake.links import one_machine
from workbench.model import Finding, first_few, step, time_passed
from workbench.systems import format_with
from workbench.topology.suffix_evidence import makes_none
from workbench.topology.topology import NOT_COLLECTED

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.intake.inputs import Input
    from workbench.topology.topology import Replica, Row

SUPPLIER_NOT_COLLECTED = "SUPPLIER_NOT_COLLECTED"
QUIET = timedelta(days=7)
"""Of a supplier that lives changes arrive; one of which nothing came for so long may be gone, or idle."""


@dataclass(frozen=True)
class Absent:
    """An origin that stands in vectors, and that no collected server is.

    rows      the elements of the vectors that name it
    replicas  all servers of the suffix
    """

    suffix: str | None
    origin: str
    rows: Sequence[Row]
    replicas: Sequence[Replica]


@dataclass(frozen=True)
class Heard:
    """The newest change of such an origin where it arrived first, shortly before the servers were read.

    address   where its server listens, as the vectors tell it; empty: they do not
    at        when it arrived, or where nothing tells that (`arrived` is False) was made, by the clock of its origin
    read_at   when the servers were read, or the last time that the files of this one tell
    evidence  the line or the element that tells it
    """

    absent: Absent
    address: str
    position: str
    server: str
    at: datetime
    read_at: datetime
    evidence: Mapping[str, Any]
    arrived: bool = True


def absent_origins(context: DetectorContext) -> list[Absent]:
    """Origins in vectors that no collected server has and no link leads to, where all that links lead to was collected."""
    return context.once(_absent)


def lately_heard(context: DetectorContext) -> list[Heard]:
    """Those of them of which a change arrived, or was made, in the week before the servers were read."""
    return context.once(_lately)


def unseen_suppliers(context: DetectorContext) -> list[Heard]:
    """Those of them whose server seems to live: it was not collected."""
    return context.once(_unseen)


def claims_of(context: DetectorContext) -> list[Row]:
    """The elements of which the servers' vectors are made: malformed ones, and those of an older export, are not."""
    vectors = {(one.server, one.suffix): one.vector for one in context.topology.replicas}
    return [
        row
        for row in context.case.arrow("vectors").to_pylist()
        if row["snapshot"] == context.topology.snapshot
        and row["kind"] == "server"
        and not row["problem"]
        and row["origin"] in vectors.get((row["server"], row["suffix"]), ())
    ]


def element_of(row: Row) -> dict[str, Any]:
    """An element of a vector as evidence."""
    return {key: row[key] for key in ("server", "file", "offset", "raw")}


def unseen_rows(context: DetectorContext) -> list[dict[str, Any]]:
    """The same as rows of `not_collected`; where no supplier was collected at all, every one that a vector names."""
    heard = {(one.address, one.absent.suffix) for one in unseen_suppliers(context)} | _all_suppliers(context)
    order = sorted((key for key in heard if key[0]), key=lambda key: (key[1] or "", key[0]))
    return [{"server": address, "suffix": suffix, "why": NOT_COLLECTED} for address, suffix in order]


def _all_suppliers(context: DetectorContext) -> set[tuple[str, str | None]]:
    """Address and suffix of each supplier in the vectors, where the collected servers of a suffix make no changes."""
    shown, case = context.topology, context.case
    making = {one.suffix for one in shown.replicas if one.origin or not makes_none(case, shown, one.server, one.suffix)}
    rows = [row for row in claims_of(context) if row["suffix"] not in making]
    found = {((row["url"] or "").partition("://")[2].strip("/").lower(), row["suffix"]) for row in rows}
    known = [address.rpartition(":") for address in context.once(_listening)]

    def collected(address: str) -> bool:
        host, _, port = address.rpartition(":")
        return any(port == its_port and one_machine(host, its) for its, _, its_port in known)

    return {(address, suffix) for address, suffix in found if not collected(address)}


def supplier_not_collected(context: DetectorContext) -> Iterator[Finding]:
    """Suppliers of which nothing was collected, although their changes arrive."""
    for heard in unseen_suppliers(context):
        origin, show = heard.absent.origin, context.topology.system.show
        named = f" ({heard.address})" if heard.address else ""
        ago, at = time_passed(max(heard.read_at - heard.at, timedelta())), f"{heard.at:%Y-%m-%d %H:%M:%S}"
        yield Finding(
            "SUPPLIER_NOT_COLLECTED",
            "warning",
            f"a supplier that makes changes as origin {origin}{named} was not collected, or was removed since: its newest "
            f"change, {show(heard.position)}, reached {heard.server} at {at}, {ago} before the servers were "
            "read; nothing tells how it stands, nor what it alone has",
            origin=origin,
            suffix=heard.absent.suffix,
            items=(show(heard.position),),
            evidence=(heard.evidence, *first_few(map(element_of, heard.absent.rows))),
            fix=(
                step(
                    f"collect it, too, and diagnose again; clean origin {origin} only if that server is gone for good",
                    "its changes came lately, though no link leads to it: its own files tell what it misses and alone has",
                    "cleaning cannot be undone: a server that lives goes on making changes as it, which the others then drop",
                ),
            ),
        )


def _absent(context: DetectorContext) -> list[Absent]:
    shown, claims, found = context.topology, claims_of(context), list[Absent]()
    telling = {one.server for one in context.inputs if format_with(one.kind).tells_links}
    links = context.statuses()
    for suffix in sorted({one.suffix for one in shown.replicas}, key=lambda suffix: suffix or ""):
        # A server of which only a log was collected, or that was down, may be any origin of any suffix.
        mine = [one for one in shown.replicas if one.suffix == suffix or (one.suffix is None and not one.claims)]
        led = [link for link in shown.links if link.suffix == suffix]
        there = {one.server for one in mine if one.claims}
        # Of a server that keeps no log no link can lead on; of all others the links have to be known.
        known = all(
            one.claims
            and (not one.keeps_log or one.server in telling or any(link.supplier == one.server for link in led))
            for one in mine
        )
        # Who makes the changes of a read-only server is told by links to it alone: where only such were collected, anybody may.
        # Where all do, one of which nobody knows as whom makes the changes of any.
        made_here = (all if shown.pulling else any)(one.origin for one in mine)
        if not known or not made_here or shown.down - there or any(link.consumer not in there for link in led):
            continue
        alive = {one.origin for one in mine} | {
            row["consumer_origin"] for key, row in links.items() if key[1] == suffix and "consumer_origin" in row
        }
        claimed: dict[str, list[Row]] = {}
        for row in claims:
            if row["suffix"] == suffix and row["origin"] not in alive:
                claimed.setdefault(row["origin"], []).append(row)
        found += [Absent(suffix, origin, rows, mine) for origin, rows in sorted(claimed.items())]
    return found


def _lately(context: DetectorContext) -> list[Heard]:
    absents = [] if context.topology.pulling else absent_origins(context)
    newest = context.newest() if absents else {}
    collected = max((one.ended for one in context.topology.readings), default=None)
    found: list[Heard] = []
    for absent in absents:
        addresses = {(row["url"] or "").partition("://")[2].strip("/").lower() for row in absent.rows} - {""}
        if addresses & context.once(_listening):
            continue  # an earlier origin of a server that was collected
        arrived = _first_arrival(context, absent)
        if first := arrived or _made(context, absent):
            at, position, row = first
            # Of another server a line may bear a wrong time.
            if (read_at := collected or newest.get(row["server"])) is None:
                continue
            heard = Heard(absent, min(addresses, default=""), position, row["server"], at, read_at, row, bool(arrived))
            found += [heard] if read_at - at < QUIET else []
    return found


def _unseen(context: DetectorContext) -> list[Heard]:
    heard = [one for one in lately_heard(context) if one.arrived]
    gone = {suffix: _taken_away(context, suffix) for suffix in {one.absent.suffix for one in heard}}
    return [one for one in heard if not ((deleted := gone[one.absent.suffix]) and deleted > one.at)]


def _first_arrival(context: DetectorContext, absent: Absent) -> tuple[datetime, str, Row] | None:
    """When the newest change of the origin was on any collected server first, by a log or by when the vector moved there."""
    newest = _newest(absent)
    if newest is None:
        return None
    found = [
        (row["modified_at"], newest, element_of(row))
        for row in absent.rows
        if row["max"] == newest and row["modified_at"]
    ]
    columns = ["server", "file", "offset", "position", "at", "connection", "replicated"]
    where = pc.field("position").isin(pa.array([newest], pa.string())) & pc.field("at").is_valid()
    for batch in context.rows("applied", columns, where, snapshot=context.topology.snapshot):
        for row in batch.to_pylist():
            if row["replicated"] is not False:
                shown = {key: row[key] for key in ("server", "file", "offset", "connection")}
                found.append((row["at"], newest, shown | {"at": row["at"].isoformat()}))
    return min(found, key=lambda arrival: arrival[0], default=None)


def _made(context: DetectorContext, absent: Absent) -> tuple[datetime, str, Row] | None:
    """When that change was made, by the clock of its origin."""
    newest = _newest(absent)
    moment = context.topology.system.moment(newest) if newest else None
    named = next((element_of(row) for row in absent.rows if row["max"] == newest), None)
    return (moment, newest, named) if newest and moment and named else None


def _newest(absent: Absent) -> str | None:
    return max((row["max"] for row in absent.rows if row["max"]), default=None)


def _taken_away(context: DetectorContext, suffix: str | None) -> datetime | None:
    """When a person last deleted a link of the suffix that is not there any more, and whose name names no collected server."""
    there = {(link.supplier, link.suffix, link.name) for link in context.topology.links}
    collected = "|".join(sorted({re.escape(replica.server) for replica in context.topology.replicas}))
    to_collected = re.compile(rf"(?:^|[^0-9A-Za-z])(?:{collected})$", re.IGNORECASE)
    times = (
        at
        for one in context.inputs
        for at, of, name in _deletions(one)
        if of == (suffix or "") and (one.server, suffix, name) not in there and not to_collected.search(name)
    )
    return max(times, default=None)


def _deletions(one: Input) -> Iterator[tuple[datetime, str, str]]:
    for told in one.facts.get("unlinked", ()):
        at, suffix, name = told.split("\t", 2)
        yield datetime.fromisoformat(at).astimezone(UTC), suffix, name


def _listening(context: DetectorContext) -> set[str]:
    """The addresses of the collected servers, as their own logs and the vectors tell them."""
    origins = {(one.suffix, one.origin) for one in context.topology.replicas if one.origin}
    urls = (row["url"] or "" for row in claims_of(context) if (row["suffix"], row["origin"]) in origins)
    own = {url.partition("://")[2].strip("/").lower() for url in urls}
    return own | {address.lower() for one in context.inputs for address in one.facts.get("addresses", {})}
