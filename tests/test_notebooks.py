"""Notebooks: stored without outputs, thin, and run unchanged by papermill."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import papermill
import pytest
from case_samples import everything
from click.testing import CliRunner
from incident_samples import case_of
from kanidm_samples import case_of_set
from tier_samples import case_of_tiers
from view_samples import LOST

from workbench.cli import main
from workbench.safety import strict_yaml

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
    "31_entry_replication": [
        "A -> C: Ok, NoChangesAvailable",
        "lacks it: user0003",
        "no tombstone is kept",
        "A sets data of x",
    ],
    "32_transactions": ["789          incomplete", "only a part of it", "shop.orders", "TXN_UNFINISHED"],
    "33_physical_tiers": [
        "shopdb_dr@r4  stopped",
        "##!.....      4: shopdb_dr@r5",
        "shopdb_dr@r4 is offered nobody",
        "it in order, and no fewer will do:",
        "LOG_GAP",
    ],
    "24_pending_list": ["operations as its logs show them", "primary_csn"],
    "40_repair": ["NOTHING WAS CHANGED", "Plan "],
    "50_checks": ["findings"],
    "60_report": ["12 changes are MISSING on s3", "No plan was made", "s1.changelog.ldif.gz"],
}
"""What a reader of the executed notebook sees without any script, of each notebook."""


PARAMETERS = sorted((FOLDER.parent / "parameters").glob("*.yaml"))


def test_every_notebook_has_a_parameters_file() -> None:
    asked = {strict_yaml(path.read_text(encoding="utf-8"), path.name).get("notebook") for path in PARAMETERS}
    assert {path.stem for path in NOTEBOOKS} == asked - {None}


@pytest.mark.parametrize("path", PARAMETERS, ids=lambda path: path.stem)
def test_a_parameters_file_runs_as_it_is(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    shutil.copytree(path.parent, tmp_path / "parameters")
    (tmp_path / "tests").symlink_to(FOLDER.parent / "tests")
    for case in ("demo-case", "my-case"):
        if path.stem not in ("demo", "load.example"):
            shutil.copytree(case_of(LOST).folder, tmp_path / case)
    if path.stem == "entries.example":
        shutil.copytree(case_of_set("synth-missed").folder, tmp_path / "my-entries")
    if path.stem == "transactions.example":
        shutil.copytree(case_of("drizzle-fleet").folder, tmp_path / "my-stream")
    if path.stem == "tiers.example":
        shutil.copytree(case_of_tiers().folder, tmp_path / "my-tiers")
    before = everything(tmp_path)
    made = CliRunner().invoke(main, ["run", str(tmp_path / "parameters" / path.name), "--json", str(tmp_path / "json")])
    runs = json.loads((tmp_path / "json").read_text())["runs"]
    assert runs
    assert [one["why"] for one in runs if one["outcome"] != "done"] == []
    assert made.exit_code == 1, "the demo incident has findings"
    for one in runs:
        shown = "".join(
            "".join(output.get("text", "") or output.get("data", {}).get("text/plain", ""))
            for cell in cells(Path(one["folder"]) / "notebook.ipynb")
            for output in cell["outputs"]
        )
        for text in [*SHOWS[one["notebook"]], "finished: findings"]:
            assert text in shown, text
        assert "Traceback" not in shown
        assert "object at 0x" not in shown
    after = {name.removeprefix(f"{tmp_path}/"): content for name, content in everything(tmp_path).items()}
    known = {name.removeprefix(f"{tmp_path}/"): content for name, content in before.items()}
    changed = {name for name, content in after.items() if known.get(name) != content and "/runs" not in name}
    if path.stem not in ("demo", "load.example"):
        assert changed == ({"json", "demo-case/plan.json"} if path.stem == "repair.example" else {"json"})


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
