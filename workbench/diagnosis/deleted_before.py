"""Modifications that only a log of operations names, of an entry that an older change had deleted: nothing can be lacking.

c deleted uid=g1, was restored from an older backup, and changed uid=g1, which was back there; then c was filled from a
    a, b, h   have the deletion: there the entry is gone, and the later change of c finds nothing
    c         has the data of a by now

A modification that a changelog records is looked for in the changelogs: it is written there even where its entry is gone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.deleted_since import entries_of
from workbench.engine.positions import Positions, of_keys
from workbench.engine.selective_read import changes_of, rows_where
from workbench.intake.inputs import Input

if TYPE_CHECKING:
    from workbench.diagnosis.contents import Contents
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.tables import Numbers
    from workbench.topology.suffix_evidence import Evidence

_RDN = r"(?:[^,\\]|\\.)+"
_FIRST_RDN = rf"^{_RDN},\s*"
_NEW_NAME = r"(?:^|\n)newrdn: *(?P<rdn>[a-z0-9.-]+=[^ ,+\\\"\n][^,+\\\"\n]*)(?:\n|$)"
"""A new name that is spelt plainly; what any other one is the same as, nobody knows."""
_ALWAYS = "\U0010ffff"
"""Behind all positions."""

DELETED_BEFORE = "deleted_before"
"""The rule by which a server that does not have such a change lacks nothing."""

Has = Callable[["JudgedServer", Positions], "Numbers"]
"""For each change: is it shown that the server has it?"""


class Deletion(NamedTuple):
    """The deletion of an entry. `entry`: its unique ID."""

    position: str
    entry: str


@dataclass
class _Given:
    """The last changes by which entries came to bear names.

    names     name of an entry, in small letters -> the last addition of one of that name, or below it
    rdns      part of a name -> the last renaming to it; empty: to a name that nobody knows
    renamings the renamings of which records tell to what name
    """

    names: dict[str, str] = field(default_factory=dict)
    rdns: dict[str, str] = field(default_factory=dict)
    renamings: list[pa.ChunkedArray] = field(default_factory=list)

    def since(self, name: str, deletion: str) -> bool:
        """True if an entry may have come to bear the name behind its deletion."""
        renamed = max(self.rdns.get(rdn, "") for rdn in ("", *_parts(name)))
        return max(self.names.get(name, ""), renamed) > deletion

    def note_added(self, targets: pa.ChunkedArray, positions: pa.ChunkedArray, wanted: pa.Array) -> None:
        """Note additions: what is added below a name brings that back."""
        left = pc.utf8_lower(targets)
        while True:
            here = pc.is_in(left, value_set=wanted)
            _note(self.names, left.filter(here), positions.filter(here))
            above = pc.replace_substring_regex(left, _FIRST_RDN, "", max_replacements=1)
            if above.equals(left):
                return
            left = above

    def note_renamed(self, renames: pa.ChunkedArray, positions: pa.ChunkedArray, wanted: pa.Array) -> None:
        """Note renamings that records tell of."""
        plain = pc.extract_regex(pc.utf8_lower(renames), _NEW_NAME)
        to = pc.fill_null(pc.utf8_rtrim_whitespace(pc.struct_field(plain, "rdn")), "")
        self.renamings.append(positions.filter(pc.not_equal(to, "")))
        here = pc.is_in(to, value_set=wanted)
        _note(self.rdns, to.filter(here), positions.filter(here))


def _parts(name: str) -> list[str]:
    return [part.strip() for part in re.findall(_RDN, name)]


def _note(last: dict[str, str], names: pa.ChunkedArray, positions: pa.ChunkedArray) -> None:
    for name, position in zip(names.to_pylist(), positions.to_pylist(), strict=True):
        last[name] = max(position or _ALWAYS, last.get(name, ""))


def deletions_before(evidence: Evidence, logs: Sequence[Input], asked: Mapping[str, str]) -> dict[str, Deletion]:
    """Of modifications (position -> name of the entry) the deletion of that entry before them.

    None is given where a log records the modification, where an entry may have come to bear the name since, and where the log of
    operations of the server that took the modification begins behind the deletion.
    """
    recorded = entries_of(evidence, logs, set(asked)) if asked else {}
    names = {position: name.lower() for position, name in asked.items() if name and position not in recorded}
    if not names:
        return {}
    deletions, given = _from_records(evidence, logs, {*names.values()})
    found: dict[str, Deletion] = {}
    for position, name in names.items():
        mine = deletions.get(name, [])
        at = bisect_left(mine, Deletion(position, ""))
        if at and mine[at - 1].entry:
            found[position] = mine[at - 1]
    if found:
        _add_lines(evidence, given, {*names.values()}, min(found.values()).position)
    found = {position: one for position, one in found.items() if not given.since(names[position], one.position)}
    seen = _seen_through(evidence, found) if found else set()
    return {position: one for position, one in found.items() if position in seen}


def has_deletions(
    server: JudgedServer, deletions: Iterable[Deletion], evidence: Evidence, has: Has, contents: Contents
) -> set[Deletion]:
    """Those deletions that the server is shown to have, and that its entries do not contradict: they show the entry alive."""
    name = server.replica.server
    left = {one for one in deletions if one.position not in contents.lacks.get(name, ())}
    if left and name in contents.exports:
        alive = contents.alive_of(name, {one.entry for one in left})
        left = {one for one in left if one.entry not in alive}
    some = of_keys(evidence.system, {one.position for one in left}, evidence.numbers)
    there = {*some[np.flatnonzero(has(server, some))].keys(evidence.system, evidence.names)} if left else set()
    return {one for one in left if one.position in there}


def _from_records(
    evidence: Evidence, logs: Iterable[Input], names: Collection[str]
) -> tuple[dict[str, list[Deletion]], _Given]:
    """Name of an entry, in small letters -> the deletions of it in all logs, in order; and what gave the names to entries."""
    wanted = pa.array(sorted(names), pa.string())
    rdns = pa.array(sorted({"", *(rdn for name in names for rdn in _parts(name))}), pa.string())
    target, operation = pc.utf8_lower(pc.field("target")), pc.field("operation")
    where = operation.isin(["add", "modrdn"]) | ((operation == "delete") & target.isin(wanted))
    columns = ["operation", "target", "entry", "rename", "position"]
    deletions, given = dict[str, set[Deletion]](), _Given()
    for part in (part for log in logs for part in evidence.case.parts("changes", log)):
        rows = rows_where([part], columns, (pc.field("kind") == "change") & where)
        added, renamed, deleted = (rows.filter(pc.equal(rows["operation"], one)) for one in ("add", "modrdn", "delete"))
        given.note_added(added["target"], added["position"], wanted)
        given.note_renamed(renamed["rename"], renamed["position"], rdns)
        for row in deleted.to_pylist():
            deletions.setdefault(row["target"].lower(), set()).add(Deletion(row["position"], row["entry"] or ""))
    return {name: sorted(mine) for name, mine in deletions.items()}, given


def _add_lines(evidence: Evidence, given: _Given, names: Collection[str], since: str) -> None:
    """Note what logs of operations show behind a position. To which name a renaming leads, only its record tells."""
    wanted, position = pa.array(sorted(names), pa.string()), pc.field("position")
    where = pc.field("operation").isin(["add", "modrdn"]) & (position.is_null() | (position > since))
    told = pa.chunked_array([x for some in given.renamings for x in some.chunks], pa.string())
    for one in evidence.inputs:
        rows = evidence.told("applied", ["operation", "target", "position"], where, one=one)
        if not len(rows):
            continue
        added, renamed = (rows.filter(pc.equal(rows["operation"], kind)) for kind in ("add", "modrdn"))
        given.note_added(added["target"], added["position"], wanted)
        to = pc.unique(changes_of(evidence.system, renamed["position"]))
        to = to.filter(pc.invert(pc.is_in(to, value_set=told)))
        given.rdns[""] = max(given.rdns.get("", ""), *(name or _ALWAYS for name in to.to_pylist()), "")


def _seen_through(evidence: Evidence, asked: Mapping[str, Deletion]) -> set[str]:
    """Those modifications of which the log of operations of each server that took one goes back to the deletion."""
    moments = {position: evidence.system.moment(one.position) for position, one in asked.items()}
    until = max(filter(None, moments.values()), default=None)
    took = pc.field("position").isin(pa.array(sorted(asked), pa.string())) & (pc.field("outcome") == "applied")
    seen, unseen = set[str](), set[str]()
    for server in {one.server for one in evidence.inputs} if until else ():
        taken = {*evidence.told("applied", ["position"], took, server)["position"].to_pylist()}
        if taken:
            earlier = evidence.told("applied", ["at"], pc.field("at") <= until, server)["at"]
            begins = pc.min(earlier).as_py() if len(earlier) else None
            short = {one for one in taken if not begins or not moments[one] or begins > moments[one]}
            seen, unseen = seen | taken, unseen | short
    return seen - unseen


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
    positions = {
        id(row): typed(row["position"]) or "" for row in rows if row["operation"] == "modify" and row["target"]
    }
    asked = {positions[id(row)]: row["target"] for row in rows if id(row) in positions}
    before = deletions_before(evidence, logs, asked)
    mine = [row for row in rows if positions.get(id(row)) in before]
    there = {
        name: has_deletions(
            servers[name],
            {before[positions[id(row)]] for row in mine if row["server"] == name},
            evidence,
            has,
            contents,
        )
        for name in {row["server"] for row in mine}
    }
    return [row for row in mine if before[positions[id(row)]] in there[row["server"]]]
