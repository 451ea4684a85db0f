"""A model of nodes that pull a physical log from each other, on which repairs are tried: rows of a registry, and logs.

A node's log is a prefix of the source's. A lot is what lies between the ends of two logs: who has come so far holds it. A node
gets what its source has beyond it, as long as the source still has the file in which the node's own log ends. What a reset
frees may be deleted at once, so it is taken to be gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import ClassVar

from workbench.replication.tier.rules.candidates import Call, hosts_asked_for
from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.log_retention import LogHold, log_holder
from workbench.replication.tier.rules.registration import register
from workbench.replication.tier.rules.tiers import CIRCLE, Node, Pull, Registry, Tree, tree
from workbench.rules.repair_model import Link, MissingAt, Model, Server
from workbench.rules.vectors import Span

GONE = frozenset({"ghost", "frozen", "hung"})
"""Conditions of nodes that do not answer and report nothing, and whose rows are still there."""

SILENT = GONE | {"unreachable", "retired"}
"""Conditions of nodes that do not answer: they give nothing, and nothing is known that they lack. One that was taken out needs
nothing.
"""

PULLING = frozenset({"healthy", "behind", "delayed", "delayed_above", "cut_back"})
"""Conditions of nodes that pull from their source."""


APART = frozenset({"cycle", "orphan"})
"""Conditions of nodes that hang on no source."""

MOVED = "moved"
"""Condition of a node that a repair gave another source: how it does there nobody has seen yet."""


@dataclass(kw_only=True)
class TierModel(Model):
    """Nodes by name, as `database@host`.

    registry   its rows
    rules      what it answers; `elsewhere`: sources whose nodes do not hold its tables themselves
    source_of  node -> the source database that it follows
    condition  node -> what it is doing, in the words of the diagnosis
    file_of    position -> the number of its file
    position   (source, file) -> the position where the file begins
    follows    node -> the database that it is told to follow, and the hosts of it that it knows; else all of its source
    spoilt     nodes whose log is proven to lack records, or to hold other ones than that of the source
    parted     those that hold other ones only at the end: when they connect they cut that off
    doubted    those whose log lacked records in an earlier snapshot, of which nothing shows that they were mended
    lost       nodes that nobody could serve from the beginning: what they lack is no fault of a repair
    stood      node -> where its log ended when it was collected, before anything was tried on the model
    unsure     nodes that may be further than their logs show: what they lack is unknown, and so lacking to none
    holes      node -> the log files that lack in the middle of its own: who needs one of them gets nothing behind it there
    """

    within: ClassVar[bool] = False
    registry: Registry
    rules: Rules
    source_of: dict[str, str]
    condition: dict[str, str]
    file_of: Callable[[str], int]
    position: Callable[[str, int], str]
    elsewhere: frozenset[str] = frozenset()
    follows: Mapping[str, tuple[str, Sequence[str]]] = field(default_factory=dict)
    spoilt: frozenset[str] = frozenset()
    parted: frozenset[str] = frozenset()
    doubted: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    stood: Mapping[str, str] = field(default_factory=dict)
    holes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    unsure: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.stood:
            spans = ((name, server.vector.get(self.source_of[name])) for name, server in self.servers.items())
            self.stood = {name: span.max for name, span in spans if span and span.max}
        if not self.made:
            self.lost |= {name for name in self.servers if self._needs(name)} - self._helped()

    def copy(self) -> TierModel:
        """A model of its own, in the same state."""
        twin = super().copy()
        assert isinstance(twin, TierModel)
        twin.condition, twin.source_of = dict(self.condition), dict(self.source_of)
        twin.lost = self.lost
        return twin

    # --- what is so

    def ahead(self) -> Mapping[str, int]:
        """By the records that each node has, and where its log ends."""

        def ends(server: Server) -> tuple[int, str]:
            return len(server.holds), max((span.max or "" for span in server.vector.values()), default="")

        order = {end: place for place, end in enumerate(sorted({ends(server) for server in self.servers.values()}))}
        return {name: order[ends(server)] for name, server in self.servers.items()}

    def compared(self, server: str, lacks: Set[MissingAt], restored: Set[MissingAt]) -> Set[MissingAt]:
        """Others may get more by a copy of a node, which no need of this one asks for."""
        return {lack for lack in restored if lack.server == server}

    def tree(self, source: str) -> Tree:
        """The tree of that source, as the rows are now."""
        return tree(self.registry, source)

    def roots(self, source: str) -> list[str]:
        """The nodes of the source."""
        return [name for name in self.servers if name.partition("@")[0] == source]

    def row(self, name: str) -> Node | None:
        """The row of a node."""
        return next((one for one in self.registry.nodes if one.name == name), None)

    def parents(self, name: str) -> list[str]:
        """The nodes that it pulls from, as the rows say."""
        return sorted(pull.source for pull in self.registry.pulls if pull.name == name)

    def needed_file(self, name: str) -> int | None:
        """The file in which its log ends; None: nothing tells."""
        span = self.servers[name].vector.get(self.source_of[name])
        return self.file_of(span.max) if span and span.max else None

    def serves(self, supplier: str, consumer: str) -> bool:
        """Whether the one is there, goes further than the other, and has the file in which the other one's log ends."""
        by, to, source = self.servers[supplier], self.servers[consumer], self.source_of[consumer]
        has, ends = by.vector.get(source), to.vector.get(source)
        if not by.up or self.source_of[supplier] != source or has is None or ends is None:
            return False
        if has.min is None or has.max is None or ends.max is None or has.max <= ends.max:
            return False
        return self.whole_from(supplier, has.min) <= self.file_of(ends.max)

    def whole_from(self, name: str, first: str) -> int:
        """The file from which on a node whose log begins there has all that follow."""
        return max([self.file_of(first), *(file + 1 for file in self.holes.get(name, ()))])

    def going_on(self, source: str) -> set[str]:
        """The nodes that are there, and are at the head of that source or can be brought there by one that is.

        A node that cannot go on itself is no help: it would leave the other one where it is stuck.
        """
        mine = [name for name, server in self.servers.items() if server.up and self.source_of[name] == source]
        known = [name for name in mine if source in self.servers[name].vector]
        found = {name for name in known if name not in self.unsure and not self._needs(name)}
        waiting = [name for name in known if name not in found]
        fresh = found
        while fresh:
            reach = self._reach(source, found)
            fresh = {name for name in waiting if name not in found and self._within(reach, name)}
            found |= fresh
        return found

    def _reach(self, source: str, some: Iterable[str]) -> tuple[list[int], list[str]]:
        """First files in ascending order, and how far one gets with those up to each: a log that begins later serves fewer."""
        spans = ((name, self.servers[name].vector[source]) for name in some)
        firsts = sorted((self.whole_from(name, span.min), span.max) for name, span in spans if span.min and span.max)
        return [first for first, _ in firsts], list(accumulate((last for _, last in firsts), max))

    def _within(self, reach: tuple[list[int], list[str]], name: str) -> bool:
        """Whether one of those has the file in which a node's log ends, and goes further."""
        ends = self.servers[name].vector[self.source_of[name]].max
        at = bisect_right(reach[0], self.file_of(ends)) if ends else 0
        return bool(ends and at and reach[1][at - 1] > ends)

    def serving(self, name: str) -> list[str]:
        """Who could serve it and goes on itself, those first that are furthest and were not moved; the source last."""
        source = self.source_of[name]
        able = [one for one in self.going_on(source) if self.serves(one, name) and self.was_ahead(one, name)]

        def rank(one: str) -> tuple[bool, int, bool, str]:
            moved, root = self.condition[one] == MOVED, one.partition("@")[0] == source
            return moved, -len(self.servers[one].holds), root, one

        return sorted(able, key=rank)

    def was_ahead(self, supplier: str, name: str) -> bool:
        """Whether the log of the one went further than that of the other when both were collected.

        On the model what is on its way has arrived. A node that connects to one that is still behind it looks for the match
        point there, and cuts off all that it has beyond.
        """
        stood, other = self.stood.get(supplier), self.stood.get(name)
        return stood is not None and other is not None and stood > other

    def was_at_head(self, name: str) -> bool:
        """Whether a node had all that the nodes of its source had when it was collected."""
        heads = [self.stood[one] for one in self.roots(self.source_of[name]) if one in self.stood]
        return name in self.stood and self.stood[name] >= max(heads, default=self.stood[name])

    def silent_holders(self, name: str) -> list[str]:
        """The nodes that do not answer, have the file that one needs next, and can bring it to the head if all come back.

        Empty where a node that answers can.
        """
        if self.serving(name):
            return []
        back = self.copy()
        for server in back.servers.values():
            server.up = True
            if server.name in back.roots(self.source_of[name]):  # its cluster brings it up to date, not from files
                server.holds.update(
                    number for number, lot in enumerate(back.lots) if lot.origin == self.source_of[name]
                )
        return [node for node in back.serving(name) if not self.servers[node].up]

    def ghosts(self) -> list[str]:
        """Nodes that are gone, and whose rows still say that they pull, may be pulled from, or wait for a source."""
        pulling = {pull.name for pull in self.registry.pulls}
        states = {one.name: one.state for one in self.registry.nodes}
        return [
            name
            for name, condition in sorted(self.condition.items())
            if condition in GONE and (name in pulling or states.get(name, "Inactive") != "Inactive")
        ]

    def is_silent(self, name: str) -> bool:
        """Whether it does not answer, and no repair gave it a source."""
        return self.condition[name] in SILENT

    def is_out(self, name: str) -> bool:
        """Whether it was taken out of the tree: its row is Inactive, and it pulls from nobody."""
        return (row := self.row(name)) is not None and row.state == "Inactive" and not self.parents(name)

    def hold(self, source: str) -> LogHold:
        """Who keeps the nodes of the source from deleting log files."""
        hosts = [name.partition("@")[2] for name in self.roots(source)]
        return log_holder(self.rules, self.registry, source, hosts, source not in self.elsewhere)

    def waiting(self) -> list[str]:
        """The nodes that the registry takes to wait for a source."""
        return sorted(one.name for one in self.registry.nodes if one.state == "Pending")

    def refuses_all(self) -> bool:
        """Whether so many nodes wait that the registry answers nobody."""
        most = self.rules.most_pending
        return most is not None and len(self.waiting()) + self.rules.full_at_limit > most

    def in_circles(self) -> list[str]:
        """Nodes that come back to themselves and whose row it is: of a circle that the source feeds, not those that only
        hang on it.
        """
        found = []
        for source in sorted(set(self.source_of.values())):
            for name, place in self.tree(source).places.items():
                fed = place.tier is not None and place.tier > 0
                if name in self.servers and place.problem == CIRCLE and not (fed and len(place.parents) == 1):
                    found.append(name)
        return sorted(found)

    def unlisted(self) -> list[str]:
        """Nodes of the source, nodes that pull or are pulled from, and those that are there, that have no row in the registry."""
        known = {one.name for one in self.registry.nodes}
        linked = {name for pull in self.registry.pulls for name in (pull.name, pull.source)}
        linked |= {name for name, source in self.source_of.items() if name.partition("@")[0] == source}
        linked |= {name for name, server in self.servers.items() if server.up and self.source_of[name] in server.vector}
        return sorted((linked & self.servers.keys()) - known)

    def set_aside(self) -> list[str]:
        """Nodes of a source that are there and no candidates by their rows, where that is so of all its nodes."""
        found = []
        rows = {one.name: one for one in self.registry.nodes}
        for source in sorted(set(self.source_of.values())):
            own = [name for name in self.roots(source) if name in rows]
            if all(rows[name].state in self.rules.unfit for name in own):
                found += [name for name in own if self.servers[name].up]
        return sorted(found)

    def waits_in_vain(self) -> list[str]:
        """Nodes that a repair left without a source, although nothing is lacking yet."""
        return sorted(name for name, one in self.condition.items() if one == "no_source" and not self._needs(name))

    def over_full(self) -> list[str]:
        """Nodes that more pull from than the fanout says."""
        found = []
        for source in sorted(set(self.source_of.values())):
            fanout = self.rules.fanout_of(source)
            found += [name for name, place in self.tree(source).places.items() if len(place.children) > fanout]
        return sorted(set(found))

    def _needs(self, name: str) -> bool:
        server, source = self.servers[name], self.source_of[name]
        return (
            server.up
            and source in server.vector
            and name not in self.unsure
            and any(lot.origin == source and number not in server.holds for number, lot in enumerate(self.lots))
        )

    def _lacks(self) -> Iterator[MissingAt]:
        """What a node that is there lacks of the log of its source: one that is gone needs nothing until it is back.

        Of one whose position nobody knows nobody can say what it lacks.
        """
        for name, server in self.servers.items():
            known = server.up and self.source_of[name] in server.vector and name not in self.unsure
            for number, lot in enumerate(self.lots if known else ()):
                if lot.origin == self.source_of[name] and number not in server.holds:
                    yield MissingAt(name, number)

    def missing(self) -> set[MissingAt]:
        """What a node lacks and nobody can bring any more, who could before."""
        helped = self._helped() | self.lost
        return {lack for lack in self._lacks() if lack.server not in helped}

    def _helped(self) -> set[str]:
        return {name for source in set(self.source_of.values()) for name in self.going_on(source)}

    def pending(self) -> set[MissingAt]:
        """All else that a node lacks."""
        return set(self._lacks()) - self.missing()

    # --- what happens

    def session(self, link: Link) -> bool:
        """The consumer pulls what its source has beyond it."""
        ends = self.ends(link)
        if ends is None or not self.serves(link.supplier, link.consumer):
            return False
        supplier, consumer = ends
        source = self.source_of[consumer.name]
        consumer.vector[source] = Span(consumer.vector[source].min, supplier.vector[source].max)
        self.takes(consumer, [number for number in supplier.holds if self.lots[number].origin == source])
        return True

    def reset(self, server: str) -> None:
        """Its row becomes Inactive, and it pulls from nobody; its place is free, and files that only it held may be deleted."""
        self._forget(server)
        self._ask_again()

    def _forget(self, server: str) -> None:
        """Its row becomes Inactive and its connection goes; what nobody holds by then is deleted."""
        held = self.hold(self.source_of[server]).kept_from
        self._set_inactive(server)
        self._delete_files(self.source_of[server], held)

    def _set_inactive(self, server: str) -> None:
        nodes = tuple(replace(one, state="Inactive") if one.name == server else one for one in self.registry.nodes)
        self.disconnect(server)
        self.registry = replace(self.registry, nodes=nodes)

    def _delete_files(self, source: str, held: int | None) -> None:
        """The nodes of a source delete the files that were held from that one on, and are held no more."""
        kept = self.hold(source).kept_from
        if held is not None and kept is not None and kept > held:
            for one in self.servers.values():
                span = one.vector.get(source)
                if span and span.min and span.max and self.file_of(span.min) < kept:
                    first = min(self.position(source, kept), span.max)
                    one.vector[source] = Span(first, span.max)

    def register(self, server: str) -> None:
        """It resets itself and asks the registry; it takes the first that it is offered, that is there, and has its file.

        That takes seconds, and files are deleted every 10 s or 600 s: those that it alone held are taken to be there until then.
        """
        held = self.hold(self.source_of[server]).kept_from
        self._set_inactive(server)
        self._ask(server)
        for parent in self.parents(server):
            self.session(Link(parent, server, True))
        self._delete_files(self.source_of[server], held)
        self._ask_again()

    def _ask_again(self) -> None:
        """Who waits and was offered nothing asks every second, and takes what has become free."""
        for name in self.waiting():
            if name in self.servers and self.servers[name].up and self.condition[name] == "no_source":
                self._ask(name)

    def _ask(self, server: str) -> None:
        database, _, host = server.partition("@")
        asked, hosts = self.follows.get(server, (self.source_of[server], ()))
        hosts = hosts_asked_for(
            hosts, (name.partition("@")[2] for name in self.servers if name.partition("@")[0] == asked)
        )
        offered = [f"{asked}@{one}" for one in hosts]
        self._report()
        if self.registry.nodes:  # else it was not collected: nothing speaks against the nodes that it is told to follow
            call = Call(database, host, self.needed_file(server) or 0, asked, hosts)
            offer = register(self.rules, self.registry, call)
            self.registry, offered = offer.after, [one.name for one in offer.in_order]
        for name in () if self._waits(server) else offered:
            by = self.servers.get(name)
            if by is not None and by.up and self._overlaps(name, server):
                self._connect(server, name)
                return
        self.condition[server] = "no_source"

    def _report(self) -> None:
        """Rows as they are by now: every node that is there and was not stopped reports how far it is, each minute or so.

        Rows that were read a few seconds before the nodes were asked name files too early for one that is copied since.
        """
        self.registry = replace(self.registry, nodes=tuple(map(self._as_reported, self.registry.nodes)))

    def _as_reported(self, row: Node) -> Node:
        server, condition = self.servers.get(row.name), self.condition.get(row.name)
        span = server.vector.get(self.source_of[row.name]) if server and server.up else None
        if (
            span is None
            or span.max is None
            or row.file is None
            or condition not in PULLING | {MOVED, "pending", "no_source"}
        ):
            return row
        file, first = self.file_of(span.max), row.first_file
        if first is not None and span.min is not None:
            first = max(first, self.file_of(span.min))
        return replace(row, file=max(row.file, file), first_file=first)

    def _waits(self, server: str) -> bool:
        """Whether a row makes it wait until its source connects to it; what is no host there may be its tier or cluster."""
        database, _, host = server.partition("@")
        hosts = {name.partition("@")[2] for name in self.servers if name.partition("@")[0] == database}
        return any(
            row.database == database and (row.host == host or row.host not in hosts) for row in self.registry.awaited
        )

    def disconnect(self, server: str) -> None:
        """Its connections are deleted from the registry, and nothing else changes."""
        parents = self.parents(server)
        self.links = [link for link in self.links if not (link.consumer == server and link.supplier in parents)]
        self.registry = replace(self.registry, pulls=tuple(pull for pull in self.registry.pulls if pull.name != server))

    def set_pending_limit(self, limit: int) -> None:
        """The registry refuses all only when more nodes wait."""
        self.rules = replace(self.rules, most_pending=limit)
        self._ask_again()

    def await_nobody(self, server: str) -> None:
        """The rows that make it wait are deleted."""
        awaited = tuple(row for row in self.registry.awaited if row.name != server)
        self.registry = replace(self.registry, awaited=awaited)

    def _overlaps(self, supplier: str, server: str) -> bool:
        has, needed = self.servers[supplier].vector.get(self.source_of[server]), self.needed_file(server)
        return bool(has and has.min and needed is not None and self.file_of(has.min) <= needed)

    def pull_from(self, server: str, source: str) -> None:
        """It is told to follow that node, and asks the registry for it: it may be offered that one, or one below it."""
        base, _, host = source.partition("@")
        self.follows = {**self.follows, server: (base, (host,))}
        self.register(server)

    def _connect(self, server: str, source: str) -> None:
        """It pulls from that node from now on, and from no other."""
        self.disconnect(server)
        database, _, host = server.partition("@")
        base, _, source_host = source.partition("@")
        nodes = tuple(replace(one, state="Active") if one.name == server else one for one in self.registry.nodes)
        pulls = (*self.registry.pulls, Pull(database, host, base, source_host))
        self.registry = replace(self.registry, nodes=nodes, pulls=pulls)
        self.links.append(Link(source, server, True))
        self.condition[server] = MOVED
        self.parted -= {server}
        self._hang_again(self.source_of[server])

    def _hang_again(self, top: str) -> None:
        """Nodes that hung on no source for one above them did not: they pull on as before, and get what there is again."""
        for name, place in self.tree(top).places.items():
            if self.condition.get(name) in APART and place.tier and not place.problem:
                self.condition[name] = MOVED
                self.links = [
                    replace(link, runs=True) if link.consumer == name and link.supplier in place.parents else link
                    for link in self.links
                ]

    def enlist(self, server: str) -> None:
        """A node of the source has its row in the registry again, and is a candidate."""
        database, _, host = server.partition("@")
        file = self.needed_file(server)
        row = self.row(server) or Node(database, host, file, None)
        others = tuple(one for one in self.registry.nodes if one.name != server)
        self.registry = replace(self.registry, nodes=(*others, replace(row, state="Active")))
        self._ask_again()

    def replace_log(self, source: str, server: str) -> None:
        """It has the log of that node now, with whatever is wrong with it."""
        self.spoilt = self.spoilt | {server} if source in self.spoilt else self.spoilt - {server}
        self.parted = self.parted | {server} if source in self.parted else self.parted - {server}
        self.holes = {**self.holes, server: self.holes.get(source, ())}
        self.stood = {**self.stood, **({server: self.stood[source]} if source in self.stood else {})}

    def set_fanout(self, source: str, fanout: int) -> None:
        """The registry lets so many nodes pull from one below that source."""
        self.rules = replace(self.rules, fanouts={**self.rules.fanouts, source: fanout})
        self._ask_again()

    effects: ClassVar[Mapping[str, Callable[..., None]]] = {
        **Model.effects,
        "reset": reset,
        "register": register,
        "pull_from": pull_from,
        "enlist": enlist,
        "await_nobody": await_nobody,
        "disconnect": disconnect,
        "replace_log": replace_log,
        "set_pending_limit": set_pending_limit,
        "set_fanout": set_fanout,
    }
