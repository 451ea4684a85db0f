"""Data of another beginning: whose data came last from elsewhere, and from where, as far as messages and links tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import listening, of, plain_line, zulu
from entry_samples import entry, export
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_field_truth import OTHER

from workbench.diagnosis.case_diagnosis import context_of, diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.replaced_data import wrote_again
from workbench.repair.planner import plan

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


@pytest.mark.parametrize("imported", [20, 4])
def test_a_server_wrote_again_only_where_its_own_changes_are_newer_than_its_data(imported: int, tmp_path: Path) -> None:
    """s2 lacks two own changes that its vector covers; its newest one is of second 9, before or after an import from a file."""
    own = elements(claims(r1=(0, 9), r2=(1, 9)))
    files: dict[str, str | bytes] = {**pair_of_servers(9, 9)}
    added = entry("uid=new,ou=people", 1).replace(csn(1, 1), csn(3, 2))
    for name, shown in ((1, [added]), (2, [])):
        files[f"s{name}.replica.ldif"] = replica(name, own)
        files[f"s{name}.changelog.ldif"] = changelog([csn(9, 1)], marks=[csn(9, 2)])
        files[f"s{name}.entries.ldif"] = export(own, [entry("uid=anna,ou=people", 1), *shown])
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902)
    log = plain_line(imported, BEGUN) + plain_line(imported + 0.5, IMPORTED)
    files["s2.errors.log"] = listening("s2")["s2.errors.log"] + log
    context, _ = context_of(case_of(tmp_path, files))
    assert wrote_again(context, "s2", SUFFIX, "2") is (imported == 4)
    found = diagnose(context.case)
    for hidden in of("OWN_CHANGES_HIDDEN", found["findings"]):
        assert ("wrote again" in hidden["summary"], "wrote again" in headline(found)) == ((imported == 4),) * 2
        assert hidden["fix"][0]["repair"] == "initialise s2 from s1"
    assert imported == 20 or of("OWN_CHANGES_HIDDEN", found["findings"])


def test_what_links_leave_out_is_no_loss_of_a_server_that_never_got_it(tmp_path: Path) -> None:
    """s2 has other data than s1 and s3; the only link to s3 leaves the mail out, and s3 has none."""
    files = other_data("")
    ruv = elements(claims(r1=(0, 9), r2=(1, 2)))
    mail = f"mail;vucsn-{csn(1, 1)}: a@example.com"
    for name, lines in (("s1", [mail]), ("s2", [mail]), ("s3", [])):
        shown = elements(claims(r2=(70, 74)), OTHER) if name == "s2" else ruv
        files[f"{name}.entries.ldif"] = export(shown, [entry("uid=anna,ou=people", 1, *lines)])
    files |= listening("s3")
    leaves_out = "nsDS5ReplicatedAttributeList: (objectclass=*) $ EXCLUDE mail\n\n"
    files["s1.agreements.ldif"] = agreement("s1-to-s3", 38903).rstrip("\n") + f"\n{leaves_out}"
    said = "\n".join(plan(case_of(tmp_path, files)).open)
    assert (
        "to keep the data of s2, initialise s1 from s2, s3 from s1: s1 has nothing that s2 does not have; s3 has nothing"
        in said
    )
