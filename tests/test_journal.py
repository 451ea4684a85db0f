"""One owner at a time, dead owners that are known to be dead, and a journal that survives the end of its writer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from workbench import journal
from workbench.journal import OWNER, Journal, owned, records_of
from workbench.model import Problem

BEGINS = ("begun", "resumed")
HERE = socket.gethostname()

# The lock

OWNING = """
import sys, types
house = types.ModuleType("workbench"); house.__path__ = [sys.argv[1] + "/workbench"]
sys.modules["workbench"] = house
import pathlib
from workbench.journal import owned
from workbench.model import Problem
folder = pathlib.Path(sys.argv[2])
for line in sys.stdin:
    try:
        with owned(folder) as left:
            print("took over" if left else "mine", flush=True)
            sys.stdin.readline()
    except Problem as problem:
        print(problem, flush=True)
        sys.stdin.readline()
    print("ended", flush=True)
"""

Process = subprocess.Popen[str]


def starting(folder: Path) -> Process:
    """A process that owns the folder from one line of input to the next."""
    return subprocess.Popen(
        [sys.executable, "-c", OWNING, str(ROOT), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def ask(process: Process) -> None:
    assert process.stdin
    process.stdin.write("now\n")
    process.stdin.flush()


def answer(process: Process) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def left_by(folder: Path, **other: Any) -> dict[str, Any]:
    """The record of an owner that did not end in order."""
    record = {"host": HERE, "pid": 99999999, "started": "1", "since": "2024-03-24T10:00:00+00:00", **other}
    (folder / OWNER).write_text(json.dumps(record))
    return record


def test_of_a_thousand_races_each_has_one_owner(tmp_path: Path) -> None:
    racers = [starting(tmp_path) for _ in range(3)]
    taken_over = won = 0
    winners = set()
    try:
        for race in range(1000):
            if race % 2:
                left_by(tmp_path)
            for at in range(3):
                ask(racers[(race + at) % 3])
            answers = [answer(racer) for racer in racers]
            owners = [number for number, one in enumerate(answers) if one in ("mine", "took over")]
            assert len(owners) == 1, answers
            assert all("another run works on this case" in one for one in answers if one not in ("mine", "took over"))
            taken_over += "took over" in answers
            winners.update(owners)
            won += 1
            for racer in racers:
                ask(racer)
            assert [answer(racer) for racer in racers] == ["ended"] * 3
            assert (tmp_path / OWNER).read_bytes() == b""
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    assert (won, taken_over) == (1000, 500)
    assert len(winners) > 1, "the same process always won: that was no race"


def test_an_owner_that_ended_in_order_leaves_no_record_and_a_killed_one_does(tmp_path: Path) -> None:
    with owned(tmp_path) as left:
        record = json.loads((tmp_path / OWNER).read_text())
    assert left is None
    assert (record["host"], record["pid"]) == (HERE, os.getpid()) and record["started"] and record["since"]
    with pytest.raises(ZeroDivisionError), owned(tmp_path):
        raise ZeroDivisionError
    with owned(tmp_path) as left:
        assert left is None

    process = starting(tmp_path)
    ask(process)
    assert answer(process) == "mine"
    with pytest.raises(Problem, match=f"process {process.pid} on {HERE}"), owned(tmp_path):
        pass
    process.kill()  # not waited for: until its parent does that, there is a process of that number and start
    for _ in range(3):
        try:
            with owned(tmp_path) as left:
                break
        except Problem:
            left = None
            time.sleep(0.1)
    assert left and left.pid == process.pid
    process.wait()


def test_an_owner_on_another_machine_is_taken_over_only_by_name(tmp_path: Path) -> None:
    record = left_by(tmp_path, host="elsewhere", pid=12)
    for name in (None, "elsewhere:13", "elsewhere", f"{HERE}:12", "12", ""):
        with (
            pytest.raises(Problem, match=r"another machine.*process 12 on elsewhere.*elsewhere:12"),
            owned(tmp_path, name),
        ):
            pass
        assert json.loads((tmp_path / OWNER).read_text()) == record
    with owned(tmp_path, "elsewhere:12") as left:
        assert left and (left.host, left.pid) == ("elsewhere", 12)
    with owned(tmp_path) as left:
        assert left is None


def test_an_owner_that_lives_is_not_taken_over_though_its_lock_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that does not lock."""
    monkeypatch.setattr(journal.time, "sleep", lambda seconds: None)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        left_by(tmp_path, pid=other.pid, started=journal._started(other.pid))
        with (
            pytest.raises(Problem, match=f"does not lock.*process {other.pid}"),
            owned(tmp_path, f"{HERE}:{other.pid}"),
        ):
            pass
        left_by(tmp_path, pid=other.pid, started="1")  # the number was given to another process since
        with owned(tmp_path) as left:
            assert left and left.pid == other.pid
    finally:
        other.kill()
        left_by(tmp_path, pid=other.pid, started=journal._started(other.pid))
        other.wait()
    with owned(tmp_path) as left:
        assert left


