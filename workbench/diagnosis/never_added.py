"""Deletions of entries that a server never had: nobody told it of their addition, and a deletion that finds none leaves no trace.

uid=idx0 was added on bern at 02:21 past replication, and deleted there at 02:22, with replication on again
    any     no log of any server has its addition
    alba    its log of changes goes back to 01:57, and has no record of that entry: it never had it, and lacks nothing

When an entry was added, its unique ID tells, by the clock of the server that added it; where each origin of the log goes back
further, by the clocks of these, the addition would be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.deleted_since import entries_of, lack_nothing, may_do_nothing, missing_of
from workbench.engine.positions import of_keys
from workbench.engine.selective_read import rows_where
from workbench.intake.inputs import Input
from workbench.rules.verdicts import MISSING, NEVER_ADDED, PRESENT, SAYS, SKIPPED, Verdict

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.topology.suffix_evidence import Evidence

_BY_LOG, _BY_SOURCE = "not_in_log", "source_lacks"
"""Rules by which such a deletion is missing: its absence from the log alone speaks for that, of the server or of the one that
filled it. A server that refused it, for it finds no such entry, lacks it by `SKIPPED`.
"""
_Lacking = Mapping[tuple[str, str], str]
"""Server and deletion -> the rule by which it is missing there."""


def note_never_added(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input]
) -> None:
    """Take such deletions out of what is missing; where that list was cut, it stays as it is."""
    rows = missing_of(found, evidence, servers, "delete")
    lacking = {key: str(row["rule"]) if may_do_nothing(found, evidence, row) else "" for row, key in rows}
    never = _never_added(evidence, servers, logs, lacking) if lacking else set()
    lack_nothing(found, evidence, servers, [row for row, key in rows if key in never])


def with_never_added(
    evidence: Evidence,
    position: str,
    told: Mapping[str, Verdict],
    servers: Sequence[JudgedServer],
    logs: Sequence[Input],
) -> dict[str, Verdict]:
    """The verdicts on one change, by server, with those that such a deletion is missing on as present in effect."""
    missing = [verdict for verdict in told.values() if verdict.verdict == MISSING]
    some = of_keys(evidence.system, [position], evidence.numbers)
    about = evidence.described(some, logs).get(position, {}) if missing else {}
    lacking = {(verdict.server, position): verdict.rule for verdict in missing if about.get("operation") == "delete"}
    never = {name for name, _ in _never_added(evidence, servers, logs, lacking)} if lacking else set()
    says = SAYS[NEVER_ADDED]
    return {
        name: one._replace(verdict=PRESENT, rule=NEVER_ADDED, says=says) if name in never else one
        for name, one in told.items()
    }


def _never_added(
    evidence: Evidence, servers: Iterable[JudgedServer], logs: Sequence[Input], lacking: _Lacking
) -> set[tuple[str, str]]:
    """Those of some missing deletions of an entry that the log of the server would show if it had ever had it.

    Who was filled from a server that lacks the deletion never had it where no server that lacks it ever had it.
    """
    entries = entries_of(evidence, logs, {position for _, position in lacking})
    replicated = _recorded(evidence, logs, {*entries.values()})
    entries = {position: entry for position, entry in entries.items() if entry not in replicated}
    added = {entry: evidence.shown.proving.entry_added(entry) for entry in {*entries.values()}}
    found, filled = set[tuple[str, str]](), list[tuple[str, str]]()
    for server in servers:
        name, log = server.replica.server, server.replica.log
        own = {position: entries[position] for who, position in lacking if who == name and position in entries}
        if log is None or not own or evidence.holes(log):  # what cannot be read may be the addition
            continue
        named, begins = _named(evidence, server, log, {*own.values()}), _begins(evidence, server)
        for position, entry in own.items():
            rule, at = lacking[name, position], added[entry]
            if entry in named or at is None:
                continue
            if rule == _BY_SOURCE:
                filled.append((name, position))
            elif rule in (_BY_LOG, SKIPPED) and begins and at > begins:
                found.add((name, position))
    for name, position in filled:
        others = {key for key, rule in lacking.items() if key[1] == position and rule != _BY_SOURCE}
        if others and others <= found:
            found.add((name, position))
    return found


def _recorded(evidence: Evidence, logs: Sequence[Input], entries: Collection[str]) -> set[str]:
    """Those of some entries of which any log has more than deletions: they were added by a change that servers may have lost."""
    wanted = pc.field("entry").isin(pa.array(sorted(entries), pa.string())) & (pc.field("operation") != "delete")
    parts = (part for log in logs for part in evidence.case.parts("changes", log)) if entries else ()
    return {*rows_where(parts, ["entry"], (pc.field("kind") == "change") & wanted)["entry"].to_pylist()}


def _named(evidence: Evidence, server: JudgedServer, log: Input, entries: Collection[str]) -> set[str]:
    """Those of some entries that the log of changes of a server, or its export, names."""
    name, wanted = server.replica.server, pc.field("entry").isin(pa.array(sorted(entries), pa.string()))
    logged = rows_where(evidence.case.parts("changes", log), ["entry"], (pc.field("kind") == "change") & wanted)
    shown = rows_where(evidence.parts("entry_states", name), ["entry"], wanted)
    return {*logged["entry"].to_pylist(), *shown["entry"].to_pylist()}


def _begins(evidence: Evidence, server: JudgedServer) -> datetime | None:
    """From when on the log of a server shows all changes of all origins that it has seen; None: of some it shows none.

    What came with new data stands in no log, and the marks with which such a log begins do not tell when these came.
    """
    moment = evidence.system.moment
    starts = [server.first.get(origin) for origin in server.seen]
    known = [at for start in starts if start and (at := moment(start))]
    if not known or len(known) < len(starts):
        return None
    return max(*known, *(reset.ended for reset in server.resets), known[0])
