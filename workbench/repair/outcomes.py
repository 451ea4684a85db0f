"""How a way of repair comes out on the model: what it restores, what it loses, and why it is refused if it is."""

from __future__ import annotations

from dataclasses import replace

from workbench.model import counted
from workbench.repair.event_orders import made_worse
from workbench.repair.plan_types import EvaluatedRepair, Need, ProposedRepair, View
from workbench.rules.repair_model import Model
from workbench.rules.repair_result import Achieved, achieved


def outcome_of(view: View, need: Need, draft: ProposedRepair) -> tuple[Achieved | None, Model | None, EvaluatedRepair]:
    """The way tried on the model: what it achieves, the model afterwards, and both as a course of the plan."""
    plain = EvaluatedRepair(need.name, draft.way, draft.says, False, draft.refused)
    course = replace(plain, load=draft.load, downtime=draft.downtime, costs=draft.costs, unasked=draft.unasked)
    effects = [effect for step in draft.steps for effect in step.effects]
    if not effects:
        return None, None, course
    result, after = achieved(view.model, effects)
    changes = view.model.lots
    gone = {lack.lot for lack in result.lost} & after.thrown_away(view.model)
    course = replace(
        course,
        restored=view.model.changes(result.restored),
        lost=sum(changes[lot].changes for lot in gone),
        saved=sum(changes[lot].changes for lot in gone & after.saved),
    )
    left = need.lacks - result.restored
    thrown = gone - after.saved
    if thrown:
        why = f"the model throws away {counted(sum(changes[lot].changes for lot in thrown))} unsaved"
    elif result.unsaid:
        who = ", ".join(sorted({lack.server for lack in result.unsaid}))
        why = f"the model lacks {counted(view.model.changes(result.unsaid))} afterwards that it did not lack, on {who}"
    elif need.lacks and left == need.lacks:
        why = "on the model nothing of what is lacking arrives by it"
    elif left & result.left:
        why = f"the model still lacks {counted(view.model.changes(left & result.left))}, for good"
    elif result.cut:
        why = f"{', '.join(sorted(result.cut))} would no longer get what every supplier writes: the log of a filled server is new"
    elif not draft.refused and (worse := made_worse(view.model, effects)):
        why = f"in one order of sessions {worse}"
    else:
        return result, after, replace(course, proven=not draft.refused)
    return result, after, replace(course, refused="; ".join(filter(None, (draft.refused, why))), unasked="")
