"""Commits that another file has whole: the queue of another replica, or a log or a queue of an earlier snapshot.

    queue of s            103 (commit 3)                  105 (commit 5)      commit 4 is not there, and will not come
    queue of t            103 (commit 3)  104 (commit 4)  105 (commit 5)      it was 104

A file is of the same master, and of the same log of it, if both have something of it alike and nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.selective_read import rows_where
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
    """What a file has whole of the commits of one master."""

    place: str
    rows: Mapping[Key, Row]


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
                yield _Witness(f"the log of {one.source}{earlier}", whole)
        queues = queues_of(case, snapshot, masters_in(case, snapshot))
        for server, of_master in sorted(queues.items()):
            if server == one.server and not earlier:
                continue
            place = f"the queue of {server}{earlier}"
            if server == one.server:
                alone = sum(each.server == server for each in applied) == 1
                queue = together([*of_master.values()]) if alone else of_master.get(one.master, Queue())
                yield _Witness(place, queue.whole)
            else:
                for queue in of_master.values():
                    yield _Witness(place, queue.whole)
