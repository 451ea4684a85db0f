"""Where do two physical logs lack records, and where do they differ? Beside DuckDB on the same Parquet: `make bench`, or
`python -m benchmarks.physical -h`.

Two nodes, whose dumps are loaded: the copy lacks records, singly and in a row, holds others in place of some, and is behind.
Asked are the gaps of both logs, and what one has and the other has not. The workbench tells more in the same pass (commits,
rows that repeat or contradict each other, what would be cut off); DuckDB is asked for no more than that, in three ways, of
which the last trusts that the rows lie in order and the workbench does not.

Measured in turn, because the machine's speed drifts, each in a process of its own, of which the highest memory is told; the
first of its answers is not counted. Every one must give exactly what was planted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.ingest import peak_memory
from benchmarks.physical_data import made
from workbench.replication.tier.rules.physical_log import FORM

ROOT = Path(__file__).parent.parent
MEASURED = 20_000_000
FEWEST = 10_000
"""Of fewer there is no room for what is planted."""
Parts = dict[str, list[dict[str, Any]]]
Found = dict[str, Any]


def _by_workbench(parts: Parts, spark: Any) -> Callable[[], Found]:
    from workbench.engine.physical import looked_at

    def ask() -> Found:
        found = looked_at(parts, [("reference", "copy")], spark=spark)
        gaps = [gap for log in found.logs.values() for gap in log.gaps.first]
        pair = found.pairs["reference", "copy"]
        assert not pair.only_copy.count and not pair.ahead.count
        return {
            "gaps": [[*gap.after, *gap.next] for gap in gaps],
            "differing": pair.differing.count,
            "only_reference": pair.only_reference.count,
            "behind": pair.behind.count,
        }

    return ask


def by_spark(parts: Parts) -> Callable[[], Found]:
    """The workbench; the session is there already."""
    from workbench.engine.session import spark_session

    spark = spark_session("local[*]", size="large")
    spark.range(10).collect()
    return _by_workbench(parts, spark)


def in_one_process(parts: Parts) -> Callable[[], Found]:
    """The workbench without Spark: one core."""
    return _by_workbench(parts, None)


_NEXT = f"lo + length + {FORM.head}"
_INSIDE = {
    "window": f"""
        select hi, lo, hi, next from
            (select hi, lo, length, lead(lo) over (partition by hi order by lo) as next from {{log}})
        where next <> {_NEXT}""",
    "joins": f"""
        with missing as (
            from (select hi, lo, {_NEXT} as next from {{log}}) l
            anti join (select hi, lo from {{log}}) f on l.hi = f.hi and l.next = f.lo)
        select m.hi, m.lo, m.hi, min(n.lo) from missing m join {{log}} n on n.hi = m.hi and n.lo > m.lo
        group by m.hi, m.lo""",
    "in order": f"""
        select hi, lo, hi, next from
            (select hi, lo, length, lead(hi) over () as file, lead(lo) over () as next from {{log}})
        where file = hi and next <> {_NEXT}""",
}
_BORDERS = f"""
    select hi, last, file, next from
        (select hi, max(lo) as last, lead(hi) over (order by hi) as file, lead(min(lo)) over (order by hi) as next
         from {{log}} group by hi)
    where file <> hi + 1 or next <> {FORM.begins}"""
_BESIDE = """
    with ends as (select max(hi * 4294967296 + lo) as last from {copy}),
    pairs as (
        select r.hi * 4294967296 + r.lo as place, c.lo is null as lacks,
               r.content <> c.content or r.length <> c.length or r.generation <> c.generation as unlike
        from {reference} r left join {copy} c on r.hi = c.hi and r.lo = c.lo)
    select count(*) filter (unlike), count(*) filter (lacks and place < last), count(*) filter (lacks and place > last),
           (select count(*) from {copy}) - count(*) filter (not lacks)
    from pairs, ends"""


def _by_duckdb(parts: Parts, how: str) -> Callable[[], Found]:
    import duckdb

    logs = {node: f"read_parquet({[part['path'] for part in of]!r})" for node, of in parts.items()}

    def ask() -> Found:
        with tempfile.TemporaryDirectory() as spill:
            database = duckdb.connect(config={"temp_directory": spill})
            gaps: list[list[int]] = []
            for log in logs.values():
                gaps += [list(row) for row in database.execute(_INSIDE[how].format(log=log)).fetchall()]
                gaps += [list(row) for row in database.execute(_BORDERS.format(log=log)).fetchall()]
            told = database.execute(_BESIDE.format(**logs)).fetchall()[0]
            assert not told[3], "the copy holds what the reference has not"
            database.close()
        return {"gaps": gaps, "differing": told[0], "only_reference": told[1], "behind": told[2]}

    return ask


def by_window(parts: Parts) -> Callable[[], Found]:
    """The next record of each by a window over each file."""
    return _by_duckdb(parts, "window")


def by_joins(parts: Parts) -> Callable[[], Found]:
    """Records behind which no other one begins."""
    return _by_duckdb(parts, "joins")


def trusting_the_order(parts: Parts) -> Callable[[], Found]:
    """The next row of each, as it lies in the files."""
    return _by_duckdb(parts, "in order")


METHODS: dict[str, tuple[str, Callable[[Parts], Callable[[], Found]]]] = {
    "workbench, by Spark": ("workbench", by_spark),
    "workbench, one process": ("workbench", in_one_process),
    "DuckDB, window, left join": ("duckdb", by_window),
    "DuckDB, anti join, left join": ("duckdb", by_joins),
    "DuckDB, rows in order, left join": ("duckdb", trusting_the_order),
}


def answer(name: str, data: Path, records: int) -> None:
    """One method in this process: seconds of the best answer but the first, highest memory; nothing if it is wrong."""
    told = made(data / f"physical-{records}", records)
    with peak_memory() as memory:
        ask = METHODS[name][1](told["parts"])
        seconds = []
        for _ in range(2 if records > MEASURED else 3):
            began = time.perf_counter()
            found = ask()
            seconds.append(time.perf_counter() - began)
            found["gaps"].sort()
            if found != told["found"]:
                raise SystemExit(f"{name} finds { ({key: value for key, value in found.items() if key != 'gaps'}) }")
    print(json.dumps({"seconds": min(seconds[1:]), **memory}))


def _asked(options: argparse.Namespace, name: str, records: int) -> dict[str, Any] | None:
    here = [sys.executable, "-m", "benchmarks.physical", "--answer", name, "--records", str(records)]
    run = subprocess.run([*here, "--data", str(options.data)], capture_output=True, text=True, cwd=ROOT, check=False)
    if run.returncode:
        why = run.stderr.strip().splitlines()
        print(f"{name}: not measured: {why[-1][:120] if why else f'ended by {run.returncode}'}")
        return None
    told: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return told


def main() -> None:
    """Make the data, ask all in turn, print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--records", type=int, nargs="+", default=[MEASURED], help="of each node")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--without", nargs="*", default=[], choices=list(METHODS), help="methods to leave out")
    options.add_argument("--data", type=Path, default=ROOT / "bench-data", help="where the generated tables are kept")
    options.add_argument("--answer", choices=list(METHODS), help=argparse.SUPPRESS)
    asked = options.parse_args()
    if min(asked.records) < FEWEST or asked.rounds < 1:
        options.error(f"at least {FEWEST:,} records of each node, and one round")
    if asked.answer:
        answer(asked.answer, asked.data, asked.records[0])
        return
    asked.data = asked.data.resolve()  # each method is asked from the project's folder
    names = [name for name in METHODS if name not in asked.without]
    if absent := [name for name in names if not find_spec(METHODS[name][0])]:
        print(f"not installed, left out: {'; '.join(absent)}")
        names = [name for name in names if name not in absent]
    for records in asked.records:
        told = made(asked.data / f"physical-{records}", records)
        size = sum(Path(part["path"]).stat().st_size for parts in told["parts"].values() for part in parts)
        found = told["found"]
        rounds: dict[str, list[dict[str, Any]]] = {}
        for _ in range(asked.rounds):
            for name in names:
                if one := _asked(asked, name, records):
                    rounds.setdefault(name, []).append(one)
        best = {name: min(all_, key=lambda one: one["seconds"]) for name, all_ in rounds.items()}
        base = min((one["seconds"] for name, one in best.items() if name.startswith("DuckDB")), default=None)
        print(
            f"\n2 nodes x {records:,} records, {size / 1e6:,.0f} MB of Parquet; best of {asked.rounds} rounds, in turn"
        )
        if not best:
            continue
        print(
            f"each of these found all {len(found['gaps'])} gaps, {found['differing']} records that differ, "
            f"{found['only_reference']:,} that the copy lacks and {found['behind']:,} that it has not yet"
        )
        print(f"{'':36}{'seconds':>9}{'records/s':>13}{'MB':>8}{'+ Java':>8}" + "   DuckDB's best / this" * bool(base))
        for name, one in best.items():
            ratio = f"{base / one['seconds']:12.1f}" if base else ""
            speed = 2 * records / one["seconds"]
            memory = f"{one['python']:,.0f}" if one["python"] else "?"  # over before it was looked at
            print(
                f"{name:36}{one['seconds']:9.2f}{speed:13,.0f}{memory:>8}{one['java']:8,.0f}{ratio}",
                flush=True,
            )


if __name__ == "__main__":
    main()
