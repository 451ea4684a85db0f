"""The command that writes a report of a case: `report`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.diagnosis import AS_OF, check_not_inside, kept_of
from workbench.cli.terminal import check_outputs, give, main, not_written
from workbench.model import Problem
from workbench.safety import printable

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.report.redaction import Pseudonyms

_IN_THE_CASE = ("report.html", "report.pdf", "report.md", "report.json", "report.zip")
"""What may be written into the case itself."""


@main.command()
@click.argument("case_folder", metavar="CASE", type=click.Path(path_type=Path, readable=False))
@AS_OF
@click.option("--out", metavar="FILE", help="The page; default: CASE/report.html; - is standard output.")
@click.option("--json", "json_to", metavar="FILE", help="The same as data; - is standard output.")
@click.option("--markdown", "markdown_to", metavar="FILE", help="The same as Markdown; - is standard output.")
@click.option("--pdf", metavar="FILE", help="The same on paper, by a chromium of this machine.")
@click.option("--case-export", "export", metavar="FILE.zip", help="Pack the case without names, for a ticket.")
@click.option("--unredacted", is_flag=True, help="With all names; needs --reason, and is written down in the case.")
@click.option("--reason", help="Why all names have to be shown.")
def report(
    case_folder: Path,
    as_of: str | None,
    out: str | None,
    json_to: str | None,
    markdown_to: str | None,
    pdf: str | None,
    export: str | None,
    unredacted: bool,
    reason: str | None,
) -> None:
    """Write the report of a CASE: one page without scripts that asks no other machine for anything.

    Names of servers, people and places are replaced by pseudonyms, which stay the same from report to report; what they stand
    for is kept in the case, for its owner only. Two reports of the same case differ in the line with the time of the run alone.
    """
    from workbench.case.case import Case
    from workbench.diagnosis.incident import Incident
    from workbench.report.export import browser, case_export, write_pdf
    from workbench.report.markdown import markdown
    from workbench.report.page import page
    from workbench.report.report_pipeline import note_unredacted, report_without_names, whole_report

    if unredacted and not (reason or "").strip():
        raise click.UsageError("--unredacted needs --reason: it is written down in the case")
    if reason and not unredacted:
        raise click.UsageError("--reason is for --unredacted")
    if unredacted and export:
        raise click.UsageError("--case-export is always without names: leave out --unredacted")
    case = Case.open(case_folder)
    to = out or str(case.folder / "report.html")
    outputs = [to, json_to, markdown_to, pdf, export]
    _check(case, outputs)
    if pdf:
        browser()  # before any work is done
    incident = Incident(case, as_of)
    if unredacted:
        made = whole_report(incident)
        note_unredacted(incident, str(reason), [one for one in outputs if one])
    else:

        @contextmanager
        def pack(made: dict[str, Any], names: Pseudonyms) -> Iterator[None]:
            if not export:
                yield
                return
            with _writing(export), case_export(incident, made, names, Path(export)):
                yield

        made, told = report_without_names(incident, pack)
        if told:
            click.echo(f"workbench: {printable(told)}", err=True)
    give(page(made), to)
    if json_to:
        give(json.dumps(made, indent=1) + "\n", json_to)
    if markdown_to:
        give(markdown(made), markdown_to)
    if pdf:
        with _writing(pdf):
            write_pdf(page(made, unfolded=True), Path(pdf))
    if "-" not in outputs:
        click.echo(made["headline"])
        for one in filter(None, outputs):
            click.echo(f"written: {printable(one)}")


def _check(case: Case, outputs: list[str | None]) -> None:
    """Refuse what would overwrite the case, its inputs, or another output."""
    given = [one for one in outputs if one is not None]
    check_not_inside(given, case.folder, _IN_THE_CASE)
    for one in given:
        check_outputs(one, None, kept_of(case))
    if len({"-" if one == "-" else str(Path(one).resolve()) for one in given}) < len(given):
        raise Problem("two outputs would go to one place", ", ".join(given), "give each a file of its own")


@contextmanager
def _writing(to: str) -> Iterator[None]:
    """A file of the system's own errors, as a sentence."""
    try:
        yield
    except OSError as error:
        raise not_written(error, to) from None
