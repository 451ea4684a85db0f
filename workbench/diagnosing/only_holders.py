"""Changes that only a server holds whose data lacks what others have: they are written again, and nobody is filled from there.

b  was restored from a backup, lacks 4 changes that all others have, and made 1 since that it cannot send
a  has the 4 and waits for the 1: filled from b, it would lose the 4
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.model import counted, step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def write_again_first(situation: Situation, consumer: str, suffix: str | None) -> dict[str, Any] | None:
    """What to do for a server that waits for nothing but what is stranded on one whose data lacks changes; None for another."""
    found = situation.verdicts
    if {"missing", "stranded", "pending"} & found.cut().keys():
        return None
    lacking = {row["server"] for row in found.missing if row["suffix"] == suffix}
    waits = [
        row
        for row in found.pending
        if (row["server"], row["suffix"]) == (consumer, suffix) and not (row["suppliers"] or row.get("through"))
    ]
    if not waits or not all(row.get("counted", True) for row in waits):
        return None
    typed = situation.topology.system.typed
    for holder in sorted(lacking - {consumer}):
        mine = [
            (row["origin"], typed(row["position"]) or "")
            for row in found.stranded
            if (row["server"], row["suffix"]) == (holder, suffix)
        ]
        ranges = [(row["origin"], typed(row["first"]) or "", typed(row["last"]) or "", row["count"]) for row in waits]
        if all(
            count <= sum(origin == of and first <= position <= last for of, position in mine)
            for origin, first, last, count in ranges
        ):
            count = sum(row["count"] for row in waits)
            them = "it" if count == 1 else "them"
            return step(
                f"save {counted(count)} from the changelog of {holder}, initialise {holder} from a server that has what "
                f"{holder} lacks, then write {them} again",
                f"only {holder} has {them}, and {holder} itself lacks changes that others have (MISSED_CHANGE)",
                f"do not initialise {consumer} from {holder}: {consumer} would lose what {holder} lacks",
            )
    return None
