"""What an earlier log of a server has, and its present log lacks: it is named, and no plan goes past it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drizzle_incidents import Files, log, named
from test_drizzle_not_given import applied, refused

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan


def case_of(folder: Path, *snapshots: Files) -> Case:
    case = Case.create(folder / "case")
    for number, files in enumerate(snapshots, 1):
        (folder / f"s{number}").mkdir()
        for name, data in {**files, "case.yaml": named("a", "a.log")}.items():
            (folder / f"s{number}" / name).write_bytes(data)
        case.load([folder / f"s{number}"])
    return case


def gone(found: dict[str, Any]) -> dict[str, str]:
    """Server -> what is said of its log."""
    return {one["server"]: one["summary"] for one in found["findings"] if one["code"] == "GONE_FROM_LOG"}


BEFORE = {"a.log": log(1, 2, 3, 4, 5), "b.log": log(1, 2, 3)}


def test_what_the_source_has_no_more_is_named_and_nothing_goes_past_it(tmp_path: Path) -> None:
    case = case_of(tmp_path, BEFORE, {"a.log": log(1, 2, 3, 5, 6), "b.log": log(1, 2, 3)})
    found = diagnose(case)
    assert gone(found) == {"a": "a: its log lacks 1 transaction of server 1 (4) that its log of snapshot s1 has"}
    assert "No change is known to be missing" in headline(found) and "GONE_FROM_LOG" in headline(found)
    assert [(row["server"], row["from"], row["why"]) for row in found["unknown"]] == [("b", "4", "gone_from_source")]
    (told,) = (one for one in found["findings"] if one["code"] == "GONE_FROM_LOG")
    assert "stop b now, and apply it there before what follows it" in told["fix"][0]["repair"]
    made = plan(case)
    assert not made.steps
    for way in ("apply", "provision"):
        assert "4 comes before" in refused(made)[way] and "as it had in snapshot s1" in refused(made)[way]
    assert any(line.startswith("GONE_FROM_LOG a: ") for line in [*made.open, *made.left])


def test_a_log_that_has_it_alike_gives_it_and_it_is_nobodys_own(tmp_path: Path) -> None:
    whole = log(1, 2, 3, 4, 5, 6)
    case = case_of(tmp_path, BEFORE, {"a.log": log(1, 2, 3, 5, 6), "b.log": log(1, 2, 3), "c.log": whole})
    assert not diagnose(case)["stranded"]
    assert applied(plan(case)) == {"b": ["4", "5", "6"]}


def test_what_it_lost_at_its_end_holds_nothing_back(tmp_path: Path) -> None:
    case = case_of(tmp_path, BEFORE, {"a.log": log(1, 2, 3, 4), "b.log": log(1, 2, 3), "c.log": log(1, 2, 3, 4, 5)})
    found = diagnose(case)
    assert "(5) that its log of snapshot s1" in gone(found)["a"]
    assert not [one for one in found["findings"] if one["code"] == "ERRANT_CHANGE"]
    assert applied(plan(case)) == {"b": ["4"]}


def test_a_copy_that_was_set_back_is_named(tmp_path: Path) -> None:
    now = {"a.log": log(1, 2, 3, 4), "b.log": log(1)}
    found = diagnose(case_of(tmp_path, {"a.log": log(1, 2, 3, 4), "b.log": log(1, 2, 3)}, now))
    assert gone(found) == {"b": "b: its log lacks 2 transactions of server 1 (2, 3) that its log of snapshot s1 has"}
    (told,) = (one for one in found["findings"] if one["code"] == "GONE_FROM_LOG")
    assert "it needs them from a again" in told["fix"][0]["caution"]


def test_a_log_that_goes_on_or_begins_later_lost_nothing(tmp_path: Path) -> None:
    for name, later in (("on", log(1, 2, 3, 4, 5, 6)), ("later", log(3, 4, 5, 6)), ("anew", log(7, 8))):
        (tmp_path / name).mkdir()
        assert not gone(diagnose(case_of(tmp_path / name, BEFORE, {**BEFORE, "a.log": later})))
