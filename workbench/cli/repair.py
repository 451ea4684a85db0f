"""The commands that put things back: `plan`, `apply`, `resume`, `verify`."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from workbench.cli.diagnosis import SOURCE, with_sources
from workbench.cli.servers import ended_in_order, reach_of, reaching
from workbench.cli.terminal import DEAD_OWNER, JSON, check_outputs, give, main, say
from workbench.model import Problem
from workbench.repair.plan_progress import PlanProgress
from workbench.repair.plan_text import file_of, plan_text, step_text
from workbench.repair.plan_types import NAME, Plan, as_json, read_plan, to_accept
from workbench.repair.server_access import REPLICATION_PASSWORD
from workbench.rules.assumptions import ASSUMPTIONS
from workbench.safety import printable
from workbench.text_table import aligned, one_cell

_ONCE = {"max_steps", "max_changes", "dead_owner"}
"""Options of one run, not of the next one."""

_PLAN = click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path, readable=False))


@main.command()
@click.argument("case_folder", metavar="CASE", type=click.Path(path_type=Path, readable=False))
@click.option(
    "--for", "only", metavar="CODE|SERVER|ORIGIN", multiple=True, help="Only what this names needs; repeatable."
)
@click.option("--way", "ways", metavar="NAME", multiple=True, help="Take this way where it is proven; repeatable.")
@click.option("--as-of", metavar="SNAPSHOT|TIME", help="Plan for this snapshot, or the last one as old as this time.")
@click.option("--bundle", type=click.Path(path_type=Path), help="Also write a folder for whoever runs it by hand.")
@SOURCE
@JSON
def plan(
    case_folder: Path,
    only: tuple[str, ...],
    ways: tuple[str, ...],
    as_of: str | None,
    bundle: Path | None,
    sources: tuple[str, ...],
    json_to: str | None,
) -> None:
    """Plan the repair of a CASE: from its findings to steps, each with its exact commands, proven on a model.

    Nothing is written to any server. The plan goes into the case; read it, then `workbench apply CASE`. Exit code 1: a
    finding of warning or above is left that the plan does not mend; it is named under "Not mended by this plan".
    """
    from workbench.case.case import Case
    from workbench.cli.diagnosis import kept_of
    from workbench.intake.collection import check_free
    from workbench.repair.bundles import OWN_FOLDER, write_bundle
    from workbench.repair.case_plan import keep
    from workbench.repair.planner import plan as planned

    case = Case.open(case_folder)
    with_sources(case, sources)
    check_outputs(json_to, None, [*kept_of(case), case.folder])
    if bundle:
        check_free(bundle, OWN_FOLDER)
    made = planned(case, only, ways, as_of)
    keep(made, case.folder)
    if bundle:
        write_bundle(made, bundle)
    if json_to:
        give(json.dumps(as_json(made), indent=1) + "\n", json_to)
    if json_to != "-":
        click.echo(plan_text(made))
        if made.steps:
            click.echo(f"\nplan: {printable(str(case.folder / NAME))}")
        if bundle:
            click.echo(f"bundle: {printable(str(bundle))}")
    if made.unmended or made.left:
        raise click.exceptions.Exit(1)


def _applying(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `apply` and `resume`."""
    for option in reversed(
        (
            click.option(
                "--confirm",
                "confirmed",
                metavar="NAME",
                multiple=True,
                help="The server whose data or settings change.",
            ),
            click.option(
                "--assume",
                "assumed",
                metavar="CODE",
                multiple=True,
                type=click.Choice(sorted(ASSUMPTIONS)),
                help="What a step takes for granted, and you know to be so.",
            ),
            click.option("--max-steps", type=click.IntRange(1), help="Stop after so many steps of this run."),
            click.option("--max-changes", type=click.IntRange(0), help="Stop before more changes to data than this."),
            click.option(
                "--stop-file", type=click.Path(path_type=Path), help="Stop when this is there; default: CASE/STOP."
            ),
            click.option(
                "--accept-progress", is_flag=True, help="Positions may have gone forward since the plan was made."
            ),
            click.option(
                "--replication-password-file",
                type=click.Path(path_type=Path, exists=True, dir_okay=False),
                help=f"For a temporary link: its first line is the password; else {REPLICATION_PASSWORD}, else asked for.",
            ),
            DEAD_OWNER,
        )
    ):
        command = option(command)
    return reaching(command)


