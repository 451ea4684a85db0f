"""Whose log the commits of a master are in, where the present queue has nothing of it, or the log was not collected again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drizzle_incidents import Files, applied_of_two, commits, exported, of_second, row_of, two_masters
from test_drizzle_commits_elsewhere import loaded

from workbench.diagnosis.case_diagnosis import diagnose

LOGS: Files = {
    "m.replication-log.jsonl": exported(commits(*range(1, 5))),
    "n.replication-log.jsonl": exported((commit, of_second(commit)) for commit in range(1, 7)),
}
FIRST: Files = {
    **LOGS,
    "s.state.json": applied_of_two(2, 2),
    "s.queue.jsonl": two_masters((1, 3, row_of(103)), (2, 3, of_second(3))),
}


def unmatched(found: dict[str, Any]) -> list[str]:
    return [one["summary"] for one in found["findings"] if one["code"] == "MASTER_NOT_MATCHED"]


def test_an_earlier_queue_tells_which_master_it_is(tmp_path: Path) -> None:
    now = {**LOGS, "s.state.json": applied_of_two(4, 3), "s.queue.jsonl": two_masters((2, 4, of_second(4)))}
    found = diagnose(loaded(tmp_path, FIRST, now))
    assert not unmatched(found)
    assert {row["master"]: row["source"] for row in found["appliers"]} == {"1": "m", "2": "n"}


def test_without_an_earlier_queue_nothing_tells_it(tmp_path: Path) -> None:
    now = {**LOGS, "s.state.json": applied_of_two(4, 3), "s.queue.jsonl": two_masters((2, 4, of_second(4)))}
    assert unmatched(diagnose(loaded(tmp_path, now)))


def test_a_log_that_was_not_collected_again_is_named(tmp_path: Path) -> None:
    now = {
        "m.replication-log.jsonl": LOGS["m.replication-log.jsonl"],
        "s.state.json": applied_of_two(2, 2),
        "s.queue.jsonl": two_masters((1, 3, row_of(103)), (2, 3, of_second(3))),
    }
    (says,) = unmatched(diagnose(loaded(tmp_path, FIRST, now)))
    assert "master 2 has what the log of n of snapshot s1 has, and no present log of it was collected" in says


def test_another_content_under_a_commit_of_one_log_alone_is_a_conflict(tmp_path: Path) -> None:
    """Commit 3 is as m has it, and commit 4 is not; nothing of the queue is in n."""
    altered = commits(4)[0][1]
    altered.statement[0].insert_data.record[0].insert_value[1] = b"other"
    rows = two_masters((1, 3, row_of(103)), (1, 4, altered), (2, 3, of_second(3)))
    found = diagnose(loaded(tmp_path, {**LOGS, "s.state.json": applied_of_two(2, 2), "s.queue.jsonl": rows}))
    assert not unmatched(found)
    assert [one["items"] for one in found["findings"] if one["code"] == "TXN_CONFLICT"] == [["104"]]
