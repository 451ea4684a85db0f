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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from workbench.model import Problem

OWNER = ".owner"
DRAFT = ".new"
"""Names of the lock, and of the ending of a file that is not yet whole: what a killed run may leave behind."""


def write_whole(path: Path, text: Iterable[str]) -> None:
    """Replace the file by one rename, after its content has reached the disk: readers see the old text or the new one.

    The text may come in pieces.
    """
    write_together({path: text})


def write_together(texts: Mapping[Path, Iterable[str]]) -> None:
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
            os.chmod(temporary, 0o666 & ~_umask())
        for temporary, path in drafts:
            os.replace(temporary, path)
    except BaseException:
        for temporary, _ in drafts:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        raise
    for folder in {path.parent for path in texts}:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
    with open(folder / OWNER, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Problem(
                "another run works on this case", _owner(file.read()), "wait until it has ended, or end it"
            ) from None
        if not _same_file(file.fileno(), folder / OWNER):
            # A first load that failed took its folder away between our opening and our locking: this lock guards nothing.
            raise Problem("another run has just ended and taken this case away", str(folder), "start again")
        file.truncate(0)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        file.write(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": since}))
        file.flush()
        yield


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _owner(text: str) -> str:
    try:
        owner = json.loads(text)
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return "owner unknown"
