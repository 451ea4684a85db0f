"""The commands that run notebooks without a person: `run`, and `check`, which compares what they find."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from workbench.case.case import Case
from workbench.cli.diagnosis import case_around, kept_of
from workbench.cli.servers import ended_in_order
from workbench.cli.terminal import DEAD_OWNER, JSON, check_outputs, give, main, not_written, say, unread
from workbench.model import Problem
from workbench.runs.baseline_check import CLEAN, FINDINGS, INCONCLUSIVE, OUTCOMES
from workbench.runs.baseline_check import FAILED as NOT_CHECKED
from workbench.safety import printable

if TYPE_CHECKING:
    from workbench.runs.regression_check import CheckedRun
    from workbench.runs.run_config import Order, Orders
    from workbench.runs.running import Run

EXIT = {CLEAN: 0, FINDINGS: 1, NOT_CHECKED: 2, INCONCLUSIVE: 3}


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@DEAD_OWNER
@JSON
@click.pass_context
def run(context: click.Context, files: tuple[Path, ...], dead_owner: str | None, json_to: str | None) -> None:
    """Run the notebooks that parameters FILEs name, each in its case, without a person.

    All files are checked before anything is run. What each run shows is in CASE/runs. A run that does not come to the end of
    its last cell has failed: exit code 2. Else the exit code is that of the worst verdict: 1 for findings, 3 where the
    evidence does not go far enough, 0 for clean.
    """
    from workbench.runs.run_config import read_orders
    from workbench.runs.running import run as ran

    asked = [read_orders(path) for path in files]
    for orders in asked:
        for one in orders.refused:
            raise Problem(one.why)
    _check_outputs(json_to, None, files, asked)
    made: list[Run] = []
    for orders in asked:
        for order in orders.runs:
            with Cells() as cells:
                made.append(ran(order, cells, orders.keep, dead_owner))
            click.echo(told(made[-1]), err=json_to == "-")
    if json_to:
        give(json.dumps({"schema": 1, "runs": [as_json(one) for one in made]}, indent=1) + "\n", json_to)
    context.exit(EXIT[worst(made)])


def worst(made: Sequence[Run]) -> str:
    """The worst verdict of some runs; one that failed is worse than any."""
    return max((one.facts.get("verdict", NOT_CHECKED) for one in made), key=OUTCOMES.index)


def told(one: Run) -> str:
    """A run in one line."""
    where = f" -> {printable(str(one.folder))}" if one.folder else ""
    return f"{printable(one.name)}: {one.facts.get('verdict') or f'FAILED: {printable(one.why)}'}{where}"


def as_json(one: Run) -> dict[str, Any]:
    """A run as `--json` has it."""
    return {**vars(one), "file": one.file_name, "folder": str(one.folder) if one.folder else None}


class Cells:
    """Which cell of a run is at work: a bar on a terminal, nothing elsewhere: the last line tells how it ended."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> Cells:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, order: Order, cell: int, cells: int) -> None:
        if sys.stderr.isatty():
            if self._bar is None:
                self._bar = tqdm(total=cells, unit="cell", desc=printable(order.name), leave=False)
            self._bar.update(cell - 1 - self._bar.n)


