"""Without a server: pipes that an export goes through end, whoever dies first, and what lay at their place is back."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest
from conftest import ROOT
from live_installed import until

from workbench.intake import in_flight
from workbench.intake.collection import Access
from workbench.intake.in_flight import FlightJournal
from workbench.model import Problem
from workbench.systems.ds389.live import exports, pipes
from workbench.systems.ds389.live.connection import NoAnswer, Place
from workbench.systems.ds389.live.undo import FILE, put_back_on_disk

pytestmark = pytest.mark.usefixtures("state")


def writer(path: Path, chunks: int, done: list[object]) -> Thread:
    """A server that exports: it notes what became of it."""

    def write() -> None:
        try:
            with open(path, "wb", buffering=0) as pipe:
                for _ in range(chunks):
                    pipe.write(b"x" * 65536)
            done.append("whole")
        except OSError as error:
            done.append(type(error))

    return Thread(target=write, daemon=True)


@pytest.mark.parametrize("there", [True, False])
def test_a_pipe_takes_a_whole_export_and_the_name_is_as_before(tmp_path: Path, there: bool) -> None:
    path, journal = tmp_path / "cl.ldif", FlightJournal()
    done: list[object] = []
    if there:
        path.write_text("earlier")
    thread = writer(path, 40, done)
    with pipes.pipe_at(path, (os.geteuid(), os.getegid()), "it", None, 20, lambda: bool(done), journal) as tap:
        thread.start()
        assert tap.read() == b"x" * tap.size
        assert not stat.S_ISFIFO(path.stat().st_mode) if there else not path.exists(), "the name goes when it is open"
        size = tap.size + sum(map(len, iter(tap.read, b"")))
    thread.join(10)
    assert (size, done) == (40 * 65536, ["whole"])
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("cl.ldif", "earlier")] * there
    assert journal.unsettled() == []
    journal.close()


@pytest.mark.parametrize(
    ("bound", "seconds", "says"), [(1 << 20, 20, "larger than 1.0 MiB"), (None, 0.3, "takes longer than 0.3 s")]
)
def test_an_export_without_end_ends_when_its_reader_goes(
    tmp_path: Path, bound: int | None, seconds: float, says: str
) -> None:
    path, journal = tmp_path / "cl.ldif", FlightJournal()
    done: list[object] = []
    thread = writer(path, 1 << 40, done)
    owner = (os.geteuid(), os.getegid())
    with (
        pytest.raises(Problem, match=says),
        pipes.pipe_at(path, owner, "it", bound, seconds, lambda: bool(done), journal) as tap,
    ):
        thread.start()
        while tap.read():
            pass
    thread.join(10)
    assert done == [BrokenPipeError]
    assert list(tmp_path.iterdir()) == []
    journal.close()


def guards(path: Path) -> list[str]:
    """The processes that have this pipe to look after."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"\0{path}\0".encode() in (one / "cmdline").read_bytes():
                found.append(one.name)
    return found


def test_a_pipe_that_nobody_opens_is_given_up_at_once(tmp_path: Path) -> None:
    path, owner, journal = tmp_path / "cl.ldif", (os.geteuid(), os.getegid()), FlightJournal()
    with pipes.pipe_at(path, owner, "it", None, 20, lambda: True, journal, drain=True) as tap:
        until("the guard is there", lambda: len(guards(path)) == 1, 10)
        assert tap.read() == b""
        began = time.monotonic()
    assert time.monotonic() - began < 5, "nothing is waited for"
    assert (guards(path), list(tmp_path.iterdir())) == ([], [])
    journal.close()


