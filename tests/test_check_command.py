"""`workbench run` and `workbench check`, with processes that write at once what a notebook would."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from case_samples import everything
from click.testing import CliRunner, Result
from test_notices import Hook, listening
from test_runs import FACTS, STAND_IN

from workbench.case import LAYOUT
from workbench.cli import main
from workbench.runs import running
from workbench.runs.running import runs_in

MISSING = {"code": "MISSED_CHANGE", "severity": "error", "server": "s3", "link": None, "origin": "1", "suffix": None}


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A parameters file about two cases, a run of one notebook each."""
    for name in ("eu", "us"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "case.yaml").write_text(f"layout: '{LAYOUT}'\n")
    path = tmp_path / "nightly.yaml"
    path.write_text("cases: [eu, us]\nruns: [{notebook: 20_overview}]\n")
    finds(monkeypatch)
    return path


def finds(monkeypatch: pytest.MonkeyPatch, *findings: dict[str, object], fails: str = "") -> None:
    """From now on the runs find this; those of the case that is named fail."""
    facts = {**FACTS, "findings": list(findings), "verdict": "findings" if findings else "clean"}
    fail = f"if '/{fails}/' in sys.argv[1]: sys.exit('it is broken')\n" if fails else ""
    monkeypatch.setattr(running, "_CHILD", ("-c", STAND_IN % facts + fail + "record(FACTS); book(BOOK)"))


def said(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_fleet_from_the_first_night_to_the_repair(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    junit = fleet.parent / "junit.xml"
    first = said("check", fleet, "--junit", junit)
    assert (first.exit_code, first.stdout.count("CLEAN")) == (0, 2)
    accepted = said("check", fleet, "--accept", "--reason", "as it should be")
    assert accepted.exit_code == 0
    assert (fleet.parent / "nightly.baseline.json").exists()
    finds(monkeypatch, MISSING)
    worse = said("check", fleet, "--junit", junit)
    assert worse.exit_code == 1
    assert "new: findings MISSED_CHANGE, server s3, origin 1: error" in worse.stdout
    suites = ET.fromstring(junit.read_text().partition("\n")[2])
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("2", "2", "0")
    finds(monkeypatch, fails="us")
    broken = said("check", fleet, "--junit", junit, "--json", fleet.parent / "json")
    assert broken.exit_code == 2
    suites = ET.fromstring(junit.read_text().partition("\n")[2])
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("2", "0", "1")
    told = {one["name"]: one["outcome"] for one in json.loads((fleet.parent / "json").read_text())["runs"]}
    assert told == {"eu/20_overview": "clean", "us/20_overview": "failed"}
    assert [len(runs_in(fleet.parent / name)) for name in ("eu", "us")] == [4, 4]


def test_no_run_only_looks(fleet: Path) -> None:
    assert said("check", fleet, "--no-run").exit_code == 2
    said("run", fleet)
    before = everything(fleet.parent)
    assert said("check", fleet, "--no-run").exit_code == 0
    assert everything(fleet.parent) == before


def test_a_run_tells_how_it_ended_by_its_exit_code(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said("run", fleet).exit_code == 0
    finds(monkeypatch, MISSING)
    assert said("run", fleet).exit_code == 1
    finds(monkeypatch, fails="eu")
    made = said("run", fleet, fleet)
    assert made.exit_code == 2
    assert made.stdout.count("eu/20_overview: FAILED") == 2
    assert made.stdout.count("us/20_overview: clean") == 2


def test_all_files_are_checked_before_anything_is_run(fleet: Path) -> None:
    wrong = fleet.parent / "wrong.yaml"
    wrong.write_text("cases: [eu]\nruns: [{notebook: 20_overviev}]\n")
    before = everything(fleet.parent)
    for verb in ("run", "check"):
        made = said(verb, fleet, wrong)
        assert made.exit_code == 2
        assert "did you mean 20_overview?" in made.stderr
    for words in (
        ("check", fleet, "--accept"),
        ("check", fleet, "--accept", "--reason", " "),
        ("check", fleet, "--json", fleet),
        ("check", fleet, "--junit", fleet.parent / "nightly.baseline.json", "--json", "-", "--no-run"),
        ("check", fleet, "--json", "-", "--junit", "-"),
        ("run", fleet, "--json", fleet.parent / "eu" / "case.yaml"),
        ("run", fleet.parent),
        ("run", fleet.parent / "gone.yaml"),
        ("check",),
    ):
        assert said(*words).exit_code == 2, words
    assert everything(fleet.parent) == before


def test_who_waits_for_a_message_does_not_take_silence_for_a_pass(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Hook()
    with listening(server) as port:
        (fleet.parent / "hook").write_text(f"http://127.0.0.1:{port}/x")
        fleet.write_text(fleet.read_text() + "notify: {webhook_file: hook}\n")
        finds(monkeypatch, MISSING)
        assert said("check", fleet).exit_code == 1
        assert said("check", fleet).exit_code == 1
        finds(monkeypatch)
        assert said("check", fleet).exit_code == 0
    assert [body["text"].partition("\n")[0] for _, body in server.got] == [
        "nightly: 2 of 2 runs need attention",
        "nightly: 2 of 2 runs are clean again",
    ]
    finds(monkeypatch, MISSING)
    silent = said("check", fleet)
    assert silent.exit_code == 2
    assert "nobody was told by the webhook" in silent.stderr
