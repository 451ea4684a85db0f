"""The command that writes a report of a case: `report`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from workbench.boundary import printable
from workbench.cli.diagnosis import AS_OF, kept_of
from workbench.cli.terminal import check_outputs, give, main
from workbench.model import Problem

_FILE = click.Path(path_type=Path, dir_okay=False)


@main.command()
@click.argument("case_folder", metavar="CASE", type=click.Path(path_type=Path, readable=False))
@AS_OF
@click.option("--out", type=_FILE, help="The page; default: CASE/report.html.")
@click.option("--json", "json_to", metavar="FILE", help="The same as data; - is standard output.")
@click.option("--markdown", "markdown_to", metavar="FILE", help="The same as Markdown; - is standard output.")
@click.option("--pdf", type=_FILE, help="The same on paper, by a chromium of this machine.")
@click.option(
    "--case-export", "export", metavar="FILE.zip", type=_FILE, help="Pack the case without names, for a ticket."
)
@click.option("--unredacted", is_flag=True, help="With all names; needs --reason, and is written down in the case.")
@click.option("--reason", help="Why all names have to be shown.")
def report(
    case_folder: Path,
    as_of: str | None,
    out: Path | None,
    json_to: str | None,
    markdown_to: str | None,
    pdf: Path | None,
    export: Path | None,
    unredacted: bool,
    reason: str | None,
) -> None:
    """Write the report of a CASE: one page without scripts that asks no other machine for anything.

    Names of servers, people and places are replaced by pseudonyms, which stay the same from report to report; what they stand
    for is kept in the case, for its owner only. Two reports of the same case differ in the line with the time of the run alone.
    """
    from workbench.case import Case
    from workbench.incident import Incident
    from workbench.report.making import (
        keep_pseudonyms,
        note_unredacted,
        pseudonyms_of,
        redacted_report,
        whole_report,
    )
    from workbench.report.markdown import markdown
    from workbench.report.packing import browser, export_case, write_pdf
    from workbench.report.page import page

    if unredacted and not (reason or "").strip():
        raise click.UsageError("--unredacted needs --reason: it is written down in the case")
    if reason and not unredacted:
        raise click.UsageError("--reason is for --unredacted")
    if unredacted and export:
        raise click.UsageError("--case-export is always without names: leave out --unredacted")
    case = Case.open(case_folder)
    to = out or case.folder / "report.html"
    _check(case, [to, json_to, markdown_to, pdf, export])
    if pdf:
        browser()  # before any work is done
    incident = Incident(case, as_of)
    if unredacted:
        asked = [str(one) for one in (to, json_to, markdown_to, pdf) if one]
        made = whole_report(incident)
        note_unredacted(incident, str(reason), asked)
    else:
        names = pseudonyms_of(incident)
        made = redacted_report(incident, names)
        if export:
            export_case(incident, made, names, export)
        if told := keep_pseudonyms(names, case.folder):
            click.echo(f"workbench: {printable(told)}", err=True)
    shown = page(made)
    give(shown, str(to))
    if json_to:
        give(json.dumps(made, indent=1) + "\n", json_to)
    if markdown_to:
        give(markdown(made), markdown_to)
    if pdf:
        write_pdf(shown, pdf)
    if "-" not in (json_to, markdown_to):
        click.echo(made["headline"])
        for one in (to, json_to, markdown_to, pdf, export):
            if one:
                click.echo(f"written: {printable(str(one))}")


def _check(case: object, outputs: list[Path | str | None]) -> None:
    """Refuse what would overwrite the case, its inputs, or another output."""
    from workbench.case import Case

    assert isinstance(case, Case)
    own = [
        case.folder / name
        for name in ("plan.json", "journal.jsonl", "reports.jsonl", "pseudonyms.json", "parameters.yaml")
    ]
    kept = [*kept_of(case), *own]
    given = [str(one) for one in outputs if one is not None]
    for one in given:
        check_outputs(one, None, kept)
    if len({"-" if one == "-" else str(Path(one).resolve()) for one in given}) < len(given):
        raise Problem("two outputs would go to one place", ", ".join(given), "give each a file of its own")
