"""Nodes of which two things say that they follow two sources: nothing is rebuilt on such a guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from comdb2_incidents import naming, tree
from test_comdb2_diagnosis import case_of
from tier_files import Made, written

from workbench import diagnose
from workbench.repair.planner import plan

S, T = Made("S@s1", at=(20, 900), first=15), Made("T@t1", at=(9, 100), first=5)
KIN = Made("B@b1", at=(9, 90), first=5, source="T@t1")


def doubted(found: Any, name: str) -> str:
    """What is said of the two sources of the node; nothing else is said of its log."""
    (one,) = (finding for finding in found["findings"] if finding["server"] == name)
    assert (one["code"], one["severity"]) == ("UNSAFE_SETTING", "warning")
    assert [row["why"] for row in found["unknown"] if row["server"] == name] == ["two_sources"]
    return str(one["summary"])


def test_a_copy_that_no_file_of_its_source_serves_beside_one_of_another_source(tmp_path: Path) -> None:
    copy = Made("B@b2", at=(9, 100), first=5, source="S@s1")
    case = case_of(tmp_path, written(tmp_path / "in", [S, T, KIN, copy]))
    assert "B@b1, which is of the same database, hangs on T" in doubted(diagnose(case), "B@b2")
    assert not any(step.server == "B@b2" for step in plan(case).steps)


@pytest.mark.parametrize("at", [(9, 100), (20, 800)])
def test_without_such_kin_or_where_the_source_serves_it_the_row_is_followed(
    at: tuple[int, int], tmp_path: Path
) -> None:
    kin = [KIN] if at > (15, 0) else []
    copy = Made("B@b2", at=at, first=5, source="S@s1")
    found = diagnose(case_of(tmp_path, written(tmp_path / "in", [S, T, *kin, copy])))
    assert not any(one["code"] == "UNSAFE_SETTING" for one in found["findings"])
    assert "B@b2" in {row["server"] for row in found["pending"]}


def test_settings_that_name_another_source_than_the_registry(tmp_path: Path) -> None:
    nodes = Made("S@s1", at=(9, 900)), Made("T@t1", at=(12, 100), first=11), Made("A@a2", at=(9, 900), source="S@s1")
    naming("s1", "A@a1", tree(*nodes, Made("A@a1", at=(9, 800), source="T@t1")))(tmp_path / "in")
    case = case_of(tmp_path, tmp_path / "in")
    assert "its settings name S@s1 as its source" in doubted(diagnose(case), "A@a1")
    assert not plan(case).steps
