"""A change whose text no log has: what another server shows of it that applied it and has run since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import plain_line, read_at
from entry_samples import answered, entry, logged, mesh
from mesh_samples import case_of, changelog, csn

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story

STARTS = "INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up"
MADE, NEWER, NEWEST = csn(20, 2), csn(40, 1), csn(60, 1)


def behind(started: int = 5, title: str = NEWEST, mail: str = csn(1, 1)) -> dict[str, Any]:
    """s3 applied a change of anna at 20 that s1 and s2 never got, and its title was replaced at 40; that of s1 and s2 at 60.

    started  when s3 last started
    title    what last replaced the title on s1 and s2
    mail     the last change of the mail on s3
    """

    def anna(at: str, of_mail: str) -> str:
        replaced = f"mail;adcsn-{of_mail};vucsn-{of_mail}: a@example.com"
        return entry("uid=anna", 1, f"title;adcsn-{at};vucsn-{at}: by {at}", replaced)

    there, here = anna(NEWER, mail), anna(title, csn(1, 1))
    marks = [csn(30, 1), csn(30, 2)]
    body = "replace: title\ntitle: by {0}\n-\n"
    logs = {
        one: changelog([], marks=marks) + logged(NEWEST, 1, "uid=anna", body.format(NEWEST)) for one in ("s1", "s2")
    }
    files = mesh({"r1": (1, 60), "r2": (1, 30)}, {"s1": [here], "s2": [here], "s3": [there]}, logs)
    for name in ("s1", "s2"):
        files[f"{name}.access.log"] = answered(2, "uid=x", csn(2, 1)) + answered(61, "uid=anna", NEWEST)
        files[f"{name}.errors.log"] = plain_line(1, STARTS)
    files["s3.access.log"] = "".join(answered(at, "uid=anna", csn(at, rid), True) for at, rid in ((20, 2), (40, 1)))
    files["s3.errors.log"] = plain_line(started, STARTS)
    return read_at(files, 90)


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, "present"),
        ({"started": 30}, "unknown"),  # it may have been killed, and have lost it
        ({"title": csn(10, 1)}, "unknown"),  # nothing replaced the title there
        ({"mail": csn(50, 1)}, "unknown"),  # the change may have been one of the mail, which stayed as it was elsewhere
    ],
    ids=["replaced on both sides", "started since", "not replaced", "another attribute"],
)
def test_what_was_replaced_wherever_it_may_be_lacking_is_no_loss(
    more: dict[str, Any], verdict: str, tmp_path: Path
) -> None:
    """Seen on 2.3.1: two stuck servers were filled by no plan, for a value that they did not have any more."""
    told = story(case_of(tmp_path, behind(**more)), MADE)["servers"]
    assert {one["server"]: one["verdict"] for one in told} == {"s1": verdict, "s2": verdict, "s3": "present"}


def test_two_servers_are_not_told_to_fill_each_other(tmp_path: Path) -> None:
    """Each alone shows an entry that no log has any more: filled from the other one, it would lose that."""
    five, six = (entry(f"uid={name}", at, "sn: x").replace(csn(1, 1), csn(at, rid)) for name, at, rid in ADDED)
    log = changelog([csn(20, 1), csn(20, 2)], marks=[csn(19, 1), csn(19, 2)])
    files = mesh({"r1": (1, 20), "r2": (1, 20)}, {"s1": [five], "s2": [six]}, {"s1": log, "s2": log})
    for number, (name, at, rid) in enumerate(ADDED, 1):
        files[f"s{number}.access.log"] = answered(at, f"uid={name}", csn(at, rid), operation="ADD")
    found = diagnose(case_of(tmp_path, files))
    missed = [one for one in found["findings"] if one["code"] == "MISSED_CHANGE"]
    assert {
        (one["server"], *row["shown_by"])
        for one in missed
        for row in found["missing"]
        if row["server"] == one["server"]
    } == {
        ("s1", "s2"),
        ("s2", "s1"),
    }
    for one in missed:
        (step,) = one["fix"]
        assert step["repair"].startswith("save the entries that were added") and "switch off" not in step["repair"]
        assert "initialise" not in step["repair"]
        assert "would lose these" in step["why"] and "new unique IDs" in step["caution"]


ADDED = (("five", 5, 1), ("six", 6, 2))


def renamed(started: int = 5, by: str = NEWEST, name: str = "d2y", later: int = 70) -> dict[str, Any]:
    """s3 applied a renaming of uid=d2 at 20 that s1 and s2 never got; the values of uid were replaced everywhere at 60.

    started  when s3 last started
    by       the change that made the value d2x on s3; where it was not that at 60, nothing was replaced, and s1 and s2 lack it
    name     how the entry is named there
    later    the change that made a value of another entry which s3 alone has
    """

    def shown(rdn: str, *lines: str) -> str:
        made = f"dn: uid={rdn},dc=example,dc=com\nobjectClass;vucsn-{csn(1, 1)}: person\nnsUniqueId: 2-2-2-1\n"
        replaced = f"adcsn-{NEWEST};" if by == NEWEST else ""
        return made + f"uid;{replaced}vucsn-{NEWEST}: d2y\n" + "".join(f"uid;vucsn-{line}\n" for line in lines) + "\n"

    here = shown(name, *([f"{NEWEST}: d2x"] if by == NEWEST else []))
    other = entry("uid=berta", 2)
    on_s3 = entry("uid=berta", 2, f"title;vucsn-{csn(later, 3)}: new")
    marks = [csn(30, 1), csn(30, 2), csn(30, 3)]
    logs = {name: changelog([], marks=marks) + logged(csn(61, 1), 2, "uid=x", "replace: sn\nsn: x\n-\n")
            for name in ("s1", "s2")}  # fmt: skip
    entries = {"s1": [here, other], "s2": [here, other], "s3": [shown("d2y", f"{by}: d2x"), on_s3]}
    files = mesh({"r1": (1, 61), "r2": (1, 30), "r3": (1, 30)}, entries, logs)
    more = mesh({"r1": (1, 61), "r2": (1, 30), "r3": (1, 80)}, entries, logs)
    files |= {one: more[one] for one in ("s3.replica.ldif", "s3.entries.ldif")}
    for one in ("s1", "s2"):
        files[f"{one}.access.log"] = answered(2, "uid=x", csn(2, 1)) + answered(61, "uid=x", csn(61, 1))
        files[f"{one}.errors.log"] = plain_line(1, STARTS)
    files["s3.access.log"] = answered(20, "uid=d2", MADE, True, operation="MODRDN") + answered(
        61, "uid=x", csn(61, 1), True
    )
    files["s3.errors.log"] = plain_line(started, STARTS)
    return read_at(files, 90)


@pytest.mark.parametrize(
    ("more", "present"),
    [
        ({}, True),
        ({"started": 30}, False),  # it may have been killed, and have lost it
        ({"by": MADE}, False),  # what the renaming made may be lacking there
        ({"name": "d2"}, False),  # there the entry bears the old name
        ({"later": 10}, False),  # the value that s3 alone has may be what the change made
    ],
    ids=["overwritten on both sides", "started since", "a value less", "not renamed", "apart before"],
)
def test_a_renaming_that_was_overwritten_everywhere_is_lacking_nowhere(
    more: dict[str, Any], present: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: for a renaming that lost against another one, and was written over since, no server was filled."""
    told = story(case_of(tmp_path, renamed(**more)), MADE)["servers"]
    verdicts = {one["server"]: one["verdict"] for one in told}
    assert {verdicts["s1"] == "present", verdicts["s2"] == "present"} == {present}, verdicts
