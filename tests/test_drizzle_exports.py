"""Exported tables of a stream, and what a slave says of itself."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from drizzle_samples import expected, sample

from workbench import Case
from workbench.intake.files import facts_of, inspect_file, server_of
from workbench.systems import system_named
from workbench.systems.drizzle.formats.state import without_values

LOG, QUEUE, STATE = (
    *("innodb_log/sys_replication_log.jsonl", "innodb_log/slave_queue.jsonl", "innodb_log/slave_state.json"),
)


def rows_in(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sample(name).splitlines() if line.strip()]


def as_table(rows: list[dict[str, Any]], tab: bool) -> bytes:
    out = io.StringIO(newline="")
    if tab:  # as `mysql --batch` writes it
        lines = [rows[0], *(row.values() for row in rows)]
        out.write("".join("\t".join(str(value).replace("\n", "\\n") for value in line) + "\n" for line in lines))
    else:
        table = csv.DictWriter(out, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return out.getvalue().encode()


def wrapped(row: dict[str, Any]) -> dict[str, Any]:
    """With line ends in the base64, as TO_BASE64 writes it."""
    return row | {"MESSAGE": base64.encodebytes(base64.b64decode(row["MESSAGE"])).decode()}


def written(rows: list[dict[str, Any]], form: str) -> bytes:
    if form in ("csv", "tsv"):
        return as_table([wrapped(row) for row in rows] if "MESSAGE" in rows[0] else rows, form == "tsv")
    if form == "hex":
        return b"".join(
            json.dumps(row | {"MESSAGE": "0x" + base64.b64decode(row["MESSAGE"]).hex()}).encode() + b"\n"
            for row in rows
        )
    return (
        json.dumps(rows, indent=1).encode()
        if form == "array"
        else b"".join(json.dumps(r).encode() + b"\n" for r in rows)
    )


def table_of(path: Path, case: Path, name: str) -> list[dict[str, Any]]:
    made = Case.create(case)
    made.load([path.parent])
    rows = made.arrow(name).to_pylist()
    return [
        {key: row[key] for key in row if key not in ("snapshot", "server", "file", "offset", "last")} for row in rows
    ]


@pytest.mark.parametrize("form", ["array", "csv", "tsv", "hex"])
def test_the_log_of_a_master_reads_alike_in_every_form(form: str, tmp_path: Path) -> None:
    rows = rows_in(LOG)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "m.jsonl").write_bytes(written(rows, "lines"))
    (tmp_path / "b" / "m.txt").write_bytes(written(rows, form))
    seen = inspect_file(tmp_path / "b" / "m.txt")
    assert (seen["format"], seen["rows"], seen["rejected"]) == ("drizzle.replication-log", 27, 0)
    plain = table_of(tmp_path / "a" / "m.jsonl", tmp_path / "case-a", "segments")
    assert plain == table_of(tmp_path / "b" / "m.txt", tmp_path / "case-b", "segments")
    assert [row["commit"] for row in plain] == [row["COMMIT_ID"] or None for row in rows]
    assert max(row["commit"] or 0 for row in plain) == expected()["innodb_log"]["max_commit_id"]
    assert seen["detail"]["counts"] == {"event": 1, "committed": 22, "rolled_back": 1}
    (taken,) = [one for one in seen["detail"]["transactions"] if one["outcome"] == "rolled_back"]
    assert (taken["transaction_id"], taken["messages"]) == (expected()["innodb_log"]["rollback_row"]["ID"], 1)


def test_the_log_of_a_master_holds_what_its_transaction_log_holds(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "m.jsonl").write_bytes(sample(LOG))
    (tmp_path / "b" / "m.log").write_bytes(sample("fleet/primary.log"))
    exported = table_of(tmp_path / "a" / "m.jsonl", tmp_path / "case-a", "transactions")
    log = {row["position"]: row for row in table_of(tmp_path / "b" / "m.log", tmp_path / "case-b", "transactions")}
    same = ("outcome", "rows", "content", "kept")
    mine = [
        row for row in exported if row["outcome"] != "rolled_back"
    ]  # of which the table keeps the last message only
    assert len(mine) > 20
    assert [[row[name] for name in same] for row in mine] == [
        [log[row["position"]][name] for name in same] for row in mine
    ]


@pytest.mark.parametrize("form", ["lines", "array", "csv", "tsv"])
def test_the_queue_of_a_slave_holds_messages_as_text(form: str, tmp_path: Path) -> None:
    path = tmp_path / "q.data"
    path.write_bytes(written(rows_in(QUEUE), form))
    seen = inspect_file(path)
    assert (seen["format"], seen["rows"], seen["rejected"]) == ("drizzle.queue", 2, 0)
    assert [(one["transaction_id"], one["commit"], one["rows"]) for one in seen["detail"]["transactions"]] == [
        (794, 22, {"shop.orders": {"insert": 1}}),
        (796, 24, {"shop.orders": {"insert": 1}}),
    ]


def test_a_row_that_cannot_be_read_or_is_not_its_message_is_rejected(tmp_path: Path) -> None:
    rows = rows_in(LOG)
    rows[3]["MESSAGE"] = "not base64!"
    rows[4]["MESSAGE_LEN"] += 1
    rows[5]["ID"] = 900
    rows[6]["SEGID"] = 2
    rows[7]["MESSAGE"] = base64.b64encode(b"\xff").decode()
    rows[7]["MESSAGE_LEN"] = 1
    rows[8]["COMMIT_ID"] = "many"
    rows[9]["COMMIT_ID"], rows[10]["SEGID"], rows[11]["ID"] = 1 << 63, str(1 << 32), 1 << 64
    data = written(rows, "lines") + b'{"ID": 1, "SEGID"\n[]\n'
    path = tmp_path / "m.jsonl"
    path.write_bytes(data)
    seen = inspect_file(path)
    assert (seen["rows"], seen["rejected"]) == (29, 11)
    assert [one["reason"] for one in seen["rejects"]] == [
        "the message is neither base64 nor hexadecimal digits",
        "the message has 144 bytes, not as many as the row says",
        "the message is not the one that its row says",
        "the message is not the one that its row says",
        "the message is damaged: it is no transaction",
        "no number in the column commit_id",
        "no number in the column commit_id",
        "no number in the column segid",
        "no number in the column id",
        "broken JSON",
        "not a row of the table",
    ]
    assert sum(seen["detail"]["counts"].values()) == 24 - 9
    for one in seen["rejects"]:
        assert one["offset"] == 0 or data[one["offset"] - 1 : one["offset"]] == b"\n"


def test_a_message_that_a_filter_left_without_numbers_has_those_of_its_row(tmp_path: Path) -> None:
    from workbench.systems.drizzle.formats.messages_pb2 import Transaction

    rows = rows_in(LOG)
    for row in rows:
        message = Transaction.FromString(base64.b64decode(row["MESSAGE"]))
        message.ClearField("segment_id")
        message.ClearField("end_segment")
        body = message.SerializeToString()
        row |= {"MESSAGE": base64.b64encode(body).decode(), "MESSAGE_LEN": len(body)}
    path = tmp_path / "m.jsonl"
    path.write_bytes(written(rows, "lines"))
    assert inspect_file(path)["detail"]["counts"] == {"event": 1, "committed": 22, "rolled_back": 1}
    path.write_bytes(written([row for row in rows if row["SEGID"] != 3], "lines"))
    assert inspect_file(path)["detail"]["counts"] == {"event": 1, "committed": 21, "incomplete": 1, "rolled_back": 1}


def test_what_a_slave_says_of_itself(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "slave_state.json"
    path.write_bytes(sample(STATE))
    assert inspect_file(path)["format"] == "drizzle.state"
    assert facts_of(path) == {"running": 1, "threads": 2}
    io_thread, applier = table_of(path, tmp_path / "case", "appliers")
    assert (io_thread["part"], io_thread["status"], io_thread["error"]) == ("io", "RUNNING", "Connected")
    assert (applier["part"], applier["status"], applier["commit"], applier["origin_commit"]) == (
        "applier",
        "STOPPED",
        21,
        21,
    )
    assert applier["error"] == "(SQLSTATE 23000) Duplicate entry '…' for key 'PRIMARY'"
    for broken in (
        b'{"io_state": [{}]}',
        b'{"io_state": [',
        b'{"io_state": [{"master_id": 1}], "applier_state": [[]]}',
    ):
        path.write_bytes(broken)
        seen = inspect_file(path)
        assert (seen["format"], seen["rows"], seen["rejected"]) == ("drizzle.state", 1, 1)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("Connected", "Connected"),
        ("Duplicate entry 'O'Neil' for key 'PRIMARY'", "Duplicate entry '…' for key 'PRIMARY'"),
        ("Data too long for column 'note'", "Data too long for column 'note'"),
        ("Duplicate entry 'x for key 'y' or so", "Duplicate entry … for key 'y' or so"),
        ("Incorrect value 'a secret' for column 'c1' at row 1", "Incorrect value '…' for column 'c1' at row 1"),
        ("cannot run INSERT INTO t VALUES (104, 7)", "cannot run INSERT …"),
        ("it broke at 'half a sec", "it broke at …"),
    ],
)
def test_errors_are_kept_without_values(error: str, told: str) -> None:
    assert without_values(error) == told


def test_files_of_both_sides_in_one_folder_are_two_servers() -> None:
    drizzle = system_named("drizzle")
    names = {
        "sys_replication_log.jsonl": "master",
        "slave_queue.jsonl.gz": "slave",
        "slave_state.json": "slave",
        "transaction.log": "box",
        "replica2.slave_state.json": "replica2",
        "primary.log": "primary",
    }
    assert {name: server_of(Path("/tmp/box") / name, drizzle) for name in names} == names
