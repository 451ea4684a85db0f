"""Files of which the end was not copied: what they do not show is unknown, and no step is planned for it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from comdb2_incidents import dumps, log
from test_comdb2_diagnosis import case_of
from tier_files import Made, written

from workbench import diagnose
from workbench.repair.planner import plan

LOG = log(40)


@pytest.mark.parametrize("packed", [False, True])
def test_the_cut_end_of_a_dump_is_no_reason_for_a_step(packed: bool, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    dumps(LOG, LOG, LOG)(folder)
    dump = folder / "A.a1.digest.tsv"
    if packed:
        dump.with_suffix(".tsv.gz").write_bytes(gzip.compress(dump.read_bytes())[:-200])
        dump.unlink()
    else:
        dump.write_bytes(dump.read_bytes()[:-40])
    case = case_of(tmp_path, folder)
    found = diagnose(case)
    assert [row["why"] for row in found["unknown"]] == ["unread"] and not found["pending"]
    (unread,) = (one for one in found["findings"] if one["code"] == "UNREADABLE_INPUT")
    assert unread["server"] == "A@a1"
    assert packed or "the file ends within its last line" in unread["summary"]
    made = plan(case)
    assert not made.steps and not made.courses


def test_what_another_node_waits_for_is_counted_without_it(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    dumps(LOG, LOG, LOG[:30])(folder)
    dump = folder / "A.a1.digest.tsv"
    dump.write_bytes(dump.read_bytes()[:-400])
    case = case_of(tmp_path, folder)
    (row,) = diagnose(case)["pending"]
    made = plan(case)
    assert (row["server"], row["count"]) == ("A@a2", 10)
    assert {one["server"]: one["pending"] for one in made.before} == {"A@a1": 0, "A@a2": 10, "S@s1": 0}
    assert not any(step.server == "A@a1" for step in made.steps)


def test_a_table_of_the_registry_that_is_cut_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path / "in", [Made("S@s1"), Made("A@a1", source="S@s1"), Made("A@a2", source="S@s1")])
    table = folder / "meta" / "comdb2_physreps.tsv"
    table.write_bytes(table.read_bytes()[:-20])
    found = diagnose(case_of(tmp_path, folder))
    assert "the file ends within its last line" in str([one["summary"] for one in found["findings"]])


@pytest.mark.parametrize("cut", [3, 8, 20])
def test_a_value_that_the_end_of_the_file_cuts_is_none(cut: int, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", [Made("S@s1"), Made("A@a1", source="S@s1"), Made("A@a2", source="S@s1")])
    table = folder / "meta" / "comdb2_physreps.tsv"
    table.write_bytes(table.read_bytes()[:-cut])
    found = diagnose(case_of(tmp_path, folder))
    assert [one["code"] for one in found["findings"]] == ["UNREADABLE_INPUT"]


def test_no_node_is_moved_because_the_table_of_who_pulls_is_cut(tmp_path: Path) -> None:
    nodes = [Made("S@s1"), Made("A@a1", source="S@s1"), Made("A@a2", at=(9, 500), source="A@a1")]
    folder = written(tmp_path / "in", nodes)
    table = folder / "meta" / "comdb2_physrep_connections.tsv"
    table.write_bytes(table.read_bytes()[:-5])
    made = plan(case_of(tmp_path, folder))
    assert not made.steps
    assert "A@a2 has none in what was: first collect it once more" in str([one.refused for one in made.courses])


def test_what_a_copy_has_behind_the_cut_end_of_its_source_is_no_other_history(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    dumps(LOG, LOG, LOG[:30])(folder)
    dump = folder / "S.s1.digest.tsv"
    dump.write_bytes(dump.read_bytes()[:-30])
    codes = {one["code"] for one in diagnose(case_of(tmp_path, folder))["findings"]}
    assert "UNREADABLE_INPUT" in codes and "LOG_DIVERGED" not in codes


def test_nobody_is_sent_to_a_node_whose_log_is_another_one(tmp_path: Path) -> None:
    whole, other = log(60), log(60, other_from=30)
    file, offset = whole[-1][0].strip("{}").split(":")
    at = int(file), int(offset)
    late = Made("A@a2", at=(8, 28), first=8, source="S@s1", age=400)
    nodes = [Made("S@s1", at=at, first=9), Made("A@a1", at=at, first=8, source="S@s1"), late]
    folder = written(tmp_path / "in", nodes)
    for name, lines in (("S.s1", [one for one in whole if one[0].startswith("{9")]), ("A.a1", other)):
        (folder / f"{name}.digest.tsv").write_bytes(b"".join(line for _, line in lines))
    found = diagnose(case_of(tmp_path, folder))
    (gap,) = (one for one in found["findings"] if (one["code"], one["server"]) == ("LOG_GAP", "A@a2"))
    assert "let A@a2 pull from none of A@a1 before that is mended" in gap["fix"][0]["repair"]
    assert "replicate_from" not in str(gap["fix"])
