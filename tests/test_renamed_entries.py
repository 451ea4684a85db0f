"""Entries that two suppliers renamed at the same time: a value of the name stays on one of them, and nothing sends it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from entry_samples import export, logged, mesh
from mesh_samples import SUFFIX, case_of, claims, csn, elements

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.systems.ds389.live.entry_executors import Rewrite

FIRST, SECOND, AWAY, BACK = csn(20, 2), csn(21, 1), csn(40, 2), csn(42, 2)


def step_of(position: str, number: int = 1) -> str:
    """The CSN of a step inside a change."""
    return f"{position[:16]}{number:04x}"


def renamed(*names: str) -> str:
    """The entry with these lines of its naming attribute."""
    made = csn(1, 1)
    head = f"dn: uid=d2y,{SUFFIX}\nobjectClass;vucsn-{made}: person\nnsUniqueId: 2-2-2-1\n"
    return head + "".join(f"uid;{line}\n" for line in names) + "\n"


def conflict(*, renamed_since: bool) -> dict[str, str | bytes]:
    """s2 named it d2x, s1 d2y a second later; each did so before it heard of the other, and the second name stayed.

    What the first name was is taken away on no server: s2 keeps the value d2x, which nobody else has. `renamed_since`: s2 gave
    the entry another name and then d2y again, which changes nothing of that.
    """
    last = f"vucsn-{step_of(BACK if renamed_since else SECOND)}"
    second = f"mdcsn-{BACK if renamed_since else SECOND}"
    before = f"vucsn-{csn(1, 1)};mdcsn-{csn(1, 1)};vdcsn-{SECOND};deleted: d2"
    away = f"vucsn-{step_of(AWAY)};mdcsn-{AWAY};vdcsn-{BACK};deleted: tmpn"
    gone = [before, away] if renamed_since else [before]
    vdcsn = f";vdcsn-{AWAY}" if renamed_since else ""
    here = renamed(f"{last};{second}: d2y", *gone)
    alone = renamed(f"vucsn-{step_of(FIRST)};mdcsn-{FIRST}: d2x", f"{last};{second}{vdcsn}: d2y", *gone)
    log = logged(FIRST, 1, "uid=d2", "newrdn: uid=d2x\ndeleteoldrdn: true", "modrdn")
    log += logged(SECOND, 1, "uid=d2", "newrdn: uid=d2y\ndeleteoldrdn: true", "modrdn")
    if renamed_since:
        log += logged(AWAY, 1, "uid=d2y", "newrdn: uid=tmpn\ndeleteoldrdn: true", "modrdn")
        log += logged(BACK, 1, "uid=tmpn", "newrdn: uid=d2y\ndeleteoldrdn: true", "modrdn")
    log += logged(csn(60, 1), 1, "uid=d2y", "replace: sn\nsn: x\n-\n")
    logs = dict.fromkeys(("s1", "s2", "s3"), log)
    last_of_s2 = 42 if renamed_since else 20
    return mesh(
        {"r1": (1, 60), "r2": (20, last_of_s2), "r3": (1, 1)}, {"s1": [here], "s2": [alone], "s3": [here]}, logs
    )


@pytest.mark.parametrize("renamed_since", [False, True])
def test_a_value_of_a_name_that_one_server_alone_kept_is_missing_on_the_others(
    renamed_since: bool, tmp_path: Path
) -> None:
    """The mark of what made a value that is gone now removed nothing: s2 shows its own renaming and the one that undid it."""
    found = diagnose(case_of(tmp_path, conflict(renamed_since=renamed_since)))
    assert {(row["server"], row["position"]) for row in found["missing"]} == {("s1", FIRST), ("s3", FIRST)}
    fixes = [one["fix"][0] for one in found["findings"] if one["code"] == "MISSED_CHANGE"]
    assert fixes
    for fix in fixes:
        assert fix["repair"].startswith("write the present values of the entries concerned once more on s2")
        assert "another name" not in fix["repair"] and "no renaming would send" in fix["why"]


@pytest.mark.parametrize(
    ("lines", "done"),
    [
        ([f"uid;vucsn-{step_of(FIRST)};mdcsn-{FIRST}: d2x", f"uid;vucsn-{step_of(BACK)}: d2y"], False),
        ([f"uid;adcsn-{step_of(BACK)};vucsn-{step_of(BACK)}: d2y"], False),
        ([f"uid;vucsn-{step_of(FIRST)}: d2x", f"uid;vucsn-{csn(50, 2)}: d2y"], False),
        ([f"uid;adcsn-{csn(50, 1)};vucsn-{csn(50, 1)}: d2y"], False),
        ([f"uid;adcsn-{csn(50, 2)};vucsn-{csn(50, 2)}: d2y", f"uid;vucsn-{csn(50, 2)}: d2x"], True),
    ],
)
def test_only_what_replaced_all_values_is_the_writing_of_a_step(lines: list[str], done: bool) -> None:
    """A step of the last change before, a renaming since, and what another server replaced are not what the step writes."""
    entry = SimpleNamespace(texts=lambda name: lines)
    server = SimpleNamespace(search=lambda *_, **__: [entry])
    servers: Any = SimpleNamespace(origin=lambda suffix, name: "2", connected=lambda name: nullcontext(server))
    details = {"dn": f"uid=d2y,{SUFFIX}", "values": {"uid": ["d2x", "d2y"]}, "hidden": []}
    step: Any = SimpleNamespace(details=details, suffix=SUFFIX, on="s2")
    assert Rewrite().done(servers, step, {"own": BACK}) is done


ADDED, RENAMED, REMOVED_AT = csn(10, 1), csn(20, 1), csn(30, 1)


def renamed_and_gone(*, deleted: bool) -> dict[str, str | bytes]:
    """s1 added uid=c0, named it m0, and deleted it or not; s2 logs nothing, and has no such entry and no trace of one.

    A cleaning took the element of s1 out of the vector in its own entries: no comparison shows what s1 has.
    """
    name = f"nsuniqueid=2-2-2-1,uid=m0,{SUFFIX}" if deleted else f"uid=m0,{SUFFIX}"
    state = f"objectClass;vucsn-{REMOVED_AT}: nsTombstone\n" if deleted else ""
    here = (
        f"dn: {name}\nobjectClass;vucsn-{ADDED}: person\n{state}uid;vucsn-{step_of(RENAMED)};mdcsn-{RENAMED}: m0\n"
        f"uid;vucsn-{ADDED};mdcsn-{ADDED};vdcsn-{RENAMED};deleted: c0\nnsUniqueId: 2-2-2-1\n\n"
    )
    log = logged(ADDED, 1, "uid=c0", "add: uid\nuid: c0\n-\n", "add")
    log += logged(RENAMED, 1, "uid=c0", "newrdn: uid=m0\ndeleteoldrdn: true", "modrdn")
    log += logged(REMOVED_AT, 1, "uid=m0", "", "delete") if deleted else ""
    log += logged(csn(60, 1), 2, "uid=x", "replace: sn\nsn: x\n-\n")
    files = mesh({"r1": (1, 60), "r2": (1, 1)}, {"s1": [here], "s2": []}, {"s1": log})
    return files | {"s1.entries.ldif": export(elements(claims(r2=(1, 1))), [here])}


@pytest.mark.parametrize("deleted", [True, False])
def test_of_an_entry_that_was_renamed_and_then_deleted_nothing_is_missing(deleted: bool, tmp_path: Path) -> None:
    """Its tombstone keeps the value of the former name, with the marks of the addition and of the renaming."""
    found = diagnose(case_of(tmp_path, renamed_and_gone(deleted=deleted)))
    about = {row["position"] for row in found["missing"]}
    assert not about & {ADDED, RENAMED, REMOVED_AT} if deleted else {ADDED, RENAMED} <= about
