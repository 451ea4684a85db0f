"""`workbench check`, night after night: whose run is looked at again, a night that is cut short, what people know already."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path

import pytest
from check_fleet import MISSING, RECENT, finds, fleet_in, heard, hooked, said, shown
from conftest import ROOT
from test_notices import Hook, Post, listening
from test_runs import FACTS, STAND_IN

from workbench.journal import alone, owned
from workbench.runs import running
from workbench.runs.running import runs_in

DISABLED = {**MISSING, "code": "LINK_DISABLED", "severity": "warning", "origin": None, "server": "s1"}


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fleet_in(tmp_path, monkeypatch)


def test_a_look_at_the_last_runs_demands_that_somebody_says_how_old_they_may_be(fleet: Path) -> None:
    said("run", fleet)
    junit = fleet.parent / "junit.xml"
    made = said("check", fleet, "--no-run", "--junit", junit)
    assert made.exit_code == 2
    assert shown(junit) == {"nightly.yaml/parameters": "error"}
    assert "write for example `max_age: 26h` under `check:`" in made.stdout
    # Who accepts wants what is there now to be the measure of every night: not a run of last year.
    accept = ("check", fleet, "--no-run", "--accept", "--reason", "so be it")
    assert said(*accept).exit_code == 2
    assert not (fleet.parent / "nightly.yaml.baseline.json").exists()
    fleet.write_text(fleet.read_text() + "check: {max_age: 1s}\n")
    time.sleep(2.1)
    made = said(*accept)
    assert (made.exit_code, "the last run that was done is of" in made.stdout) == (2, True)
    assert not (fleet.parent / "nightly.yaml.baseline.json").exists()
    fleet.write_text(fleet.read_text().replace("1s", "1d"))
    assert said(*accept).exit_code == 0
    assert (fleet.parent / "nightly.yaml.baseline.json").exists()


def test_a_run_with_other_parameters_is_not_taken_for_the_one_that_is_asked_for(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"cases: [eu]\nruns: [{{notebook: 23_missed_changes, name: it, parameters: {{as_of: one}}}}]\n{RECENT}"
    fleet.write_text(text)
    assert said("check", fleet).exit_code == 0
    assert said("check", fleet, "--no-run").exit_code == 0
    finds(monkeypatch, MISSING)
    for other in (
        text.replace("one", "two"),
        text.replace("23_missed_changes", "20_overview").replace("as_of: one", ""),
    ):
        fleet.write_text(other)
        made = said("check", fleet, "--no-run")
        assert made.exit_code == 2
        assert "it has not been run with these parameters" in made.stdout
        assert said("check", fleet, "--no-run", "--accept", "--reason", "so be it").exit_code == 2
    assert said("check", fleet).exit_code == 1
    assert said("check", fleet, "--no-run").exit_code == 1


def test_two_files_of_one_name_about_one_case_do_not_meet(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    eu, text = fleet.parent / "eu", f"runs: [{{notebook: 20_overview}}]\nkeep: 1\n{RECENT}"
    for name in ("a", "b"):
        (fleet.parent / name).mkdir()
        (fleet.parent / name / "nightly.yaml").write_text(f"cases: [{eu}]\n{text}")
    one, other = (fleet.parent / name / "nightly.yaml" for name in ("a", "b"))
    assert said("check", one).exit_code == 0
    made = said("check", other, "--no-run")
    assert made.exit_code == 2
    assert "it has never been run" in made.stdout
    finds(monkeypatch, MISSING)
    for _ in range(2):
        assert said("check", other).exit_code == 1
    assert len(runs_in(eu)) == 2, "the run of the first file is not among those that go"
    # By any other way it is the same file; what a link names is relative to the link, so that is another one.
    (fleet.parent / "folder").symlink_to(one.parent)
    for way in (one.parent / ".." / "a" / "nightly.yaml", fleet.parent / "folder" / "nightly.yaml"):
        assert said("check", way, "--no-run").exit_code == 0, way
    (fleet.parent / "nightly.yaml").unlink()
    (fleet.parent / "nightly.yaml").symlink_to(one)
    assert said("check", fleet, "--no-run").exit_code == 2
    monkeypatch.chdir(one.parent)
    assert said("check", "nightly.yaml", "--no-run").exit_code == 0


def test_a_tree_that_is_moved_keeps_its_history(fleet: Path) -> None:
    fleet.write_text(fleet.read_text() + RECENT)
    tree = fleet.parent / "tree"
    (tree / "parameters").mkdir(parents=True)
    for name in ("eu", "us"):
        shutil.move(fleet.parent / name, tree / name)
    (tree / "parameters" / "it.yaml").write_text(fleet.read_text().replace("[eu, us]", "[../eu, ../us]"))
    assert said("check", tree / "parameters" / "it.yaml").exit_code == 0
    tree.rename(fleet.parent / "moved")
    moved = fleet.parent / "moved" / "parameters" / "it.yaml"
    assert said("check", moved, "--no-run").exit_code == 0
    made = said("check", moved)
    assert made.stdout.count("the same") == 2, "held against the run before"


ABOUT_SEVERAL = """
folders = json.load(open("order.json"))["parameters"]["case_folders"]
facts = json.loads(FACTS)
facts["verdict"] = max("clean" if os.path.exists(one) else "failed" for one in folders)
facts["cases"] = [{"case": one, "outcome": "clean" if os.path.exists(one) else "failed"} for one in folders]
facts["servers"] = [{"case": one, "server": "s1", "suffix": None} for one in folders if os.path.exists(one)]
record(json.dumps(facts)); book(BOOK)
"""
"""Tells of each case under its folder, as the notebook that checks several does."""


def test_several_cases_of_a_tree_that_is_moved_keep_their_names(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_CHILD", ("-c", STAND_IN % FACTS + ABOUT_SEVERAL))
    tree = fleet.parent / "tree"
    (tree / "parameters").mkdir(parents=True)
    for name in ("eu", "us"):
        shutil.move(fleet.parent / name, tree / name)
    text = f"notebook: 50_checks\nparameters: {{case_folders: [../eu, ./../us/]}}\n{RECENT}"
    (tree / "parameters" / "it.yaml").write_text(text)
    assert said("check", tree / "parameters" / "it.yaml", "--accept", "--reason", "so be it").exit_code == 0
    shutil.copytree(tree, fleet.parent / "another checkout")
    shutil.rmtree(fleet.parent / "another checkout" / "eu" / "runs")
    tree.rename(fleet.parent / "moved")
    for place in ("moved", "another checkout"):
        moved = fleet.parent / place / "parameters" / "it.yaml"
        assert said("check", moved, "--no-run").exit_code == (0 if place == "moved" else 2)
        made = said("check", moved, "--json", fleet.parent / "json")
        assert made.exit_code == 0, made.output
        (one,) = json.loads((fleet.parent / "json").read_text())["runs"]
        assert one["baseline"]["differences"] == []
        assert [row["case"] for row in one["facts"]["cases"]] == ["../eu", "../us"]
    other = text.replace("./../us/", "../other")
    shutil.copytree(fleet.parent / "moved" / "us", fleet.parent / "moved" / "other")
    (fleet.parent / "moved" / "parameters" / "it.yaml").write_text(other)
    made = said("check", fleet.parent / "moved" / "parameters" / "it.yaml", "--no-run")
    assert "it has not been run with these parameters" in made.stdout


def test_of_several_cases_one_that_is_gone_silences_no_other(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_CHILD", ("-c", STAND_IN % FACTS + ABOUT_SEVERAL))
    fleet.write_text("notebook: 50_checks\ncases: [eu, us]\n")
    assert said("check", fleet, "--accept", "--reason", "so be it").exit_code == 0
    monkeypatch.setattr(running, "_CHILD", ("-c", STAND_IN % FACTS + ABOUT_SEVERAL.replace('"s1"', '"s2"')))
    shutil.move(fleet.parent / "eu", fleet.parent / "away")
    made = said("check", fleet)
    assert made.exit_code == 2
    for line in ("eu: failed", "worse: evidence us, server s1: collected before, not collected now"):
        assert f"\n  {line}\n" in made.stdout
    assert not (fleet.parent / "eu").exists()
    shutil.move(fleet.parent / "us", fleet.parent / "gone")
    made = said("check", fleet)
    assert made.exit_code == 2
    assert "there is no such case" in made.stdout
    assert not (fleet.parent / "us").exists()


def test_what_two_links_to_one_file_were_told_is_not_mixed(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    finds(monkeypatch, MISSING)
    with hooked(fleet) as server:
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "nightly.yaml").symlink_to(fleet)
            for case in ("eu", "us"):
                shutil.copytree(tmp_path / case, tmp_path / name / case)
            (tmp_path / name / "hook").symlink_to(tmp_path / "hook")
            said("check", tmp_path / name / "nightly.yaml")
            assert len(heard(server)) == 1, "another file about other cases"


STOPPED = """
import sys
from workbench.cli import main
from workbench.runs import running
running._CHILD = ("-c", {child!r})
main({words!r})
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_check_that_is_ended_says_so_and_leaves_no_old_pass(number: signal.Signals, fleet: Path) -> None:
    """A real process, a real signal: one run is done, one is at work, two are still to come."""
    more = "runs: [{notebook: 20_overview}, {notebook: 20_overview, name: again, parameters: {server: s1}}]\n"
    fleet.write_text("cases: [eu, us]\n" + more)
    outputs = junit, data = fleet.parent / "junit.xml", fleet.parent / "json"
    for path in outputs:
        path.write_text("of last night, green")
    note, until = fleet.parent / "pid", time.monotonic() + 60
    stays = f"'/us/' in sys.argv[1] and (open({str(note)!r}, 'w').write(str(os.getpid())), time.sleep(120))\n"
    words = ["check", str(fleet), "--junit", str(junit), "--json", str(data)]
    code = STOPPED.format(child=STAND_IN % FACTS + stays + "record(FACTS); book(BOOK)", words=words)
    with hooked(fleet) as server:
        with subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while not (note.exists() and note.read_text()) and time.monotonic() < until:
                time.sleep(0.05)
            meanwhile = [path.read_text() for path in outputs]
            process.send_signal(number)
            try:
                said_out, said_err = process.communicate(timeout=60)
            finally:
                process.kill()
        assert meanwhile[0].count('message="the check has not come to its end"') == 4
        assert meanwhile[0].count("<error ") == 4
        assert {one["outcome"] for one in json.loads(meanwhile[1])["runs"]} == {"failed"}
        assert process.returncode == 2, said_err
        assert "Traceback" not in said_err
        ended = dict.fromkeys(("us/20_overview", "eu/again", "us/again"), "error")
        assert shown(junit) == {"eu/20_overview": "passed", **ended}
        assert said_out.count("the check was ended before") == 3
        assert {one["name"]: one["outcome"] for one in json.loads(data.read_text())["runs"]}["us/again"] == "failed"
        (text,) = heard(server)
        assert "us/20_overview: failed" in text
    assert not Path(f"/proc/{note.read_text()}").exists(), "what it ran has ended, too"
    assert [path.name for path in (fleet.parent / "us" / "runs").iterdir()] == [".owner"]
    with owned(fleet.parent / "us" / "runs") as left:
        assert left is None, "it ended in order"


