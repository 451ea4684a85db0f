"""A healthy mesh that is written to all the time is healthy in each collection, on each version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT, need
from live_installed import BERKELEY, absent, current
from live_mesh import Mesh
from live_writers import writing

pytestmark = [pytest.mark.live, pytest.mark.slow]

ROLES = {"a": "supplier", "b": "supplier", "c": "supplier", "h": "hub", "r": "consumer"}
FEEDS = [(by, to) for by in "abc" for to in "abc" if by != to] + [("a", "h"), ("b", "h"), ("h", "r")]
RATE = 200
COLLECTIONS = 20


@pytest.mark.parametrize("version", ["2.3", "3.1"])
def test_nothing_is_missing_and_nothing_is_wrong(
    version: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    need(f"389 Directory Server and root (there is no {absent()})", not absent())
    at = BERKELEY if version == "2.3" else current()
    need("Debian 13's Directory Server in a folder of its own (.ci/current-ds389 builds it)", at)
    assert at is not None
    mesh = Mesh(tmp_path_factory.mktemp(f"w{version[0]}"), ROLES, FEEDS, at=at)
    try:
        mesh.build()
        assert f"/{version}." in mesh.read("a", "", ["vendorVersion"])["vendorVersion"][0]
        began = time.monotonic()
        with writing(mesh, RATE) as sent:
            time.sleep(5)
            for number in range(COLLECTIONS):
                done = mesh.collect(tmp_path / f"at-{number:02}", "--entries")
                assert done.exit_code == 0, done.output
            seconds, total = time.monotonic() - began, sum(sent.values())
    finally:
        mesh.remove()
    wrong = [said for number in range(COLLECTIONS) if (said := _wrong(tmp_path / f"at-{number:02}"))]
    print(
        f"{version}: {total:,} changes sent in {seconds:.0f} s, {COLLECTIONS} collections, {len(wrong)} of them wrong"
    )
    assert wrong == []


def _wrong(folder: Path) -> str:
    """What is said of a collected folder that no healthy mesh deserves; empty if nothing is."""
    out = folder.with_suffix(".json")
    command = [sys.executable, "-c", "from workbench.cli import main; main()", "diagnose", folder, "--json", out]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if not out.exists():
        return f"{folder.name}: {done.stderr}"
    found = json.loads(out.read_text())
    above = [
        f"{one['severity']} {one['code']}: {one['summary']}" for one in found["findings"] if one["severity"] != "info"
    ]
    lists = [f"{len(found[key])} {key}" for key in ("missing", "unknown") if found[key]]
    first = done.stdout.partition("\n\n")[2].partition("\n")[0]
    nobody = [first] if not first.startswith("No change is missing") or "nobody" in first else []
    if done.returncode == 0 and not above and not lists and not nobody:
        return ""
    return "\n".join([f"{folder.name}: exit {done.returncode}", *lists, *above, *nobody])
