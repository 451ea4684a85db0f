"""What queues lack or hold otherwise, by the queues of others, earlier files, and what replicas say that they applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import Files, commits, exported, log, named, queue, state, written
from drizzle_samples import insert, transaction
from test_drizzle_commits_elsewhere import LACKING, gaps, loaded
from test_drizzle_gone_from_log import case_of
from test_drizzle_not_given import refused

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.model import Problem
from workbench.repair.planner import plan


def replica(name: str, applied: int, rows: list[tuple[int, Any]], stopped: str = "") -> Files:
    return {f"{name}.state.json": state(applied, stopped), f"{name}.queue.jsonl": queue(rows)}


def other(commit: int) -> tuple[int, Any]:
    """Transaction 100 + n under commit n, with another content."""
    return commit, transaction(100 + commit, insert((b"%d" % commit, b"other")))


def summaries(found: dict[str, Any], code: str) -> list[str]:
    return [one["summary"] for one in found["findings"] if one["code"] == code]


LOGGED = {"m.replication-log.jsonl": exported(commits(*range(1, 7)))}
PURGED = {"m.replication-log.jsonl": exported(commits(6, 7, 8))}


@pytest.mark.parametrize(
    ("snapshots", "place"),
    [
        ([LOGGED, {**PURGED, **replica("s", 2, [])}], "the log of m of snapshot s1"),
        ([{**PURGED, **replica("s", 2, []), **replica("t", 2, commits(3, 4, 5))}], "the queue of t"),
    ],
)
def test_what_the_log_of_a_master_begins_behind_is_named_where_another_file_has_it(
    snapshots: list[Files], place: str, tmp_path: Path
) -> None:
    """An empty file shows no queue: it may have them."""
    found = diagnose(loaded(tmp_path, *snapshots))
    (gap,) = (one for one in gaps(found) if one["server"] == "s")
    assert gap["items"] == ["103", "104", "105"]
    assert gap["summary"].endswith(
        f"will not come unless the queue has them; {place} has 103, 104, 105 under these numbers"
    )
    assert (
        f"see whether its queue has them; if not, put the messages of them into its queue, from {place}"
        in gap["fix"][0]["repair"]
    )
    (row,) = (one for one in found["pending"] if one["server"] == "s")
    assert row["count"] == 3 and row["not_given"] == [f"103, 104 and 105, which {place} has"]
    assert "some behind what the log of their source cannot give" in headline(found)


def test_an_earlier_log_that_does_not_go_on_in_the_present_one_names_nothing(tmp_path: Path) -> None:
    unlike = {"m.replication-log.jsonl": exported([*commits(1, 2, 3, 4, 5), other(6)])}
    (gap,) = gaps(diagnose(loaded(tmp_path, unlike, {**PURGED, **replica("s", 2, [])})))
    assert not gap["items"] and "a number without a transaction is possible" in gap["fix"][0]["caution"]


def test_what_a_queue_without_later_ones_lacks_below_the_log_of_its_master_is_a_gap(tmp_path: Path) -> None:
    case = loaded(tmp_path, LOGGED, {**PURGED, **replica("s", 2, commits(3))})
    (gap,) = gaps(diagnose(case))
    assert gap["items"] == ["104", "105"]
    assert "and the log of m begins behind them: it will not get them from there" in gap["summary"]


def test_what_a_replica_applied_less_than_before_is_said_and_not_applied_again(tmp_path: Path) -> None:
    now = {"m.replication-log.jsonl": exported(commits(*range(1, 9))), **replica("s", 2, commits(6, 7, 8), "Lock wait")}
    case = loaded(tmp_path, {**LOGGED, **replica("s", 5, [])}, now)
    found = diagnose(case)
    (told,) = (one for one in found["findings"] if one["code"] == "APPLIED_WENT_BACK")
    assert "applied m up to commit 2, and said 5 in snapshot s1" in told["summary"]
    assert told["fix"][0]["why"] == "if these rows are there, s must not apply commits 3 to 5 once more"
    (gap,) = gaps(found)
    assert "first see whether its rows have them" in gap["fix"][0]["caution"]
    made = plan(case)
    assert not made.steps and "APPLIED_WENT_BACK" in refused(made)["start-applier"]


def test_numbers_in_an_earlier_queue_were_not_applied(tmp_path: Path) -> None:
    found = diagnose(loaded(tmp_path, replica("s", 2, commits(3, 4, 5)), replica("s", 3, commits(4, 5))))
    assert not summaries(found, "APPLIED_WENT_BACK")


@pytest.mark.parametrize(
    ("snapshots", "says"),
    [
        ([replica("s", 3, commits(4, 5)), replica("s", 2, commits(4, 5))], "commit 3: s applied it in snapshot s1"),
        ([{**replica("s", 2, commits(4, 5)), **replica("t", 3, commits(4, 5))}], "commit 3: t applied it"),
    ],
)
def test_what_a_replica_applied_its_master_sent(snapshots: list[Files], says: str, tmp_path: Path) -> None:
    (gap,) = (one for one in gaps(diagnose(loaded(tmp_path, *snapshots))) if one["server"] == "s")
    assert gap["summary"].endswith(f"and it will not come; master 1 sent {says}")
    assert not gap["fix"][0]["caution"]


def test_what_a_replica_of_another_master_applied_tells_nothing(tmp_path: Path) -> None:
    files = {**replica("s", 2, commits(4, 5)), **replica("t", 3, [other(4), other(5)])}
    (gap,) = (one for one in gaps(diagnose(loaded(tmp_path, files))) if one["server"] == "s")
    assert "sent" not in gap["summary"] and gap["fix"][0]["caution"]


def test_two_gaps_of_one_queue_stand_once_in_a_plan(tmp_path: Path) -> None:
    case = loaded(tmp_path, replica("s", 3, commits(4, 5)), replica("s", 2, commits(5, 6)))
    assert len(gaps(diagnose(case))) == 2
    lines = [line for line in [*plan(case).open, *plan(case).left] if line.startswith("QUEUE_GAP s")]
    assert len(lines) == 1


def of_log(*numbers: int) -> bytes:
    return written(message for _, message in commits(*(number - 100 for number in numbers)))


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ((101, 102, 103, 104, 105, 106), "; the log of t has 104 between 103 and 105, which are commit 3 and commit 5"),
        ((101, 102, 103, 105, 106), "it will not come"),
        ((101, 102, 103, 104, 107, 105, 106), "it will not come"),
    ],
)
def test_a_log_without_numbers_tells_what_stands_between_two_commits(
    numbers: tuple[int, ...], says: str, tmp_path: Path
) -> None:
    """One transaction is there for the one number that is absent; none is; two are, of which one is t's own."""
    files = {**LACKING, "t.state.json": state(6), "t.log": of_log(*numbers)}
    (gap,) = gaps(diagnose(loaded(tmp_path, files)))
    assert gap["summary"].endswith(says)
    exact = "these are they, unless t made them" in (gap["fix"][0]["caution"] or "")
    assert exact == says.startswith(";")


