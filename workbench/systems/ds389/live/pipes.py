r"""An export of a server read through a named pipe: nothing of it lies on a disk of the server, and it can be stopped.

A server that exports into a file cannot be told to stop: nothing ends a changelog export, and `nsTaskCancel` only marks the
task of an export of entries as cancelled (upstream #6552). So it is given a pipe in its `ldif` folder. When the reader goes,
for whatever reason, the server's next write fails, and a changelog export ends at once, also one that loops. (Seen on 2.3.1
with LMDB, where the export never ends: it stopped within milliseconds; the server went on as before.)

The pipe must never be left behind: a later export into the same name would wait in `open` for a reader for ever. Its name goes
as soon as the server has opened it, and not before: a server that was asked already would make a file of that name, with every
password hash in it. Until then a guard, a small process of its own that a Ctrl-C does not reach, has the pipe open, too. When
this process ends, by whatever signal, the guard takes the name away: at once if the server was not asked yet, else when it has
opened the pipe, or would have had to end the export. As long as it waits a lock is held on the pipe: nobody else takes it away.

An export of entries does not stop at a failing write; it goes on to the end of the database, on some versions with a line in
the errors log for every entry. So the guard reads the rest of it, up to the bound, into nothing.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import IO

from workbench.intake.disk_room import size_text
from workbench.intake.in_flight import FlightJournal
from workbench.intake.signals import handled
from workbench.model import Problem

PIPE = "pipe"
_GUARD = """\
import os, select, sys, time
path, aside, made, drained, grace = *sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5])
asked = False
while os.read(0, 1):
    asked = True

def named(name):
    try:
        return os.path.samestat(os.lstat(name), os.fstat(2))
    except OSError:
        return False

def opened():
    try:
        return os.read(2, 65536) != b""
    except BlockingIOError:
        return True

began = time.monotonic()
while asked and named(path) and not opened() and time.monotonic() < began + grace:
    time.sleep(0.005 if time.monotonic() < began + 5 else 0.1)
for name in (path, made):
    if named(name):
        os.unlink(name)
if os.path.lexists(aside) and not os.path.lexists(path):
    os.rename(aside, path)
while drained > 0:
    try:
        data = os.read(2, 1 << 20)
    except BlockingIOError:
        select.select([2], [], [])
        continue
    if not data:
        break
    drained -= len(data)
"""
"""Its standard input ends when this process does, and carries a byte when the server is asked; the pipe is its standard error.

It reads before it waits: of a pipe that nobody ever opened, `select` never tells an end."""

_GRACE = 5
"""Seconds that this process waits at its end for a server to open the pipe; then it leaves it to the guard."""
_OURS = re.compile(r"workbench-[0-9a-f]{12}\.ldif")
"""Names that nobody else gives."""
_LOOK = 0.05
_LARGE = 1 << 20
_DRAINED = 1 << 40
"""Bytes of the rest of an export that the guard reads if there is no bound."""


class Tap:
    """The reading end of a pipe, as a file. Raises Problem when the bound or the time is over."""

    def __init__(
        self,
        pipe: int,
        what: str,
        bound: int | None,
        seconds: float,
        ended: Callable[[], bool],
        opened: Callable[[], None],
        guard: IO[bytes] | None = None,
    ) -> None:
        self._pipe, self._what, self._bound, self._ended, self._opened = pipe, what, bound, ended, opened
        self._seconds, self._until, self._guard = seconds, time.monotonic() + seconds, guard
        self.size = 0

    def asked(self) -> None:
        """Call it right before the server is asked for the export: from then on it may open the pipe.

        Raises Problem if the pipe has been given up meanwhile: then the server must not be asked, it would write a file.
        """
        if self._guard is None:
            return
        try:
            with suppress(OSError):
                self._guard.write(b"a")
                self._guard.flush()
        except ValueError:  # closed, by another thread
            raise Problem(f"{self._what} was given up before the server was asked", "", "collect again") from None

    def read(self, size: int = -1) -> bytes:
        """The next bytes; none at the end of the export."""
        while True:
            last = self._ended()  # asked before the pipe: what was written until then is in it
            try:
                data = os.read(self._pipe, min(size, _LARGE) if size > 0 else _LARGE)
            except BlockingIOError:
                data = b""
                if not last:
                    select.select([self._pipe], [], [], _LOOK)
            else:
                if not data and self.size:
                    return b""  # the writer has closed it
                if not data and not last:
                    time.sleep(_LOOK / 10)  # nobody has opened it yet
            if data:
                if not self.size:
                    self._opened()
                self.size += len(data)
                self._check()
                return data
            if last:
                return b""
            self._check()

    def _check(self) -> None:
        if self._bound is not None and self.size > self._bound:
            do = "see what the server writes; say with --largest how much it may be"
            what = f"{self._what} was stopped: it is larger than {size_text(self._bound)}, which its database does not explain"
            raise Problem(what, "", do)
        if time.monotonic() > self._until:
            raise Problem(f"{self._what} takes longer than {self._seconds:g} s", "", "give it more with --patience")


@contextmanager
def pipe_at(
    path: Path,
    owner: tuple[int, int],
    what: str,
    bound: int | None,
    seconds: float,
    ended: Callable[[], bool],
    journal: FlightJournal,
    drain: bool = False,
) -> Iterator[Tap]:
    """A pipe of this name, ready to be opened by the server. A file of the same name is kept and comes back.

    owner   the user and group of the server
    ended   says whether the server has ended the export
    drain   the rest is read into nothing when this process does not want it any more
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    made = aside.with_name(f"{aside.name}.pipe")
    number = journal.note(PIPE, str(path), aside=str(aside), made=str(made))
    tap: Tap | None = None

    def opened() -> None:
        put_back_pipe(path, aside, made)
        if not any(map(os.path.lexists, (made, aside))):
            # Nothing is left of it, and what is written there from now on is somebody else's.
            with suppress(Problem):
                journal.settle(number)

    with _not_suspended():
        guard: subprocess.Popen[bytes] | None = None
        pipe, over = -1, False
        try:
            try:
                os.mkfifo(made, 0o600)
                if os.geteuid() == 0:
                    os.chown(made, *owner)
                pipe = os.open(made, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                fcntl.flock(pipe, fcntl.LOCK_EX | fcntl.LOCK_NB)
                guard = _guarded(path, aside, made, pipe, (bound or _DRAINED) if drain else 0, seconds)
                with suppress(OSError, AttributeError):
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _LARGE)
                if os.path.lexists(path):
                    os.rename(path, aside)
                os.rename(made, path)
            except OSError as error:
                do = "start as root, or as the user of the server"
                raise Problem(f"{what}: no pipe can be made: {error.strerror}", str(path), do) from None
            assert guard.stdin
            tap = Tap(pipe, what, bound, seconds, ended, opened, guard.stdin)
            yield tap
            over = True
        except BaseException:
            # The export may have ended, or may have been refused: then no server opens the pipe any more.
            with suppress(Problem):
                over = not (tap and tap.size) and ended()
            raise
        finally:
            if over or guard is None:
                put_back_pipe(path, aside, made)
            if pipe >= 0:
                os.close(pipe)
            if guard:
                _left_to(guard, path, drain and not over)
                if over or not is_guarded(path):
                    put_back_pipe(path, aside, made)
    journal.settle(number)


