"""Room on a disk: what has to stay free, how much may be written, and a writer that stops in time.

A collector must not be what fills a disk. Before anything is begun, what it will write is estimated, and it is not begun if
less than the reserve would stay free. While it is written, the free space and the size are looked at again and again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from workbench.model import Problem

GIB = 1 << 30
_SHARE = 20
"""One part of this many of a file system stays free, at least."""
_TIMES, _MORE = 4, 256 << 20
"""A file that grows beyond this many times its estimate, and so many bytes more, is not what was estimated."""
_LOOK = 1 << 18
"""Bytes between two looks at the free space."""


@dataclass(frozen=True)
class Limits:
    """What a person may say about room.

    keep_free   bytes that stay free on every disk that is written to; None: `reserve_of` it
    largest     bytes of one file that a server writes for us; None: by its estimate
    """

    keep_free: int | None = None
    largest: int | None = None

    def bound(self, estimate: int | None) -> int | None:
        """How large a file may become; None: as large as the disk allows."""
        if self.largest is not None:
            return self.largest
        return None if estimate is None else _TIMES * estimate + _MORE

    def check(self, folder: Path, estimate: int | None, what: str) -> None:
        """Raise Problem if less than the reserve would stay free beside what will be written."""
        total, free = _space(folder)
        reserve = self._reserve(total)
        needed = estimate or 0
        if free - needed < reserve:
            size = "" if estimate is None else f", and {what} will take about {size_text(needed)}"
            raise Problem(
                f"not enough room: {size_text(free)} are free{size}; {size_text(reserve)} have to stay free",
                str(folder),
                "make room, or say with --keep-free how much has to stay free",
            )

    def check_growth(self, folder: Path, what: str) -> None:
        """Raise Problem if less than the reserve is free."""
        total, free = _space(folder)
        if free < self._reserve(total):
            raise Problem(
                f"{what} was stopped: only {size_text(free)} are free there",
                str(folder),
                "make room, or say with --keep-free how much has to stay free",
            )

    def write(self, to: Path, chunks: Iterable[bytes], what: str) -> None:
        """Write a file, and stop with a Problem before the disk is full. Half a file is removed: it would be taken for whole."""
        try:
            with open(to, "wb") as target:
                self.fill(target, chunks, to.parent, what)
        except BaseException:
            to.unlink(missing_ok=True)
            raise

    def fill(self, target: BinaryIO, chunks: Iterable[bytes], folder: Path, what: str) -> None:
        """Write to an open file that is in a folder, and stop with a Problem before the disk is full."""
        unseen = 0
        try:
            for chunk in chunks:
                unseen += len(chunk)
                if unseen >= _LOOK:
                    target.flush()
                    self.check_growth(folder, what)
                    unseen = 0
                target.write(chunk)
            target.flush()
        except OSError as error:
            raise Problem(f"{what} cannot be written: {error.strerror}", str(folder), "make room on the disk") from None

    def _reserve(self, total: int) -> int:
        return reserve_of(total) if self.keep_free is None else self.keep_free


def reserve_of(total: int) -> int:
    """What has to stay free of a file system of this size: 5 % and at least 1 GiB, but never more than half of it.

    >>> reserve_of(100 * GIB) // GIB, reserve_of(8 * GIB) // GIB, reserve_of(GIB) // (1 << 20)
    (5, 1, 512)
    """
    return min(total // 2, max(GIB, total // _SHARE))


def size_text(size: int) -> str:
    """A size as people read it.

    >>> size_text(512), size_text(5 * GIB)
    ('512 bytes', '5.0 GiB')
    """
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return f"{size} bytes"


def _space(folder: Path) -> tuple[int, int]:
    """All bytes of the file system of a folder, and those that may still be written."""
    try:
        found = os.statvfs(folder)
    except OSError as error:
        raise Problem(f"free space is unknown: {error.strerror}", str(folder), "check the folder") from None
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
