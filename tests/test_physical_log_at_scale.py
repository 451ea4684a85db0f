"""Physical logs by the column, in this process and by Spark: as the rule tells, however the records lie in parts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_physical_log import a_copy, a_log, sizes_of

from workbench import Case
from workbench.engine import partition_writer as writing
from workbench.engine import physical
from workbench.engine.partition_writer import write_part
from workbench.engine.physical import checked_log, compared_logs, looked_at
from workbench.model import Problem, Source
from workbench.replication.tier.rules.physical_log import FORM, LIMIT, Record, checked, compared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = Path(__file__).parent / "samples" / "comdb2"


@contextmanager
def small_groups() -> Iterator[pytest.MonkeyPatch]:
    """Parts of many row groups."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(writing._ROWS_FOUND, "records", 3)
        yield patched


def written(folder: Path, dumps: list[list[Record]], chance: random.Random, most: int = 9) -> list[dict[str, Any]]:
    """The parts of some dumps of a log, in no order; each is cut somewhere and sorted, as a load writes it."""
    found = []
    for number, dump in enumerate(dumps):
        at = 0
        while at < len(dump):
            some = sorted(dump[at : at + chance.randrange(1, most)], key=lambda one: one[:2])
            at += len(some)
            rows = [
                {
                    "offset": 0,
                    "hi": one.file,
                    "lo": one.place,
                    "length": one.length,
                    "kind": one.kind,
                    "generation": one.generation,
                    "content": one.content,
                }
                for one in some
            ]
            source = Source(f"{number}.tsv", "now", "shop@a")
            part = write_part(folder, "records", rows, source, some[0][:2], some[-1][:2])
            found.append({**part, "path": str(folder / "records" / part["name"])})
    chance.shuffle(found)
    return found


def dumps_of(chance: random.Random, log: list[Record]) -> list[list[Record]]:
    """Dumps that hold the log together: one that begins with the newest record, one that repeats some, one in no order."""
    among = chance.randrange(len(log) + 1)
    dumps = [log[:among], log[among:][::-1], chance.sample(log, chance.randrange(min(len(log), 9) + 1))]
    return [dump for dump in dumps if dump]


def spoilt(chance: random.Random, log: list[Record]) -> list[Record]:
    """The log with records that are lost, that claim another length, or of which little is told."""
    found = []
    for one in log:
        what = chance.random()
        if what < 0.1:
            continue
        if what < 0.3:
            how: list[dict[str, Any]] = [
                {"length": None},
                {"length": chance.randrange(200)},
                {"length": -5},
                {"length": 1 << 40},
                {"generation": 9},
                {"content": None, "generation": None},
                {"kind": None},
                {"place": chance.randrange(FORM.begins)},
                {"place": (1 << 32) - 1},
            ]
            changed = one._replace(**chance.choice(how))
            found += [one, changed] if chance.random() < 0.3 else [changed]
        else:
            found.append(one)
    return found


@given(st.integers(0, 1 << 32))
def test_by_the_column_it_is_as_the_rule_tells(seed: int) -> None:
    chance = random.Random(seed)
    log = a_log(chance, files=chance.randrange(1, 5), number=chance.choice([1, 9, (1 << 32) - 4]))
    one = spoilt(chance, log) if chance.random() < 0.5 else log
    other = a_copy(chance, log)
    if chance.random() < 0.5:
        other = spoilt(chance, other)
    sizes = {file: size for file, size in sizes_of(log).items() if chance.random() < 0.5}
    dumps = {"a": dumps_of(chance, one), "b": dumps_of(chance, other)}
    with TemporaryDirectory() as where, small_groups() as patched:
        patched.setattr(physical, "AT_ONCE", chance.choice([1, 5, 20, 1000]))
        patched.setattr(physical._Asked, "shares", shares_of(chance.randrange(1, 6)))
        logs = {name: written(Path(where), some, chance) for name, some in dumps.items()}
        found = looked_at(logs, [("a", "b"), ("b", "a")], {"a": sizes})
    rows = {name: [row for dump in some for row in dump] for name, some in dumps.items()}
    assert found.logs == {"a": checked(rows["a"], sizes), "b": checked(rows["b"])}
    assert found.pairs["a", "b"] == compared(rows["a"], rows["b"])
    assert found.pairs["b", "a"] == compared(rows["b"], rows["a"])


def shares_of(count: int) -> Any:
    """What `shares` does, whatever is asked."""
    original = physical._Asked.shares
    return lambda asked, _: original(asked, count)


@given(st.integers(0, 1 << 32))
def test_repeated_rows_are_counted(seed: int) -> None:
    chance = random.Random(seed)
    log = spoilt(chance, a_log(chance)) or a_log(chance)
    dumps = dumps_of(chance, log)
    with TemporaryDirectory() as where, small_groups() as patched:
        patched.setattr(physical, "AT_ONCE", chance.choice([1, 7, 1000]))
        found = checked_log(written(Path(where), dumps, chance))
    assert found == checked([row for dump in dumps for row in dump])


