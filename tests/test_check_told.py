"""Whom `workbench check` tells of what, and that it tells nothing twice."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from check_fleet import MISSING, RECENT, finds, fleet_in, heard, hooked, said
from conftest import ROOT
from incident_samples import LOST, case_of
from test_notices import Hook, listening

from workbench.journal import owned
from workbench.runs import running
from workbench.runs.running import runs_in


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fleet_in(tmp_path, monkeypatch)


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


def into_nothing(code: str, to: str) -> subprocess.CompletedProcess[str]:
    """A process whose output nobody reads, or finds no room."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe, open("/dev/full", "w") as full:
        words = [sys.executable, "-c", code]
        where = {**os.environ, "PYTHONPATH": str(ROOT)}
        out = pipe if to == "a pipe" else full
        return subprocess.run(words, stdout=out, stderr=subprocess.PIPE, text=True, env=where, timeout=60, check=False)


@pytest.mark.parametrize("to", ["a pipe", "a full disk"])
@pytest.mark.parametrize("words", [[], ["--json", "-"], ["--junit", "-"]])
def test_where_nobody_reads_what_is_written_people_are_told_and_it_is_no_pass(
    words: list[str], to: str, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds(monkeypatch, MISSING)
    fleet.write_text(fleet.read_text() + "check: {threshold: error}\n")
    with hooked(fleet) as server:
        asked = ["check", str(fleet), *words]
        code = "from workbench.cli import main; from workbench.runs import running;"
        code += f"running._CHILD = {running._CHILD!r}; main({asked!r})"
        made = into_nothing(code, to)
        assert made.returncode == 2, made.stderr
        assert ("cannot write" in made.stderr) == bool(words)
        (text,) = heard(server)
        assert "eu/20_overview: findings" in text


@pytest.mark.parametrize("verb", ["run", "diagnose"])
def test_what_nobody_reads_is_no_pass(verb: str, fleet: Path) -> None:
    words = [verb, str(fleet if verb == "run" else case_of(LOST).folder)]
    code = f"from workbench.cli import main; from workbench.runs import running; running._CHILD = {running._CHILD!r};"
    made = into_nothing(f"{code} main({words!r})", "a pipe")
    assert (made.returncode, made.stderr) == (2, "")


def test_what_gets_worse_is_told_also_where_the_outcome_stays(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disabled = {**MISSING, "code": "LINK_DISABLED", "severity": "warning", "origin": None, "server": "s1"}
    with hooked(fleet) as server:
        finds(monkeypatch, disabled)
        said("check", fleet)
        assert len(heard(server)) == 1
        finds(monkeypatch, disabled, MISSING)
        said("check", fleet)
        (text,) = heard(server)
        assert f"\non {socket.gethostname()}, {fleet}\n" in text
        folder = runs_in(fleet.parent / "eu")[-1].folder
        assert f"\neu/20_overview: findings (before: findings)\n  in {folder}\n" in text
        assert "\n  new: findings MISSED_CHANGE, server s3" in text
        finds(monkeypatch, disabled)
        said("check", fleet)
        assert heard(server) == [], "better, but not clean"
        finds(monkeypatch, disabled, MISSING)
        said("check", fleet)
        assert len(heard(server)) == 1, "it came back"


def test_what_nobody_could_be_told_is_told_later(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hooked(fleet) as server:
        said("check", fleet)
        finds(monkeypatch, MISSING)
        server.code = 500
        assert said("check", fleet).exit_code == 2
        assert len(heard(server)) == 1
        server.code = 200
        assert said("check", fleet).exit_code == 1
        (text,) = heard(server)
        assert "eu/20_overview: findings (before: clean)" in text
        assert said("check", fleet).exit_code == 1
        assert heard(server) == []


def test_looking_again_tells_nothing_again(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hooked(fleet) as server:
        fleet.write_text(fleet.read_text() + RECENT)
        said("check", fleet)
        finds(monkeypatch, MISSING)
        said("check", fleet)
        assert len(heard(server)) == 1
        for _ in range(3):
            assert said("check", fleet, "--no-run").exit_code == 1
        assert heard(server) == []
        fleet.write_text(fleet.read_text().replace("1d", "1s"))
        time.sleep(2.1)
        for _ in range(2):
            assert said("check", fleet, "--no-run").exit_code == 2
        (text,) = heard(server)
        assert "look whether it is still scheduled" in text


def test_a_run_that_is_started_twice_calls_nobody(fleet: Path) -> None:
    with hooked(fleet) as server:
        said("check", fleet)
        with owned(fleet.parent / "eu" / "runs"):
            assert said("check", fleet).exit_code == 2
        assert said("check", fleet).exit_code == 0
        assert heard(server) == []


def test_who_meets_another_run_twice_in_a_row_is_told_once(fleet: Path) -> None:
    with hooked(fleet) as server:
        fleet.write_text(fleet.read_text() + RECENT)
        said("check", fleet)
        told = []
        with owned(fleet.parent / "eu" / "runs"):
            for words in ((), ("--no-run",), (), ()):
                said("check", fleet, *words)
                told.append(heard(server))
        assert [len(texts) for texts in told] == [0, 0, 1, 0]
        assert "eu/20_overview: failed (before: clean)" in told[2][0]
        assert "another run works on this case" in told[2][0]
        assert said("check", fleet).exit_code == 0
        (text,) = heard(server)
        assert "eu/20_overview: clean (before: failed)" in text


def test_people_are_told_of_a_file_or_a_case_that_is_gone_and_when_it_is_back(fleet: Path) -> None:
    with hooked(fleet) as server:
        whole = fleet.read_text()
        said("check", fleet)
        fleet.write_text(whole + "chek: {}\n")
        for _ in range(2):
            assert said("check", fleet).exit_code == 2
        (text,) = heard(server)
        assert "did you mean check?" in text
        fleet.write_text(whole)
        for _ in range(2):
            assert said("check", fleet).exit_code == 0
        (text,) = heard(server)
        first, _, rest = text.split("\n", 2)
        assert (first, rest) == ("nightly: 1 of 2 runs are clean again", "parameters: clean (before: failed)")
        shutil.move(fleet.parent / "eu", fleet.parent / "away")
        for _ in range(2):
            assert said("check", fleet).exit_code == 2
        (text,) = heard(server)
        assert "there is no such case" in text
        shutil.move(fleet.parent / "away", fleet.parent / "eu")
        assert said("check", fleet).exit_code == 0
        (text,) = heard(server)
        assert "eu/20_overview: clean (before: failed)" in text


def test_what_was_told_is_kept_where_the_user_of_a_schedule_may_write(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path / 'state'}:{tmp_path / 'other'}")
    finds(monkeypatch, MISSING)
    with hooked(fleet) as server:
        said("check", fleet)
        assert [path.name.partition(".")[0] for path in (tmp_path / "state").iterdir()] == ["nightly"]
        assert not (fleet.parent / ".nightly.yaml.told.json").exists()
        monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "gone"))
        heard(server)
        made = said("check", fleet)
        assert (made.exit_code, len(heard(server))) == (2, 1)
        assert "what was told could not be kept: No such file" in made.stderr
        monkeypatch.delenv("STATE_DIRECTORY")
        (fleet.parent / ".nightly.yaml.told.json").write_text('{"told": 3, "ways": {"the webhook": 1}}')
        assert said("check", fleet).exit_code == 1
        assert len(heard(server)) == 1, "a damaged note keeps nothing"
