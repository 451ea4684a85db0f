"""What entries tell of real servers: changes that only a result names, spellings, hashes made anew at a login, lost moves."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from detector_samples import plain_line, read_at, stamp
from entry_samples import answered, entry, export, logged, mesh
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica

from workbench import Case
from workbench.diagnosis.case_diagnosis import context_of, diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.diagnosis_text import headline
from workbench.engine.entries import differing
from workbench.repair.planner import plan
from workbench.repair.unlike_entries import on_it_alone

# --- a server went down just after it answered: only its access log names the change

LOST, LATER = csn(10, 2, 1), csn(40, 2)


def crashed(*, overwritten: bool = True, here: str = "t 117") -> dict[str, str | bytes]:
    """s2 answered LOST and was killed. Its log was made anew without it; the same entry was changed again since, or not."""
    changed = f"description;adcsn-{LATER};vucsn-{LATER}" if overwritten else "description"
    log = logged(LATER, 17, "uid=base17", "replace: description\ndescription: t 117\n-\n") if overwritten else ""
    log += logged(csn(50, 2), 18, "uid=base18", "replace: description\ndescription: x\n-\n")
    other = entry("uid=base18", 18, f"description;adcsn-{csn(50, 2)};vucsn-{csn(50, 2)}: x")
    entries = {
        "s1": [entry("uid=base17", 17, f"{changed}: {here}"), other],
        "s2": [entry("uid=base17", 17, f"{changed}: t 117"), other],
    }
    access = {
        "s2_access_log": answered(5, "uid=base18", csn(5, 2)) + answered(10, "uid=base17", LOST),
        "s1_access_log": answered(5, "uid=base18", csn(5, 2), True) + answered(51, "uid=base18", csn(50, 2), True),
    }
    return mesh({"r1": (1, 1), "r2": (5, 50)}, entries, {"s1": log, "s2": log}, **access)


def test_a_change_that_only_a_result_names_is_there_where_its_entry_was_changed_since_and_is_the_same(
    tmp_path: Path,
) -> None:
    case = case_of(tmp_path, crashed())
    found = diagnose(case)
    assert headline(found) == "No change is missing."
    told = {one["server"]: (one["verdict"], one["rule"]) for one in story(case, LOST)["servers"]}
    assert told["s1"] == ("present", "entries_show")
    assert plan(case).steps == ()


def test_it_is_missing_as_the_log_says_where_entries_differ_or_nothing_is_later(tmp_path: Path) -> None:
    for number, files in enumerate((crashed(here="t 3"), crashed(overwritten=False))):
        found = diagnose(case_of(tmp_path / str(number), files))
        assert ("s1", LOST, "log_lacks") in {(row["server"], row["position"], row["rule"]) for row in found["missing"]}


def more(files: dict[str, str | bytes], lines: str, *servers: str) -> dict[str, str | bytes]:
    """The same with other attributes of the entry base17, on these servers or all."""
    for name in servers or ("s1", "s2"):
        text = str(files[f"{name}.entries.ldif"])
        files[f"{name}.entries.ldif"] = text.replace("nsUniqueId: 2-2-2-17\n", f"nsUniqueId: 2-2-2-17\n{lines}")
    return files


def verdict(tmp_path: Path, files: dict[str, str | bytes], position: str = LOST) -> tuple[str, str | None]:
    (told,) = (one for one in story(case_of(tmp_path, files), position)["servers"] if one["server"] == "s1")
    return told["verdict"], told["rule"]


def test_what_changed_elsewhere_in_the_entry_replaced_nothing(tmp_path: Path) -> None:
    """A result names no attribute: what an attribute that nobody replaced since shows may be the old value everywhere."""
    for number, line in enumerate(("mail: old@example.com", f"mail;vucsn-{csn(1, 1)}: old@example.com")):
        assert verdict(tmp_path / str(number), more(crashed(), f"{line}\n")) == ("missing", "log_lacks")
    added = crashed()
    for name in ("s1", "s2"):
        added[f"{name}.entries.ldif"] = str(added[f"{name}.entries.ldif"]).replace(f"adcsn-{LATER};", "")
    assert verdict(tmp_path / "added", added) == ("missing", "log_lacks"), "another value replaced none"
    all_later = more(crashed(), f"mail;adcsn-{LATER};vucsn-{LATER}: new@example.com\nmemberOf: cn=g,{SUFFIX}\n")
    assert verdict(tmp_path / "later", all_later) == ("present", "entries_show")


def test_what_a_killed_server_lost_from_its_log_alone_is_in_its_data(tmp_path: Path) -> None:
    """Its entries carry a later change that the same hole of its log lost: then they had the earlier one, too."""
    mail = f"mail;vucsn-{csn(1, 1)}: old@example.com\n"
    before = logged(csn(5, 2), 18, "uid=base18", "replace: sn\nsn: x\n-\n")
    tried = (
        ("of the same hole", 11, before, True, "present"),
        ("nothing", None, before, True, "missing"),
        ("an earlier one", 9, before, True, "missing"),
        ("one behind the hole", 45, before, True, "missing"),
        ("the log begins later", 11, "", True, "missing"),
        ("the log ends before", 11, before, False, "missing"),
    )
    for number, (about, kept, log, goes_on, expected) in enumerate(tried):
        files = more(crashed(), mail)
        for name in ("s1", "s2"):
            files[f"{name}.changelog.ldif"] = log + (str(files[f"{name}.changelog.ldif"]) if goes_on else "")
            if kept:
                other = entry("uid=base19", 19, f"sn;adcsn-{csn(kept, 2)};vucsn-{csn(kept, 2)}: kept")
                files[f"{name}.entries.ldif"] = str(files[f"{name}.entries.ldif"]) + other
        assert verdict(tmp_path / str(number), files)[0] == expected, about


def gone(*lines: str, live: bool = False, alone: bool = False) -> dict[str, str | bytes]:
    """s2 answered LOST, of an entry that no server has any more, and its log lost it. `lines`: more of its access log."""
    files = crashed(overwritten=False)
    files["s2.access.log"] = answered(5, "uid=base18", csn(5, 2)) + "".join(lines)
    for name in ("s1", "s2"):
        more = entry("uid=gone", 16, "description: x") if live else ""
        more += entry("uid=base20", 20, "description: x") if alone and name == "s2" else ""
        files[f"{name}.entries.ldif"] = str(files[f"{name}.entries.ldif"]) + more
    return files


def test_what_was_done_to_an_entry_that_nobody_has_any_more_is_no_loss(tmp_path: Path) -> None:
    """No entry of that name is anywhere, and the same entries are on both servers."""
    modified, removed, moved = (answered(10, "uid=gone", LOST, operation=what) for what in ("MOD", "DEL", "MODRDN"))
    for number, files in enumerate((gone(modified), gone(removed), gone(moved))):
        assert verdict(tmp_path / f"gone{number}", files) == ("present", "entries_show")
        assert headline(diagnose(case_of(tmp_path / f"all{number}", files))) == "No change is missing."
    for number, files in enumerate((gone(modified, live=True), gone(removed, live=True), gone(moved, live=True))):
        assert verdict(tmp_path / f"there{number}", files) == ("missing", "log_lacks"), "an entry has the name"
    for number, line in enumerate((modified, moved)):
        assert verdict(tmp_path / f"alone{number}", gone(line, alone=True)) == ("missing", "log_lacks"), "s1 lacks one"
    deleted = verdict(tmp_path / "never", gone(removed, alone=True))
    assert deleted == ("present", "entries_show"), "the entry missing on s1 never had that name"
    renamed = answered(20, "uid=gone", csn(20, 2), operation="MODRDN")
    assert verdict(tmp_path / "renamed", gone(modified, renamed)) == ("missing", "log_lacks"), "it has another name"
    unmoved = answered(20, "uid=base17", csn(20, 2), operation="MODRDN")
    assert verdict(tmp_path / "unmoved", gone(removed, unmoved)) == ("missing", "log_lacks"), "it has its old name"


def test_what_was_done_to_an_entry_that_another_server_deleted_is_no_loss_whatever_became_of_its_maker(
    tmp_path: Path,
) -> None:
    modified = answered(10, "uid=gone", LOST)
    without_maker = {name: text for name, text in gone(modified).items() if name != "s2.entries.ldif"}
    third = str(gone()["s1.entries.ldif"])
    files = without_maker | {"s3.entries.ldif": third, "s3.replica.ldif": str(without_maker["s1.replica.ldif"])}
    files["s3.changelog.ldif"] = files["s1.changelog.ldif"]
    files["s3.replica.ldif"] = str(files["s3.replica.ldif"]).replace("nsDS5ReplicaId: 1", "nsDS5ReplicaId: 3")
    assert verdict(tmp_path / "unknown", files) == ("missing", "log_lacks")
    deleted = answered(9, "uid=gone", csn(9, 1), operation="DEL")
    added = answered(11, "uid=gone", csn(11, 1), operation="ADD")
    log = str(files["s1.access.log"])
    assert verdict(tmp_path / "deleted", files | {"s1.access.log": log + deleted}) == ("present", "entries_show")
    again = files | {"s1.access.log": log + deleted + added}
    assert verdict(tmp_path / "again", again) == ("missing", "log_lacks"), "another one of that name came after it"


def test_a_change_whose_attributes_were_all_replaced_since_is_overwritten(tmp_path: Path) -> None:
    """The entries still differ: the next change is on its way. An attribute that only got another value proves nothing."""
    early, later, newest = csn(10, 1), csn(20, 2), csn(60, 1)
    body = "replace: description\ndescription: a\n-\n"
    log1 = logged(early, 17, "uid=base17", body) + logged(newest, 17, "uid=base17", body)
    other = entry("uid=base18", 18, f"description;adcsn-{csn(30, 1)};vucsn-{csn(30, 1)}: x")
    after = logged(csn(30, 1), 18, "uid=base18", "replace: description\ndescription: x\n-\n")
    for mark, verdict in ((f"adcsn-{later};vucsn-{later}", "present"), (f"vucsn-{later}", "missing")):
        files = mesh(
            {"r1": (10, 30), "r2": (20, 20)},
            {
                "s1": [entry("uid=base17", 17, f"description;adcsn-{newest};vucsn-{newest}: c"), other],
                "s2": [entry("uid=base17", 17, f"description;{mark}: b"), other],
            },
            {"s1": log1 + after, "s2": logged(csn(9, 1), 19, "uid=base19", body) + after},
        )
        moved = {name: str(text).replace(csn(30, 1), newest) for name, text in files.items()}
        files["s1.replica.ldif"], files["s1.entries.ldif"] = moved["s1.replica.ldif"], moved["s1.entries.ldif"]
        (told,) = (one for one in story(case_of(tmp_path / verdict, files), early)["servers"] if one["server"] == "s2")
        assert told["verdict"] == verdict, told


def test_what_is_pending_and_in_no_log_is_no_missed_change(tmp_path: Path) -> None:
    """The next session goes past it. Whether anything was lost, nobody can tell before: no step throws data away for it."""
    files = crashed()
    behind = mesh(
        {"r1": (1, 1), "r2": (5, 5)}, {"s1": [entry("uid=base17", 17), entry("uid=base18", 18)], "s2": []}, {}
    )
    for kind in ("replica", "entries"):
        files[f"s1.{kind}.ldif"] = behind[f"s1.{kind}.ldif"]
    files["s1.changelog.ldif"] = logged(csn(5, 2), 18, "uid=base18", "replace: description\ndescription: x\n-\n")
    files["s2.changelog.ldif"] = f"{changelog([], marks=[csn(5, 2)])}{files['s2.changelog.ldif']}"
    files["s1.access.log"] = answered(5, "uid=base18", csn(5, 2), True)
    planned = plan(case_of(tmp_path, files))
    assert planned.steps == ()
    (said,) = (line for line in planned.open if "in no log" in line)
    assert said.startswith("1 change that s1 waits for is in no log any more, and the next session goes past it: ")


def promoted() -> dict[str, str | bytes]:
    """s2 became a supplier; its changelog was not open as it made the entry `early`, and was after a restart."""
    early, late = csn(20, 2), csn(30, 2)
    made = [entry(f"uid={name}", at, f"sn: {name}").replace(csn(1, 1), position)
            for name, at, position in (("early", 17, early), ("late", 18, late))]  # fmt: skip
    files = mesh({"r1": (1, 1), "r2": (20, 30)}, {"s1": [], "s2": made}, {})
    behind = mesh({"r1": (1, 1)}, {"s1": []}, {})
    files["s1.replica.ldif"], files["s1.entries.ldif"] = behind["s1.replica.ldif"], behind["s1.entries.ldif"]
    files["s1.changelog.ldif"] = changelog([csn(1, 1)])
    files["s2.entries.ldif"] = export(elements({**claims(r1=(1, 1)), 2: None}), made)
    files["s2.changelog.ldif"] = logged(late, 18, "uid=late", "objectClass: person\nuid: late\nsn: late\n", "add")
    del files["s2.agreements.ldif"]
    return files


def test_what_the_vector_does_not_cover_is_no_difference_and_no_new_link_is_advised_past_what_no_log_has(
    tmp_path: Path,
) -> None:
    diagnosed = diagnose(case_of(tmp_path, promoted()))
    first = headline(diagnosed)
    assert (
        "nobody would send them now: no link in the collected files leads to s1; no log has 1 of them" in first
        and "known to be missing" in first
    )
    found = diagnosed["findings"]
    assert not [one for one in found if one["code"] == "ENTRIES_DIFFER"]
    (waits,) = (one for one in found if one["code"] == "PENDING_CHANGES")
    assert "s1 waits for 2 changes of origin 2" in waits["summary"]
    (fix,) = waits["fix"]
    assert fix["repair"].startswith("save what 1 change of origin 2 made") and "no log has it" in fix["why"]
    assert "make no new agreement towards s1" in fix["caution"]


def test_nothing_is_promised_of_a_link_that_passes_over_what_no_log_has(tmp_path: Path) -> None:
    files = promoted()
    status = "nsds5replicaLastUpdateStatus: Error (49) Problem connecting to replica - LDAP error: Invalid credentials "
    files["s2.agreements.ldif"] = f"{agreement('to-s1', 38901).rstrip()}\n{status}(connection error)\n\n"
    found = diagnose(case_of(tmp_path, files))["findings"]
    (waits,) = (one for one in found if one["code"] == "PENDING_CHANGES")
    first, second = waits["fix"]
    assert first["repair"].startswith("save what 1 change") and second["repair"] == "do what REINIT_REQUIRED says of s1"
    assert "nobody would send them now" in waits["summary"]  # also once the password is right: the record is not there


def test_of_an_entry_that_is_there_only_the_value_is_lacking(tmp_path: Path) -> None:
    """The add of the entry is not missing: its other values carry it."""
    mail = f"mail;vucsn-{csn(1, 1)}: anna@example.com"
    entries = {name: [entry("uid=anna", 1, *([] if name == "s2" else [mail]))] for name in ("s1", "s2", "s3")}
    found = diagnose(case_of(tmp_path, mesh({"r1": (1, 1), "r2": (5, 5)}, entries, {})))
    assert found["missing"] == []
    (differ,) = (one for one in found["findings"] if one["code"] == "ENTRIES_DIFFER")
    assert (differ["server"], differ["severity"], differ["items"]) == ("s2", "error", [])
    assert "1 entry has other values (uid=anna,dc=example,dc=com (mail))" in differ["summary"]


def test_a_server_that_differs_since_its_data_came_from_a_file_is_said_to(tmp_path: Path) -> None:
    files = _lacking(("s2", "anna"))
    begun, done = "import userroot: Beginning import job...", "import userroot: Import complete.  Processed 4 entries."
    files["s2.errors.log"] = "".join(
        plain_line(at, f"INFO - bdb_import_main - {text}") for at, text in ((3, begun), (4, done))
    )
    (differ,) = (one for one in diagnose(case_of(tmp_path, files))["findings"] if one["code"] == "ENTRIES_DIFFER")
    assert "(its data came from a backup or a file at " in differ["summary"]


def test_entries_that_one_server_alone_has_are_not_said_to_differ_on_all(tmp_path: Path) -> None:
    """No server remembers a deletion of so long ago: it may have been added while s1 did not replicate."""
    age = int(timedelta(days=8).total_seconds())
    files = mesh({"r1": (1, age), "r2": (5, 5)}, {"s1": [entry("uid=anna", 1)], "s2": [], "s3": []}, {})
    case = case_of(tmp_path, files)
    context, _ = context_of(case)
    assert [on_it_alone(context, SUFFIX, name) for name in ("s1", "s2", "s3")] == [1, 0, 0]
    (differ,) = (one for one in diagnose(case)["findings"] if one["code"] == "ENTRIES_DIFFER")
    assert differ["summary"].startswith("1 entry is on s1 only, ")
    assert "while it did not replicate" in differ["fix"][0]["repair"]
    assert differ["fix"][0]["caution"].startswith("do not initialise s1 before they are saved")


def _lacking(*without: tuple[str, str]) -> dict[str, str | bytes]:
    """Five servers with two entries; of the pairs of server and entry the mail is gone."""
    mail = f"mail;vucsn-{csn(1, 1)}: x@example.com"
    names = ("anna", "bert")
    entries = {
        server: [
            entry(f"uid={name}", at, *([] if (server, name) in without else [mail])) for at, name in enumerate(names, 1)
        ]
        for server in ("s1", "s2", "s3", "s4", "s5")
    }
    return mesh({"r1": (1, 1), "r2": (5, 5)}, entries, {})


def test_a_server_is_not_said_to_differ_from_one_that_lacks_the_same(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, _lacking(("s2", "anna"), ("s2", "bert"), ("s3", "bert"))))
    told = {one["server"]: one["summary"] for one in found["findings"] if one["code"] == "ENTRIES_DIFFER"}
    assert told["s2"].startswith("2 entries of s2 differ from those of s1, s4 and s5, ")
    assert told["s3"].startswith("1 entry of s3 differs from those of s1, s4 and s5, ")


@pytest.mark.parametrize(
    ("age", "purge_delay", "lost"),
    [
        (timedelta(days=6), "", True),
        (timedelta(days=8), "", False),
        (timedelta(days=8), "2592000", True),
        (timedelta(hours=2), "3600", False),
        (timedelta(days=8), "0", True),  # kept for good
    ],
)
def test_how_long_a_server_keeps_traces_of_what_was_removed_is_its_own_setting(
    age: timedelta, purge_delay: str, lost: bool, tmp_path: Path
) -> None:
    """An entry that two of three servers lack was deleted there, if no trace of that need be left."""
    spans = {"r1": (1, 1 + int(age.total_seconds())), "r2": (5, 5)}
    files = mesh(spans, {"s1": [entry("uid=anna", 1)], "s2": [], "s3": []}, {})
    for name in ("s1", "s2", "s3") if purge_delay else ():
        about = files[f"{name}.replica.ldif"]
        assert isinstance(about, str)
        files[f"{name}.replica.ldif"] = about.rstrip("\n") + f"\nnsDS5ReplicaPurgeDelay: {purge_delay}\n\n"
    found = diagnose(case_of(tmp_path, files))
    assert {row["server"] for row in found["missing"]} == ({"s2", "s3"} if lost else set())
    assert bool(found["unknown"]) == (not lost), "to write it again may bring back what was deleted"
    open_ = [one["summary"] for one in found["findings"] if one["code"] == "ENTRIES_DIFFER"]
    assert ["which is right" in summary for summary in open_] == ([] if lost else [True])


@pytest.mark.parametrize("named", [False, True])
def test_an_entry_whose_deletion_a_log_names_is_not_open(named: bool, tmp_path: Path) -> None:
    """No server remembers the deletion any more; access logs show it, but not that of the server with the entry."""
    files = mesh({"r1": (1, 7200), "r2": (5, 7200)}, {"s1": [entry("uid=anna", 1)], "s2": [], "s3": []}, {})
    for name in ("s1", "s2", "s3"):
        about = files[f"{name}.replica.ldif"]
        assert isinstance(about, str)
        files[f"{name}.replica.ldif"] = about.rstrip("\n") + "\nnsDS5ReplicaPurgeDelay: 3600\n\n"
        around = [answered(second, "uid=other", csn(second, 2), name != "s2") for second in (1, 7200)]
        deleted = answered(9, "uid=anna", csn(9, 2), name != "s2", operation="DEL") if named and name != "s1" else ""
        files[f"{name}.access.log"] = deleted.join(around)
    found = diagnose(case_of(tmp_path, files))
    assert [(row["server"], row["operation"]) for row in found["missing"]] == [("s1", "delete")] * named
    assert [one["server"] for one in found["findings"] if one["code"] == "ENTRIES_DIFFER"] == [None] * (not named)


MOVE, MEMBER = csn(20, 1), csn(21, 1)


def edited_past() -> dict[str, str | bytes]:
    """The vector of s2 was edited past a move that leaves the RDN as it is, and past a memberOf that a client wrote."""
    rename = "newrdn: uid=mv1\ndeleteoldrdn: false\nnewsuperiordn: ou=team1,dc=example,dc=com"
    last = csn(30, 1)
    end = logged(last, 9, "uid=end", "replace: sn\nsn: x\n-\n")
    log = logged(MOVE, 1, "uid=mv1,ou=people", rename, "modrdn")
    log += logged(MEMBER, 2, "uid=mem1", "add: memberOf\nmemberOf: cn=g,dc=example,dc=com\n-\n")
    tail = [entry("uid=end", 9, f"sn;adcsn-{last};vucsn-{last}: x")]
    right = [
        entry("uid=mv1,ou=team1", 1),
        entry("uid=mem1", 2, f"memberOf;vucsn-{MEMBER}: cn=g,dc=example,dc=com"),
        *tail,
    ]
    wrong = [entry("uid=mv1,ou=people", 1), entry("uid=mem1", 2), *tail]
    begun = changelog([], marks=[csn(1, 1)])
    return mesh(
        {"r1": (1, 30), "r2": (5, 5)}, {"s1": right, "s2": wrong, "s3": right}, {"s1": log + end, "s2": begun + end}
    )


def test_a_move_that_a_server_lacks_is_missing_and_no_value_mends_it(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, edited_past()))
    assert ("s2", MOVE) in {(row["server"], row["position"]) for row in found["missing"]}
    repairs = {one["code"]: one["fix"][0]["repair"] for one in found["findings"] if one["fix"]}
    assert repairs["ENTRIES_DIFFER"].startswith("give the topmost of these entries another name")
    assert (
        "give an entry that was renamed another name, and one that was moved another parent" in repairs["MISSED_CHANGE"]
    )


def test_what_is_never_compared_proves_no_presence(tmp_path: Path) -> None:
    told = {one["server"]: one for one in story(case_of(tmp_path, edited_past()), MEMBER)["servers"]}
    assert (told["s2"]["verdict"], told["s2"]["rule"]) != ("present", "entries_show")


def test_values_that_each_server_notes_for_itself_are_not_counted_as_a_loss(tmp_path: Path) -> None:
    """What a choice throws away is what is compared everywhere else."""
    entries = {name: [entry("uid=anna", 1, f"passwordRetryCount: {name[1]}")] for name in ("s1", "s2")}
    case = case_of(tmp_path, mesh({"r1": (1, 1), "r2": (5, 5)}, entries, {}))
    one, other = ([*case.parts("entry_states", x)] for x in case.inputs if x.file.endswith("entries.ldif"))
    assert differing(one, other).total == 1
    assert differing(one, other, without=("passwordretrycount",)).total == 0


def test_no_advice_goes_in_a_circle(tmp_path: Path) -> None:
    """A change that the vector of a server once claimed, and that everybody waits for now: nobody can deliver it."""
    files = crashed()
    for name in ("s1", "s2"):
        spans = mesh({"r1": (1, 1), "r2": (5, 5), "r3": (1, 1)}, {name: [entry("uid=base17", 17)]}, {})
        files |= {file: text for file, text in spans.items() if "agreements" not in file}
        files[f"{name}.changelog.ldif"] = logged(csn(5, 2), 17, "uid=base17", "replace: sn\nsn: x\n-\n")
    files["s1.access.log"] = answered(9, "uid=base17", csn(9, 3))
    found = diagnose(case_of(tmp_path, files))
    repairs = [
        one["repair"] for finding in found["findings"] for one in finding["fix"] if finding["code"] == "PENDING_CHANGES"
    ]
    assert repairs and not any(one.startswith("mend first what keeps them from") for one in repairs)


# --- a server that was killed has a change, and its log lost it: what its entries show can be written once more


def kept_by_entries(*, added: bool = False, removed: str = "") -> dict[str, str | bytes]:
    """s2 answered LOST and was killed: its entries have it, its log does not, and the next change hides it from s1.

    removed  a line of s1's entry that the change took away, without a trace
    """
    step = f"{LOST[:16]}0002"
    other = entry("uid=base18", 18, f"description;adcsn-{csn(50, 2)};vucsn-{csn(50, 2)}: x")
    mine = entry("uid=base17", 17, f"description;adcsn-{step};vucsn-{step}: new")
    theirs = entry("uid=base17", 17, f"description;adcsn-{csn(2, 1)};vucsn-{csn(2, 1)}: old", *filter(None, [removed]))
    access = answered(5, "uid=base18", csn(5, 2)) + answered(10, "uid=base17", LOST)
    if added:
        mine = entry("uid=base17", 17).replace(csn(1, 1), LOST)
        access = access.replace(f'MOD dn="uid=base17,{SUFFIX}"', f'ADD dn="uid=base17,{SUFFIX}"').replace(
            "tag=103", "tag=105"
        )
    log = logged(csn(50, 2), 18, "uid=base18", "replace: description\ndescription: x\n-\n")
    return mesh(
        {"r1": (1, 1), "r2": (5, 50)},
        {"s1": [*([] if added else [theirs]), other], "s2": [mine, other]},
        {"s1": log, "s2": log},
        s2_access_log=access,
        s1_access_log=answered(5, "uid=base18", csn(5, 2), True) + answered(51, "uid=base18", csn(50, 2), True),
    )


def test_a_change_that_only_entries_keep_is_written_once_more_from_them(tmp_path: Path) -> None:
    case = case_of(tmp_path, kept_by_entries())
    assert [(row["server"], row["position"], row["held_by"]) for row in diagnose(case)["missing"]] == [("s1", LOST, [])]
    planned = plan(case)
    (step,) = planned.steps
    assert (step.repair, step.server, planned.unmended) == ("rewrite", "s2", 0)
    assert step.sends == f"dn: uid=base17,{SUFFIX}\nchangetype: modify\nreplace: description\ndescription: new\n-\n"


def test_what_it_removed_is_removed_too(tmp_path: Path) -> None:
    (step,) = plan(case_of(tmp_path, kept_by_entries(removed="mail: old@example.com"))).steps
    assert step.sends.count("replace: ") == 2 and "replace: mail\n-\n" in step.sends


def test_an_addition_that_only_entries_keep_can_be_made_anew_from_them(tmp_path: Path) -> None:
    planned = plan(case_of(tmp_path, kept_by_entries(added=True)))
    assert {"initialise-from-s2", "recreate"} == {one.way for one in planned.courses if one.proven}


# --- a password that one server lost


def test_a_password_that_was_lost_is_told_although_the_entry_was_changed_later(tmp_path: Path) -> None:
    """Each log has both changes. The data of s2 was edited: its password carries no change, its number carries the later one."""
    changed, later = csn(20, 1), csn(25, 1)
    number = f"telephoneNumber;adcsn-{later};vucsn-{later}: 117"
    secret = f"userPassword;adcsn-{changed};vucsn-{changed}: {{SSHA}}new"
    log = logged(changed, 17, "uid=base17", "replace: userPassword\nuserPassword: x\n-\n")
    log += logged(later, 17, "uid=base17", "replace: telephoneNumber\ntelephoneNumber: 117\n-\n")
    for about, more_there in (
        ("lost", []),
        ("hashed anew", [f"passwordExpirationTime;vucsn-{changed}: 20301231000000Z"]),
    ):
        right = [entry("uid=base17", 17, number, *more_there, secret)]
        wrong = [entry("uid=base17", 17, number, *more_there, "userPassword: {SSHA}old")]
        files = mesh({"r1": (1, 25)}, {"s1": right, "s2": wrong, "s3": right}, dict.fromkeys(("s1", "s2", "s3"), log))
        found = diagnose(case_of(tmp_path / about, files))
        told = [(one["server"], one["severity"]) for one in found["findings"] if one["code"] == "ENTRIES_DIFFER"]
        assert told == ([("s2", "warning")] if about == "lost" else []), about
        assert found["missing"] == []


# --- a link that leaves an attribute out, to a server that no file tells

FRACTIONAL = "nsDS5ReplicatedAttributeList: (objectclass=*) $ EXCLUDE mail\n\n"


def left_out() -> dict[str, str | bytes]:
    """s2 and a read-only server lost a mail. s1 leaves it out over a link to nowhere known, and has another to a far server."""
    right, wrong = [entry("uid=anna", 1, "mail: anna@example.com")], [entry("uid=anna", 1)]
    spans = {"r1": (1, 2), "r2": (5, 5), "r3": (1, 1)}
    files = mesh(spans, {"s1": right, "s2": wrong, "s3": right, "s4": wrong}, {})
    del files["s4.agreements.ldif"]
    files["s4.replica.ldif"] = replica(65535, elements(claims(**spans)), flags=0)
    links = [agreement("two", 38902), agreement("far", 636, host="far"), agreement("dead", 636, host="gone")]
    files["s1.agreements.ldif"] = "".join(links).rstrip("\n") + f"\n{FRACTIONAL}"
    for name, port in (("s2", 38903), ("s3", 38901)):
        files[f"{name}.agreements.ldif"] = agreement("next", port)
    return files


def test_a_link_to_nowhere_known_excuses_no_server_that_makes_changes(tmp_path: Path) -> None:
    """It may lead to the read-only server, unless the supplier reaches that over another link."""
    case = case_of(tmp_path, left_out())
    for far, excused, alone in (("", {"s4"}, ["s2"]), ("s4", set(), [None])):
        if far:
            about = case.folder / "case.yaml"
            about.write_text(about.read_text().replace("address: far:636", "address: far:636\n  consumer: s4"))
            case = Case.open(case.folder)
        (contents,) = context_of(case)[0].verdicts.contents
        assert {name for name, without in contents.excluded.items() if without} == excused
        told = [one["server"] for one in diagnose(case)["findings"] if one["code"] == "ENTRIES_DIFFER"]
        assert told == alone, "two against two: nobody can tell"


def test_where_two_servers_renamed_an_entry_at_one_time_the_value_that_one_lacks_is_written_again(
    tmp_path: Path,
) -> None:
    """The later name won everywhere; s2 never got the value of the earlier one. No server is filled for that."""
    by_three, by_two = csn(30, 3), csn(31, 2)
    won = f"uid;vucsn-{by_two};mdcsn-{by_two}: renb"
    lost = f"uid;vucsn-{by_three};mdcsn-{by_three}: renc"

    def shown(*lines: str) -> str:
        made = entry("uid=renb", 17, *lines, f"sn;vucsn-{csn(1, 1)}: x")
        return made.replace(f"uid;vucsn-{csn(1, 1)};mdcsn-{csn(1, 1)}: renb\n", "")

    renamed = logged(by_three, 17, "uid=a1", "newrdn: uid=renc\ndeleteoldrdn: true\n", "modrdn")
    won_by = logged(by_two, 17, "uid=a1", "newrdn: uid=renb\ndeleteoldrdn: true\n", "modrdn")
    entries = {"s1": [shown(lost, won)], "s2": [shown(won)], "s3": [shown(lost, won)]}
    logs = dict.fromkeys(entries, logged(csn(1, 1), 17, "uid=a1", "add: uid\nuid: a1\n-\n", "add") + renamed + won_by)
    case = case_of(tmp_path, mesh({"r1": (1, 1), "r2": (31, 31), "r3": (30, 30)}, entries, logs))
    assert {(row["server"], row["position"]) for row in diagnose(case)["missing"]} == {("s2", by_three)}
    (step,) = plan(case).steps
    assert (step.repair, step.server) == ("rewrite", "s1")
    assert "replace: uid\nuid: renc\nuid: renb\n" in step.sends


def test_the_mark_that_a_child_leaves_in_its_revived_parent_is_not_the_child(tmp_path: Path) -> None:
    """Seen on 3.1.2: s1 revived the parent of a late child, and stamped its classes with the child's CSN; s2 made glue anew."""
    child = f"dn: uid=k,ou=gou,{SUFFIX}\nobjectClass;vucsn-{csn(8, 1)}: person\nuid;vucsn-{csn(8, 1)}: k\nnsUniqueId: 2-2-2-8\n\n"
    parent = entry("ou=gou", 7, f"objectClass;vucsn-{csn(8, 1)}: glue")
    anew = entry("ou=gou", 7)
    files = mesh({"r1": (1, 9), "r2": (1, 2)}, {"s1": [parent, child], "s2": [anew, child]}, {})
    found = diagnose(case_of(tmp_path, files))
    assert not found["missing"]
    assert "ENTRIES_DIFFER" in {finding["code"] for finding in found["findings"]}
    # Where a log has the addition of the child, the parent that carries its mark is right all the same.
    added = logged(csn(8, 1), 8, "uid=k,ou=gou", "add: uid\nuid: k\n-\n", "add")
    files |= {f"{name}.changelog.ldif": added for name in ("s1", "s2")}
    found = diagnose(case_of(tmp_path / "logged", files))
    assert not found["missing"]
    assert "s1" not in {finding["server"] for finding in found["findings"] if finding["code"] == "ENTRIES_DIFFER"}


