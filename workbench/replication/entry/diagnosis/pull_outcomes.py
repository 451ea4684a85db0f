"""What pulls over links that run will bring, played on a model of the servers: who gets which changes in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from workbench.engine.state_fates import Fate
from workbench.replication.entry.rules.entries import OTHER_VERSION
from workbench.replication.entry.rules.repair_model import PullModel
from workbench.rules.repair_model import ChangeGroup, Link, MissingAt, Server
from workbench.rules.vectors import last
from workbench.topology.topology import Replica, Topology

Row = Mapping[str, Any]


def links_between(
    shown: Topology, pairs: Iterable[Row], suffix: str | None, names: Iterable[str], upgraded: bool = False
) -> list[Link]:
    """The links of a suffix; where none is known, everybody may pull from everybody whose file does not say that it has none.

    upgraded  as if all servers were of one version; else those between servers of different versions are left out
    """
    known, names = [link for link in shown.links if link.suffix == suffix], set(names)
    mine = [row for row in pairs if row["suffix"] == suffix]
    apart = {(row["supplier"], row["consumer"]) for row in mine if not upgraded and of_other_version(row)}
    if not known:
        ends = ((row["supplier"], row["consumer"]) for row in mine if not row["leads_elsewhere"])
        return [Link(*both, True) for both in ends if both not in apart]
    return [
        Link(link.supplier, link.consumer, link.enabled is not False, automatic=bool(link.automatic))
        for link in known
        if link.consumer in names and link.supplier in names and (link.supplier, link.consumer) not in apart
    ]


def of_other_version(row: Row) -> bool:
    """True if nothing goes between the two servers of a pair because they are of different versions."""
    return any(reason["rule"] == OTHER_VERSION for reason in row["reasons"])


def lots_of(fates: Sequence[Fate], order_key: Callable[[str, int, int], str]) -> list[ChangeGroup]:
    """A lot for each fate, with its number: what stands for what wherever it comes is the same of both."""
    settles: dict[int, set[int]] = {}
    for number, fate in enumerate(fates):
        for other in fate.settled_by:
            settles.setdefault(other, set()).add(number)
    return [
        ChangeGroup(
            fate.origin,
            order_key(fate.origin, fate.first, 0),
            order_key(fate.origin, fate.last, 0),
            fate.count,
            mends=frozenset(settles.get(number, ())),
            yields_to=fate.yields_to,
        )
        for number, fate in enumerate(fates)
    ]


class PullOutcomes:
    """The servers of one suffix, and how they stand once nothing moves any more.

    now      server -> what time it was there
    pairs    the rows of the pair matrix
    fates    what not every server has
    upgraded as if all servers were of one version
    """

    def __init__(
        self,
        shown: Topology,
        replicas: Sequence[Replica],
        now: Mapping[str, int],
        pairs: Sequence[Row],
        fates: Sequence[Fate] = (),
        upgraded: bool = False,
    ) -> None:
        assert shown.pulling is not None
        self._system, self._fates = shown.system, fates
        order_key = self._system.order_key
        servers, shows = dict[str, Server](), dict[str, set[int]]()
        self._tops: dict[str, dict[str, int]] = {}
        for one in replicas:
            tops = self._tops[one.server] = {fate.origin: self._top(one, fate.origin) for fate in fates}
            has = {number for number, fate in enumerate(fates) if fate.has(one.server, tops[fate.origin])}
            servers[one.server] = Server(one.server, one.origin, one.generation, one.seen(), None, has)
            shows[one.server] = {n for n, fate in enumerate(fates) if fate.shows(one.server, tops[fate.origin])}
        suffix = replicas[0].suffix if replicas else None
        self._now = PullModel(
            lots_of(fates, order_key),
            servers,
            links_between(shown, pairs, suffix, servers, upgraded),
            self._system.origin_of,
            lambda origin, number: order_key(origin, number, 0),
            pulling=shown.pulling,
            shows=shows,
            needless={MissingAt(name, number) for number, fate in enumerate(fates) for name in fate.needless},
            now=dict(now),
            time_of=lambda position: self._system.halves(position)[0],
            order_key=lambda origin, time: order_key(origin, time, 0),
            doubted=frozenset(
                MissingAt(name, number) for number, fate in enumerate(fates) for name in fate.doubted if name in servers
            ),
        )
        self._later = self._now.copy()
        self._later.settle()
        self._firsts: dict[tuple[str, str], set[int]] = {}

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

    def arriving(self, server: str, origin: str) -> tuple[int, dict[str, int]]:
        """How many changes of the origin the server waits for now, and has in the end or has something later in their place.

        And supplier -> how many of them do not come if the server pulls from that one first: it claims them, and does not
        send them.
        """
        awaited = {
            number: fate for number, fate in enumerate(self._fates) if fate.origin == origin and fate.awaited_by(server)
        }
        come = self._count(awaited, self._later.servers[server].holds)
        feeding = {link.supplier for link in self._now.links if link.consumer == server and link.runs}
        feeding &= self._tops.keys()
        if not any(self._may_pass_over(name, server, awaited) for name in feeding):
            return come, {}
        first = {name: self._count(awaited, self._if_first(name, server)) for name in sorted(feeding)}
        most = max(come, *first.values())
        return most, {name: most - count for name, count in first.items() if count < most}

    def _may_pass_over(self, name: str, server: str, awaited: Mapping[int, Fate]) -> bool:
        """True if a supplier claims some of these changes, and shows neither them nor what stands for them and it would send."""
        shows = self._now.shows[name]
        return any(
            fate.last <= self._tops[name].get(fate.origin, -1)
            and number not in shows
            and not any(other in shows and self._fates[other].awaited_by(server) for other in fate.settled_by)
            for number, fate in awaited.items()
        )

    def _if_first(self, name: str, server: str) -> set[int]:
        """What the server has in the end if it pulls from that supplier before anything else is pulled."""
        if (name, server) not in self._firsts:
            later = self._now.copy()
            for link in later.links:
                if (link.supplier, link.consumer) == (name, server):
                    later.session(link)
            later.settle()
            self._firsts[name, server] = later.servers[server].holds
        return self._firsts[name, server]

    @staticmethod
    def _count(awaited: Mapping[int, Fate], holds: set[int]) -> int:
        return sum(fate.count for number, fate in awaited.items() if number in holds)

    def through(self, server: str, origin: str) -> list[str]:
        """Servers from which it pulls, that wait for these changes themselves, and pass them on.

        Where none waits, those that claim them: what they send, their entries tell.
        """
        coming, later = {*self._coming(server, origin)}, self._later
        links = (link for link in self._now.links if link.consumer == server and link.runs)
        feeding = {link.supplier for link in links if later.stuck(link) is None}
        feeding = {name for name in feeding & self._now.servers.keys() if coming & self._later.servers[name].holds}
        wait = {name for name in feeding if coming - self._now.servers[name].holds}
        runs = {link.supplier for link in self._now.links if link.consumer == server and self._now.stuck(link) is None}
        return sorted(wait or feeding & runs or feeding)

    @cached_property
    def _pending(self) -> Mapping[str, Sequence[int]]:
        """Server -> the lots that it waits for."""
        found: dict[str, list[int]] = {}
        for lack in sorted(self._now.pending()):
            found.setdefault(lack.server, []).append(lack.lot)
        return found

    def _coming(self, server: str, origin: str) -> Iterator[int]:
        holds = self._later.servers[server].holds
        for number in self._pending.get(server, ()):
            if self._now.lots[number].origin == origin and number in holds:
                yield number
