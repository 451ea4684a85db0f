"""Commits that another file has whole: the queue of another replica, or a log or a queue of an earlier snapshot.

    queue of s            103 (commit 3)                  105 (commit 5)      commit 4 is not there, and will not come
    queue of t            103 (commit 3)  104 (commit 4)  105 (commit 5)      it was 104

A file is of the same master, and of the same log of it, if both have something of it alike and nothing otherwise. So is a queue
of which the log of the master is known to be the same. What is below the first commit of that log was purged, or lost:

    log of m       106 (commit 6)  107 (commit 7)          s applied commit 2, and asks for what follows: it gets 106
    earlier log    103  104  105  106 (commits 3 to 6)     it needs 103, 104 and 105 first
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.selective_read import rows_where
from workbench.engine.streams import StreamLog
from workbench.intake.inputs import Input
from workbench.replication.stream.diagnosis.appliers import Applied, masters_in
from workbench.replication.stream.diagnosis.queues import COLUMNS, WHOLE, Key, Queue, Row, queues_of, together
from workbench.replication.stream.rules.segments import QUEUED
from workbench.systems import format_with


class Elsewhere(NamedTuple):
    """A transaction under the number of a commit, and the file that has it, in words; then one that has another one there."""

    key: Key
    row: Row
    place: str
    unlike: str = ""

    def differs(self, key: Key, row: Row) -> bool:
        """True if this is another transaction, or did not end alike."""
        return (key, row["content"], row["outcome"]) != (self.key, self.row["content"], self.row["outcome"])


class Found(NamedTuple):
    """Commit -> what another file has under it; `disputed`: of these different files have different transactions."""

    undisputed: dict[int, Elsewhere]
    disputed: dict[int, Elsewhere]


class _Witness(NamedTuple):
    """What a file has whole of the commits of one master, and the files that it was read from.

    source   the server whose log is known to be that of its master, where it is a queue of the present snapshot
    replica  snapshot, server and master of a queue; master None: of a replica of one master alone
    """

    place: str
    rows: Mapping[Key, Row]
    files: Sequence[Input]
    source: str | None = None
    replica: tuple[str, str, str | None] | None = None


def commits_elsewhere(
    case: Case, label: str, applied: Sequence[Applied], one: Applied, log: StreamLog | None = None
) -> Found:
    """What other files have of the commits that a replica passed over: behind what it applied, not in its queue.

    log  that of its master; of what a replica has in its queue that was not collected, what that begins behind counts alone
    """
    if one.commit is None or not one.whole:
        return Found({}, {})
    there = {*(one.queued or ()), *(piece.commit for piece in one.in_part.values() if piece.commit is not None)}
    begins = log.first_commit if log is not None and not log.lost else None
    upto = max([one.commit, *there, *([begins] if begins is not None else [])])
    if upto - one.commit - len({commit for commit in there if one.commit < commit <= upto}) <= 0:
        return Found({}, {})
    found: dict[int, Elsewhere] = {}
    for witness in _witnesses(case, label, applied, one, upto, log.file if log is not None else None):
        if not _agrees(witness, one, log):
            continue
        for key, row in witness.rows.items():
            if one.commit < row["commit"] < upto and row["commit"] not in there and key[1] not in one.in_part:
                first = found.setdefault(row["commit"], Elsewhere(key, row, witness.place))
                if first.differs(key, row) and not first.unlike:
                    found[row["commit"]] = first._replace(unlike=witness.place)
    return Found(
        {commit: each for commit, each in found.items() if not each.unlike},
        {commit: each for commit, each in found.items() if each.unlike},
    )


def messages_elsewhere(case: Case, label: str, applied: Sequence[Applied], one: Applied) -> dict[str, tuple[str, ...]]:
    """Position of what a queue holds in part -> the other files that have the messages it lacks, in words.

    The first file with all of them, or several that have them together; each has what the queue has of it alike.
    """
    parts = {at: piece for at, piece in one.in_part.items() if piece.missing}
    if one.queued is None or not parts:
        return {}
    mine = _messages(case, _queue_files(case, label, one.server), parts)
    upto = max([*one.queued, *(piece.commit for piece in parts.values() if piece.commit is not None)], default=0)
    found: dict[str, tuple[str, ...]] = {}
    gathered: dict[str, dict[str, dict[int, int]]] = {}
    taken: dict[str, dict[int, int]] = {}
    disputed = set[str]()
    for witness in _witnesses(case, label, applied, one, upto + 1):
        if not _agrees(witness, one):
            continue
        theirs = _messages(case, witness.files, parts)
        whole = {position for _, position in witness.rows}
        for at, piece in parts.items():
            there, here = theirs.get(at, {}), mine.get(at, {})
            if not there or any(there.get(number, here[number]) != here[number] for number in here):
                continue
            lacked = {int(number) for number in piece.missing.split() if number.isdecimal()}
            if at in whole:
                found.setdefault(at, (witness.place,))
                disputed |= {at} if taken.setdefault(at, there) != there else set()
            elif piece.commit is not None and lacked & there.keys():
                of_it = gathered.setdefault(at, {})
                if not any(other.get(n, there[n]) != there[n] for other in of_it.values() for n in there):
                    of_it[witness.place] = there
    for at, of_it in gathered.items():
        lacked = {int(number) for number in parts[at].missing.split() if number.isdecimal()}
        if at not in found and lacked <= {number for there in of_it.values() for number in there}:
            found[at] = tuple(place for place, there in of_it.items() if lacked & there.keys())
    return {at: places for at, places in found.items() if at not in disputed}


def _queue_files(case: Case, snapshot: str, server: str) -> list[Input]:
    files = (file for file in case.inputs if (file.server, file.snapshot) == (server, snapshot) and file.kind)
    return [file for file in files if format_with(file.kind).streams and not format_with(file.kind).is_log]


def _messages(case: Case, files: Sequence[Input], positions: Collection[str]) -> dict[str, dict[int, int]]:
    """Position -> number of a message -> its hash."""
    found: dict[str, dict[int, int]] = {}
    where = pc.field("position").isin(pa.array(sorted(positions), pa.string())) & pc.field("segment").is_valid()
    for file in files:
        for row in rows_where(case.parts("segments", file), ["position", "segment", "content"], where).to_pylist():
            found.setdefault(row["position"], {})[row["segment"]] = row["content"]
    return found


def said_applied(
    case: Case, label: str, applied: Sequence[Applied], one: Applied, log: StreamLog | None
) -> dict[int, str]:
    """Commit -> which replica of the same master says that it was the last that it applied: then its master sent it.

    The replica itself counts in earlier snapshots, another one where its queue is known to be of the same master.
    """
    if one.commit is None or not one.whole:
        return {}
    known = {
        witness.replica
        for witness in _witnesses(case, label, applied, one, max([one.commit, *(one.queued or ())]))
        if witness.replica is not None and _agrees(witness, one, log)
    }
    found: dict[int, str] = {}
    for row in _states(case):
        master = row["master"] if (row["snapshot"], row["server"], row["master"]) in known else None
        itself = row["snapshot"] != label and (row["server"], row["master"]) == (one.server, one.master)
        if row["commit"] is not None and (itself or (row["snapshot"], row["server"], master) in known):
            when = f" in snapshot {row['snapshot']}" if row["snapshot"] != label else ""
            found.setdefault(row["commit"], f"{row['server']} applied it{when}")
    return found


def applied_before(case: Case, label: str, one: Applied) -> tuple[int, str] | None:
    """The highest commit that a replica said to have applied in an earlier snapshot, and the snapshot, if it says less now."""
    labels = list(case.snapshots)
    before = labels[: labels.index(label)] if label in labels else []
    said = [
        (row["commit"], row["snapshot"])
        for row in _states(case)
        if row["snapshot"] in before
        and (row["server"], row["master"]) == (one.server, one.master)
        and row["commit"] is not None
    ]
    highest = max(said, default=None)
    return highest if highest and one.commit is not None and highest[0] > one.commit else None


def _states(case: Case) -> list[Row]:
    """What replicas say of their threads; rows of their queues have numbers of commits, too, and were not applied."""
    every = case.arrow("appliers").select(["snapshot", "server", "master", "commit", "part"])
    return list(every.filter(pc.invert(pc.fill_null(pc.equal(every["part"], QUEUED), False))).to_pylist())


def _is_unlike(row: Row, other: Row) -> bool:
    """True if one of the two was taken back, or both say which message is their last, and are not the same."""
    if row["outcome"] != other["outcome"]:
        return True
    return None not in (row["ended"], other["ended"]) and bool(row["content"] != other["content"])


def differing_elsewhere(
    case: Case, label: str, applied: Sequence[Applied], one: Applied, log: StreamLog | None
) -> dict[str, list[tuple[int, str]]]:
    """Another file, in words -> commits and positions that it has otherwise than a queue, and the log of the master has not.

    More of both has to be alike than not. Of two queues of one snapshot the first by name tells it.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    upto = max((row["commit"] for row in one.waiting.values()), default=None)
    if one.commit is None or upto is None:
        return found
    logged = _rows_under(log, [row["commit"] for row in one.waiting.values()]) if log is not None else {}
    for witness in _witnesses(case, label, applied, one, upto):
        keys = {row["commit"]: key for key, row in witness.rows.items()}
        both = [(key, row) for key, row in one.waiting.items() if row["commit"] in keys or key in witness.rows]
        unlike = [
            (row["commit"], key[1])
            for key, row in both
            if keys.get(row["commit"]) != key or _is_unlike(witness.rows[key], row)
        ]
        twice = witness.replica is not None and witness.replica[0] == label and witness.replica[1] < one.server
        if 0 < len(unlike) < len(both) - len(unlike) and not twice:
            left = sorted(each for each in unlike if each[0] not in logged)
            found |= {witness.place: left} if left else {}
    return found


