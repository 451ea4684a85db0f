"""Links that do not run and whose suppliers have what other servers wait for: where the changes come from once one of them runs.

d has made changes; its three links are disabled, and a, b and c send to each other:

    a waits   a gets them over d-to-a, or over d-to-b or d-to-c and then from b or c, which wait themselves
    b waits   the same: that a would get them from b, and b from a, is no way
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.rules.sending import SEND

Row = Mapping[str, Any]

_NAMED = 5
"""Disabled links that a headline names."""


def runs(pair: Row) -> bool:
    """True for a pair with a link that is on and does not fail."""
    return bool(pair["link"]) and pair["link_enabled"] is not False and not pair.get("link_failing")


def has_some(pair: Row, origin: str) -> bool:
    """True if the supplier of the pair would send changes of the origin."""
    return pair["decision"] == SEND and origin in pair["to_send"] and pair.get("delivers", True)


def above(pairs: Iterable[Row], server: str, suffix: str | None, only_running: bool = True) -> set[str]:
    """The server, and those from which links lead to it, directly or through others."""
    links = [
        (one["supplier"], one["consumer"])
        for one in pairs
        if one["suffix"] == suffix and one["link"] and (runs(one) or not only_running)
    ]
    found, size = {server}, 0
    while size < len(found):
        size = len(found)
        found |= {supplier for supplier, consumer in links if consumer in found}
    return found


def closed_ways(pairs: Sequence[Row], row: Row) -> list[Row]:
    """The pairs whose links do not run and would bring what a server waits for, directly or over links that run.

    Where more than one link on the way is closed, all of these.
    """
    server, suffix, origin = row["server"], row["suffix"], row["origin"]
    closed = [one for one in pairs if one["suffix"] == suffix and one["link"] and not runs(one)]
    reached = above(pairs, server, suffix)
    if found := [one for one in closed if one["consumer"] in reached and has_some(one, origin)]:
        return found
    reached = above(pairs, server, suffix, only_running=False)
    entries = {one["consumer"] for one in closed if one["consumer"] in reached and has_some(one, origin)}
    return [
        one
        for one in closed
        if one["consumer"] in reached
        and (has_some(one, origin) or entries & above(pairs, one["supplier"], suffix, only_running=False))
    ]


def disabled_rows(stuck: Iterable[Row], pairs: Sequence[Row], links: Iterable[Row]) -> list[dict[str, Any]]:
    """The disabled links behind which something waits of what nobody sends: name, supplier, consumer, suffix, why."""
    behind = {
        (one["supplier"], one["link"], one["suffix"])
        for row in stuck
        for one in closed_ways(pairs, row)
        if one["link_enabled"] is False
    }
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
    if len(rows) == 1:
        return f"the link {rows[0]['name']} {'does not run' if off else 'is disabled'}"
    named = ", ".join(row["name"] for row in rows[:_NAMED])
    more = f" and {len(rows) - _NAMED:,} more" if len(rows) > _NAMED else ""
    return f"{len(rows)} links {'do not run' if off else 'are disabled'}: {named}{more}"
