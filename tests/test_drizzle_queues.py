"""What is said of made-up fleets whose replicas export their queues, and of what they lack there, against the truth of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_queue_oracle import contradictions
from drizzle_queues import case_of, queues

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.diagnosis.incident import Incident
from workbench.repair.planner import plan
from workbench.report.report_pipeline import whole_report
from workbench.systems import system_named

FEW, MANY = range(24), range(24, 500)
MENDED = (63, 222, 466)
"""Fleets of which something was said that did not come true."""


def said_wrongly(seed: int, folder: Path) -> list[str]:
    """What is said of the fleet of a seed and is not so."""
    made = queues(seed)
    case = case_of(made, folder)
    found = diagnose(case)
    text = diagnosis_text(system_named("drizzle"), found)
    report = " ".join(whole_report(Incident(case))["plain"])
    return contradictions(made, found, plan(case), headline(found), text, report)


@pytest.mark.parametrize("seed", [*FEW, *MENDED])
def test_what_queues_lack_is_as_it_is_said_to_be(seed: int, tmp_path: Path) -> None:
    assert said_wrongly(seed, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_what_many_queues_lack_is_as_it_is_said_to_be(seed: int, tmp_path: Path) -> None:
    assert said_wrongly(seed, tmp_path) == []
