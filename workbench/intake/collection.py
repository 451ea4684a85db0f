"""From live servers to an input folder: in which order, what becomes of one that does not answer, what moved meanwhile.

Read-only replicas are read before those that feed them: whatever a consumer shows was sent by a supplier that is read
later, so that no change seems to come from nowhere. A change that only the supplier shows may simply have been made in
between: at the end all vectors are read once more, and what moved is told.

The folder appears whole, by one rename. Its `case.yaml` names the servers of the files, and the order and the times:

    collected:
    - server: s1
      from: '2026-11-25T07:28:38.993+00:00'         when its reading began
      until: '2026-11-25T07:28:39.906+00:00'
      moved_to: {dc=x: {'1': 6b068b7b000500010000}} what its vector claimed at the end, where that was another
      read_at:                                      the moment just before each file was read: what is younger is not in it
        s1.changelog.ldif: '2026-11-25T07:28:39.012+00:00'
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from workbench.intake.disk_room import Limits
from workbench.intake.in_flight import FlightJournal
from workbench.intake.signals import undisturbed
from workbench.model import Problem
from workbench.safety import LONGEST_YAML, printable, to_yaml

Vectors = Mapping[str, Mapping[str, str]]
"""Suffix -> origin -> the highest position that a server claims."""


@dataclass(frozen=True)
class Address:
    """One server to collect from: an instance of this machine by its name, or a URL."""

    name: str | None
    instance: str | None = None
    url: str | None = None
    folder: Path | None = None
    """Where the instances of this machine are looked for; None: where the system has them."""


@dataclass(frozen=True)
class Access:
    """How the servers are reached.

    password  gives it when it is needed; it is asked for once
    tls       True: always, False: never, None: wherever a password would otherwise cross a network in clear
    timeout   seconds for every answer; `patience` for what the server has to write itself
    """

    user: str | None = None
    password: Callable[[], str] = str
    ca_file: Path | None = None
    tls: bool | None = None
    timeout: float = 30
    patience: float = 600


@dataclass(frozen=True)
class Wanted:
    """What to collect besides vectors, links and logs.

    limits    what has to stay free on disks, and how large an export may become
    since     leave out rotated logs that ended before
    entries   the entries with the state of their values, too
    verbose   have the servers say more of their replication while they write their logs
    records   the records of physical logs, without their content, too
    """

    since: datetime | None = None
    entries: bool = False
    verbose: bool = False
    records: bool = False
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Survey:
    """What is known of a server before it is read: `rank` orders the reading, 0 for what feeds nobody."""

    role: str
    rank: int
    vectors: Vectors


@dataclass
class Gathered:
    """What was read of a server.

    files    name of each file -> the suffix it is about, None if it is about all. A file that several servers name, one table
             for all, is of none of them: its rows name theirs
    read_at  name of a file -> the moment just before its reading began; a file that is not named was read from the beginning
             of the reading of its server on
    mended   what an earlier run that was killed had left behind, and was put back
    without  what could not be had as things are: no fault of the server
    failed   what the server should have given, and did not
    """

    files: dict[str, str | None] = field(default_factory=dict)
    read_at: dict[str, datetime] = field(default_factory=dict)
    mended: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def reading(self, file: str) -> None:
        """Note the moment before a file is read; call it right before."""
        self.read_at[file] = now()


class Servers(Protocol):
    """The servers of one collection as their system reaches them. What fails raises Problem.

    `survey` of different servers may run at the same time.
    """

    @property
    def names(self) -> Sequence[str]:
        """The servers, once the first of them was asked where it names the others."""

    def survey(self, name: str) -> Survey:
        """Reach the server and say what it is."""

    def gather(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        """Write what the server has into files of the folder: their names begin with the prefix and a dot, or are told."""

    def left_behind(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        """What can be had of a server that does not answer."""

    def vectors(self, name: str) -> Vectors:
        """What the server claims to hold now."""

    def close(self) -> None:
        """Let go of the servers."""


@dataclass
class Reading:
    """How one server was read."""

    server: str
    role: str
    began: datetime
    ended: datetime
    gathered: Gathered
    down: str = ""
    """Why nothing is known of it; empty for a server that answered."""
    vectors: Vectors = field(default_factory=dict)
    moved: Vectors = field(default_factory=dict)
    """What its vectors claimed at the end, where that was no longer what they had claimed before it was read."""

    @property
    def whole(self) -> bool:
        """True if the server answered and gave all that it should have."""
        return not self.down and not self.gathered.failed


def collect(
    servers: Servers, system: str, into: Path, wanted: Wanted, told: Callable[[str], None] = lambda line: None
) -> list[Reading]:
    """Read the servers into a folder, consumers first; the readings in that order, those that did not answer last.

    `told` hears what is being done. Raises Problem, and leaves no folder, if not one server answered.
    """
    with _appearing(into, wanted.limits) as folder:
        surveys, silent = _surveyed(servers)
        if not surveys:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in silent.items())
            raise Problem(f"no server could be read: {reasons}", str(into), "nothing was written")
        prefixes = _prefixes(servers.names)
        readings = []
        for name in sorted(surveys, key=lambda name: (surveys[name].rank, name)):
            told(f"{name} ({surveys[name].role})")
            readings.append(_read(servers, name, surveys[name], folder, prefixes[name], wanted))
        for reading in readings:
            if not reading.down:
                _read_again(servers, reading)
        for name, reason in silent.items():
            readings.append(_down(servers, name, reason, folder, prefixes[name], wanted))
        (folder / "case.yaml").write_text(_about(system, readings), encoding="utf-8")
    return readings


def _surveyed(servers: Servers) -> tuple[dict[str, Survey], dict[str, str]]:
    """What is known of the servers that answer, and why the others do not."""
    surveys: dict[str, Survey] = {}
    silent: dict[str, str] = {}

    def one(name: str) -> Survey | Problem:
        try:
            return servers.survey(name)
        except Problem as problem:
            return problem

    # At the same time, because each server that is down costs a whole time-out.
    with ThreadPoolExecutor(min(16, max(1, len(servers.names)))) as pool:
        for name, found in zip(servers.names, pool.map(one, servers.names), strict=True):
            if isinstance(found, Problem):
                silent[name] = printable(str(found))
            else:
                surveys[name] = found
    return surveys, silent


def _read(servers: Servers, name: str, survey: Survey, folder: Path, prefix: str, wanted: Wanted) -> Reading:
    began = now()
    try:
        # The survey may be minutes old.
        before = servers.vectors(name)
    except Problem as problem:
        return replace(_down(servers, name, printable(str(problem)), folder, prefix, wanted), role=survey.role)
    try:
        gathered = servers.gather(name, folder, prefix, wanted)
    except Problem as problem:
        gathered = Gathered(failed=[printable(str(problem))])
    for file in folder.glob(f"{prefix}.*"):  # also what was written before it failed
        gathered.files.setdefault(file.name, None)
    return Reading(name, survey.role, began, now(), gathered, vectors=before)


def _read_again(servers: Servers, reading: Reading) -> None:
    try:
        last = servers.vectors(reading.server)
    except Problem as problem:
        reading.gathered.failed.append(f"read again at the end: {printable(str(problem))}")
        return
    moved = {
        suffix: {origin: position for origin, position in vector.items() if was.get(origin) != position}
        for suffix, vector in last.items()
        for was in [reading.vectors.get(suffix, {})]
    }
    reading.moved = {suffix: vector for suffix, vector in moved.items() if vector}


def _down(servers: Servers, name: str, reason: str, folder: Path, prefix: str, wanted: Wanted) -> Reading:
    began = now()
    try:
        gathered = servers.left_behind(name, folder, prefix, wanted)
    except Problem as problem:
        gathered = Gathered(failed=[printable(str(problem))])
    file = f"{prefix}.DOWN"
    (folder / file).write_text(reason + "\n", encoding="utf-8")
    gathered.files[file] = None
    return Reading(name, "unknown", began, now(), gathered, down=reason)


def _about(system: str, readings: Sequence[Reading]) -> str:
    """The text of case.yaml; without the time of each file where there are so many that nobody could read it again."""
    about = _case_yaml(readings)
    text = to_yaml({"system": system, **about})
    if len(text.encode()) > LONGEST_YAML:
        for one in about["collected"]:
            del one["read_at"]
        text = to_yaml({"system": system, **about})
    return text


def _case_yaml(readings: Sequence[Reading]) -> dict[str, Any]:
    """Whose the files are, and how they were read."""
    servers: list[dict[str, Any]] = []
    named = Counter(file for reading in readings for file in reading.gathered.files)
    for reading in readings:
        by_suffix: dict[str | None, list[str]] = {}
        for file, suffix in sorted(reading.gathered.files.items()):
            if named[file] == 1:
                by_suffix.setdefault(suffix, []).append(file)
        for suffix, files in by_suffix.items():
            servers.append({"name": reading.server, "files": files, **({"suffix": suffix} if suffix else {})})
    collected = []
    for reading in readings:
        times = {
            "from": reading.began.isoformat("T", "milliseconds"),
            "until": reading.ended.isoformat("T", "milliseconds"),
        }
        one: dict[str, Any] = {"server": reading.server, "role": reading.role, **times}
        gathered = reading.gathered
        notes = {
            "down": reading.down,
            "failed": gathered.failed,
            "without": gathered.without,
            "mended": gathered.mended,
        }
        one |= {key: note for key, note in notes.items() if note}
        if reading.moved:
            one["moved_to"] = {suffix: dict(vector) for suffix, vector in reading.moved.items()}
        read = {file: gathered.read_at.get(file, reading.began) for file in sorted(gathered.files)}
        one["read_at"] = {file: moment.isoformat("T", "milliseconds") for file, moment in read.items()}
        collected.append(one)
    return {"servers": servers, "collected": collected}


def _prefixes(names: Sequence[str]) -> dict[str, str]:
    """What the file names of each server begin with: no two alike, also where letters' case does not count."""
    prefixes: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]", "-", name).lstrip("-") or "server"
        number, prefix = 1, plain
        while prefix.lower() in taken:
            number += 1
            prefix = f"{plain}-{number}"
        taken.add(prefix.lower())
        prefixes[name] = prefix
    return prefixes


