"""Changes of entries that were deleted since on every server that had them: nothing of what they did can be lacking.

a deleted uid=g1 while c was down; c changed uid=g1 after its start, and then got the deletion
    a, b   refuse the change of c (32), for they have no such entry      they lack nothing: on c the entry is gone as well

b added uid=g2, changed it and deleted it; then b was restored from an older backup
    b      has never had that entry, and the others have it no more      it lacks neither the addition nor the deletion
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.known import Known
from workbench.engine.positions import of_keys
from workbench.rules.verdicts import ENTRIES_LACK, MISSING, PRESENT, REPLACED, SAYS, TOTAL, UNKNOWN, Verdict

if TYPE_CHECKING:
    from workbench.diagnosing.data_sources import JudgedServer
    from workbench.diagnosing.verdict_rows import Verdicts
    from workbench.fleet.told import Evidence

DELETED_SINCE = "deleted_since"
"""The rule by which a server that does not have such a change lacks nothing."""

_OF_ENTRIES = ("add", "modify")
"""A renaming leaves an entry of another name: what is deleted under the old one later tells nothing of it.

The deletion itself is not lacking where the addition is not: there the entry never was.
"""
_EVER = datetime.min.replace(tzinfo=UTC)
_COLUMNS = ("position", "operation", "target", "at")


def note_deleted_since(found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], known: Known) -> None:
    """Take such changes of these servers out of what is missing; where the list was cut, it stays as it is."""
    if "missing" in found.cut():
        return
    names = {one.replica.server for one in servers}
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in found.missing:
        if (
            row["suffix"] == evidence.suffix
            and row["server"] in names
            and row["operation"] in _OF_ENTRIES
            and row["target"]
        ):
            rows.setdefault(row["position"], []).append(row)
    # What entries lack is judged by them.
    asked = {
        position: mine[0]["target"] for position, mine in rows.items() if all(x["rule"] != ENTRIES_LACK for x in mine)
    }

    def known_of(position: str) -> tuple[set[str], set[str]]:
        open_ = _not_known(found, evidence, rows[position][0])
        return names - {row["server"] for row in rows[position]} - open_, open_

    gone = _gone(evidence, asked, known_of, _replaced(servers)) if asked else set()
    if not gone:
        return
    taken: list[Mapping[str, Any]] = [row for position in gone for row in rows[position]]
    taken += _deletions_of_these(found, evidence, taken)
    numbers = {id(row) for row in taken}
    found.missing[:] = [row for row in found.missing if id(row) not in numbers]
    found.totals["missing"] -= len(numbers)
    system = evidence.system
    for one in servers:
        for origin, some in one.missing.items():
            mine = (row["position"] for row in taken if (row["server"], row["origin"]) == (one.replica.server, origin))
            keys = sorted(filter(None, map(system.typed, mine)))
            if keys and len(some):
                one.missing[origin] = some.minus(of_keys(system, keys, evidence.numbers))


def _deletions_of_these(
    found: Verdicts, evidence: Evidence, taken: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The missing deletions of entries whose addition the same server does not need either."""
    added = {(row["server"], row["position"]) for row in taken if row["operation"] == "add"}
    targets = {row["target"].lower() for row in taken if row["operation"] == "add"}
    deletions = [
        row
        for row in found.missing
        if row["suffix"] == evidence.suffix
        and row["operation"] == "delete"
        and row["rule"] != ENTRIES_LACK
        and (row["target"] or "").lower() in targets
    ]
    additions = _additions(evidence, targets) if deletions else {}
    return [
        row
        for row in deletions
        if (before := _last_before(additions, row["target"], evidence.system.typed(row["position"]) or ""))
        and (row["server"], evidence.system.show(before)) in added
    ]


def _additions(evidence: Evidence, targets: Collection[str]) -> dict[str, list[str]]:
    """Name of an entry in small letters -> the changes that added one of that name."""
    names = pa.array(sorted(targets), pa.string())
    where = pc.utf8_lower(pc.field("target")).isin(names) & (pc.field("outcome") == "applied")
    where &= (pc.field("operation") == "add") & pc.field("position").is_valid()
    found: dict[str, list[str]] = {}
    for row in evidence.told("applied", ["position", "target"], where).to_pylist():
        found.setdefault(row["target"].lower(), []).append(row["position"])
    return found


def _last_before(additions: Mapping[str, Sequence[str]], target: str, position: str) -> str | None:
    """The last of these additions of an entry of that name before a change."""
    return max((key for key in additions.get(target.lower(), ()) if key < position), default=None)


