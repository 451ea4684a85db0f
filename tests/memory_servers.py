"""Directory servers in memory, good enough for the hands: what a client sees of entries, replication and tasks.

They stand where the LDAP library stands, below `workbench.systems.ds389.live.connection.Connection`, so that all of the
workbench's own code runs over them. Time passes with every connection: what is sent, arrives some connections later.
"""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crash_matrix import Killed
from ldap3.core.exceptions import LDAPSocketReceiveError

from workbench.intake.collection import Access, Address
from workbench.model import Problem
from workbench.repair.plan_types import Plan
from workbench.systems.ds389.live import step_executors
from workbench.systems.ds389.live.connection import Connection
from workbench.systems.ds389.live.instances import Instance
from workbench.systems.ds389.live.site import DirectorySite
from workbench.systems.ds389.native import REFRESH, agreement_dn, keep_alive_dn, replica_dn

SUFFIX = "dc=example,dc=com"
REPLICA = replica_dn(SUFFIX)
RIDS = {"s1": "1", "s2": "2", "s3": "3", "c1": "65535"}
GENERATION = "66000000000000010000"
PASSWORD = "{PBKDF2_SHA256}CanaryOfAUser"
BIND_PASSWORD = "canary-of-the-replication"
DELAY, BEGIN, INIT, TASK = 3, 12, 16, 3
"""Connections until a change is delivered, an initialisation has begun and has ended, a task has ended."""

SUCCESS, REFERRAL, EXISTING_VALUE, ABSENT, NOT_A_LEAF, BUSY, ALREADY = 0, 10, 20, 32, 66, 51, 68
_TEXT = {0: "success", 10: "referral", 20: "attributeOrValueExists", 32: "noSuchObject", 51: "busy"}
_TEXT |= {53: "unwillingToPerform", 65: "objectClassViolation", 66: "notAllowedOnNonLeaf", 68: "entryAlreadyExists"}
_HIDDEN = {"nsuniqueid", "nscpentrywsi", "numsubordinates", "nsds50ruv", "modifytimestamp", "entryid"}
"""What is shown only to those who ask for it by name."""

Values = dict[str, list[bytes]]


def csn(time: int, rid: str) -> str:
    return f"{0x66000000 + time:08x}0000{int(rid):04x}0000"


def encoded(values: Any) -> list[bytes]:
    return [value if isinstance(value, bytes) else value.encode() for value in values]


@dataclass
class Stored:
    """An entry: its values, and which change wrote each attribute."""

    dn: str
    unique: str = ""
    values: Values = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)
    deleted: bool = False

    def named(self, name: str) -> str:
        """The attribute as the entry spells it."""
        return next((one for one in self.values if one.lower() == name.lower()), name)

    def wsi(self) -> list[bytes]:
        found = [f"nsUniqueId: {self.unique}".encode()]
        for low, at in self.state.items():
            name = self.named(low)
            head = f"{name};adcsn-{at}".encode()
            found += [head + f";vucsn-{at}: ".encode() + value for value in self.values.get(name, [])]
            if not self.values.get(name):
                found.append(head + b";deletedattribute;deleted: ")
        return found


@dataclass
class Change:
    """One change as the changelog has it."""

    csn: str
    kind: str
    dn: str
    unique: str
    values: Values = field(default_factory=dict)


step_executors.Initialise.WATCHED = 0.0  # nothing happens here but by a connection


@dataclass
class Link:
    """An agreement at work. `asleep`: it opens no session before the next change that its supplier makes itself."""

    consumer: str
    waited: int = 0
    asleep: bool = False
    refresh: int = -1
    again: bool = False


