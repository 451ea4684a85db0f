"""What if: the tree before and after nodes come, go, move or are reset, and who could then no longer be brought up to date.

Nothing here is done anywhere: a registry goes in, another one comes out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from workbench.model import Problem
from workbench.replication.tier.rules.candidates import Call
from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.log_retention import log_holder
from workbench.replication.tier.rules.registration import register
from workbench.replication.tier.rules.tiers import Node, Pull, Registry, Tree, tree

Files = Mapping[str, tuple[int, int]]
"""Node -> the first and the last file of its log."""


@dataclass(frozen=True)
class Add:
    """A new node, which asks the registry for a source, or pulls from the one that is named."""

    node: Node
    source: str | None = None


@dataclass(frozen=True)
class Lose:
    """A node is gone for good, its row and its log with it; those that pulled from it ask the registry."""

    name: str


@dataclass(frozen=True)
class Move:
    """A node, with all below it, pulls from another one."""

    name: str
    source: str


@dataclass(frozen=True)
class Reset:
    """A node's row is set to Inactive, and it pulls from nobody any more: what `reset_nodes` does. Its log stays where it is."""

    name: str


@dataclass(frozen=True)
class Fanout:
    """Another fanout: of one source database, or without its name of all that have none of their own."""

    fanout: int
    source_database: str | None = None


Change = Add | Lose | Move | Reset | Fanout


@dataclass(frozen=True)
class Shape:
    """A tree in numbers.

    load      node -> how many pull from it
    depths    tier -> how many nodes stand there
    over_full nodes that serve more than the fanout
    idle      nodes of the source that nobody pulls from, although there is somebody to serve
    adrift    nodes that hang on no source
    """

    tree: Tree
    fanout: int
    load: Mapping[str, int]
    depths: Mapping[int, int]
    over_full: tuple[str, ...]
    idle: tuple[str, ...]
    adrift: tuple[str, ...]

    @property
    def median_load(self) -> float:
        """Of the nodes that serve anybody."""
        return median([count for count in self.load.values() if count] or [0])


@dataclass(frozen=True)
class Stranded:
    """A node that nobody could bring up to date any more: it needs a file that no node has that is left."""

    name: str
    file: int
    why: str


@dataclass(frozen=True)
class WhatIf:
    """Before and after, and what is lost on the way."""

    before: Shape
    after: Shape
    registry: Registry
    rules: Rules
    stranded: tuple[Stranded, ...]
    told: tuple[str, ...]


def shape(one: Tree, fanout: int) -> Shape:
    """The tree in numbers."""
    load = {name: len(place.children) for name, place in one.places.items()}
    depths: dict[int, int] = {}
    for place in one.places.values():
        if place.tier is not None:
            depths[place.tier] = depths.get(place.tier, 0) + 1
    serving = any(load[root] for root in one.roots)
    return Shape(
        one,
        fanout,
        load,
        dict(sorted(depths.items())),
        tuple(sorted(name for name, count in load.items() if count > fanout)),
        tuple(root for root in one.roots if serving and not load[root]),
        tuple(sorted(name for name, place in one.places.items() if place.tier is None)),
    )


def files_of(registry: Registry) -> dict[str, tuple[int, int]]:
    """Node -> its files as far as the registry knows them; who has not told its first file counts as having its last one only."""
    return {
        one.name: (one.file if one.first_file is None else one.first_file, one.file)
        for one in registry.nodes
        if one.file is not None
    }


def donors(name: str, files: Files, among: Iterable[str]) -> tuple[str, ...]:
    """The nodes that have the file in which this node's log ends, and so could serve it."""
    if name not in files:
        return ()
    needs = files[name][1]
    return tuple(sorted(other for other in among if other != name and files[other][0] <= needs <= files[other][1]))


def what_if(
    rules: Rules,
    registry: Registry,
    source_database: str,
    changes: Iterable[Change],
    files: Files | None = None,
    local: bool = True,
) -> WhatIf:
    """What becomes of the tree. Nodes whose source is gone ask the registry by its rules; ties go by name.

    files  what each node's log holds, as it was probed; else what the registry tells
    local  the nodes of the source hold the registry's tables themselves: else nobody holds log files
    """
    had = dict(files_of(registry) if files is None else files)
    before = shape(tree(registry, source_database), rules.fanout_of(source_database))
    own = {one.host for one in registry.nodes if one.database == source_database}
    hosts = tuple(
        sorted(own | {pull.source_host for pull in registry.pulls if pull.source_database == source_database})
    )
    held = log_holder(rules, registry, source_database, hosts, local).kept_from
    has, told = dict(had), list[str]()
    now = registry
    for change in changes:
        asking = {pull.name for pull in now.pulls if isinstance(change, Lose) and pull.source == change.name}
        now, rules = _changed(now, rules, change, has, told)
        if isinstance(change, Add) and change.source is None:
            asking = {change.node.name}
        now = _settled(now, rules, source_database, hosts, told, asking - {pull.name for pull in now.pulls})
    after = shape(tree(now, source_database), rules.fanout_of(source_database))
    kept = log_holder(rules, now, source_database, hosts, local).kept_from
    if held is not None and kept is not None and kept > held:
        told.append(f"files {held} to {kept - 1} are held no longer: they may be deleted at once")
        has = {name: (max(first, min(kept, last)), last) for name, (first, last) in has.items()}
    return WhatIf(before, after, now, rules, tuple(_stranded(had, has, set(before.tree.roots))), tuple(told))


