"""The commands that say what a case means: `diagnose`, `explain`, `session`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from workbench.case.case import Case
from workbench.cli.evidence import kept, loaded_into, not_read
from workbench.cli.terminal import CSV, JSON, MASTER, check_outputs, give, main
from workbench.model import SEVERITIES, Problem
from workbench.safety import printable
from workbench.systems import system_named
from workbench.text_table import aligned, csv_text, one_cell

RULES = click.option(
    "--rules", metavar="NAME", help="Rule set; default: that of the real servers. `design`: the document."
)


def kept_of(case: Case) -> list[Path]:
    """What no output about a case may overwrite: it, and what it was read from, wherever that is."""
    inputs = (Path(one.path) for one in case.inputs)
    return [case.folder / "case.yaml", case.evidence, *map(Path, case.snapshots.values()), *inputs]


def case_around(path: Path) -> Path | None:
    """The case folder that a file of this name would lie in, at whatever depth; None: in none. Links are followed."""
    try:
        folders = path.resolve().parents
    except RuntimeError:
        raise Problem("this link leads back to itself", printable(str(path)), "give another file") from None
    for folder in folders:
        with suppress(OSError):  # nobody may look into it: then nobody may write there, either
            if Case.lies_in(folder):
                return folder
    return None


def check_not_inside(outputs: Iterable[str | None], case: Path, allowed: Collection[str]) -> None:
    """Refuse every output inside a case folder, but right in this case by one of the allowed names."""
    for given in outputs:
        if given in (None, "-"):
            continue
        holder, path = case_around(Path(str(given))), Path(str(given)).resolve()
        if holder is None or (path.parent == case.resolve() and path.name in allowed):
            continue
        do = f"give a file elsewhere, or one of these in the case: {', '.join(allowed)}"
        raise Problem(f"this would write into a case ({printable(str(holder))})", printable(str(given)), do)


@contextmanager
def case_of(
    folders: tuple[Path, ...], case_folder: Path | None, master: str | None, outputs: tuple[str | None, str | None]
) -> Iterator[Case]:
    """The case of a diagnosis: a case folder as it is, or collected folders loaded into `case_folder`, else for this run only."""
    if there := [folder for folder in folders if Case.lies_in(folder)]:
        if case_folder or len(folders) > 1:
            raise click.UsageError(f"{there[0]} is a case already: give it alone, without --case")
        case = Case.open(there[0])
        check_outputs(*outputs, kept_of(case))
        yield case
        return
    check_outputs(*outputs, kept(folders, case_folder))
    with tempfile.TemporaryDirectory(prefix="workbench-") as temporary:
        case = Case.create(case_folder or Path(temporary) / "case", None if case_folder else folders[-1].resolve().name)
        loaded = loaded_into(case, folders, master)
        for line in not_read(loaded):
            click.echo(line, err=True)
        yield case


AS_OF = click.option(
    "--as-of", metavar="SNAPSHOT|TIME", help="Go back to this snapshot, or to the last one as old as this time."
)


SOURCE = click.option(
    "--source",
    "sources",
    metavar="ORIGIN=SERVER",
    multiple=True,
    help="Of logs of transactions: the server that makes those of this origin; repeatable.",
)


def with_sources(case: Case, sources: Iterable[str]) -> None:
    """Have the case take these servers for the sources of origins, in this run."""
    streaming = case.system is not None and system_named(case.system).streaming
    for given in sources:
        origin, _, server = given.partition("=")
        if not (origin and server):
            raise click.UsageError(f"--source wants ORIGIN=SERVER, as 1=primary, and not {given!r}")
        names = sorted({one.server for one in case.inputs if origin in one.facts.get("by_origin", {})})
        if not streaming or server not in names:
            has = f"these have such logs: {', '.join(names)}" if streaming and names else "no log has any"
            raise Problem(f"no log of {printable(server)} has transactions of {printable(origin)}", case.name, has)
        case.sources[origin] = server


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, readable=False))
@click.option("--case", "case_folder", type=click.Path(path_type=Path), help="Keep the evidence in this case folder.")
@RULES
@AS_OF
@click.option("--server", "servers", metavar="NAME", multiple=True, help="Only what is about this server; repeatable.")
@click.option("--origin", "origins", metavar="ORIGIN", multiple=True, help="Only changes of this origin; repeatable.")
@click.option(
    "--limit", type=click.IntRange(1), default=10_000, show_default=True, help="Rows of the longest list of changes."
)
@click.option("--verify", is_flag=True, help="Compare everything once more, from every position, by Spark.")
@click.option(
    "--threshold", type=click.Choice(SEVERITIES), default="warning", show_default=True, help="Exit code 1 from here on."
)
@SOURCE
@MASTER
@JSON
@CSV
def diagnose(
    folders: tuple[Path, ...],
    case_folder: Path | None,
    rules: str | None,
    as_of: str | None,
    servers: tuple[str, ...],
    origins: tuple[str, ...],
    limit: int,
    verify: bool,
    threshold: str,
    sources: tuple[str, ...],
    master: str | None,
    json_to: str | None,
    csv_to: str | None,
) -> None:
    """Say which changes each server missed and why, in the last snapshot of a case or of collected FOLDERs.

    Several FOLDERs are snapshots of the same servers in the order of time. Without --case the evidence is not kept.
    --csv writes the missing changes, or the pairs if none is missing. Exit code 3: nothing is wrong as far as the evidence goes,
    and it does not go far enough.
    """
    from workbench.diagnosis.case_diagnosis import diagnose as diagnosed
    from workbench.diagnosis.case_diagnosis import naming_domains
    from workbench.diagnosis.diagnosis_text import diagnosis_text
    from workbench.runs.baseline_check import FINDINGS, INCONCLUSIVE, outcome_of

    with case_of(folders, case_folder, master, (json_to, csv_to)) as case:
        with_sources(case, sources)
        spark = None
        if verify:
            from workbench.engine.session import spark_session

            spark = spark_session(master)
        found = diagnosed(case, rules, spark, as_of=as_of, servers=servers, origins=origins, limit=limit)
        if json_to:
            give(json.dumps(naming_domains(found), indent=1) + "\n", json_to)
        if csv_to:
            give(_as_csv(found), csv_to)
        if "-" not in (json_to, csv_to):
            click.echo(diagnosis_text(system_named(str(case.system)), found))
            if verify:
                click.echo("\nverified: Spark found the same from every position")
    if exit_code := {FINDINGS: 1, INCONCLUSIVE: 3}.get(outcome_of(found, threshold)):
        raise click.exceptions.Exit(exit_code)


_MISSING = (
    *("server", "suffix", "origin", "position", "operation", "target"),
    *("attribute", "held_by", "evidence", "cause", "rule"),
)
"""Columns of the missing changes in a spreadsheet."""


def _as_csv(found: dict[str, Any]) -> str:
    if found["missing"]:
        rows = [{key: row[key] for key in _MISSING} for row in found["missing"]]
        lists = ("held_by", "evidence")
        return csv_text([{**row, **{key: " ".join(row[key]) for key in lists}} for row in rows], _MISSING)
    return csv_text([_flat(row) for row in found["pairs"]], _PAIR)


_PAIR = (
    *("supplier", "consumer", "suffix", "link", "link_enabled", "rules", "would_contact", "decision", "anchor"),
    *("anchor_included", "anchor_class", "stop", "counts", "to_send"),
)
"""Columns of the matrix in a spreadsheet."""


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the matrix for a spreadsheet: one line for each pair, mappings as text."""
    cells = {key: row[key] for key in _PAIR}
    return {
        key: json.dumps(cell, separators=(",", ":")) if isinstance(cell, dict) else cell for key, cell in cells.items()
    }