@dataclass
class Server:
    """One server with all that it keeps."""

    name: str
    rid: str
    generation: str = GENERATION
    vector: dict[str, str] = field(default_factory=dict)
    entries: list[Stored] = field(default_factory=list)
    config: dict[str, Stored] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    links: dict[str, Link] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    made: int = 0
    down: bool = False
    starting: int = 0
    refuses: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def find(self, dn: str) -> Stored | None:
        low = dn.lower()
        alive = (one for one in self.entries if one.dn.lower() == low and not one.deleted)
        return next(alive, None) or self.config.get(low)

    def children(self, dn: str) -> int:
        return sum(one.dn.lower().partition(",")[2] == dn.lower() for one in self.entries if not one.deleted)

    def take(self, change: Change) -> None:
        """Do a change to the data, of a client or delivered; what is not there is passed over, and the vector moves on."""
        entry = next((one for one in self.entries if one.unique == change.unique and not one.deleted), None)
        if change.kind == "add" and entry is None:
            state = dict.fromkeys([*map(str.lower, change.values), "modifytimestamp"], change.csn)
            self.entries.append(Stored(change.dn, change.unique, copy.deepcopy(change.values), state))
        elif change.kind == "delete" and entry is not None:
            entry.deleted = True
        elif change.kind == "modify" and entry is not None:
            for name, values in change.values.items():
                was = entry.values.pop(entry.named(name), [])
                if values:
                    entry.values[name] = list(values)
                if values or was or name.lower() not in entry.state:  # nothing tells of what empties the empty again
                    entry.state[name.lower()] = change.csn
            entry.state["modifytimestamp"] = change.csn
        rid = str(int(change.csn[12:16], 16))
        self.vector[rid] = max(change.csn, self.vector.get(rid, ""))
        self.log.append(change)

    def make(self, kind: str, dn: str, unique: str, values: Values | None = None) -> None:
        """A change of its own."""
        self.made += 1
        self.take(Change(csn(1000 + self.made, self.rid), kind, dn, unique, values or {}))
        for link in self.links.values():
            link.asleep = False


