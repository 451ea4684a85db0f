"""What a collection has in flight on servers and disks, so that nothing is left behind, not even after `kill -9`.

Whatever is switched on, started or made for a while is written into a journal before it happens, with what is needed to put
it back. The run that began it crosses it out. A run that was killed leaves its journal; the next run finds it, knows by the
kernel's lock that its owner is dead, and puts everything back that is not crossed out:

    {"n": 1, "what": "begin", ...}
    {"n": 2, "what": "level", "where": "/etc/dirsrv/slapd-ldap1/dse.ldif", "about": {"before": "16384", "during": "24576"}, ...}
    {"n": 3, "what": "end", "of": 2, ...}                 without this line the level was never set back

The journals are in `$XDG_STATE_HOME/replication-workbench`, else in `~/.local/state/replication-workbench`: one for each run
that has something in flight.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from workbench.journal import Journal
from workbench.model import Problem

_BEGIN, _END = "begin", "end"
_ENDING = ".in-flight"


@dataclass(frozen=True)
class InFlight:
    """One thing that has to be put back: of which kind, on which server or disk, and what is needed for it."""

    number: int
    what: str
    where: str
    about: Mapping[str, str]
    since: str


class FlightJournal:
    """The things in flight of one run. Thread-safe; its file is there only while something is in flight."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._journal: Journal | None = None
        self._lock = RLock()
        self._held: int | None = None

    @contextmanager
    def noted(self, what: str, where: str, **about: str) -> Iterator[None]:
        """Keep a thing in the journal while the block runs; a block that fails leaves it there for `put back`."""
        number = self.note(what, where, **about)
        yield
        self.settle(number)

    def note(self, what: str, where: str, **about: str) -> int:
        """Write down a thing before it is begun; its number. Raises Problem if that is not possible: then do not begin."""
        with self._lock:
            return int(self._opened().append(what, "", where=where, about=about)["n"])

    def settle(self, number: int) -> None:
        """Cross a thing out: it was put back."""
        with self._lock:
            if number in {one.number for one in self.unsettled()}:
                self._opened().append(_END, "", of=number)

    def unsettled(self) -> list[InFlight]:
        """What is not crossed out, the last first: things are put back in the opposite order."""
        with self._lock:
            self._read_again_if_broken()
            records = self._journal.records if self._journal else []
            ended = {record["of"] for record in records if record["what"] == _END}
            return [
                InFlight(record["n"], record["what"], record["where"], record["about"], record["at"])
                for record in reversed(records)
                if record["what"] not in (_BEGIN, _END) and record["n"] not in ended
            ]

    def close(self) -> None:
        """Let go of the journal; its file goes if nothing is left in it."""
        with self._lock:
            if self._held is None:
                return
            if not self.unsettled() and self._path:
                with suppress(OSError):
                    self._path.unlink()
            os.close(self._held)
            self._held = self._journal = None

    def _opened(self) -> Journal:
        if self._journal is None:
            try:
                self._take(self._path or state_folder() / f"{secrets.token_hex(8)}{_ENDING}", os.O_CREAT)
            except OSError as error:
                do = "set XDG_STATE_HOME to a folder that can be written"
                raise Problem(f"the journal cannot be written: {error.strerror}", str(self._path or ""), do) from None
        self._read_again_if_broken()
        assert self._journal
        if not self._journal.begun:
            self._journal.append(_BEGIN, "")
        return self._journal

    def _read_again_if_broken(self) -> None:
        """Ctrl-C, or a full disk, may have come in the middle of a record. What is in flight has to be put back all the same."""
        if self._journal and self._journal.broken and self._path:
            self._journal = Journal(self._path, (_BEGIN,))

    def _take(self, path: Path, flags: int) -> None:
        """Lock the file; raises BlockingIOError if its run is alive, FileNotFoundError if it is gone."""
        made = not path.exists()
        held = os.open(path, os.O_RDWR | os.O_NOFOLLOW | flags, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(held), path.stat()):
                raise FileNotFoundError(path)
            self._journal = Journal(path, (_BEGIN,))
            self._journal.append(_BEGIN, "")
        except BaseException:
            if made:
                with suppress(OSError):
                    path.unlink()
            os.close(held)
            self._journal = None
            raise
        self._path, self._held = path, held

    @classmethod
    def of_dead_runs(cls, unread: list[Problem] | None = None) -> list[FlightJournal]:
        """The journals of runs that were killed, locked until they are closed.

        unread  gets what keeps journals from being read: a person has to look at them
        """
        found = []
        with suppress(OSError, Problem):
            for path in sorted(state_folder().glob(f"*{_ENDING}")):
                one = cls(path)
                try:
                    one._take(path, 0)
                    found.append(one)
                except Problem as problem:
                    if unread is not None:
                        unread.append(problem)
                except OSError:
                    pass  # alive, or gone meanwhile
        return found


def state_folder() -> Path:
    """The folder of the journals, made if it is not there; only its owner can read it."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    folder = Path(home) / "replication-workbench"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
