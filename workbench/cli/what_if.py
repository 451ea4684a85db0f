"""The command `scenario`: what-if cases."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from workbench.cli.terminal import JSON, check_outputs, give, main
from workbench.model import Problem
from workbench.text_table import one_cell


@main.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, readable=False, allow_dash=True))
@JSON
@click.option("--kind", "only", metavar="KIND", multiple=True, help="Answer the cases of this kind only; repeatable.")
@click.option("--list", "listed", is_flag=True, help="List every kind: what it answers, and its inputs.")
def scenario(file: Path | None, json_to: str | None, only: tuple[str, ...], listed: bool) -> None:
    """Answer the what-if cases of FILE: what would be sent, what is missed, what would a clean or a trim cost?

    A case is {id, kind, inputs}. FILE is JSON lines, a JSON array or YAML, packed or not; - is standard input. One line
    of JSON answers each case, in order. A case that cannot be answered gets its error there; the others are answered.
    """
    from workbench.input_validation import quoted
    from workbench.scenarios import evaluate, kind_named, read_cases

    if listed:
        click.echo(_kinds_text(only))
        return
    if file is None:
        raise click.UsageError("give a FILE of cases, - for standard input, or --list")
    for name in only:
        kind_named(name)
    check_outputs(json_to, None, [file])
    answered = wrong = 0
    # A file gets all or nothing; a hundred thousand sessions are half a gigabyte, which is kept on the disk until then.
    with tempfile.SpooledTemporaryFile(_KEPT_IN_MEMORY, "w+", encoding="utf-8") as kept:
        out: Any = sys.stdout if json_to in (None, "-") else kept
        for answer in evaluate(read_cases(file), only):
            out.write(json.dumps(answer, separators=(",", ":")) + "\n")
            answered += 1
            if "error" in answer:
                wrong += 1
                if wrong <= _NAMED_ERRORS:
                    about = quoted(answer["id"]) + (f" ({answer['kind'][:40]})" if answer["kind"] else "")
                    click.echo(f"workbench: case {one_cell(about)}: {one_cell(answer['error'])}", err=True)
        if out is kept:
            kept.seek(0)
            give(kept, str(json_to))
    if only and not answered:
        raise Problem(f"no case of the kind {' or '.join(only)}", str(file), "leave out --kind to answer all")
    if wrong > _NAMED_ERRORS:
        click.echo(f"workbench: {wrong:,} cases could not be answered; the first {_NAMED_ERRORS} are above", err=True)
    if wrong:
        raise click.exceptions.Exit(2)


_NAMED_ERRORS = 5
_KEPT_IN_MEMORY = 16 << 20


def _kinds_text(only: Sequence[str]) -> str:
    from workbench.input_validation import described
    from workbench.scenarios import kind_named, kinds

    told = []
    for name in only or kinds():
        kind = kind_named(name)
        inputs = described(kind.inputs)
        width = max(map(len, inputs), default=0)
        told.append("\n".join([f"{name}: {kind.question}", *(f"    {one:{width}}  {inputs[one]}" for one in inputs)]))
    return "\n\n".join(told)
