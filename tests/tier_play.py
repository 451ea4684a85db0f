"""A fleet of nodes plays through time: they register, pull, send keepalives, register anew, and some are lost.

It shows how even the tree becomes under the rules of each version, for thousands of nodes. The registry is asked as in
`workbench.replication.tier.rules.registration`, only that what changes is kept up to date in place of being read anew with each
call; a test holds the two against each other. Keepalives of a living node tell nothing new after the first, so they are counted,
not played.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workbench.model import Problem
from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.tiers import Node, Pull, Registry

SOURCE, REPLICANTS = "source", "replicant"
"""The names of the two databases of a fleet that is played."""

_ASK, _CONNECT, _AGAIN, _KEEPALIVE, _LOST, _STALE = "ask", "connect", "again", "keepalive", "lost", "stale"
_FILE = 9
_AGAIN_S = 1


@dataclass(frozen=True)
class Setting:
    """What is played.

    nodes       replicants; all start within the first `start_s` seconds
    sources     nodes of the source, all of which each replicant knows
    connect_s   from the answer of the registry until the new connection stands in it, for each candidate that is tried
    pull_s      a node hands its log to one of those that pull from it in this time, and to one after the other
    lost        so many replicants are lost, at `lost_at` seconds; their rows stay, as those of a killed process do
    first_file  the registry keeps the first file of each log
    seed        of what is random
    """

    nodes: int = 1000
    sources: int = 2
    seconds: int = 7200
    start_s: float = 600
    connect_s: float = 0.5
    pull_s: float = 0.05
    lost: int = 0
    lost_at: float = 3600
    first_file: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Moment:
    """The fleet at one moment: who hangs on the source, how deep it is, and how many the busiest node serves."""

    second: int
    hanging: int
    waiting: int
    depth: int
    busiest: int
    over_full: int


@dataclass(frozen=True)
class Played:
    """What came of it; all counts are of living nodes at the end.

    depths       tier -> nodes
    loads        nodes that pull from a node -> how many nodes serve so many
    on_sources   how many pull from each node of the source
    waiting      replicants without a source
    lag          tier by tier the log gets later by what each node takes to serve all that pull from it: (median, most) seconds
    asked        calls for a source; `refused` of them found nobody, or too many were waiting
    soft         answers without regard to the fanout, by the second pass
    keepalives   calls that only report a position
    moments      the fleet through time
    registry     the tables at the end
    """

    rules: str
    depths: Mapping[int, int]
    loads: Mapping[int, int]
    on_sources: tuple[int, ...]
    waiting: int
    lag: tuple[float, float]
    asked: int
    refused: int
    soft: int
    keepalives: int
    moments: tuple[Moment, ...]
    registry: Registry

    @property
    def over_full(self) -> int:
        """At the end."""
        return self.moments[-1].over_full


def play(rules: Rules, setting: Setting, moments: int = 12) -> Played:
    """Play it to the end: the same setting gives the same fleet."""
    fleet = Fleet(rules, setting)
    seen = []
    for number in range(1, moments + 1):
        fleet.run(setting.seconds * number / moments)
        seen.append(fleet.moment())
    return fleet.told(tuple(seen))


class _Seen:
    """Which nodes one pass of the query comes to, and in what order it would answer, kept up to date."""

    def __init__(self, fleet: Fleet, strict: bool) -> None:
        self.fleet, self.strict = fleet, strict
        self.tier = [0 if node < fleet.setting.sources else -1 for node in range(fleet.size)]
        self.rank: list[tuple[int, ...] | None] = [None] * fleet.size
        self.equal: dict[tuple[int, ...], list[int]] = {}

    def update(self, node: int) -> None:
        """Its row, its source, or those above it changed."""
        fleet = self.fleet
        waiting = [node]
        for one in waiting:  # grows, downwards
            above = fleet.source[one]
            tier = self.tier[one]
            if one >= fleet.setting.sources:
                tier = self.tier[above] + 1 if above is not None and self.tier[above] >= 0 and self._passes(one) else -1
            if tier != self.tier[one]:
                self.tier[one] = tier
                waiting += fleet.children[one]
            self.rerank(one)

    def _passes(self, node: int) -> bool:
        fleet = self.fleet
        if self.strict and fleet.rules.fresh_s is not None and not fleet.fresh[node]:
            return False
        return fleet.told_file[node] or not fleet.checks_files

    def rerank(self, node: int) -> None:
        """It serves more or fewer now, or its state is another one."""
        fleet = self.fleet
        rank: tuple[int, ...] | None = None
        count = max(len(fleet.children[node]), fleet.rules.least_count)
        fit = self.tier[node] >= 0 and fleet.state[node] not in fleet.rules.unfit
        if fit and (not self.strict or count < fleet.fanout):
            rank = (self.tier[node], count) if fleet.evenest else (self.tier[node],)
        old = self.rank[node]
        if rank == old:
            return
        if old is not None:
            group = self.equal[old]
            del group[bisect_left(group, node)]
            if not group:
                del self.equal[old]
        if rank is not None:
            insort(self.equal.setdefault(rank, []), node)
        self.rank[node] = rank

    def groups(self) -> Iterator[list[int]]:
        """Those that are equal, in the order in which they would be answered."""
        for rank in sorted(self.equal):
            yield self.equal[rank]


class Fleet:
    """Nodes by number: those of the source first, then the replicants."""

    def __init__(self, rules: Rules, setting: Setting) -> None:
        self.rules, self.setting = rules, setting
        if rules.fresh_s is not None and rules.keepalive_s >= rules.fresh_s:
            raise Problem(
                "keepalives are so rare that a living node looks dead between two", do="give a shorter keepalive_s"
            )
        self.fanout = rules.fanout_of(SOURCE)
        self.checks_files = rules.checks_files and setting.first_file
        self.evenest = rules.evenest_first or self.checks_files
        self.size = setting.sources + setting.nodes
        self.random = random.Random(setting.seed)
        self.source: list[int | None] = [None] * self.size
        self.children: list[set[int]] = [set() for _ in range(self.size)]
        self.state: list[str | None] = ["Active"] * setting.sources + [None] * setting.nodes
        self.known = [node < setting.sources for node in range(self.size)]
        self.fresh = list(self.known)
        self.told_file = list(self.known)
        self.alive = [True] * self.size
        self.turn = [0] * self.size
        self.phase = [0.0] * self.size
        self.lost_at: dict[int, float] = {}
        self.chosen: dict[int, int] = {}
        self.now = 0.0
        self.pending = 0
        self.asked = self.refused = self.soft = 0
        self.queue: deque[int] = deque()
        self.strict = _Seen(self, strict=True)
        self.loose = _Seen(self, strict=False) if rules.second_pass else None
        self.passes = [one for one in (self.strict, self.loose) if one is not None]
        for node in range(setting.sources):
            self._see(node)
        self._events: list[tuple[float, int, str, int, int]] = []
        self._number = 0
        for node in range(setting.sources, self.size):
            start = self.random.uniform(0, setting.start_s)
            self.phase[node] = start + self.random.uniform(0, rules.keepalive_s)
            self._at(start, _ASK, node)
            self._at(self.phase[node], _KEEPALIVE, node)
        lost = self.random.sample(range(setting.sources, self.size), min(setting.lost, setting.nodes))
        for node in sorted(lost):
            self._at(setting.lost_at, _LOST, node)

    def run(self, until: float) -> None:
        """Play on to this second."""
        while self._events and self._events[0][0] <= until:
            self.now, _, kind, node, turn = heapq.heappop(self._events)
            if kind == _AGAIN:
                self._serve_queue()
            elif kind == _LOST:
                self._lose(node)
            elif kind == _STALE:
                self.fresh[node] = False
                self._see(node)
            elif kind == _KEEPALIVE and self.alive[node]:
                self.fresh[node] = self.told_file[node] = True
                self._see(node)
            elif self.alive[node] and turn == self.turn[node]:
                if kind == _ASK:
                    self._ask(node)
                elif kind == _CONNECT:
                    self._connect(node)
        self.now = until

    def offered(self) -> tuple[list[list[int]], bool]:
        """(groups of equals, whether by the second pass) that a node which asks now is offered; more than fit in the rows."""
        first = list(self.strict.groups())
        if first or self.loose is None:
            return first, False
        return list(self.loose.groups()), True

    def name(self, node: int) -> tuple[str, str]:
        """Its database and host; hosts are ordered as their numbers are."""
        base = SOURCE if node < self.setting.sources else REPLICANTS
        return base, f"n{node:0{len(str(self.size))}d}"

    def registry(self) -> Registry:
        """What the tables hold now."""
        nodes, pulls = [], []
        for node in range(self.size):
            if not self.known[node]:
                continue
            told, age = self.told_file[node], self._age(node)
            file, first = (_FILE, 1) if told else (None, None)
            nodes.append(Node(*self.name(node), file, 0 if told else None, first, age, self.state[node]))
            if (above := self.source[node]) is not None:
                pulls.append(Pull(*self.name(node), *self.name(above)))
        return Registry(tuple(nodes), tuple(pulls), keeps_first_file=self.setting.first_file)

    def moment(self) -> Moment:
        """How the fleet stands."""
        tiers = self._tiers()
        loads = self._loads()
        living = sum(self.alive[self.setting.sources :])
        hanging = len(tiers) - self.setting.sources
        busiest = max(loads.values(), default=0)
        over = sum(count > self.fanout for count in loads.values())
        return Moment(int(self.now), hanging, living - hanging, max(tiers.values()), busiest, over)

    def told(self, moments: tuple[Moment, ...]) -> Played:
        """What came of it all."""
        tiers, loads = self._tiers(), self._loads()
        lags: dict[int, float] = dict.fromkeys(range(self.setting.sources), 0.0)
        for node in sorted(tiers, key=lambda one: tiers[one]):
            above = self.source[node]
            if above is not None and node >= self.setting.sources:
                lags[node] = lags[above] + self.setting.pull_s * loads[above]
        behind = sorted(lags[node] for node in tiers if node >= self.setting.sources) or [0.0]
        return Played(
            self.rules.name,
            dict(sorted(Counter(tiers.values()).items())),
            dict(sorted(Counter(loads[node] for node in tiers).items())),
            tuple(loads[node] for node in range(self.setting.sources)),
            moments[-1].waiting,
            (round(behind[len(behind) // 2], 3), round(behind[-1], 3)),
            self.asked,
            self.refused,
            self.soft,
            self._keepalives_until_now(),
            moments,
            self.registry(),
        )

    # --- what happens

    def _at(self, when: float, kind: str, node: int) -> None:
        self._number += 1
        heapq.heappush(self._events, (when, self._number, kind, node, self.turn[node]))

    def _see(self, node: int) -> None:
        for one in self.passes:
            one.update(node)

    def _set_state(self, node: int, state: str) -> None:
        self.pending += (state == "Pending") - (self.state[node] == "Pending")
        self.state[node] = state
        self.known[node] = True
        for one in self.passes:
            one.rerank(node)

    def _pull_from(self, node: int, above: int | None) -> None:
        old = self.source[node]
        if old is not None:
            self.children[old].discard(node)
        self.source[node] = above
        if above is not None:
            self.children[above].add(node)
        for one in self.passes:
            for end in (old, above):
                if end is not None:
                    one.rerank(end)
            one.update(node)

    def _ask(self, node: int) -> None:
        """It resets its own row and asks whom to pull from."""
        self._set_state(node, "Inactive")
        self._pull_from(node, None)
        self.turn[node] += 1
        if self.queue or not self._answered(node):
            self.asked += bool(self.queue)
            self.refused += bool(self.queue)
            if not self.queue:
                self._at(self.now + _AGAIN_S, _AGAIN, node)
            self.queue.append(node)

    def _serve_queue(self) -> None:
        """Each second all that wait ask again, in the order in which they came; one that is offered nobody speaks for all."""
        for _ in range(len(self.queue)):
            node = self.queue.popleft()
            if not self.alive[node]:
                continue
            self._set_state(node, "Inactive")
            if not self._answered(node):
                self.queue.appendleft(node)
                break
        rest = max(len(self.queue) - 1, 0)
        self.asked += rest
        self.refused += rest
        if self.queue:
            self._at(self.now + _AGAIN_S, _AGAIN, self.queue[0])

    def _answered(self, node: int) -> bool:
        """The registry answers; True if a candidate lives, to which the node then connects."""
        self.asked += 1
        rules = self.rules
        if rules.most_pending is not None and self.pending + rules.full_at_limit > rules.most_pending:
            self.refused += 1
            return False
        groups, soft = self.offered()
        self._set_state(node, "Pending")
        rows: list[int] = []
        for group in groups:
            places = min(rules.most_offered - len(rows), len(group))
            rows += self.random.sample(group, places) if rules.random_ties else group[:places]
            if len(rows) == rules.most_offered:
                break
        for tries, one in enumerate(rows, 1):
            if self.alive[one]:
                self.soft += soft
                self._at(self.now + tries * self.setting.connect_s, _CONNECT, node)
                self.chosen[node] = one
                return True
        self.refused += 1
        return False

    def _connect(self, node: int) -> None:
        above = self.chosen.pop(node)
        if not self.alive[above]:
            self._ask(node)
            return
        self._set_state(node, "Active")
        self._pull_from(node, above)
        self._at(self.now + self.rules.register_s, _ASK, node)

    def _lose(self, node: int) -> None:
        """It is gone without a word: its row and its connection stay, and those that pulled from it ask anew."""
        self.alive[node] = False
        self.lost_at[node] = self.now
        if self.rules.fresh_s is not None and self.fresh[node]:
            self._at(self._last_told(node) + self.rules.fresh_s, _STALE, node)
        for child in sorted(self.children[node]):
            self._at(self.now + _AGAIN_S, _ASK, child)

    # --- what is read off

    def _told_until_now(self, node: int) -> int:
        """How many keepalives it has sent."""
        until = self.lost_at.get(node, self.now)
        return max(0, int((until - self.phase[node]) // self.rules.keepalive_s) + 1)

    def _last_told(self, node: int) -> float:
        return self.phase[node] + (self._told_until_now(node) - 1) * self.rules.keepalive_s

    def _age(self, node: int) -> float | None:
        return self.now - self._last_told(node) if self._told_until_now(node) else None

    def _keepalives_until_now(self) -> int:
        return sum(self._told_until_now(node) for node in range(self.size))

    def _tiers(self) -> dict[int, int]:
        """Living node that hangs on the source over living nodes -> its tier."""
        tiers = dict.fromkeys(range(self.setting.sources), 0)
        waiting = list(tiers)
        for node in waiting:  # grows, downwards
            for child in self.children[node]:
                if self.alive[child]:
                    tiers[child] = tiers[node] + 1
                    waiting.append(child)
        return tiers

    def _loads(self) -> dict[int, int]:
        """Living node -> how many living ones pull from it."""
        return {
            node: sum(self.alive[child] for child in self.children[node])
            for node in range(self.size)
            if self.alive[node]
        }
