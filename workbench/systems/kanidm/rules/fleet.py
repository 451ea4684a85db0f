"""Servers over days: writes, purges, pulls and refreshes, and what becomes of their ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.replication.entry.rules.entries import Cid, next_time
from workbench.systems.kanidm.cid import SECOND
from workbench.systems.kanidm.rules.ranges import (
    APPLIED,
    SUPPLY,
    Reply,
    preflight,
    ranges_of,
    reply,
    supplied,
    supplier_view,
    trimmed,
)

_LONG_AGO = -(10**40)
"""Before every time that a person may write into a case, negative ones among them: what is owed to a newcomer begins here."""
_CLOCK_WINDOW = 600 * SECOND


class Event(NamedTuple):
    """At a time in seconds: `write` or `purge` of a server, `incremental` or `refresh` of a consumer from a supplier."""

    at: int
    do: str
    server: str = ""
    supplier: str = ""
    consumer: str = ""


@dataclass
class Server:
    """One server: its UUID, its domain, the CIDs of its RUV, and the time of its newest write transaction."""

    name: str
    number: int = 1
    domain: str = ""
    cids: set[Cid] = field(default_factory=set)
    last: int = -SECOND

    @property
    def uuid(self) -> str:
        """What its own changes are told by; a refresh gives it another."""
        return f"{self.name}{self.number}"

    def begin(self, at: int) -> int:
        """The time of a write transaction that begins now."""
        self.last = next_time(self.last, at)
        return self.last


class Fleet:
    """Servers that begin each as a domain of its own, with own changes one, two and three seconds before time 0."""

    def __init__(self, servers: Iterable[str], changelog_max_age: int) -> None:
        self.age = changelog_max_age * SECOND
        self.servers = {name: Server(name) for name in servers}
        for one in self.servers.values():
            one.domain = one.uuid
            one.cids = {(-seconds * SECOND, one.uuid) for seconds in (1, 2, 3)}

    def play(self, events: Iterable[Event]) -> list[Reply]:
        """What each `incremental` was answered."""
        replies = []
        for one in events:
            at = one.at * SECOND
            if one.do == "incremental":
                replies.append(self.pull(at, self.servers[one.supplier], self.servers[one.consumer]))
            elif one.do == "refresh":
                self.refresh(at, self.servers[one.supplier], self.servers[one.consumer])
            elif one.do == "purge":
                self.purge(at, self.servers[one.server])
            else:
                self.write(at, self.servers[one.server])
        return replies

    def write(self, at: int, server: Server) -> None:
        """A change."""
        server.cids.add((server.begin(at), server.uuid))

    def purge(self, at: int, server: Server) -> None:
        """The regular purge: an anchor, so that an idle server moves on, then all CIDs go that are older than the age."""
        self.write(at, server)
        server.cids = set(trimmed(server.cids, server.last - self.age))

    def pull(self, at: int, supplier: Server, consumer: Server) -> Reply:
        """The consumer asks for what it lacks, and applies what comes."""
        domains = (consumer.domain, supplier.domain)
        theirs = ranges_of(consumer.cids)
        made = reply(domains, theirs, ranges_of(supplier.cids), supplier.last - self.age, _LONG_AGO)
        if made.message != SUPPLY or made.compared is None:
            return made
        carried = supplied(supplier.cids, made.compared.owed)
        own = theirs.get(consumer.uuid)
        incoming = {origin: one.upto for origin, one in carried.items()}
        checked = preflight(consumer.uuid, own[1] if own else None, incoming, at, _CLOCK_WINDOW)
        if checked.status != APPLIED:
            return made._replace(consumer=checked.status)
        consumer.begin(at)
        for origin, one in carried.items():
            consumer.cids |= {(time, origin) for time in (one.after, *one.anchors, one.upto)}
        return made

    def refresh(self, at: int, supplier: Server, consumer: Server) -> None:
        """The consumer throws its data away and takes all of the supplier's; from now on it is another server."""
        shown = supplier_view(ranges_of(supplier.cids), supplier.last - self.age)
        consumer.begin(at)
        consumer.number += 1
        consumer.domain = supplier.domain
        consumer.cids = {cid for cid in supplier.cids if cid[1] in shown}

    def known(self) -> dict[str, Sequence[str]]:
        """Server -> the UUIDs in its RUV."""
        return {name: sorted({origin for _, origin in one.cids}) for name, one in self.servers.items()}
