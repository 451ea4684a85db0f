"""The commands that run notebooks without a person: `run`, and `check`, which compares what they find."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from workbench.boundary import printable
from workbench.checks import CLEAN, FINDINGS, INCONCLUSIVE, OUTCOMES
from workbench.checks import FAILED as NOT_CHECKED
from workbench.cli.terminal import JSON, check_outputs, give, main

if TYPE_CHECKING:
    from workbench.runs.orders import Order
    from workbench.runs.running import Run

EXIT = {CLEAN: 0, FINDINGS: 1, NOT_CHECKED: 2, INCONCLUSIVE: 3}


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@JSON
@click.pass_context
def run(context: click.Context, files: tuple[Path, ...], json_to: str | None) -> None:
    """Run the notebooks that parameters FILEs name, each in its case, without a person.

    All files are checked before anything is run. What each run shows is in CASE/runs. A run that does not come to the end of
    its last cell has failed: exit code 2. Else the exit code is that of the worst verdict: 1 for findings, 3 where the
    evidence does not go far enough, 0 for clean.
    """
    from workbench.runs.orders import read_orders
    from workbench.runs.running import run as ran

    asked = [read_orders(path) for path in files]
    kept = [*files, *(case / "case.yaml" for one in asked for case in {order.case_folder for order in one.runs})]
    check_outputs(json_to, None, kept)
    made: list[Run] = []
    for orders in asked:
        for order in orders.runs:
            with Cells() as cells:
                made.append(ran(order, cells, orders.keep))
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
    return {**vars(one), "folder": str(one.folder) if one.folder else None}


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


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--no-run", is_flag=True, help="Run nothing: look at the last runs, and whether they are recent enough.")
@click.option("--accept", "accepting", is_flag=True, help="Make what is found now the baseline; needs --reason.")
@click.option("--reason", default="", metavar="TEXT", help="Why what is found now is as it should be.")
@JSON
@click.option("--junit", "junit_to", metavar="FILE", help="Write JUnit XML there; - is standard output.")
@click.pass_context
def check(
    context: click.Context,
    files: tuple[Path, ...],
    no_run: bool,
    accepting: bool,
    reason: str,
    json_to: str | None,
    junit_to: str | None,
) -> None:
    """Run the notebooks that parameters FILEs name, and hold what they find against what was accepted before.

    What counts is what is new or worse than the baseline beside the file (FILE.baseline.json); where nothing was accepted
    yet, every finding. A run that failed or could not tell is never a pass. Exit codes: 0 clean, 1 new or worse, 2 a run
    failed, 3 inconclusive.
    """
    from workbench.runs import checking, notices, told
    from workbench.runs.orders import read_orders
    from workbench.runs.running import run as ran

    if accepting and not reason.strip():
        raise click.UsageError("--accept needs --reason: somebody will ask why this was taken for good")
    asked = [(orders := read_orders(path), checking.demands_of(orders)) for path in files]
    people = [notices.notify_of(orders) for orders, _ in asked]
    kept = [path for orders, _ in asked for path in (orders.path, checking.baseline_of(orders))]
    check_outputs(json_to, junit_to, kept, "--junit")
    known = [checking.read_baseline(checking.baseline_of(orders)) if not accepting else None for orders, _ in asked]
    found, silent = [], False
    for (orders, demands), baseline, notify in zip(asked, known, people, strict=True):
        now = datetime.now(UTC)
        if no_run:
            runs = checking.last_runs(orders, demands, now)
        else:
            runs = []
            for order in orders.runs:
                with Cells() as cells:
                    runs.append(ran(order, cells, orders.keep))
        if accepting:
            path = checking.accept(orders, runs, reason)
            click.echo(f"accepted: {printable(str(path))}", err=True)
            baseline = checking.read_baseline(path)
        mine = checking.checked(orders, runs, demands, baseline or {"runs": {}}, now.date())
        for why in notices.tell(notify, orders.path.stem, mine):
            silent = True
            click.echo(f"workbench: {why}", err=True)
        found += mine
    if json_to:
        give(json.dumps(told.checked_json(found), indent=1) + "\n", json_to)
    if junit_to:
        give(told.checked_junit(found, ", ".join(path.stem for path in files)), junit_to)
    if "-" not in (json_to, junit_to):
        click.echo(told.checked_text(found), nl=False)
    # Whoever waits for a message would take silence for a pass.
    context.exit(EXIT[NOT_CHECKED if silent else told.worst(found)])
