"""What a repair does to servers, change by change: every server a set of changes, a whole log and a vector.

Nothing is grouped and nothing is left out, so it is slow and plain. Only what one session sends is asked of the machine that
is proven elsewhere (`workbench.rules.send_session.replay`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mesh_samples import csn

from workbench.rules.send_session import SortedLog, replay
from workbench.rules.vectors import Span
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.sending import ONCE, Sending

LATER = 1_000_000
"""Seconds after the beginning, when what a repair writes begins."""


def fresh(origin: str, number: int) -> str:
    """Where the n-th change of a repair stands."""
    return csn(LATER + 2 * number, int(origin))


def unlike(one: str | None, other: str | None) -> str | None:
    """Data of different generations exchange nothing."""
    return "not of the same data" if one != other else None


@dataclass
class Change:
    """One change: `entry` is what it is about, `creates`: it makes it, `mends`: changes whose outcome it brings again."""

    position: str
    entry: str
    creates: bool = False
    mends: frozenset[str] = frozenset()


@dataclass
class Slow:
    """A server. `origin` None: read-only; `log` None: it keeps none."""

    name: str
    origin: str | None
    generation: str = "g"
    has: set[str] = field(default_factory=set)
    log: set[str] | None = field(default_factory=set)
    marks: set[str] = field(default_factory=set)
    vector: dict[str, Span] = field(default_factory=dict)
    up: bool = True

    def top(self, origin: str) -> str:
        """The last position that it claims; empty: none."""
        span = self.vector.get(origin)
        return span.max or "" if span else ""

    def claims(self) -> dict[str, str | None]:
        """All last positions."""
        return {origin: span.max for origin, span in self.vector.items()}

    def move(self, position: str) -> None:
        """The vector takes notice of a change."""
        origin = origin_of(position)
        span = self.vector.get(origin, Span())
        low, high = span.min or position, span.max or position
        self.vector[origin] = Span(min(low, position), max(high, position))


@dataclass
class Tie:
    """A link; `waits`: what its supplier claimed when it fell asleep."""

    supplier: str
    consumer: str
    runs: bool = True
    waits: dict[str, str | None] | None = None


class World:
    """Servers and links, and all changes that were ever made."""

    def __init__(self, servers: list[Slow], ties: list[Tie]) -> None:
        self.servers = {one.name: one for one in servers}
        self.ties = ties
        self.changes: dict[str, Change] = {}
        self.dead: set[str] = set()
        self.saved: set[str] = set()
        self.written = 0

    def copy(self) -> World:
        """Another world in the same state."""
        return deepcopy(self)

    # --- what is wrong

    def lacking(self, name: str) -> set[str]:
        """What a server does not have."""
        return self.changes.keys() - self.servers[name].has

    def missing(self, name: str) -> set[str]:
        """What nobody will send it: its vector says that it has it, or the origin was cleaned."""
        return {
            one
            for one in self.lacking(name)
            if origin_of(one) in self.dead or one <= self.servers[name].top(origin_of(one))
        }

    def pending(self, name: str) -> set[str]:
        """What may still be sent to it."""
        return self.lacking(name) - self.missing(name)

    def forget_unshown(self) -> None:
        """Leave out what nothing tells of: no log has it, and no vector ends there."""
        shown = {span.max for one in self.servers.values() for span in one.vector.values()}
        shown = shown.union(*(one.log or () for one in self.servers.values()))
        self.changes = {position: change for position, change in self.changes.items() if position in shown}
        for one in self.servers.values():
            one.has &= shown

    # --- what happens

    def make(self, name: str, position: str, entry: str, creates: bool = False, mends: Any = ()) -> None:
        """A server makes a change."""
        self.changes[position] = Change(position, entry, creates, frozenset(mends))
        self.take(self.servers[name], position)

    def take(self, server: Slow, position: str) -> None:
        """A server is given a change. It refuses one of an entry that it lacks: its log does not get that either."""
        change = self.changes[position]
        server.move(position)
        births = {one.position for one in self.changes.values() if one.entry == change.entry and one.creates}
        if births and not births & server.has and not change.creates:
            return
        server.has |= {position} | change.mends
        if server.log is not None:
            server.log.add(position)
            server.marks.discard(position)

    def session(self, tie: Tie, losing: bool = False) -> bool:
        """One session; True if anything was sent."""
        supplier, consumer = self.servers[tie.supplier], self.servers[tie.consumer]
        if not tie.runs or supplier.log is None or not supplier.up or not consumer.up:
            return False
        if unlike(supplier.generation, consumer.generation):
            return False
        if tie.waits is not None:
            if tie.waits == supplier.claims():
                return False
            tie.waits = None
        log = SortedLog(supplier.log, origin_of, supplier.marks)
        rules = Sending(ONCE) if losing else Sending()
        sent = replay(rules, log, supplier.vector, consumer.vector, consumer.origin or "").sent
        for position in sent:
            self.take(consumer, position)
        return bool(sent)

    def settle(self) -> None:
        """Sessions until nothing moves."""
        while sum(self.session(tie) for tie in self.ties):
            pass

    def go_on(self) -> None:
        """Every server that can writes once."""
        for one in self.servers.values():
            if one.origin is not None and one.up:
                self.write(one.name)
        self.settle()

    # --- what a step does

    def write(self, server: str) -> None:
        self._write(server, f"keep-alive of {server}")

    def _write(self, server: str, entry: str, creates: bool = False, mends: Any = ()) -> None:
        self.written += 1
        origin = self.servers[server].origin
        assert origin is not None
        self.make(server, fresh(origin, self.written), entry, creates, mends)

    def rewrite(self, server: str, changes: list[str], entry: str, creates: bool = False) -> None:
        self._write(server, entry, creates, changes)

    def run(self, supplier: str, consumer: str) -> None:
        for tie in self.ties:
            if tie.supplier == supplier and tie.consumer == consumer:
                tie.runs = True

    def feed(self, supplier: str, consumer: str) -> None:
        self.ties.append(Tie(supplier, consumer))

    def unfeed(self, supplier: str, consumer: str) -> None:
        for at in reversed(range(len(self.ties))):
            if (self.ties[at].supplier, self.ties[at].consumer) == (supplier, consumer):
                del self.ties[at]
                return

    def start(self, server: str) -> None:
        self.servers[server].up = True

    def initialise(self, source: str, server: str) -> None:
        of, to = self.servers[source], self.servers[server]
        to.has, to.vector, to.generation = set(of.has), dict(of.vector), of.generation
        if to.log is not None:
            to.log, to.marks = set(), {span.max for span in of.vector.values() if span.max}

    def forget(self, origin: str) -> None:
        self.dead.add(origin)
        for one in self.servers.values():
            one.vector.pop(origin, None)
            one.log = one.log and {position for position in one.log if origin_of(position) != origin}

    def skip(self, supplier: str, consumer: str) -> None:
        self.session(Tie(supplier, consumer), losing=True)

    def save(self, changes: list[str]) -> None:
        self.saved |= set(changes)

    def do(self, what: str, **about: Any) -> None:
        """One effect, and what follows from it."""
        getattr(self, what)(**about)
        self.settle()


# --- worlds as they come about


def random_world(random: Random, births: bool = True) -> World:
    """Servers of all roles that lived for a while, and to which things happened. `births`: entries are made meanwhile."""
    writers = random.randrange(2, 5)
    servers = [Slow(f"s{number}", str(number)) for number in range(1, writers + 1)]
    servers += [Slow(f"h{number}", None) for number in range(random.choice([0, 0, 1]))]
    servers += [Slow(f"c{number}", None, log=None) for number in range(random.choice([0, 1, 1, 2]))]
    ties = [
        Tie(one.name, other.name)
        for one in servers
        for other in servers
        if one is not other and one.log is not None and random.random() < 0.7
    ]
    random.shuffle(ties)
    world = World(servers, ties)
    backups: dict[str, Slow] = {}
    second = 0
    for _ in range(random.randrange(10, 60)):
        second += random.choice([0, 1, 1, 3])
        luck, one = random.random(), random.choice(servers)
        if luck < 0.5:
            _write_some(world, random, random.choice(servers[:writers]), second, births)
        elif luck < 0.85 and ties:
            world.session(random.choice(ties))
        elif luck < 0.9:
            backups[one.name] = deepcopy(one)
        elif one.name in backups and luck < 0.93:
            vars(one).update(vars(deepcopy(backups[one.name])))
        elif luck < 0.96:
            _damage(world, random, one)
        elif one.log:
            kept = random.choice(sorted(one.log))
            newest = {max(some) for some in by_origin(one.log).values()}
            one.log = {position for position in one.log if position >= kept or position in newest}
        else:
            source = random.choice([other for other in servers if other.log is not None])
            if source is not one:
                world.initialise(source.name, one.name)
    for tie in ties:
        tie.runs = random.random() < 0.7
        if random.random() < 0.2:
            tie.waits = world.servers[tie.supplier].claims()
    for one in servers:
        one.up = random.random() < 0.9
        one.generation = random.choice(["g"] * 20 + ["other"])
    return world


def by_origin(positions: set[str]) -> dict[str, set[str]]:
    """Positions by their origin."""
    found: dict[str, set[str]] = {}
    for position in positions:
        found.setdefault(origin_of(position), set()).add(position)
    return found


def _write_some(world: World, random: Random, one: Slow, second: int, births: bool) -> None:
    assert one.origin is not None
    for _ in range(random.choice([1, 1, 2, 5])):
        sequence = 0
        while (position := csn(second, int(one.origin), sequence)) in world.changes or position <= one.top(one.origin):
            sequence += 1
            second += sequence // 4
            sequence %= 4
        entry = random.randrange(8)
        exists = any(born.entry == str(entry) for born in world.changes.values() if born.creates)
        # Of the higher entries every server has had them from the beginning.
        world.make(one.name, position, str(entry), creates=births and entry < 3 and not exists)


def _damage(world: World, random: Random, one: Slow) -> None:
    """Something is gone that the vector claims, or claimed that never came."""
    other = random.choice(list(world.servers.values()))
    if random.random() < 0.5 and one.has:
        lost = set(random.sample(sorted(one.has), min(len(one.has), random.randrange(1, 4))))
        one.has -= lost
        one.log = one.log and one.log - lost
        return
    for origin, span in other.vector.items():
        if span.max and span.max > one.top(origin) and origin != one.origin:
            one.move(span.max)
