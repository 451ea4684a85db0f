"""Logs of the snapshot without a transaction: an empty file, an export without rows, or nothing but starts of the server.

log of a, first snapshot    1 2 3 4 5
log of a, second snapshot   (0 bytes)        what a committed is known from the first snapshot alone
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from workbench.intake.inputs import Input
from workbench.replication.stream.diagnosis.earlier_logs import EarlierLog
from workbench.systems import format_with

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.log_comparison import Streams

_LOG = re.compile(r"(?:^|[^a-z])log(?:[^a-z]|$)")
"""What the name of an empty file looks like that was collected as a log."""


_OTHER = re.compile("err|slow|general|query|access")
"""What the name of another log looks like, which no transactions are in."""


class EmptiedLog(NamedTuple):
    """A server, the file of its present log, and the latest earlier log of it with transactions; None: there is none."""

    server: str
    file: str
    before: EarlierLog | None


def emptied_logs(streams: Streams) -> Iterator[EmptiedLog]:
    """The same of every server of the snapshot of which no log shows a transaction that was committed."""
    files: dict[str, list[Input]] = {}
    for file in streams.case.inputs:
        if file.snapshot == streams.shown.snapshot and _is_log(file):
            files.setdefault(file.server, []).append(file)
    for server, own in sorted(files.items()):
        logs = [streams.stored(server, file) for file in own if file.kind]
        if any(any(log.committed.values()) for log in logs):
            continue
        before = next(_logs_before(streams, server), None)
        if before or not any(log.sums for log in logs):  # a server that only just started has committed nothing
            yield EmptiedLog(server, own[0].file, before)


def _is_log(file: Input) -> bool:
    """True for a log by its content, or for a file without content that has the name of one."""
    if file.kind:
        return format_with(file.kind).is_log
    name = file.file.lower()
    return not file.bytes and _LOG.search(name) is not None and _OTHER.search(name) is None


def _logs_before(streams: Streams, server: str) -> Iterator[EarlierLog]:
    """The logs of a server in earlier snapshots that show transactions, the latest first."""
    for then in reversed(streams.before):
        snapshot = then.shown.snapshot
        for file in streams.case.inputs:
            if (file.server, file.snapshot) == (server, snapshot) and file.kind and format_with(file.kind).is_log:
                log = streams.stored(server, file)
                if any(log.committed.values()):
                    yield EarlierLog(server, snapshot, log, file)
