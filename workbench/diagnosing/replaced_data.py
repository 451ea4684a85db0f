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
    """What brought the data that a server has, where it had any of these changes before, in words; empty: nothing is known.

    `whole`: data that came whole from another server count, too
    """
    moment, typed = situation.topology.system.moment, situation.topology.system.typed
    made = [at for position in positions if (at := moment(typed(position) or ""))]
    kinds = (TOTAL, REPLACED) if whole else (REPLACED,)
    resets = situation.verdicts.resets.get((server, suffix), ())
    later = [one for one in resets if one.sure and one.kind in (TOTAL, REPLACED) and made and one.ended > min(made)]
    if not later or later[-1].kind not in kinds:
        return ""
    what = "it was initialised" if later[-1].kind == TOTAL else "its data came from a backup or a file"
    return f"{what} at {later[-1].ended:%Y-%m-%d %H:%M:%S} UTC"
