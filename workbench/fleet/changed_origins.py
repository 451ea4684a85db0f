"""Servers whose configuration names another origin than the one that they made changes with: they make none as that.

c was replica ID 3, and somebody wrote 2 into its configuration, the ID of b: it refuses to replicate, and its data are those of 3
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from workbench.cases.case import Case
from workbench.collected.inputs import Input
from workbench.engine.rows import rows_where
from workbench.model import System


def changed_origins(case: Case, inputs: Sequence[Input], system: System) -> dict[str, tuple[str, str]]:
    """Server -> the origin of its configuration and the one that it made changes with, where its last start told of two."""
    proving = system.proving() if system.proving else None
    code = proving.origin_changed if proving else ""
    found: dict[str, tuple[str, str]] = {}
    for one in inputs:
        if not (code and proving and one.facts.get("codes", {}).get(code)):
            continue
        where = pc.field("code").isin(pa.array([code, proving.started], pa.string())) & pc.field("at").is_valid()
        rows = rows_where(case.parts("messages", one), ["at", "code", "numbers"], where).to_pylist()
        started = max((row["at"] for row in rows if row["code"] == proving.started), default=None)
        for row in rows:
            if row["code"] == code and (started is None or row["at"] >= started):
                told = dict(row["numbers"])
                found[one.server] = told["now"], told["before"]
    return found
