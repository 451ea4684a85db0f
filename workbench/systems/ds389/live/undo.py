"""Puts back what a collection had in flight on a server: a level, a task, a pipe, a file. Each may be done again and again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from workbench.intake.collection import Access
from workbench.intake.in_flight import InFlight
from workbench.model import Problem
from workbench.systems.ds389.live.connection import Connection, Place, connected
from workbench.systems.ds389.live.pipes import PIPE, is_guarded, put_back_pipe
from workbench.systems.ds389.native import modify

LEVEL, TASK, FILE = "level", "task", "file"
_LEVEL = "nsslapd-errorlog-level"
_POLL = 0.2
_ENDS = 10
"""Seconds that a cancelled task is given to end."""


def put_back_on_disk(one: InFlight) -> str | None:
    """Take away what lies on a disk of this machine; what was done, or None for what is on a server.

    Raises Problem for a pipe that has to stay: without it, a server that opens it later would write a file.
    """
    about = one.about
    if one.what == PIPE:
        return _put_back_pipe(Path(one.where), about, datetime.fromisoformat(one.since))
    if one.what == FILE:
        put_back_file(Path(one.where), Path(about["aside"]) if about["aside"] else None)
        return f"the export {one.where} is gone"
    return None


def _put_back_pipe(path: Path, about: Mapping[str, str], since: datetime) -> str:
    if is_guarded(path):
        do = "a process of its own takes it away when it is open, or when the export would have had to end; collect again then"
        raise Problem("a pipe still waits for the server to open it", str(path), do)
    if put_back_pipe(path, Path(about["aside"]), Path(about["made"]), since):
        return f"the server had written its export into a file instead of the pipe {path}: it is removed"
    return f"the pipe {path} is gone"


def put_back_file(path: Path, aside: Path | None) -> None:
    """Remove an export that the server wrote for us.

    aside   where the file went that had the name before; None if there was none. If it is not there, it was not moved yet,
            or is back: then the file of that name is not ours.
    """
    if aside is None:
        with suppress(FileNotFoundError):
            path.unlink()
    else:
        with suppress(FileNotFoundError):
            os.replace(aside, path)


def put_back_on_server(one: InFlight, place: Place, access: Access) -> str:
    """Set a level back, or end a task; what was done. Raises Problem if the server cannot be asked."""
    return _ON_SERVER[one.what](one.about, place, access)


def _put_back_level(about: Mapping[str, str], place: Place, access: Access) -> str:
    with connected(place, access) as server:
        now = level_of(server)
    if now != about["during"]:
        return f"the level of the errors log is {now}, not the {about['during']} that was set for a while"
    restore_level(place, access, about["before"])
    return f"the level of the errors log is {about['before']} again"


def _put_back_task(about: Mapping[str, str], place: Place, access: Access) -> str:
    with connected(place, access) as server:
        if cancel_task(server, about["task"]):
            return f"the task {about['task']} has ended"
    do = "the server does not stop an export of entries (#6552): wait for it"
    raise Problem(f"the task {about['task']} was cancelled and still runs", place.url, do)


_ON_SERVER: Mapping[str, Callable[[Mapping[str, str], Place, Access], str]] = {
    LEVEL: _put_back_level,
    TASK: _put_back_task,
}


def cancel_task(server: Connection, task: str) -> bool:
    """Cancel a task unless it has ended; True if it is gone or has ended within some seconds."""
    end = time.monotonic() + _ENDS
    cancelled = False
    while exit_code(server, task) is None:
        if not cancelled:
            with suppress(Problem):  # it may have ended meanwhile
                server.send(modify(task, ("replace", "nsTaskCancel", ["TRUE"])))
            cancelled = True
        elif time.monotonic() > end:
            return False
        else:
            time.sleep(_POLL)
    return True


def exit_code(server: Connection, task: str) -> str | None:
    """What a task ended with; None while it runs, `gone` if the server knows it no more."""
    found = server.search(task, attributes=["nsTaskExitCode"], absent=True)
    return found[0].text("nsTaskExitCode") if found else "gone"


def level_of(server: Connection) -> str:
    """The level of the errors log."""
    (config,) = server.search("cn=config", attributes=[_LEVEL])
    return config.text(_LEVEL) or ""


def restore_level(place: Place, access: Access, before: str) -> None:
    """Set the level of the errors log back, over a connection of its own: another one may be what failed."""
    last: Problem | None = None
    for _ in range(3):
        try:
            with connected(place, access) as server:
                server.replace("cn=config", _LEVEL, before)
                return
        except Problem as problem:
            last = problem
            time.sleep(_POLL)
    do = f"set it by hand: dsconf INSTANCE config replace nsslapd-errorlog-level={before}"
    raise Problem(f"replication logging is still on, it could not be switched off again: {last}", place.url, do)
