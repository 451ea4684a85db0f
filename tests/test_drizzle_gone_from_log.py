"""What an earlier log of a server has, and its present log lacks: it is named, and no plan goes past it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drizzle_incidents import Files, commits, exported, log, named, queue, row_of, state
from drizzle_samples import event, insert, record, transaction
from test_drizzle_not_given import applied, refused

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan


def case_of(folder: Path, *snapshots: Files) -> Case:
    case = Case.create(folder / "case")
    for number, files in enumerate(snapshots, 1):
        (folder / f"s{number}").mkdir()
        for name, data in {"case.yaml": named("a", "a.log"), **files}.items():
            (folder / f"s{number}" / name).write_bytes(data)
        case.load([folder / f"s{number}"])
    return case


def gone(found: dict[str, Any]) -> dict[str, str]:
    """Server -> what is said of its log."""
    return {one["server"]: one["summary"] for one in found["findings"] if one["code"] == "GONE_FROM_LOG"}


BEFORE = {"a.log": log(1, 2, 3, 4, 5), "b.log": log(1, 2, 3)}


def test_what_the_source_has_no_more_is_named_and_nothing_goes_past_it(tmp_path: Path) -> None:
    case = case_of(tmp_path, BEFORE, {"a.log": log(1, 2, 3, 5, 6), "b.log": log(1, 2, 3)})
    found = diagnose(case)
    assert gone(found) == {"a": "a: its log lacks 1 transaction of server 1 (4) that its log of snapshot s1 has"}
    assert "No change is known to be missing" in headline(found) and "GONE_FROM_LOG" in headline(found)
    assert [(row["server"], row["from"], row["why"]) for row in found["unknown"]] == [("b", "4", "gone_from_source")]
    (told,) = (one for one in found["findings"] if one["code"] == "GONE_FROM_LOG")
    assert "stop b now, and apply it there before what follows it" in told["fix"][0]["repair"]
    made = plan(case)
    assert not made.steps
    for way in ("apply", "provision"):
        assert "4 comes before" in refused(made)[way] and "as it had in snapshot s1" in refused(made)[way]
    assert any(line.startswith("GONE_FROM_LOG a: ") for line in [*made.open, *made.left])


def test_a_log_that_has_it_alike_gives_it_and_it_is_nobodys_own(tmp_path: Path) -> None:
    whole = log(1, 2, 3, 4, 5, 6)
    case = case_of(tmp_path, BEFORE, {"a.log": log(1, 2, 3, 5, 6), "b.log": log(1, 2, 3), "c.log": whole})
    assert not diagnose(case)["stranded"]
    assert applied(plan(case)) == {"b": ["4", "5", "6"]}


def test_what_it_lost_at_its_end_holds_nothing_back(tmp_path: Path) -> None:
    case = case_of(tmp_path, BEFORE, {"a.log": log(1, 2, 3, 4), "b.log": log(1, 2, 3), "c.log": log(1, 2, 3, 4, 5)})
    found = diagnose(case)
    assert "(5) that its log of snapshot s1" in gone(found)["a"]
    assert not [one for one in found["findings"] if one["code"] == "ERRANT_CHANGE"]
    assert applied(plan(case)) == {"b": ["4"]}


def test_a_copy_that_was_set_back_is_named(tmp_path: Path) -> None:
    now = {"a.log": log(1, 2, 3, 4), "b.log": log(1)}
    found = diagnose(case_of(tmp_path, {"a.log": log(1, 2, 3, 4), "b.log": log(1, 2, 3)}, now))
    assert gone(found) == {"b": "b: its log lacks 2 transactions of server 1 (2, 3) that its log of snapshot s1 has"}
    (told,) = (one for one in found["findings"] if one["code"] == "GONE_FROM_LOG")
    assert "it needs them from a again" in told["fix"][0]["caution"]


def test_a_log_that_goes_on_or_begins_later_lost_nothing(tmp_path: Path) -> None:
    for name, later in (("on", log(1, 2, 3, 4, 5, 6)), ("later", log(3, 4, 5, 6)), ("anew", log(7, 8))):
        (tmp_path / name).mkdir()
        assert not gone(diagnose(case_of(tmp_path / name, BEFORE, {**BEFORE, "a.log": later})))


def conflicts(found: dict[str, Any]) -> dict[str, str]:
    """Server -> what is said of transactions with two contents."""
    return {one["server"]: one["summary"] for one in found["findings"] if one["code"] == "TXN_CONFLICT"}


def test_a_log_under_another_name_is_the_same_log_where_it_is_the_source_of_the_same_server(tmp_path: Path) -> None:
    now = {"a2.log": log(1, 2, 3, 5, 6), "b.log": log(1, 2, 3), "case.yaml": named("a2", "a2.log")}
    case = case_of(tmp_path, BEFORE, now)
    found = diagnose(case)
    says = "a2: its log lacks 1 transaction of server 1 (4) that the log of a of snapshot s1 has"
    assert gone(found) == {"a2": says}
    (waits,) = (one for one in found["findings"] if one["code"] == "PENDING_CHANGES")
    assert [fix["repair"][:30] for fix in waits["fix"]] == ["keep the applier of b from the"]
    made = plan(case)
    assert not made.steps and "take 4 from the log of a of snapshot s1" in refused(made)["apply"]


def test_a_log_of_which_nothing_tells_that_it_is_the_source_is_not_the_one_of_another_name(tmp_path: Path) -> None:
    """Only one log is there in each snapshot, and nobody names the source: each may be of a copy."""
    nameless = {"case.yaml": b"servers: []\n"}
    first, last = {"c.log": log(1, 2, 3, 4, 5), **nameless}, {"b.log": log(1, 2, 3, 5), **nameless}
    assert not gone(diagnose(case_of(tmp_path, first, last)))


def test_a_start_under_the_number_of_a_transaction_is_not_that_transaction(tmp_path: Path) -> None:
    now = {"a.log": log(1, 2, 3) + record(event(4)) + log(5, 6), "b.log": log(1, 2, 3)}
    case = case_of(tmp_path, BEFORE, now)
    assert "(4) that its log of snapshot s1 has" in gone(diagnose(case))["a"]
    assert not plan(case).steps


def test_another_content_than_before_is_a_conflict_and_is_not_applied(tmp_path: Path) -> None:
    case = case_of(tmp_path, BEFORE, {"a.log": log(1, 2, 3, 4, 5, 6, t5="y"), "b.log": log(1, 2, 3)})
    found = diagnose(case)
    assert "(5) with another content or end than its log of snapshot s1" in conflicts(found)["a"]
    made = plan(case)
    assert not made.steps
    assert "transaction 5 of 1 has another content in an earlier log" in refused(made)["apply"]
    assert "another content than in snapshot s1" in refused(made)["provision"]


def test_numbers_that_are_given_anew_after_a_start_are_no_other_content(tmp_path: Path) -> None:
    now = {"a.log": log(1, 2, 3, 4, 5) + record(event(1)) + log(2, 3, t2="y", t3="y"), "b.log": log(1, 2, 3)}
    assert not conflicts(diagnose(case_of(tmp_path, BEFORE, now)))


NO_SOURCE = {"case.yaml": b"servers: []\n"}
LOGGED = {"m.replication-log.jsonl": exported(commits(*range(1, 7))), **NO_SOURCE}
"""Transaction 100 + n has commit n."""


def of_queues(stopped: str = "", **queued: tuple[int, ...]) -> Files:
    """The log of the master without commit 4, and replicas that applied up to commit 2, with these in their queues."""
    found = {"m.replication-log.jsonl": exported(commits(1, 2, 3, 5, 6)), **NO_SOURCE}
    for name, numbers in queued.items():
        found |= {f"{name}.state.json": state(2, stopped), f"{name}.queue.jsonl": queue(commits(*numbers))}
    return found


def test_no_applier_is_started_that_would_pass_over_what_its_master_lost(tmp_path: Path) -> None:
    case = case_of(tmp_path, LOGGED, of_queues("Lock wait timeout", s=(3,)))
    found = diagnose(case)
    (told,) = (one for one in found["findings"] if one["code"] == "GONE_FROM_LOG")
    where = "put the messages of it into the queue of s, from the log of m of snapshot s1, before what follows it"
    assert told["fix"][0]["repair"].endswith(f"; {where}")
    (row,) = found["pending"]
    assert (row["count"], row["queued"], row["to_fetch"], row["behind_gap"]) == (4, 1, 0, 3)
    made = plan(case)
    assert not made.steps
    assert "m has 104 no more" in refused(made)["start-applier"]
    assert (
        "first put the messages of it into its queue, from the log of m of snapshot s1"
        in refused(made)["start-applier"]
    )


def test_a_replica_that_has_it_in_its_queue_gives_it_and_waits_for_nothing_else(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, LOGGED, of_queues(s=(3, 4, 5), t=(3,))))
    (told,) = (one for one in found["findings"] if one["code"] == "GONE_FROM_LOG")
    says = (
        "stop t now, and put the messages of it into the queue of t, from the queue of s or the log of m of snapshot s1"
    )
    assert says in told["fix"][0]["repair"]
    assert {row["server"]: row["behind_gap"] for row in found["pending"]} == {"s": 0, "t": 3}


def test_an_applier_does_not_come_to_what_its_master_has_otherwise_than_before(tmp_path: Path) -> None:
    other = [*commits(1, 2, 3), (4, transaction(104, insert((b"104", b"other")))), *commits(5, 6)]
    now = of_queues("Lock wait timeout", s=(3,)) | {"m.replication-log.jsonl": exported(other)}
    case = case_of(tmp_path, LOGGED, now)
    assert "(104) with another content" in conflicts(diagnose(case))["m"]
    made = plan(case)
    assert (
        not made.steps
        and "it comes to 104, of which the log of m has another content" in refused(made)["start-applier"]
    )


def test_a_log_of_a_master_under_another_name_is_known_by_its_commits(tmp_path: Path) -> None:
    now = {name.replace("m.", "m2."): data for name, data in of_queues(s=(3,)).items()}
    says = "m2: its log lacks 1 transaction of server 1 (104) that the log of m of snapshot s1 has"
    assert gone(diagnose(case_of(tmp_path, LOGGED, now))) == {"m2": says}


def test_a_log_with_other_transactions_under_the_same_numbers_is_of_another_master(tmp_path: Path) -> None:
    other = exported([*commits(1, 2), *((number, row_of(200 + number)) for number in (3, 5))])
    found = diagnose(case_of(tmp_path, LOGGED, {"m2.replication-log.jsonl": other, **NO_SOURCE}))
    assert not gone(found)
