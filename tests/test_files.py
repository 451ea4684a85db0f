"""Files: recognised by content, cut into pieces, and bad ones told in a sentence."""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.intake import decompression, files
from workbench.intake.files import CarefulReader, inspect, inspect_file, packed, pieces, recognise, server_of
from workbench.model import ITEMS, LINES, RECORDS, WHOLE, Format, Parsed, Piece, Reject, Source
from workbench.systems import system_named, systems
from workbench.systems.ds389.formats import changelog_fast
from workbench.systems.ds389.formats.changelog_fast import CHANGELOG_LDIF

SOURCE = Source("f", "snap", "s1")
RECORD = b"changetype: delete\ncsn: 6b005c14001600030000\nnsuniqueid: 1-2-3-4\ndn: cn=x\n\n"


def units(data: bytes, unit: str) -> list[tuple[int, bytes]]:
    """The obvious way: split, and keep the place of each unit."""
    found, at = [], 0
    for part in data.split(b"\n\n" if unit == RECORDS else b"\n"):
        if part.strip(b"\n"):
            found.append((at + len(part) - len(part.lstrip(b"\n")), part.strip(b"\n")))
        at += len(part) + (2 if unit == RECORDS else 1)
    return found


def in_pieces(found: list[Piece | Reject], unit: str) -> list[tuple[int, bytes]]:
    assert not any(isinstance(piece, Reject) for piece in found)
    return [(piece.offset + at, text) for piece in found for at, text in units(piece.data, unit)]


texts = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n\n", b"\n\n\n", b" d\n"]), max_size=60).map(b"".join)


@given(texts, st.integers(1, 40), st.integers(1, 9), st.sampled_from([LINES, RECORDS]))
@settings(max_examples=400, deadline=None)
def test_pieces_and_ranges_give_every_unit_once_and_in_place(
    data: bytes, range_size: int, piece_size: int, unit: str
) -> None:
    path = Path(os.environ["PYTEST_TMP"]) / "plain"
    path.write_bytes(data)
    before, files.PIECE = files.PIECE, piece_size
    try:
        found = []
        for start in range(0, max(len(data), 1), range_size):
            found += list(pieces(path, SOURCE, unit, start, start + range_size))
        assert in_pieces(found, unit) == units(data, unit)
        assert sum(len(piece.data) for piece in found) == len(data)
        assert [piece.ended for piece in found] == [False] * (len(found) - 1) + [True] * bool(found)
    finally:
        files.PIECE = before


@given(texts, st.integers(1, 9), st.sampled_from([LINES, RECORDS]), st.sampled_from(["gz", "zst", "two gz"]))
@settings(max_examples=300, deadline=None)
def test_a_compressed_file_reads_like_the_plain_one(data: bytes, piece_size: int, unit: str, how: str) -> None:
    path = Path(os.environ["PYTEST_TMP"]) / "packed"
    half = len(data) // 2
    path.write_bytes(
        {
            "gz": gzip.compress,
            "zst": zstandard.compress,
            "two gz": lambda d: gzip.compress(d[:half]) + gzip.compress(d[half:]),
        }[how](data)
    )
    assert packed(path)
    before, files.PIECE = files.PIECE, piece_size
    try:
        found = list(pieces(path, SOURCE, unit))
        assert in_pieces(found, unit) == units(data, unit)
        assert sum(len(piece.data) for piece in found) == len(data)
    finally:
        files.PIECE = before


lists = st.lists(st.sampled_from([b",{", b",", b"{", b"ab", b"\n\n"]), max_size=60).map(b"".join)


