"""Sources that are silent in the last snapshot, and tables of who follows whom that only earlier ones have."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_comdb2_diagnosis import case_of, node
from test_comdb2_log_falls import copy, diverged, snapshots, source, stopped
from tier_files import NOW, Made, written

from workbench import diagnose
from workbench.repair.planner import plan


def silent(minutes: int = 10) -> Made:
    """Its row is of the first snapshot, and says less than it answered then."""
    return source((3, 500), answers=False, age=minutes * 60 + 5)


@pytest.mark.parametrize("last", [silent(20), None], ids=["silent", "without a row"])
def test_a_silent_source_stood_where_it_told_last(last: Made | None, tmp_path: Path) -> None:
    case = snapshots(
        tmp_path,
        [source((3, 800), reported=(3, 500)), copy((3, 500))],
        [silent(), copy((3, 500))],
        [*([last] if last else []), copy((3, 500))],
    )
    found = diagnose(case)
    (waits,) = found["pending"]
    assert (waits["server"], waits["last"], waits["bytes"], waits["suppliers"]) == ("A@a1", "{3:800}", 300, [])
    (said,) = (one for one in found["findings"] if one["server"] == "S@s1")
    assert said["summary"].endswith(
        "in snapshot s1 it stood at {3:800}: no other node is known to have what stands behind {3:500}"
    )
    assert not plan(case).steps and not [one for one in found["findings"] if one["code"] == "STALLED_BUT_GREEN"]


def test_a_source_that_went_back_before_it_fell_silent_is_not_taken_to_be_where_it_was_first(tmp_path: Path) -> None:
    lost = [source((3, 500)), copy((3, 500))], [source((3, 200)), copy((3, 500))]
    case = snapshots(tmp_path, *lost, [source((3, 200), answers=False, age=605), stopped((3, 500))])
    (found,) = diverged(case)
    assert "at {3:200} in snapshot s2" in found["summary"] and "A@a1" in found["summary"]
    assert "stood at {3:500}: no other" not in str(diagnose(case)["findings"]) and not plan(case).steps


def test_a_node_that_answers_again_is_where_it_says(tmp_path: Path) -> None:
    case = snapshots(
        tmp_path, [source((3, 800)), copy((3, 800))], [silent(), copy((3, 800))], [source((3, 900)), copy((3, 900))]
    )
    assert not diagnose(case)["findings"]


def test_a_copy_whose_source_is_not_in_the_last_snapshot_is_no_source_by_that(tmp_path: Path) -> None:
    case = snapshots(tmp_path, [source((3, 500)), copy((3, 400))], [copy((3, 400), source=None)])
    found = diagnose(case)
    assert [tree["source"] for tree in found["trees"]] == ["S"] and found["unknown"][0]["why"] == "source_not_collected"
    (orphan,) = found["findings"]
    assert orphan["code"] == "TOPOLOGY_ORPHAN" and "it followed S, of which this one tells nothing" in orphan["summary"]
    assert orphan["fix"][0]["repair"].startswith("collect what the nodes of S answer") and not plan(case).steps


def test_what_pulls_from_such_a_copy_is_said_to_pull_from_it(tmp_path: Path) -> None:
    below = copy((3, 400), "B@b1", source="A@a1")
    found = diagnose(
        snapshots(tmp_path, [source((3, 500)), copy((3, 400)), below], [copy((3, 400), source=None), below])
    )
    (said,) = (one["summary"] for one in found["findings"] if one["server"] == "B@b1")
    assert said == "B@b1 hangs on no source: it pulls from A@a1, which hangs on no source"


def test_a_last_table_that_names_another_parent_counts(tmp_path: Path) -> None:
    before = [source((3, 500)), copy((3, 500)), copy((3, 500), "B@b1", source="A@a1")]
    found = diagnose(snapshots(tmp_path, before, [source((3, 600)), copy((3, 600)), copy((3, 500), "B@b1")]))
    assert node(found, "B@b1")["parent"] == "S@s1" and found["pending"][0]["suppliers"] == ["S@s1"]


def test_a_copy_that_is_followed_by_its_old_source_is_the_source(tmp_path: Path) -> None:
    now = [Made("A@a1", at=(3, 600), first=2), source((3, 500), source="A@a1")]
    found = diagnose(snapshots(tmp_path, [source((3, 500)), copy((3, 500))], now))
    assert [tree["source"] for tree in found["trees"]] == ["A"]


def test_a_former_source_is_not_made_a_copy_of_the_one_that_its_copies_follow_now(tmp_path: Path) -> None:
    now = [Made("T@t1", at=(3, 600), first=2), copy((3, 500), source="T@t1"), source((3, 500))]
    case = snapshots(tmp_path, [source((3, 500)), copy((3, 500))], now)
    (said,) = (one for one in diagnose(case)["findings"] if one["server"] == "S@s1")
    assert said["code"] == "TOPOLOGY_ORPHAN" and "which source it follows, T, or none, as before" in said["summary"]
    assert not plan(case).steps
    assert [row["why"] for row in diagnose(case)["unknown"]] == ["source_untold"]


def test_what_a_source_lost_stays_known_where_the_last_snapshot_has_no_tables(tmp_path: Path) -> None:
    shots = [[source(at), copy((3, 500))] for at in ((3, 500), (3, 200), (3, 600))]
    snapshots(tmp_path, *shots)
    for table in (tmp_path / "s3" / "meta").glob("comdb2_*.tsv"):
        table.unlink()
    again = tmp_path / "again"
    again.mkdir()
    case = case_of(again, *(tmp_path / f"s{number}" for number in (1, 2, 3)))
    (found,) = diverged(case)
    assert "A@a1 may still have it" in found["summary"] and not plan(case).steps
    assert "first dump the log of A@a1" in str(found["fix"])


def test_of_logs_that_go_equally_far_the_one_that_was_the_source_before_is_taken_for_it(tmp_path: Path) -> None:
    shots = [[source((3, 500)), copy((3, 500))], [source((3, 600)), copy((3, 600), source=None)]]
    rooms = [written(tmp_path / f"s{number}", shot, now=NOW) for number, shot in enumerate(shots)]
    (rooms[1] / "meta" / "comdb2_physrep_connections.tsv").unlink()
    (tree,) = diagnose(case_of(tmp_path, *rooms))["trees"]
    assert (tree["source"], tree["source_is_known"]) == ("S", False)
