"""The commands that look back: `history` over the time of one case, `diff` between two diagnoses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from workbench.case.case import Case
from workbench.cli.diagnosis import kept_of
from workbench.cli.terminal import CSV, JSON, check_outputs, give, main
from workbench.model import SEVERITIES
from workbench.text_table import csv_text


@main.command()
@click.argument("case_folder", type=click.Path(path_type=Path, readable=False))
@click.option("--server", help="Only this server; of links, those that it is an end of.")
@click.option("--origin", help="Only changes of this origin.")
@click.option("--suffix", help="Only this suffix.")
@click.option("--at", "when", metavar="TIME", help="What was known at that time: 2026-11-20T10:42:00Z; no zone: UTC.")
@click.option("--change", metavar="POSITION", help="The way of this change: where it arrived when, over which links.")
@click.option(
    "--step",
    type=float,
    metavar="SECONDS",
    help="Steps of time; default: 60, more where that gives over 1,000 of them.",
)
@JSON
@CSV
def history(
    case_folder: Path,
    server: str | None,
    origin: str | None,
    suffix: str | None,
    when: str | None,
    change: str | None,
    step: float | None,
    json_to: str | None,
    csv_to: str | None,
) -> None:
    """Go back in time: how vectors grew and links lagged, what a server knew at some time, the way of one change.

    `workbench history CASE --server s2 --origin 3 --at 2026-11-20T10:42:00Z` is what s2 knew of origin 3 then.
    """
    if when is not None and change is not None:
        raise click.UsageError("--at asks for a time, --change for a change: give one of them")
    if step is not None and (when is not None or change is not None):
        raise click.UsageError("--step is for a look over time: leave it out with --at and --change")
    if change is not None and (server is not None or origin is not None):
        raise click.UsageError("--change goes to all servers and has its origin: leave out --server and --origin")
    case = Case.open(case_folder)
    check_outputs(json_to, csv_to, kept_of(case))
    if change is not None:
        found, rows, texts = _way(case, change, suffix)
    elif when is not None:
        found, rows, texts = _then(case, when, server, origin, suffix)
    else:
        found, rows, texts = _over_time(case, server, origin, suffix, step)
    if json_to:
        give(json.dumps({"schema": 1, "case": case.name, **found}, indent=1, default=_json) + "\n", json_to)
    if csv_to:
        give(csv_text([_cells(row) for row in rows[0]], rows[1]), csv_to)
    if "-" not in (json_to, csv_to):
        click.echo("\n\n".join(filter(None, texts)))


_Answer = tuple[dict[str, Any], tuple[list[dict[str, Any]], list[str]], Iterable[str]]
"""As JSON, as rows with their columns, as texts."""


def _way(case: Case, change: str, suffix: str | None) -> _Answer:
    from workbench.diagnosis.history_text import way_text
    from workbench.diagnosis.propagation import Arrival, arrivals

    way = arrivals(case, change, suffix)
    found = asdict(way)
    return {"change": found}, (found["arrivals"], list(Arrival.__dataclass_fields__)), [way_text(way)]


def _then(case: Case, when: str, server: str | None, origin: str | None, suffix: str | None) -> _Answer:
    from workbench.diagnosis.history_text import known_text, lags_text, time_text
    from workbench.topology.history import all_known_at, lag, moment_of

    at = moment_of(when)
    if datetime.fromisoformat(when).tzinfo is None:
        click.echo(f"{when} has no zone: taken as UTC", err=True)
    known = all_known_at(case, at, server, origin, suffix)
    lags = lag(case, server, origin, suffix, when=at).to_pylist()
    rows = [
        {
            "at": at,
            "server": one.server,
            "suffix": one.suffix,
            "origin": one.origin,
            "verdict": one.verdict,
            **{f"at_least_{key}": one.at_least and getattr(one.at_least, key) for key in _SIGHTING},
            **{f"at_most_{key}": one.at_most and getattr(one.at_most, key) for key in (*_SIGHTING, "included")},
            "changes": one.changes,
        }
        for one in known
    ]
    found = {"at": at, "known": [{**asdict(one), "verdict": one.verdict} for one in known], "lags": lags}
    title = f"What was known at {time_text(at)} UTC, by the clock of each server"
    return found, (rows, list(rows[0])), [title, known_text(known), lags_text(lags)]


_SIGHTING = ("position", "at", "evidence", "snapshot", "file", "offset")


def _over_time(case: Case, server: str | None, origin: str | None, suffix: str | None, step: float | None) -> _Answer:
    from workbench.diagnosis.history_text import disagreement_text, lags_text, vectors_text
    from workbench.topology.history import disagreement, lag, vectors_over_time

    table = vectors_over_time(case, server, origin, suffix, step)
    vectors, lags = table.to_pylist(), lag(case, server, origin, suffix, step).to_pylist()
    pairs = disagreement(case, server, origin, suffix, step).to_pylist()
    found = {"vectors": vectors, "lags": lags, "disagreement": pairs}
    return found, (vectors, table.column_names), [disagreement_text(pairs), lags_text(lags), vectors_text(vectors)]


def _json(value: Any) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in row.items()}


@main.command()
@click.argument("before", type=click.Path(path_type=Path, readable=False))
@click.argument("after", type=click.Path(path_type=Path, readable=False))
@click.option(
    "--threshold",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="Exit code 1 for new findings from here on.",
)
@JSON
def diff(before: Path, after: Path, threshold: str, json_to: str | None) -> None:
    """Say what is new, gone and changed from one diagnosis to another.

    BEFORE and AFTER are files that `diagnose --json` wrote, or case folders, which are diagnosed.
    """
    from workbench.diagnosis.diagnosis_diff import difference, differences_text, read_diagnosis, worst_new

    check_outputs(json_to, None, [place for one in (before, after) for place in _places(one)])
    found = difference(read_diagnosis(before), read_diagnosis(after))
    if json_to:
        give(json.dumps(found, indent=1) + "\n", json_to)
    if json_to != "-":
        click.echo(differences_text(found))
    if worst_new(found) >= SEVERITIES.index(threshold):
        raise click.exceptions.Exit(1)


def _places(given: Path) -> list[Path]:
    """What no output may overwrite: the file, or all that belongs to the case."""
    return kept_of(Case.open(given)) if given.is_dir() and Case.lies_in(given) else [given]
