"""Changes of an entry that was deleted later wherever it was, as its unique ID tells: nothing of them can be lacking.

bern added uid=n with the ID 7, deleted it, and added uid=n again, with the ID 8
    alba    never got the addition of 7, and refused its deletion (32): it has 8 like all others, and lacks nothing

By its name nobody could tell that: an entry of that name is there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.deleted_since import DELETED_SINCE, entries_of, lack_nothing
from workbench.engine.selective_read import rows_where
from workbench.intake.inputs import Input
from workbench.rules.verdicts import ENTRIES_LACK, MISSING, PRESENT, SAYS, SKIPPED, Verdict

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.topology.suffix_evidence import Evidence

_OF_ENTRIES = ("add", "modify")
_Ends = tuple[dict[str, str], dict[str, str]]
"""Unique ID -> the change that added the entry; and its last deletion."""


def note_deleted_by_id(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input]
) -> None:
    """Take such changes of these servers out of what is missing; where the list was cut, it stays as it is."""
    names, typed = {server.replica.server for server in servers}, evidence.system.typed
    rows = [
        (row, typed(row["position"]) or "")
        for row in (() if "missing" in found.cut() else found.missing)
        if (row["suffix"], row["server"] in names) == (evidence.suffix, True) and row["rule"] != ENTRIES_LACK
        if row["operation"] in (*_OF_ENTRIES, "delete")
    ]
    entries = entries_of(evidence, logs, {key for _, key in rows}) if rows else {}
    added, deleted = _ends(evidence, logs, {*entries.values()}) if entries else ({}, {})
    lacking: dict[str, set[str]] = {}
    refused: dict[str, set[str]] = {}
    for row, key in rows:
        lacking.setdefault(key, set()).add(row["server"])
        if row["rule"] == SKIPPED:
            refused.setdefault(key, set()).add(row["server"])
    open_: dict[str, list[tuple[str, str, str]]] = {}
    for of, begin, until in ((found.unknown, "from", "to"), (found.pending, "first", "last")) if deleted else ():
        for row in of:
            if row["suffix"] == evidence.suffix:
                open_.setdefault(row["origin"], []).append((row["server"], row[begin], row[until]))

    def without(key: str) -> set[str]:
        """The servers that are not known to have a change."""
        shown, stretches = evidence.system.show(key), open_.get(evidence.system.origin_of(key), ())
        return lacking.get(key, set()) | {server for server, begin, until in stretches if begin <= shown <= until}

    needless: dict[str, set[str]] = {}
    for row, key in rows:
        end = deleted.get(entries.get(key, ""), "")
        if row["operation"] in _OF_ENTRIES and end > key and key not in needless:
            needless[key] = _needless(lacking[key], names, without(end), refused.get(end, set()))
    for row, key in rows:
        addition = added.get(entries.get(key, ""), "")
        if row["operation"] == "delete" and addition:
            done = refused.get(key, set()) & needless.get(addition, set())
            needless.setdefault(key, set()).update(done)
    lack_nothing(found, evidence, servers, [row for row, key in rows if row["server"] in needless.get(key, ())])


def with_deleted_by_id(
    evidence: Evidence,
    position: str,
    told: Sequence[Verdict],
    judge: Callable[[str], Mapping[str, Verdict]],
) -> list[Verdict]:
    """The verdicts of all servers on one change, with those that such a change is missing on as present in effect.

    `judge` gives those on another change, by server.
    """
    lacking = {verdict.server for verdict in told if verdict.verdict == MISSING and verdict.rule != ENTRIES_LACK}
    entry = entries_of(evidence, evidence.inputs, [position]).get(position, "") if lacking else ""
    if not entry:
        return [*told]
    added, deleted = _ends(evidence, evidence.inputs, {entry})
    addition, end = added.get(entry, ""), deleted.get(entry, "")
    of_end = judge(end) if end else {}
    without = {name for name, verdict in of_end.items() if verdict.verdict != PRESENT}
    refused = {name for name, verdict in of_end.items() if (verdict.verdict, verdict.rule) == (MISSING, SKIPPED)}
    names, done = {verdict.server for verdict in told}, set[str]()
    if end == position and addition:
        never_had = {name for name, verdict in judge(addition).items() if verdict.verdict == MISSING}
        done = refused & _needless(never_had, names, without, refused)
    elif end > position:
        done = _needless(lacking, names, without, refused)
    says = SAYS[DELETED_SINCE]
    return [
        verdict._replace(verdict=PRESENT, rule=DELETED_SINCE, says=says) if verdict.server in done else verdict
        for verdict in told
    ]


def _needless(lacking: set[str], names: Collection[str], without_end: set[str], refused_end: set[str]) -> set[str]:
    """Those of the servers that lack a change of an entry which need it no more: they have its deletion, or refused it.

    Every other server is known to have the deletion. Who lacks both by silence has lost both.
    """
    if ({*names} - lacking) & without_end:
        return set()
    return lacking - (without_end - refused_end)


def _ends(evidence: Evidence, logs: Iterable[Input], entries: Collection[str]) -> _Ends:
    """The addition and the last deletion of entries, by the records of all logs."""
    added, deleted = dict[str, str](), dict[str, str]()
    wanted = pc.field("entry").isin(pa.array(sorted(entries), pa.string())) & (pc.field("kind") == "change")
    wanted &= pc.field("operation").isin(["add", "delete"])
    for log in logs:
        rows: list[dict[str, Any]] = rows_where(
            evidence.case.parts("changes", log), ["entry", "operation", "origin", "hi", "lo"], wanted
        ).to_pylist()
        for row in rows:
            key = evidence.system.order_key(row["origin"], row["hi"], row["lo"])
            ends = added if row["operation"] == "add" else deleted
            ends[row["entry"]] = max(key, ends.get(row["entry"], ""))
    # Who added an entry again with the ID that it had, has it back.
    return added, {entry: key for entry, key in deleted.items() if added.get(entry, "") < key}