def test_a_value_in_the_entry_of_another_change_is_wrong_where_it_stands(tmp_path: Path) -> None:
    """Seen on 3.1.2: s3 put what a change of uid=b says into ou=sub, as a damaged cache of names led there."""
    made, spoilt = csn(8, 1), f"title;vucsn-{csn(8, 1)}: by a"
    later = entry("uid=b", 2, f"title;vucsn-{csn(9, 1)}: later")
    entries = {name: [entry("ou=sub", 7), later] for name in ("s1", "s2")}
    entries["s3"] = [entry("ou=sub", 7, spoilt), later]
    logs = dict.fromkeys(entries, logged(made, 2, "uid=b", "replace: title\ntitle: by a\n-\n", "modify"))
    found = diagnose(case_of(tmp_path, mesh({"r1": (1, 9), "r2": (1, 2)}, entries, logs)))
    assert not found["missing"]
    (differs,) = (finding for finding in found["findings"] if finding["code"] == "ENTRIES_DIFFER")
    assert differs["server"] == "s3" and f"1 entry has other values (ou=sub,{SUFFIX} (title))" in differs["summary"]


@pytest.mark.parametrize(
    ("started", "answered_at", "live", "expected"),
    [
        (2, 10, True, "present"),
        (12, 10, True, "missing"),
        (8, 7, True, "missing"),  # its positions run ahead of its clock
        (2, 10, False, "missing"),  # it may have been started after its log was copied
    ],
)
def test_what_a_maker_that_ran_on_has_the_same_entry_elsewhere_has_too(
    started: int, answered_at: int, live: bool, expected: str, tmp_path: Path
) -> None:
    """A result names no attribute; but who was not started since lost nothing of what it answered."""
    files: dict[str, Any] = more(crashed(), f"mail;vucsn-{csn(1, 1)}: old@example.com\n")
    files["s2.access.log"] = answered(5, "uid=base18", csn(5, 2)) + answered(answered_at, "uid=base17", LOST)
    files["s2.errors.log"] = f"{stamp(started)} - INFO - main - 389-Directory/3.1.2 B2025.016.1616 starting up\n"
    assert verdict(tmp_path, read_at(files, 52) if live else files)[0] == expected