@dataclass
class Fleet:
    """The servers, what clients wrote to them, and what is to go wrong.

    writes   (server, what, target) of every write of a client that was taken, in this order
    moment   is told of each "look" (a connection) and each "write", and says what happens there
    late     writes that are on their way: connections until they land, and what lands; `delay`: how many, of the next
    """

    servers: dict[str, Server] = field(default_factory=dict)
    writes: list[tuple[str, str, str]] = field(default_factory=list)
    moment: Callable[[str], str] = lambda kind: ""
    before_write: Callable[[str, str], None] = lambda what, dn: None
    late: list[list[Any]] = field(default_factory=list)
    delay: int = 0
    inits: int = 0
    unique: int = 0

    def copy(self) -> Fleet:
        """The same servers once more, of which nothing is to go wrong."""
        same = Fleet(*pickle.loads(pickle.dumps((self.servers, self.writes))))
        same.inits, same.unique = self.inits, self.unique
        return same

    def __str__(self) -> str:
        """All that tells two states apart, but for how long something has been on its way."""
        shown = [
            (one.vector, one.entries, one.config, one.tasks.keys(), one.down, one.generation)
            for one in self.servers.values()
        ]
        return repr((shown, self.writes))

    def fresh(self) -> str:
        self.unique += 1
        return f"{self.unique:08x}-11dd11b2-80aaf2bb-8f000000"

    # --- what clients do

    @contextmanager
    def connected(self, host: str) -> Iterator[Ldap]:
        self.pass_time()
        server = self.servers[host]
        if self.moment("look") == "unreachable" or server.down or server.starting:
            raise Problem("no connection: connection refused", f"ldap://{host}.test:389")
        yield Ldap(self, server)

    def write(self, server: Server, what: str, dn: str, do: Callable[[], int]) -> tuple[int, str]:
        """One write, with all that can happen to it; returns the result and what the server says."""
        self.before_write(what, dn)
        fault = self.moment("write")
        if fault == "killed before":
            raise Killed
        if fault == "refused":
            return BUSY, "try again"
        if fault == "lands late":
            self.late.append([self.delay, server.name, what, dn, do])
        if fault in ("lost", "lands late"):
            raise LDAPSocketReceiveError("receiving timed out")
        code, text = server.refuses.get((what, dn.lower()), (None, ""))
        if code is None:
            code = self.land(server, what, dn, do)
        if fault == "killed":
            raise Killed
        if fault == "landed but failed":
            raise LDAPSocketReceiveError("error receiving data: connection reset")
        return code, text

    def land(self, server: Server, what: str, dn: str, do: Callable[[], int]) -> int:
        code = do()
        if code == SUCCESS:
            self.writes.append((server.name, what, dn))
        return code

    def start(self, name: str) -> None:
        """What `dsctl NAME start` does; of a server that runs, or starts, nothing."""

        def do() -> int:
            if not self.servers[name].down:
                return BUSY
            self.servers[name].down, self.servers[name].starting = False, 2
            return SUCCESS

        if self.servers[name].down:
            self.write(self.servers[name], "start", name, do)

    # --- what happens meanwhile

    def pass_time(self) -> None:
        for one in [one for one in self.late if one[0] == 0]:
            self.late.remove(one)
            self.land(self.servers[one[1]], *one[2:])
        for one in self.late:
            one[0] -= 1
        for server in self.servers.values():
            server.starting = max(0, server.starting - 1)
        filling = {link.consumer for one in self.servers.values() for link in one.links.values() if link.refresh >= 0}
        for server in self.servers.values():
            if server.down or server.starting:
                continue
            for dn in list(server.tasks):
                self._work(server, dn)
            for dn, link in list(server.links.items()):
                if link.refresh >= 0 or link.consumer not in filling:
                    self._replicate(server, server.config[dn], link)

    def settle(self) -> None:
        for _ in range(40):
            self.pass_time()

    def _replicate(self, server: Server, agreement: Stored, link: Link) -> None:
        consumer = self.servers[link.consumer]
        if consumer.down or consumer.starting:
            return
        if link.refresh >= 0:
            self._initialise(server, consumer, agreement, link)
            return
        on = agreement.values.get("nsds5ReplicaEnabled", [b"on"]) == [b"on"]
        if agreement.values.get("nsDS5ReplicaCredentials", encoded([BIND_PASSWORD])) != encoded([BIND_PASSWORD]):
            agreement.values["nsds5replicaLastUpdateStatus"] = [b"Error (49) Problem connecting to replica"]
            return
        new = [one for one in server.log if one.csn > consumer.vector.get(str(int(one.csn[12:16], 16)), "")]
        if link.asleep or not on or not new or consumer.generation != server.generation:
            link.waited = 0
        elif link.waited < DELAY:
            link.waited += 1
        else:
            link.waited = 0
            for change in sorted(new, key=lambda one: one.csn):
                consumer.take(change)

    def _initialise(self, server: Server, consumer: Server, agreement: Stored, link: Link) -> None:
        """As the server does it: the request is seen at once, its beginning only when the session has begun."""
        if link.refresh == BEGIN:
            self.inits += 1
            agreement.values["nsds5replicaLastInitStart"] = [f"202601010000{self.inits:02d}Z".encode()]
            consumer.entries, consumer.vector = [], {}
        link.refresh += 1
        if link.refresh <= INIT:
            return
        left_out = agreement.values.get("nsDS5ReplicatedAttributeList", [b""])[0].lower().split()
        consumer.entries = copy.deepcopy(server.entries)
        for entry in consumer.entries:
            for name in list(entry.values):
                if name.lower().encode() in left_out:
                    del entry.values[name]
        consumer.vector, consumer.generation, consumer.log = dict(server.vector), server.generation, []
        agreement.values["nsds5replicaLastInitStatus"] = [b"Error (0) Total update succeeded"]
        link.refresh, again = (0 if link.again else -1), link.again
        link.again = False
        if not again:
            del agreement.values[REFRESH]

    def _work(self, server: Server, dn: str) -> None:
        server.tasks[dn] += 1
        task = server.config[dn]
        if "cleanallruv" in dn:
            rid = task.values["replica-id"][0].decode()
            at = [server, *(one for one in self.servers.values() if one is not server)]
            if server.tasks[dn] <= len(at):
                at[server.tasks[dn] - 1].vector.pop(rid, None)
            left = server.tasks[dn] < len(at)
        else:
            left = server.tasks[dn] < TASK
        if left:
            return
        if "memberof task" in dn:
            for group in [one for one in server.entries if one.values.get("member")]:
                for name in group.values["member"]:
                    member = server.find(name.decode())
                    if member and member.values.get("memberOf") != [group.dn.encode()]:
                        server.make("modify", member.dn, member.unique, {"memberOf": [group.dn.encode()]})
        task.values["nsTaskExitCode"] = [b"0"]
        del server.tasks[dn]


