"""A supplier without an open changelog: lines of a real 2.3.1 server that was made a supplier while it ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import plain_line, read_at, status, with_status
from entry_samples import answered, entry, export, logged, mesh
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan

Files = dict[str, Any]
"""Name of a collected file -> what stands in it."""
NOT_OPEN = "ERR - NSMMReplicationPlugin - replica_execute_cl2ldif_task - Changelog is not open"
NOT_THERE = "ERR - NSMMReplicationPlugin - changelog program - cl5CreateReplayIterator - Changelog is not available (NULL) for 39"
STARTS = "INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up"
OFFLINE = (
    "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is going offline; "
    "disabling replication"
)
EXPORTED = (
    'INFO - NSMMReplicationPlugin - replica_execute_cl2ldif_task - Beginning changelog export of replica "1e34c58a"'
)


def promoted(*lines: tuple[float, str], flags: int = 1) -> dict[str, str | bytes]:
    """s2 made an entry that its changelog does not have; these are the lines of its errors log."""
    made = entry("uid=early", 17, "sn: early").replace(csn(1, 1), csn(20, 2))
    files = mesh({"r1": (1, 1), "r2": (20, 20)}, {"s1": [], "s2": [made]}, {})
    behind = mesh({"r1": (1, 1)}, {"s1": []}, {})
    files["s1.replica.ldif"], files["s1.entries.ldif"] = behind["s1.replica.ldif"], behind["s1.entries.ldif"]
    files["s1.changelog.ldif"] = changelog([csn(1, 1)])
    ruv = elements(claims(r1=(1, 1), r2=(20, 20)))
    files["s2.replica.ldif"] = replica(2, ruv, flags=flags)
    files["s2.entries.ldif"] = export(ruv, [made])
    del files["s2.agreements.ldif"]
    files["s2.errors.log"] = "".join(plain_line(second, text) for second, text in lines)
    return files


def closed(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == "CHANGELOG_CLOSED"]


@pytest.mark.parametrize("line", [NOT_OPEN, NOT_THERE])
def test_it_is_the_first_thing_said(line: str, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, promoted((10, STARTS), (30, line), (31, line))))
    (one,) = closed(found)
    assert (one["severity"], one["server"]) == ("error", "s2")
    assert headline(found).startswith("No changelog is open on s2; ")
    assert "nobody would send it now: no link in the collected files leads to s1; no log has it" in headline(found)
    assert one["fix"][0]["repair"] == "first do what PENDING_CHANGES says of s1"
    assert one["fix"][1]["repair"].startswith("restart s2") and "do not initialise s2" in one["fix"][1]["caution"]
    assert [row["code"] for row in one["evidence"]] == ["changelog_not_open"] * 2


@pytest.mark.parametrize(
    "lines",
    [
        [(30, NOT_OPEN), (40, STARTS)],
        [(30, NOT_OPEN), (40, EXPORTED)],
        [(29, OFFLINE), (30, NOT_OPEN)],
        [],
    ],
)
def test_it_is_not_said_once_something_opened_it_or_while_data_is_replaced(
    lines: list[tuple[float, str]], tmp_path: Path
) -> None:
    assert closed(diagnose(case_of(tmp_path, promoted((10, STARTS), *lines)))) == []


def test_a_consumer_keeps_none(tmp_path: Path) -> None:
    """Whoever asked it for one in vain left the same line."""
    files = promoted((10, STARTS), (30, NOT_OPEN), flags=0)
    files["s2.replica.ldif"] = replica(65535, elements(claims(r1=(1, 1))), flags=0)
    files["s2.entries.ldif"] = export(elements(claims(r1=(1, 1))), [])
    assert closed(diagnose(case_of(tmp_path, files))) == []


def test_a_line_from_before_it_was_a_supplier_says_nothing(tmp_path: Path) -> None:
    """It made its first change later, and its log goes on for long."""
    files = promoted((10, NOT_OPEN), (2000, "INFO - slapd_daemon - slapd started.  Listening on port 389"))
    assert closed(diagnose(case_of(tmp_path, files))) == []


def test_its_links_fail_because_of_it_and_are_not_started_before(tmp_path: Path) -> None:
    files = promoted((10, STARTS), (30, NOT_THERE))
    unread = status(15, "Incremental update has failed", "red", 29, 30)
    refused = (
        "nsds5replicaLastUpdateStatus: Error (49) Problem connecting to replica - LDAP error: Invalid credentials\n"
    )
    files["s2.agreements.ldif"] = with_status(agreement("s2-to-s1", 38901), unread) + with_status(
        agreement("s2-to-s9", 38909), refused
    )
    found = diagnose(case_of(tmp_path, files))
    told = {one["link"]: one for one in found["findings"] if one["code"] == "LINK_FAILING"}
    assert told["s2-to-s1"]["reason"] == "log_closed" and told["s2-to-s1"]["follows_from"] == "CHANGELOG_CLOSED"
    assert all(one["fix"][0]["repair"] == "do what CHANGELOG_CLOSED says first" for one in told.values())


def test_of_a_log_that_cannot_be_read_a_restart_is_asked_for(tmp_path: Path) -> None:
    files = promoted((10, STARTS))
    unread = status(15, "Incremental update has failed", "red", 29, 30)
    files["s2.agreements.ldif"] = with_status(agreement("s2-to-s1", 38901), unread)
    found = diagnose(case_of(tmp_path, files))
    (one,) = (one for one in found["findings"] if one["code"] == "LINK_FAILING")
    assert one["reason"] == "log_closed" and one["fix"][0]["repair"].startswith("restart s2")


def test_the_plan_fills_no_server_that_may_hold_what_is_in_no_log(tmp_path: Path) -> None:
    """Behind the logs of its suppliers it would have to be initialised: what was written there would be gone."""
    files = promoted((10, STARTS), (30, NOT_OPEN))
    files["s1.replica.ldif"] = replica(1, elements(claims(r1=(1, 9))))
    files["s1.changelog.ldif"] = changelog(
        [csn(second, 1) for second in (7, 8, 9)], purge=[f"{{replica 1}} {csn(6, 1)}"]
    )
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902)
    made = plan(case_of(tmp_path, files))
    assert not [step for step in made.steps if step.repair == "initialise"]
    said = plan_text(made)
    assert "s2 may hold what is in no log" in said and "what CHANGELOG_CLOSED says comes first" in said


STOPPED = "INFO - main - slapd stopped."


def opened(*lines: tuple[float, str]) -> Files:
    """s2 was made a supplier while it ran, and opened its changelog at its next start; s1 never got what it wrote before.

    40 a value of anna    45 a value of berta    70 sn of anna, which its changelog has: what 40 wrote, if that was sn
    """
    once = f"sn;vucsn-{csn(1, 1)}: once"
    anna = entry("uid=anna", 1, f"cn;vucsn-{csn(1, 1)}: Anna", f"sn;adcsn-{csn(70, 2)};vucsn-{csn(70, 2)}: seventy")
    berta = [entry("uid=berta", 2, sn) for sn in (once, f"sn;vucsn-{csn(45, 2)}: berta")]
    later = logged(csn(70, 2), 1, "uid=anna", "replace: sn\nsn: seventy\n-\n")
    files = mesh(
        {"r1": (1, 20), "r2": (19, 70)},
        {"s1": [anna, berta[0]], "s2": [anna, berta[1]]},
        {"s1": changelog([], marks=[csn(20, 1)]) + later, "s2": changelog([], marks=[csn(20, 1), csn(19, 2)]) + later},
    )
    files["s1.errors.log"] = plain_line(0, STARTS)
    files["s2.errors.log"] = "".join(plain_line(second, text) for second, text in lines)
    files["s1.access.log"] = answered(2, "uid=x", csn(2, 1)) + answered(70, "uid=anna", csn(70, 2), replicated=True)
    told = [(40, "uid=anna"), (45, "uid=berta"), (70, "uid=anna")]
    files["s2.access.log"] = "".join(answered(second, name, csn(second, 2)) for second, name in told)
    return read_at(files, 90)


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        ([(10, STARTS), (30, NOT_OPEN), (60, STOPPED), (61, STARTS)], {45}),
        ([(10, STARTS), (30, NOT_OPEN), (61, STARTS)], {40, 45}),
    ],
    ids=["stopped in good order", "killed"],
)
def test_a_changelog_that_was_opened_later_is_no_sign_of_other_data(
    lines: list[tuple[float, str]], lost: set[int], tmp_path: Path
) -> None:
    """Seen on 2.3.1: 11 changes of a server were told as gone there, that its data showed to be there."""
    found = diagnose(case_of(tmp_path, opened(*lines)))
    assert {finding["code"] for finding in found["findings"] if finding["severity"] != "info"} == {"MISSED_CHANGE"}
    assert {(row["server"], row["position"]) for row in found["missing"]} == {("s1", csn(at, 2)) for at in lost}


def test_a_changelog_that_no_line_tells_to_have_been_closed_contradicts_what_was_answered(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, opened((10, STARTS), (60, STOPPED), (61, STARTS))))
    assert ("s2", csn(40, 2)) in {(row["server"], row["position"]) for row in found["missing"]}


@pytest.mark.parametrize(
    "lines", [[(30, NOT_OPEN), (40, STOPPED), (41, STARTS)], []], ids=["closed once", "never closed"]
)
def test_what_was_put_back_later_is_told_though_the_log_was_closed_once(
    lines: list[tuple[float, str]], tmp_path: Path
) -> None:
    """s2 applied 100 and 110; an older copy of its files was put back, and it started at 120."""
    ruv, all_of_it = claims(r1=(90, 140), r2=(50, 50)), [csn(at, 1) for at in (90, 100, 110, 130, 140)]
    lost = all_of_it[1:3]
    files: Files = {
        "s1.replica.ldif": replica(1, elements(ruv)),
        "s1.changelog.ldif": changelog(all_of_it, own_entries=True),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(2, elements(ruv)),
        "s2.changelog.ldif": changelog([position for position in all_of_it if position not in lost], own_entries=True),
        "s2.errors.log": "".join(plain_line(second, text) for second, text in [(10, STARTS), *lines, (120, STARTS)]),
        "s2.access.log": "".join(answered(at, f"uid=u{at}", csn(at, 1), replicated=True) for at in (90, 100, 110)),
    }
    found = diagnose(case_of(tmp_path, files))
    assert {(row["server"], row["position"]) for row in found["missing"]} == {("s2", position) for position in lost}


def test_a_log_that_goes_on_over_the_closed_time_was_not_opened_anew(tmp_path: Path) -> None:
    """A session that looks for the changelog while the server stops leaves the same line."""
    ruv, all_of_it = claims(r1=(1, 130), r2=(50, 50)), [csn(at, 1) for at in (1, 15, 100, 130)]
    files: Files = {
        "s1.replica.ldif": replica(1, elements(ruv)),
        "s1.changelog.ldif": changelog(all_of_it, own_entries=True),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(2, elements(ruv)),
        "s2.changelog.ldif": changelog([all_of_it[0], *all_of_it[2:]], marks=[csn(0, 1)], own_entries=True),
        "s2.errors.log": "".join(
            plain_line(*line) for line in [(10, STARTS), (58, NOT_THERE), (59, STOPPED), (60, STARTS)]
        ),
    }
    found = diagnose(case_of(tmp_path, files))
    assert {(row["server"], row["position"]) for row in found["missing"]} == {("s2", csn(15, 1))}


@pytest.mark.parametrize(
    ("lines", "made", "known"),
    [
        ([(10, STARTS), (60, STOPPED), (61, STARTS)], [70, 80], True),
        ([(61, STARTS)], [70, 80], False),
        ([(10, STARTS), (60, STOPPED), (61, STARTS)], [80], False),
    ],
    ids=["its errors log reaches back", "its errors log begins later", "its log lacks its first change"],
)
def test_a_changelog_that_begins_with_the_first_change_of_a_new_supplier_is_no_sign_of_other_data(
    lines: list[tuple[float, str]], made: list[int], known: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: a consumer was made a supplier and restarted; what it had applied before could not be judged."""
    ruv, of_s1 = claims(r1=(20, 50), r2=(70, 80)), [csn(at, 1) for at in (20, 30, 50)]
    files: Files = {
        "s1.replica.ldif": replica(1, elements(ruv)),
        "s1.changelog.ldif": changelog([*of_s1, csn(70, 2), csn(80, 2)], own_entries=True),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(2, elements(ruv)),
        "s2.changelog.ldif": changelog([csn(at, 2) for at in made], marks=[csn(50, 1)], own_entries=True),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s2.errors.log": "".join(plain_line(*line) for line in lines),
        "s2.access.log": "".join(answered(at, f"uid=u{at}", csn(at, 1), replicated=True) for at in (20, 30, 50)),
    }
    found = diagnose(case_of(tmp_path, files))
    assert not found["missing"]
    assert not found["unknown"] if known else {row["server"] for row in found["unknown"]} == {"s2"}


