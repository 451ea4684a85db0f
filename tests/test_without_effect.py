"""Changes that do nothing where they did not arrive: their entry was deleted, or renamed, by another change."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import of, plain_line
from entry_samples import answered, entry, export, logged
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica
from test_thrown_away import verdicts

from workbench import Case, diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

Files = dict[str, str]
"""Name of a collected file -> its text."""

ANNA, ELSE = "uid=anna,ou=people", "uid=else,ou=people"
ENDED = logged(csn(20, 1), 9, ELSE, "replace: sn\nsn: x\n-\n")
"""What both logs have, and what makes them go on behind the change in question."""
RENAMED = "newrdn: uid=bert\ndeleteoldrdn: 1\n"
BACK, KEPT = RENAMED.replace("bert", "anna"), "newrdn: uid=carl\ndeleteoldrdn: 0\n"
MOVED = f"{RENAMED}newsuperiordn: ou=more,{SUFFIX}\n"
GLUE = (
    f'NSMMReplicationPlugin - Resurrected tombstone "{ANNA},{SUFFIX}" uniqueid=2-2-2-1 to glue reason '
    "'deletedEntryHasChildren'"
)


def logs(missing: str, mine: str, *more: str) -> Files:
    """s1 has both changes; s2 has `mine` alone, and claims both. `more`: lines of the errors log of s2."""
    ruv = elements(claims(r1=(1, 20), r2=(1, 15)))
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": changelog([csn(1, 1)]) + missing + mine + ENDED,
        "s2.changelog.ldif": changelog([csn(1, 1)]) + mine + ENDED,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s2.errors.log": "".join(plain_line(15, line) for line in more),
    }


def deleted(second: int, number: int = 1) -> str:
    return logged(csn(second, 2), number, ANNA, "", "delete")


def changed(second: int) -> str:
    return logged(csn(second, 1), 1, ANNA, "replace: sn\nsn: x\n-\n")


def renamed(second: int, rid: int, how: str = RENAMED) -> str:
    return logged(csn(second, rid), 1, ANNA, how, "modrdn")


WITHOUT = {
    "renamed after it was deleted": (logs(renamed(10, 1), deleted(8)), "deleted_here"),
    "deleted twice": (logs(logged(csn(10, 1), 1, ANNA, "", "delete"), deleted(8)), "deleted_here"),
    "renamed to the same name": (logs(renamed(10, 1), renamed(8, 2)), "renamed_since"),
    "moved before it was moved": (logs(renamed(6, 1, MOVED), renamed(8, 2, MOVED)), "renamed_since"),
}
TWIN = "renamed to a name that it had before"
WITH = {
    "changed before it was deleted": logs(changed(5), deleted(8)),
    "changed after it was deleted": logs(changed(10), deleted(8)),
    "renamed before it was deleted": logs(renamed(6, 1), deleted(8)),
    "another entry of that name was deleted": logs(renamed(10, 1), deleted(8, number=2)),
    "an entry that came back for its children": logs(renamed(10, 1), deleted(8), f"ERR - {GLUE}"),
    "renamed after it was renamed": logs(renamed(10, 1, RENAMED.replace("bert", "carl")), renamed(8, 2)),
    "moved before it was renamed": logs(renamed(6, 1, MOVED), renamed(8, 2)),
    "renamed before another name was added": logs(renamed(6, 1), renamed(8, 2, KEPT)),
    TWIN: logs(renamed(10, 1), renamed(5, 2) + renamed(8, 2, BACK)),
}


def second_of(about: str) -> int:
    before = ("changed before", "renamed once", "renamed before", "moved before")
    return 5 if about.startswith(before[0]) else 6 if about.startswith(before[1:]) else 10


@pytest.mark.parametrize("about", WITHOUT)
def test_what_finds_its_work_done_is_not_missing(about: str, tmp_path: Path) -> None:
    files, rule = WITHOUT[about]
    assert verdicts(tmp_path, files, csn(second_of(about), 1))["s2"] == ("present", rule)
    case = Case.open(tmp_path / "case")
    found = diagnose(case)
    assert not found["missing"] and not found["unknown"] and not plan(case).steps


def test_nothing_is_sure_of_a_server_whose_data_came_out_of_a_file_since(tmp_path: Path) -> None:
    """The entry may have come back with it, and the log is of before."""
    begun = "INFO - bdb_public_bdb_import_main - import userroot: Beginning import job..."
    ended = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
    files, _ = WITHOUT["deleted twice"]
    files = files | {"s2.errors.log": plain_line(11, begun) + plain_line(12, ended)}
    assert verdicts(tmp_path, files, csn(10, 1))["s2"] == ("unknown", "unclear")
    (row,) = diagnose(Case.open(tmp_path / "case"))["unknown"]
    assert (row["server"], row["from"], row["to"], row["why"]) == ("s2", csn(10, 1), csn(10, 1), "unclear")


@pytest.mark.parametrize("about", WITH)
def test_what_would_still_do_something_is_missing(about: str, tmp_path: Path) -> None:
    told = verdicts(tmp_path, WITH[about], csn(second_of(about), 1))["s2"]
    assert told == ("unknown", "twin") if about == TWIN else told[0] == "missing"


def test_an_unknown_twin_that_finds_its_work_done_is_known(tmp_path: Path) -> None:
    """Both servers deleted the entry, and each has its own deletion alone."""
    mine, theirs = logged(csn(10, 1), 1, ANNA, "", "delete"), deleted(8)
    files = logs("", "")
    files["s1.changelog.ldif"] = changelog([csn(1, 1)]) + mine + ENDED
    files["s2.changelog.ldif"] = changelog([csn(1, 1)]) + theirs + ENDED
    found = diagnose(case_of(tmp_path, files))
    assert not found["missing"] and not found["unknown"]


def down() -> Files:
    """The same deletion on a server that was not collected and on s1; s1 and s2 took that of s1, and answered the other one."""
    ruv = elements(claims(r1=(1, 20), r2=(1, 5), r9=(1, 12)))
    lines = [(1, ANNA, "ADD", csn(1, 1)), (8, ANNA, "DEL", csn(8, 1))]
    lines += [(12, ELSE, "MOD", csn(12, 9)), (20, ELSE, "MOD", csn(20, 1))]
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(65535, ruv, flags=0),
        "s1.changelog.ldif": changelog([csn(20, 1)]),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s1.access.log": "".join(answered(at, name, of_, operation=what) for at, name, what, of_ in lines),
        "s2.access.log": "".join(
            answered(at + 1, name, of_, replicated=True, operation=what) for at, name, what, of_ in lines
        ),
        "s3.access.log": answered(9, ANNA, csn(9, 9), operation="DEL"),
    }


@pytest.mark.parametrize("gone", [True, False])
def test_a_second_deletion_of_which_no_log_tells_the_entry_lacks_where_the_name_is_there(
    gone: bool, tmp_path: Path
) -> None:
    files = down()
    if not gone:
        files["s2.access.log"] = "".join(
            line for line in files["s2.access.log"].splitlines(keepends=True) if "op=9" not in line
        )
    rule = verdicts(tmp_path, files, csn(9, 9))["s2"]
    assert rule == (("present", "gone_already") if gone else ("missing", "log_lacks"))


def test_what_collected_entries_lack_no_log_excuses(tmp_path: Path) -> None:
    """Both servers deleted the entry, and s2 took none of the two: it is alive there, whatever its log has."""
    mine, theirs = logged(csn(10, 1), 1, ANNA, "", "delete"), deleted(8)
    ruv = elements(claims(r1=(1, 20), r2=(1, 15)))
    grave = f"objectClass;vucsn-{csn(8, 2)}: nsTombstone"
    gone = entry(ANNA, 1, grave).replace(f"dn: {ANNA}", f"dn: nsuniqueid=2-2-2-1,{ANNA}")
    files = logs(mine, theirs)
    files |= {"s1.entries.ldif": export(ruv, [gone]), "s2.entries.ldif": export(ruv, [entry(ANNA, 1)])}
    told = {row["position"] for row in diagnose(case_of(tmp_path, files))["missing"]}
    assert csn(8, 2) in told


def test_a_deleted_entry_that_stays_for_its_children_is_not_one_that_lacks_its_deletion(tmp_path: Path) -> None:
    """s2 got the deletion behind the addition of a child, s1 before it: there it is a tombstone until the child comes."""
    ruv = elements(claims(r1=(1, 9), r2=(1, 9)))
    grave = f"objectClass;vucsn-{csn(5, 1)}: nsTombstone"
    log = (
        changelog([csn(1, 1)])
        + logged(csn(5, 1), 1, "ou=team", "", "delete")
        + logged(csn(9, 1), 9, ELSE, "", "delete")
    )
    for mark, lacks in (("nsds5ReplConflict: deletedEntryHasChildren", False), ("", True)):
        there = [entry("ou=team", 1, *([mark] if mark else []))]
        gone = [entry("ou=team", 1, grave).replace("dn: ou=team", "dn: nsuniqueid=2-2-2-1,ou=team")]
        files = {
            "s1.replica.ldif": replica(1, ruv),
            "s2.replica.ldif": replica(2, ruv),
            "s1.entries.ldif": export(ruv, gone),
            "s2.entries.ldif": export(ruv, there),
            "s1.changelog.ldif": log,
            "s2.changelog.ldif": log,
            "s1.agreements.ldif": agreement("s1-to-s2", 38902),
            "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        }
        found = diagnose(case_of(tmp_path / str(lacks), files))
        assert bool(found["missing"]) is bool(of("ENTRIES_DIFFER", found["findings"])) is lacks


@pytest.mark.parametrize("taken", [1, 2])
def test_a_deletion_that_took_the_other_entry_of_the_name_is_told(taken: int, tmp_path: Path) -> None:
    """The deletion is of the entry 2, which is in conflict with 1. 2.3.1 was seen to make 1 a tombstone by it."""
    ruv = elements(claims(r1=(1, 9), r2=(1, 9)))
    grave = f"objectClass;vucsn-{csn(5, 2)}: nsTombstone"
    mark = f"nsds5ReplConflict: namingConflict (ADD) uid=anna,{SUFFIX}"
    there = [entry("uid=anna", 1) if taken == 2 else entry("uid=anna", 2, mark)]
    gone = [entry("uid=anna", taken, grave).replace("dn: uid=anna", f"dn: nsuniqueid=2-2-2-{taken},uid=anna")]
    log = (
        changelog([csn(1, 1)])
        + logged(csn(5, 2), 2, "uid=anna", "", "delete")
        + logged(csn(9, 1), 9, ELSE, "", "delete")
    )
    files = {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }
    files |= {f"s{number}.changelog.ldif": log for number in (1, 2)}
    files |= {f"s{number}.entries.ldif": export(ruv, [*there, *gone]) for number in (1, 2)}
    found = diagnose(case_of(tmp_path, files))
    told = of("WRONG_ENTRY_DELETED", found["findings"])
    assert [finding["server"] for finding in told] == (["s1", "s2"] if taken == 1 else [])
    assert headline(found).startswith(f"The deletion of uid=anna,{SUFFIX} took another entry") is (taken == 1)
    assert all(f"2-2-2-{taken} of the same name is gone" in finding["summary"] for finding in told)


def refused_as_deleted(second: int, *more: str, code: int = 32) -> Files:
    """s2, which has the deletion, answered the change of that second with this result, and the sessions went on."""
    files = logs(changed(second), deleted(8), *more)
    line = answered(12, ANNA, csn(second, 1), replicated=True).replace("err=0", f"err={code}")
    return files | {"s2.access.log": answered(8, ANNA, csn(8, 2), operation="DEL") + line}


CHILD = logged(csn(7, 1), 5, f"cn=x,{ANNA}", "add: cn\ncn: x\n-\n", "add")
"""It was added below the entry before the deletion arrived there."""
KNEW = answered(9, ANNA, csn(8, 2), replicated=True, operation="DEL") + answered(10, ANNA, csn(10, 1))
MAY_LACK = {
    "with another result": refused_as_deleted(10, code=65),
    "of an entry that came back for its children": refused_as_deleted(10, f"ERR - {GLUE}"),
    "of an entry with a child": refused_as_deleted(10)
    | {"s1.changelog.ldif": changelog([csn(1, 1)]) + CHILD + changed(10) + deleted(8) + ENDED},
    "made by a server that had the deletion": refused_as_deleted(10) | {"s1.access.log": KNEW},
    "of another entry of that name": refused_as_deleted(10)
    | {f"{name}.changelog.ldif": changelog([csn(1, 1)]) + log for name, log in (
        ("s1", changed(10) + deleted(8, number=2) + ENDED), ("s2", deleted(8, number=2) + ENDED)
    )},
}  # fmt: skip


@pytest.mark.parametrize("second", [5, 10])
def test_a_change_that_was_refused_for_its_entry_was_deleted_there_is_not_missing(second: int, tmp_path: Path) -> None:
    """It arrived, and there was no entry left to change."""
    assert verdicts(tmp_path, refused_as_deleted(second), csn(second, 1))["s2"] == ("present", "deleted_here")
    found = diagnose(Case.open(tmp_path / "case"))
    assert not found["missing"] and not found["unknown"] and not of("APPLY_SKIPPED", found["findings"])


@pytest.mark.parametrize("about", MAY_LACK)
def test_a_refused_change_of_an_entry_that_may_be_there_is_missing(about: str, tmp_path: Path) -> None:
    assert verdicts(tmp_path, MAY_LACK[about], csn(10, 1))["s2"][0] == "missing"
