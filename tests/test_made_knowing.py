"""Second deletions and renamings: without effect only where whoever made them did not know of the first one."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import zulu
from entry_samples import answered, logged
from mesh_samples import agreement, changelog, claims, csn, elements, replica
from test_thrown_away import verdicts
from test_without_effect import ANNA, ELSE, ENDED, RENAMED, Files, deleted, logs, renamed

from workbench import Case, diagnose
from workbench.diagnosis import case_diagnosis
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

BOB = "uid=bob,ou=people"
Told = tuple[int, str, str, str]
"""Second, entry, operation and position of a line of an access log."""


def again(second: int) -> str:
    """The deletion of anna by s1, which s2 does not have."""
    return logged(csn(second, 1), 1, ANNA, "", "delete")


def access(lines: list[Told], own: str) -> str:
    return "".join(
        answered(second, name, of, replicated=int(of[12:16], 16) != int(own), operation=what)
        for second, name, what, of in lines
    )


def judged(files: Files, position: str, tmp_path: Path) -> tuple[str, str]:
    """What `explain` says of s2; what `diagnose` says is the same."""
    told = verdicts(tmp_path, files, position)["s2"]
    found = diagnose(Case.open(tmp_path / "case"))
    lacks = {(row["server"], row["position"]) for row in found["missing"]}
    unknown = {(row["server"], row["from"], row["why"]) for row in found["unknown"]}
    assert (("s2", position) in lacks) is (told[0] == "missing")
    assert told[0] != "unknown" or ("s2", position, told[1]) in unknown
    return told


@pytest.mark.parametrize(("first", "verdict"), [(9, "unknown"), (11, "present")])
def test_who_had_the_first_deletion_deleted_what_had_come_back(first: int, verdict: str, tmp_path: Path) -> None:
    """s1 got the deletion 8 of s2 at second `first`, and made its own at 10; s2 has a deletion of the entry in its log."""
    files = logs(again(10), deleted(8))
    lines = [(1, ELSE, "MOD", csn(1, 1)), (first, ANNA, "DEL", csn(8, 2)), (10, ANNA, "DEL", csn(10, 1))]
    files["s1.access.log"] = access([*sorted(lines), (20, ELSE, "MOD", csn(20, 1))], "1")
    assert judged(files, csn(10, 1), tmp_path)[0] == verdict


@pytest.mark.parametrize(("second", "told"), [(60, ("present", "deleted_here")), (3600, ("unknown", "perhaps_back"))])
def test_where_nothing_tells_the_order_a_minute_counts_as_at_once(
    second: int, told: tuple[str, str], tmp_path: Path
) -> None:
    files = logs(again(second), deleted(8))
    ruv = elements(claims(r1=(1, second + 20), r2=(1, 15)))
    files |= {"s1.replica.ldif": replica(1, ruv), "s2.replica.ldif": replica(2, ruv)}
    end = logged(csn(second + 20, 1), 9, ELSE, "replace: sn\nsn: x\n-\n")
    files = {name: text.replace(ENDED, end) for name, text in files.items()}
    assert judged(files, csn(second, 1), tmp_path) == told


@pytest.mark.parametrize(("added", "verdict"), [(False, "unknown"), (True, "present")])
def test_a_modification_behind_the_deletion_may_be_of_what_came_back(added: bool, verdict: str, tmp_path: Path) -> None:
    """What was added under the name in between is another entry."""
    files = logs(again(10), deleted(8))
    lines = [(1, ELSE, "MOD", csn(1, 1)), (8, ANNA, "DEL", csn(8, 2)), (12, ANNA, "MOD", csn(12, 2))]
    files["s2.access.log"] = access([*lines[:2], *([(9, ANNA, "ADD", csn(9, 2))] if added else []), lines[2]], "2")
    assert judged(files, csn(10, 1), tmp_path)[0] == verdict


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (RENAMED.replace("bert", "carl"), ("unknown", "renamed_otherwise")),
        (RENAMED, ("present", "renamed_since")),
    ],
)
def test_of_two_names_at_once_the_earlier_may_stay_as_a_value(
    other: str, told: tuple[str, str], tmp_path: Path
) -> None:
    assert judged(logs(renamed(6, 1), renamed(8, 2, other)), csn(6, 1), tmp_path) == told


def test_a_renaming_on_from_the_new_name_needs_the_one_before(tmp_path: Path) -> None:
    on = logged(csn(8, 2), 1, "uid=bert,ou=people", RENAMED.replace("bert", "carl"), "modrdn")
    assert judged(logs(renamed(6, 1), on), csn(6, 1), tmp_path)[0] == "missing"


# --- another entry of the name


def test_what_was_renamed_to_the_name_is_another_entry(tmp_path: Path) -> None:
    """s2: anna (1) is deleted at 8, bob (2) is renamed to anna at 9; the deletion of anna (2) at 10 lacks."""
    to_anna = logged(csn(9, 1), 2, BOB, RENAMED.replace("bert", "anna"), "modrdn")
    files = logs(logged(csn(10, 1), 2, ANNA, "", "delete"), deleted(8) + to_anna)
    lines = [(2, ANNA, "ADD", csn(2, 1)), (8, ANNA, "DEL", csn(8, 2)), (9, BOB, "MODRDN", csn(9, 1))]
    log = access([(1, ELSE, "MOD", csn(1, 1)), *lines, (20, ELSE, "MOD", csn(20, 1))], "2")
    files["s2.access.log"] = log.replace('newrdn="uid=new"', 'newrdn="uid=anna"')
    assert judged(files, csn(10, 1), tmp_path)[0] == "missing"


def test_of_two_entries_whose_records_differ_the_name_says_nothing(tmp_path: Path) -> None:
    files = logs(logged(csn(10, 1), 2, ANNA, "", "delete"), deleted(8))
    lines = [(6, ELSE, "MOD", csn(6, 1)), (8, ANNA, "DEL", csn(8, 2)), (20, ELSE, "MOD", csn(20, 1))]
    files["s2.access.log"] = access(lines, "2")
    assert judged(files, csn(10, 1), tmp_path)[0] == "missing"


@pytest.mark.parametrize("what", ["DEL", "MODRDN"])
def test_one_of_which_no_record_tells_the_entry_leaves_it_open(what: str, tmp_path: Path) -> None:
    """The change of server 3, of which no changelog was collected, may be of the same entry."""
    kind = {"DEL": "delete", "MODRDN": "modrdn"}[what]
    files = logs(logged(csn(10, 1), 1, ANNA, "" if what == "DEL" else RENAMED, kind), "")
    lines = [(1, ELSE, "MOD", csn(1, 1)), (8, ANNA, what, csn(8, 3)), (20, ELSE, "MOD", csn(20, 1))]
    files["s2.access.log"] = access(lines, "2")
    assert judged(files, csn(10, 1), tmp_path) == ("unknown", "may_repeat")


def test_what_bore_the_name_before_the_entry_was_added_says_nothing(tmp_path: Path) -> None:
    """An earlier entry of the name was deleted at 3; anna was added at 5, and her deletion at 10 never came."""
    files = logs(again(10), logged(csn(5, 1), 1, ANNA, "add: sn\nsn: x\n-\n", "add"))
    lines = [(1, ELSE, "MOD", csn(1, 1)), (3, ANNA, "DEL", csn(3, 3)), (5, ANNA, "ADD", csn(5, 1))]
    files["s2.access.log"] = access([*lines, (20, ELSE, "MOD", csn(20, 1))], "2")
    assert judged(files, csn(10, 1), tmp_path)[0] == "missing"


def test_who_has_the_first_deletion_and_whose_log_begins_behind_it_may_have_known_of_it(tmp_path: Path) -> None:
    files = logs(again(10), deleted(8))
    lines = [(9, ELSE, "MOD", csn(9, 1)), (10, ANNA, "DEL", csn(10, 1)), (20, ELSE, "MOD", csn(20, 1))]
    files["s1.access.log"] = access(lines, "1")
    assert judged(files, csn(10, 1), tmp_path) == ("unknown", "perhaps_back")


@pytest.mark.parametrize(("second", "told"), [(9, "unknown"), (7, "present")])
def test_an_entry_that_is_added_below_a_deleted_one_brings_it_back(second: int, told: str, tmp_path: Path) -> None:
    child = logged(csn(second, 1), 5, f"uid=kid,{ANNA}", "add: sn\nsn: x\n-\n", "add")
    files = logs(again(10), deleted(8))
    files = {name: text.replace(again(10), child + again(10)) for name, text in files.items()}
    assert judged(files, csn(10, 1), tmp_path)[0] == told


def test_whoever_has_what_a_log_lacks_does_not_lose_it_unsaved(tmp_path: Path) -> None:
    """The deletion by s1 is missing in the log of s2 and may have no effect there; a change by s2 is missing on s1."""
    ruv, base = elements(claims(r1=(1, 3620), r2=(1, 3610))), changelog([csn(1, 1)])
    lost = logged(csn(100, 2), 7, "uid=carl,ou=people", "replace: sn\nsn: c\n-\n")
    end = "".join(logged(csn(3600 + 10 * own, 3 - own), 9, ELSE, "replace: sn\nsn: y\n-\n") for own in (1, 2))
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": base + deleted(8) + again(3600) + end,
        "s2.changelog.ldif": base + deleted(8) + lost + end,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }
    assert judged(files, csn(3600, 1), tmp_path) == ("unknown", "perhaps_back")
    made = plan(Case.open(tmp_path / "case"))
    assert not [step for step in made.steps if (step.repair, step.server) == ("initialise", "s1")]
    filling = [course for course in made.courses if course.way == "initialise-from-s2"]
    assert [(course.lost, bool(course.refused)) for course in filling] == [(1, True)]


# --- data that came since, and lists that are cut


def filled(had: bool) -> Files:
    """s2 deleted anna by 8, and was filled at 15 from s1, which has 8 or not; s1 and s2 lack 10, and s3 has both."""
    ruv = elements(claims(r1=(1, 20), r2=(1, 15), r3=(1, 11)))
    status = f"nsds5replicaLastInitStart: {zulu(15)}\nnsds5replicaLastInitEnd: {zulu(16)}\n"
    status += "nsds5replicaLastInitStatus: Error (0) Total update succeeded\n"
    first, second = (logged(csn(at, 3), 1, ANNA, "", "delete") for at in (8, 10))
    base, between = changelog([csn(1, 1)]), logged(csn(11, 3), 9, ELSE, "replace: sn\nsn: z\n-\n")
    own = [(1, ELSE, "MOD", csn(1, 1)), (2, ANNA, "ADD", csn(2, 1)), *([(8, ANNA, "DEL", csn(8, 3))] if had else [])]
    own += [(12, ELSE, "MOD", csn(11, 3)), (20, ELSE, "MOD", csn(20, 1))]
    took = [(2, ANNA, "ADD", csn(1, 1)), (9, ANNA, "DEL", csn(8, 3)), (21, ELSE, "MOD", csn(20, 1))]
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s3.replica.ldif": replica(3, ruv),
        "s1.changelog.ldif": base + (first if had else "") + between + ENDED,
        "s2.changelog.ldif": changelog([csn(20, 1)], marks=[csn(12, 1), csn(11, 3)]),
        "s3.changelog.ldif": base + first + second + between + ENDED,
        "s1.access.log": access(own, "1"),
        "s2.access.log": access(took, "2"),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902).rstrip("\n")
        + f"\n{status}\n"
        + agreement("s1-to-s3", 38903),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s3.agreements.ldif": agreement("s3-to-s1", 38901),
    }


def test_a_deletion_of_before_other_data_came_counts_if_these_had_it(tmp_path: Path) -> None:
    assert verdicts(tmp_path / "had", filled(True), csn(10, 3))["s2"][0] == "present"
    assert verdicts(tmp_path / "not", filled(False), csn(10, 3))["s2"][0] != "present"
    assert verdicts(tmp_path / "first", filled(False), csn(8, 3))["s2"][0] != "present"


def test_a_list_that_is_cut_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three = "".join(renamed(at, 1, RENAMED.replace("bert", name)) for at, name in ((10, "a"), (11, "b"), (12, "c")))
    files = logs(three, deleted(8))
    verdicts(tmp_path, files, csn(10, 1))
    monkeypatch.setattr(case_diagnosis, "LIMIT", 1)
    found = diagnose(Case.open(tmp_path / "case"), limit=1)
    assert "MISSING on s2" in headline(found) and "MISSING on  " not in headline(found)
