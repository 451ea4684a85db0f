"""A server that is down is started only after the links are off that would make it pass over changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, listening, of
from link_samples import NO_CONNECTION, not_connected
from mesh_samples import agreement, changelog, claims, csn, elements, replica

LOST, LATER = csn(10, 1), csn(20, 1)


def folder(*, lost: bool = True, later: bool = True, feeds: bool = True, down: bool = True) -> dict[str, Any]:
    """s2 is down; s1 has a change that s3 lacks (`lost`), and both the next one (`later`: s3, too).

    feeds  the link from s3 to s2 is on
    """
    ruv = elements(claims(r1=(1, 20), r2=(1, 1), r3=(1, 1)))
    first = [csn(1, 1), csn(1, 2), csn(1, 3)]
    theirs = [*first, *([] if lost else [LOST]), *([LATER] if later else [])]
    status = f"nsds5replicaLastUpdateStatus: {NO_CONNECTION}\n"
    from_s1 = agreement("s1-to-s2", 38902).rstrip("\n") + f"\n{status}\n"
    from_s3 = agreement("s3-to-s2", 38902, enabled=feeds).rstrip("\n") + f"\n{status}\n"
    files = {
        "s1.changelog.ldif": changelog([*first, LOST, LATER], own_entries=True),
        "s3.changelog.ldif": changelog(theirs, last=ruv, own_entries=True),
        "s1.replica.ldif": replica(1, ruv),
        "s3.replica.ldif": replica(3, ruv),
        "s1.agreements.ldif": from_s1 + agreement("s1-to-s3", 38903),
        "s3.agreements.ldif": from_s3 + agreement("s3-to-s1", 38901),
        "s1.errors.log": not_connected(30, "localhost:38902"),
        "s3.errors.log": not_connected(30, "localhost:38902"),
    }
    return files | listening("s2") | ({"s2.DOWN": "no connection\n"} if down else {})


def test_the_link_that_would_hide_changes_is_switched_off_first(tmp_path: Path) -> None:
    found = of("LINK_FAILING", findings(tmp_path, folder()))
    assert {one["link"] for one in found} == {"s1-to-s2", "s3-to-s2"}
    for one in found:
        first, second = one["fix"]
        assert first["repair"] == (
            "switch off s3-to-s2 before s2 is started, and leave it off until s2 has the 1 change of origin 1 that s3 lacks and "
            "s1 has; or first do what MISSED_CHANGE says of s3"
        )
        assert "not known" in first["caution"]
        assert second["repair"].startswith("start s2")


@pytest.mark.parametrize("other", ["lost", "later", "feeds", "down"])
def test_where_nothing_would_be_hidden_it_is_just_started(other: str, tmp_path: Path) -> None:
    found = findings(tmp_path, folder(**{other: False}))
    assert not any("switch off" in str(one["fix"]) for one in of("LINK_FAILING", found))


def test_who_has_to_be_filled_unless_that_server_has_the_record_says_it_too(tmp_path: Path) -> None:
    files = folder()
    files["s5.replica.ldif"] = replica(65535, elements(claims(r1=(1, 5), r2=(1, 1), r3=(1, 1))), flags=0)
    files["s1.agreements.ldif"] += agreement("s1-to-s5", 38905)
    (filled,) = of("REINIT_REQUIRED", findings(tmp_path, files | listening("s5")))
    first = filled["fix"][0]["repair"]
    assert first.startswith("first switch off s3-to-s2 before s2 is started") and "; then start s2, if down" in first


def test_who_waits_for_what_only_that_server_may_pass_on_says_it_too(tmp_path: Path) -> None:
    """s3 made a change that reaches s1 through s2 alone."""
    files = folder()
    ruv = elements(claims(r1=(1, 20), r2=(1, 1), r3=(1, 30)))
    files["s3.replica.ldif"] = replica(3, ruv)
    files["s3.changelog.ldif"] += changelog([csn(30, 3)], own_entries=True)
    files["s3.agreements.ldif"] = files["s3.agreements.ldif"].partition("dn: cn=s3-to-s1")[0]
    (one,) = of("PENDING_CHANGES", findings(tmp_path, files))
    assert one["server"] == "s1"
    assert one["fix"][0]["repair"].startswith("switch off s3-to-s2 before s2 is started")
    assert "; then start s2 (restart it" in one["fix"][0]["repair"]