def test_two_queues_that_differ_in_what_both_hold_are_in_conflict(tmp_path: Path) -> None:
    """More of both is alike than not: they are of one master, which committed one of the two."""
    files = {**LACKING, **replica("t", 2, [*commits(3, 4), other(5), *commits(6)])}
    (told,) = summaries(diagnose(loaded(tmp_path, files)), "TXN_CONFLICT")
    assert told.startswith("s: its queue holds 1 transaction of master 1 (105, commit 5) otherwise than the queue of t")


def test_a_queue_that_differs_from_an_earlier_log_of_its_master_is_in_conflict(tmp_path: Path) -> None:
    now = replica("s", 2, [*commits(3), other(4), *commits(5, 6)])
    (told,) = summaries(diagnose(loaded(tmp_path, LOGGED, now)), "TXN_CONFLICT")
    assert "(104, commit 4) otherwise than the log of m of snapshot s1" in told


def test_two_queues_of_which_more_differs_than_not_are_of_two_masters(tmp_path: Path) -> None:
    files = {**LACKING, **replica("t", 2, [*commits(3), other(5), other(6)])}
    assert not summaries(diagnose(loaded(tmp_path, files)), "TXN_CONFLICT")


def test_what_waits_behind_another_content_is_not_on_its_way(tmp_path: Path) -> None:
    case = loaded(tmp_path, {**LOGGED, **replica("s", 2, [*commits(3), other(4)])})
    found = diagnose(case)
    (row,) = found["pending"]
    assert (row["count"], row["queued"], row["behind_gap"], row["unlike_first"]) == (4, 1, 3, True)
    assert "3 wait behind what the queue of s has otherwise than its master" in headline(found)


def test_a_source_whose_log_lost_its_end_was_not_set_back_for_sure(tmp_path: Path) -> None:
    now = {"a.log": log(1, 2, 3, 4, 5), "b.log": log(*range(1, 8))}
    case = case_of(tmp_path, {"a.log": log(*range(1, 8)), "b.log": log(1, 2, 3, 4)}, now)
    found = diagnose(case)
    assert not summaries(found, "ROLLED_BACK")
    assert summaries(found, "GONE_FROM_LOG")[0].endswith("that its log of snapshot s1 has; b has them whole")
    try:
        text = " ".join([*plan(case).open, *plan(case).left])
    except Problem:
        text = ""
    assert "keep-alive" not in text and "session" not in text


def test_what_a_copy_had_before_is_not_applied_unasked(tmp_path: Path) -> None:
    now = {"a.log": log(*range(1, 10)), "b.log": log(1, 2, 3), "case.yaml": named("a", "a.log")}
    case = case_of(tmp_path, {"a.log": log(*range(1, 8)), "b.log": log(1, 2, 3, 4, 5)}, now)
    made = plan(case)
    assert not made.steps
    (course,) = (one for one in made.courses if one.way == "apply")
    assert course.unasked.startswith(
        "b had 4 and 5, as the log of b of snapshot s1 shows, and must not apply them twice"
    )
    (step,) = plan(case, only=["b"], ways=["apply"]).steps
    assert step.repair == "apply"
