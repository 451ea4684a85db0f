"""The trees of a tiered log as text: each node under its source, how far it is, what it is doing, who could still help it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from workbench.text_table import aligned, one_cell

Row = Mapping[str, Any]

_CLOCKS_DIFFER = 600
"""Who reported itself so many seconds after the registry's clock was read, did so while the tables were read."""


def tiers_text(found: Row) -> str:
    """A section for each tree; nothing where nodes do not pull from each other in tiers."""
    forked = [
        finding for finding in found["findings"] if finding["code"] == "LOG_DIVERGED" and finding["severity"] != "info"
    ]
    parted = {name for finding in forked for name in (finding["server"], *(finding["servers"] or ()))}
    # Of histories of which none is known to be the right one, no node is called healthy.
    evidence = (row for finding in forked for row in finding["evidence"])
    parted |= {row.get("node") for row in evidence if row.get("elected") == "unknown"}
    return "\n\n".join(_tree(one, parted) for one in found["trees"])


def _tree(tree: Row, parted: Collection[str | None]) -> str:
    head = tree["source_head_actual"] or tree["source_head_registry"]
    says = f"The tree of {one_cell(tree['source'])}"
    if head:
        says += f", which is at {{{head[0]}:{head[1]}}}"
    if beyond := tree["source_head_proven"]:
        says += f" by its own report and at {{{beyond[0]}:{beyond[1]}}} at least by a later one of a node below it"
    if firsts := tree["source_first"]:
        says += f" and has log files from {min(first[0] for first in firsts.values())} on"
    if not tree["source_is_known"]:
        says += " (nothing tells who follows whom: no log goes further)"
    heads = ["NODE", "STATE", "TIER", "SERVES", "REPORTED", "AT", "BEHIND BY", "IS", "FILE IT NEEDS", "WHO HAS IT"]
    rows = [
        _node(one, depth, tree["nodes_are_listed"], one["node"] in parted) for one, depth in in_order(tree["nodes"])
    ]
    table = aligned([heads, *rows], right=(2, 3, 6, 8))
    return "\n\n".join(filter(None, (f"{says}:", table, _beside_each_other(tree), tree["retention"]["says"])))


def _beside_each_other(tree: Row) -> str:
    """What logs prove beside each other where nothing tells which of them is the source; nothing where that is known."""
    held = [one for one in tree["logs"] if one["source"]]
    if tree["source_is_known"] or not held:
        return ""
    reference = held[0]["source"]
    heads = [
        "LOG OF",
        "RECORDS",
        "FROM",
        "TO",
        "ALIKE",
        "DIFFER",
        "LAST COMMON COMMIT",
        "OWN BEHIND IT",
        "ENDS EARLIER BY",
        "LATER BY",
    ]
    keys = ("node", "records", "first", "last", "same", "differing", "match", "cut", "behind", "ahead")
    rows = [[_cell(one[key]) for key in keys] for one in tree["logs"]]
    return f"The logs beside that of {one_cell(reference)}:\n\n{aligned([heads, *rows], right=(1, 4, 5, 7, 8, 9))}"


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else one_cell(value)


def in_order(nodes: Sequence[Row]) -> Iterator[tuple[Row, int]]:
    """The nodes, each under the one it pulls from, with its depth there; those that hang on none come last."""
    children: dict[str | None, list[Row]] = {}
    for one in nodes:
        children.setdefault(one["parent"], []).append(one)
    waiting = [(one, 0) for one in reversed([one for one in nodes if one["tier"] == 0])]
    told = set()
    while waiting:
        one, depth = waiting.pop()
        if one["node"] in told:
            continue
        told.add(one["node"])
        yield one, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(one["node"], []))]
    yield from ((one, 0) for one in nodes if one["node"] not in told)


def place_of(node: Row) -> str:
    """Where a node of a tree is: as it answered, else as it reported, or from where on if it cut its log back since."""
    if at := node["node_last"]:
        return f"{{{at[0]}:{at[1]}}}"
    if node["cut_back_to"]:
        return f"{node['cut_back_to']} or later"
    return node["registry_lsn"] or ""


def _node(one: Row, depth: int, listed: bool, parted: bool) -> list[str]:
    """The cells of a node. Places in two histories are no distance from each other."""
    age, lag = one["keepalive_age_s"], one["actual_lag_bytes"]
    # What may have parted from its source is not called healthy.
    left_out = ("healthy",) if parted else ("see LOG_DIVERGED",)
    probed = lag is not None
    lag = lag if probed else one["registry_lag_bytes"]
    least = "at least " if one["lag_is_at_least"] and lag else ""
    lags = (lag or 0) > 0 or (lag is None and bool(one["served_by"] or one["served_by_silent"]))
    needs = str(one["files_needed_from"]) if one["gap"] or lags else "-"
    return [
        "  " * depth + one_cell(one["node"]),
        one_cell(one["state"] or ("no row" if listed else "-")),
        "-" if one["tier"] is None else str(one["tier"]),
        str(one["children"]),
        _reported(age, listed),
        place_of(one) or "?",
        "?" if lag is None or parted else f"{least}{max(lag, 0):,}",
        ", ".join(says for says in (one["condition"].replace("_", " "), "see LOG_DIVERGED") if says not in left_out),
        needs,
        _who_has_it(one) if needs != "-" else "-",
    ]


def _reported(age: float | None, listed: bool) -> str:
    if age is None:
        return "never" if listed else "-"
    return f"{age:,.0f} s ago" if age >= 0 else "0 s ago" if age > -_CLOCKS_DIFFER else f"{-age:,.0f} s ahead"


def _who_has_it(one: Row) -> str:
    """Nodes that have the file which one needs; where none of them answers, those that had it."""
    if one["served_by"]:
        return ", ".join(map(one_cell, one["served_by"][:3]))
    silent = ", ".join(f"{one_cell(name)} (silent)" for name in one["served_by_silent"][:3])
    return silent or ("nobody that goes on" if one["gap"] == "now" else "?")