def put_back_pipe(path: Path, aside: Path, made: Path, since: datetime | None = None) -> bool:
    """Take the names of a pipe away; a server that waits for its reader goes on. What had the name before gets it back.

    since   when the pipe was noted: a file of its name that was written later is the export, for the server was asked for it.
            True if there was one, which is removed
    """
    for name in (path, made):
        with suppress(OSError):
            if _is_pipe(name):
                reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                name.unlink()
                os.close(reader)
    written = False
    with suppress(OSError):
        found = path.lstat()
        late = since is not None and (found.st_mtime > since.timestamp() or bool(_OURS.fullmatch(path.name)))
        if late and stat.S_ISREG(found.st_mode):
            path.unlink()
            written = True
    with suppress(OSError):
        if _is_pipe(aside):  # of another run: nothing comes out of it
            aside.unlink()
        elif not os.path.lexists(path):
            os.rename(aside, path)
    return written


def is_guarded(path: Path) -> bool:
    """True for a pipe of which the guard, or the run that made it, is alive."""
    try:
        if not _is_pipe(path):
            return False
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(pipe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(pipe)
    return False


def _guarded(path: Path, aside: Path, made: Path, pipe: int, drained: int, seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _GUARD, path, aside, made, str(drained), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=pipe,
        cwd="/",
        start_new_session=True,
    )


def _left_to(guard: subprocess.Popen[bytes], path: Path, drains: bool) -> None:
    """Let the guard do its work: until it has ended, or only until it has taken the name away if it reads the rest.

    If the server does not open the pipe soon, the guard goes on waiting alone.
    """
    assert guard.stdin
    guard.stdin.close()
    end = time.monotonic() + _GRACE
    while guard.poll() is None and (_is_pipe(path) or not drains) and time.monotonic() < end:
        time.sleep(_LOOK / 10)


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.lstat().st_mode)
    except OSError:
        return False


@contextmanager
def held_back() -> Iterator[None]:
    """A Ctrl-C, or an order to end, waits until the block is over: afterwards it is known what the server was asked for."""
    came: list[tuple[int, FrameType | None]] = []
    try:
        with handled(lambda *heard: came.append(heard), signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as before:
            yield
    finally:
        for number, frame in came:
            if callable(before[number]):
                before[number](number, frame)
            elif before[number] == signal.SIG_DFL:
                signal.raise_signal(number)


def _not_suspended() -> AbstractContextManager[object]:
    """Ctrl-Z would stop the server as well: it waits until somebody reads what it writes."""
    return handled(signal.SIG_IGN, signal.SIGTSTP)