class Ldap:
    """An open connection, as the library has it."""

    def __init__(self, fleet: Fleet, server: Server) -> None:
        self.fleet, self.server = fleet, server
        self.result: dict[str, Any] = {}
        self.response: list[dict[str, Any]] = []

    def search(self, base: str, match: str, search_scope: str, attributes: list[str]) -> bool:
        low, server = base.lower(), self.server
        known = [*server.entries, *server.config.values()]
        if search_scope == "BASE":
            found = [one for one in [server.find(base)] if one]
        else:
            found = [one for one in known if one.dn.lower() == low or one.dn.lower().endswith(f",{low}")]
        there = bool(found) or server.find(base) is not None
        passes = filter_of(match)
        self.response = []
        for one in found:
            shown = self._shown(one)
            if one.deleted is ("nsTombstone" in match) and passes(shown):
                wanted = {name.lower() for name in attributes}
                told = {
                    name: values
                    for name, values in shown.items()
                    if name.lower() in wanted or ("*" in wanted and name.lower() not in _HIDDEN)
                }
                dn = f"nsuniqueid={one.unique},{one.dn}" if one.deleted else one.dn
                self.response.append(
                    {
                        "type": "searchResEntry",
                        "raw_dn": dn.encode(),
                        "raw_attributes": {name: list(some) for name, some in told.items()},
                    }
                )
        return self._end(SUCCESS if there else ABSENT)

    def _shown(self, one: Stored) -> Values:
        shown = dict(one.values)
        if one.unique:
            shown |= {"nsUniqueId": [one.unique.encode()], "nscpEntryWSI": one.wsi(), "modifyTimestamp": [b"2026"]}
            shown["numSubordinates"] = [str(self.server.children(one.dn)).encode()]
        if one.deleted:
            shown["objectClass"] = [*one.values["objectClass"], b"nsTombstone"]
            shown["nsParentUniqueId"] = [b"the-suffix"]
        if one.dn == REPLICA and self.server.vector:
            ruv = [f"{{replicageneration}} {self.server.generation}"]
            for rid, at in sorted(self.server.vector.items()):
                ruv.append(f"{{replica {rid} ldap://s{rid}.test:389}} {csn(1, rid)} {at}")
            shown["nsds50ruv"] = encoded(ruv)
        return shown

    def modify(self, dn: str, changes: Mapping[str, list[tuple[str, list[Any]]]]) -> bool:
        def do() -> int:
            server, entry = self.server, self.server.find(dn)
            if entry is None:
                return ABSENT
            values: Values = {}
            for name, mods in changes.items():
                for operation, some in mods:
                    if operation == "MODIFY_ADD" and entry.values.get(entry.named(name)):
                        return EXISTING_VALUE
                    values[name] = encoded(some)
            if entry.unique:
                if server.rid == RIDS["c1"]:
                    return REFERRAL
                server.make("modify", entry.dn, entry.unique, values)
                return SUCCESS
            for name, some in values.items():
                entry.values[entry.named(name)] = some
            if REFRESH in values:
                link = server.links[dn.lower()]
                link.again, link.refresh = link.refresh >= 0, max(link.refresh, 0)
                entry.values["nsds5replicaLastInitStatus"] = [b"Error (0)"]
            return SUCCESS

        return self._end(*self.fleet.write(self.server, "modify", dn, do))

    def add(self, dn: str, attributes: Mapping[str, Any]) -> bool:
        def do() -> int:
            server = self.server
            values = {name: encoded(some) for name, some in attributes.items()}
            if server.find(dn):
                return ALREADY
            if not dn.lower().endswith("cn=config"):
                if server.rid == RIDS["c1"]:
                    return REFERRAL
                server.make("add", dn, self.fleet.fresh(), values)
                return SUCCESS
            server.config[dn.lower()] = Stored(dn, values=values)
            if b"nsds5replicationagreement" in values["objectClass"]:
                server.links[dn.lower()] = Link(values["nsDS5ReplicaHost"][0].decode().removesuffix(".test"))
            else:
                server.tasks[dn.lower()] = 0
            return SUCCESS

        return self._end(*self.fleet.write(self.server, "add", dn, do))

    def delete(self, dn: str) -> bool:
        def do() -> int:
            server, entry = self.server, self.server.find(dn)
            if entry is None:
                return ABSENT
            if not entry.unique:
                del server.config[dn.lower()]
                server.links.pop(dn.lower(), None)
                return SUCCESS
            if server.rid == RIDS["c1"]:
                return REFERRAL
            if server.children(dn):
                return NOT_A_LEAF
            server.make("delete", dn, entry.unique)
            return SUCCESS

        return self._end(*self.fleet.write(self.server, "delete", dn, do))

    def _end(self, code: int, text: str = "") -> bool:
        self.result = {"result": code, "description": _TEXT[code], "message": text}
        return code == SUCCESS


