"""Advice that would lose changes, and verdicts that would hide losses: small cases, each with what has to be said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import link_samples
import pytest
from detector_samples import iso, of, stamp, with_status, zulu
from entry_samples import answered, entry, export, logged
from link_samples import line, told
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_initialisations import BROKE_OFF, emptied
from test_silent_servers import _with_failed
from test_ways_that_lose import begins_later

from workbench import Case, diagnose
from workbench.case.case import Case as _Case
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.verdicts import verdicts_on
from workbench.repair.planner import plan
from workbench.safety import to_yaml

Files = dict[str, Any]
ANNA, ELSE = "uid=anna,ou=people", "uid=else,ou=people"
ENDED = logged(csn(20, 1), 9, ELSE, "replace: sn\nsn: x\n-\n")
REFUSED = "the search below dc=example,dc=com was refused, {} (ldap://s2). look at its errors log"


def fixes(found: dict[str, Any], code: str, server: str | None = None) -> list[str]:
    """Repair and caution of each step of the findings of a code."""
    return [
        f"{fix['repair']} | {fix['why']} | {fix['caution']}"
        for one in found["findings"]
        if one["code"] == code and (server is None or one["server"] == server)
        for fix in one["fix"]
    ]


def missing(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["server"], row["position"]) for row in found["missing"]]


def failed(files: Files, server: str, text: str, names: Iterable[str]) -> Files:
    servers = [{"name": name, "files": sorted(one for one in files if one.startswith(name))} for name in names]
    read: list[dict[str, Any]] = [
        {"server": name, "role": "supplier", "from": iso(60), "until": iso(61)} for name in names
    ]
    next(one for one in read if one["server"] == server)["failed"] = [text]
    return files | {"case.yaml": to_yaml({"system": "ds389", "servers": servers, "collected": read})}


def explained(case: _Case, position: str) -> dict[str, str]:
    from test_thrown_away import logs_of, topology

    shown = topology(case)
    return {one.server: one.verdict for one in verdicts_on(case, shown, logs_of(case, shown), position)}


# --- 1  a removal refused with 16


def removal(entries: bool) -> Files:
    """s1 removes mail: a@x at 10; s2, which does not have it yet, answers 16; then the older change 8 of s3 gives it to s2."""
    ruv = elements(claims(r1=(1, 20), r2=(1, 15), r3=(1, 8)))
    begin, end = changelog([csn(1, 1)]), logged(csn(20, 1), 9, ELSE, "replace: sn\nsn: x\n-\n")
    gives = logged(csn(8, 3), 1, ANNA, "replace: mail\nmail: a@x\n-\n")
    removes = logged(csn(10, 1), 1, ANNA, "delete: mail\nmail: a@x\n-\n")
    skipped = (
        f"{stamp(10)} - ERR - NSMMReplicationPlugin - repl5_inc_result_threadmain - "
        f'agmt="cn=s1-to-s2" (localhost:38902): Consumer failed to replay change (uniqueid 1-1-1-1, CSN {csn(10, 1)}): '
        "No such attribute (16). Skipping.\n"
    )
    refused = answered(10, ANNA, csn(10, 1), replicated=True).replace("RESULT err=0", "RESULT err=16")
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s3.replica.ldif": replica(3, ruv),
        "s1.changelog.ldif": begin + gives + removes + end,
        "s2.changelog.ldif": begin + gives + end,
        "s3.changelog.ldif": begin + gives + removes + end,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s3.agreements.ldif": agreement("s3-to-s2", 38902) + agreement("s3-to-s1", 38901),
        "s1.errors.log": skipped,
        "s2.access.log": refused
        + answered(12, ANNA, csn(8, 3), replicated=True)
        + answered(20, ELSE, csn(20, 1), replicated=True),
    }
    if entries:
        other = entry(ELSE, 9, f"sn;vucsn-{csn(20, 1)}: x")
        without = [entry(ANNA, 1, f"mail;vdcsn-{csn(10, 1)};deleted: a@x"), other]
        has = [entry(ANNA, 1, f"mail;vucsn-{csn(8, 3)}: a@x"), other]
        files |= {"s1.entries.ldif": export(ruv, without), "s3.entries.ldif": export(ruv, without)}
        files["s2.entries.ldif"] = export(ruv, has)
    return files


def test_01a_what_collected_entries_still_show_was_not_removed(tmp_path: Path) -> None:
    """The entries of s2 show the value, those of s1 and s3 do not; `diagnose` and `explain` say the same."""
    case = case_of(tmp_path, removal(entries=True))
    found = diagnose(case)
    assert explained(case, csn(10, 1))["s2"] == "missing"
    assert ("s2", csn(10, 1)) in missing(found), headline(found)


def test_01b_a_refused_removal_is_lacking_where_what_it_removes_came_later(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, removal(entries=False)))
    open_ = [(row["server"], row["from"]) for row in found["unknown"]]
    assert ("s2", csn(10, 1)) in [*missing(found), *open_], headline(found)


# --- 2  a server without entries whose changelog has changes that no other has


def test_02_what_only_the_changelog_of_an_empty_server_has_is_saved_before_it_is_filled(tmp_path: Path) -> None:
    files: Files = dict(pair_of_servers(9, 9))
    files["s2.replica.ldif"] = replica(2, elements({2: None}, generation="66ffabcd000000020000"))
    files["s2.changelog.ldif"] = changelog([csn(1, 2), csn(2, 2), csn(12, 2), csn(13, 2)])
    case = case_of(tmp_path, _with_failed(files, "s2", REFUSED.format("noSuchObject (32)")))
    found = diagnose(case)
    assert [row["position"] for row in found["stranded"]] == [csn(12, 2), csn(13, 2)]
    said = [text for one in found["findings"] for text in fixes(found, one["code"])] + [*plan(case).open]
    assert not [text for text in said if "nothing is lost by it" in text], headline(found)
    assert [text for text in said if "save" in text or "copy the database folder" in text]


# --- 3  an attribute that links leave out


def test_03_what_links_leave_out_is_a_loss_where_the_only_data_that_had_it_are_gone(tmp_path: Path) -> None:
    """A client wrote jpegPhoto on s2, which no agreement sends: only the changelog of s2, whose data are gone, has it."""
    files = emptied()
    made = [(csn(at, 1), "x") for at in range(1, 10)] + [(csn(at, 2), "y") for at in range(1, 6)]
    own = logged(csn(4, 2), 1, ANNA, "replace: jpegPhoto\njpegPhoto: of a client\n-\n")
    rule = "nsDS5ReplicatedAttributeList: (objectclass=*) $ EXCLUDE jpegPhoto\n"
    for name in ("s1", "s2"):
        records = {at: logged(at, 9, ELSE, f"replace: sn\nsn: {value}\n-\n") for at, value in made if at != csn(4, 2)}
        records |= {csn(4, 2): own} if name == "s2" else {}
        files[f"{name}.changelog.ldif"] = "".join(text for _, text in sorted(records.items()))
        kept = files[f"{name}.agreements.ldif"].replace("nsds5ReplicaEnabled", f"{rule}nsds5ReplicaEnabled")
        files[f"{name}.agreements.ldif"] = kept
    case = case_of(tmp_path, files)
    steps = [(step.repair, step.server) for step in plan(case).steps]
    assert ("initialise", "s2") not in steps or ("save", "s2") in steps
    assert [row["position"] for row in diagnose(case)["stranded"]] == [csn(4, 2)]


# --- 4  a total update over an agreement of the same name to another server


def test_04_a_total_update_of_another_host_did_not_fill_this_server(tmp_path: Path) -> None:
    """The line names oldhost:38977; the agreement s1-to-s2 of today leads to localhost:38902. s2 lacks 9 in its log."""
    ruv = elements(claims(r1=(1, 30), r2=(1, 2)))
    made, theirs = [csn(at, 1) for at in range(1, 31)], [csn(1, 2), csn(2, 2)]
    to = 'agmt="cn=s1-to-s2" (oldhost:38977)'
    head = "INFO - NSMMReplicationPlugin - repl5_tot_run - "
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": changelog(sorted([*made, *theirs]), own_entries=True),
        "s2.changelog.ldif": changelog(sorted([*(one for one in made if one != csn(9, 1)), *theirs]), own_entries=True),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s1.errors.log": line(15, f'{head}Beginning total update of replica "{to}".')
        + line(16, f'{head}Finished total update of replica "{to}". Sent 40 entries.'),
    }
    found = diagnose(case_of(tmp_path, files))
    assert ("s2", csn(9, 1)) in missing(found), headline(found)


# --- 5  another link brings a part of what waits


def test_05a_a_link_that_would_pass_over_changes_is_not_started_because_another_one_brings_some(tmp_path: Path) -> None:
    """s2 waits for 5 to 9; the log of h3 has 7 to 9, and s4, whose link runs, has 5 alone: 6 would be passed over."""
    files = begins_later(False)
    files["s4.replica.ldif"] = replica(4, elements({**claims(r1=(1, 5), r2=(1, 2)), 4: None}))
    files["s4.changelog.ldif"] = changelog([*(csn(at, 1) for at in range(1, 6)), csn(1, 2), csn(2, 2)])
    files["s4.agreements.ldif"] = agreement("s4-to-s2", 38902)
    found = diagnose(case_of(tmp_path, files))
    told_ = [text.split(" | ")[0] for text in fixes(found, "LINK_FAILING")]
    assert not told_[0].startswith("restart h3"), told_
    assert any(text.startswith("initialise s2") for text in told_)


def test_05b_a_busy_link_is_told_where_another_one_brings_a_part_only(tmp_path: Path) -> None:
    """s2 waits for 5 to 9; s1, which it turns away for 15 minutes, has them all; s3 has 5 alone."""
    files: Files = dict(pair_of_servers(9, 4))
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), told(link_samples.BUSY, ended=4))
    files["s1.agreements.ldif"] += agreement("s1-to-s3", 38903, enabled=False)
    away = (
        'INFO - NSMMReplicationPlugin - acquire_replica - agmt="cn=to-s2" (localhost:38902): Unable to acquire replica: '
        "the replica is currently being updated by another supplier. Will try later"
    )
    files["s1.errors.log"] = "".join(line(at, away) for at in (5, 100, 400, 900))
    files["s3.replica.ldif"] = replica(3, elements({**claims(r1=(0, 5)), **claims(r2=(1, 2)), 3: None}))
    files["s3.changelog.ldif"] = changelog([*(csn(at, 1) for at in range(6)), csn(1, 2), csn(2, 2)])
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902)
    found = diagnose(case_of(tmp_path, files))
    assert [one["link"] for one in of("LINK_FAILING", found["findings"])] == ["to-s2"], headline(found)


# --- 6  another entry of the name


def test_06_an_entry_that_was_added_under_the_name_since_is_not_the_one_that_was_deleted(tmp_path: Path) -> None:
    """s2 deleted anna (unique ID 1) at 8, and a client added another anna (2) at 12. s1 deleted anna (1) at 13.

    The records of both logs name the unique IDs: the deletion is of 1, the addition of 2. s2 lacks nothing.
    """
    ruv = elements(claims(r1=(1, 20), r2=(1, 15)))
    begin = changelog([csn(9, 1)])
    added = logged(csn(12, 2), 2, ANNA, "add: sn\nsn: x\n-\n", "add")
    lines = [(1, ELSE, "MOD", csn(1, 1)), (2, ANNA, "ADD", csn(2, 2)), (8, ANNA, "DEL", csn(8, 2))]
    lines += [(12, ANNA, "ADD", csn(12, 2)), (20, ELSE, "MOD", csn(20, 1))]
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": begin + added + logged(csn(13, 1), 1, ANNA, "", "delete") + ENDED,
        "s2.changelog.ldif": begin + added + ENDED,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s2.access.log": "".join(
            answered(at, name, of_, replicated=of_[12:16] == "0001", operation=what) for at, name, what, of_ in lines
        ),
    }
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert not missing(found), (headline(found), fixes(found, "MISSED_CHANGE"))
    assert not plan(case).steps


# --- 7  the step for what a session passes over


def test_07_who_is_to_be_filled_because_sessions_pass_over_changes_keeps_what_only_it_has(tmp_path: Path) -> None:
    """s2 made 7 and 8, which h3 and s1 wait for: its link out is switched off."""
    files = begins_later(True)
    files["s2.replica.ldif"] = replica(5, elements(claims(r1=(1, 4), r2=(1, 2), r5=(7, 8))))
    files["s2.changelog.ldif"] = changelog(
        [*(csn(at, 1) for at in range(1, 5)), csn(1, 2), csn(2, 2), csn(7, 5), csn(8, 5)]
    )
    files["s2.agreements.ldif"] = agreement("s2-to-h3", 38903, enabled=False)
    files["h3.agreements.ldif"] = agreement("h3-to-s2", 38905)
    del files["s2.errors.log"]
    found = diagnose(case_of(tmp_path, files))
    (advice,) = fixes(found, "PENDING_CHANGES", "s2")
    assert "initialise s2" not in advice or "no other server has" in advice or "save" in advice, advice


# --- 8  sources and servers without data


def two_without_data() -> Files:
    """s2 made 12 and 13, which reached s1 alone; the data of s1 are gone, the filling of s2 by s3 broke off. s3 lacks both."""
    both = [*(csn(at, 1) for at in range(1, 10)), *(csn(at, 2) for at in range(1, 6))]
    begun = f"nsds5replicaLastInitStatus: {BROKE_OFF}\n"
    begun += f"nsds5replicaLastInitStart: {zulu(20)}\nnsds5replicaLastInitEnd: {zulu(21)}\n"
    ruv = elements({**claims(r1=(1, 9), r2=(1, 13)), 3: None})
    empty = [one[:-12] + "777700000000" if "replicageneration" in one else one.split(" 6")[0] for one in ruv]
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, empty),
        "s3.replica.ldif": replica(3, elements({**claims(r1=(1, 9), r2=(1, 5)), 3: None})),
        "s1.changelog.ldif": changelog([*both, csn(12, 2), csn(13, 2)]),
        "s2.changelog.ldif": changelog([*both, csn(12, 2), csn(13, 2)]),
        "s3.changelog.ldif": changelog(both),
        "s1.agreements.ldif": agreement("s1-to-s3", 38903, enabled=False),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s3.agreements.ldif": agreement("s3-to-s1", 38901) + agreement("s3-to-s2", 38902).rstrip("\n") + f"\n{begun}\n",
    }
    return failed(files, "s1", REFUSED.format("operationsError (1)").replace("s2", "s1"), ("s1", "s2", "s3"))


def test_08a_what_only_logs_of_servers_without_data_have_is_saved_before_one_is_filled(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, two_without_data()))
    advice = fixes(found, "INITIALISATION_ABORTED", "s2")
    assert "save" in advice[0] or "let s3 get" in advice[0], advice


def test_08b_the_server_with_the_most_changes_is_not_filled_from_one_that_is_behind_it(tmp_path: Path) -> None:
    """s2 shows no data; of s1 and s3, which have some, s3 has less than s1: nothing can fill s1."""
    files: Files = dict(pair_of_servers(9, 9))
    none = claims(r3=(1, 2))
    files["s1.replica.ldif"] = replica(1, elements({**claims(r1=(0, 9)), **claims(r2=(1, 2)), **none}))
    files["s2.replica.ldif"] = replica(2, elements({**claims(r1=(0, 9)), **claims(r2=(1, 9)), **none}))
    files["s3.replica.ldif"] = replica(3, elements({**claims(r1=(0, 4)), **claims(r2=(1, 2)), **none}))
    files["s1.changelog.ldif"] = changelog([csn(at, 1) for at in range(5, 10)])
    files["s2.changelog.ldif"] = changelog([*(csn(at, 1) for at in range(6, 10)), csn(8, 2), csn(9, 2)])
    files["s3.changelog.ldif"] = changelog([csn(at, 1) for at in range(3, 5)])
    for one in (1, 2, 3):
        others = [other for other in (1, 2, 3) if other != one]
        files[f"s{one}.agreements.ldif"] = "".join(agreement(f"s{one}-to-s{x}", 38900 + x) for x in others)
    case = case_of(tmp_path, failed(files, "s2", REFUSED.format("operationsError (1)"), ("s1", "s2", "s3")))
    advice = fixes(diagnose(case), "REINIT_REQUIRED", "s1")
    assert not advice[0].startswith("initialise s1 from the server with the most complete data"), advice


# --- 9  a link of a server of which only the agreements were collected


def test_09_a_link_of_a_server_that_was_not_read_leads_there_all_the_same(tmp_path: Path) -> None:
    files: Files = dict(pair_of_servers(9, 4))
    files["s1.changelog.ldif"] = changelog([csn(at, 1) for at in (8, 9)])
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902)
    found = diagnose(case_of(tmp_path, files))
    (advice,) = fixes(found, "PENDING_CHANGES", "s2")
    assert "nothing else leads to s2" not in advice, advice


# --- 10  two suppliers, one of which would pass over changes


def test_10_where_one_of_two_suppliers_passes_over_changes_this_is_said_and_no_filling_planned_unsaid(
    tmp_path: Path,
) -> None:
    """s1 and h3 feed s2; the log of h3 lacks 5 and 6. Whichever session comes first decides; the plan fills s2."""
    files = begins_later(True)
    files["s1.agreements.ldif"] += agreement("s1-to-s2", 38902)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    filled = [step for step in plan(case).steps if (step.repair, step.server) == ("initialise", "s2")]
    told_ = "passes over" in str(found["findings"]) or "pass over" in str(found["findings"])
    assert told_ or not filled, (headline(found), [step.says for step in filled])


# --- 11  changes that only the log of a server without data has, among others


def test_11a_nobody_writes_on_a_server_without_data(tmp_path: Path) -> None:
    """s1 lacks 5 and 6, s3 lacks 5; s2, which has both in its log, does not show its data."""
    both = [*(csn(at, 1) for at in range(10)), *(csn(at, 2) for at in (1, 2))]
    ruv = elements({**claims(r1=(0, 9)), **claims(r2=(1, 2)), 3: None})
    files: Files = {f"s{one}.replica.ldif": replica(one, ruv) for one in (1, 2, 3)}
    for one, lacks in ((1, (csn(5, 1), csn(6, 1))), (2, ()), (3, (csn(5, 1),))):
        files[f"s{one}.changelog.ldif"] = changelog([at for at in both if at not in lacks], own_entries=True)
        others = [other for other in (1, 2, 3) if other != one]
        files[f"s{one}.agreements.ldif"] = "".join(agreement(f"s{one}-to-s{x}", 38900 + x) for x in others)
    case = case_of(tmp_path, failed(files, "s2", REFUSED.format("operationsError (1)"), ("s1", "s2", "s3")))
    found = diagnose(case)
    advice = fixes(found, "MISSED_CHANGE", "s1")
    assert any("save" in one for one in advice), advice
    assert not any("on a server that has its change (HELD BY)" in one for one in advice), advice


def test_11b_only_what_a_log_has_is_saved_from_it(tmp_path: Path) -> None:
    """s1 lacks 5 and 6; the log of s2 has 5, no log has 6."""
    both = [*(csn(at, 1) for at in range(10)), *(csn(at, 2) for at in (1, 2))]
    files: Files = dict(pair_of_servers(9, 9))
    files["s1.changelog.ldif"] = changelog([at for at in both if at not in (csn(5, 1), csn(6, 1))], own_entries=True)
    files["s2.changelog.ldif"] = changelog([at for at in both if at != csn(6, 1)], own_entries=True)
    files |= {"s3.DOWN": "", "s3.access.log": answered(6, "uid=u,ou=people", csn(6, 1), replicated=True)}
    found = diagnose(case_of(tmp_path, _with_failed(files, "s2", REFUSED.format("operationsError (1)"))))
    (advice,) = fixes(found, "MISSED_CHANGE", "s1")
    assert "save 2 changes from the changelog of s2" not in advice, advice


# --- 12  changes that went with the data


@pytest.mark.parametrize("alone", [True, False])
def test_12_what_the_log_of_another_server_shows_as_applied_did_not_go_with_the_data(
    alone: bool, tmp_path: Path
) -> None:
    """The access log of s4, which is down, shows that it applied 12 of s2. `alone`: no vector of another server was read."""
    files = emptied()
    files["s2.changelog.ldif"] = changelog([])
    files["s2.access.log"] = "".join(answered(at, "uid=u,ou=people", csn(at, 2)) for at in (4, 12))
    log = "".join(answered(at + 1, "uid=u,ou=people", csn(at, 2), replicated=True) for at in (4, 12))
    files |= {"s4.DOWN": "", "s4.access.log": log}
    if alone:
        for name in ("s1.replica.ldif", "s3.replica.ldif", "s1.changelog.ldif"):
            del files[name]
    found = diagnose(case_of(tmp_path, files))
    (aborted,) = of("INITIALISATION_ABORTED", found["findings"])
    assert "no other collected server has" not in aborted["summary"], aborted["summary"]
    assert "again on another supplier" not in str(aborted["fix"])


# --- files of the database that were put back


STARTED = "389-Directory/2.3.1 B2024.211.1531 starting up"


@pytest.mark.parametrize(
    ("about", "start", "has", "lacks"),
    [
        ("it started since, and its changelog goes on behind them", 30, (), ["5", "6"]),
        ("it has not started since", 4, (), []),
        ("its changelog has them", 30, (5, 6), []),
    ],
)
def test_an_older_copy_of_the_database_contradicts_the_access_log(
    about: str, start: int, has: tuple[int, ...], lacks: list[str], tmp_path: Path
) -> None:
    """s2 applied 5 and 6 of s1, then an older copy of its files was put back; it got 7 to 9 again."""
    files = pair_of_servers(9, 9)
    made = {at: logged(csn(at, 1), at, f"uid=u{at},ou=people", "replace: sn\nsn: x\n-\n") for at in range(10)}
    own = "".join(logged(csn(at, 2), 20 + at, f"uid=v{at},ou=people", "replace: sn\nsn: x\n-\n") for at in (1, 2))
    lines = [answered(at + 1, f"uid=u{at},ou=people", csn(at, 1), replicated=True) for at in range(1, 10)]
    files |= {
        "s1.changelog.ldif": "".join(made.values()) + own,
        "s2.changelog.ldif": "".join(text for at, text in made.items() if at not in (5, 6) or at in has) + own,
        "s2.access.log": "".join(lines),
        "s2.errors.log": f"{stamp(start)} - INFO - main - {STARTED}\n",
    }
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert [position for _, position in missing(found)] == [csn(int(at), 1) for at in lacks], about
    filled = {effect["server"] for step in plan(case).steps for effect in step.effects if effect["do"] == "initialise"}
    assert filled <= {"s2"}, "nothing comes from a server that lacks something itself"


# --- two suffixes


def test_one_position_in_two_suffixes_is_two_changes(tmp_path: Path) -> None:
    """s2 lacks 5 of the second suffix; the change of that CSN in the first one is there, in entries that are equal."""
    other = "dc=second,dc=com"
    folder = tmp_path / "in"
    folder.mkdir()
    about = []
    for number, (suffix, lacks) in enumerate(((SUFFIX, ()), (other, (5,)))):
        ruv = elements(claims(r1=(1, 9), r2=(1, 2)))
        shown = f"description;vucsn-{csn(5, 1)}: {number}"
        records = {
            at: logged(csn(at, 1), at + 20 * number, f"uid=u{at},ou=people", "replace: sn\nsn: x\n-\n")
            for at in range(1, 10)
        }
        entries = [entry(f"uid=u{at},ou=people", at + 20 * number, shown if at == 5 else "") for at in range(1, 10)]
        named = {
            "s1": {
                "replica": replica(1, ruv),
                "changelog": "".join(records.values()),
                "agreements": agreement("s1-to-s2", 38902),
                "entries": export(ruv, entries),
            },
            "s2": {
                "replica": replica(2, ruv),
                "changelog": "".join(text for at, text in records.items() if at not in lacks),
                "agreements": agreement("s2-to-s1", 38901),
                "entries": export(ruv, entries),
            },
        }
        if lacks:
            del named["s1"]["entries"], named["s2"]["entries"]
        for server, parts in named.items():
            for kind, text in parts.items():
                path = f"{number}-{server}.{kind}.ldif"
                escaped = suffix.replace("=", "\\3D").replace(",", "\\2C")
                told_of = text.replace(SUFFIX, suffix).replace(r"dc\3Dexample\2Cdc\3Dcom", escaped)
                (folder / path).write_text(told_of)
                about.append(f"- name: {server}\n  suffix: {suffix}\n  files: [{path}]\n")
    (folder / "case.yaml").write_text(f"system: ds389\nservers:\n{''.join(about)}")
    case = Case.create(tmp_path / "case")
    case.load([folder])
    found = diagnose(case)
    assert [(row["server"], row["suffix"], row["position"]) for row in found["missing"]] == [("s2", other, csn(5, 1))]
    made = plan(case)
    assert made.steps or made.unmended or made.left, "it is not taken for mended by the entry of the other suffix"
    assert not any("already brought" in line for line in (*made.open, *made.left))


# --- what a filling throws away


def test_values_that_only_the_filled_server_shows_are_said_to_be_lost(tmp_path: Path) -> None:
    """s3 lacks 5, and two of its entries were edited past replication: nothing but the entries tells that."""
    ruv = elements(claims(r1=(1, 9), r2=(1, 2), r3=(1, 2)))
    made = [csn(at, 1) for at in range(1, 10)]
    own = [csn(at, rid) for rid in (2, 3) for at in (1, 2)]
    files: Files = {}
    for rid in (1, 2, 3):
        name = f"s{rid}"
        here = [one for one in made if rid < 3 or one != csn(5, 1)]
        files[f"{name}.replica.ldif"] = replica(rid, ruv)
        files[f"{name}.changelog.ldif"] = changelog([*here, *own])
        files[f"{name}.agreements.ldif"] = "".join(
            agreement(f"{name}-to-s{to}", 38900 + to) for to in (1, 2, 3) if to != rid
        )
        edited = "edited" if rid == 3 else "right"
        rows = [entry(f"uid=e{at},ou=people", at, f"description: {edited if at < 3 else 'same'}") for at in range(1, 6)]
        files[f"{name}.entries.ldif"] = export(ruv, rows)
    case = case_of(tmp_path, files)
    made_plan = plan(case)
    (filling,) = [one for one in made_plan.courses if one.chosen and one.way.startswith("initialise")] or [None]
    if filling is not None:
        assert "what s3 alone shows in 2 entries is thrown away" in filling.costs and "loses no change" in filling.why
    assert any(line.startswith("ENTRIES_DIFFER s3") for line in made_plan.left), made_plan.left
