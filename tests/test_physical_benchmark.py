"""The benchmark of physical logs, on small ones: it says what it measured, and what it did not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The benchmark, started in another folder than the project's."""
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    here = [sys.executable, "-m", "benchmarks.physical", "--rounds", "1", *words]
    return subprocess.run(here, cwd=folder, env=known, capture_output=True, text=True, check=False)


def test_each_method_finds_what_was_planted_and_the_data_lie_where_it_was_told(tmp_path: Path) -> None:
    done = run(tmp_path, "--records", "10000", "--data", "kept", "--without", "workbench, by Spark")
    assert done.returncode == 0, done.stderr
    assert "each of these found all" in done.stdout and "not measured" not in done.stdout
    assert "\nworkbench, one process" in done.stdout
    assert ("DuckDB's best" in done.stdout) != ("not installed, left out: DuckDB" in done.stdout)
    assert (tmp_path / "kept/physical-10000").is_dir()


def test_too_few_records_are_told(tmp_path: Path) -> None:
    done = run(tmp_path, "--records", "10")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("at least 10,000 records of each node, and one round")
