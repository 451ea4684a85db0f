"""Whose log is the source of an origin: nothing is taken for a source by a guess, and nothing is written on one."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from drizzle_samples import insert, record, transaction
from stream_files import name_source

from workbench.case.case import Case
from workbench.cli import main
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.incident import Incident as Diagnosed
from workbench.diagnosis.output_keys import undocumented
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan
from workbench.report.streamed import stream_worded, streamed
from workbench.systems.drizzle.formats import messages_pb2 as messages


def one(number: int, *, value: str = "x", server: int = 1) -> bytes:
    """A transaction of one row."""
    return record(transaction(number, insert((b"%d" % number, value.encode())), server=server))


def log(*numbers: int, **changed: str) -> bytes:
    """A log of these transactions of server 1; `t5="y"` is another content of the fifth."""
    return b"".join(one(number, value=changed.get(f"t{number}", "x")) for number in numbers)


def started(server: int = 1) -> bytes:
    """A start of a server."""
    made = transaction(0, server=server)
    made.event.type = messages.Event.Type.STARTUP
    return record(made)


@dataclass(frozen=True)
class Incident:
    """Logs by server, whom a person names, and the truth.

    missing, pending  server -> numbers, or how many
    errant            server -> numbers of which nothing tells whether the others should have them
    known_by          how the source of origin 1 is known
    writes            servers that steps of the plan write to
    loses             what a way that copies all data of a server is refused for: how many changes
    """

    logs: dict[str, bytes]
    named: str = ""
    missing: dict[str, list[str]] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    errant: dict[str, list[str]] = field(default_factory=dict)
    stranded: dict[str, list[str]] = field(default_factory=dict)
    known_by: str | None = None
    writes: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()


WHOLE = log(*range(1, 11))
INCIDENTS = {
    "three equal logs and a fourth with a write of its own": Incident(
        {"a": WHOLE, "b": WHOLE, "c": WHOLE, "d": WHOLE + log(11)}, errant={"d": ["11"]}
    ),
    "its own write stands in the middle": Incident(
        {"a": WHOLE, "b": WHOLE, "d": log(*range(1, 6), 77, *range(6, 11))}, errant={"d": ["77"]}
    ),
    "two logs, each with transactions of its own": Incident(
        {"a": log(*range(1, 11), 20, 21), "b": log(*range(1, 11), 30)}, errant={"a": ["20", "21"], "b": ["30"]}
    ),
    "two logs, one is shorter": Incident({"a": WHOLE, "b": log(*range(1, 9))}, errant={"a": ["9", "10"]}),
    "two logs, one lacks something in the middle": Incident(
        {"a": WHOLE, "b": log(*range(1, 5), *range(6, 11))}, errant={"a": ["5"]}
    ),
    "the same, and a person names the longer one": Incident(
        {"a": WHOLE, "b": log(*range(1, 5), *range(6, 9))},
        named="a",
        missing={"b": ["5"]},
        pending={"b": 2},
        known_by="person",
        writes=("b",),
        assumes=("source_named_by_person",),
    ),
    "the same, and a person names the other one": Incident(
        {"a": WHOLE, "b": log(*range(1, 5), *range(6, 11))},
        named="b",
        stranded={"a": ["5"]},
        known_by="person",
    ),
    "two have it and the third lacks it": Incident(
        {"a": WHOLE, "b": WHOLE, "c": log(*range(1, 5), *range(6, 9))},
        missing={"c": ["5"]},
        pending={"c": 2},
        writes=("c",),
        assumes=("source_open",),
    ),
    "the log with most lacks what two others have": Incident(
        {"a": log(1, 2, 4, 5, 6, 7, 8), "b": log(*range(1, 6)), "c": log(*range(1, 6))},
        missing={"a": ["3"]},
        errant={"a": ["6", "7", "8"]},
    ),
    "only one log has the start of that server": Incident(
        {"a": started() + WHOLE, "b": log(*range(1, 5), *range(6, 11)), "c": WHOLE[: 8 * len(log(1))]},
        missing={"b": ["5"]},
        pending={"c": 2},
        known_by="events",
        writes=("b", "c"),
        assumes=("source_by_its_start",),
    ),
    "a start in the middle of one log": Incident(
        {"a": log(*range(1, 6)) + started() + log(*range(6, 11)), "b": log(*range(1, 5), *range(6, 11))},
        errant={"a": ["5"]},
    ),
    "the log with the start begins later than the other": Incident(
        {"a": started() + log(*range(4, 11)), "b": WHOLE + log(11)}, errant={"b": ["11"]}
    ),
    "two logs have other transactions under one number": Incident(
        {"a": WHOLE, "b": log(*range(1, 6), 77, *range(6, 11), t77="b"), "c": log(*range(1, 8), 77, *range(8, 11))},
        errant={"b": ["77"], "c": ["77"]},
    ),
    "all logs have it": Incident(
        {"a": started() + WHOLE, "b": started() + log(*range(1, 5), *range(6, 11))}, errant={"a": ["5"]}
    ),
    "the log with the start begins earlier than the other": Incident(
        {"a": started() + WHOLE, "b": log(*range(4, 12))}, errant={"b": ["11"]}
    ),
    "a copy with a write under an id of its own": Incident(
        {"a": WHOLE, "b": WHOLE + one(3, server=7)}, errant={"b": ["3"]}
    ),
    "two servers that share no id": Incident(
        {"a": WHOLE, "b": one(1, server=2) + one(2, server=2)}, known_by="only_log"
    ),
    "two contents of one transaction": Incident({"a": WHOLE, "b": log(*range(1, 11), t5="other")}),
    "the named source is copied over a server with transactions of its own": Incident(
        {"a": WHOLE, "b": log(*range(1, 11), 20, t5="other")},
        named="a",
        errant={"b": ["20"]},
        known_by="person",
    ),
    "a copy is ahead of its source": Incident(
        {"a": WHOLE, "b": log(*range(1, 13))}, named="a", errant={"b": ["11", "12"]}, known_by="person"
    ),
}
"""None of these is said of a copy that was read later than its source."""
AHEAD = ("a copy is ahead of its source", "the named source is copied over a server with transactions of its own")


def case_of(folder: Path, incident: Incident) -> Case:
    collected = folder / "in"
    collected.mkdir(parents=True)
    for name, data in incident.logs.items():
        (collected / f"{name}.log").write_bytes(data)
    if incident.named:
        name_source(collected, f"{incident.named}.log")
    case = Case.create(folder / "case")
    case.load([collected])
    return case


def by_server(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["server"], []).append(row["position"])
    return found


@pytest.mark.parametrize("name", INCIDENTS)
def test_what_is_said_and_what_is_written(name: str, tmp_path: Path) -> None:
    truth = INCIDENTS[name]
    case = case_of(tmp_path, truth)
    found = diagnose(case)
    assert undocumented(found) == set()
    assert by_server(found["missing"]) == truth.missing
    assert {row["server"]: row["count"] for row in found["pending"]} == truth.pending
    assert by_server(found["errant"]) == truth.errant
    assert by_server(found["stranded"]) == truth.stranded
    assert {row["source_known_by"] for row in found["streams"] if row["origin"] == "1"} == {truth.known_by}
    told = {one["server"]: list(one["items"]) for one in found["findings"] if one["code"] == "ERRANT_CHANGE"}
    assert told == truth.errant
    if truth.errant and not truth.missing and name not in AHEAD:
        assert headline(found).startswith("Only ") and "MISSING" not in headline(found)
    rests = [one for one in found["findings"] if one["code"] in ("MISSED_CHANGE", "PENDING_CHANGES")]
    assert all(tuple(one["assumes"]) == truth.assumes for one in rests if truth.writes)
    made = plan(case)
    assert tuple(sorted({step.server for step in made.steps})) == truth.writes
    assert all(step.assumes == truth.assumes for step in made.steps)
    if truth.errant and name not in AHEAD:
        assert made.left and any("ERRANT_CHANGE" in line or "only " in line for line in made.left)


def test_what_the_source_may_have_lost_is_told_of_the_one_server_that_has_it(tmp_path: Path) -> None:
    """A record of the source is damaged: it says 5, which all have, and 77 stands beside it on one server."""
    damaged = bytearray(one(5))
    damaged[-1] ^= 1
    source, copy = log(*range(1, 5)) + bytes(damaged) + log(*range(6, 11)), log(*range(1, 6), 77, *range(6, 11))
    found = diagnose(case_of(tmp_path / "one", Incident({"a": source, "b": copy, "c": WHOLE}, named="a")))
    assert [(row["server"], row["position"], row["why"]) for row in found["errant"]] == [
        ("b", "77", "source_lost_records")
    ]
    assert not found["stranded"] and not found["missing"]
    (told,) = (one for one in found["findings"] if one["code"] == "ERRANT_CHANGE")
    assert (told["severity"], told["items"]) == ("info", ["77"]) and "the log of a lost records there" in told[
        "summary"
    ]
    # Two servers have it: the source sent it to both.
    found = diagnose(case_of(tmp_path / "two", Incident({"a": source, "b": copy, "c": copy}, named="a")))
    assert not found["errant"]


@pytest.mark.parametrize(("at", "pending", "unknown"), [(8_500, {"b": 2}, {}), (20_000, {}, {"b": "copy_is_ahead"})])
def test_what_a_copy_waits_for_that_goes_on_is_unknown_unless_its_last_is_older_than_the_log_of_its_source(
    at: int, pending: dict[str, int], unknown: dict[str, str], tmp_path: Path
) -> None:
    """b has 1 to 8, and 50: if the source made that after its log was read, b has passed over 9 and 10."""
    made = [record(transaction(number, insert((b"%d" % number,)), at=number * 1000)) for number in range(1, 11)]
    after = record(transaction(50, insert((b"50",)), at=at))
    case = case_of(tmp_path, Incident({"a": b"".join(made), "b": b"".join(made[:8]) + after}, named="a"))
    found = diagnose(case)
    assert by_server(found["errant"]) == {"b": ["50"]}
    assert {row["server"]: row["count"] for row in found["pending"]} == pending
    assert {row["server"]: row["why"] for row in found["unknown"]} == unknown
    steps = plan(case).steps
    assert [step.server for step in steps] == list(pending)
    told = {row["server"]: row["verdict"] for row in story(case, "1:9")["servers"]}
    assert told == {"a": "present", "b": "pending" if pending else "unknown"}


def refused(made: Plan) -> dict[str, tuple[str, int]]:
    return {one.way: (one.refused, one.lost) for one in made.courses if one.refused or one.lost}


def test_nothing_is_copied_over_what_differs_while_nobody_knows_the_source(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, INCIDENTS["two contents of one transaction"]))
    assert not made.steps and made.unmended
    assert "--source 1=SERVER" in str(made)


def test_what_a_copy_of_all_data_would_throw_away_is_counted(tmp_path: Path) -> None:
    """The other content of 5, and 20, which no other log has."""
    about = INCIDENTS["the named source is copied over a server with transactions of its own"]
    made = plan(case_of(tmp_path, about))
    (course,) = (one for one in made.courses if one.way == "provision")
    assert not course.chosen and course.lost == 2


def test_a_source_is_named_for_one_run(tmp_path: Path) -> None:
    case = case_of(tmp_path, INCIDENTS["two logs, one lacks something in the middle"])
    run = CliRunner()
    open_ = run.invoke(main, ["diagnose", str(case.folder)])
    assert "`--source 1=SERVER`" in open_.output and open_.exit_code == 1
    named = run.invoke(main, ["diagnose", str(case.folder), "--source", "1=a"])
    assert "1 change is MISSING on b" in named.output
    planned = run.invoke(main, ["plan", str(case.folder), "--source", "1=a"])
    assert "taken for granted: a person named the server" in planned.output and "INSERT INTO" in planned.output
    assert "INSERT INTO" not in run.invoke(main, ["plan", str(case.folder)]).output
    for given, says in (
        ("a", "wants ORIGIN=SERVER"),
        ("1=z", "no log of z has transactions of 1"),
        ("9=a", "no log has"),
    ):
        done = run.invoke(main, ["diagnose", str(case.folder), "--source", given])
        assert done.exit_code == 2 and says in done.output + str(done.stderr)


@pytest.mark.parametrize("damaged", [range(5, 6), range(5, 11)])
def test_what_the_source_may_have_lost_is_counted_beyond_the_list(
    damaged: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """70 to 78 stand on one server alone, where the source lost a record, or its last ones; three are listed."""
    parts = {number: bytearray(one(number)) for number in range(1, 11)}
    for number in damaged:
        parts[number] = bytearray(len(parts[number]))
    own = log(*range(1, 5), *range(70, 79), *range(6, 11)) if len(damaged) == 1 else log(*range(1, 5), *range(70, 79))
    about = Incident({"a": b"".join(parts.values()), "b": own, "c": log(*range(1, 5))}, named="a")
    for limit in (3, 10_000):
        monkeypatch.setattr("workbench.diagnosis.case_diagnosis.LIMIT", limit)
        found = diagnose(case_of(tmp_path / str(limit), about), limit=limit)
        assert [row["position"] for row in found["errant"]] == [str(n) for n in range(70, 79)][:limit]
        (told,) = (one for one in found["findings"] if one["code"] == "ERRANT_CHANGE")
        assert " 9 transactions of server 1 (70, 71, 72 and 6 more)" in told["summary"]
        assert found["run"]["truncated"].get("errant") == (9 if limit == 3 else None)
    made = plan(case_of(tmp_path / "plan", about))
    assert [one.lost for one in made.courses if one.way == "provision" and "to b" in one.says] in ([9], [9, 9], [])


def test_of_each_server_with_transactions_of_its_own_something_is_said_where_the_list_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.diagnosis.case_diagnosis.LIMIT", 3)
    about = Incident({"a": log(*range(1, 5), *range(20, 30)), "b": log(*range(1, 5), 40), "c": log(*range(1, 5))})
    found = diagnose(case_of(tmp_path, about), limit=3)
    told = {one["server"]: one["summary"] for one in found["findings"] if one["code"] == "ERRANT_CHANGE"}
    assert "10 transactions" in told["a"] and "1 transaction " in told["b"]
    assert len(found["errant"]) == 3 and found["run"]["truncated"]["errant"] == 11


# --- what a queue lacks


def exported(numbers: range) -> bytes:
    """The log of a master: commits 1, 2, … of these transactions; 105 is a bulk of three messages."""
    rows = []
    for number in numbers:
        for segment, message in enumerate(bulk(number), 1):
            commit = number - 100 if segment == len(bulk(number)) else 0
            body = message.SerializePartialToString()
            about = {"ID": number, "SEGID": segment, "COMMIT_ID": commit, "MESSAGE_LEN": len(body)}
            rows.append(json.dumps(about | {"MESSAGE": base64.b64encode(body).decode()}))
    return "".join(row + "\n" for row in rows).encode()


def bulk(number: int) -> list[Any]:
    count = 3 if number == 105 else 1
    return [
        transaction(number, insert((b"%d" % (number * 10 + at), b"x")), segment=at, ended=at == count)
        for at in range(1, count + 1)
    ]


def queue(numbers: range, without: tuple[tuple[int, int], ...] = ()) -> bytes:
    """The queue of a slave, without some messages: (number of the transaction, of the message). The last one has the commit."""

    def commit(number: int, segment: int) -> int:
        return number - 100 if segment == len(bulk(number)) else 0

    rows = [
        json.dumps(
            {"trx_id": number, "seg_id": segment, "commit_order": commit(number, segment), "master_id": 1}
            | {"msg": str(message)}
        )
        for number in numbers
        for segment, message in enumerate(bulk(number), 1)
        if (number, segment) not in without
    ]
    return "".join(row + "\n" for row in rows).encode()


def slave(folder: Path, waiting: bytes, status: str = "RUNNING") -> Case:
    collected = folder / "in"
    collected.mkdir(parents=True)
    (collected / "m.replication-log.jsonl").write_bytes(exported(range(101, 111)))
    (collected / "s.queue.jsonl").write_bytes(waiting)
    state = [{"master_id": 1, "status": status, "last_applied_commit_id": 3}]
    (collected / "s.state.json").write_text(json.dumps({"io_state": [], "applier_state": state}))
    case = Case.create(folder / "case")
    case.load([collected])
    return case


@pytest.mark.parametrize(
    ("about", "numbers", "without", "codes", "after", "says"),
    [
        ("whole", range(104, 109), (), set(), 0, ""),
        ("a message in the middle", range(104, 109), ((105, 2),), {"TXN_INCOMPLETE"}, 6, "105 without message 2)"),
        ("the first message", range(104, 109), ((105, 1),), {"TXN_INCOMPLETE"}, 6, "105 without message 1)"),
        ("its end, and later ones are there", range(104, 109), ((105, 3),), {"TXN_INCOMPLETE"}, 6, "without its end)"),
        ("its end, and it may still come", range(104, 106), ((105, 3),), set(), 0, ""),
        ("a whole transaction", range(104, 109), ((106, 1),), {"QUEUE_GAP"}, 5, ""),
    ],
)
def test_nothing_comes_behind_what_a_queue_lacks(
    about: str, numbers: range, without: Any, codes: set[str], after: int, says: str, tmp_path: Path
) -> None:
    found = diagnose(slave(tmp_path, queue(numbers, without)))
    assert undocumented(found) == set()
    told = [one for one in found["findings"] if one["code"] in ("TXN_INCOMPLETE", "QUEUE_GAP")]
    assert ({one["code"] for one in told}, {one["severity"] for one in told}) == (codes, {"error"} if codes else set())
    assert says in "".join(one["summary"] for one in told)
    (row,) = found["pending"]
    assert (row["server"], row["count"], row.get("behind_gap", 0)) == ("s", 7, after)
    line = headline(found)
    assert f"{7 - after} are on the way to s" in line or f"{7 - after} is on the way to s" in line, line
    assert (f"{after} wait behind what the queue of s lacks" in line) == bool(after)


def test_a_plan_counts_what_the_diagnosis_counts_and_lets_no_applier_come_to_a_hole(tmp_path: Path) -> None:
    made = plan(slave(tmp_path / "gap", queue(range(104, 109), ((105, 2),)), "STOPPED"))
    assert [(row["server"], row["pending"]) for row in made.before if row["server"] == "s"] == [("s", 7)]
    assert [(row["server"], row["pending"]) for row in made.after if row["server"] == "s"] == [("s", 7)]
    assert not made.steps and any("TXN_INCOMPLETE s" in line for line in made.left)
    whole = plan(slave(tmp_path / "whole", queue(range(104, 109)), "STOPPED"))
    assert [step.repair for step in whole.steps] == ["start-applier"]
    assert [row["pending"] for row in whole.after if row["server"] == "s"] == [0]


# --- streams that number no messages


@pytest.mark.parametrize(
    ("pieces", "outcome", "missing"),
    [
        (((1, False), (2, False), (3, True)), "committed", None),
        (((1, False), (3, True)), "incomplete", "2"),
        (((1, False), (4, True)), "incomplete", "2 3"),
        (((2, False), (3, True)), "incomplete", "1"),
        (((1, False), (2, False)), "unfinished", "tail"),
        (((1, False), (3, False)), "incomplete", "2"),
        (((1, False), (1, True)), "incomplete", None),
    ],
)
def test_an_old_bulk_names_the_pieces_that_are_not_there(
    pieces: tuple[tuple[int, bool], ...], outcome: str, missing: str | None, tmp_path: Path
) -> None:
    made = []
    for number, ended in pieces:
        statement = insert((b"%d" % number, b"x"))
        statement.insert_data.segment_id, statement.insert_data.end_segment = number, ended
        made.append(record(transaction(5, statement, segment=None, ended=None)))
    old = record(transaction(4, insert((b"4", b"x")), segment=None, ended=None))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.log").write_bytes(old + b"".join(made))
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "in"])
    found = diagnose(case)
    told = [(row["outcome"], row["missing"]) for row in found["transactions"] if row["position"] == "5"]
    assert told == ([(outcome, missing)] if outcome != "committed" else [])
    incomplete = [one for one in found["findings"] if one["code"] == "TXN_INCOMPLETE"]
    assert bool(incomplete) == (outcome == "incomplete")
    inspected = CliRunner().invoke(main, ["inspect", str(tmp_path / "in" / "a.log"), "--json", "-"])
    (file,) = json.loads(inspected.stdout)
    shown = [row.get("missing_segments") for row in file["detail"]["transactions"] if row["transaction_id"] == 5]
    wanted = [int(one) for one in missing.split()] if missing and missing != "tail" else None
    assert shown in ([wanted], [missing]) or outcome == "committed"


def test_what_changes_a_table_as_a_whole_is_named_with_its_kind(tmp_path: Path) -> None:
    kind = messages.Statement.Type
    emptied = messages.Statement(type=kind.TRUNCATE_TABLE, start_timestamp=1, end_timestamp=2)
    emptied.truncate_table_statement.table_metadata.schema_name = "test"
    emptied.truncate_table_statement.table_metadata.table_name = "t"
    whole = log(1, 2) + record(transaction(3, emptied)) + log(4, 5)
    case = case_of(tmp_path, Incident({"a": whole, "b": log(1, 2, 4, 5)}, named="a"))
    found = diagnose(case)
    assert [(row["position"], row["operation"]) for row in found["missing"]] == [("3", "truncate_table")]
    (one,) = (one for one in found["findings"] if one["code"] == "MISSED_CHANGE")
    assert "3: truncate_table" in one["fix"][0]["caution"]
    assert [step.repair for step in plan(case).steps] == ["provision"], "what was written since is not emptied"


def test_a_report_calls_no_log_the_source_by_a_guess(tmp_path: Path) -> None:
    for name, says in (
        ("two have it and the third lacks it", "its source is not known"),
        ("the same, and a person names the longer one", "the source"),
    ):
        told = streamed(Diagnosed(case_of(tmp_path / name, INCIDENTS[name])), 5)
        assert [row["behind"] for row in stream_worded(told)["logs"] if row["server"] == "a"] == [says]