def filter_of(text: str) -> Callable[[Values], bool]:
    """A search filter of the kinds that are used, as a test of an entry."""
    parts = re.findall(r"\([&|]|\)|\([^()=]+=[^()]*\)", text)

    def read() -> Callable[[Values], bool]:
        part = parts.pop(0)
        if part in ("(&", "(|"):
            inner = []
            while parts[0] != ")":
                inner.append(read())
            parts.pop(0)
            together = all if part == "(&" else any
            return lambda shown: together(one(shown) for one in inner)
        name, _, value = part[1:-1].partition("=")

        def holds(shown: Values) -> bool:
            values = next((some for key, some in shown.items() if key.lower() == name.lower()), [])
            return bool(values) and (value == "*" or value.lower().encode() in [one.lower() for one in values])

        return holds

    test = read()
    assert not parts, text
    return test


# --- a fleet to begin with


def person(name: str, **more: str) -> Values:
    return encoded_all(
        {"objectClass": ["top", "person"], "cn": [name], "sn": [name], **{k: [v] for k, v in more.items()}}
    )


def encoded_all(values: Mapping[str, list[str]]) -> Values:
    return {name: encoded(some) for name, some in values.items()}


def dn_of(name: str) -> str:
    return f"cn={name},{SUFFIX}"


