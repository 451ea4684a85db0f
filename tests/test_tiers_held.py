"""Who keeps log files from being deleted: what is told of it, and of whose settings it depends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from comdb2_incidents import of_2023
from test_comdb2_diagnosis import codes, diagnosed, node
from tier_files import Made, written

HOLDS = {"physrep_check_minlog_freq_sec": "600"}
"""The setting that tells that the program still keeps log files for others."""


def held(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == "LOG_HELD"]


def test_a_dead_node_of_the_source_holds_by_its_own_row(tmp_path: Path) -> None:
    """The rows of the source's own nodes count in any state, and the age of a report does not."""
    dead = Made("S@s2", at=(5, 500), first=5, age=9000, answers=False)
    nodes = [Made("S@s1", first=5), dead, Made("A@a1", source="S@s1", first=5)]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, **HOLDS))
    (one,) = held(found)
    assert (one["severity"], one["server"], one["items"]) == ("error", "S@s2", ["{5:500}"])
    assert "4 files" in one["summary"] and "reset_nodes" not in str(one["fix"])
    assert found["trees"][0]["retention"]["held_by"] == ["S@s2"] and node(found, "S@s2")["holds_log"]


def test_who_holds_next_is_named_and_only_what_is_held_is_counted(tmp_path: Path) -> None:
    """Files 5 and 6 for a1; 7 and 8 are kept for a2 in any case."""
    late = Made("A@a1", source="S@s1", first=5, at=(5, 100), age=9000, answers=False)
    later = Made("A@a2", source="S@s1", first=5, at=(7, 100))
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", first=5), late, later], **HOLDS))
    (one,) = held(found)
    assert (
        "S keeps 2 files, 5 to 6," in one["summary"]
        and "for it; after that A@a2 holds those from file 7 on" in one["summary"]
    )
    assert found["trees"][0]["retention"]["then"] == {"file": 7, "held_by": ["A@a2"]}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"answers": False}, "A@a1 does not report itself: frozen, dead or cut off, its row holds until it goes on"),
        ({"answers": None}, "A@a1 does not report itself"),
        ({"age": 3}, ""),
    ],
    ids=["no answer", "not asked", "slow"],
)
def test_a_node_that_may_be_frozen_is_not_called_dead(more: dict[str, Any], says: str, tmp_path: Path) -> None:
    late = Made("A@a1", source="S@s1", first=5, at=(5, 100), **{"age": 9000, **more})
    (one,) = held(diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", first=5), late], **HOLDS)))
    assert says in one["summary"] and "for ever" not in one["summary"]
    assert (one["severity"] == "error") == bool(says)


def test_a_source_that_is_where_it_writes_is_no_holder(tmp_path: Path) -> None:
    """Its row is as old as its last report: that of one that goes on is in the file before, for a while."""
    gone = Made("A@a1", source="S@s1", first=6, at=(8, 900_000), age=9000, answers=False)
    nodes = [Made("S@s1", first=6, reported=(8, 900_000)), gone]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, **HOLDS))
    assert [one["server"] for one in held(found)] == ["A@a1"]
    assert found["trees"][0]["retention"]["held_by"] == ["A@a1"]


def test_where_no_file_is_kept_nobody_holds(tmp_path: Path) -> None:
    late = Made("A@a1", source="S@s1", at=(9, 100), age=9000, answers=False)
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1"), late], **HOLDS))
    assert not held(found)
    # Older files than the source has left are not kept: nobody has to be told what they cost.
    old = Made("A@a1", source="S@s1", at=(5, 100), first=5, age=9000, answers=False)
    (tmp_path / "old").mkdir()
    found = diagnosed(tmp_path / "old", written(tmp_path / "then", [Made("S@s1", first=9), old], **HOLDS))
    assert not held(found)


@pytest.mark.parametrize(("registry", "holds"), [("S", True), ("other", False)])
def test_a_source_may_be_named_as_its_own_registry(registry: str, holds: bool, tmp_path: Path) -> None:
    late = Made("A@a1", source="S@s1", first=5, at=(5, 100), age=9000, answers=False)
    nodes = [Made("S@s1", first=5), late]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, **HOLDS, physrep_metadb_name=registry))
    assert bool(held(found)) == holds
    assert (found["trees"][0]["retention"]["file"] == 5) == holds


def test_a_registry_that_stands_in_a_configuration_file_alone(tmp_path: Path) -> None:
    late = Made("A@a1", source="S@s1", first=5, at=(5, 100), age=9000, answers=False)
    source = Made("S@s1", first=5, lrl="physrep_metadb other @meta1\nnonames\n")
    found = diagnosed(tmp_path, written(tmp_path / "now", [source, late], **HOLDS))
    assert not held(found)


@pytest.mark.parametrize(("state", "kept"), [("Active", True), ("Pending", False)])
def test_who_is_kept_files_for_is_not_told_that_nothing_keeps_them(state: str, kept: bool, tmp_path: Path) -> None:
    late = Made("A@a1", source="S@s1", first=5, at=(5, 100), age=9000, answers=False, state=state)
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", first=5), late], **HOLDS))
    assert bool(held(found)) == kept
    soon = [one for one in found["findings"] if one["code"] == "LOG_GAP"]
    assert bool(soon) != kept
    assert "nothing in this version" not in str(soon)
    assert kept or "that of A@a1 is Pending" in str(soon[0]["fix"])


