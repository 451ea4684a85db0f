"""One statement asked of one database on one host, through an installed cdb2sql: no shell, and an end to every wait.

Names and statements are arguments of the program. A name that begins with a dash would be an option to it, and a quote would end
a text in a statement: only plain names come here (`place_of`, `place_named`).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.comdb2.naming import node_name
from workbench.systems.comdb2.secrets import SECRETS
from workbench.systems.comdb2.sql import DATABASE, HOST, is_plain

PROGRAM = "cdb2sql"
_URL = re.compile(f"comdb2://({HOST})/({DATABASE})/?", re.ASCII)
_FAILED = re.compile(r"\[.*\] failed with rc -?[0-9]+ ?(.*)", re.DOTALL)
_MOST = 1 << 26
"""Bytes of an answer. The tables of a fleet of 10,000 nodes are a few million; what is longer is no such table."""
_SHOWN = 300


@dataclass(frozen=True)
class Place:
    """A database on a host."""

    database: str
    host: str

    @property
    def name(self) -> str:
        """As the workbench names a node."""
        return node_name(self.database, self.host)


def place_of(url: str) -> Place:
    """`comdb2://HOST/DATABASE` as a place; raises Problem for all else.

    >>> place_of("comdb2://src1/shopdb").name
    'shopdb@src1'
    """
    found = _URL.fullmatch(url)
    if not found:
        raise Problem("this is not the URL of a database", printable(url), "write comdb2://HOST/DATABASE")
    return Place(found[2], found[1])


def place_named(database: str, host: str) -> Place | None:
    """A place that a table names; None where the name is not plain, and nobody may be asked by it."""
    return Place(database, host) if is_plain(node_name(database, host)) else None


class Refused(Problem):
    """The database answered, and its answer was an error."""


@dataclass(frozen=True)
class Asking:
    """Asks databases; `timeout` is the seconds that an answer may take."""

    program: str
    timeout: float

    def rows(self, place: Place, statement: str) -> list[list[str]]:
        """What the statement answers: texts, `NULL` for null."""
        with tempfile.TemporaryFile() as out:
            self._run(place, statement, out, self.timeout)
            out.seek(0)
            data = out.read(_MOST + 1)
        if len(data) > _MOST:
            raise Problem(f"an answer of more than {_MOST >> 20} MiB", place.name, "check what answers there")
        lines = data.decode("utf-8", "backslashreplace").split("\n")
        return [line.rstrip("\r").split("\t") for line in lines if line.strip()]

    def dump(self, place: Place, statement: str, file: Path, seconds: float) -> None:
        """Write what the statement answers into a file, as it comes; there is no file if it fails."""
        try:
            with file.open("w+b") as out:
                self._run(place, statement, out, seconds)
        except BaseException:
            file.unlink(missing_ok=True)
            raise

    def _run(self, place: Place, statement: str, out: IO[bytes], seconds: float) -> None:
        words = [self.program, "--host", place.host, place.database, "--set", "timezone UTC", "--tabs", statement]
        with tempfile.TemporaryFile() as errors:
            # Files, and a group of its own: what the program starts may hold a pipe open after the program was ended.
            try:
                process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, start_new_session=True
                )
            except OSError as error:
                raise Problem(f"{PROGRAM} cannot be run: {error.strerror}", self.program, "check the program") from None
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                raise Problem("no answer within the time-out", place.name, "check whether it hangs") from None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            errors.seek(0)
            said = errors.read(1 << 16).decode("utf-8", "backslashreplace").strip()
        failed = _FAILED.search(said) or _FAILED.fullmatch(_first_line(out))
        if failed:
            raise Refused(_harmless(failed[1].strip() or said), place.name)
        if code:
            do = f"run {PROGRAM} by hand there, and see what it says"
            raise Problem(_harmless(said) or f"{PROGRAM} ended with {code}", place.name, do)


def _harmless(said: str) -> str:
    return printable(SECRETS.redact(said))[:_SHOWN]


def _first_line(out: IO[bytes]) -> str:
    """The beginning of what was answered: an error may stand there, too."""
    return os.pread(out.fileno(), 1 << 12, 0).decode("utf-8", "backslashreplace").partition("\n")[0]


def asking(timeout: float) -> Asking:
    """What asks databases. Raises Problem where the program is not installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        do = "install the client tools of Comdb2, or put the files into a folder by hand: the README names them"
        raise Problem(f"{PROGRAM} is not installed", "PATH", do)
    return Asking(program, timeout)
