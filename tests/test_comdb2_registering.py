"""Nodes that register anew, as each does when it starts, once an hour and after an election: a state of seconds is no fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from test_comdb2_diagnosis import case_of, codes, node
from tier_files import NOW, Made, written

from workbench import Case, diagnose
from workbench.repair.planner import plan

SOURCE = Made("S@s1", at=(9, 1100))
PULLS = Made("A@a1", at=(9, 1100), source="S@s1")
BEFORE = [Made("S@s1"), Made("A@a1", source="S@s1"), Made("A@a2", source="S@s1"), Made("B@b1", source="A@a2")]


def twice(
    folder: Path, before: Sequence[Made], now: Sequence[Made], awaited: Sequence[str] = (), minutes: int = 10
) -> Case:
    first = written(folder / "before", before, awaited, now=NOW - timedelta(minutes=minutes))
    return case_of(folder, first, written(folder / "now", now, awaited))


def about(found: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == code]


@pytest.mark.parametrize("state", ["Pending", "Inactive", "InActive"])
def test_a_node_that_pulled_before_and_is_a_few_bytes_behind_registers_anew(state: str, tmp_path: Path) -> None:
    late = Made("A@a2", at=(9, 1090), state=state, age=2)
    case = twice(tmp_path, BEFORE[:3], [SOURCE, PULLS, late])
    found = diagnose(case)
    assert not codes(found, "warning") | codes(found, "error")
    (told,) = about(found, "REPLICANT_INACTIVE")
    assert told["severity"] == "info" and "in snapshot before, 600 s before, it pulled from S@s1" in told["summary"]
    assert [row["suppliers"] for row in found["pending"]] == [["S@s1", "A@a1"]]
    planned = plan(case)
    assert not planned.steps and not planned.unmended


def test_one_that_was_added_since_the_snapshot_before_registers_for_the_first_time(tmp_path: Path) -> None:
    found = diagnose(twice(tmp_path, BEFORE[:2], [SOURCE, PULLS, Made("A@a2", at=(9, 500), state="Pending")]))
    (told,) = about(found, "REPLICANT_INACTIVE")
    assert told["severity"] == "info" and "the registry had no row of it" in told["summary"]


def test_one_that_waited_in_the_snapshot_before_too_does_not_find_a_source(tmp_path: Path) -> None:
    waits = Made("A@a2", at=(9, 500), state="Pending")
    case = twice(tmp_path, [*BEFORE[:2], waits], [SOURCE, PULLS, waits])
    (told,) = about(diagnose(case), "REPLICANT_INACTIVE")
    assert told["severity"] == "warning" and "it waited in snapshot before, 10 min before, too" in told["summary"]
    assert [step.repair for step in plan(case).steps] == ["restart"]


@pytest.mark.parametrize("place", [1090, 1100])
def test_what_pulls_from_a_node_that_registers_anew_is_no_orphan(place: int, tmp_path: Path) -> None:
    registers = Made("A@a2", at=(9, place), state="Pending", age=2)
    below = [Made("B@b1", at=(9, place - 10), source="A@a2"), Made("C@c1", at=(9, place - 10), source="B@b1")]
    before = [*BEFORE, Made("C@c1", source="B@b1")]
    case = twice(tmp_path, before, [SOURCE, PULLS, registers, *below])
    found = diagnose(case)
    assert not codes(found, "warning") | codes(found, "error")
    assert {one["server"]: one["suppliers"] for one in found["pending"]}["B@b1"] == ["A@a2"]
    assert node(found, "B@b1")["condition"] in ("behind", "delayed_above") and not plan(case).steps


def test_nothing_is_rebuilt_while_the_node_that_has_its_file_registers(tmp_path: Path) -> None:
    """Only A@a1 has file 13, and it is Pending: a moment later it is offered."""
    source, level = Made("S@s1", at=(20, 900), first=15), Made("A@a3", at=(20, 900), first=15, source="S@s1")
    has = Made("A@a1", at=(20, 900), first=10, state="Pending", age=2)
    stopped = Made("A@a2", at=(13, 5), first=12, source="S@s1", age=400)
    case = case_of(tmp_path, written(tmp_path / "now", [source, level, has, stopped]))
    (gap,) = about(diagnose(case), "LOG_GAP")
    assert gap["fix"][0]["repair"].startswith("first collect again in a minute: once A@a1 is Active")
    planned = plan(case)
    assert not planned.steps
    assert "A@a1 has the log file that A@a2 needs" in str([one.refused for one in planned.courses])


def test_a_connection_that_stood_a_moment_ago_is_not_said_to_be_missing(tmp_path: Path) -> None:
    registers = Made("A@a2", at=(9, 1090), state="Pending", age=2)
    case = twice(tmp_path, BEFORE[:3], [SOURCE, PULLS, registers], ["A@a2 S@s1"], minutes=1)
    found = diagnose(case)
    (told,) = about(found, "REVERSE_LINK_MISSING")
    assert told["severity"] == "info" and "A@a2 pulled from S: the row worked then" in told["summary"]
    assert [row["suppliers"] for row in found["pending"]] == [["S@s1"]] and not plan(case).steps


def test_one_that_waits_for_its_source_since_long_ago_is_not_made_to_connect_by_itself_unasked(tmp_path: Path) -> None:
    waits = Made("A@a2", at=(9, 900), state="Pending", age=2)
    case = twice(tmp_path, [*BEFORE[:2], waits], [SOURCE, PULLS, waits], ["A@a2 S@s1"])
    (told,) = about(diagnose(case), "REVERSE_LINK_MISSING")
    assert told["severity"] == "error" and not plan(case).steps
    (step,) = plan(case, ["A@a2"], ways=["delete-reverse-row"]).steps
    assert step.repair == "reverse_row"


OLD = [
    Made(name, at=(9, 5000), reported=(9, 1000), age=590, source=above)
    for name, above in (("S@s1", None), ("A@a1", "S@s1"))
]


def test_a_node_that_got_on_since_its_last_report_was_not_stopped(tmp_path: Path) -> None:
    case = case_of(tmp_path, written(tmp_path / "now", [Made("S@s1", at=(9, 5000)), replace(OLD[1], at=(9, 4990))]))
    found = diagnose(case)
    assert codes(found, "error") == set() and node(found, "A@a1")["condition"] == "behind"
    (told,) = about(found, "REPORTS_STAND_STILL")
    assert told["summary"].startswith("A@a1 answers from {9:4990} and goes on; its row is 10 min old and says {9:1000}")
    assert [row["suppliers"] for row in found["pending"]] == [["S@s1"]] and not plan(case).steps


def test_a_registry_that_takes_no_reports_is_told_once(tmp_path: Path) -> None:
    case = case_of(tmp_path, written(tmp_path / "now", [*OLD, Made("B@b1", at=(9, 4990), age=600, source="A@a1")]))
    found = diagnose(case)
    (told,) = about(found, "REPORTS_STAND_STILL")
    assert told["server"] is None and "the rows of all 3 nodes that answer are old" in told["summary"]
    assert not codes(found, "error") and not plan(case).steps


def test_one_that_stands_where_its_old_row_says_was_stopped(tmp_path: Path) -> None:
    case = case_of(
        tmp_path, written(tmp_path / "now", [Made("S@s1", at=(9, 5000)), Made("A@a1", age=590, source="S@s1")])
    )
    (told,) = about(diagnose(case), "REPLICANT_INACTIVE")
    assert "its replication was stopped" in told["summary"] and [one.repair for one in plan(case).steps] == ["restart"]


def test_of_one_a_little_beyond_its_old_row_nothing_tells_whether_it_was_stopped(tmp_path: Path) -> None:
    """It may have been stopped between two reports: its newest commit is of before the next one was due."""
    folder = written(
        tmp_path / "now",
        [Made("S@s1", at=(9, 5000)), Made("A@a1", at=(9, 1100), reported=(9, 1000), age=590, source="S@s1")],
    )
    table, made = folder / "nodes" / "positions.tsv", int(NOW.timestamp())
    lines = table.read_text().splitlines(keepends=True)
    table.write_text(
        "".join(line.replace(f"\t{made - 5}", f"\t{made - 585}") if "\ta1\t" in line else line for line in lines)
    )
    case = case_of(tmp_path, folder)
    (told,) = about(diagnose(case), "REPLICANT_INACTIVE")
    assert "or its reports alone stand still" in told["summary"] and not plan(case).steps
