"""Evidence that proves less than it seems to: alike entries, quiet logs, fillings of other hosts, links that bring a part."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import link_samples
import pytest
from detector_samples import of, plain_line, with_status, zulu
from entry_samples import answered, entry, export, logged
from link_samples import line, told
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_cleaned_and_filled import came_back
from test_cleaned_away import DROPS
from test_initialisations import WHOLE, emptied
from test_ways_that_lose import begins_later

from workbench import diagnose
from workbench.diagnosis.contents import Difference
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.verdicts import verdicts_on
from workbench.repair.planner import plan
from workbench.repair.unlike_entries import of_its_own

Files = dict[str, Any]
ANNA, ELSE = "uid=anna,ou=people", "uid=else,ou=people"
STARTED = "INFO - main - 389-Directory/2.3.1 B2022.272.1534 starting up"
BE = "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com"
OFFLINE = f"{BE} is going offline; disabling replication"
ONLINE = f"{BE} is coming online; enabling replication"
IMPORTED = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
AWAY = (
    'INFO - NSMMReplicationPlugin - acquire_replica - agmt="cn={}" (localhost:38902): Unable to acquire replica: '
    "the replica is currently being updated by another supplier. Will try later"
)


def fixes(found: dict[str, Any], code: str, server: str | None = None) -> list[str]:
    return [
        f"{fix['repair']} | {fix['why']} | {fix['caution']}"
        for one in found["findings"]
        if one["code"] == code and (server is None or one["server"] == server)
        for fix in one["fix"]
    ]


def missing(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["server"], row["position"]) for row in found["missing"]]


def explained(case: Any, position: str) -> dict[str, tuple[str, str]]:
    from test_thrown_away import logs_of, topology

    shown = topology(case)
    return {told.server: (told.verdict, told.rule) for told in verdicts_on(case, shown, logs_of(case, shown), position)}


def listens(name: str, number: int) -> str:
    return (
        f"\t389-Directory/2.3.1 B2022.300.0000\n\tlocalhost.localdomain:{38900 + number} (/etc/dirsrv/slapd-{name})\n\n"
    )


def filled(began: int, ended: int, status: str = WHOLE) -> str:
    last = zulu(ended) if ended else "19700101000000Z"
    return f"nsds5replicaLastInitStatus: {status}\nnsds5replicaLastInitStart: {zulu(began)}\nnsds5replicaLastInitEnd: {last}\n"


def waits(found: dict[str, Any], origin: str = "9") -> dict[str, int]:
    return {row["server"]: row["count"] for row in found["pending"] if row["origin"] == origin}


# --- what a filling throws away that only the filled server shows


def alone_on_s3(kind: str) -> Files:
    """s3 waits for 5 to 9; the logs of s1 and s2 begin at 7: only a filling helps. s3 alone has the entries 107 and 108.

    plain  they came past replication (`ldif2db`), without marks; csn: with marks of changes that every vector covers
    """
    files: Files = {}
    for rid in (1, 2, 3):
        name, top = f"s{rid}", 9 if rid < 3 else 4
        ruv = elements({**claims(r1=(1, top)), 2: None, 3: None})
        files[f"{name}.replica.ldif"] = replica(rid, ruv)
        files[f"{name}.changelog.ldif"] = "".join(
            logged(csn(at, 1), at, f"uid=e{at},ou=people", f"replace: description\ndescription: v{at}\n-\n")
            for at in (range(7, 10) if rid < 3 else range(1, 5))
        )
        files[f"{name}.agreements.ldif"] = "".join(
            agreement(f"{name}-to-s{to}", 38900 + to) for to in (1, 2, 3) if to != rid
        )
        rows = [
            entry(f"uid=e{at},ou=people", at, f"description;vucsn-{csn(at, 1)}: v{at}" if at <= top else "")
            for at in range(1, 10)
        ]
        for at in (107, 108) if rid == 3 else ():
            one = entry(f"uid=e{at},ou=people", at, "description: only here")
            if kind == "plain":
                one = one.replace(f";vucsn-{csn(1, 1)}", "").replace(f";mdcsn-{csn(1, 1)}", "")
            rows.append(one)
        files[f"{name}.entries.ldif"] = export(ruv, rows)
    return files


@pytest.mark.parametrize("kind", ["plain"])
def test_a_server_that_alone_has_entries_is_filled_only_if_asked_for_and_their_loss_is_said(
    kind: str, tmp_path: Path
) -> None:
    case = case_of(tmp_path, alone_on_s3(kind))
    found, unasked = diagnose(case), plan(case)
    assert not [step for step in unasked.steps if (step.repair, step.server) == ("initialise", "s3")]
    asks = "2 entries are on s3 only: save them first (ENTRIES_DIFFER), then plan with --for s3 --way initialise-from-s"
    way = next(course.way for course in unasked.courses if course.unasked.startswith(asks))
    made = plan(case, ["s3"], [way])
    assert of("ENTRIES_DIFFER", found["findings"])  # "2 entries are missing there (uid=e107…; uid=e108… on s3 only)"
    assert any(
        "do not initialise" in text for code in ("ENTRIES_DIFFER", "REINIT_REQUIRED") for text in fixes(found, code)
    )
    (chosen,) = (course for course in made.courses if course.proven and course.chosen)
    assert chosen.way.startswith("initialise-from-")
    assert "thrown away" in chosen.costs and "loses none" not in chosen.why, (chosen.why, chosen.costs)


@pytest.mark.parametrize(
    ("servers", "others", "attribute", "of_s3"),
    [
        (("s1", "s2"), ("s3",), "", 1),
        (("s1",), ("s2", "s3"), "", 0),
        (("s3",), ("s1", "s2"), "", 0),
        (("s1", "s2", "s3"), (), "", 1),
        (("s3",), ("s1", "s2"), "mail", 1),
        (("s1",), ("s2", "s3"), "mail", 0),
    ],
    ids=[
        "an entry that s3 alone has",
        "an entry that s2 has, too",
        "an entry that s3 lacks",
        "an entry that some have, and no majority",
        "another value than the others have",
        "the value that another one has, too",
    ],
)
def test_what_a_server_alone_shows_is_its_own(
    servers: tuple[str, ...], others: tuple[str, ...], attribute: str, of_s3: int
) -> None:
    differs = Difference("2-2-2-7", f"uid=e7,{SUFFIX}", attribute, servers, others)
    contents = SimpleNamespace(suffix=SUFFIX, unexplained=lambda: [differs])
    context: Any = SimpleNamespace(verdicts=SimpleNamespace(contents=[contents]))
    assert of_its_own(context, SUFFIX, "s3") == of_s3


def test_of_two_servers_that_differ_the_filled_one_loses_its_values(tmp_path: Path) -> None:
    """s2 waits for 5 to 9, and only a filling from s1 helps. Two entries of s2 have other values than those of s1."""
    files: Files = {}
    for rid, top, begins in (1, 9, 7), (2, 4, 1):
        name, ruv = f"s{rid}", elements({**claims(r1=(1, top)), 2: None})
        files[f"{name}.replica.ldif"] = replica(rid, ruv)
        files[f"{name}.changelog.ldif"] = "".join(
            logged(csn(at, 1), at, f"uid=e{at},ou=people", f"replace: description\ndescription: v{at}\n-\n")
            for at in range(begins, top + 1)
        )
        files[f"{name}.agreements.ldif"] = agreement(f"{name}-to-s{3 - rid}", 38903 - rid)
        files[f"{name}.entries.ldif"] = export(ruv, [
            entry(
                f"uid=e{at},ou=people", at, *([f"description;vucsn-{csn(at, 1)}: v{at}"] if at <= top else []),
                f"mail: {'edited' if (rid, at) in ((2, 2), (2, 3)) else 'right'}",
            )
            for at in range(1, 10)
        ])  # fmt: skip
    case = case_of(tmp_path, files)
    (differ,) = of("ENTRIES_DIFFER", diagnose(case)["findings"])
    assert differ["fix"][0]["caution"] == "do not initialise a server before it is known which one is right"
    (chosen,) = (course for course in plan(case).courses if course.chosen)
    assert chosen.way == "initialise-from-s1"
    assert "thrown away" in chosen.costs and "loses none" not in chosen.why, (chosen.why, chosen.costs)


HAD, FIRST, LAST = csn(3, 9), csn(30, 9), csn(40, 9)
OWN = claims(r1=(1, 50), r2=(1, 50))
NINE = {**OWN, 9: (csn(1, 9), LAST)}
MADE = [
    (csn(1, 1), "sn", "a"), (csn(1, 2), "sn", "b"), (HAD, "sn", "c"), (FIRST, "mail", "a@x"), (LAST, "mail", "b@x"),
    (csn(50, 1), "sn", "d"), (csn(50, 2), "sn", "e"),
]  # fmt: skip


def log_of(*without: str) -> str:
    return "".join(
        logged(at, number, f"uid=u{number},ou=people", f"replace: {name}\n{name}: {value}\n-\n")
        for number, (at, name, value) in sorted(enumerate(MADE, 1), key=lambda one: one[1][0])
        if at not in without
    )


def entries_of(*without: str) -> list[str]:
    return [
        entry(f"uid=u{number},ou=people", number, f"{name};vucsn-{at}: {value}" if at not in without else "")
        for number, (at, name, value) in enumerate(MADE, 1)
    ]


def like_one_that_lacks(consumer: bool) -> Files:
    """s1 and s4 cleaned ID 9 at 20 s; s9 came back and made FIRST and LAST. s4's entries lack FIRST, by every mark in them.

    So do those of s2 (`consumer`: of r5 behind s4), whose vector covers FIRST: they are alike.
    """
    files: Files = {
        "s1.replica.ldif": replica(1, elements({**OWN, 9: None})),
        "s1.changelog.ldif": log_of(FIRST, LAST, HAD),
        "s1.agreements.ldif": agreement("s1-to-s4", 38904) + agreement("s1-to-s9", 38909),
        "s1.errors.log": listens("s1", 1)
        + line(20, "INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid 9): Successfully cleaned rid(9)"),
        "s1.access.log": answered(3, "uid=u3,ou=people", HAD, replicated=True),
        "s9.replica.ldif": replica(9, elements(NINE)),
        "s9.changelog.ldif": log_of(),
        "s9.agreements.ldif": agreement("s9-to-s1", 38901),
        "s9.errors.log": listens("s9", 9),
        "s9.entries.ldif": export(elements(NINE), entries_of()),
        "s4.replica.ldif": replica(65535, elements(OWN)),
        "s4.changelog.ldif": log_of(HAD, FIRST, LAST),
        "s4.errors.log": listens("s4", 4) + plain_line(20, f"INFO - {DROPS}") + plain_line(60, STARTED),
        "s4.entries.ldif": export(elements(OWN), entries_of(FIRST)),
    }
    if consumer:
        files["s4.agreements.ldif"] = agreement("s4-to-r5", 38905)
        files |= {"r5.replica.ldif": replica(65535, elements(NINE), flags=0), "r5.errors.log": listens("r5", 5)}
        files["r5.entries.ldif"] = export(elements(NINE), entries_of(FIRST))
    else:
        files |= {"s2.replica.ldif": replica(2, elements(NINE)), "s2.errors.log": listens("s2", 2)}
        files["s2.changelog.ldif"] = log_of(FIRST)
        files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901)
        files["s9.agreements.ldif"] += agreement("s9-to-s2", 38902)
        files["s2.entries.ldif"] = export(elements(NINE), entries_of(FIRST))
    return files


def test_no_server_is_filled_from_one_whose_entries_lack_the_change(tmp_path: Path) -> None:
    """Unless a step before fills that one from a server that has it."""
    case = case_of(tmp_path, like_one_that_lacks(consumer=True))
    assert ("r5", FIRST) in missing(diagnose(case))
    planned = plan(case)
    filled = [(step.server, step.on) for step in planned.steps if step.repair == "initialise"]
    assert filled[:2] == [("s1", "s9"), ("s4", "s1")]
    needs = [one.need for one in planned.courses]
    for one in planned.courses:
        if one.need.startswith("MISSED_CHANGE r5") and one.proven and one.says == "initialise r5 from s4":
            assert needs.index(one.need) > needs.index("REINIT_REQUIRED s1")


def test_what_the_entries_of_a_server_lack_it_does_not_have(tmp_path: Path) -> None:
    case = case_of(tmp_path, like_one_that_lacks(consumer=False))
    found = diagnose(case)
    assert ("s2", FIRST) in missing(found)  # by its entries; those of s4 are the same
    assert explained(case, FIRST)["s4"][0] != "present"
    assert "s4" in waits(found), headline(found)


# --- changes that a server drops although it answers them, until it is restarted


def test_what_was_answered_and_dropped_proves_nothing_where_the_errors_log_is_quiet(tmp_path: Path) -> None:
    """s4 cleaned ID 9 at 20 s, the last line of its errors log; it answered FIRST with success at 31 s. Nobody restarted it."""
    case = case_of(tmp_path, came_back(dropped=True, restarted=False))
    found = diagnose(case)
    assert explained(case, FIRST)["s4"] == explained(case, LAST)["s4"] == ("pending", "dropped_here")
    assert waits(found)["s4"] == 2, headline(
        found
    )  # "1 change does not arrive at s4, which drops it until it is restarted"


def test_what_the_source_of_a_filling_dropped_did_not_come_with_its_data(tmp_path: Path) -> None:
    """c5 was filled from s4 at 50 s, its only source, which answered FIRST at 31 s and dropped it."""
    files = came_back(dropped=True)
    files["s4.agreements.ldif"] = agreement("s4-to-c5", 38905).rstrip("\n") + f"\n{filled(50, 51)}\n"
    files["s4.errors.log"] += line(80, "ERR - something - a later line of the log")
    files["c5.replica.ldif"] = replica(65535, elements(OWN), flags=0)
    files["c5.errors.log"] = (
        listens("c5", 5) + plain_line(20, f"INFO - {DROPS}") + line(50, OFFLINE) + line(51, IMPORTED)
    )
    files["c5.errors.log"] += line(51, ONLINE) + line(60, STARTED)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert explained(case, FIRST)["s4"] == ("pending", "dropped_here")
    assert explained(case, FIRST)["c5"][0] != "present"
    assert waits(found)["c5"] == 2, waits(found)


# --- what waits behind a link without an anchor, though another link brings all of it


@pytest.mark.parametrize("kind", ["schedule", "bind"])
def test_what_another_link_brings_does_not_wait_behind_one_without_an_anchor(kind: str, tmp_path: Path) -> None:
    files: Files = dict(pair_of_servers(9, 4))
    files["s1.changelog.ldif"] = changelog([csn(at, 1) for at in range(6, 10)])
    closed = told("Error (0) Replica acquired", more="nsds5replicaupdateschedule: 0100-0200 0\n")
    status = closed if kind == "schedule" else told(link_samples.REFUSED_LOGIN)
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), status)
    files["s3.replica.ldif"] = replica(3, elements({**claims(r1=(0, 9)), **claims(r2=(1, 2)), 3: None}))
    files["s3.changelog.ldif"] = changelog([*(csn(at, 1) for at in range(10)), csn(1, 2), csn(2, 2)])
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902)
    found = diagnose(case_of(tmp_path, files))
    assert "5 are on the way to s2" in headline(found)
    for one in of("LINK_FAILING", found["findings"]):
        text = one["summary"]
        assert "5 changes wait behind it" not in text or "s3 can deliver" in text or "over links that run" in text, text


# --- changes that sessions pass over


def test_a_change_that_no_running_session_sends_is_not_on_the_way(tmp_path: Path) -> None:
    """s2 waits for 5 to 9. s4 has 5 and nothing later; the log of h3 begins at 7. Whoever comes first: 6 does not come."""
    files = begins_later(True)
    files["s4.replica.ldif"] = replica(4, elements({**claims(r1=(1, 5), r2=(1, 2)), 4: None}))
    files["s4.changelog.ldif"] = changelog([*(csn(at, 1) for at in range(1, 6)), csn(1, 2), csn(2, 2)])
    files["s4.agreements.ldif"] = agreement("s4-to-s2", 38902)
    found = diagnose(case_of(tmp_path, files))
    assert "5 are on the way to s2" not in headline(found), headline(found)


def closed_and_passing(kind: str) -> Files:
    """s2 waits for 5 to 9. s1 has all and its link does not run; h3, whose link runs, begins at 7 and passes over 5 and 6."""
    files = begins_later(True)
    one = agreement("s1-to-s2", 38902)
    if kind == "busy":
        one = with_status(one, told(link_samples.BUSY, ended=4))
        files["s1.errors.log"] = "".join(line(at, AWAY.format("s1-to-s2")) for at in (5, 100, 400, 900))
    if kind == "bind":
        one = with_status(one, told(link_samples.REFUSED_LOGIN))
    if kind == "schedule":
        one = with_status(one, told("Error (0) Replica acquired", more="nsds5replicaupdateschedule: 0100-0200 0\n"))
    files["s1.agreements.ldif"] += one
    return files


@pytest.mark.parametrize("kind", ["busy", "schedule"])
def test_a_link_that_alone_brings_changes_is_told_where_another_one_passes_over_them(kind: str, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, closed_and_passing(kind)))
    assert [one["link"] for one in of("LINK_FAILING", found["findings"])] == ["s1-to-s2"], headline(found)


# --- a total update of another host with the same port


@pytest.mark.parametrize("host", ["oldhost", "s9"])
def test_a_total_update_of_another_host_with_the_same_port_did_not_fill_this_server(host: str, tmp_path: Path) -> None:
    """All servers of a real mesh listen on 389 or 636. And the log of s2 goes back behind that time: no filling made it anew."""
    ruv = elements(claims(r1=(1, 30), r2=(1, 2)))
    made, theirs = [csn(at, 1) for at in range(1, 31)], [csn(1, 2), csn(2, 2)]
    to, head = f'agmt="cn=s1-to-s2" ({host}:38902)', "INFO - NSMMReplicationPlugin - repl5_tot_run - "
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


# --- a deletion of which no log has the record


def test_an_entry_that_was_added_again_before_a_deletion_is_what_that_deletes(tmp_path: Path) -> None:
    """s2 deleted anna at 8; anna was added again at 12, on s1 too; s1 deleted that one at 13, and trimmed the record since."""
    ruv = elements(claims(r1=(1, 20), r2=(1, 15)))
    end = logged(csn(20, 1), 9, ELSE, "replace: sn\nsn: x\n-\n")
    added = logged(csn(12, 2), 2, ANNA, "add: sn\nsn: x\n-\n", "add")
    lines = [(1, ELSE, "MOD", csn(1, 1)), (2, ANNA, "ADD", csn(2, 2)), (8, ANNA, "DEL", csn(8, 2))]
    lines += [(12, ANNA, "ADD", csn(12, 2)), (20, ELSE, "MOD", csn(20, 1))]
    theirs = [(12, ANNA, "ADD", csn(12, 2)), (13, ANNA, "DEL", csn(13, 1)), (20, ELSE, "MOD", csn(20, 1))]
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": end,
        "s2.changelog.ldif": changelog([csn(9, 1)]) + added + end,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s1.access.log": "".join(
            answered(at, name, of_, replicated=of_[12:16] == "0002", operation=what) for at, name, what, of_ in theirs
        ),
        "s2.access.log": "".join(
            answered(at, name, of_, replicated=of_[12:16] == "0001", operation=what) for at, name, what, of_ in lines
        ),
    }
    found = diagnose(case_of(tmp_path, files))
    assert ("s2", csn(13, 1)) in missing(found), (headline(found), found["unknown"])


# --- applied once, by a server that was filled with other data since


def test_what_a_server_applied_before_it_was_filled_anew_it_has_no_more(tmp_path: Path) -> None:
    """emptied(), and s4 applied 12 of s2 at 13 s; it was filled at 15 s from s1, which lacks 12. Nobody has 12 now."""
    files = emptied()
    files["s2.changelog.ldif"] = changelog([])
    files["s2.access.log"] = "".join(answered(at, "uid=u,ou=people", csn(at, 2)) for at in (4, 12))
    files["s4.replica.ldif"] = replica(65535, elements(claims(r1=(1, 9), r2=(1, 5))), flags=0)
    files["s4.access.log"] = "".join(answered(at + 1, "uid=u,ou=people", csn(at, 2), replicated=True) for at in (4, 12))
    files["s4.errors.log"] = listens("s4", 4) + line(15, OFFLINE) + line(16, IMPORTED) + line(16, ONLINE)
    files["s1.agreements.ldif"] += agreement("s1-to-s4", 38904).rstrip("\n") + f"\n{filled(15, 16)}\n"
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert waits(found, "2").keys() == {"s1", "s3", "s4"}  # s4 itself is said to wait for it
    (aborted,) = of("INITIALISATION_ABORTED", found["findings"])
    assert "that no other collected server has" in aborted["summary"], (headline(found), aborted["summary"])


# --- a wrong address beside an agreement that is off


def test_an_agreement_with_a_wrong_address_is_told_beside_one_that_is_off(tmp_path: Path) -> None:
    """b-to-h leads to r; b-to-r is off. LINKS_TO_ONE_SERVER tells of agreements that are on, and of two."""
    ruv = elements(claims(r1=(1, 9), r2=(1, 2)))
    made = [*(csn(at, 1) for at in range(1, 10)), csn(1, 2), csn(2, 2)]
    files: Files = {}
    for number, name, rid in ((1, "b", 1), (2, "c", 2), (4, "h", 65535), (5, "r", 65535)):
        files[f"{name}.replica.ldif"] = replica(rid, ruv, flags=0 if name == "r" else 1)
        files[f"{name}.errors.log"] = listens(name, number)
        if name != "r":
            files[f"{name}.changelog.ldif"] = changelog(made, own_entries=True)
    files["b.agreements.ldif"] = (
        agreement("b-to-h", 38905) + agreement("b-to-c", 38902) + agreement("b-to-r", 38905, enabled=False)
    )
    files["c.agreements.ldif"] = agreement("c-to-b", 38901) + agreement("c-to-h", 38904)
    files["h.agreements.ldif"] = agreement("h-to-r", 38905)
    found = diagnose(case_of(tmp_path, files))
    codes = [(one["code"], one["link"]) for one in found["findings"]]
    assert ("LINK_LEADS_ELSEWHERE", "b-to-h") in codes, (headline(found), codes)


def test_a_deletion_that_a_tombstone_alone_shows_is_named(tmp_path: Path) -> None:
    """s2 deleted anna at 13, as its tombstone says; no log has that, and s1 and the read-only s3, which s1 feeds, still have
    it.
    """
    ruv = elements(claims(r1=(1, 20), r2=(1, 15)))
    anna = f"dn: {ANNA},{SUFFIX}\nobjectClass;vucsn-{csn(1, 1)}: person\nnsUniqueId: 2-2-2-1\n\n"
    grave = f"objectClass;vucsn-{csn(13, 2)}: nsTombstone\nnstombstonecsn: {csn(13, 2)}\nnsUniqueId"
    gone = anna.replace("dn: ", "dn: nsuniqueid=2-2-2-1,").replace("nsUniqueId", grave)
    end = logged(csn(20, 1), 9, ELSE, "replace: sn\nsn: x\n-\n") + logged(
        csn(15, 2), 9, ELSE, "replace: cn\ncn: x\n-\n"
    )
    files: Files = {
        "s1.changelog.ldif": changelog([csn(1, 1), csn(2, 2)]) + end,
        "s2.changelog.ldif": changelog([]) + end,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }
    for name, rid, shown in (("s1", 1, anna), ("s2", 2, gone), ("s3", 65535, anna)):
        files[f"{name}.replica.ldif"] = replica(rid, ruv, flags=0 if name == "s3" else 1)
        files[f"{name}.entries.ldif"] = export(ruv, [entry("uid=other", 3), shown])
    found = diagnose(case_of(tmp_path, files))
    lacked = {(row["server"], row["position"], row["operation"], row["target"]) for row in found["missing"]}
    assert lacked == {(name, csn(13, 2), "delete", f"{ANNA},{SUFFIX}") for name in ("s1", "s3")}, found["missing"]
    repairs = {one["server"]: one["fix"][0]["repair"] for one in of("MISSED_CHANGE", found["findings"])}
    assert "on s1, too" in repairs["s1"] and repairs["s3"] == "delete the entries concerned on s1"
