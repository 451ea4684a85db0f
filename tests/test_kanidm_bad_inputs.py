"""Five thousand bad files of Kanidm, each with a clear outcome: what could not be read is told with reason and place, the rest is
read, no secret is shown, and none takes long.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_kanidm_formats import CANARY, FOLDER, TOLD, read

from workbench.intake.files import inspect

SECONDS = 5
"""For one small file, on a machine that has other things to do: what is quadratic takes minutes."""


def with_secrets() -> bytes:
    """A backup with secrets wherever they may be: far from what is kept, so that no cut can make a name of them."""
    backup = json.loads(gzip.decompress((FOLDER / "backup-v5.json.gz").read_bytes()))
    backup["keyhandles"] = {"a": {"private_key": CANARY}}
    ruv = backup["repl_meta"]["V1"]["ruv"]
    del ruv[20:]
    for entry in backup["entries"]:
        attributes = entry["ent"]["V3"]["attrs"]
        attributes["aa_first"] = {"CR": [{"password": CANARY}]}
        attributes["zz"] = {"U8": ["x" * 60]}
        attributes["zz_tokens"] = {"AT": [CANARY], "unheard": [CANARY], "OZ": {CANARY: CANARY}}
        attributes["zz_z"] = {"U8": ["x" * 60]}
    return json.dumps(backup, separators=(",", ":")).encode()


def database() -> bytes:
    return gzip.decompress((FOLDER / "kanidm-synth.db.gz").read_bytes())


def sample(name: str) -> bytes:
    return gzip.decompress((FOLDER / f"{name}.gz").read_bytes())


VERIFY = (
    b'Err(RuvInconsistent("%s"))\nErr(ChangeStateDesynchronised(7))\nErr(RefintNotUpheld(9))\n'
    % TOLD["domain"].encode()
)
INPUTS: dict[str, Callable[[], bytes]] = {
    "backup.json": with_secrets,
    "backup.json.gz": lambda: gzip.compress(with_secrets(), 1),
    "backup-v1.json": lambda: sample("backup-v1.json"),
    "kanidm.db": database,
    "supplier.bin": lambda: sample("supplier-frames.bin"),
    "consumer.bin": lambda: sample("consumer-frames.bin"),
    "supplier.jsonl": lambda: sample("supplier-frames.jsonl"),
    "scan.txt": lambda: sample("db-scan-list-id2entry.txt"),
    "verify.txt": lambda: VERIFY,
    "kanidmd.log": lambda: sample("log-lines-from-format-strings.txt"),
}
WRONG = [
    *(
        b'"version":"0.1"',
        b"null",
        b"true",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b'"V9"',
        b"\xff\xfe",
        b'"\\ud800"',
        b"\0",
        b"[]",
        b"{}",
    ),
    *(
        b"-1",
        b"18446744073709551616",
        b"0.5",
        b'"',
        b"\\",
        b"\n",
        b"]}",
        b"}",
        b",",
        b"\xed\xa0\x80",
        b"\xe2\x80\xae",
        b"<script>",
    ),
]


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Cut, one byte or some bits turned, a stretch left out or there twice, endless, nested without end, of another kind."""
    at, how = draw.randrange(len(data)), draw.randrange(9)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    if how == 2:
        return data[:at] + data[at + draw.randrange(1, 40) :]
    if how == 3:
        return data[:at] + b"9" * draw.choice([25, 5000]) + data[at:]
    if how == 4:
        return (
            data[:at]
            + draw.choice([b'{"a":[', b"[", b'{"ent":{', b"(", b" ", "│".encode()]) * draw.choice([3, 5000])
            + data[at:]
        )
    if how == 5:
        turned = bytearray(data)
        for _ in range(draw.choice([1, 8, 64])):
            turned[draw.randrange(len(turned))] ^= 1 << draw.randrange(8)
        return bytes(turned)
    if how == 6:  # a value of another kind in the place of a number or a text
        end = at + draw.randrange(12)
        return data[:at] + draw.choice(WRONG) + data[end:]
    if how == 7:
        return data[:at] + data[max(0, at - draw.randrange(4000)) :]
    return data[:at] + draw.choice(WRONG) + data[at:]


