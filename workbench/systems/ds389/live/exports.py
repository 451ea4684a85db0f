"""What a server writes itself when it is asked: its changelog, and its entries with their state.

Both go through the server's own tasks into its `ldif` folder, where they can be read on its machine only. What we had it
write is taken away afterwards: it holds every password hash.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from workbench.collected.collecting import Access
from workbench.model import Problem
from workbench.systems.ds389.live import scrubbed
from workbench.systems.ds389.live.connection import Connection, Place, connected
from workbench.systems.ds389.native import add

REPLICATION_LOG = 8192
"""The level of the errors log at which replication speaks. At this level, too, an export of the changelog begins with
what was trimmed and with the highest positions (`clpurgeruv`, `clmaxruv`)."""

_NAME = re.compile(r"[0-9A-Za-z-]{1,64}")
_POLL = 0.2


def export_changelog(place: Place, access: Access, replica: str, name: str, exports: Path, to: Path) -> None:
    """Write the changelog of a replica (DN of its entry, its nsDS5ReplicaName) as LDIF without secrets."""
    if not _NAME.fullmatch(name):
        raise Problem(f"the server gives its replica a name that is none: {name[:80]!r}", place.url)
    file = exports / f"{name}_cl.ldif"
    before = _stamp(file)
    # The server answers when it has written all of it, or later: that takes as long as the changelog is large.
    with connected(place, access, access.patience) as server:
        server.replace(replica, "nsds5Task", "CL2LDIF")
        _wait("the export of the changelog", place, access.patience, lambda: not _running(server, replica))
    if _stamp(file) in (None, before):
        raise Problem("the server wrote no changelog", str(file), "look for cl2ldif in its errors log")
    _take(file, to, scrubbed.changelog, keep=before is not None)


def _running(server: Connection, replica: str) -> bool:
    (entry,) = server.search(replica, attributes=["nsds5Task"])
    return bool(entry.text("nsds5Task"))


def export_entries(place: Place, access: Access, backend: str, exports: Path, to: Path) -> None:
    """Write the entries of a backend with the state of their values, without secrets."""
    label = f"workbench-{secrets.token_hex(6)}"
    file, task = exports / f"{label}.ldif", f"cn={label},cn=export,cn=tasks,cn=config"
    wanted = {"nsInstance": backend, "nsFilename": str(file), "nsExportReplica": "true", "ttl": "60"}
    with connected(place, access) as server:
        server.send(
            add(task, {"objectClass": ["top", "extensibleObject"], **{name: [one] for name, one in wanted.items()}})
        )
        try:
            _wait("the export of the entries", place, access.patience, lambda: _exit_code(server, task) is not None)
            if (code := _exit_code(server, task)) != "0":
                raise Problem(f"the export of the entries failed with {code}", place.url, "look at its errors log")
            _take(file, to, scrubbed.entries, keep=False)
        finally:
            with suppress(OSError):
                file.unlink()


def _exit_code(server: Connection, task: str) -> str | None:
    (entry,) = server.search(task, attributes=["nsTaskExitCode"])
    return entry.text("nsTaskExitCode")


def _wait(what: str, place: Place, patience: float, done: Callable[[], bool]) -> None:
    end = time.monotonic() + patience
    while not done():
        if time.monotonic() > end:
            raise Problem(f"{what} takes longer than {patience:g} s", place.url, "give it more with --patience")
        time.sleep(_POLL)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        about = file.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror}", str(file), "start as root") from None
    return about.st_ino, about.st_mtime_ns, about.st_size


def _take(file: Path, to: Path, without_secrets: Callable[[BinaryIO], Iterator[bytes]], keep: bool) -> None:
    """Read a file that the server wrote; it goes unless one of that name was there before."""
    try:
        # Not through a link: the folder is the server's, and we may be root.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as source, open(to, "wb") as target:
            target.writelines(without_secrets(source))
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror}", str(file), "start as root, with room on the disk") from None
    finally:
        if not keep:
            with suppress(OSError):
                file.unlink()


@contextmanager
def speaking(place: Place, access: Access) -> Iterator[None]:
    """Replication logging on while the block runs; the level is as it was afterwards, whatever happens in between.

    Never for a server that a hub feeds: at this level it crashes at every session that the hub begins.
    """
    with connected(place, access) as server:
        before = _level(server)
        if not before.isdecimal():
            raise Problem(f"the level of the errors log is not a number: {before[:40]}", place.url)
        if int(before) & REPLICATION_LOG:
            yield
            return
        try:
            server.replace("cn=config", "nsslapd-errorlog-level", str(int(before) | REPLICATION_LOG))
            yield
        finally:
            _restore(place, access, before)


def _level(server: Connection) -> str:
    (config,) = server.search("cn=config", attributes=["nsslapd-errorlog-level"])
    return config.text("nsslapd-errorlog-level") or ""


def _restore(place: Place, access: Access, before: str) -> None:
    last: Problem | None = None
    for _ in range(3):
        try:
            # A connection of its own: the other one may be what failed.
            with connected(place, access) as server:
                server.replace("cn=config", "nsslapd-errorlog-level", before)
                return
        except Problem as problem:
            last = problem
            time.sleep(_POLL)
    do = f"set it by hand: dsconf INSTANCE config replace nsslapd-errorlog-level={before}"
    raise Problem(f"replication logging is still on, it could not be switched off again: {last}", place.url, do)
