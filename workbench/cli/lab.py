"""The command that opens the notebooks: `lab`, in JupyterLab, or two of them as pages to read."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import click

from workbench.case.case import Case
from workbench.cli.terminal import main
from workbench.jupyter import NOTEBOOKS, SETTINGS, lab_command
from workbench.model import Problem
from workbench.safety import printable

PAGES = ("20_overview.ipynb", "23_missed_changes.ipynb")
"""What is shown as pages to read."""


@main.command()
@click.argument("case", required=False, type=click.Path(path_type=Path))
@click.option(
    "--voila", is_flag=True, help="Two notebooks as pages to read, by Voilà: the overview, the missed changes."
)
@click.option("--port", type=click.IntRange(0, 65535), help="Default: 8888, or the next one that is free.")
@click.option("--browser/--no-browser", default=True, help="Open a browser.")
@click.option("--spark-ui", is_flag=True, help="Spark shows its own pages while a session runs, on this machine.")
def lab(case: Path | None, voila: bool, port: int | None, browser: bool, spark_ui: bool) -> None:
    """Open the notebooks in JupyterLab, on this machine only; they are about CASE, else about the demo incident.

    It ends with Ctrl-C.
    """
    if not NOTEBOOKS.is_dir():
        raise Problem("the notebooks are not here", str(NOTEBOOKS), "work in a checkout of the project")
    from workbench.diagnosis.incident import CASE
    from workbench.engine.session import SPARK_UI

    environment = dict(os.environ)
    if case is not None:
        environment[CASE] = str(Case.open(case).folder.resolve())
    if spark_ui:
        environment[SPARK_UI] = "1"
        click.echo("Spark's own pages: http://127.0.0.1:4040 while a notebook has a Spark session", err=True)
    if voila:
        _serve_pages(environment, port, browser)
    start = "/lab/tree/00_tour.ipynb" if case is None else "/lab"
    words = lab_command(NOTEBOOKS, f"--LabApp.default_url={start}", *_options(port, browser))
    os.execve(words[0], words, environment)  # noqa: S606 - no shell; the words are ours


def _options(port: int | None, browser: bool) -> list[str]:
    return [*([f"--port={port}"] if port is not None else []), *([] if browser else ["--no-browser"])]


def _serve_pages(environment: dict[str, str], port: int | None, browser: bool) -> None:
    """Serve copies of the pages out of a folder that has nothing else in it: what lies beside them cannot be asked for."""
    from workbench.engine.java import cache_folders
    from workbench.views.parameters import READ_ONLY

    environment[READ_ONLY] = "1"
    # Where Voilà finds the template: its own pages ask another machine for style sheets.
    before = environment.get("JUPYTER_PATH")
    environment["JUPYTER_PATH"] = os.pathsep.join([str(SETTINGS), *([before] if before else [])])
    content = b"".join((NOTEBOOKS / name).read_bytes() for name in PAGES)
    # Under a name that its content gives: starting it again and again leaves one folder behind, not many.
    folder = next(cache_folders()) / f"pages-{hashlib.sha256(content).hexdigest()[:16]}"
    folder.mkdir(exist_ok=True)
    for name in PAGES:
        shutil.copy(NOTEBOOKS / name, folder / name)
    words = [
        *(sys.executable, "-m", "voila", str(folder), "--Voila.ip=127.0.0.1", "--token"),
        *("--VoilaConfiguration.strip_sources=True", "--template=workbench", "--theme=light"),
        # A plain list: Voilà's own starts widgets that want a kernel, and on a busy machine stays empty now and then.
        "--VoilaConfiguration.classic_tree=True",
        *_options(port, browser),
    ]
    click.echo(f"pages: {', '.join(printable(name.removesuffix('.ipynb')) for name in PAGES)}", err=True)
    os.execve(words[0], words, environment)  # noqa: S606 - no shell; the words are ours
