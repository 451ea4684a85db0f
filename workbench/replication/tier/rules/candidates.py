"""The query of a registry for nodes that a caller may pull from: from the source downwards, over the rows of who pulls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.tiers import Node, Pull, Registry

Key = tuple[str, str]
"""A node: its database and host, as the tables have it."""

_MANY = 1_000_000
"""Ways to one node are counted to here: rows that a hostile hand made may hold more of them than there are atoms."""


@dataclass(frozen=True)
class Call:
    """What a node asks: whom may I pull from? It names itself, where its log ends, and the hosts of the source that it knows."""

    database: str
    host: str
    file: int
    source_database: str
    source_hosts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The node that asks."""
        return f"{self.database}@{self.host}"


def hosts_asked_for(told: Sequence[str], there: Iterable[str]) -> tuple[str, ...]:
    """The hosts that a call names: those that the node is told of, where one of them is a host of the database that it follows.

    What is no host may be a tier or a cluster, which stands for all of them.
    """
    known = sorted(set(there))
    return tuple(told) if set(told) & set(known) else tuple(known)


@dataclass(frozen=True, order=True)
class Candidate:
    """A row of the answer; `count` is what the registry takes for the number of its children."""

    tier: int
    database: str
    host: str
    count: int = 0

    @property
    def name(self) -> str:
        """The node."""
        return f"{self.database}@{self.host}"


class Pass:
    """One pass of the query, from the source downwards.

    rows    node -> its row
    below   node -> the nodes that pull from it, a row each; `above` is the same upwards
    known   every node that the tables or the call name
    ways    node that the pass comes to -> how many ways lead to it from the source
    tier    node that the pass comes to -> its tier, by the shortest of these ways
    count   what the registry takes for the number of its children
    fit     the candidates, in no order
    hidden  node that the pass comes to and drops, with all that is below it -> why
    """

    def __init__(self, rules: Rules, registry: Registry, call: Call, strict: bool) -> None:
        self.rules, self.call, self.strict = rules, call, strict
        self.fanout = rules.fanout_of(call.source_database)
        self.checks_files = rules.checks_files and registry.keeps_first_file
        self.rows: dict[Key, Node] = {(one.database, one.host): one for one in registry.nodes}
        self.below: dict[Key, list[Key]] = {}
        self.above: dict[Key, list[Key]] = {}
        for pull in registry.pulls:
            child, parent = ends(pull)
            self.below.setdefault(parent, []).append(child)
            self.above.setdefault(child, []).append(parent)
        asked = {(call.source_database, host) for host in call.source_hosts}
        self.roots = [key for key in self.rows if key in asked]
        self.known = sorted({*self.rows, *self.below, *self.above, *asked, (call.database, call.host)})
        self._evenest = rules.evenest_first or self.checks_files
        self.hidden: dict[Key, str] = {}
        self.ways: dict[Key, int] = {}
        self.tier: dict[Key, int] = {}
        self.endless = False
        self._go()
        self.count = {
            key: ways * max(len(self.below.get(key, ())), rules.least_count) for key, ways in self.ways.items()
        }
        self.fit = [
            Candidate(self.tier[key], *key, self.count[key])
            for key in self.ways
            if key in self.rows
            and self.rows[key].state not in rules.unfit
            and not (strict and self.count[key] >= self.fanout)
        ]

    def rank(self, one: Candidate) -> tuple[object, ...]:
        """What the answer is ordered by; what ranks the same is equal."""
        place = (one.tier, one.count) if self._evenest else (one.tier,)
        return place if self.rules.random_ties else (*place, one.database, one.host)

    def order(self, one: Candidate) -> tuple[object, ...]:
        """The same, and then by name, so that the groups too are always in one order."""
        return (*self.rank(one), one.database, one.host)

    def unreached(self, key: Key, root: bool) -> str:
        """Why the walk does not pass this node; empty: it does."""
        row, file = self.rows.get(key), self.call.file
        asks_row = self.checks_files or (self.strict and self.rules.fresh_s is not None)
        if row is None:
            return "it has no row in the registry" if asks_row else ""
        if self.checks_files:
            if row.file is None or row.file < file:
                last = "it has not told where its log ends" if row.file is None else f"its log ends in file {row.file}"
                return f"it does not cover file {file}: {last}"
            if row.first_file is None and self.strict:
                return f"it does not cover file {file} for sure: it has not told its first file"
            if row.first_file is not None and row.first_file > file:
                return f"it does not cover file {file}: its log begins in file {row.first_file}"
        if self.strict and not root and self.rules.fresh_s is not None:
            if row.age is None:
                return "it has never sent a keepalive"
            if row.age >= self.rules.fresh_s:
                return f"its keepalive is {row.age:.0f} s old"
        return ""

    def _go(self) -> None:
        """Each way from the source to a node is a row of the query, and the first of them, the shortest, gives the tier."""
        for root in self.roots:
            if why := self.unreached(root, root=True):
                self.hidden[root] = why
            else:
                self.tier[root] = 0
        steps: dict[Key, list[Key]] = {}
        entries = dict.fromkeys(self.tier, 0)
        waiting = list(self.tier)
        for key in waiting:  # grows
            for child in self.below.get(key, ()):
                if why := self.unreached(child, root=False):
                    self.hidden.setdefault(child, why)
                    continue
                steps.setdefault(key, []).append(child)
                if child not in entries:
                    self.tier[child] = self.tier[key] + 1
                    waiting.append(child)
                entries[child] = entries.get(child, 0) + 1
        ways = {key: int(self.tier[key] == 0) for key in waiting}
        ready = [key for key in waiting if not entries[key]]
        for key in ready:  # grows; what is in a circle, or below one, never comes
            for child in steps.get(key, ()):
                ways[child] = min(ways[child] + ways[key], _MANY)
                entries[child] -= 1
                if not entries[child]:
                    ready.append(child)
        self.endless = len(ready) < len(waiting)
        self.ways = {key: 1 if entries[key] else count for key, count in ways.items()}


def ends(pull: Pull) -> tuple[Key, Key]:
    """Who pulls, and from whom."""
    return (pull.database, pull.host), (pull.source_database, pull.source_host)