def rows_of(found: Mapping[int, Elsewhere]) -> dict[Key, Row]:
    """The transactions alone."""
    return {one.key: one.row for one in found.values()}


def _agrees(witness: _Witness, one: Applied, log: StreamLog | None = None) -> bool:
    alike = int(one.source is not None and witness.source == one.source)
    keys = {row["commit"]: key for key, row in witness.rows.items()}
    for key, row in one.waiting.items():
        theirs = witness.rows.get(key)
        if theirs is None:
            if row["commit"] in keys:
                return False
        elif theirs["commit"] != row["commit"] or theirs["content"] != row["content"]:
            return False
        else:
            alike += 1
    logged = _rows_under(log, [*keys]) if log is not None else {}
    for commit, (key, content) in logged.items():
        if key != keys[commit] or content != witness.rows[key]["content"]:
            return False
        alike += 1
    return alike > 0


def _rows_under(log: StreamLog, commits: Sequence[int]) -> dict[int, tuple[Key, int | None]]:
    """Commit -> what a log has whole under it, and its content."""
    where = pc.field("commit").isin(pa.array(sorted(commits), pa.int64()))
    rows = rows_where(log.parts, COLUMNS, where).to_pylist() if commits else []
    return {
        row["commit"]: ((row["origin"], row["position"]), row["content"]) for row in rows if row["outcome"] in WHOLE
    }


