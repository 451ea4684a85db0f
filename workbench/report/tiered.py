"""What a report tells of trees of nodes that pull a physical log from each other: each node, how far it is, who could help it.

As `report_data`, plain data in which names stand under keys that tell what they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.diagnosis.incident import Incident
from workbench.replication.tier.sections import in_order, place_of

Row = Mapping[str, Any]

NODES = 200
"""Nodes of a tree that are shown, those first that are not well; all of them are in the diagnosis."""


def tiered(incident: Incident) -> list[dict[str, Any]]:
    """Each tree with its nodes, each under the one that it pulls from."""
    return [_tree(incident, one) for one in incident.found["trees"]]


def _tree(incident: Incident, tree: Row) -> dict[str, Any]:
    nodes = [_node(one, depth) for one, depth in in_order(tree["nodes"])]
    well = [one for one in nodes if one["condition"] == "healthy"]
    ill = [one for one in nodes if one["condition"] != "healthy"]
    kept = {id(one) for one in (*ill[:NODES], *well[: max(0, NODES - len(ill))])}
    head = tree["source_head_actual"] or tree["source_head_registry"]
    return {
        "origin": tree["source"],
        "now": tree["now"],
        "fanout": tree["fanout"],
        "head": f"{{{head[0]}:{head[1]}}}" if head else "",
        "keeps_from": tree["retention"]["file"],
        "kept_by": [{"server": name} for name in tree["retention"]["held_by"]],
        "nodes": [one for one in nodes if id(one) in kept],
        "more": len(nodes) - len(kept),
    }


def _node(one: Row, depth: int) -> dict[str, Any]:
    lag = one["actual_lag_bytes"] if one["actual_lag_bytes"] is not None else one["registry_lag_bytes"]
    return {
        "server": one["node"],
        "depth": depth,
        "state": one["state"] or "no row",
        "tier": "" if one["tier"] is None else one["tier"],
        "children": one["children"],
        "age": "" if one["keepalive_age_s"] is None else f"{one['keepalive_age_s']:,.0f} s",
        "position": place_of(one),
        "behind": "?" if lag is None else f"{'at least ' if one['lag_is_at_least'] and lag else ''}{max(lag, 0):,}",
        "condition": one["condition"].replace("_", " "),
        "says": one["says"],
        "needs_file": one["files_needed_from"]
        if one["gap"] or (lag or 0) > 0 or (lag is None and one["served_by"])
        else "",
        "helpers": [{"server": name} for name in one["served_by"][:3]],
        "gone": one["gap"] == "now",
    }


def trees_worded(told: Sequence[Row]) -> list[dict[str, Any]]:
    """The same with who has the file that each node needs, in words."""
    return [{**tree, "nodes": [{**one, "helped": _helped(one)} for one in tree["nodes"]]} for tree in told]


def _helped(node: Row) -> str:
    return "nobody" if node["gone"] else ", ".join(one["server"] for one in node["helpers"])
