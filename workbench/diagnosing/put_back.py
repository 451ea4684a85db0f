"""Lines of a server's log of operations that its data of now contradict: an older copy of its files was put back since.

What a server applied, its log of changes holds, in one transaction with the data. So where that log goes on behind a change
that was applied before the last start, and does not hold it, an older state of the data was put back in between:

    10:00 applied 7    10:10 an older copy of its files is put back    10:11 started    its log of changes: ... 5 6 8 9
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.rows import changes_of, rows_where
from workbench.fleet.told import Evidence
from workbench.fleet.topology import Replica
from workbench.rules.verdicts import LOG_REPLACED, Reset
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
    return rows.filter(pc.invert(pc.and_(covered, before)))


def _last_start(evidence: Evidence, server: str) -> datetime | None:
    """When a server started last, as its log tells."""
    where = (pc.field("code") == evidence.shown.proving.started) & pc.field("at").is_valid()
    parts = evidence.parts("messages", server)
    moments = [pc.max(rows_where([part], ["at"], where)["at"]).as_py() for part in parts]
    return max(filter(None, moments), default=None)
