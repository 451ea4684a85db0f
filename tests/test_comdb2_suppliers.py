"""Nodes that get their log file from one node alone, or stand beyond their source: no plan takes that from them unasked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_comdb2_diagnosis import case_of, node
from tier_files import Made, written

from workbench import Case, diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

S = Made("S@s1", at=(20, 900), first=15)
ABOVE = Made("A@a1", at=(20, 900), first=10, source="S@s1")


def made(folder: Path, *nodes: Made) -> Case:
    return case_of(folder, written(folder / "in", nodes))


def late(host: str, place: int, source: str = "A@a1") -> Made:
    return Made(f"A@{host}", at=(13, place), first=12, source=source)


def of(found: Any, code: str, server: str | None) -> Any:
    (one,) = (one for one in found["findings"] if (one["code"], one["server"]) == (code, server))
    return one


def refusals(planned: Any, need: str) -> dict[str, str]:
    return {course.way: course.refused for course in planned.courses if course.need == need}


@pytest.mark.parametrize(
    "rows", [("Pending", 5), ("Inactive", 50_000), (None, 5)], ids=["pending", "stopped", "no row"]
)
def test_a_parent_that_answers_serves_whatever_its_row_says(rows: tuple[str | None, int], tmp_path: Path) -> None:
    above = Made("A@a1", at=(20, 900), first=10, state=rows[0], age=rows[1])
    case = made(tmp_path, S, above, late("a2", 5))
    found = diagnose(case)
    assert [(row["suppliers"], row["available"]) for row in found["pending"]] == [(["A@a1"], 1)]
    gap = of(found, "LOG_GAP", "A@a2")
    assert gap["severity"] == "warning" and gap["fix"][0]["repair"].startswith("leave A@a2 where it hangs")
    assert (
        "not before A@a2 is past log file 14, which A@a1 sends it"
        in of(found, "TOPOLOGY_ORPHAN", "A@a2")["fix"][0]["caution"]
    )
    planned = plan(case)
    assert not any("A@a2" in step.key or step.repair in ("rebuild", "restart") for step in planned.steps)
    assert any(line.startswith("LOG_GAP A@a2") and "leave A@a2 where it hangs" in line for line in planned.left)
    told = story(case, "{14:100}")
    (row,) = (row for row in told["servers"] if row["server"] == "A@a2")
    assert [one["outcome"] for one in row["suppliers"] if one["supplier"] == "A@a1"] == ["sent"]


@pytest.mark.parametrize("state", ["Pending", "Inactive"])
def test_without_a_gap_a_parent_that_answers_serves_too(state: str, tmp_path: Path) -> None:
    nodes = Made("S@s1"), Made("A@a1", state=state), Made("A@a2", at=(9, 500), source="A@a1")
    case = made(tmp_path, *nodes)
    assert [row["suppliers"] for row in diagnose(case)["pending"]] == [["A@a1"]]
    assert not any("nothing of what is lacking" in course.refused for course in plan(case).courses)


def test_of_nodes_that_one_alone_serves_none_registers_anew_to_spare_it(tmp_path: Path) -> None:
    case = made(tmp_path, S, ABOVE, *(late(f"a{at}", at) for at in (2, 3, 4)))
    full = of(diagnose(case), "FANOUT_EXCEEDED", "A@a1")
    assert full["fix"][0]["repair"].startswith("leave A@a2, A@a3, A@a4 where they hang until past log file 14")
    planned = plan(case)
    assert not planned.steps
    ways = refusals(planned, "FANOUT_EXCEEDED A@a1")
    assert "which A@a1 sends it" in ways["force-registration"] and "once past log file 14" in ways["fanout-override"]
    assert {line.partition(":")[0] for line in planned.left} == {f"LOG_GAP A@a{at}" for at in (2, 3, 4)}


def test_who_does_not_need_that_file_moves_in_place_of_those_that_do(tmp_path: Path) -> None:
    case = made(tmp_path, S, ABOVE, late("a2", 2), late("a3", 3), Made("A@a4", at=(20, 900), first=15, source="A@a1"))
    assert of(diagnose(case), "FANOUT_EXCEEDED", "A@a1")["fix"][0]["repair"].startswith("let A@a4 register anew")
    assert [(step.repair, step.server) for step in plan(case).steps] == [("force_registration", "A@a4")]


def test_the_only_supplier_of_a_node_is_not_shut_down_to_be_copied(tmp_path: Path) -> None:
    case = made(tmp_path, S, ABOVE, late("a2", 5), Made("A@a3", at=(6, 5), first=5, age=400, source="S@s1"))
    assert "not before A@a2 is past log file 14" in of(diagnose(case), "REINIT_REQUIRED", "A@a3")["fix"][0]["caution"]
    planned = plan(case)
    assert not planned.steps
    ways = refusals(planned, "REINIT_REQUIRED A@a3")
    assert "A@a2 pulls from A@a1, and the registry offers it no other node" in ways["rebuild-from-A@a1"]
    assert "A@a2 registers anew when it is started again" in ways["rebuild-from-A@a2"]
    assert "A@a1 can be copied in place of a node of the source once A@a2" in ways["rebuild-from-S@s1"]
    asked = plan(case, ["A@a3"], ["rebuild-from-S@s1"])
    assert [step.repair for step in asked.steps] == ["reset", "rebuild"]


def test_of_another_node_that_is_level_a_copy_is_made_at_once(tmp_path: Path) -> None:
    level = Made("A@a4", at=(20, 900), first=15, source="S@s1")
    case = made(tmp_path, S, ABOVE, level, late("a2", 5), Made("A@a3", at=(6, 5), first=5, age=400, source="S@s1"))
    assert "from a copy of A@a4" in of(diagnose(case), "REINIT_REQUIRED", "A@a3")["fix"][0]["repair"]
    assert [step.key for step in plan(case).steps][-1] == "2-rebuild-A@a3-from-A@a4"


def test_nobody_is_sent_to_a_node_that_is_behind_it(tmp_path: Path) -> None:
    """S@s1 lacks file 13: A@a3 would be offered A@a1, which is behind it, and A@a1 is offered A@a3."""
    two = [S, Made("S@s2", at=(20, 900), first=10)]
    case = made(tmp_path, *two, late("a1", 5, "S@s2"), late("a2", 6, "S@s2"), late("a3", 9, "S@s2"))
    full = of(diagnose(case), "FANOUT_EXCEEDED", "S@s2")
    assert "S@s1 of the source serves nobody, and lacks the log file that A@a1, A@a2, A@a3 need" in full["summary"]
    assert [step.server for step in plan(case).steps] == ["A@a1"]


def beyond(folder: Path, nodes: Sequence[Made]) -> tuple[Any, Any]:
    case = made(folder, *nodes)
    return diagnose(case), plan(case)


def test_a_node_beyond_its_source_is_not_registered_before_the_logs_were_compared(tmp_path: Path) -> None:
    found, planned = beyond(
        tmp_path, [Made("S@s1"), Made("A@a1", source="S@s1"), Made("A@a2", at=(9, 1400), state=None)]
    )
    says = of(found, "LOG_DIVERGED", "A@a2")["summary"]
    assert "no row says that A@a2 pulls from anybody" in says and "only at {9:1000}" in says
    assert "cuts off what it has behind {9:1000}" in of(found, "TOPOLOGY_ORPHAN", "A@a2")["fix"][0]["caution"]
    assert not planned.steps and all("cut" in one.costs for one in planned.courses if one.way == "force-registration")


def test_a_node_that_pulls_and_was_asked_a_moment_later_may_have_got_more(tmp_path: Path) -> None:
    found, planned = beyond(tmp_path, [Made("S@s1"), Made("A@a1", at=(9, 1400), source="S@s1")])
    assert not found["findings"] and not planned.steps


def test_a_silent_node_that_one_of_two_sources_may_need_is_not_reset(tmp_path: Path) -> None:
    nodes = [
        S,
        Made("T@t1", at=(20, 100), first=10),
        Made("A@a1", at=(13, 5), source="T@t1", tunables={"physrep_source_dbname": "S", "physrep_source_host": "@s1"}),
        Made("A@a2", at=(20, 900), first=12, source="S@s1", age=900, answers=False),
    ]
    case = made(tmp_path, *nodes)
    hung = of(diagnose(case), "REPLICANT_HUNG", "A@a2")
    assert "A@a1 may need log file 13" in hung["fix"][-1]["caution"]
    planned = plan(case)
    assert not planned.steps and "A@a1 may need" in refusals(planned, "REPLICANT_HUNG A@a2")["reset-node"]


def test_nobody_is_rebuilt_before_it_is_known_which_files_another_node_has(tmp_path: Path) -> None:
    """The end of the table was not copied: the row of A@a1 was there, and its files nothing tells."""
    nodes = [S, Made("A@a2", at=(12, 5), first=11, source="S@s1", age=400), Made("A@a1", source="S@s1", answers=None)]
    folder = written(tmp_path / "in", nodes)
    (folder / "nodes" / "logfiles.tsv").unlink()
    table = folder / "meta" / "comdb2_physreps.tsv"
    table.write_bytes(table.read_bytes()[:-30])
    case = case_of(tmp_path, folder)
    found = diagnose(case)
    assert "nothing tells which log files A@a1 has" in of(found, "LOG_GAP", "A@a2")["summary"]
    assert "REINIT_REQUIRED" not in {one["code"] for one in found["findings"]}
    assert node(found, "A@a1")["condition"] == "untold" and not plan(case).steps


SILENT = {"age": 20, "answers": False}


def arriving(case: Case) -> tuple[Any, list[tuple[str, list[str], int]], list[str]]:
    found = diagnose(case)
    rows = [(row["server"], row["suppliers"], row["available"]) for row in found["pending"]]
    return found, rows, [line for line in plan(case).open if "on its way" in line or "on their way" in line]


@pytest.mark.parametrize(
    ("above", "says"),
    [
        ([Made("A@a1", at=(20, 900), first=10, source="S@s1", **SILENT)], "LOG_GAP says of A@a2"),
        ([Made("S@s2", at=(20, 900), first=10, **SILENT)], "REPLICANT_HUNG says of S@s2"),
    ],
    ids=["replicant", "node of the source"],
)
def test_what_only_a_node_without_an_answer_may_send_is_not_on_its_way(
    above: list[Made], says: str, tmp_path: Path
) -> None:
    name = above[0].name
    found, rows, coming = arriving(made(tmp_path, S, *above, late("a2", 5, name)))
    assert rows == [("A@a2", [], 0)] and not coming
    waits = of(found, "PENDING_CHANGES", "A@a2")
    assert f"only {name}, of which no answer was collected, would send it" in waits["summary"]
    assert waits["fix"][0]["repair"] == f"do what {says}"
    assert "on the way" not in headline(found) and "no node that answered would send it now" in headline(found)


def test_what_a_node_that_is_stuck_has_itself_is_on_its_way(tmp_path: Path) -> None:
    stuck = Made("A@a1", at=(14, 5), first=10, source="S@s1")
    found, rows, _ = arriving(made(tmp_path, S, stuck, late("a2", 5)))
    assert ("A@a2", ["A@a1"], 1) in rows and ("A@a2", [], 0) in rows
    sent = [
        one for one in found["findings"] if one["code"] == "PENDING_CHANGES" and "A@a1 would send" in one["summary"]
    ]
    assert [one["severity"] for one in sent] == ["info"] and "no log that can be asked" not in sent[0]["summary"]


def test_no_advice_restarts_a_supplier_before_its_node_is_past_the_file(tmp_path: Path) -> None:
    above = Made("A@a1", at=(20, 900), first=10, state="Inactive", age=50_000)
    below = Made("A@a2", at=(13, 5), first=12, source="A@a1", lrl="replicate_from S @s1\n")
    found = diagnose(made(tmp_path, S, above, below))
    stopped = of(found, "REPLICANT_INACTIVE", "A@a1")["fix"][0]
    assert "restart A@a1 not before A@a2 is past log file 14, which A@a1 sends it" in stopped["caution"]
    lines = [one for one in found["findings"] if "nonames" in one["summary"]]
    assert ["restart A@a2 not before A@a2 is past" in one["fix"][0]["caution"] for one in lines] == [True]
