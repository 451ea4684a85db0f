"""When other data came in the place of those of a server, as the reason why it lacks what it had."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from workbench.rules.verdicts import REPLACED, TOTAL, Reset
from workbench.topology.suffix_evidence import Evidence

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def replaced_after(
    context: DetectorContext, server: str, suffix: str | None, positions: Iterable[str], whole: bool = True
) -> str:
    """What brought the data that a server has, where it had any of these changes before, in words; empty: nothing is known.

    `whole`: data that came whole from another server count, too
    """
    moment, typed = context.topology.system.moment, context.topology.system.typed
    made = [at for position in positions if (at := moment(typed(position) or ""))]
    kinds = (TOTAL, REPLACED) if whole else (REPLACED,)
    resets = context.verdicts.resets.get((server, suffix), ())
    later = [one for one in resets if one.sure and one.kind in (TOTAL, REPLACED) and made and one.ended > min(made)]
    if not later or later[-1].kind not in kinds or not _is_told(context, server, suffix, later[-1]):
        return ""
    what = "it was initialised" if later[-1].kind == TOTAL else "its data came from a backup or a file"
    return f"{what} at {later[-1].ended:%Y-%m-%d %H:%M:%S} UTC"


def told_last(context: DetectorContext, server: str, suffix: str | None) -> Reset | None:
    """What brought the server its data last, where its messages tell of it, or a link does."""
    resets = context.verdicts.resets.get((server, suffix), ())
    sure = [one for one in resets if one.sure and one.kind in (REPLACED, TOTAL)]
    return sure[-1] if sure and _is_told(context, server, suffix, sure[-1]) else None


def _is_told(context: DetectorContext, server: str, suffix: str | None, reset: Reset) -> bool:
    """False for data that count as replaced because the log was made anew, nobody says by what, or that did not come whole."""
    if reset.failed:
        return False
    evidence = Evidence(context.case, context.topology, suffix, [server])
    return reset.kind == TOTAL or reset.ended in evidence.moments(server, context.topology.proving.reset_codes)


def wrote_again(
    context: DetectorContext, server: str, suffix: str | None, origin: str, lost: Collection[str] = ()
) -> bool:
    """False for a server whose newest own change is older than the backup or the file that its data came from, or is one that
    it lost: it has made none behind that.
    """
    replica, moment = context.replica(server, suffix), context.topology.system.moment
    last = replica.vector.get(origin) if replica else None
    if last and last.max and context.topology.system.show(last.max) in lost:
        return False
    made = moment(context.topology.system.typed(last.max or "") or "") if last else None
    resets = context.verdicts.resets.get((server, suffix), ())
    came = [one.ended for one in resets if one.sure and one.kind == REPLACED]
    return not (made and came) or made > came[-1]
