"""Small generated fleets of Kanidm servers with their entries: what they go through, their files, and what becomes of them later.

The simulator of the project keeps the CIDs of each server; here the entries come along with them. Every answer of a pull is
held against a second comparison of the ranges, and two states of an entry meet by a second merge, both written from the
reference alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import NAMESPACE_DNS, uuid5

from kanidm_samples import DAY, START, Entry, as_file, backup, entry_id, origin

from workbench.replication.entry.rules.entries import Cid
from workbench.systems.kanidm.cid import SECOND, cid_text
from workbench.systems.kanidm.rules.fleet import Fleet, Server
from workbench.systems.kanidm.rules.merging import Live, State, Tombstone
from workbench.systems.kanidm.rules.ranges import Reply

WINDOW = 7 * DAY
ATTRIBUTES = ("mail", "legalname", "description")
LATER = (1, 60, 600, DAY, 3 * DAY)

Pair = tuple[str, str]
"""Supplier and consumer."""


class Change(NamedTuple):
    """The last change of an attribute that a server shows, or the deletion of an entry (no attribute)."""

    entry: int
    attribute: str | None
    cid: Cid


@dataclass
class Node(Server):
    """A server and its entries. `same_as`: the UUID of the server that it was cloned from."""

    entries: dict[int, State] = field(default_factory=dict)
    same_as: str = ""

    @property
    def uuid(self) -> str:
        return self.same_as or f"{self.name}{self.number}"

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Origin -> first and last time in its RUV."""
        found: dict[str, tuple[int, int]] = {}
        for time, of in sorted(self.cids):
            found[of] = (found.get(of, (time, time))[0], time)
        return found

    @property
    def cut(self) -> int:
        """CIDs before this time go at the next purge."""
        return self.last - WINDOW * SECOND

    def shown(self) -> set[Change]:
        """All that its entries tell."""
        return {one for number, state in self.entries.items() for one in changes_of(number, state)}

    def settles(self, one: Change, at: Cid | None) -> bool:
        """True if it has the change, or something that would win over it; `at`: when the entry with the change was created."""
        mine = self.entries.get(one.entry)
        if isinstance(mine, Tombstone):
            return True
        if mine is None or one.attribute is None or mine.at != at:
            return False
        return mine.changes.get(one.attribute, (-(10**50), "")) >= one.cid


def changes_of(number: int, state: State) -> Iterator[Change]:
    """What one state tells."""
    if isinstance(state, Tombstone):
        yield Change(number, None, state.at)
    else:
        yield from (Change(number, name, cid) for name, cid in state.changes.items())


def meeting(one: State, other: State) -> State:
    """What is left where two states of one entry meet, from the reference (1.6), case by case, without the code of the rules."""
    if isinstance(one, Tombstone) and isinstance(other, Tombstone):
        return one if _is_lower(one.at, other.at) else other
    if isinstance(one, Tombstone):
        return one
    if isinstance(other, Tombstone):
        return other
    if _is_lower(one.at, other.at):
        return Live(one.at, dict(one.changes))
    if _is_lower(other.at, one.at):
        return Live(other.at, dict(other.changes))
    larger: dict[str, Cid] = {}
    for state in (one, other):
        for name in state.changes:
            if name not in larger or _is_lower(larger[name], state.changes[name]):
                larger[name] = state.changes[name]
    return Live(one.at, larger)


def _is_lower(one: Cid, other: Cid) -> bool:
    """By the time first, then by the UUID of the server."""
    return one[0] < other[0] or (one[0] == other[0] and one[1] < other[1])


def answer(supplier: Node, consumer: Node) -> str:
    """What the consumer hears and makes of it, from the reference: 1.2, 1.3 and 1.5."""
    if supplier.domain != consumer.domain:
        return "DomainMismatch"
    shows = {of: ends for of, ends in supplier.ranges.items() if ends[1] >= supplier.cut}
    knows = consumer.ranges
    common = [of for of in shows if of in knows]
    if not common:
        return "NoRUVOverlap"
    lag = any(knows[of][1] < shows[of][0] for of in common)
    advance = any(shows[of][1] < knows[of][0] for of in common)
    if lag or advance:
        return "Critical" if lag and advance else "Refresh" if lag else "Unwilling"
    own = consumer.uuid
    if own in knows and own in shows and shows[own][1] > knows[own][1]:
        return "Split"
    owed = any(of not in knows or shows[of][1] > knows[of][1] for of in shows)
    return "Supplied" if owed else "Nothing"


_ANSWERS = {"UnwillingToSupply": "", "RefreshRequired": "Refresh", "DomainMismatch": "DomainMismatch"}