def _not_known(found: Verdicts, evidence: Evidence, row: Mapping[str, Any]) -> set[str]:
    """The servers of which nothing tells whether they have a change."""
    return {
        one["server"]
        for one in found.unknown
        if (one["suffix"], one["origin"]) == (evidence.suffix, row["origin"])
        and one["from"] <= row["position"] <= one["to"]
    }


def without_entry(
    evidence: Evidence,
    position: str,
    told: Sequence[Verdict],
    servers: Sequence[JudgedServer],
    judge: Callable[[str], Mapping[str, Verdict]],
) -> list[Verdict]:
    """The verdicts of all servers on one change, with those that it is missing as present in effect where its entry is gone.

    `judge` gives those on another change, by server.
    """
    system = evidence.system
    open_ = {one.server for one in told if one.verdict == UNKNOWN}
    having = {one.server for one in told if one.verdict != MISSING} - open_
    if all(one.verdict != MISSING for one in told) or any(one.rule == ENTRIES_LACK for one in told):
        return [*told]
    about = evidence.described(of_keys(system, [position], evidence.numbers), evidence.inputs).get(position, {})
    shown = system.show(position)
    if not (target := about.get("target")):
        return [*told]
    lacking = {one.server for one in told if one.verdict == MISSING}
    if about["operation"] == "delete":
        added = _last_before(_additions(evidence, {target.lower()}), target, position)
        of_added = judge(added) if added else {}
        of_added = {
            one.server: one for one in without_entry(evidence, added or "", [*of_added.values()], servers, judge)
        }
        lacking &= {server for server, one in of_added.items() if one.rule == DELETED_SINCE}
    elif about["operation"] not in _OF_ENTRIES or not _gone(
        evidence, {shown: target}, lambda position: (having, open_), _replaced(servers)
    ):
        return [*told]
    return [
        one._replace(verdict=PRESENT, rule=DELETED_SINCE, says=SAYS[DELETED_SINCE]) if one.server in lacking else one
        for one in told
    ]


def _replaced(servers: Sequence[JudgedServer]) -> dict[str, datetime]:
    """When servers got the data that they have now, where other data was replaced by it."""
    ends = {one.replica.server: [x.ended for x in one.resets if x.kind in (TOTAL, REPLACED)] for one in servers}
    return {server: max(moments) for server, moments in ends.items() if moments}


def _gone(
    evidence: Evidence,
    targets: Mapping[str, str],
    known_of: Callable[[str], tuple[set[str], set[str]]],
    replaced: Mapping[str, datetime],
) -> set[str]:
    """Those of some changes, position -> target, whose entry was deleted later on every server that took them or has them.

    `known_of` gives the servers that have a change, and those of which that is not known. On these the entry has to be gone,
    whenever it was deleted: there the change may have been refused. What was done before the data was `replaced` went with it.
    """
    system, names = evidence.system, pa.array(sorted({target.lower() for target in targets.values()}), pa.string())
    where = (
        pc.utf8_lower(pc.field("target")).isin(names) & (pc.field("outcome") == "applied") & pc.field("at").is_valid()
    )
    done: dict[str, dict[str, list[tuple[datetime, str, str]]]] = {}
    for server in sorted({one.server for one in evidence.inputs}):
        for row in evidence.told("applied", _COLUMNS, where, server).to_pylist():
            if row["at"] <= replaced.get(server, _EVER):
                continue
            of_name = done.setdefault(row["target"].lower(), {})
            of_name.setdefault(server, []).append((row["at"], row["operation"], row["position"] or ""))
    found = set()
    for position, target in targets.items():
        key, lines = system.typed(position) or "", done.get(target.lower(), {})
        if not any(operation == "delete" for rows in lines.values() for _, operation, _ in rows):
            continue
        having, not_known = known_of(position)
        asked = having | {server for server, rows in lines.items() if any(of == key for _, _, of in rows)}
        deleted = asked and all(_ends_deleted(lines.get(server, ()), key, system.moment(key)) for server in asked)
        if deleted and all(_ends_deleted(lines.get(server, ()), key, _EVER) for server in not_known - asked):
            found.add(position)
    return found


def _ends_deleted(rows: Iterable[tuple[datetime, str, str]], position: str, made: datetime | None) -> bool:
    """True if the entry of that name was deleted after the change, and neither renamed before that nor added again after it.

    What bears the name after a renaming is another entry: its deletion tells nothing of the first one.
    """
    lines = sorted(rows)
    since = next((at for at, _, of in lines if of == position), made)
    later = [operation for at, operation, of in lines if since and at > since and of != position]
    return "modrdn" not in later and [what for what in later if what in ("add", "delete")][-1:] == ["delete"]
