"""Dumps of transaction logs: real ones, fast against careful, gaps against a slow reading, in any order and any pieces."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from comdb2_samples import (
    BOXES,
    CLASSIC,
    DIGEST,
    RECORD,
    SHAPES,
    TABS,
    Record,
    digest,
    full,
    printed,
    read,
    rows_in,
    sample,
)
from hypothesis import given
from hypothesis import strategies as st

from workbench import Case
from workbench.engine import partition_writer
from workbench.engine.partition_writer import read_shares, shares_of
from workbench.intake.files import inspect
from workbench.model import Parsed, Piece, Source, merge_facts
from workbench.systems.comdb2.formats import records, records_fast
from workbench.systems.comdb2.formats.gaps import Gaps

KIND = "comdb2.transaction-logs"
BOXED = f"{KIND}:tabular"
ONE = Source("file", "snapshot", "shopdb@src1")


def told(tmp_path: Path, data: bytes, name: str = "shopdb.src1.digest.tsv") -> dict[str, Any]:
    (tmp_path / name).write_bytes(data)
    (seen,) = inspect([tmp_path / name])
    return seen


# --- real dumps


@pytest.mark.parametrize(
    ("name", "first", "last", "count", "commits"),
    [
        ("shopdb.src1.digest.tsv", "{9:640045}", "{10:17560}", 3577, 18),
        ("shopdb_an.r6.digest.tsv", "{9:640045}", "{9:851561}", 1651, 5),
        ("shopdb.src1.full.tail300.tsv", "{9:983353}", "{9:1014305}", 300, 7),
        ("shopdb.src1.full.tail20.classic.txt", "{9:1012050}", "{9:1014305}", 20, 4),
        ("shopdb.src1.tail5.tabular.txt", "{9:1013705}", "{9:1014305}", 5, 1),
    ],
)
def test_a_real_dump_is_whole(name: str, first: str, last: str, count: int, commits: int, tmp_path: Path) -> None:
    seen = told(tmp_path, sample(name), name)
    assert (seen["format"], seen["rows"], seen["rejected"]) == (KIND, count, 0)
    ends = {"first": first, "last": last, "records": count, "commits": commits}
    assert seen["detail"] == {**ends, "gaps": [], "duplicates": 0, "overlaps": [], "sentinels": 0}


def made_of(name: str) -> dict[tuple[int, int], dict[str, Any]]:
    kind = BOXED if "tabular" in name else KIND
    rows = rows_in(read(kind, sample(name)), "records")
    return {(row["hi"], row["lo"]): {key: row[key] for key in row if key != "offset"} for row in rows}


def test_payloads_and_their_digests_make_the_same_rows() -> None:
    whole = made_of("shopdb.src1.digest.tsv")
    for name in ("full.tail300.tsv", "full.tail20.classic.txt", "tail5.tabular.txt"):
        for lsn, row in made_of(f"shopdb.src1.{name}").items():
            # Where a number comes from that the digest has and the payload form has not plays no part in a row.
            assert row == whole[lsn]


def test_the_delayed_node_has_the_beginning_of_the_same_log() -> None:
    source, delayed = made_of("shopdb.src1.digest.tsv"), made_of("shopdb_an.r6.digest.tsv")
    assert delayed == {lsn: source[lsn] for lsn in sorted(source)[: len(delayed)]}


def test_no_payload_is_kept() -> None:
    data = sample("shopdb.src1.full.tail300.tsv")
    for damaged in (data.replace(b"\tx'", b"\tx"), data.replace(b"'\t", b"zz'\t"), data.replace(b"}\t", b"\t")):
        (parsed,) = read(KIND, damaged)
        assert len(parsed.rejects) == 300 and not parsed.tables
        for reject, line in zip(parsed.rejects, data.split(b"\n"), strict=False):
            payload = line.split(b"\t")[4][2:-1].decode()
            assert payload[:24] not in reject.excerpt and payload[24:48] not in reject.excerpt


# --- made-up logs


@st.composite
def logs(draw: st.DrawFn) -> list[Record]:
    """A log as a node writes it: each record begins where the last one ends, files begin at 28."""
    file, place, made = draw(st.integers(1, 99)), 28, []
    for _ in range(draw(st.integers(1, 30))):
        payload = draw(st.binary(min_size=0, max_size=20))
        made.append((file, place, draw(st.sampled_from([2151, 12151, 3041, 2011, 151, 51])), payload))
        place += len(payload) + 12
        if draw(st.integers(0, 9)) == 0:
            file, place = file + 1, 28
    return made


def slow_gaps(present: list[Record]) -> list[tuple[str, str]]:
    """Record by record: what follows must begin where this one ends, or a new file at its beginning."""
    found = []
    ordered = sorted({(file, place): (file, place, len(payload)) for file, place, _, payload in present}.values())
    for (file, place, length), (file_2, place_2, _) in pairwise(ordered):
        follows = (file_2, place_2) in [(file, place + length + 12), (file + 1, 28)]
        if not follows:
            found.append((f"{{{file}:{place}}}", f"{{{file_2}:{place_2}}}"))
    return found


@given(logs(), st.data())
def test_gaps_in_any_order_and_any_pieces(log: list[Record], data: st.DataObject) -> None:
    present = [record for record in log if data.draw(st.integers(0, 5))] or log[:1]
    again = data.draw(st.lists(st.sampled_from(present), max_size=5))
    rows = data.draw(st.permutations(present + again))
    shape, typed = data.draw(st.sampled_from(SHAPES))
    names, of = (DIGEST, digest) if data.draw(st.booleans()) else (RECORD, full)
    text = printed(names, [of(row) for row in rows], shape, typed)
    borders = [at + 1 for at, letter in enumerate(text) if letter == ord("\n")]
    cuts = [] if shape == BOXES else data.draw(st.lists(st.sampled_from(borders), max_size=4))
    pieces = read(BOXED if shape == BOXES else KIND, text, pieces=cuts)
    gaps = Gaps()
    for one in pieces:
        gaps.add(Piece(ONE, b"", 0, True), one)
    seen = gaps.detail()
    ordered = sorted((file, place) for file, place, *_ in present)
    assert [(gap["after"], gap["next_present"]) for gap in seen["gaps"]] == slow_gaps(rows)
    assert (seen["first"], seen["last"]) == tuple(f"{{{file}:{place}}}" for file, place in (ordered[0], ordered[-1]))
    assert (seen["records"], seen["duplicates"]) == (len(rows), len(again))
    assert seen["commits"] == sum(kind in (151, 1151, 2151, 3151) for _, _, kind, _ in rows)
    assert seen["overlaps"] == [] and sum(len(one.rejects) for one in pieces) == 0


def test_what_a_file_change_proves() -> None:
    def gaps(*places: tuple[int, int, int]) -> list[Any]:
        rows = [digest((file, place, 3041, b"x" * length)) for file, place, length in places]
        made = Gaps()
        made.add(Piece(ONE, b"", 0, True), read(KIND, printed(DIGEST, rows, TABS))[0])
        return made.detail()["gaps"]

    assert gaps((9, 28, 8), (9, 48, 8), (10, 28, 8)) == []
    assert gaps((9, 28, 8), (10, 48, 8)) == [{"after": "{9:28}", "next_present": "{10:48}"}]
    assert gaps((9, 28, 8), (11, 28, 8)) == [{"after": "{9:28}", "next_present": "{11:28}"}]
    assert gaps((9, 28, 8), (9, 68, 8)) == [{"after": "{9:28}", "next_present": "{9:68}"}]
    assert gaps((9, 999999999, 8), (10, 28, 8)) == []


def test_records_within_one_another_are_no_gap() -> None:
    made = Gaps()
    rows = [digest((9, 28, 3041, b"x" * 50)), digest((9, 40, 3041, b""))]
    made.add(Piece(ONE, b"", 0, True), read(KIND, printed(DIGEST, rows, TABS))[0])
    seen = made.detail()
    assert seen["gaps"] == [] and seen["overlaps"] == [{"after": "{9:28}", "next_present": "{9:40}"}]


@pytest.mark.parametrize("names", [RECORD, DIGEST])
@pytest.mark.parametrize("shape", [TABS, CLASSIC, BOXES])
def test_the_sentinel_is_an_answer_and_no_record(shape: str, names: list[str], tmp_path: Path) -> None:
    nothing = ["{-1:-1}", *[None] * (len(names) - 1)]
    seen = told(tmp_path, printed(names, [nothing], shape))
    assert (seen["format"], seen["rows"], seen["accepted"]) == (KIND, 1, 1)
    assert (seen["detail"]["records"], seen["detail"]["sentinels"], seen["detail"]["first"]) == (0, 1, None)


@pytest.mark.parametrize("shape", [TABS, CLASSIC])
def test_a_first_record_may_be_longer_than_what_tells_a_file(shape: str, tmp_path: Path) -> None:
    rows = [full((9, 28, 3041, b"x" * 100_000)), full((9, 100_040, 2151, b"y"))]
    seen = told(tmp_path, printed(RECORD, rows, shape))
    assert (seen["format"], seen["rows"], seen["rejected"]) == (KIND, 2, 0) and seen["detail"]["gaps"] == []


# --- fast against careful


def careful(data: bytes, offset: int = 0) -> Parsed:
    """The same reader without its fast way."""
    fast, records.read_fast = records.read_fast, lambda piece: None
    try:
        return records.RECORDS.reader()(Piece(ONE, data, offset, True))
    finally:
        records.read_fast = fast


def same(data: bytes, offset: int = 0) -> bool:
    """The fast way gives what the careful one does, or gives way; True if it was taken."""
    table = records_fast.read_fast(Piece(ONE, data, offset, True))
    if table is None:
        return False
    slow = careful(data, offset)
    assert slow.rejects == [] and slow.rows == len(table)
    assert table.to_pylist() == rows_in([slow], "records")
    assert table.schema.equals(slow.tables["records"].schema)
    assert records.RECORDS.reader()(Piece(ONE, data, offset, True)).facts == slow.facts
    return True


def test_real_dumps_are_read_fast() -> None:
    data = sample("shopdb.src1.digest.tsv")
    assert same(data, 1 << 40)
    assert same(data[:-1])
    assert not same(sample("shopdb.src1.full.tail300.tsv"))


PLAUSIBLE = [
    b"NULL",
    b"0",
    b"00",
    b"-1",
    b"{",
    b"}",
    b":",
    b"\t",
    b"\n",
    b"\r",
    b" ",
    b"9" * 19,
    b"9" * 20,
    b"a",
    b"N",
    b"x",
    b"",
]


@given(logs(), st.data())
def test_fast_is_careful_on_damaged_dumps(log: list[Record], data: st.DataObject) -> None:
    text = printed(DIGEST, [digest(record) for record in log], TABS)
    assert same(text)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(PLAUSIBLE)) + text[at + data.draw(st.integers(0, 3)) :]
    same(text)
    fields = [line.split(b"\t") for line in text.split(b"\n")]
    for row in fields:
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.sampled_from(PLAUSIBLE))
    same(b"\n".join(b"\t".join(row) for row in fields))


def test_a_chunk_of_the_fast_way_is_no_border(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_fast, "_CHUNK", 1000)
    assert same(sample("shopdb.src1.digest.tsv"))


def test_one_damaged_line_is_one_reject(tmp_path: Path) -> None:
    lines = sample("shopdb.src1.digest.tsv").split(b"\n")
    for number, bad in ((7, b"rubbish"), (90, lines[90][:30]), (200, lines[200].replace(b"{9:", b"{x:"))):
        lines[number] = bad
    data = b"\n".join(lines)
    seen = told(tmp_path, data)
    assert (seen["rows"], seen["rejected"], seen["detail"]["records"]) == (3577, 3, 3574)
    places = [sum(len(line) + 1 for line in lines[:number]) for number in (7, 90, 200)]
    assert [reject["offset"] for reject in seen["rejects"]] == places
    assert len(seen["detail"]["gaps"]) == 3


def test_a_dump_that_is_cut_anywhere_loses_its_last_record_at_most() -> None:
    data = sample("shopdb.src1.digest.tsv")[:20_000]
    for end in range(1, len(data), 61):
        (parsed,) = read(KIND, data[:end])
        whole = data[:end].count(b"\n")
        assert parsed.rows in (whole, whole + 1)
        assert len(rows_in([parsed], "records")) >= whole and len(parsed.rejects) <= 1


# --- the engine


def test_each_part_of_a_load_is_in_the_order_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = sample("shopdb.src1.digest.tsv").splitlines(keepends=True)
    random.Random(3).shuffle(lines)
    monkeypatch.setattr(partition_writer, "ROWS_PER_PART", 500)
    monkeypatch.setattr(partition_writer, "RANGE", 100_000)
    folder = tmp_path / "now"
    folder.mkdir()
    (folder / "shopdb.src1.digest.tsv").write_bytes(b"".join(lines))
    case = Case.create(tmp_path / "case")
    case.load([folder])
    stored = case.arrow("records").to_pylist()
    (truth,) = read(KIND, b"".join(lines))
    key = ("offset", "hi", "lo", "length", "kind", "generation", "at", "content", "transaction")
    assert Counter(tuple(row[name] for name in key) for row in stored) == Counter(
        tuple(row[name] for name in key) for row in rows_in([truth], "records")
    )
    (one,) = case.inputs
    assert one.facts == truth.facts and {row["server"] for row in stored} == {"shopdb@src1"}
    ends = [part for part in one.parts if part["table"] == "records"]
    assert len(ends) > 3 and all(tuple(part["first"]) <= tuple(part["last"]) for part in ends)
    staging = tmp_path / "staging"
    staging.mkdir()
    shares = shares_of(0, folder / "shopdb.src1.digest.tsv", ONE, KIND)
    assert len(shares) > 2
    results = list(read_shares(shares, staging))
    assert merge_facts(result["facts"] for result in results) == truth.facts


def test_spark_reads_what_one_process_reads(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_writer, "RANGE", 50_000)
    folder = tmp_path / "now"
    folder.mkdir()
    lines = sample("shopdb.src1.digest.tsv").splitlines(keepends=True)
    lines[50], lines[3000] = b"rubbish\n", lines[20]
    (folder / "shopdb.src1.digest.tsv").write_bytes(b"".join(lines))
    (folder / "shopdb_ro.r1.full.tsv").write_bytes(sample("shopdb.src1.full.tail300.tsv"))
    here, there = Case.create(tmp_path / "here"), Case.create(tmp_path / "there")
    here.load([folder])
    there.load([folder], spark)
    for table in ("records", "rejects", "coverage"):
        rows = [sorted(case.arrow(table).to_pylist(), key=repr) for case in (here, there)]
        assert rows[0] and rows[0] == rows[1]
    assert [one.facts for one in here.inputs] == [one.facts for one in there.inputs]
