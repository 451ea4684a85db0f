"""What the model of a plan does not know of servers without a log: changes that only earlier files show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.diagnosis.verdict_rows import Verdicts


def gone_as_counted(found: Verdicts, rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Count into rows of what each server lacks what no server has any more; server -> so many are missing afterwards, too."""
    counts: dict[str, int] = {}
    for row in rows:
        gone = sum(row["server"] in one.missed_by for one in found.gone if one.change["suffix"] == row["suffix"])
        if gone:
            counts[row["server"]] = gone
            row["missing"] += gone
    return counts
