"""Agreements to one server that do not exclude the same attributes, and what came to it without them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosing.contents import Contents
from workbench.diagnosing.fractional import Unlike, unlike_lists
from workbench.model import ITEMS_SHOWN, Finding, counted, listed, step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation

_MOST = 10_000
"""Changes of such attributes that are looked at."""


def lists_differ(situation: Situation) -> Iterator[Finding]:
    """A server that gets a value of some attributes or not, by which of its suppliers sends the change first."""
    for contents in situation.verdicts.contents:
        for server in sorted(one.server for one in contents.alike.replicas):
            if unlike := contents.fractional.by_luck(server):
                yield _told(situation, contents, server, unlike)


def _told(situation: Situation, contents: Contents, server: str, unlike: Sequence[Unlike]) -> Finding:
    which = "on the ways to" if any(one.by for one in unlike) else "to"
    names = frozenset().union(*(one.left_out for one in unlike))
    lacking = _came_without(situation, contents, server, names)
    without = sorted(lacking)
    lacked = listed(sorted(set().union(*lacking.values())), "or") if lacking else ""
    these = f"{counted(len(without))} without {lacked}" if without else ""
    logged = (
        f". {server} got {these}, as its changelog shows: {without[0]} to {without[-1]}; those of its suppliers have them whole"
        if without
        else ""
    )
    return Finding(
        "LISTS_DIFFER",
        "error" if without else "warning",
        f"the agreements {which} {server} exclude different attributes: {unlike_lists(unlike)}. What a change "
        f"does to such an attribute does not reach {server} if it comes over that agreement first{logged}",
        server=server,
        suffix=contents.suffix,
        items=tuple(without[:ITEMS_SHOWN]),
        evidence=tuple(
            {"server": one.link.supplier, "link": one.link.name, "left_out": sorted(one.left_out)} for one in unlike
        ),
        root=f"{server} got {these}: the agreements {which} it exclude different attributes" if without else "",
        fix=(
            step(
                f"set one list of excluded attributes in all agreements {which} {server}: "
                "nsDS5ReplicatedAttributeList, and nsDS5ReplicatedAttributeListTotal where it is set",
                f"else what {server} gets depends on which of them comes first",
            ),
            *(
                [
                    step(
                        f"then write the present values of {lacked} of these entries once more on a supplier, or initialise "
                        f"{server}",
                        f"no session sends a change again: with lists that are alike {server} gets what is changed from then on",
                        f"the servers behind {server} lack the same",
                    )
                ]
                if without
                else []
            ),
        ),
    )


def _came_without(situation: Situation, contents: Contents, server: str, names: frozenset[str]) -> dict[str, set[str]]:
    """The changes of which the log of a server does not show what those of others show that they did to these attributes.

    Each with those attributes. Where the server's entries were collected, these tell it: none is given if they do not differ in
    such an attribute.
    """
    shown = {one.attribute.lower() for one in contents.differences if server in one.servers}
    if server in contents.exports and not shown & names:
        return {}
    pattern = rf"^(?:add|replace|delete): ({'|'.join(map(re.escape, sorted(names)))})(?:;.*)?$"
    touches = re.compile(pattern, re.I | re.M)

    def touched(body: str | None) -> set[str]:
        return {name.lower() for name in touches.findall(body or "")}

    where = pc.match_substring_regex(pc.field("body"), f"(?m){pattern}", ignore_case=True)
    found: dict[str, set[str]] = {}
    looked = 0
    for other in sorted(one.server for one in contents.alike.replicas if one.server != server and one.log):
        about = {"snapshot": situation.topology.snapshot, "suffix": contents.suffix}
        for batch in situation.rows("changes", ["position", "body"], where, server=other, **about):
            asked = {row["position"]: touched(row["body"]) for row in batch.to_pylist()}
            looked += len(asked)
            mine = pc.field("operation").isin(["add", "modify"])
            here = pc.field("position").isin(pa.array([*asked], pa.string())) & mine
            for own in situation.rows("changes", ["position", "body"], here, server=server, **about):
                for row in own.to_pylist():
                    if left := asked[row["position"]] - touched(row["body"]):
                        found.setdefault(row["position"], set()).update(left)
        if looked > _MOST:
            break
    return found
