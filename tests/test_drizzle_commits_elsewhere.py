"""What a queue goes on without, and another file has: the queue of another replica, an earlier queue, an earlier log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import Files, commits, exported, log, named, queue, state, without_segment
from drizzle_samples import insert, transaction

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan


def loaded(folder: Path, *snapshots: Files) -> Case:
    made = []
    for number, files in enumerate(snapshots, 1):
        made.append(folder / f"s{number}")
        made[-1].mkdir()
        for name, data in files.items():
            (made[-1] / name).write_bytes(data)
    case = Case.create(folder / "case")
    case.load(made)
    return case


def gaps(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == "QUEUE_GAP"]


LACKING: Files = {"s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 5, 6))}


def beside(rows: list[tuple[int, Any]]) -> Files:
    """The queue of s lacks commit 4; t is another replica, with these rows."""
    return {**LACKING, "t.state.json": state(2), "t.queue.jsonl": queue(rows)}


def test_the_queue_of_another_replica_of_the_same_master_has_it(tmp_path: Path) -> None:
    (one,) = gaps(diagnose(loaded(tmp_path, beside(commits(3, 4, 5, 6)))))
    assert (one["severity"], one["server"], one["items"]) == ("error", "s", ["104"])
    assert "(104, commit 4)" in one["summary"] and "the queue of t has it whole" in one["summary"]
    assert one["fix"][0]["repair"].endswith("put the messages of it into its queue, from the queue of t")
    assert "a number without a transaction" not in str(one["fix"])


OTHER = [(commit, transaction(200 + commit, insert((b"%d" % commit, b"x")))) for commit in (3, 4, 5)]


@pytest.mark.parametrize("rows", [OTHER, commits(4), commits(3, 6)])
def test_a_queue_that_need_not_be_of_that_master_proves_nothing(rows: list[tuple[int, Any]], tmp_path: Path) -> None:
    """Other transactions under the same numbers; nothing in common; commit 4 is in neither."""
    told = [one for one in gaps(diagnose(loaded(tmp_path, beside(rows)))) if one["server"] == "s"]
    (one,) = told
    assert one["severity"] == "warning" and "goes on without commit 4: no collected log has it" in one["summary"]


@pytest.mark.parametrize(
    ("earlier", "place"),
    [
        ({"m.replication-log.jsonl": exported(commits(*range(1, 7)))}, "the log of m of snapshot s1"),
        ({"s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 4, 5))}, "the queue of s of snapshot s1"),
    ],
)
def test_what_an_earlier_file_has_is_known_to_have_been_a_transaction(
    earlier: Files, place: str, tmp_path: Path
) -> None:
    """The log of m begins with commit 5 now; commit 4 was 104, and nothing behind it is on its way to s before that is there."""
    case = loaded(tmp_path, earlier, {"m.replication-log.jsonl": exported(commits(5, 6, 7)), **LACKING})
    found = diagnose(case)
    (one,) = gaps(found)
    assert one["items"] == ["104"] and "neither applied nor in its queue" in one["summary"]
    assert one["fix"][0]["repair"].endswith(f"put its messages into its queue from {place}")
    (row,) = found["pending"]
    assert (row["count"], row["queued"], row["behind_gap"], row["purged"]) == (5, 1, 4, 0)
    assert "4 wait behind what the queue of s lacks" in headline(found)
    assert any(line.startswith("QUEUE_GAP s") and place in line for line in [*plan(case).open, *plan(case).left])


UNLIKE = [(commit, message) for commit, message in commits(3, 4, 5, 6) if commit != 4]
UNLIKE.insert(1, (4, transaction(104, insert((b"104", b"other")))))


def test_of_two_queues_that_differ_nothing_is_put_into_a_third_one(tmp_path: Path) -> None:
    """t and u have all that s has alike, and different transactions under commit 4."""
    files = {**beside(commits(3, 4, 5, 6)), "u.state.json": state(2), "u.queue.jsonl": queue(UNLIKE)}
    (one,) = gaps(diagnose(loaded(tmp_path, files)))
    assert (one["severity"], one["server"]) == ("warning", "s")
    assert "the queue of t and the queue of u have different transactions under commit 4" in one["summary"]
    assert one["fix"][0]["caution"].startswith("take none of the different ones before the log of master 1 tells")


def test_an_earlier_log_of_other_numbers_proves_nothing(tmp_path: Path) -> None:
    """The master was made anew: under commit 3 its earlier log has another transaction than the queue of s."""
    last = {"m.replication-log.jsonl": exported(commits(5, 6, 7)), **LACKING}
    found = diagnose(loaded(tmp_path, {"m.replication-log.jsonl": exported(OTHER)}, last))
    (one,) = gaps(found)
    assert "commit 4 will not come" in one["summary"] and not one["items"]


def test_what_waits_for_an_applier_that_stands_still_is_not_on_its_way(tmp_path: Path) -> None:
    """The log of m numbers no commits, so nothing tells whose master m is; s has one applier for all."""
    files = {
        "m.log": log(*range(1, 9)),
        "s.log": log(1, 2, 3),
        "s.state.json": state(3, "Table 'test.t' does not exist"),
        "s.queue.jsonl": queue([]),
        "case.yaml": named("m", "m.log"),
    }
    found = diagnose(loaded(tmp_path, files))
    (row,) = found["pending"]
    assert (row["count"], row["held"], row["stopped"]) == (5, 5, ["applier"])
    assert "5 are waiting for s" in headline(found) and "on the way" not in headline(found)
    (waits,) = (one for one in found["findings"] if one["code"] == "PENDING_CHANGES")
    assert "its applier stands still" in waits["summary"] and waits["fix"][0]["repair"].startswith(
        "start what stands still"
    )
    (stopped,) = (one for one in found["findings"] if one["code"] == "APPLIER_STOPPED")
    assert stopped["summary"].endswith("stands still behind commit 3: Table '…' does not exist")


def test_two_queues_with_different_transactions_under_one_commit_prove_neither(tmp_path: Path) -> None:
    """t and u have 3, 5 and 6 alike, and another 104 under commit 4: nothing tells which of these the master committed."""
    other = [*commits(3), (4, transaction(104, insert((b"4", b"another")))), *commits(5, 6)]
    files = beside(commits(3, 4, 5, 6)) | {"u.state.json": state(2), "u.queue.jsonl": queue(other)}
    (gap,) = (finding for finding in gaps(diagnose(loaded(tmp_path, files))) if finding["server"] == "s")
    assert gap["severity"] == "warning" and "has it whole" not in gap["summary"] and not gap["items"]


IN_PART = commits(3, 4, 5, 6, bulk=4)
"""Commit 4 is a bulk of three messages."""


@pytest.mark.parametrize(
    ("there", "place"),
    [
        ([{}, {"t": IN_PART}], "the queue of t"),
        ([{"s": IN_PART}, {}], "the queue of s of snapshot s1"),
        ([{}, {"t": without_segment(IN_PART, 104, 1)}], "the queue of t"),
        ([{}, {"t": without_segment(IN_PART, 104, 1), "u": IN_PART}], "the queue of u"),
    ],
)
def test_the_messages_that_a_queue_lacks_are_in_others(there: list[dict[str, Any]], place: str, tmp_path: Path) -> None:
    there[-1]["s"] = without_segment(IN_PART, 104, 2)
    snapshots = [
        {
            file: data
            for name, rows in of.items()
            for file, data in ((f"{name}.state.json", state(2)), (f"{name}.queue.jsonl", queue(rows)))
        }
        for of in there
        if of
    ]
    found = diagnose(loaded(tmp_path, *snapshots))
    (told,) = (one for one in found["findings"] if one["code"] == "TXN_INCOMPLETE" and one["server"] == "s")
    assert f"the messages that it lacks are in {place}: its applier" in told["summary"]
    assert told["fix"][0]["repair"].endswith(f"into its queue, from {place}")


def test_messages_of_another_transaction_under_that_number_fill_nothing(tmp_path: Path) -> None:
    other = [
        (commit, transaction(104, insert((b"104", b"%d" % at)), segment=at, ended=at == 3))
        for at, commit in ((1, 0), (2, 0), (3, 4))
    ]
    files = {"s.state.json": state(2), "s.queue.jsonl": queue(without_segment(IN_PART, 104, 2))}
    files |= {"t.state.json": state(2), "t.queue.jsonl": queue([*commits(3), *other, *commits(5, 6)])}
    found = diagnose(loaded(tmp_path, files))
    (told,) = (one for one in found["findings"] if one["code"] == "TXN_INCOMPLETE" and one["server"] == "s")
    assert "no collected log has it" in told["summary"]
