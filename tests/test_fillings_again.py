"""A server that was stopped while it filled another one fills it again as it starts: that is said before it is to be started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, with_status
from link_samples import NO_CONNECTION, line, told
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan

REPLICATION = "NSMMReplicationPlugin"
BEGUN = (
    f'INFO - {REPLICATION} - repl5_tot_run - Beginning total update of replica "agmt="cn=s1-to-s3" (localhost:38903)".'
)
SENT = BEGUN.replace("Beginning", "Finished").rstrip(".") + ". Sent 9 entries."
OFFLINE = (
    f"NOTICE - {REPLICATION} - multisupplier_be_state_change - Replica dc=example,dc=com is going offline; disabling "
    "replication"
)
BROKE = "ERR - bdb_public_bdb_import_main - import userroot: Import failed."
STARTS = "INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up"
FIRST = (
    "first save the changelog of s3, as INITIALISATION_ABORTED says: as soon as s1 starts it may fill s3 again, which throws "
    "that away"
)


def folder(log: str = line(30, BEGUN), own: int = 15) -> dict[str, Any]:
    """s1 was killed while it filled s3, whose last own change is of the second `own`; s2 has those up to 9, and waits."""
    ruv = elements(claims(r1=(1, 9), r2=(1, 9), r3=(1, 9)))
    before = elements(claims(r1=(1, 9), r2=(1, 9), r3=(1, own)))
    both = [csn(second, rid) for rid in (1, 2, 3) for second in range(1, 10)]
    to_s1 = with_status(agreement("s2-to-s1", 38901), told(NO_CONNECTION))
    return {
        "s1.DOWN": "no connection\n",
        "s1.errors.log": log,
        "s2.replica.ldif": replica(2, ruv),
        "s2.changelog.ldif": changelog(both, own_entries=True),
        "s2.agreements.ldif": to_s1 + agreement("s2-to-s3", 38903),
        "s3.replica.ldif": replica(3, before),
        "s3.errors.log": line(30, OFFLINE) + line(31, BROKE),
        "s3.agreements.ldif": agreement("s3-to-s2", 38902, enabled=False),
    }


def said(found: dict[str, Any], code: str) -> list[str]:
    return [fix["repair"] for one in of(code, found["findings"]) for fix in one["fix"]]


def test_what_only_the_filled_server_has_is_saved_before_its_supplier_is_started(tmp_path: Path) -> None:
    """S5: as the supplier was started the filling began again, and the last copy of 5 changes was gone."""
    case = case_of(tmp_path, folder())
    found = diagnose(case)
    assert of("INITIALISATION_ABORTED", found["findings"])[0]["fix"][0]["repair"].startswith("save the changelog of s3")
    assert [text for text in said(found, "PENDING_CHANGES") if "start s1" in text] == [
        f"{FIRST}; then start s1 (restart it, if it runs and does not answer)"
    ]
    assert said(found, "LINK_FAILING")[0] == f"if localhost:38901 is s1, {FIRST}"
    assert f"what to do: {FIRST}; then start s1" in plan_text(plan(case))


@pytest.mark.parametrize(
    ("log", "own"),
    [
        (line(30, BEGUN), 9),
        (line(30, BEGUN) + line(30.5, SENT), 15),
        (line(30, BEGUN) + line(40, STARTS), 15),
        (line(30, BEGUN.replace("38903", "38907")), 15),
        (line(32, STARTS), 15),
    ],
    ids=["nothing alone", "sent whole", "started since", "another server", "no filling"],
)
def test_where_nothing_is_lost_by_the_start_nothing_more_is_said(log: str, own: int, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, folder(log, own)))
    assert of("INITIALISATION_ABORTED", found["findings"])
    assert "it may fill s3 again" not in str(found["findings"])


@pytest.mark.parametrize("log", ["", line(29, STARTS)])
def test_a_killed_supplier_may_not_have_written_that_it_fills(log: str, tmp_path: Path) -> None:
    """Seen on 3.1.2: the last seconds of its errors log were gone, and its start threw the last changelog away."""
    found = diagnose(case_of(tmp_path, folder(log)))
    assert said(found, "LINK_FAILING")[0] == f"if localhost:38901 is s1, {FIRST}"


@pytest.mark.parametrize("lacking", [True, False])
def test_what_a_stopped_server_made_comes_to_who_will_fill_it_before_it_is_started(
    lacking: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: its last changes had come to a hub alone; it was started, was filled, and lacked them."""
    mine, whole = claims(r1=(1, 9), r2=(1, 9)), claims(r1=(1, 9), r2=(1, 12))
    own = [csn(at, 2) for at in range(1, 13)]
    first = [csn(at, 1) for at in range(1, 10)]
    files: dict[str, Any] = {
        "s1.replica.ldif": replica(1, elements(mine if lacking else whole)),
        "s1.changelog.ldif": changelog([*first, *(own[:9] if lacking else own)], own_entries=True),
        "s1.agreements.ldif": with_status(agreement("s1-to-s2", 38902), told(NO_CONNECTION)),
        "s1.errors.log": line(30, BEGUN.replace("s3", "s2").replace("38903", "38902")),
        "s2.DOWN": "no connection\n",
        "s2.errors.log": "\t389-Directory/2.3.1 B2024.211.1531\n\tlocalhost:38902 (/etc/dirsrv/slapd-s2)\n\n"
        + line(30, OFFLINE),
        "s3.replica.ldif": replica(65535, elements(whole), flags=1),
        "s3.changelog.ldif": changelog([*first, *own], own_entries=True),
    }
    here = {name: text.replace("localhost.localdomain", "localhost") for name, text in files.items()}
    found = diagnose(case_of(tmp_path, here))
    steps = said(found, "LINK_FAILING")
    copied = "first copy the database folder of s2"
    assert steps[0] == (f"{copied}, and do what PENDING_CHANGES says of s1" if lacking else copied)
    assert steps[1].startswith("start s2")
    assert said(found, "INITIALISATION_RUNNING")[0] == steps[0]