def test_where_there_is_no_proc_the_start_of_a_process_is_known_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_PROCESSES", Path("/nowhere"))
    told = journal._started(os.getpid())
    assert told and told == journal._started(os.getpid())
    assert journal._started(99999999) is None
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(journal.subprocess, "run", absent)
    assert journal._started(os.getpid()) is None


def absent(*_: object, **__: object) -> None:
    raise FileNotFoundError


@pytest.mark.parametrize(
    "text", ["", "{", '{"host": "a"}', "[]", '{"host": "else", "pid": "x", "started": "1", "since": ""}']
)
def test_half_a_record_names_nobody(text: str, tmp_path: Path) -> None:
    (tmp_path / OWNER).write_text(text)
    with owned(tmp_path) as left:
        assert left is None


# The journal


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert records_of(path, BEGINS) == [] and not path.exists()
    book = Journal(path, BEGINS)
    first = book.append("begun", "p1", who="näme\n\u202e")
    second = book.append("done", "p1", step="1", memo={"a": (1, 2)})
    assert [first["n"], second["n"], second["memo"]] == [1, 2, {"a": [1, 2]}]
    third = Journal(path, BEGINS).append("begun", "p2")
    assert records_of(path, BEGINS) == [first, second, third]
    assert path.read_bytes().count(b"\n") == 3 and path.read_bytes().isascii()


