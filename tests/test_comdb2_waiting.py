"""What is said of nodes that wait for log records which nobody brings: why, and which finding says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_comdb2_diagnosis import diagnosed, node
from tier_files import Made, written

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
