"""What pulls over links that run will bring, played on a model of the servers: who gets which changes in the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.engine.state_fates import Fate, Waiting
from workbench.fleet.topology import Replica, Topology
from workbench.rules.mending import Lack, Link, Lot, Server
from workbench.rules.pulled import PullModel
from workbench.rules.vectors import last

Row = Mapping[str, Any]


def links_between(shown: Topology, pairs: Iterable[Row], suffix: str | None, names: Iterable[str]) -> list[Link]:
    """The links of a suffix; where none is known, everybody may pull from everybody, as the pairs do."""
    known, names = [link for link in shown.links if link.suffix == suffix], set(names)
    if not known:
        return [Link(row["supplier"], row["consumer"], True) for row in pairs if row["suffix"] == suffix]
    return [
        Link(link.supplier, link.consumer, link.enabled is not False, automatic=bool(link.automatic))
        for link in known
        if link.consumer in names and link.supplier in names
    ]


class PullOutcomes:
    """The servers of one suffix, and how they stand once nothing moves any more.

    now      server -> what time it was there
    pairs    the rows of the pair matrix
    waiting  by the numbers of the fates, what each server waits for
    """

    def __init__(
        self,
        shown: Topology,
        replicas: Sequence[Replica],
        now: Mapping[str, int],
        pairs: Sequence[Row],
        fates: Iterable[Fate] = (),
        waiting: Waiting | None = None,
    ) -> None:
        assert shown.pulling is not None
        self._waiting = waiting or {}
        self._system, fates = shown.system, list(fates)
        order_key = self._system.order_key
        lots = [
            Lot(one.origin, order_key(one.origin, one.first, 0), order_key(one.origin, one.last, 0), one.count)
            for one in fates
        ]
        servers = {
            one.server: Server(
                one.server,
                one.origin,
                one.generation,
                one.seen(),
                None,
                {number for number, fate in enumerate(fates) if fate.has(one.server, self._top(one, fate.origin))},
            )
            for one in replicas
        }
        suffix = replicas[0].suffix if replicas else None
        self._now = PullModel(
            lots,
            servers,
            links_between(shown, pairs, suffix, servers),
            self._system.origin_of,
            lambda origin, number: order_key(origin, number, 0),
            pulling=shown.pulling,
            now=dict(now),
            time_of=lambda position: self._system.halves(position)[0],
            order_key=lambda origin, time: order_key(origin, time, 0),
            doubted=frozenset(
                Lack(name, number) for number, fate in enumerate(fates) for name in fate.doubted if name in servers
            ),
        )
        self._later = self._now.copy()
        self._later.settle()

    def _top(self, one: Replica, origin: str) -> int:
        key = last(one.seen(), origin)
        return self._system.halves(key)[0] if key else -1

    def spreading(self, server: str) -> dict[str, int]:
        """Origin -> up to which time another server will have seen it."""
        found: dict[str, int] = {}
        for name, one in self._later.servers.items():
            for origin, span in one.vector.items() if name != server else ():
                if span.max:
                    found[origin] = max(found.get(origin, -1), self._system.halves(span.max)[0])
        return found

    def arriving(self, server: str, origin: str) -> int:
        """How many changes of the origin the server waits for now, and has in the end or has something later in their place."""
        holds, counts = self._later.servers[server].holds, self._waiting.get((server, origin), {})
        return sum(count for fates, count in counts.items() if not holds.isdisjoint(fates))

    def through(self, server: str, origin: str) -> list[str]:
        """Servers from which it pulls, that wait for these changes themselves, and pass them on."""
        coming = {lack.lot for lack in self._coming(server, origin)}
        feeding = {link.supplier for link in self._now.links if link.consumer == server and link.runs}
        feeding = {name for name in feeding & self._now.servers.keys() if coming & self._later.servers[name].holds}
        wait = {name for name in feeding if coming - self._now.servers[name].holds}
        return sorted(wait or feeding)

    def _coming(self, server: str, origin: str) -> Iterator[Lack]:
        holds = self._later.servers[server].holds
        for lack in self._now.pending():
            if lack.server == server and self._now.lots[lack.lot].origin == origin and lack.lot in holds:
                yield lack
