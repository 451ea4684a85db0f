"""Changes that a link passed on without an attribute, as two logs prove: the link left it out then, whatever its list is now.

log of a    6b083849000000010000 modify uid=anna: telephoneNumber, modifiersName, modifyTimestamp
log of h    6b083849000000010000 modify uid=anna: modifiersName, modifyTimestamp
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import STRIPS_WRITER

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


Place = tuple[str, str | None, str]
"""A server, a suffix and the position of a change."""

_BY_A_LINK = "a link left it out"


def name_left_out(context: DetectorContext, rows: Sequence[dict[str, Any]]) -> set[Place]:
    """Say so in `says` and `reasons` of rows of changes that entries lack: of the server, or of all that send to it.

    Returns the places whose own log has such a change without the attribute.
    """
    cut_short: set[Place] = set()
    touched = _touched(context, sorted({row["position"] for row in rows}))
    differing = _differing(context)
    for row in rows:
        place = row["server"], row["suffix"], row["position"]
        logs = touched.get((row["suffix"], row["position"]), {})
        feeding = {
            link.supplier for link in context.topology.links if (link.consumer, link.suffix) == place[:2] and link.runs
        }
        at = [row["server"]] if row["server"] in logs else sorted(feeding)
        if not at or not all(name in logs for name in at):
            continue
        named = differing.get(place, {})
        lost = named.keys() - frozenset[str]().union(*(logs[name] for name in at))
        whole = next((name for name in sorted(logs) if lost and lost <= logs[name]), None)
        if whole:
            own = at == [row["server"]]
            # Of a server that need not have the attribute nothing is missing: what another one lacks is not to be had there.
            cut_short |= {(name, *place[1:]) for name, attributes in logs.items() if not lost <= attributes}
            whose = "its log has" if own else f"the log of {at[0]}, which sends to it, has"
            names = ", ".join(sorted(named[low] for low in lost))
            row["says"] = f"{whose} the change without {names}, which the log of {whole} has: {_BY_A_LINK}"
            row["reasons"] = [row["says"]]
    return cut_short


def left_out_by_links(missing: Sequence[Mapping[str, Any]]) -> set[Place]:
    """Of missing changes those that a link passed on without an attribute, as `name_left_out` says."""
    rows = [row for row in missing if (row.get("reasons") or [""])[0].endswith(_BY_A_LINK)]
    return {(row["server"], row["suffix"], row["position"]) for row in rows}


def left_out_whole(
    context: DetectorContext, server: str, suffix: str | None, positions: Collection[str]
) -> frozenset[str]:
    """Those of these changes that did nothing but what a link on a way to the server leaves out, and another one sends."""
    strips = {
        (file.server, place)
        for file in context.inputs
        if file.snapshot == context.topology.snapshot
        for place in file.facts.get(STRIPS_WRITER, {})
    }
    lists = [
        unlike.left_out
        for contents in context.verdicts.contents
        if contents.suffix == suffix
        for unlike in contents.fractional.by_luck(server)
        if (unlike.link.supplier, f"{suffix or ''} {unlike.link.name}") in strips
    ]
    if not lists or not positions:
        return frozenset()
    touched = _touched(context, sorted(positions))
    return frozenset(
        position
        for position in positions
        if (logs := touched.get((suffix, position)))
        and all(names and any(names <= left_out for left_out in lists) for names in logs.values())
    )


def name_only_who_has_it(missing: Sequence[dict[str, Any]], cut_short: Collection[Place]) -> None:
    """Take servers out of `held_by` of missing changes that miss them too.

    A log that has the change whole stays named if there is no other, whatever the entries of its server lack: it can still be
    sent from there. One that has it without an attribute (`cut_short`) is never named.
    """
    lacking = {(row["server"], row["suffix"], row["position"]) for row in missing}
    for row in missing:
        whole = [name for name in row["held_by"] if (name, row["suffix"], row["position"]) not in cut_short]
        row["held_by"] = [name for name in whole if (name, row["suffix"], row["position"]) not in lacking] or whole


def _touched(
    context: DetectorContext, positions: Sequence[str]
) -> Mapping[tuple[str | None, str], Mapping[str, frozenset[str]]]:
    """Suffix and position of a modification -> server -> the attributes that its log shows of it."""
    found: dict[tuple[str | None, str], dict[str, frozenset[str]]] = {}
    where = pc.field("position").isin(pa.array(positions, pa.string())) & (pc.field("operation") == "modify")
    for one in context.topology.replicas if positions else ():
        batches = context.rows(
            "changes",
            ["position", "body"],
            where,
            snapshot=context.topology.snapshot,
            server=one.server,
            suffix=one.suffix,
        )
        for row in (row for batch in batches if one.log for row in batch.to_pylist()):
            names = context.topology.proving.touched(row["body"] or "")
            found.setdefault((one.suffix, row["position"]), {})[one.server] = names
    return found


def _differing(context: DetectorContext) -> Mapping[Place, Mapping[str, str]]:
    """Server, suffix and change -> the attributes whose values by it the entry lacks: in small letters, and as written."""
    found: dict[Place, dict[str, str]] = {}
    for contents in context.verdicts.contents:
        for one in contents.differences:
            for server in one.servers if one.position and one.attribute else ():
                key = server, contents.suffix, context.topology.system.show(one.position or "")
                found.setdefault(key, {})[one.attribute.lower()] = one.attribute
    return found
