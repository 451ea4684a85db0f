"""Copied logs alone: what a server refused of its suppliers is told, though no vector says what it has seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import of
from entry_samples import answered
from mesh_samples import case_of, csn, pair_of_servers

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline


def refused(second: int, code: int, replicated: bool = True) -> str:
    return answered(second, "uid=x", csn(second, 1), replicated=replicated).replace("err=0", f"err={code}")


@pytest.mark.parametrize(
    ("log", "count"),
    [
        (refused(3, 32) + refused(4, 32), 2),
        (refused(3, 32) + answered(5, "uid=x", csn(3, 1), replicated=True), 0),  # it took the change later
        (refused(3, 51), 0),  # the session begins with this change again
        (refused(3, 32, replicated=False), 0),  # of a client
    ],
)
def test_what_a_server_refused_is_told_by_its_log_alone(log: str, count: int, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, {"s2.access.log": log}))
    assert [len(one["items"]) for one in of("APPLY_SKIPPED", found["findings"])] == [count] * bool(count)
    assert ("see also APPLY_SKIPPED" in headline(found)) is bool(count)


def test_of_a_server_with_a_vector_the_vector_tells(tmp_path: Path) -> None:
    files = {**pair_of_servers(9, 9), "s2.access.log": refused(3, 32)}
    assert not of("APPLY_SKIPPED", diagnose(case_of(tmp_path, files))["findings"])
