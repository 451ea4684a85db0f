"""The pair matrix from digests and from a pass of Spark, against the exact replay of every pair of random histories."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from log_histories import RULE_SETS, Server, asked, history, planned, replayed, stored
from mesh_samples import case_of, pair_of_servers
from spark_application import Application

from workbench import Problem
from workbench.engine.logs import StoredLog, marks_of
from workbench.engine.pairs import exact_logs
from workbench.engine.positions import place
from workbench.replication.changelog.diagnosis.pair_matrix import pair_matrix
from workbench.rules.send_session import Bound, SortedLog
from workbench.systems.ds389 import SYSTEM
from workbench.topology.topology import logs_of, topology


def _check(spark: Any, folder: Path, seed: int, histories: int, partitions: tuple[int, ...]) -> Counter[str]:
    """Every pair of the histories under every rule set; what the replays said is counted.

    Spark counts a share of the suppliers with each number of partitions.
    """
    random = Random(seed)
    worlds = [history(random, number) for number in range(histories)]
    servers = {server.name: server for world in worlds for server in world}
    pairs = [(s, c) for world in worlds for s in world for c in world if s is not c]
    expected = {(s.name, c.name): replayed(s, c) for s, c in pairs}
    logs = {name: stored(server, folder, random.choice([1, 2, 4]), random) for name, server in servers.items()}
    askers: dict[str, list[Any]] = {}
    for supplier, consumer in pairs:
        askers.setdefault(supplier.name, []).extend(asked(supplier, consumer))
        from_digests = [planned(ask(logs[supplier.name])) for ask in asked(supplier, consumer)]
        assert from_digests == expected[supplier.name, consumer.name], (seed, supplier, consumer)
    order = random.sample(list(logs), len(logs))
    for turn, tasks in enumerate(partitions):
        mine = set(order[turn :: len(partitions)])
        exact = exact_logs(spark, {name: logs[name] for name in order if name in mine}, askers, tasks)
        for supplier, consumer in ((s, c) for s, c in pairs if s.name in mine):
            counted = [planned(ask(exact[supplier.name])) for ask in asked(supplier, consumer)]
            assert counted == expected[supplier.name, consumer.name], (seed, tasks, supplier, consumer)
    said = Counter(answer[0] for answers in expected.values() for answer in answers)
    for answers in expected.values():
        for answer in answers:
            said.update(answer[3])
    return said


def test_digests_and_spark_say_what_the_replay_says_of_500_histories(spark: Any, tmp_path: Path) -> None:
    said = _check(spark, tmp_path, 1, 500, (1, 2, 8))
    outcomes = {"sent", "sent_promoted", "covered", "beyond_local_max", "unknown_rid", "consumer_rid", "helper"}
    assert {*outcomes, "send", "nothing_to_send", "anchor_not_found"} <= said.keys(), "the histories are too tame"
    assert min(said.values()) >= 20, said


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_of_10_000_histories(spark: Any, tmp_path: Path, seed: int) -> None:
    _check(spark, tmp_path, seed, 1_000, (1, 3, 8))


@pytest.mark.parametrize("seed", range(20))
def test_a_stored_log_answers_like_one_in_memory(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr("workbench.engine.logs._PAGE", random.choice([1, 3, 512]))
    for server in history(random, seed):
        log, memory = stored(server, tmp_path, random.choice([1, 3]), random), _in_memory(server)
        everything = [*server.changes, *server.marks, "0" * 20, "f" * 20, "66000003000000010000"]
        assert sorted(log.origins()) == sorted(memory.origins())
        for position in everything:
            assert log.holds(position) == memory.holds(position)
            assert log.after(position) == memory.after(position)
            for low in (Bound(position, True), Bound(position, False)):
                read = memory.read(low, 10**6)
                assert list(log.records(low, None)) == read
                upto = random.choice(everything)
                assert list(log.records(low, upto)) == [record for record in read if record <= upto]
            for origin in ("1", "2", "3", "700", "9"):
                assert log.first_of(origin) == memory.first_of(origin)
                for included in (True, False):
                    low = Bound(position, included)
                    assert list(log.changes(origin, low)) == list(memory.changes(origin, low))
                    high = random.choice([*everything, None])
                    if high is None or high >= position:
                        assert log.tally(origin, low, high) == memory.tally(origin, low, high)
                high = random.choice(everything)
                between = [p for p in memory.changes(origin, Bound(position, False)) if p <= high]
                assert list(log.of_origin(origin, position, high)) == between


def _in_memory(server: Server) -> SortedLog:
    return SortedLog(server.changes, SYSTEM.origin_of, server.marks)


@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
def test_pages_follow_each_other_without_gap_or_repetition(tmp_path: Path, limit: int) -> None:
    random = Random(limit)
    for server in [one for number in range(20) for one in history(random, number)]:
        log = stored(server, tmp_path, 3, random)
        for start in (Bound("0" * 20, True), Bound(random.choice([*server.changes, "6" * 20]), random.random() < 0.5)):
            bound, read = start, list[str]()
            while True:
                page = log.page(bound, limit)
                keys = [f"{hi:012x}{lo:08x}" for hi, lo in zip(page.hi.tolist(), page.lo.tolist(), strict=True)]
                assert [SYSTEM.origin_of(key) for key in keys] == page.origin.to_pylist()
                read += keys
                if len(keys) < limit:
                    break
                bound = Bound(keys[-1], False)
            # A mark is no change, and is on no page.
            assert read == [p for p in _in_memory(server).read(start, 10**6) if p not in server.marks]


def test_a_counted_log_refuses_what_it_was_not_asked_before(spark: Any, tmp_path: Path) -> None:
    changes = [f"6600000{number}000000010000" for number in range(1, 9)]
    server = Server("s", "1", changes, [], {})
    log = stored(server, tmp_path, 1, Random(0))
    counted = exact_logs(spark, {"s": log}, {"s": [lambda log: log.holds(changes[3])]})["s"]
    assert counted.holds(changes[3])
    assert counted.tally("1", Bound(changes[3], False), None).changes == 4
    with pytest.raises(LookupError, match="nobody asked"):
        counted.tally("1", Bound(changes[5], True), None)


@pytest.mark.parametrize("table", ["positions", "digests"])
def test_damage_is_told_and_never_counted(spark: Any, tmp_path: Path, table: str) -> None:
    """A flipped bit in compressed numbers gives other numbers, unless checksums are kept and read."""
    random = Random(5)
    changes = [f"{0x66000000 + at // 3:08x}{at % 3:04x}{1 + at % 2:04x}0000" for at in range(3000)]
    log = stored(Server("s", "1", changes, [], {}), tmp_path, 1, random)

    def ask(log: Any) -> Any:
        return log.holds(changes[5]), log.after(changes[100]), log.tally("2", Bound(changes[700], False), changes[2000])

    whole = ask(log)
    path = Path(log.parts[0]["path"] if table == "positions" else log._digests[0])
    good = path.read_bytes()
    told = 0
    for _ in range(150):
        data = bytearray(good)
        for _ in range(random.choice([1, 1, 4])):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data if random.random() < 0.9 else data[: random.randrange(len(data))])
        try:
            assert ask(StoredLog(SYSTEM, log.parts, log._digests)) == whole
        except Problem as problem:
            assert "damaged" in str(problem)
            told += 1
    assert told > 50
    path.write_bytes(good[:-100])
    if table == "positions":
        with pytest.raises(Problem, match="damaged") as raised:
            exact_logs(spark, {"s": StoredLog(SYSTEM, log.parts, log._digests)}, {"s": [ask]})
        assert "Traceback" not in str(raised.value)


def test_a_part_that_is_gone_is_told(tmp_path: Path) -> None:
    changes = [f"6600000{number}000000010000" for number in range(1, 9)]
    log = stored(Server("s", "1", changes, [], {}), tmp_path, 2, Random(0))
    for parts in ([], log.parts[:1]):  # also a list that does not name it any more
        with pytest.raises(Problem, match="damaged or gone"):
            StoredLog(SYSTEM, parts, log._digests).tally("1", Bound("0" * 20, True), None)
    with pytest.raises(Problem, match="damaged or gone"):
        marks_of([str(tmp_path / "none.parquet")])


def test_positions_reach_to_the_last_number_of_64_bits() -> None:
    """Other systems than this one use all of both halves."""
    last = (1 << 63) - 1
    hi, lo = np.array([last - 1, last, last, last]), np.array([last, 0, last - 1, last])
    assert [place(hi, lo, pair) for pair in ((last, 0), (last, last), (last, last + 1), (last + 1, 0))] == [1, 3, 4, 4]
    assert place(hi, lo, (last - 1, last + 1)) == 1
    assert place(hi, lo, (last, last), "right") == 4


def test_nothing_is_counted_where_there_is_nothing(spark: Any) -> None:
    empty = StoredLog(SYSTEM, [], [])
    assert (empty.after("0" * 20), list(empty.origins()), empty.holds("0" * 20)) == (None, [], False)
    assert len(empty.page(Bound("0" * 20, True), 5).hi) == 0
    counted = exact_logs(spark, {"s": empty}, {"s": [lambda log: log.after("0" * 20)]})["s"]
    assert counted.after("0" * 20) is None


@pytest.mark.cluster
def test_a_cluster_and_spark_connect_count_the_same(there: Application, tmp_path: Path) -> None:
    case = case_of(tmp_path, pair_of_servers())  # not the demo, whose vectors are equal: nobody has anything to send
    shown = topology(case)
    here = pair_matrix(shown, logs_of(case, shown))
    assert there.ask("pairs", str(case.folder)) == json.loads(json.dumps(here))
    assert any(row["counts"] for row in here)


@pytest.mark.slow
def test_the_benchmark_still_measures(elsewhere: Any, tmp_path: Path) -> None:
    arguments = ["pairs", "--changes", "100000", "--rounds", "1", "--data", str(tmp_path)]
    done = elsewhere(f"import sys\nfrom benchmarks import pairs\nsys.argv = {arguments!r}\npairs.main()")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "12 pairs" in done.stdout and "Spark, every position" in done.stdout


def test_every_rule_set_is_in_the_histories() -> None:
    assert {rules.name for rules in RULE_SETS} == set(_supplying().rule_sets)


def _supplying() -> Any:
    assert SYSTEM.supplying
    return SYSTEM.supplying()
