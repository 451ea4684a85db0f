"""The pages under docs/ say what the program does: every code, key, column, input and option, and nothing that is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from case_samples import SNAPSHOTS
from conftest import ROOT
from mesh_samples import agreement, case_of, pair_of_servers

from workbench import Case, docs
from workbench.cli import main
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.codes import GENERAL, all_codes
from workbench.diagnosis.output_keys import KEYS, undocumented
from workbench.input_validation import described
from workbench.model import Code
from workbench.scenarios import kinds
from workbench.tables import COLUMNS


def row(page: str, name: str) -> list[str]:
    """The cells of the only row that begins with this name."""
    (line,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    return [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.mark.parametrize("name", sorted(docs.pages()))
def test_no_page_is_stale(name: str, tmp_path: Path) -> None:
    docs.write(tmp_path)
    committed = ROOT / "docs" / name
    assert committed.read_text(encoding="utf-8") == (tmp_path / name).read_text(encoding="utf-8"), "run `make docs`"


def test_every_code_has_a_sentence_and_its_severities() -> None:
    page = docs.findings()
    for theirs in all_codes().values():
        for code, one in theirs.items():
            assert row(page, code)[1:] == [", ".join(one.severities), one.says]


def test_a_new_code_and_a_new_key_change_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    before = docs.findings()
    monkeypatch.setattr("workbench.diagnosis.codes.GENERAL", {**GENERAL, "NEW_CODE": Code("something new", ("info",))})
    assert row(docs.findings(), "NEW_CODE")[1:] == ["info", "something new"]
    monkeypatch.setattr("workbench.docs.KEYS", {**KEYS, "new.key": "something new"})
    assert row(docs.findings(), "new.key")[1:] == ["something new"]
    assert "something new" not in before


def test_every_column_input_and_option_is_on_its_page() -> None:
    pages = docs.pages()
    for name, columns in COLUMNS.items():
        section = pages["tables.md"].split(f"## {name}\n")[1].split("\n## ")[0]
        assert all(row(section, column)[2] for column in columns)
    for name, kind in kinds().items():
        section = pages["scenarios.md"].split(f"## {name}\n")[1].split("\n## ")[0]
        assert all(row(section, one)[1] for one in described(kind.inputs))
    for name, command in main.commands.items():
        section = pages["commands.md"].split(f"## workbench {name}\n")[1].split("\n## ")[0]
        options = [one for one in command.params if one.param_type_name == "option"]
        assert all(f"`{option.opts[0]}" in section and getattr(option, "help", "") for option in options)
        assert section.count("\n| `") == len(command.params)


def test_every_key_of_a_diagnosis_is_explained(case: Case, tmp_path: Path) -> None:
    incident = diagnose(case)
    assert [folder.name for folder in SNAPSHOTS] == incident["case"]["snapshots"]
    assert undocumented(incident) == set()
    files: dict[str, Any] = {**pair_of_servers(9, 4)}
    files["s1.agreements.ldif"] = agreement("to-s2", 38902, enabled=False)
    files["s1.changelog.ldif"] = files["s1.changelog.ldif"].replace("csn: 6600000", "csn: x", 1)
    found = diagnose(case_of(tmp_path, files))
    assert found["rejects"] and found["pending"] and found["unknown"]
    assert [one["code"] for one in found["findings"]] == ["LINK_DISABLED", "PENDING_CHANGES"]
    assert found["pairs"][0]["reasons"]
    assert undocumented(found) == set()


@pytest.mark.parametrize(
    ("output", "unknown"),
    [
        ({"schema": 1, "new": 2}, {"new"}),
        ({"servers": [{"name": "a"}, {"nick": "b"}]}, {"servers[].nick"}),
        ({"servers": [{"vector": {"4711": {"min": "a", "mean": "b"}}}]}, {"servers[].vector.{origin}.mean"}),
        (
            {"findings": [{"evidence": [{"anything": 1}], "fix": ({"repair": "a", "cost": 1},)}]},
            {"findings[].fix[].cost"},
        ),
        ({"pairs": [{"reasons": [{"values": {"rid": "1"}}], "others": {"design": {"anchor": "a"}}}]}, set()),
    ],
)
def test_a_key_that_nobody_explained_is_seen(output: dict[str, Any], unknown: set[str]) -> None:
    assert undocumented(output) == unknown
