"""A link that is switched on again lets its supplier trim what another server, to which no agreement leads, still waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import listening, of, with_status
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.repair.planner import plan

SAYS = "once it has delivered, s1 trims what s3 waits for: make an agreement from s1 to s3 first"


def off_and_unlinked(age: str, linked: bool) -> dict[str, Any]:
    """s1 has 100 changes; s2 and s3 have 5 of them. The link to s2 is off; to s3 there is one only if it is `linked`."""
    made, others = [csn(second, 1) for second in range(100)], [csn(1, 2), csn(1, 3)]
    entry = "dn: cn=changelog,cn=userroot,cn=ldbm database,cn=plugins,cn=config\ncn: changelog\n"
    settings = f"{entry}nsslapd-changelogmaxage: {age}\n\n"
    behind = elements(claims(r1=(0, 4), r2=(1, 1), r3=(1, 1)))
    to_s3 = agreement("s1-to-s3", 38903, enabled=False, remembered=[f"s1-to-s3;localhost;38903;3;{csn(4, 1)}"])
    return {
        "s1.replica.ldif": replica(1, elements(claims(r1=(0, 99), r2=(1, 1), r3=(1, 1)))) + settings,
        "s1.changelog.ldif": changelog([*made, *others]),
        "s1.agreements.ldif": agreement(
            "s1-to-s2", 38902, enabled=False, remembered=[f"s1-to-s2;localhost;38902;2;{csn(4, 1)}"]
        )
        + (to_s3 if linked else ""),
        "s2.replica.ldif": replica(2, behind),
        "s2.changelog.ldif": changelog([*made[:5], *others]),
        "s3.replica.ldif": replica(3, behind),
        "s3.changelog.ldif": changelog([*made[:5], *others]),
    }


@pytest.mark.parametrize(("age", "linked", "said"), [("5s", False, True), ("7d", False, False), ("5s", True, False)])
def test_what_is_trimmed_once_a_link_runs_is_said_before(age: str, linked: bool, said: bool, tmp_path: Path) -> None:
    case = case_of(tmp_path, off_and_unlinked(age, linked))
    off = [one for one in of("LINK_DISABLED", diagnose(case)["findings"]) if one["link"] == "s1-to-s2"]
    assert [SAYS in one["summary"] for one in off] == [said]
    risks = [step.risk for step in plan(case).steps if step.key.endswith("enable-s1-to-s2")]
    assert [SAYS in risk for risk in risks] == [said]


def test_whoever_is_fed_from_a_log_that_would_be_trimmed_comes_first(tmp_path: Path) -> None:
    """Seen on 2.3.1: the links were switched on first, and the session with s4, 15 s later, found no record to begin at."""
    files = off_and_unlinked("5s", linked=False)
    login = "nsDS5ReplicaBindDN: cn=replication manager,cn=config\n"
    files["s3.agreements.ldif"] = with_status(agreement("s3-to-s4", 38904), login)
    files["s1.agreements.ldif"] = with_status(files["s1.agreements.ldif"], login)
    files["s4.replica.ldif"] = replica(65535, elements(claims(r1=(0, 4), r2=(1, 1), r3=(1, 1))), flags=0)
    files["s4.errors.log"] = listening("s4")["s4.errors.log"]
    kinds = [step.repair for step in plan(case_of(tmp_path, files)).steps]
    assert kinds == ["feed", "unfeed", "enable"], kinds