def _check_outputs(json_to: str | None, junit_to: str | None, files: Sequence[Path], asked: Sequence[Orders]) -> None:
    """Refuse outputs in a case, and on anything that the runs read."""
    from workbench.runs.notification_state import kept_for
    from workbench.runs.notifications import files_of
    from workbench.runs.regression_check import baseline_of

    kept, homes = list(files), set[Path]()
    for orders in asked:
        kept += [baseline_of(orders), kept_for(orders.path), *files_of(orders)]
        for order in [*orders.runs, *(one.order for one in orders.refused)]:
            homes |= {order.case_folder.resolve(), *order.paths}  # a case may be still to be made
            with suppress(Problem, OSError):
                kept += kept_of(Case.open(order.case_folder))
    check_outputs(json_to, junit_to, [*kept, *homes], "--junit")
    for to in (json_to, junit_to):
        if to and to != "-" and (case_around(Path(to)) or not homes.isdisjoint(Path(to).resolve().parents)):
            raise Problem("this lies in a case, or in what a run reads", to, "give a file elsewhere")


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--no-run", is_flag=True, help="Run nothing: look at the last runs, and whether they are recent enough.")
@click.option("--accept", "accepting", is_flag=True, help="Make what is found now the baseline; needs --reason.")
@click.option("--reason", default="", metavar="TEXT", help="Why what is found now is as it should be.")
@DEAD_OWNER
@JSON
@click.option("--junit", "junit_to", metavar="FILE", help="Write JUnit XML there; - is standard output.")
@click.pass_context
def check(
    context: click.Context,
    files: tuple[Path, ...],
    no_run: bool,
    accepting: bool,
    reason: str,
    dead_owner: str | None,
    json_to: str | None,
    junit_to: str | None,
) -> None:
    """Run the notebooks that parameters FILEs name, and hold what they find against what was accepted before.

    What counts is what is new or worse than the baseline beside the file (FILE.baseline.json); where nothing was accepted
    yet, every finding. A run that failed or could not tell is never a pass, also if it could not before. A file that cannot be
    used, or a case that is not there, has failed; the others are run. --no-run demands `max_age` in the file, also to accept.
    Ctrl-C and being told to end count what was not run as failed, write and tell that. Exit codes: 0 clean, 1 new or worse, 2 a
    run failed, an output could not be written, or somebody could not be told, 3 inconclusive.
    """
    from workbench.runs import check_output, regression_check

    if accepting and not reason.strip():
        raise click.UsageError("--accept needs --reason: somebody will ask why this was taken for good")
    nights = [Night(path, no_run, accepting) for path in files]
    _check_outputs(json_to, junit_to, files, [one.orders for one in nights])
    # A check that is killed must not leave the pass of last night.
    kept = [
        to if to and to != "-" and (Path(to).is_file() or not Path(to).exists()) else None for to in (json_to, junit_to)
    ]
    problems = _write([checked for one in nights for checked in one.begun()], *kept)
    try:
        with ended_in_order():
            for one in nights:
                one.run(dead_owner)
    except KeyboardInterrupt:
        say("workbench: the check is ended; what was not run counts as failed", err=True)
    for one in nights:
        one.judge()
    not_accepted = _accepted(nights, reason) if accepting else []
    found = [checked for one in nights for checked in one.checked]
    # All files or none: of each it is told that nothing was.
    whys = {one.orders.path: str(problem) for problem in not_accepted for one in nights}
    found += [regression_check.not_begun(path, why, regression_check.NOT_ACCEPTED) for path, why in whys.items()]
    problems += _write(found, json_to, junit_to)
    for one in nights:
        problems += one.tell()
    for each in dict.fromkeys(str(one) for one in [*not_accepted, *problems]):
        say(f"workbench: {each}", err=True)
    if "-" not in (json_to, junit_to):
        click.echo(check_output.checked_text(found), nl=False)
    # Whoever waits for a message would take silence for a pass.
    context.exit(EXIT[NOT_CHECKED if problems else check_output.worst(found)])


def _write(found: Sequence[CheckedRun], json_to: str | None, junit_to: str | None) -> list[Problem]:
    """Write the outputs; gives what could not be written: then the other one is, all the same."""
    from workbench.runs import check_output

    problems = []
    for text, to in (
        (json.dumps(check_output.checked_json(found), indent=1) + "\n", json_to),
        (check_output.checked_junit(found), junit_to),
    ):
        try:
            if to:
                give(text, to)
        except Problem as problem:
            problems.append(problem)
        except OSError as error:  # of standard output
            problems.append(not_written(error, "-"))
            unread(sys.stdout)
    return problems


