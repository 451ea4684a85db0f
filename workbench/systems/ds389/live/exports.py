"""What a server writes itself when it is asked: its changelog, and its entries with their state.

Both are tasks of the server that write into its `ldif` folder. They are read through a pipe there (`pipes`), so that no copy of
any password hash lies on a disk and a task that does not end can be stopped. Only where the server cannot open a pipe it
writes a file, which is watched and removed.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import BinaryIO, cast

from workbench.intake.collection import Access
from workbench.intake.disk_room import Limits
from workbench.intake.in_flight import FlightJournal
from workbench.model import Problem
from workbench.systems.ds389.live import scrubbed
from workbench.systems.ds389.live.connection import Connection, NoAnswer, Place, connected
from workbench.systems.ds389.live.database import CHANGELOG, ENTRIES, Database
from workbench.systems.ds389.live.dumping import dumped
from workbench.systems.ds389.live.pipes import Tap, held_back, pipe_at
from workbench.systems.ds389.live.undo import (
    FILE,
    LEVEL,
    TASK,
    cancel_task,
    exit_code,
    level_of,
    put_back_file,
    restore_level,
)
from workbench.systems.ds389.native import add

REPLICATION_LOG = 8192
"""The level of the errors log at which replication speaks. At this level, too, an export of the changelog begins with
what was trimmed and with the highest positions (`clpurgeruv`, `clmaxruv`)."""

_NOT_ENDED = (
    "the server may go on writing into a file without a name; look at the free space: only its restart ends that"
)

_POLL = 0.2
_ASK = 0.2
_KEPT = "10"
"""Seconds that the server keeps the entry of a task that has ended."""


@dataclass(frozen=True)
class Exporter:
    """Has one server export.

    server    what the journal calls it
    folder    where the server writes (`nsslapd-ldifdir`)
    owner     the user and the group of the server
    """

    server: str
    place: Place
    access: Access
    folder: Path
    owner: tuple[int, int]
    limits: Limits
    journal: FlightJournal

    def changelog(self, database: Database, replica: str, name: str, to: Path) -> None:
        """Write the changelog of a replica (DN of its entry, its nsDS5ReplicaName) as LDIF without secrets."""
        what, file = "the export of the changelog", self.folder / f"{_plain(name, self.place)}_cl.ldif"
        if database.changelog_loops:
            raise Problem(
                f"{what} of {database.version_text} with LMDB does not end (#5661)", self.place.url, "use dbscan"
            )
        estimate = database.estimate(CHANGELOG)
        asked = _Asked(self.place, self.access, replica)
        with _spool(self.limits, to, estimate, what, scrubbed.changelog) as spool:
            with self._pipe(file, what, estimate, asked.ended) as tap:
                asked.start(tap.asked)
                spool.fill(tap)
            asked.join(self.access.timeout)
            if asked.problem and tap.size:
                raise asked.problem
        if not tap.size:  # the server may be kept from opening pipes
            self._changelog_by_file(replica, file, to, what, estimate)

    def entries(self, database: Database, to: Path) -> None:
        """Write the entries of a backend with the state of their values, without secrets."""
        what = "the export of the entries"
        if database.entries_loop:
            told = (
                f"{what} is not begun: the suffix entry has the entry ID {database.first_id}, not 1. With LMDB such an "
                "export is reported to loop (upstream issue 7310), and nothing but a restart would end it"
            )
            raise Problem(told, self.place.url, "initialise this server from another one, or collect without --entries")
        estimate = database.estimate(ENTRIES)
        label = f"workbench-{secrets.token_hex(6)}"
        file = self.folder / f"{label}.ldif"
        with (
            connected(self.place, self.access) as server,
            _spool(self.limits, to, estimate, what, scrubbed.entries) as spool,
        ):
            ended = _SeldomAsked(lambda: exit_code(server, _task(label)) is not None)
            with (
                self._pipe(file, what, estimate, ended, drain=True) as tap,
                self._task(server, label, database, file, tap.asked, ended.known),
            ):
                spool.fill(tap)
                self._until(what, ended)
                code = exit_code(server, _task(label))
            if tap.size and code != "0":
                raise Problem(f"{what} failed with {code}", self.place.url, "look at its errors log")
        if not tap.size:
            with connected(self.place, self.access) as server:
                self._entries_by_file(server, database, to, what, estimate)

    def _entries_by_file(
        self, server: Connection, database: Database, to: Path, what: str, estimate: int | None
    ) -> None:
        self.limits.check(self.folder, estimate, what)
        label = f"workbench-{secrets.token_hex(6)}"
        file = self.folder / f"{label}.ldif"
        with self.journal.noted(FILE, str(file), aside=""):
            try:
                with self._task(server, label, database, file):
                    ended = _SeldomAsked(lambda: exit_code(server, _task(label)) is not None)
                    self._until(what, ended, file, self.limits.bound(estimate))
                    code = exit_code(server, _task(label))
                if code != "0":
                    raise Problem(f"{what} failed with {code}", self.place.url, "look at its errors log")
                self._take(file, to, scrubbed.entries, what)
            finally:
                put_back_file(file, None)

    def _changelog_by_file(self, replica: str, file: Path, to: Path, what: str, estimate: int | None) -> None:
        """A file of this name that somebody else had the server write is kept, and comes back."""
        self.limits.check(self.folder, estimate, what)
        aside = file.with_name(f".{file.name}.{secrets.token_hex(6)}") if os.path.lexists(file) else None
        with self.journal.noted(FILE, str(file), aside=str(aside or "")):
            try:
                if aside:
                    os.rename(file, aside)
                asked = _Asked(self.place, self.access, replica)
                asked.start()
                try:
                    self._until(what, asked.ended, file, self.limits.bound(estimate))
                except Problem as stopped:
                    raise Problem(f"{what} was given up: {stopped}", self.place.url, _NOT_ENDED) from None
                except BaseException as stopped:
                    stopped.add_note(f"{what} of {self.place.url} was given up: {_NOT_ENDED}")
                    raise
                if asked.problem:
                    raise asked.problem
                if not file.exists():
                    raise Problem("the server wrote no changelog", str(file), "look for cl2ldif in its errors log")
                self._take(file, to, scrubbed.changelog, what)
            finally:
                put_back_file(file, aside)

    def _pipe(
        self, file: Path, what: str, estimate: int | None, ended: Callable[[], bool], drain: bool = False
    ) -> AbstractContextManager[Tap]:
        bound = self.limits.bound(estimate)
        return pipe_at(file, self.owner, what, bound, self.access.patience, ended, self.journal, drain)

    @contextmanager
    def _task(
        self,
        server: Connection,
        label: str,
        database: Database,
        file: Path,
        asking: Callable[[], None] = lambda: None,
        over: Callable[[], None] = lambda: None,
    ) -> Iterator[None]:
        """An export of entries is begun, and cancelled if the block fails.

        asking   called right before the server is asked
        over     called when it is known, after a failure, that the server has ended the export or was never asked for it
        """
        task = _task(label)
        wanted = {"nsInstance": database.backend, "nsFilename": str(file), "nsExportReplica": "true", "ttl": _KEPT}
        values = {"objectClass": ["top", "extensibleObject"], **{name: [one] for name, one in wanted.items()}}
        with self.journal.noted(TASK, self.server, task=task):
            try:
                with held_back():  # else a task that the server does not know might still be on its way to it
                    asking()
                    server.send(add(task, values))
                yield
            except BaseException as stopped:
                with suppress(Problem), connected(self.place, self.access) as other:
                    if cancel_task(other, task) and not isinstance(stopped, NoAnswer):
                        over()
                raise

    def _until(self, what: str, ended: Callable[[], bool], file: Path | None = None, bound: int | None = None) -> None:
        """Wait, and look at the file that grows meanwhile."""
        end = time.monotonic() + self.access.patience
        while True:
            over = ended()
            if file:
                with suppress(FileNotFoundError):
                    if bound is not None and file.lstat().st_size > bound:
                        raise Problem(f"{what} is larger than {bound:,} bytes", str(file), "see what the server writes")
                self.limits.check_growth(file.parent, what)
            if over:
                return
            if time.monotonic() > end:
                do = "give it more with --patience"
                raise Problem(f"{what} takes longer than {self.access.patience:g} s", self.place.url, do)
            time.sleep(_POLL)

    def _take(self, file: Path, to: Path, without_secrets: Callable[[BinaryIO], Iterator[bytes]], what: str) -> None:
        """Read a file that the server wrote."""
        try:
            # Not through a link: the folder is the server's, and we may be root.
            with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source:
                self.limits.write(to, without_secrets(source), what)
        except OSError as error:
            do = "start as root, with room on the disk"
            raise Problem(f"cannot be read: {error.strerror}", str(file), do) from None


def dump_changelog(database: Database, program: str, limits: Limits, patience: float, to: Path) -> None:
    """Write the changelog of a database of LMDB as `dbscan` prints it, without secrets."""
    what, file = "the dump of the changelog", database.file(CHANGELOG)
    if file is None:
        raise Problem(f"{what}: the server does not say where its database lies", "", "check what the user may read")
    estimate = database.estimate(CHANGELOG)
    with (
        _spool(limits, to, estimate, what, scrubbed.dbscan) as spool,
        dumped(program, file, what, limits.bound(estimate), patience) as tap,
    ):
        spool.fill(tap)


@dataclass(frozen=True)
class _Spool:
    """A file without a name, into which an export goes as fast as it comes: a slow reader would hold the server up.

    While a server exports it holds what it reads: a page lock (Berkeley DB), pages that are not used again (LMDB). Taking the
    secrets out takes much longer than reading. A file without a name is gone with its process, whatever ends that.
    """

    limits: Limits
    file: BinaryIO
    folder: Path
    what: str

    def fill(self, tap: Tap) -> None:
        """All of the export."""
        self.limits.fill(self.file, iter(tap.read, b""), self.folder, self.what)


@contextmanager
def _spool(
    limits: Limits, to: Path, estimate: int | None, what: str, without_secrets: Callable[[BinaryIO], Iterator[bytes]]
) -> Iterator[_Spool]:
    """A spool, of which the content goes to a file, without secrets, when the block has ended well. It needs room twice."""
    limits.check(to.parent, None if estimate is None else 2 * estimate, what)
    with TemporaryFile(dir=to.parent) as file:
        yield _Spool(limits, cast(BinaryIO, file), to.parent, what)
        file.seek(0)
        limits.write(to, without_secrets(cast(BinaryIO, file)), what)


class _Asked:
    """A server is asked for its changelog; it answers when it has written all of it."""

    def __init__(self, place: Place, access: Access, replica: str) -> None:
        self._place, self._access, self._replica = place, access, replica
        self.problem: Problem | None = None
        self._asking: Callable[[], None] = lambda: None
        self._is_asked = False
        self._thread = Thread(target=self._ask, daemon=True)

    def start(self, asking: Callable[[], None] = lambda: None) -> None:
        """Ask, and go on. `asking` is called right before the server is asked, when it is reached."""
        self._asking = asking
        self._thread.start()

    def ended(self) -> bool:
        """True when the server has answered, or was not reached; one that has not answered in time may still begin."""
        over = self._thread.ident is not None and not self._thread.is_alive()
        return over and not (self._is_asked and isinstance(self.problem, NoAnswer))

    def join(self, seconds: float) -> None:
        """Wait for the answer."""
        self._thread.join(seconds)

    def _ask(self) -> None:
        try:
            with connected(self._place, self._access, self._access.patience) as server:
                self._asking()
                self._is_asked = True
                server.replace(self._replica, "nsds5Task", "CL2LDIF")
        except Problem as problem:
            self.problem = problem


class _SeldomAsked:
    """A question that costs a search, asked not more often than necessary."""

    def __init__(self, question: Callable[[], bool]) -> None:
        self._question, self._next, self._answer = question, 0.0, False

    def known(self) -> None:
        """It is so, which somebody else found out."""
        self._answer = True

    def __call__(self) -> bool:
        if not self._answer and time.monotonic() >= self._next:
            self._answer = self._question()
            self._next = time.monotonic() + _ASK
        return self._answer


def _task(label: str) -> str:
    return f"cn={label},cn=export,cn=tasks,cn=config"


def _plain(name: str, place: Place) -> str:
    if (
        not name
        or not all(letter.isascii() and (letter.isalnum() or letter == "-") for letter in name[:65])
        or name[64:]
    ):
        raise Problem(f"the server gives its replica a name that is none: {name[:80]!r}", place.url)
    return name


@contextmanager
def speaking(server: str, place: Place, access: Access, journal: FlightJournal) -> Iterator[None]:
    """Replication logging on while the block runs; the level is as it was afterwards, whatever happens in between.

    Never for a server that a hub feeds: at this level it crashes at every session that the hub begins.
    """
    with connected(place, access) as connection:
        before = level_of(connection)
        if not before.isdecimal():
            raise Problem(f"the level of the errors log is not a number: {before[:40]}", place.url)
        if int(before) & REPLICATION_LOG:
            yield
            return
        during = str(int(before) | REPLICATION_LOG)
        number = journal.note(LEVEL, server, before=before, during=during)
        try:
            connection.replace("cn=config", "nsslapd-errorlog-level", during)
            yield
        finally:
            restore_level(place, access, before)
            journal.settle(number)
