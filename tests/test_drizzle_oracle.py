"""What is said of made-up fleets of Drizzle, and what plans for them do, against the truth of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_fleets import case_of, fleet
from drizzle_oracle import contradictions

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

FEW, MANY = range(24), range(24, 500)
MENDED = (235, 259, 331, 333, 360, 383, 385, 482, 488)
"""Fleets of which something was said that did not come true."""


def said_wrongly(seed: int, folder: Path) -> list[str]:
    """What is said of the fleet of a seed and is not so."""
    made = fleet(seed)
    case = case_of(made, folder)
    found = diagnose(case)
    return contradictions(made, found, plan(case), headline(found))


@pytest.mark.parametrize("seed", [*FEW, *MENDED])
def test_a_fleet_is_as_it_is_said_to_be(seed: int, tmp_path: Path) -> None:
    assert said_wrongly(seed, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_many_fleets_are_as_they_are_said_to_be(seed: int, tmp_path: Path) -> None:
    assert said_wrongly(seed, tmp_path) == []
