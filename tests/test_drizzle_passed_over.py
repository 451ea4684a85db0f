"""What an earlier snapshot shows that a replica could not apply is told when the replica is past it, unless a file refutes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import (
    Files,
    applied_of_two,
    commits,
    exported,
    of_second,
    queue,
    row_of,
    state,
    two_masters,
    waits,
    without_segment,
    written,
)
from drizzle_samples import event, insert, transaction
from test_drizzle_commits_elsewhere import loaded

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

SIX: Files = {"m.replication-log.jsonl": exported(commits(*range(1, 7)))}
GAP: Files = {**SIX, "s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 5, 6))}
PAST: Files = {**SIX, "s.state.json": state(6)}


def passed(case: Case) -> list[dict[str, Any]]:
    return [found for found in diagnose(case)["findings"] if found["code"] == "PASSED_OVER"]


def test_a_gap_of_an_earlier_queue_is_told_when_the_replica_is_past_it(tmp_path: Path) -> None:
    case = loaded(tmp_path, GAP, PAST)
    found = diagnose(case)
    (finding,) = passed(case)
    assert (
        "s is past 1 transaction of m: 104 (commit 4). In snapshot s1 its queue went on without it"
        in finding["summary"]
    )
    assert finding["items"] == ["104"] and finding["assumes"] == ["collected_in_order"]
    assert "take it from the log of m" in finding["fix"][0]["repair"]
    assert "No change is missing" not in headline(found) and "PASSED_OVER" in headline(found)
    assert [(row["server"], row["from"], row["why"]) for row in found["unknown"]] == [("s", "104", "passed_since")]
    assert [row["purge_below"] for row in found["appliers"]] == [4]
    made = plan(case)
    assert any(line.startswith("PASSED_OVER s: ") for line in [*made.open, *made.left])


OTHER = transaction(104, insert((b"104", b"other")))
EARLIER = {
    "a part": (waits(rows=without_segment(commits(*range(3, 7), bulk=3), 103, 2)), "103", "had it in part"),
    "another content": (
        waits(rows=[*commits(3, bulk=3), (4, OTHER), *commits(5, 6)]),
        "104",
        "with another content than the log of m",
    ),
    "what stood still": (waits(stopped="Duplicate entry '3'"), "103", "stood still before it (Duplicate entry"),
    "what the master has not": (
        {
            **GAP,
            "m.replication-log.jsonl": exported(commits(1, 2, 3, 5, 6, 7)),
            "s.queue.jsonl": queue(commits(3, 4, 5)),
        },
        "104",
        "and the log of m did not",
    ),
}


@pytest.mark.parametrize("what", EARLIER)
def test_what_else_it_could_not_apply(what: str, tmp_path: Path) -> None:
    before, position, says = EARLIER[what]
    (finding,) = passed(loaded(tmp_path, before, {**before, "s.state.json": state(7), "s.queue.jsonl": b"\n"}))
    assert says in finding["summary"] and finding["items"] == [position]


START = {"m.replication-log.jsonl": exported([*commits(1, 2, 3), (4, event(104)), *commits(5, 6)])}
NOTHING = {"m.replication-log.jsonl": exported(commits(1, 2, 3, 5, 6))}
REFUTED: dict[str, tuple[Files, ...]] = {
    "a later queue has it": (GAP, {**GAP, "s.queue.jsonl": queue(commits(3, 4, 5, 6))}, PAST),
    "its own log has it": (GAP, {**PAST, "s.log": written(row_of(100 + number) for number in range(1, 7))}),
    "it is not past it": (GAP, {**GAP, "s.state.json": state(3)}),
    "there was none": ({**GAP, "s.queue.jsonl": queue(commits(3, 4, 5, 6))}, PAST),
    "the number is that of a start": ({**GAP, **START}, {**PAST, **START}),
    "the log of the master has nothing there": ({**GAP, **NOTHING}, {**PAST, **NOTHING}),
}


@pytest.mark.parametrize("what", REFUTED)
def test_nothing_is_told_of_what_a_file_refutes(what: str, tmp_path: Path) -> None:
    assert not passed(loaded(tmp_path, *REFUTED[what]))


def test_what_the_log_was_purged_of_is_named_by_the_earlier_one(tmp_path: Path) -> None:
    now = {**PAST, "m.replication-log.jsonl": exported(commits(7, 8))}
    (finding,) = passed(loaded(tmp_path, GAP, now))
    assert "take it from the log of m of snapshot s1" in finding["fix"][0]["repair"]
    assert finding["fix"][0]["caution"] is None


def test_a_number_that_no_file_has_is_told_as_a_number(tmp_path: Path) -> None:
    before = {"s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 5, 6))}
    (finding,) = passed(loaded(tmp_path, before, {"s.state.json": state(6), "s.queue.jsonl": queue(commits(7))}))
    assert "s is past 1 commit of master 1: commit 4." in finding["summary"]
    assert "a number without a transaction is possible" in finding["fix"][0]["caution"]


def test_a_later_log_names_what_the_number_is(tmp_path: Path) -> None:
    before = {"s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 5, 6))}
    (finding,) = passed(loaded(tmp_path, before, PAST))
    assert finding["items"] == ["104"]


def test_each_master_has_its_own(tmp_path: Path) -> None:
    logs = {**SIX, "n.replication-log.jsonl": exported((commit, of_second(commit)) for commit in range(1, 7))}
    rows = ((1, 3, row_of(103)), (1, 4, row_of(104)), (2, 3, of_second(3)), (2, 5, of_second(5)))
    before = {**logs, "s.state.json": applied_of_two(2, 2), "s.queue.jsonl": two_masters(*rows)}
    now = {
        **logs,
        "s.state.json": applied_of_two(5, 5),
        "s.queue.jsonl": two_masters((1, 6, row_of(106)), (2, 6, of_second(6))),
    }
    (finding,) = passed(loaded(tmp_path, before, now))
    assert finding["items"] == ["204"] and "of n: 204 (commit 4)" in finding["summary"]


def test_what_is_missing_by_its_own_log_is_not_told_twice(tmp_path: Path) -> None:
    logged = written(row_of(100 + number) for number in (1, 2, 3, 5, 6))
    case = loaded(tmp_path, GAP, {**PAST, "s.log": logged})
    assert not passed(case)
    assert [row["position"] for row in diagnose(case)["missing"]] == ["104"]
