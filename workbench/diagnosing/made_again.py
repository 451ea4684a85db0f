"""Lost changes that were made again since, as a repair advises: nothing tells whether they did the same.

b made 79 changes that no other server has, and was initialised; somebody writes what was saved of them on a
    no log holds the 79, and the access log of a shows the same operations on the same entries, later     they are not MISSING
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.positions import of_keys
from workbench.rules.verdicts import MISSING, PRESENT, SAYS, UNKNOWN

if TYPE_CHECKING:
    from workbench.diagnosing.verdict_rows import Verdicts
    from workbench.diagnosing.verdicts import Verdict
    from workbench.fleet.told import Evidence

MADE_AGAIN = "made_again"
"""Why it is not known whether such a change is lacking."""

_COLUMNS = ("position", "operation", "target")


def note_made_again(found: Verdicts, evidence: Evidence) -> None:
    """Move such changes from what is missing to what is unknown; where the list was cut, it stays as it is."""
    if "missing" in found.cut():
        return
    mine = [row for row in found.missing if row["suffix"] == evidence.suffix and not row["held_by"] and row["target"]]
    again = _again(evidence, {row["position"]: (row["operation"], row["target"]) for row in mine}) if mine else set()
    stretches: dict[tuple[str, str], list[str]] = {}
    for row in mine:
        if row["position"] in again:
            stretches.setdefault((row["server"], row["origin"]), []).append(row["position"])
    moved = {id(row) for row in mine if row["position"] in again}
    found.missing[:] = [row for row in found.missing if id(row) not in moved]
    found.totals["missing"] -= len(moved)
    found.totals["unknown"] += len(stretches)
    found.unknown += [
        {"server": server, "suffix": evidence.suffix, "origin": origin, "count": len(some), "why": MADE_AGAIN}
        | {"from": min(some), "to": max(some)}
        for (server, origin), some in stretches.items()
    ]


def softened(evidence: Evidence, position: str, told: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts of all servers on one change, with those that it is missing as unknown where it was made again."""
    system = evidence.system
    if all(one.verdict != MISSING for one in told) or any(one.verdict == PRESENT for one in told):
        return [*told]
    about = evidence.described(of_keys(system, [position], evidence.numbers), evidence.inputs).get(position, {})
    what, target = about.get("operation"), about.get("target")
    again = bool(what and target and _again(evidence, {system.show(position): (what, target)}))
    return [
        one._replace(verdict=UNKNOWN, rule=MADE_AGAIN, says=SAYS[MADE_AGAIN])
        if again and one.verdict == MISSING
        else one
        for one in told
    ]


def _again(evidence: Evidence, lost: Mapping[str, tuple[str, str]]) -> set[str]:
    """Those of some lost changes, position -> (operation, target), of entries that were added again under another position."""
    system = evidence.system
    targets = pa.array(sorted({target for _, target in lost.values()}), pa.string())
    done = pc.field("target").isin(targets) & pc.field("position").is_valid() & (pc.field("outcome") == "applied")
    latest: dict[tuple[str, str], str] = {}
    for row in evidence.told("applied", _COLUMNS, done).to_pylist():
        if system.show(row["position"]) not in lost:
            about = row["operation"], row["target"]
            latest[about] = max(latest.get(about, ""), row["position"])
    # A later change of an entry that was there all the time may be any other one.
    return {
        position
        for position, (what, target) in lost.items()
        if min(latest.get((what, target), ""), latest.get(("add", target), "")) > (system.typed(position) or "")
    }
