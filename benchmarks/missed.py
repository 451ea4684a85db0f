"""Which changes did each server miss? Beside DuckDB, Polars and pandas on the same Parquet: `python -m benchmarks.missed`.

Four servers hold the changes of four origins. First each of them lacks some at random places, then one of them lacks a
hundred thousand in a row. Measured in turn, because the machine's speed drifts, each in a process of its own, of which the
highest memory is told; the first of its answers is not counted. Every one must give exactly the planted losses.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ingest import peak_memory
from benchmarks.mesh_data import PART, SERVERS, made, positions
from workbench import Case
from workbench.engine.digests import digest
from workbench.engine.known import Known, Source, Span
from workbench.systems.ds389 import SYSTEM

ROOT = Path(__file__).parent.parent
SCATTERED, OUTAGE = "scattered", "outage"
LOST, IN_A_ROW = 60, 100_000
DUCKDB = "DuckDB, group by"
Found = set[tuple[str, int, int]]
"""(server, hi, lo)"""


def lost(kind: str, changes: int) -> dict[int, np.ndarray]:
    """Which changes each server lacks: not the first and the last ones, because a log says nothing of what lies outside."""
    if kind == OUTAGE:
        begin = changes // 2
        return {2: np.arange(begin, begin + min(IN_A_ROW, changes // 4))}
    inside = np.arange(8, changes - 8)
    return {n: np.sort(np.random.default_rng(n).choice(inside, LOST, replace=False)) for n in range(1, SERVERS + 1)}


def _known(case: Case) -> tuple[Known, dict[tuple[int, str], Span]]:
    """The logs, and what each of them shows of each origin."""
    names = sorted({origin for one in case.inputs for origin in one.facts["by_origin"]})
    numbers = {name: number for number, name in enumerate(names)}
    spans = {}
    for number, one in enumerate(case.inputs):
        for origin, shown in one.facts["by_origin"].items():
            first, last = SYSTEM.halves(shown["min"]), SYSTEM.halves(shown["max"])
            spans[number, origin] = Span((first[0], first[1] - 1), last)
    return Known(SYSTEM, [Source(case.log(one), numbers) for one in case.inputs], names), spans


def _named(case: Case, found: dict[tuple[int, str], Any]) -> Found:
    return {
        (case.inputs[number].server, hi, lo)
        for (number, _), some in found.items()
        for hi, lo in zip(some.hi.tolist(), some.lo.tolist(), strict=True)
    }


def by_digests(case: Case) -> Callable[[], Found]:
    """The workbench; the digests are read anew each time."""

    def ask() -> Found:
        known, spans = _known(case)
        return _named(case, {asked: known.lacking(*asked, span) for asked, span in spans.items()})

    return ask


def by_spark(case: Case) -> Callable[[], Found]:
    """The workbench, every position compared by Spark; the session is there already."""
    from workbench.engine.lacking import Question, lacking
    from workbench.engine.session import spark_session

    spark = spark_session("local[*]")

    def ask() -> Found:
        known, spans = _known(case)
        logs = [source.log for source in known.sources if isinstance(source, Source)]
        return _named(case, lacking(spark, [Question(logs, known.names, spans)])[0])

    return ask


def _paths(case: Case) -> dict[str, list[str]]:
    return {
        one.server: [
            str(case.evidence / "positions" / part["name"]) for part in one.parts if part["table"] == "positions"
        ]
        for one in case.inputs
    }


def _missing_bits(rows: Any) -> Found:
    """(hi, lo, bits of the servers that hold it) as what each of the others lacks."""
    return {(f"s{n + 1}", hi, lo) for hi, lo, held in rows for n in range(SERVERS) if not held >> n & 1}


def by_duckdb(case: Case) -> Callable[[], Found]:
    """One group by position: who holds it, as bits."""
    import duckdb

    of = " union all ".join(
        f"select hi, lo, {1 << n} as held from read_parquet({paths!r})" for n, paths in enumerate(_paths(case).values())
    )
    query = (
        f"select hi, lo, bit_or(held) as held from ({of}) group by hi, lo having bit_or(held) <> {(1 << SERVERS) - 1}"
    )
    return lambda: _missing_bits(duckdb.connect().execute(query).fetchall())


def by_duckdb_joins(case: Case) -> Callable[[], Found]:
    """An anti join for each two servers."""
    import duckdb

    paths = _paths(case)
    of = " union ".join(
        f"select '{lacks}', hi, lo from (select hi, lo from read_parquet({paths[has]!r})) h "
        f"anti join (select hi, lo from read_parquet({paths[lacks]!r})) l using (hi, lo)"
        for has, lacks in permutations(paths, 2)
    )
    return lambda: set(duckdb.connect().execute(of).fetchall())


def by_polars(case: Case) -> Callable[[], Found]:
    """One group by position: how many servers hold it, and which."""
    import polars as pl

    def ask() -> Found:
        frames = [
            pl.scan_parquet(paths).select("hi", "lo", pl.lit(1 << n, pl.UInt8).alias("held"))
            for n, paths in enumerate(_paths(case).values())
        ]
        whole = pl.concat(frames).group_by("hi", "lo").agg(pl.col("held").bitwise_or())
        return _missing_bits(whole.filter(pl.col("held") != (1 << SERVERS) - 1).collect(engine="streaming").rows())

    return ask


def by_polars_joins(case: Case) -> Callable[[], Found]:
    """An anti join for each two servers."""
    import polars as pl

    def ask() -> Found:
        frames = {server: pl.scan_parquet(paths).select("hi", "lo") for server, paths in _paths(case).items()}
        found: Found = set()
        for has, lacks in permutations(frames, 2):
            rows = frames[has].join(frames[lacks], on=["hi", "lo"], how="anti").collect(engine="streaming").rows()
            found |= {(lacks, hi, lo) for hi, lo in rows}
        return found

    return ask


def by_pandas(case: Case) -> Callable[[], Found]:
    """One group by position; hi and lo are read, nothing else."""
    import pandas as pd

    def ask() -> Found:
        frames = [
            pd.concat([pd.read_parquet(path, columns=["hi", "lo"]) for path in paths]).assign(held=1 << n)
            for n, paths in enumerate(_paths(case).values())
        ]
        held = pd.concat(frames, ignore_index=True).groupby(["hi", "lo"], sort=False)["held"].sum()
        held = held[held != (1 << SERVERS) - 1]
        return _missing_bits((hi, lo, bits) for (hi, lo), bits in held.items())

    return ask


METHODS: dict[str, tuple[str, Callable[[Case], Callable[[], Found]]]] = {
    "workbench, by digests": ("workbench", by_digests),
    "workbench, every position by Spark": ("workbench", by_spark),
    DUCKDB: ("duckdb", by_duckdb),
    "DuckDB, anti joins": ("duckdb", by_duckdb_joins),
    "Polars, group by": ("polars", by_polars),
    "Polars, anti joins": ("polars", by_polars_joins),
    "pandas, group by": ("pandas", by_pandas),
}
SLOW = {"DuckDB, anti joins", "Polars, anti joins", "pandas, group by"}
"""Asked once: minutes, and gigabytes."""


def _case(data: Path, kind: str, changes: int) -> Case:
    return made(data / f"{kind}-{changes}", changes, lost(kind, changes))


def answer(name: str, kind: str, changes: int, data: Path) -> None:
    """One method in this process: seconds of the second answer, highest memory; nothing if the answer is wrong."""
    case = _case(data, kind, changes)
    _, hi, lo = positions(changes)
    planted = {
        (f"s{n}", int(hi[at]), int(lo[at])) for n, numbers in lost(kind, changes).items() for at in numbers.tolist()
    }
    del hi, lo
    with peak_memory() as memory:
        ask = METHODS[name][1](case)
        seconds = []
        for _ in range(1 if name in SLOW else 3):
            began = time.perf_counter()
            found = ask()
            seconds.append(time.perf_counter() - began)
            if found != planted:
                raise SystemExit(f"{name} finds {len(found)} of {len(planted)}")
    print(json.dumps({"seconds": min(seconds), **memory, "found": len(planted)}))


def _asked(options: argparse.Namespace, name: str, kind: str, changes: int) -> dict[str, Any] | None:
    here = [sys.executable, "-m", "benchmarks.missed", "--answer", name, "--kind", kind, "--changes", str(changes)]
    run = subprocess.run([*here, "--data", str(options.data)], capture_output=True, text=True, cwd=ROOT, check=False)
    if run.returncode:
        why = run.stderr.strip().splitlines()
        print(f"{name}: not measured: {why[-1][:120] if why else f'ended by {run.returncode}'}")
        return None
    told: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return told


def digest_share(changes: int) -> float:
    """Seconds to make the digests of so many positions."""
    rid, hi, lo = positions(changes)
    import pyarrow as pa

    names = pa.array([str(one) for one in range(1, SERVERS + 1)])
    origin = pa.DictionaryArray.from_arrays(pa.array((rid - 1).astype(np.int32)), names)
    began = time.perf_counter()
    for begin in range(0, changes, PART):
        block = slice(begin, begin + PART)
        digest(origin[block], hi[block], lo[block], SYSTEM.bucket_shift)
    return time.perf_counter() - began


def _names(without: list[str]) -> Iterator[str]:
    for name, (package, _) in METHODS.items():
        if find_spec(package) and name not in without:
            yield name


def main() -> None:
    """Make the data, ask all in turn, print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--changes", type=int, nargs="+", default=[5_000_000, 25_000_000], help="of each server")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--kind", nargs="+", choices=[SCATTERED, OUTAGE], default=[SCATTERED, OUTAGE])
    options.add_argument("--without", nargs="*", default=[], choices=list(METHODS), help="methods to leave out")
    options.add_argument("--data", type=Path, default=ROOT / "bench-data", help="where the generated tables are kept")
    options.add_argument("--answer", choices=list(METHODS), help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.answer:
        answer(asked.answer, asked.kind[0], asked.changes[0], asked.data)
        return
    took = min(digest_share(2_000_000) for _ in range(3))
    print(f"digests of 2,000,000 positions: {took:.2f} s of one core")
    for changes in asked.changes:
        for kind in asked.kind:
            _case(asked.data, kind, changes)
            best: dict[str, dict[str, Any]] = {}
            for turn in range(asked.rounds):
                for name in _names(asked.without):
                    told = None if turn and name in SLOW else _asked(asked, name, kind, changes)
                    if told and (name not in best or told["seconds"] < best[name]["seconds"]):
                        best[name] = told
            if not best:
                continue
            count = next(iter(best.values()))["found"]
            print(f"\n{SERVERS} servers x {changes:,} changes, {kind}: each method found all {count:,} lost ones")
            print(f"{'':36}{'seconds':>9}{'MB':>8}{'+ Java':>8}   DuckDB / this")
            base = min((told["seconds"] for name, told in best.items() if name.startswith("DuckDB")), default=None)
            for name, told in best.items():
                ratio = f"{base / told['seconds']:12.1f}" if base else ""
                print(f"{name:36}{told['seconds']:9.3f}{told['python']:8,.0f}{told['java']:8,.0f}{ratio}", flush=True)


if __name__ == "__main__":
    main()
