"""One server as it is reached: where it listens, what it is, and by which names agreements lead to it."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from workbench.intake.collection import Address
from workbench.model import Problem
from workbench.systems.ds389.formats.directory import kind_of
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.formats.vectors import READ_ONLY, vector_rows
from workbench.systems.ds389.live.connection import Connection, Place, place_of
from workbench.systems.ds389.live.feeding import Feeder, Listens
from workbench.systems.ds389.live.instances import Instance, instance_named, instances, read_instance

CONFIG, REPLICAS = "cn=config", "cn=mapping tree,cn=config"

ROLES = ("consumer", "hub", "supplier")
"""By rank: who feeds nobody, who passes on, who writes."""


@dataclass
class Reached:
    """One server: where it is, and what was found there."""

    name: str
    place: Place
    instance: Instance | None
    role: str = ""
    known_as: set[Listens] = field(default_factory=set)
    entries: list[Entry] = field(default_factory=list)
    """Of the suffixes that are wanted."""
    links: list[Entry] = field(default_factory=list)
    """The agreements of all suffixes: a hub of one suffix crashes the whole server."""
    settings: list[Entry] = field(default_factory=list)
    """What its changelogs are trimmed by, and of which suffixes they are."""
    settings_unread: Problem | None = None
    """Why some of these settings could not be read."""
    unshown: list[str] = field(default_factory=list)
    """The suffixes whose own entry it did not show, and what it answered: their data may be gone."""
    vectors: dict[str, dict[str, str]] = field(default_factory=dict)
    read_at: datetime = field(default_factory=partial(datetime.now, UTC))
    """The moment before its entries were read."""

    @property
    def key(self) -> str:
        """What tells it from all other servers, however it is reached."""
        return str(self.instance.configuration.resolve()) if self.instance else self.place.url

    def of_kind(self, kind: str) -> list[Entry]:
        """Its entries of a kind: replica, agreement."""
        return [entry for entry in self.entries if kind_of(entry) == kind]

    @property
    def feeder(self) -> Feeder:
        """What it means to who feeds whom."""
        own = {entry.text("nsDS5ReplicaId") or "" for entry in self.of_kind("replica")} - {READ_ONLY}
        holds = {origin for vector in self.vectors.values() for origin in vector}
        return Feeder(
            self.name, self.role, frozenset(self.known_as), _feeds(self.links), frozenset(own), frozenset(holds)
        )


def server_at(address: Address) -> Reached:
    """The server at an address, not contacted yet. Raises Problem for an instance that is not there, or no URL."""
    if address.instance:
        instance = instance_named(address.instance, address.folder)
        return Reached(address.name or instance.name, place_of(instance.url), instance)
    place = place_of(address.url or "")
    found = _instance_at(place, address.folder)
    plain = found.name if found else f"{place.host}:{place.port}" if place.host else place.socket or ""
    return Reached(address.name or plain, place, found)


def _instance_at(place: Place, folder: Path | None) -> Instance | None:
    """The instance of this machine that listens there: then its files can be read, too."""
    if not place.here:
        return None
    for name, file in instances(folder).items():
        try:
            one = read_instance(name, file)
        except Problem:
            continue  # another user's
        if place.socket and one.socket and Path(place.socket) == Path(one.socket):
            return one
        if place.port and place.port in (one.port, one.secure_port):
            return one
    return None


def known_as(server: Reached, connection: Connection) -> set[Listens]:
    """Every host and port by which an agreement may name the server."""
    attributes = ("nsslapd-localhost", "nsslapd-port", "nsslapd-securePort")
    told = connection.search(CONFIG, attributes=attributes, absent=True)
    ports = {int(text) for one in told for name in attributes[1:] if (text := one.text(name) or "").isdecimal()}
    hosts = {one.text(attributes[0]) or "" for one in told}
    if server.place.host:
        hosts.add(server.place.host)
        ports.add(server.place.port)
    if server.place.here:
        hosts.add("localhost")
    return {(host_named(host), port) for host in hosts if host for port in ports}


def host_named(name: str) -> str:
    """A host's name as it is compared; all names of this machine are one."""
    name = name.strip("[]").rstrip(".").lower()
    mine = {"localhost", "localhost.localdomain", "127.0.0.1", "::1", socket.gethostname().lower()}
    return "localhost" if name in mine else name


def _feeds(agreements: Iterable[Entry]) -> tuple[Listens, ...]:
    """Where the agreements lead."""
    found = []
    for entry in agreements:
        port = entry.text("nsDS5ReplicaPort") or ""
        found.append((host_named(entry.text("nsDS5ReplicaHost") or ""), int(port) if port.isdecimal() else 0))
    return tuple(found)


def role_of(replica: Entry) -> str:
    """What the entry of a replica says it is: consumer, hub or supplier."""
    if replica.text("nsDS5ReplicaType") == "3":
        return "supplier"
    return "consumer" if replica.text("nsDS5Flags") == "0" else "hub"


def vector_of(replica: Entry) -> dict[str, str]:
    """What the entry of a replica claims: replica ID -> highest CSN."""
    rows = vector_rows(replica.texts("nsds50ruv"), (), offset=0, kind="server", holder="")
    return {row["origin"]: row["max"] for row in rows if row.get("origin") and row.get("max") and not row["problem"]}
