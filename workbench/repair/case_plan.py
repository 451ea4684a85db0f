"""The plan of a case: made and kept there, or the one that is half done; and how it is rehearsed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.case.case import Case
from workbench.diagnosis.incident import RECORD
from workbench.journal import owned, write_whole
from workbench.model import Problem
from workbench.repair.plan_executor import Outcome, apply
from workbench.repair.plan_progress import FINISHED, HALF_DONE, half_done, state_of
from workbench.repair.plan_types import NAME, Plan, as_json, read_plan
from workbench.repair.planner import models_of
from workbench.repair.planner import plan as planned
from workbench.repair.rehearsal import Rehearsal
from workbench.safety import printable
from workbench.systems import system_named


def keep(plan: Plan, folder: Path) -> None:
    """Make it the plan of the case in this folder; raises Problem while another repair of the case is half done."""
    try:
        with owned(folder):
            standing = state_of(folder, plan)
            if standing.other or standing.state == HALF_DONE:
                do = f"go on with it: `workbench resume {folder}`, or give it up: `workbench resume {folder} --give-up`"
                raise Problem("a repair of this case is half done", str(folder / NAME), do)
            write_whole(folder / NAME, json.dumps(as_json(plan), indent=1) + "\n")
    except PermissionError as error:
        do = "copy the case to a place where you may write, and plan there"
        raise Problem(f"the plan cannot be kept: {error.strerror}", printable(str(folder)), do) from None


def plan_for(
    case: Case, only: Sequence[str] = (), ways: Sequence[str] = (), told: Callable[[str], None] = print
) -> Plan:
    """The plan to go on with: the half-done one of the case, whatever is asked for, else a new one that is kept with it.

    A plan that is done stays the plan of the case until there is evidence of what came of it: what was collected before it
    asks for the same steps again. A run without a person replaces no plan: somebody may be about to apply the one that is kept.
    """
    only, ways = ([one] if isinstance(one, str) else one for one in (only, ways))
    if begun := half_done(case.folder):
        kept = read_plan(case.folder)
        if kept.id != begun:
            do = f"bring its file back, or give it up: `workbench resume {case.folder} --give-up`"
            raise Problem("a repair of this case is half done, and its plan is gone", str(case.folder / NAME), do)
        return kept
    made = planned(case, only, ways)
    kept_before = kept_plan(case)
    same = kept_before is not None and (made.snapshot, made.steps) == (kept_before.snapshot, kept_before.steps)
    if kept_before and same and state_of(case.folder, kept_before).state == FINISHED:
        return kept_before
    if kept_before and os.environ.get(RECORD):
        if same:
            return kept_before
        stays = f"another plan is kept with the case, and stays: {case.folder / NAME}, made at {kept_before.made_at}"
        told(printable(f"{stays}. The one that is shown here is not kept: `workbench plan {case.folder}` keeps it"))
        return made
    keep(made, case.folder)
    return made


def kept_plan(case: Case) -> Plan | None:
    """The plan that is kept with the case; None if none was made."""
    return read_plan(case.folder) if (case.folder / NAME).exists() else None


def rehearse(
    plan: Plan,
    case_folder: Path,
    into: Path,
    told: Callable[[str], None] = lambda sentence: None,
    halt: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Do the plan on the model of its case, with its journal in the folder `into`. No server is contacted."""
    case = Case.open(case_folder)
    site = Rehearsal(plan, models_of(case, plan.snapshot), system_named(plan.system).show)
    return apply(plan, site, into, told=told, patience=0, halt=halt)
