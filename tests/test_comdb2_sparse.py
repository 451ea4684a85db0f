"""Files that lack in the middle of a node's log: who needs one of them gets no further there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from test_comdb2_diagnosis import case_of, node
from tier_files import Made, written

from workbench import diagnose
from workbench.case.case import Case
from workbench.repair.planner import plan


def sparse(folder: Path, source: Sequence[int], copy: Sequence[int] = (), late: tuple[int, int] = (12, 5)) -> Case:
    """S@s1 and A@a1 with files from 10 on, without those; A@a2 is stopped behind them."""
    nodes = [
        Made("S@s1", at=(20, 900), first=10, lacks=source),
        Made("A@a1", at=(20, 900), first=10, source="S@s1", lacks=copy),
        Made("A@a2", at=late, first=10, source="S@s1", age=400),
    ]
    return case_of(folder, written(folder / "in", nodes))


def summary(found: Any, code: str) -> str:
    (one,) = (finding for finding in found["findings"] if finding["code"] == code)
    return str(one["summary"])


def test_where_the_source_lacks_a_file_only_who_has_it_serves(tmp_path: Path) -> None:
    case = sparse(tmp_path, [13, 14])
    found = diagnose(case)
    assert "needs log file 13" in summary(found, "LOG_GAP") and "not 13 and 14" in summary(found, "LOG_GAP")
    assert node(found, "A@a2")["files_needed_from"] == 13 and node(found, "A@a2")["served_by"] == ["A@a1"]
    made = plan(case)
    assert [step.repair for step in made.steps] == ["replicate_from"]
    assert all(course.refused for course in made.courses if course.way == "restart")


def test_where_nobody_has_the_file_only_a_copy_helps(tmp_path: Path) -> None:
    case = sparse(tmp_path, [13, 14], [13])
    found = diagnose(case)
    assert {"LOG_GAP", "REINIT_REQUIRED"} <= {one["code"] for one in found["findings"]}
    assert node(found, "A@a2")["gap"] == "now" and not node(found, "A@a2")["served_by"]
    made = plan(case)
    assert [step.repair for step in made.steps] == ["reset", "rebuild"]
    (refused,) = (course.refused for course in made.courses if course.way == "donor-S@s1")
    assert "does not have file 13" in refused


def test_a_node_behind_the_hole_is_served_by_the_source(tmp_path: Path) -> None:
    found = diagnose(sparse(tmp_path, [13, 14], late=(15, 5)))
    assert "LOG_GAP" not in {one["code"] for one in found["findings"]}
    assert node(found, "A@a2")["served_by"] == ["A@a1", "S@s1"]


def test_a_list_that_ends_early_or_begins_later_than_the_answer(tmp_path: Path) -> None:
    """It was read earlier, or files were deleted meanwhile: of the first nothing is told, of the second the later one."""
    ends = diagnose(sparse(tmp_path / "ends", [19, 20], late=(18, 5)))
    assert "LOG_GAP" not in {one["code"] for one in ends["findings"]}
    begins = diagnose(sparse(tmp_path / "begins", [10, 11], late=(10, 5)))
    assert "begins with file 12" in summary(begins, "LOG_GAP")
    assert node(begins, "A@a2")["served_by"] == ["A@a1"]


def test_a_list_with_lines_that_were_not_read_shows_no_hole(tmp_path: Path) -> None:
    nodes = [
        Made("S@s1", at=(20, 900), first=10, lacks=[13]),
        Made("A@a2", at=(12, 5), first=10, source="S@s1", age=400),
    ]
    folder = written(tmp_path / "in", nodes)
    with (folder / "nodes" / "logfiles.tsv").open("a") as table:
        table.write("S\ts1\tlog.00000\n")
    assert "LOG_GAP" not in {one["code"] for one in diagnose(case_of(tmp_path, folder))["findings"]}
