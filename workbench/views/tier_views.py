"""A tree of nodes that pull a physical log from each other, as pictures need it: the tree, and who has which files of the log.

Everything here is a part of the diagnosis put in another order: a click costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.diagnosis.incident import Incident
from workbench.model import NotOfThisSystem, Problem
from workbench.replication.tier.rules import conditions
from workbench.replication.tier.sections import in_order
from workbench.views.verdict_style import MISSING, PENDING, PRESENT, STRANDED, UNKNOWN
from workbench.views.verdict_style import VERDICTS as LOOKS

Row = Mapping[str, Any]

NODES = 60
"""Nodes that are drawn of a tree; of more those are left out of which nothing is to be told."""

VERDICTS: Mapping[str, str] = {
    conditions.HEALTHY: PRESENT,
    conditions.BEHIND: PENDING,
    conditions.DELAYED: PENDING,
    conditions.DELAYED_ABOVE: PENDING,
    conditions.PENDING: PENDING,
    conditions.UNREACHABLE: UNKNOWN,
    conditions.CUT_BACK: UNKNOWN,
    conditions.UNTOLD: UNKNOWN,
    conditions.RETIRED: UNKNOWN,
    conditions.STOPPED: STRANDED,
    conditions.FROZEN: STRANDED,
    conditions.GHOST: STRANDED,
    conditions.HUNG: STRANDED,
    conditions.NO_SOURCE: STRANDED,
    conditions.ORPHAN: STRANDED,
    conditions.CYCLE: STRANDED,
    conditions.GAPPED: MISSING,
}
"""What a node is doing -> how it is shown."""


def must_tier(incident: Incident) -> None:
    """Raise Problem where nodes do not pull a log from each other in tiers: there is nothing of all this."""
    if not incident.system.tiering:
        raise NotOfThisSystem(
            f"servers of {incident.system.title} do not pull a physical log from each other in tiers",
            incident.case.name,
            "the notebook 20_overview shows what they send each other",
        )


def tree_in(incident: Incident, source: str | None = None) -> Row:
    """The tree of a source database; of none named the first one."""
    must_tier(incident)
    trees: Sequence[Row] = incident.found["trees"]
    found = next((one for one in trees if source in (None, one["source"])), None)
    if found is None:
        what = f"no tree of {source} was collected" if source else "no tree was collected"
        raise Problem(what, incident.then_label, "load the tables of the registry, or what the nodes answered")
    return found


def verdict_of(node: Row) -> str:
    """How a node is shown; one that nobody who answers can help is shown as lost, whatever else it is."""
    return MISSING if node["gap"] == "now" else VERDICTS[node["condition"]]


def lag_of(node: Row) -> tuple[int | None, bool]:
    """Bytes that a node is behind its source, and whether it was asked itself; what it reported may be of another moment."""
    if node["actual_lag_bytes"] is not None:
        return node["actual_lag_bytes"], True
    return node["registry_lag_bytes"], False


def size_text(count: int | None) -> str:
    """Bytes in few letters; never less than nothing: nodes are looked at one after the other.

    >>> size_text(0), size_text(142_040), size_text(-94_551), size_text(4_870_000), size_text(None)
    ('0', '142 kB', '0', '4.9 MB', '?')
    """
    if count is None:
        return "?"
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1e3:,.0f} kB" if count >= 10_000 else f"{max(count, 0):,}"


# --- the tree


def tree_picture(tree: Row, most: int = NODES) -> dict[str, Any]:
    """The nodes in rows, each below the one it pulls from and a tier to its right, with the bytes that are lost on each edge.

    Keys: source, head, tiers (how many columns), fanout, retention, nodes, left (how many are not drawn), adrift (row below which
    those stand that hang on nothing). A node: name, row, tier (column), up (row of the node it pulls from), verdict, sign,
    condition, says, lag and edge (text), edge_says, serves, full, holds, needs, help (who has that), more (children left out).
    """
    nodes: Sequence[Row] = tree["nodes"]
    by_name = {one["node"]: one for one in nodes}
    drawn = _drawn(nodes, most)
    ordered = [(one, depth) for one, depth in in_order(nodes) if one["node"] in drawn]
    # Those that hang on nothing come last, with a row for what is said of them.
    adrift = next((row for row, (one, _) in enumerate(ordered) if one["tier"] is None), None)
    place = {one["node"]: row + (adrift is not None and row >= adrift) for row, (one, _) in enumerate(ordered)}
    hidden: dict[str | None, int] = {}
    for one in nodes:
        if one["node"] not in drawn:
            hidden[one["parent"]] = hidden.get(one["parent"], 0) + 1
    head = tree["source_head_actual"] or tree["source_head_registry"]
    return {
        "source": tree["source"],
        "head": f"{{{head[0]}:{head[1]}}}" if head else None,
        "tiers": max((depth for _, depth in ordered), default=0) + 1,
        "fanout": tree["fanout"],
        "retention": tree["retention"]["says"],
        "left": len(nodes) - len(drawn),
        "adrift": adrift,
        "nodes": [
            {
                **_node(one, by_name.get(one["parent"] or ""), tree["fanout"]),
                "row": place[one["node"]],
                "tier": depth,
                "up": place.get(one["parent"]) if depth else None,
                "more": hidden.get(one["node"], 0),
            }
            for one, depth in ordered
        ],
    }


def _drawn(nodes: Sequence[Row], most: int) -> set[str]:
    """Those of which most is to be told, with all that are above them."""
    if len(nodes) <= most:
        return {one["node"] for one in nodes}
    parents = {one["node"]: one["parent"] for one in nodes}

    def rank(one: Row) -> tuple[Any, ...]:
        return 0 if one["tier"] == 0 else 1 if verdict_of(one) != PRESENT else 2, -one["children"], one["node"]

    found: set[str] = set()
    for one in sorted(nodes, key=rank):
        chain, name = [], one["node"]
        while name in parents and name not in found and name not in chain:
            chain.append(name)
            name = parents[name]
        if len(found) + len(chain) > most:
            break
        found.update(chain)
    return found


def _node(one: Row, above: Row | None, fanout: int) -> dict[str, Any]:
    lag, asked = lag_of(one)
    edge, says = _edge(one, above)
    return {
        "name": one["node"],
        "verdict": verdict_of(one),
        "sign": LOOKS[verdict_of(one)].sign,
        "condition": one["condition"].replace("_", " "),
        "says": one["says"],
        "lag": ("at least " if one["lag_is_at_least"] and lag else "")
        + size_text(lag)
        + ("" if asked else " as reported"),
        "edge": edge,
        "edge_says": says,
        "serves": one["children"],
        "full": one["children"] > fanout,
        "holds": one["holds_log"],
        "needs": _needs(one),
        "help": ", ".join(one["served_by"]) or "nobody",
    }


def _edge(one: Row, above: Row | None) -> tuple[str, str]:
    """What a node lacks of the one it pulls from: a delay that is inherited is not counted once more."""
    if above is None:
        return "", ""
    (mine, asked), (theirs, asked_above) = lag_of(one), lag_of(above)
    if mine is None or theirs is None:
        return "?", "how far it is behind its source nobody tells"
    if asked != asked_above:
        return "?", "one of the two was asked itself and the other one was not: their places are of different moments"
    behind = mine - theirs
    skewed = " (it was looked at later than its source, and is ahead by that)" if behind < 0 else ""
    return size_text(behind), f"{max(behind, 0):,} bytes behind {above['node']}{skewed}"


def node_facts(tree: Row, name: str) -> dict[str, Any]:
    """What is known of a node, as pairs of words; and of one that waits what the registry would offer it, with the reasons."""
    one = next((node for node in tree["nodes"] if node["node"] == name), None)
    if one is None:
        raise Problem(f"the tree of {tree['source']} has no node {name}", "", "choose one that it shows")
    return {
        "title": name,
        "verdict": verdict_of(one),
        "says": one["says"],
        "rows": list(_facts(one, tree["nodes_are_listed"])),
        "offered": one["offered"],
    }


def _facts(one: Row, listed: bool) -> Iterator[dict[str, str]]:
    def fact(what: str, value: str) -> dict[str, str]:
        return {"what": what, "value": value}

    age = one["keepalive_age_s"]
    yield fact("state in the registry", one["state"] or ("it has no row" if listed else "not collected"))
    yield fact(
        "last reported itself", ("never" if listed else "not collected") if age is None else f"{age:,.1f} s before"
    )
    yield fact("reported to be at", one["registry_lsn"] or "nothing")
    if one["cut_back_to"]:
        yield fact("cut its log back since to", one["cut_back_to"])
    if one["node_last"]:
        yield fact(
            "answered from, to",
            " to ".join(f"{{{at[0]}:{at[1]}}}" for at in (one["node_first"], one["node_last"]) if at),
        )
    for words, key in (("behind, as it answered", "actual_lag_bytes"), ("behind, as reported", "registry_lag_bytes")):
        if one[key] is not None:
            told = one[f"{key}_nominal"]
            counted = (
                f"; {told:,} as servers count, which take each file for full" if told not in (None, one[key]) else ""
            )
            ahead = "; below 0: it reported itself later than its source" if one[key] < 0 else ""
            yield fact(words, f"{one[key]:,} bytes{counted}{ahead}")
    if one["lag_s"]:
        low, high = one["lag_s"]
        yield fact("behind in time", f"{low:,.1f} to {high:,.1f} s" if high is not None else f"at least {low:,.1f} s")
    if one["delay_s"]:
        yield fact("waits on purpose", f"{one['delay_s']:,.0f} s, as its configuration says")
    if one["files_needed_from"] is not None and _needs(one) is not None:
        yield fact("file that it needs next", str(one["files_needed_from"]))
        yield fact("who has it and answers", ", ".join(one["served_by"]) or "nobody")
        if one["served_by_silent"]:
            yield fact("who has it and is silent", ", ".join(one["served_by_silent"]))
    if one["lost_in_s"] is not None:
        yield fact(
            "the source has deleted it in",
            f"{one['lost_in_s']:,.0f} s, if it goes on as between the last two snapshots",
        )
    if one["holds_log"]:
        yield fact("holds", "it pins the deletion of log files")


def _needs(one: Row) -> int | None:
    """The file that a node needs next, if it lacks anything."""
    lag, _ = lag_of(one)
    return one["files_needed_from"] if lag is not None and lag > 0 and one["tier"] != 0 else None


# --- files of the log


def coverage(tree: Row, most: int = NODES) -> dict[str, Any]:
    """Who has which files of the log, and from which one each node needs them.

    Keys: low, high (numbers of the first and the last file that anybody has or needs), rows, left, held (the first that is held
    back from deletion). A row: name, verdict, condition, runs ([from, to], both ends included), certain (false: as the registry
    tells, which is some time old), needs, helped (somebody who answers has that), served_by, silent, lost_in (seconds).
    """
    drawn = _drawn(tree["nodes"], most)
    rows = [_covers(one) for one, _ in in_order(tree["nodes"]) if one["node"] in drawn]
    ends = [end for one in rows for run in one["runs"] for end in run] + [
        one["needs"] for one in rows if one["needs"] is not None
    ]
    low, high = (min(ends), max(ends)) if ends else (0, 0)
    return {
        "low": low,
        "high": high,
        "rows": rows,
        "left": len(tree["nodes"]) - len(rows),
        "held": tree["retention"]["file"],
    }


def _covers(one: Row) -> dict[str, Any]:
    runs = _runs(number for number, _ in one["files"])
    certain = bool(runs)
    last = one["node_last"][0] if one["node_last"] else None
    if not runs and one["node_first"] and last is not None:
        runs, certain = [[one["node_first"][0], last]], True
    if not runs and one["registry_lsn"]:
        reported = int(one["registry_lsn"].strip("{}").split(":")[0])
        first = int(one["firstfile"]) if one["firstfile"] is not None else reported
        runs = [[min(first, reported), reported]]
    needs = _needs(one)
    return {
        "name": one["node"],
        "verdict": verdict_of(one),
        "condition": one["condition"].replace("_", " "),
        "runs": runs,
        "certain": certain,
        "needs": needs,
        "helped": bool(one["served_by"]),
        "served_by": one["served_by"],
        "silent": one["served_by_silent"],
        "lost_in": one["lost_in_s"],
    }


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers as runs without a break, both ends included."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
