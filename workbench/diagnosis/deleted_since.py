"""Changes of entries that were deleted since on every server that had them: nothing of what they did can be lacking.

a deleted uid=g1 while c was down; c changed uid=g1 after its start, and then got the deletion
    a, b   refuse the change of c (32), for they have no such entry      they lack nothing: on c the entry is gone as well

b added uid=g2, changed it and deleted it; then b was restored from an older backup
    b      has not had that entry since, and the others have it no more  it lacks neither the addition nor the deletion
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.positions import of_keys
from workbench.engine.selective_read import rows_at
from workbench.intake.inputs import Input
from workbench.rules.verdicts import ENTRIES_LACK, MISSING, PRESENT, REPLACED, SAYS, TOTAL, UNKNOWN, Reset, Verdict

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.topology.suffix_evidence import Evidence

DELETED_SINCE = "deleted_since"
"""The rule by which a server that does not have such a change lacks nothing."""
PROVED = (ENTRIES_LACK, "state_lacks", "dropped")
"""The rules by which a server says itself that it does not have a change: what it shows otherwise does not matter then."""
GONE_ALREADY = "gone_already"
"""The rule by which it lacks nothing of a deletion: its log shows that another one took the entry of that name."""

_OF_ENTRIES = ("add", "modify")
"""A renaming leaves an entry of another name: what is deleted under the old one later tells nothing of it.

