"""What was seen on live servers with two faults at once: a false source of data, an unsafe step, a repair called a loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import listening, of, plain_line, stamp
from entry_samples import answered, entry, export, logged
from entry_samples import mesh as shown_by
from link_samples import told as status_of
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_each_lacks import ADDED
from test_each_lacks import folder as each_lacks
from test_initialisations import OFFLINE
from test_initialisations import mesh as aborted

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.repair.case_plan import plan_for
from workbench.repair.planner import plan
from workbench.rules.interleavings import Act, Shape, damage
from workbench.systems.ds389 import SYSTEM

OTHER_BEGINNING = "66ffffff000000010000"
IMPORT = "INFO - bdb_import_main - import userroot: "
REFUSED = "Error (49) Problem connecting to replica - LDAP error: Invalid credentials (connection error)"
DUPLICATE = (
    "Error (11) Replication error acquiring replica: Unable to acquire replica: the replica has the same Replica ID as this one. "
    "Replication is aborting. (duplicate replica ID)"
)


def first_repair(found: dict[str, Any], code: str, server: str) -> str:
    """The first step of the finding on a server."""
    (finding,) = (x for x in of(code, found["findings"]) if x["server"] == server)
    return str(finding["fix"][0]["repair"])


# --- whose data came from where


def unrelated(end_of_s3: str) -> dict[str, Any]:
    """s2 imported a file of another beginning at 20; the data of s3 were replaced by s1 until 30, as its log ends."""
    first, other = elements(claims(r1=(0, 9))), elements(claims(r1=(70, 74)), OTHER_BEGINNING)
    made = [csn(second, 1) for second in range(10)]
    imported = plain_line(18, f"{IMPORT}Beginning import job...") + plain_line(
        20, f"{IMPORT}Import complete.  Processed 9 entries"
    )
    replaced = plain_line(25, OFFLINE.format(SUFFIX)) + plain_line(30, f"{IMPORT}{end_of_s3}")
    return {
        "s1.replica.ldif": replica(1, first),
        "s1.changelog.ldif": changelog(made),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903),
        "s2.replica.ldif": replica(2, other),
        "s2.changelog.ldif": changelog([csn(second, 1) for second in range(70, 75)]),
        "s2.errors.log": listening("s2")["s2.errors.log"] + imported,
        "s3.replica.ldif": replica(65535, first, flags=0),
        "s3.errors.log": listening("s3")["s3.errors.log"] + replaced,
    }


def test_data_that_did_not_arrive_whole_came_from_no_file(tmp_path: Path) -> None:
    """Seen on 3.1.2: the server that somebody had imported was not named, and one whose filling had failed was."""
    found = diagnose(case_of(tmp_path, unrelated("Import failed.")))
    (finding,) = of("UNRELATED_DATA", found["findings"])
    assert "the data of s2 came from a backup or a file at 2024-03-24 10:27:32 UTC" in finding["summary"]
    assert "the data of s3 came" not in headline(found)


# --- what comes before a server is filled again


@pytest.mark.parametrize(("down", "alone"), [(True, True), (False, True), (False, False)])
def test_the_link_that_refuses_the_login_is_mended_before_a_server_is_filled_over_it(
    down: bool, alone: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: filled over it, the server got nothing. Where another link runs, that one fills it."""
    files = aborted()
    for name in ("s1", "s2"):
        files[f"{name}.agreements.ldif"] = files[f"{name}.agreements.ldif"].replace(
            "LDAP error: Can't contact LDAP server", "x"
        )
    files["s1.agreements.ldif"] = files["s1.agreements.ldif"].replace(
        "Error (-1) Problem connecting to replica - x (connection error)", REFUSED
    )
    if not down:
        del files["s3.DOWN"]
    if alone:
        files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901)
    repair = first_repair(diagnose(case_of(tmp_path, files)), "INITIALISATION_ABORTED", "s3")
    assert ("do what LINK_FAILING says of s1-to-s3, then " in repair) is (alone and not down)
    assert f"initialise s3 from {'s1' if alone or down else 's2'}" in repair


def test_a_class_that_a_server_does_not_know_comes_before_it_is_filled(tmp_path: Path) -> None:
    """Seen on 3.1.2: the server was filled, and every later change of such an entry got a mark that stays."""
    unknown = f'Entry "uid=car,{SUFFIX}" has unknown object class "carOwner"'
    log = f"{stamp(5)} - ERR - slapi_entry_schema_check_ext - {unknown}\n"
    found = diagnose(case_of(tmp_path, aborted(log=log)))
    repair = first_repair(found, "INITIALISATION_ABORTED", "s3")
    assert (
        "see whether s3 knows carOwner by now (its log named it last at 2024-03-24 10:27:17 UTC), and if not, put"
        in repair
    )
    assert repair.index("carOwner") < repair.index("initialise s3")


