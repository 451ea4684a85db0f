"""Files that are whole or absent, a journal that outlives its writers, and one owner at a time.

What the workbench knows of a case it keeps in a few files. A reader must never see half of one, what was done must be
known after any end, and two loads or repairs must never write into one case at once.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.model import Problem

OWNER = ".owner"
DRAFT = ".new"
"""Names of the lock, and of the ending of a file that is not yet whole: what a killed run may leave behind."""


def write_whole(path: Path, text: Iterable[str], private: bool = False) -> None:
    """Replace the file by one rename, after its content has reached the disk: readers see the old text or the new one.

    The text may come in pieces. `private`: nobody but its owner may read it, at no time.
    """
    write_together({path: text}, private)


def write_together(texts: Mapping[Path, Iterable[str]], private: bool = False) -> None:
    """Replace files of one folder or of several, in this order, as `write_whole` does each.

    All texts are on the disk before the first name changes: a full disk changes none of the files.
    """
    drafts: list[tuple[str, Path]] = []
    try:
        for path, text in texts.items():
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=DRAFT)
            drafts.append((temporary, path))
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines([text] if isinstance(text, str) else text)
                file.flush()
                os.fsync(file.fileno())
            if not private:  # a temporary file is, from its beginning
                os.chmod(temporary, 0o666 & ~umask())
        for temporary, path in drafts:
            os.replace(temporary, path)
    except BaseException:
        for temporary, _ in drafts:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        raise
    for folder in {path.parent for path in texts}:
        _names_to_disk(folder)


def _names_to_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def umask() -> int:
    """The bits that this user keeps from others."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


Record = dict[str, Any]

_TORN = b" (torn)\n"
"""Ends a line that a killed run left without its end. A bare line end would not do: what was cut just before its line end
would become a record after all, when the run that found it has already gone on without it."""


class Journal:
    """What was done, in the order in which it was done: one JSON line each, on the disk before the next thing happens.

    A line that has no end, or is not JSON, was being written when its run ended. It is never taken for a record, and
    stays where it is; so it can stand only before a record that begins a run, or last. Anything else that is not as it
    was written raises Problem.

    records    what the file says; each has its running number `n`, when (`at`), `what` was done, and of which `plan`
    begins     the words, as in `what`, that a run begins with
    """

    def __init__(self, path: Path, begins: Collection[str]) -> None:
        self.path, self.begins = path, begins
        self.records, self._torn = _read(path, begins)
        self._begun = self._broken = False

    @property
    def broken(self) -> bool:
        """True if the writing of a record was interrupted: only a journal that is read anew knows how much of it is there."""
        return self._broken

    @property
    def begun(self) -> bool:
        """True if a run has begun with this object."""
        return self._begun

    def append(self, what: str, plan: str, **fields: Any) -> Record:
        """Write one record, and return it as it will be read again; raises Problem if it may not be on the disk.

        After that nothing more is taken: only another run knows, by reading, how much of it is there.
        """
        if not self._begun and what not in self.begins:
            raise ValueError(f"a run begins with one of {sorted(self.begins)}, not with {what}")
        if self._broken:
            raise Problem(
                "the journal could not be written before", str(self.path), "start again: it is read anew then"
            )
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"n": len(self.records) + 1, "at": at, "what": what, "plan": plan, **fields})
        self._broken = True  # until it is on the disk: Ctrl-C may come between any two steps
        try:
            self._write((_TORN if self._torn else b"") + line.encode() + b"\n")
        except OSError as error:
            do = "nothing more is done without it: mend that and start again"
            raise Problem(f"the journal cannot be written: {error.strerror}", str(self.path), do) from error
        self._broken = self._torn = False
        self._begun = True
        record: Record = json.loads(line)
        self.records.append(record)
        return record

    def _write(self, line: bytes) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(0, "only a part of a line was taken")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if not self._begun:  # also if the file was there: the run that made it may have been killed before this
            _names_to_disk(self.path.parent)


def records_of(path: Path, begins: Collection[str]) -> list[Record]:
    """What a journal says; of one that is being written, what it says so far. Raises Problem if it is damaged."""
    return _read(path, begins)[0]


def _read(path: Path, begins: Collection[str]) -> tuple[list[Record], bool]:
    """The records, and whether the last line has no end."""
    records: list[Record] = []
    torn_at, offset, line = None, 0, b"\n"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return records, False
    for line in io.BytesIO(data):
        record = _record(line, path, offset)
        if record is None:
            torn_at = offset if torn_at is None else torn_at
        elif torn_at is not None and record["what"] not in begins:
            raise _damaged(path, torn_at, "a line that is no record, in the middle of a run")
        elif record["n"] != len(records) + 1:
            raise _damaged(path, offset, f"record {record['n']} where {len(records) + 1} is due")
        else:
            torn_at = None
            records.append(record)
        offset += len(line)
    return records, not line.endswith(b"\n")


