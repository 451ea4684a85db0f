"""What a copy lacks of a transaction whose messages stand on both sides of its beginning, of its end, or of a loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_samples import insert, record, transaction
from stream_files import name_source

from workbench.case.case import Case
from workbench.diagnosis.case_diagnosis import diagnose


def log(text: str) -> bytes:
    """A log of these messages: "104/2/3" is the second of three, "-" before it a record of zeros in its place."""
    return b"".join(map(_record, text.split()))


def _record(word: str) -> bytes:
    number, at, most = map(int, word.removeprefix("-").split("/"))
    body = insert((b"%d.%d" % (number, at),), piece=at, ended=at == most)
    data = record(transaction(number, body, segment=at, ended=at == most))
    return bytes(len(data)) if word.startswith("-") else data


BULK = "101/1/2 102/1/1 101/2/2"
"""Two transactions as a source sends them: the one ends between the messages of the other."""
SOURCE = f"103/1/1 104/1/2 105/1/1 {BULK} 104/2/2 106/1/1"
LATER = "copy_begins_later"


@pytest.mark.parametrize(
    ("copy", "missing", "behind", "unknown"),
    [
        (f"103/1/1 105/1/1 {BULK}", ["104"], ["106"], {}),
        # Whoever applies whole transactions has the messages of each together, and may still get 104.
        ("103/1/1 105/1/1 102/1/1 101/1/2 101/2/2", [], ["104", "106"], {}),
        (f"105/1/1 {BULK}", [], ["106"], {"103": LATER, "104": LATER}),
        # Where the source has nothing of the first message, what both have first tells where the copy begins.
        (f"200/1/1 105/1/1 {BULK}", [], ["106"], {"103": LATER, "104": LATER}),
        (f"103/1/1 -104/1/2 105/1/1 {BULK}", [], ["106"], {"104": "copy_lost_records"}),
        # The copy holds nothing but a piece, and may have begun with it.
        ("104/1/2", [], ["105", "102", "101", "104", "106"], {"103": LATER}),
    ],
)
def test_a_transaction_cannot_come_whole_behind_its_first_message(
    copy: str, missing: list[str], behind: list[str], unknown: dict[str, str], tmp_path: Path
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
    assert mine["behind"] == behind
