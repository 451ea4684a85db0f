"""What a replica is past now, although an earlier snapshot shows that it could not apply it, or not as its master committed it.

    first snapshot    s applied up to commit 2, queue   103 (commit 3)                  105 (commit 5)
    second snapshot   s applied up to commit 6          it went on past commit 4: nothing shows that 104 was put into its queue

A later queue with the transaction refutes it, and so does a log of the replica that holds it whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from workbench.replication.stream.diagnosis.appliers import APPLIER, Applied, unlogged
from workbench.replication.stream.diagnosis.earlier_logs import log_in_words
from workbench.replication.stream.diagnosis.queues import Key, Row, other_contents, under_other_commits
from workbench.replication.stream.rules.segments import COMMITTED

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.log_comparison import Streams

LACKED, HAD_PART, HAD_OTHERWISE, HAD_ALONE, STOOD = "lacked", "had_part", "had_otherwise", "had_alone", "stood"
"""What an earlier snapshot shows: the queue lacked it, had a part of it, had it otherwise than the log of its master, or had
what that log does not; or the applier stood still before it."""


class PassedSince(NamedTuple):
    """A commit that a replica is past, and what an earlier snapshot shows of it.

    source  the server of its master's log; None: nothing tells which it is
    key     origin and position; None: no file has anything under that number
    place   a file that has it whole, in words; empty: none is known
    error   the one that the applier stood on
    """

    server: str
    master: str
    source: str | None
    commit: int
    key: Key | None
    why: str
    snapshot: str
    place: str = ""
    error: str | None = None

    @property
    def doubtful(self) -> bool:
        """False of what an applier stood still before: started again it does that first, unless a person skipped it."""
        return self.why != STOOD


def passed_since(streams: Streams) -> list[PassedSince]:
    """The same of every replica of the snapshot, by the last of the earlier snapshots that shows anything of it."""
    found: dict[tuple[str, str], dict[int, PassedSince]] = {}
    for then in streams.before:
        for applier in then.applied:
            known_before = found.setdefault((applier.server, applier.master), {})
            for commit in applier.queued or () if applier.whole else ():
                if commit in known_before and known_before[commit].why != STOOD:
                    del known_before[commit]
            known_before |= {each.commit: each for each in _shown(streams, then, applier)}
    now = [one for one in streams.applied if one.commit is not None]
    passed = [
        each._replace(source=one.source)
        for one in now
        for commit, each in sorted(found.get((one.server, one.master), {}).items())
        if commit <= (one.commit or 0) and one.source not in streams.history.renumbered
    ]
    return [each for each in passed if not _is_logged(streams, each)]


def _shown(streams: Streams, then: Streams, applier: Applied) -> Iterator[PassedSince]:
    """What one earlier snapshot shows of a replica."""
    if applier.commit is None or applier.queued is None or not applier.whole:
        return
    about = applier.server, applier.master, applier.source
    snapshot = then.shown.snapshot
    parts = {piece.commit: at for at, piece in applier.in_part.items() if piece.commit is not None}
    top = max([applier.commit, *applier.queued, *parts])
    for commit in range(applier.commit + 1, min(top, applier.commit + streams.limit) + 1):
        if commit in applier.queued:
            continue
        key = (streams.shown.system.origin_of(parts[commit]), parts[commit]) if commit in parts else None
        known, place, row = _under(streams, then, applier, commit)
        if row is not None and row["outcome"] != COMMITTED:
            continue  # it was taken back, or is a start of the server
        if row is not None or key is not None or not known:
            key = (row["origin"], row["position"]) if row is not None else key
            yield PassedSince(*about, commit, key, HAD_PART if commit in parts else LACKED, snapshot, place)
    log = then.logs.get(applier.source or "")
    if log is not None:
        place = log_in_words(log.server, snapshot)
        for (commit, position), origin in {
            *other_contents(applier.waiting, log),
            *under_other_commits(applier.waiting, log),
        }:
            yield PassedSince(*about, commit, (origin, position), HAD_OTHERWISE, snapshot, place)
        for (commit, position), origin in unlogged(applier, log, applier.commit, {}):
            yield PassedSince(*about, commit, (origin, position), HAD_ALONE, snapshot)
    first = min(((row["commit"], key) for key, row in applier.waiting.items()), default=None)
    if applier.stopped.get(APPLIER) and first and applier.waiting[first[1]]["outcome"] == COMMITTED:
        place = _under(streams, then, applier, first[0])[1] or f"the queue of {applier.server} of snapshot {snapshot}"
        yield PassedSince(*about, *first, STOOD, snapshot, place, applier.stopped[APPLIER])


def _under(streams: Streams, then: Streams, applier: Applied, commit: int) -> tuple[bool, str, Row | None]:
    """Whether a log shows what has the number of a commit, and the file that has it, in words, with its row there."""
    for of, snapshot in ((streams, ""), (then, f" of snapshot {then.shown.snapshot}")):
        now = [one.source for one in of.applied if (one.server, one.master) == (applier.server, applier.master)]
        log = of.logs.get(now[0] or "") if now else None
        if log is None or not log.by_commit:
            continue
        row = log.at_commit(commit)
        if row is not None and row["commit"] == commit:
            return True, f"the log of {log.server}{snapshot}", row
        if not log.lost and (log.first_commit or 0) <= commit <= (log.last_commit or 0):
            return True, "", None
    elsewhere = then.passed.get((applier.server, applier.master), {}).get(commit)
    if elsewhere is None:
        return False, "", None
    when = "" if " of snapshot " in elsewhere.place else f" of snapshot {then.shown.snapshot}"
    return True, f"{elsewhere.place}{when}", elsewhere.row


def _is_logged(streams: Streams, each: PassedSince) -> bool:
    """True if a log of the replica itself holds it whole, or shows that it lacks it: then that is said instead."""
    log = streams.logs.get(each.server)
    if log is None or each.key is None or each.why == HAD_OTHERWISE:
        return False
    row = log.rows_of(each.key[0], [each.key[1]]).get(each.key[1])
    both = streams.differences.get((each.server, each.key[0]))
    lacked = both is not None and any(lack.position == each.key[1] for lack in both.difference.inside)
    return lacked or (row is not None and row["outcome"] == COMMITTED)
