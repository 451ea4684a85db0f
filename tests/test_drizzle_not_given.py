"""What a copy needs, and the log of its source cannot give: no plan goes past it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import WHOLE, Files, cut_between, damaged, log, named, one, written
from drizzle_samples import event, record

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan

BAD = damaged(WHOLE, 5 * len(one(5)) - 1)
"""The trailer of the fifth record is another one."""

BULK = cut_between(50)


def case_of(folder: Path, files: Files) -> Case:
    (folder / "in").mkdir()
    for name, data in {**files, "case.yaml": named("a", "a.log")}.items():
        (folder / "in" / name).write_bytes(data)
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return case


def applied(made: Plan) -> dict[str, list[str]]:
    """Server -> what it is given, in this order."""
    return {step.server: [each["position"] for each in step.details["transactions"]] for step in made.steps}


def refused(made: Plan) -> dict[str, str]:
    return {course.way: course.refused for course in made.courses}


def waits(case: Case) -> dict[str, Any]:
    (found,) = (each for each in diagnose(case)["findings"] if each["code"] == "PENDING_CHANGES")
    return dict(found)


def test_what_is_damaged_there_comes_from_a_log_that_has_the_same(tmp_path: Path) -> None:
    case = case_of(tmp_path, {"a.log": BAD, "b.log": log(1, 2, 3, 4), "c.log": WHOLE})
    assert "the log of a has 5 damaged (whole in the log of c)" in waits(case)["summary"]
    made = plan(case)
    assert applied(made) == {"b": ["5", "6", "7", "8", "9", "10"]}
    (step,) = made.steps
    assert [Path(each["file"]).name for each in step.details["transactions"]] == ["c.log", *["a.log"] * 5]
    assert "5 comes from another log" in step.says and "does not prove the arrival" not in step.risk
    assert "from 5 on" in step.risk and not any("cannot be judged" in says for says in made.open)


def test_it_comes_first_where_a_copy_is_past_it_too(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, {"a.log": BAD, "b.log": log(1, 2, 3, 4, 7, 8, 9, 10), "c.log": WHOLE}))
    assert applied(made) == {"b": ["5", "6"]}


PLAIN = (log(1, 2), log(60, 61))
NOWHERE = {
    "a damaged record": ({"a.log": BAD, "b.log": log(1, 2, 3, 4)}, "5", "damaged"),
    "another content": ({"a.log": BAD, "b.log": log(1, 2, 3, 4), "c.log": log(*range(1, 11), t5="y")}, "5", "damaged"),
    "a lost message": (
        {"a.log": written([BULK[0], BULK[2]]).join(PLAIN), "b.log": PLAIN[0]},
        "50",
        "in part",
    ),
    "no record": (
        {"a.log": bytes(97).join((log(1, 2, 3, 4), log(6, 7))), "b.log": log(1, 2, 3, 4)},
        "",
        "lost records",
    ),
}


@pytest.mark.parametrize("what", NOWHERE)
def test_no_plan_goes_past_what_no_log_gives(tmp_path: Path, what: str) -> None:
    files, position, how = NOWHERE[what]
    case = case_of(tmp_path, files)
    found = waits(case)
    assert f"the log of a {f'has {position} {how}' if position else how}" in found["summary"]
    assert found["fix"][0]["repair"] == "apply none of them by hand before what comes first"
    made = plan(case)
    assert not made.steps
    assert f"{position or 'what it lost'} comes before" in refused(made)["apply"] and how in refused(made)["apply"]
    # All data of the source do not go through its log: a person may ask for them.
    course = next(each for each in made.courses if each.way == "provision")
    assert "does not go through that log" in course.unasked and how in course.unasked
    step = plan(case, only=["b"], ways=["provision"]).steps[0]
    assert (step.repair, step.server) == ("provision", "b")


def test_what_lost_a_message_comes_from_a_log_with_all_of_them(tmp_path: Path) -> None:
    part = written([BULK[0], BULK[2]])
    files = {"a.log": part.join(PLAIN), "b.log": PLAIN[0], "c.log": written(BULK).join(PLAIN)}
    assert applied(plan(case_of(tmp_path, files))) == {"b": ["50", "60", "61"]}


def test_what_a_copy_has_begun_comes_whole_from_a_log_that_has_the_same(tmp_path: Path) -> None:
    whole = written(BULK).join(PLAIN)
    end = len(PLAIN[0]) + len(written(BULK))
    files = {"a.log": damaged(whole, end - 1), "b.log": PLAIN[0] + written(BULK[:1]), "c.log": whole}
    case = case_of(tmp_path, files)
    assert "the log of a has 50 damaged (whole in the log of c)" in waits(case)["summary"]
    found = diagnose(case)
    assert [(row["server"], row["from"], row["why"]) for row in found["unknown"]] == [("b", "50", "source_unclear")]
    (opened,) = (each for each in found["findings"] if each["code"] == "TXN_UNFINISHED")
    assert "c has it with its end" in opened["summary"] and "whole from the log of c" in opened["fix"][0]["repair"]
    assert applied(plan(case)) == {"b": ["50", "60", "61"]}


def test_what_copies_have_and_the_source_lacks_is_named_before_a_copy_passes_it(tmp_path: Path) -> None:
    case = case_of(tmp_path, {"a.log": log(1, 2, 3, 5, 6), "b.log": log(1, 2, 3), "c.log": log(1, 2, 3, 4, 5, 6)})
    made = plan(case)
    assert applied(made) == {"b": ["5", "6"]}
    assert "The log of c has 4 among these, which the log of a lacks (STRANDED_CHANGE)" in made.steps[0].risk
    assert any(line.startswith("STRANDED_CHANGE c: ") for line in [*made.open, *made.left])


def test_what_is_damaged_at_the_end_is_looked_for_where_logs_end_before_it(tmp_path: Path) -> None:
    whole = log(1, 2, 3)
    case = case_of(tmp_path, {"a.log": damaged(whole, len(whole) - 1), "b.log": log(1, 2), "c.log": whole})
    (found,) = (each for each in diagnose(case)["findings"] if each["code"] == "RECORD_CORRUPT")
    assert (
        "take 3 from the log of c and see whether it arrives at b, whose log ends before it"
        in found["fix"][0]["repair"]
    )


ANEW = record(event(3)) + log(1, 2, t1="n", t2="n")
"""A start of the server, and numbers that it gave before."""


def test_numbers_that_were_given_anew_are_no_conflict_and_no_other_data(tmp_path: Path) -> None:
    case = case_of(tmp_path, {"a.log": log(1, 2, 3) + ANEW, "b.log": log(1, 2, 3)})
    found = diagnose(case)
    assert {one["code"] for one in found["findings"]} == {"ID_REUSED", "PENDING_CHANGES"}
    assert [(row["server"], row["count"]) for row in found["pending"]] == [("b", 2)]
    assert applied(plan(case)) == {"b": ["1", "2"]}


def test_a_number_that_was_given_twice_is_not_applied_where_it_tells_nothing(tmp_path: Path) -> None:
    case = case_of(tmp_path, {"a.log": log(5, 1, 2, 3) + ANEW, "b.log": log(5, 2, 3)})
    made = plan(case)
    assert "is one of several that had this number (ID_REUSED)" in refused(made)["apply"]
    assert [step.repair for step in made.steps] == ["provision"]


def test_what_stands_before_it_is_applied_as_ever(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, {"a.log": BAD, "b.log": log(1, 2, 4)}))
    course, later = (each for each in made.courses if each.way == "apply")
    assert course.chosen and not course.refused and "apply 1 transaction to b" in course.says
    assert "5 comes before" in later.refused  # what is on its way: all data are not copied for that, either