@given(lists, st.integers(1, 40), st.integers(1, 9), st.sampled_from(["plain", "gz", "zst"]))
@settings(max_examples=300, deadline=None)
def test_items_of_a_list_are_cut_before_each_and_nowhere_else(
    data: bytes, range_size: int, piece_size: int, how: str
) -> None:
    path = Path(os.environ["PYTEST_TMP"]) / "list"
    pack = {"plain": bytes, "gz": gzip.compress, "zst": zstandard.compress}[how]
    path.write_bytes(pack(data))
    starts = range(0, max(len(data), 1), range_size) if how == "plain" else [0]
    before, files.PIECE = files.PIECE, piece_size
    try:
        found = [
            one
            for start in starts
            for one in pieces(path, SOURCE, ITEMS, start, start + range_size if how == "plain" else None, b",{")
        ]
    finally:
        files.PIECE = before
    assert b"".join(piece.data for piece in found) == data
    assert [piece.offset for piece in found] == [sum(len(one.data) for one in found[:n]) for n in range(len(found))]
    assert all(piece.data.startswith(b",{") for piece in found[1:])
    places = [one.start() for one in re.finditer(b",{", data)]
    cut = [
        piece.offset + at for piece in found for at, _ in files._units(piece.data, ITEMS, b",{") if piece.offset + at
    ]
    assert cut == [place for place in places if place]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_an_item_of_a_hundred_megabytes_is_one_reject_and_the_others_are_read(pack, tmp_path: Path) -> None:
    path = tmp_path / "list"
    first, last = b'[{"ent":1}', b',{"ent":3}]'
    path.write_bytes(pack(first + b',{"ent":"' + b"x" * (100 << 20) + b'"}' + last))
    found = list(pieces(path, SOURCE, ITEMS, opens=b',{"ent":'))
    assert [one.data if isinstance(one, Piece) else (one.offset, one.reason) for one in found] == [
        first,
        (len(first), "item longer than 64 MiB"),
        last,
    ]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_TMP", str(tmp_path))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_cut_archive_keeps_what_was_read_and_says_that_it_was_cut(pack, tmp_path: Path) -> None:
    body = b"".join(RECORD.replace(b"cn=x", b"cn=%d" % n + os.urandom(40).hex().encode()) for n in range(2000))
    whole = pack(body)
    path = tmp_path / "s1.changelog.ldif.gz"
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        seen = inspect_file(path)
        # Of the zstd file nothing can be unpacked before its first block is whole.
        assert seen["format"] == "ds389.changelog-ldif" or (seen["format"], seen["accepted"]) == ("unknown", 0)
        assert seen["rows"] == seen["accepted"] + seen["rejected"]
        assert seen["rejects"][-1]["reason"].startswith("compressed data ends early")
        assert seen["rejected"] <= 2
    path.write_bytes(whole)
    assert inspect_file(path)["accepted"] == 2000
    path.write_bytes(whole + b"garbage behind it")
    assert inspect_file(path)["accepted"] == 2000
    assert inspect_file(path)["rejected"] == 1


