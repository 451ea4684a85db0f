"""What logs lack of each other, by digests and by Spark from every position, against sets of positions."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from log_histories import Server, stored
from mesh_samples import case_of, changelog, claims, csn, elements, replica
from spark_application import Application

from workbench import Problem
from workbench.case.case import Case
from workbench.diagnosis.case_diagnosis import DIGESTS, POSITIONS, diagnose
from workbench.engine import spark_missing as exact
from workbench.engine.digests import digest
from workbench.engine.logs import StoredLog
from workbench.engine.partition_writer import write_part
from workbench.engine.position_index import HIGHEST, LOWEST, PositionIndex, Source, Span, UnloggedPositions
from workbench.engine.positions import of_keys
from workbench.engine.spark_missing import Question, lacking, told_otherwise
from workbench.model import Source as Whose
from workbench.systems.ds389 import SYSTEM

RIDS = (1, 2, 700)
NAMES = sorted(map(str, RIDS))
NUMBERS = {name: number for number, name in enumerate(NAMES)}


def _fleet(random: Random, number: int) -> list[Server]:
    """Servers that lack a few changes, a stretch of them, or whatever lies before or behind a time."""
    width = random.choice([3, 40, 3000])
    made = {f"{0x66000000 + random.randrange(width):08x}{random.randrange(3):04x}" for _ in range(random.randrange(90))}
    pool = sorted(f"{one}{random.choice(RIDS):04x}0000" for one in made)
    servers = []
    for place in range(random.choice([1, 2, 3, 4])):
        changes = [one for one in pool if random.random() < random.choice([0.5, 0.97, 1.0])]
        begin, end = sorted(random.choices(range(len(changes) + 1), k=2))
        changes = random.choice([changes, changes[begin:end], changes[:begin] + changes[end:]])
        servers.append(Server(f"f{number}-s{place}", "1", changes, [], {}))
    return servers


def _span(random: Random, pool: list[str]) -> Span:
    if not pool or random.random() < 0.4:
        return Span(LOWEST, HIGHEST)
    low, high = sorted(map(SYSTEM.halves, random.choices(pool, k=2)))
    return random.choice([Span(low, high), Span(LOWEST, high), Span(low, HIGHEST)])


def _sets(servers: list[Server], number: int, origin: str, span: Span, loose: list[str]) -> list[str]:
    """What others hold, by sets of positions."""
    theirs = {one for other, server in enumerate(servers) if other != number for one in server.changes} | set(loose)
    return sorted(
        one
        for one in theirs - set(servers[number].changes)
        if SYSTEM.origin_of(one) == origin and span.low < SYSTEM.halves(one) <= span.high
    )


def _check(spark: Any, folder: Path, seed: int, fleets: int, tasks: tuple[int | None, ...]) -> int:
    random, known, lost = Random(seed), [], 0
    for number in range(fleets):
        servers = _fleet(random, number)
        logs = [stored(server, folder, random.choice([1, 2, 4]), random) for server in servers]
        pool = sorted({one for server in servers for one in server.changes})
        loose = [f"{0x66000000 + random.randrange(40):08x}000900010000" for _ in range(random.choice([0, 0, 2]))]
        more = UnloggedPositions(of_keys(SYSTEM, loose, NUMBERS), NAMES, SYSTEM.bucket_shift)
        one = PositionIndex(SYSTEM, [*(Source(log, NUMBERS) for log in logs), more], NAMES)
        known.append(one)
        for at in range(len(servers)):
            for origin in NAMES:
                span = _span(random, pool)
                found = one.lacking(at, origin, span).keys(SYSTEM, NAMES)
                assert found == _sets(servers, at, origin, span, loose), (seed, number, at, origin, span)
                lost += len(found)
    for some in tasks:
        assert not list(told_otherwise(spark, known, some)), (seed, some)
    return lost


def test_digests_and_spark_find_what_sets_find_in_200_fleets(spark: Any, tmp_path: Path) -> None:
    assert _check(spark, tmp_path, 1, 200, (None, 1, 7)) > 1000, "the fleets are too tame"


@pytest.mark.parametrize("block", [1, 20])
def test_small_blocks_give_the_same(spark: Any, tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_BLOCK", block)
    assert _check(spark, tmp_path, 2 + block, 60, (3,)) > 300


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_of_5_000_fleets(spark: Any, tmp_path: Path, seed: int) -> None:
    _check(spark, tmp_path, seed, 500, (3,))


@pytest.mark.parametrize("seed", range(30))
def test_halving_finds_every_difference(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark, with blocks of a few positions."""
    random = Random(seed)
    monkeypatch.setattr(exact, "_LEFT", random.choice([1, 3, 10]))
    monkeypatch.setattr(exact, "_BLOCK", random.choice([1, 10, 1000]))
    monkeypatch.setattr(exact, "_PARTS_KEPT", 1)
    servers = _fleet(random, seed)
    logs = [stored(server, tmp_path, random.choice([1, 3]), random) for server in servers]
    spans = {(at, origin): Span(LOWEST, HIGHEST) for at in range(len(servers)) for origin in NAMES}
    assert _here(logs, spans) == {
        asked: rows for asked, span in spans.items() if (rows := _sets(servers, *asked, span, []))
    }


