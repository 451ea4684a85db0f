"""The log files of an instance: the one that is written now, and those that were rotated away."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from workbench.intake.disk_room import Limits
from workbench.model import Problem
from workbench.systems.ds389.live import scrubbed

_ROTATED = re.compile(r"\.(\d{8}-\d{6})(\.gz)?")


def log_files(now: Path, since: datetime | None) -> Iterator[tuple[Path, str]]:
    """The files of a log with what tells each from the others (`20261122-020000`, empty for the present one).

    A rotated file ended when it was last written; one that ended before `since` is left out.
    """
    try:
        there = sorted(now.parent.iterdir())
    except OSError as error:
        raise Problem(f"the logs cannot be read: {error.strerror}", str(now.parent), "start as root") from None
    for path in there:
        if path == now:
            yield path, ""
        elif (
            path.name.startswith(now.name)
            and (found := _ROTATED.fullmatch(path.name[len(now.name) :]))
            and (since is None or datetime.fromtimestamp(path.stat().st_mtime, UTC) >= since)
        ):
            yield path, found[1]


def copy_log(path: Path, to: Path, limits: Limits) -> None:
    """The log as it is now, without secrets and without a line that is still being written."""
    what = f"the copy of {path.name}"
    try:
        with ExitStack() as opened:
            source = opened.enter_context(open(path, "rb"))
            limits.check(to.parent, os.fstat(source.fileno()).st_size, what)
            if path.suffix == ".gz":
                limits.write(to, scrubbed.log(opened.enter_context(gzip.GzipFile(fileobj=source)), 1 << 62), what)
            else:
                limits.write(to, scrubbed.log(source, os.fstat(source.fileno()).st_size), what)
    except (OSError, EOFError) as error:
        raise Problem(f"the log cannot be read: {error}", str(path), "start as root, with room on the disk") from None
