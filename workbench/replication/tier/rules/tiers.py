"""Physical log replication in tiers, as the design document has it: who may pull from whom, and what a registry knows of it.

A node pulls the log of its source, record by record, and its own log is a prefix of the source's. The source cluster is tier
0; a node that pulls from one of tier N is of tier N + 1. A registry holds a row for each node, and one for each that pulls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Lsn = tuple[int, int]
"""A place in a log: number of the file, and place in that file."""


@dataclass(frozen=True)
class Node:
    """What the registry says of a node.

    file        of the last position that it reported, with `offset`; None: it never did
    first_file  the oldest file of its log; None: not told
    age         seconds since it last reported itself; None: it never did
    state       as written: rules compare it exactly, upper and lower case are not the same
    """

    database: str
    host: str
    file: int | None
    offset: int | None = 0
    first_file: int | None = None
    age: float | None = None
    state: str | None = "Active"

    @property
    def name(self) -> str:
        """As the workbench names the node: one host may run several databases."""
        return f"{self.database}@{self.host}"


@dataclass(frozen=True)
class Pull:
    """A row that says from which node another one pulls."""

    database: str
    host: str
    source_database: str
    source_host: str

    @property
    def name(self) -> str:
        """The node that pulls."""
        return f"{self.database}@{self.host}"

    @property
    def source(self) -> str:
        """The node that it pulls from."""
        return f"{self.source_database}@{self.source_host}"


@dataclass(frozen=True)
class Registry:
    """What the tables of the registry hold at one moment.

    awaited           rows of the nodes that wait until their source connects to them
    keeps_first_file  the table has the column of the first file
    """

    nodes: tuple[Node, ...]
    pulls: tuple[Pull, ...]
    awaited: tuple[Pull, ...] = ()
    keeps_first_file: bool = False


NO_PULL = "it pulls from no node"
NO_ROW = "it pulls from a node that the registry does not know"
ADRIFT = "what it pulls from hangs on no source"
CIRCLE = "it pulls, over others, from itself"


@dataclass(frozen=True)
class Place:
    """Where a node stands in a tree.

    tier      0: of the source database; None: it does not hang on the source
    root      the node of tier 0 that it hangs on, by the shortest way
    parents   the nodes that it pulls from, by name; more than one is rare, but the tables allow it
    children  the nodes that pull from it, by name
    problem   empty, or one of NO_PULL, NO_ROW, ADRIFT, CIRCLE; a node of a circle may still hang on the source by another way
    """

    name: str
    tier: int | None
    root: str | None
    parents: tuple[str, ...]
    children: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True)
class Tree:
    """The places of all nodes that hang on one source database, and of those that hang on none."""

    source: str
    places: Mapping[str, Place]

    @property
    def roots(self) -> tuple[str, ...]:
        """The nodes of tier 0, by name."""
        return tuple(sorted(name for name, place in self.places.items() if place.tier == 0))

    @property
    def depth(self) -> int:
        """The deepest tier."""
        return max((place.tier for place in self.places.values() if place.tier is not None), default=0)


def sources(registry: Registry) -> tuple[str, ...]:
    """The databases that look like the top of a tree: nodes pull from them, none of theirs pulls, and none is still waiting."""
    # A database of which one host alone was set aside is still one that others follow.
    waiting = {one.database for one in registry.nodes if (one.state or "").lower() in ("pending", "inactive")}
    waiting -= {one.database for one in registry.nodes if (one.state or "").lower() not in ("pending", "inactive")}
    known = {one.database for one in registry.nodes}
    pulling = {pull.database for pull in registry.pulls}
    return tuple(sorted({pull.source_database for pull in registry.pulls} & known - pulling - waiting))


def tree(registry: Registry, source_database: str) -> Tree:
    """Where each node stands below that database, worked out from the rows alone.

    Roots are all nodes of the database, also those that nobody pulls from. Nodes that hang on the top of another tree are left
    out; those that hang on none are in, with their problem.
    """
    parents, children = _kin(registry)
    known = {one.name for one in registry.nodes}
    everyone = dict.fromkeys([*sorted(known), *sorted(parents), *sorted(children)])
    tops = {source_database: _nodes_of(source_database, registry)}
    tops |= {name: _nodes_of(name, registry) for name in sources(registry) if name != source_database}
    reached = _reached(tops[source_database], children)
    elsewhere = {name for top, roots in tops.items() if top != source_database for name in _reached(roots, children)}
    circles = _in_circles(parents, children)
    places = {}
    for name in everyone:
        if name in elsewhere and name not in reached:
            continue
        above, (tier, root) = parents.get(name, ()), reached.get(name, (None, None))
        if name in circles:
            problem = CIRCLE
        elif tier is not None:
            problem = ""
        elif not above:
            problem = NO_PULL
        else:
            problem = NO_ROW if known.isdisjoint(above) else ADRIFT
        if name in known or tier is not None:
            places[name] = Place(name, tier, root, tuple(above), tuple(children.get(name, ())), problem)
    return Tree(source_database, places)


def _kin(registry: Registry) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Node -> the nodes that it pulls from, and node -> the nodes that pull from it; each in order, each once."""
    parents: dict[str, list[str]] = {}
    children: dict[str, list[str]] = {}
    for child, parent in sorted({(pull.name, pull.source) for pull in registry.pulls}):
        parents.setdefault(child, []).append(parent)
        children.setdefault(parent, []).append(child)
    return parents, children


def _nodes_of(database: str, registry: Registry) -> list[str]:
    rows = {one.name for one in registry.nodes if one.database == database}
    pulling = {pull.name for pull in registry.pulls if pull.database == database}
    return sorted(rows | pulling | {pull.source for pull in registry.pulls if pull.source_database == database})


def _reached(roots: Iterable[str], children: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, str]]:
    """Node -> (tier, root) by the shortest way; nodes of a circle are passed once."""
    found = {root: (0, root) for root in roots}
    waiting = list(found)
    for name in waiting:  # grows
        tier, root = found[name]
        for child in children.get(name, ()):
            if child not in found:
                found[child] = (tier + 1, root)
                waiting.append(child)
    return found


def _in_circles(parents: Mapping[str, Sequence[str]], children: Mapping[str, Sequence[str]]) -> set[str]:
    """The nodes that come back to themselves: those with which they can go both ways, found in two walks over all nodes."""
    order: list[str] = []
    seen: set[str] = set()
    for start in children:
        stack = [(start, iter(children[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            name, others = stack[-1]
            for other in others:
                if other not in seen:
                    seen.add(other)
                    stack.append((other, iter(children.get(other, ()))))
                    break
            else:
                order.append(name)
                stack.pop()
    found: set[str] = set()
    taken: set[str] = set()
    for start in reversed(order):
        group = [] if start in taken else [start]
        taken.add(start)
        for name in group:  # grows
            fresh = [other for other in parents.get(name, ()) if other in seen and other not in taken]
            taken.update(fresh)
            group += fresh
        if len(group) > 1 or (group and start in children.get(start, ())):
            found.update(group)
    return found
