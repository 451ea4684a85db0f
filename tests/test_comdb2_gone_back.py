"""Sources whose log went back between two snapshots: nothing that is collected later shows what they lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from test_comdb2_diagnosis import diagnosed
from tier_files import NOW, Made, written


def twice(folder: Path, before: Sequence[Made], now: Sequence[Made], minutes: int = 10) -> dict[str, Any]:
    first = written(folder / "before", before, now=NOW - timedelta(minutes=minutes))
    return diagnosed(folder, first, written(folder / "now", now))


def nodes(at: tuple[int, int], generation: int = 4, copy: tuple[int, int] | None = None, **more: Any) -> list[Made]:
    source = Made("S@s1", at=at, generation=generation, **more)
    return [source, Made("A@a1", at=copy or at, generation=generation, source="S@s1", **more)]


def gone_back(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What is said of the source."""
    of_source = [one for one in found["findings"] if (one["code"], one["server"]) == ("LOG_DIVERGED", "S@s1")]
    return [one for one in of_source if "in snapshot before" in one["summary"]]


def test_a_source_and_its_copy_that_both_stand_further_back_have_lost_something(tmp_path: Path) -> None:
    (told,) = gone_back(twice(tmp_path, nodes((12, 900)), nodes((10, 700))))
    assert (told["severity"], told["server"], told["items"]) == ("error", "S@s1", ["{12:900}"])
    assert "stands at {10:700} now, more than 1 whole log file before that" in told["summary"]
    assert "no node that was collected goes further" in str(told["fix"][-1]["caution"])


def test_a_copy_that_still_goes_further_is_dumped_before_it_connects_anew(tmp_path: Path) -> None:
    (told,) = gone_back(twice(tmp_path, nodes((9, 1400)), nodes((9, 1000), copy=(9, 1400))))
    assert told["summary"].endswith("A@a1 still goes further")
    assert "dump the log of A@a1 from {9:1000} on before it connects anew" in told["fix"][0]["repair"]


def test_a_generation_that_fell_is_another_history_although_it_goes_further(tmp_path: Path) -> None:
    (told,) = gone_back(twice(tmp_path, nodes((9, 900), 7), nodes((9, 1500), 4)))
    assert "of generation 7 then, and is of generation 4 now" in told["summary"] and "is gone" not in told["summary"]


def test_a_new_master_explains_a_log_that_was_cut_off(tmp_path: Path) -> None:
    (told,) = gone_back(twice(tmp_path, nodes((9, 900), 4), nodes((9, 700), 6)))
    assert told["severity"] == "warning" and "rose from 4 to 6" in told["summary"]


@pytest.mark.parametrize("other", [(9, 900), (9, 1000)])
def test_a_node_that_its_cluster_brings_up_to_date_has_lost_nothing(other: tuple[int, int], tmp_path: Path) -> None:
    kin = Made("S@s2", at=other)
    assert not gone_back(twice(tmp_path, [*nodes((9, 900)), Made("S@s2", at=(9, 900))], [*nodes((9, 700)), kin]))


def test_snapshots_in_the_wrong_order_and_reports_of_before_prove_nothing(tmp_path: Path) -> None:
    assert not gone_back(twice(tmp_path / "order", nodes((9, 900)), nodes((9, 700)), minutes=-10))
    old = Made("S@s1", at=(9, 700), answers=None, age=700)
    assert not gone_back(twice(tmp_path / "old", nodes((9, 900)), [old, *nodes((9, 700))[1:]], minutes=10))


def test_a_source_whose_rows_alone_tell_that_it_went_back(tmp_path: Path) -> None:
    (told,) = gone_back(twice(tmp_path, nodes((9, 900), answers=None), nodes((9, 700), answers=None)))
    assert told["severity"] == "error"
