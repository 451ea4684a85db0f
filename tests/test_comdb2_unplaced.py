"""Nodes that answer and of which the registry has no row: each is in the tree, in a table and in a finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_comdb2_diagnosis import case_of
from tier_files import Made, written

from workbench import diagnose
from workbench.repair.planner import plan

S, KIN = Made("S@s1"), Made("A@a1", source="S@s1")


def orphan(found: Any, name: str) -> Any:
    (one,) = (one for one in found["findings"] if (one["code"], one["server"]) == ("TOPOLOGY_ORPHAN", name))
    return one


def in_tree(found: Any, name: str) -> Any:
    (node,) = (node for tree in found["trees"] for node in tree["nodes"] if node["node"] == name)
    return node


def test_a_node_whose_kin_follow_a_source_waits_for_what_that_has(tmp_path: Path) -> None:
    case = case_of(tmp_path, written(tmp_path / "in", [S, KIN, Made("A@a2", at=(9, 400), state=None)]))
    found = diagnose(case)
    assert "A@a2 has no row in the registry, and no row says from whom it pulls" in orphan(found, "A@a2")["summary"]
    assert in_tree(found, "A@a2")["condition"] == "orphan"
    assert [(row["server"], row["suppliers"]) for row in found["pending"]] == [("A@a2", [])]
    assert "A@a2" in {server["name"] for server in found["servers"]}
    assert [step.key for step in plan(case).steps] == ["1-force-registration-of-A@a2"]


def test_the_silent_holder_of_its_file_is_not_taken_out(tmp_path: Path) -> None:
    nodes = [
        Made("S@s1", at=(20, 900), first=15),
        Made("A@a1", at=(20, 900), first=10, source="S@s1", age=500, answers=False),
        Made("A@a2", at=(12, 5), first=11, state=None),
    ]
    case = case_of(tmp_path, written(tmp_path / "in", nodes))
    found = diagnose(case)
    assert {one["code"] for one in found["findings"] if one["server"] == "A@a2"} >= {"LOG_GAP", "TOPOLOGY_ORPHAN"}
    assert "not before the gap" in str(orphan(found, "A@a2")["fix"][0]["caution"])
    made = plan(case)
    (reset,) = (one for one in made.courses if one.way == "reset-node")
    assert not made.steps and "A@a1 has log file 12, which A@a2 needs" in reset.refused


@pytest.mark.parametrize("file", [9, 12])
def test_a_node_of_another_database_is_told_and_not_judged(file: int, tmp_path: Path) -> None:
    source = Made("S@s1", at=(20, 900), first=15)
    silent = Made("A@a1", at=(20, 900), first=10, source="S@s1", age=500, answers=False)
    case = case_of(tmp_path, written(tmp_path / "in", [source, silent, Made("B@b1", (file, 400), state=None)]))
    found = diagnose(case)
    assert "which source it follows, if any" in orphan(found, "B@b1")["summary"]
    assert [(row["server"], row["why"]) for row in found["unknown"]] == [("B@b1", "source_untold")]
    node = in_tree(found, "B@b1")
    assert (node["condition"], node["actual_lag_bytes"]) == ("untold", None)
    assert {pair["decision"] for pair in found["pairs"] if "B@b1" in (pair["supplier"], pair["consumer"])} == {
        "unknown"
    }
    (reset,) = (one for one in plan(case).courses if one.way == "reset-node")
    assert ("which B@b1 may need" in (reset.refused or "")) == (file == 12)


@pytest.mark.parametrize(
    "node",
    [
        Made("B@b1", (40, 100), first=38, state=None),
        Made("B@b1", (9, 1500), state=None, generation=3),
        Made("B@b1", (9, 400), state=None, generation=5),
    ],
    ids=["files further", "older generation", "newer generation"],
)
def test_the_history_of_a_node_of_another_database_is_held_against_no_source(node: Made, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, written(tmp_path / "in", [S, KIN, node])))
    assert [one["code"] for one in found["findings"]] == ["TOPOLOGY_ORPHAN"]


@pytest.mark.parametrize(
    "tunables", [{"physrep_i_am_metadb": "ON"}, {"physrep_source_dbname": "NULL"}], ids=["registry", "no source"]
)
def test_a_node_whose_settings_say_that_it_follows_none_takes_no_part(tunables: dict[str, str], tmp_path: Path) -> None:
    node = Made("meta@m1", at=(2, 400), state=None, tunables=tunables)
    found = diagnose(case_of(tmp_path, written(tmp_path / "in", [S, KIN, node])))
    assert not found["findings"] and not found["unknown"]


def test_a_node_in_whose_files_the_registry_stands_takes_no_part(tmp_path: Path) -> None:
    folder = written(tmp_path / "in", [S, KIN, Made("meta@m1", at=(2, 400), state=None)])
    for table in [*(folder / "meta").glob("comdb2_*.tsv")]:
        table.rename(table.with_name(f"meta.m1.{table.name}"))
    found = diagnose(case_of(tmp_path, folder))
    assert not found["findings"] and not found["unknown"]


def test_a_row_without_a_source_beside_two_sources(tmp_path: Path) -> None:
    two = [S, KIN, Made("T@t1", at=(3, 100), first=1), Made("B@b1", at=(3, 100), first=1, source="T@t1")]
    case = case_of(tmp_path, written(tmp_path / "in", [*two, Made("C@c1", at=(3, 50), first=1)]))
    found = diagnose(case)
    assert "C@c1 has a row in the registry, and nothing tells which source it follows, S or T" in str(
        orphan(found, "C@c1")["summary"]
    )
    assert not plan(case).steps
