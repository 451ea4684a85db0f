"""A model of servers that replicate, small enough to try a repair on: what each claims and holds, and who feeds whom.

It holds the changes about which something is wrong, and lets the rest be: a change that every server has stays with all of
them whatever is repaired - but for an initialisation, which gives a server what its source has. Neighbouring changes of one
origin that the same servers hold are one `ChangeGroup`. Sessions are played by the same machine and rule set as everywhere
else, over logs that know the records on which a session can begin or end.

What a repair does is a list of effects (`Model.effects`); after each one everything that runs is let run until nothing moves.
`LogModel` is of servers that send from a log; each other style of replication has a model of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from workbench.rules.send_session import Rules, SortedLog, replay
from workbench.rules.vectors import Span, advanced, covers, newer

Maxima = Mapping[str, str | None]


@dataclass(frozen=True)
class ChangeGroup:
    """Changes of one origin that share their fate: the first, the last, how many.

    entry     what a single change is about
    creates   it brings the entry into being: a server without it refuses every later change of the entry
    renames   it gives the entry another name: under this one it is not there afterwards
    mends     numbers of the lots whose outcome it brings once more, as a rewritten entry does, or that it replaces
    yields_to numbers of those among them that stay where both come: of two deletions of one entry the earlier one
    again     (lasting id of an entry, attribute in small letters) of the values that it brings once more; no name: all of it
    within    the generation it belongs to, where servers of several are there: one of another lacks nothing by lacking it
    """

    origin: str
    first: str
    last: str
    changes: int = 1
    entry: str | None = None
    creates: bool = False
    mends: frozenset[int] = frozenset()
    within: str | None = None
    again: frozenset[tuple[str, str]] = frozenset()
    renames: bool = False
    yields_to: frozenset[int] = frozenset()


@dataclass
class Server:
    """One server. `origin` is None for a read-only one, `log` for one that keeps none; `holds` are numbers of lots.

    up         False: it is down, or takes part in no replication
    empty      it has lost its data: until it is filled it neither sends nor takes nor makes changes
    source     the server that a repair gave it all data of, or that this one's came from; None: its data are its own
    drops      origins of which it drops every change that it is sent
    forgets    origins that are left out of the vector which comes with new data: it cleaned them, and was not restarted
    unapplied  positions of changes that it answers with success and does not apply: its vector stays below them
    """

    name: str
    origin: str | None
    generation: str | None
    vector: dict[str, Span]
    log: SortedLog | None
    holds: set[int] = field(default_factory=set)
    up: bool = True
    drops: frozenset[str] = frozenset()
    forgets: frozenset[str] = frozenset()
    unapplied: frozenset[str] = frozenset()
    empty: bool = False
    source: str | None = None

    @property
    def works(self) -> bool:
        """True if it sends and takes changes."""
        return self.up and not self.empty


@dataclass
class Link:
    """Who feeds whom.

    waits      it opens no session before its supplier claims more than this
    automatic  where it cannot bring the consumer up to date, that takes all data anew by itself
    """

    supplier: str
    consumer: str
    runs: bool
    waits: Maxima | None = None
    automatic: bool = False


class MissingAt(NamedTuple):
    """A lot that a server does not hold."""

    server: str
    lot: int


@dataclass
class Model:
    """Servers by name, the links between them, and the lots.

    origin_of position -> its origin
    fresh     (origin, number) -> a position of that origin above all that anybody knows, rising with the number
    saved     lots that were written to a file: whatever becomes of them, they are not lost without a trace
    dead      origins that were forgotten everywhere: nobody will ever send them
    in_time   servers whose clock was set right
    more      there are servers of which nothing is known: what none of these holds, one of them may hold
    failing   (supplier, consumer) of links that run only once somebody mends them: what comes over the others, comes before
    unlike    (server, lot) that a server holds with another content: only all data of another server mend that
    effects   what a step may do, by name; the other keys of an effect are the arguments
    within    a server may lack what comes before changes that it has: not so where its log is the beginning of another one
    """

    effects: ClassVar[Mapping[str, Callable[..., None]]]
    within: ClassVar[bool] = True

    lots: list[ChangeGroup]
    servers: dict[str, Server]
    links: list[Link]
    origin_of: Callable[[str], str]
    fresh: Callable[[str, int], str]
    saved: set[int] = field(default_factory=set)
    made: int = 0
    dead: set[str] = field(default_factory=set)
    in_time: set[str] = field(default_factory=set)
    more: bool = False
    failing: Collection[tuple[str, str | None]] = ()
    unlike: frozenset[tuple[str, int]] = frozenset()

    def __post_init__(self) -> None:
        lots, self.lots = self.lots, []
        self._ending: dict[str, list[int]] = {}
        """Last position -> the lots that end there."""
        self._created: dict[str, list[int]] = {}
        """Entry -> the lots that create it."""
        for lot in lots:
            self._add(lot)

    def _add(self, lot: ChangeGroup) -> None:
        self._ending.setdefault(lot.last, []).append(len(self.lots))
        if lot.entry is not None and lot.creates:
            self._created.setdefault(lot.entry, []).append(len(self.lots))
        self.lots.append(lot)

    def copy(self) -> Model:
        """A model of its own, in the same state."""
        twin = copy(self)
        twin.saved, twin.dead, twin.in_time = set(self.saved), set(self.dead), set(self.in_time)
        twin.__post_init__()
        twin.links = [copy(link) for link in self.links]
        twin.servers = {name: copy(server) for name, server in self.servers.items()}
        for server in twin.servers.values():
            server.vector, server.holds = dict(server.vector), set(server.holds)
            server.log = server.log.copy() if server.log else None
        return twin

    @property
    def given(self) -> range:
        """The lots that were there at the beginning. Who lacks one that a repair wrote itself, lacks nothing by it."""
        return range(len(self.lots) - self.made)

    # --- what is wrong

    def written_again(self, server: str) -> set[tuple[str, str]]:
        """The values that a repair wrote once more and the server has got (`ChangeGroup.again`)."""
        got = self.servers[server].holds.intersection(range(len(self.given), len(self.lots)))
        return set[tuple[str, str]]().union(*(self.lots[number].again for number in got))

    def missing(self) -> set[MissingAt]:
        """What a server does not hold and its vector covers, or what belongs to a cleaned origin: nobody will send it."""
        return {lack for lack in self._lacks() if self._hidden(lack)}

    def pending(self) -> set[MissingAt]:
        """What a server does not hold, and may still be sent."""
        return {lack for lack in self._lacks() if not self._hidden(lack)}

    def held(self) -> set[MissingAt]:
        """The lots of every server, as if each were a lack."""
        return {MissingAt(name, number) for name, server in self.servers.items() for number in server.holds}

    def kept(self) -> set[MissingAt]:
        """Those of them that each server has for certain."""
        return self.held()

    def by_claims(self, lacks: Iterable[MissingAt], before: Model) -> set[MissingAt]:
        """Of what servers got since an earlier state of the model, what they only claim by what they got."""
        return set()

    def changes(self, some: Iterable[MissingAt]) -> int:
        """How many changes these are."""
        return sum(self.lots[one.lot].changes for one in some)

    def ahead(self) -> Mapping[str, int]:
        """Server -> how far it is, where one that is further can serve one that is not; empty: nothing depends on that."""
        return {}

    def compared(self, server: str, lacks: Set[MissingAt], restored: Set[MissingAt]) -> Set[MissingAt] | None:
        """Of what a way restores, what counts when ways are compared that are to bring a server what it lacks; None: all."""
        return None

    def gone(self) -> set[int]:
        """The lots that no server holds any more."""
        return set(range(len(self.lots))).difference(*(server.holds for server in self.servers.values()))

    def thrown_away(self, before: Model) -> set[int]:
        """The lots that no server holds any more, or that were saved since because none holds that can give them."""
        return self.gone()

    def _lacks(self) -> Iterator[MissingAt]:
        for name, server in self.servers.items():
            for number in range(len(self.lots)):
                if number not in server.holds and self.lots[number].within in (None, server.generation):
                    yield MissingAt(name, number)

    def _hidden(self, lack: MissingAt) -> bool:
        lot = self.lots[lack.lot]
        return lot.origin in self.dead or covers(self.servers[lack.server].vector, lot.origin, lot.last)

    # --- what happens

    def do(self, effects: Iterable[Mapping[str, Any]]) -> None:
        """Let these happen one after the other, and after each one all sessions that can."""
        for effect in effects:
            about = dict(effect)
            self.effects[about.pop("do")](self, **about)
            self.settle()

    def settle(self) -> None:
        """Every link that runs sends what it has, until nothing moves any more; then those that fail, once they are mended."""
        running = [link for link in self.links if (link.supplier, link.consumer) not in self.failing]
        for links in (running, self.links) if self.failing else (self.links,):
            moved = True
            while moved:
                moved = False
                for link in links:
                    moved |= self.session(link)

    def go_on(self) -> None:
        """What comes by itself: every server that makes changes makes one, as keep-alive updates and clients do.

        A change that a server was not sent before its own next one passes it is hidden from then on: so what is still
        missing after this stays missing.
        """
        for server in self.servers.values():
            if server.origin is not None and server.works:
                self.write(server.name)
        self.settle()

    def write(
        self,
        server: str,
        mends: Iterable[int] = (),
        entry: str | None = None,
        creates: bool = False,
        again: Iterable[Iterable[str]] = (),
    ) -> None:
        """A server makes a change of its own."""
        at = self.servers[server]
        assert at.origin is not None, f"{server} makes no changes"
        self.made += 1
        position = self.fresh(at.origin, self.made)
        values = frozenset((of, name) for of, name in again)
        brings = frozenset(number for lot in mends for number in (lot, *self.lots[lot].mends))
        self._add(ChangeGroup(at.origin, position, position, 1, entry, creates, brings, again=values))
        self._take(at, position, [len(self.lots) - 1])

    def filled(self, source: Server, server: Server) -> None:
        """What else becomes of a server that was given all data of another one."""

    def session(self, link: Link) -> bool:
        """One session over the link, if there is one now; True if the consumer got anything."""
        raise NotImplementedError

    def ends(self, link: Link) -> tuple[Server, Server] | None:
        """Supplier and consumer of a link that runs between servers that run; None of any other."""
        supplier, consumer = self.servers.get(link.supplier), self.servers.get(link.consumer)
        if not link.runs or supplier is None or consumer is None or not (supplier.works and consumer.works):
            return None
        return supplier, consumer

    def takes(self, server: Server, lots: Iterable[int]) -> None:
        """A server gets these lots, and what they bring once more."""
        for number in lots:
            server.holds |= {number, *self.lots[number].mends}

    def _take(self, server: Server, position: str, lots: Sequence[int]) -> None:
        """A server takes a change: its vector moves, and it holds the lots that end there, unless it refuses them.

        What it refused does not come into its log either: it would pass on to others what it never had.
        """
        server.vector = advanced(server.vector, self.origin_of(position), position)
        taken = [number for number in lots if not self._refused(server, self.lots[number])]
        if server.log is not None and (taken or not lots):
            server.log.add(position)
        self.takes(server, taken)

    def _refused(self, server: Server, lot: ChangeGroup) -> bool:
        return lot.entry is not None and not lot.creates and self._absent(server, lot.entry)

    def _absent(self, server: Server, entry: str) -> bool:
        """True if the entry never came to the server: it lacks a change that created it, and none created it again."""
        created = self._created.get(entry, ())
        return bool(created) and not any(number in server.holds for number in created)


@dataclass(kw_only=True)
class LogModel(Model):
    """Servers that send the changes of a log.

    rules     makes the rule set of a session; `losing` one that goes on behind an anchor that is gone
    refuses   generations of supplier and consumer -> why they may exchange nothing
    """

    rules: Callable[[], Rules]
    losing: Callable[[], Rules] | None
    refuses: Callable[[str | None, str | None], str | None]

    def thrown_away(self, before: Model) -> set[int]:
        """A server without a log gives nothing to others."""
        giving = set().union(*(server.holds for server in self.servers.values() if server.log is not None))
        return self.gone() | (self.saved - before.saved - giving)

    def session(self, link: Link) -> bool:
        """The supplier sends what its log shows behind the anchor, if it has news and the link does not wait."""
        return self.sends(link, self.rules())

    def sends(self, link: Link, rules: Rules) -> bool:
        """The same under a rule set of one's choice."""
        ends = self.ends(link)
        if ends is None:
            return False
        supplier, consumer = ends
        if supplier.log is None or self.refuses(supplier.generation, consumer.generation):
            return False
        if link.waits is not None:
            if maxima(supplier.vector) == link.waits:
                return False
            link.waits = None
        if not newer(supplier.vector, consumer.vector):
            return False  # no rule set sends a change that the supplier does not claim
        found = replay(rules, supplier.log, supplier.vector, consumer.vector, consumer.origin or "").sent
        sent = [one for one in found if one not in consumer.unapplied and self.origin_of(one) not in consumer.drops]
        for position in sent:
            self._take(consumer, position, [lot for lot in self._ending.get(position, ()) if lot in supplier.holds])
        return bool(sent)


