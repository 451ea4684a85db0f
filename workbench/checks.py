"""Regression checks: is a case as it should be, and is anything worse than it was?

A check that could not look is no pass: what cannot be opened has failed, what the evidence cannot tell is inconclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.boundary import printable
from workbench.diagnosis import diagnose
from workbench.diagnosis_text import headline, nothing_to_compare
from workbench.differences import difference, differences_text, read_diagnosis, worst_new
from workbench.incident import open_case
from workbench.model import SEVERITIES, Problem

CLEAN, FINDINGS, INCONCLUSIVE, FAILED = "clean", "findings", "inconclusive", "failed"
OUTCOMES = (CLEAN, INCONCLUSIVE, FINDINGS, FAILED)
"""From the best to the worst."""

BASELINE = "baseline.json"


@dataclass(frozen=True)
class Checked:
    """What a check of one case came to.

    outcome   one of OUTCOMES
    verdict   the diagnosis in one line, or why there is none
    counts    severity -> findings
    changes   `new`, `gone`, `changed`: findings against the baseline; empty without one
    details   the differences from the baseline, as text
    """

    case: str
    outcome: str
    verdict: str
    counts: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, int] = field(default_factory=dict)
    details: str = ""


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
    try:
        case = open_case(case_folder)
        found = diagnose(case)
        counts = {name: sum(one["severity"] == name for one in found["findings"]) for name in SEVERITIES}
        known = case.folder / baseline
        if not known.exists():
            return Checked(case.name, outcome_of(found, threshold), headline(found), counts)
        differing = difference(read_diagnosis(known), found)
        changes = {kind: len(differing["findings"][kind]) for kind in ("new", "gone", "changed")}
        if worst_new(differing) >= SEVERITIES.index(threshold):
            outcome = FINDINGS
        else:
            outcome = INCONCLUSIVE if differing["unknown"]["new"] or nothing_to_compare(found) else CLEAN
        return Checked(case.name, outcome, headline(found), counts, changes, differences_text(differing))
    except Problem as problem:
        return Checked(str(case_folder), FAILED, str(problem))


def check_all(
    case_folders: Sequence[str | Path], threshold: str = "warning", baseline: str = BASELINE
) -> list[Checked]:
    """Check several cases, the worst first. Raises Problem for no case at all, and for a threshold that is none."""
    if threshold not in SEVERITIES:
        raise Problem(f"there is no severity {printable(threshold)}", "threshold", f"there are {', '.join(SEVERITIES)}")
    if not case_folders:
        raise Problem("no case is named", "case_folders", "name at least one: a check that looks at nothing is no pass")
    made = [check(one, threshold, baseline) for one in case_folders]
    return sorted(made, key=lambda one: -OUTCOMES.index(one.outcome))
