"""What if a tree of nodes were changed: the changes as a person writes them, and the tree before and after them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workbench.diagnosis.incident import Incident
from workbench.model import Problem
from workbench.replication.tier.rules.conditions import GONE, HUNG, UNREACHABLE
from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.tiers import Node
from workbench.replication.tier.rules.topology_what_if import (
    Add,
    Change,
    Fanout,
    Lose,
    Move,
    Reset,
    Shape,
    files_of,
    what_if,
)
from workbench.replication.tier.rules.tree_balancing import balanced
from workbench.replication.tier.sections import in_order
from workbench.topology.tier_snapshot import TieredSnapshot, tiered_snapshot
from workbench.views.tier_views import tree_in

Row = Mapping[str, Any]

MOST = 200
"""Rows of a table; of more the first are shown."""

DRAWN = 60
"""Nodes that are drawn of both trees; of more those that change, and what is above them."""

FORMS = "lose NODE; reset NODE; move NODE under NODE; add NODE; add NODE under NODE; fanout NUMBER"
"""How changes are written: several with a semicolon between them, done in this order."""

_NODE = r"[^\s;@]{1,120}@[^\s;@]{1,240}"
_WRITTEN = re.compile(
    rf"(?P<what>lose|reset|move|add) (?P<node>{_NODE})(?: under (?P<under>{_NODE}))?|fanout (?P<fanout>[0-9]{{1,6}})"
)


def changes_of(written: str, head: int | None = None) -> list[Change]:
    """Changes as a person writes them; a new node comes as a copy that is in the file `head`.

    >>> changes_of("lose db@r1; fanout 3")
    [Lose(name='db@r1'), Fanout(fanout=3, source_database=None)]
    """
    found: list[Change] = []
    for one in filter(None, map(str.strip, written.split(";"))):
        read = _WRITTEN.fullmatch(" ".join(one.split()))
        if read is None or (read["what"] != "add" and (read["what"] == "move") != bool(read["under"])):
            raise Problem(f"this is no change of a tree: {one[:80]}", "what_if", f"write {FORMS}")
        found.append(_change(read, head))
    return found


def _change(read: re.Match[str], head: int | None) -> Change:
    name, under = read["node"], read["under"]
    if read["fanout"]:
        return Fanout(int(read["fanout"]))
    if read["what"] == "lose":
        return Lose(name)
    if read["what"] == "reset":
        return Reset(name)
    if read["what"] == "move":
        return Move(name, under)
    database, _, host = name.partition("@")
    return Add(Node(database, host, head, first_file=head, age=0.0), under)


def what_if_picture(incident: Incident, written: str, source: str | None = None) -> dict[str, Any]:
    """The tree before and after some changes, and what would bring it in order.

    Keys: source, rules, written, names (to choose from), unnamed (how many more there are), sentences (what would happen),
    stranded (nodes that nobody could bring up to date any more), shapes (what, before, after), trees (before and after: name,
    depth, serves, changed, adrift of each node), left (how many are not drawn), nodes (each whose place or load changes), changed
    (how many), balance (moves, count, fewest, unplaced, written). Raises Problem for changes that cannot be.
    """
    tree = tree_in(incident, source)
    seen = tiered_snapshot(incident.then, incident.then_label)
    assert incident.system.tiering is not None  # else there is no tree
    told = incident.system.tiering().told(seen.settings)
    rules: Rules = told.rules
    files = _files(tree, seen)
    head = tree["source_head_actual"] or tree["source_head_registry"]
    changes = changes_of(written, head[0] if head else None)
    found = what_if(rules, seen.registry, tree["source"], changes, files, told.local(tree["source"]))
    ends = {one.name: one.file for one in found.registry.nodes if one.file is not None}
    order = balanced(found.registry, tree["source"], found.rules.fanout_of(tree["source"]), files, ends)
    places = [found.before.tree.places, found.after.tree.places]
    rows = []
    for name in sorted({*places[0], *places[1]}):
        was, now = (_place(one.tree.places.get(name), one, name) for one in (found.before, found.after))
        if was != now:
            rows.append(
                {"node": name} | {f"{key}_was": was[key] for key in was} | {f"{key}_now": now[key] for key in now}
            )
    changed = {row["node"] for row in rows}
    drawn, left = _drawn((found.before, found.after), changed)
    return {
        "source": tree["source"],
        "rules": rules.name,
        "written": written,
        "names": sorted(places[1])[:MOST],
        "unnamed": max(len(places[1]) - MOST, 0),
        "sentences": list(found.told)[:MOST],
        "stranded": [{"node": one.name, "why": one.why} for one in found.stranded][:MOST],
        "shapes": _shapes(found.before, found.after),
        "trees": [_outline(one, drawn, changed) for one in (found.before, found.after)],
        "left": left,
        "nodes": rows[:MOST],
        "changed": len(rows),
        "balance": {
            "moves": [
                {"node": one.name, "was": one.was or "nobody", "to": one.to, "why": one.why} for one in order.moves
            ][:MOST],
            "count": len(order.moves),
            "fewest": order.fewest,
            "unplaced": [{"node": name, "why": why} for name, why in order.unplaced.items()][:MOST],
            "written": "; ".join(f"move {one.name} under {one.to}" for one in order.moves[:MOST]),
        },
    }


def _files(tree: Row, seen: TieredSnapshot) -> dict[str, tuple[int, int]]:
    """Node -> its first and last file: as it was probed, else as the registry tells. Those that are silent can serve nobody."""
    found = files_of(seen.registry)
    silent = {*GONE, HUNG, UNREACHABLE}
    for one in tree["nodes"]:
        if one["condition"] in silent:
            found.pop(one["node"], None)
            continue
        numbers = [number for number, _ in one["files"]]
        if one["node_last"] and one["node_first"]:
            numbers += [one["node_first"][0], one["node_last"][0]]
        if numbers:
            found[one["node"]] = (min(numbers), max(numbers))
    return found


def _place(place: Any, shape: Shape, name: str) -> dict[str, Any]:
    if place is None:
        return {"source": "not there", "tier": None, "serves": None}
    root = "the source itself" if place.tier == 0 else "nobody"
    return {"source": ", ".join(place.parents) or root, "tier": place.tier, "serves": shape.load.get(name, 0)}


def _drawn(shapes: Sequence[Shape], changed: Collection[str]) -> tuple[set[str], int]:
    """The nodes that are drawn, and how many are not: of large trees those that change, with all that are above them."""
    everyone = {name for one in shapes for name in one.tree.places}
    if len(everyone) <= DRAWN:
        return everyone, 0
    found: set[str] = set()
    for name in sorted(changed):
        above = {up for one in shapes for up in _path(one, name)}
        if len(found | above) > DRAWN:
            break
        found |= above
    return found, len(everyone - found)


def _path(shape: Shape, name: str) -> set[str]:
    """A node and those above it; some may be in a circle."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in found and one in shape.tree.places:
            found.add(one)
            waiting += shape.tree.places[one].parents
    return found


def _outline(shape: Shape, drawn: Collection[str], changed: Collection[str]) -> list[dict[str, Any]]:
    """The nodes in order, each below the one that it pulls from."""
    places = [place for name, place in sorted(shape.tree.places.items()) if name in drawn]
    rows = [{"node": one.name, "parent": next(iter(one.parents), None), "tier": one.tier} for one in places]
    return [
        {
            "name": one["node"],
            "depth": depth,
            "serves": shape.load.get(one["node"], 0),
            "changed": one["node"] in changed,
            "adrift": one["tier"] is None,
        }
        for one, depth in in_order(rows)
    ]


def _shapes(before: Shape, after: Shape) -> list[dict[str, Any]]:
    def told(one: Shape) -> dict[str, Any]:
        return {
            "nodes that hang on the source": len(one.tree.places) - len(one.adrift),
            "nodes that hang on none": len(one.adrift),
            "deepest tier": one.tree.depth,
            "fanout": one.fanout,
            "nodes that serve more than the fanout": len(one.over_full),
            "most that pull from one": max(one.load.values(), default=0),
            "nodes of the source that serve nobody": len(one.idle),
        }

    was, now = told(before), told(after)
    return [{"what": what, "before": was[what], "after": now[what]} for what in was]
