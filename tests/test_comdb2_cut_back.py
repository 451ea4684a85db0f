"""A node that cut its log back after its last report: the report is of a history that it has no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_comdb2_diagnosis import diagnosed, node
from tier_files import Made, written

CUT = "2026/11/20 {} comdb2_replicated_truncate complete [9:500]\n"


@pytest.mark.parametrize(
    ("at", "since"),
    [("11:59:58", True), ("11:59:30", False), ("13:59:30", False)],
    ids=["after its report", "before it", "by a clock that is hours ahead"],
)
def test_a_report_of_before_a_cut_is_no_position(at: str, since: bool, tmp_path: Path) -> None:
    """It reported {9:700} 9 s before, and was not asked itself: no lag is computed from that once it cut back to {9:500}."""
    cut = Made("A@a1", at=(9, 700), source="S@s1", answers=None, age=9, log=CUT.format(at))
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", at=(9, 900)), cut]))
    row = node(found, "A@a1")
    assert row["registry_lsn"] == "{9:700}" and row["registry_lag_bytes"] == (None if since else 200)
    (unknown,) = [gap for gap in found["unknown"] if gap["server"] == "A@a1"] or [None]
    waits = [wait for wait in found["pending"] if wait["server"] == "A@a1"]
    if since:
        assert unknown["why"] == "cut_back" and unknown["from"] == "{9:500}" and not waits
        assert "cut its log back after its last report" in row["says"] and "on purpose" not in row["says"]
        assert row["condition"] == "cut_back" and row["cut_back_to"] == "{9:500}"
    else:
        assert unknown is None and [wait["bytes"] for wait in waits] == [200]
        assert row["condition"] == "behind" and row["cut_back_to"] is None


def test_of_a_node_that_was_cut_back_no_gap_is_told(tmp_path: Path) -> None:
    """It was at {4:500} when it cut its log back, in a file that the source has deleted: it may be in a later one by now."""
    cut = Made(
        "A@a1", at=(9, 700), source="S@s1", answers=None, age=9, log=CUT.format("11:59:58").replace("[9:", "[4:")
    )
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", at=(9, 900)), cut]))
    assert node(found, "A@a1")["gap"] is None and node(found, "A@a1")["condition"] == "cut_back"
    assert not {"LOG_GAP", "REINIT_REQUIRED"} & {finding["code"] for finding in found["findings"]}


def test_a_node_that_was_asked_since_tells_itself_how_far_it_is(tmp_path: Path) -> None:
    cut = Made("A@a1", at=(9, 800), source="S@s1", age=9, reported=(9, 700), log=CUT.format("11:59:58"))
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", at=(9, 900)), cut]))
    assert [wait["bytes"] for wait in found["pending"] if wait["server"] == "A@a1"] == [100]
