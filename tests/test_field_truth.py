"""What must not be said of servers in the field: of movement during a collection, of data that cannot be compared, of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from detector_samples import BEGAN, Finding, findings, of, plain_line, stamp, status, with_status, zulu
from entry_samples import entry, export
from mesh_samples import (
    SUFFIX,
    agreement,
    case_of,
    changelog,
    claims,
    csn,
    elements,
    pair_of_servers,
    replica,
)

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.diagnosis.findings_text import findings_text
from workbench.diagnosis.pending_changes import who_would_send
from workbench.diagnosis.precedence import PRECEDENCE, in_precedence
from workbench.intake.readings import readings_of
from workbench.model import Finding as Found
from workbench.repair.planner import plan
from workbench.safety import to_yaml
from workbench.systems import system_named
from workbench.topology.topology import topology

Files = dict[str, Any]


def at(second: float) -> str:
    return (BEGAN + timedelta(seconds=second)).isoformat()


def read(files: Files, times: dict[str, tuple[float, float]], moved: dict[str, dict[str, str]] | None = None) -> Files:
    """The folder as `workbench collect` leaves it: when each server was read, and what its vector claimed at the end."""
    collected = [
        {"server": name, "role": "supplier", "from": at(began), "until": at(ended)}
        | ({"moved_to": {SUFFIX: moved[name]}} if moved and name in moved else {})
        for name, (began, ended) in times.items()
    ]
    servers = [{"name": name, "files": [f"{name}.*"]} for name in times]
    return files | {"case.yaml": to_yaml({"system": "ds389", "servers": servers, "collected": collected})}


# --- servers go on working while they are read


@pytest.mark.parametrize("moved", [True, False])
def test_a_server_that_was_filled_while_servers_were_read_has_no_unrelated_data(moved: bool, tmp_path: Path) -> None:
    files = pair_of_servers(4, 4)
    empty = ["{replicageneration} 6600aaaa0000ffff0000"]
    files |= {"s3.replica.ldif": replica(65535, empty, flags=0)}
    times = {"s1": (60.0, 61.0), "s2": (61.0, 62.0), "s3": (60.0, 61.0)}
    ends = {"s3": {"1": csn(4, 1), "2": csn(2, 2)}} if moved else {}
    (one,) = of("UNRELATED_DATA", findings(tmp_path, read(files, times, ends)))
    assert (one["severity"], bool(one["root"])) == (("warning", False) if moved else ("error", True)), one


def behind_itself() -> Files:
    """s1 was read first, at second 4; s2 has five changes of it that were made after that."""
    files = pair_of_servers(4, 4)
    spans = claims(r1=(0, 9), r2=(1, 2))
    files["s2.replica.ldif"] = replica(2, elements(spans))
    files["s2.changelog.ldif"] = changelog([*(csn(second, 1) for second in range(10)), csn(1, 2), csn(2, 2)])
    files["s1.errors.log"] = plain_line(30, "slapd_daemon - slapd started.  Listening on All Interfaces port 389")
    return files


def test_a_server_that_moved_on_while_others_were_read_was_not_restored(tmp_path: Path) -> None:
    files = behind_itself()
    assert of("ROLLED_BACK", findings(tmp_path / "alone", files))  # nothing says when they were read
    times = {"s1": (60.0, 61.0), "s2": (61.0, 62.0)}
    assert of("ROLLED_BACK", findings(tmp_path / "restored", read(files, times)))
    moved = {"s1": {"1": csn(9, 1)}}
    assert not of("ROLLED_BACK", findings(tmp_path / "moved", read(files, times, moved)))
    # The vector moved, but not as far as what others hold.
    assert of("ROLLED_BACK", findings(tmp_path / "less", read(files, times, {"s1": {"1": csn(8, 1)}})))


def test_a_change_made_while_servers_are_read_is_not_expected_in_what_was_read_before(tmp_path: Path) -> None:
    files = behind_itself()
    files["s1.errors.log"] = plain_line(3, "slapd_daemon - slapd started.  Listening on All Interfaces port 389")
    case = case_of(tmp_path / "during", read(files, {"s1": (4.0, 6.0), "s2": (6.0, 10.0)}))
    found = diagnose(case)
    assert found["pending"] == [] and not of("ROLLED_BACK", found["findings"])
    assert headline(found) == "No change is missing."


def test_what_a_server_got_by_the_end_of_the_collection_is_not_pending(tmp_path: Path) -> None:
    files, times = pair_of_servers(9, 4), {"s1": (60.0, 61.0), "s2": (61.0, 62.0)}
    (row,) = diagnose(case_of(tmp_path / "lag", read(files, times)))["pending"]
    assert (row["server"], row["count"], row["gone"]) == ("s2", 5, 0)
    moved = {"s2": {"1": csn(7, 1)}}
    (row,) = diagnose(case_of(tmp_path / "moved", read(files, times, moved)))["pending"]
    assert (row["count"], row["first"], row["last"]) == (2, csn(8, 1), csn(9, 1))


def test_what_another_server_got_by_the_end_of_the_collection_is_not_stranded(tmp_path: Path) -> None:
    """The vector of s1 was read before it made the changes that its log shows."""
    files, times = pair_of_servers(9, 4), {"s1": (4.0, 10.0), "s2": (10.0, 11.0)}
    files["s1.replica.ldif"] = replica(1, elements(claims(r1=(0, 4), r2=(1, 2))))
    for second, left in ((9, []), (7, [csn(8, 1), csn(9, 1)])):
        moved = {"s1": {"1": csn(9, 1)}, "s2": {"1": csn(second, 1)}}
        found = diagnose(case_of(tmp_path / str(second), read(files, times, moved)))
        assert [row["position"] for row in found["stranded"]] == left


def test_a_change_of_a_clock_that_is_ahead_is_not_taken_for_one_made_meanwhile(tmp_path: Path) -> None:
    shown = topology(case_of(tmp_path, read(pair_of_servers(9, 4), {"s1": (60.0, 61.0), "s2": (61.0, 62.0)})))
    assert [shown.made_meanwhile(BEGAN + timedelta(seconds=second)) for second in (58, 60, 62, 80)] == [
        *(False, True, True, False),
    ]
    assert not shown.made_meanwhile(None)


def test_what_no_log_has_is_gone_only_if_the_log_of_its_maker_reaches_that_far(tmp_path: Path) -> None:
    files = pair_of_servers(9, 4)
    files["s1.changelog.ldif"] = changelog([*(csn(second, 1) for second in range(8)), csn(1, 2), csn(2, 2)])
    (row,) = diagnose(case_of(tmp_path / "young", files))["pending"]
    assert (row["count"], row["available"], row["gone"]) == (
        4,
        3,
        0,
    )  # the vector's last change is younger than the log
    assert not [one for one in diagnose(case_of(tmp_path / "again", files))["findings"] if one["severity"] != "info"]


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"server": "s1"},
        {"server": "s1", "from": "soon", "until": at(1)},
        {"server": 1, "from": at(0), "until": at(1)},
    ],
)
def test_a_reading_that_does_not_tell_its_time_is_passed_over(stored: dict[str, Any]) -> None:
    assert list(readings_of([stored])) == []


def test_readings_are_kept_with_the_case(tmp_path: Path) -> None:
    times = {"s1": (60.0, 61.0), "s2": (61.0, 62.0)}
    case = case_of(tmp_path, read(pair_of_servers(9, 4), times, {"s2": {"1": csn(9, 1)}}))
    again = type(case).open(case.folder)
    one, two = topology(again).readings
    assert (one.server, one.began, two.moved) == ("s1", BEGAN + timedelta(seconds=60), {SUFFIX: {"1": csn(9, 1)}})
    (s2,) = (each for each in topology(again).replicas if each.server == "s2")
    assert s2.later == {"1": csn(9, 1)}


# --- data that cannot be compared


OTHER = "66000fff000000020000"


def reimported() -> Files:
    """s2 was imported anew without its states: another generation, a vector of its own; s1 and s3 go on."""
    files = pair_of_servers(9, 9)
    spans = claims(r1=(0, 9), r2=(1, 2))
    files["s3.replica.ldif"] = replica(3, elements(spans))
    files["s3.changelog.ldif"] = changelog([*(csn(second, 1) for second in range(10)), csn(1, 2), csn(2, 2)])
    files["s2.replica.ldif"] = replica(2, elements(claims(r2=(70, 74)), OTHER))
    files["s2.changelog.ldif"] = changelog([csn(second, 2) for second in range(70, 75)])
    return files


def test_another_generation_is_said_first_and_nothing_is_counted_across_it(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, reimported()))
    assert [found[name] for name in ("missing", "stranded", "pending", "unknown")] == [[], [], [], []]
    (one,) = of("UNRELATED_DATA", found["findings"])
    assert (one["server"], one["severity"]) == ("s2", "error")
    assert "ROLLED_BACK" in one["overrules"]
    assert headline(found).startswith("Server s2 has data of another beginning than s1 and s3")
    text = diagnosis_text(system_named("ds389"), found)
    assert text.splitlines()[4].startswith("ERROR UNRELATED_DATA (server s2)")


def test_within_a_generation_losses_are_found_as_ever(tmp_path: Path) -> None:
    files = reimported()
    for name, lost in (("s1", ()), ("s3", (5,))):
        mine = [csn(second, 1) for second in range(10) if second not in lost]
        files[f"{name}.changelog.ldif"] = changelog([*mine, csn(1, 2), csn(2, 2)], own_entries=True)
    found = diagnose(case_of(tmp_path, files))
    assert [(row["server"], row["position"]) for row in found["missing"]] == [("s3", csn(5, 1))]


def test_a_plan_decides_nothing_where_only_a_person_can(tmp_path: Path) -> None:
    case = case_of(tmp_path, reimported())
    made = plan(case)
    assert not made.steps and made.unmended
    said = "\n".join(made.open)
    assert "to keep the data of s1, s3, initialise s2 from s1" in said
    assert (
        "to keep the data of s2, initialise s1 from s2, s3 from s2 (over a new agreement: no link leads there)" in said
    )
    assert "; let no client write on s1, s3 until each is filled" in said
    assert said.count("is not known: collect with --entries") == 3


def used_twice() -> Files:
    """s1 and s3 make changes as replica ID 1, some of them in the same seconds; s2 has those that came first."""
    shared, mine, theirs = ([csn(second, 1) for second in some] for some in (range(4), (5, 6, 7), (6, 7, 8)))
    vector = elements(claims(r1=(0, 8), r2=(1, 2)))
    own = changelog([*shared, *mine], own_entries=True)
    return {
        "s1.replica.ldif": replica(1, vector),
        "s1.changelog.ldif": own,
        "s2.replica.ldif": replica(2, vector),
        "s2.changelog.ldif": own,
        "s3.replica.ldif": replica(1, vector),
        # Entries of other names: the same position stands for another change.
        "s3.changelog.ldif": changelog(shared, own_entries=True)
        + changelog(theirs, own_entries=True)
        .replace("00000000-00000001", "00000000-0000000f")
        .replace("uid=u", "uid=other"),
    }


def test_under_an_origin_of_two_servers_nothing_is_counted_by_position(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, used_twice()))
    assert [row for name in ("missing", "stranded", "pending") for row in found[name] if row["origin"] == "1"] == []
    (one,) = of("DUPLICATE_ORIGIN", found["findings"])
    assert one["severity"] == "error"
    for said in (
        "s1 and s3 make changes as one origin, 1",
        "1 change of it is in the log of s1 and not in that of s3",
        "1 change of it is in the log of s3 and not in that of s1",
        "2 positions stand for different changes",
    ):
        assert said in one["summary"]
    assert {row["what"] for row in one["evidence"] if "what" in row} == {"only_here", "clash"}
    assert (
        "to initialise s1 from s3 throws away 3 changes that s1 has by its log, and s3 has not"
        in one["fix"][0]["caution"]
    )
    counted = [each["code"] for each in found["findings"] if each["severity"] == "error" and not each["overruled_by"]]
    assert counted == ["DUPLICATE_ORIGIN"]
    assert headline(found).startswith("Servers s1 and s3 make changes as one origin, 1:")


def test_a_plan_that_leaves_the_decision_names_the_links_that_fail(tmp_path: Path) -> None:
    """To fill s3 from s2, as a choice says, would go over one of them."""
    files = used_twice()
    said = "Error (49) Problem connecting to replica - LDAP error: Invalid credentials (connection error)"
    told = f"nsds5replicaLastUpdateStart: {zulu(9)}\nnsds5replicaLastUpdateEnd: {zulu(9)}\nnsds5replicaLastUpdateStatus: {said}\n"
    files["s2.agreements.ldif"] = with_status(agreement("s2-to-s3", 38903), told)
    for name in ("s1", "s3"):
        files[f"{name}.agreements.ldif"] = agreement(f"{name}-to-s2", 38902)
    planned = plan(case_of(tmp_path, files))
    assert "the plan takes no step here" in planned.open[0]
    assert any("mend the link s2-to-s3 (invalid credentials): LINK_FAILING has" in one for one in planned.open)


def test_a_change_of_such_an_origin_is_unknown_wherever_it_stands(tmp_path: Path) -> None:
    from workbench.diagnosis.verdicts import verdicts_on
    from workbench.topology.topology import logs_of

    case = case_of(tmp_path, used_twice())
    shown = topology(case)
    assert {(one.verdict, one.rule) for one in verdicts_on(case, shown, logs_of(case, shown), csn(6, 1))} == {
        ("unknown", "duplicate_origin")
    }


def test_a_root_leaves_without_meaning_what_it_names_about_the_same(tmp_path: Path) -> None:
    root = Found("UNRELATED_DATA", "error", "other data", server="s2", suffix="a", root="server s2 has other data")
    rows = [
        root,
        Found("ROLLED_BACK", "error", "restored", server="s2", suffix="a"),
        Found("ROLLED_BACK", "error", "restored", server="s1", suffix="a"),
        Found("ROLLED_BACK", "error", "restored", server="s2", suffix="b"),
        Found("UNREADABLE_INPUT", "warning", "cut", server="s2", suffix="a"),
    ]
    kept = in_precedence(rows)
    assert [one.overruled_by for one in kept] == [None, "UNRELATED_DATA", None, None, None]
    assert kept[1].severity == "info" and kept[1].summary.endswith("restored")
    assert all(one.severity == rows[number].severity for number, one in enumerate(kept) if number != 1)
    # Without a clause for the first line it is no root: a warning about an address overrules nothing.
    assert not any(one.overruled_by for one in in_precedence([Found("DUPLICATE_ORIGIN", "warning", "x"), *rows[1:]]))
    assert len({rule.root for rule in PRECEDENCE}) == len(PRECEDENCE)


def test_what_a_root_explains_stays_and_leaves_the_repair_to_it() -> None:
    rows = [
        Found(
            "DUPLICATE_ORIGIN",
            "error",
            "twice",
            origin="1",
            suffix="a",
            root="servers s1 and s3 make changes as one origin",
        ),
        Found(
            "ENTRIES_DIFFER",
            "error",
            "19 differ",
            server="s1",
            suffix="a",
            root="19 entries differ",
            fix=({"repair": "x"},),
        ),
        Found(
            "ENTRIES_DIFFER",
            "error",
            "2 differ",
            server="s1",
            suffix="b",
            root="2 entries differ",
            fix=({"repair": "x"},),
        ),
    ]
    _, one, other = in_precedence(rows)
    assert (one.severity, one.root, one.overruled_by) == ("error", "", None)
    assert one.fix[0]["repair"].startswith("decide what DUPLICATE_ORIGIN asks first")
    assert (other.root, other.fix[0]["repair"]) == ("2 entries differ", "x")


@pytest.mark.parametrize("code", ["MISSED_CHANGE", "APPLY_SKIPPED"])
def test_nothing_is_filled_while_two_servers_use_one_origin(code: str) -> None:
    """Seen on 2.3.1: a change of a third server was to be mended by a filling that throws away what only s1 had made."""
    root = Found(
        "DUPLICATE_ORIGIN", "error", "two", origin="2", suffix="a", root="servers s1 and s3 make changes as one origin"
    )
    fill = Found(
        code, "error", "missed", server="s1", origin="1", suffix="a", fix=({"repair": "initialise s1 from s2"},)
    )
    (one,) = (each for each in in_precedence([root, fill]) if each.code == code)
    assert (one.severity, one.overruled_by) == ("error", None)
    assert [step["repair"].partition(":")[0] for step in one.fix] == ["decide what DUPLICATE_ORIGIN asks first"]


# --- clocks


def with_a_clock(ahead: float, line_at: float) -> Files:
    """s1 made its last change `ahead` seconds after it was read; its log has a line of `line_at`."""
    files = pair_of_servers(4, 4)
    last = csn(int(60 + ahead), 1)
    files["s1.replica.ldif"] = replica(1, elements({1: (csn(0, 1), last), **claims(r2=(1, 2))}))
    files["s1.changelog.ldif"] = changelog([*(csn(second, 1) for second in range(5)), last, csn(1, 2), csn(2, 2)])
    files["s1.errors.log"] = plain_line(line_at, "slapd_daemon - slapd started.  Listening on All Interfaces port 389")
    return read(files, {"s1": (60.0, 61.0), "s2": (61.0, 62.0)})


def test_the_server_whose_clock_is_ahead_is_named_with_the_days(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, with_a_clock(3 * 86400, 60 + 3 * 86400)))
    (one,) = of("CLOCK_AHEAD", found["findings"])
    assert (one["server"], one["severity"]) == ("s1", "error")
    assert one["summary"].startswith("the clock of s1 is 3.0 days ahead of the moment at which it was read")
    opens = datetime.fromtimestamp(BEGAN.timestamp() + 60 + 2 * 86400, UTC)
    assert f"will refuse every write until {opens:%Y-%m-%d %H:%M} UTC" in one["summary"]
    assert headline(found).startswith("The clock of s1 is 3.0 days ahead;")
    assert not any("days before" in each["summary"] for each in found["findings"])


SKEWED = "Replication error acquiring replica: fatal error - too much time skew between replicas (excessive clock skew)"


def test_a_link_that_refuses_a_clock_is_a_consequence_of_the_clock(tmp_path: Path) -> None:
    files = with_a_clock(3 * 86400, 60 + 3 * 86400)
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), status(2, SKEWED, "red", 5, 6))
    found = diagnose(case_of(tmp_path, files))
    assert headline(found) == (
        "The clock of s1 is 3.0 days ahead; 1 change has not arrived at s2: the link to-s2 fails because of it; "
        "no change is known to be missing."
    )
    (one,) = of("LINK_FAILING", found["findings"])
    assert (one["follows_from"], one["severity"]) == ("CLOCK_AHEAD", "error")
    assert one["fix"][0]["repair"] == "do what CLOCK_AHEAD says first" and "poke" in one["fix"][1]["repair"]
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert waits["fix"][0]["repair"].endswith("then do what CLOCK_AHEAD says of s1")
    # With nothing behind it, the link is not named beside its cause.
    files["s2.replica.ldif"] = replica(2, elements({**claims(r2=(1, 2)), 1: (csn(0, 1), csn(60 + 3 * 86400, 1))}))
    assert headline(diagnose(case_of(tmp_path / "level", files))).startswith(
        "The clock of s1 is 3.0 days ahead; no change is known to be missing"
    )


def test_a_link_that_fails_for_another_reason_meets_the_clock_next(tmp_path: Path) -> None:
    files = with_a_clock(3 * 86400, 60 + 3 * 86400)
    refused = "Replication error acquiring replica: Unable to acquire replica: permission denied (permission denied)"
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), status(3, refused, "red", 5, 6))
    (one,) = of("LINK_FAILING", diagnose(case_of(tmp_path, files))["findings"])
    assert (one["reason"], one["follows_from"]) == ("permission", None)
    assert [step["repair"].startswith("then do what CLOCK_AHEAD says of s1") for step in one["fix"]][-2:] == [
        False,
        True,
    ]


def test_clocks_of_which_none_is_known_to_be_wrong_are_one_root(tmp_path: Path) -> None:
    files: Files = dict(pair_of_servers(9, 4))
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), status(2, SKEWED, "red", 5, 6))
    files["s2.agreements.ldif"] = with_status(agreement("to-s1", 38901), status(2, SKEWED, "red", 5, 6))
    found = diagnose(case_of(tmp_path, files))
    assert headline(found) == (
        "The clocks of s1 and s2 are too far apart; 5 changes have not arrived at s2: the link to-s2 fails because of it; "
        "no change is known to be missing."
    )
    assert "see also" not in headline(found)


def test_a_number_of_ldap_is_none_of_a_session(tmp_path: Path) -> None:
    """`Error (2)` of a connection is a protocol error, no skew of clocks."""
    files: Files = dict(pair_of_servers(9, 4))
    said = "Error (2) Problem connecting to replica - LDAP error: Protocol error (connection error)"
    ran = f"nsds5replicaLastUpdateStart: {zulu(5)}\nnsds5replicaLastUpdateEnd: {zulu(5)}\nnsds5replicaLastUpdateStatus: {said}\n"
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), ran)
    found = diagnose(case_of(tmp_path, files))
    assert not of("CLOCK_AHEAD", found["findings"])
    assert (
        headline(found)
        == "5 changes have not arrived at s2: the link to-s2 fails (protocol error); no change is missing."
    )


def test_another_reason_stays_a_cause_beside_a_wrong_clock(tmp_path: Path) -> None:
    files = with_a_clock(3 * 86400, 60 + 3 * 86400)
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), status(3, "permission denied", "red", 5, 6))
    found = diagnose(case_of(tmp_path, files))
    (one,) = of("LINK_FAILING", found["findings"])
    assert one["follows_from"] is None and "fails (no permission)" in headline(found)


def test_a_clock_that_was_set_back_leaves_a_server_that_refuses_writes(tmp_path: Path) -> None:
    files = with_a_clock(3 * 86400, 60)
    refused = "[ERR] - _csngen_adjust_local_time - Adjustment limit exceeded; value - 259077, limit - 86400"
    files["s1.errors.log"] += f"{stamp(60)} - {refused.replace('[ERR] - ', 'ERR - ')}\n"
    (one,) = of("CLOCK_AHEAD", findings(tmp_path, files))
    assert "was 3.0 days ahead when it made its last change" in one["summary"]
    assert "s1 has refused every write since its clock was set back" in one["summary"]
    assert {"server": "s1", "at": (BEGAN + timedelta(seconds=60)).isoformat(), "seconds_ahead": 259077} in one[
        "evidence"
    ]
    assert ["replication disable" in fix["repair"] for fix in one["fix"]] == [True, False]


@pytest.mark.parametrize("shown", [True, False])
def test_a_log_that_goes_back_tells_whose_clock_was_ahead(shown: bool, tmp_path: Path) -> None:
    """s2 ran ten hours ahead; its changes pulled the CSNs of s1 along, and its log goes on at the right time."""
    hours = 10 * 3600
    made, late = {rid: csn(hours + rid, rid) for rid in (1, 2)}, 50 + hours
    vector = elements({rid: (csn(rid, rid), made[rid]) for rid in (1, 2)})
    files = pair_of_servers(4, 4) | {f"s{rid}.replica.ldif": replica(rid, vector) for rid in (1, 2)}
    for rid in (1, 2):
        files[f"s{rid}.changelog.ldif"] = changelog([csn(1, 1), csn(2, 2), *made.values()])
    files["s1.errors.log"] = plain_line(50, "slapd_daemon - slapd started.")
    times = [40, late, 55] if shown else [40, 55]
    files["s2.errors.log"] = "".join(plain_line(at, "slapd_daemon - slapd started.") for at in times)
    found = of("CLOCK_AHEAD", findings(tmp_path, read(files, {"s1": (60.0, 61.0), "s2": (61.0, 62.0)})))
    (one,) = (each for each in found if each["origin"] is None)
    if not shown:
        assert one["server"] is None and "what was collected does not tell whose" in one["summary"]
        return
    assert one["server"] == "s2" and one["summary"].startswith(
        "the clock of s2 was 10.0 hours ahead: s2.errors.log has lines"
    )
    assert one["summary"].endswith("when it was set right; the CSNs of s1 were pulled forward, too")


@pytest.mark.parametrize(("hours", "severity"), [(5, None), (7, "info"), (13, "warning"), (25, "error")])
def test_less_than_a_day_ahead_is_said_in_its_measure(hours: float, severity: str | None, tmp_path: Path) -> None:
    found = of("CLOCK_AHEAD", findings(tmp_path, with_a_clock(hours * 3600, 60 + hours * 3600)))
    assert [one["severity"] for one in found] == ([severity] if severity else [])
    assert all(("refuse every write" in one["summary"]) is (hours > 24) for one in found)


def test_a_server_whose_other_suffix_is_sound_refuses_writes_of_one(tmp_path: Path) -> None:
    files = with_a_clock(3 * 86400, 60)
    other = replica(1, elements({1: (csn(0, 1), csn(4, 1)), **claims(r2=(1, 2))}))
    files["s1.other.replica.ldif"] = other.replace(SUFFIX, "o=second").replace(
        "dc\\3Dexample\\2Cdc\\3Dcom", "o\\3Dsecond"
    )
    (one,) = of("CLOCK_AHEAD", findings(tmp_path, files))
    assert f"s1 refuses every write of {SUFFIX}, and will until" in one["summary"]
    assert f"for each suffix ({SUFFIX})" in one["fix"][0]["repair"]


# --- a server that is down costs knowledge, and creates no losses


def test_the_log_of_a_silent_server_is_about_any_suffix_that_the_others_hold(tmp_path: Path) -> None:
    other = "o=second"
    files: Files = {}
    for rid in (1, 2):
        vector = claims(r1=(0, 4), r2=(1, 2), r3=(0, 3))
        files[f"s{rid}.replica.ldif"] = replica(rid, elements(vector)) + replica(rid, elements(vector), suffix=other)
        mine = [
            *(csn(second, 1) for second in range(5)),
            csn(1, 2),
            csn(2, 2),
            *(csn(second, 3) for second in range(4)),
        ]
        files[f"s{rid}.1.changelog.ldif"] = changelog(mine)
        files[f"s{rid}.2.changelog.ldif"] = changelog(mine, suffix=other)
    made = [
        f'{stamp(second)} conn=7 op={second} ADD dn="uid=only-here,{SUFFIX}"\n'
        f"{stamp(second)} conn=7 op={second} RESULT err=0 tag=105 nentries=0 etime=0.1 csn={csn(second, 3, 1)}\n"
        for second in range(3)
    ]
    files |= {"s3.access.log": "".join(made), "s3.DOWN": "Connection refused\n"}
    found = diagnose(case_of(tmp_path, files))
    assert {row["suffix"] for row in found["missing"]} <= {SUFFIX}
    assert not [row for row in found["missing"] if row["suffix"] == other]
    assert not of("OWN_CHANGES_HIDDEN", found["findings"])


# --- conflicts, and a schema that lacks a class


def test_conflicts_in_a_log_are_told_by_entry(tmp_path: Path) -> None:
    files = pair_of_servers(4, 4)
    glue = f"conn=19 op=8 csn={csn(2, 2)} - Resurrected tombstone ou=boxes,{SUFFIX} to glue reason 'deletedEntryHasChildren'"
    car = f'Entry "uid=car,{SUFFIX}" has unknown object class "carOwner"'
    files["s2.errors.log"] = (
        f"{stamp(5)} - ERR - NSMMReplicationPlugin - tombstone_to_glue - {glue}\n"
        f"{stamp(6)} - ERR - slapi_entry_schema_check_ext - {car}\n"
        f"{stamp(7)} - ERR - slapi_entry_schema_check_ext - {car}\n"
    )
    (one,) = of("CONFLICT_ENTRIES", findings(tmp_path, files))
    assert f"(ou=boxes,{SUFFIX})" in one["summary"]
    assert f"1 of an entry that does not fit the schema (uid=car,{SUFFIX})" in one["summary"]  # of two lines
    lacked = "the schema of s2 lacked the object class carOwner (its log named it last at 2024-03-24 10:27:19 UTC; "
    assert f"{lacked}for uid=car,{SUFFIX})" in one["summary"]
    assert one["fix"][0]["repair"].startswith("see whether s2 has carOwner by now")


def test_the_first_line_names_warnings_where_there_is_no_error(tmp_path: Path) -> None:
    """Conflicts on a server with all changes: "No change is missing." alone hid them."""
    files = pair_of_servers(4, 4)
    rows = [entry("uid=a,ou=people", 1, "nsds5ReplConflict: namingConflict (add) uid=a,ou=people,dc=example,dc=com")]
    files["s2.entries.ldif"] = export(elements(claims(r1=(0, 4), r2=(1, 2))), rows)
    found = diagnose(case_of(tmp_path, files))
    assert {finding["severity"] for finding in of("CONFLICT_ENTRIES", found["findings"])} == {"warning"}
    assert headline(found).endswith("; see also CONFLICT_ENTRIES.")


# --- equal findings of several servers


def row(server: str, summary: str, **more: Any) -> Finding:
    one = {"code": "PENDING_CHANGES", "severity": "info", "server": server, "link": None, "origin": "1", "suffix": None}
    return {**one, "summary": summary, "fix": [], **more}


def test_equal_findings_are_one_paragraph_and_others_stay_apart() -> None:
    rows = [
        row("s1", "s1 waits for 3 changes"),
        row("s2", "s2 waits for 3 changes"),
        row("s3", "s3 waits for 4 changes"),
    ]
    text = findings_text(rows)
    assert text.count("PENDING_CHANGES") == 2
    assert "s1 and s2: each waits for 3 changes" in text and "s3 waits for 4 changes" in text


def test_a_name_that_is_a_word_of_the_sentence_joins_nothing() -> None:
    rows = [row("a", "a has 2 entries with a mark"), row("b", "b has 2 entries with a mark")]
    assert findings_text(rows).count("PENDING_CHANGES") == 1
    assert "a and b: each has 2 entries with a mark" in findings_text(rows)
    mended = [
        row(name, f"{name} lags", fix=[{"repair": f"start {name}", "why": "x", "caution": None}])
        for name in ("s1", "s2")
    ]
    assert "1. start each of them: x" in findings_text(mended)


def test_what_is_overruled_is_only_numbered() -> None:
    rows = [row("s1", "false", overruled_by="UNRELATED_DATA"), row("s2", "s2 waits")]
    assert findings_text(rows).endswith("Not concluded, because of UNRELATED_DATA: PENDING_CHANGES (1)")
    assert "false" not in findings_text(rows)


def test_whoever_has_only_what_the_consumer_got_meanwhile_would_send_nothing() -> None:
    pairs = [
        {
            "supplier": name,
            "consumer": "a",
            "link": "x",
            "link_enabled": True,
            "decision": "send",
            "to_send": {"3": {"last": last}},
        }
        for name, last in (("b", csn(5, 3)), ("c", csn(9, 3)))
    ]
    assert who_would_send(pairs, "a", "3") == ["b", "c"]
    assert who_would_send(pairs, "a", "3", csn(7, 3)) == ["c"]
    # b was read before it got more, and says so by now.
    assert who_would_send(pairs, "a", "3", csn(7, 3), {"b": csn(8, 3)}) == ["b", "c"]
    assert who_would_send(pairs, "a", "3", csn(7, 3), {"b": csn(6, 3)}) == ["c"]
