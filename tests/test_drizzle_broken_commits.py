"""What the log of a master has in part, or under the number of another one: no applier is started towards it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import Files, commits, exported, queue, row_of, state, without_segment
from test_drizzle_commits_elsewhere import loaded

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

BULK = commits(*range(1, 8), bulk=4)
WHOLE: Files = {"m.replication-log.jsonl": exported(BULK)}


def replica(*rows: int, stopped: str = "Lock wait") -> dict[str, bytes]:
    return {"s.state.json": state(2, stopped), "s.queue.jsonl": queue(commits(*rows))}


def lacking(*segments: int) -> dict[str, bytes]:
    """The log of m, without these messages of 104, commit 4."""
    rows = BULK
    for segment in segments:
        rows = without_segment(rows, 104, segment)
    return {"m.replication-log.jsonl": exported(rows)}


def told(case: Case, code: str, server: str) -> list[dict[str, Any]]:
    return [one for one in diagnose(case)["findings"] if (one["code"], one["server"]) == (code, server)]


def start(case: Case) -> str:
    """Why the applier is not started; empty: it is."""
    made = plan(case)
    (course,) = (one for one in made.courses if one.way == "start-applier")
    assert bool(course.refused) == (not made.steps)
    return course.refused


@pytest.mark.parametrize(("segment", "code"), [(2, "TXN_INCOMPLETE"), (3, "TXN_UNFINISHED")])
def test_what_the_master_has_in_part_comes_first(segment: int, code: str, tmp_path: Path) -> None:
    case = loaded(tmp_path, WHOLE, {**lacking(segment), **replica(3)})
    assert "4 for s wait behind what the log of its master has in part" in headline(diagnose(case))
    (one,) = told(case, code, "m")
    assert one["severity"] == "error"
    assert "all messages of it into the queue of s, from the log of m of snapshot s1" in one["fix"][0]["repair"]
    (waits,) = told(case, "PENDING_CHANGES", "s")
    assert "4 wait behind what the log of its master has in part" in waits["summary"]
    assert waits["fix"][0]["repair"].startswith("fill its queue first")
    why = start(case)
    assert "has 104 in part" in why and "from the log of m of snapshot s1" in why and code in why


def test_a_replica_that_runs_is_to_be_stopped(tmp_path: Path) -> None:
    case = loaded(tmp_path, WHOLE, {**lacking(3), **replica(3, stopped="")})
    (one,) = told(case, "TXN_UNFINISHED", "m")
    assert one["fix"][0]["repair"].startswith("stop s now, and put all messages of it")


def test_without_an_earlier_log_an_end_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    """Commit 4 is absent, and 104 has no end: the one may be the other."""
    case = loaded(tmp_path, {**lacking(3), **replica(3)})
    why = start(case)
    assert "104 without an end" in why and "--way start-applier" in why
    (waits,) = told(case, "PENDING_CHANGES", "s")
    assert waits["fix"][0]["repair"].startswith("first see whether 104 came before them")
    assert plan(case, ["s"], ["start-applier"]).steps


def test_what_is_open_behind_all_commits_holds_nothing_back(tmp_path: Path) -> None:
    rows = without_segment(commits(1, 2, 3, 4, 5, bulk=5), 105, 3)
    assert not start(loaded(tmp_path, {"m.replication-log.jsonl": exported(rows), **replica(3)}))


def test_what_the_queue_has_whole_does_not_come_from_the_log(tmp_path: Path) -> None:
    files = {"s.state.json": state(2, "Lock wait"), "s.queue.jsonl": queue(commits(3, 4, 5, bulk=4))}
    assert not start(loaded(tmp_path, WHOLE, {**lacking(2), **files}))


def test_a_queue_under_the_commits_of_others_is_not_applied(tmp_path: Path) -> None:
    others = exported((commit, row_of(300 + commit)) for commit in range(1, 7))
    case = loaded(tmp_path, {"m.replication-log.jsonl": others, **replica(3, 4, 5)})
    (one,) = told(case, "TXN_CONFLICT", "s")
    assert "(103, 104, 105) under commits of other transactions in the log of m, its master" in one["summary"]
    assert "TXN_CONFLICT" in start(case)
    (applied,) = diagnose(case)["appliers"]
    assert applied["purge_below"] is None


def test_what_waits_for_numbers_that_began_anew_does_not_simply_arrive(tmp_path: Path) -> None:
    anew = exported((commit, row_of(300 + commit)) for commit in range(1, 7))
    case = loaded(tmp_path, WHOLE, {"m.replication-log.jsonl": anew, **replica(stopped="")})
    (waits,) = told(case, "PENDING_CHANGES", "s")
    assert waits["fix"][0]["repair"].startswith("keep s from them") and "GONE_FROM_LOG" in waits["fix"][0]["repair"]