def mesh() -> Fleet:
    """Three suppliers that feed one another, a read-only consumer behind s1, some people; all of it level."""
    fleet = Fleet()
    people = {"ann": person("ann"), "ben": person("ben", description="as it is"), "cleo": person("cleo", mail="c@x.y")}
    people["ben"]["userPassword"] = encoded([PASSWORD])
    people["group"] = encoded_all({"objectClass": ["top", "groupOfNames"], "cn": ["group"], "member": [dn_of("ann")]})
    for name, rid in RIDS.items():
        server = fleet.servers[name] = Server(name, rid)
        suppliers = {"nsDS5ReplicaType": ["3"], "nsDS5Flags": ["1"]}
        replica = {"objectClass": ["top", "nsds5replica"], "nsDS5ReplicaRoot": [SUFFIX], "nsDS5ReplicaId": [rid]}
        config = {"nsslapd-localhost": [f"{name}.test"], "nsslapd-port": ["389"]}
        fixups = "cn=memberof task,cn=tasks,cn=config", {"objectClass": ["top"], "cn": ["memberof task"]}
        for dn, values in (("cn=config", config), (REPLICA, {**replica, **suppliers}), fixups):
            server.config[dn.lower()] = Stored(dn, values=encoded_all(values))
        for to in ("s1", "s2", "s3", *(["c1"] if name == "s1" else [])):
            if to != name and name != "c1":
                agree(server, to)
        server.entries = [Stored(SUFFIX, "suffix", encoded_all({"objectClass": ["top", "domain"]}))]
        for number, (one, values) in enumerate(people.items()):
            state = dict.fromkeys([*map(str.lower, values), "modifytimestamp"], csn(number + 1, "1"))
            server.entries.append(Stored(dn_of(one), f"unique-{one}", copy.deepcopy(values), state))
        for of in ("1", "2", "3"):
            server.vector[of] = csn(100, of)
            values = encoded_all({"objectClass": ["top", "ldapsubentry"], "cn": [f"repl keep alive {of}"]})
            server.entries.append(Stored(keep_alive_dn(SUFFIX, of), f"alive-{of}", values))
    return fleet


def agree(server: Server, to: str, name: str = "") -> Stored:
    dn = agreement_dn(SUFFIX, name or f"{server.name}-to-{to}")
    values = {"objectClass": ["top", "nsds5replicationagreement"], "cn": [name or f"{server.name}-to-{to}"]}
    values |= {"nsDS5ReplicaHost": [f"{to}.test"], "nsDS5ReplicaPort": ["389"], "nsDS5ReplicaRoot": [SUFFIX]}
    values |= {"nsds5replicaLastInitStart": ["19700101000000Z"]}
    server.config[dn.lower()] = Stored(dn, values=encoded_all(values))
    server.links[dn.lower()] = Link(to)
    return server.config[dn.lower()]


def agreement(fleet: Fleet, supplier: str, consumer: str) -> Stored:
    return fleet.servers[supplier].config[agreement_dn(SUFFIX, f"{supplier}-to-{consumer}").lower()]


def switch(fleet: Fleet, supplier: str, consumer: str, to: str) -> None:
    agreement(fleet, supplier, consumer).values["nsds5ReplicaEnabled"] = encoded([to])


class MemorySite(DirectorySite):
    """The site as it is, over servers in memory. `at` says who answers where: name -> server, if not its own."""

    def __init__(self, plan: Plan, fleet: Fleet, folder: Any, at: Mapping[str, str] | None = None) -> None:
        names = list(dict.fromkeys(one["server"] for one in plan.servers))
        addresses = [Address(name, url=f"ldap://{name}.test:389") for name in names]
        super().__init__(plan, addresses, Access(user="cn=dm", tls=False), folder, lambda: BIND_PASSWORD)
        self.fleet, self.at = fleet, at or {}

    @contextmanager
    def connected(self, name: str) -> Iterator[Connection]:
        with self.fleet.connected(self.at.get(name, name)) as ldap:
            yield Connection(self._reached[name].place, ldap)

    def instance(self, name: str) -> Instance | None:
        return Instance(name, None, None, None, None, None, None)


class InTurn:
    """What a pool of threads does, one after the other."""

    def __init__(self, workers: int) -> None: ...

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *ended: object) -> None: ...

    def map(self, do: Callable[[Any], Any], over: Any) -> Iterator[Any]:
        return map(do, over)


def started_by(fleet: Fleet) -> Callable[..., None]:
    """What `dsctl` does."""

    def started(words: list[str], **options: Any) -> None:
        assert words[0] == "dsctl" and words[2] == "start"
        try:
            fleet.start(words[1])
        except LDAPSocketReceiveError as error:
            raise OSError(str(error)) from None

    return started
