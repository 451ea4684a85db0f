"""What findings and plans say of rows that contradict each other, that are not there, or that were there before."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from test_comdb2_diagnosis import case_of
from tier_files import NOW, Made, written

from workbench import Case, diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

S, FAR = Made("S@s1"), Made("S@s1", at=(20, 900), first=15)


def made(folder: Path, *nodes: Made) -> Case:
    return case_of(folder, written(folder / "in", nodes))


def of(found: Any, code: str, server: str) -> Any:
    (one,) = (one for one in found["findings"] if (one["code"], one["server"]) == (code, server))
    return one


def test_of_a_silent_node_whose_row_says_inactive_not_the_contrary_is_said(tmp_path: Path) -> None:
    silent = Made("A@a1", at=(9, 500), source="S@s1", state="Inactive", age=9000, answers=False)
    case = made(tmp_path, S, silent)
    hung = of(diagnose(case), "REPLICANT_HUNG", "A@a1")
    assert "its row says Inactive" in hung["summary"] and "still says that it replicates" not in hung["summary"]
    assert hung["fix"][0]["repair"].startswith("collect both tables")
    assert hung["fix"][-1]["why"] == "its place under its source is free then"
    assert not plan(case).steps


def test_a_level_node_of_which_two_tables_say_two_things(tmp_path: Path) -> None:
    found = diagnose(made(tmp_path, S, Made("A@a1", source="S@s1", state="Inactive")))
    told = of(found, "REPLICANT_INACTIVE", "A@a1")
    assert told["severity"] == "info" and "the two tables contradict each other" in told["summary"]


def test_of_a_node_without_a_row_no_row_is_reset(tmp_path: Path) -> None:
    nodes = S, Made("A@a1", source="S@s1"), Made("A@a2", answers=False, state=None)
    hung = of(diagnose(made(tmp_path, *nodes)), "REPLICANT_HUNG", "A@a2")
    assert len(hung["fix"]) == 1 and "keeps the row" not in hung["fix"][0]["why"]


def test_a_donor_without_a_row_is_not_said_to_wait(tmp_path: Path) -> None:
    late = Made("A@a2", at=(12, 5), first=11, source="S@s1", age=400)
    gap = of(diagnose(made(tmp_path, FAR, Made("A@a1", at=(20, 900), first=10, state=None), late)), "LOG_GAP", "A@a2")
    assert gap["summary"].endswith("the registry would offer none of them: it has no row of A@a1")


def test_rows_of_an_earlier_snapshot_are_named(tmp_path: Path) -> None:
    kin, pulled = Made("A@a1", source="S@s1"), Made("B@b1", at=(9, 600), source="S@s1")
    first = written(tmp_path / "before", [S, kin, pulled], now=NOW - timedelta(minutes=10))
    second = written(tmp_path / "now", [S, kin, Made("B@b1", at=(9, 600), state=None)])
    told = of(diagnose(case_of(tmp_path, first, second)), "TOPOLOGY_ORPHAN", "B@b1")
    assert "in snapshot before a row said that it pulls from S@s1" in told["summary"]
    assert "nothing of this snapshot tells which source it follows" in told["summary"]


def test_what_rests_on_the_name_of_a_database_says_so(tmp_path: Path) -> None:
    case = made(tmp_path, S, Made("A@a1", source="S@s1"), Made("A@a2", at=(9, 400), state=None))
    assert of(diagnose(case), "PENDING_CHANGES", "A@a2")["assumes"] == ["source_of_kin"]
    assert [step.assumes for step in plan(case).steps] == [("source_of_kin",)]


def test_of_a_node_whose_source_was_not_collected_nothing_is_judged(tmp_path: Path) -> None:
    told = {"physrep_source_dbname": "Q", "physrep_source_host": "@q1"}
    case = made(tmp_path, S, Made("A@a1", source="S@s1"), Made("B@b1", at=(9, 600), state=None, tunables=told))
    found = diagnose(case)
    assert [(row["server"], row["why"]) for row in found["unknown"]] == [("B@b1", "source_not_collected")]
    orphan = of(found, "TOPOLOGY_ORPHAN", "B@b1")
    assert "of Q, which B@b1 follows, nothing was collected" in orphan["summary"]
    assert orphan["fix"][0]["repair"].startswith("collect what the nodes of Q answer")
    assert "known to be missing" in headline(found)


def test_a_donor_below_a_node_that_was_not_elected_serves_once_it_pulls_from_the_other_one(tmp_path: Path) -> None:
    nodes = [
        Made("S@s1", at=(20, 500), first=15, generation=7),
        Made("S@s2", at=(20, 900), first=15, generation=4),
        Made("A@a1", at=(20, 300), first=10, source="S@s2"),
        Made("A@a2", at=(12, 5), first=11, source="S@s1", age=400),
    ]
    case = made(tmp_path, *nodes)
    gap = of(diagnose(case), "LOG_GAP", "A@a2")
    assert gap["fix"][0]["repair"].startswith("do what LOG_DIVERGED says of S@s2, and let A@a2 pull from none of A@a1")
    steps = plan(case).steps
    assert [step.key for step in steps] == ["1-A@a1-from-S@s1", "2-A@a2-from-A@a1"]
    assert all("log_of_one_history" in step.assumes for step in steps)


def test_the_source_is_shut_down_once_and_its_copy_is_copied(tmp_path: Path) -> None:
    stuck = Made("A@a1", at=(14, 5), first=10, source="S@s1"), Made("A@a2", at=(13, 5), first=12, source="A@a1")
    rebuilt = [step.key for step in plan(made(tmp_path, FAR, *stuck)).steps if step.repair == "rebuild"]
    assert rebuilt == ["2-rebuild-A@a1-from-S@s1", "4-rebuild-A@a2-from-A@a1"]