def test_two_entries_of_one_name_on_one_server_are_its_cache(tmp_path: Path) -> None:
    """Seen on 3.1.2: filled while it ran, s1 answered for uid=b under the name of ou=sub, until it was restarted."""
    right = [entry("ou=sub", 7), entry("uid=b", 2)]
    wrong = [right[0], right[1].replace("dn: uid=b,", "dn: ou=sub,")]
    found = diagnose(case_of(tmp_path, mesh({"r1": (1, 9), "r2": (1, 2)}, {"s1": wrong, "s2": right, "s3": right}, {})))
    (differs,) = (finding for finding in found["findings"] if finding["code"] == "ENTRIES_DIFFER")
    assert f"(uid=b,{SUFFIX} as ou=sub,{SUFFIX})" in differs["summary"]
    (step,) = differs["fix"]
    assert step["repair"].startswith("restart s1, collect again") and step["caution"].startswith("rename nothing")


def test_a_new_supplier_that_a_server_has_not_heard_of_is_none_that_it_was_cleaned_of(tmp_path: Path) -> None:
    """s2 lacks a value of origin 1, and its RUV does not name 4, a supplier that was added a moment ago."""
    whole = entry("uid=a", 2, "title: x")
    files = mesh({"r1": (1, 9), "r2": (1, 2)}, {"s1": [whole], "s2": [entry("uid=a", 2)], "s3": [whole]}, {})
    files["s3.replica.ldif"] = replica(4, elements({**claims(r1=(1, 9), r2=(1, 2)), 4: None}))
    (differs,) = (
        finding for finding in diagnose(case_of(tmp_path, files))["findings"] if finding["code"] == "ENTRIES_DIFFER"
    )
    assert differs["server"] == "s2" and "does not name" not in differs["summary"]
    assert "once more on" in differs["fix"][0]["repair"]
