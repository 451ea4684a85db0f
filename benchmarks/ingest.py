"""Loading changelog LDIF, beside what people use today, in one run: `make bench` or `python -m benchmarks.ingest -h`.

The rounds alternate between all contestants, because the machine's speed drifts; the best round of each counts and the
ratio to the workbench is what to quote. The workbench does more than the others: it hashes the inputs, sets malformed
records aside with their place, removes secrets, sorts the positions, builds digests and publishes a case.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.changelog_data import generate
from benchmarks.peers import PEERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent


@contextmanager
def peak_memory() -> Iterator[dict[str, float]]:
    """Highest memory of the Python processes of this tree, in MB: private pages, sampled ten times a second.

    The Java of Spark is counted apart: its size is what it was allowed, not what the work needed.
    """
    import psutil

    me, result, done = psutil.Process(), {"python": 0.0, "java": 0.0}, threading.Event()

    def sample() -> None:
        while not done.wait(0.1):
            now = {"python": 0.0, "java": 0.0}
            for process in [me, *me.children(recursive=True)]:
                try:
                    memory = process.memory_info()
                    kind = "java" if process.name() == "java" else "python"
                    now[kind] += (memory.rss - getattr(memory, "shared", 0)) / 1e6
                except psutil.Error:
                    continue
            for kind, size in now.items():
                result[kind] = max(result[kind], size)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield result
    finally:
        done.set()
        thread.join()


def workbench(folder: Path, spark: SparkSession) -> tuple[int, float]:
    """(records, seconds) of one load into a new case."""
    from workbench import Case

    with tempfile.TemporaryDirectory() as where:
        case = Case.create(Path(where) / "case")
        started = time.perf_counter()
        loaded = case.load([folder], spark)
        return loaded.rows, time.perf_counter() - started


def peer(name: str, folder: Path) -> tuple[int, float] | None:
    """(records, seconds) of a peer in a process of its own; None if it is not installed or failed."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", name, str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if run.returncode:
        print(f"{name}: not measured: {run.stderr.strip().splitlines()[-1][:120] if run.stderr.strip() else 'failed'}")
        return None
    answer = json.loads(run.stdout.splitlines()[-1])
    return answer["records"], answer["seconds"]


def one_file(folder: Path) -> Path:
    """The same records as a single file, in a folder of its own."""
    where = folder.with_name(folder.name + "-one")
    if not where.exists():
        where.mkdir()
        with open(where / "s1.changelog.ldif", "wb") as out:
            for path in sorted(folder.glob("*.ldif")):
                with open(path, "rb") as file:
                    shutil.copyfileobj(file, out, 1 << 24)
    return where


def main() -> None:
    """Generate the data, run all contestants in turn, print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--records", type=int, default=2_000_000)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--data", type=Path, default=ROOT / "bench-data", help="where the generated files are kept")
    options.add_argument("--alone", action="store_true", help="measure the workbench only")
    asked = options.parse_args()
    folder = asked.data / str(asked.records)
    if not folder.exists():
        print(f"generating {asked.records:,} records in {folder} ...")
        generate(folder, asked.records)
    single = one_file(folder)
    size = sum(path.stat().st_size for path in folder.glob("*.ldif"))
    print(
        f"{asked.records:,} records, {size / 1e6:,.0f} MB, {os.cpu_count()} cores; best of {asked.rounds} rounds, in turn"
    )

    from workbench import spark_session

    started = time.perf_counter()
    spark = spark_session(size="large")
    print(f"Spark session started in {time.perf_counter() - started:.1f} s (not counted below)")
    spark.range(10).collect()
    names = ["workbench, 4 files", "workbench, 1 file", *([] if asked.alone else PEERS)]
    best: dict[str, tuple[int, float]] = {}
    with peak_memory() as memory:
        workbench(folder, spark)  # warm
    for _ in range(asked.rounds):
        for name in list(names):
            if name.startswith("workbench"):
                answer: tuple[int, float] | None = workbench(single if "1 file" in name else folder, spark)
            else:
                answer = peer(name, folder)
            if answer and (name not in best or answer[1] < best[name][1]):
                best[name] = answer
            if answer is None:
                names.remove(name)
    base = best["workbench, 4 files"][1]
    print(f"\n{'':28}{'records':>12}{'seconds':>9}{'records/s':>12}{'MB/s':>7}  times slower than the workbench")
    for name, (records, seconds) in best.items():
        print(
            f"{name:28}{records:12,}{seconds:9.2f}{records / seconds:12,.0f}{size / 1e6 / seconds:7.0f}  {seconds / base:.2f}"
        )
    print(
        f"\npeak memory of the workbench: Python {memory['python']:,.0f} MB in all processes, Java {memory['java']:,.0f} MB"
    )
    spark.stop()


if __name__ == "__main__":
    main()
