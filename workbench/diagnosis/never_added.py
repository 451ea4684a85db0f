"""Deletions of entries that a server never had: nobody told it of their addition, and a deletion that finds none leaves no trace.

uid=idx0 was added on bern at 02:21 past replication, and deleted there at 02:22, with replication on again
    alba    its log of changes goes back to 01:57, and has no record of that entry: it never had it, and lacks nothing

When an entry was added, its unique ID tells, by the clock of the server that added it; where each origin of the log goes back
further, by the clocks of these, the addition would be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.deleted_since import entries_of, lack_nothing, may_do_nothing
from workbench.engine.positions import of_keys
from workbench.engine.selective_read import rows_where
from workbench.intake.inputs import Input
from workbench.rules.verdicts import MISSING, NEVER_ADDED, PRESENT, SAYS, Verdict

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.topology.suffix_evidence import Evidence

_BY_LOG, _BY_SOURCE = "not_in_log", "source_lacks"
"""The rules by which such a deletion is missing: its absence from the log alone speaks for that, of the server or of the one that
filled it.
"""


def note_never_added(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input]
) -> None:
    """Take such deletions out of what is missing; where that list was cut, it stays as it is."""
    names = {server.replica.server for server in servers}
    rows = [
        row
        for row in (() if "missing" in found.cut() else found.missing)
        if (row["suffix"], row["operation"]) == (evidence.suffix, "delete")
        and row["rule"] in (_BY_LOG, _BY_SOURCE)
        and row["server"] in names
        and may_do_nothing(found, evidence, row)
    ]
    keys = [(row["server"], evidence.system.typed(row["position"]) or "") for row in rows]
    asked = {key: str(row["rule"]) for key, row in zip(keys, rows, strict=True)}
    never = _never_added(evidence, servers, logs, asked) if asked else set()
    lack_nothing(found, evidence, servers, [row for row, key in zip(rows, keys, strict=True) if key in never])


def with_never_added(
    evidence: Evidence,
    position: str,
    told: Mapping[str, Verdict],
    servers: Sequence[JudgedServer],
    logs: Sequence[Input],
) -> dict[str, Verdict]:
    """The verdicts on one change, by server, with those that such a deletion is missing on as present in effect."""
    lacking = [one for one in told.values() if one.verdict == MISSING and one.rule in (_BY_LOG, _BY_SOURCE)]
    some = of_keys(evidence.system, [position], evidence.numbers)
    about = evidence.described(some, logs).get(position, {}) if lacking else {}
    asked = {(one.server, position): one.rule for one in lacking if about.get("operation") == "delete"}
    never = {name for name, _ in _never_added(evidence, servers, logs, asked)} if asked else set()
    says = SAYS[NEVER_ADDED]
    return {
        name: one._replace(verdict=PRESENT, rule=NEVER_ADDED, says=says) if name in never else one
        for name, one in told.items()
    }


def _never_added(
    evidence: Evidence, servers: Iterable[JudgedServer], logs: Sequence[Input], asked: Mapping[tuple[str, str], str]
) -> set[tuple[str, str]]:
    """Those of some (server, deletion) -> rule of an entry that the log of the server would show if it had ever had it.

    Who was filled from a server that lacks the deletion never had it where all of these never had it.
    """
    entries = entries_of(evidence, logs, {position for _, position in asked})
    added = {entry: evidence.shown.proving.entry_added(entry) for entry in {*entries.values()}}
    found, by_log = set[tuple[str, str]](), {key for key, rule in asked.items() if rule == _BY_LOG}
    filled: list[tuple[str, str]] = []
    for server in servers:
        name, log, begins = server.replica.server, server.replica.log, _begins(evidence, server)
        mine = {position: entries[position] for who, position in asked if who == name and position in entries}
        if log is None or not mine:
            continue
        where = (pc.field("kind") == "change") & pc.field("entry").isin(pa.array(sorted({*mine.values()}), pa.string()))
        shown = {*rows_where(evidence.case.parts("changes", log), ["entry"], where)["entry"].to_pylist()}
        for position, entry in mine.items():
            at = added[entry]
            if entry in shown or at is None:
                continue
            if (name, position) not in by_log:
                filled.append((name, position))
            elif begins and at > begins:
                found.add((name, position))
    sources = {position: {key for key in by_log if key[1] == position} for _, position in filled}
    return found | {key for key in filled if sources[key[1]] and sources[key[1]] <= found}


def _begins(evidence: Evidence, server: JudgedServer) -> datetime | None:
    """From when on the log of a server shows all changes of all origins that it has seen; None: of some it shows none."""
    moment = evidence.system.moment
    starts = [server.reach.get(origin) or server.first.get(origin) for origin in server.seen]
    moments = [moment(start) for start in starts if start]
    known = [at for at in moments if at]
    return max(known) if known and len(known) == len(starts) else None