def test_shares_hold_about_as_many_records_each_and_all_files() -> None:
    def part(low: int, high: int, rows: int) -> dict[str, Any]:
        return {"first": (low, 28), "last": (high, 28), "rows": rows}

    def shares(parts: list[dict[str, Any]], count: int) -> list[tuple[int, int]]:
        return physical._Asked({"a": parts}, (), {}, FORM, LIMIT).shares(count)

    assert shares([], 4) == []
    assert shares([part(7, 7, 10)], 4) == [(7, 8)]
    assert shares([part(1, 100, 1000), part(1, 100, 1000)], 4) == [(1, 26), (26, 51), (51, 76), (76, 101)]
    assert shares([part(number, number, 10) for number in range(1, 9)], 2) == [(1, 5), (5, 9)]
    assert shares([part(1, 1, 900), part(2, 101, 100)], 2)[0] == (1, 2)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Any], ...]]:
    """Two logs of some thousand records, with gaps, and what the rule says of them."""
    chance = random.Random(3)
    log = a_log(chance, files=60, most=80)
    one = [row for row in log if chance.random() < 0.99]
    other = a_copy(chance, one)
    folder = tmp_path_factory.mktemp("large")
    yield one, other, *(written(folder, dumps_of(chance, rows), chance, 400) for rows in (one, other))


def test_spark_says_the_same(
    large: tuple[list[Any], ...], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, parts_of_one, parts_of_other = large
    monkeypatch.setattr(physical, "HERE", 10)
    sizes = sizes_of(one[::2])
    found = looked_at({"a": parts_of_one, "b": parts_of_other}, [("a", "b")], {"a": sizes}, spark, limit=5)
    assert found == looked_at({"a": parts_of_one, "b": parts_of_other}, [("a", "b")], {"a": sizes}, limit=5)
    expected = checked(one, sizes, limit=5)
    assert (found.logs["a"].gaps, found.logs["a"].unproven) == (expected.gaps, expected.unproven)
    assert found.logs["a"].gaps.count > 5 == len(found.logs["a"].gaps.first)
    assert found.pairs["a", "b"] == compared(one, other, limit=5)
    assert compared_logs(parts_of_one, parts_of_other, spark) == compared(one, other)


def test_every_row_group_is_read_once(
    large: tuple[list[Any], ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = large[0][:300]
    with small_groups():
        parts = written(tmp_path, [one, one[::-1]], random.Random(1), 40)
    read: Counter[tuple[str, int]] = Counter()
    original = physical.SortedPart._read

    def counted(part: Any, groups: list[int]) -> Any:
        read.update((part.part["path"], group) for group in groups)
        return original(part, groups)

    monkeypatch.setattr(physical.SortedPart, "_read", counted)
    monkeypatch.setattr(physical, "AT_ONCE", 17)
    assert checked_log(parts) == checked(one + one)
    assert set(read.values()) == {1} and len(read) > 200


def test_a_damaged_part_is_told(
    large: tuple[list[Any], ...], spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = written(tmp_path, [large[0][:50]], random.Random(1))
    Path(parts[1]["path"]).write_bytes(Path(parts[1]["path"]).read_bytes()[:-9])
    with pytest.raises(Problem, match="damaged or gone"):
        checked_log(parts)
    monkeypatch.setattr(physical, "HERE", 10)
    with pytest.raises(Problem, match=r"could not check the logs: .*damaged or gone"):
        checked_log(parts, spark)


def test_logs_without_records_say_nothing(tmp_path: Path) -> None:
    log = a_log(random.Random(1))
    parts = written(tmp_path, [log], random.Random(1))
    assert checked_log([]) == checked([])
    assert compared_logs(parts, []) == compared(log, []) and compared_logs([], parts) == compared([], log)


def test_real_dumps_are_whole_and_one_is_a_prefix_of_the_other(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    (tmp_path / "now").mkdir()
    for path in SAMPLES.glob("*.digest.tsv.gz"):
        (tmp_path / "now" / path.name).write_bytes(path.read_bytes())
    case.load([tmp_path / "now"])
    logs = {one.server: case.parts("records", one) for one in case.inputs}
    source, delayed = "shopdb@src1", "shopdb_an@r6"
    found = looked_at(logs, [(source, delayed)], {source: {9: 1_046_072}})
    whole, part, both = found.logs[source], found.logs[delayed], found.pairs[source, delayed]
    assert (whole.rows, whole.records, whole.commits, whole.borders) == (3577, 3577, 18, 1)
    assert whole.sound and part.sound and (whole.duplicates, part.duplicates) == (0, 0)
    assert (whole.unproven.count, part.unproven.count) == (0, 0), "the copy has not come to the second file"
    assert (part.records, part.last) == (1651, (9, 851_561))
    assert (both.same, both.behind.count, both.prefix, both.parts) == (1651, 1926, True, None)
    assert checked_log(logs[source]).unproven.first == [(9, 1_045_964)], "nothing tells then where file 9 ends"
