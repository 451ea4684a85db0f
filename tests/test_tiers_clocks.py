"""Ages and delays by clocks that are not the same, and were read at different times."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from test_comdb2_diagnosis import AHEAD, SOURCE, diagnosed, node
from tier_files import NOW, Made, written

from workbench.diagnosis.diagnosis_text import diagnosis_text
from workbench.systems import system_named


def test_who_reported_after_the_clock_was_read_did_so_now(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, written(tmp_path / "now", [SOURCE, Made("A@a1", source="S@s1", age=-3)]))
    assert node(found, "A@a1")["condition"] == "healthy"
    assert "-3 s" not in diagnosis_text(system_named("comdb2"), found)


@pytest.mark.parametrize(("clock", "condition"), [("110000.000", "frozen"), ("115955.000", "frozen")])
def test_a_clock_that_was_read_another_time_tells_no_age(clock: str, condition: str, tmp_path: Path) -> None:
    late = Made("A@a1", source="S@s1", age=900, answers=False)
    folder = written(tmp_path / "now", [SOURCE, late, Made("A@a2", source="S@s1")])
    (folder / "meta" / "now.txt").write_text(f'"2026-11-20T{clock} UTC"\n')
    assert node(diagnosed(tmp_path, folder), "A@a1")["condition"] == condition


def test_a_commit_that_is_newer_than_the_clock_tells_no_time(tmp_path: Path) -> None:
    folder = written(tmp_path / "now", [SOURCE, Made("A@a1", source="S@s1", at=(9, 500))])
    table = folder / "nodes" / "positions.tsv"
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    for row, age in zip(rows, (-900, -600), strict=True):
        row[6] = row[9] = str(int(NOW.timestamp()) - age)
    table.write_text("".join("\t".join(row) + "\n" for row in rows))
    assert node(diagnosed(tmp_path, folder), "A@a1")["lag_s"] is None


@pytest.mark.parametrize(
    ("wait", "asked_before", "condition"),
    [(45, 0, "behind"), (600, 0, "delayed"), (45, 560, "delayed"), (599, 0, "delayed")],
)
def test_a_delay_explains_no_more_than_itself(wait: int, asked_before: int, condition: str, tmp_path: Path) -> None:
    """The source made its newest commit 600 s ago, and the node lacks it: asked earlier, it need not have had it then."""
    late = Made("ro@r1", at=(9, 50_000), source=AHEAD.name, asked_before=asked_before)
    late.lrl = f"replicate_from shopdb @s1\nreplicate_wait {wait}\n"
    folder = written(tmp_path / "made", [AHEAD, late])
    table = folder / "nodes" / "positions.tsv"
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    for row, age in zip(rows, (600, 900), strict=True):
        row[6] = row[9] = str(int(NOW.timestamp()) - age)
    table.write_text("".join("\t".join(row) + "\n" for row in rows))
    one = node(diagnosed(tmp_path, folder), "ro@r1")
    assert (one["condition"], one["lag_s"]) == (condition, [600.0, 900.0])
    assert ("on purpose, and lacks what is older" in one["says"]) == (condition == "behind")


@pytest.mark.parametrize("ahead", [1, 2])
def test_reports_of_a_time_to_come_tell_no_age(ahead: int, tmp_path: Path) -> None:
    """The nodes were asked when the registry's clock was read: that one row or most are an hour ahead of both proves nothing
    of the clock.
    """
    copies = [Made(f"A@a{at}", source="S@s1", at=(9, 500), age=-3600 if at <= ahead else 5) for at in (1, 2)]
    found = diagnosed(tmp_path, written(tmp_path / "now", [Made("S@s1"), *copies]))
    (told,) = [one for one in found["findings"] if one["code"] == "CLOCK_AHEAD"]
    assert "60 min ahead" in told["summary"] and len(told["evidence"]) == ahead
    text = diagnosis_text(system_named("comdb2"), found)
    assert "3,600 s ahead" in text and "3,605 s ago" not in text


@pytest.mark.parametrize(("minutes", "count"), [(10, 1), (0, 0), (-10, 0)])
def test_snapshots_in_the_wrong_order_are_told(minutes: int, count: int, tmp_path: Path) -> None:
    """The last one is taken for the present, whatever its clock says."""
    late = Made("A@a1", source="S@s1", at=(9, 500))
    newer = written(tmp_path / "newer", [Made("S@s1"), late], now=NOW + timedelta(minutes=minutes))
    found = diagnosed(tmp_path, newer, written(tmp_path / "older", [Made("S@s1"), late]))
    ahead = [finding for finding in found["findings"] if finding["code"] == "CLOCK_AHEAD"]
    assert len(ahead) == count
    for finding in ahead:
        assert "snapshot older" in finding["summary"] and "10 min behind that of snapshot newer" in finding["summary"]
        assert "newer after older" in finding["fix"][0]["repair"]