def maxima(vector: Mapping[str, Span]) -> dict[str, str | None]:
    """Origin -> the last position that the vector claims."""
    return {origin: span.max for origin, span in vector.items()}


# --- what a step of a repair does


def _run(model: Model, supplier: str, consumer: str) -> None:
    for link in model.links:
        if (link.supplier, link.consumer) == (supplier, consumer):
            link.runs = True


def _feed(model: Model, supplier: str, consumer: str) -> None:
    model.links.append(Link(supplier, consumer, True))


def _unfeed(model: Model, supplier: str, consumer: str) -> None:
    last = max(n for n, link in enumerate(model.links) if (link.supplier, link.consumer) == (supplier, consumer))
    del model.links[last]


def _start(model: Model, server: str) -> None:
    model.servers[server].up = True


def _write(model: Model, server: str) -> None:
    model.write(server)


def _rewrite(
    model: Model,
    server: str,
    lots: Iterable[int],
    entry: str | None,
    creates: bool = False,
    again: Iterable[Iterable[str]] = (),
) -> None:
    assert set(lots) <= model.servers[server].holds, f"{server} cannot write again what it lacks"
    model.write(server, lots, entry, creates, again)


def _remove(model: Model, server: str, entry: str, everywhere: bool) -> None:
    """The server deletes an entry; who lacks it refuses that and goes on. Servers are let run until nothing moves either way."""
    model.write(server, (), entry)


