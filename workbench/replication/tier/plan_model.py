"""The model of nodes that pull a physical log from each other, on which a repair is tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.diagnosis.tree_rows import senders, trees
from workbench.replication.tier.rules.conditions import ORPHAN
from workbench.replication.tier.rules.tree_model import tier_model
from workbench.rules.repair_model import Link, Model
from workbench.topology.topology import Row


def model_of_tiers(tiers: Tiers, pending: Iterable[Row]) -> Model:
    """The trees of a case as a model; `pending`: how many changes wait at each node."""
    system, rows = tiers.shown.system, trees(tiers)
    waiting: Counter[str] = Counter()
    for one in pending:
        waiting[one["server"]] += one["count"]
    # That such a node lacks anything is not known: its log goes that far at least.
    unsure = frozenset(
        name
        for names in tiers.members.values()
        for name in names
        if name not in waiting and tiers.needs(name) and name not in tiers.last_holders
    )
    for node in (node for row in rows for node in row["nodes"]):
        span = tiers.logs.span(node["node"])
        if span and node["node_last"] is None and node["registry_lsn"] is None:  # only its log tells how far it is
            node |= {"node_first": list(span[0]), "node_last": list(span[1])}
        # What stands behind that record is no part of the source's log.
        if anew := tiers.logs.cut_back(node["node"]) or tiers.logs.unjoined(node["node"]):
            node["node_last"] = list(anew[0])
        # Where its log parts from that of the source, or which source that is, nobody knows.
        if node["node"] in tiers.not_elected | tiers.guessed | tiers.doubts.keys():
            node["cut_back_to"] = node["cut_back_to"] or node["node_last"]
    model = tier_model(
        rows,
        tiers.seen.registry,
        tiers.told.rules,
        system.order_key,
        system.origin_of,
        lambda key: system.halves(key)[0],
        frozenset(source for source in tiers.sources if not tiers.told.local(source)),
        tiers.told.sources,
        tiers.logs.spoilt - tiers.logs.parted,
        tiers.logs.parted,
        waiting,
        {name for name, standing in tiers.standstills.items() if standing.sure}
        | {name for name in tiers.seen.ahead if tiers.seen.of_unknown_age(name)},
        {name: holes for name in tiers.seen.files if (holes := tiers.seen.holes(name))},
        unsure,
    )
    # A node that hangs on no source gets what those have that it pulls from, if they answer.
    sent = {name: senders(tiers, name) for name, state in tiers.states.items() if state == ORPHAN}
    model.links = [replace(x, runs=x.runs or x.supplier in sent.get(x.consumer, ())) for x in model.links]
    # Who registers anew is connected a moment later, whatever anybody does.
    model.links += [
        Link(one, name, True) for name in sorted(tiers.registering) for one in senders(tiers, name) if tiers.needs(name)
    ]
    # Of another history, it gets nothing before it connects anew.
    apart = {name for name in tiers.states if tiers.logs.cut_back(name) or tiers.logs.unjoined(name)}
    stuck = {name for name in apart if not senders(tiers, name) and name not in tiers.logs.parted}
    model.links = [replace(x, runs=x.runs and x.consumer not in stuck) for x in model.links]
    model.doubted = tiers.logs.at_odds | tiers.earlier.servers | tiers.last_holders.keys()
    if not tiers.source_is_known:
        model.links = []  # that nodes of one database are one cluster, which brings its own up to date, nothing tells either
    return model
