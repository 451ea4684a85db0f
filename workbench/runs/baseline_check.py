"""Checks of cases by the notebook `50_checks`: is a case as it should be, and is anything worse than it was?

What a case is held against here is a diagnosis that lies in it (`CASE/baseline.json`, as `diagnose --json` writes one). The
baseline of `workbench check` is another: it lies beside a parameters file and holds the facts of its runs
(`runs/regression_check.py`).

A check that could not look is no pass: what cannot be opened has failed, what the evidence cannot tell is inconclusive, also
if it could not when the baseline was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.case.case import Case
from workbench.diagnosis.diagnosis_diff import difference, differences_text, read_diagnosis, worst_new
from workbench.diagnosis.diagnosis_text import headline, untold
from workbench.diagnosis.incident import Incident, open_case
from workbench.model import SEVERITIES, Problem
from workbench.runs.case_facts import NAMED, NOT_WHOLE, facts_of_case
from workbench.safety import printable
from workbench.topology.timeline import Timeline
from workbench.topology.topology import DOWN

CLEAN, FINDINGS, INCONCLUSIVE, FAILED = "clean", "findings", "inconclusive", "failed"
OUTCOMES = (CLEAN, INCONCLUSIVE, FINDINGS, FAILED)
"""From the best to the worst."""

BASELINE = "baseline.json"
_WHOLE = ("servers", "pairs", "missing", "stranded", "pending", "unknown", "findings")
"""Lists without which a diagnosis is no baseline: what it does not have, nothing would be new against."""


@dataclass(frozen=True)
class Checked:
    """What a check of one case came to.

    case         the folder as it was named: two cases may have one name
    outcome      one of OUTCOMES
    verdict      the diagnosis in one line, or why there is none
    counts       severity -> findings
    changes      `new`, `gone`, `changed`: findings against the baseline; empty without one
    details      the differences from the baseline, as text
    facts        list -> rows, as `facts_of_case` gives them
    evidence_at  what is oldest of the newest times that each server's evidence tells; `evidence_of` is the server
    """

    case: str
    outcome: str
    verdict: str
    counts: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, int] = field(default_factory=dict)
    details: str = ""
    facts: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict, repr=False)
    evidence_at: str | None = None
    evidence_of: str | None = None


def oldest_evidence(case: Case) -> tuple[str | None, str | None]:
    """What is oldest of the newest times that each server's evidence tells in the last snapshot, and the server; (None, None):
    there is nothing in it. Of a server that tells no time it is when its files were written; None if that is not known either.

    Of several servers the new ones must not hide the one whose collector has died. What did not answer tells no time.
    """
    label, line = next(reversed(case.snapshots), ""), Timeline(case)
    mine = [one for one in case.inputs if one.snapshot == label]
    down = {one.server for one in mine if one.file.endswith(DOWN)}
    written: dict[str, int] = {}
    for one in mine:
        if one.kind and one.server not in down:
            written[one.server] = max(one.changed, written.get(one.server, 0))
    times: dict[str, datetime] = {}
    for server, at in sorted(written.items()):
        told = line.newest(label, server)
        if told is None and not at:  # its files were changed while they were read
            return None, server
        times[server] = told or datetime.fromtimestamp(at // 10**9, UTC)
    if not times:
        return None, None
    server = min(times, key=lambda name: (times[name], name))
    return f"{times[server].astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", server


def outcome_of(found: Mapping[str, Any], threshold: str = "warning") -> str:
    """Whether a diagnosis is clean: FINDINGS from the threshold on, INCONCLUSIVE where the evidence does not reach."""
    worst = max((SEVERITIES.index(one["severity"]) for one in found["findings"]), default=-1)
    if worst >= SEVERITIES.index(threshold):
        return FINDINGS
    return INCONCLUSIVE if found["unknown"] or untold(found) else CLEAN


def check(case_folder: str | Path, threshold: str = "warning", baseline: str = BASELINE) -> Checked:
    """Check one case. With a baseline in its folder (a diagnosis as `diagnose --json` writes it) only what is new or worse
    than there counts; without one every finding from the threshold on does.
    """
    named = str(case_folder)
    try:
        case = open_case(case_folder)
        named = named or str(case.folder)
        incident = Incident(case)
        found = incident.found
        counts = {name: sum(one["severity"] == name for one in found["findings"]) for name in SEVERITIES}
        known, facts = case.folder / baseline, facts_of_case(incident, named)
        if not known.exists():
            outcome, changes, details = outcome_of(found, threshold), dict[str, int](), ""
        else:
            differing = difference(_whole(known), found)
            changes = {kind: len(differing["findings"][kind]) for kind in ("new", "gone", "changed")}
            details = differences_text(differing)
            outcome = _outcome_since(differing, found, threshold)
            if differing["not_compared"]:
                facts["untold"].append({"case": named, "server": None, "suffix": None, "why": NOT_WHOLE})
        about = counts, changes, details, facts
        return Checked(named, outcome, headline(found), *about, *oldest_evidence(case))
    except Problem as problem:
        return Checked(named, FAILED, str(problem))
    except OSError as error:  # of a folder that cannot be read: the other cases can
        return Checked(named, FAILED, f"cannot read it: {error.strerror or type(error).__name__}")


def _whole(path: Path) -> dict[str, Any]:
    """The baseline; Problem if it is a part of a diagnosis, against which nothing would be new."""
    known = read_diagnosis(path)
    if absent := [name for name in _WHOLE if known.get(name) is None]:
        do = "write it anew: `workbench diagnose CASE --json CASE/baseline.json`"
        raise Problem(f"this baseline is no whole diagnosis: it has no {', '.join(absent)}", printable(str(path)), do)
    return known


def _outcome_since(differing: Mapping[str, Any], found: Mapping[str, Any], threshold: str) -> str:
    """Whether a diagnosis is as its baseline. A finding that is known may speak of more changes than it did: they are new."""
    if worst_new(differing) >= SEVERITIES.index(threshold) or any(differing[name]["new"] for name in NAMED):
        return FINDINGS
    return INCONCLUSIVE if differing["not_compared"] or found["unknown"] or untold(found) else CLEAN


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
