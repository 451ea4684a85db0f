"""A server that was restored, and alone holds a change that it cannot send: nobody is to be filled from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from entry_samples import entry, export, logged, mesh
from mesh_samples import agreement, case_of, claims, csn, elements, replica
from planning_samples import MADE as OF_ONE
from planning_samples import READ_ONLY, server, stamps

from workbench.diagnosing.diagnosis import diagnose
from workbench.diagnosing.diagnosis_text import headline
from workbench.repairs.planning import plan

MADE = {number: csn(20 + number, 2) for number in (1, 2)}
ALONE = csn(60, 2)


def made_by_s2(number: int, position: str) -> str:
    return entry(f"uid=t{number}", number, f"sn: t{number}").replace(csn(1, 1), position)


def restored() -> dict[str, Any]:
    """s2 made t1 and t2, was restored to a time before, lost its log, and made t9."""
    known = [made_by_s2(number, position) for number, position in MADE.items()]
    alone = made_by_s2(9, ALONE)
    files: dict[str, Any] = mesh({"r1": (1, 1), "r2": (5, 22), "r3": (2, 2)}, {"s1": known, "s2": [], "s3": known}, {})
    ahead = elements(claims(r1=(1, 1), r2=(5, 60), r3=(2, 2)))
    files["s2.replica.ldif"], files["s2.entries.ldif"] = replica(2, ahead), export(ahead, [alone])
    log = "".join(
        logged(position, number, f"uid=t{number}", f"uid: t{number}\n", "add") for number, position in MADE.items()
    )
    files["s1.changelog.ldif"] = files["s3.changelog.ldif"] = log
    files["s2.changelog.ldif"] = logged(
        ALONE, 9, "uid=t9", "add: objectClass\nobjectClass: person\n-\nadd: uid\nuid: t9\n-\n", "add"
    )
    return files


def test_its_change_is_written_again_and_nobody_is_filled_from_it(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, restored()))
    first = headline(found)
    assert first.startswith("Nothing goes from s2 to s1 and s3: ") and "2 changes are MISSING on s2" in first
    assert "1 is stranded on s2" in first
    stuck = [one for one in found["findings"] if one["code"] in ("ANCHOR_MISSING", "ANCHOR_PURGED", "REINIT_REQUIRED")]
    assert {one["code"] for one in stuck} > {"REINIT_REQUIRED"} and len(stuck) == 4
    for one in stuck:
        (fix,) = one["fix"]
        assert fix["repair"].startswith(
            "save 1 change from the changelog of s2, initialise s2 from a server that has what s2 lacks"
        )
        assert "from s2: " in fix["caution"] and fix["caution"].startswith("do not initialise ")


def test_the_plan_saves_it_and_fills_its_server(tmp_path: Path) -> None:
    planned = plan(case_of(tmp_path, restored()))
    assert [(step.repair, step.server) for step in planned.steps] == [("save", "s2"), ("initialise", "s2")]
    assert ALONE in planned.steps[0].sends


def test_where_the_holder_lacks_nothing_it_may_fill_the_others(tmp_path: Path) -> None:
    files = restored()
    everything = [*(made_by_s2(number, position) for number, position in MADE.items()), made_by_s2(9, ALONE)]
    files["s2.entries.ldif"] = export(elements(claims(r1=(1, 1), r2=(5, 60), r3=(2, 2))), everything)
    found = diagnose(case_of(tmp_path, files))
    required = [one for one in found["findings"] if one["code"] == "REINIT_REQUIRED"]
    assert [one["fix"][0]["repair"].startswith(f"initialise {one['server']} from s2") for one in required] == [
        True,
        True,
    ]


def trimmed_away() -> dict[str, str]:
    """s1 waits for changes of s2, whose log begins behind the record that a session with s1 needs; h1 gets all from s1."""
    behind, ahead = claims(r1=(0, 9), r2=(0, 3)), claims(r1=(0, 9), r2=(0, 9))
    first, theirs = stamps(2, 0, 1, 2, 3), stamps(2, 8, 9)
    purge = [f"{{replica 2 ldap://localhost:38902}} {csn(7, 2)}"]
    return {
        **server("s1", 1, behind, [*OF_ONE, *first], agreement("s1-to-s2", 38902) + agreement("s1-to-h1", 38950)),
        **server("s2", 2, ahead, [*OF_ONE, *theirs], agreement("s2-to-s1", 38901), purge=purge),
        **server("h1", READ_ONLY, behind, [*OF_ONE, *first], agreement("h1-to-c1", 38951), port=50),
        **server("c1", READ_ONLY, behind, None, port=51),
    }


def test_whoever_a_filled_server_could_send_nothing_to_is_filled_in_turn(tmp_path: Path) -> None:
    """The log of a filled server begins anew: h1 is behind its data, so no session with h1 could begin any more."""
    planned = plan(case_of(tmp_path, dict(trimmed_away())))
    (chosen,) = (one for one in planned.courses if one.chosen and one.need == "REINIT_REQUIRED s1")
    assert chosen.says == "initialise s1 from s2, then initialise h1 from s1, then initialise c1 from h1"
    assert [step.key for step in planned.steps] == [
        "1-initialise-s1-from-s2",
        "2-initialise-h1-from-s1",
        "3-initialise-c1-from-h1",
    ]
    assert all(row["missing"] == row["pending"] == 0 for row in planned.after)
