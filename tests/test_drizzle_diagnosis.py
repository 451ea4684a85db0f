"""Logs of Drizzle diagnosed: each recorded log by itself, and fleets held against each other."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import drizzle_samples as made
import pytest
from drizzle_samples import SAMPLES as STREAMS
from drizzle_samples import expected, record
from drizzle_samples import sample as bytes_of
from stream_files import name_source
from stream_samples import log_of, records

from workbench.case.case import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.output_keys import undocumented

MEANT = {
    "segment_missing": "TXN_INCOMPLETE",
    "no_end_segment": "TXN_UNFINISHED",
    "segment_number_repeated": "TXN_CONFLICT",
    "transaction_id_reused": "ID_REUSED",
    "duplicate_delivery": "TXN_REPEATED",
    "bad_checksum": "RECORD_CORRUPT",
    "truncated_record": "TORN_TAIL",
    "update_record_width_mismatch": "RAGGED_UPDATE",
}
FACTS = {
    "interleaved",
    "rolled_back_after_segments",
    "statement_rolled_back",
    "transaction_id_gap",
    "no_message_segments",
}
FACTS |= {"orphan_rollback"}
"""What the recorded answers tell and what is no finding."""

LOGS = [name for name, answer in expected().items() if "transactions" in answer and "/" not in name]


def case_of(folder: Path, logs: Mapping[str, bytes]) -> Case:
    """A case of logs, by the name of the file; a person named the primary as the source, or `a`, if there is one."""
    collected = folder / "collected"
    collected.mkdir()
    for name, data in logs.items():
        (collected / name).write_bytes(data)
        if name.startswith(("primary", "a.")):
            name_source(collected, name)
    case = Case.create(folder / "case")
    case.load([collected])
    return case


def diagnosed(folder: Path, logs: Mapping[str, bytes]) -> dict[str, Any]:
    return diagnose(case_of(folder, logs))


@pytest.mark.parametrize("name", LOGS)
def test_a_log_by_itself(name: str, tmp_path: Path) -> None:
    found = diagnosed(tmp_path, {name: bytes_of(name)})
    wanted: dict[str, set[str]] = {}
    for one in expected()[name]["findings"]:
        if one["code"] not in FACTS:
            code = "TXN_ABORTED" if one.get("closed_by") else MEANT[one["code"]]
            wanted.setdefault(code, set()).update(str(one[key]) for key in ("transaction_id",) if key in one)
    codes = {one["code"]: set(one["items"]) for one in found["findings"]}
    # A number used for two transactions is a conflict as well: nothing tells which of them stands.
    if "ID_REUSED" in codes:
        assert codes.pop("TXN_CONFLICT") == codes["ID_REUSED"]
    assert codes == wanted
    assert undocumented(json.loads(json.dumps(found))) == set()
    assert not any(found[key] for key in ("missing", "pending", "stranded", "unknown"))


def fleet() -> dict[str, bytes]:
    return {f"{name}.log": bytes_of(f"fleet/{name}.log") for name in ("primary", "replica1", "replica2")}


def by_server(rows: list[dict[str, Any]], server: str) -> list[str]:
    return [row["position"] for row in rows if row["server"] == server]


def test_a_fleet_says_what_was_missed_and_what_comes(tmp_path: Path) -> None:
    found, wanted = diagnosed(tmp_path, fleet()), expected()["fleet"]["replica2"]
    whole = [*wanted["missing_inside"], *wanted["incomplete"]]
    assert by_server(found["missing"], "replica2") == list(map(str, sorted(whole)))
    assert not by_server(found["missing"], "replica1")
    causes = {row["position"]: row["cause"] for row in found["missing"]}
    assert {int(position) for position, cause in causes.items() if cause == "TXN_INCOMPLETE"} == set(
        wanted["incomplete"]
    )
    assert all(row["held_by"] == ["primary", "replica1"] for row in found["missing"])
    (pending,) = found["pending"]
    behind = wanted["behind_at_end"]
    assert (pending["server"], pending["count"], pending["available"]) == ("replica2", len(behind), len(behind))
    assert (pending["first"], pending["last"]) == (str(behind[0]), str(behind[-1]))
    (one,) = (row for row in found["fleet"] if row["server"] == "replica2")
    assert one["inside"] == list(map(str, wanted["missing_inside"]))
    assert one["incomplete"] == list(map(str, wanted["incomplete"]))
    assert one["behind"] == list(map(str, behind))
    assert one["undecided"] == wanted["resolved_from_primary"]
    plan = wanted["repair_plan"]
    assert (one["apply"], one["discard"]) == (list(map(str, plan["apply_in_order"])), list(map(str, plan["discard"])))
    assert one["rows"] == plan["rows"]
    severities = {row["code"]: row["severity"] for row in found["findings"]}
    # Its source took it back: nothing is open any more.
    assert severities == {
        "MISSED_CHANGE": "error",
        "TXN_INCOMPLETE": "error",
        "PENDING_CHANGES": "info",
        "TXN_UNFINISHED": "info",
    }


def test_rows_are_counted_as_seen_kept_and_taken_back(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, {"primary.log": bytes_of("fleet/primary.log")})
    (one,) = found["streams"]
    kept = sum(
        n
        for t in expected()["fleet/primary.log"]["transactions"]
        for of in (t.get("rows") or {}).values()
        for n in of.values()
    )
    assert (one["rows_kept"], one["rows_seen"]) == (kept, kept + one["rows_cancelled"])
    (void,) = (row for row in found["transactions"] if row["outcome"] == "rolled_back")
    assert one["rows_cancelled"] == void["cancelled"] == void["seen"] > 0


def parts_of(data: bytes) -> list[tuple[int, bytes]]:
    """(transaction, the bytes of the record) of a log."""
    found = [(at, message.transaction_context.transaction_id, len(body)) for at, message, body, _ in records(data)]
    return [(number, data[at : at + length + 12]) for at, number, length in found]


def without(data: bytes, *numbers: int) -> bytes:
    return b"".join(part for number, part in parts_of(data) if number not in numbers)


def test_where_a_copy_is_damaged_nothing_is_called_missing(tmp_path: Path) -> None:
    primary = bytes_of("fleet/primary.log")
    numbers = [number for number, _ in parts_of(primary)]
    hole = numbers.index(781)
    copy = b"".join(
        bytes(len(part)) if at == hole else part for at, (number, part) in enumerate(parts_of(primary)) if number != 784
    )
    found = diagnosed(tmp_path, {"primary.log": primary, "copy.log": copy})
    assert by_server(found["missing"], "copy") == ["784"]
    (unknown,) = found["unknown"]
    assert (unknown["from"], unknown["to"], unknown["count"], unknown["why"]) == ("781", "781", 1, "copy_lost_records")
    assert {"RECORD_CORRUPT", "MISSED_CHANGE"} <= {one["code"] for one in found["findings"]}


def test_a_copy_whose_record_is_damaged_has_the_transaction(tmp_path: Path) -> None:
    primary = bytes_of("fleet/primary.log")
    bad = bytearray(primary)
    at = next(at for at, message, _, _ in records(primary) if message.transaction_context.transaction_id == 781)
    length = int.from_bytes(primary[at + 4 : at + 8], "little")
    bad[at + 8 + length] ^= 1  # the checksum itself
    found = diagnosed(tmp_path, {"primary.log": primary, "copy.log": bytes(bad)})
    assert not found["missing"]
    assert [(row["from"], row["why"]) for row in found["unknown"]] == [("781", "copy_is_damaged")]


def test_a_copy_that_begins_later_is_not_blamed_for_before(tmp_path: Path) -> None:
    primary = bytes_of("fleet/primary.log")
    later = b"".join(part for number, part in parts_of(primary) if number >= 780)
    found = diagnosed(tmp_path, {"primary.log": primary, "copy.log": later})
    assert not found["missing"]
    (unknown,) = found["unknown"]
    assert (unknown["from"], unknown["to"], unknown["why"]) == ("774", "779", "copy_begins_later")


def test_only_one_copy_has_it(tmp_path: Path) -> None:
    primary = bytes_of("fleet/primary.log")
    found = diagnosed(
        tmp_path, {"primary.log": without(primary, 782, 786), "copy.log": without(primary, 778, 779, 781)}
    )
    # The log with most is the source, and what only the other one has will come to nobody.
    assert by_server(found["stranded"], "copy") == ["782", "786"]
    assert by_server(found["missing"], "copy") == ["778", "779", "781"]
    assert "STRANDED_CHANGE" in {one["code"] for one in found["findings"]}


def test_two_contents_under_one_number(tmp_path: Path) -> None:
    primary = bytes_of("fleet/primary.log")
    swapped = dict(parts_of(primary))
    other = swapped[782]
    message = next(m for _, m, _, _ in records(primary) if m.transaction_context.transaction_id == 782)
    message.statement[0].insert_data.record[0].insert_value[1] = b"somebody else"
    changed = primary.replace(other, record(message))
    found = diagnosed(tmp_path, {"primary.log": primary, "replica.log": changed})
    (one,) = (one for one in found["findings"] if one["code"] == "TXN_CONFLICT")
    assert (one["server"], one["items"]) == ("replica", ["782"])
    assert not found["missing"]


def test_the_story_of_one_transaction(tmp_path: Path) -> None:
    case = case_of(tmp_path, fleet())
    told = story(case, "784")
    verdicts = {one["server"]: one["verdict"] for one in told["servers"]}
    assert verdicts == {"primary": "present", "replica1": "present", "replica2": "missing"}
    told = story(case, "1:796")
    (late,) = (one for one in told["servers"] if one["server"] == "replica2")
    assert late["verdict"] == "pending"
    assert {row["supplier"]: row["outcome"] for row in late["suppliers"]} == {"primary": "sent", "replica1": "sent"}
    assert {one["verdict"] for one in story(case, "789")["servers"] if one["server"] == "replica2"} == {"missing"}


def test_packed_logs_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "packed").mkdir()
    plain = diagnosed(tmp_path / "plain", fleet())
    packed = diagnosed(tmp_path / "packed", {f"{name}.gz": gzip.compress(data) for name, data in fleet().items()})
    for key in ("missing", "pending", "fleet", "streams", "transactions", "findings"):
        assert plain[key] == packed[key]


def test_the_samples_are_there() -> None:
    assert all(log_of(name).is_file() for name in LOGS) and (STREAMS / "fleet").is_dir()


def test_two_servers_that_run_under_one_id(tmp_path: Path) -> None:
    """Every server has the id 1 that was not told otherwise: equal numbers prove nothing."""
    found = diagnosed(tmp_path, {"one.log": bytes_of("01_simple.log"), "other.log": bytes_of("fleet/primary.log")})
    assert not found["missing"] and not found["pending"] and not found["stranded"]
    assert {row["why"] for row in found["unknown"]} == {"unrelated"}
    assert {row["decision"] for row in found["pairs"]} == {"refused"}
    assert "UNRELATED_DATA" in {one["code"] for one in found["findings"]}


def plain(*numbers: int) -> dict[int, bytes]:
    return {number: made.record(made.transaction(number, made.insert((b"%d" % number, b"x")))) for number in numbers}


def test_a_damaged_number_makes_no_transaction_missing(tmp_path: Path) -> None:
    whole = plain(*range(100, 108))
    other = whole[104].replace(b"\x10\x68", b"\x10\x48", 1)
    copy = b"".join(whole.values()).replace(whole[104], other)
    found = diagnosed(tmp_path, {"a.log": b"".join(whole.values()), "b.log": copy})
    assert not found["missing"]
    assert [(row["from"], row["to"], row["why"]) for row in found["unknown"]] == [("104", "104", "copy_lost_records")]


def test_what_the_source_lost_is_not_only_at_the_copy(tmp_path: Path) -> None:
    whole = plain(*range(100, 110))
    holes = {"a": (103,), "b": (106,)}
    logs = {
        f"{name}.log": b"".join(bytes(len(part)) if at in lost else part for at, part in whole.items())
        for name, lost in holes.items()
    }
    found = diagnosed(tmp_path, logs)
    assert not found["stranded"] and not found["missing"]
    assert [(row["server"], row["from"], row["to"]) for row in found["unknown"]] == [("b", "106", "106")]


def test_a_source_that_lost_records_does_not_tell_what_was_taken_back(tmp_path: Path) -> None:
    first, second = (
        made.record(made.transaction(120, made.insert((b"%d" % at, b"x")), segment=at, ended=at == 2)) for at in (1, 2)
    )
    before, behind = (b"".join(plain(*numbers).values()) for numbers in (range(100, 105), range(130, 133)))
    start = made.record(made.event(125))
    logs = {
        "a.log": before + first + bytes(len(second)) + start + behind,
        "b.log": before[: len(before) // 5] + first + second + behind,
        "c.log": before + first + behind,
    }
    found = diagnosed(tmp_path, logs)
    (row,) = (row for row in found["fleet"] if row["server"] == "c")
    assert (row["source"], row["undecided"], row["discard"]) == ("a", {"120": "unfinished"}, [])
    assert not any("back" in one["summary"] for one in found["findings"])
    logs["a.log"] = before + first + start + behind  # whole: it was never ended
    (tmp_path / "whole").mkdir()
    (row,) = (row for row in diagnosed(tmp_path / "whole", logs)["fleet"] if row["server"] == "c")
    assert (row["undecided"], row["discard"]) == ({"120": "aborted"}, ["120"])


def exported(numbers: range, damaged: int | None = None) -> bytes:
    """Rows of SYS_REPLICATION_LOG; the commits in the order of the numbers, the rows in another one."""
    rows = []
    for number in sorted(numbers, key=lambda number: number % 3):
        body = made.transaction(number, made.insert((b"%d" % number, b"x"))).SerializeToString()
        message = "?" if number == damaged else base64.b64encode(body).decode()
        rows.append({"ID": number, "SEGID": 1, "COMMIT_ID": number - 100, "MESSAGE_LEN": len(body), "MESSAGE": message})
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_a_row_of_an_exported_log_that_cannot_be_read_may_be_any(tmp_path: Path) -> None:
    logs = {"a.jsonl": exported(range(101, 121)), "b.jsonl": exported(range(101, 119), damaged=110)}
    found = diagnosed(tmp_path, logs)
    assert not found["missing"] and not found["stranded"]
    assert [(row["from"], row["to"], row["why"]) for row in found["unknown"]] == [("110", "110", "copy_lost_records")]
    assert [(row["first"], row["last"]) for row in found["pending"]] == [("119", "120")]


def waiting(numbers: range, master: int = 1, damaged: int | None = None) -> bytes:
    """Rows of a queue."""
    rows = []
    for number in numbers:
        text = str(made.transaction(number, made.insert((b"%d" % number, b"x")), server=master))
        about = {"trx_id": number, "seg_id": 1, "commit_order": number - 100, "master_id": master}
        rows.append(json.dumps(about | {"msg": "?" if number == damaged else text}))
    return "".join(row + "\n" for row in rows).encode()


def appliers(**commits: int) -> bytes:
    """The state of a slave; how far it came with each of its masters."""
    rows = [
        {"master_id": int(name[1:]), "status": "RUNNING", "last_applied_commit_id": at} for name, at in commits.items()
    ]
    return json.dumps({"io_state": [], "applier_state": rows}).encode()


def test_commits_that_are_not_in_a_queue(tmp_path: Path) -> None:
    def told(name: str, queue: bytes, state: bytes) -> list[str]:
        (tmp_path / name).mkdir()
        logs = {"m.jsonl": exported(range(101, 121)), "s.queue.jsonl": queue, "s.state.json": state}
        found = diagnosed(tmp_path / name, logs)
        return [position for one in found["findings"] if one["code"] == "QUEUE_GAP" for position in one["items"]]

    assert told("one", waiting(range(112, 118, 5)), appliers(m1=10)) == ["111", "113", "114", "115", "116"]
    # A row of the queue that cannot be read may be the one that seems not to be there.
    assert told("damaged", waiting(range(111, 118), damaged=113), appliers(m1=10)) == []
    # Nothing tells which of two masters the log is of, and both count their commits from 1.
    queue = waiting(range(111, 113)) + waiting(range(500, 502), master=2)
    assert told("two", queue, appliers(m1=10, m2=3)) == []


def test_a_damaged_row_of_an_exported_log_is_told(tmp_path: Path) -> None:
    rows = bytes_of("innodb_log/sys_replication_log.jsonl").splitlines(keepends=True)
    rows[5] = rows[5][:40] + b"\n"
    found = diagnosed(tmp_path, {"primary.replication-log.jsonl": b"".join(rows)})
    (one,) = (one for one in found["findings"] if one["code"] == "RECORD_CORRUPT")
    assert one["server"] == "primary" and "in 1 place" in one["summary"]


def bulk(number: int, count: int) -> list[bytes]:
    """The records of a transaction of several messages, cut between statements."""
    rows = [made.insert((b"%d-%d" % (number, at), b"x")) for at in range(count)]
    return [made.record(made.transaction(number, row, segment=at, ended=at == count)) for at, row in enumerate(rows, 1)]


def test_no_server_is_told_to_wait_for_an_end_that_may_be_among_the_lost_records(tmp_path: Path) -> None:
    before, after, (first, last) = plain(100, 101), plain(103, 104), bulk(102, 2)
    source = [*before.values(), first, last, *after.values()]
    copy = [bytes(len(part)) if part == last else part for part in source]
    found = diagnosed(tmp_path, {"a.log": b"".join(source), "b.log": b"".join(copy)})
    assert [(row["from"], row["why"]) for row in found["unknown"]] == [("102", "copy_lost_records")]
    (unfinished,) = (row for row in found["findings"] if row["code"] == "TXN_UNFINISHED")
    assert "wait" not in unfinished["summary"] and "does not prove that the rest came" in unfinished["summary"]
    assert unfinished["fix"][0]["repair"] == "compare the rows that they changed with those of a"


def test_conflicts_of_two_servers_are_not_said_to_be_one(tmp_path: Path) -> None:
    source = plain(*range(100, 106))
    logs = {
        f"{name}.log": b"".join(
            made.record(made.transaction(number, made.insert((b"own", b"x")))) if number == other else part
            for number, part in source.items()
        )
        for name, other in (("a", 0), ("b", 101), ("c", 103))
    }
    conflicts = [row for row in diagnosed(tmp_path, logs)["findings"] if row["code"] == "TXN_CONFLICT"]
    assert [(row["servers"], row["items"]) for row in conflicts] == [(["b"], ["101"]), (["c"], ["103"])]


def test_a_server_supplies_only_if_it_has_all_that_is_on_the_way(tmp_path: Path) -> None:
    """The source is not known. p is behind, and one transaction that p waits for is missing on q too."""
    whole = plain(*range(100, 106))
    lacking = {"n": (), "o": (), "p": (103, 104, 105), "q": (104,)}
    logs = {
        f"{name}.log": b"".join(part for number, part in whole.items() if number not in numbers)
        for name, numbers in lacking.items()
    }
    (pending,) = diagnosed(tmp_path, logs)["pending"]
    assert (pending["server"], pending["suppliers"]) == ("p", ["n", "o"])
