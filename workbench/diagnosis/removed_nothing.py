"""Removals that a server refused because it did not have what they remove: without them it lacks nothing.

a takes uid=h3 out of a group, and its plug-in takes memberOf from the entry
    h    its own plug-in did the same before: it answers 16 (no such attribute), and the supplier goes on; nothing is lacking
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.deleted_since import lack_nothing, may_do_nothing, missing_of
from workbench.engine.positions import of_keys
from workbench.engine.selective_read import rows_at
from workbench.intake.inputs import Input
from workbench.rules.verdicts import MISSING, NOTHING_THERE, PRESENT, SAYS, SKIPPED, Verdict

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.topology.suffix_evidence import Evidence


def note_removed_nothing(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input]
) -> None:
    """Take such changes out of what is missing; where that list was cut, it stays as it is."""
    rows = [
        (row, key)
        for row, key in missing_of(found, evidence, servers, "modify")
        if row["rule"] == SKIPPED and may_do_nothing(found, evidence, row)
    ]
    nothing = _that_found_nothing(evidence, logs, [key for _, key in rows]) if rows else set()
    lack_nothing(found, evidence, servers, [row for row, key in rows if key in nothing])


def with_removed_nothing(
    evidence: Evidence, position: str, told: Mapping[str, Verdict], logs: Sequence[Input]
) -> dict[str, Verdict]:
    """The verdicts on one change, by server, with those that such a change is missing on as present in effect."""
    asked = [(name, position) for name, one in told.items() if (one.verdict, one.rule) == (MISSING, SKIPPED)]
    nothing = {name for name, _ in _that_found_nothing(evidence, logs, asked)} if asked else set()
    says = SAYS[NOTHING_THERE]
    return {
        name: one._replace(verdict=PRESENT, rule=NOTHING_THERE, says=says) if name in nothing else one
        for name, one in told.items()
    }


def _that_found_nothing(
    evidence: Evidence, logs: Iterable[Input], asked: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Those of some (server, change) that the server refused for having nothing of what the change removes."""
    some = of_keys(evidence.system, sorted({position for _, position in asked}), evidence.numbers)
    bodies: dict[str, str] = {}
    targets: dict[str, str] = {}
    for log in logs:
        for there, rows in rows_at(evidence.case.parts("changes", log), some, evidence.numbers, ["body", "target"]):
            for key, row in zip(there.keys(evidence.system, evidence.names), rows.to_pylist(), strict=True):
                bodies.setdefault(key, row["body"] or "")
                targets.setdefault(key, (row["target"] or "").lower())
    found = set()
    for server in {name for name, _ in asked}:
        mine = {position for name, position in asked if name == server and position in bodies}
        results: dict[str, set[int | None]] = {}
        for position, code in results_of(evidence, server, mine):
            results.setdefault(position, set()).add(code)
        took_nothing = evidence.shown.proving.took_nothing
        found |= {
            (server, position)
            for position, codes in results.items()
            if all(code is not None and took_nothing(bodies[position], code) for code in codes)
            and not _older_came_later(evidence, server, position, targets[position])
        }
    return found


def _older_came_later(evidence: Evidence, server: str, position: str, target: str) -> bool:
    """True if the log of the server shows that an older change of the same entry came behind the refusal: it may give it back."""
    named = pc.field("position").is_valid() & (pc.utf8_lower(pc.field("target")) == target)
    rows = evidence.told("applied", ["at", "position", "outcome"], named, server).to_pylist()
    refused = [row["at"] for row in rows if (row["position"], row["outcome"]) == (position, "refused") and row["at"]]
    since = min(refused, default=None)
    return any(
        row["outcome"] == "applied" and row["position"] < position and (not since or not row["at"] or row["at"] > since)
        for row in rows
    )


def results_of(evidence: Evidence, server: str, positions: set[str]) -> Iterator[tuple[str, int | None]]:
    """What a server answered to some changes, by its own log or those of its suppliers."""
    named = pc.field("position").isin(pa.array(sorted(positions), pa.string()))
    links = [one for one in evidence.shown.links if (one.consumer, one.suffix) == (server, evidence.suffix)]
    asked = [(server, (pc.field("outcome") == "refused") & pc.field("link").is_null())]
    asked += [(one.supplier, (pc.field("outcome") == "skipped") & (pc.field("link") == one.name)) for one in links]
    for name, where in asked if positions else ():
        for row in evidence.told("applied", ["position", "code"], named & where, name).to_pylist():
            yield row["position"], row["code"]
