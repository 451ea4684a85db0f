"""Copied logs alone: what a server refused of its suppliers is told, though no vector says what it has seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import of
from entry_samples import answered
from mesh_samples import SUFFIX, case_of, changelog, csn, pair_of_servers

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story
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


@pytest.mark.parametrize("first", ["s1", "s3"])
def test_a_change_is_told_by_what_was_done_and_not_by_what_was_refused(first: str, tmp_path: Path) -> None:
    """Seen on 2.3.1: two servers had one replica ID, and a client of one was refused at a position which the other one used."""
    position, other = csn(5, 1), "s3" if first == "s1" else "s1"
    files: dict[str, str | bytes] = {**pair_of_servers(9, 9)}
    left = [csn(at, 1) for at in range(10) if at != 5] + [csn(1, 2), csn(2, 2)]
    files |= {f"{name}.changelog.ldif": changelog(left) for name in ("s1", "s2")}
    files[f"{first}.access.log"] = answered(5, "uid=wrong", position).replace("err=0", "err=20")
    files[f"{other}.access.log"] = answered(5, "uid=right", position)
    case = case_of(tmp_path, files)
    assert story(case, position)["target"] == f"uid=right,{SUFFIX}"
    missing = {row["target"] for row in diagnose(case)["missing"] if row["position"] == position}
    assert missing == {f"uid=right,{SUFFIX}"}
