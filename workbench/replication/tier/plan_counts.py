"""The table of a plan for nodes that pull a log in tiers: its model knows ends of logs, and the diagnosis counts records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.diagnosis.verdict_rows import Verdicts
from workbench.replication.tier.rules.repair_model import MOVED, TierModel
from workbench.rules.repair_model import Model

Lacking = dict[str, tuple[int, int, bool]]
"""Server -> what it misses and what it waits for, in records, as the diagnosis counts them; and whether the model knows of that:
what lies behind the end of the source, as only a node below it shows, it does not know.
"""


def tiers_as_counted(found: Verdicts, rows: Iterable[dict[str, Any]]) -> Lacking:
    """Put the numbers of the diagnosis into rows of what each server lacks, and give them: in tiers, if all are listed."""
    counted: Lacking = {}
    for row in rows if found.tiers is not None and not found.cut() else ():
        name = row["server"]
        missing = sum(one["server"] == name for one in found.missing)
        pending = sum(one["count"] for one in found.pending if one["server"] == name)
        row["missing"], row["pending"] = missing, pending
        sent = any(one["suppliers"] for one in found.pending if one["server"] == name)
        counted[name] = missing, pending, sent or not _shown_by_others(found, name)
    return counted


def _shown_by_others(found: Verdicts, name: str) -> bool:
    tiers = found.tiers
    return tiers is not None and tiers.head_above(name) != tiers.known_head(tiers.source_of(name) or "")


def holes_filled(before: Model, after: Model, counted: Lacking) -> int:
    """How many records nodes get that their logs lack inside, as the diagnosis counts them: the model knows the ends alone."""
    if not isinstance(before, TierModel) or not isinstance(after, TierModel):
        return 0
    return sum(counted.get(name, (0, 0, True))[0] for name in before.spoilt - after.spoilt)


def tiers_afterwards(row: dict[str, Any], counted: Lacking, done: Model) -> None:
    """Count so what is lacking when all is done: a hole stays until the log is replaced; what was not brought waits.

    A node that does not answer gets nothing by a plan; it waits as before, unless it was taken out of the tree.
    """
    if isinstance(done, TierModel) and row["server"] in counted:
        missing, pending, known = counted[row["server"]]
        row["missing"] = max(row["missing"], missing if row["server"] in done.spoilt else 0)
        waits = not known and done.condition.get(row["server"]) != MOVED
        waits |= done.is_silent(row["server"]) and not done.is_out(row["server"])
        row["pending"] = pending if waits else min(row["pending"], pending)
