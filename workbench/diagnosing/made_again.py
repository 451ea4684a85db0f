"""Lost changes that were made again since, as a repair advises: nothing tells whether they did the same.

b made 79 changes that no other server has, and was initialised; somebody writes what was saved of them on a
    no log holds the 79, and the access log of a shows the same operations on the same entries, later     they are not MISSING
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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


def note_made_again(found: Verdicts, evidence: Evidence, servers: Collection[str]) -> None:
    """Move such changes of these servers from what is missing to what is unknown; where the list was cut, it stays as it is."""
    if "missing" in found.cut():
        return
    mine = [
        row for row in found.missing if row["suffix"] == evidence.suffix and row["server"] in servers and row["target"]
    ]
    lacking: dict[str, set[str]] = {}
    for row in mine:
        lacking.setdefault(row["position"], set()).add(row["server"])
    for row in found.unknown:  # of such a server nothing is known, whatever it took once
        if row["suffix"] == evidence.suffix:
            for position, some in lacking.items():
                if row["from"] <= position <= row["to"]:
                    some.add(row["server"])
    gone = [
        row for row in mine if not row["held_by"] and not _on_another(evidence, row, lacking[row["position"]], servers)
    ]
    again = _again(evidence, {row["position"]: (row["operation"], row["target"]) for row in gone}) if gone else set()
    stretches: dict[tuple[str, str], list[str]] = {}
    for row in gone:
        if row["position"] in again:
            stretches.setdefault((row["server"], row["origin"]), []).append(row["position"])
    moved = {id(row) for row in gone if row["position"] in again}
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


def _on_another(evidence: Evidence, row: Mapping[str, Any], lacking: Collection[str], servers: Collection[str]) -> bool:
    """True if the access log of a server that does not lack the change shows that it took it."""
    others = [one for one in servers if one not in lacking]
    position = evidence.system.typed(row["position"]) or ""
    where = (pc.field("position") == position) & (pc.field("outcome") == "applied")
    return any(len(evidence.told("applied", ["position"], where, one)) for one in others)


def _again(evidence: Evidence, lost: Mapping[str, tuple[str, str]]) -> set[str]:
    """Those of some lost changes, position -> (operation, target), of entries that were added again under another position."""
    system = evidence.system
    targets = pa.array(sorted({target.lower() for _, target in lost.values()}), pa.string())
    keys = pa.array(sorted(filter(None, map(system.typed, lost))), pa.string())
    done = pc.utf8_lower(pc.field("target")).isin(targets) & (pc.field("outcome") == "applied")
    done &= pc.field("position").is_valid() & ~pc.field("position").isin(keys)
    rows = evidence.told("applied", _COLUMNS, done).group_by(["operation", "target"]).aggregate([("position", "max")])
    latest: dict[tuple[str, str], str] = {}
    for row in rows.to_pylist():
        about = row["operation"], row["target"].lower()
        latest[about] = max(latest.get(about, ""), row["position_max"])
    # A later change of an entry that was there all the time may be any other one.
    return {
        position
        for position, (what, target) in lost.items()
        if min(latest.get((what, target.lower()), ""), latest.get(("add", target.lower()), ""))
        > (system.typed(position) or "")
    }
