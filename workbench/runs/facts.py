"""What a run found, as facts that can be compared with those of another run: no prose, no times of the run.

The last cell of a notebook calls `finished`. In a run without a person that is the completion record: a notebook that did
not come so far has failed, whatever its exit code says. For a person it shows the verdict.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.case import Case
from workbench.checks import CLEAN, OUTCOMES, Checked, outcome_of
from workbench.incident import Incident
from workbench.journal import write_whole
from workbench.model import Problem

RECORD = "WORKBENCH_RUN_RECORD"
"""In the environment of a run without a person: the file that the last cell writes."""

VERSION = 1

_COUNTED = ("missing", "stranded", "pending", "unknown")


class Finished:
    """What the last cell shows: the verdict, and what it counts."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = facts

    def __repr__(self) -> str:
        counted = Counter[str]()
        for name, count in self.facts["counts"].items():
            counted[name.partition(" ")[0]] += count
        told = ", ".join(f"{count:,} {name}" for name, count in counted.items() if count)
        codes = ", ".join(sorted({name.partition(" ")[0] for name in self.facts["findings"]}))
        return "; ".join(filter(None, (f"finished: {self.facts['verdict']}", told, codes)))


def finished(what: Incident | Case | Sequence[Checked]) -> Finished:
    """Tell that the notebook came to its end, with the facts about its case, or about the cases that it checked."""
    if isinstance(what, Case):
        what = Incident(what)
    facts = facts_of(what) if isinstance(what, Incident) else facts_of_checks(what)
    if record := os.environ.get(RECORD):
        write_whole(Path(record), json.dumps(facts, indent=1, sort_keys=True) + "\n")
    return Finished(facts)


def facts_of(incident: Incident) -> dict[str, Any]:
    """The facts of one case.

    findings   code and scope -> severity
    counts     list, server, origin, suffix -> how many changes are missing, stranded, pending, unknown; of a list that
               is too long to be whole here, `LIST in all` as well
    lag        server, origin, suffix -> seconds from what it has to what any server claims, by the clock of the origin
    decisions  supplier, consumer, suffix -> what a session would do now
    anchors    supplier, consumer, suffix -> after which record it would begin
    """
    found = incident.found
    counts: Counter[str] = Counter()
    for name in _COUNTED:
        if name in found["run"]["truncated"]:
            counts[_named(name, "in all")] = found["run"]["truncated"][name]
        for row in found[name]:
            # A stretch of which nobody knows how many changes it holds counts as one: it is there, or it is not.
            number = 1 if name in ("missing", "stranded") else row["count"] or 1
            counts[_named(name, row["server"], f"origin {row['origin']}", row["suffix"])] += number
    pairs = {_named(f"{row['supplier']} -> {row['consumer']}", row["suffix"]): row for row in found["pairs"]}
    scope = ("server", "link", "origin")
    return {
        "facts": VERSION,
        "verdict": outcome_of(found),
        "findings": {
            _named(one["code"], *(f"{key} {one[key]}" for key in scope if one[key]), one["suffix"]): one["severity"]
            for one in reversed(found["findings"])  # the gravest of those with the same scope
        },
        "counts": dict(counts),
        "lag": _lags(incident, found["servers"]),
        "decisions": {name: row["decision"] for name, row in pairs.items()},
        "anchors": {name: row["anchor"] for name, row in pairs.items() if row["anchor"]},
    }


def _lags(incident: Incident, servers: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    typed, moment = incident.system.typed, incident.system.moment
    claims: dict[tuple[str | None, str], dict[str, str]] = {}
    for one in servers:
        for origin, span in one["vector"].items():
            if span["max"] and (key := typed(span["max"])):
                claims.setdefault((one["suffix"], origin), {})[one["name"]] = key
    lags = {}
    for (suffix, origin), keys in claims.items():
        newest = moment(max(keys.values()))
        for server, key in keys.items():
            has = moment(key)
            if newest and has and newest > has:
                lags[_named(server, f"origin {origin}", suffix)] = (newest - has).total_seconds()
    return lags


def facts_of_checks(checked: Sequence[Checked]) -> dict[str, Any]:
    """The facts of a notebook that checked several cases: the worst verdict, and each case's as a decision."""
    if not checked:
        raise Problem("no case was checked", "", "name at least one")
    verdict = max((one.outcome for one in checked), key=OUTCOMES.index, default=CLEAN)
    counts = {f"{name} {one.case}": count for one in checked for name, count in one.counts.items()}
    nothing: dict[str, Any] = {"findings": {}, "lag": {}, "anchors": {}}
    decisions = {one.case: one.outcome for one in checked}
    return {"facts": VERSION, "verdict": verdict, **nothing, "counts": counts, "decisions": decisions}


def _named(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)