def test_the_tables_list_nothing_for_a_server_without_data(tmp_path: Path) -> None:
    """The first line says that nothing is known to be missing: the table below it named ten changes."""
    files = unrelated("Import failed.")
    del files["s2.replica.ldif"], files["s2.changelog.ldif"], files["s2.errors.log"]
    files["s3.access.log"] = answered(2, "uid=a", csn(2, 1), replicated=True) + answered(
        9, "uid=a", csn(9, 1), replicated=True
    )
    found = diagnose(case_of(tmp_path, files))
    assert of("INITIALISATION_ABORTED", found["findings"])
    assert "POSITION" not in diagnosis_text(SYSTEM, found)


# --- duplicate replica IDs


def refused_twice() -> dict[str, Any]:
    """s1 failed to get an answer at 5, met another generation at 6, and has the replica ID of s2 since 40."""
    files: dict[str, Any] = {**pair_of_servers(9, 9)}
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902).rstrip("\n") + f"\n{status_of(DUPLICATE, None)}\n"
    head = 'NSMMReplicationPlugin - {} - agmt="cn=s1-to-s2" (localhost:38902): '
    acquire, run = head.format("acquire_replica"), head.format("repl5_inc_run")
    generation = "The remote replica has a different database generation ID than the local database."
    same = "Unable to acquire replica: the replica has the same Replica ID as this one. Replication is aborting."
    files["s1.errors.log"] = (
        f"{stamp(5)} - WARN - {acquire}Unable to receive the response for a startReplication extended operation to consumer\n"
        f"{stamp(6)} - WARN - {run}{generation}\n"
        f"{stamp(40)} - ERR - {acquire}{same}\n"
        f"{stamp(41)} - ERR - {run}Incremental update failed and requires administrator action\n"
    )
    return files


def test_a_refusal_counts_from_the_first_of_its_kind(tmp_path: Path) -> None:
    """Seen on 3.1.2: a fault that was mended nine minutes before was said to go on."""
    (finding,) = of("LINK_FAILING", diagnose(case_of(tmp_path, refused_twice()))["findings"])
    assert "since 2024-03-24 10:27:52 UTC" in finding["summary"] and "1 failed attempt since then" in finding["summary"]


def test_who_has_the_same_replica_id_gets_another_one_before_it_is_filled(tmp_path: Path) -> None:
    """Seen on 3.1.2: filled as the plan said, the server answered 11 (duplicate replica ID)."""
    first = elements(claims(r1=(0, 9)))
    files = {
        "s1.replica.ldif": replica(1, first),
        "s1.changelog.ldif": changelog([csn(second, 1) for second in range(10)]),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(1, first),
        "s2.changelog.ldif": changelog([csn(second, 1, 7) for second in range(10)]),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }
    said = "\n".join(plan_for(case_of(tmp_path, files)).open)
    assert "let no client write on s2 from now on" in said
    assert "give s2 another origin first, and initialise s2 from s1" in said


@pytest.mark.parametrize("last", [0, 7])
def test_who_has_a_change_of_the_other_server_of_one_origin_last_is_filled_as_well(last: int, tmp_path: Path) -> None:
    """Seen on 3.1.2: all entries of a third server were the same; s1 could send nothing there, for it has no record of s2's."""
    span = {1: (csn(0, 1), csn(9, 1, last))}
    first, made = elements(claims(r1=(0, 9))), changelog([csn(second, 1) for second in range(10)])
    same = [entry("uid=ann", 1)]
    files = {
        "s1.replica.ldif": replica(1, first),
        "s1.changelog.ldif": made,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903),
        "s2.replica.ldif": replica(1, first),
        "s2.changelog.ldif": changelog([csn(second, 1, 7) for second in range(10)]),
        "s3.replica.ldif": replica(3, elements(span)),
        **{f"{name}.entries.ldif": export(first, same) for name in ("s1", "s2", "s3")},
    }
    said = [note for note in plan_for(case_of(tmp_path, files)).open if note.startswith("to keep the data of s1")]
    assert said and (" s3 from s1" in said[0]) is bool(last), said


# --- who fills whom, and what is done by hand


def test_a_server_is_not_filled_from_a_supplier_without_a_change_that_it_may_have(tmp_path: Path) -> None:
    """Without entries, s1 may have a modification that its vector covers. It is missing on s3, so s3 must not fill s1."""
    files = {name: text for name, text in each_lacks(third=True).items() if not name.endswith(".entries.ldif")}
    begin = changelog([csn(1, 1), csn(1, 2), csn(1, 3)], own_entries=True)
    added = "".join(logged(ADDED[name], 9, f"uid=of-{name}", "objectClass: person\n", "add") for name in ADDED)
    ends = "".join(logged(csn(30, rid), 1, "uid=last", "replace: sn\nsn: x\n") for rid in (1, 2, 3))
    files["s3.changelog.ldif"] = begin + added + ends
    files["s1.changelog.ldif"] = changelog([], marks=[csn(12, rid) for rid in (1, 2, 3)]) + ends
    files["s1.access.log"] = "".join(
        answered(second, "uid=x", csn(second, 2), replicated=True) for second in (1, 11, 30)
    )
    found = diagnose(case_of(tmp_path, files))
    fixes = {finding["server"]: finding["fix"][-1]["repair"] for finding in of("MISSED_CHANGE", found["findings"])}
    assert fixes["s1"].startswith("initialise s1 from s3 as soon as s3 lacks nothing that s1 has")


