"""Nodes that are held against their own younger word, and sources against what a node below them shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_comdb2_diagnosis import case_of, node
from tier_files import Made, written

from workbench import Case, diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan


def made(folder: Path, *nodes: Made) -> Case:
    return case_of(folder, written(folder / "in", nodes))


def gone_back(found: Any) -> list[Any]:
    return [
        one
        for one in found["findings"]
        if one["code"] == "LOG_DIVERGED" and "later: the end of its log" in one["summary"]
    ]


ASKED = Made("A@a1", at=(9, 1000), source="S@s1")


def test_the_younger_report_of_a_source_counts_and_not_its_older_answer(tmp_path: Path) -> None:
    source = Made("S@s1", at=(9, 5000), reported=(9, 1000), age=2, asked_before=60)
    further = Made("A@a2", at=(9, 5000), age=3, source="S@s1", answers=None)
    found = diagnose(made(tmp_path, source, ASKED, further))
    assert not found["pending"] and node(found, "A@a1")["condition"] == "healthy"
    (told,) = gone_back(found)
    assert (told["server"], told["severity"], told["assumes"]) == ("S@s1", "warning", ["asked_in_order"])
    assert "S@s1 answered {9:5000} at 11:59:00, and reported {9:1000} 58 s later" in told["summary"]
    assert told["summary"].endswith("A@a2 still goes further")


def test_where_all_answers_are_older_than_the_registry_their_clock_may_be_behind(tmp_path: Path) -> None:
    source = Made("S@s1", at=(9, 5000), reported=(9, 1000), age=2, asked_before=60)
    found = diagnose(made(tmp_path, source, Made("A@a1", at=(9, 1000), source="S@s1", asked_before=60)))
    assert not gone_back(found) and node(found, "A@a1")["condition"] == "behind"


def test_a_node_that_answers_less_than_it_had_reported_is_told(tmp_path: Path) -> None:
    found = diagnose(made(tmp_path, Made("S@s1"), Made("A@a1", at=(9, 400), reported=(9, 900), source="S@s1")))
    (told,) = gone_back(found)
    assert (told["server"], told["severity"]) == ("A@a1", "info")
    assert "A@a1 reported {9:900} at 11:59:55, and answered {9:400} 5 s later" in told["summary"]


def test_a_node_whose_report_fell_back_by_files_is_asked_before_it_is_rebuilt(tmp_path: Path) -> None:
    fell = Made("A@a1", at=(20, 900), reported=(12, 5), age=2, first=10, source="S@s1", asked_before=600)
    nodes = Made("S@s1", at=(20, 900), first=15), fell, Made("A@a2", at=(20, 900), first=15, source="S@s1")
    case = made(tmp_path, *nodes)
    found = diagnose(case)
    (gap,) = (one for one in found["findings"] if one["code"] == "LOG_GAP")
    assert gap["assumes"] == ["asked_in_order"] and gap["fix"][0]["repair"].startswith("first ask A@a1 once more")
    assert "REINIT_REQUIRED" not in {one["code"] for one in found["findings"]} and not plan(case).steps


@pytest.mark.parametrize(
    "source", [{"age": 3000, "answers": None}, {"age": 20, "answers": False}], ids=["hung", "young"]
)
def test_what_a_node_below_a_silent_source_shows_the_others_lack(source: dict[str, Any], tmp_path: Path) -> None:
    nodes = Made("S@s1", **source), Made("A@a1", at=(9, 1400), source="S@s1"), Made("A@a2", source="S@s1")
    case = made(tmp_path, *nodes)
    found = diagnose(case)
    assert [(row["server"], row["bytes"], row["suppliers"]) for row in found["pending"]] == [("A@a2", 400, [])]
    behind = node(found, "A@a2")
    assert (behind["condition"], behind["registry_lag_bytes"], behind["gap"]) == ("behind", 400, None)
    assert "nobody would send it now" in headline(found)
    assert [row["pending"] for row in plan(case).after if row["server"] == "A@a2"] == [1]
    (waits,) = (one for one in found["findings"] if one["code"] == "PENDING_CHANGES")
    assert waits["fix"][0]["repair"] == "do what REPLICANT_HUNG says of S@s1"


def test_a_node_that_told_before_the_other_one_may_have_got_it_since(tmp_path: Path) -> None:
    reports = [("S@s1", 1000, 58), ("A@a1", 1400, 2), ("A@a2", 1000, 3)]
    nodes = [
        Made(name, at=(9, at), age=age, source=None if age == 58 else "S@s1", answers=None) for name, at, age in reports
    ]
    assert not diagnose(made(tmp_path, *nodes))["pending"]
