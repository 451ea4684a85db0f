"""A Kanidm server that is behind what another one remembers, and is the better of the two: which of them is to be refreshed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kanidm_incidents import BASE, CUT, KEPT, LATE, config, mail, mesh
from kanidm_samples import DAY, Cid, Entry, backup

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.planner import plan

OLD: Cid = (CUT - DAY, "a")
"""A change of mail that no changelog has any more: who has it shows it in its entries alone."""
MARK: list[Cid] = [(LATE, "c")]
"""What C remembers, which was restored from a backup of days ago and purged since: its own mark."""
OF_A: list[Cid] = [*KEPT, (CUT + 3600, "c"), (LATE - 3600, "c")]
TURNED = "refresh c from a, and never a from c"


def case_of(folder: Path, more: Mapping[str, bytes] = {}, **backups: dict[str, Any]) -> Case:
    source = folder / "in"
    source.mkdir(parents=True)
    for name, one in backups.items():
        (source / f"{name}.json").write_text(json.dumps(one))
    for name, text in more.items():
        (source / name).write_bytes(text)
    made = Case.create(folder / "case")
    made.load([source])
    return made


def good(name: str, entries: Mapping[int, Entry] = mail(2, cid=OLD)) -> dict[str, Any]:
    return backup(name, LATE, OF_A, entries)


def first_steps(found: Mapping[str, Any], *codes: str) -> set[str]:
    return {one["fix"][0]["repair"] for one in found["findings"] if one["code"] in codes}


@pytest.mark.parametrize("names", ["a", "ab"])
def test_who_was_restored_and_has_nothing_alone_is_refreshed_and_not_the_others(names: str, tmp_path: Path) -> None:
    case = case_of(tmp_path, **{name: good(name) for name in names}, c=backup("c", LATE, MARK, BASE))
    found = diagnose(case)
    (of_a,) = (x for x in found["findings"] if (x["code"], x["server"]) == ("REFRESH_REQUIRED", "a"))
    assert of_a["fix"][0]["repair"] == TURNED
    assert of_a["fix"][0]["why"].startswith("c lacks 1 change that a has, and shows none that a lacks")
    wanted = {TURNED.replace("a", name).replace(f"{name}nd", "and") for name in names}
    assert len(first_steps(found, "REFRESH_REQUIRED", "SUPPLIER_BEHIND")) == len(wanted)
    made = plan(case)
    (chosen,) = (course for course in made.courses if course.chosen)
    assert (chosen.says, chosen.restored, chosen.lost) == ("refresh c from a", 1, 0)
    assert not any("refresh" in line for line in made.left), "all supply each other behind it"


def test_where_both_have_changes_alone_a_person_says_which_is_right(tmp_path: Path) -> None:
    entries = {**BASE, 3: Entry((0, "a"), {"mail": (LATE, "c")})}
    case = case_of(tmp_path, a=good("a"), b=good("b"), c=backup("c", LATE, MARK, entries))
    (first,) = first_steps(diagnose(case), "REFRESH_REQUIRED", "SUPPLIER_BEHIND")
    assert first.startswith("find out whether c or a, b has the right data")
    assert not plan(case).steps


def test_what_a_server_may_have_deleted_and_forgotten_is_no_reason_to_refresh_it(tmp_path: Path) -> None:
    """Entry 5 may have been deleted on A a week ago: it would come back."""
    without = {number: one for number, one in BASE.items() if number != 5}
    case = case_of(
        tmp_path, a=backup("a", LATE, KEPT, without), c=backup("c", CUT - 10, [(0, "a"), (CUT - 10, "c")], BASE)
    )
    found = diagnose(case)
    assert not any("never" in one for one in first_steps(found, "REFRESH_REQUIRED", "SUPPLIER_BEHIND", "NO_OVERLAP"))
    assert not any(course.says == "refresh a from c" and course.chosen for course in plan(case).courses)


def test_an_automatic_refresh_that_throws_changes_away_is_stopped_first(tmp_path: Path) -> None:
    links = mesh("ac", "a")
    case = case_of(tmp_path, links, A=good("a"), C=backup("c", LATE, MARK, BASE))
    (one,) = (x for x in diagnose(case)["findings"] if x["code"] == "REFRESH_REQUIRED")
    assert one["severity"] == "error"
    assert (
        "A deletes its data at its next pull, and takes those of C, which lacks 1 change that it has" in one["summary"]
    )
    assert [step["repair"].split(",")[0] for step in one["fix"]] == ["stop A now", "refresh C from A"]


def test_an_automatic_refresh_that_throws_nothing_away_is_left_to_itself(tmp_path: Path) -> None:
    behind: list[Cid] = [(0, "a"), (CUT - 10, "c")]
    case = case_of(tmp_path, mesh("ac", "c"), A=good("a"), C=backup("c", CUT - 10, [*behind, (CUT - 10, "a")], BASE))
    (one,) = (x for x in diagnose(case)["findings"] if x["code"] == "REFRESH_REQUIRED")
    assert one["fix"][0]["repair"].startswith("let C pull: it takes all data of A by itself")


def test_a_change_behind_a_link_of_one_direction_is_brought_by_the_other(tmp_path: Path) -> None:
    """C pulls from A, and A does not pull from C: no refresh and no writing by hand is needed."""
    ruv: list[Cid] = [(LATE - 100, name) for name in "abc"]
    links = {
        "A.server.toml": config("a", b="mutual-pull", c="allow-pull"),
        "B.server.toml": config("b", a="mutual-pull"),
        "C.server.toml": config("c", a="pull"),
    }
    entries = mail(2, cid=(LATE - 10, "c"))
    servers = {name.upper(): backup(name, LATE, ruv, BASE) for name in "ab"}
    case = case_of(tmp_path, links, **servers, C=backup("c", LATE, [*ruv, (LATE - 10, "c")], entries))
    made = plan(case)
    (step,) = made.steps
    assert (step.repair, step.changes) == ("link", 0)
    assert "on A: in server.toml, type mutual-pull in the table for repl://C" in step.sends
    assert "only C pulls from A yet" in step.stands_on
    (chosen,) = (course for course in made.courses if course.chosen)
    assert (chosen.restored, chosen.lost) == (2, 0)
    assert all(not row["pending"] for row in made.after)
