"""Suppliers that each lack a change which another one has: nobody is filled from a server that lacks what it has itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detector_samples import of
from entry_samples import entry, logged, mesh
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.repair.planner import plan

ENDS = [csn(30, 1), csn(30, 2), csn(30, 3)]
ADDED = {"s1": csn(10, 1), "s2": csn(10, 2)}
"""Who made which of the two entries."""
CHANGED = csn(11, 2)
"""A modification of s2."""
BODY = "objectClass: person\nuid: n\n"


def added(maker: str) -> str:
    """The entry that a server added."""
    return entry(f"uid=of-{maker}", 10 + int(maker[1:])).replace(csn(1, 1), ADDED[maker])


def folder(third: bool = False) -> dict[str, Any]:
    """s1 and s2 each lack the entry that the other one added, and their logs were made anew behind it. A hub has all.

    `third`: there is a supplier s3 that has both entries, and lacks a modification.
    """
    end = "".join(logged(at, 1, "uid=last", "replace: sn\nsn: x\n") for at in ENDS)
    whole = "".join(logged(ADDED[x], 10 + int(x[1:]), f"uid=of-{x}", BODY, "add") for x in ADDED)
    whole += logged(CHANGED, 5, "uid=old", "replace: title\ntitle: new\n") + end
    last = entry("uid=last", 1, *(f"sn;vucsn-{ENDS[0]}: x",))
    old, new = entry("uid=old", 5, f"title;vucsn-{csn(1, 2)}: old"), entry("uid=old", 5, f"title;vucsn-{CHANGED}: new")
    lacks = {"s1": "s2", "s2": "s1"} | ({"s3": ""} if third else {}) | {"s4": ""}
    entries = {
        name: [last, old if name == "s3" else new, *(added(x) for x in ADDED if x != without)]
        for name, without in lacks.items()
    }
    base = changelog([csn(1, 1), csn(1, 2), csn(1, 3)], own_entries=True)
    logs = {
        "s1": changelog([], marks=[csn(12, 1), ADDED["s2"], csn(12, 3)]) + end,
        "s2": changelog([], marks=[ADDED["s1"], csn(12, 2), csn(12, 3)]) + end,
        "s3": changelog([], marks=[csn(12, 1), CHANGED, csn(12, 3)]) + end,
        "s4": base + whole,
    }
    files = mesh({"r1": (1, 30), "r2": (1, 30), "r3": (1, 30)}, entries, logs)
    hub = replica(65535, elements(claims(r1=(1, 30), r2=(1, 30), r3=(1, 30))))
    return files | {"s4.replica.ldif": hub, "s4.agreements.ldif": agreement("s4-to-s5", 38905)}


def said(found: dict[str, Any], server: str) -> str:
    (one,) = (x for x in of("MISSED_CHANGE", found["findings"]) if x["server"] == server)
    return str(one["fix"][-1]["repair"])


def test_where_each_lacks_an_addition_none_is_filled_from_the_other(tmp_path: Path) -> None:
    """The mark of a log that was made anew bears the position of the missing change, and is none."""
    case = case_of(tmp_path, folder())
    found = diagnose(case)
    for server, other in (("s1", "s2"), ("s2", "s1")):
        assert said(found, server).startswith(f"switch off {server}-to-s4, save the entries")
        assert f"delete these on {other}, add them there again once no server has them and switch" in said(
            found, server
        )
    planned = plan(case)
    assert not any("already brought" in note for note in planned.open)
    assert {row["server"]: row["missing"] for row in planned.after} == {"s1": 1, "s2": 1, "s4": 0}
    assert not planned.steps


def test_who_lacks_no_addition_is_mended_first_and_fills_the_others(tmp_path: Path) -> None:
    case = case_of(tmp_path, folder(third=True))
    found = diagnose(case)
    for server in ("s1", "s2"):
        assert said(found, server).startswith(
            f"initialise {server} from s3 as soon as s3 lacks nothing that {server} has"
        )
    planned = plan(case)
    assert [(step.repair, step.server) for step in planned.steps] == [
        ("rewrite", "s1"),
        ("initialise", "s1"),
        ("initialise", "s2"),
    ]
    assert not any(row["missing"] or row["pending"] for row in planned.after)


def test_an_entry_that_another_supplier_may_have_is_not_added_again_before_entries_were_collected(
    tmp_path: Path,
) -> None:
    """s2 made the entry, and the log of s2 began anew. Added on s1, the entry became a conflict on s2 and s4."""
    files = {name: text for name, text in folder().items() if not name.endswith(".entries.ldif")}
    end = "".join(logged(at, 1, "uid=last", "replace: sn\nsn: x\n") for at in ENDS)
    base = changelog([csn(1, 1), csn(1, 2), csn(1, 3)], own_entries=True)
    changed = logged(CHANGED, 5, "uid=old", "replace: title\ntitle: new\n")
    files["s1.changelog.ldif"] = base + logged(ADDED["s1"], 11, "uid=of-s1", BODY, "add") + changed + end
    found = diagnose(case_of(tmp_path, files))
    assert said(found, "s1").startswith("collect with the entries")
