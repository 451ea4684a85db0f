"""Agreements to one server that do not exclude the same attributes, and what came to it without them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.contents import Contents
from workbench.diagnosis.fractional import Unlike, unlike_lists
from workbench.diagnosis.only_holders import keep_only_holder
from workbench.model import ITEMS_SHOWN, Finding, counted, ends, listed, step
from workbench.rules.contents import plain_name

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_MOST = 10_000
"""Changes of such attributes that are looked at."""


def lists_differ(context: DetectorContext) -> Iterator[Finding]:
    """A server that gets a value of some attributes or not, by which of its suppliers sends the change first."""
    for contents in context.verdicts.contents:
        for server in sorted(one.server for one in contents.alike.replicas):
            if unlike := contents.fractional.by_luck(server):
                yield _told(context, contents, server, unlike)


@dataclass
class _Stripped:
    """Changes that came to a server without attributes.

    lacking  change -> the attributes that it came without
    whole    other server -> those of the changes that its log has with these attributes
    without  other server -> those that its log has without them, too
    """

    lacking: dict[str, set[str]] = field(default_factory=dict)
    whole: dict[str, set[str]] = field(default_factory=dict)
    without: dict[str, set[str]] = field(default_factory=dict)


def _told(context: DetectorContext, contents: Contents, server: str, unlike: Sequence[Unlike]) -> Finding:
    which = "on the ways to" if any(one.by for one in unlike) else "to"
    names = frozenset().union(*(one.left_out for one in unlike))
    stripped = _came_without(context, contents, server, names)
    changes = sorted(stripped.lacking)
    lacked = listed(sorted(set().union(*stripped.lacking.values())), "or") if changes else ""
    these = f"{counted(len(changes))} without {lacked}" if changes else ""
    logged = (
        f". {server} got {these}, as its changelog shows: {ends(changes[0], changes[-1])}{_in_other_logs(stripped)}"
        if changes
        else ""
    )
    unlike_entries = {
        one.entry for one in contents.differences if server in one.servers and plain_name(one.attribute) in names
    }
    root = f"{server} got {these}: the agreements {which} it exclude different attributes" if changes else ""
    if unlike_entries and not changes:
        some = "1 entry of it differs" if len(unlike_entries) == 1 else f"{len(unlike_entries):,} entries of it differ"
        root = f"the agreements {which} {server} exclude different attributes, in which {some}"
    return Finding(
        "LISTS_DIFFER",
        "error" if root else "warning",
        f"the agreements {which} {server} exclude different attributes: {unlike_lists(unlike)}. What a change "
        f"does to such an attribute does not reach {server} if it comes over that agreement first{logged}",
        server=server,
        suffix=contents.suffix,
        items=tuple(changes[:ITEMS_SHOWN]),
        evidence=tuple(
            {"server": one.link.supplier, "link": one.link.name, "left_out": sorted(one.left_out)} for one in unlike
        ),
        root=root,
        fix=(
            step(
                f"set one list of excluded attributes in all agreements {which} {server}: "
                "nsDS5ReplicatedAttributeList, and nsDS5ReplicatedAttributeListTotal where it is set",
                f"else what {server} gets depends on which of them comes first",
            ),
            *([_written_again(context, contents, server, stripped, lacked)] if changes else []),
        ),
    )


def _in_other_logs(stripped: _Stripped) -> str:
    """What the logs of the other servers show of these changes, as the end of a sentence."""
    clauses = []
    for other in sorted({*stripped.whole, *stripped.without}):
        whole, without = len(stripped.whole.get(other, ())), len(stripped.without.get(other, ()))
        shown = [f"{whole:,} of them whole"] if whole else []
        shown += [f"{without:,} of them without, too"] if without else []
        clauses.append(f"; the changelog of {other} has {', and '.join(shown)}")
    return "".join(clauses)


def _written_again(
    context: DetectorContext, contents: Contents, server: str, stripped: _Stripped, lacked: str
) -> Mapping[str, Any]:
    """Where to write the values again: on a server that has them and makes changes of its own."""
    makers = {one.server for one in contents.alike.replicas if one.origin}
    # A server whose entries differ in such an attribute may lack the value by now.
    unsure = {
        name
        for one in contents.differences
        if one.attribute.lower() in set().union(*stripped.lacking.values())
        for name in one.servers
    }
    shown = {name: some for name, some in stripped.whole.items() if name in makers and some}
    has_all = [name for name, some in sorted(shown.items()) if len(some) == len(stripped.lacking)]
    best = next((name for name in has_all if name not in unsure), None) or next(iter(has_all), None)
    again = f"then write the present values of {lacked} of these entries once more"
    if best:
        lacking = {row["server"] for row in context.verdicts.missing if row["suffix"] == contents.suffix}
        may_fill = best not in lacking and keep_only_holder(context, server, contents.suffix) is None
        repair = f"{again} on {best}{f', or initialise {server} from {best}' if may_fill else ''}"
    elif shown:
        each = listed([f"{name} for {len(some):,}" for name, some in sorted(shown.items())])
        repair = (
            f"{again}, each on a server whose changelog has the change whole: {each} of the {len(stripped.lacking):,}"
        )
    else:
        repair = f"{again}, on a supplier whose entries show them: compare the entries (`workbench collect --entries`)"
    judged = {*stripped.whole, *stripped.without, *contents.exports, server}
    behind = [
        one.server
        for one in contents.alike.replicas
        if one.server not in judged and server in context.linked.above(one.server, contents.suffix, only_running=False)
    ]
    others = sorted(name for name, some in stripped.without.items() if some)
    cautions = []
    if others:
        have = "has" if len(others) == 1 else "have"
        cautions.append(
            f"{listed(others)} {have} changes without {lacked}, too: what is written once more reaches them, an "
            f"initialisation of {server} does not mend them"
        )
    if behind:
        cautions.append(f"{listed(sorted(behind))}, of which no changelog was collected, may lack the same")
    why = f"no session sends a change again: with lists that are alike {server} gets what is changed from then on"
    return step(repair, why, "; ".join(cautions)) if cautions else step(repair, why)


def _came_without(context: DetectorContext, contents: Contents, server: str, names: frozenset[str]) -> _Stripped:
    """The changes of which the log of a server does not show what those of others show that they did to these attributes.

    Each with those attributes. Where the server's entries were collected, these tell it: none is given if they do not differ in
    such an attribute.
    """
    found = _Stripped()
    shown = {one.attribute.lower() for one in contents.differences if server in one.servers}
    if server in contents.exports and not shown & names:
        return found
    pattern = rf"^(?:add|replace|delete): ({'|'.join(map(re.escape, sorted(names)))})(?:;.*)?$"
    touches = re.compile(pattern, re.I | re.M)

    def touched(where: pc.Expression, name: str) -> Iterator[dict[str, set[str]]]:
        """Change -> the attributes that the log of a server shows it to touch, batch by batch."""
        about = {"snapshot": context.topology.snapshot, "suffix": contents.suffix}
        for batch in context.rows("changes", ["position", "body"], where, server=name, **about):
            rows = batch.to_pylist()
            yield {row["position"]: {name.lower() for name in touches.findall(row["body"] or "")} for row in rows}

    def of(positions: Sequence[str]) -> pc.Expression:
        written = pc.field("operation").isin(["add", "modify"])
        return pc.field("position").isin(pa.array(positions, pa.string())) & written

    where = pc.match_substring_regex(pc.field("body"), f"(?m){pattern}", ignore_case=True)
    others = sorted(one.server for one in contents.alike.replicas if one.server != server and one.log)
    looked = 0
    for other in others:
        for asked in touched(where, other):
            looked += len(asked)
            for own in touched(of([*asked]), server):
                for position, mine in own.items():
                    if left := asked[position] - mine:
                        found.lacking.setdefault(position, set()).update(left)
        if looked > _MOST:
            break
    for other in others if found.lacking else ():
        for theirs in touched(of([*found.lacking]), other):
            for position, some in theirs.items():
                shows = found.whole if found.lacking[position] <= some else found.without
                shows.setdefault(other, set()).add(position)
    return found
