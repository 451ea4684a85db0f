"""Notebooks: stored without outputs, thin, and run unchanged by papermill."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import papermill
import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path) -> list[dict]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_thin_and_stored_without_outputs(path: Path) -> None:
    code = cells(path)
    assert code
    assert len(code) <= 12
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    for cell in code:
        kinds = {type(node) for node in ast.walk(ast.parse("".join(cell["source"])))}
        assert not kinds & {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Try}


def test_the_tour_runs_headless_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "tour.ipynb"
    papermill.execute_notebook(
        FOLDER / "00_tour.ipynb", out, {"case_folder": str(tmp_path / "case")}, cwd=FOLDER, progress_bar=False
    )
    shown = json.dumps([cell["outputs"] for cell in cells(out)])
    assert "6b00618f000a00010000" in shown
    assert "ds389.changelog-ldif" in shown
    assert "Traceback" not in shown
