"""A replica ID that some servers cleaned and another one still claims: who cleaned it waits for none of its changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, plain_line
from entry_samples import answered
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica

from workbench import Case, diagnose
from workbench.diagnosing.diagnosis import logs_of
from workbench.diagnosing.verdicts import verdicts_on
from workbench.fleet.topology import topology

HAD, NOT_NAMED = csn(3, 9), csn(4, 9)


def folder(*, cleaned: bool = True, imported: int | None = None, again: bool = False) -> dict[str, Any]:
    """s1 took one of the two changes of replica ID 9 that the read-only s2 claims and has, and cleaned the ID at 20 s.

    imported  in that second data was imported on s1, whose vector ends at 1 s before the cleaning or at 30 s behind it
    again     s2 has a change of the ID that was made after the cleaning
    """
    last = csn(40, 9) if again else NOT_NAMED
    task = "NSMMReplicationPlugin - CleanAllRUV Task (rid 9): Successfully cleaned rid(9)"
    lines = plain_line(20, f"INFO - {task}") if cleaned else ""
    if imported is not None:
        begun = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is going offline"
        ended = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
        lines += plain_line(35, f"{begun}; disabling replication") + plain_line(36, ended)
    mine = elements(claims(r1=(1, 50), r2=(1, 50)))
    named = [NOT_NAMED, *([last] if again else [])]
    return {
        "s1.replica.ldif": replica(1, mine),
        "s1.changelog.ldif": changelog([csn(50, 1), csn(50, 2)], marks=[csn(imported, 1)] if imported else []),
        "s1.access.log": answered(3, "uid=u,ou=people", HAD, replicated=True),
        "s1.errors.log": lines or plain_line(1, "INFO - main - 389-Directory/2.3.1 B2022.272.1534 starting up"),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(65535, elements({**claims(r1=(1, 50), r2=(1, 50)), 9: (HAD, last)}), flags=0),
        "s2.access.log": "".join(answered(5, "uid=u,ou=people", one, replicated=True) for one in (HAD, *named)),
    }


@pytest.mark.parametrize(
    ("about", "more", "waits"),
    [
        ("it cleaned the ID", {}, 0),
        ("it never did", {"cleaned": False}, 2),
        ("data of before were imported since", {"imported": 1}, 2),
        ("data of later were imported since", {"imported": 30}, 0),
        ("the ID makes changes again", {"again": True}, 1),
    ],
)
def test_who_cleaned_a_replica_id_waits_for_no_change_of_before(
    about: str, more: dict[str, Any], waits: int, tmp_path: Path
) -> None:
    case = case_of(tmp_path, folder(**more))
    found = diagnose(case)
    mine = [row["count"] for row in found["pending"] if (row["server"], row["origin"]) == ("s1", "9")]
    assert mine == ([waits] if waits else []), about
    assert bool(of("REINIT_REQUIRED", found["findings"])) is bool(waits)


def told(case: Case, position: str) -> tuple[str, str]:
    shown = topology(case)
    (one,) = (one for one in verdicts_on(case, shown, logs_of(case, shown), position) if one.server == "s1")
    return one.verdict, one.rule


def test_the_story_of_a_change_says_that_its_origin_was_cleaned(tmp_path: Path) -> None:
    case = case_of(tmp_path / "cleaned", folder())
    assert told(case, HAD) == ("present", "applied")
    assert told(case, NOT_NAMED) == ("unknown", "cleaned_here")
    case = case_of(tmp_path / "not", folder(cleaned=False))
    assert told(case, NOT_NAMED) == ("pending", "not_covered")
