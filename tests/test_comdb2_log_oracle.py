"""What is said of logs of made-up fleets of Comdb2, with a registry and without, against what the nodes have."""

from __future__ import annotations

from pathlib import Path

import pytest
from comdb2_log_fleets import case_of, fleet
from comdb2_log_oracle import contradictions

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.repair.planner import plan
from workbench.systems import system_named

FEW, MANY = range(60), range(60, 600)


def said_wrongly(seed: int, folder: Path) -> list[str]:
    """What is said of the fleet of a seed and is not so."""
    made = fleet(seed)
    case = case_of(made, folder)
    found = diagnose(case)
    text = diagnosis_text(system_named("comdb2"), found)
    return contradictions(made, found, plan(case), headline(found), text)


@pytest.mark.parametrize("seed", FEW)
def test_logs_are_as_they_are_said_to_be(seed: int, tmp_path: Path) -> None:
    assert said_wrongly(seed, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_many_logs_are_as_they_are_said_to_be(seed: int, tmp_path: Path) -> None:
    assert said_wrongly(seed, tmp_path) == []
