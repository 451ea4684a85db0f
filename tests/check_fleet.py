"""A parameters file about two cases, whose runs are processes that write at once what a notebook would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from test_notices import Hook, listening
from test_runs import FACTS, STAND_IN

from workbench.case.case import LAYOUT
from workbench.cli import main
from workbench.runs import running

SCOPE = {"case": None, "server": "s3", "link": None, "origin": "1", "suffix": None}
MISSING = {"code": "MISSED_CHANGE", "severity": "error", **SCOPE}


def fleet_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A parameters file about two cases, a run of one notebook each."""
    for name in ("eu", "us"):
        (folder / name).mkdir()
        (folder / name / "case.yaml").write_text(f"layout: '{LAYOUT}'\n")
    path = folder / "nightly.yaml"
    path.write_text("cases: [eu, us]\nruns: [{notebook: 20_overview}]\n")
    finds(monkeypatch)
    return path


def finds(monkeypatch: pytest.MonkeyPatch, *findings: dict[str, object], fails: str = "", **more: object) -> None:
    """From now on the runs find this; those of the case that is named fail."""
    facts = {**FACTS, "findings": list(findings), "verdict": "findings" if findings else "clean", **more}
    fail = f"if '/{fails}/' in sys.argv[1]: sys.exit('it is broken')\n" if fails else ""
    monkeypatch.setattr(running, "_CHILD", ("-c", STAND_IN % facts + fail + "record(FACTS); book(BOOK)"))


def said(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


RECENT = "check: {max_age: 1d}\n"
"""Without it nobody says how old a run may be that `--no-run` looks at."""


def shown(path: Path) -> dict[str, str]:
    """What JUnit XML says: run -> the kind of its outcome."""
    root = ET.fromstring(path.read_text().partition("\n")[2])
    cases = list(root.iter("testcase"))
    kinds = [next((inner.tag for inner in case), "passed") for case in cases]
    told = [int(root.get(name, "-1")) for name in ("tests", "failures", "errors")]
    assert told == [len(cases), kinds.count("failure"), kinds.count("error")]
    return {f"{case.get('classname')}/{case.get('name')}": kind for case, kind in zip(cases, kinds, strict=True)}


@contextmanager
def hooked(fleet: Path) -> Iterator[Hook]:
    """A webhook that the file names."""
    server = Hook()
    with listening(server) as port:
        (fleet.parent / "hook").write_text(f"http://127.0.0.1:{port}/x")
        fleet.write_text(fleet.read_text() + "notify: {webhook_file: hook}\n")
        yield server


def heard(server: Hook) -> list[str]:
    """What was posted since it was asked last, a text for each message."""
    found = [body["text"] for _, body in server.got]
    server.got.clear()
    return found