def _here(logs: list[StoredLog], spans: dict[tuple[int, str], Span]) -> dict[tuple[int, str], list[str]]:
    compared = exact._Compared(Question(logs, NAMES, spans))
    found: dict[tuple[int, str], list[str]] = {}
    for share in compared.shares(0):
        for batch in compared.rows(share):
            for row in batch.to_pylist():
                found.setdefault((row["log"], row["origin"]), []).append(
                    SYSTEM.order_key(row["origin"], row["hi"], row["lo"])
                )
    return {asked: sorted(rows) for asked, rows in found.items()}


def _log(folder: Path, rows: list[str], ends: list[tuple[int, int]] | None = None) -> StoredLog:
    """A log of one part that holds these rows in this order."""
    hi, lo = (np.array(half, np.int64) for half in zip(*map(SYSTEM.halves, rows), strict=True))
    origin = pa.array(map(SYSTEM.origin_of, rows)).dictionary_encode()
    whose = Whose("s", "now", "s")
    ends = ends or [SYSTEM.halves(min(rows)), SYSTEM.halves(max(rows))]
    part = write_part(folder, "positions", pa.table({"origin": origin, "hi": hi, "lo": lo}), whose, *ends)
    digests = write_part(folder, "digests", digest(origin, hi, lo, SYSTEM.bucket_shift), whose)
    path = str(folder / "positions" / part["name"])
    return StoredLog(SYSTEM, [{**part, "path": path}], [str(folder / "digests" / digests["name"])])


ALL = Span(LOWEST, HIGHEST)


def test_a_part_out_of_order_and_a_position_twice_change_nothing(spark: Any, tmp_path: Path) -> None:
    rows = [csn(second, 1 + second % 2) for second in range(50)]
    shuffled = Random(3).sample(rows, len(rows))
    twice = sorted([*rows[:20], *rows])
    logs = [_log(tmp_path, some) for some in (rows, shuffled, twice, [one for one in twice if one != rows[7]])]
    found = lacking(spark, [Question(logs, NAMES, {(at, o): ALL for at in range(4) for o in NAMES})], 2)[0]
    assert {asked: some.keys(SYSTEM, NAMES) for asked, some in found.items()} == {(3, "2"): [rows[7]]}


def test_a_position_where_nobody_looks_is_damage(spark: Any, tmp_path: Path) -> None:
    rows = [csn(second, 1) for second in range(9)]
    whole, outside = _log(tmp_path, rows), _log(tmp_path, rows, [SYSTEM.halves(rows[0]), SYSTEM.halves(rows[7])])
    stranger = _log(tmp_path, [*rows, csn(10, 9)])
    for other in (outside, stranger):
        with pytest.raises(Problem, match="damaged") as raised:
            lacking(spark, [Question([whole, other], NAMES, {(0, "1"): ALL})])
        assert "Traceback" not in str(raised.value)


def test_nothing_is_lacking_where_nothing_is_asked(spark: Any, tmp_path: Path) -> None:
    log = _log(tmp_path, [csn(1, 1)])
    assert lacking(spark, [Question([log], NAMES, {}), Question([], NAMES, {(0, "1"): Span(LOWEST, LOWEST)})]) == [
        {},
        {},
    ]


