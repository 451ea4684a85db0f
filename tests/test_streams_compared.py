"""Logs of a stream held against each other by the column: against the rule, whatever the cuts."""

from __future__ import annotations

import random
import resource
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_histories import Source as StreamSource
from test_segments import rows_of

from workbench.engine import assembling, stream_diff
from workbench.engine.assembling import assemble
from workbench.engine.partition_writer import write_part
from workbench.engine.spark_stream_diff import counted
from workbench.engine.stream_diff import compared
from workbench.engine.streams import StreamLog
from workbench.model import Source
from workbench.replication.stream.rules.segments import OUTCOMES
from workbench.replication.stream.rules.streams import ANYWHERE, difference
from workbench.tables import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOW_MANY = 60


def a_log(folder: Path, server: str, rows: list[dict[str, Any]], lost: list[int], parts: int) -> StreamLog:
    """A log whose rows of `transactions` lie in several parts."""
    folder.mkdir(exist_ok=True)
    columns = {name: kind for name, (kind, _) in COLUMNS["transactions"].items()}
    made = []
    for at in range(parts):
        mine = [row for number, row in enumerate(rows) if number * parts // max(len(rows), 1) == at]
        if mine:
            table = pa.table({name: pa.array([row.get(name) for row in mine], kind) for name, kind in columns.items()})
            made.append(write_part(folder, "transactions", table, Source(f"{server}.log", "now", server)))
    paths = [{**part, "path": str(folder / part["table"] / part["name"])} for part in made]
    return StreamLog(server, f"{server}.log", paths, tuple(lost))


def a_row(
    number: int, place: int, outcome: str, content: int | None, ended: bool | None, commit: int | None
) -> dict[str, Any]:
    about = {
        "offset": max(0, place - number % 4 * 9),
        "origin": "1",
        "position": f"{number:020d}:0000000001",
        "outcome": outcome,
        "content": content,
    }
    return about | {
        "ended": ended,
        "commit": commit,
        "last": place,
        "bytes": 10,
        "kept": number,
        "seen": number,
        "life": 0,
    }


def two_logs(folder: Path, seed: int, most: int = HOW_MANY) -> tuple[StreamLog, StreamLog]:
    chance = random.Random(seed)
    numbers = chance.sample(range(4 * most), chance.randrange(most // 2 if most > HOW_MANY else 1, most))
    by_commit, apart = chance.random() < 0.3, chance.random() < 0.15
    outcomes = ["committed"] * 6 + list(OUTCOMES)
    source, copy = [], []
    upto, begin = chance.randrange(len(numbers) + 1), chance.randrange(3)
    for place, number in enumerate(numbers):
        outcome = chance.choice(outcomes)
        source.append(a_row(number, place * 10, outcome, number, True, place + 1 if by_commit else None))
        if begin <= place < upto and chance.random() > 0.15:
            theirs = chance.choice(outcomes) if chance.random() < 0.2 else outcome
            content = -number - 1 if chance.random() < (0.9 if apart else 0.05) else number
            ended = chance.choice((True, False)) if theirs == "corrupt" else None if chance.random() < 0.1 else True
            copy.append(a_row(number, place * 7, theirs, content, ended, None))
        if begin <= place < upto and chance.random() < 0.05:
            copy.append(a_row(number + 10_000, place * 7 + 3, "committed", 5, True, None))
        if chance.random() < 0.05:
            source.append(
                a_row(chance.choice(numbers), place * 10 + 1, "committed", 77, True, place + 500 if by_commit else None)
            )
    lost = [chance.randrange(7 * upto + 1) for _ in range(chance.randrange(4))]
    lost = [ANYWHERE] if seed % 11 == 0 else lost
    lost_there = [chance.randrange(10 * most) for _ in range(chance.randrange(3))]
    return a_log(folder, "a", source, lost_there, chance.randrange(1, 4)), a_log(
        folder, "b", copy, lost, chance.randrange(1, 4)
    )


@pytest.mark.parametrize("at_once", [1, 7, 10**6])
def test_cuts_make_no_difference_and_the_rule_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(stream_diff, "AT_ONCE", at_once)
    kinds, unrelated = set(), 0
    for seed in range(40 if at_once == 1 else 120):
        folder = tmp_path / str(seed)
        folder.mkdir()
        source, copy = two_logs(folder, seed)
        third = two_logs(folder / "third", seed + 1)[0] if seed % 3 == 0 else None
        others = [third] if third else None if seed % 3 == 1 else []
        elsewhere = None if others is None else [one for log in others for one in log.entries("1")]
        by_rule = difference(source.entries("1"), copy.entries("1"), copy.lost, source.lost, elsewhere)
        found = compared(source, copy, "1", HOW_MANY * 2, others)
        assert found.difference == by_rule, seed
        unrelated += found.difference.unrelated
        for name, count in found.counts.items():
            assert count == len(getattr(by_rule, name)), (seed, name)
            kinds |= {name} if count else set()
        behind = [one.position for one in by_rule.behind]
        assert (found.first, found.last) == ((behind[0], behind[-1]) if behind else (None, None))
        assert (found.bytes, found.rows) == (10 * len(behind), sum(int(position[:20]) for position in behind))
    assert at_once == 1 or unrelated
    assert at_once == 1 or kinds == {"inside", "behind", "unknown", "undecided", "errant", "conflicts", "alone"}


def test_lists_are_cut_and_counts_are_not(tmp_path: Path) -> None:
    source = a_log(tmp_path, "a", [a_row(n, n, "committed", n, True, None) for n in range(50)], [], 3)
    copy = a_log(tmp_path, "b", [a_row(0, 0, "committed", 0, True, None)], [], 1)
    found = compared(source, copy, "1", 3)
    assert ([int(one.position[:20]) for one in found.difference.behind], found.counts["behind"]) == ([1, 2, 3], 49)
    assert (found.first, found.last, found.rows) == (f"{1:020d}:0000000001", f"{49:020d}:0000000001", sum(range(1, 50)))


def test_a_number_that_was_given_again_is_another_transaction(tmp_path: Path) -> None:
    def stream(*numbers: tuple[int, int]) -> list[dict[str, Any]]:
        return [a_row(number, at * 10, "committed", what, True, None) for at, (number, what) in enumerate(numbers)]

    first = ((1, 11), (2, 12), (3, 13))
    source = a_log(tmp_path, "a", stream(*first, (1, 21), (2, 22)), [], 2)
    for copied, inside, behind in (
        (first, [], ["1", "2"]),
        ((*first, (2, 22)), ["1"], []),
        (first[:2], [], ["3", "1", "2"]),
    ):
        copy = a_log(tmp_path / str(len(copied)), "b", stream(*copied), [], 1)
        found = compared(source, copy, "1", HOW_MANY)
        assert found.difference == difference(source.entries("1"), copy.entries("1"))
        lacks = found.difference.inside, found.difference.behind
        assert [[one.position[:20].lstrip("0") for one in of] for of in lacks] == [inside, behind]
        assert not found.difference.conflicts and not found.difference.unrelated


def test_a_start_does_not_hide_the_transaction_of_its_number(tmp_path: Path) -> None:
    rows = [a_row(5, 0, "committed", 5, True, None), a_row(5, 10, "event", None, True, None)]
    found = a_log(tmp_path, "a", rows, [], 1).rows_of("1", [rows[0]["position"]])
    assert [row["outcome"] for row in found.values()] == ["committed"]


def test_spark_says_the_same(tmp_path: Path, spark: SparkSession) -> None:
    said: Counter[str] = Counter()
    for seed in range(500, 503):
        folder = tmp_path / str(seed)
        folder.mkdir()
        source, copy = two_logs(folder, seed, 600)
        third = two_logs(folder / "third", seed + 100, 600)[0]
        for others in (None, [], [third]):
            found = compared(source, copy, "1", HOW_MANY, others)
            assert counted(spark, source, copy, "1", others) == found.said, (seed, others)
            said += found.said
    assert {"inside", "behind", "copy_lost_records", "undecided", "conflicts", "errant", "alone"} <= set(said)


def test_transactions_put_together_by_spark_are_the_same(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembling, "_AT_ONCE", 7)
    monkeypatch.setattr(assembling, "_HASHES", 50)
    for seed in range(2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        history = StreamSource(seed, numbered=seed % 2 == 0, savepoints=True)
        history.run(200)
        rows, where = rows_of(history), Source("a.log", "now", "a")
        offsets = rows["offset"].to_pylist()
        # A part never divides a record; a transaction may stand in several parts.
        borders = sorted({offsets.index(offsets[len(rows) * part // 5]) for part in range(1, 5)})
        cuts = zip([0, *borders], [*borders, len(rows)], strict=True)
        parts = [write_part(folder, "segments", rows.slice(begin, end - begin), where) for begin, end in cuts]
        alone = assemble(parts, folder, where, seed == 1)
        here = read_all(folder, alone["parts"])
        for most in (0, len(rows) - 1):  # what stands in several parts is brought together by Spark, or in this process
            monkeypatch.setattr(assembling, "HERE", most)
            there = assemble(parts, folder, where, seed == 1, spark)
            assert read_all(folder, there["parts"]) == here and there["by_origin"] == alone["by_origin"]
        monkeypatch.setattr(assembling, "HERE", len(rows))
        assert len({row["outcome"] for row in here}) > 2
        assert sum(one["count"] for one in alone["by_origin"].values()) == sum(
            row["outcome"] == "committed" for row in here
        )
        assert max(row["messages"] for row in here) > 1
        assert {each.name for each in folder.iterdir()} == {"segments", "transactions"}


@settings(deadline=None)
@given(st.lists(st.lists(st.one_of(st.integers(0, 5), st.integers(2**64 - 5, 2**64 - 1), st.integers(0, 2**64 - 1)))))
def test_hashes_in_several_files_are_found(each: list[list[int]]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(assembling, "_HASHES", 3)
        files = [Path(folder) / f"{number}.npy" for number in range(len(each))]
        for file, hashes in zip(files, each, strict=True):
            np.save(file, np.unique(np.array(hashes, np.uint64)))
        many = Counter(one for hashes in each for one in set(hashes))
        found = assembling._in_several(files)
    assert found.tolist() == sorted(one for one, count in many.items() if count > 1)
    asked = sorted(many)
    assert assembling._within(np.array(asked, np.uint64), found).tolist() == [many[one] > 1 for one in asked]


def test_more_files_are_asked_than_a_process_may_hold_open(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.npy" for number in range(300)]
    for number, file in enumerate(files):
        np.save(file, np.array([7, 1000 + number], np.uint64))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 50, hard))
    try:
        assert assembling._in_several(files).tolist() == [7]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def read_all(folder: Path, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [row for part in parts for row in pq.read_table(folder / part["table"] / part["name"]).to_pylist()]
    return sorted(rows, key=lambda row: (row["offset"], row["position"]))
