"""A deletion that finds no entry because the server missed its renaming: nothing was lost past replication."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import of
from entry_samples import SUFFIX, answered, entry, logged, mesh
from mesh_samples import case_of, csn

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.missed_renames import RENAME_MISSED

RENAMED, DELETED = csn(5, 1), csn(7, 1)


def _grave() -> str:
    head = f"dn: nsuniqueid=2-2-2-1,uid=new,{SUFFIX}\nobjectClass;vucsn-{csn(1, 1)}: person"
    return f"{head}\nobjectClass;vucsn-{DELETED}: nsTombstone\nnstombstonecsn: {DELETED}\nnsUniqueId: 2-2-2-1\n\n"


@pytest.mark.parametrize("missed", [True, False])
def test_an_entry_is_left_where_its_renaming_was_missed(missed: bool, tmp_path: Path) -> None:
    """Seen on 2.3.1: read answered the deletion with success and kept the entry, for its link had passed over the renaming."""
    begin, end = logged(csn(2, 1), 8, "uid=begin", "", "delete"), logged(csn(9, 1), 9, "uid=end", "", "delete")
    renaming = logged(RENAMED, 1, "uid=old", "newrdn: uid=new\ndeleteoldrdn: 1\n", "modrdn")
    deletion = logged(DELETED, 1, "uid=new", "", "delete")
    whole = begin + renaming + deletion + end
    kept = entry("uid=old", 1) if missed else entry("uid=other", 1)
    files = mesh(
        {"r1": (1, 9)},
        {"s1": [_grave()], "s2": [_grave()], "s3": [kept]},
        {"s1": whole, "s2": whole, "s3": begin + deletion + end if missed else whole},
        s3_access_log=answered(7, "uid=new", DELETED, replicated=True, operation="DEL"),
    )
    found = diagnose(case_of(tmp_path, files))
    reasons = {row["position"]: row["reasons"] for row in found["missing"] if row["server"] == "s3"}
    assert (reasons.get(DELETED) == [RENAME_MISSED]) is missed, found["missing"]
    differ = [one for one in of("ENTRIES_DIFFER", found["findings"]) if one["server"] == "s3"]
    assert bool(differ) is not missed
    if missed:
        missing = [one["summary"] for one in of("MISSED_CHANGE", found["findings"]) if one["server"] == "s3"]
        assert any("1 of these is a deletion that did not find the entry" in text for text in missing), missing
