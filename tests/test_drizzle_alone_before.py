"""What only an earlier log of a copy shows of its own: it is told, and no copy of all data replaces it unasked."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_incidents import Files, emptied, log, one
from test_drizzle_gone_from_log import case_of

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.planner import plan

OWN = {"under the id of the source": one(900), "under its own id": one(1, server=7)}
NOW: Files = {"a.log": log(5, 6) + emptied(7) + log(8, 9), "b.log": log(5, 6, 8)}


def errant(case: Case) -> list[str]:
    found = diagnose(case)["findings"]
    return [told["summary"] for told in found if told["code"] == "ERRANT_CHANGE" and told["server"] == "b"]


@pytest.mark.parametrize("own", OWN)
def test_what_a_log_that_began_anew_had_of_its_own_is_not_thrown_away(own: str, tmp_path: Path) -> None:
    before = {"a.log": log(*range(1, 7)), "b.log": log(1, 2, 3) + OWN[own] + log(4, 5)}
    case = case_of(tmp_path, before, NOW)
    (says,) = errant(case)
    assert says.startswith("only the log of b of snapshot s1 has 1 transaction")
    made = plan(case)
    whys = [course.refused for course in made.courses if course.way == "provision"]
    assert whys and all("no log of another server has" in why and "--way provision" in why for why in whys)
    assert not made.steps and plan(case, ["b"], ["provision"]).steps


def test_without_something_of_its_own_it_is_provisioned(tmp_path: Path) -> None:
    case = case_of(tmp_path, {"a.log": log(*range(1, 7)), "b.log": log(*range(1, 6))}, NOW)
    assert not errant(case)
    assert [step.repair for step in plan(case).steps] == ["provision"]


@pytest.mark.parametrize(
    ("source", "copy"),
    [(log(1, 2, 3), log(1, 2, 3, 4)), (log(3, 4), log(1, 2, 3, 4)), (log(1, 2), log(3, 4))],
)
def test_what_the_source_does_not_cover_is_not_called_its_own(source: bytes, copy: bytes, tmp_path: Path) -> None:
    """Read before the copy; begun behind it; with nothing in common."""
    case = case_of(tmp_path, {"a.log": source, "b.log": copy}, {"a.log": log(7, 8, 9), "b.log": log(7, 8)})
    assert not errant(case)


def test_a_way_that_one_finding_refuses_is_not_chosen_under_the_next(tmp_path: Path) -> None:
    """b missed 3 and waits for 6 to 8; its earlier log has 3, and 900 of its own."""
    before = {"a.log": log(*range(1, 7)), "b.log": log(1, 2, 3, 900, 4)}
    made = plan(case_of(tmp_path, before, {"a.log": log(*range(1, 9)), "b.log": log(1, 2, 4, 5)}))
    assert {course.need.split()[0] for course in made.courses} == {"MISSED_CHANGE", "PENDING_CHANGES"}
    assert not made.steps
