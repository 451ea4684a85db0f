"""A server whose database could not be written, as its errors log tells: 3.1.2 on a full disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, stamp, zulu
from entry_samples import answered, entry, mesh
from mesh_samples import case_of, csn, pair_of_servers

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

_SERIOUS = "CRIT - dblayer_txn_commit_ext - Serious Error---Failed in dblayer_txn_commit, err=-12793 (Database operation error)"


def _log(*seconds: int, why: str = "5 : Input/output error") -> str:
    return "".join(
        f"{stamp(second)} - ERR - dbmdb_map_error - dbmdb_txn_commit failed with db error {why}\n{stamp(second)} - {_SERIOUS}\n"
        for second in seconds
    )


@pytest.mark.parametrize(
    ("log", "access", "severity", "step"),
    [
        (_log(6, 8), "", "error", "see whether the disk under the database of s2 is full or broken"),
        (_log(6, 8, why="28 : No space left on device"), "", "error", "free room on the disk of s2"),
        (_log(6, 8), answered(20, "uid=x", csn(4, 1), True), "warning", "collect again with `--entries`"),
        (_log(6) + f"{stamp(9)} - INFO - main - 389-Directory/3.1.2 B2025 starting up\n", "", "", ""),
    ],
    ids=["broken", "full", "over", "restarted"],
)
def test_a_server_that_could_not_write(log: str, access: str, severity: str, step: str, tmp_path: Path) -> None:
    """A server is neither fed nor filled before its log shows a later write; a restart ends the finding."""
    files: dict[str, Any] = pair_of_servers() | {"s2.errors.log": log}
    case = case_of(tmp_path, files | ({"s2.access.log": access} if access else {}))
    found = diagnose(case)
    told = of("DATABASE_FAILING", found["findings"])
    assert [(one["server"], one["severity"]) for one in told] == [("s2", severity)] * bool(severity)
    assert all(one["fix"][0]["repair"].startswith(step) for one in told)
    assert not any("access log" in one["summary"] for one in told), "none was collected, or it shows a later write"
    stands = severity == "error"
    line = headline(found)
    assert line.startswith("s2 could not write its database, last at 2024-03-24 10:27:20 UTC; ") is stands, line
    assert ("5 are waiting for s2" if stands else "5 are on the way to s2") in line
    ends = [
        one.endswith("s2, which could not write its database: DATABASE_FAILING says what to do")
        for one in plan(case).open
    ]
    assert any(ends) is stands


def test_new_data_ends_it(tmp_path: Path) -> None:
    """s2 was filled by s1 after the failure."""
    filled = f"nsds5replicaLastInitStart: {zulu(10)}\nnsds5replicaLastInitEnd: {zulu(11)}\n"
    files: dict[str, Any] = pair_of_servers() | {"s2.errors.log": _log(6)}
    files["s1.agreements.ldif"] = f"{files['s1.agreements.ldif'].rstrip()}\n{filled}\n"
    assert not of("DATABASE_FAILING", diagnose(case_of(tmp_path / "filled", files))["findings"])
    files["s2.errors.log"] = _log(20)
    assert of("DATABASE_FAILING", diagnose(case_of(tmp_path / "later", files))["findings"])


def test_a_link_to_it_is_mended_after_its_database(tmp_path: Path) -> None:
    """s2 found no room as it was started: to start it comes after that."""
    files: dict[str, Any] = pair_of_servers() | {"s2.errors.log": _log(6)}
    refused = (
        "nsds5replicaLastUpdateStatus: Error (-1) Problem connecting to replica - LDAP error: Can't contact LDAP server"
    )
    files["s1.agreements.ldif"] = f"{files['s1.agreements.ldif'].rstrip()}\n{refused} (connection error)\n\n"
    (one,) = of("LINK_FAILING", diagnose(case_of(tmp_path, files))["findings"])
    assert one["fix"][0]["repair"] == "do what DATABASE_FAILING says first" and len(one["fix"]) > 1


@pytest.mark.parametrize(
    ("second", "code", "cause"),
    [(1, 1, "DATABASE_FAILING"), (1, 51, None), (60, 1, None)],
    ids=["then", "busy", "later"],
)
def test_what_failed_then_and_is_covered_was_lost_by_it(
    second: int, code: int, cause: str | None, tmp_path: Path
) -> None:
    """s2 answered a change with a failure, and its vector went on over it. The log has to tell of its database in that moment."""
    files: dict[str, Any] = mesh({"r1": (1, 30), "r2": (5, 5)}, {"s1": [entry("uid=anna", 1)], "s2": []}, {})
    failed = answered(1, "uid=anna", csn(1, 1), True, operation="ADD").replace("err=0", f"err={code}")
    case = case_of(tmp_path, files | {"s2.errors.log": _log(second), "s2.access.log": failed})
    found = diagnose(case)
    assert [(row["server"], row["cause"]) for row in found["missing"]] == [("s2", cause)]
    (missed,) = of("MISSED_CHANGE", found["findings"])
    assert missed["fix"][0]["repair"] == "do what DATABASE_FAILING says first"
    refused = {one.way: one.refused for one in plan(case).courses}["initialise-from-s1"]
    assert refused == "s2 could not write its database: what DATABASE_FAILING says comes first"