def test_a_flipped_bit_in_an_archive_is_a_reject_not_a_traceback(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(RECORD * 3000, 1))
    path = tmp_path / "s1.changelog.ldif.gz"
    for at in range(12, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        seen = inspect_file(path)
        assert seen["rows"] == seen["accepted"] + seen["rejected"]
        assert seen["rejected"] or seen["format"] in ("text", "unknown") or seen["accepted"] == 3000


@pytest.mark.parametrize("packs", [3, 300])
def test_nothing_before_the_damage_of_an_archive_is_lost(packs: int, tmp_path: Path) -> None:
    body = b"".join(RECORD.replace(b"cn=x", b"cn=" + os.urandom(400).hex().encode()) for _ in range(10 * packs))
    whole = gzip.compress(body, 1)
    path = tmp_path / "s1.changelog.ldif.gz"
    path.write_bytes(whole[:-8] + bytes(8))  # only the check sum is wrong: all of the data is there
    seen = inspect_file(path)
    assert (seen["accepted"], seen["rejected"]) == (10 * packs, 1)
    assert seen["rejects"][0]["offset"] == len(body)
    assert "incorrect data check" in seen["rejects"][0]["reason"]


def test_an_archive_bomb_is_refused_with_flat_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tracemalloc

    monkeypatch.setattr(decompression, "_BOMB_BYTES", 8 << 20)
    monkeypatch.setattr(files, "LONGEST", 4 << 20)
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb") as out:
        out.write(RECORD)
        for _ in range(256):
            out.write(b"a" * (1 << 20))
    path = tmp_path / "s1.changelog.ldif.gz"
    path.write_bytes(bomb.getvalue())
    tracemalloc.start()
    seen = inspect_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen["accepted"] == 1
    assert any("times its size" in reject["reason"] for reject in seen["rejects"])
    assert peak < 64 << 20


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("before", [0, 3])
def test_a_line_of_a_hundred_megabytes_is_one_reject_and_the_rest_is_read(pack, before: int, tmp_path: Path) -> None:
    path = tmp_path / "s1.changelog.ldif"
    path.write_bytes(pack(RECORD * before + b"changetype: add\ncsn: " + b"6" * (100 << 20) + b"\n\n" + RECORD * 5))
    seen = inspect_file(path)
    assert seen["format"] == "ds389.changelog-ldif"
    assert (seen["accepted"], seen["rejected"]) == (before + 5, 1)
    assert seen["rejects"][0] == {"offset": len(RECORD) * before, "reason": "record longer than 64 MiB"}


def test_what_is_no_file_or_not_readable_is_an_object_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "utf16").write_bytes("changetype: add\n".encode("utf-16"))
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "latin").write_bytes("Name: Jürgen\n".encode("latin-1"))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "note").write_text("a\nb")
    seen = inspect([tmp_path / name for name in ("folder", "utf16", "binary", "latin", "empty", "note", "gone")])
    assert [one["format"] for one in seen] == ["unknown"] * 4 + ["text"] * 2 + ["unknown"]
    assert [one["rows"] for one in seen] == [1, 1, 1, 1, 0, 2, 1]
    reasons = [one["rejects"][0]["reason"] if one["rejects"] else "" for one in seen]
    for reason, word in zip(reasons, ["folder", "UTF-16", "binary", "not UTF-8", "", "", "No such file"], strict=True):
        assert word in reason


