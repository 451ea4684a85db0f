"""`workbench run` and `workbench check`, with processes that write at once what a notebook would."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from case_samples import everything
from check_fleet import MISSING, RECENT, finds, fleet_in, said, shown
from conftest import ROOT
from test_orders import HOSTILE_NAMES, PATH_SHAPES
from test_runs import FACTS, STAND_IN

from workbench import journal
from workbench.case.case import LAYOUT
from workbench.journal import owned
from workbench.runs import regression_check, running
from workbench.runs.running import runs_in
from workbench.safety import to_yaml


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fleet_in(tmp_path, monkeypatch)


def test_a_fleet_from_the_first_night_to_the_repair(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    junit = fleet.parent / "junit.xml"
    first = said("check", fleet, "--junit", junit)
    assert (first.exit_code, first.stdout.count("CLEAN")) == (0, 2)
    accepted = said("check", fleet, "--accept", "--reason", "as it should be")
    assert accepted.exit_code == 0
    assert (fleet.parent / "nightly.yaml.baseline.json").exists()
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
    fleet.write_text(fleet.read_text() + RECENT)
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


ENDS = {
    "clean": ("record(FACTS); book(BOOK)", 0, "passed"),
    "findings": ("record(FACTS.replace('clean', 'findings').replace('\"findings\": []', FOUND)); book(BOOK)", 1, "failure"),
    "inconclusive": ("record(FACTS.replace('clean', 'inconclusive')); book(BOOK)", 3, "error"),
    "nothing to compare": (
        "record(FACTS.replace('\"untold\": []', json.dumps({'untold': [UNTOLD]})[1:-1])); book(BOOK)", 3, "error"
    ),
    "a case that could not be opened": (
        "record(FACTS.replace('clean', 'failed').replace('\"cases\": []', "
        "'\"cases\": [{\"case\": \"x\", \"outcome\": \"failed\"}]')); book(BOOK)", 2, "error"
    ),
    "exit 0 without a record": ("book(BOOK)", 2, "error"),
    "exit 0 without a notebook": ("record(FACTS)", 2, "error"),
    "exit 1": ("record(FACTS); book(BOOK); sys.exit(1)", 2, "error"),
    "exit 2": ("record(FACTS); book(BOOK); sys.exit(2)", 2, "error"),
    "exit 3": ("record(FACTS); book(BOOK); sys.exit(3)", 2, "error"),
    "killed": ("record(FACTS); book(BOOK); os.kill(os.getpid(), 9)", 2, "error"),
    "half a record": ("record(FACTS[:30]); book(BOOK)", 2, "error"),
    "half a notebook": ("record(FACTS); book(BOOK[:5])", 2, "error"),
    "a record of somebody else": ("record('{}'); book(BOOK)", 2, "error"),
    "an unknown verdict": ("record(FACTS.replace('clean', 'great')); book(BOOK)", 2, "error"),
    "a cell that fails": (
        "record(FACTS); book(BOOK); print(json.dumps({'failed': 'NameError: x'}), flush=True); sys.exit(1)", 2, "error"
    ),
    "no memory": ("record(FACTS); book(BOOK); raise MemoryError", 2, "error"),
    "no disk": ("record(FACTS); os.write(os.open('/dev/full', os.O_WRONLY), b'x'); book(BOOK)", 2, "error"),
    "out of time": ("record(FACTS); book(BOOK); time.sleep(60)", 2, "error"),
}  # fmt: skip


@pytest.mark.parametrize("what", ENDS)
def test_each_way_to_end_has_its_exit_code_and_its_place_in_junit(
    what: str, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    does, code, kind = ENDS[what]
    found = f"FOUND = '\"findings\": ' + {json.dumps(json.dumps([MISSING]))}\n"
    found += "UNTOLD = {'case': None, 'server': 's1', 'suffix': None, 'why': 'one_server'}\n"
    monkeypatch.setattr(running, "_CHILD", ("-c", STAND_IN % FACTS + found + does))
    timeout = "timeout: 2s\n" if "time" in what else ""
    fleet.write_text(f"cases: [eu]\nruns: [{{notebook: 20_overview}}]\n{timeout}{RECENT}")
    junit = fleet.parent / "junit.xml"
    before = everything(fleet.parent)
    made = said("check", fleet, "--junit", junit)
    assert (made.exit_code, shown(junit)) == (code, {"eu/20_overview": kind}), made.output
    assert said("check", fleet, "--no-run", "--junit", junit).exit_code == code
    assert shown(junit) == {"eu/20_overview": kind}
    ran = said("run", fleet)
    assert ran.exit_code == (0 if what == "nothing to compare" else code), "of one run it is the verdict"
    after = everything(fleet.parent)
    runs = str(fleet.parent / "eu" / "runs")
    outside = {name for name in after if name != runs and not name.startswith(f"{runs}/")}
    assert outside - before.keys() == {str(junit)}, "runs write into their case alone"
    assert all(after[name] == before[name] for name in before)


def test_a_lock_and_a_lost_case_are_errors_in_junit_and_hold_up_no_other(fleet: Path) -> None:
    junit = fleet.parent / "junit.xml"
    assert said("check", fleet, "--junit", junit).exit_code == 0
    with owned(fleet.parent / "eu" / "runs"):
        assert said("check", fleet, "--junit", junit).exit_code == 2
    assert shown(junit) == {"eu/20_overview": "error", "us/20_overview": "passed"}
    shutil.move(fleet.parent / "eu", fleet.parent / "away")
    assert said("check", fleet, "--junit", junit).exit_code == 2
    assert shown(junit) == {"us/20_overview": "passed", "eu/20_overview": "error"}
    assert not (fleet.parent / "eu").exists()
    assert len(runs_in(fleet.parent / "us")) == 3


@pytest.mark.parametrize("why", ["File name too long", "Input/output error", "Permission denied"])
def test_a_case_that_cannot_be_read_is_an_error_and_holds_up_no_other(
    why: str, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    junit, bad = fleet.parent / "junit.xml", "eu"
    if why.startswith("File"):
        bad = "/".join(["a" * 200] * 20 + ["a" * 60])
    elif why.startswith("Input"):
        (fleet.parent / "eu" / "case.yaml").unlink()
        (fleet.parent / "eu" / "case.yaml").symlink_to("/proc/self/mem")
    else:  # root may read everything: what the system says to another user

        def glob(folder: Path, pattern: str) -> Iterator[Path]:
            if folder == fleet.parent / "eu" / "runs":
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
            return real(folder, pattern)

        real = Path.glob
        said("run", fleet)
        monkeypatch.setattr(Path, "glob", glob)
    fleet.write_text(f"cases: [{bad}, us]\nruns: [{{notebook: 20_overview}}]\n{RECENT}")
    for words in ((), ("--no-run",)):
        made = said("check", fleet, "--junit", junit, *words)
        assert made.exit_code == 2
        assert sorted(shown(junit).values()) == ["error", "passed"]
        assert why in junit.read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cases: [eu]\nruns: [{notebook: 20_overviev}]\n", "did you mean 20_overview?"),
        ("cases: [eu]\nruns: [{notebook: 20_overview, parameters: {sever: s1}}]\n", "did you mean server?"),
        ("cases: [eu]\nnotebook: 20_overview\ncheck: {treshold: error}\n", "did you mean threshold?"),
        ("cases: [eu]\nnotebook: 20_overview\ntimeout: 999999d\n", "longer than"),
        ("{", "not valid YAML"),
        ("", "no parameters file"),
        (None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_in_junit_and_holds_up_no_other(
    text: str | None, words: str, fleet: Path
) -> None:
    wrong, junit = fleet.parent / "wrong.yaml", fleet.parent / "junit.xml"
    if text is not None:
        wrong.write_text(text)
    junit.write_text("of last night, green")
    made = said("check", wrong, fleet, "--junit", junit)
    assert (made.exit_code, words in made.stdout) == (2, True)
    assert words in junit.read_text().replace("\\n", " ")
    assert shown(junit) == {
        "wrong.yaml/parameters": "error",
        "eu/20_overview": "passed",
        "us/20_overview": "passed",
    }
    before = everything(fleet.parent)
    if "check:" in str(text):
        return  # `run` compares nothing
    refused = said("run", fleet, wrong)
    assert (refused.exit_code, words in refused.stderr) == (2, True), "a person who is there mends it first"
    assert everything(fleet.parent) == before


def test_a_baseline_that_cannot_be_read_is_an_error_and_is_not_written_over(fleet: Path) -> None:
    junit, baseline = fleet.parent / "junit.xml", fleet.parent / "nightly.yaml.baseline.json"
    baseline.write_text('{"baseline": 2')
    for words in ((), ("--accept", "--reason", "as it should be")):
        made = said("check", fleet, "--junit", junit, *words)
        assert made.exit_code == 2
        assert "this baseline cannot be read" in made.output
        assert shown(junit) == (
            {"eu/20_overview": "passed", "us/20_overview": "passed", "nightly.yaml/baseline": "error"}
            if words
            else {"nightly.yaml/parameters": "error"}
        )
    assert baseline.read_text() == '{"baseline": 2'


def test_of_several_files_all_are_accepted_or_none(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, junit = fleet.parent / "other.yaml", fleet.parent / "junit.xml"
    other.write_text("cases: [us]\nruns: [{notebook: 20_overview}]\n")
    accept = ("check", fleet, other, "--junit", junit, "--accept", "--reason", "as it should be")
    assert said(*accept).exit_code == 0
    before = [path.read_bytes() for path in sorted(fleet.parent.glob("*.baseline.json"))]
    assert len(before) == 2
    finds(monkeypatch, MISSING, fails="us")
    made = said(*accept)
    assert made.exit_code == 2
    assert "us/20_overview failed: its process ended with exit code 1" in made.stderr
    assert "it is broken" in made.stderr
    assert [path.read_bytes() for path in sorted(fleet.parent.glob("*.baseline.json"))] == before
    none = {"nightly.yaml/baseline": "error", "other.yaml/baseline": "error"}
    assert shown(junit) == {"eu/20_overview": "failure", "us/20_overview": "error", **none}
    other.write_text("{")
    finds(monkeypatch, MISSING)
    assert said(*accept).exit_code == 2
    assert [path.read_bytes() for path in sorted(fleet.parent.glob("*.baseline.json"))] == before


def test_two_files_of_one_name_are_told_apart(fleet: Path) -> None:
    junit, data = fleet.parent / "junit.xml", fleet.parent / "json"
    paths = [fleet.parent / place / "it.yaml" for place in ("a", "b")]
    for path, case in zip(paths, ("eu", "us"), strict=True):
        path.parent.mkdir()
        (path.parent / "case").symlink_to(fleet.parent / case)
        path.write_text("cases: [case]\nruns: [{notebook: 20_overview}]\n")
    paths[1].write_text("cases: [case]\nruns: [{notebook: 20_overviev}, {notebook: 21_anchor}]\n")
    made = said("check", *paths, fleet, "--junit", junit, "--json", data)
    assert shown(junit) == {
        f"{paths[0]}/case/20_overview": "passed",
        f"{paths[1]}/parameters": "error",
        "eu/20_overview": "passed",
        "us/20_overview": "passed",
    }
    suites = ET.fromstring(junit.read_text().partition("\n")[2]).findall("testsuite")
    names = [*map(str, paths), "nightly.yaml"]
    assert [one.get("name") for one in suites] == names
    assert {one["file"] for one in json.loads(data.read_text())["runs"]} == set(names)
    for run in (f"{paths[0]}: case/20_overview", f"{paths[1]}: parameters", "nightly.yaml: us/20_overview"):
        assert re.search(rf"^(?:CLEAN|FAILED) +{re.escape(run)} ", made.stdout, re.MULTILINE)
    one = said("check", paths[0], "--junit", junit)
    assert (one.exit_code, shown(junit)) == (0, {"case/20_overview": "passed"})


@pytest.mark.parametrize(
    "to",
    [
        "eu/case.yaml",
        "eu/plan.json",
        "eu/new.json",
        "eu/evidence/manifest.json",
        "eu/evidence/vectors/part.parquet",
        "elsewhere/plan.json",
        "link",
        "nightly.yaml",
        "nightly.yaml.baseline.json",
        ".nightly.yaml.told.json",
        "hook",
        "snapshot/s1.changelog.ldif",
        "snapshot/deeper/x",
    ],
)
def test_no_output_replaces_anything_that_is_read(to: str, fleet: Path) -> None:
    for name in (
        "eu/evidence/vectors/part.parquet",
        "eu/plan.json",
        "snapshot/deeper/x",
        "hook",
        "elsewhere/case.yaml",
    ):
        (fleet.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (fleet.parent / name).write_text("http://127.0.0.1:1/x" if name == "hook" else f"layout: '{LAYOUT}'\n")
    (fleet.parent / "link").symlink_to(fleet.parent / "us" / "case.yaml")
    load = fleet.parent / "load.yaml"
    load.write_text("notebook: 10_load\nparameters: {case_folder: made, snapshots: [snapshot]}\n")
    fleet.write_text(fleet.read_text() + "notify: {webhook_file: hook}\n")
    before = everything(fleet.parent)
    for verb in ("run", "check"):
        for option in ("--json", "--junit")[: 1 if verb == "run" else 2]:
            made = said(verb, fleet, load, option, fleet.parent / to)
            assert made.exit_code == 2
            assert "overwrite" in made.stderr or "lies in a case" in made.stderr
    assert everything(fleet.parent) == before


def test_an_output_that_cannot_be_written_leaves_the_other_and_is_no_pass(fleet: Path) -> None:
    junit = fleet.parent / "junit.xml"
    made = said("check", fleet, "--json", "/dev/full", "--junit", junit)
    assert made.exit_code == 2
    assert "cannot write: the disk is full" in made.stderr
    assert set(shown(junit).values()) == {"passed"}


@pytest.mark.parametrize("limit", [120, 400, 500, 700, 1_100])
def test_where_no_file_can_grow_what_was_there_stays(limit: int, fleet: Path) -> None:
    """A limit that the system really sets: the n-th write of whatever is written fails."""
    outputs = [fleet.parent / name for name in ("junit.xml", "json", "nightly.yaml.baseline.json")]
    words = [
        "check",
        str(fleet),
        "--junit",
        str(outputs[0]),
        "--json",
        str(outputs[1]),
        "--accept",
        "--reason",
        "so be it",
    ]
    assert said(*words).exit_code == 0
    before, runs = [path.read_bytes() for path in outputs], everything(fleet.parent / "eu" / "runs")
    code = (
        "import resource, sys; from workbench.cli import main; from workbench.runs import running;"
        f"running._CHILD = {running._CHILD!r};"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); main({words!r})"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert made.returncode == 2, made.stdout + made.stderr
    assert "Traceback" not in made.stderr
    assert "File too large" in made.stdout + made.stderr
    changed = [path for path, was in zip(outputs, before, strict=True) if path.read_bytes() != was]
    for path in changed:
        assert path.stat().st_size <= limit, f"{path.name} is whole"
        assert shown(path) if path.suffix == ".xml" else json.loads(path.read_text())
    # What was written at the beginning may stay: it says that the check has not come to its end.
    assert len(changed) < len(outputs) or "the check has not come to its end" in outputs[1].read_text()
    after = everything(fleet.parent / "eu" / "runs")
    assert {name: after[name] for name in runs} == runs
    assert not [name for name in everything(fleet.parent) if name.endswith(".new") or "/.run-" in name]


def test_when_any_write_of_a_check_fails_each_file_is_whole_and_it_is_no_pass(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = fleet.parent / "other.yaml"
    other.write_text("cases: [us]\nruns: [{notebook: 20_overview}]\n")
    outputs = [
        fleet.parent / name for name in ("junit.xml", "json", "nightly.yaml.baseline.json", "other.yaml.baseline.json")
    ]
    words = ["--junit", outputs[0], "--json", outputs[1], "--accept", "--reason", "so be it"]
    assert said("check", fleet, other, *words).exit_code == 0
    calls, fail_at, seen, real = 0, 0, 0, os.fsync

    def failing(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(journal.os, "fsync", failing)
    for fail_at in range(1, 60):
        calls = 0
        before = [path.read_bytes() for path in outputs]
        made = said("check", fleet, other, *words)
        if calls < fail_at:
            assert made.exit_code == 0
            break
        seen += 1
        assert made.exit_code == 2, fail_at
        assert "Traceback" not in made.output
        assert set(shown(outputs[0])) >= {"eu/20_overview", "us/20_overview"}
        for path, was in zip(outputs[1:], before[1:], strict=True):
            assert path.read_bytes() == was or json.loads(path.read_text())
        if b"accepted" not in made.stderr_bytes:
            assert [path.read_bytes() for path in outputs[2:]] == before[2:]
    assert seen > 10


def test_a_case_by_any_other_path_starts_nothing_and_writes_nothing(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = fleet.parent / "started"
    monkeypatch.setattr(running, "_CHILD", ("-c", f"open({str(marker)!r}, 'w')"))
    (fleet.parent / "loop").symlink_to(fleet.parent / "loop")
    (fleet.parent / "dangling").symlink_to(fleet.parent / "gone")
    (fleet.parent / "case").symlink_to(fleet.parent / "eu")
    path = fleet.parent / "it.yaml"
    path.write_text("")
    before = everything(fleet.parent)
    asked = [{"notebook": "20_overview", "cases": [shape]} for shape in PATH_SHAPES]
    asked += [{"notebook": "20_overview", "parameters": {"case_folder": shape}} for shape in PATH_SHAPES]
    asked += [{"notebook": "10_load", "parameters": {"case_folder": f"{shape}/new/case"}} for shape in PATH_SHAPES]
    asked += [{"notebook": "20_overview", "parameters": {"case_folder": "eu", name: "x"}} for name in HOSTILE_NAMES]
    for one in asked:
        path.write_bytes(to_yaml(one).encode("utf-8", "surrogatepass"))
        for verb in ("run", "check"):
            assert said(verb, path).exit_code == 2, one
    path.write_text("")
    assert everything(fleet.parent) == before


def test_an_error_that_nobody_expected_is_no_finding(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("hunter2")

    monkeypatch.setattr(regression_check, "checked", broken)
    made = said("check", fleet)
    assert made.exit_code == 2
    assert "an error that nobody expected (KeyError" in made.stderr
    assert "hunter2" not in made.output


def test_words_that_make_no_command_change_nothing(fleet: Path) -> None:
    before = everything(fleet.parent)
    for words in (
        ("check", fleet, "--accept"),
        ("check", fleet, "--accept", "--reason", " "),
        ("check", fleet, "--json", "-", "--junit", "-"),
        ("run", fleet.parent),
        ("run", fleet.parent / "gone.yaml"),
        ("run", "/dev/zero"),
        ("check", fleet.parent / "gone.yaml"),
        ("check", "/dev/zero"),
        ("check",),
    ):
        assert said(*words).exit_code == 2, words
    assert everything(fleet.parent) == before
