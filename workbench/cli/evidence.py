"""The commands that read what was collected: `inspect`, `load`, `demo`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from workbench.case.case import Case, Loaded, PassedOver
from workbench.cli.terminal import CSV, JSON, Reading, check_outputs, give, main
from workbench.demo import INCIDENT, demo_snapshots
from workbench.intake.files import inspect_file, unreadable
from workbench.intake.stream_detail import LISTED
from workbench.model import System
from workbench.safety import printable
from workbench.systems import system_named
from workbench.text_table import aligned, csv_text, one_cell


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, readable=False))
@click.option("--rows", is_flag=True, help="Of streams of transactions: what the tables hold in the end. Shows values.")
@click.option(
    "--limit",
    default=LISTED,
    show_default=True,
    type=click.IntRange(0),
    help="Of streams: records and transactions listed at most.",
)
@JSON
@CSV
def inspect(files: tuple[Path, ...], rows: bool, limit: int, json_to: str | None, csv_to: str | None) -> None:
    """Say what each FILE holds: its format (told by its content), rows read and rejected, and what they show."""
    check_outputs(json_to, csv_to, (path for path in files if not os.path.isdir(path)))
    results: list[dict[str, Any]] = []
    # os.path, because a folder that may not be entered is no error here.
    sizes = [os.path.getsize(path) if os.path.isfile(path) else 0 for path in files]
    with Reading() as reading:
        for number, path in enumerate(files):
            before, known = sum(sizes[:number]), sum(result["rows"] for result in results)

            def watch(done: int, read: int, before: int = before, known: int = known) -> None:
                reading(before + done, sum(sizes), known + read)

            try:
                results.append(inspect_file(path, watch, rows, limit))
            except OSError as error:
                results.append(unreadable(path, error))
    if json_to:
        give(json.dumps(results, indent=1) + "\n", json_to)
    counts = ("file", "format", "bytes", "rows", "accepted", "rejected")
    if csv_to:
        give(csv_text([{key: result[key] for key in counts} for result in results]), csv_to)
    if "-" not in (json_to, csv_to):
        click.echo(
            aligned(
                [[name.upper() for name in counts], *([r[key] for key in counts] for r in results)], right=(2, 3, 4, 5)
            )
        )
        for result in results:
            for line in _said(result):
                click.echo(line)


def _said(result: dict[str, Any]) -> Iterable[str]:
    """What the table of `inspect` has no column for: what was found in a file and why rows were rejected."""
    detail = result["detail"]
    shown = []
    for origin, seen in sorted(detail.get("by_origin", {}).items()):
        shown.append(f"  origin {origin}: {seen['count']} from {seen['min']} to {seen['max']}")
    for holder, vector in sorted(detail.get("vectors", {}).items()):
        shown.append(f"  vector of {holder}, generation {vector['generation'] or 'not written'}")
        for origin, element in sorted(vector["elements"].items()):
            shown.append(f"    origin {origin}: {element['min'] or 'nothing'} to {element['max'] or 'nothing'}")
    if "counts" in detail:
        counted = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(detail["counts"].items()))
        shown.append(f"  transactions: {counted or 'none'}")
    for reject in result["rejects"][:5]:
        shown.append(f"  rejected at {reject['offset']}: {reject['reason']}")
    if result["rejected"] > 5:
        shown.append(f"  and {result['rejected'] - 5} more rejected rows: `--json FILE` lists them")
    if shown:
        yield ""
        yield f"{one_cell(result['file'])}: {result['format']}"
        yield from map(printable, shown)


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, readable=False))
@click.option(
    "--case",
    "case_folder",
    required=True,
    type=click.Path(path_type=Path),
    help="The case folder to make or to add to.",
)
@click.option(
    "--master", metavar="URL", help="Spark master or Connect address; default: SPARK_REMOTE, MASTER, else this machine."
)
@JSON
@CSV
def load(
    folders: tuple[Path, ...], case_folder: Path, master: str | None, json_to: str | None, csv_to: str | None
) -> None:
    """Read collected FOLDERs into the evidence tables of a case.

    Each folder is one snapshot, in the order of time; its files are read without descending. Loading the same files
    again does nothing, loading more adds.
    """
    case = Case.create(case_folder)
    check_outputs(json_to, csv_to, kept(folders, case.folder))
    loaded = loaded_into(case, folders, master)
    _show_holdings(case, loaded, json_to, csv_to)


def loaded_into(case: Case, folders: Iterable[Path], master: str | None) -> Loaded:
    """Load the folders, with progress, and say how much was read."""
    with Reading() as reading:
        loaded = case.load(folders, spark=master, progress=reading)
    seconds = time.monotonic() - reading.started
    size = sum(one.bytes for one in loaded.added)
    known = f", {len(loaded.known)} known already" if loaded.known else ""
    click.echo(
        f"{len(loaded.added)} files read{known}: {size / 1e6:,.1f} MB, {loaded.rows:,} rows in {seconds:.1f} s "
        f"({loaded.rows / seconds:,.0f} rows/s)",
        err=True,
    )
    return loaded


def _show_holdings(case: Case, loaded: Loaded, json_to: str | None, csv_to: str | None) -> None:
    inputs = ("snapshot", "file", "server", "suffix", "format", "bytes", "rows", "accepted", "rejected")
    files = [{key: getattr(one, key) for key in inputs} for one in case.inputs]
    holdings = case.holdings()
    if json_to:
        about = {"case": str(case.folder), "system": case.system, "snapshots": list(case.snapshots)}
        tables = {"inputs": files, "not_read": [vars(one) for one in loaded.passed_over], "holdings": holdings}
        give(json.dumps({**about, **tables}, indent=1) + "\n", json_to)
    if csv_to:
        give(csv_text(holdings), csv_to)
    for line in not_read(loaded):
        click.echo(line, err=True)
    if "-" in (json_to, csv_to):
        return
    new = {(one.snapshot, one.file) for one in loaded.added}
    shown = [one for one in files if (one["snapshot"], one["file"]) in new]
    if shown:
        columns = ("snapshot", "file", "server", "format", "rows", "rejected")
        click.echo(
            aligned(
                [[name.upper() for name in columns], *([one[key] for key in columns] for one in shown)], right=(4, 5)
            )
        )
        click.echo("")
    click.echo(_holdings_text(case, holdings))
    click.echo(f"\ncase: {case.folder}")


def not_read(loaded: Loaded) -> list[str]:
    """A line for each reason why something in the folders was not read, or not whole."""
    wrong = [PassedOver(one.snapshot, one.file, one.why) for one in loaded.added if one.why]
    return [*_by_reason("not read", loaded.passed_over), *_by_reason("not whole", wrong)]


def _by_reason(what: str, passed_over: Iterable[PassedOver], named: int = 5) -> Iterable[str]:
    """One line for each reason why things in the folders are `what` (`not read`), with the first names."""
    kinds: dict[str, list[str]] = {}
    for one in passed_over:
        kinds.setdefault(one.why, []).append(f"{one.snapshot}/{one.name}")
    for why, names in sorted(kinds.items()):
        more = f" and {len(names) - named:,} more" if len(names) > named else ""
        yield f"{what}: {len(names):,} {one_cell(why)} - {one_cell(', '.join(sorted(names)[:named]))}{more}"


def _holdings_text(case: Case, holdings: list[dict[str, Any]]) -> str:
    if not case.system:
        return "nothing is loaded yet"
    system = system_named(case.system)

    def when(position: str | None) -> str:
        moment = system.moment(position) if position else None
        return f" ({moment:%Y-%m-%d %H:%M:%S})" if moment else ""

    if system.tiering:
        return _nodes_text(case, system)
    title = f"{system.title}, snapshot {next(reversed(case.snapshots), '')}: what each server's"
    keeps_log = system.pulling is None
    shown = ["CHANGES", "FIRST", "LAST"] if keeps_log else []
    rows: list[list[Any]] = [["SERVER", "SUFFIX", "ORIGIN", *shown, "VECTOR CLAIMS UP TO"]]
    for one in holdings:
        first, final, claim = (system.show(one[key]) if one[key] else "-" for key in ("first", "last", "claimed_max"))
        about = [one["server"], one["suffix"] or "-", one["origin"]]
        in_log = [f"{one['changes']:,}", first, final] if keeps_log else []
        rows.append([*about, *in_log, claim + when(one["claimed_max"])])
    what = "changelog shows, and what its vector claims" if keeps_log else "vector claims"
    if system.streaming:
        what, rows = "log shows, by the numbers of its transactions", [row[:-1] for row in rows]
    return f"{title} {what} (UTC)\n\n{aligned(rows, right=(3,) if keeps_log else ())}"


def _nodes_text(case: Case, system: System) -> str:
    """What is known of nodes that pull a physical log: from where to where theirs goes, and from whom they pull."""
    from workbench.topology.topology import topology

    shown = topology(case)
    above = {link.consumer: link.supplier for link in shown.links}
    rows = [["NODE", "FOLLOWS", "FIRST", "LAST", "PULLS FROM"]]
    for one in shown.replicas:
        (origin, span) = next(iter(one.vector.items()), ("-", None))
        places = [system.show(key) if key else "-" for key in ((span.min, span.max) if span else (None, None))]
        rows.append([one.server, origin, *places, above.get(one.server, "-")])
    return f"{system.title}, snapshot {shown.snapshot}: where the log of each node begins and ends\n\n{aligned(rows)}"


def kept(folders: Iterable[Path], case_folder: Path | None) -> list[Path]:
    """What no output of a load may overwrite: the collected files, also those that are links, and the case."""
    there = (path for folder in folders if folder.is_dir() for level in ("*", "*/*") for path in folder.glob(level))
    linked = (path for path in there if path.is_symlink())
    return [*folders, *linked, *([case_folder / "case.yaml", case_folder / "evidence"] if case_folder else [])]


@main.command()
@click.option(
    "--case", "case_folder", default="demo-case", type=click.Path(path_type=Path), help="Where to make the case."
)
def demo(case_folder: Path) -> None:
    """Load a small real incident that comes with the project, say which changes were missed, and write the report of it."""
    from workbench.diagnosis.diagnosis_text import diagnosis_text
    from workbench.diagnosis.incident import Incident
    from workbench.report.page import page
    from workbench.report.report_pipeline import report_without_names

    snapshots = demo_snapshots()
    story = (INCIDENT / "STORY.md").read_text(encoding="utf-8").strip().split("\n\n")
    click.echo(f"{story[0].lstrip('# ')}\n\n{story[1]}\n")
    case = Case.create(case_folder)
    _show_holdings(case, loaded_into(case, snapshots, None), None, None)
    incident = Incident(case)
    found = incident.found
    click.echo(f"\n\n{diagnosis_text(incident.system, found)}")
    here = Path.cwd()
    folder = INCIDENT.relative_to(here) if INCIDENT.is_relative_to(here) else INCIDENT
    command = _as_typed()
    click.echo(
        f"\nNext:\n  {command} inspect {folder}/2-during/*   says what each file holds\n"
        f"  {command} explain {found['missing'][0]['position']} --case {case_folder}   tells the whole story of one change\n"
        f"  {command} diagnose FOLDER ...   does the same with the files of your own servers\n"
        "  make lab   opens the notebooks: 00_tour goes through this case"
    )
    made, told = report_without_names(incident)
    if told:
        click.echo(f"workbench: {printable(told)}", err=True)
    give(page(made), str(case.folder / "report.html"))
    click.echo(f"\nThe report for people who were not there: {case.folder / 'report.html'}")


def _as_typed() -> str:
    """How a user of this shell starts this program: `make` runs it from a place that is not on PATH."""
    program = Path(sys.argv[0])
    if program.name != "workbench" or shutil.which("workbench") == str(program.absolute()):
        return "workbench"
    return str(program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program)
