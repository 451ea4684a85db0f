"""Deletions and renamings of a name that a server deleted or renamed by another change, of which no record tells the entry.

a, which was down and could not be read, and b both deleted uid=x8; h and r got the deletion of a
    h, r    their access logs name the deletion of a under that name, and no collected log has its record: if it was of the same
            entry, that of b does nothing there; nothing tells whether it was
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.deleted_since import PROVED, entries_of, lack_nothing, may_do_nothing
from workbench.engine.positions import of_keys
from workbench.intake.inputs import Input
from workbench.rules.verdicts import MAY_REPEAT, MISSING, SAYS, UNKNOWN, Verdict

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.topology.suffix_evidence import Evidence

_ENDS = ("delete", "modrdn")
_COLUMNS = ("at", "position", "operation", "target")


def note_repeats(found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input]) -> None:
    """Make what is missing of such changes unknown; where the list was cut, it stays as it is."""
    names = {server.replica.server for server in servers}
    rows = [
        row
        for row in (() if "missing" in found.cut() else found.missing)
        if (row["suffix"], row["server"] in names, row["operation"] in _ENDS) == (evidence.suffix, True, True)
        if row["target"] and may_do_nothing(found, evidence, row)
    ]
    keys = [(row["server"], evidence.system.typed(row["position"]) or "", row["target"]) for row in rows]
    perhaps = _that_may_repeat(evidence, logs, keys) if keys else set()
    taken = [row for row, (server, position, _) in zip(rows, keys, strict=True) if (server, position) in perhaps]
    lack_nothing(found, evidence, servers, taken)
    found.unknown += [
        {key: row[key] for key in ("server", "suffix", "origin")}
        | {"count": 1, "why": MAY_REPEAT, "from": row["position"], "to": row["position"]}
        for row in taken
    ]
    found.totals["unknown"] += len(taken)


def with_repeats(evidence: Evidence, position: str, told: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts of all servers on one change, with those that such a change is missing on as unknown."""
    lacking = [one for one in told if one.verdict == MISSING and one.rule not in PROVED]
    some = of_keys(evidence.system, [position], evidence.numbers)
    about: Mapping[str, Any] = evidence.described(some, evidence.inputs).get(position, {}) if lacking else {}
    if about.get("operation") not in _ENDS or not about.get("target"):
        return [*told]
    keys = [(one.server, position, about["target"]) for one in lacking]
    perhaps = {server for server, _ in _that_may_repeat(evidence, evidence.inputs, keys)}
    says = SAYS[MAY_REPEAT]
    return [
        one._replace(verdict=UNKNOWN, rule=MAY_REPEAT, says=says) if one in lacking and one.server in perhaps else one
        for one in told
    ]


def _that_may_repeat(
    evidence: Evidence, logs: Iterable[Input], keys: Sequence[tuple[str, str, str]]
) -> set[tuple[str, str]]:
    """Those of some (server, change, name) that another deletion or renaming under the name may have made void there.

    What was done before the entry was added is of another one. Two changes of which records tell the entries are the business of
    `without_effect`.
    """
    done: dict[tuple[str, str], list[tuple[str, str]]] = {}
    names = pa.array(sorted({target.lower() for _, _, target in keys}), pa.string())
    deeds = pc.field("operation").isin([*_ENDS, "add"]) & (pc.field("outcome") == "applied")
    for server in {server for server, _, _ in keys}:
        named = deeds & pc.field("position").is_valid() & pc.utf8_lower(pc.field("target")).isin(names)
        for row in evidence.told("applied", _COLUMNS, named, server).sort_by("at").to_pylist():
            done.setdefault((server, row["target"].lower()), []).append((row["operation"], row["position"]))
    others = {other for some in done.values() for _, other in some}
    entries = entries_of(evidence, [*logs], others | {position for _, position, _ in keys}) if others else {}
    of_name = {
        (server, position): _since_added(
            [
                deed
                for deed in done.get((server, target.lower()), [])
                if deed[0] != "add"
                or position not in entries
                or entries.get(deed[1], entries[position]) == entries[position]
            ],
            position,
        )
        for server, position, target in keys
    }
    return {
        (server, position)
        for (server, position), some in of_name.items()
        if any(other != position and not {other, position} <= entries.keys() for _, other in some)
    }


def _since_added(done: Sequence[tuple[str, str]], position: str) -> list[tuple[str, str]]:
    """The deletions and renamings under a name behind the last addition that is older than the change."""
    added = [number for number, (operation, of) in enumerate(done) if operation == "add" and of < position]
    return [deed for deed in done[added[-1] + 1 if added else 0 :] if deed[0] in _ENDS]
