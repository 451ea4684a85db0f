"""What would every server send to every other one? Beside one DuckDB query for the same counts: `python -m benchmarks.pairs`.

Four servers hold the changes of four origins and lag behind each other. Measured in turn, because the machine's speed
drifts: the first question (digests are read), the next one (a consumer has moved), the exact pass of Spark over every
position, and DuckDB over the same Parquet files. All must give the same counts.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.mesh_data import SERVERS, SUFFIX, made, positions
from workbench import Case
from workbench.engine.session import spark_session
from workbench.intake.inputs import Input
from workbench.replication.changelog.diagnosis.pair_matrix import counted_logs, pair_matrix
from workbench.rules.vectors import Span
from workbench.systems.ds389 import SYSTEM
from workbench.topology.topology import VECTOR, Replica, Topology, logs_of

ROOT = Path(__file__).parent.parent
DUCKDB = "DuckDB, one query"
LOST = 60
"""Changes that each log lacks, at random places."""


def _case(folder: Path, changes: int) -> Case:
    lost = {n: np.random.default_rng(n).choice(changes - 1, LOST, replace=False) for n in range(1, SERVERS + 1)}
    return made(folder, changes, lost)


def _topology(inputs: list[Input], changes: int, moved: int) -> Topology:
    """Each server is up to date with itself and lags behind the others; `moved` changes everybody's vector a little."""
    rid, hi, lo = positions(changes)
    replicas = []
    for number, one in enumerate(inputs, 1):
        vector = {}
        for origin in range(1, SERVERS + 1):
            lag = 0 if origin == number else changes // 1000 * ((number * origin) % 7 + 1) + moved
            mine = np.flatnonzero(rid[: changes - lag] == origin)
            ends = (mine[0], mine[-1])
            vector[str(origin)] = Span(*(SYSTEM.order_key("", int(hi[at]), int(lo[at])) for at in ends))
        about = {"vector": vector, "log": one, "evidence": (VECTOR,)}
        replicas.append(Replica(f"s{number}", SUFFIX, str(number), **about))
    return Topology(SYSTEM, "now", replicas, [])


def _by_duckdb(case: Case, shown: Topology, anchors: dict[tuple[str, str], str | None]) -> dict[Any, Any]:
    """The same counts by one query: each row meets the thresholds of its supplier and origin once."""
    import duckdb

    rows, consumers = [], {}
    for supplier in shown.replicas:
        consumers[supplier.server] = [one for one in shown.replicas if one is not supplier]
        for origin, span in supplier.vector.items():
            row: list[Any] = [supplier.log.file if supplier.log else "", origin, *SYSTEM.halves(span.max or "")]
            for consumer in consumers[supplier.server]:
                anchor = anchors[supplier.server, consumer.server]
                row += [*(SYSTEM.halves(anchor) if anchor else (1 << 62, 0))]
                row += [*SYSTEM.halves(consumer.vector[origin].max or "")]
            rows.append(row)
    names = ["file", "origin", "stop_hi", "stop_lo"]
    names += [f"{what}{n}_{half}" for n in range(SERVERS - 1) for what in ("anchor", "has") for half in ("hi", "lo")]
    query = duckdb.connect()
    query.register("thresholds", pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)}))

    def above(point: str) -> str:
        return f"(c.hi > t.{point}_hi or (c.hi = t.{point}_hi and c.lo > t.{point}_lo))"

    sums = []
    for n in range(SERVERS - 1):
        read, has, beyond = above(f"anchor{n}"), above(f"has{n}"), above("stop")
        sums += [
            f"count(*) filter ({read} and not {has}) as covered{n}",
            f"count(*) filter ({read} and {has} and not {beyond}) as sent{n}",
            f"count(*) filter ({read} and {has} and {beyond}) as beyond_local_max{n}",
        ]
    paths = [part["path"] for part in case.parts("positions")]
    found = query.sql(
        f"select c.file, c.origin, {', '.join(sums)} from read_parquet({paths!r}) c "
        "join thresholds t on c.file = t.file and c.origin = t.origin group by 1, 2"
    ).to_arrow_table()
    counts: dict[Any, dict[str, int]] = {}
    for row in found.to_pylist():
        supplier = row["file"].split(".", 1)[0]
        for n, consumer in enumerate(consumers[supplier]):
            pair = counts.setdefault((supplier, consumer.server), {})
            # The rules leave the consumer's own changes out under a name of their own.
            own = row["origin"] == consumer.origin and not anchors[supplier, f"{consumer.server} newer"]
            for outcome in ("covered", "sent", "beyond_local_max"):
                name = "consumer_rid" if own else outcome
                pair[name] = pair.get(name, 0) + row[f"{outcome}{n}"]
    return {pair: {name: count for name, count in sorted(found.items()) if count} for pair, found in counts.items()}


