"""A hub that keeps no changelog any more: its agreement is not deleted where nothing else feeds the consumer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, listening, of, status, with_status
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import headline

Files = dict[str, Any]


def hub_without_log(*, waits: bool, fed: bool = False) -> Files:
    """s1 feeds the hub s2, s2 the read-only s3; the flags of s2 are 0. `fed`: s1 feeds s3, too."""
    made = [csn(second, 1) for second in range(10)]
    whole, part = elements(claims(r1=(0, 9))), elements(claims(r1=(0, 4)))
    files: Files = {**listening("s1"), **listening("s2"), **listening("s3")}
    files["s1.replica.ldif"], files["s1.changelog.ldif"] = replica(1, whole), changelog(made)
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + (agreement("s1-to-s3", 38903) if fed else "")
    files["s2.replica.ldif"] = replica(65535, whole, flags=0)
    told = status(15, "Unable to read changelog", "red", 5, 6)
    files["s2.agreements.ldif"] = with_status(agreement("s2-to-s3", 38903), told)
    files["s3.replica.ldif"] = replica(65535, part if waits else whole, flags=0)
    return files


@pytest.mark.parametrize("waits", [True, False])
def test_the_only_agreement_to_a_consumer_is_not_deleted(waits: bool, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, hub_without_log(waits=waits)))
    (failing,) = of("LINK_FAILING", found["findings"])
    again, then = failing["fix"]
    assert "replication promote --suffix dc=example,dc=com --newrole hub" in again["repair"]
    assert "no other collected agreement leads to s3" in again["why"]
    assert "do not delete the agreement before another server feeds s3" in again["caution"]
    assert "initialise" in then["repair"] and "repl-agmt delete" not in str(failing["fix"])
    if waits:
        assert "s2 keeps no log that a session could send from" in failing["summary"]
        (lost,) = of("ANCHOR_PURGED", found["findings"])
        assert "it keeps no changelog (nsDS5Flags is 0)" in lost["summary"] and "no longer" not in lost["summary"]
        assert headline(found).startswith("Nothing goes from s2 to s3: s2 keeps no changelog; ")
        (pending,) = of("PENDING_CHANGES", found["findings"])
        (step,) = pending["fix"]
        assert step["repair"] == "do what is said on s2-to-s3" and "not the 5 changes that wait" in step["why"]


def test_it_may_be_deleted_where_another_server_feeds_the_consumer(tmp_path: Path) -> None:
    (failing,) = of("LINK_FAILING", findings(tmp_path, hub_without_log(waits=False, fed=True)))
    again, delete = failing["fix"]
    assert "have s2 keep a changelog again" in again["repair"] and "before another server" not in again["caution"]
    assert "or, if it is to stay a read-only consumer, delete the agreement" in delete["repair"]
    assert delete["why"] == "s1 feeds s3, too"


@pytest.mark.parametrize("kind", ["login refused", "down"])
def test_it_is_not_deleted_for_a_link_that_fails_itself(kind: str, tmp_path: Path) -> None:
    """s1 has an agreement to s3, too: s3 refuses its login, or s1 did not answer when servers were collected."""
    files = hub_without_log(waits=False, fed=True)
    if kind == "down":
        files["s1.DOWN"] = ""
    else:
        refused = "Problem connecting to replica - LDAP error: Invalid credentials (connection error)"
        fails = with_status(agreement("s1-to-s3", 38903), status(49, refused, "red", 5, 6))
        files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + fails
    found = of("LINK_FAILING", findings(tmp_path, files))
    (failing,) = (one for one in found if one["link"] == "s2-to-s3")
    assert "repl-agmt delete" not in str(failing["fix"]) and "s1 feeds s3" not in str(failing["fix"])
    assert "no other collected agreement that leads there runs" in failing["fix"][0]["why"]
    assert "do not delete the agreement before another server feeds s3" in failing["fix"][0]["caution"]


def test_nothing_could_ever_come_to_the_only_server_that_makes_changes(tmp_path: Path) -> None:
    files: Files = pair_of_servers(4, 4)
    files["s2.replica.ldif"] = replica(65535, elements(claims(r1=(0, 4), r2=(1, 2))), flags=0)
    del files["s2.changelog.ldif"]
    told = status(15, "Unable to read changelog", "red", 5, 6)
    files["s2.agreements.ldif"] = with_status(agreement("to-s1", 38901), told)
    (failing,) = of("LINK_FAILING", findings(tmp_path, files))
    (delete,) = failing["fix"]
    assert "repl-agmt delete" in delete["repair"] and "no other server than s1 makes changes" in delete["why"]


@pytest.mark.parametrize("fed", [True, False])
def test_a_supplier_is_not_filled_by_one_that_was_made_a_read_only_consumer(fed: bool, tmp_path: Path) -> None:
    """s3 was a supplier that fed s1; s2 is one, and feeds s1 if `fed`."""
    files: Files = pair_of_servers(4, 4) | listening("s3")
    files["s3.replica.ldif"] = replica(65535, elements(claims(r1=(0, 4), r2=(1, 2))), flags=0)
    files["s3.agreements.ldif"] = with_status(
        agreement("s3-to-s1", 38901), status(15, "Unable to read changelog", "red", 5, 6)
    )
    if not fed:
        files["s2.agreements.ldif"] = agreement("to-s3", 38903)
    (failing,) = of("LINK_FAILING", findings(tmp_path, files))
    (only,) = failing["fix"]
    assert "init" not in only["repair"] and "save what it alone has" in only["caution"]
    if fed:
        assert "repl-agmt delete" in only["repair"] and only["why"].endswith("s2 feeds s1, too")
    else:
        assert "keep a changelog again" in only["repair"] and "before another server feeds s1" in only["caution"]
