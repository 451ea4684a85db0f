"""A plan, and what was done of it, as data that a page shows: what `workbench.repair.plan_text` tells a terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workbench.journal import Record, records_of
from workbench.model import counted
from workbench.repair.plan_progress import BEGINS, JOURNAL
from workbench.repair.plan_text import file_of, words_of
from workbench.repair.plan_types import ALL, EvaluatedRepair, Plan, Step, loss_told
from workbench.safety import printable

_LINES = 40
"""Of what a step sends, so many lines are shown; the plan has all of them."""

_ROWS = 8
"""Of what a refused way would lose."""


def page_of(plan: Plan) -> dict[str, Any]:
    """The whole plan: how the servers stand and will stand, the ways compared, the steps."""
    needs: dict[str, list[EvaluatedRepair]] = {}
    for course in plan.courses:
        needs.setdefault(course.need, []).append(course)
    return {
        "id": plan.id,
        "case": plan.case,
        "snapshot": plan.snapshot,
        "made_at": plan.made_at,
        "states": list(_states(plan)),
        "needs": [{"need": need, "courses": [_course(one) for one in mine]} for need, mine in needs.items()],
        "steps": [step_page(plan, step) for step in plan.steps],
        "open": [*plan.open, *plan.left],
    }


def _states(plan: Plan) -> Iterable[dict[str, Any]]:
    after = {(one["server"], one["suffix"]): one for one in plan.after}
    for one in plan.before:
        then = after[one["server"], one["suffix"]]
        yield {
            "server": one["server"],
            "suffix": one["suffix"] or "",
            "missing": one["missing"],
            "pending": one["pending"],
            "then_missing": then["missing"],
            "then_pending": then["pending"],
        }


def _course(course: EvaluatedRepair) -> dict[str, Any]:
    loses = [loss_told(row) for row in course.loses[:_ROWS]]
    also = [
        f"not to be used meanwhile: {course.downtime}" if course.downtime else "",
        f"load: {course.load}" if course.load else "",
        f"costs: {course.costs}" if course.costs else "",
        *loses,
        f"and {len(course.loses) - _ROWS:,} more" if len(course.loses) > _ROWS else "",
    ]
    verdict = (
        "chosen" if course.chosen else "refused" if course.refused else "proven" if course.proven else "not proven"
    )
    return {
        "way": course.way,
        "says": course.says,
        "verdict": verdict,
        "why": course.why if course.chosen else course.refused,
        "restored": course.restored,
        "lost": course.lost,
        "saved": course.saved,
        "also": [one for one in also if one],
    }


def step_page(plan: Plan, step: Step) -> dict[str, Any]:
    """One step whole: its direction, what is typed and sent, how it is undone, what may go wrong."""
    file = file_of(plan, step)
    return {
        "key": step.key,
        "server": step.server,
        "on": step.on,
        "says": step.says,
        "stands_on": step.stands_on,
        "expects": step.expects,
        "risk": step.risk,
        "assumes": step.assumptions,
        "loses": f"all data of {step.server} is replaced" if step.changes == ALL else "",
        "changes": None if step.changes == ALL else step.changes,
        "commands": [shlex.join(words_of(one, file)) for one in step.commands],
        "sends": _shown(step.sends),
        "undo": step.undo,
        "cannot_undo": step.cannot_undo,
        "undo_commands": [shlex.join(words_of(one, file)) for one in step.undo_commands],
        "undo_sends": _shown(step.undo_sends),
        "effects": [json.dumps(dict(one), default=str) for one in step.effects[:_ROWS]],
    }


def _shown(sent: str) -> str:
    lines = printable(sent).splitlines()
    more = [f"... {len(lines) - _LINES:,} more lines: see the plan"] if len(lines) > _LINES else []
    return "\n".join([*lines[:_LINES], *more])


def losses_of(plan: Plan, steps: Sequence[Step]) -> list[str]:
    """What these steps of the plan throw away or cannot take back, in sentences."""
    told = [
        f"{one.way}: loses {counted(one.lost)}, of which {one.saved:,} are saved to a file first"
        for one in plan.courses
        if one.chosen and one.lost
    ]
    told += [f"all data of {step.server} is replaced ({step.key})" for step in steps if step.changes == ALL]
    told += [f"{step.key} cannot be undone: {step.cannot_undo}" for step in steps if not step.undo]
    return told


def journal_rows(folder: Path) -> list[dict[str, Any]]:
    """What the journal of a case says, a row for each record. Raises Problem if it is damaged."""
    return [_row(record) for record in records_of(folder / JOURNAL, BEGINS)]


def _row(record: Record) -> dict[str, Any]:
    by = record.get("by")
    says = [
        f"by {by.get('user')} on {by.get('host')}, process {by.get('pid')}" if isinstance(by, dict) else "",
        f"{record['steps']} steps" if "steps" in record else "",
        f"took over from {record['taken_over_from']}" if record.get("taken_over_from") else "",
        "somebody else did it" if record.get("already") else "",
        str(record.get("why", "")),
    ]
    return {
        "n": record["n"],
        "at": record["at"][:19].replace("T", " "),
        "plan": record["plan"],
        "what": record["what"],
        "step": str(record.get("step", "")),
        "says": "; ".join(one for one in says if one),
    }
