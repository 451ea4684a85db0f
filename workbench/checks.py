"""Checks of cases by the notebook `50_checks`: is a case as it should be, and is anything worse than it was?

What a case is held against here is a diagnosis that lies in it (`CASE/baseline.json`, as `diagnose --json` writes one). The
baseline of `workbench check` is another: it lies beside a parameters file and holds the facts of its runs (`runs/checking.py`).

A check that could not look is no pass: what cannot be opened has failed, what the evidence cannot tell is inconclusive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.boundary import printable
from workbench.case import Case
from workbench.diagnosis import diagnose
from workbench.diagnosis_text import headline, nothing_to_compare
from workbench.differences import difference, differences_text, read_diagnosis, worst_new
from workbench.incident import open_case
from workbench.model import SEVERITIES, Problem
from workbench.timeline import Timeline

CLEAN, FINDINGS, INCONCLUSIVE, FAILED = "clean", "findings", "inconclusive", "failed"
OUTCOMES = (CLEAN, INCONCLUSIVE, FINDINGS, FAILED)
"""From the best to the worst."""

BASELINE = "baseline.json"


@dataclass(frozen=True)
class Checked:
    """What a check of one case came to.

    case         the folder as it was named: two cases may have one name
    outcome      one of OUTCOMES
    verdict      the diagnosis in one line, or why there is none
    counts       severity -> findings
    changes      `new`, `gone`, `changed`: findings against the baseline; empty without one
    details      the differences from the baseline, as text
    servers      server and suffix of each that tells what it has seen
    evidence_at  the newest time that the evidence tells
    """

    case: str
    outcome: str
    verdict: str
    counts: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, int] = field(default_factory=dict)
    details: str = ""
    servers: Sequence[tuple[str, str | None]] = ()
    evidence_at: str | None = None


def collected(found: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Server and suffix of each that tells, by its vector or its log, what it has seen."""
    return [(one["name"], one["suffix"]) for one in found["servers"] if one["vector"] or one["changes"]]


def newest_evidence(case: Case) -> str | None:
    """The newest time that the last snapshot tells, else when its files were written; None: there is nothing in it."""
    label, line = next(reversed(case.snapshots), ""), Timeline(case)
    mine = [one for one in case.inputs if one.snapshot == label]
    times = [at for server in {one.server for one in mine} if (at := line.about(label, server))]
    times = times or [datetime.fromtimestamp(one.changed // 10**9, UTC) for one in mine]
    return f"{max(times).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if times else None


def outcome_of(found: Mapping[str, Any], threshold: str = "warning") -> str:
    """Whether a diagnosis is clean: FINDINGS from the threshold on, INCONCLUSIVE where the evidence does not reach."""
    worst = max((SEVERITIES.index(one["severity"]) for one in found["findings"]), default=-1)
    if worst >= SEVERITIES.index(threshold):
        return FINDINGS
    return INCONCLUSIVE if found["unknown"] or nothing_to_compare(found) else CLEAN


def check(case_folder: str | Path, threshold: str = "warning", baseline: str = BASELINE) -> Checked:
    """Check one case. With a baseline in its folder (a diagnosis as `diagnose --json` writes it) only what is new or worse
    than there counts; without one every finding from the threshold on does.
    """
    named = str(case_folder)
    try:
        case = open_case(case_folder)
        named = named or str(case.folder)
        found = diagnose(case)
        counts = {name: sum(one["severity"] == name for one in found["findings"]) for name in SEVERITIES}
        known = case.folder / baseline
        if not known.exists():
            outcome, changes, details = outcome_of(found, threshold), dict[str, int](), ""
        else:
            differing = difference(read_diagnosis(known), found)
            changes = {kind: len(differing["findings"][kind]) for kind in ("new", "gone", "changed")}
            details = differences_text(differing)
            if worst_new(differing) >= SEVERITIES.index(threshold):
                outcome = FINDINGS
            else:
                outcome = INCONCLUSIVE if differing["unknown"]["new"] or nothing_to_compare(found) else CLEAN
        dated = newest_evidence(case)
        return Checked(named, outcome, headline(found), counts, changes, details, collected(found), dated)
    except Problem as problem:
        return Checked(named, FAILED, str(problem))


def check_all(
    case_folders: Sequence[str | Path],
    threshold: str = "warning",
    baseline: str = BASELINE,
    progress: Callable[[int, int, int], None] = lambda done, total, rows: None,
) -> list[Checked]:
    """Check several cases, the worst first. Raises Problem for no case at all, and for a threshold that is none.

    `progress` is told after each case how many are done.
    """
    if threshold not in SEVERITIES:
        raise Problem(f"there is no severity {printable(threshold)}", "threshold", f"there are {', '.join(SEVERITIES)}")
    if not case_folders:
        raise Problem("no case is named", "case_folders", "name at least one: a check that looks at nothing is no pass")
    made: list[Checked] = []
    for one in case_folders:
        made.append(check(one, threshold, baseline))
        progress(len(made), len(case_folders), 0)
    return sorted(made, key=lambda one: -OUTCOMES.index(one.outcome))
