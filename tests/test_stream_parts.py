"""What a copy lacks of a transaction whose messages stand on both sides of its beginning, of its end, or of a loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_samples import insert, record, transaction
from stream_files import name_source

from workbench.cases.case import Case
from workbench.diagnosing.diagnosis import diagnose


def log(text: str) -> bytes:
    """A log of these messages: "104/2/3" is the second of three, "-" before it a record of zeros in its place."""
    return b"".join(map(_record, text.split()))


def _record(word: str) -> bytes:
    number, at, most = map(int, word.removeprefix("-").split("/"))
    body = insert((b"%d.%d" % (number, at),), piece=at, ended=at == most)
    data = record(transaction(number, body, segment=at, ended=at == most))
    return bytes(len(data)) if word.startswith("-") else data


SOURCE = "103/1/1 104/1/2 105/1/1 104/2/2 106/1/1"


@pytest.mark.parametrize(
    ("copy", "missing", "unknown"),
    [
        ("103/1/1 105/1/1", ["104"], {}),
        ("105/1/1", [], {"103": "copy_begins_later", "104": "copy_begins_later"}),
        # Where the source has nothing of the first message, what both have first tells where the copy begins.
        ("200/1/1 105/1/1", [], {"103": "copy_begins_later", "104": "copy_begins_later"}),
        ("103/1/1 -104/1/2 105/1/1", [], {"104": "copy_lost_records"}),
        # What ended before a piece may have come before the log that begins with it.
        ("104/2/2", [], {"103": "copy_begins_later", "105": "copy_begins_later", "104": "copy_begins_later"}),
        # The copy holds nothing but a piece, and may have begun with it.
        ("104/1/2", [], {"103": "copy_begins_later"}),
    ],
)
def test_a_transaction_cannot_come_whole_behind_its_first_message(
    copy: str, missing: list[str], unknown: dict[str, str], tmp_path: Path
) -> None:
    collected = tmp_path / "in"
    collected.mkdir()
    (collected / "a.log").write_bytes(log(SOURCE))
    (collected / "b.log").write_bytes(log(copy))
    name_source(collected, "a.log")
    case = Case.create(tmp_path / "case")
    case.load([collected])
    found = diagnose(case)
    assert [row["position"] for row in found["missing"]] == missing
    (mine,) = found["fleet"]
    assert mine["unknown"] == list(unknown)
    assert {row["why"] for row in found["unknown"]} == set(unknown.values())
    assert mine["behind"] == (["105", "104", "106"] if copy == "104/1/2" else ["106"])
