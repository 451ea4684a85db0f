"""Links and fillings that would lose something if they were mended, or used, as the status alone suggests."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import listening, of, plain_line, status, with_status
from hand_plans import enable, initialise
from link_samples import BROKEN_OFF, line, refused_change, told
from memory_servers import MemorySite, encoded
from memory_servers import agreement as stored_agreement
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_without_effect import Files

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan
from workbench.systems.ds389.live import step_executors

CLEANED = "INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid 9): Successfully cleaned rid(9)"


# --- a link that is mended, and whose sessions pass over changes


def begins_later(mended: bool) -> Files:
    """s2 waits for 5 to 9 of s1; the changelog of h was made anew behind 6, with a mark at what s2 has of server 2."""
    ruv = elements(claims(r1=(1, 9), r2=(1, 2)))
    made = [csn(second, 1) for second in range(1, 10)]
    failing = status(15, "Incremental update has failed", "red", 29, 30)
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": changelog([*made, csn(1, 2), csn(2, 2)]),
        "s1.agreements.ldif": agreement("s1-to-h3", 38903),
        "h3.replica.ldif": replica(65535, ruv, flags=1),
        "h3.changelog.ldif": changelog(made[6:], marks=[csn(2, 2), csn(6, 1), csn(4, 1)]),
        "h3.agreements.ldif": with_status(agreement("h3-to-s2", 38902), "" if mended else failing),
        "s2.replica.ldif": replica(65535, elements(claims(r1=(1, 4), r2=(1, 2))), flags=0),
    }
    return files | listening("h3") | listening("s2")


def test_a_log_that_begins_behind_what_waits_is_no_reason_to_start_the_link(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, begins_later(False)))
    (finding,) = of("LINK_FAILING", found["findings"])
    assert finding["reason"] == "log_closed"
    assert [fix["repair"].split(" from")[0].split(",")[0] for fix in finding["fix"]] == ["initialise s2", "restart h3"]
    assert "the log of h3 lacks 2 changes that s2 waits for" in finding["fix"][0]["why"]
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert "as soon as" not in str(waits["fix"])


def test_what_other_links_bring_waits_for_no_schedule(tmp_path: Path) -> None:
    closed = "nsds5replicaupdateschedule: 0100-0200 0\n"
    files: Files = dict(pair_of_servers(9, 4)) | listening("s3")
    for name, rid in (("s1", 1), ("s3", 3)):
        files[f"{name}.replica.ldif"] = replica(rid, elements({**claims(r1=(0, 9)), **claims(r2=(1, 2))}))
    files["s3.changelog.ldif"] = files["s1.changelog.ldif"]
    files["s1.agreements.ldif"] = with_status(
        agreement("to-s2", 38902), told("Error (0) Replica acquired", more=closed)
    )
    assert of("LINK_FAILING", diagnose(case_of(tmp_path / "alone", files))["findings"])
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902)
    found = diagnose(case_of(tmp_path / "two", files))
    assert not of("LINK_FAILING", found["findings"]) and headline(found).endswith("5 are on the way to s2.")


# --- a consumer that refuses changes


@pytest.mark.parametrize(
    ("code", "name", "says", "filled"),
    [
        (
            1,
            "Operations error",
            'entryrdn_rename_subtree - Failed to read the element "uid=x,ou=people" (-12797)',
            True,
        ),
        (65, "Object class violation", "plugin x - it does not like the entry", True),
        (1, "Operations error", "plugin x - it does not like the entry", False),
        (1, "Operations error", "libdb - BDB0134 read: 0x7f1, 8192: Input/output error (-12797)", False),
        (1, "Operations error", "", False),
        (51, "Server is busy", "plugin x - it does not like the entry", False),
    ],
)
def test_only_who_refuses_a_change_for_its_data_is_filled(
    code: int, name: str, says: str, filled: bool, tmp_path: Path
) -> None:
    """s2 lacks 4 for good, and refuses 7 in every session."""
    made = [csn(second, 1) for second in range(1, 10)]
    kept = [one for one in made[:6] if one != csn(4, 1)]
    own = "".join(
        (line(second - 0.4, f"ERR - {says}") if says else "")
        + line(
            second - 0.1,
            f"ERR - NSMMReplicationPlugin - process_postop - Failed to apply update ({csn(7, 1)}) error ({code}).  "
            "Aborting replication session(conn=31 op=4)",
        )
        for second in (9, 12, 15)
    )
    files = {
        "s1.replica.ldif": replica(1, elements(claims(r1=(1, 9), r2=(1, 2)))),
        "s1.changelog.ldif": changelog([*made, csn(1, 2), csn(2, 2)], own_entries=True),
        "s1.errors.log": "".join(refused_change(second, csn(7, 1), f"{name} ({code})") for second in (9, 12, 15)),
        "s1.agreements.ldif": with_status(agreement("to-s2", 38902), told(BROKEN_OFF, ended=None)),
        "s2.replica.ldif": replica(2, elements(claims(r1=(1, 6), r2=(1, 2)))),
        "s2.changelog.ldif": changelog([*kept, csn(1, 2), csn(2, 2)], own_entries=True),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s2.errors.log": own,
    }
    found = plan(case_of(tmp_path, files))
    assert [step.repair for step in found.steps] == ["initialise"] * filled
    mend = [one for one in (*found.open, *found.left) if one.startswith(("mend the link", "APPLY_RETRY_LOOP"))]
    assert bool(mend) is not filled, mend


# --- a replica ID that was cleaned, and that a server still names which feeds nobody who cleaned it


@pytest.mark.parametrize("feeds", [False, True])
def test_who_cleaned_an_origin_waits_for_nothing_from_who_does_not_feed_it(feeds: bool, tmp_path: Path) -> None:
    own = claims(r1=(1, 50))
    mine = [csn(1, 1), csn(50, 1)]
    files: Files = {
        "s1.replica.ldif": replica(1, elements(own)),
        "s1.changelog.ldif": changelog(mine),
        "s1.errors.log": plain_line(20, CLEANED),
        "s1.agreements.ldif": agreement("s1-to-h2", 38902),
        "h2.replica.ldif": replica(65535, elements({**own, 9: (csn(3, 9), csn(4, 9))}), flags=1),
        "h2.changelog.ldif": changelog(sorted([*mine, csn(3, 9), csn(4, 9)])),
        "h2.agreements.ldif": agreement("h2-to-s1", 38901) if feeds else agreement("h2-to-s3", 38903),
        "s3.replica.ldif": replica(65535, elements(own), flags=0),
    }
    files |= listening("h2") | listening("s3")
    found = diagnose(case_of(tmp_path, files))
    waits = [row["count"] for row in found["pending"] if (row["server"], row["origin"]) == ("s1", "9")]
    assert waits == ([2] if feeds else [])


# --- what is looked at before anything is done


def test_nothing_is_sent_from_a_server_that_shows_no_data(tmp_path: Path) -> None:
    repair = initialise()
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    (step,) = (step for step in repair.plan.steps if step.repair == "initialise")
    assert not any("has no data" in one for one in servers.obstacles(step, False))
    source = repair.fleet.servers[step.on]
    source.entries = [one for one in source.entries if one.dn.lower() != SUFFIX]
    assert any(f"{step.on} has no data of {SUFFIX} to send" in one for one in servers.obstacles(step, False))


@pytest.mark.parametrize(("filled_at", "told"), [("20260101000001Z", True), ("19700101000000Z", False)])
def test_a_link_that_filled_a_server_stays_off_while_that_server_alone_has_changes(
    filled_at: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process that was killed in a filling before, to switch it on was seen to fill the server anew."""
    monkeypatch.setattr(step_executors, "ARRIVES", 0.1)
    repair = enable()
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    (step,) = (step for step in repair.plan.steps if step.on == "s1")
    stored_agreement(repair.fleet, "s1", "s3").values["nsds5replicaLastInitStart"] = encoded([filled_at])
    assert not list(servers.obstacles(step, False))
    repair.fleet.servers["s3"].vector["3"] = csn(2_000_000, 3)
    said = [one for one in servers.obstacles(step, False) if "only s3 has the changes of 3" in one]
    assert bool(said) is told
