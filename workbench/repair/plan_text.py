"""A plan as a person reads it before anything is done: before and after, the ways that were compared, every step whole."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from workbench.repair.plan_types import SENT, EvaluatedRepair, Plan, Step, loss_told
from workbench.safety import as_file_name, printable
from workbench.text_table import aligned, one_cell

_LINES_SHOWN = 40
_LOSSES_SHOWN = 8


def plan_text(plan: Plan) -> str:
    """The whole plan."""
    head = f"Plan {plan.id} for {one_cell(plan.case)}, made {plan.made_at} on snapshot {one_cell(plan.snapshot)}"
    parts = [head, states_text(plan)]
    if plan.courses:
        parts.append("\n".join(_courses(plan)))
    if plan.steps:
        parts.append(_positions(plan))
    if plan.steps:
        parts += [step_text(step, file_of(plan, step)) for step in plan.steps]
    elif not plan.courses and not plan.unmended and not plan.open and not plan.left:
        if plan.unread:
            parts.append(
                f"Nothing of what was collected needs mending; not collected: {one_cell(', '.join(plan.unread))}."
            )
        else:
            parts.append("Nothing needs mending.")
    if plan.open or plan.left:
        lines = (f"  {one_cell(one)}" for one in (*plan.open, *plan.left))
        parts.append("Not mended by this plan:\n" + "\n".join(lines))
    return "\n\n".join(filter(None, parts))


def states_text(plan: Plan) -> str:
    """What each server lacks now, and on the model with all steps done."""
    after = {(one["server"], one["suffix"]): one for one in plan.after}
    heads = ("SERVER", "SUFFIX", "MISSING", "PENDING", "THEN MISSING", "THEN PENDING")
    rows = []
    for one in plan.before:
        then = after[one["server"], one["suffix"]]
        numbers = (one["missing"], one["pending"], then["missing"], then["pending"])
        rows.append((one["server"], one["suffix"] or "", *(f"{number:,}" for number in numbers)))
    if not rows:
        return "" if plan.servers else "No server with a vector was collected."
    unread = (
        f"\nNot collected, and in none of these numbers: {one_cell(', '.join(plan.unread))}." if plan.unread else ""
    )
    return aligned([heads, *rows], right=(2, 3, 4, 5)) + unread


def _positions(plan: Plan) -> str:
    """What every server claimed: a step is done only if it stands there still, or where the steps before have left it."""
    rows = [
        (one["server"], one["suffix"] or "", origin, position)
        for one in plan.servers
        for origin, position in one["vector"].items()
    ]
    table = aligned([("SERVER", "SUFFIX", "ORIGIN", "CLAIMS"), *rows])
    where = "Each step is done only if the servers stand where they stood, or where the steps before have left them."
    if any(step.details.get("compared") for step in plan.steps):
        where += (
            "\nA step that writes an entry again, or fills a server, compares what it touches on all servers by itself: there "
            "positions may have gone forward."
        )
    return f"{where}\n{table}"


def _courses(plan: Plan) -> Iterator[str]:
    need = None
    for course in plan.courses:
        if course.need != need:
            need = course.need
            yield f"{one_cell(need)}"
        mark = "*" if course.chosen else "-" if course.refused else " "
        yield f" {mark} {one_cell(course.way)}: {one_cell(course.says)}"
        if course.refused:
            yield f"     refused: {one_cell(course.refused)}"
            for row in course.loses[:_LOSSES_SHOWN]:
                yield one_cell(f"       {loss_told(row)}")
            if course.unasked:
                yield f"     if you ask for it, it {_effect(course)}"
        elif course.proven:
            yield f"     {_effect(course)}"
        if course.chosen:
            yield f"     chosen: {one_cell(course.why)}"


def _effect(course: EvaluatedRepair) -> str:
    told = [f"restores {course.restored:,}"]
    if course.lost:
        told.append(f"loses {course.lost:,}, of which {course.saved:,} are saved to a file first")
    elif course.unasked:
        told.append("loses none")
    told += [f"load: {course.load}"] * bool(course.load)
    told += [f"not to be used meanwhile: {course.downtime}"] * bool(course.downtime)
    told += [f"costs: {course.costs}"] * bool(course.costs)
    return one_cell("; ".join(told))


def file_of(plan: Plan, step: Step) -> str:
    """The name of the file that holds what a step sends."""
    return f"{as_file_name(step.key)}.{plan.ending}"


def words_of(command: Sequence[str], file: str) -> list[str]:
    """The words of a command, with the file of what is sent."""
    return [file if word == SENT else word for word in command]


def step_text(step: Step, file: str) -> str:
    """One step, with everything that is sent, which `file` holds."""
    lines = [f"Step {one_cell(step.key)} (changes {one_cell(step.server)}, is done on {one_cell(step.on)})"]
    lines.append(f"  {one_cell(step.says)}")
    lines.append(f"  before: {one_cell(step.stands_on)}")
    lines.append(f"  expect: {one_cell(step.expects)}")
    lines.append(f"  risk:   {one_cell(step.risk)}")
    lines += [f"  taken for granted: {step.assumptions}"] if step.assumes else []
    lines.append(f"  undo:   {one_cell(step.undo) if step.undo else f'cannot be undone: {one_cell(step.cannot_undo)}'}")
    lines += [f"  $ {printable(shlex.join(words_of(command, file)))}" for command in step.commands]
    shown = printable(step.sends).splitlines()
    lines += [f"  | {line}" for line in shown[:_LINES_SHOWN]]
    if len(shown) > _LINES_SHOWN:
        lines.append(f"  | ... {len(shown) - _LINES_SHOWN:,} more lines: see the plan, or make a bundle of it")
    return "\n".join(lines)
