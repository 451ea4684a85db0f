"""What the log of a source says of a transaction that a copy has in part, or has otherwise; and what is done about that."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_incidents import Files, _taken_back, cut_between, cut_within, log, named, one, written

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.repair.planner import plan
from workbench.systems import system_named

BULK = cut_between(50)
NAMED = {"case.yaml": named("a", "a.log")}


def loaded(folder: Path, files: Files) -> Case:
    (folder / "in").mkdir()
    for name, data in files.items():
        (folder / "in" / name).write_bytes(data)
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return case


def findings(case: Case, code: str) -> list[dict]:
    return [found for found in diagnose(case)["findings"] if found["code"] == code]


def test_nobody_asks_the_source_of_what_its_log_shows_as_committed(tmp_path: Path) -> None:
    """b is behind, and has two of three messages of 50: the rest of it is still to come."""
    case = loaded(
        tmp_path,
        {"a.log": log(1, 2) + written(BULK) + log(60), "b.log": log(1, 2) + written(BULK[:2]), **NAMED},
    )
    (found,) = findings(case, "TXN_UNFINISHED")
    assert "their source committed 1 of them: the rest is still to come" in found["summary"]
    assert found["fix"][0]["repair"].startswith("collect the log of b once more")


def test_what_nobody_tells_the_source_is_asked(tmp_path: Path) -> None:
    case = loaded(tmp_path, {"a.log": log(1) + written(BULK[:2]) + log(60)})
    (found,) = findings(case, "TXN_UNFINISHED")
    assert found["fix"][0]["repair"].startswith("ask the source")


@pytest.mark.parametrize("is_known", [True, False])
def test_what_the_source_took_back_it_did_not_commit(tmp_path: Path, is_known: bool) -> None:
    files = {
        "a.log": log(1) + written(_taken_back()) + log(60),
        "b.log": log(1) + written(cut_within(50, 4)) + log(60),
    }
    case = loaded(tmp_path, files | (NAMED if is_known else {}))
    (found,) = findings(case, "TXN_CONFLICT")
    assert ("b committed 1 transaction of server 1 (50) that a, its source, took back" in found["summary"]) == is_known
    assert ("both committed" in str(found["fix"])) != is_known


def test_one_missed_transaction_is_applied_and_all_data_are_not_replaced_for_what_comes(tmp_path: Path) -> None:
    """b lacks 3, and its log was copied while 5 was written: what is from there on its way is not copied with all data."""
    behind = log(1, 2, 4) + one(5)[:-9]
    case = loaded(tmp_path, {"a.log": log(1, 2, 3, 4, 5, 6), "b.log": behind, **NAMED})
    made = plan(case)
    assert [(step.repair, step.server, step.changes) for step in made.steps] == [("apply", "b", 1)]
    refused = {course.way: course.refused for course in made.courses if course.need.startswith("PENDING_CHANGES")}
    assert set(refused) == {"apply", "provision"} and all("collect it again first" in why for why in refused.values())


def test_two_named_sources_of_one_id_are_none(tmp_path: Path) -> None:
    """What is only concluded from the name of the one stands neither in the first line nor in a table."""
    names = b"servers:\n- name: a\n  origin: '1'\n  files: [a.log]\n- name: b\n  origin: '1'\n  files: [b.log]\n"
    case = loaded(tmp_path, {"a.log": log(1, 2, 3), "b.log": log(1, 2, 3, 4), "case.yaml": names})
    found = diagnose(case)
    assert not found["pending"] and not found["missing"]
    assert {row["source_known_by"] for row in found["streams"]} == {None}
    text = diagnosis_text(system_named("drizzle"), found)
    assert "on the way" not in headline(found) and "(source)" not in text
    assert [row["position"] for row in found["errant"]] == ["4"]