# --- a whole case


WHOLE = [csn(second, 1) for second in range(30)]


LOST = WHOLE[12]


def _case(tmp_path: Path, lost: str = LOST) -> Case:
    """Both servers claim the same, so no pair has anything to send; the log of s2 lacks one change."""
    ruv = elements(claims(r1=(0, 29)))
    files: dict[str, str | bytes] = {"s1.replica.ldif": replica(1, ruv), "s2.replica.ldif": replica(2, ruv)}
    records = changelog(WHOLE).split("\n\n")
    files |= {f"s{number}.changelog.ldif": "\n\n".join(records) for number in (1, 2)}
    files["s2.changelog.ldif"] = "\n\n".join(record for record in records if not lost or lost not in record)
    return case_of(tmp_path, files)


def test_verify_compares_every_position_and_says_so(spark: Any, tmp_path: Path) -> None:
    case = _case(tmp_path)
    by_digests, verified = diagnose(case), diagnose(case, spark=spark)
    assert [row["position"] for row in verified["missing"]] == [LOST]
    assert (by_digests.pop("run")["evidence"], verified.pop("run")["evidence"]) == (DIGESTS, POSITIONS)
    assert by_digests == verified


def _forge(case: Case, whose: str, **digest_of: int) -> None:
    """Other numbers in the digest of one server, in a part that is whole by its checksums."""
    (log,) = (one for one in case.inputs if one.file == whose)
    (path,) = (case.evidence / "digests" / part["name"] for part in log.parts if part["table"] == "digests")
    rows = pq.read_table(path).to_pylist()
    assert len(rows) == 1
    pq.write_table(pa.Table.from_pylist([{**rows[0], **digest_of}], pq.read_schema(path)), path)


def test_a_digest_that_hides_a_loss_is_found_out(spark: Any, tmp_path: Path) -> None:
    case = _case(tmp_path)
    (whole,) = (row for row in case.arrow("digests").to_pylist() if row["server"] == "s1")
    _forge(case, "s2.changelog.ldif", **{key: whole[key] for key in ("count", "mix", "xor_hi", "xor_lo")})
    assert diagnose(case)["missing"] == [], "the digests are believed: that is what makes them fast"
    with pytest.raises(Problem, match=r"disagree on what s2\.changelog\.ldif lacks of origin 1"):
        diagnose(case, spark=spark)


def test_a_digest_that_invents_a_loss_is_found_out(spark: Any, tmp_path: Path) -> None:
    case = _case(tmp_path, "")
    less = digest(pa.array(["1"] * 29).dictionary_encode(), *_halves([*WHOLE[:12], *WHOLE[13:]]), SYSTEM.bucket_shift)
    (row,) = less.to_pylist()
    _forge(case, "s2.changelog.ldif", **{key: row[key] for key in ("count", "mix", "xor_hi", "xor_lo")})
    assert [one["from"] for one in diagnose(case)["unknown"]] == [LOST]  # its own log holds what it seems to lack
    with pytest.raises(Problem, match=r"disagree on what s2\.changelog\.ldif lacks of origin 1"):
        diagnose(case, spark=spark)


def _halves(rows: list[str]) -> tuple[np.ndarray, np.ndarray]:
    hi, lo = (np.array(half, np.int64) for half in zip(*map(SYSTEM.halves, rows), strict=True))
    return hi, lo


@pytest.mark.cluster
def test_a_cluster_and_spark_connect_find_the_same(there: Application, tmp_path: Path) -> None:
    assert there.ask("missed", str(_case(tmp_path).folder)) == [POSITIONS, [LOST]]


@pytest.mark.slow
def test_the_benchmark_still_measures(elsewhere: Any, tmp_path: Path) -> None:
    arguments = ["missed", "--changes", "40000", "--rounds", "1", "--kind", "scattered", "--data", str(tmp_path)]
    done = elsewhere(f"import sys\nfrom benchmarks import missed\nsys.argv = {arguments!r}\nmissed.main()")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "not measured" not in done.stdout
    for told in ("of the work of a load: ", "all 240 lost ones", "by digests", "the whole diagnosis", "every position"):
        assert told in done.stdout
