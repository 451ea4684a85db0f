"""Nodes that look connected and get nothing; and tables that were not collected, of which nothing is said."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from comdb2_incidents import FOLLOWS, SOURCE
from test_comdb2_diagnosis import diagnosed
from tier_files import NOW, Made, written

from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.systems import system_named

STILL, WAITS = "replicate_from S @s1\n", "replicate_from S @s1\nreplicate_wait 7200\n"


def twice(folder: Path, minutes: int, *changed: Made, lrl: str = STILL) -> dict[str, Any]:
    """A@a1 at {8:300}; in the second snapshot the source is two files further."""
    late = Made("A@a1", at=(8, 300), source="S@s1", lrl=lrl)
    before = written(folder / "before", [SOURCE, late], now=NOW - timedelta(minutes=minutes))
    return diagnosed(folder, before, written(folder / "now", [Made("S@s1", at=(11, 10)), *(changed or (late,))]))


def stalled(found: dict[str, Any]) -> list[str]:
    return [one["summary"] for one in found["findings"] if one["code"] == "STALLED_BUT_GREEN"]


def test_a_node_that_has_not_moved_while_its_source_did_is_told(tmp_path: Path) -> None:
    found = twice(tmp_path, 10)
    (said,) = stalled(found)
    assert "A@a1 stands at {8:300}" in said and "10 min before" in said and "unless" not in said
    assert [row["suppliers"] for row in found["pending"]] == [[]]


@pytest.mark.parametrize(
    ("lrl", "count"), [("", 1), (WAITS, 0)], ids=["nothing tells of a delay", "it waits two hours"]
)
def test_a_delay_may_explain_it(lrl: str, count: int, tmp_path: Path) -> None:
    found = twice(tmp_path, 10, lrl=lrl)
    assert len(stalled(found)) == count and all("unless it waits on purpose" in said for said in stalled(found))
    assert [row["suppliers"] for row in found["pending"]] == [["S@s1"]]
    assert ("see also STALLED_BUT_GREEN" in headline(found)) == bool(count)


def test_a_node_that_moved_or_was_seen_twice_within_a_minute_is_merely_behind(tmp_path: Path) -> None:
    moved = Made("A@a1", at=(8, 400), source="S@s1", lrl=STILL)
    assert not stalled(twice(tmp_path / "moved", 10, moved)) and not stalled(twice(tmp_path / "soon", 1))


@pytest.mark.parametrize(("value", "found_"), [("1", 1), ("0", 0)])
def test_what_a_node_counts_of_itself_is_heard(value: str, found_: int, tmp_path: Path) -> None:
    folder = written(tmp_path / "now", [SOURCE, FOLLOWS, Made("A@a2", at=(9, 500), source="S@s1")])
    (folder / "nodes" / "metrics.tsv").write_text(f"A\ta2\tphysrep_no_viable_source\t{value}\n")
    told = [one for one in diagnosed(tmp_path, folder)["findings"] if one["code"] == "REPLICANT_INACTIVE"]
    assert len(told) == found_ and all("no source that it tried" in one["summary"] for one in told)


def text_of(found: dict[str, Any]) -> str:
    return diagnosis_text(system_named("comdb2"), found)


def test_a_table_that_was_not_collected_is_not_called_empty(tmp_path: Path) -> None:
    folder = written(tmp_path / "now", [SOURCE, FOLLOWS])
    (folder / "meta" / "comdb2_physreps.tsv").unlink()
    found = diagnosed(tmp_path, folder)
    assert not found["trees"][0]["nodes_are_listed"] and not found["findings"]
    assert "no row" not in text_of(found) and "never" not in text_of(found)


def test_a_table_that_is_empty_offers_nobody_anything(tmp_path: Path) -> None:
    folder = written(tmp_path / "now", [SOURCE, FOLLOWS])
    (folder / "meta" / "comdb2_physreps.tsv").write_text("")
    found = diagnosed(tmp_path, folder)
    assert found["trees"][0]["nodes_are_listed"] and "no row" in text_of(found)
    assert ("TOPOLOGY_ORPHAN", "error") in [(one["code"], one["severity"]) for one in found["findings"]]


def test_that_no_row_is_of_a_host_is_said_of_a_collected_table_alone(tmp_path: Path) -> None:
    told = {"physrep_source_dbname": "S", "physrep_source_host": "s9"}
    waits = Made("A@a2", at=(9, 500), state="Pending", tunables=told)
    for name, collected in (("with", True), ("without", False)):
        folder = written(tmp_path / name / "now", [SOURCE, FOLLOWS, waits])
        if not collected:
            (folder / "meta" / "comdb2_physreps.tsv").unlink()
        text = text_of(diagnosed(tmp_path / name, folder))
        assert ("no row is of a host of that name" in text) == collected
