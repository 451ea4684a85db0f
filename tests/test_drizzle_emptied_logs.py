"""A log without a transaction: what an earlier log of that server had is named, and another log is not called the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import Files, commits, exported, log, named, queue, state
from drizzle_samples import event, record
from test_drizzle_commits_elsewhere import loaded

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.systems.drizzle import SYSTEM

BEFORE: Files = {"a.log": log(*range(1, 6)), "b.log": log(1, 2, 3)}
HEADER = b"ID,SEGID,COMMIT_ID,END_TIMESTAMP,ORIGINATING_SERVER_UUID,ORIGINATING_COMMIT_ID,MESSAGE_LEN,MESSAGE\n"


def sentences(found: dict[str, Any], code: str) -> dict[str, str]:
    return {each["server"]: each["summary"] for each in found["findings"] if each["code"] == code}


@pytest.mark.parametrize("now", [b"", record(event(9))], ids=["empty", "start"])
@pytest.mark.parametrize("by", [{}, {"case.yaml": named("a", "a.log")}])
def test_what_the_earlier_log_had_is_named(now: bytes, by: Files, tmp_path: Path) -> None:
    found = diagnose(loaded(tmp_path, {**BEFORE, **by}, {"a.log": now, "b.log": log(1, 2, 3), **by}))
    assert sentences(found, "GONE_FROM_LOG") == {
        "a": "a: its log has no transaction (a.log), and the log of a of snapshot s1 has 5 transactions of server 1 (from 1 on): "
        "what others lack of these is not known"
    }
    assert "GONE_FROM_LOG" in headline(found) and "No change is missing" not in headline(found)
    assert "b" not in {row["source"] for row in found["streams"] if row["source_known_by"]}


@pytest.mark.parametrize("now", [{"m.replication-log.jsonl": b""}, {"m.replication-log.csv": HEADER}])
def test_an_export_without_rows_is_named(now: Files, tmp_path: Path) -> None:
    waiting = {"s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 4))}
    case = loaded(tmp_path, {"m.replication-log.jsonl": exported(commits(*range(1, 7))), **waiting}, {**now, **waiting})
    assert "has 6 transactions of server 1 (from 101 on)" in sentences(diagnose(case), "GONE_FROM_LOG")["m"]


def test_without_an_earlier_log_it_is_said_that_nothing_is_known(tmp_path: Path) -> None:
    found = diagnose(loaded(tmp_path, {"a.log": b"", "b.log": log(1, 2, 3), "case.yaml": named("a", "a.log")}))
    assert sentences(found, "UNREADABLE_INPUT") == {
        "a": "a: its log has no transaction (a.log): what a committed is not known"
    }
    assert "(source)" not in diagnosis_text(SYSTEM, found)


@pytest.mark.parametrize(
    "files",
    [
        {"a.log": record(event(9)), "b.log": log(1, 2, 3)},
        {"a.log": log(1, 2, 3), "b.log": log(1, 2, 3), "s.queue.jsonl": b""},
    ],
)
def test_a_start_alone_and_an_empty_queue_are_no_fault(files: Files, tmp_path: Path) -> None:
    found = diagnose(loaded(tmp_path, files))
    assert not sentences(found, "UNREADABLE_INPUT") and not sentences(found, "GONE_FROM_LOG")


def test_a_log_that_has_something_again_is_no_empty_one(tmp_path: Path) -> None:
    found = diagnose(loaded(tmp_path, BEFORE, {**BEFORE, "a.log": b""}, BEFORE))
    assert not sentences(found, "GONE_FROM_LOG")


def test_of_a_copy_it_is_said_that_its_state_is_not_known(tmp_path: Path) -> None:
    a = {"a.log": log(1, 2, 3, 4), "case.yaml": named("a", "a.log")}
    found = diagnose(loaded(tmp_path, {**a, "b.log": log(1, 2, 3)}, {**a, "b.log": b""}))
    assert sentences(found, "GONE_FROM_LOG")["b"].endswith("(from 1 on): what b has now is not known")
