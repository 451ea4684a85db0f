"""What entries are called, as files name them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.selective_read import rows_where
from workbench.intake.inputs import Input


def names_of(case: Case, files: Iterable[Input], entries: Iterable[str]) -> dict[str, str]:
    """What these entries are called, as the first of the files says that names them."""
    found: dict[str, str] = {}
    wanted = set(entries)
    for file in files:
        if lacking := sorted(wanted - found.keys()):
            where = pc.field("entry").isin(pa.array(lacking, pa.string())) & pc.field("target").is_valid()
            for row in rows_where(case.parts("entries", file), ["entry", "target"], where).to_pylist():
                found.setdefault(row["entry"], row["target"])
    return found