@pytest.mark.parametrize("when", ["opened", "opened a moment later", "opened much later", "never opened", "not asked"])
@pytest.mark.parametrize("drain", [True, False])
def test_a_killed_reader_takes_its_pipe_along(tmp_path: Path, when: str, drain: bool) -> None:
    opened = when == "opened"
    path = tmp_path / "cl.ldif"
    done: list[object] = []
    path.write_text("earlier")
    thread = writer(path, 100 if drain else 1 << 40, done)
    script = f"""
    import os
    from pathlib import Path
    from workbench.intake.in_flight import FlightJournal
    from workbench.systems.ds389.live.pipes import pipe_at
    owner = (os.geteuid(), os.getegid())
    seconds = {3 if when == "never opened" else 60}
    made = pipe_at(Path({str(path)!r}), owner, "it", None, seconds, lambda: False, FlightJournal(), {drain})
    tap = made.__enter__()
    {"tap.asked()" if when != "not asked" else ""}
    print("made", flush=True)
    {"tap.read()" if opened else ""}
    print("ready", flush=True)
    import time; time.sleep(60)
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "made\n"
    if opened:
        thread.start()
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    if when.endswith("later"):
        time.sleep(0.5 if "moment" in when else 7)
        (journal,) = FlightJournal.of_dead_runs()
        with pytest.raises(Problem, match="a pipe still waits for the server to open it"):
            put_back_on_disk(journal.unsettled()[0])
        journal.close()
        thread.start()
    if when == "not asked":
        until("nobody waits", lambda: guards(path) == [], 2)
    until("the name is as before", lambda: path.is_file() and path.read_text() == "earlier", 10)
    until("nothing else is there", lambda: [one.name for one in tmp_path.iterdir()] == ["cl.ldif"], 10)
    until("the guard has ended, too", lambda: guards(path) == [], 10)
    if when.startswith("opened"):
        thread.join(10)
        assert done == (["whole"] if drain else [BrokenPipeError]), "an export of entries is read into nothing"


def test_a_pipe_that_outlived_everybody_is_taken_away_by_the_next_run(tmp_path: Path) -> None:
    path, aside, made = (tmp_path / name for name in ("cl.ldif", ".cl.ldif.1", ".cl.ldif.2"))
    os.mkfifo(path)
    aside.write_text("earlier")
    done: list[object] = []
    thread = writer(path, 1, done)
    thread.start()  # a server that waits in `open`
    time.sleep(0.1)
    assert thread.is_alive()
    pipes.put_back_pipe(path, aside, made)
    thread.join(10)
    assert not thread.is_alive()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("cl.ldif", "earlier")]
    pipes.put_back_pipe(path, aside, made)
    assert path.read_text() == "earlier", "whose file it is, it stays"


@pytest.mark.parametrize("there", ["nothing", "not moved yet", "moved", "back"])
def test_an_export_that_was_left_goes_and_a_file_that_is_not_ours_stays(tmp_path: Path, there: str) -> None:
    path, aside = tmp_path / "cl.ldif", None if there == "nothing" else tmp_path / ".cl.ldif.1"
    path.write_text("ours" if there in ("nothing", "moved") else "earlier")
    if there == "moved":
        (tmp_path / ".cl.ldif.1").write_text("earlier")
    one = in_flight.InFlight(1, FILE, str(path), {"aside": str(aside or "")}, "")
    for _ in range(2):
        assert put_back_on_disk(one) is not None
        assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("cl.ldif", "earlier")] * (
            aside is not None
        )


@pytest.mark.parametrize("name", ["cl.ldif", "workbench-0123456789ab.ldif"])
def test_an_export_that_went_into_a_file_instead_of_the_pipe_goes_and_an_earlier_one_stays(
    tmp_path: Path, name: str
) -> None:
    """Its guard was killed, too, or had waited long enough. What a person had the server write before comes back."""
    path, aside = tmp_path / name, tmp_path / f".{name}.1"
    since = datetime.now(UTC)
    about = {"aside": str(aside), "made": str(tmp_path / f".{name}.1.pipe")}
    one = in_flight.InFlight(1, pipes.PIPE, str(path), about, since.isoformat(timespec="milliseconds"))
    aside.write_text("earlier")
    os.utime(aside, (since.timestamp() - 60,) * 2)
    path.write_text("userPassword: {PBKDF2}")
    os.utime(path, (since.timestamp() + 60,) * 2)
    assert "written its export into a file instead of the pipe" in str(put_back_on_disk(one))
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [(name, "earlier")]
    if name == "cl.ldif":
        assert put_back_on_disk(one) == f"the pipe {path} is gone"
        assert path.read_text() == "earlier"


def test_a_pipe_that_was_opened_is_not_in_flight_any_more(tmp_path: Path) -> None:
    """What is written under its name from then on is not ours to remove, not even if this run is killed."""
    path, journal = tmp_path / "cl.ldif", FlightJournal()
    done: list[object] = []
    thread = writer(path, 40, done)
    with pipes.pipe_at(path, (os.geteuid(), os.getegid()), "it", None, 20, lambda: bool(done), journal) as tap:
        thread.start()
        assert len(journal.unsettled()) == 1
        assert tap.read()
        assert journal.unsettled() == []
        while tap.read():
            pass
    thread.join(10)
    journal.close()


def test_an_interrupted_run_leaves_a_pipe_that_is_not_open_to_its_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "_GRACE", 0.2)
    path, owner, journal = tmp_path / "cl.ldif", (os.geteuid(), os.getegid()), FlightJournal()
    with pytest.raises(KeyboardInterrupt), pipes.pipe_at(path, owner, "it", None, 2, lambda: False, journal) as tap:
        tap.asked()
        raise KeyboardInterrupt
    (one,) = journal.unsettled()
    with pytest.raises(Problem, match="a pipe still waits for the server to open it"):
        put_back_on_disk(one)
    until("the guard has ended", lambda: guards(path) == [] or not path.exists(), 10)
    until("the pipe is gone", lambda: put_back_on_disk(one) == f"the pipe {path} is gone", 10)
    assert list(tmp_path.iterdir()) == []
    journal.settle(one.number)
    journal.close()


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("error", [Problem("refused"), KeyboardInterrupt()])
def test_a_pipe_that_the_server_will_not_open_is_left_to_nobody(
    tmp_path: Path, error: BaseException, asked: bool
) -> None:
    path, owner, journal = tmp_path / "cl.ldif", (os.geteuid(), os.getegid()), FlightJournal()
    with pytest.raises(type(error)), pipes.pipe_at(path, owner, "it", None, 60, lambda: True, journal) as tap:
        if asked:
            tap.asked()
        raise error
    assert (guards(path), list(tmp_path.iterdir())) == ([], [])
    journal.close()


def test_a_pipe_that_was_given_up_is_asked_for_no_more(tmp_path: Path) -> None:
    """A thread that reaches its server late must not have it write a file."""
    path, owner, journal = tmp_path / "cl.ldif", (os.geteuid(), os.getegid()), FlightJournal()
    with pipes.pipe_at(path, owner, "the export", None, 60, lambda: True, journal) as tap:
        pass
    with pytest.raises(Problem, match="the export was given up before the server was asked"):
        tap.asked()
    journal.close()


def test_what_is_held_back_comes_afterwards() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), pipes.held_back():
        signal.raise_signal(signal.SIGINT)
        done.append("all of the block")
    assert done == ["all of the block"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("error", "ended"), [(NoAnswer("no answer"), False), (Problem("refused"), True), (None, True)])
def test_a_server_that_has_not_answered_in_time_may_still_open_the_pipe(
    monkeypatch: pytest.MonkeyPatch, error: Problem | None, ended: bool
) -> None:
    class Answering:
        def replace(self, *_: object) -> None:
            if error:
                raise error

    monkeypatch.setattr(exports, "connected", lambda *_: nullcontext(Answering()))
    told: list[str] = []
    asked = exports._Asked(Place("ldap://s1:389"), Access(), "cn=replica")
    assert not asked.ended()
    asked.start(lambda: told.append("asked"))
    asked.join(5)
    assert (asked.ended(), told) == (ended, ["asked"])