def _counts(matrix: list[dict[str, Any]]) -> dict[Any, Any]:
    return {(row["supplier"], row["consumer"]): row["counts"] for row in matrix}


def _anchors(shown: Topology, matrix: list[dict[str, Any]]) -> dict[Any, Any]:
    anchors: dict[Any, Any] = {(row["supplier"], row["consumer"]): row["anchor"] for row in matrix}
    for supplier in shown.replicas:
        for consumer in shown.replicas:
            own = consumer.origin or ""
            newer = (supplier.vector[own].max or "") > (consumer.vector[own].max or "")
            anchors[supplier.server, f"{consumer.server} newer"] = newer
    return anchors


def main() -> None:
    """Make the data, ask all in turn, print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--changes", type=int, nargs="+", default=[5_000_000, 25_000_000], help="of each server")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--data", type=Path, default=ROOT / "bench-data", help="where the generated tables are kept")
    asked = options.parse_args()
    spark = spark_session("local[*]")
    spark.range(1).count()
    print(f"{os.cpu_count()} cores; best of {asked.rounds} rounds, in turn; seconds")
    for changes in asked.changes:
        case = _case(asked.data / f"pairs-{changes}", changes)
        best: dict[str, float] = {}

        def timed(name: str, work: Callable[[], Any], best: dict[str, float] = best) -> Any:
            began = time.perf_counter()
            result = work()
            best[name] = min(best.get(name, 1e9), time.perf_counter() - began)
            return result

        shown = _topology(case.inputs, changes, 0)
        anchors = _anchors(shown, pair_matrix(shown, logs_of(case, shown)))
        for turn in range(asked.rounds):
            moved = _topology(case.inputs, changes, 4711 + turn)
            logs = logs_of(case, shown)
            matrix = timed("digests, first question", partial(pair_matrix, shown, logs))
            timed("digests, next question (vectors moved)", partial(pair_matrix, moved, logs))
            again = timed("digests, the same question again", partial(pair_matrix, shown, logs))
            exact = pair_matrix(shown, timed("Spark, every position", partial(counted_logs, spark, shown, logs)))
            assert again == matrix == exact and len(matrix) == SERVERS * (SERVERS - 1), "the counts differ"
            if find_spec("duckdb"):
                theirs = timed(DUCKDB, partial(_by_duckdb, case, shown, anchors))
                assert _counts(matrix) == theirs, "DuckDB counts otherwise"
        print(
            f"\n{SERVERS} servers x {changes:,} changes, {len(matrix)} pairs, {sum(map(_sum, matrix)):,} outcomes counted"
        )
        for name, seconds in best.items():
            beside = f"  DuckDB / this: {best[DUCKDB] / seconds:8.1f}" if DUCKDB in best else ""
            print(f"{name:40} {seconds:8.4f}{beside}")
    spark.stop()


def _sum(row: dict[str, Any]) -> int:
    return sum(row["counts"].values())


if __name__ == "__main__":
    main()