def test_a_supplier_that_the_link_names_is_named_without_an_if(tmp_path: Path) -> None:
    """The log of s1 begins with its address."""
    title = "\t389-Directory/2.3.1 B2024.211.1531\n\tlocalhost:38901 (/etc/dirsrv/slapd-s1)\n\n"
    found = diagnose(case_of(tmp_path, folder(title + line(30, BEGUN))))
    assert said(found, "LINK_FAILING")[0] == FIRST


# --- an agreement that keeps the request to fill


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        (line(30, BEGUN) + line(40, STARTS) + line(55, BEGUN) + line(58, SENT), True),
        (line(40, STARTS) + line(43, BEGUN) + line(46, SENT), False),  # a person may have asked for it
        (line(30, BEGUN) + line(33, SENT) + line(40, STARTS) + line(55, BEGUN) + line(58, SENT), False),
        (line(30, BEGUN) + line(40, STARTS) + line(42, BEGUN) + line(45, SENT) + line(60, STARTS), False),
        (line(30, BEGUN) + line(33, SENT), False),
    ],
)
def test_a_request_that_a_start_took_along_fills_again_until_the_next_start(
    log: str, kept: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: to switch the agreement on replaced all data of a supplier, half an hour after its filling had ended."""
    ruv = elements(claims(r1=(1, 9), r3=(1, 9)))
    files = {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": changelog([csn(at, rid) for rid in (1, 3) for at in range(1, 10)], own_entries=True),
        "s1.agreements.ldif": agreement("s1-to-s3", 38903, enabled=False),
        "s1.errors.log": log,
        "s3.replica.ldif": replica(3, elements(claims(r1=(1, 5), r3=(1, 9)))),
        "s3.changelog.ldif": changelog([*(csn(at, 1) for at in range(1, 6)), *(csn(at, 3) for at in range(1, 10))]),
        "s3.agreements.ldif": agreement("s3-to-s1", 38901),
    }
    case = case_of(tmp_path, files)
    findings = diagnose(case)["findings"]
    lasting = [(finding["server"], finding["link"]) for finding in of("FILLS_WHEN_STARTED", findings)]
    assert lasting == [("s1", "s1-to-s3")] * kept
    disabled = [finding["fix"][0]["repair"] for finding in of("LINK_DISABLED", findings)]
    assert [text == "first do what FILLS_WHEN_STARTED says on s1-to-s3" for text in disabled] == [kept]
    made = plan(case)
    assert ("enable" in {step.repair for step in made.steps}) is not kept
    enable = [course for course in made.courses if course.way == "enable"]
    assert [("FILLS_WHEN_STARTED says comes first" in course.refused, course.chosen) for course in enable] == [
        (kept, not kept)
    ]
