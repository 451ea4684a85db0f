"""Every sentence, number and step about the recorded snapshots of Comdb2, held against the rows of their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from comdb2_consistent import contradictions, snapshot
from comdb2_samples import TIERS

from workbench.case.case import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan
from workbench.systems import system_named

FOLDERS = sorted(path for path in TIERS.iterdir() if (path / "meta").is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_what_is_said_stands_in_the_rows(folder: Path, tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([folder])
    found, planned = diagnose(case), plan(case)
    text = diagnosis_text(system_named("comdb2"), found)
    assert contradictions(snapshot(folder), found, text, planned, plan_text(planned)) == []
