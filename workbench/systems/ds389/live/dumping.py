"""The changelog of a server with LMDB as `dbscan` prints it: for servers whose own export of it is known to write without end.

`dbscan` reads the database beside the server and asks the server for nothing. While it reads it is a reader of LMDB, and one
that is killed stays in the table of readers until the server is restarted: pages that it might read are not used again, and
the database grows. So it is never killed: its output is closed, it ignores that, and runs to its end in silence. The same
happens when this process is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.model import Problem
from workbench.systems.ds389.live.database import MDB
from workbench.systems.ds389.live.pipes import Tap

_GOES_ON = 10
"""Seconds that are waited for it to end."""


def dbscan_program(prefix: Path | None = None) -> str:
    """The program of the installation under a prefix, else that of the system. Raises Problem if there is none."""
    found = prefix and shutil.which("dbscan", path=f"{prefix / 'bin'}:{prefix / 'usr' / 'bin'}")
    found = found or shutil.which("dbscan")
    if not found:
        raise Problem("there is no dbscan", "", "install it (389-ds-base), or put it on the PATH")
    return found


@contextmanager
def dumped(program: str, database: Path, what: str, bound: int | None, seconds: float) -> Iterator[Tap]:
    """What `dbscan` prints of a database of LMDB, bounded in size and time. Raises Problem if it fails or does not end."""
    process = subprocess.Popen(
        [program, "-D", MDB, "-f", database],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
        cwd="/",
        start_new_session=True,  # else Ctrl-C would kill it
        restore_signals=False,  # a closed pipe does not end it
    )
    assert process.stdout
    try:
        os.set_blocking(process.stdout.fileno(), False)
        yield Tap(process.stdout.fileno(), what, bound, seconds, lambda: process.poll() is not None, lambda: None)
    except BaseException as stopped:
        process.stdout.close()
        if _code(process) is None:
            stopped.add_note(
                f"dbscan, process {process.pid}, reads to the end of the database in silence: do not kill it"
            )
        raise
    process.stdout.close()
    if code := _code(process):
        raise Problem(f"{what}: dbscan ended with {code}", str(database), "start as root, or as the user of the server")


def _code(process: subprocess.Popen[bytes]) -> int | None:
    """What it ended with; None if it goes on."""
    try:
        return process.wait(_GOES_ON)
    except subprocess.TimeoutExpired:
        return None
