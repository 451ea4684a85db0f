"""Removals that a server refused because it did not have what they remove."""

from __future__ import annotations

from pathlib import Path

import pytest
from entry_samples import answered, logged
from mesh_samples import SUFFIX, agreement, changelog, claims, csn, elements, replica
from test_made_knowing import judged
from test_without_effect import Files

ANNA, ELSE = "uid=anna,ou=people", "uid=else,ou=people"
WRITER = "replace: modifiersName\nmodifiersName: cn=MemberOf Plugin,cn=plugins,cn=config\n-\n"


def refused(second: int, code: int) -> str:
    """Lines of the access log of s2: a change of anna by replication, refused."""
    line = answered(second, ANNA, csn(second, 1), replicated=True)
    return line.replace("RESULT err=0", f"RESULT err={code}")


@pytest.mark.parametrize(
    ("body", "code", "verdict"),
    [
        ("delete: memberOf\n-\n", 16, "present"),
        ("delete: memberOf\nmemberOf: cn=g\n-\n", 16, "present"),
        ("delete: memberOf\nmemberOf: cn=g\nmemberOf: cn=h\n-\n", 16, "missing"),  # the other one may be there
        ("delete: memberOf\n-\nadd: mail\nmail: a@x\n-\n", 16, "missing"),
        ("delete: memberOf\n-\n", 32, "missing"),
    ],
)
def test_a_removal_of_what_is_not_there_lacks_nothing(body: str, code: int, verdict: str, tmp_path: Path) -> None:
    ruv = elements(claims(r1=(1, 20), r2=(1, 15)))
    begin, end = changelog([csn(1, 1)]), logged(csn(20, 1), 9, ELSE, "replace: sn\nsn: x\n-\n")
    skipped = (
        f"[24/Mar/2024:10:27:{10 + 12}.000000000 +0000] - ERR - NSMMReplicationPlugin - repl5_inc_result_threadmain - "
        f'agmt="cn=s1-to-s2" (localhost:38902): Consumer failed to replay change (uniqueid 1-1-1-1, CSN {csn(10, 1)}): '
        f"{'No such attribute' if code == 16 else 'No such object'} ({code}). Skipping.\n"
    )
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": begin + logged(csn(10, 1), 1, ANNA, body + WRITER) + end,
        "s2.changelog.ldif": begin + end,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s1.errors.log": skipped,
        "s2.access.log": refused(10, code) + answered(20, ELSE, csn(20, 1), replicated=True),
    }
    assert SUFFIX in files["s2.access.log"]
    assert judged(files, csn(10, 1), tmp_path)[0] == verdict
