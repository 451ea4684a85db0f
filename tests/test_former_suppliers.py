"""A supplier that was made a hub before it had sent all that it made: its vector ends before that, its log has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, listening, of, plain_line, stamp, status, with_status, zulu
from entry_samples import answered
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.topology.topology import topology

Files = dict[str, Any]
MADE = [csn(second, 3) for second in range(10)]


def demoted(*, logged: int = 10, taken_for: int = 1, sent: int = 5, own: int = 65535) -> Files:
    """s3 made ten changes as origin 3, sent `sent` of them, and is a hub now, whose log has `logged`.

    taken_for  whose element stands first in its RUV
    """
    title = listening("s3")["s3.errors.log"].replace("localhost:", "localhost.localdomain:")
    files: Files = {"s3.errors.log": title}
    both = claims(r1=(0, 1), r2=(0, 1))
    others = [csn(second, rid) for rid in (1, 2) for second in (0, 1)]
    for rid in (1, 2):
        vector = elements({**both, **claims(r3=(0, sent - 1))})
        files[f"s{rid}.replica.ldif"] = replica(rid, vector)
        files[f"s{rid}.changelog.ldif"] = changelog([*others, *MADE[:sent]], own_entries=True)
        files[f"s{rid}.agreements.ldif"] = agreement(f"s{rid}-to-s{3 - rid}", 38903 - rid) + agreement(
            f"s{rid}-to-s3", 38903
        )
    first, second = (taken_for, 3 - taken_for)
    vector = elements(claims(**{f"r{first}": (0, 1), f"r{second}": (0, 1), "r3": (0, sent - 2)}))
    files["s3.replica.ldif"] = replica(own, vector)
    files["s3.changelog.ldif"] = changelog([*others, *MADE[:logged]], own_entries=True)
    told = status(11, "Unable to acquire replica: the replica has the same Replica ID as this one", "red", 5, 6)
    files["s3.agreements.ldif"] = with_status(agreement("s3-to-s1", 38901), told) + agreement("s3-to-s2", 38902)
    return files


def test_what_a_hub_made_before_is_brought_by_the_role_that_it_had(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, demoted()))
    (stranded,) = of("STRANDED_CHANGE", found["findings"])
    assert "only s3 holds 5 changes of origin 3" in stranded["summary"]
    assert "it makes none as origin 3 any more" in stranded["summary"]
    again, saved = stranded["fix"]
    assert "--newrole supplier --replica-id 3" in again["repair"] and "then make a change on it" in again["repair"]
    assert saved["repair"].startswith("or save them")
    waiting = of("PENDING_CHANGES", found["findings"])
    assert {finding["server"] for finding in waiting} == {"s1", "s2"}
    for finding in waiting:
        assert finding["fix"][0]["repair"] == "do what STRANDED_CHANGE says of s3"
        assert "only s3 has them, as an origin that it is no more" in finding["summary"]
    assert headline(found).startswith("5 changes are stranded on s3; ")


def test_a_supplier_takes_a_hub_for_itself_by_the_first_element_of_its_ruv(tmp_path: Path) -> None:
    (failing,) = of("LINK_FAILING", findings(tmp_path, demoted()))
    assert "s1 takes s3 for itself (code 11)" in failing["summary"]
    assert "was the supplier with replica ID 3 once" in failing["summary"]
    supplier, start, delete = failing["fix"]
    assert "--newrole supplier --replica-id 3" in supplier["repair"]
    assert "poke" in start["repair"]
    assert "repl-agmt delete" in delete["repair"] and "s2 feeds s1, too" in delete["why"]
    assert "first do what STRANDED_CHANGE says of s3" in delete["caution"]


def test_an_answer_of_before_is_told_as_one(tmp_path: Path) -> None:
    """The element of s2 stands first: s1 would let s3 in now."""
    (failing,) = of("LINK_FAILING", findings(tmp_path, demoted(taken_for=2)))
    assert "its own entry shows another one; it was changed since" in failing["summary"]
    assert "--newrole" not in str(failing["fix"]) and "poke" in failing["fix"][-1]["repair"]


def test_a_log_that_lacks_what_others_have_seen_brings_nothing(tmp_path: Path) -> None:
    """The log of s3 begins behind what s1 and s2 have seen of origin 3: no session could begin there."""
    files = demoted()
    others = [csn(second, rid) for rid in (1, 2) for second in (0, 1)]
    files["s3.changelog.ldif"] = changelog([*others, *MADE[6:]], own_entries=True)
    for finding in of("STRANDED_CHANGE", findings(tmp_path, files)):
        assert all("--newrole supplier" not in step["repair"] for step in finding["fix"])


def test_a_hub_that_made_nothing_is_given_an_id_of_its_own(tmp_path: Path) -> None:
    files = demoted(sent=10)
    for rid in (1, 2):
        files[f"s{rid}.replica.ldif"] = replica(rid, elements(claims(r1=(0, 1), r2=(0, 1))))
        files[f"s{rid}.changelog.ldif"] = changelog([csn(at, of_) for of_ in (1, 2) for at in (0, 1)], own_entries=True)
    files["s3.replica.ldif"] = replica(65535, elements(claims(r1=(0, 1), r2=(0, 1))))
    files["s3.changelog.ldif"] = files["s1.changelog.ldif"]
    (failing,) = of("LINK_FAILING", findings(tmp_path, files))
    assert "once" not in failing["summary"].partition(";")[0]
    supplier, _, delete = failing["fix"]
    assert "--newrole supplier --replica-id ID" in supplier["repair"]
    assert delete["caution"] is None


def test_a_server_whose_own_entry_was_not_collected_may_be_a_supplier(tmp_path: Path) -> None:
    """Nothing tells that s3 makes no changes as 3 any more."""
    files = demoted()
    del files["s3.replica.ldif"]
    said = str(findings(tmp_path, files))
    assert "any more" not in said and "as an origin that it is no more" not in said and "is a hub" not in said


def test_servers_that_call_themselves_by_one_name_are_not_told_apart_by_it(tmp_path: Path) -> None:
    files = demoted()
    files["s1.errors.log"] = files["s3.errors.log"]
    (stranded,) = of("STRANDED_CHANGE", findings(tmp_path, files))
    assert "any more" not in stranded["summary"]


def test_what_went_with_the_data_of_a_former_supplier_waits_nowhere(tmp_path: Path) -> None:
    """s3 made five more, was made a read-only consumer, and was filled from s1 then."""
    files = demoted()
    for name in ("changelog.ldif", "agreements.ldif"):
        del files[f"s3.{name}"]
    files["s3.replica.ldif"] = replica(65535, elements(claims(r1=(0, 1), r2=(0, 1), r3=(0, 4))), flags=0)
    moved = "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is"
    files["s3.errors.log"] += plain_line(20, f"{moved} going offline; disabling replication")
    read = "Import complete.  Processed 9 entries in 1 seconds. (9.00 entries/sec)"
    files["s3.errors.log"] += plain_line(25, f"INFO - bdb_public_bdb_import_main - import userroot: {read}")
    files["s3.errors.log"] += plain_line(25, f"{moved} coming online; enabling replication")
    files["s3.access.log"] = "".join(answered(second, f"uid=u{second}", MADE[second]) for second in range(5, 10))
    found = diagnose(case_of(tmp_path, files))
    (gone,) = of("CHANGES_THROWN_AWAY", found["findings"])
    assert (gone["server"], gone["origin"]) == ("s3", "3")
    assert "holds 5 changes of s3 any more" in gone["summary"]
    assert {(row["count"], row["lost"]) for row in found["pending"]} == {(5, 5)}
    assert headline(found).startswith("No collected server holds 5 changes of s3 any more; ")


def test_what_went_with_the_data_of_a_supplier_that_was_given_another_replica_id_waits_nowhere(tmp_path: Path) -> None:
    """s3 made five more as 3, was given the replica ID 7, and was filled from s1 then: no server has them any more."""
    files = demoted(own=7)
    for name in ("changelog.ldif", "agreements.ldif"):
        del files[f"s3.{name}"]
    files["s3.replica.ldif"] = replica(7, elements(claims(r1=(0, 1), r2=(0, 1), r3=(0, 4))))
    read = "Import complete.  Processed 9 entries in 1 seconds. (9.00 entries/sec)"
    files["s3.errors.log"] += plain_line(25, f"INFO - bdb_public_bdb_import_main - import userroot: {read}")
    files["s3.access.log"] = "".join(answered(second, f"uid=u{second}", MADE[second]) for second in range(5, 10))
    found = diagnose(case_of(tmp_path, files))
    (gone,) = of("CHANGES_THROWN_AWAY", found["findings"])
    assert (gone["server"], gone["origin"]) == ("s3", "3")
    assert headline(found).startswith("No collected server holds 5 changes of s3 any more; ")
    assert "save what" not in str(of("PENDING_CHANGES", found["findings"]))


@pytest.mark.parametrize("filled", [True, False])
def test_changes_that_no_other_server_has_heard_of_are_told_by_the_log_of_their_maker(
    filled: bool, tmp_path: Path
) -> None:
    """Seen on 2.3.1: r was a supplier for some minutes, without a link; what clients wrote there went in silence."""
    files = demoted()
    for name in ("changelog.ldif", "agreements.ldif"):
        del files[f"s3.{name}"]
    for name in ("s1", "s2", "s3"):
        number = 65535 if name == "s3" else int(name[1])
        files[f"{name}.replica.ldif"] = replica(number, elements(claims(r1=(0, 1), r2=(0, 1))), flags=int(name != "s3"))
    for name in ("s1", "s2"):
        files[f"{name}.changelog.ldif"] = changelog([csn(at, rid) for rid in (1, 2) for at in (0, 1)], own_entries=True)
    lines = [plain_line(2, "INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up")]
    if filled:
        read = "Import complete.  Processed 9 entries in 1 seconds. (9.00 entries/sec)"
        moved = "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is going"
        lines += [plain_line(20, f"{moved} offline; disabling replication")]
        lines += [plain_line(25, f"INFO - bdb_public_bdb_import_main - import userroot: {read}")]
    files["s3.errors.log"] += "".join(lines)
    client = f"{stamp(1)} conn=2 fd=65 slot=65 connection from 10.0.0.3 to 10.0.0.2\n"
    own = "".join(answered(second, f"uid=u{second}", csn(second, 9)) for second in range(5, 10))
    files["s3.access.log"] = client + own
    found = diagnose(case_of(tmp_path, files))
    waiting = {(row["server"], row["origin"], row["count"], row["lost"]) for row in found["pending"]}
    assert waiting == {(name, "9", 5, 5 if filled else 0) for name in ("s1", "s2")}
    assert bool(of("CHANGES_THROWN_AWAY", found["findings"])) == filled
    if not filled:
        steps = {finding["fix"][0]["repair"] for finding in of("PENDING_CHANGES", found["findings"])}
        assert steps and all("from s3, which was that origin" in step for step in steps)


def test_a_server_that_makes_no_changes_any_more_shares_no_origin(tmp_path: Path) -> None:
    """Seen on 2.3.1: after a duplicate replica ID was mended, the same case went on naming it in the first line."""
    ruv = elements(claims(r1=(0, 5), r2=(0, 5)))
    both = {f"s{n}.replica.ldif": replica(rid, ruv) for n, rid in ((1, 1), (2, 2), (3, 2))}
    mended = both | {"s3.replica.ldif": replica(65535, ruv, flags=0)}
    case = case_of(tmp_path, both, mended)
    found = diagnose(case)["findings"]
    assert "DUPLICATE_ORIGIN" not in {one["code"] for one in found}
    shown = topology(case, "1")
    assert {one.server for one in shown.replicas if one.origin == "2"} == {"s2", "s3"}


@pytest.mark.parametrize("had", [True, False])
def test_a_consumer_does_not_wait_for_what_it_made_as_a_supplier(had: bool, tmp_path: Path) -> None:
    """Seen on 2.3.1: "save what 625 changes of origin 2 made, from bern", the server that was to be sent them.

    had  the vector of the server that filled it covers them
    """
    files = demoted()
    for name in ("changelog.ldif", "agreements.ldif"):
        del files[f"s3.{name}"]
    files["s3.replica.ldif"] = replica(65535, elements(claims(r1=(0, 1), r2=(0, 1))), flags=0)
    filled = f"nsds5replicaLastInitStart: {zulu(20)}\nnsds5replicaLastInitEnd: {zulu(25)}\n"
    filled += "nsds5replicaLastInitStatus: Error (0) Total update succeeded\n"
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + with_status(agreement("s1-to-s3", 38903), filled)
    if not had:
        files["s1.replica.ldif"] = replica(1, elements(claims(r1=(0, 1), r2=(0, 1))))
    for rid in (1, 2):
        files[f"s{rid}.changelog.ldif"] = changelog([csn(second, other) for other in (1, 2) for second in (0, 1)])
    moved = "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is"
    read = "Import complete.  Processed 9 entries in 1 seconds. (9.00 entries/sec)"
    files["s3.errors.log"] += plain_line(20, f"{moved} going offline; disabling replication")
    files["s3.errors.log"] += plain_line(25, f"INFO - bdb_public_bdb_import_main - import userroot: {read}")
    files["s3.errors.log"] += plain_line(25, f"{moved} coming online; enabling replication")
    found = diagnose(case_of(tmp_path, files))
    rows = [row for row in found["pending"] if (row["server"], row["origin"]) == ("s3", "3")]
    assert rows and all(bool(row.get("made_itself")) is had for row in rows)
    said = [one for one in of("PENDING_CHANGES", found["findings"]) if (one["server"], one["origin"]) == ("s3", "3")]
    assert all(one["summary"].startswith("s3 made 1 change of origin 3 itself") is had for one in said)
    assert all(("write none of them again" in one["fix"][0]["repair"]) is had for one in said)
    assert ("not arrived" not in headline(found)) is had
