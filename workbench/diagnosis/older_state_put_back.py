"""Lines of a server's log of operations that its data of now contradict: an older copy of its files was put back since.

What a server applied, its log of changes holds, in one transaction with the data. So where that log goes on behind a change
that was applied before the last start, and does not hold it, an older state of the data was put back in between:

    10:00 applied 7    10:10 an older copy of its files is put back    10:11 started    its log of changes: ... 5 6 8 9

Where that log was removed later, other servers tell the same of its own changes: they have what it made since, over sessions
that send its changes in their order, and not what it answered for before the start.

    10:00 made 7       10:11 started     10:12 made 8, which all others have, and none of them 7      10:20 its log is removed

Of another one whose logs begin behind 7, nobody knows whether it has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.resets import resets_of
from workbench.engine.position_index import Pair, Span, in_holes
from workbench.engine.positions import Positions, of_keys, place
from workbench.engine.selective_read import changes_of
from workbench.rules.verdicts import LOG_REPLACED, Reset
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica

LinesLack = Callable[[Evidence, Replica, list[Reset], Positions], Numbers]
"""For each change: is it lacking in a log of operations of that server that covers its time?"""

_SECOND = timedelta(seconds=1)
"""Positions tell whole seconds, messages fractions of one."""


def not_put_back(
    evidence: Evidence,
    replica: Replica,
    resets: Iterable[Reset],
    rows: pa.Table,
    keys: pa.Array,
    not_shown: Numbers,
    lines_lack: LinesLack,
) -> pa.Table:
    """The rows of a server's own log of operations, but for those that its log of changes contradicts.

    `keys` are changes that its log of changes does not hold, `not_shown` those of them that it cannot show.
    """
    starts = evidence.once(replica.server, _starts)
    if not starts or replica.log is None or not len(rows):
        return rows
    at = pc.index_in(changes_of(evidence.system, rows["position"]), value_set=keys)
    covered = pc.is_in(at, pa.array(np.flatnonzero(~not_shown), at.type))
    before = pc.fill_null(pc.less(rows["at"], pa.scalar(starts[-1], rows["at"].type)), False)
    # Of what was before that, a log that was replaced, or opened anew, contradicts nothing.
    replaced = max((reset.ended for reset in resets if reset.kind == LOG_REPLACED), default=None)
    if replaced:
        before = pc.and_(before, pc.greater(rows["at"], pa.scalar(replaced, rows["at"].type)))
        before = pc.fill_null(before, False)
    rows = rows.filter(pc.invert(pc.and_(covered, before)))
    removed = evidence.once(replica.server, last_removed)
    if removed is not None and replaced is not None and removed <= replaced:
        return rows  # it is known why the log was removed: the data stayed, and what was made before is sent to nobody
    return _not_lost(evidence, replica, rows, keys, lines_lack)


def _not_lost(evidence: Evidence, replica: Replica, rows: pa.Table, keys: pa.Array, lines_lack: LinesLack) -> pa.Table:
    """The same, but for its own changes of before a start, where its log was removed since and others have later ones alone."""
    removed = evidence.once(replica.server, last_removed)
    starts = [at for at in evidence.once(replica.server, _starts) if removed and at < removed]
    if not starts or replica.origin is None or not len(rows):
        return rows
    positions = changes_of(evidence.system, rows["position"])
    before = pc.fill_null(pc.less(rows["at"], pa.scalar(starts[-1], rows["at"].type)), False)
    old = pc.and_(before, pc.equal(rows["origin"], replica.origin))
    asked = keys.filter(pc.is_in(keys, value_set=pc.unique(positions.filter(old))))
    some = of_keys(evidence.system, asked.to_pylist(), evidence.numbers)
    some = some[_passed_over(evidence, replica, some, lines_lack)] if len(some) else some
    if not len(some):
        return rows
    asked = pa.array(some.keys(evidence.system, evidence.names), pa.string())
    asked = asked.filter(pc.invert(pc.is_in(asked, value_set=_elsewhere(evidence, replica.server, asked))))
    return rows.filter(pc.invert(pc.and_(old, pc.is_in(positions, value_set=asked))))


def _elsewhere(evidence: Evidence, server: str, asked: pa.Array) -> pa.Array:
    """Those of these changes that the logs of other servers show."""
    found, where = set[str](), pc.field("position").isin(asked)
    for other in {one.server for one in evidence.inputs} - {server}:
        for table, mine in (("applied", where & pc.field("outcome").isin(["applied", "received"])), ("changes", where)):
            rows = evidence.told(table, ["position"], mine, other)
            found |= {*changes_of(evidence.system, rows["position"]).to_pylist()}
    return pa.array(sorted(found), pa.string())


def _passed_over(evidence: Evidence, replica: Replica, some: Positions, lines_lack: LinesLack) -> Numbers:
    """For each of the server's own changes: does another one claim to have seen it, and does a log that reaches back lack it?

    A log shows the changes that came over sessions: what replaced the data or the log of that server is older than the change.
    """
    found, origin = np.zeros(len(some), bool), replica.origin or ""
    for other in evidence.shown.replicas:
        if other.suffix != replica.suffix or other.server == replica.server or not (top := other.top(origin)):
            continue
        resets = evidence.once(other.server, _resets)
        ended = max((reset.ended for reset in resets), default=None)
        begin = _place(some, (evidence.system.instant(ended + _SECOND), -1)) if ended else 0
        which = slice(begin, max(begin, _place(some, evidence.system.halves(top))))
        asked = some[which]
        found[which] |= _reached(evidence, other, origin, asked) | lines_lack(evidence, other, resets, asked)
    return found


def _place(some: Positions, pair: Pair) -> int:
    return place(some.hi, some.lo, pair)


def _reached(evidence: Evidence, other: Replica, origin: str, some: Positions) -> Numbers:
    """For each change of the origin: does it lie where the log of changes of that server shows all?"""
    shown = other.log.facts.get("by_origin", {}).get(origin) if other.log else None
    if not shown or not shown["min"] or not shown["max"]:
        return np.zeros(len(some), bool)
    first, last = map(evidence.system.halves, (shown["min"], shown["max"]))
    return some.within(Span((first[0], first[1] - 1), last).of(some)) & ~in_holes(some, evidence.holes(other.log))


def _resets(evidence: Evidence, server: str) -> list[Reset]:
    """What replaced the data or the log of a server."""
    mine = (one for one in evidence.shown.replicas if (one.server, one.suffix) == (server, evidence.suffix))
    return [reset for one in mine for reset in resets_of(evidence, one, evidence.shown.proving, {})]


def last_removed(evidence: Evidence, server: str) -> datetime | None:
    """When the log of changes of a server was removed last, as its messages tell."""
    return max(evidence.moments(server, evidence.shown.proving.log_removed), default=None)


def _starts(evidence: Evidence, server: str) -> list[datetime]:
    return evidence.moments(server, {evidence.shown.proving.started})
