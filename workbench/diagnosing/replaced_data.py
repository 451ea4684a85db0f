"""When other data came in the place of those of a server, as the reason why it lacks what it had."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from workbench.rules.verdicts import REPLACED, TOTAL

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def replaced_after(
    situation: Situation, server: str, suffix: str | None, positions: Iterable[str], whole: bool = True
) -> str:
    """What replaced the data that had any of these changes first, in words; empty: nothing is known to have.

    `whole`: data that came whole from another server count, too
    """
    moment, typed = situation.topology.system.moment, situation.topology.system.typed
    made = [at for position in positions if (at := moment(typed(position) or ""))]
    kinds = (TOTAL, REPLACED) if whole else (REPLACED,)
    resets = situation.verdicts.resets.get((server, suffix), ())
    later = [one for one in resets if one.sure and one.kind in kinds and made and one.ended > min(made)]
    if not later:
        return ""
    what = "it was initialised" if later[0].kind == TOTAL else "its data came from a backup or a file"
    return f"{what} at {later[0].ended:%Y-%m-%d %H:%M:%S} UTC"
