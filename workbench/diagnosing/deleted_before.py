"""Modifications that only a log of operations names, of an entry that an older change had deleted: nothing can be lacking.

c deleted uid=g1, was restored from an older backup, and changed uid=g1, which was back there; then c was filled from a
    a, b, h   have the deletion: there the entry is gone, and the later change of c finds nothing
    c         has the data of a by now

A modification that a changelog records is looked for in the changelogs: it is written there even where its entry is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.collected.inputs import Input
from workbench.diagnosing.deleted_since import entries_of
from workbench.engine.positions import Positions, of_keys
from workbench.engine.rows import rows_where

if TYPE_CHECKING:
    from workbench.diagnosing.contents import Contents
    from workbench.diagnosing.data_sources import JudgedServer
    from workbench.fleet.told import Evidence
    from workbench.tables import Numbers

_FIRST_RDN = r"^(?:[^,\\]|\\.)*,\s*"

DELETED_BEFORE = "deleted_before"
"""The rule by which a server that does not have such a change lacks nothing."""

Has = Callable[["JudgedServer", Positions], "Numbers"]
"""For each change: is it shown that the server has it?"""


class _Record(NamedTuple):
    """A change by which an entry of a name ended, or one came to bear it. `entry`: its unique ID."""

    position: str
    operation: str
    entry: str


def deletions_before(evidence: Evidence, logs: Sequence[Input], asked: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Of modifications (position -> name of the entry) the deletion of that entry before them: its position, and the unique ID.

    None is given where a log records the modification, where an entry may have come to bear the name since, and where the log of
    operations of the server that took the modification begins behind the deletion.
    """
    recorded = entries_of(evidence, logs, set(asked)) if asked else {}
    names = {position: name.lower() for position, name in asked.items() if name and position not in recorded}
    if not names:
        return {}
    records = _records(evidence, logs, {*names.values()})
    found: dict[str, tuple[str, str]] = {}
    for position, name in names.items():
        before = [one for one in records.get(name, ()) if one.operation == "delete" and one.position < position]
        last = max(before, default=None)
        if last is None or not last.entry:
            continue
        others = [one for one in records[name] if one.operation != "delete" and one.position > last.position]
        if not others and not _came_back(evidence, name, last.position) and _seen_through(evidence, position, last):
            found[position] = last.position, last.entry
    return found


def has_deletion(
    server: JudgedServer, deletion: tuple[str, str], evidence: Evidence, has: Has, contents: Contents
) -> bool:
    """True if the server is shown to have a deletion, and its entries do not show the entry alive."""
    position, entry = deletion
    name = server.replica.server
    if position in contents.lacks.get(name, ()) or (name in contents.exports and contents.alive(name, entry)):
        return False
    return bool(has(server, of_keys(evidence.system, [position], evidence.numbers))[0])


def _records(evidence: Evidence, logs: Iterable[Input], names: set[str]) -> dict[str, list[_Record]]:
    """Name of an entry, in small letters -> the deletions of it, and what may have given the name to an entry, in all logs."""
    wanted, system = pa.array(sorted(names), pa.string()), evidence.system
    firsts = pa.array(sorted({name.partition(",")[0] for name in names}), pa.string())
    where = (pc.field("kind") == "change") & pc.field("operation").isin(["add", "delete", "modrdn"])
    renamed = pc.field("operation") == "modrdn"
    target = pc.utf8_lower(pc.field("target"))
    above = pc.replace_substring_regex(target, _FIRST_RDN, "", max_replacements=1)  # an entry below one brings it back
    where &= renamed | target.isin(wanted) | ((pc.field("operation") == "add") & above.isin(wanted))
    columns = ["operation", "target", "entry", "rename", "origin", "hi", "lo"]
    found: dict[str, list[_Record]] = {}
    for log in logs:
        for row in rows_where(evidence.case.parts("changes", log), columns, where).to_pylist():
            position = system.order_key(row["origin"], row["hi"], row["lo"])
            record = _Record(position, row["operation"], row["entry"] or "")
            if row["operation"] != "modrdn":
                name = row["target"].lower()
                name = name if name in names else re.sub(_FIRST_RDN, "", name, count=1)
                found.setdefault(name, []).append(record)
                continue
            first = next((one for one in firsts.to_pylist() if one in (row["rename"] or "").lower()), None)
            for name in names if first else ():
                if name.startswith(f"{first},"):
                    found.setdefault(name, []).append(record)
    return found


def _came_back(evidence: Evidence, name: str, deletion: str) -> bool:
    """True if a log of operations shows that an entry of that name, or one below it, was added behind the deletion."""
    target = pc.utf8_lower(pc.field("target"))
    where = (pc.field("operation") == "add") & (pc.field("position").is_null() | (pc.field("position") > deletion))
    where &= (target == name) | pc.ends_with(target, f",{name}")
    return len(evidence.told("applied", ["position"], where)) > 0


def _seen_through(evidence: Evidence, position: str, deletion: _Record) -> bool:
    """True if the log of operations of each server that took the modification goes back to the deletion."""
    took = (pc.field("position") == position) & (pc.field("outcome") == "applied")
    servers = {one.server for one in evidence.inputs if len(evidence.told("applied", ["position"], took, one=one))}
    made = evidence.system.moment(deletion.position)
    earlier = pc.field("at") <= made
    return bool(servers and made) and all(len(evidence.told("applied", ["at"], earlier, name)) for name in servers)


def without_deleted(
    rows: Sequence[Mapping[str, Any]],
    evidence: Evidence,
    servers: Mapping[str, JudgedServer],
    logs: Sequence[Input],
    has: Has,
    contents: Contents,
) -> list[Mapping[str, Any]]:
    """Those of some missing changes (server, position, operation, target) by which their server lacks nothing."""
    typed = evidence.system.typed
    mine = [row for row in rows if row["operation"] == "modify" and row["target"]]
    before = deletions_before(evidence, logs, {typed(row["position"]) or "": row["target"] for row in mine})
    return [
        row
        for row in mine
        if (deletion := before.get(typed(row["position"]) or ""))
        and has_deletion(servers[row["server"]], deletion, evidence, has, contents)
    ]
