"""Links that do not run and whose suppliers have what other servers wait for: where the changes come from once one of them runs.

d has made changes; its three links are disabled, and a, b and c send to each other:

    a waits   a gets them over d-to-a, or over d-to-b or d-to-c and then from b or c, which wait themselves
    b waits   the same: that a would get them from b, and b from a, is no way
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.rules.send_session import SEND

Row = Mapping[str, Any]

_NAMED = 5
"""Disabled links that a headline names."""


def runs(pair: Row) -> bool:
    """True for a pair with a link that is on and does not fail."""
    return bool(pair["link"]) and pair["link_enabled"] is not False and not pair.get("link_failing")


def in_no_log(row: Row) -> int:
    """How many of the changes that a server waits for no log has any more: no session delivers these."""
    return int(row.get("gone", row["count"] - row["available"]))


def unlogged(row: Row) -> int:
    """The same, but for those that went with the data of their maker."""
    return max(in_no_log(row) - (row.get("lost") or 0), 0)


def has_some(pair: Row, origin: str) -> bool:
    """True if the supplier of the pair would send changes of the origin."""
    return pair["decision"] == SEND and origin in pair["to_send"] and pair.get("delivers", True)


class LinkedPairs:
    """The pairs of servers with a link between them, for questions about links that do not run. Answers are kept."""

    def __init__(self, pairs: Iterable[Row]) -> None:
        self._pairs: dict[str | None, list[Row]] = {}
        self._feeding: dict[tuple[str | None, bool], dict[str, list[str]]] = {}
        self._above: dict[tuple[str, str | None, bool], frozenset[str]] = {}
        for one in pairs:
            if one["link"]:
                self._pairs.setdefault(one["suffix"], []).append(one)
                for only_running in (True, False) if runs(one) else (False,):
                    to = self._feeding.setdefault((one["suffix"], only_running), {})
                    to.setdefault(one["consumer"], []).append(one["supplier"])

    def above(self, server: str, suffix: str | None, only_running: bool = True) -> frozenset[str]:
        """The server, and those from which links lead to it, directly or through others."""
        key = server, suffix, only_running
        if key not in self._above:
            feeding = self._feeding.get((suffix, only_running), {})
            found, left = {server}, [server]
            while left:
                new = {*feeding.get(left.pop(), ())} - found
                found |= new
                left += new
            self._above[key] = frozenset(found)
        return self._above[key]

    def closed_ways(self, row: Row) -> list[Row]:
        """The pairs whose links do not run and would bring what a server waits for, directly or over links that run.

        Where more than one link on the way is closed, all of these.
        """
        server, suffix, origin = row["server"], row["suffix"], row["origin"]
        closed = [one for one in self._pairs.get(suffix, ()) if not runs(one)]
        reached = self.above(server, suffix)
        if found := [one for one in closed if one["consumer"] in reached and has_some(one, origin)]:
            return found
        reached = self.above(server, suffix, only_running=False)
        entries = {one["consumer"] for one in closed if one["consumer"] in reached and has_some(one, origin)}
        return [
            one
            for one in closed
            if one["consumer"] in reached
            and (has_some(one, origin) or entries & self.above(one["supplier"], suffix, only_running=False))
        ]


def disabled_rows(ways: Iterable[Row], links: Iterable[Row]) -> list[dict[str, Any]]:
    """Those of some ways that are disabled links: name, supplier, consumer, suffix, why."""
    behind = {(one["supplier"], one["link"], one["suffix"]) for one in ways if one["link_enabled"] is False}
    return [
        {key: one.get(key) for key in ("name", "supplier", "consumer", "suffix", "why")}
        for one in links
        if one["enabled"] is False and (one["supplier"], one["name"], one["suffix"]) in behind
    ]


def disabled_say(rows: Sequence[Row]) -> str:
    """`the link a-to-b is disabled`, or how many are and the first of them; empty if none is."""
    if not rows:
        return ""
    off = "not run" if any(row["why"] for row in rows) else ""
    names = names_of(rows)
    if len(rows) == 1:
        return f"the link {names[0]} {'does not run' if off else 'is disabled'}"
    more = f" and {len(rows) - _NAMED:,} more" if len(rows) > _NAMED else ""
    return f"{len(rows)} links {'do not run' if off else 'are disabled'}: {', '.join(names[:_NAMED])}{more}"


def names_of(rows: Sequence[Row]) -> list[str]:
    """The names of links, with the supplier where several have one name, and the suffix where there are several (`several`)."""
    alike: dict[str, list[Row]] = {}
    of_several = len({row.get("suffix") for row in rows}) > 1 or any(row.get("several") for row in rows)
    for row in rows:
        alike.setdefault(row["name"], []).append(row)

    def called(row: Row) -> str:
        suppliers = {link.get("supplier") for link in alike[row["name"]]}
        by = f" of {row['supplier']}" if len(suppliers) > 1 and row.get("supplier") else ""
        return f"{row['name']}{by}" + (f" of {row['suffix']}" if of_several and row["suffix"] else "")

    return [*map(called, rows)]
