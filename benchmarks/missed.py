"""Which changes did each server miss? Beside DuckDB, Polars and pandas on the same Parquet: `python -m benchmarks.missed`.

Four servers hold the changes of four origins. First each of them lacks some at random places, then one of them lacks a
hundred thousand in a row. The others are asked for the positions alone; the workbench for these by digests, by a pass of
Spark over every position, and for its whole diagnosis, which reads what the changes did. Measured in turn, because the
machine's speed drifts, each in a process of its own, of which the highest memory is told; the first of its answers is not
counted. Every one must give exactly the planted losses.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.changelog_data import generate
from benchmarks.ingest import peak_memory
from benchmarks.mesh_data import SERVERS, SUFFIX, made, positions, up_to_date
from workbench import Case, model
from workbench.engine import partition_writer
from workbench.engine.change_fingerprints import likeness
from workbench.engine.digests import digest
from workbench.engine.position_index import PositionIndex, Source, Span
from workbench.systems.ds389 import SYSTEM

ROOT = Path(__file__).parent.parent
SCATTERED, OUTAGE = "scattered", "outage"
LOST, IN_A_ROW = 60, 100_000
DUCKDB = "DuckDB, group by"
WHOLE = "workbench, the whole diagnosis"
Found = set[tuple[str, int, int]]
"""(server, hi, lo)"""


def lost(kind: str, changes: int) -> dict[int, np.ndarray]:
    """Which changes each server lacks: not the first and the last ones, because a log says nothing of what lies outside."""
    if kind == OUTAGE:
        begin = changes // 2
        return {2: np.arange(begin, begin + min(IN_A_ROW, changes // 4))}
    inside = np.arange(8, changes - 8)
    return {n: np.sort(np.random.default_rng(n).choice(inside, LOST, replace=False)) for n in range(1, SERVERS + 1)}


def _known(case: Case) -> tuple[PositionIndex, dict[tuple[int, str], Span]]:
    """The logs, and what each of them shows of each origin."""
    names = sorted({origin for one in case.inputs for origin in one.facts["by_origin"]})
    numbers = {name: number for number, name in enumerate(names)}
    spans = {}
    for number, one in enumerate(case.inputs):
        for origin, shown in one.facts["by_origin"].items():
            first, last = SYSTEM.halves(shown["min"]), SYSTEM.halves(shown["max"])
            spans[number, origin] = Span((first[0], first[1] - 1), last)
    return PositionIndex(SYSTEM, [Source(case.log(one), numbers) for one in case.inputs], names), spans


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
    from workbench.engine.session import spark_session
    from workbench.engine.spark_missing import Question, lacking

    spark = spark_session("local[*]")

    def ask() -> Found:
        known, spans = _known(case)
        logs = [source.log for source in known.sources if isinstance(source, Source)]
        return _named(case, lacking(spark, [Question(logs, known.names, spans)])[0])

    return ask


def by_diagnosis(case: Case) -> Callable[[], Found]:
    """The workbench, all that `diagnose` does once the case is open: what each lost change did, twins, causes, findings."""
    from workbench.diagnosis.causes import name_causes
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.diagnosis.detectors import detected
    from workbench.diagnosis.verdicts import verdicts
    from workbench.replication.changelog.diagnosis.pair_matrix import pair_matrix
    from workbench.topology.topology import logs_of

    def ask() -> Found:
        shown = up_to_date(case)
        logs = logs_of(case, shown)
        pairs = pair_matrix(shown, logs)
        judged = verdicts(case, shown, logs, pairs, limit=IN_A_ROW)
        context = DetectorContext(case, shown, pairs, judged)
        name_causes(context)
        assert any(one.code == "MISSED_CHANGE" for one in detected(context))
        # Of a change that was made twice, by chance, it says that nobody can know whether it is missed.
        told = [(row["server"], row["position"]) for row in judged.missing]
        told += [(row["server"], row["from"]) for row in judged.unknown if row["why"] == "twin"]
        return {(server, *SYSTEM.halves(position)) for server, position in told}

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
    WHOLE: ("workbench", by_diagnosis),
    "workbench, every position by Spark": ("workbench", by_spark),
    DUCKDB: ("duckdb", by_duckdb),
    "DuckDB, anti joins": ("duckdb", by_duckdb_joins),
    "Polars, group by": ("polars", by_polars),
    "Polars, anti joins": ("polars", by_polars_joins),
    "pandas, group by": ("pandas", by_pandas),
}
SLOW = {"DuckDB, anti joins", "Polars, anti joins", "pandas, group by"}
"""Asked once: minutes, and gigabytes."""


def _case(data: Path, kind: str, changes: int, details: bool = False) -> Case:
    return made(data / f"{kind}-{changes}{'-details' * details}", changes, lost(kind, changes), details)


def answer(name: str, kind: str, changes: int, data: Path) -> None:
    """One method in this process: seconds of the second answer, highest memory; nothing if the answer is wrong."""
    case = _case(data, kind, changes, name == WHOLE)
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


def shares_of_a_load(folder: Path, records: int) -> dict[str, float]:
    """What a diagnosis by digests costs the load: which part of its work goes into digests, and into numbers of twins."""
    (path,) = generate(folder, records, 1) if not folder.exists() else sorted(folder.iterdir())
    evidence = folder.with_name(f"{folder.name}-evidence")
    spent: dict[str, float] = {}

    def timed(of: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def do(*arguments: Any) -> Any:
            began = time.process_time()
            result = work(*arguments)
            spent[of] = spent.get(of, 0) + time.process_time() - began
            return result

        return do

    with (
        patch.object(partition_writer, "digest", timed("digests", digest)),
        patch.object(partition_writer, "likeness", timed("twins", likeness)),
    ):
        evidence.mkdir(parents=True)
        try:
            began = time.process_time()
            shares = partition_writer.shares_of(
                0, path, model.Source(path.name, "now", "s1", SUFFIX), "ds389.changelog-ldif"
            )
            for _ in partition_writer.read_shares(shares, evidence):
                pass
            whole = time.process_time() - began
        finally:
            shutil.rmtree(evidence)
    return {of: seconds / whole for of, seconds in spent.items()}


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
    shares = shares_of_a_load(asked.data / "load", min(500_000, *asked.changes))
    print("of the work of a load: " + ", ".join(f"{of} {share:.1%}" for of, share in shares.items()))
    for changes in asked.changes:
        for kind in asked.kind:
            for details in (False, True):
                _case(asked.data, kind, changes, details)
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
