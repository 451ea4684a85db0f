"""The logs of a server that were collected in earlier snapshots, also under another name, and further ones of the same snapshot.

Of several logs of a server in one snapshot that one is the present one which goes furthest: the others were rotated, or copied
before it.

A file is named as whoever collected it chose. Two logs under different names are of one server where neither name has a log in
the other snapshot, and both are known to be the source of one origin; or where one is the log of a master now, and both have the
same under each number of a commit that both have:

    first snapshot   a.log, the source of server 1        second snapshot   a2.log, the source of server 1
    first snapshot   m.log, 101 (commit 1) ...            second snapshot   m2.log, 101 (commit 1) ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.selective_read import rows_where
from workbench.engine.streams import StreamLog
from workbench.intake.inputs import Input
from workbench.replication.stream.diagnosis.sources import ONLY_LOG

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.log_comparison import Streams


class EarlierLog(NamedTuple):
    """A log of an earlier snapshot, and its file; `server` is its name in that snapshot.

    moved  the origins of which that server was the source then, and another one is now; empty: it is a log of the same server
    """

    server: str
    snapshot: str
    log: StreamLog
    file: Input
    moved: frozenset[str] = frozenset()

    def tells_of(self, origin: str) -> bool:
        """True if it is held against the present log of an origin."""
        return origin in self.log.sums and (not self.moved or origin in self.moved)

    @property
    def place(self) -> str:
        """The file in words."""
        return log_in_words(self.server, self.snapshot)


def log_in_words(server: str, snapshot: str) -> str:
    """How sentences name the log that a server had in an earlier snapshot."""
    return f"the log of {server} of snapshot {snapshot}"


def earlier_logs(streams: Streams) -> Iterator[tuple[str, EarlierLog]]:
    """Server of the present snapshot, and each earlier log of it, in the order of the snapshots; those of this one last."""
    labels = [*streams.case.snapshots]
    before = labels[: labels.index(streams.shown.snapshot)]
    kinds = {one.server: one.log.kind for one in streams.shown.replicas if one.log}
    for label in before:
        files = [one for one in streams.case.inputs if one.snapshot == label and one.kind in kinds.values()]
        names = {file.server: file.server for file in files if file.server in kinds}
        if unnamed := {file.server for file in files} - names.keys():
            names |= {old: new for old, new in _renamed(streams, label).items() if old in unnamed}
        for file in files:
            server = names.get(file.server)
            if server is not None and kinds[server] == file.kind:
                yield server, EarlierLog(file.server, label, streams.stored(file.server, file), file)
        yield from _of_former_sources(streams, label, files)
    present = {one.server: one.log for one in streams.shown.replicas if one.log}
    for file in streams.case.inputs:
        now = present.get(file.server) if file.snapshot == streams.shown.snapshot else None
        if now is not None and now.kind == file.kind and now.file != file.file:
            snapshot = f"{file.snapshot} ({file.file})"
            yield file.server, EarlierLog(file.server, snapshot, streams.stored(file.server, file), file)


def _of_former_sources(streams: Streams, label: str, files: Sequence[Input]) -> Iterator[tuple[str, EarlierLog]]:
    """The source of an origin now, and the log of the server that was its source in an earlier snapshot.

    first snapshot    log of a, the source   1 2 3 4 5     log of b   1 2 3
    second snapshot                                        log of b, the source now   1 2 3 6 7      it never got 4 and 5
    """
    then = _then(streams, label)
    moved: dict[tuple[str, str], set[str]] = {}
    for origin in streams.origins:
        old, now = _known_source(then, origin), _known_source(streams, origin)
        if old and now and old != now and (old in streams.logs or now in then.logs):
            moved.setdefault((old, now), set()).add(origin)
    for (old, now), origins in sorted(moved.items()):
        for file in files:
            if file.server == old:
                yield now, EarlierLog(old, label, streams.stored(old, file), file, frozenset(origins))


def _then(streams: Streams, label: str) -> Streams:
    return next(then for then in streams.before if then.shown.snapshot == label)


def _renamed(streams: Streams, label: str) -> dict[str, str]:
    """Name in an earlier snapshot -> name now, of the servers that are the source of one origin in both."""
    then = _then(streams, label)
    found: dict[str, set[str]] = {}
    for origin in streams.origins:
        old, now = _known_source(then, origin), _known_source(streams, origin)
        if old and now and old not in streams.logs and now not in then.logs:
            found.setdefault(old, set()).add(now)
    for old in then.logs.keys() - streams.logs.keys():
        for now in {one.source for one in streams.applied if one.source} - then.logs.keys():
            if commits_alike(then.logs[old], streams.logs[now]):
                found.setdefault(old, set()).add(now)
    return {old: next(iter(servers)) for old, servers in found.items() if len(servers) == 1}


def commits_alike(log: StreamLog, now: StreamLog) -> bool:
    """True if two logs have something under the same number of a commit, and the same under each such number."""
    both = under_same_commits(log, now) if log.by_commit and now.by_commit else None
    if both is None or not len(both[0]):
        return False
    return all(
        bool(pc.all(pc.equal(*(rows[name] for rows in both))).as_py()) for name in ("origin", "position", "content")
    )


def under_same_commits(log: StreamLog, now: StreamLog) -> tuple[pa.Table, pa.Table]:
    """What each of two logs has under the numbers of commits that both have, in their order."""
    columns, where = ["origin", "position", "content", "commit"], pc.field("commit") > 0
    theirs, mine = (rows_where(one.parts, columns, where) for one in (log, now))
    _, there, here = np.intersect1d(theirs["commit"].to_numpy(), mine["commit"].to_numpy(), return_indices=True)
    return theirs.take(pa.array(there)), mine.take(pa.array(here))


def _known_source(streams: Streams, origin: str) -> str | None:
    """The server that is known for more than that no other log has the origin."""
    source = streams.sources.get(origin)
    return source.server if source and source.known_by not in (None, ONLY_LOG) else None