def test_a_plan_without_a_proven_way_says_what_a_person_can_do(tmp_path: Path) -> None:
    planned = plan(case_of(tmp_path, each_lacks()))
    lines = [line for line in planned.open if line.startswith("MISSED_CHANGE")]
    assert lines and all("no proven way was found" in line and "; what to do: switch off " in line for line in lines)


def links_of(count: int) -> frozenset[tuple[int, int]]:
    return frozenset((by, to) for by in range(count) for to in range(count) if by != to)


@pytest.mark.parametrize("count", [3, 4])
def test_what_a_server_without_the_entry_passes_on_overtakes_the_deletion(count: int) -> None:
    """Seen on 2.3.1 under traffic; with the agreements of that server off, no order of events does harm."""
    acts = (Act("delete", 0, everywhere=True), Act("add", 0))
    every, writers = links_of(count), frozenset(range(count))
    without = frozenset({1})
    assert damage(Shape(count, every, writers, without, acts))
    apart = frozenset((by, to) for by, to in every if by != 1)
    assert damage(Shape(count, apart, writers, without, acts)) is None


# --- deletions of an entry that was added again


def deleted_and_added_again(apart: bool = False, again: int = 20) -> dict[str, Any]:
    """uid=n was deleted at 10 and added again; all logs begin later. `apart`: an old entry is missing on s3."""
    added = entry("uid=n", 9).replace(csn(1, 1), csn(again, 1))
    old = entry("uid=old", 5)
    ends = csn(30, 1)
    last = entry("uid=last", 1, f"sn;vucsn-{ends}: x")
    log = changelog([], marks=[csn(25, 1)]) + logged(ends, 1, "uid=last", "replace: sn\nsn: x\n")
    servers = {name: [last, added, *([] if apart and name == "s3" else [old])] for name in ("s1", "s2", "s3")}
    files: dict[str, Any] = dict(shown_by({"r1": (1, 30)}, servers, dict.fromkeys(servers, log)))
    files["s1.access.log"] = answered(10, "uid=n", csn(10, 1), operation="DEL")
    refused = answered(10, "uid=n", csn(10, 1), replicated=True, operation="DEL").replace("err=0", "err=32")
    files["s2.access.log"] = refused + answered(30, "uid=last", ends, replicated=True)
    return files


def judged(found: dict[str, Any]) -> bool:
    """True if nothing is said of the deletion: it is neither missing nor unknown."""
    rows = [row for row in found["unknown"] if row["from"] <= csn(10, 1) <= row["to"]]
    return not rows and csn(10, 1) not in {row["position"] for row in found["missing"]}


@pytest.mark.parametrize("apart", [False, True])
def test_a_deletion_is_done_where_only_a_later_entry_bears_the_name(apart: bool, tmp_path: Path) -> None:
    """Seen on 2.3.1 after a repair: to make the deletion again, as was said, would have undone it."""
    assert judged(diagnose(case_of(tmp_path, deleted_and_added_again(apart))))


@pytest.mark.parametrize("left", ["set aside", "from a plain file"])
def test_a_deletion_is_open_where_an_entry_may_be_the_deleted_one(left: str, tmp_path: Path) -> None:
    """An entry that lost its name to the new one, or whose values do not tell when it began, may have missed the deletion."""
    files = deleted_and_added_again()
    made = csn(1, 1)
    aside = (
        f"dn: nsuniqueid=2-2-2-6+uid=n,{SUFFIX}\nobjectClass;vucsn-{made}: person\nuid;vucsn-{made};mdcsn-{made}: n\n"
        f"nsUniqueId: 2-2-2-6\nnsds5ReplConflict: namingConflict (ADD) uid=n,{SUFFIX}\n\n"
    )
    plain = f"dn: uid=n,{SUFFIX}\nobjectClass: person\nuid: n\nmail;vucsn-{csn(20, 1)}: x\nnsUniqueId: 2-2-2-6\n\n"
    for server in ("s2", "s3"):
        files[f"{server}.entries.ldif"] += aside if left == "set aside" else plain
    assert not judged(diagnose(case_of(tmp_path, files)))


def test_of_a_deletion_whose_entry_is_still_there_nothing_is_known(tmp_path: Path) -> None:
    assert not judged(diagnose(case_of(tmp_path, deleted_and_added_again(again=2))))