The deletion itself is not lacking where the addition is not: there the entry never was.
"""
_EVER = datetime.min.replace(tzinfo=UTC)
Line = tuple[datetime, str, str]
"""What was done under a name: when, the operation, and its position."""
_COLUMNS = ("position", "operation", "target", "at")


def note_deleted_since(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input]
) -> None:
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

    gone = _gone(evidence, asked, known_of, servers) if asked else set()
    taken: list[Mapping[str, Any]] = [row for position in gone for row in rows[position]]
    taken += _deletions_of_these(found, evidence, taken) if taken else []
    lack_nothing(found, evidence, servers, taken)
    deletions = [
        row
        for row in found.missing
        if (row["suffix"], row["operation"]) == (evidence.suffix, "delete") and row["server"] in names
        if row["target"] and may_do_nothing(found, evidence, row)
    ]
    positions = {id(row): evidence.system.typed(row["position"]) or "" for row in deletions}
    told_by_id = entries_of(evidence, logs, {*positions.values()}) if deletions else {}
    deletions = [row for row in deletions if positions[id(row)] not in told_by_id]
    done = _done(evidence, {row["target"] for row in deletions}, _replaced(servers)) if deletions else {}
    filled = _filled(servers)
    gone_there = [
        row for row in deletions if _gone_already(done, row["target"], positions[id(row)], row["server"], filled)
    ]
    lack_nothing(found, evidence, servers, gone_there)


def entries_of(evidence: Evidence, logs: Iterable[Input], positions: Collection[str]) -> dict[str, str]:
    """Change -> the unique ID of its entry, where the record of any log tells it."""
    asked, found = of_keys(evidence.system, sorted(positions), evidence.numbers), dict[str, str]()
    for log in logs if len(asked) else ():
        for there, table in rows_at(evidence.case.parts("changes", log), asked, evidence.numbers, ["entry"]):
            entries = zip(there.keys(evidence.system, evidence.names), table["entry"].to_pylist(), strict=True)
            found.update((position, entry) for position, entry in entries if entry)
    return found


def missing_of(
    found: Verdicts, evidence: Evidence, servers: Iterable[JudgedServer], operation: str
) -> list[tuple[Mapping[str, Any], tuple[str, str]]]:
    """The missing changes of one operation on these servers, each with its server and position; none where the list was cut."""
    names, typed = {server.replica.server for server in servers}, evidence.system.typed
    rows = () if "missing" in found.cut() else found.missing
    return [
        (row, (row["server"], typed(row["position"]) or ""))
        for row in rows
        if (row["suffix"], row["operation"]) == (evidence.suffix, operation) and row["server"] in names
    ]


def may_do_nothing(found: Verdicts, evidence: Evidence, row: Mapping[str, Any]) -> bool:
    """False for a change of which the server itself shows that it does not have it: by its entries, or by its own words."""
    key = evidence.system.typed(row["position"]) or ""
    mine = (contents for contents in found.contents if contents.suffix == row["suffix"])
    return row["rule"] not in PROVED and not any(key in contents.lacks.get(row["server"], ()) for contents in mine)


def _gone_already(
    done: Mapping[str, Mapping[str, Sequence[Line]]],
    target: str,
    deletion: str,
    server: str,
    filled: Mapping[str, datetime],
) -> bool:
    """True if the last that the log of a server shows of an entry of this name is that another change deleted it.

    Of one whose data came whole from another server behind that: the last that all others show, for they came from one of them.
    """
    lines = done.get(target.lower(), {})
    asked = [lines[server]] if server in lines else [*lines.values()] if server in filled else []
    others = [[line for line in mine if line[2] != deletion] for mine in asked]
    until = datetime.max.replace(tzinfo=UTC) if server in lines else filled.get(server, _EVER)
    return bool(others) and all(
        any(operation == "delete" and position and at < until for at, operation, position in mine)
        and mine[-1][1] == "delete"  # what is done under the name behind that is done to an entry
        and _ends_deleted(mine, "", _EVER)
        for mine in others
    )


def _filled(servers: Sequence[JudgedServer]) -> dict[str, datetime]:
    """When the data of servers came whole from another one, where nothing else replaced them since."""
    last: dict[str, list[Reset]] = {
        one.replica.server: sorted(
            (x for x in one.resets if x.kind in (TOTAL, REPLACED)), key=lambda reset: reset.ended
        )
        for one in servers
    }
    return {server: resets[-1].began for server, resets in last.items() if resets and resets[-1].kind == TOTAL}


def lack_nothing(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], taken: Sequence[Mapping[str, Any]]
) -> None:
    """Take these rows out of what is missing on these servers."""
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
    done = _done(evidence, targets) if deletions else {}
    return [
        row
        for row in deletions
        if (before := _added_before(done, row["target"], evidence.system.typed(row["position"]) or ""))
        and (row["server"], evidence.system.show(before)) in added
    ]


def _done(
    evidence: Evidence, targets: Collection[str], since: Mapping[str, datetime] | None = None
) -> dict[str, dict[str, list[Line]]]:
    """Name of an entry in small letters -> server -> what its log shows that was done under this name, in the order of time.

    What a server did up to `since` is left out. A log that was collected twice holds each line twice: it counts once.
    """
    names = pa.array(sorted({target.lower() for target in targets}), pa.string())
    where = (
        pc.utf8_lower(pc.field("target")).isin(names) & (pc.field("outcome") == "applied") & pc.field("at").is_valid()
    )
    done: dict[str, dict[str, list[Line]]] = {}
    for server in sorted({one.server for one in evidence.inputs}):
        for row in evidence.told("applied", _COLUMNS, where, server).to_pylist():
            if row["at"] > (since or {}).get(server, _EVER):
                of_name = done.setdefault(row["target"].lower(), {})
                of_name.setdefault(server, []).append((row["at"], row["operation"], row["position"] or ""))
    return {name: {server: _each_once(lines) for server, lines in servers.items()} for name, servers in done.items()}


def _each_once(lines: Iterable[Line]) -> list[Line]:
    """These lines in the order of time, each operation once: what has no position is told apart by its time."""
    first: dict[tuple[str, str, datetime | None], Line] = {}
    for line in sorted(lines, key=lambda line: line[0]):
        at, operation, position = line
        first.setdefault((operation, position, None if position else at), line)
    return [*first.values()]


def _added_before(done: Mapping[str, Mapping[str, Sequence[Line]]], target: str, position: str) -> str | None:
    """The addition of the entry that a change deleted: in the log of who took both, nothing but changes lies between the two."""
    found = set()
    for lines in done.get(target.lower(), {}).values():
        before = [line for line in lines if line[1] != "modify"]
        at = next((number for number, (_, _, of) in enumerate(before) if of == position), 0)
        if at:
            found.add(before[at - 1][2] if before[at - 1][1] == "add" else "")
    return next(iter(found)) if len(found) == 1 else None


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
    rule, filled = DELETED_SINCE, _filled(servers)
    done = _done(evidence, {target}, _replaced(servers)) if about["operation"] == "delete" else {}
    by_id = bool(entries_of(evidence, evidence.inputs, [position]))
    if about["operation"] == "delete" and (
        already := set()
        if by_id
        else {
            one.server
            for one in told
            if one.server in lacking and one.rule not in PROVED
            if _gone_already(done, target, position, one.server, filled)
        }
    ):
        lacking, rule = already, GONE_ALREADY
    elif about["operation"] == "delete":
        added = _added_before(_done(evidence, {target}), target, position)
        of_added = judge(added) if added else {}
        of_added = {
            one.server: one for one in without_entry(evidence, added or "", [*of_added.values()], servers, judge)
        }
        lacking &= {server for server, one in of_added.items() if one.rule == DELETED_SINCE}
    elif about["operation"] not in _OF_ENTRIES or not _gone(
        evidence, {shown: target}, lambda position: (having, open_), servers
    ):
        return [*told]
    return [one._replace(verdict=PRESENT, rule=rule, says=SAYS[rule]) if one.server in lacking else one for one in told]


def _replaced(servers: Sequence[JudgedServer]) -> dict[str, datetime]:
    """When servers got the data that they have now, where other data was replaced by it."""
    ends = {one.replica.server: [x.ended for x in one.resets if x.kind in (TOTAL, REPLACED)] for one in servers}
    return {server: max(moments) for server, moments in ends.items() if moments}


def _gone(
    evidence: Evidence,
    targets: Mapping[str, str],
    known_of: Callable[[str], tuple[set[str], set[str]]],
    servers: Sequence[JudgedServer],
) -> set[str]:
    """Those of some changes, position -> target, whose entry was deleted later on every server that took them or has them.

    `known_of` gives the servers that have a change, and those of which that is not known. On these the entry has to be gone,
    whenever it was deleted: there the change may have been refused. What was done before the data was replaced went with it; an
    entry that was added and deleted before that is nowhere all the same, but where the new data may be of a moment in between.
    """
    replaced, filled = _replaced(servers), _filled(servers)
    system, done = evidence.system, _done(evidence, {*targets.values()}, replaced)
    ever = _done(evidence, {*targets.values()}) if replaced else done
    found = set()
    for position, target in targets.items():
        key, lines = system.typed(position) or "", done.get(target.lower(), {})
        passed = {server for server, rows in ever.get(target.lower(), {}).items() if _came_and_went(rows, key)}
        if not passed and not any(operation == "delete" for rows in lines.values() for _, operation, _ in rows):
            continue
        having, not_known = known_of(position)
        asked = having | {server for server, rows in lines.items() if any(of == key for _, _, of in rows)}
        deleted = (asked or passed) and all(
            _ends_deleted(lines.get(server, ()), key, system.moment(key)) for server in asked
        )
        open_ = not_known - asked - (passed & filled.keys())
        if deleted and all(_ends_deleted(lines.get(server, ()), key, _EVER) for server in open_):
            found.add(position)
    return found


def _came_and_went(lines: Sequence[Line], position: str) -> bool:
    """True if these lines show the addition of the entry that the change is of, and as the next of its kind its deletion."""
    at = next((number for number, (_, _, of) in enumerate(lines) if of == position), None)
    if at is None:
        return False
    before = [what for _, what, _ in lines[: at + 1] if what in ("add", "delete", "modrdn")]
    after = [what for _, what, _ in lines[at + 1 :] if what in ("add", "delete", "modrdn")]
    return before[-1:] == ["add"] and after[:1] == ["delete"]


def _ends_deleted(lines: Iterable[Line], position: str, made: datetime | None) -> bool:
    """True if the entry of that name was deleted after the change, and neither renamed before that nor added again after it.

    What bears the name after a renaming is another entry: its deletion tells nothing of the first one. So it is where one was
    added while there was one already: they were made at the same time on two servers, and one of them lost the name. What bore
    the name before, and was deleted or renamed before the change, counts for nothing.
    """
    mine = list(_of_this_entry(lines))
    since = next((at for at, _, of in mine if of == position), made)
    if since is None:
        return False
    before = [at for at, what, _ in mine if at < since and what in ("delete", "modrdn")]
    whole = [what for at, what, _ in mine if what in ("add", "delete") and not (before and at <= before[-1])]
    later = [what for at, what, of in mine if at > since and of != position]
    ends = [what for what in later if what in ("add", "delete")]
    at_once = ("add", "add") in pairwise(whole) or (since > _EVER and ends[:1] == ["add"])
    return "modrdn" not in later and ends[-1:] == ["delete"] and not at_once


def _of_this_entry(lines: Iterable[Line]) -> Iterator[Line]:
    """These but for deletions that are older than the addition before them: they came late, and are of a former entry."""
    born = ""
    for line in lines:
        _, what, position = line
        if what != "delete" or position >= born:
            yield line
        born = position if what == "add" else born
