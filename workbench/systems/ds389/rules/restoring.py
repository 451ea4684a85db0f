"""A restored server that writes before it got its own lost changes back: its max jumps over them, and all see it whole.

A keep-alive update or a plug-in's write does it as well as a client's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

OWN_RID_HOLE = "own_rid_hole_after_restore"


@dataclass(frozen=True)
class Restored:
    """What became of the changes of the server's own replica ID that its peers still have."""

    lost: list[str]
    still_to_come: list[str]
    first_violation: str | None


def after_restore(restored_to: str, peers_hold: Iterable[str], events: Iterable[tuple[bool, str]]) -> Restored:
    """`events` are (own write?, CSN) in order; `restored_to` is the last CSN of the own rid right after the restore.

    A replayed change at or below the own max is acknowledged and not applied.
    """
    owed = sorted({csn for csn in peers_hold if csn > restored_to})
    held, has, first_violation = restored_to, set[str](), None
    for own, csn in events:
        if own and first_violation is None:
            above = bisect_right(owed, held)
            first_violation = csn if above < len(owed) and owed[above] < csn else None
        if own or csn > held:
            has.add(csn)
            held = max(held, csn)
    absent = [csn for csn in owed if csn not in has]
    lost = [csn for csn in absent if csn <= held]
    return Restored(lost, absent[len(lost) :], first_violation)
