"""Registries without the rows of nodes: the source's row comes first, and what is taken for granted is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from test_comdb2_diagnosis import case_of
from tier_files import Made, written

from workbench import diagnose
from workbench.case.case import Case
from workbench.repair.planner import plan

NODES = [Made("S@s1"), Made("A@a1", at=(9, 500), source="S@s1"), Made("A@a2", source="S@s1")]


def without(folder: Path, *tables: str) -> Case:
    """The three nodes, with tables of the registry that have no row."""
    made = written(folder / "in", NODES)
    for name in tables:
        (made / "meta" / f"{name}.tsv").write_text("")
    return case_of(folder, made)


def told(found: Any, code: str, server: str | None) -> Any:
    (one,) = (finding for finding in found["findings"] if (finding["code"], finding["server"]) == (code, server))
    return one


def test_a_node_registers_anew_once_the_source_has_its_row(tmp_path: Path) -> None:
    case = without(tmp_path, "comdb2_physreps")
    (fix,) = told(diagnose(case), "TOPOLOGY_ORPHAN", "A@a1")["fix"]
    assert fix["repair"].startswith("first do what TOPOLOGY_ORPHAN says of S@s1, then let A@a1 register anew")
    first = plan(case).steps[0]
    assert (first.repair, first.server) == ("restart", "S@s1")


def test_the_only_node_of_a_source_has_no_cluster_that_does_its_work(tmp_path: Path) -> None:
    made = plan(without(tmp_path, "comdb2_physreps"))
    (course,) = (one for one in made.courses if one.way == "restart-S@s1")
    assert "nobody can write to S" in course.costs
    assert "other nodes of its cluster" not in made.steps[0].stands_on


def test_of_an_empty_registry_without_settings_no_node_is_called_the_source(tmp_path: Path) -> None:
    case = without(tmp_path, "comdb2_physreps", "comdb2_physrep_connections")
    found = told(diagnose(case), "TOPOLOGY_ORPHAN", None)
    assert "no row of any node: none of A@a1, A@a2, S@s1" in found["summary"]
    assert found["fix"][0]["repair"].startswith("collect the settings of the nodes") and not plan(case).steps


def test_the_fanout_that_was_not_collected_is_told_of_steps_too(tmp_path: Path) -> None:
    nodes = [Made("S@s1"), *(Made(f"A@a{at}", source="S@s1") for at in range(1, 10))]
    folder = written(tmp_path / "in", [*nodes, Made("B@b1", at=(9, 500), state="Pending")])
    (folder / "nodes" / "tunables.tsv").unlink()
    case = case_of(tmp_path, folder)
    assert told(diagnose(case), "REPLICANT_INACTIVE", "B@b1")["assumes"] == ["default_setting"]
    steps = [step for step in plan(case).steps if step.repair in ("force_registration", "fanout_override")]
    assert steps and all(step.assumes == ("default_setting",) for step in steps)
