"""Lines of a server's log of operations that its data of now contradict: an older copy of its files was put back since.

What a server applied, its log of changes holds, in one transaction with the data. So where that log goes on behind a change
that was applied before the last start, and does not hold it, an older state of the data was put back in between:

    10:00 applied 7    10:10 an older copy of its files is put back    10:11 started    its log of changes: ... 5 6 8 9

Where that log was removed later, other servers tell the same of its own changes: they have what it made since, over sessions
that send its changes in their order, and not what it answered for before the start.

    10:00 made 7       10:11 started     10:12 made 8, which all others have, and none of them 7      10:20 its log is removed
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosing.resets import resets_of
from workbench.engine.rows import changes_of, rows_where
from workbench.fleet.told import Evidence
from workbench.fleet.topology import Replica
from workbench.rules.verdicts import LOG_REPLACED, REPLACED, TOTAL, Reset
from workbench.tables import Numbers


def not_put_back(
    evidence: Evidence, replica: Replica, resets: Iterable[Reset], rows: pa.Table, keys: pa.Array, not_shown: Numbers
) -> pa.Table:
    """The rows of a server's own log of operations, but for those that its log of changes contradicts.

    `keys` are changes that its log of changes does not hold, `not_shown` those of them that it cannot show.
    """
    start = evidence.once(replica.server, _last_start)
    if start is None or replica.log is None or not len(rows):
        return rows
    if any(reset.kind == LOG_REPLACED for reset in resets):
        return rows  # its log alone was replaced: that contradicts nothing
    at = pc.index_in(changes_of(evidence.system, rows["position"]), value_set=keys)
    covered = pc.is_in(at, pa.array(np.flatnonzero(~not_shown), at.type))
    before = pc.fill_null(pc.less(rows["at"], pa.scalar(start, rows["at"].type)), False)
    return _not_lost(evidence, replica, rows.filter(pc.invert(pc.and_(covered, before))))


def _not_lost(evidence: Evidence, replica: Replica, rows: pa.Table) -> pa.Table:
    """The same, but for its own changes of before a start, where its log was removed since and others have later ones alone."""
    removed = evidence.once(replica.server, last_removed)
    starts = [at for at in evidence.once(replica.server, _starts) if removed and at < removed]
    if not starts or replica.origin is None or not len(rows):
        return rows
    positions = changes_of(evidence.system, rows["position"])
    before = pc.fill_null(pc.less(rows["at"], pa.scalar(max(starts), rows["at"].type)), False)
    old = pc.and_(before, pc.equal(rows["origin"], replica.origin))
    asked = [
        key for key in pc.unique(positions.filter(old)).to_pylist() if key and _passed_over(evidence, replica, key)
    ]
    if not asked:
        return rows
    elsewhere: set[str] = set()
    where = pc.field("position").isin(pa.array(sorted(asked), pa.string()))
    for server in {one.server for one in evidence.inputs} - {replica.server}:
        for table, mine in (("applied", where & pc.field("outcome").isin(["applied", "received"])), ("changes", where)):
            elsewhere |= {
                *changes_of(evidence.system, evidence.told(table, ["position"], mine, server)["position"]).to_pylist()
            }
    lost = pc.is_in(positions, value_set=pa.array(sorted({*asked} - elsewhere), positions.type))
    return rows.filter(pc.invert(pc.and_(old, lost)))


def _passed_over(evidence: Evidence, replica: Replica, key: str) -> bool:
    """True if another server claims to have seen the change, and its data were not replaced since it was made."""
    made = evidence.system.moment(key)

    def got_by_sessions(other: Replica) -> bool:
        resets = resets_of(evidence, other, evidence.shown.proving, {})
        return not any(one.kind in (TOTAL, REPLACED) and (made is None or one.ended >= made) for one in resets)

    others = (one for one in evidence.shown.replicas if one.suffix == replica.suffix and one.server != replica.server)
    return any(one.top(replica.origin or "") > key and got_by_sessions(one) for one in others)


def last_removed(evidence: Evidence, server: str) -> datetime | None:
    """When the log of changes of a server was removed last, as its messages tell."""
    return max(_moments(evidence, server, evidence.shown.proving.log_removed), default=None)


def _starts(evidence: Evidence, server: str) -> list[datetime]:
    return _moments(evidence, server, frozenset({evidence.shown.proving.started}))


def _moments(evidence: Evidence, server: str, codes: frozenset[str]) -> list[datetime]:
    where = pc.field("code").isin(pa.array(sorted(codes), pa.string())) & pc.field("at").is_valid()
    parts = evidence.parts("messages", server) if codes else []
    return sorted({at for part in parts for at in rows_where([part], ["at"], where)["at"].to_pylist()})


def _last_start(evidence: Evidence, server: str) -> datetime | None:
    """When a server started last, as its log tells."""
    where = (pc.field("code") == evidence.shown.proving.started) & pc.field("at").is_valid()
    parts = evidence.parts("messages", server)
    moments = [pc.max(rows_where([part], ["at"], where)["at"]).as_py() for part in parts]
    return max(filter(None, moments), default=None)