@main.command()
@click.argument("position")
@click.option(
    "--case",
    "case_folder",
    type=click.Path(path_type=Path, readable=False),
    default=".",
    show_default="the current folder",
    help="The case.",
)
@click.option("--server", help="Only this server.")
@AS_OF
@JSON
def explain(position: str, case_folder: Path, server: str | None, as_of: str | None, json_to: str | None) -> None:
    """Tell the whole story of the change POSITION: who made it, who has it, who would send it, and what proves each.

    `workbench explain 6b005c15000200010000 --server s3 --case CASE` is why s3 has it or has it not.
    """
    from workbench.diagnosis.change_explanation import story
    from workbench.diagnosis.change_explanation_text import story_text

    case = Case.open(case_folder)
    check_outputs(json_to, None, kept_of(case))
    told = story(case, position, server, as_of)
    if json_to:
        give(json.dumps(told, indent=1) + "\n", json_to)
    if json_to != "-":
        click.echo(story_text(told))


@main.command()
@click.argument("case_folder", type=click.Path(path_type=Path, readable=False))
@click.argument("supplier")
@click.argument("consumer")
@click.option("--suffix", help="Which suffix, if the two replicate several.")
@RULES
@click.option("--after", metavar="POSITION", help="Show the changes behind this one; default: from the anchor on.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many changes to show.")
@JSON
@CSV
def session(
    case_folder: Path,
    supplier: str,
    consumer: str,
    suffix: str | None,
    rules: str | None,
    after: str | None,
    limit: int,
    json_to: str | None,
    csv_to: str | None,
) -> None:
    """Play one session: why SUPPLIER would start there, and what becomes of each change that it reads for CONSUMER."""
    from workbench.diagnosis.pair_matrix_text import told
    from workbench.replication.changelog.diagnosis.planned_sessions import COLUMNS, session_of

    case = Case.open(case_folder)
    check_outputs(json_to, csv_to, kept_of(case))
    planned = session_of(case, supplier, consumer, suffix, rules)
    page = planned.page(after, limit + 1).to_pylist()
    more = page[limit - 1]["position"] if len(page) > limit else None
    page = page[:limit]
    if json_to:
        give(json.dumps({**planned.row, "outcomes": page, "next": more}, indent=1) + "\n", json_to)
    if csv_to:
        give(csv_text(page, COLUMNS), csv_to)
    if "-" in (json_to, csv_to):
        return
    for line in told(planned.row, system_named(str(case.system)).moment, always=True):
        click.echo(line)
    for reason in planned.row["reasons"]:
        values = ", ".join(f"{key} {value}" for key, value in reason["values"].items() if value is not None)
        click.echo(f"  {one_cell(reason['says'])}" + (f" ({one_cell(values)})" if values else ""))
    if page:
        heads = ("POSITION", "ORIGIN", "OUTCOME")
        click.echo("\n" + aligned([heads, *([one[key.lower()] for key in heads] for one in page)]))
    if more:
        click.echo(f"\nmore: --after {more}")
