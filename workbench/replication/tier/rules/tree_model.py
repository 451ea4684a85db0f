"""The model of repairs that a diagnosis of trees gives: its nodes, how far each is, and what it is doing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.repair_model import PULLING, SILENT, TierModel
from workbench.replication.tier.rules.tiers import Lsn, Node, Registry
from workbench.rules.repair_model import ChangeGroup, Link, Server
from workbench.rules.vectors import Span


def tier_model(
    trees: Sequence[Mapping[str, Any]],
    registry: Registry,
    rules: Rules,
    order_key: Callable[[str, int, int], str],
    origin_of: Callable[[str], str],
    file_of: Callable[[str], int],
    elsewhere: frozenset[str] = frozenset(),
    follows: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    spoilt: frozenset[str] = frozenset(),
    parted: frozenset[str] = frozenset(),
    waiting: Mapping[str, int] | None = None,
    still: Collection[str] = (),
    holes: Mapping[str, Sequence[int]] | None = None,
    unsure: frozenset[str] = frozenset(),
) -> TierModel:
    """The model of what a diagnosis shows in its `trees`: the nodes, how far each is, and what it is doing.

    waiting  node -> how many changes it waits for, as far as the diagnosis counts them
    still    nodes that are known to get nothing although they look connected
    unsure   nodes that may be further than their logs show
    """
    rows = {one.name: one for one in registry.nodes}
    servers: dict[str, Server] = {}
    source_of: dict[str, str] = {}
    condition: dict[str, str] = {}
    lasts: dict[str, dict[str, Lsn]] = {}
    gapped = {node["node"] for one in trees for node in one["nodes"] if node.get("gap")}
    for one in trees:
        source = one["source"]
        for node in one["nodes"]:
            name, row = node["node"], rows.get(node["node"])
            # Of one that cut its log back since its last report nobody knows how far it is.
            last, first = (None, None) if node.get("cut_back_to") else _ends(node, row)
            span = Span(
                order_key(source, *first) if first and last else None, order_key(source, *last) if last else None
            )
            servers[name] = Server(name, None, None, {source: span} if last else {}, None)
            servers[name].up = node["condition"] not in SILENT and node.get("probe") != "unreachable"
            source_of[name], condition[name] = source, node["condition"]
            if last:
                lasts.setdefault(source, {})[name] = last
    lots: list[ChangeGroup] = []
    links = []
    fed = {pull.name for pull in registry.pulls if pull.source in servers and servers[pull.source].up}
    for source, ends in lasts.items():
        # What a node has behind the end of its source is nothing that the others lack: another history, or read later.
        head = max(
            (last for name, last in ends.items() if name.partition("@")[0] == source), default=max(ends.values())
        )
        ends = {name: min(last, head) for name, last in ends.items()}
        # Nodes that pull differ by the moment at which each was asked: only the ends of the others are borders, and of those
        # that pull from a node that is gone.
        cut_off = {pull.name for pull in registry.pulls} - fed
        stuck = {
            last
            for name, last in ends.items()
            if name not in unsure and (condition[name] not in PULLING or name in {*gapped, *still, *cut_off})
        }
        lowest, *steps = sorted({min(ends.values()), *stuck, max(ends.values())})
        behind = {last: (waiting or {}).get(name, 0) for name, last in ends.items() if name in (waiting or {})}
        for before, place in pairwise((lowest, *steps)):  # the lowest one all have
            for name, last in ends.items():
                if last >= place:
                    servers[name].holds.add(len(lots))
            # Where nobody knows who follows whom, a place of a node is no change of the source: two may wait for the same.
            least = 0 if before in behind and place in behind else 1
            changes = max(behind.get(before, 1) - behind.get(place, 0), least)
            lots.append(ChangeGroup(source, order_key(source, *place), order_key(source, *place), changes))
        # The furthest node of the source that is there brings the others of its cluster up to date.
        roots = sorted(
            (name for name in ends if name.partition("@")[0] == source),
            key=lambda name: (servers[name].up, name not in parted | spoilt, ends[name], name),
        )
        if roots:
            servers[roots[-1]].origin = source
            links += [Link(roots[-1], other, other not in parted) for other in roots[:-1]]
    for pull in registry.pulls:
        if pull.name in servers and pull.source in servers:
            # One that has parted has to connect anew before it gets anything.
            running = condition[pull.name] in PULLING and pull.name not in parted and pull.name not in still
            links.append(Link(pull.source, pull.name, running))
    heads = {source: max(ends.values()) for source, ends in lasts.items()}
    return TierModel(
        lots,
        servers,
        links,
        origin_of,
        lambda source, number: order_key(source, heads[source][0], heads[source][1] + number),
        registry=registry,
        rules=rules,
        source_of=source_of,
        condition=condition,
        file_of=file_of,
        position=lambda source, file: order_key(source, file, 0),
        elsewhere=elsewhere,
        follows=follows or {},
        spoilt=spoilt,
        parted=parted,
        holes=holes or {},
        unsure=unsure,
    )


def _ends(node: Mapping[str, Any], row: Node | None) -> tuple[Lsn | None, Lsn | None]:
    """The last and the first place of a node's log: as it told itself, else as the registry has it."""
    told, began = node["node_last"], node["node_first"]
    last = tuple(told) if told else None
    if last is None and row is not None and row.file is not None:
        last = (row.file, row.offset or 0)
    first = tuple(began) if began else None
    if (listed := node.get("files")) and (first is None or listed[0][0] > first[0]):
        first = (listed[0][0], 0)  # files are deleted meanwhile, and none comes back
    if first is None and node.get("firstfile") is not None:
        first = (int(node["firstfile"]), 0)
    return last, first