def _record(line: bytes, path: Path, offset: int) -> Record | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    kinds = {"n": int, "at": str, "what": str, "plan": str}
    if not isinstance(record, dict) or any(type(record.get(key)) is not kind for key, kind in kinds.items()):
        raise _damaged(path, offset, "a line that this program did not write")
    return record


def _damaged(path: Path, offset: int, what: str) -> Problem:
    do = "what was done cannot be told from it: look at the servers, put the journal aside, collect and plan again"
    return Problem(f"the journal is damaged: {what}", f"{path}:{offset}", do)


@dataclass(frozen=True)
class Owner:
    """Who works on a folder, or did when its machine or process ended.

    started    when the process was started, in the words of its machine: another process that was given the same
               number later differs in it; None if the machine does not tell
    """

    host: str
    pid: int
    started: str | None
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


class AtWork(Problem):
    """Somebody else owns the folder at this moment: what was asked for may well be what they do."""


@contextmanager
def owned(folder: Path, dead_owner: str | None = None) -> Iterator[Owner | None]:
    """Own the folder while the block runs; raises Problem, naming the owner, if somebody else does.

    The kernel holds the lock, so it ends with its process: nobody has to guess from a time or a pid whether an owner
    still lives. An owner that ended in order leaves no record; the block is given the dead one whose record was found.
    A lock may not reach from one machine to another: from an owner elsewhere the folder is taken over only if
    `dead_owner` names exactly that one, as HOST:PID.
    """
    with open(folder / OWNER, "a+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = str(_owner(file.read()) or "owner unknown")
            raise AtWork("another run works on this case", owner, "wait until it has ended, or end it") from None
        if not _same_file(file.fileno(), folder / OWNER):
            # A first load that failed took its folder away between our opening and our locking: this lock guards nothing.
            raise Problem("another run has just ended and taken this case away", str(folder), "start again")
        file.seek(0)
        left = _owner(file.read())
        if left:
            _has_ended(left, folder, dead_owner)
        file.truncate(0)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        ours = Owner(socket.gethostname(), os.getpid(), _started(os.getpid()), since)
        try:
            file.write(json.dumps(asdict(ours)).encode())
            os.fsync(file.fileno())
            yield left
        finally:
            with suppress(OSError):  # then it reads as the record of one who died: true soon enough
                file.truncate(0)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold this lock, a file that is there only meanwhile; raises BlockingIOError if somebody else does. The kernel ends it with
    its process."""
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _same_file(file.fileno(), path):  # its holder has just ended and taken it away: this lock guards nothing
            raise BlockingIOError
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _owner(text: bytes) -> Owner | None:
    """Who the record names. Half a record names nobody: it is on the disk before its owner does anything."""
    try:
        found = json.loads(text)
        return Owner(str(found["host"]), int(found["pid"]), found["started"], str(found["since"]))
    except (ValueError, KeyError, TypeError):
        return None


def _has_ended(left: Owner, folder: Path, dead_owner: str | None) -> None:
    """Raises Problem unless the owner whose lock was free is known to be dead."""
    if left.host != socket.gethostname():
        name = f"{left.host}:{left.pid}"
        if dead_owner != name:
            do = f"see there whether it has ended; if so, name it as the dead owner, {name}, or remove {folder / OWNER}"
            raise Problem("a run on another machine has not ended in order, or still works on this case", str(left), do)
        return
    for _ in range(100):  # the lock of a killed process is free a moment before the process is gone
        if left.started is None or _started(left.pid) != left.started:
            return
        time.sleep(0.01)
    what = "another run works on this case, although its lock was free: this file system does not lock"
    raise Problem(what, str(left), "wait until it has ended, or end it")


_PROCESSES = Path("/proc")


def _started(pid: int) -> str | None:
    """When the process was started; None if there is none, if only its parent has not noted its end, or nobody tells."""
    if (_PROCESSES / "self" / "stat").exists():
        try:
            fields = (_PROCESSES / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        state, started = fields[0].decode(), fields[19].decode()
    else:
        try:
            told = subprocess.run(
                ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
                capture_output=True,
                text=True,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError:
            return None
        state, _, started = told.stdout.strip().partition(" ")
    return None if state[:1] in ("Z", "X", "") else started.strip()
