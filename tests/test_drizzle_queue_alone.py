"""What a queue lacks by itself: where no log of its master was collected, or behind the end of that log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import Files, commits, exported, queue, row_of, state, without_segment, written

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.model import Problem
from workbench.repair.planner import plan

ASKED = ("TXN_INCOMPLETE", "QUEUE_GAP")
BULK = commits(3, 4, bulk=3)
QUEUES = {
    "a message in the middle": (without_segment(BULK, 103, 2), ("TXN_INCOMPLETE", "103 without message 2")),
    "the first message": (without_segment(BULK, 103, 1), ("TXN_INCOMPLETE", "would apply nothing of")),
    "a number": (commits(4, 5), ("QUEUE_GAP", "goes on without commit 3: no collected log has it")),
    "several numbers": (commits(3, 6, 8), ("QUEUE_GAP", "goes on without commits 4 to 5 and 1 more")),
    "nothing": (BULK, None),
    "the end, which may have the number": (
        without_segment(BULK, 103, 3),
        ("QUEUE_GAP", "commit 3: no collected log has it, and if it was a transaction, it will not come; 103, which"),
    ),
    "more numbers than ends": (
        without_segment(commits(4, 6, 7, bulk=7), 107, 3),
        ("QUEUE_GAP", "107, which the queue has without its end, may be one of them"),
    ),
}


def loaded(folder: Path, files: Files) -> Case:
    (folder / "in").mkdir()
    for name, data in files.items():
        (folder / "in" / name).write_bytes(data)
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return case


def alone(folder: Path, rows: list[tuple[int, Any]], applied: int = 2) -> Case:
    """A replica with its queue, and no log of its master."""
    return loaded(folder, {"s.state.json": state(applied), "s.queue.jsonl": queue(rows)})


def said(case: Case) -> dict[str, str]:
    """Code -> what is said of it."""
    return {found["code"]: found["summary"] for found in diagnose(case)["findings"] if found["code"] in ASKED}


@pytest.mark.parametrize("what", QUEUES)
def test_it_is_said_from_the_queue_alone(tmp_path: Path, what: str) -> None:
    rows, due = QUEUES[what]
    case = alone(tmp_path, rows)
    found = said(case)
    assert set(found) == ({due[0]} if due else set())
    if due is None:
        with pytest.raises(Problem, match="nothing can be planned"):
            plan(case)
        return
    assert due[1] in found[due[0]]
    assert due[0] in headline(diagnose(case))
    lines = [*plan(case).open, *plan(case).left]
    assert any(line.startswith(f"{due[0]} s: ") and "SYS_REPLICATION_LOG of master 1" in line for line in lines)


def test_an_applier_that_stands_still_is_not_started_before_its_queue_is_filled(tmp_path: Path) -> None:
    files = {"s.state.json": state(2, "Duplicate entry"), "s.queue.jsonl": queue(commits(4, 5))}
    (found,) = (each for each in diagnose(loaded(tmp_path, files))["findings"] if each["code"] == "APPLIER_STOPPED")
    assert "fill its queue, then start" in found["fix"][0]["repair"]


def test_what_a_replica_made_before_it_came_so_far_is_not_of_its_master(
    tmp_path: Path,
) -> None:
    files = {
        "m.replication-log.jsonl": exported(commits(*range(1, 8))),
        "s.state.json": state(3, "Duplicate entry"),
        "s.queue.jsonl": queue(commits(4, 5)),
        "s.log": written(row_of(number) for number in (101, 102, 103, 900)),
    }
    (found,) = (each for each in diagnose(loaded(tmp_path, files))["findings"] if each["code"] == "ERRANT_CHANGE")
    assert "(900), and lacks 104, which m committed before" in found["summary"] and "s's own" in found["summary"]
    assert "m was read before" not in found["summary"]


def test_what_was_applied_is_not_lacking(tmp_path: Path) -> None:
    assert not said(alone(tmp_path, without_segment(BULK, 103, 2), applied=3))


def test_behind_the_end_of_a_log_that_was_read_early_numbers_and_messages_lack_too(tmp_path: Path) -> None:
    rows = [*commits(3, 4), *without_segment(commits(6, 8, bulk=6), 106, 2)]
    case = loaded(
        tmp_path,
        {
            "m.replication-log.jsonl": exported(commits(1, 2, 3, 4)),
            "s.state.json": state(2),
            "s.queue.jsonl": queue(rows),
        },
    )
    found = said(case)
    assert "106 without message 2" in found["TXN_INCOMPLETE"]
    assert "goes on without commit 5 and 1 more" in found["QUEUE_GAP"]


def test_what_the_queue_of_one_replica_shows_another_one_waits_for(tmp_path: Path) -> None:
    """The log ends at commit 4; s has 7 and 8 in its queue, t waits for 4, 6, 7 and 8 at least, and 5 nobody shows."""
    case = loaded(
        tmp_path,
        {
            "m.replication-log.jsonl": exported(commits(1, 2, 3, 4)),
            "s.state.json": state(6),
            "s.queue.jsonl": queue(commits(7, 8)),
            "t.state.json": state(3),
            "t.queue.jsonl": queue(commits(4, 6)),
        },
    )
    found = diagnose(case)
    waits = {row["server"]: (row["count"], row["counted"]) for row in found["pending"]}
    assert waits == {"s": (2, True), "t": (4, False)}
    assert [row["behind_is_at_least"] for row in found["appliers"]] == [False, True]
    assert "without commit 5" in said(case)["QUEUE_GAP"]
