"""Kanidm: what earlier files tell where the last ones do not tell all, for a server is not there, or its file was cut."""

from __future__ import annotations

import json
from pathlib import Path

from kanidm_incidents import BASE, RUV
from kanidm_samples import Entry, backup, entry_id
from test_kanidm_gone_changes import FIRST, LOST, of, second, snapshot, thrown

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline


def test_a_server_of_an_earlier_snapshot_that_vectors_still_name_was_not_collected(tmp_path: Path) -> None:
    three = {**FIRST, "c": backup("c", 300, RUV, BASE)}
    found = of(tmp_path, three, {name: backup(name, 900, [*RUV, (850, name)], BASE) for name in "ac"})
    assert headline(found).startswith("No change is known to be missing")
    assert "b was not collected" in headline(found)
    assert [one["server"] for one in found["not_collected"]] == ["b"]
    assert not [one for one in found["findings"] if one["severity"] != "info"]


def test_a_server_that_no_vector_names_any_more_is_not_looked_for(tmp_path: Path) -> None:
    three = {**FIRST, "c": backup("c", 300, RUV, BASE)}
    forgotten = [(850, name) for name in "ac"]
    found = of(tmp_path, three, {name: backup(name, 900, forgotten, BASE) for name in "ac"})
    assert not found["not_collected"]


def test_a_server_that_was_refreshed_is_there_under_its_new_uuid(tmp_path: Path) -> None:
    found = of(tmp_path, FIRST, second(backup("x", 900, [*RUV, (850, "a"), (880, "x")], BASE)))
    assert not found["not_collected"]


def cut(tmp_path: Path, own: str, ruv: list[tuple[int, str]], entries: dict[int, Entry]) -> dict[str, object]:
    """B of the second snapshot ends within its fourth entry; in the first one it alone has its change of 250."""
    first = snapshot(tmp_path / "s1", FIRST)
    last = snapshot(tmp_path / "s2", {"a": backup("a", 900, [*RUV, (850, "a")], BASE)})
    text = json.dumps(backup(own, 900, ruv, entries))
    (last / "b.json").write_text(text[: text.index(entry_id(2)) + 20])
    case = Case.create(tmp_path / "case")
    case.load([first, last])
    return diagnose(case)


def test_what_the_claims_of_a_cut_file_exclude_is_gone_with_the_refresh(tmp_path: Path) -> None:
    (one,) = thrown(cut(tmp_path, "x", [*RUV, (850, "a"), (880, "x")], BASE))
    assert (one["server"], one["items"]) == ("b", [LOST])
    assert "b has another server UUID since: it was refreshed" in one["summary"]


def test_what_a_cut_file_may_show_is_not_gone(tmp_path: Path) -> None:
    found = cut(tmp_path, "b", [*RUV, (250, "b"), (880, "b")], BASE)
    assert not thrown(found) and found["unknown"]
