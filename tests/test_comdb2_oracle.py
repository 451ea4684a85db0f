"""What is said of made-up trees of Comdb2, and what plans for them do, against the truth of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from comdb2_fleets import case_of, tree
from comdb2_oracle import contradictions

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

FEW, MANY = range(40), range(40, 500)


def said_wrongly(seed: int, folder: Path) -> list[str]:
    """What is said of the tree of a seed and is not so."""
    made = tree(seed)
    case = case_of(made, folder)
    found = diagnose(case)
    return contradictions(made, found, plan(case), headline(found))


@pytest.mark.parametrize("seed", FEW)
def test_a_tree_is_as_it_is_said_to_be(seed: int, tmp_path: Path) -> None:
    assert said_wrongly(seed, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_many_trees_are_as_they_are_said_to_be(seed: int, tmp_path: Path) -> None:
    assert said_wrongly(seed, tmp_path) == []
