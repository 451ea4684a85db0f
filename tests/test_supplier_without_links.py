"""A supplier from which no link leads: what it made is on it alone, and its list of agreements tells why."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, of
from entry_samples import entry, export
from mesh_samples import agreement, case_of, claims, csn, elements, pair_of_servers, replica

from workbench.diagnosis.case_diagnosis import diagnose


@pytest.mark.parametrize("listed", [True, False])
def test_what_a_supplier_without_a_link_made_reaches_the_others_over_a_new_one(listed: bool, tmp_path: Path) -> None:
    """s2 was made a supplier with replica ID 2 and has no agreement: the vector of s1 does not name that."""
    first = elements(claims(r1=(0, 9)))
    anna, new = entry("uid=anna", 1), entry("uid=new", 5).replace(csn(1, 1), csn(20, 2))
    files: dict[str, str | bytes] = {
        "s1.replica.ldif": replica(1, first),
        "s1.agreements.ldif": agreement("to-s2", 38902),
        "s1.entries.ldif": export(first, [anna]),
        "s2.replica.ldif": replica(2, [*first, f"{{replica 2 ldap://localhost.localdomain:38902}} {csn(20, 2)}"]),
        "s2.entries.ldif": export(first, [anna, new]),
    }
    files |= {"s2.agreements.ldif": ""} if listed else {}
    (differs,) = (one for one in diagnose(case_of(tmp_path, files))["findings"] if one["code"] == "ENTRIES_DIFFER")
    assert differs["fix"][0]["repair"].startswith("make an agreement from s2") is listed


@pytest.mark.parametrize("collected", [True, False])
def test_an_agreement_that_was_deleted_since_the_snapshot_before_is_named(collected: bool, tmp_path: Path) -> None:
    """s2 waits for five changes of s1, and no link leads there any more; of a list that was not read again nothing is known."""
    before = pair_of_servers(4, 4) | {"s1.agreements.ldif": agreement("to-s2", 38902)}
    now = pair_of_servers() | ({"s1.agreements.ldif": ""} if collected else {})
    (waits,) = of("PENDING_CHANGES", findings(tmp_path, before, now))
    gone = "the link to-s2 from s1 to s2 is gone since the snapshot before"
    assert (gone in waits["fix"][0]["why"]) is collected