def test_a_server_that_shows_what_others_lack_is_not_filled_from_them(tmp_path: Path) -> None:
    """An entry of s2 has another name than elsewhere; berta alone shows there what no log has."""
    files = opened((10, STARTS), (30, NOT_OPEN), (60, STOPPED), (61, STARTS))
    named = {"s1": "uid=carl", "s2": "uid=karl", "s3": "uid=carl"}
    for name in ("replica.ldif", "changelog.ldif", "access.log", "errors.log"):
        files[f"s3.{name}"] = files[f"s1.{name}"]
    files["s3.replica.ldif"] = replica(3, elements(claims(r1=(1, 20), r2=(19, 70))))
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902)
    files["s1.agreements.ldif"] += agreement("s1-to-s3", 38903)
    files["s3.entries.ldif"] = files["s1.entries.ldif"]
    for name, rdn in named.items():
        files[f"{name}.entries.ldif"] += entry(rdn, 3, f"sn;vucsn-{csn(1, 1)}: carl")
    del files["case.yaml"]
    found = diagnose(case_of(tmp_path, read_at(files, 90)))
    (differ,) = (finding for finding in found["findings"] if finding["code"] == "ENTRIES_DIFFER")
    first, last = (step["repair"] for step in differ["fix"])
    assert differ["server"] == "s2" and first.startswith("do what MISSED_CHANGE says of s1 and s3 first")
    assert "initialise" not in last
