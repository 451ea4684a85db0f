"""Nodes that pull a physical log in tiers: their tree, who has which files of the log, and what if the tree were changed."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from widgets.incident_view import OfIncident, one_of
from workbench.text_table import aligned, one_cell
from workbench.views.tier_changes import FORMS, what_if_picture
from workbench.views.tier_views import coverage, node_facts, tree_in, tree_picture
from workbench.views.verdict_style import MISSING, PENDING, PRESENT, STRANDED, UNKNOWN

_SHADES = (
    (PRESENT, "follows its source"),
    (PENDING, "behind, delayed, or waiting for a source that it can get"),
    (UNKNOWN, "did not answer, or nothing tells what it is doing"),
    (STRANDED, "stopped, frozen, shut down, hung, or without a source"),
    (MISSING, "needs what no node that answers has any more"),
)


class TierTree(OfIncident, drawn_by="tiers"):
    """The tree, with the bytes that are lost on each edge, what each node is doing, and who holds the log. Click a node for all
    that is known of it, and for what the registry would offer it.
    """

    def drawn(self) -> dict[str, Any]:
        """The tree of the chosen source, and the chosen node."""
        self._tree = tree_in(self.incident, self.only("origin"))
        name = self.only("server")
        there = any(one["node"] == name for one in self._tree["nodes"])
        picked = node_facts(self._tree, name) if name and there else None
        shades = [{"name": shade, "says": says} for shade, says in _SHADES]
        return {**tree_picture(self._tree), "shades": shades, "picked": picked}

    def on_pick(self, message: dict[str, Any]) -> None:
        """What is known of a node."""
        node = one_of(self.data.get("nodes", []), message)
        self.data = {**self.data, "picked": node_facts(self._tree, node["name"])}

    def as_text(self) -> str:
        """A line for each node, below the one it pulls from."""
        heads = ("NODE", "IS", "BEHIND", "LOST ON ITS EDGE", "SERVES", "NEEDS FILE", "WHO HAS IT", "")
        rows = [
            (
                "  " * one["tier"] + one_cell(one["name"]),
                one["condition"],
                one["lag"],
                one["edge"],
                str(one["serves"]) + (" (full)" if one["full"] else ""),
                "" if one["needs"] is None else str(one["needs"]),
                "" if one["needs"] is None else one_cell(one["help"]),
                "holds the log" if one["holds"] else "",
            )
            for one in self.data["nodes"]
        ]
        says = [f"{self.data['left']:,} further nodes are not shown."] if self.data["left"] else []
        return "\n\n".join([aligned([heads, *rows], right=(2, 3)), *says, self.data["retention"]])


class LogCoverage(OfIncident, drawn_by="coverage"):
    """Who has which files of the log, and from which file each node that is behind needs them."""

    def drawn(self) -> dict[str, Any]:
        """Of the chosen source."""
        return coverage(tree_in(self.incident, self.only("origin")))

    def as_text(self) -> str:
        """A line for each node: # a file that it has, ~ one that it had by its report, ! the one that it needs."""
        low, high = self.data["low"], self.data["high"]
        if high - low > 60:
            rows = [(one["name"], _runs_text(one), _needs_text(one)) for one in self.data["rows"]]
            return aligned([("NODE", "FILES", "NEEDS"), *rows])
        rows = [(one["name"], self._bar(one), _needs_text(one)) for one in self.data["rows"]]
        return aligned([("NODE", f"FILES {low} TO {high}", "NEEDS"), *rows])

    def _bar(self, one: dict[str, Any]) -> str:
        sign = "#" if one["certain"] else "~"
        numbers = range(self.data["low"], self.data["high"] + 1)
        has = ("!" if n == one["needs"] else sign if any(a <= n <= b for a, b in one["runs"]) else "." for n in numbers)
        return "".join(has)


def _runs_text(one: dict[str, Any]) -> str:
    return ", ".join(f"{low} to {high}" for low, high in one["runs"]) or "nobody knows"


def _needs_text(one: dict[str, Any]) -> str:
    if one["needs"] is None:
        return ""
    who = ", ".join(one["served_by"][:3]) or "NOBODY who answers has it"
    return f"{one['needs']}: {one_cell(who)}"


def _in_tree(one: dict[str, Any]) -> str:
    """A node in its place; one that hangs on no source, and one that changes, are marked."""
    mark = "  hangs on no source" if one["adrift"] else "  *" if one["changed"] else ""
    return "  " * one["depth"] + one_cell(one["name"]) + mark


class TierChanges(OfIncident, drawn_by="tier_changes"):
    """What if nodes were lost, moved, reset or added, or the fanout were another one: the tree before and after, who could then
    no longer be helped, and what would bring it in order. Nothing is done anywhere.
    """

    def drawn(self) -> dict[str, Any]:
        """What the parameter says, else no change."""
        return self._told(str(self.value("what_if")))

    def _told(self, written: str) -> dict[str, Any]:
        return {**what_if_picture(self.incident, written, self.only("origin")), "forms": FORMS}

    def on_write(self, message: dict[str, Any]) -> None:
        """Other changes than before."""
        written = message.get("text")
        if isinstance(written, str):
            self.data = self._told(written)

    def as_text(self) -> str:
        """The numbers before and after, what would happen, and the moves that bring it in order."""
        data, balance = self.data, self.data["balance"]
        shapes = [(one["what"], str(one["before"]), str(one["after"])) for one in data["shapes"]]
        lines = [f"what if: {one_cell(data['written']) or 'nothing is changed'} (rules of {data['rules']})", ""]
        lines += [aligned([("", "BEFORE", "AFTER"), *shapes], right=(1, 2)), ""]
        both = ([_in_tree(one) for one in tree] for tree in data["trees"])
        lines += [aligned([("THE TREE BEFORE (* CHANGES)", "AND AFTER"), *zip_longest(*both, fillvalue="")]), ""]
        lines += [f"{data['left']:,} further nodes are not drawn.", ""] if data["left"] else []
        lines += [one_cell(one) for one in data["sentences"]]
        lines += [f"LOST: {one_cell(one['node'])}: {one_cell(one['why'])}" for one in data["stranded"]]
        moves = [(one["node"], one["was"], one["to"], one["why"]) for one in balance["moves"]]
        if moves:
            count = f"{balance['count']:,} moves bring" if balance["count"] != 1 else "1 move brings"
            lines += ["", f"{count} it in order{', and no fewer will do' if balance['fewest'] else ''}:"]
            lines.append(aligned([("NODE", "FROM", "TO", "WHY"), *moves]))
            lines += [f"and {balance['count'] - len(moves):,} more"] if balance["count"] > len(moves) else []
        else:
            lines += [
                "",
                "Nothing can be moved." if balance["unplaced"] else "It is in order: nothing has to be moved.",
            ]
        lines += [f"no place for {one_cell(one['node'])}: {one_cell(one['why'])}" for one in balance["unplaced"]]
        return "\n".join(lines)
