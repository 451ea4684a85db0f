"""Agreements to one server that do not leave out the same attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.diagnosing.fractional import Fractional
from workbench.model import Finding
from workbench.systems.ds389.rules.own_attributes import MEMBER_OF

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def lists_differ(situation: Situation) -> Iterator[Finding]:
    """A server that gets a value of some attributes or not, by which of its suppliers sends the change first."""
    shown = situation.topology
    rows = [
        {"server": server, "suffix": suffix, "name": name, "excluded": row.get("excluded")}
        for (server, suffix, name), row in situation.statuses().items()
    ]
    if not any(row["excluded"] for row in rows):
        return
    for suffix in sorted({one.suffix for one in shown.replicas}, key=str):
        replicas = [one for one in shown.replicas if one.suffix == suffix]
        fractional = Fractional(replicas, [one for one in shown.links if one.suffix == suffix], rows)
        for server in sorted(one.server for one in replicas):
            luck = {name: left_out - {MEMBER_OF} for name, left_out in fractional.by_luck(server).items()}
            luck = {name: left_out for name, left_out in luck.items() if left_out}  # memberOf: each server computes it
            if not luck:
                continue
            leave = "leaves" if len(luck) == 1 else "leave"
            named = " and ".join(f"{name} ({', '.join(sorted(left_out))})" for name, left_out in sorted(luck.items()))
            yield Finding(
                "LISTS_DIFFER",
                "warning",
                f"the agreements to {server} exclude different attributes: {named} {leave} out what another one sends, so "
                f"{server} misses such a change if it comes over that link first",
                server=server,
                suffix=suffix,
                evidence=tuple({"link": name, "left_out": sorted(left_out)} for name, left_out in sorted(luck.items())),
                fix=tuple(fractional.alike_first(server)),
            )