def _stranded(had: Files, has: Files, roots: Collection[str]) -> Iterable[Stranded]:
    """Those that somebody could have served before, and nobody can afterwards; the source itself needs nobody."""
    for name in sorted(has.keys() - set(roots)):
        needs = had[name][1] if name in had else has[name][1]
        # First what nearly always ends it: all donors of all nodes are quadratic.
        if any(other != name and has[other][0] <= needs <= has[other][1] for other in has):
            continue
        if could := donors(name, had, had):
            gone = ", ".join(could[:3]) + (", ..." if len(could) > 3 else "")
            yield Stranded(name, needs, f"it needs file {needs}, which only {gone} had")


def _named(registry: Registry, name: str) -> Node:
    for one in registry.nodes:
        if one.name == name:
            return one
    raise Problem(f"the registry knows no node {name}", do="name one as database@host")


def _changed(
    registry: Registry, rules: Rules, change: Change, has: dict[str, tuple[int, int]], told: list[str]
) -> tuple[Registry, Rules]:
    if isinstance(change, Fanout):
        if change.source_database is None:
            return registry, replace(rules, fanout=change.fanout)
        return registry, replace(rules, fanouts={**rules.fanouts, change.source_database: change.fanout})
    if isinstance(change, Add):
        if any(one.name == change.node.name for one in registry.nodes):
            raise Problem(f"the registry has {change.node.name} already", do="move it instead")
        pulls = registry.pulls
        if change.source is not None:
            pulls += (_pull(change.node, _named(registry, change.source)),)
        if change.node.file is not None:
            has.update(files_of(Registry((change.node,), ())))
        return replace(registry, nodes=(*registry.nodes, change.node), pulls=pulls), rules
    node = _named(registry, change.name)
    without = tuple(pull for pull in registry.pulls if pull.name != change.name)
    if isinstance(change, Move):
        source = _named(registry, change.source)
        below = _all_below(registry, change.name)
        if change.source in below:
            raise Problem(
                f"{change.source} hangs on {change.name}: they would pull from each other", do="move it first"
            )
        return replace(registry, pulls=(*without, _pull(node, source))), rules
    if isinstance(change, Lose):
        has.pop(change.name, None)
        nodes = tuple(one for one in registry.nodes if one.name != change.name)
        left = tuple(pull for pull in without if pull.source != change.name)
        return replace(registry, nodes=nodes, pulls=left), rules
    told += [
        f"{one} goes on pulling from it" for one in sorted(pull.name for pull in without if pull.source == change.name)
    ]
    nodes = tuple(replace(one, state="Inactive") if one.name == change.name else one for one in registry.nodes)
    return replace(registry, nodes=nodes, pulls=without), rules


def _pull(node: Node, source: Node) -> Pull:
    return Pull(node.database, node.host, source.database, source.host)


def _all_below(registry: Registry, name: str) -> set[str]:
    children: dict[str, list[str]] = {}
    for pull in registry.pulls:
        children.setdefault(pull.source, []).append(pull.name)
    found, waiting = {name}, [name]
    for one in waiting:  # grows
        fresh = [child for child in children.get(one, ()) if child not in found]
        found.update(fresh)
        waiting += fresh
    return found


def _settled(
    registry: Registry, rules: Rules, source: str, hosts: tuple[str, ...], told: list[str], asking: Collection[str]
) -> Registry:
    """These ask for a source, in the order of their names; who is offered nobody stays without."""
    for name in sorted(asking):
        one = _named(registry, name)
        call = Call(one.database, one.host, one.file or 0, source, hosts)
        offer = register(rules, registry, call)
        if not offer.rows:
            told.append(f"{one.name} is offered nobody")
            continue
        found = offer.in_order[0]
        pull = Pull(one.database, one.host, found.database, found.host)
        nodes = tuple(replace(node, state="Active") if node.name == one.name else node for node in offer.after.nodes)
        registry = replace(offer.after, nodes=nodes, pulls=(*offer.after.pulls, pull))
        told.append(f"{one.name} goes to {found.name}")
    return registry
