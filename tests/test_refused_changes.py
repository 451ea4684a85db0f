"""Changes that a server refused (32) are not said to be on their way: they arrive only if it gets the entry first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, stamp
from entry_samples import TAGS, answered, logged
from mesh_samples import SUFFIX, agreement, case_of, claims, csn, elements, replica

from workbench import diagnose
from workbench.diagnosis.case_diagnosis import context_of
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.obstacles import arrival_notes
from workbench.repair.planner import plan

ADDED, LATER, CHANGED = csn(10, 1), csn(20, 1), csn(30, 1)
ENTRY = "uid=j1,ou=people"


def refused(second: int, code: int = 32, operation: str = "MOD") -> str:
    """Lines of the access log of a consumer: a replicated change of the entry, and the result."""
    where = f"{stamp(second)} conn=1 op={second}"
    asked = f'{where} {operation} dn="{ENTRY},dc=example,dc=com"\n'
    return f"{asked}{where} RESULT err={code} tag={TAGS[operation]} nentries=0 etime=0.006 csn={CHANGED}\n"


def folder(lines: str, *, lost: bool = True, operation: str = "modify") -> dict[str, Any]:
    """s2 waits for the newest change of s1, and lacks (`lost`) the one that added the entry that the newest is about."""
    first = logged(csn(5, 1), 5, "uid=a", "replace: sn\nsn: a\n") + logged(
        csn(5, 2), 6, "uid=b", "replace: sn\nsn: b\n"
    )
    added = logged(ADDED, 7, ENTRY, "objectClass: person\nsn: x\n", "add")
    later = logged(LATER, 8, "uid=c", "replace: sn\nsn: c\n")
    changed = logged(CHANGED, 7, ENTRY, "replace: sn\nsn: y\n" if operation == "modify" else "", operation)
    return {
        "s1.changelog.ldif": first + added + later + changed,
        "s2.changelog.ldif": first + ("" if lost else added) + later,
        "s1.replica.ldif": replica(1, elements(claims(r1=(5, 30), r2=(5, 5)))),
        "s2.replica.ldif": replica(2, elements(claims(r1=(5, 20), r2=(5, 5)))),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s2.access.log": answered(21, "uid=c", LATER, replicated=True) + lines,
    }


def waits(tmp_path: Path, files: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The finding of what s2 waits for, and the first line."""
    found = diagnose(case_of(tmp_path, files))
    (one,) = of("PENDING_CHANGES", found["findings"])
    return one, headline(found)


def test_a_change_that_was_refused_is_not_on_its_way(tmp_path: Path) -> None:
    one, said = waits(tmp_path, folder(refused(31) + refused(32)))
    assert "1 change was refused by s2 at every attempt" in said and "on the way" not in said
    assert one["severity"] == "warning"
    assert one["summary"].endswith("s2 refused it with 32 (no such object), 2 times in all by its access log")
    assert one["fix"][0]["repair"] == f"do what MISSED_CHANGE says of s2 on 1 change, {ADDED}"
    assert "missing for good then" in one["fix"][0]["why"]


def test_no_plan_promises_it_that_does_not_fill_the_server(tmp_path: Path) -> None:
    case = case_of(tmp_path, folder(refused(31)))
    made = plan(case)
    assert [step.repair for step in made.steps] == ["initialise"] and not made.open
    context, _ = context_of(case)
    (said,) = arrival_notes(context, "s2", 1, 0, SUFFIX)
    assert said.startswith("1 change was refused by s2 with 32 (no such object): it arrives only if")
    assert "over links that run" not in said


@pytest.mark.parametrize(
    "lines",
    ["", refused(31, 51), refused(31) + refused(32, 51)],
    ids=["never sent", "sent again at once", "not always"],
)
def test_what_is_sent_again_at_once_is_on_its_way(lines: str, tmp_path: Path) -> None:
    one, said = waits(tmp_path, folder(lines))
    assert "1 is on the way to s2" in said
    assert one["severity"] == "info" and "refused" not in one["summary"]


def test_one_whose_entry_is_not_known_to_be_lost_is_no_warning(tmp_path: Path) -> None:
    """The change that makes the entry may come over another link in the same moment."""
    one, _ = waits(tmp_path, folder(refused(31), lost=False))
    assert one["severity"] == "info"
    assert (
        one["fix"][0]["repair"]
        == f"see whether s2 has {ENTRY},dc=example,dc=com, or waits for the change that makes it"
    )


def test_a_delete_of_an_entry_that_is_not_there_does_no_harm(tmp_path: Path) -> None:
    one, _ = waits(tmp_path, folder(refused(31, operation="DEL"), operation="delete"))
    assert one["severity"] == "info"
    assert one["fix"][0]["repair"] == "leave it: a delete of an entry that is not there changes nothing"