def test_a_check_that_is_killed_leaves_no_old_pass(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    junit = fleet.parent / "junit.xml"
    junit.write_text("of last night, green")
    wrong = fleet.with_name("wrong.yaml")
    wrong.write_text("{")
    monkeypatch.setattr(running, "run", lambda *_: (_ for _ in ()).throw(SystemExit(137)))
    assert said("check", fleet, wrong, "--junit", junit).exit_code == 137
    whole = {"eu/20_overview": "error", "us/20_overview": "error", "wrong.yaml/parameters": "error"}
    assert shown(junit) == whole


@pytest.mark.parametrize("verb", ["run", "check"])
def test_a_lost_worker_is_named_by_who_knows_that_it_has_ended(verb: str, fleet: Path) -> None:
    place = fleet.parent / "eu" / "runs"
    place.mkdir()
    left = json.dumps({"host": "lost.example.com", "pid": 77, "started": None, "since": "2026-11-22T01:00:00+00:00"})
    (place / ".owner").write_text(left)
    for words, code in (
        ((), 2),
        (("--dead-owner", "lost.example.com:78"), 2),
        (("--dead-owner", "lost.example.com:77"), 0),
    ):
        made = said(verb, fleet, *words)
        assert made.exit_code == code, made.output
        assert ("name it as the dead owner, lost.example.com:77" in made.output) == bool(code)
    assert said(verb, fleet).exit_code == 0


def test_a_way_that_cannot_be_used_does_not_silence_the_other(fleet: Path) -> None:
    post = Post()
    junit = fleet.parent / "junit.xml"
    with listening(post) as port:
        mail = f"mail_server: '127.0.0.1:{port}', mail_tls: none, mail_from: a@example.com, mail_to: [b@example.com]"
        fleet.write_text(fleet.read_text() + f"notify: {{webhook_file: hook, {mail}}}\n")
        for _ in range(2):
            made = said("check", fleet, "--junit", junit)
            assert made.exit_code == 2
            assert shown(junit) == {
                "eu/20_overview": "passed",
                "us/20_overview": "passed",
                "nightly.yaml/notify": "error",
            }
        ((_, data),) = post.got
        mail_text = message_from_bytes(data, policy=policy.default).get_content()
        assert "notify: failed (before: nothing was told)" in mail_text
        assert f"cannot read it: No such file or directory ({fleet.parent / 'hook'})" in " ".join(mail_text.split())
        server = Hook()
        with listening(server) as hook:
            (fleet.parent / "hook").write_text(f"http://127.0.0.1:{hook}/x")
            for _ in range(2):
                assert said("check", fleet, "--junit", junit).exit_code == 0
        assert len(post.got) == 2
        assert b"notify: clean (before: failed)" in post.got[1][1]
        assert heard(server) == [], "nothing is owed to those who were told by it"


def test_what_a_way_could_not_tell_is_told_when_it_can_be_used(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, MISSING)
    with hooked(fleet) as server:
        (fleet.parent / "hook").rename(fleet.parent / "away")
        assert said("check", fleet).exit_code == 2
        (fleet.parent / "away").rename(fleet.parent / "hook")
        assert said("check", fleet).exit_code == 1
        (text,) = heard(server)
        assert "eu/20_overview: findings (before: nothing was told)" in text


def test_an_acknowledgement_that_runs_out_is_told(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    today = datetime.now(UTC).date()
    with hooked(fleet) as server:
        whole = fleet.read_text()

        def acknowledged(until: date) -> None:
            one = f"{{code: LINK_DISABLED, until: {until}, reason: r}}"
            fleet.write_text(f"{whole}check: {{acknowledged: [{one}]}}\n")

        acknowledged(today)
        finds(monkeypatch, DISABLED, MISSING)
        said("check", fleet)
        assert len(heard(server)) == 1
        said("check", fleet)
        assert heard(server) == []
        acknowledged(today - timedelta(days=1))
        assert said("check", fleet).exit_code == 1
        (text,) = heard(server)
        assert "it counts now: LINK_DISABLED, server s1" in text
        said("check", fleet)
        assert heard(server) == []


def test_what_was_accepted_and_counts_again_is_told(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hooked(fleet) as server:
        finds(monkeypatch, DISABLED)
        said("check", fleet, "--accept", "--reason", "known")
        finds(monkeypatch, DISABLED, MISSING)
        said("check", fleet)
        assert len(heard(server)) == 1
        (fleet.parent / "nightly.yaml.baseline.json").unlink()
        assert said("check", fleet).exit_code == 1
        (text,) = heard(server)
        assert "it counts now: LINK_DISABLED, server s1" in text


@pytest.mark.parametrize("accepted", [False, True])
def test_growth_that_is_tolerated_each_night_is_told_when_it_has_come_far(
    accepted: bool, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(number: int) -> None:
        about = {"case": None, "server": "s3", "origin": "1", "suffix": None}
        which = [f"{one:03}" for one in range(number)]
        finds(monkeypatch, MISSING, counts=[{"list": "missing", **about, "count": number, "positions": which}])

    with hooked(fleet) as server:
        fleet.write_text(fleet.read_text() + "check: {tolerances: {missing: 10}}\n")
        if accepted:
            said("check", fleet, "--accept", "--reason", "so be it")
        told = []
        for number in (1, 10, 19, 28, 37, 46, 55, 20, 55):
            lacks(number)
            assert said("check", fleet).exit_code == 1
            if texts := heard(server):
                told.append((number, "1 before, 19 now" in texts[0]))
    assert told == [(1, False), (19, True), (37, False), (55, False)]


def test_what_failed_and_fails_again_is_told_once(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hooked(fleet) as server:
        heard_of = []
        for finding in ("fails", "fails", "open", "open", "findings", "fails", "clean", "clean"):
            if finding == "fails":
                finds(monkeypatch, fails="eu")
            elif finding == "open":
                finds(monkeypatch, verdict="inconclusive")
            else:
                finds(monkeypatch, *[MISSING] * (finding == "findings"))
            said("check", fleet)
            heard_of.append(len(heard(server)))
    assert heard_of == [1, 0, 1, 0, 1, 1, 1, 0]


def test_one_at_a_time_accepts(fleet: Path) -> None:
    other, baseline = fleet.parent / "other.yaml", fleet.parent / "nightly.yaml.baseline.json"
    other.write_text("cases: [us]\nruns: [{notebook: 20_overview}]\n")
    words = ("check", other, fleet, "--accept", "--reason", "so be it")
    with alone(fleet.parent / ".nightly.yaml.baseline.json.lock"):
        made = said(*words)
        assert made.exit_code == 2
        assert "somebody else accepts at this moment" in made.stderr
        assert not list(fleet.parent.glob("*.baseline.json"))
    assert said(*words, fleet.parent / "." / "nightly.yaml").exit_code == 0, "a file that is named twice is one"
    assert baseline.exists()
    assert not list(fleet.parent.glob(".*.lock")), "it leaves nothing"