@main.command()
@_PLAN
@click.option("--on-copy", is_flag=True, help="Rehearse on the model of the case; no server is contacted.")
@_applying
def apply(plan_file: Path, on_copy: bool, **options: Any) -> None:
    """Do a PLAN (a case folder, or its plan.json), step by step: each is journaled, done exactly once, and verified.

    What will be done is shown, and the name of every server that changes has to be typed, or given with --confirm. A run that
    is killed or stopped is continued with `workbench resume`; exit code 4 says so.
    """
    plan = read_plan(plan_file)
    if on_copy:
        _rehearse(plan, plan_file)
        return
    _run(plan, plan_file, options, resume=False)


@main.command()
@_PLAN
@click.option("--give-up", is_flag=True, help="Write down that the rest is not to be done; no server is contacted.")
@_applying
def resume(plan_file: Path, give_up: bool, **options: Any) -> None:
    """Go on with a PLAN that was stopped or killed half way. Nothing is applied twice."""
    from workbench.repair.plan_executor import give_up as given_up
    from workbench.repair.plan_progress import half_done

    if give_up:
        folder = _folder(plan_file)
        # The plan itself is not needed for it, and may be lost or damaged: without this no other could ever be made.
        begun = half_done(folder)
        ended = given_up(begun or read_plan(plan_file), folder, dead_owner=options["dead_owner"])
        click.echo(str(ended))
        with suppress(Problem):
            _tell_what_stays(read_plan(plan_file), ended)
        return
    _run(read_plan(plan_file), plan_file, options, resume=True)


def _tell_what_stays(plan: Plan, ended: PlanProgress) -> None:
    for step in plan.steps if plan.id == ended.plan else ():
        if step.key in ended.done:
            way = f"to take it back: {step.undo}" if step.undo else f"it cannot be taken back: {step.cannot_undo}"
            click.echo(one_cell(f"stays as it is: {step.key} on {step.on}; {way}"))
        elif step.key in ended.touched:
            click.echo(one_cell(f"may be done, or done in part, look at it: {step.key}: {step.says}; {step.risk}"))


def _run(plan: Plan, plan_file: Path, options: dict[str, Any], resume: bool) -> None:
    from workbench.repair.plan_executor import FINISHED, check_turn
    from workbench.repair.plan_executor import apply as applied
    from workbench.repair.plan_progress import state_of

    if not plan.steps:
        more = "; what is wrong all the same, `workbench plan` lists" if plan.left or plan.open else ""
        click.echo(f"the plan has no steps: nothing is to be done{more}")
        return
    folder = _folder(plan_file)
    so_far = state_of(folder, plan)
    check_turn(so_far, resume, folder)
    left = [step for step in plan.steps if step.key not in so_far.done]
    site = reach_of(options).site(plan, folder, left)
    steps = [step_text(step, file_of(plan, step)) for step in left]
    say("\n\n".join([f"{so_far}; what is left:", *steps]) if so_far.done else plan_text(plan))
    _confirm(list(dict.fromkeys(step.server for step in left)), options["confirmed"])
    accept(to_accept(left), options["assumed"])
    with ended_in_order():
        outcome = applied(
            plan,
            site,
            folder,
            resume=resume,
            most_steps=options["max_steps"],
            most_changes=options["max_changes"],
            stop_file=options["stop_file"],
            accept_progress=options["accept_progress"],
            patience=options["patience"],
            told=lambda sentence: say(sentence, err=True),
            dead_owner=options["dead_owner"],
            again=again("resume", plan_file),
        )
    say(str(outcome))
    if outcome.state != FINISHED:
        raise click.exceptions.Exit(4)
    for row in site.kept():
        if row["kept"] is not True:
            say(one_cell(f"{'unknown' if row['kept'] is None else 'not yet'}: {row['server']} {row['says']}"))
    say(f"now, and again later: {again('verify', plan_file)}")


