"""Two logs without a transaction in common: it is said, of both alike, and nothing is said of order or loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_incidents import Files, log, named, one
from test_drizzle_commits_elsewhere import loaded

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.planner import plan

APART: Files = {"a.log": log(1, 2, 3), "b.log": log(7, 8, 9)}


@pytest.mark.parametrize("by", [{}, {"case.yaml": named("a", "a.log")}, {"case.yaml": named("b", "b.log")}])
def test_it_is_said_and_nothing_is_planned(by: Files, tmp_path: Path) -> None:
    case = loaded(tmp_path, {**APART, **by})
    found = diagnose(case)
    (finding,) = found["findings"]
    assert (finding["code"], finding["severity"]) == ("NOTHING_IN_COMMON", "info")
    assert "a has 3 transactions of it, from 1 on; b has 3 transactions of it, from 7 on" in finding["summary"]
    assert not found["missing"] and not found["pending"] and not plan(case).steps


def test_where_the_source_is_open_each_may_lack_what_the_other_has(tmp_path: Path) -> None:
    found = diagnose(loaded(tmp_path, APART))
    assert {(row["server"], row["from"], row["to"]) for row in found["unknown"]} == {("a", "7", "9"), ("b", "1", "3")}


@pytest.mark.parametrize(
    "files",
    [
        {"a.log": log(1, 2, 3), "b.log": log(3, 8, 9)},
        {"a.log": log(1, 2, 3), "b.log": one(7, server=2)},
        {"a.log": log(1, 2, 3), "b.log": b""},
    ],
    ids=["one in common", "other ids", "an empty one"],
)
def test_it_is_not_said_of_others(files: Files, tmp_path: Path) -> None:
    assert "NOTHING_IN_COMMON" not in {each["code"] for each in diagnose(loaded(tmp_path, files))["findings"]}
