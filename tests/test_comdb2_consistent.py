"""Every sentence, number and step about the recorded snapshots of Comdb2, held against the rows of their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from comdb2_consistent import contradictions, snapshot
from comdb2_samples import TIERS
from incident_samples import FOLDER

from workbench.case.case import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan
from workbench.systems import system_named

TWO_SOURCES = {"below_a_node_without_a_row", "two_trees"}
"""The second reader knows one source: the one database that others pull from, and no node of which pulls."""

FOLDERS = sorted(
    path
    for path in (*TIERS.iterdir(), *(FOLDER / "comdb2").iterdir())
    if (path / "meta").is_dir() and path.name not in TWO_SOURCES
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_what_is_said_stands_in_the_rows(folder: Path, tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([folder])
    found, planned = diagnose(case), plan(case)
    text = diagnosis_text(system_named("comdb2"), found)
    assert contradictions(snapshot(folder), found, text, planned, plan_text(planned)) == []
