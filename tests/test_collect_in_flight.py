"""Without a server: what a collection has in flight is written down, and put back by it or by the next one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import ROOT
from test_collect import Acted

from workbench.intake.collection import Access, Address, Wanted, collect
from workbench.intake.in_flight import FlightJournal
from workbench.model import Problem
from workbench.systems.ds389.live.servers import DirectoryServers

pytestmark = pytest.mark.usefixtures("state")


def test_what_was_put_back_is_crossed_out_and_the_journal_goes(state: Path) -> None:
    journal = FlightJournal()
    with journal.noted("level", "s1", before="1", during="2"):
        (path,) = state.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [(one.what, one.where, one.about) for one in journal.unsettled()] == [
            ("level", "s1", {"before": "1", "during": "2"})
        ]
    assert journal.unsettled() == []
    journal.close()
    assert list(state.iterdir()) == []


def test_a_block_that_fails_leaves_its_record(state: Path) -> None:
    journal = FlightJournal()
    with pytest.raises(KeyboardInterrupt), journal.noted("task", "s1", task="cn=x"):
        raise KeyboardInterrupt
    assert [one.what for one in journal.unsettled()] == ["task"]
    journal.close()
    assert len(list(state.iterdir())) == 1


def killed(code: str) -> None:
    """A process that does this, and is killed then."""
    script = textwrap.dedent(code) + "\nprint('ready', flush=True)\nimport time; time.sleep(60)\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate()


NOTING = """
from workbench.intake.in_flight import FlightJournal
journal = FlightJournal()
first = journal.note("folder", "/one")
journal.note("level", "s1", before="1", during="2")
journal.note("task", "s1", task="cn=x")
journal.settle(first)
"""


def test_the_next_run_finds_what_a_killed_one_left_and_not_what_a_living_one_has(state: Path) -> None:
    living = FlightJournal()
    living.note("folder", "/living")
    killed(NOTING)
    (dead,) = FlightJournal.of_dead_runs()
    assert [(one.what, one.where) for one in dead.unsettled()] == [("task", "s1"), ("level", "s1")], "the last first"
    assert FlightJournal.of_dead_runs() == [], "somebody is at it"
    dead.settle(dead.unsettled()[0].number)
    dead.close()
    (dead,) = FlightJournal.of_dead_runs()
    assert [one.what for one in dead.unsettled()] == ["level"]
    dead.settle(dead.unsettled()[0].number)
    dead.close()
    assert FlightJournal.of_dead_runs() == []
    assert len(list(state.iterdir())) == 1
    living.close()


def test_a_line_that_was_cut_was_not_done_yet(state: Path) -> None:
    killed(NOTING)
    (path,) = state.iterdir()
    data = path.read_bytes()
    path.write_bytes(data + b'{"n": 6, "at": "2026-01-01", "what": "lev')
    (dead,) = FlightJournal.of_dead_runs()
    assert [one.what for one in dead.unsettled()] == ["task", "level"]
    dead.close()


def test_a_journal_that_is_damaged_is_told_of_and_stays(tmp_path: Path, state: Path) -> None:
    """What was left behind cannot be told from it: a person has to look, also if the server is down that is asked first."""
    killed(NOTING)
    (path,) = state.iterdir()
    path.write_bytes(path.read_bytes().replace(b'"n": 3', b'"n": 7'))
    mesh = DirectoryServers([Address("s1", url="ldap://127.0.0.1:1")], Access())
    with pytest.raises(Problem):
        mesh.survey("s1")
    gathered = mesh.left_behind("s1", tmp_path, "s1", Wanted())
    mesh.close()
    (note,) = gathered.failed
    assert (
        "what an earlier run left behind is not known: " in note
        and f"{path}:" in note
        and "put the journal aside" in note
    )
    assert path.exists()


def test_ctrl_c_in_the_middle_of_a_record_does_not_keep_the_rest_from_being_crossed_out(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for cut in ("before", "after"):
        journal = FlightJournal()
        level = journal.note("level", "s1", before="1", during="2")
        with monkeypatch.context() as patched:
            patched.setattr(
                "workbench.journal.os.write" if cut == "before" else "workbench.journal.os.fsync", interrupted
            )
            with pytest.raises(KeyboardInterrupt):
                journal.note("task", "s1", task="cn=x")
        journal.settle(level)
        left = journal.unsettled()
        assert [one.what for one in left] == ["task"] * (cut == "after"), (
            "put back, too: whether it was begun is not known"
        )
        for one in left:
            journal.settle(one.number)
        journal.close()
        assert list(state.iterdir()) == []


def test_ctrl_c_while_a_journal_is_made_leaves_none(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    journal = FlightJournal()
    with monkeypatch.context() as patched:
        patched.setattr("workbench.journal.os.fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.note("level", "s1", before="1", during="2")
    assert (journal.unsettled(), list(state.iterdir())) == ([], [])


def test_without_a_journal_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    acted = Acted({"s1": 2})
    with pytest.raises(Problem, match=r"the journal cannot be written.*XDG_STATE_HOME"):
        collect(acted, "any", tmp_path / "now", Wanted())
    assert acted.events == []
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_half_made_folder_of_a_killed_run_goes_with_the_next(tmp_path: Path, state: Path) -> None:
    killed(f"""
    from pathlib import Path
    from workbench.intake.collection import _appearing
    from workbench.intake.disk_room import Limits
    made = _appearing(Path({str(tmp_path / "now")!r}), Limits(0))
    (made.__enter__() / "s1.changelog.ldif").write_text("half")
    """)
    (half,) = tmp_path.glob(".now.*")
    assert [path.name for path in half.iterdir()] == ["s1.changelog.ldif"]
    collect(Acted({"s1": 2}), "any", tmp_path / "other", Wanted())
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert list(state.iterdir()) == []
