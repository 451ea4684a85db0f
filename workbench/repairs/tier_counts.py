"""The table of a plan for nodes that pull a log in tiers: its model knows ends of logs, and the diagnosis counts records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.diagnosing.verdict_rows import Verdicts
from workbench.rules.mending import Model
from workbench.rules.tier_mending import TierModel

Lacking = dict[str, tuple[int, int]]
"""Server -> what it misses and what it waits for, in records, as the diagnosis counts them."""


def tiers_as_counted(found: Verdicts, rows: Iterable[dict[str, Any]]) -> Lacking:
    """Put the numbers of the diagnosis into rows of what each server lacks, and give them: in tiers, if all are listed."""
    counted: Lacking = {}
    for row in rows if found.tiers is not None and not found.cut() else ():
        name = row["server"]
        missing = sum(one["server"] == name for one in found.missing)
        pending = sum(one["count"] for one in found.pending if one["server"] == name)
        counted[name] = row["missing"], row["pending"] = missing, pending
    return counted


def tiers_afterwards(row: dict[str, Any], counted: Lacking, done: Model) -> None:
    """Count so what is lacking when all is done: a hole stays until the log is replaced; what was not brought waits."""
    if isinstance(done, TierModel) and row["server"] in counted:
        missing, pending = counted[row["server"]]
        row["missing"] = max(row["missing"], missing if row["server"] in done.spoilt else 0)
        row["pending"] = min(row["pending"], pending)
