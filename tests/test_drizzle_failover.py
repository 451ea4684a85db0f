"""A failover: the case.yaml of a later snapshot names another server as the source of an origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import Files, log, named, one
from test_drizzle_commits_elsewhere import loaded
from test_drizzle_not_given import applied, refused

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.snapshot_choice import case_at
from workbench.repair.planner import plan
from workbench.topology.topology import topology

FROM_A, FROM_B = {"case.yaml": named("a", "a.log")}, {"case.yaml": named("b", "b.log")}
BEFORE: Files = {"a.log": log(*range(1, 6)), "b.log": log(1, 2, 3), "c.log": log(1, 2, 3, 4), **FROM_A}


def summaries(found: dict[str, Any], code: str) -> list[str]:
    return [each["summary"] for each in found["findings"] if each["code"] == code]


def test_one_server_is_the_source_at_a_time(tmp_path: Path) -> None:
    case = loaded(tmp_path, BEFORE, {"a.log": log(*range(1, 6)), "b.log": log(*range(1, 8)), **FROM_B})
    found = diagnose(case)
    assert not summaries(found, "DUPLICATE_ORIGIN") and not summaries(found, "ERRANT_CHANGE")
    assert {row["source"] for row in found["streams"]} == {"b"}
    then = topology(case_at(case, "s1"))
    assert {replica.server: replica.origin for replica in then.replicas} == {"a": "1", "b": None, "c": None}


def test_two_servers_that_one_file_names_are_still_told(tmp_path: Path) -> None:
    both = {"case.yaml": FROM_A["case.yaml"] + FROM_B["case.yaml"].partition(b"\n")[2]}
    found = diagnose(loaded(tmp_path, {"a.log": log(1, 2, 3), "b.log": log(1, 2, 3, 4), **both}))
    assert summaries(found, "DUPLICATE_ORIGIN")


def test_what_the_new_source_never_got_is_named(tmp_path: Path) -> None:
    case = loaded(tmp_path, BEFORE, {"b.log": log(1, 2, 3, 6, 7), "c.log": log(1, 2, 3, 4), **FROM_B})
    (says,) = summaries(diagnose(case), "GONE_FROM_LOG")
    assert says.startswith("b: its log lacks 2 transactions of server 1 (4, 5) that the log of a of snapshot s1 has, ")
    assert says.endswith("when a was the source of server 1")
    made = plan(case)
    assert not made.steps
    assert "the log of b lacks it, and the log of a of snapshot s1 has it" in refused(made)["apply"]


def test_nothing_is_written_to_the_former_source_unasked(tmp_path: Path) -> None:
    case = loaded(tmp_path, BEFORE, {"a.log": log(*range(1, 6)), "b.log": log(1, 2, 3, 6, 7), **FROM_B})
    found = diagnose(case)
    assert not summaries(found, "ERRANT_CHANGE") and "a has them whole" in summaries(found, "GONE_FROM_LOG")[0]
    made = plan(case)
    assert not made.steps
    assert "no file shows that a follows b" in refused(made)["apply"]
    assert "a has 4 and 5, which b became the source without" in refused(made)["provision"]
    assert applied(plan(case, ["a"], ["apply"])) == {"a": ["6", "7"]}


def test_a_failover_without_loss_is_calm(tmp_path: Path) -> None:
    case = loaded(tmp_path, BEFORE, {"b.log": log(*range(1, 8)), "c.log": log(1, 2, 3, 4), **FROM_B})
    found = diagnose(case)
    assert {each["code"] for each in found["findings"]} == {"PENDING_CHANGES"}
    assert applied(plan(case)) == {"c": ["5", "6", "7"]}


def test_numbers_that_both_gave_are_a_conflict(tmp_path: Path) -> None:
    now = {"b.log": log(*range(1, 6), t4="b", t5="b"), "c.log": log(1, 2, 3), **FROM_B}
    case = loaded(tmp_path, BEFORE, now)
    found = diagnose(case)
    (says,) = summaries(found, "TXN_CONFLICT")
    assert says.startswith(
        "b: its log has 2 transactions of server 1 (4, 5) with another content or end than the log of a of"
    )
    assert not plan(case).steps


@pytest.mark.parametrize("own", [one(6, server=2), b""])
def test_another_origin_stays_where_it_was(own: bytes, tmp_path: Path) -> None:
    """b makes its own as server 2; server 1 is still a."""
    named_b = {"case.yaml": named("b", "b.log", "2")}
    case = loaded(tmp_path, BEFORE, {"a.log": log(*range(1, 6)), "b.log": log(1, 2, 3) + own, **named_b})
    found = diagnose(case)
    assert not summaries(found, "GONE_FROM_LOG")
    assert {row["source"] for row in found["streams"] if row["origin"] == "1"} == {"a"}