class World(Fleet):
    """Servers of one domain that pull over links."""

    servers: dict[str, Node]  # type: ignore[assignment]

    def __init__(self, names: Iterable[str], links: Sequence[Pair]) -> None:
        super().__init__((), WINDOW)
        self.now, self.made, self.renewed = 10, 0, 1
        self.kept: set[int] = set()
        """An entry of each domain that nobody deletes: without any, entries would count as not collected."""
        for name in names:
            self.add(name)
        self.links = list(links)
        self.past: list[dict[str, Node]] = []
        self.sent: set[Change] = set()
        """What the last pull brought, whether or not it changed anything."""

    def add(self, name: str) -> Node:
        """A server that begins as a domain of its own."""
        one = Node(name)
        one.domain, one.cids, one.last = one.uuid, {(-SECOND, one.uuid)}, -SECOND
        self.kept.add(self.made + 1)
        for _ in range(2):
            self.made += 1
            one.entries[self.made] = Live(
                (-SECOND, one.uuid), {"class": (-SECOND, one.uuid), "mail": (-SECOND, one.uuid)}
            )
        self.servers[name] = one
        return one

    def tick(self, seconds: int = 1) -> int:
        """The time in nanoseconds, after so many seconds; no two things happen at once."""
        self.now += seconds
        return self.now * SECOND

    def pull(self, at: int, supplier: Server, consumer: Server) -> Reply:
        assert isinstance(supplier, Node) and isinstance(consumer, Node)
        told, given = answer(supplier, consumer), supplier.cids
        self.sent = set()
        made = super().pull(at, supplier, consumer)
        self._agree(made, told)
        if told == "Supplied" and made.compared is not None:
            owed = made.compared.owed
            for number, state in supplier.entries.items():
                cids = {one.cid for one in changes_of(number, state)}
                within = {(time, of) for time, of in cids if of in owed and owed[of][0] < time <= owed[of][1]}
                if within & given:  # the RUV leads to the entries: one that no listed CID names is not sent
                    self.sent |= {one for one in changes_of(number, state) if one.cid in within}
                    self._take(consumer, number, state, within)
        return made

    @staticmethod
    def _agree(made: Reply, told: str) -> None:
        status = made.compared.status if made.compared else "DomainMismatch"
        if status == "Ok":
            split = made.consumer == "ReplServerUuidSplitDataState"
            status = "Split" if split else "Supplied" if made.message == "V1" else "Nothing"
        assert status == told, (status, told)

    @staticmethod
    def _take(consumer: Node, number: int, state: State, within: set[Cid]) -> None:
        if isinstance(state, Live):
            some = {name: cid for name, cid in state.changes.items() if cid in within}
            state = Live(state.at, some)
        local = consumer.entries.get(number)
        consumer.entries[number] = state if local is None else meeting(state, local)

    def refresh(self, at: int, supplier: Server, consumer: Server) -> None:
        super().refresh(at, supplier, consumer)
        assert isinstance(supplier, Node) and isinstance(consumer, Node)
        self.renewed += 1
        consumer.number, consumer.same_as = self.renewed, ""
        consumer.entries = dict(supplier.entries)

    def purge(self, at: int, server: Server) -> None:
        super().purge(at, server)
        assert isinstance(server, Node)
        dead = [n for n, one in server.entries.items() if isinstance(one, Tombstone) and one.at[0] < server.cut]
        for number in dead:
            del server.entries[number]

    # --- what people do

    def change(self, server: Node, random: Random) -> None:
        """An entry is made, changed or deleted."""
        live = sorted(n for n, one in server.entries.items() if isinstance(one, Live) and "class" in one.changes)
        cid = (server.begin(self.tick()), server.uuid)
        server.cids.add(cid)
        do = random.random()
        if not live or do < 0.3:
            self.made += 1
            server.entries[self.made] = Live(cid, {"class": cid, "mail": cid})
        elif do < 0.85:
            self.set(server, random.choice(live), random.choice(ATTRIBUTES), cid)
        else:
            left = [number for number in live if number not in self.kept]
            if left:
                server.entries[random.choice(left)] = Tombstone(cid)

    @staticmethod
    def set(server: Node, number: int, attribute: str, cid: Cid) -> None:
        """One attribute has a new change."""
        state = server.entries[number]
        assert isinstance(state, Live)
        server.entries[number] = Live(state.at, {**state.changes, attribute: cid})

    def damage(self, server: Node, random: Random) -> None:
        """A server loses part of an entry, and its RUV does not tell."""
        if numbers := sorted(server.entries.keys() - self.kept):
            number = random.choice(numbers)
            state = server.entries[number]
            some = [name for name in state.changes if name != "class"] if isinstance(state, Live) else []
            if isinstance(state, Live) and some and random.random() < 0.7:
                lost = random.choice(sorted(some))
                server.entries[number] = Live(state.at, {k: v for k, v in state.changes.items() if k != lost})
            else:
                del server.entries[number]

    def restore(self, server: Node, back: int) -> None:
        """A server is put back to how it stood so many events ago."""
        old = self.past[-back].get(server.name) if len(self.past) >= back else None
        if old is not None:
            self.servers[server.name] = deepcopy(old)

    def clone(self, source: Node, name: str) -> None:
        """A copy of a server is started as another one, with the UUID that it had."""
        one = deepcopy(source)
        one.name, one.same_as = name, source.uuid
        self.servers[name] = one
        self.links += [pair for other in list(self.servers) if other != name for pair in ((other, name), (name, other))]

    def settle(self) -> None:
        """Every link pulls until nothing moves."""
        moved = True
        while moved:
            before = [(one.ranges, one.shown()) for one in self.servers.values()]
            for supplier, consumer in self.links:
                self.pull(self.tick(), self.servers[supplier], self.servers[consumer])
            moved = before != [(one.ranges, one.shown()) for one in self.servers.values()]

    def later(self, links: Sequence[Pair]) -> World:
        """A copy in which all links have pulled in this order until nothing moves, and keep to it."""
        twin = deepcopy(self)
        twin.links = list(links)
        twin.settle()
        return twin


