"""Rows of a time to come of nodes that do not answer; and a copy of a node that is brought the rest."""

from __future__ import annotations

from pathlib import Path

from test_comdb2_diagnosis import case_of, node
from tier_files import Made, written

from workbench import diagnose
from workbench.repair.planner import plan


def test_who_reported_itself_in_a_time_to_come_is_not_said_to_report_nothing(tmp_path: Path) -> None:
    silent = Made("A@a1", at=(9, 500), source="S@s1", age=-3000, answers=False)
    case = case_of(tmp_path, written(tmp_path / "in", [Made("S@s1"), silent, Made("A@a2", source="S@s1")]))
    found = diagnose(case)
    assert node(found, "A@a1")["condition"] == "unreachable"
    assert "error" not in {one["severity"] for one in found["findings"]}
    assert not plan(case).steps


def test_nothing_is_on_the_way_to_a_node_whose_report_is_of_a_time_to_come(tmp_path: Path) -> None:
    unasked = Made("A@a1", at=(9, 500), source="S@s1", age=-4000, answers=None)
    case = case_of(tmp_path, written(tmp_path / "in", [Made("S@s1"), unasked, Made("A@a2", source="S@s1")]))
    found = diagnose(case)
    assert [row["suppliers"] for row in found["pending"]] == [[]]
    (waits,) = (one for one in found["findings"] if one["code"] == "PENDING_CHANGES")
    assert waits["fix"][0]["repair"] == "do what CLOCK_AHEAD says of A@a1"
    assert not any("on its way" in line for line in plan(case).open)


def test_a_replicant_that_gets_on_is_copied_before_the_source_is_shut_down(tmp_path: Path) -> None:
    nodes = [
        Made("S@s1", at=(20, 900), first=15),
        Made("A@a1", at=(13, 900), first=10, source="S@s1", age=300),
        Made("A@a3", at=(20, 800), first=14, source="S@s1"),
    ]
    made = plan(case_of(tmp_path, written(tmp_path / "in", nodes)))
    rebuilt = made.steps[-1]
    assert rebuilt.repair == "rebuild" and "a copy of A@a3" in rebuilt.says and "brought the rest" in rebuilt.stands_on