class Night:
    """What a check does about one parameters file. Whatever is wrong with it is a failed run of it, for all who look."""

    def __init__(self, path: Path, no_run: bool, accepting: bool) -> None:
        from workbench.runs import notifications, regression_check, run_config

        self.orders, self.demands, self.notify = (
            run_config.Orders(path, []),
            regression_check.Demands(),
            notifications.Notify(),
        )
        self.baseline: Mapping[str, Any] = {"runs": {}}
        self.runs: list[Run] = []
        self.no_run, self.wrong = no_run, ""
        self.checked: list[CheckedRun] = []
        try:
            self.orders = run_config.only_notify(path)  # first: others have to learn of what is wrong below
            self.notify = notifications.notify_of(self.orders)
            self.orders = run_config.read_orders(path)
            self.demands = regression_check.demands_of(self.orders, no_run)
            if not accepting:
                self.baseline = regression_check.read_baseline(regression_check.baseline_of(self.orders))
        except Problem as problem:
            self.wrong = str(problem)

    def begun(self) -> list[CheckedRun]:
        """What stands for its runs until they have ended."""
        from workbench.runs import regression_check

        return self._unusable() or regression_check.not_ended(self.orders)

    def run(self, dead_owner: str | None) -> None:
        """Run all that can be, or look at the last runs."""
        from workbench.runs import regression_check
        from workbench.runs.running import run as ran

        if self.wrong:
            return
        if self.no_run:
            self.runs = regression_check.last_runs(self.orders, self.demands, datetime.now(UTC))
        for order in [] if self.no_run else self.orders.runs:
            with Cells() as cells:
                self.runs.append(ran(order, cells, self.orders.keep, dead_owner))

    def judge(self) -> None:
        """Hold the runs against the baseline; those that were not made have failed."""
        from workbench.runs import regression_check

        self.checked = self._unusable()
        if not self.wrong:
            made = {one.name for one in self.runs}
            left = [one for one in self.orders.runs if one.name not in made]
            self.runs += [regression_check.failed(one, "the check was ended before this run was done") for one in left]
            refused = [one for one in self.orders.refused if one.order.name not in made]
            self.runs += [regression_check.failed(one.order, one.why) for one in refused]
            self.checked = regression_check.checked(
                self.orders, self.runs, self.demands, self.baseline, datetime.now(UTC)
            )
        if self.notify.wrong:
            whys = "; ".join(self.notify.wrong)
            self.checked.append(regression_check.not_begun(self.orders.path, whys, regression_check.NOT_TOLD))

    def _unusable(self) -> list[CheckedRun]:
        """What stands for the runs of a file that cannot be used; nothing, if it can be."""
        from workbench.runs import regression_check

        return [regression_check.not_begun(self.orders.path, self.wrong)] if self.wrong else []

    def tell(self) -> list[Problem]:
        """Tell people what they do not know yet; gives what did not work."""
        from workbench.runs.notification_state import News
        from workbench.runs.notifications import tell

        news = News(self.orders.path, self.checked, self.demands.terms, datetime.now(UTC).date(), self.no_run)
        return [Problem(why) for why in tell(self.notify, self.orders.path.stem, news)]


def _accepted(nights: Sequence[Night], reason: str) -> list[Problem]:
    """Accept the runs of all files, or of none; gives why not."""
    from workbench.runs import regression_check

    try:
        for one in nights:
            if one.wrong:
                raise Problem("nothing was accepted", str(one.orders.path), one.wrong)
        for path in regression_check.accept([(one.orders, one.runs) for one in nights], reason):
            say(f"accepted: {path}", err=True)
        problems = []
    except Problem as problem:
        problems = [problem]
    except OSError as error:
        problems = [Problem(f"nothing was accepted: {error.strerror}", str(error.filename or ""))]
    for one in nights:
        if not one.wrong:
            one.baseline = regression_check.baseline_if_any(one.orders)
            one.judge()
    return problems