def generated(seed: int) -> World:
    """A fleet after some days."""
    random = Random(seed)
    names = "abcd"[: random.randrange(2, 5)]
    pairs = [(one, other) for one in names for other in names if one != other]
    links = pairs
    if random.random() < 0.4:  # a chain or some directions only
        links = [pair for pair in pairs if abs(ord(pair[0]) - ord(pair[1])) == 1 or random.random() < 0.2]
        links = [pair for pair in links if random.random() < 0.9] or pairs
    world = World(names, links)
    for name in names[1:]:
        if random.random() < 0.96:
            world.refresh(world.tick(), world.servers["a"], world.servers[name])
    for _ in range(random.randrange(4, 40)):
        world.tick(random.choice(LATER if random.random() < 0.5 else (1, 60)))
        world.past.append(deepcopy(world.servers))
        event(world, random)
    return world


def event(world: World, random: Random) -> None:
    """Something happens."""
    do, one = random.random(), world.servers[random.choice(sorted(world.servers))]
    if do < 0.35:
        world.change(one, random)
    elif do < 0.6 and world.links:
        supplier, consumer = random.choice(world.links)
        world.pull(world.tick(), world.servers[supplier], world.servers[consumer])
    elif do < 0.72:
        if random.random() < 0.5:  # days without an incident
            world.tick(DAY)
            for each in world.servers.values():
                world.purge(world.tick(), each)
        world.settle()
    elif do < 0.88:
        some = [one] if random.random() < 0.6 else list(world.servers.values())
        for each in some:
            world.purge(world.tick(), each)
    elif do < 0.92:
        world.restore(one, random.randrange(1, 6))
    elif do < 0.93 and len(world.servers) < 4:
        world.clone(one, "abcd"[len(world.servers)])
    elif do < 0.96:
        world.damage(one, random)
    else:
        supplier, consumer = random.sample(sorted(world.servers), 2)
        world.refresh(world.tick(), world.servers[supplier], world.servers[consumer])


# --- as files


class Names:
    """The letters that stand for the UUIDs of a fleet in its files."""

    def __init__(self, world: World) -> None:
        uuids = sorted({of for one in world.servers.values() for of in (one.uuid, *(cid[1] for cid in one.cids))})
        states = [state for node in world.servers.values() for state in node.entries.values()]
        shown = {one.cid[1] for state in states for one in changes_of(0, state)} | {state.at[1] for state in states}
        uuids += sorted(shown - {*uuids})
        self.letters = {uuid: chr(33 + number) for number, uuid in enumerate(uuids)}
        self.entries = {entry_id(number): number for number in range(1, world.made + 1)}

    def origin(self, uuid: str) -> str:
        """The UUID as the files have it."""
        return origin(self.letters[uuid])

    def cid(self, cid: Cid) -> tuple[int, str]:
        """A CID in the form of the samples."""
        time, of = cid
        seconds = time // SECOND
        assert time < -START * SECOND or seconds * SECOND == time
        return max(-START, seconds), self.letters[of]

    def text(self, cid: Cid) -> str:
        """A CID as it is printed."""
        time, letter = self.cid(cid)
        return cid_text((START + time) * SECOND, origin(letter))


def write(world: World, folder: Path, names: Names, linked: bool = True) -> Path:
    """A backup of each server and, unless no links are to be known, what each is told of its partners."""
    folder.mkdir(parents=True)
    for name, one in world.servers.items():
        entries = {number: _entry(state, names) for number, state in one.entries.items()}
        domain = str(uuid5(NAMESPACE_DNS, one.domain))
        ruv = [names.cid(cid) for cid in one.cids]
        as_file(folder / f"{name}.json", backup(names.letters[one.uuid], one.last // SECOND, ruv, entries, domain))
        if linked:
            (folder / f"{name}.server.toml").write_text(_config(world, name))
    return folder


def _entry(state: State, names: Names) -> Entry:
    if isinstance(state, Tombstone):
        return Entry(gone=names.cid(state.at))
    changes = {name: names.cid(cid) for name, cid in state.changes.items() if name != "class"}
    return Entry(names.cid(state.at), changes, partial="class" not in state.changes)


_KINDS: Mapping[tuple[bool, bool], str] = {
    (True, True): "mutual-pull",
    (True, False): "pull",
    (False, True): "allow-pull",
}


def _config(world: World, name: str) -> str:
    text = f'[replication]\norigin = "repl://{name}.test:8444"\n'
    for other in world.servers:
        kind = _KINDS.get(((other, name) in world.links, (name, other) in world.links))
        if kind and other != name:
            text += f'[replication."repl://{other}.test:8444"]\ntype = "{kind}"\n'
    return text
