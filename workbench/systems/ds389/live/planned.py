"""The servers of a plan as its steps ask them: what each claims, what an entry or a setting is, who leads where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from workbench.intake.collection import Access, Address
from workbench.model import Problem
from workbench.repair.plan_types import Plan, Step, Vectors
from workbench.systems.ds389.formats.directory import kind_of, suffix_of
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.formats.values import suffix_named
from workbench.systems.ds389.formats.vectors import READ_ONLY, vector_rows
from workbench.systems.ds389.live import connection as ldap
from workbench.systems.ds389.live.connection import BELOW, Connection
from workbench.systems.ds389.live.entries import entry_of, values_of
from workbench.systems.ds389.live.instances import Instance
from workbench.systems.ds389.live.reached import REPLICAS, Reached, host_named, known_as, server_at, vector_of
from workbench.systems.ds389.rules.own_attributes import LOGINS
from workbench.systems.ds389.versions import Version, version_in

_REPLICA = "(objectClass=nsds5replica)"
_ASKED = ("*", "nsds50ruv")
_CONFLICTS = "(|(nsds5ReplConflict=*)(&(objectClass=ldapSubEntry)(nsds5ReplConflict=*)))"


class PlannedServers:
    """The servers of a plan, by the names that the plan has for them.

    folder       where the plan is: files that a step writes go there
    credentials  gives the password with which suppliers bind at their consumers, when a step needs it
    """

    def __init__(
        self,
        plan: Plan,
        addresses: Iterable[Address],
        access: Access,
        folder: Path,
        credentials: Callable[[], str],
    ) -> None:
        self.plan, self.access, self.folder, self.credentials = plan, access, folder, credentials
        self._reached: dict[str, Reached] = {}
        self._aims: dict[str, Mapping[str, str]] = {}
        for address in addresses:
            server = server_at(address)
            if server.name in self._reached:
                raise Problem(f"two servers are named {server.name}", server.place.url, "name them apart: NAME=URL")
            self._reached[server.name] = server
        planned = list(dict.fromkeys(one["server"] for one in plan.servers))
        if lacking := [name for name in planned if name not in self._reached]:
            do = f"say how each is reached: --instance NAME=INSTANCE or --url NAME=URL; the plan has {', '.join(planned)}"
            raise Problem(f"the plan speaks of {', '.join(lacking)}, and no address was given", plan.case, do)
        # Of a server that was down nothing is planned: it may be given all the same, and is left alone.
        if strange := sorted(set(self._reached) - {*planned, *plan.unread}):
            do = f"the plan has {', '.join(planned)}"
            raise Problem(f"the plan knows no server {', '.join(strange)}", plan.case, do)

    def names(self, suffix: str | None) -> list[str]:
        """The servers of a suffix that the plan knows."""
        return [one["server"] for one in self.plan.servers if one["suffix"] == suffix]

    def vectors(self, suffix: str | None) -> Vectors:
        """What every server of the suffix that answers claims to hold now."""

        def one(name: str) -> tuple[str, Mapping[str, str] | None]:
            try:
                return name, vector_of(self._replica(suffix, name))
            except Problem:
                return name, None

        names = self.names(suffix)
        with ThreadPoolExecutor(max(1, min(16, len(names)))) as pool:  # one that is down costs a whole time-out
            return {name: vector for name, vector in pool.map(one, names) if vector is not None}

    def connected(self, name: str) -> AbstractContextManager[Connection]:
        """A connection to a server."""
        return ldap.connected(self._reached[name].place, self.access)

    def answers(self, name: str) -> bool:
        """True if the server can be asked."""
        try:
            with self.connected(name):
                return True
        except Problem:
            return False

    def instance(self, name: str) -> Instance | None:
        """The instance of this machine that the server is."""
        return self._reached[name].instance

    def identity(self, suffix: str | None, name: str) -> tuple[str | None, str | None]:
        """The origin of the changes made there, and the generation of its data."""
        replica = self._replica(suffix, name)
        origin = replica.text("nsDS5ReplicaId")
        rows = vector_rows(replica.texts("nsds50ruv"), (), offset=0, kind="server", holder="")
        generation = next((row["generation"] for row in rows if row.get("generation")), None)
        return (None if origin in (None, READ_ONLY) else origin), generation

    def keeps_log(self, suffix: str | None, name: str) -> bool:
        """True for a server that keeps a changelog."""
        return self._replica(suffix, name).text("nsDS5Flags") not in (None, "0")

    def version(self, name: str) -> Version | None:
        """The version of a server; None if it does not say."""
        return version_in(self.setting(name, "", "vendorVersion"))

    def origin(self, suffix: str | None, name: str) -> str | None:
        """The origin of a server, as the plan knows it."""
        origin = self.about(suffix, name)["origin"]
        return None if origin is None else str(origin)

    def planned(self, suffix: str | None, name: str) -> Mapping[str, str]:
        """What a server claimed when the plan was made."""
        vector: Mapping[str, str] = self.about(suffix, name)["vector"]
        return vector

    def own(self, step: Step) -> str | None:
        """The last change of the server's own at which the step is done."""
        return vector_of(self._replica(step.suffix, step.on)).get(self.origin(step.suffix, step.on) or "")

    def setting(self, name: str, dn: str, attribute: str) -> str | None:
        """The value of an attribute of any entry of a server; None if there is none."""
        with self.connected(name) as server:
            found = server.search(dn, attributes=(attribute,), absent=True)
        return found[0].text(attribute) if found else None

    def leads_elsewhere(self, name: str, dn: str, to: str, planned: str | None) -> Iterator[str]:
        """Whether an agreement is gone, or leads to another address than when it was planned, or that is not the server."""
        with self.connected(name) as server:
            found = server.search(dn, attributes=("nsDS5ReplicaHost", "nsDS5ReplicaPort"), absent=True)
        if not found:
            yield f"{name} has no agreement {dn} any more"
            return
        host, port = (found[0].text(one) or "" for one in ("nsDS5ReplicaHost", "nsDS5ReplicaPort"))
        if f"{host}:{port}".lower() != (planned or "").lower():
            was = f"and led to {planned}" if planned else "and the plan does not know where it led"
            yield f"the agreement {dn} on {name} leads to {host}:{port}, {was}"
            return
        # Which server is reached under that name is somebody's word: two read-only ones are not told apart by what they hold.
        where = host_named(host), int(port) if port.isdecimal() else 0
        if not self.answers(to) or where in (known := self._known_as(to)):
            return
        # A host may have names that it does not know of itself: its port has to be right, and it is no other server.
        others = [other for other in self._reached if other != to and self.answers(other)]
        if where[1] not in {port for _, port in known} or any(where in self._known_as(other) for other in others):
            yield f"the agreement {dn} on {name} leads to {host}:{port}, which is not {to}"

    def behind(
        self, suffix: str | None, names: Sequence[str], vectors: Vectors | None = None, of: str | None = None
    ) -> list[str]:
        """Which of the other servers do not yet claim what the first one does; `of` one origin or of all."""
        if not names:
            return []
        vectors = self.vectors(suffix) if vectors is None else vectors
        source, found = vectors.get(names[0]), []
        if source is None:
            return [f"{names[0]} does not answer"]
        for name in names[1:]:
            there = vectors.get(name)
            if there is None:
                found.append(f"{name} does not answer")
                continue
            late = sorted(
                origin
                for origin, position in source.items()
                if of in (None, origin) and there.get(origin, "") < position
            )
            if late:
                found.append(f"{name} is behind {names[0]} in origin {', '.join(late)}")
        return found

    def lagging(self, step: Step, names: Sequence[str], of: str | None = None) -> list[str]:
        """Who does not yet claim what the first one did when this was first asked of the step: on a live system it goes on."""
        vectors = self.vectors(step.suffix)
        if names and names[0] in vectors:
            vectors = {**vectors, names[0]: self._aims.setdefault(step.key, vectors[names[0]])}
        return self.behind(step.suffix, names, vectors, of)

    def conflicts(self, suffix: str | None, name: str) -> list[Entry]:
        """The entries of a server that were set aside because another one has their name."""
        with self.connected(name) as server:
            return server.search(suffix or "", BELOW, _CONFLICTS, ("nsds5ReplConflict",), absent=True)

    def unlike(
        self, suffix: str | None, names: Sequence[str], dn: str, shown: Sequence[str] = (), whole: bool = True
    ) -> Iterator[str]:
        """On which servers an entry is not as it is on the first one, but for what agreements leave out.

        shown    attributes that are shown only when they are asked for
        whole    all attributes count, not only these
        """
        right, *others = names
        counted = {name.lower() for name in shown}

        def values(name: str) -> dict[str, list[bytes]] | None:
            with self.connected(name) as server:
                entry = entry_of(server, dn, shown)
            if entry is None:
                return None
            return {key: some for key, some in values_of(entry, shown).items() if whole or key in counted}

        wanted = values(right)
        for name in others:
            there = values(name)
            if there is None or wanted is None:
                if there is not wanted:
                    yield f"{name if there is None else right} has no {dn}"
                continue
            left_out = {*LOGINS, *self.about(suffix, name)["left_out"], *self.about(suffix, right)["left_out"]}
            differ = sorted(key for key in {*there, *wanted} - left_out if there.get(key) != wanted.get(key))
            if differ:
                yield f"{dn} on {name} differs from {right} in {', '.join(differ)}"

    def without_data(self, suffix: str | None, name: str) -> Iterator[str]:
        """That a server does not show the entry of the suffix: its data are gone or come anew, and it can fill no other one."""
        if not suffix:
            return
        with self.connected(name) as server:
            try:
                found = server.search(suffix, attributes=("1.1",), absent=True)
            except Problem as error:
                yield f"{name} has no data of {suffix} to send: {error.what}"
                return
        if not found:
            yield f"{name} has no data of {suffix} to send: there is no entry of that name"

    def about(self, suffix: str | None, name: str) -> Mapping[str, Any]:
        """What the plan knows of a server."""
        return next(one for one in self.plan.servers if (one["server"], one["suffix"]) == (name, suffix))

    # --- inside

    def _known_as(self, name: str) -> set[tuple[str, int]]:
        with self.connected(name) as server:
            return known_as(self._reached[name], server)

    def _replica(self, suffix: str | None, name: str) -> Entry:
        with self.connected(name) as server:
            for entry in server.search(REPLICAS, BELOW, _REPLICA, _ASKED, absent=True):
                if kind_of(entry) == "replica" and suffix_named(suffix_of(entry) or "") == suffix:
                    return entry
        raise Problem(f"{name} has no replica of {suffix}", self._reached[name].place.url, "check the address")
