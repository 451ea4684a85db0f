"""The files of Drizzle: where records begin and end, what is told of each, and what is done with damage."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard
from drizzle_samples import (
    LOG,
    delete,
    expected,
    frames_of,
    insert,
    logs,
    read_bytes,
    read_pieces,
    record,
    sample,
    transaction,
)

from workbench import Case
from workbench.engine import partition_writer
from workbench.engine.partition_writer import RANGE, out_of_step, read_shares, shares_of
from workbench.intake.files import inspect_file, recognise
from workbench.model import Parsed, Source
from workbench.systems.drizzle.formats.framing import SUMS
from workbench.systems.drizzle.formats.segments import read_exactly


def rows_of(parsed: Parsed) -> list[dict[str, Any]]:
    return parsed.tables["segments"].to_pylist() if parsed.tables else []


# Framing


@pytest.mark.parametrize("name", logs())
def test_every_record_of_a_recorded_log_is_found_with_its_place_and_its_checksum(name: str) -> None:
    found = [(at, end - at - 12, state) for at, end, state in frames_of(sample(name)) if state in SUMS]
    assert found == [(one["offset"], one["length"], one["crc"]) for one in expected()[name]["records"]]


@pytest.mark.parametrize("name", logs())
def test_reading_many_messages_at_once_tells_what_reading_each_by_itself_does(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(sample(name))
    for piece in read_pieces(path):
        assert LOG.reader()(piece).tables["segments"] == read_exactly(piece).tables["segments"]


def test_a_recorded_log_is_known_by_its_content_and_the_same_when_packed(tmp_path: Path) -> None:
    data = sample("07_interleaved_bulk.log")
    for name, content in {
        "plain": data,
        "a.gz": gzip.compress(data),
        "b.zst": zstandard.compress(data),
    }.items():
        (tmp_path / name).write_bytes(content)
        seen = inspect_file(tmp_path / name)
        assert (seen["format"], seen["rows"], seen["rejected"]) == ("drizzle.transaction-log", 15, 0)
    cut = gzip.compress(data)[:-300]
    (tmp_path / "c.gz").write_bytes(cut)
    seen = inspect_file(tmp_path / "c.gz")
    assert seen["format"] == "drizzle.transaction-log"
    assert 5 < seen["accepted"] < 15
    assert seen["rejects"][-1]["reason"] == "compressed data ends early: the file was cut"


def test_an_empty_log_is_known_by_its_name_alone(tmp_path: Path) -> None:
    (tmp_path / "transaction.log").touch()
    (tmp_path / "other.log").touch()
    assert recognise(tmp_path / "transaction.log")[1] == "drizzle.transaction-log"
    assert recognise(tmp_path / "other.log")[1] == "text"


GOOD = [record(transaction(number, insert((b"%d" % number, b"x" * 40)))) for number in range(700, 705)]
OFF = [record(transaction(number, insert((b"%d" % number, b"x" * 40))), checksum=False) for number in range(700, 705)]


@pytest.mark.parametrize("records", [GOOD, OFF], ids=["checksums", "no checksums"])
@pytest.mark.parametrize(
    "junk",
    [bytes(1), bytes(64), b"garbage between the records", bytes(range(256)), b"\1\0\0\0" * 9, b"\1\0\0\0\x20\0\0\0"],
)
def test_what_lies_between_records_is_named_with_its_bytes_and_nothing_else_is_lost(
    records: list[bytes], junk: bytes
) -> None:
    data = b"".join([*records[:2], junk, *records[2:]])
    at = len(records[0] + records[1])
    frames = frames_of(data)
    assert [end - at for at, end, state in frames if state in SUMS] == [len(one) for one in records]
    assert [one for one in frames if one[2] not in SUMS] == [
        (at, at + len(junk), f"{len(junk)} bytes that are no record: the next good record begins at {at + len(junk)}")
    ]
    parsed = read_bytes(data)
    assert [reject.offset for reject in parsed.rejects] == [at]
    assert [row["offset"] for row in rows_of(parsed) if row["origin"] is None] == [at]


@pytest.mark.parametrize("records", [GOOD, OFF], ids=["checksums", "no checksums"])
@pytest.mark.parametrize("length", [0, 3, 5000, 1 << 20, 1 << 30, 0xFFFFFFFF])
def test_a_wrong_length_costs_its_record_and_no_other(records: list[bytes], length: int) -> None:
    wrong = records[2][:4] + length.to_bytes(4, "little") + records[2][8:]
    data = b"".join([*records[:2], wrong, *records[3:]])
    at = len(records[0] + records[1])
    good = [frame[0] for frame in frames_of(data) if frame[2] in SUMS]
    assert good == [0, len(records[0]), at + len(wrong), at + len(wrong) + len(records[3])]


@pytest.mark.parametrize("checksum", [True, False])
def test_records_within_a_value_are_no_records_of_the_log(checksum: bool) -> None:
    inner = b"".join(record(transaction(900 + number, delete(b"1"))) for number in range(4))
    inner += b"".join(record(transaction(950 + number, delete(b"1")), checksum=False) for number in range(4))
    outer = record(transaction(800, insert((b"1", inner))), checksum)
    records = GOOD if checksum else OFF
    whole = b"".join([records[0], outer, records[1]])
    at, behind = len(records[0]), len(records[0] + outer)
    assert [one[0] for one in frames_of(whole)] == [0, at, behind]
    for length in (5, 300, 1 << 20, 1 << 30):  # its length is wrong: it ends where its fields do
        wrong = whole[: at + 4] + length.to_bytes(4, "little") + whole[at + 8 :]
        assert [one[0] for one in frames_of(wrong) if one[2] in SUMS] == [0, behind]
    for cut in range(at + 11, behind):  # the file ends within it
        frames = frames_of(whole[:cut])
        assert [one[0] for one in frames] == [0, at], cut
        assert frames[-1][2].startswith("the last record is cut in its ")


def test_a_record_with_a_wrong_checksum_stays_a_record_wherever_it_stands() -> None:
    for number in range(len(GOOD)):
        bad = GOOD[number][:-1] + bytes([GOOD[number][-1] ^ 1])
        data = b"".join([*GOOD[:number], bad, *GOOD[number + 1 :]])
        states = ["ok"] * len(GOOD)
        states[number] = "bad"
        assert [state for *_, state in frames_of(data)] == states
        assert [row["sound"] for row in rows_of(read_bytes(data))] == [state == "ok" for state in states]


def test_entries_of_other_kinds_are_kept_and_told() -> None:
    data = GOOD[0] + record(b"anything", kind=2) + record(b"a later version", kind=7) + GOOD[1]
    parsed = read_bytes(data)
    assert (parsed.rows, parsed.rejects) == (4, [])
    told = [(row["origin"], row["unknown"], row["length"]) for row in rows_of(parsed)]
    assert told[1:3] == [(None, "entry type 2", 8), (None, "entry type 7", 15)]


def test_a_message_that_cannot_be_read_is_a_reject_and_leaves_a_row() -> None:
    lacks = transaction(1, insert((b"1",)))
    lacks.transaction_context.ClearField("server_id")
    data = GOOD[0] + record(b"") + record(b"\xff\xff\xff") + record(lacks) + GOOD[1]
    parsed = read_bytes(data)
    assert [reject.reason for reject in parsed.rejects] == [
        "the message lacks required fields: transaction_context",
        "the message is damaged: it is no transaction",
        "the message lacks required fields: transaction_context.server_id",
    ]
    assert [row["origin"] for row in rows_of(parsed)] == ["1", None, None, None, "1"]
    assert [row["sound"] for row in rows_of(parsed)] == [True] * 5


# Shares


def loaded(path: Path, size: int, monkeypatch: pytest.MonkeyPatch, case: Path) -> tuple[Any, Any, int]:
    monkeypatch.setattr(partition_writer, "RANGE", size)
    made = Case.create(case)
    made.load([path.parent])
    (one,) = made.inputs
    tables = [pq.read_table(part["path"]).to_pylist() for part in made.parts("segments")]
    segments = [row for rows in tables for row in rows]
    rejects = [row for part in made.parts("rejects") for row in pq.read_table(part["path"]).to_pylist()]
    order = sorted(segments, key=lambda row: (row["offset"], row["number"] or 0))
    return order, sorted(rejects, key=lambda row: row["offset"]), one.rows


def nested(checksum: bool) -> bytes:
    """A log with values that are logs, larger than a share, and damage in between."""
    numbers = iter(range(1000, 9000))

    def small(count: int, inner: bool = False) -> bytes:
        made = [record(transaction(next(numbers), insert((b"k", b"v" * 30))), inner or checksum) for _ in range(count)]
        return b"".join(made)

    def blob() -> bytes:
        return record(transaction(next(numbers), insert((b"b", small(60, inner=True)))), checksum)

    return b"".join([small(9), blob(), bytes(700), small(20), blob(), blob(), small(3), b"junk", blob(), small(9)[:-5]])


@pytest.mark.parametrize("checksum", [True, False])
def test_shares_of_any_size_give_the_same_rows_though_values_hold_logs(
    checksum: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.log").write_bytes(nested(checksum))
    size = len(nested(checksum))
    whole = loaded(folder / "a.log", 1 << 25, monkeypatch, tmp_path / "whole")
    assert len(whole[1]) == 3
    again = 0
    for number, share in enumerate([*random.Random(7).sample(range(300, size), 12), 512, 3000]):
        monkeypatch.setattr(partition_writer, "RANGE", share)
        shares = shares_of(0, folder / "a.log", Source("a.log", "in", "a"), LOG.key)
        (tmp_path / f"e{number}").mkdir()
        again += len(out_of_step(shares, list(read_shares(shares, tmp_path / f"e{number}"))))
        assert loaded(folder / "a.log", share, monkeypatch, tmp_path / f"case{number}") == whole, share
    assert again > 10, "no share began within a value: nothing was proven"
    assert RANGE >= 32 << 20
