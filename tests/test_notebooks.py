"""Notebooks: stored without outputs, thin, and run unchanged by papermill."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import papermill
import pytest
from case_samples import everything
from incident_samples import case_of
from view_samples import LOST

from workbench.incident import CASE

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


SHOWS = {
    "00_tour": ["ds389.changelog-ldif", "12 changes are MISSING on s3", "7 entries differ", "NOTHING WAS CHANGED"],
    "10_load": ["s1.changelog.ldif.gz", "files read", "6b00618f000a00010000"],
    "20_overview": ["s3 lacks 12 changes that s1 holds and will not send", "CAME TO"],
    "21_anchor": ["no replica ID has anything to send"],
    "22_stop_csn": ["6b00618f000a00010000"],
    "23_missed_changes": ["12 missing", "uid=k1u00004,ou=people,dc=example,dc=com"],
    "24_pending_list": ["operations as its logs show them", "primary_csn"],
    "40_repair": ["NOTHING WAS CHANGED", "Plan "],
    "50_checks": ["findings"],
    "60_report": ["12 changes are MISSING on s3", "No plan was made", "s1.changelog.ldif.gz"],
}
"""What a reader of the executed notebook sees without any script, of each notebook."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_headless_as_it_is(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(case_of(LOST).folder, tmp_path / "case")
    monkeypatch.setenv(CASE, str(tmp_path / "case"))
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    before = everything(tmp_path / "case")
    own = {"case_folder": str(tmp_path / "own")} if path.stem in ("00_tour", "10_load") else {}
    out = tmp_path / "out.ipynb"
    papermill.execute_notebook(path, out, own, cwd=FOLDER, progress_bar=False)
    shown = "".join(
        "".join(output.get("text", "") or output.get("data", {}).get("text/plain", ""))
        for cell in cells(out)
        for output in cell["outputs"]
    )
    for text in SHOWS[path.stem]:
        assert text in shown, text
    assert "Traceback" not in shown
    assert "object at 0x" not in shown
    changed = {name for name, content in everything(tmp_path / "case").items() if before.get(name) != content}
    assert changed == ({str(tmp_path / "case" / "plan.json")} if path.stem == "40_repair" else set())


def test_a_notebook_that_cannot_go_on_ends_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    wrong = {"case_folder": str(tmp_path)}
    with pytest.raises(papermill.PapermillExecutionError) as failed:
        papermill.execute_notebook(
            FOLDER / "20_overview.ipynb", tmp_path / "out.ipynb", wrong, cwd=FOLDER, progress_bar=False
        )
    assert failed.value.ename == "Problem"
    assert "this is not a case: it has no case.yaml" in failed.value.evalue
    assert failed.value.traceback == [f"Problem: {failed.value.evalue}"]
