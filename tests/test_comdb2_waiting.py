"""What is said of nodes that wait for log records which nobody brings: why, and which finding says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_comdb2_diagnosis import diagnosed, node
from tier_files import Made, written

from workbench import Case
from workbench.repair.planner import plan

FAR = Made("S@s1", at=(20, 900), first=15)
CIRCLE = [Made("A@a1", at=(9, 900), source="B@b1"), Made("B@b1", at=(9, 900), source="A@a1", state=None)]


def found_of(folder: Path, *nodes: Made) -> Mapping[str, Any]:
    return diagnosed(folder, written(folder / "now", nodes))


def first_step(found: Mapping[str, Any], name: str) -> str:
    """What to do first about what a node waits for. The finding that it names must be there, of the node that it names."""
    (waits,) = (
        finding for finding in found["findings"] if finding["code"] == "PENDING_CHANGES" and name in _nodes(finding)
    )
    repair = str(waits["fix"][0]["repair"])
    code, server = repair.removeprefix("do what ").split(" says of ")
    assert any(finding["code"] == code and server in _nodes(finding) for finding in found["findings"]), repair
    return repair


def _nodes(finding: Mapping[str, Any]) -> set[str]:
    return {finding["server"], *(finding["servers"] or ()), *(row.get("node") for row in finding["evidence"])}


@pytest.mark.parametrize(
    ("nodes", "name", "repair"),
    [
        ((Made("S@s1"), Made("A@a1", at=(9, 500), source="S@s1", age=400)), "A@a1", "REPLICANT_INACTIVE says of A@a1"),
        ((Made("S@s1"), Made("A@a1", at=(9, 500), state="Pending")), "A@a1", "REPLICANT_INACTIVE says of A@a1"),
        (
            (Made("S@s1"), Made("S@s2", at=(9, 500), answers=False, age=400)),
            "S@s2",
            "REPLICANT_HUNG says of S@s2",
        ),
        (
            (
                Made("S@s1"),
                Made("A@a1", at=(9, 500), source="S@s1", age=400, answers=False),
                Made("B@b1", at=(9, 500), source="A@a1"),
            ),
            "B@b1",
            "REPLICANT_HUNG says of A@a1",
        ),
        (
            (
                FAR,
                Made("A@a1", at=(20, 900), first=15, source="S@s1"),
                Made("B@b1", at=(13, 5), first=12, source="A@a1"),
            ),
            "B@b1",
            "LOG_GAP says of B@b1",
        ),
        ((Made("S@s1"), Made("A@a1", at=(9, 500), source="X@gone")), "A@a1", "TOPOLOGY_ORPHAN says of A@a1"),
        ((Made("S@s1"), *CIRCLE), "A@a1", "TOPOLOGY_CYCLE says of A@a1"),
        ((Made("S@s1"), *CIRCLE), "B@b1", "TOPOLOGY_ORPHAN says of B@b1"),
    ],
    ids=[
        "stopped",
        "pending",
        "of the source",
        "below a frozen one",
        "file gone",
        "below an unknown one",
        "circle",
        "no row",
    ],
)
def test_what_waits_names_the_finding_that_says_what_to_do(
    nodes: tuple[Made, ...], name: str, repair: str, tmp_path: Path
) -> None:
    found = found_of(tmp_path, *nodes)
    assert first_step(found, name) == f"do what {repair}"
    assert not {supplier for row in found["pending"] if row["server"] == name for supplier in row["suppliers"]}


def test_a_frozen_parent_that_lacks_the_file_would_not_help_when_it_is_back(tmp_path: Path) -> None:
    frozen = Made("A@a1", at=(20, 900), first=15, source="S@s1", age=400, answers=False)
    source = Made("S@s1", at=(20, 900), first=12)
    found = found_of(tmp_path, source, frozen, Made("B@b1", at=(13, 5), first=12, source="A@a1"))
    assert first_step(found, "B@b1") == "do what LOG_GAP says of B@b1"


def test_a_node_of_a_circle_without_a_row_is_in_it_too(tmp_path: Path) -> None:
    found = found_of(tmp_path, Made("S@s1"), *CIRCLE)
    (circle,) = (finding["summary"] for finding in found["findings"] if finding["code"] == "TOPOLOGY_CYCLE")
    assert circle.startswith("A@a1, B@b1 pull from each other in a circle")
    assert "reports itself" not in node(found, "B@b1")["says"]


@pytest.mark.parametrize("state", ["Pending", "Inactive"])
def test_who_answers_and_does_not_report_itself_waits_for_no_source(state: str, tmp_path: Path) -> None:
    """A node that waits asks each second and goes on to report itself: one that is silent was stopped, or taken out."""
    found = found_of(tmp_path, Made("S@s1"), Made("A@a1", at=(9, 500), state=state, age=400))
    assert node(found, "A@a1")["condition"] == "stopped"
    (inactive,) = (finding for finding in found["findings"] if finding["code"] == "REPLICANT_INACTIVE")
    assert "its replication was stopped" in inactive["summary"] and "waits" not in inactive["summary"]
    assert ("taken out on purpose" in inactive["fix"][0]["caution"]) == (state == "Inactive")


def test_a_node_of_the_source_is_brought_up_to_date_by_its_cluster_and_not_from_files(tmp_path: Path) -> None:
    """S@s2 lacks what no file of S@s1 has any more: its cluster sends it all the same, and to start it may spare a rebuild."""
    behind = Made("S@s2", at=(9, 317), first=9)
    found = found_of(tmp_path / "there", FAR, behind)
    (waits,) = (row for row in found["pending"] if row["server"] == "S@s2")
    assert waits["suppliers"] == ["S@s1"] and waits["available"] == waits["count"]

    silent = Made("S@s2", at=(9, 317), first=9, answers=False, age=400)
    found = found_of(tmp_path / "silent", FAR, silent, Made("A@a1", at=(9, 136), first=7, source="S@s1"))
    assert "REINIT_REQUIRED" not in {finding["code"] for finding in found["findings"]}
    made = plan(Case.open(tmp_path / "silent" / "case"))
    assert not made.steps and any("S@s2 has log file 9" in course.refused for course in made.courses)


def test_who_waits_for_its_source_takes_nothing_that_the_registry_offers(tmp_path: Path) -> None:
    nodes = [Made("S@s1"), Made("A@a1", source="S@s1"), Made("B@b1", state="Pending", at=(9, 500))]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, awaited=["B@b1 S@s1"]))
    (told,) = [one for one in found["findings"] if one["code"] == "REPLICANT_INACTIVE"]
    assert "waits until its source connects to it" in told["summary"] and "would be offered" not in told["summary"]
    assert told["fix"][0]["repair"] == "do what REVERSE_LINK_MISSING says of B@b1"


def test_a_course_restores_what_its_node_lacks_and_no_more(tmp_path: Path) -> None:
    """C@c1 lacks one change and D@d1, which needs an older file, two."""
    above = [Made("S@s1", at=(20, 100), first=15), Made("A@a1", at=(20, 100), first=15, source="S@s1")]
    stuck = [Made("C@c1", at=(12, 5), first=10, source="A@a1"), Made("D@d1", at=(9, 5), source="C@c1")]
    found_of(tmp_path, *above, *stuck)
    restores = {course.need: course.restored for course in plan(Case.open(tmp_path / "case")).courses if course.chosen}
    assert restores == {"REINIT_REQUIRED C@c1": 1, "REINIT_REQUIRED D@d1": 2}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("Pending", "its state stays Pending"),
        ("InActive", "its row says InActive, as a replicant writes when it starts: it has not asked"),
        ("Inactive", "it is Pending once the registry has answered"),
    ],
)
def test_only_a_row_that_says_pending_is_said_to_stay_so(state: str, says: str, tmp_path: Path) -> None:
    found = found_of(tmp_path, Made("S@s1"), Made("A@a1", source="S@s1"), Made("A@a2", at=(9, 400), state=state))
    (one,) = [row for row in found["findings"] if row["code"] == "REPLICANT_INACTIVE"]
    assert says in one["fix"][-1]["why"] and ("stays Pending" in str(one)) == (state == "Pending")


def test_to_a_node_that_is_pending_nothing_is_on_the_way_whatever_a_connection_says(tmp_path: Path) -> None:
    pending = Made("A@a1", at=(9, 700), source="S@s1", state="Pending")
    found = found_of(tmp_path, Made("S@s1"), pending, Made("B@b1", at=(9, 500), source="A@a1"))
    suppliers = {row["server"]: row["suppliers"] for row in found["pending"]}
    assert suppliers["A@a1"] == [] and node(found, "A@a1")["condition"] == "pending"
    (waits,) = (x for x in found["findings"] if x["code"] == "REPLICANT_INACTIVE")
    assert "the two tables contradict each other" in waits["summary"] and "pulls from S@s1" in waits["summary"]
    assert waits["fix"][0]["repair"].startswith("collect both tables")
    assert first_step(found, "A@a1") == "do what REPLICANT_INACTIVE says of A@a1"
