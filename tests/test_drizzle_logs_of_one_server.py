"""Several logs of one server in one folder: the one that goes furthest is its log, and the others are earlier ones of it."""

from __future__ import annotations

from pathlib import Path

from drizzle_incidents import Files, commits, exported, log, named, state
from test_drizzle_commits_elsewhere import loaded

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story


def source_in(second: str) -> Files:
    """a is the source, and has two files."""
    return {"case.yaml": f"servers:\n- name: a\n  origin: '1'\n  files: [a.log, {second}]\n".encode()}


def test_a_rotated_log_shows_what_a_copy_passed_over(tmp_path: Path) -> None:
    case = loaded(
        tmp_path,
        {"a.log.1": log(1, 2, 3, 4), "a.log": log(4, 5, 6), "b.log": log(1, 3, 4, 5, 6), **source_in("a.log.1")},
    )
    found = diagnose(case)
    (row,) = found["missing"]
    assert (row["server"], row["position"]) == ("b", "2")
    assert row["says"].endswith("the log of a of snapshot s1 (a.log.1), its source, has it")
    assert {each["server"] for each in found["streams"]} == {"a", "b"}


def test_what_a_rotated_log_of_a_copy_has_is_there(tmp_path: Path) -> None:
    files = {
        "a.log": log(*range(1, 8)),
        "b.log.1": log(1, 2, 3),
        "b.log": log(4, 5, 6),
        "case.yaml": named("a", "a.log"),
    }
    case = loaded(tmp_path, files)
    found = diagnose(case)
    assert not found["unknown"] and not found["missing"]
    verdicts = {row["server"]: (row["verdict"], row["rule"]) for row in story(case, "2")["servers"]}
    assert verdicts["b"] == ("present", "earlier_log")


def test_so_does_an_earlier_log_of_it(tmp_path: Path) -> None:
    a = {"a.log": log(*range(1, 8)), "case.yaml": named("a", "a.log")}
    found = diagnose(loaded(tmp_path, {**a, "b.log": log(1, 3)}, {**a, "b.log": log(4, 5, 6)}))
    assert [(row["from"], row["to"]) for row in found["unknown"]] == [("2", "2")]


def test_a_copy_of_a_log_adds_nothing(tmp_path: Path) -> None:
    files = {
        "a.log": log(1, 2, 3, 4, 5),
        "a.copy.log": log(1, 2, 3),
        "b.log": log(1, 2, 3, 4),
        **source_in("a.copy.log"),
    }
    found = diagnose(loaded(tmp_path, files))
    assert {each["code"] for each in found["findings"]} == {"PENDING_CHANGES"}
    assert {each["server"] for each in found["streams"]} == {"a", "b"}


def test_two_files_of_other_contents_are_told(tmp_path: Path) -> None:
    files = {
        "a.log": log(1, 2, 3, 4, 5),
        "a.copy.log": log(1, 2, 3, t2="other"),
        "b.log": log(1, 2, 3, 4),
        **source_in("a.copy.log"),
    }
    (says,) = (
        each["summary"] for each in diagnose(loaded(tmp_path, files))["findings"] if each["code"] == "TXN_CONFLICT"
    )
    assert "with another content or end than its log of snapshot s1 (a.copy.log)" in says


def test_an_export_in_two_files_gives_what_the_first_has(tmp_path: Path) -> None:
    files = {
        "m.1.replication-log.jsonl": exported(commits(1, 2, 3, 4)),
        "m.2.replication-log.jsonl": exported(commits(4, 5, 6)),
        "s.state.json": state(2),
    }
    found = diagnose(loaded(tmp_path, files))
    assert {row["server"] for row in found["streams"]} == {"m"}
    assert not [each for each in found["findings"] if each["code"] == "QUEUE_GAP" and "103" not in each["summary"]]
