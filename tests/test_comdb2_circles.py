"""Circles, nodes that wait in vain, and rows that lead nowhere: what is said of them, and what is advised."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_comdb2_diagnosis import codes, diagnosed, node
from tier_files import Made, written

from workbench import Case
from workbench.repair.planner import plan

TOLD = {"physrep_source_dbname": "S", "physrep_source_host": "s1"}


def test_a_circle_through_the_source_is_the_fault_of_its_row(tmp_path: Path) -> None:
    """What hangs on the source gets its log all the same."""
    found = diagnosed(
        tmp_path,
        written(
            tmp_path / "now",
            [Made("S@s1", source="A@a1"), Made("A@a1", source="S@s1", tunables=TOLD), Made("A@a2", source="A@a1")],
        ),
    )
    (one,) = [one for one in found["findings"] if one["code"] == "TOPOLOGY_CYCLE"]
    assert one["server"] == "S@s1" and "register anew" not in one["fix"][0]["repair"]
    assert {node["condition"] for node in found["trees"][0]["nodes"]} == {"healthy"}


def test_what_is_gone_is_gone_in_a_circle_too(tmp_path: Path) -> None:
    dead = {"answers": False, "age": 900, "at": (9, 900)}
    found = diagnosed(
        tmp_path,
        written(
            tmp_path / "now", [Made("S@s1"), Made("A@a1", source="A@a2", **dead), Made("A@a2", source="A@a1", **dead)]
        ),
    )
    assert {("REPLICANT_HUNG", "A@a1"), ("REPLICANT_HUNG", "A@a2"), ("TOPOLOGY_CYCLE", "A@a1")} <= codes(found, "error")
    assert [node(found, name)["condition"] for name in ("A@a1", "A@a2")] == ["frozen", "frozen"]
    (one,) = [one for one in found["findings"] if one["code"] == "TOPOLOGY_CYCLE"]
    assert "reset_nodes('A'" in one["fix"][0]["repair"]


def test_a_node_whose_row_says_that_it_pulls_from_itself(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1"), Made("A@a1", source="A@a1")]))
    (one,) = [one for one in found["findings"] if one["code"] == "TOPOLOGY_CYCLE"]
    assert one["summary"].startswith("A@a1 is said to pull from itself")


@pytest.mark.parametrize(("answers", "condition"), [(True, "pending"), (False, "no_source")])
def test_only_an_offer_of_a_node_that_answers_helps(answers: bool, condition: str, tmp_path: Path) -> None:
    """A row that says Active is offered for ever, whoever is behind it."""
    told = {"physrep_source_dbname": "S", "physrep_source_host": "s2"}
    other = Made("S@s2", answers=answers, age=5 if answers else 900)
    late = Made("A@a1", at=(8, 5), state="Pending", tunables=told)
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1"), other, late]))
    assert node(found, "A@a1")["condition"] == condition
    (pending,) = [one for one in found["pending"] if one["server"] == "A@a1"]
    assert pending["suppliers"] == [], "it has no source yet: nothing is on the way"


@pytest.mark.parametrize(("age", "condition"), [(5, "no_source"), (900, "hung")])
def test_who_waits_and_does_not_report_itself_is_gone(age: int, condition: str, tmp_path: Path) -> None:
    """While it asks for a source it goes on to report itself."""
    silent = Made("A@a1", at=(8, 5), state="Pending", age=age, answers=None)
    told = {"physrep_source_dbname": "S", "physrep_source_host": "s2"}
    silent.tunables = told
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1"), Made("S@s2", answers=False, age=900), silent]))
    assert node(found, "A@a1")["condition"] == condition


@pytest.mark.parametrize("state", ["Active", "Pending"])
def test_only_a_donor_that_the_registry_offers_is_advised(state: str, tmp_path: Path) -> None:
    late = Made("A@a1", at=(5, 5), first=4, source="S@s1", age=300)
    found = diagnosed(
        tmp_path, written(tmp_path / "now", [Made("S@s1"), Made("B@b1", first=4, state=state, source="S@s1"), late])
    )
    (gap,) = [one for one in found["findings"] if one["code"] == "LOG_GAP" and one["server"] == "A@a1"]
    assert gap["fix"][0]["repair"].startswith("let A@a1 replicate from B@b1" if state == "Active" else "rebuild A@a1")
    assert ("would offer none of them" in gap["summary"]) == (state == "Pending")


def test_a_row_to_connect_to_a_node_that_was_taken_out(tmp_path: Path) -> None:
    out = Made("A@a1", state="Inactive", age=900, answers=False)
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1"), out], ["A@a1 S@s1"]))
    assert not codes(found, "error")


def test_a_circle_of_nodes_of_which_nothing_else_is_known(tmp_path: Path) -> None:
    circle = [Made(f"A@a{at}", state=None, answers=None, source=f"A@a{3 - at}") for at in (1, 2)]
    folder = written(tmp_path / "now", [Made("S@s1"), *circle])
    found = diagnosed(tmp_path, folder)
    assert {node["node"] for node in found["trees"][0]["nodes"]} >= {"S@s1"}
    assert all(step.server != "S@s1" for step in plan(Case.open(tmp_path / "case")).steps)


@pytest.mark.parametrize("other", ["Active", "Inactive"])
def test_a_node_of_the_source_that_is_no_candidate(other: str, tmp_path: Path) -> None:
    """Where no other one is, nobody can register: its row is set right before anybody is rebuilt for it."""
    late = Made("A@a1", at=(8, 5), state="Pending")
    sources = [Made("S@s1", state="Pending"), Made("S@s2", state=other)]
    found = diagnosed(tmp_path, written(tmp_path / "now", [*sources, Made("A@a2", source="S@s2"), late]))
    told = {one["server"]: one for one in found["findings"] if one["code"] == "REPLICANT_INACTIVE"}
    assert told["S@s1"]["severity"] == ("error" if other == "Inactive" else "warning")
    steps = [(step.repair, step.server) for step in plan(Case.open(tmp_path / "case")).steps]
    assert [repair for repair, _ in steps] == ["set_active"] * (other == "Inactive") + ["restart"]
    assert not {repair for repair, _ in steps} & {"rebuild", "replicate_from"}


def test_what_the_source_has_deleted_is_not_soon_gone(tmp_path: Path) -> None:
    """No node of the source is there: whichever comes back begins behind the file."""
    source = Made("S@s1", first=8, age=900, answers=False)
    stuck = Made("A@a1", at=(5, 5), first=4, source="S@s1", age=300)
    found = diagnosed(tmp_path, written(tmp_path / "now", [source, stuck]))
    assert node(found, "A@a1")["gap"] == "now"
    assert not any("soon nobody" in one["summary"] for one in found["findings"])
