"""Sources whose dump holds other records than their own earlier one: what stood there may be in the log of one copy alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from comdb2_incidents import FORKED, WHOLE, Line, dumps
from test_comdb2_diagnosis import case_of
from tier_files import NOW, Made, written

from workbench import Case, diagnose
from workbench.repair.planner import plan
from workbench.rules.assumptions import NOT_CUT_BACK


def twice(folder: Path, before: Sequence[Sequence[Line]], now: Sequence[Sequence[Line]]) -> Case:
    rooms = folder / "before", folder / "now"
    for room, logs in zip(rooms, (before, now), strict=True):
        room.mkdir()
        dumps(*logs)(room)
    return case_of(folder, *rooms)


def of_source(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if (one["code"], one["server"]) == ("LOG_DIVERGED", "S@s1")]


@pytest.mark.parametrize("other", [[], [FORKED]], ids=["alone", "beside one that is alike"])
def test_what_the_source_had_itself_is_not_cut_off_from_the_copy_that_still_has_it(
    other: list[Sequence[Line]], tmp_path: Path
) -> None:
    case = twice(tmp_path, [WHOLE, WHOLE, *(WHOLE for _ in other)], [FORKED, WHOLE, *other])
    found = diagnose(case)
    (told,) = of_source(found)
    assert told["severity"] == "error" and told["summary"].endswith("A@a1 still has them")
    assert "has other records now than it had in snapshot before: 10 records" in told["summary"]
    (copy,) = (one for one in found["findings"] if (one["code"], one["server"]) == ("LOG_DIVERGED", "A@a1"))
    assert copy["fix"][0]["repair"].startswith("first dump the log of A@a1")
    planned = plan(case)
    assert not planned.steps and "S@s1 had records in snapshot before that are gone from it" in str(
        [one.refused for one in planned.courses]
    )


def test_a_source_and_a_copy_that_both_hold_other_records_than_before_are_told(tmp_path: Path) -> None:
    (told,) = of_source(diagnose(twice(tmp_path, [WHOLE, WHOLE], [FORKED, FORKED])))
    assert told["severity"] == "error" and "still has" not in told["summary"]


def test_a_dump_that_ends_before_the_one_before_ended_early_or_the_log_was_cut(tmp_path: Path) -> None:
    (told,) = of_source(diagnose(twice(tmp_path, [WHOLE, WHOLE], [WHOLE[:30], WHOLE[:30]])))
    assert told["severity"] == "warning" and "it ended early, or the end of the log was cut off" in told["summary"]


def test_a_source_that_goes_on_has_lost_nothing(tmp_path: Path) -> None:
    assert not of_source(diagnose(twice(tmp_path, [WHOLE[:30], WHOLE[:30]], [WHOLE, WHOLE[:34]])))


def test_a_node_that_is_about_to_fall_behind_is_not_shut_down_for_a_copy(tmp_path: Path) -> None:
    """S@s1 deletes half a file a minute, and A@a1 is in its oldest one."""
    stopped = Made("A@a2", at=(9, 5), first=8, source="S@s1", age=1000)
    before = [Made("S@s1", at=(85, 900), first=75), Made("A@a1", at=(76, 5), first=75, source="S@s1"), stopped]
    now = [Made("S@s1", at=(90, 900), first=80), Made("A@a1", at=(80, 5), first=79, source="S@s1"), stopped]
    rooms = written(tmp_path / "before", before, now=NOW - timedelta(minutes=10)), written(tmp_path / "now", now)
    planned = plan(case_of(tmp_path, *rooms))
    assert not planned.steps
    assert "A@a1 needs log file 80, which its source is about to delete" in str(
        [one.refused for one in planned.courses]
    )


@pytest.mark.parametrize(("cuts", "generation"), [(1, 4), (0, 6)], ids=["cut", "elected"])
def test_a_restart_takes_for_granted_that_the_source_did_not_cut_off_what_the_node_has(
    cuts: int, generation: int, tmp_path: Path
) -> None:
    stopped = Made("A@a1", at=(9, 2000), source="S@s1", age=1200)
    before = written(tmp_path / "before", [Made("S@s1", at=(9, 2000)), stopped], now=NOW - timedelta(minutes=10))
    now = written(tmp_path / "now", [Made("S@s1", at=(9, 2500), cuts=cuts, generation=generation), stopped])
    (step,) = plan(case_of(tmp_path, before, now)).steps
    assert (step.repair, step.assumes) == ("restart", (NOT_CUT_BACK,))


def test_a_connected_node_that_lacks_less_than_a_file_is_not_said_to_lose_it_soon(tmp_path: Path) -> None:
    """The source keeps two files: each time it begins one, all that pull from it are in the oldest for a moment."""
    before = [Made("S@s1", at=(9, 1048400)), Made("A@a1", at=(9, 1048400), source="S@s1")]
    now = [Made("S@s1", at=(10, 28), first=9), Made("A@a1", at=(9, 1048476), first=9, source="S@s1")]
    rooms = written(tmp_path / "before", before, now=NOW - timedelta(minutes=10)), written(tmp_path / "now", now)
    assert "LOG_GAP" not in {one["code"] for one in diagnose(case_of(tmp_path, *rooms))["findings"]}