def initialise(model: Model, source: str, server: str) -> None:
    """All data and claims of the server become those of the source; its log begins anew, with a mark for each origin."""
    by, to = model.servers[source], model.servers[server]
    to.vector = {origin: span for origin, span in by.vector.items() if origin not in to.forgets}
    to.holds, to.generation = set(by.holds), by.generation
    to.empty, to.source = by.empty, by.source or source
    if to.log is not None:
        to.log = SortedLog([], model.origin_of, [span.max for span in by.vector.values() if span.max])
    model.filled(by, to)


def _forget(model: Model, origin: str) -> None:
    model.dead.add(origin)
    for server in model.servers.values():
        server.vector.pop(origin, None)
        if server.log is not None:
            kept = [position for position in server.log.positions if model.origin_of(position) != origin]
            server.log = SortedLog(kept, model.origin_of, server.log.marks)


def _skip(model: LogModel, supplier: str, consumer: str) -> None:
    """One session that goes on behind an anchor that is gone, whatever is lost."""
    assert model.losing is not None, "a way that nobody offers where suppliers cannot be told so"
    model.sends(Link(supplier, consumer, True), model.losing())


def _set_clock(model: Model, server: str) -> None:
    model.in_time.add(server)


def _save(model: Model, lots: Iterable[int]) -> None:
    model.saved |= set(lots)


Model.effects = {
    "run": _run,
    "feed": _feed,
    "unfeed": _unfeed,
    "start": _start,
    "write": _write,
    "rewrite": _rewrite,
    "remove": _remove,
    "initialise": initialise,
    "forget": _forget,
    "save": _save,
    "set_clock": _set_clock,
}
LogModel.effects = {**Model.effects, "skip": _skip}
