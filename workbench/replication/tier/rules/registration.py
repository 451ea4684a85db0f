"""How a node of a tier finds whom to pull from: it asks the registry, which offers some of the nodes that it knows.

The registry starts at the source, follows the rows that say who pulls from whom, and drops what does not fit. One machine
plays the design document and the versions of the real program; `Rules` is what they differ in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from workbench.replication.tier.rules.candidates import Call, Candidate, Key, Pass
from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.tiers import Node, Registry


@dataclass(frozen=True)
class Offer:
    """What the registry answers, and why.

    groups       candidates in order; those of one group are equal, and come in random order if the rules say so
    rows         how many of them the answer has; of the last group some may be left out
    second_pass  they were only found without regard to the fanout and the age
    refused      why the call was refused as a whole; empty: it was not
    endless      the rows hold a circle below the source: the real query would go round in it and not answer
    reasons      node -> why it is offered or not, of every node that the tables or the call name
    after        the registry afterwards
    """

    groups: tuple[tuple[Candidate, ...], ...]
    rows: int
    second_pass: bool
    refused: str
    endless: bool
    reasons: Mapping[str, str]
    after: Registry

    @cached_property
    def union(self) -> tuple[Candidate, ...]:
        """Every candidate that may be among the rows, sorted."""
        return tuple(sorted(one for group in self.groups for one in group))

    @cached_property
    def tiers(self) -> tuple[int, ...]:
        """The tiers of the rows in their order."""
        return tuple(one.tier for group in self.groups for one in group)[: self.rows]

    @property
    def in_order(self) -> tuple[Candidate, ...]:
        """The rows, where ties go by name."""
        return tuple(one for group in self.groups for one in group)[: self.rows]


def register(rules: Rules, registry: Registry, call: Call) -> Offer:
    """What that node is offered if it asks now, with the reason for each node, and the registry after the call.

    The query still sees the rows of who pulls as they were before the call: a node that asks without having been reset first
    may be offered itself, or a node below it.
    """
    own = (call.database, call.host)
    pulls = tuple(pull for pull in registry.pulls if (pull.database, pull.host) != own)
    after = replace(registry, pulls=pulls)
    waiting = sum(one.state == "Pending" for one in registry.nodes)
    if rules.most_pending is not None and waiting + rules.full_at_limit > rules.most_pending:
        refused = f"{waiting} nodes wait for a source already, and {rules.most_pending} may"
        known = Pass(rules, registry, call, strict=True).known
        reasons = {f"{database}@{host}": f"not looked at: {refused}" for database, host in known}
        return Offer((), 0, False, refused, False, reasons, after)
    after = replace(after, nodes=_with_state(registry.nodes, own, "Pending"))
    walk = first = Pass(rules, registry, call, strict=True)
    if rules.second_pass and not first.fit:
        walk = Pass(rules, registry, call, strict=False)
    ordered = [tuple(group) for _, group in groupby(sorted(walk.fit, key=walk.order), key=walk.rank)]
    groups, rows = [], 0
    for group in ordered:
        if rows < rules.most_offered:
            groups.append(group)
            rows = min(rows + len(group), rules.most_offered)
    why = _Reasons(walk, first, groups, rows).why
    reasons = {f"{database}@{host}": why((database, host)) for database, host in walk.known}
    return Offer(tuple(groups), rows, walk is not first, "", first.endless or walk.endless, reasons, after)


def _with_state(nodes: tuple[Node, ...], own: Key, state: str) -> tuple[Node, ...]:
    if all((one.database, one.host) != own for one in nodes):
        return (*nodes, Node(*own, file=None, offset=None, state=state))
    return tuple(replace(one, state=state) if (one.database, one.host) == own else one for one in nodes)


class _Reasons:
    """Why each node is offered or not: the first thing, in the order of the query, that speaks against it."""

    def __init__(self, made: Pass, first: Pass, groups: list[tuple[Candidate, ...]], rows: int) -> None:
        self.made, self.first, self.groups, self.rows = made, first, groups, rows
        self.rules = made.rules
        self.group = {(one.database, one.host): n for n, group in enumerate(groups) for one in group}
        self.hidden_by: dict[Key, Key] = {}
        waiting = list(made.hidden)
        for key in waiting:  # grows, downwards
            for child in made.below.get(key, ()):
                if child not in self.hidden_by and child not in made.ways and child not in made.hidden:
                    self.hidden_by[child] = self.hidden_by.get(key, key)
                    waiting.append(child)
        self.own = (made.call.database, made.call.host)
        self.below_own = {self.own}
        waiting = [self.own]
        for key in waiting:  # grows, downwards
            fresh = [child for child in made.below.get(key, ()) if child not in self.below_own]
            self.below_own.update(fresh)
            waiting += dict.fromkeys(fresh)

    def why(self, key: Key) -> str:
        """Of one node."""
        if not (key in self.made.ways and key in self.made.rows):
            return self._not_reached(key)
        said = self._unfit(self.made, key) or self._place(key)
        if key == self.own:
            return f"{said} (it is the caller itself)"
        return f"{said} (it hangs on the caller: a circle)" if key in self.below_own else said

    def _unfit(self, one: Pass, key: Key) -> str:
        """What speaks against a node that the pass comes to; empty: nothing."""
        state, count, children = one.rows[key].state, one.count[key], len(one.below.get(key, ()))
        if state in self.rules.unfit:
            return f"it is {state}"
        if not one.strict or count < one.fanout:
            return ""
        serves = f"it serves {children} of {one.fanout}"
        if children >= one.fanout:
            return serves
        if one.ways[key] > 1:
            return f"{serves}, and counts as {count}: {one.ways[key]} ways lead to it"
        return f"{serves}, and a node without children counts as if it had one"

    def _place(self, key: Key) -> str:
        """Of a candidate: whether it is among the rows."""
        offered = (
            f"offered, tier {self.made.tier[key]}: it serves {len(self.made.below.get(key, ()))} of {self.made.fanout}"
        )
        if self.made is not self.first:
            before = self.first.hidden.get(key) or (self._unfit(self.first, key) if key in self.first.ways else "")
            offered += "; only because nothing else was found" + (f", for {before}" if before else "")
        if key in self.group:
            group = self.groups[self.group[key]]
            places = self.rows - sum(map(len, self.groups[: self.group[key]]))
            if places >= len(group):
                return offered
            if self.rules.random_ties:
                return f"{offered}; one of {len(group)} equals for the last {places} of {self.rows} rows"
        return f"below the limit of {self.rules.most_offered} rows"

    def _not_reached(self, key: Key) -> str:
        made = self.made
        if key in made.hidden:
            return made.hidden[key]
        if key in self.hidden_by:
            database, host = self.hidden_by[key]
            return f"an ancestor {database}@{host} is dropped: {made.hidden[self.hidden_by[key]]}"
        if key not in made.rows:
            return "it asks for the first time" if key == self.own else "it has no row in the registry"
        if key in made.above:
            return "it does not hang on the source"
        if key[0] == made.call.source_database:
            return "the caller did not name it as a host of the source"
        return "it does not hang on the source: it pulls from no node"
