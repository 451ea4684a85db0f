"""A consumer that refuses everything: a session that has just begun is no way, nor is a link that is off; and why it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, with_status, zulu
from link_samples import BROKEN_OFF, line, mesh, refused_change, told
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

STARTED = "Error (0) Replica acquired successfully: Incremental update started"
FULL = (
    "dbmdb_map_error - dbmdb_public_db_op failed with db error -30792 : MDB_MAP_FULL: Environment mapsize limit reached"
)
NOT_LOGGED = (
    "NSMMReplicationPlugin - changelog program - _cl5WriteOperationTxn - Failed to write entry with csn "
    f"({csn(5, 1)}); db error - -12793 Database operation error"
)
NOT_ADDED = (
    f"NSMMReplicationPlugin - write_changelog_and_ruv - Can't add a change for uid=u5 to changelog csn {csn(5, 1)}"
)
NO_PARENT = "ldbm_back_add - entry uid=u5 has no parent (-12797)"
NOT_APPLIED = (
    f"NSMMReplicationPlugin - process_postop - Failed to apply update ({csn(5, 1)}) error (1).  Aborting replication "
    "session(conn=31 op=4)"
)
TRIED = (9, 12, 15)


def says(*lines: str, at: tuple[float, ...] = TRIED) -> str:
    """What s2 writes each time that it refuses the change: first these lines."""
    return "".join(
        line(second - 0.1 + number / 1000, f"ERR - {text}")
        for second in at
        for number, text in enumerate([*lines, NOT_APPLIED])
    )


def refusing(
    status: str = STARTED, began: int = 15, read: float = 16, own: str = "", off: bool = True
) -> dict[str, Any]:
    """s2 refuses the first change of s1 every 3 s; a session has just begun. s3 has all that s1 has, and its link is off."""
    log = "".join(refused_change(second, csn(5, 1), "Operations error (1)") for second in TRIED)
    log += line(read, "INFO - NSMMReplicationPlugin - replica_execute_cl2ldif_task - Beginning changelog export")
    more = f"nsds5replicaLastUpdateStart: {zulu(began)}\n"
    files = mesh(status, log, more, ended=None) | {"s2.errors.log": own or says(FULL, NOT_LOGGED, NOT_ADDED)}
    ruv = elements({**claims(r1=(0, 9), r2=(1, 2)), 3: None})
    if off:
        made = [*(csn(second, 1) for second in range(10)), csn(1, 2), csn(2, 2)]
        files["s3.replica.ldif"] = replica(3, ruv)
        files["s3.changelog.ldif"] = changelog(made, own_entries=True)
        files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902, enabled=False)
    return files


@pytest.mark.parametrize("status", [STARTED, BROKEN_OFF])
def test_a_session_that_has_just_begun_brings_no_more_than_those_before(status: str, tmp_path: Path) -> None:
    """i4b: between two refused sessions the agreement was green, and 226 changes were said to be on their way."""
    case = case_of(tmp_path, refusing(status))
    found = diagnose(case)
    (failing,) = of("LINK_FAILING", found["findings"])
    assert failing["link"] == "to-s2" and failing["waiting"] == 5
    assert "the link to-s2 fails (database is full there)" in headline(found) and "on the way" not in headline(found)
    (off,) = of("LINK_DISABLED", found["findings"])
    assert "can deliver" not in off["summary"]
    assert off["fix"][0]["repair"] == "first do what LINK_FAILING says on to-s2"
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert waits["fix"][0]["repair"] == "do what LINK_FAILING says on to-s2"
    made = plan(case)
    assert not made.steps
    assert {row["pending"] for row in made.after if row["server"] == "s2"} == {5}
    refused = [course.refused for course in made.courses if course.way == "enable"]
    assert refused == [
        "s2 takes no change of any supplier (database is full there): what LINK_FAILING says on to-s2 comes first"
    ]


@pytest.mark.parametrize(
    ("began", "read"), [(500, 500.0), (16, 120.0)], ids=["refused long ago", "the session goes on for long"]
)
def test_a_session_that_goes_on_and_is_not_refused_brings_what_waits(began: int, read: float, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, refusing(began=began, read=read, off=False)))
    assert not of("LINK_FAILING", found["findings"])
    assert "on the way to s2" in headline(found)


@pytest.mark.parametrize(
    ("lines", "full"),
    [
        ((FULL, NOT_LOGGED, NOT_ADDED), True),
        ((FULL, "plugin x - it does not like the entry", "plugin y - nor does it"), False),
        ((FULL, NOT_LOGGED, NO_PARENT), False),
    ],
    ids=["3.1.2", "another cause", "no parent"],
)
def test_the_cause_may_stand_some_lines_before(lines: tuple[str, ...], full: bool, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, refusing(BROKEN_OFF, own=says(*lines), off=False)))
    (one,) = of("LINK_FAILING", found["findings"])
    assert [quote["text"] for quote in one["quotes"]] == [*lines[0 if full else 1 :]]
    assert ("its database is full" in one["summary"]) is full
    assert ("--mdb-max-size" in one["fix"][0]["repair"]) is full


def test_what_was_full_at_the_attempt_before_is_not_the_cause_of_this_one(tmp_path: Path) -> None:
    """Two attempts within one second."""
    own = says(FULL, NOT_LOGGED, NOT_ADDED) + says(NOT_LOGGED, NOT_ADDED, at=(15,))
    found = diagnose(case_of(tmp_path, refusing(BROKEN_OFF, own=own, off=False)))
    assert "its database is full" not in of("LINK_FAILING", found["findings"])[0]["summary"]


def test_what_waits_behind_a_link_without_an_anchor_is_counted(tmp_path: Path) -> None:
    """i3: s1 has no record of what s2 has last; 87 changes were called nothing."""
    no_connection = (
        "Error (-1) Problem connecting to replica - LDAP error: Can't contact LDAP server (connection error)"
    )
    files = mesh(no_connection)
    files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in range(6, 10)])
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38999), told(no_connection))
    (one,) = of("LINK_FAILING", diagnose(case_of(tmp_path, files))["findings"])
    assert "it probably means s2" in one["summary"]
    assert "nothing waits" not in one["summary"] and one["waiting"] == 4
    assert (
        "4 changes wait behind it, and the collected log of s1 has no record for a session to begin at"
        in one["summary"]
    )
