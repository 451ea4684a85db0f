"""`workbench lab`: what it starts, what it refuses, and that the project's notebooks are stored without what they showed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from incident_samples import case_of
from view_samples import LOST

from workbench.cli import main
from workbench.diagnosis.incident import CASE
from workbench.jupyter import NOTEBOOKS, OWN, SETTINGS, lab_command, saved_without_outputs
from workbench.views.parameters import READ_ONLY


def model(source: str = "1 + 1") -> dict[str, Any]:
    output = {"output_type": "stream", "name": "stdout", "text": "what a case holds"}
    about = {"tags": ["parameters"], "execution": {"iopub.execute_input": "now"}, "collapsed": True}
    cell = {"cell_type": "code", "source": source, "outputs": [output], "execution_count": 7, "metadata": about}
    metadata = {"widgets": {"state": {}}, "language_info": {"name": "python", "version": "3.13.0"}}
    return {"type": "notebook", "content": {"nbformat": 4, "cells": [cell], "metadata": metadata}}


def test_the_projects_notebooks_are_stored_without_what_they_showed() -> None:
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} == OWN
    for path in (*OWN, "/00_tour.ipynb"):
        saved = model()
        saved_without_outputs(path=path, model=saved, contents_manager=None)
        (cell,) = saved["content"]["cells"]
        assert (cell["outputs"], cell["execution_count"], cell["source"]) == ([], None, "1 + 1")
        assert cell["metadata"] == {"tags": ["parameters"]}
        assert "widgets" not in saved["content"]["metadata"]
        stored = json.loads((NOTEBOOKS / path.strip("/")).read_text(encoding="utf-8"))
        assert saved["content"]["metadata"] == stored["metadata"]


@pytest.mark.parametrize(
    "path",
    ["incident-42.ipynb", "25_mine.ipynb", "copies/20_overview.ipynb", "20_overview-Copy1.ipynb", "20_overview.txt"],
)
def test_a_notebook_under_another_name_keeps_what_it_shows(path: str) -> None:
    saved = model()
    saved_without_outputs(path=path, model=saved)
    assert saved == model()


def test_what_is_no_notebook_is_left_alone() -> None:
    for other in ({"type": "file", "content": "text"}, {"type": "notebook"}, {"type": "directory", "content": None}):
        given = dict(other)
        saved_without_outputs(path="00_tour.ipynb", model=given)
        assert given == other


def started_with(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[list[str], dict[str, str]]:
    """The words and the environment that a `workbench lab ...` ends with."""
    seen: list[Any] = []
    monkeypatch.setattr("workbench.cli.lab.os.execve", lambda *given: seen.append(given))
    result = CliRunner().invoke(main, ["lab", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return list(seen[0][1]), seen[0][2]


def test_jupyterlab_is_for_this_machine_and_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    words, environment = started_with(monkeypatch, "--port", "9123", "--no-browser", "--spark-ui")
    assert words == lab_command(
        NOTEBOOKS, "--LabApp.default_url=/lab/tree/00_tour.ipynb", "--port=9123", "--no-browser"
    )
    assert "--ip=127.0.0.1" in words
    assert environment["WORKBENCH_SPARK_UI"] == "1"
    settings = json.loads((SETTINGS / "overrides.json").read_text(encoding="utf-8"))
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


def test_the_notebooks_are_about_the_case_that_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    case = case_of(LOST).folder
    words, environment = started_with(monkeypatch, str(case))
    assert environment[CASE] == str(case.resolve())
    assert READ_ONLY not in environment
    words, environment = started_with(monkeypatch, str(case), "--voila")
    assert environment[READ_ONLY] == "1"
    assert "--Voila.ip=127.0.0.1" in words
    served = Path(words[words.index("voila") + 1])
    assert sorted(path.name for path in served.iterdir()) == ["20_overview.ipynb", "23_missed_changes.ipynb"]
    result = CliRunner().invoke(main, ["lab", str(tmp_path)])
    assert result.exit_code == 2
    assert "this is not a case" in result.output