def test_what_only_a_donor_has_is_no_cost_of_the_row(tmp_path: Path) -> None:
    late = Made("A@a1", source="S@s1", first=5, at=(5, 100))
    donor = Made("A@a2", source="S@s1", first=4)
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", first=7), late, donor], **HOLDS))
    (one,) = held(found)
    assert "bring it forward from A@a2 first" in one["fix"][0]["caution"] and "rebuilt" not in one["fix"][0]["caution"]


def test_what_is_rebuilt_in_any_case_is_no_cost(tmp_path: Path) -> None:
    """The source has deleted the file before the row was written: what it keeps now is of no use to the node."""
    gapped = Made("A@a1", source="S@s1", first=5, at=(5, 100), age=9000, answers=False)
    other = Made("A@a2", source="S@s1", first=7)
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", first=7), gapped, other], **HOLDS))
    (one,) = held(found)
    assert "rebuilt in any case" in one["fix"][0]["caution"] and "2 files" in one["summary"]


def test_a_node_whose_reports_do_not_arrive_holds_by_its_row(tmp_path: Path) -> None:
    """It answers from far behind its row, and has newer commits than that: to free the files costs nothing."""
    goes_on = Made("A@a1", source="S@s1", first=5, at=(9, 900), reported=(6, 100), age=9000)
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", first=5), goes_on], **HOLDS))
    (one,) = held(found)
    assert one["severity"] == "warning" and one["fix"][0]["caution"] is None
    assert ("REPORTS_STAND_STILL", "A@a1") in codes(found, "warning")


@pytest.mark.parametrize(("at", "cost"), [((6, 100), "start first")])
def test_a_stopped_node_holds_by_its_row(at: tuple[int, int], cost: str | None, tmp_path: Path) -> None:
    """Its row is all that it has."""
    stopped = Made("A@a1", source="S@s1", first=5, at=at, reported=(6, 100), age=9000)
    (one,) = held(diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", first=5), stopped], **HOLDS)))
    assert one["severity"] == "error" and "is stopped: the row stays" in one["summary"]
    caution = one["fix"][0]["caution"]
    assert caution is None if cost is None else cost in caution


def test_the_registry_decides_the_fanout(tmp_path: Path) -> None:
    """The nodes' own setting means nothing where another database answers who registers."""
    meta = Made("meta@m1", answers=None, state=None, tunables={"physrep_fanout": "4", "physrep_i_am_metadb": "ON"})
    nodes = [Made("S@s1"), meta, *(Made(f"A@a{at}", source="S@s1") for at in range(4))]
    for one in nodes:
        if one is not meta:
            one.tunables = {"physrep_metadb_name": "meta"}
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes))
    assert found["trees"][0]["fanout"] == 4 and not codes(found, "warning")


def test_the_source_decides_where_it_holds_the_registry(tmp_path: Path) -> None:
    follows = {"physrep_source_dbname": "S", "physrep_source_host": "@s1", "physrep_fanout": "8"}
    copies = [Made(f"A@a{at}", source="S@s1", tunables=follows) for at in range(4)]
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", tunables={"physrep_fanout": "3"}), *copies]))
    assert found["trees"][0]["fanout"] == 3 and ("FANOUT_EXCEEDED", "S@s1") in codes(found, "warning")


def test_the_fanout_of_one_source_alone(tmp_path: Path) -> None:
    nodes = [Made("S@s1"), *(Made(f"A@a{at}", source="S@s1") for at in range(4))]
    folder = written(tmp_path / "now", nodes, physrep_metadb_name="meta")
    (folder / "logs" / "meta.m1.lrl").write_text(
        "physrep_i_am_metadb on\nphysrep_fanout_override S 5\nphysrep_fanout_override other 1\n"
    )
    found = diagnosed(tmp_path, folder)
    assert found["trees"][0]["fanout"] == 5 and not codes(found, "warning")


def test_each_holder_that_is_gone_is_reset_and_none_that_is_there(tmp_path: Path) -> None:
    """As long as the row of one of them holds, a reset of the other frees nothing."""
    gone = [Made(f"A@a{n}", source="S@s1", first=4, at=(5, 500 + n), age=9000, answers=False) for n in (1, 2)]
    there = Made("B@b1", source="A@a1", first=4, at=(5, 800))
    (one,) = held(diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1", first=4), *gone, there], **HOLDS)))
    said = one["fix"][0]["repair"]
    assert "reset those that are gone" in said and "'a1'" in said and "'a2'" in said and "'b1'" not in said


@pytest.mark.parametrize(("place", "needs"), [((9, 1000), ""), ((7, 100), "; A@a1 needs files older than the newest")])
def test_only_who_is_files_behind_is_said_to_need_what_is_deleted(
    place: tuple[int, int], needs: str, tmp_path: Path
) -> None:
    """The earlier program: the rows say Active, and it asks for ACTIVE."""
    nodes = [Made("S@s1", first=4), Made("A@a1", source="S@s1", first=4, at=place)]
    of_2023(*nodes, **HOLDS)(folder := tmp_path / "now")
    found = diagnosed(tmp_path, folder)
    (said,) = [one["summary"] for one in found["findings"] if "asks for the state ACTIVE" in one["summary"]]
    assert "keep no log files for replicants" in said and said.partition("the rows say Active")[2] == needs
