"""Whose data stays is for a person to decide: each choice says who is filled from whom, in an order in which it can be done."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, listening, of
from link_samples import not_connected, told
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.incident import Incident
from workbench.repair.case_plan import plan_for

_OTHER = "66ffffff000000010000"
_CONFIG = "\n\ndn: cn=config\ncn: config\nnsslapd-localhost: localhost\nnsslapd-port: {}\n\n"


@pytest.mark.parametrize("listed", [True, False])
def test_who_is_filled_from_whom_follows_the_links(listed: bool, tmp_path: Path) -> None:
    """s1 feeds hub s2, which feeds the read-only s3; s2 has data of another beginning."""
    first, other = elements(claims(r1=(0, 9))), elements(claims(r1=(70, 74)), _OTHER)
    made = [csn(second, 1) for second in range(10)]
    files: dict[str, str | bytes] = {
        "s1.replica.ldif": replica(1, first),
        "s1.changelog.ldif": changelog(made),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(65535, other).replace("nsDS5ReplicaType: 3", "nsDS5ReplicaType: 2")
        + _CONFIG.format(38902),
        "s2.changelog.ldif": changelog([csn(second, 1) for second in range(70, 75)]),
        "s3.replica.ldif": replica(65535, first).replace("nsDS5Flags: 1", "nsDS5Flags: 0"),
        "s3.errors.log": listening("s3")["s3.errors.log"],
    }
    files |= {"s2.agreements.ldif": agreement("s2-to-s3", 38903)} if listed else {}
    said = "\n".join(plan_for(case_of(tmp_path, files)).open)
    behind = ", then s3 from s2" if listed else ""
    assert f"to keep the data of s1, s3, initialise s2 from s1{behind}:" in said
    new = "s3 from s2, s1 from s2 (over a new agreement: no link leads there)" if listed else "s1, s3 from s2"
    assert f"to keep the data of s2, initialise {new}:" in said


@pytest.mark.parametrize("port", [38904, 38903])
def test_the_port_of_a_read_only_server_is_that_of_its_configuration(port: int, tmp_path: Path) -> None:
    """Its port was changed, and the agreement has the old one; no vector names an address of a server that makes no changes."""
    files: dict[str, str | bytes] = {**pair_of_servers(9, 9)}
    status = told("Error (-1) Problem connecting to replica - LDAP error: Can't contact LDAP server (connection error)")
    files["s1.agreements.ldif"] = agreement("to-s2", 38902) + agreement("to-s3", 38903).rstrip("\n") + f"\n{status}\n"
    files["s1.errors.log"] = not_connected(9, "localhost:38903")
    read_only = replica(65535, elements(claims(r1=(0, 4), r2=(1, 2)))).replace("nsDS5Flags: 1", "nsDS5Flags: 0")
    files["s3.replica.ldif"] = read_only + _CONFIG.format(port)
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    moved = port == 38904
    assert (
        "it probably means s3: the other files name localhost:38904 as the address of s3" in one["summary"]
    ) is moved
    assert ("--port 38904" in one["fix"][0]["repair"]) is moved


def test_the_port_for_encrypted_connections_is_another_one(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {**pair_of_servers(9, 9)}
    status = told("Error (-1) Problem connecting to replica - LDAP error: Can't contact LDAP server (connection error)")
    encrypted = f"nsDS5ReplicaTransportInfo: LDAPS\n{status}"
    files["s1.agreements.ldif"] = (
        agreement("to-s2", 38902) + agreement("to-s3", 38993).rstrip("\n") + f"\n{encrypted}\n"
    )
    files["s1.errors.log"] = not_connected(9, "localhost:38993")
    read_only = replica(65535, elements(claims(r1=(0, 4), r2=(1, 2)))).replace("nsDS5Flags: 1", "nsDS5Flags: 0")
    files["s3.replica.ldif"] = read_only + _CONFIG.format(38903)
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert "38903" not in one["summary"] and not any("38903" in fix["repair"] for fix in one["fix"])


def test_who_keeps_no_log_feeds_nobody_as_it_is(tmp_path: Path) -> None:
    """Only the read-only s3 has the data of the first beginning."""
    first, other = elements(claims(r1=(0, 9))), elements(claims(r1=(70, 74)), _OTHER)
    made = changelog([csn(second, 1) for second in range(70, 75)])
    files: dict[str, str | bytes] = {
        "s1.replica.ldif": replica(1, other),
        "s1.changelog.ldif": made,
        "s1.agreements.ldif": agreement("s1-to-s3", 38903),
        "s3.replica.ldif": replica(65535, first).replace("nsDS5Flags: 1", "nsDS5Flags: 0"),
        "s3.errors.log": listening("s3")["s3.errors.log"],
    }
    said = "\n".join(plan_for(case_of(tmp_path, files)).open)
    assert "to keep the data of s3, initialise s1 from s3 (which has to be made a supplier first):" in said


def test_what_its_maker_lost_waits_behind_no_link(tmp_path: Path) -> None:
    """Nothing brings it, so that the link that fails is no reason."""
    files: dict[str, str | bytes] = {**pair_of_servers(9, 4)}
    status = told("Error (49) Problem connecting to replica - LDAP error: Invalid credentials (connection error)")
    files["s1.agreements.ldif"] = agreement("to-s2", 38902).rstrip("\n") + f"\n{status}\n"
    found = Incident(case_of(tmp_path, files)).found
    assert headline(found).startswith("5 changes have not arrived at s2: the link to-s2 fails")
    found = {**found, "pending": [{**row, "lost_by": "s1", "suppliers": []} for row in found["pending"]]}
    said = headline(found)
    assert said.startswith("The link to-s2 fails (invalid credentials)") and "no change is known to be missing" in said
    assert "5 have not arrived at s2, and s1, which made them, lost them with its old data" in said