def _witnesses(
    case: Case, label: str, applied: Sequence[Applied], one: Applied, upto: int, present: str | None = None
) -> Iterator[_Witness]:
    """The queues of other replicas first, then what was collected earlier, the latest first.

    present  the file of the present log of the master: another one of that snapshot was copied or exported besides
    """
    labels = list(case.snapshots)
    before = labels[: labels.index(label)][::-1] if label in labels else []
    for snapshot in (label, *before):
        earlier = f" of snapshot {snapshot}" if snapshot != label else ""
        for file in case.inputs if earlier or present else ():
            if not earlier and (file.file == present or file.server != one.source):
                continue
            besides = "" if earlier else f" of snapshot {snapshot} ({file.file})"
            same = file.server == one.source if one.source else file.server != one.server
            if same and file.snapshot == snapshot and file.kind and format_with(file.kind).is_log:
                where = (pc.field("commit") > one.commit) & (pc.field("commit") <= upto)
                rows = rows_where(case.parts("transactions", file), COLUMNS, where).to_pylist()
                whole = {(row["origin"], row["position"]): row for row in rows if row["outcome"] in WHOLE}
                yield _Witness(f"the log of {file.server}{earlier}{besides}", whole, [file])
        queues = queues_of(case, snapshot, masters_in(case, snapshot))
        for server, of_master in sorted(queues.items()):
            if server == one.server and not earlier:
                continue
            place, files = f"the queue of {server}{earlier}", _queue_files(case, snapshot, server)
            if server == one.server:
                alone = sum(each.server == server for each in applied) == 1
                queue = together([*of_master.values()]) if alone else of_master.get(one.master, Queue())
                yield _Witness(place, queue.whole, files, replica=(snapshot, server, one.master))
            else:
                for master, queue in of_master.items():
                    mine = [each for each in applied if each.server == server and not earlier]
                    sources = {each.source for each in mine if len(mine) == 1 or each.master == master}
                    source = next(iter(sources)) if len(sources) == 1 else None
                    yield _Witness(place, queue.whole, files, source, (snapshot, server, master))
