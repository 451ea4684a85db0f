"""The what-if kinds of 389 Directory Server: their inputs as models, their answers by `rules`. A kind is one line here."""

from dataclasses import replace
from typing import Any

from workbench.model import Kind
from workbench.systems.ds389.scenarios import changelogs, changes, cleaning, pending, positions, ruvs, sessions
from workbench.systems.ds389.scenarios.fields import rejected_values

_KINDS = {
    "session": Kind(
        "What would this supplier send to this consumer now, from where, and why is each other record skipped?",
        sessions.SendSession,
        sessions.session,
    ),
    "design_session": Kind(
        "What would the design document have sent?", sessions.DesignSession, sessions.design_session
    ),
    "missing_anchor_class": Kind(
        "Is a lost anchor purged, missing, or simply not there yet?",
        sessions.MissingAnchorClass,
        sessions.missing_anchor_classes,
    ),
    "missed_after_init": Kind(
        'Which supplier can still bring this consumer up to date, and what would "ignore missing" lose?',
        sessions.MissedAfterInit,
        sessions.missed_after_init,
    ),
    "csn_decode": Kind("When and where was this change made?", positions.CsnDecode, positions.csn_decode),
    "csn_order": Kind("Which change came first?", positions.CsnOrder, positions.csn_order),
    "time_skew_class": Kind("How bad is this clock skew?", positions.TimeSkew, positions.time_skew_class),
    "ruv_parse": Kind("What does this RUV really say?", ruvs.RuvParse, ruvs.ruv_parse),
    "ruv_compare": Kind("Who is behind whom, by how much?", ruvs.TwoRuvs, ruvs.ruv_compare),
    "generation": Kind("May these two replicate at all?", ruvs.Generations, ruvs.generation),
    "session_precheck": Kind("Does the supplier contact this consumer at all?", ruvs.Precheck, ruvs.session_precheck),
    "pending_list": Kind(
        "Which CSNs hold a server's RUV back, and what does it claim after each step?",
        pending.PendingList,
        pending.pending_list,
    ),
    "pending_list_versions": Kind(
        "What would older servers have claimed after the same operations?",
        pending.PendingListVersions,
        pending.pending_list_versions,
    ),
    "trim": Kind("Which records may go, and who is put at risk?", changelogs.Trim, changelogs.trim),
    "apply_result": Kind(
        "Does the consumer's answer lose the change or hold the session?", changes.ApplyResult, changes.apply_result
    ),
    "missed_change": Kind(
        "What does the consumer's RUV cover that its data never got?", changes.MissedChange, changes.missed_change
    ),
    "lag_report": Kind("How did one change travel?", changes.LagReport, changes.lag_report),
    "cleanallruv": Kind("Will this clean wait, and who loses changes?", cleaning.CleanAllRuv, cleaning.cleanallruv),
    "restore_order": Kind(
        "Did a restored server write before it got its own lost changes back?",
        changelogs.RestoreOrder,
        changelogs.restore_order,
    ),
}


def _telling_rejects(kind: Kind) -> Kind:
    """The kind; its answer names the RUV values that count for nothing: a slip of the pen looks like "nothing to send"."""

    def answer(given: Any) -> dict[str, Any]:
        rejected = rejected_values(given)
        return kind.answer(given) | ({"ruv_values_rejected": rejected} if rejected else {})

    return replace(kind, answer=answer)


KINDS = {name: _telling_rejects(kind) for name, kind in _KINDS.items()}
