"""`workbench collect` harms no real server: whatever ends it, and whatever the server does, the server is as before."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT
from leaks import leaks
from live_installed import SUFFIX, until
from live_lone import KINDS, REPLICA, Lone, lone
from live_mesh import asked

from workbench.intake.collection import Access, Address
from workbench.intake.disk_room import Limits
from workbench.intake.files import inspect_file
from workbench.intake.in_flight import FlightJournal
from workbench.model import Problem
from workbench.safety import strict_yaml
from workbench.systems.ds389.live import database
from workbench.systems.ds389.live.connection import connected
from workbench.systems.ds389.live.exports import Exporter
from workbench.systems.ds389.live.reached import server_at

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("state")]

ALL_KINDS = [pytest.param(kind, marks=pytest.mark.slow) if kind == "current" else kind for kind in KINDS]
PEOPLE = 600
MOMENTS = 30
LEVEL = "nsslapd-errorlog-level"
EARLIER = "what a person exported"


@pytest.fixture(scope="module", params=ALL_KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lone]:
    """A supplier with some megabytes of changes, of each version and database; an export that a person made lies there."""
    with lone(tmp_path_factory.mktemp(request.param), request.param) as built:
        built.people(PEOPLE)
        (earlier := built.exports / f"{built.setting('nsDS5ReplicaName', REPLICA)}_cl.ldif").write_text(EARLIER)
        shutil.chown(earlier, *_owner(built.exports))
        yield built


def _owner(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_uid, about.st_gid


def left_behind(server: Lone, folder: Path, state: Path) -> list[str]:
    """What is not as it was before any collection."""
    found = [] if server.setting(LEVEL) == "16384" else [f"level {server.setting(LEVEL)}"]
    found += server.running_tasks()
    found += on_disk(server)
    found += [path.name for path in folder.glob(".*")]
    found += [path.name for path in state.glob("*")]
    return found


def on_disk(server: Lone) -> list[str]:
    """What is in the folder of exports besides the export that a person made, with its content."""
    there = list(server.exports.iterdir())
    kept = [path for path in there if path.is_file() and path.read_text(errors="replace") == EARLIER]
    return [path.name for path in there if path not in kept] + ["nothing is kept"] * (len(kept) != 1)


def collecting(server: Lone, into: Path, *options: str) -> subprocess.Popen[str]:
    """A collection of a process of its own, with all that it can switch on."""
    command = [sys.executable, "-c", "from workbench.cli import main; main()", "collect", "--instance", server.instance]
    command += ["--into", str(into), "--entries", "--replication-log", *options]
    return subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def collected(server: Lone, into: Path, *options: str) -> str:
    """What a whole collection says."""
    process = collecting(server, into, *options)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    return said


def exporter_of(server: Lone, limits: Limits, journal: FlightJournal, patience: float = 60) -> Exporter:
    """What has the server export."""
    reached = server_at(Address(None, instance=server.instance))
    access = Access(timeout=20, patience=patience)
    return Exporter(reached.key, reached.place, access, server.exports, _owner(server.exports), limits, journal)


def exported_changelog(exporter: Exporter, server: Lone, to: Path) -> None:
    with connected(exporter.place, exporter.access) as connection:
        found = database.database_of(connection, SUFFIX)
    exporter.changelog(found, REPLICA, server.setting("nsDS5ReplicaName", REPLICA), to)


def test_everything_is_collected_and_nothing_is_left(server: Lone, tmp_path: Path, state: Path) -> None:
    said = collected(server, tmp_path / "now")
    files = {path.name.partition(".")[2]: path for path in (tmp_path / "now").iterdir()}
    changes = "changelog.dbscan" if server.kind == "mdb" else "changelog.ldif"
    assert files.keys() == {
        "replica.ldif",
        "agreements.ldif",
        changes,
        "entries.ldif",
        "access.log",
        "errors.log",
        "yaml",
    }
    assert ("issue 5661" in said) == (server.kind == "mdb")
    seen = {name: inspect_file(path) for name, path in files.items() if name not in ("yaml", "access.log")}
    assert [name for name, one in seen.items() if one["rejected"]] == []
    assert seen[changes]["accepted"] >= PEOPLE
    assert seen["entries.ldif"]["accepted"] >= PEOPLE
    assert not any(leaks(path.read_bytes(), ["Canary-700", "Canary-0", "Canary-1000"]) for path in files.values())
    about = strict_yaml(files["yaml"].read_text(), "case.yaml")
    (one,) = about["collected"]
    assert {file.partition(".")[2] for file in one["read_at"]} == files.keys() - {"yaml"}
    assert all(one["from"] <= moment <= one["until"] for moment in one["read_at"].values())
    assert left_behind(server, tmp_path, state) == []


@pytest.mark.parametrize(
    ("limits", "patience", "says"),
    [
        (Limits(0, 3 << 20), 60, "larger than 3.0 MiB"),
        (Limits(0), 1.5, "takes longer than 1.5 s"),
    ],
    ids=["bound", "time"],
)
def test_an_export_that_never_ends_is_ended(
    tmp_path: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: Lone,
    limits: Limits,
    patience: float,
    says: str,
) -> None:
    if server.kind != "mdb":
        pytest.skip("the export of this server ends")
    journal = FlightJournal()
    with pytest.raises(Problem, match="does not end"):
        exported_changelog(exporter_of(server, limits, journal), server, tmp_path / "out")
    monkeypatch.setattr(database, "_FIRST_WITHOUT_LOOP", (0, 0, 0))  # as if nobody knew
    with pytest.raises(Problem, match=says):
        exported_changelog(exporter_of(server, limits, journal, patience), server, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert server.process
    until("the server is at rest", lambda: _busy(server.process.pid) < 0.2, 20)  # type: ignore[union-attr]
    assert {one.what for one in journal.unsettled()} <= {"pipe"}
    settle(journal)
    assert left_behind(server, tmp_path, state) == []
    server.write(f"dn: ou=people,{SUFFIX}\nchangetype: modify\nreplace: description\ndescription: {says}\n\n")


def _busy(pid: int) -> float:
    """Processors that a process uses."""
    spent = []
    for pause in (0.5, 0):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        spent.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
        time.sleep(pause)
    return (spent[1] - spent[0]) / 0.5


@contextmanager
def small_disk(folder: Path, size: str, fill: int) -> Iterator[None]:
    """A file system of this size, with so many bytes in it, at the place of a folder; its owner is as before."""
    owner = _owner(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=770", "tmpfs", folder], check=True)
    try:
        os.chown(folder, *owner)
        (folder / "full").write_bytes(b"x" * fill)
        yield
    finally:
        # A server that was stopped half way still has a file open there.
        until(f"{folder} is free", lambda: subprocess.run(["umount", folder], capture_output=True).returncode == 0, 60)


def test_a_full_disk_of_exports_does_not_matter_and_a_full_target_stops_in_time(
    server: Lone, tmp_path: Path, state: Path
) -> None:
    if server.kind == "bdb":  # the folder of the current one is a link: a mount would be on the other side
        with small_disk(server.exports, "256k", 240 << 10):
            said = collected(server, tmp_path / "full-exports")
            assert [path.name for path in server.exports.iterdir()] == ["full"]
        assert "failed" not in said
    (target := tmp_path / "target").mkdir()
    with small_disk(target, "64m", 40 << 20):
        done = asked("--instance", server.instance, "--into", target / "now")
        assert (done.exit_code, "not enough room" in done.output) == (2, True), done.output
        done = asked("--instance", server.instance, "--entries", "--into", target / "now", "--keep-free", "23M")
        assert (done.exit_code, "not enough room" in done.output) == (3, True), done.output
        assert {path.name for path in target.iterdir()} == {"full", "now"}
    with small_disk(target, "64m", 1 << 20):
        room = os.statvfs(target)
        journal = FlightJournal()
        limits = Limits(keep_free=room.f_bavail * room.f_frsize - (200 << 10), largest=1 << 30)
        exporter = exporter_of(server, limits, journal)
        unknown = replace(_database(exporter), folder=None)  # nothing to estimate from
        with pytest.raises(Problem, match="was stopped: only"):
            exporter.entries(unknown, target / "entries")
        settle(journal)
        assert [path.name for path in target.iterdir()] == ["full"]
    assert left_behind(server, tmp_path, state) == []


def settle(journal: FlightJournal) -> None:
    """What a collection does at its end, but for putting back: the test looks at that."""
    for one in journal.unsettled():
        journal.settle(one.number)
    journal.close()


def _database(exporter: Exporter) -> database.Database:
    with connected(exporter.place, exporter.access) as connection:
        return database.database_of(connection, SUFFIX)


def test_a_server_that_may_not_open_pipes_writes_a_file_that_is_watched(
    server: Lone, tmp_path: Path, state: Path
) -> None:
    journal = FlightJournal()
    # The pipe is root's alone: the server gets the refusal that a policy of the system would give.
    exporter = replace(exporter_of(server, Limits(0), journal), owner=(0, 0))
    exporter.entries(_database(exporter), tmp_path / "entries")
    assert inspect_file(tmp_path / "entries")["accepted"] >= PEOPLE
    if server.kind != "mdb":
        exported_changelog(exporter, server, tmp_path / "changelog")
        assert inspect_file(tmp_path / "changelog")["accepted"] >= PEOPLE
    if server.kind == "bdb":
        with small_disk(server.exports, "64m", 40 << 20), pytest.raises(Problem, match="not enough room"):
            exported_changelog(replace(exporter, limits=Limits()), server, tmp_path / "never")
        with small_disk(server.exports, "64m", 1 << 20), pytest.raises(Problem, match="is larger than 100,000 bytes"):
            exporter_ = replace(exporter, limits=Limits(0, 100_000))
            exporter_.entries(_database(exporter_), tmp_path / "never")
    settle(journal)
    assert left_behind(server, tmp_path, state) == []


@pytest.mark.parametrize(
    ("how", "flying"), [(signal.SIGKILL, "level"), (signal.SIGTERM, "pipe"), (signal.SIGINT, "task")]
)
def test_a_collection_that_is_ended_with_something_in_flight_leaves_the_server_as_before(
    server: Lone, tmp_path: Path, state: Path, how: signal.Signals, flying: str
) -> None:
    if server.kind != "bdb":
        pytest.skip("one server is enough here: the slow test takes all")
    caught = False
    for number in range(5):  # a fast server may have ended before the signal comes
        process = collecting(server, tmp_path / f"now{number}")
        try:
            while flying not in written(state) and process.poll() is None:
                time.sleep(0.005)
            process.send_signal(how)
            said = process.communicate(timeout=60)[0]
        finally:
            process.kill()
            process.wait()
        until("the pipe is gone", lambda: on_disk(server) == [], 30)  # also without another run
        if how == signal.SIGKILL:
            again = collected(server, tmp_path / f"again{number}")
            caught = "after an earlier run that was killed: the level of" in again
        else:
            caught = process.returncode == 130
        assert left_behind(server, tmp_path, state) == [], said
        if caught:
            break
    assert caught, said
    assert server.answers()


def written(state: Path) -> set[str]:
    """Of which kind the things are that the journals of runs name."""
    found: set[str] = set()
    for path in state.glob("*"):
        with suppress(FileNotFoundError):
            found.update(re.findall(r'"what": "(\w+)"', path.read_text()))
    return found


def course(server: Lone, into: Path) -> tuple[float, float]:
    """After how many seconds a collection begins to read, and ends."""
    began = time.monotonic()
    process = collecting(server, into)
    assert process.stdout
    assert "reading" in process.stdout.readline()
    reads = time.monotonic() - began
    process.communicate(timeout=120)
    return reads, time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_whatever_ends_a_collection_the_server_is_as_before(
    server: Lone, tmp_path: Path, state: Path, how: signal.Signals
) -> None:
    # The quicker of two: the first one finds nothing in memory, and moments behind the end of a run show nothing.
    reads, whole = min((course(server, tmp_path / f"whole{number}") for number in range(2)), key=lambda one: one[1])
    ended, mended = 0, 0
    for number in range(MOMENTS):
        process = collecting(server, tmp_path / f"now{number}")
        assert process.stdout
        process.stdout.readline()  # that it begins to read
        time.sleep((whole - reads) * number / MOMENTS)
        ended += process.poll() is None
        process.send_signal(how)
        said = process.communicate(timeout=60)[0]
        until("the pipe is gone", lambda: on_disk(server) == [], 30)  # also without another run
        if how == signal.SIGKILL:
            again = collected(server, tmp_path / f"again{number}")
            mended += "after an earlier run that was killed" in again
        assert left_behind(server, tmp_path, state) == [], (number, said)
    assert ended > MOMENTS / 3, "the runs were over before they were ended"
    assert server.answers()
    if how == signal.SIGKILL:
        assert mended, "no moment was one at which something was in flight"


def test_a_server_that_dies_meanwhile_is_set_back_by_the_next_run(server: Lone, tmp_path: Path, state: Path) -> None:
    if server.kind == "mdb":
        pytest.skip("nothing is switched on at this server")
    for number in range(4):  # the level is raised for a part of a second
        process = collecting(server, tmp_path / f"now{number}", "--timeout", "3")
        try:
            while "pipe" not in written(state) and process.poll() is None:
                time.sleep(0.005)
            server.kill()
            said = process.communicate(timeout=60)[0]
        finally:
            process.kill()
            process.wait()
            server.start()
        assert process.returncode in (0, 2, 3), said
        assert on_disk(server) == []
        if server.setting(LEVEL) != "16384":
            break
    else:
        pytest.skip("the server had never written its configuration yet")
    assert list(state.iterdir()), "what is still switched on is written down"
    again = collected(server, tmp_path / "again")
    assert "the level of the errors log is 16384 again" in again
    assert left_behind(server, tmp_path, state) == []
