"""A model of servers that copy a stream of transactions: each takes what follows the last one that it has, in order.

What a copy lacks before the last one that it has, nobody will ever send it: it asks for later ones only. What comes behind is
on its way, as long as its applier runs. A lot is a transaction, and its place is where the stream of its origin has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import ClassVar

from workbench.rules.repair_model import Link, MissingAt, Model, Server


@dataclass(kw_only=True)
class StreamModel(Model):
    """Servers that hold transactions of streams.

    places   number of a lot -> its place in the stream of its origin
    covers   (server, origin) -> the place that its log goes to, if it has nothing whole there
    missed   (server, lot) that will not come although it is behind the last that the server has whole: pieces of it came, others
             were passed over
    taken    (server, lot) of what the log of its source has damaged, and that of another server has whole: nobody counts it as
             lacking, and it is needed before what follows
    maybe    (server, lot) of what a server may have and may lack: it counts as had, and shows nothing of how far the server is
    """

    places: list[int]
    covers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    missed: frozenset[tuple[str, int]] = frozenset()
    maybe: frozenset[tuple[str, int]] = frozenset()
    taken: frozenset[tuple[str, int]] = frozenset()

    def copy(self) -> StreamModel:
        """A model of its own, in the same state."""
        twin = super().copy()
        assert isinstance(twin, StreamModel)
        twin.places = list(self.places)
        return twin

    def reached(self, server: Server) -> dict[str, int]:
        """Origin -> the place of the last transaction that the server has."""
        found = {origin: place for (name, origin), place in self.covers.items() if name == server.name}
        for number in server.holds:
            origin = self.lots[number].origin
            if (server.name, number) in self.maybe:
                continue
            found[origin] = max(self.places[number], found.get(origin, -1))
        return found

    def missing(self) -> set[MissingAt]:
        """What a server lacks and is past."""
        return self._split()[0]

    def pending(self) -> set[MissingAt]:
        """What a server lacks and may still be sent."""
        return self._split()[1]

    def _split(self) -> tuple[set[MissingAt], set[MissingAt]]:
        reached = {name: self.reached(server) for name, server in self.servers.items()}
        passed, to_come = set[MissingAt](), set[MissingAt]()
        for lack in self._lacks():
            here = reached[lack.server].get(self.lots[lack.lot].origin, -1)
            gone = self.places[lack.lot] < here or (lack.server, lack.lot) in self.missed
            (passed if gone else to_come).add(lack)
        return passed, to_come

    def compared(self, server: str, lacks: Set[MissingAt], restored: Set[MissingAt]) -> Set[MissingAt]:
        """A copy of all data brings what is on its way, too: that speaks for no way."""
        return {lack for lack in restored & lacks if lack.server == server}

    def session(self, link: Link) -> bool:
        """The consumer takes what follows the last transaction that it has."""
        ends = self.ends(link)
        if ends is None:
            return False
        supplier, consumer = ends
        here = self.reached(consumer)
        came = [
            number
            for number in supplier.holds - consumer.holds
            if self.places[number] > here.get(self.lots[number].origin, -1)
            and (link.consumer, number) not in self.missed
        ]
        self.takes(consumer, came)
        return bool(came)

    def write(
        self,
        server: str,
        mends: Iterable[int] = (),
        entry: str | None = None,
        creates: bool = False,
        again: Iterable[Iterable[str]] = (),
    ) -> None:
        """A server commits a transaction of its own: the last of its stream."""
        self.places.append(1 + max(self.places, default=0))
        super().write(server, mends, entry, creates, again)

    def give(self, server: str, lots: Iterable[int]) -> None:
        """These transactions are applied at the server, in this order."""
        to, last = self.servers[server], -1
        for number in lots:
            assert number not in to.holds, f"{server} has {self.lots[number].last} already"
            assert self.places[number] > last, f"{self.lots[number].last} was committed before the one before it"
            assert any(number in one.holds for one in self.servers.values()), f"nobody has {self.lots[number].last}"
            last = self.places[number]
            self.takes(to, [number])

    effects: ClassVar[Mapping[str, Callable[..., None]]] = {**Model.effects, "give": give}