def outcome(path: Path, secret: bool) -> dict[str, Any]:
    """What is told of the file; raises unless that is clear."""
    began = time.monotonic()
    (told,) = inspect([path])
    took = time.monotonic() - began
    assert told["rows"] == told["accepted"] + told["rejected"] and told["accepted"] >= 0, told
    assert told["rejected"] == len(told["rejects"])
    for one in told["rejects"]:
        assert one["offset"] >= 0 and one["reason"].strip() and "\n" not in one["reason"], one
        assert "please report" not in one["reason"] and "Traceback" not in one["reason"], one
    assert took < SECONDS, took
    said = json.dumps(told)
    if secret:
        if told["format"].startswith("kanidm."):
            parsed = read(path)
            kept = [parsed.rejects, parsed.facts, {name: one.to_pylist() for name, one in parsed.tables.items()}]
            said += repr(kept)
        assert CANARY not in said
    return told


SHARE = 500
ROUNDS = 10


@pytest.mark.parametrize("share", [0, *(pytest.param(at, marks=pytest.mark.slow) for at in range(1, ROUNDS))])
@pytest.mark.parametrize("name", INPUTS)
def test_whatever_is_damaged_is_told_and_the_rest_is_read(name: str, share: int, tmp_path: Path) -> None:
    data, draw = INPUTS[name](), random.Random(f"{name} {share}")
    formats = set()
    for number in range(SHARE // len(INPUTS)):
        file = tmp_path / f"{number % 2}.{name}"
        file.write_bytes(damaged(data, draw))
        formats.add(outcome(file, name.startswith("backup.json"))["format"])
    assert any(one.startswith("kanidm.") for one in formats), formats


@pytest.mark.parametrize("name", INPUTS)
def test_undamaged_they_are_read_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(INPUTS[name]())
    told = outcome(path, True)
    assert told["rejected"] == 0 < told["accepted"] and told["format"].startswith("kanidm.")


def test_a_secret_where_a_name_should_be_is_no_name(tmp_path: Path) -> None:
    text, old = with_secrets(), b'"name":{"N8":["user0001"]}'
    assert old in text
    for new in (
        *(b'"name":{"%s":["%s"]}' % (tag, CANARY.encode()) for tag in (b"CR", b"RU", b"ZZ", b"")),
        b'"name":{"N8":{"%s":1}}' % CANARY.encode(),
        b'"name":[{"N8":"%s"}]' % CANARY.encode(),
        b'"name":"%s"' % CANARY.encode(),
        b'"uuid":{"UU":["%s"]}' % CANARY.encode(),
        b'"class":{"I8":["%s"]}' % CANARY.encode(),
        b'"%s":NaN' % CANARY.encode(),
        b'"%s' % CANARY.encode(),
    ):
        path = tmp_path / "A.json"
        path.write_bytes(text.replace(old, new))
        assert outcome(path, True)["format"] == "kanidm.backup"


def test_a_database_of_other_tables_or_values_is_told(tmp_path: Path) -> None:
    for number, change in enumerate(
        (
            "DROP TABLE ruv",
            "DROP TABLE db_sid",
            "DELETE FROM id2entry",
            "UPDATE id2entry SET data = 17",
            f"UPDATE id2entry SET data = '{CANARY}'",
            "UPDATE id2entry SET data = x'ff00fe'",
            "UPDATE db_sid SET data = x'00'",
            "UPDATE db_op_ts SET data = '[1]'",
            f"INSERT INTO ruv VALUES ('{CANARY}')",
        )
    ):
        path = tmp_path / f"{number}.db"
        path.write_bytes(database())
        with sqlite3.connect(path) as made:
            made.execute(change)
        made.close()
        told = outcome(path, True)
        assert told["rejected"] or change == "DELETE FROM id2entry", change


@pytest.mark.parametrize("word", [b"9", b"a ", b"\t", "│".encode(), b"x_uuid: ", b"{", b"|", b"_", b"lag_range: {"])
def test_a_line_without_end_is_read_in_no_time(word: bytes, tmp_path: Path) -> None:
    for name in ("kanidmd.log", "scan.txt", "verify.txt"):
        line = INPUTS[name]().split(b"\n")[0]
        for at in (len(line), len(line) - 9, 90):
            path = tmp_path / name
            path.write_bytes(line + b"\n" + line[:at] + word * (60_000 // len(word)) + line[at:] + b"\n")
            outcome(path, False)
