"""Files that are whole or absent, and one owner at a time.

What the workbench knows of a case it keeps in a few files. A reader must never see half of one, and two loads or
repairs must never write into one case at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from workbench.model import Problem


def write_whole(path: Path, text: str) -> None:
    """Replace the file by one rename, after its content has reached the disk: readers see the old text or the new one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Own the folder while the block runs; raises Problem, naming the owner, if somebody else does.

    The kernel holds the lock, so it ends with its process: nobody has to guess from a time or a pid whether an owner
    still lives.
    """
    with open(folder / ".owner", "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Problem(
                "another run works on this case", _owner(file.read()), "wait until it has ended, or end it"
            ) from None
        file.truncate(0)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        file.write(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": since}))
        file.flush()
        yield


def _owner(text: str) -> str:
    try:
        owner = json.loads(text)
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return "owner unknown"
