"""A model of servers that pull: a supplier compares its vector with the consumer's, and sends entries as they are.

The vectors decide alone, and one origin out of step stops the whole pull. What a consumer claims and does not hold, no pull
brings: only all data of another server do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from uuid import NAMESPACE_OID, uuid5

from workbench.replication.entry.rules.entries import MAY_TURN_DOWN, Answer, Peer, Pulling
from workbench.rules.repair_model import ChangeGroup, Link, MissingAt, Model, Server, initialise
from workbench.rules.vectors import Span


def replaced_by(lot: ChangeGroup) -> frozenset[int]:
    """The lots of which no entry shows anything any more where this one has come."""
    return lot.mends - lot.yields_to


@dataclass(kw_only=True)
class PullModel(Model):
    """Servers that supply each other without a log. Pulls cost no time here: nothing is forgotten meanwhile.

    pulling  what suppliers answer, and what consumers refuse
    now      server -> what time it was there, as the times of positions are; whoever takes something, takes it later than that
    time_of  position -> its time
    order_key (origin, time) -> a position
    doubted   of what a server does not hold, that of which nothing tells whether it ever did: no lack is made of it
    shared    origins that two servers used, even if one of these goes on as another origin since
    shows     server -> of what it holds, what its entries show: it sends no change that it has only something later in place of
    refusing  server -> the last own change that it is known to have: whatever comes with a later one it may refuse
    needless  deletions of entries that a server does not have: it lacks them only once it gets something of the entry
    unsure    of what servers hold, what they may have refused, or got from one that may have
    """

    pulling: Pulling
    now: dict[str, int]
    time_of: Callable[[str], int]
    order_key: Callable[[str, int], str]
    doubted: frozenset[MissingAt] = frozenset()
    shared: frozenset[str] = frozenset()
    shows: dict[str, set[int]] = field(default_factory=dict)
    refusing: dict[str, int] = field(default_factory=dict)
    unsure: set[MissingAt] = field(default_factory=set)
    needless: set[MissingAt] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, server in self.servers.items():
            if name not in self.shows:
                replaced = set[int]().union(*(replaced_by(self.lots[number]) for number in server.holds))
                self.shows[name] = server.holds - replaced
        used = Counter(server.origin for server in self.servers.values() if server.origin is not None)
        self.shared |= {origin for origin, count in used.items() if count > 1}

    def _lacks(self) -> Iterator[MissingAt]:
        shown = self._shown()  # what something later replaced everywhere, no server lacks
        for lack in super()._lacks():
            needless = lack in self.needless and self.shows[lack.server].isdisjoint(self.lots[lack.lot].mends)
            if lack.lot in shown and lack not in self.doubted and not needless:
                yield lack

    def copy(self) -> PullModel:
        """A model of its own, in the same state."""
        twin = super().copy()
        assert isinstance(twin, PullModel)
        twin.now = dict(self.now)
        twin.shows = {name: set(some) for name, some in self.shows.items()}
        twin.refusing, twin.unsure, twin.needless = dict(self.refusing), set(self.unsure), set(self.needless)
        return twin

    def kept(self) -> set[MissingAt]:
        """What a server may have refused is not counted, nor what something later replaced everywhere."""
        shown = self._shown()
        return {lack for lack in self.held() - self.unsure if lack.lot in shown}

    def by_claims(self, lacks: Iterable[MissingAt], before: Model) -> set[MissingAt]:
        """What came from a server whose entries are not known, and could come from nobody who is known to have it.

        before  the servers as they stood before anything was pulled
        """
        assert isinstance(before, PullModel)
        kept, senders = self.kept(), dict[str, list[str]]()
        for link in self.links:
            if link.runs and before.stuck(link) is None:
                senders.setdefault(link.consumer, []).append(link.supplier)
        return {
            lack
            for lack in lacks
            if lack in self.unsure and lack.server not in self.refusing
            if not any(MissingAt(name, lack.lot) in kept for name in senders.get(lack.server, ()))
        }

    def thrown_away(self, before: Model) -> set[int]:
        """The lots that no server holds for certain any more."""
        return set(range(len(self.lots))) - {lack.lot for lack in self.held() - self.unsure}

    def _shown(self) -> set[int]:
        return set[int]().union(*self.shows.values())

    def answer(self, supplier: Server, consumer: Server) -> Answer:
        """What the consumer hears if it pulls now, under the rules of the real servers."""
        ask = next(iter(self.pulling.answers.values()))
        return ask(self._peer(supplier), self._peer(consumer))

    def _peer(self, server: Server) -> Peer:
        ranges = {
            origin: (self.time_of(span.min), self.time_of(span.max))
            for origin, span in server.vector.items()
            if span.min and span.max
        }
        now = max(self.now[server.name], self.now.get(server.source or "", 0))
        return Peer(server.generation, ranges, now, server.origin, server.origin in self.shared)

    def stuck(self, link: Link) -> Answer | None:
        """The answer over a link that runs and can bring nothing, not now and not later; None: it can."""
        ends = self.ends(link)
        answer = self.answer(*ends) if ends else None
        return answer if answer is not None and answer.refused and not self._anew(link, answer) else None

    def _anew(self, link: Link, answer: Answer) -> bool:
        """True if the consumer takes all data anew by itself. Where both sides would, nobody knows whose data stay."""
        both = any((x.supplier, x.consumer, x.automatic) == (link.consumer, link.supplier, True) for x in self.links)
        return link.automatic and (answer.replaces or (answer.unrelated and not both))

    def takes(self, server: Server, lots: Iterable[int]) -> None:
        """A server gets these lots: its entries show them in place of what they replace."""
        lots = list(lots)
        super().takes(server, lots)
        for number in lots:
            self.shows[server.name] -= replaced_by(self.lots[number])
            self.shows[server.name].add(number)

    def filled(self, source: Server, server: Server) -> None:
        """It goes on as another origin, and claims of the others what its source still shows."""
        self.shows[server.name] = set(self.shows[source.name])
        self.refusing.pop(server.name, None)
        for some in (self.unsure, self.needless):
            some -= {lack for lack in some if lack.server == server.name}
            some |= {MissingAt(server.name, lack.lot) for lack in some if lack.server == source.name}
        cut = self._peer(source).now - self.pulling.remember
        server.vector = {of: span for of, span in server.vector.items() if span.max and self.time_of(span.max) >= cut}
        if server.origin is not None:
            server.origin = str(uuid5(NAMESPACE_OID, server.origin))

    def session(self, link: Link) -> bool:
        """The consumer pulls, and takes what is owed to it."""
        ends = self.ends(link)
        if ends is None:
            return False
        supplier, consumer = ends
        answer = self.answer(supplier, consumer)
        if self._anew(link, answer):
            initialise(self, supplier.name, consumer.name)
            return True
        if answer.refused or not answer.owed:
            return False
        self.now[consumer.name] = max(self.now[consumer.name], self.now[supplier.name])
        mine = self.shows[consumer.name]
        late = set[int]().union(*(self.lots[number].yields_to for number in mine))
        sent = self.shows[supplier.name] - mine
        sent -= consumer.holds - late
        refuses = self._may_refuse(supplier, consumer, answer)
        for origin, (after, upto) in answer.owed.items():
            known = consumer.vector.get(origin)
            first = known.min if known else self.order_key(origin, after)  # a newcomer's range begins at time 0
            consumer.vector[origin] = Span(first, self.order_key(origin, upto))
            came = [
                number
                for number in sent
                if self.lots[number].origin == origin and after < self.time_of(self.lots[number].last) <= upto
            ]
            self.unsure |= {
                MissingAt(consumer.name, number)
                for number in came
                if refuses or MissingAt(supplier.name, number) in self.unsure
            }
            self.takes(consumer, came)
        return True

    def _may_refuse(self, supplier: Server, consumer: Server, answer: Answer) -> bool:
        """True if the consumer refuses what it is sent, should it have been restored: own changes come that it may have lost."""
        own = consumer.origin or ""
        known, theirs = consumer.vector.get(own), supplier.vector.get(own)
        if known and known.max and any(rule == MAY_TURN_DOWN for rule, _ in answer.reasons):
            self.refusing.setdefault(consumer.name, self.time_of(known.max))
        last = self.refusing.get(consumer.name)
        return last is not None and bool(theirs and theirs.max and self.time_of(theirs.max) > last)
