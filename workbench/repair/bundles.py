"""A plan as a folder for places where the workbench may not write: a person runs it there with the server's own tools.

The script stops before each step and after the first that fails. What the data says stands in files of their own and behind
quotes, never in the script as words of its own. What a system's commands rely on, its `Repairs` say.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from workbench.intake.collection import check_free
from workbench.journal import write_together
from workbench.model import counted, ends
from workbench.repair.plan_text import file_of, plan_text, step_text, words_of
from workbench.repair.plan_types import ASKED_FOR, READ_THERE, SENT, Plan, Repairs, Step, to_accept
from workbench.rules.assumptions import ASSUMPTIONS
from workbench.safety import printable
from workbench.systems import system_named

OWN_FOLDER = "each bundle has its own"

_WIDTH = 120

_WHAT = (
    "`plan.txt` is the plan as a person reads it: the ways that were compared, why this one, and what each step risks."
)
_BEFORE = (
    "The plan was proven on these positions. Where one went back or vanished since, or the server to be repaired wrote by "
    "itself meanwhile, do not run it: collect and plan again."
)
_HOW = (
    "It stops before every step and asks for the name of the server that the step changes. After a step that fails nothing "
    "more is done. No password is in any file here."
)
_AGAIN = """
Then collect again and diagnose: `workbench collect ... --into AFTER`, `workbench diagnose BEFORE AFTER`.
"""

_HEAD = """\
#!/bin/sh
# {title}
# Plan {id} of {made}. Read README.md first. Each step waits for its name to be typed; anything else ends the script.
# {by_hand}
set -eu
cd "$(dirname "$0")"
{preamble}confirm() {{
    printf '\\n%s\\ntype %s to go on: ' "$1" "$2"
    read -r typed
    [ "$typed" = "$2" ] || {{ echo "not confirmed: nothing more is done"; exit 4; }}
}}
"""

_ACCEPT = """\
accept() {
    printf '\\nThe steps take for granted: %s.\\nIf that is so, type yes to go on: ' "$1"
    read -r typed
    [ "$typed" = yes ] || { echo "not accepted: nothing was done"; exit 4; }
}"""


def write_bundle(plan: Plan, folder: Path) -> list[str]:
    """Write the bundle into a folder that is absent or empty; returns the names of its files."""
    check_free(folder, OWN_FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[str, Iterable[str]] = {"README.md": _readme(plan), "plan.txt": plan_text(plan) + "\n"}
    todo, undo = [_head(plan, "the repair"), *_accepted(plan)], [_head(plan, "the way back, last step first")]
    for step in plan.steps:
        if step.sends:
            texts[file_of(plan, step)] = _repairs(plan).whole(step)
        todo.append(_todo(step, file_of(plan, step)))
    for step in reversed(plan.steps):
        if step.undo_sends:
            texts[f"undo-{file_of(plan, step)}"] = step.undo_sends
        undo.append(_undo(step, f"undo-{file_of(plan, step)}"))
    checks = [_head(plan, "how the servers stand: run it before and after"), *map(shlex.join, plan.checks), ""]
    texts |= {"check.sh": "\n".join(checks), "repair.sh": "\n".join(todo), "undo.sh": "\n".join(undo)}
    write_together({folder / name: text for name, text in texts.items()})
    for script in ("check.sh", "repair.sh", "undo.sh"):
        (folder / script).chmod(0o755)
    return sorted(texts)


def _head(plan: Plan, what: str) -> str:
    repairs = _repairs(plan)
    about = {"by_hand": _comment(repairs.by_hand), "preamble": repairs.preamble}
    return _HEAD.format(title=_comment(f"{what}, for {plan.case}"), id=plan.id, made=plan.made_at, **about)


def _accepted(plan: Plan) -> list[str]:
    """What asks for each assumption of the steps, before the first of them."""
    asked = [f"accept {shlex.quote(ASSUMPTIONS[code])}" for code in to_accept(plan.steps)]
    return [_ACCEPT, *asked, ""] if asked else []


def _repairs(plan: Plan) -> Repairs:
    known = system_named(plan.system).repairs
    assert known is not None, "a plan was made by the repairs of its system"
    found: Repairs = known()
    return found


def _comment(text: str) -> str:
    return printable(text).replace("\n", " ").replace("\r", " ")


def _todo(step: Step, file: str) -> str:
    told = "\n".join(
        f"# {_comment(line)}" for line in step_text(step, file).splitlines() if not line.startswith("  | ")
    )
    lines = [told, f"confirm {shlex.quote(step.says)} {shlex.quote(step.server)}"]
    lines += _not_yet(file, step.sends)
    if step.sends and not any(SENT in command for command in step.commands):  # no command does it: a person has to
        lines += [f"echo {shlex.quote(f'to be done by hand, as {file} says:')}", shlex.join(["cat", file])]
    lines += [shlex.join(words_of(command, file)) for command in step.commands]
    lines.append(f"echo {shlex.quote(f'expect: {step.expects}')}")
    return "\n".join(lines) + "\n"


def _not_yet(file: str, text: str) -> list[str]:
    """The script ends before it sends what is not whole: an entry without its password, an agreement that cannot bind."""
    lines = []
    for mark, what in ((ASKED_FOR, "the password"), (READ_THERE, "the values that no file may hold")):
        if mark in text:
            do = f"write {what} into {file} in place of {mark}, take the # from the beginning of these lines, "
            do += "and run this again; delete the file afterwards"
            lines.append(
                f"if grep -qF {shlex.quote(mark)} {shlex.quote(file)}; then echo {shlex.quote(do)}; exit 4; fi"
            )
    return lines


def _undo(step: Step, file: str) -> str:
    if not step.undo:
        return f"# {_comment(step.key)} cannot be undone: {_comment(step.cannot_undo)}\n"
    lines = [f"# {_comment(step.undo)}", f"confirm {shlex.quote(step.undo)} {shlex.quote(step.server)}"]
    lines += _not_yet(file, step.undo_sends)
    lines += [shlex.join(words_of(command, file)) for command in step.undo_commands]
    return "\n".join(lines) + "\n"


def _claims(one: Mapping[str, Any]) -> str:
    where = (
        f"{one['server']}, {one['suffix'] + ', ' if one['suffix'] else ''}origin {one['origin'] or 'none: read-only'}"
    )
    rows = [f"        {origin}  {position}" for origin, position in one["vector"].items()]
    return printable("\n".join([f"    {where}:", *rows]))


def _wrapped(text: str) -> str:
    return "\n".join(wrap(_comment(text), _WIDTH, break_long_words=False, break_on_hyphens=False))


def _no_step(plan: Plan) -> str:
    if plan.open or plan.left:
        return _wrapped(
            "This plan has no step. `plan.txt` says what it does not mend, and what a person can do about that."
        )
    return "There is nothing to do."


def _readme(plan: Plan) -> str:
    vectors = "\n".join(map(_claims, plan.servers))
    steps = "\n".join(f"{number}. {_comment(step.says)}" for number, step in enumerate(plan.steps, 1))
    promised = "\n".join(
        f"    {printable(row['server'])}: {counted(row['count'])} of origin {row['origin']}, {ends(row['first'], row['last'])}"
        for row in plan.promise
    )
    repairs, system = _repairs(plan), system_named(plan.system)
    made = f"Plan {plan.id}, made {plan.made_at} on the snapshot {plan.snapshot}."
    return f"""\
# Repair of {_comment(plan.case)}

{_wrapped(f"{made} {_WHAT}")}

{steps or _no_step(plan)}

## Before

{_wrapped(f"{_BEFORE} {repairs.checked}")}

{vectors}

## Run it

    sh repair.sh

{_wrapped(f"{_HOW} {repairs.by_hand}")}

## After

{_wrapped(f"{repairs.checked} These are there:")}

{promised or "    (the plan restores no single changes)"}
{_AGAIN if system.servers else ""}
## Back

`sh undo.sh` takes back what can be taken back, the last step first; it says what cannot.
"""
