"""What earlier logs of a server show of replicas: what they passed over, what they need next, which numbers began anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drizzle_incidents import Files, commits, cut_between, exported, log, queue, row_of, state, written
from drizzle_samples import transaction
from test_drizzle_gone_from_log import BEFORE, LOGGED, NO_SOURCE, case_of, gone
from test_drizzle_not_given import applied, refused

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan


def of_code(found: dict[str, Any], code: str, server: str | None = None) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == code and server in (None, one["server"])]


def test_what_a_copy_passed_over_before_the_present_log_begins_is_missing(tmp_path: Path) -> None:
    before = {"a.log": log(*range(1, 9))}
    case = case_of(tmp_path, before, {"a.log": log(6, 7, 8), "b.log": log(1, 2, 3, 5, 6, 7)})
    found = diagnose(case)
    (row,) = found["missing"]
    assert (row["server"], row["position"], row["held_by"]) == ("b", "4", [])
    assert row["says"].endswith("the log of a of snapshot s1, its source, has it")
    (told,) = of_code(found, "MISSED_CHANGE")
    assert "provision b from a, or apply them whole on b from the log of a of snapshot s1" in told["fix"][0]["repair"]
    assert applied(plan(case)) == {"b": ["8"]}
    assert any(line.startswith("MISSED_CHANGE b: ") for line in [*plan(case).open, *plan(case).left])


def test_a_copy_that_has_all_that_the_earlier_log_has_missed_nothing(tmp_path: Path) -> None:
    now = {"a.log": log(6, 7, 8), "b.log": log(*range(1, 8)), "c.log": log(5, 6)}
    found = diagnose(case_of(tmp_path, {"a.log": log(*range(1, 9))}, now))
    assert not found["missing"]


def test_what_a_copy_needs_next_and_the_log_of_its_source_begins_behind_is_named(tmp_path: Path) -> None:
    case = case_of(tmp_path, {"a.log": log(*range(1, 8))}, {"a.log": log(5, 6, 7, 8), "b.log": log(1, 2, 3)})
    found = diagnose(case)
    says = "a: its log begins behind 1 transaction of server 1 (4) that the log of a of snapshot s1 has, and b needs it next"
    assert gone(found) == {"a": says}
    assert [(row["from"], row["why"]) for row in found["unknown"]] == [("4", "gone_from_source")]
    (row,) = found["pending"]
    assert (row["first"], row["last"], row["count"], row["earlier_first"]) == ("5", "8", 4, True)
    assert not plan(case).steps


def test_an_earlier_log_of_which_nothing_goes_on_in_the_present_one_tells_nothing_of_that(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, {"a.log": log(*range(1, 8))}, {"a.log": log(20, 21), "b.log": log(1, 2, 3)}))
    assert not gone(found) and not found["pending"]


ANEW = exported([(number, row_of(200 + number)) for number in (1, 2, 3)])


def test_numbers_of_commits_that_began_anew_are_named_and_nothing_may_be_purged_by_them(tmp_path: Path) -> None:
    now = {
        "m.replication-log.jsonl": ANEW,
        "s.state.json": state(4, "Lock wait"),
        "s.queue.jsonl": queue(commits(5, 6)),
    }
    case = case_of(tmp_path, LOGGED, {**now, **NO_SOURCE})
    found = diagnose(case)
    (told,) = of_code(found, "GONE_FROM_LOG")
    assert (
        "other transactions under 3 commit numbers than its log of snapshot s1 (commit 1 is 201, and was 101)"
        in told["summary"]
    )
    assert "provision s from m" in told["fix"][0]["repair"]
    (row,) = found["unknown"]
    assert (row["server"], row["from"], row["to"], row["why"]) == ("s", "201", "203", "numbered_anew")
    assert [row["purge_below"] for row in found["appliers"]] == [None]
    assert "known to be missing" in headline(found)
    assert not plan(case).steps and "than before" in refused(plan(case))["start-applier"]


BULK = cut_between(50)
AFTER = log(51, 52)


def test_a_bulk_of_which_a_message_is_gone_comes_from_the_earlier_log(tmp_path: Path) -> None:
    part = {"a.log": log(1) + written([BULK[0], BULK[2]]) + AFTER, "b.log": log(1)}
    case = case_of(tmp_path, {"a.log": log(1) + written(BULK) + AFTER, "b.log": log(1)}, part)
    (told,) = of_code(diagnose(case), "TXN_INCOMPLETE")
    assert told["fix"][0]["repair"] == "apply them whole from the log of a of snapshot s1"
    made = plan(case)
    assert not made.steps and "first apply 50 from the log of a of snapshot s1" in refused(made)["apply"]


def test_an_earlier_bulk_with_other_messages_gives_nothing(tmp_path: Path) -> None:
    part = {"a.log": log(1) + written([BULK[0], BULK[2]]) + AFTER, "b.log": log(1)}
    other = [
        transaction(50, *message.statement, segment=message.segment_id, ended=at == 3, at=7)
        for at, message in enumerate(BULK, 1)
    ]
    case = case_of(tmp_path, {"a.log": log(1) + written(other) + AFTER, "b.log": log(1)}, part)
    (told,) = of_code(diagnose(case), "TXN_INCOMPLETE")
    assert told["fix"][0]["repair"] == "ask the source for them"


def test_what_a_source_never_had_it_cannot_give_again(tmp_path: Path) -> None:
    now = {"a.log": log(1, 2, 3, 4, 5, 7), "b.log": log(1, 2, 3, 4, 5)}
    found = diagnose(case_of(tmp_path, {"a.log": log(1, 2, 3, 4), "b.log": log(*range(1, 7))}, now))
    (told,) = of_code(found, "GONE_FROM_LOG", "b")
    assert "the log of a lacks it, too, and cannot give it again: it may have been b's own" in told["fix"][0]["caution"]


def test_what_a_queue_holds_and_its_master_has_nothing_under_is_named(tmp_path: Path) -> None:
    rows = [*commits(3), (4, transaction(104, server=9)), *commits(5)]
    files: Files = {
        "m.replication-log.jsonl": exported(commits(1, 2, 3, 5, 6)),
        "s.state.json": state(2, "Lock wait"),
        "s.queue.jsonl": queue(rows),
    }
    case = case_of(tmp_path, {**files, **NO_SOURCE})
    (told,) = of_code(diagnose(case), "GONE_FROM_LOG")
    assert told["severity"] == "warning" and "that the queue of s holds (104, commit 4)" in told["summary"]
    assert "the queue of s holds 104, which the log of m lacks" in refused(plan(case))["start-applier"]


def test_a_log_that_ends_or_begins_there_lacks_nothing_of_a_queue(tmp_path: Path) -> None:
    for name, there in (("end", (1, 2, 3)), ("begin", (5, 6))):
        files = {
            "m.replication-log.jsonl": exported(commits(*there)),
            "s.state.json": state(2),
            "s.queue.jsonl": queue(commits(3, 4, 5)),
        }
        (tmp_path / name).mkdir()
        assert not of_code(diagnose(case_of(tmp_path / name, {**files, **NO_SOURCE})), "GONE_FROM_LOG")


def test_an_earlier_log_of_the_same_begins_and_ends_as_ever(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, BEFORE, BEFORE))
    assert not of_code(found, "GONE_FROM_LOG") and not found["missing"] and not found["unknown"]
