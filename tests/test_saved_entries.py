"""What only the data of a server show is written to a file before they go."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from entry_samples import answered, entry, export
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench.repair.case_plan import plan_for

WAY = "initialise-from-s1"


def shown_by_one(entries: bool) -> dict[str, Any]:
    """s2 made uid=new at 20 and lost its changelog since; s1, which trimmed what s2 waits for, never got that."""
    first, second = claims(r1=(1, 20), r2=(1, 10)), claims(r1=(1, 9), r2=(1, 20))
    old, new = entry("uid=old", 1), entry("uid=new", 2, "mail: n@example.com").replace(csn(1, 1), csn(20, 2))
    files: dict[str, Any] = {
        "s1.replica.ldif": replica(1, elements(first)),
        "s1.changelog.ldif": changelog([csn(15, 1), csn(20, 1)], purge=[csn(12, 1), csn(10, 2)]),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(2, elements(second)),
        "s2.changelog.ldif": changelog([], marks=[csn(9, 1), csn(20, 2)]),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }
    if entries:
        files["s1.entries.ldif"] = export(elements(first), [old])
        files["s2.entries.ldif"] = export(elements(second), [old, new])
    return files


@pytest.mark.parametrize("entries", [True, False])
def test_a_server_is_filled_on_request_once_its_entries_are_in_a_file(entries: bool, tmp_path: Path) -> None:
    case = case_of(tmp_path, shown_by_one(entries))
    plan = plan_for(case, only=["s2"], ways=[WAY])
    (asked,) = (course for course in plan.courses if course.way == WAY)
    if not entries:
        assert not asked.chosen and asked.refused == "the model throws away 1 change unsaved"
        return
    assert asked.chosen and (asked.lost, asked.saved) == (1, 1)
    saving, filling = plan.steps
    assert saving.says.startswith("what s2 alone shows of 1 change that no log has is written to a file: 1 entry of it")
    assert "dn: uid=new,dc=example,dc=com" in saving.sends and "mail: n@example.com" in saving.sends
    assert "uid=old" not in saving.sends and saving.details["file"] == "entries-of-s2.ldif"
    assert filling.key.endswith("initialise-s2-from-s1")


def test_where_entries_do_not_carry_all_of_the_changes_all_of_them_are_written(tmp_path: Path) -> None:
    """The access log of s2 names two changes of its own more: what they did may stand in any entry."""
    files = shown_by_one(True)
    files["s2.access.log"] = "".join(answered(at, "uid=old", csn(at, 2)) for at in (12, 15, 20))
    plan = plan_for(case_of(tmp_path, files), only=["s2"], ways=[WAY])
    (saving,) = (step for step in plan.steps if step.repair == "save")
    assert "all 3 entries of it" in saving.says and "uid=old" in saving.sends, saving.says


def test_a_name_with_a_line_break_writes_no_record(tmp_path: Path) -> None:
    """The name of a tombstone came from a client: in a comment it would end the line, and what follows would be a record."""
    files = shown_by_one(True)
    name = base64.b64encode(b"uid=x\n\ndn: cn=admins,dc=example,dc=com\nchangetype: delete,dc=example,dc=com").decode()
    made = csn(20, 2)
    grave = f"dn:: {name}\nobjectClass;vucsn-{csn(1, 1)}: person\nobjectClass;vucsn-{made}: nsTombstone\n"
    files["s2.entries.ldif"] += f"{grave}nstombstonecsn: {made}\nnsUniqueId: 2-2-2-9\n\n"
    plan = plan_for(case_of(tmp_path, files), only=["s2"], ways=[WAY])
    for step in plan.steps:
        assert "\nchangetype: delete" not in (step.sends or "") and "\ndn: cn=admins" not in (step.sends or "")
    assert any(step.repair == "save" and "deleted there" in step.sends for step in plan.steps)


@pytest.mark.parametrize(
    ("there", "remark"),
    [
        ("uid=new", "# s1 has this entry: change that one, do not add it a second time\n"),
        (
            "uid=before",
            "# s1 has this entry as uid=before,dc=example,dc=com: rename or move that one, do not add it a second time\n",
        ),
    ],
)
def test_what_another_server_has_too_is_not_to_be_added_a_second_time(there: str, remark: str, tmp_path: Path) -> None:
    """Seen on 3.1.2: an entry that had been renamed came in a second time, and of one that was there the change did not come."""
    files = shown_by_one(True)
    made = entry(there, 2).replace(csn(1, 1), csn(5, 1))
    files["s1.entries.ldif"] = export(elements(claims(r1=(1, 20), r2=(1, 10))), [entry("uid=old", 1), made])
    plan = plan_for(case_of(tmp_path, files), only=["s2"], ways=[WAY])
    (saving,) = (step for step in plan.steps if step.repair == "save")
    assert remark in saving.sends and "dn: uid=new," in saving.sends, saving.sends


def test_what_a_log_has_is_not_said_to_be_in_no_log(tmp_path: Path) -> None:
    """Seen on 3.1.2: a way that fills one server after another took changes from the next one that three logs have."""
    files = shown_by_one(True)
    files["s1.changelog.ldif"] = changelog([csn(15, 1), csn(20, 1), csn(20, 2)], purge=[csn(12, 1), csn(10, 2)])
    plan = plan_for(case_of(tmp_path, files))
    said = [course.refused for course in plan.courses] + [step.says for step in plan.steps]
    assert not any("no log has" in text for text in said), said