def test_a_record_is_on_the_disk_before_anything_else_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file after each record, and the folder once a run: the run that made the file may not have come to that."""
    seen: list[str] = []
    path = tmp_path / "journal.jsonl"
    monkeypatch.setattr(os, "fsync", lambda at: seen.append(os.path.basename(os.readlink(f"/proc/self/fd/{at}"))))
    for _ in range(2):
        book = Journal(path, BEGINS)
        book.append("begun", "p")
        book.append("done", "p")
    assert seen == ["journal.jsonl", tmp_path.name, "journal.jsonl"] * 2


def test_each_record_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, seen = os.write, []
    monkeypatch.setattr(os, "write", lambda at, data: seen.append(data) or write(at, data))
    book = Journal(tmp_path / "j", BEGINS)
    book.append("begun", "p", text="x" * 100_000)
    book.append("done", "p")
    assert len(seen) == 2 and b"".join(seen) == (tmp_path / "j").read_bytes()


def test_a_run_begins_with_a_record_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a run begins with"):
        Journal(tmp_path / "j", BEGINS).append("done", "p")


def test_what_was_cut_never_becomes_a_record_and_stays(tmp_path: Path) -> None:
    """Cut at any byte, then cut again at any byte of what the next run wrote, with the end of the first cut."""
    path = tmp_path / "j"
    Journal(path, BEGINS).append("begun", "p")
    whole = path.read_bytes()
    Journal(path, BEGINS).append("begun", "q")
    both = path.read_bytes()
    for cut in range(len(whole), len(both)):
        path.write_bytes(both[:cut])
        assert [one["plan"] for one in records_of(path, BEGINS)] == ["p"]
        Journal(path, BEGINS).append("resumed", "r")
        after = path.read_bytes()
        assert after.startswith(both[:cut])
        assert [(one["n"], one["plan"]) for one in records_of(path, BEGINS)] == [(1, "p"), (2, "r")]
        for again in range(cut, len(after), 1 if cut in (len(whole) + 5, len(both) - 1) else 23):
            path.write_bytes(after[:again])
            Journal(path, BEGINS).append("resumed", "s")
            assert [(one["n"], one["plan"]) for one in records_of(path, BEGINS)] == [(1, "p"), (2, "s")]


@pytest.mark.parametrize("tail", [b"\0\0\0\0", b"\0\0}\n", b"\xff\xfe", b'{"n": 2', b"\n", b"[" * 100_000])
def test_a_tail_that_is_no_record_is_passed_over(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal(path, BEGINS).append("begun", "p")
    path.write_bytes(path.read_bytes() + tail)
    Journal(path, BEGINS).append("resumed", "p")
    assert [one["what"] for one in records_of(path, BEGINS)] == ["begun", "resumed"]
    assert tail in path.read_bytes()


def three_records(path: Path) -> list[bytes]:
    book = Journal(path, BEGINS)
    for what in ("begun", "intent", "done"):
        book.append(what, "p")
    return path.read_bytes().splitlines(keepends=True)


DAMAGE = {
    "a line that is no record in the middle of a run": lambda one, two, three: ([one, b"{\n", two, three], 1),
    "a record cut in the middle of a run": lambda one, two, three: ([one, two[:9] + b"\n", three], 1),
    "a record that is gone": lambda one, two, three: ([one, three], 1),
    "the first record gone": lambda one, two, three: ([two, three], 0),
    "a record twice": lambda one, two, three: ([one, two, two, three], 2),
    "records in another order": lambda one, two, three: ([one, three, two], 1),
    "JSON of another kind": lambda one, two, three: ([one, two, b'{"a": 1}\n', three], 2),
    "a list": lambda one, two, three: ([one, two, three, b"[1]\n"], 3),
    "a number that is text": lambda one, two, three: ([one, two.replace(b'"n": 2', b'"n": "2"')], 1),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_with_its_place(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines, at = DAMAGE[damage](*three_records(path))
    path.write_bytes(b"".join(lines))
    offset = sum(map(len, lines[:at]))
    for read in (records_of, Journal):
        with pytest.raises(Problem, match=rf"damaged.*\({path}:{offset}\)"):
            read(path, BEGINS)


def test_after_a_write_that_failed_the_run_writes_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j"
    book = Journal(path, BEGINS)
    book.append("begun", "p")
    write = os.write
    monkeypatch.setattr(os, "write", lambda at, data: write(at, data[:10]))
    with pytest.raises(Problem, match="cannot be written"):
        book.append("done", "p")
    monkeypatch.undo()
    before = path.read_bytes()
    with pytest.raises(Problem, match="could not be written before"):
        book.append("done", "p")
    assert path.read_bytes() == before
    Journal(path, BEGINS).append("resumed", "p")
    assert [one["what"] for one in records_of(path, BEGINS)] == ["begun", "resumed"]


def test_ctrl_c_while_a_record_is_written_leaves_it_to_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    book = Journal(tmp_path / "j", BEGINS)
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        book.append("begun", "p")
    monkeypatch.undo()
    with pytest.raises(Problem, match="could not be written before"):
        book.append("begun", "p")
    Journal(tmp_path / "j", BEGINS).append("resumed", "p")
    assert [one["n"] for one in records_of(tmp_path / "j", BEGINS)] == [1, 2]
