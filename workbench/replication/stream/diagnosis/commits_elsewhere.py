"""Commits that another file has whole: the queue of another replica, or a log or a queue of an earlier snapshot.

    queue of s            103 (commit 3)                  105 (commit 5)      commit 4 is not there, and will not come
    queue of t            103 (commit 3)  104 (commit 4)  105 (commit 5)      it was 104

A file is of the same master, and of the same log of it, if both have something of it alike and nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.selective_read import rows_where
from workbench.intake.inputs import Input
from workbench.replication.stream.diagnosis.appliers import Applied, masters_in
from workbench.replication.stream.diagnosis.queues import COLUMNS, WHOLE, Key, Queue, Row, queues_of, together
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
    """What a file has whole of the commits of one master, and the files that it was read from."""

    place: str
    rows: Mapping[Key, Row]
    files: Sequence[Input]


def commits_elsewhere(case: Case, label: str, applied: Sequence[Applied], one: Applied) -> Found:
    """What other files have of the commits that a replica passed over: behind what it applied, not in its queue."""
    if one.commit is None or one.queued is None or not one.whole:
        return Found({}, {})
    there = {*one.queued, *(piece.commit for piece in one.in_part.values() if piece.commit is not None)}
    upto = max(there, default=one.commit)
    if len({*there, *range(one.commit + 1, upto + 1)}) == len(there):
        return Found({}, {})
    found: dict[int, Elsewhere] = {}
    for witness in _witnesses(case, label, applied, one, upto):
        if not _agrees(witness, one):
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


def rows_of(found: Mapping[int, Elsewhere]) -> dict[Key, Row]:
    """The transactions alone."""
    return {one.key: one.row for one in found.values()}


def _agrees(witness: _Witness, one: Applied) -> bool:
    alike = 0
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
    return alike > 0


def _witnesses(case: Case, label: str, applied: Sequence[Applied], one: Applied, upto: int) -> Iterator[_Witness]:
    """The queues of other replicas first, then what was collected earlier, the latest first."""
    labels = list(case.snapshots)
    before = labels[: labels.index(label)][::-1] if label in labels else []
    for snapshot in (label, *before):
        earlier = f" of snapshot {snapshot}" if snapshot != label else ""
        for file in case.inputs if earlier and one.source else ():
            if (file.server, file.snapshot) == (one.source, snapshot) and file.kind and format_with(file.kind).is_log:
                where = (pc.field("commit") > one.commit) & (pc.field("commit") <= upto)
                rows = rows_where(case.parts("transactions", file), COLUMNS, where).to_pylist()
                whole = {(row["origin"], row["position"]): row for row in rows if row["outcome"] in WHOLE}
                yield _Witness(f"the log of {one.source}{earlier}", whole, [file])
        queues = queues_of(case, snapshot, masters_in(case, snapshot))
        for server, of_master in sorted(queues.items()):
            if server == one.server and not earlier:
                continue
            place, files = f"the queue of {server}{earlier}", _queue_files(case, snapshot, server)
            if server == one.server:
                alone = sum(each.server == server for each in applied) == 1
                queue = together([*of_master.values()]) if alone else of_master.get(one.master, Queue())
                yield _Witness(place, queue.whole, files)
            else:
                for queue in of_master.values():
                    yield _Witness(place, queue.whole, files)
