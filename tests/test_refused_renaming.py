"""A renaming that a server refuses, for it has another one of the same entry: what it is stands in no errors log."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, of
from entry_samples import logged
from link_samples import BROKEN_OFF, BUSY, line, mesh, refused_change
from mesh_samples import changelog, csn

REFUSED, OWN = csn(5, 1), csn(4, 2)


def renaming(position: str, new: str) -> str:
    return logged(position, 1, "ou=sub", f"newrdn: ou={new}\ndeleteoldrdn: 1\n", "modrdn")


@pytest.mark.parametrize("own", [True, False])
def test_what_is_refused_again_and_again_is_told_with_the_other_renaming_of_its_entry(
    own: bool, tmp_path: Path
) -> None:
    """Seen on 2.3.1: two servers moved one entry within 26 ms; the log of the consumer had no word of it."""
    log = "".join(refused_change(second, REFUSED, "Operations error (1)") for second in (9, 12, 15))
    files = mesh(BROKEN_OFF, log, ended=None)
    others = [*(csn(second, 1) for second in range(10) if csn(second, 1) != REFUSED), *(csn(n, 2) for n in (1, 2))]
    files["s1.changelog.ldif"] = f"{changelog(others).rstrip()}\n\n{renaming(REFUSED, 'b')}"
    if own:
        files["s2.changelog.ldif"] = f"{str(files['s2.changelog.ldif']).rstrip()}\n\n{renaming(OWN, 'a')}"
    failed = (
        f"process_postop - Failed to apply update ({REFUSED}) error (1).  Aborting replication session(conn=13 op=8)"
    )
    files["s2.errors.log"] = "".join(line(at, f"ERR - NSMMReplicationPlugin - {failed}") for at in (9, 12, 15))
    found = findings(tmp_path, files)
    (loop,), (fails,) = of("APPLY_RETRY_LOOP", found), of("LINK_FAILING", found)
    name = "ou=sub,dc=example,dc=com"
    assert f"refuses the change {REFUSED}, a renaming of {name}, with 1" in loop["summary"], loop["summary"]
    assert (f"s2 has another renaming of that entry, {OWN}, of {name}" in loop["summary"]) is own
    assert "its own log says no more than that" in fails["summary"], fails["summary"]


@pytest.mark.parametrize(
    ("answer", "times", "fails"),
    [
        ("Operations error (1)", 2, True),
        ("Operations error (1)", 1, False),
        ("Server is busy (51)", 2, False),
        ("Can't contact LDAP server(-1)", 2, False),
    ],
)
def test_who_answers_twice_with_an_error_refuses_for_good(answer: str, times: int, fails: bool, tmp_path: Path) -> None:
    """Seen on 2.3.1: others held the consumer busy, so it was asked twice in two minutes; 24 changes were called on the way."""
    log = "".join(refused_change(second, REFUSED, answer) for second in (9, 12)[:times])
    found = findings(tmp_path, mesh(BUSY, log, ended=None))
    refused = [finding["reason"] for finding in of("LINK_FAILING", found)]
    assert (refused == ["refused"]) is fails and bool(of("APPLY_RETRY_LOOP", found)) is fails