def again(verb: str, plan_file: Path) -> str:
    """The command to be typed next, with the options of this one that it knows, as they were given."""
    context, words = click.get_current_context(), ["workbench", verb, str(plan_file)]
    known = {option.name for option in main.commands[verb].params} - _ONCE
    for option in context.command.params:
        if not isinstance(option, click.Option) or option.name not in known:
            continue
        if context.get_parameter_source(option.name) != ParameterSource.COMMANDLINE:
            continue
        given = context.params[option.name]
        if option.is_flag:
            words.append((option.opts if given else option.secondary_opts)[0])
        else:
            words += [word for one in (given if option.multiple else [given]) for word in (option.opts[0], str(one))]
    return shlex.join(words)


def _folder(plan_file: Path) -> Path:
    return plan_file if plan_file.is_dir() else plan_file.resolve().parent


def _confirm(targets: Sequence[str], confirmed: Sequence[str]) -> None:
    """Have the name of every server that changes typed: pressing Enter is no decision."""
    if confirmed:
        if lacking := [name for name in targets if name not in confirmed]:
            raise click.UsageError(
                f"the plan changes {', '.join(targets)}: --confirm {' --confirm '.join(lacking)} is lacking"
            )
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"nobody is there to confirm: give --confirm {' --confirm '.join(targets)}")
    for name in targets:
        try:
            typed = click.prompt(f"this changes {printable(name)}; type its name to go on", err=True)
        except click.Abort:  # Ctrl-C; its own exit code would be that of findings
            typed = None
        if typed != name:
            raise Problem("not confirmed", name, "nothing was done")


def accept(assumed: Sequence[str], accepted: Sequence[str]) -> None:
    """Have each assumption of the steps accepted by a person who knows that it holds."""
    for code in (code for code in assumed if code not in accepted):
        says = ASSUMPTIONS[code]
        if not sys.stdin.isatty():
            raise click.UsageError(f"the plan takes for granted: {says}. If that is so, give --assume {code}")
        try:
            sure = click.confirm(f"the plan takes for granted: {says}. Is that so?", err=True)
        except click.Abort:
            sure = False
        if not sure:
            raise Problem("not accepted", code, "nothing was done")


def _rehearse(plan: Plan, plan_file: Path) -> None:
    from workbench.repair.case_plan import rehearse
    from workbench.repair.plan_executor import FINISHED

    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        outcome = rehearse(
            plan, _folder(plan_file), Path(folder), lambda sentence: click.echo(printable(sentence), err=True)
        )
    click.echo(f"rehearsed on the model, no server was contacted: {printable(str(outcome))}")
    if outcome.state != FINISHED:
        raise click.exceptions.Exit(2)


@main.command()
@_PLAN
@reaching
@JSON
def verify(plan_file: Path, json_to: str | None, **options: Any) -> None:
    """Ask the servers again, and hold them against what a PLAN promised.

    Exit code 0: all is kept. 1: something is not. 3: a server did not answer. What the plan leaves as it is, it says again.
    """
    plan = read_plan(plan_file)
    folder = _folder(plan_file)
    check_outputs(json_to, None, [folder])
    site = reach_of(options).site(plan, folder)
    rows = site.kept()
    if json_to:
        give(json.dumps({"schema": 1, "plan": plan.id, "kept": rows}, indent=1) + "\n", json_to)
    if json_to != "-":
        words = {True: "kept", False: "NOT KEPT", None: "unknown"}
        table = [("SERVER", "", "WHAT"), *((row["server"], words[row["kept"]], row["says"]) for row in rows)]
        click.echo(aligned(table))
        if left := [*plan.open, *plan.left]:
            lines = ["Not mended by this plan, and not looked at here:", *(f"  {printable(one)}" for one in left)]
            click.echo("\n".join(lines))
    if any(row["kept"] is False for row in rows):
        raise click.exceptions.Exit(1)
    if any(row["kept"] is None for row in rows):
        raise click.exceptions.Exit(3)