@contextmanager
def _appearing(into: Path, limits: Limits) -> Iterator[Path]:
    """A folder beside `into` that takes its place when the block has ended, and is gone if it fails.

    Only its owner may read it: what servers hold is nobody else's business. A run that is killed leaves it: the next run,
    into whatever folder, removes it.
    """
    check_free(into)
    _remove_abandoned()
    into.parent.mkdir(parents=True, exist_ok=True)
    limits.check(into.parent, None, "the collection")
    journal = FlightJournal()
    folder = into.parent / f".{into.name}.{secrets.token_hex(6)}"
    try:
        journal.note(_FOLDER, str(folder))
        folder.mkdir(mode=0o700)
        yield folder
        try:
            os.replace(folder, into)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise _taken(into, _EACH) from None
    except BaseException:
        with undisturbed():
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        with undisturbed():
            _close(journal)


def _remove_abandoned() -> None:
    """The half-made folders of runs that were killed."""
    for journal in FlightJournal.of_dead_runs():
        for one in journal.unsettled():
            if one.what == _FOLDER:
                shutil.rmtree(one.where, ignore_errors=True)
        _close(journal)


def _close(journal: FlightJournal) -> None:
    """Cross out the folders that are not there any more, and let go of the journal."""
    for one in journal.unsettled():
        if one.what == _FOLDER and not Path(one.where).exists():
            journal.settle(one.number)
    journal.close()


_EACH = "each collection has its own"
_FOLDER = "folder"


def check_free(into: Path, why: str = _EACH) -> None:
    """Raise Problem unless the folder is absent or empty: one folder holds one moment."""
    if into.is_symlink() or (into.exists() and (not into.is_dir() or any(into.iterdir()))):
        raise _taken(into, why)


def _taken(into: Path, why: str) -> Problem:
    return Problem("this is there already", str(into), f"give a folder that is absent or empty: {why}")


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)
