"""The rows of collected entries that carry changes, with the state of the whole entry where it was deleted.

Values that were taken from an entry before it was deleted keep their marks in its tombstone:

    uid=m0   renamed from uid=c0, then deleted    the value c0 carries the addition and the renaming, of an entry that is gone
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from workbench.engine.positions import Positions
    from workbench.topology.suffix_evidence import Evidence

TOMBSTONE = "tombstone"


def rows_elsewhere(evidence: Evidence, some: Positions, columns: Sequence[str], server: str) -> pa.Table | None:
    """The rows (`entry` and `state` among the columns) in exports of other servers that carry changes; None: there are none.

    Every row of an entry that is a tombstone in its export has that state.
    """
    found = []
    for export in evidence.inputs:
        if export.server == server:
            continue
        rows = evidence.told("entry_states", columns, evidence.between(some), one=export)
        if len(rows):
            asked = pc.field("entry").isin(pc.unique(rows["entry"]).drop_null()) & (pc.field("state") == TOMBSTONE)
            deleted = pc.unique(evidence.told("entry_states", ["entry"], asked, one=export)["entry"])
            state = pc.if_else(pc.is_in(rows["entry"], deleted), TOMBSTONE, rows["state"].cast(pa.string()))
            found.append(rows.set_column(rows.column_names.index("state"), "state", state))
    return pa.concat_tables(found) if found else None
