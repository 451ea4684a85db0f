"""Data of another beginning: whose data came last from elsewhere, and from where, as far as messages and links tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import listening, of, plain_line, zulu
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_field_truth import OTHER

from workbench.diagnosing.diagnosis import diagnose
from workbench.diagnosing.diagnosis_text import headline

BEGUN = "INFO - bdb_import_main - import userroot: Beginning import job..."
IMPORTED = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
OFFLINE = (
    "NOTICE - NSMMReplicationPlugin - multimaster_mmr_be_state_change - Replica dc=example,dc=com is going offline; "
    "disabling replication"
)


def other_data(log: str, filled: str = "") -> dict[str, str | bytes]:
    """s2 has data of another beginning, and an errors log; s1 and s3 go on. `filled`: what the link of s1 says of a filling."""
    files: dict[str, str | bytes] = {**pair_of_servers(9, 9)}
    files["s3.replica.ldif"] = replica(3, elements(claims(r1=(0, 9), r2=(1, 2))))
    files["s3.changelog.ldif"] = changelog([*(csn(second, 1) for second in range(10)), csn(1, 2), csn(2, 2)])
    files["s2.replica.ldif"] = replica(2, elements(claims(r2=(70, 74)), OTHER))
    files["s2.changelog.ldif"] = changelog([csn(second, 2) for second in range(70, 75)])
    files["s2.errors.log"] = listening("s2")["s2.errors.log"] + log
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902).rstrip() + f"\n{filled}\n"
    return files


def test_the_import_that_made_other_data_is_named_with_its_time(tmp_path: Path) -> None:
    log = plain_line(65, BEGUN) + plain_line(66, IMPORTED)
    found = diagnose(case_of(tmp_path, other_data(log)))
    (unrelated,) = of("UNRELATED_DATA", found["findings"])
    when = "the data of s2 came from a backup or a file at 2024-03-24 10:28:18 UTC"
    assert when in unrelated["summary"] and when in headline(found)


@pytest.mark.parametrize("log", [plain_line(60, "INFO - slapd_daemon - slapd started."), ""])
def test_nothing_is_said_of_when_where_no_message_tells_it(log: str, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, other_data(log)))
    (unrelated,) = of("UNRELATED_DATA", found["findings"])
    assert "came from" not in unrelated["summary"] and "initialised" not in unrelated["summary"]


def test_a_server_that_was_killed_as_its_filling_ended_is_filled_once_more(tmp_path: Path) -> None:
    log = plain_line(60, OFFLINE) + plain_line(66, IMPORTED)
    filled = (
        f"nsds5replicaLastInitStart: {zulu(60)}\nnsds5replicaLastInitEnd: {zulu(66)}\n"
        "nsds5replicaLastInitStatus: Error (0) Total update succeeded\n"
    )
    found = diagnose(case_of(tmp_path, other_data(log, filled)))
    (unrelated,) = of("UNRELATED_DATA", found["findings"])
    assert "s1 initialised s2 at 2024-03-24 10:28:18 UTC" in unrelated["summary"]
    assert any(one["repair"].startswith("initialise s2 from s1 once more") for one in unrelated["fix"])