def test_the_name_never_decides_what_a_file_is(tmp_path: Path) -> None:
    path = tmp_path / "s1.access.log"
    path.write_bytes(RECORD)
    assert recognise(path)[1] == "ds389.changelog-ldif"
    path = tmp_path / "s1.changelog.ldif"
    path.write_text("nothing of the kind\n")
    assert recognise(path)[1] == "text"


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("s1.changelog.ldif.gz", "s1"),
        ("A.json.gz", "A"),
        ("access", "box"),
        ("access.20261120-1", "box"),
        ("s9.access.log.zst", "s9"),
    ],
)
def test_servers_are_named_by_the_file_and_logs_by_their_folder(name: str, server: str, tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    assert server_of(tmp_path / "box" / name, system_named("ds389")) == server


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s1.access.log")
    (seen,) = inspect([tmp_path / "s1.access.log"])
    assert (seen["format"], seen["rejects"][0]["reason"]) == ("unknown", "is a pipe, a socket or a device")


def test_names_that_are_not_text_are_shown_with_escapes(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff1.changelog.ldif"))
    path.write_bytes(RECORD)
    seen = inspect_file(path)
    assert (seen["format"], seen["accepted"]) == ("ds389.changelog-ldif", 1)
    assert seen["file"].endswith("\\xff1.changelog.ldif")
    seen["file"].encode()


def test_a_zstd_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tracemalloc

    monkeypatch.setattr(decompression, "_BOMB_BYTES", 8 << 20)
    path = tmp_path / "s1.changelog.ldif.zst"
    path.write_bytes(zstandard.compress(RECORD + b"a" * (400 << 20)))
    tracemalloc.start()
    seen = inspect_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert any("times its size" in reject["reason"] for reject in seen["rejects"])
    assert peak < 300 << 20


def test_a_text_rejects_nothing_but_a_broken_archive_of_text_says_so(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(b"short\n" + b"x" * (70 << 20) + b"\nend\n")
    seen = inspect_file(path)
    assert (seen["format"], seen["rows"], seen["rejected"]) == ("text", 3, 0)
    whole = gzip.compress(os.urandom(200_000).hex().encode() + b"\n")
    path.write_bytes(whole[: len(whole) // 2])
    seen = inspect_file(path)
    assert seen["format"] == "unknown"
    assert seen["rejects"][0]["reason"].startswith("compressed data ends early")


# --- a fault in a reader

MARK = b"BAD"
FAULT = "hunter2"


def failing_on_marks(read: Callable[[Piece], Parsed] | None = None) -> Callable[[Piece], Parsed]:
    """A reader with a fault: it fails on a piece that holds the mark. The message of the exception holds a secret."""

    def reader(piece: Piece) -> Parsed:
        if MARK in piece.data:
            raise KeyError(FAULT)
        if read:
            return read(piece)
        texts = [text for _, text in units(piece.data.replace(b"\r", b""), RECORDS)]
        return Parsed(len(texts), [], {}, {"read": len(texts), "texts": texts})

    return reader


def careful(kind: Format, data: bytes, size: int = 1 << 30, at: int = 0) -> Parsed:
    """The data in pieces of about that size, behind the first `at` bytes of a file; every piece accounts for itself."""
    reader, whole = CarefulReader(kind), Parsed(facts={"read": 0, "texts": []})
    for begin in range(0, len(data), size):
        piece = Piece(SOURCE, data[begin : begin + size], at + begin, begin + size >= len(data))
        parsed = reader(piece)
        assert len(parsed.rejects) <= parsed.rows
        whole = Parsed(
            whole.rows + parsed.rows,
            whole.rejects + parsed.rejects,
            {},
            {key: whole.facts[key] + parsed.facts.get(key, type(value)()) for key, value in whole.facts.items()},
        )
    return whole


MARKED = Format(
    "marked", lambda head, name: True, failing_on_marks, RECORDS, splittable=True, excerpt=lambda unit: "start"
)


@pytest.mark.parametrize(
    "bad", [{0}, {499}, {999}, {0, 1, 500, 998, 999}, set(range(100, 190)), set(range(0, 1000, 9)), set()]
)
def test_a_fault_costs_the_records_on_which_the_reader_fails_and_no_other(bad: set[int]) -> None:
    records = [b"%s%d\nline\n\n" % (MARK if number in bad else b"good", number) for number in range(1000)]
    places = [sum(map(len, records[:number])) + 5000 for number in sorted(bad)]
    parsed = careful(MARKED, b"".join(records), at=5000)
    assert (parsed.rows, parsed.facts["read"]) == (1000, 1000 - len(bad))
    assert parsed.facts["texts"] == [one.strip() for number, one in enumerate(records) if number not in bad]
    assert [reject.offset for reject in parsed.rejects] == places
    assert {(reject.reason, reject.excerpt) for reject in parsed.rejects} <= {
        ("this record could not be read (KeyError): please report it", "start")
    }


def test_one_bad_record_among_many_costs_little() -> None:
    read: list[int] = []

    def counting(piece: Piece) -> Parsed:
        read.append(len(piece.data))
        return failing_on_marks()(piece)

    data = b"good\n\n" * 50_000 + MARK + b"\n\n" + b"good\n\n" * 50_000
    parsed = careful(replace(MARKED, reader=lambda: counting), data)
    assert (parsed.rows, len(parsed.rejects)) == (100_001, 1)
    assert len(read) < 50
    assert sum(read) < 4 * len(data)


@pytest.mark.parametrize("share", [1, 2, 3])
def test_a_fault_that_meets_most_records_is_not_looked_for_in_each_of_them_but_each_is_counted(share: int) -> None:
    calls: list[int] = []

    def counting(piece: Piece) -> Parsed:
        calls.append(1)
        return failing_on_marks()(piece)

    records = [b"\r\n%s%d\r\n\r\n" % (b"good" if number % share else MARK, number) for number in range(20_000)]
    data = b"".join([b"good\n\n", *records, b"fine\n\n" * 60_000])
    parsed = careful(replace(MARKED, reader=lambda: counting), data)
    assert len(calls) < 3000
    assert parsed.rows == 80_001 == parsed.facts["read"] + len(parsed.rejects)
    assert parsed.facts["texts"].count(b"good") == 1
    assert parsed.facts["texts"].count(b"fine") > 50_000
    offsets, bad = [reject.offset for reject in parsed.rejects], [found.start() for found in re.finditer(MARK, data)]
    assert offsets == sorted(set(offsets))
    assert set(bad) <= set(offsets)
    assert set(offsets) <= {found.start() for found in re.finditer(rb"\w+", data)}
    assert offsets[:100] == bad[:100]
    assert {reject.reason for reject in parsed.rejects} == {
        "this record could not be read (KeyError): please report it",
        "left out among many that could not be read (KeyError): please report it",
    }


@given(st.lists(st.sampled_from([b"a", b"\n", b"\n\n", b"\r\n", MARK, b" d\n"]), max_size=40).map(b"".join))
@settings(max_examples=300, deadline=None)
def test_whatever_the_reader_fails_on_every_unit_is_read_or_rejected_once(data: bytes) -> None:
    plain = data.replace(b"\r", b"")
    whole = careful(MARKED, plain)
    assert sorted([*whole.facts["texts"], *(text for _, text in units(plain, RECORDS) if MARK in text)]) == sorted(
        text for _, text in units(plain, RECORDS)
    )
    assert [reject.offset for reject in whole.rejects] == [at for at, text in units(plain, RECORDS) if MARK in text]

    def lines(piece: Piece) -> Parsed:
        return Parsed(piece.data.count(b"\n") + (not piece.data.endswith(b"\n")), facts={"read": len(piece.data)})

    by_line = careful(replace(MARKED, unit=LINES, reader=lambda: failing_on_marks(lines)), data)
    bad = [line for line in data.split(b"\n") if MARK in line]
    assert by_line.rows == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert len(by_line.rejects) == len(bad)


def test_a_document_on_which_the_reader_fails_is_one_reject() -> None:
    parsed = careful(replace(MARKED, unit=WHOLE, splittable=False), b"{}\n\n" + MARK + b"\n\n{}")
    assert parsed.rows == 1
    assert parsed.rejects == [Reject(0, "this document could not be read (KeyError): please report it", "start")]


def test_what_makes_the_reader_fail_may_make_the_excerpt_fail_too() -> None:
    def excerpt(unit: bytes) -> str:
        raise ValueError(FAULT)

    (reject,) = careful(replace(MARKED, excerpt=excerpt), b"good\n\n" + MARK).rejects
    assert (reject.offset, reject.excerpt) == (6, "")


def test_a_format_that_does_not_know_its_secrets_shows_nothing() -> None:
    (reject,) = careful(Format("new", MARKED.sniff, failing_on_marks), b"password: x" + MARK).rejects
    assert reject.excerpt == ""
    shown = {kind.key for system in systems() for kind in system.formats if kind.excerpt(b"anything here") != ""}
    assert "ds389.audit-log" not in shown  # it may hold passwords in clear, in lines that do not name them
    assert "ds389.changelog-ldif" in shown


def test_a_fault_in_the_changelog_reader_costs_one_record_and_tells_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Faulty(changelog_fast._Buffer):
        def __init__(self, data: bytes) -> None:
            super().__init__(data)
            if MARK in data:
                raise IndexError(FAULT)

    monkeypatch.setattr(changelog_fast, "_Buffer", Faulty)
    records = [RECORD.replace(b"cn=x", b"cn=%d" % number) for number in range(500)]
    records[321] = RECORD.replace(b"cn=x", b"userPassword=hunter2," + MARK)
    path = tmp_path / "s1.changelog.ldif"
    path.write_bytes(b"".join(records))
    seen = inspect_file(path)
    assert (seen["rows"], seen["accepted"], seen["rejected"]) == (500, 499, 1)
    reason = "this record could not be read (IndexError): please report it"
    assert seen["rejects"] == [{"offset": sum(map(len, records[:321])), "reason": reason}]
    parsed = CarefulReader(CHANGELOG_LDIF)(Piece(SOURCE, path.read_bytes(), 0, True))
    assert parsed.tables["changes"]["target"].to_pylist() == [f"cn={number}" for number in range(500) if number != 321]
    (reject,) = parsed.rejects
    assert "csn: 6b005c14001600030000" in reject.excerpt
    assert FAULT not in repr((seen, parsed))
    path.write_bytes(b"".join(records[:321] + records[322:]))
    assert inspect_file(path)["detail"] == seen["detail"]
