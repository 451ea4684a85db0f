"""What `inspect` tells of a file of a stream, held against what a correct reader finds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from drizzle_samples import event, expected, insert, logs, record, sample, transaction, update

from workbench.cli import main
from workbench.intake.files import inspect, inspect_file

NOTES = {"note", "note_truth"}


def differences(wanted: Any, found: Any, where: str = "") -> list[str]:
    """Where the expected part is not in what was found; keys may be added."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        missing = [f"{where}.{key} is missing" for key in wanted if key not in found and key not in NOTES]
        both = [key for key in wanted if key in found]
        return missing + [one for key in both for one in differences(wanted[key], found[key], f"{where}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [one for at, (a, b) in pairs for one in differences(a, b, f"{where}[{at}]")]
    return [] if wanted == found and type(wanted) is type(found) else [f"{where}: {wanted!r}, not {found!r}"]


@pytest.mark.parametrize("name", logs())
def test_a_recorded_log_is_told_as_a_correct_reader_finds_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(sample(name))
    (seen,) = inspect([path], rows=True)
    told = expected()[name]
    wanted = {key: told[key] for key in ("records", "end_of_file", "transactions", "counts") if key in told}
    assert differences(wanted, seen["detail"]) == []
    assert seen["detail"]["counts"] == told["counts"]
    assert seen["detail"]["resync"] == []
    if "final_rows" in told:
        assert seen["detail"]["final_rows"] == told["final_rows"]
    assert seen["rows"] == len(told["records"]) + (told["end_of_file"]["state"] == "truncated")


def test_rows_that_cannot_be_read_safely_are_no_final_rows(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(sample("16_ragged_update.log"))
    detail = inspect_file(path, rows=True)["detail"]
    assert detail["final_rows"] is None
    assert "key 2) cannot be read safely" in detail["final_rows_why"]
    assert "final_rows" not in inspect_file(path)["detail"]


def test_where_framing_is_lost_and_where_it_is_found_again(tmp_path: Path) -> None:
    first, second = (record(transaction(number, insert((b"1", b"x")))) for number in (7, 8))
    for junk, behind, at in ((b"junk", second, len(first) + 4), (bytes(50), b"", None)):
        path = tmp_path / "server.log"
        path.write_bytes(first + junk + behind)
        detail = inspect_file(path)["detail"]
        assert detail["resync"] == [{"damaged_offset": len(first), "next_good_offset": at}]
        end = (
            {"state": "clean", "offset": len(first + junk + behind)}
            if behind
            else {"state": "damaged", "offset": len(first)}
        )
        assert detail["end_of_file"] == end


def test_where_a_stream_has_no_numbers_a_loss_leaves_its_transactions_unknown(tmp_path: Path) -> None:
    def made(number: int) -> bytes:
        return record(transaction(number, update((b"1", b"x")), segment=None, ended=None))

    path = tmp_path / "server.log"
    path.write_bytes(made(7) + b"junk" + made(8))
    assert inspect_file(path)["detail"]["counts"] == {"unknown": 2}
    path.write_bytes(made(7) + made(8)[:-9])  # its end is not there yet, but nothing before it is lost
    assert inspect_file(path)["detail"]["counts"] == {"committed": 1}


def test_lists_are_cut_at_the_limit_and_counts_are_not(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"".join(record(transaction(number, insert((b"1", b"x")))) for number in range(1, 31)))
    detail = inspect_file(path, limit=5)["detail"]
    assert [one["transaction_id"] for one in detail["records"]] == [1, 2, 3, 4, 5]
    assert [one["transaction_id"] for one in detail["transactions"]] == [1, 2, 3, 4, 5]
    assert detail["counts"] == {"committed": 30}
    assert detail["truncated"] == {"records": 30, "transactions": 30}
    assert "truncated" not in inspect_file(path, limit=30)["detail"]


def test_the_command_shows_values_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(record(transaction(7, insert((b"1", b"topsecret")))))
    plain = CliRunner().invoke(main, ["inspect", str(path), "--json", "-"])
    assert "topsecret" not in plain.output
    asked = CliRunner().invoke(main, ["inspect", str(path), "--json", "-", "--rows"])
    assert json.loads(asked.output)[0]["detail"]["final_rows"] == {"test.t": {"1": {"id": "1", "c1": "topsecret"}}}
    shown = CliRunner().invoke(main, ["inspect", str(path)])
    assert "transactions: 1 committed" in shown.output


def test_a_damaged_message_may_have_been_of_another_transaction(tmp_path: Path) -> None:
    def made(number: int, value: bytes, at: int = 0) -> bytes:
        return record(transaction(number, insert((value, b"x")), segment=None, ended=None, at=at))

    second = made(5, b"2", at=1).replace(b"\x10\x05", b"\x10\x07", 1)  # of 5, and says 7
    path = tmp_path / "server.log"
    path.write_bytes(made(5, b"1") + second + made(5, b"3", at=2))
    detail = inspect_file(path, rows=True)["detail"]
    assert detail["counts"] == {"unknown": 1, "corrupt": 1}
    assert detail["final_rows"] == {}


def test_a_damaged_event_tells_nothing(tmp_path: Path) -> None:
    first, second = (
        record(transaction(8, insert((b"%d" % number, b"x")), segment=number, ended=number == 2)) for number in (1, 2)
    )
    stop = bytearray(record(event(9, "SHUTDOWN")))
    stop[stop.index(b"\x08\x01", 20) + 1] = 0  # now it says STARTUP
    path = tmp_path / "server.log"
    path.write_bytes(first + stop + second)
    assert inspect_file(path)["detail"]["counts"] == {"committed": 1, "corrupt": 1}


@pytest.mark.parametrize("packs", [bytes, gzip.compress])
@pytest.mark.parametrize("hole", [(64 << 10) - 3, 64 << 10, 5 << 20])
def test_a_log_that_begins_with_a_hole_of_zeros(hole: int, packs: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(packs(bytes(hole) + b"".join(record(transaction(at, insert((b"1", b"x")))) for at in (7, 8))))
    seen = inspect_file(path)
    assert seen["format"] == "drizzle.transaction-log"
    assert seen["detail"]["resync"] == [{"damaged_offset": 0, "next_good_offset": hole}]
    assert seen["detail"]["counts"] == {"committed": 2}
