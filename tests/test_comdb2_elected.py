"""Two histories by what nodes answer alone: nobody waits for what lies behind the parting on the one that was not elected."""

from __future__ import annotations

from pathlib import Path

from test_comdb2_diagnosis import case_of, node
from tier_files import Made, written

from workbench import diagnose
from workbench.case.case import Case
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan


def parted(folder: Path, elected: tuple[int, int], *copies: Made) -> Case:
    """S@s1 of generation 7, S@s2 still of generation 4 at {9:900}."""
    nodes = [Made("S@s1", at=elected, generation=7), Made("S@s2", at=(9, 900), generation=4)]
    return case_of(folder, written(folder / "in", [*nodes, *copies]))


def test_what_lies_behind_the_parting_is_not_awaited(tmp_path: Path) -> None:
    copies = Made("A@a1", at=(9, 900), generation=4, source="S@s2"), Made("A@a2", (9, 700), generation=7, source="S@s1")
    case = parted(tmp_path, (9, 700), *copies)
    found = diagnose(case)
    assert not found["pending"] and "on the way" not in headline(found)
    assert [(row["server"], row["why"]) for row in found["unknown"]] == [
        ("A@a1", "not_elected"),
        ("S@s2", "not_elected"),
    ]
    assert found["trees"][0]["source_head_actual"] == [9, 700]
    assert node(found, "A@a2")["condition"] == "healthy" and not node(found, "S@s1")["served_by"]
    made = plan(case)
    assert not made.steps and not any("on its way" in line for line in made.open)


def test_nothing_is_on_the_way_from_the_history_that_was_not_elected(tmp_path: Path) -> None:
    copies = Made("A@a1", (9, 600), generation=4, source="S@s2"), Made("A@a2", (9, 500), generation=7, source="S@s1")
    found = diagnose(parted(tmp_path, (9, 900), *copies))
    assert {row["server"]: row["suppliers"] for row in found["pending"]} == {"A@a1": [], "A@a2": ["S@s1"]}
    (waits,) = (one for one in found["findings"] if one["code"] == "PENDING_CHANGES" and one["server"] == "A@a1")
    assert waits["fix"][0]["repair"] == "do what LOG_DIVERGED says of S@s2"
    assert "S@s2" not in node(found, "A@a2")["served_by"]
