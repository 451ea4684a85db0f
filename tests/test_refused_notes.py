"""Notes of failed logins that a server refused, and that no log describes any more: nothing is missing there."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import plain_line
from entry_samples import answered, entry, mesh
from mesh_samples import case_of, csn

from workbench.diagnosis.case_diagnosis import diagnose

REFUSED = (
    "ERR - do_modify - Rejecting replicated password policy operation(conn=6 op=5) for entry uid=a,dc=example,dc=com.  To allow "
    "these changes to be accepted, set passwordIsGlobalPolicy to 'on' in cn=config."
)
SENT = (
    'WARN - NSMMReplicationPlugin - repl5_inc_update_from_op_result - agmt="cn=s2-to-s1" (localhost:38901): Receiver failed '
    f"to replay change (uniqueid 732df886-e8a011f1-a14a8447-655bff93, CSN {csn(20, 2)}): Server is unwilling to perform (53). "
    "Will retry later."
)


@pytest.mark.parametrize(
    ("attribute", "refused", "missing"),
    [("passwordRetryCount", True, 0), ("passwordRetryCount", False, 1), ("description", True, 1)],
)
def test_what_marks_nothing_but_notes_is_one(attribute: str, refused: bool, missing: int, tmp_path: Path) -> None:
    noted = entry("uid=a", 1, f"{attribute};vucsn-{csn(20, 2)}: 3")
    files = mesh({"r1": (1, 30), "r2": (2, 30)}, {"s1": [entry("uid=a", 1)], "s2": [noted]}, {})
    files["s1.access.log"] = answered(2, "uid=b", csn(2, 2), replicated=True) + answered(
        30, "uid=b", csn(30, 2), replicated=True
    )
    files["s1.errors.log"] = plain_line(21, REFUSED) if refused else ""
    files["s2.errors.log"] = plain_line(21, SENT)
    found = diagnose(case_of(tmp_path, files))
    assert sum(row["position"] == csn(20, 2) for row in found["missing"] if row["server"] == "s1") == missing
