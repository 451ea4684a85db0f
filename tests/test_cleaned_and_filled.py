"""A replica ID was cleaned, and its server came back: the changes that servers wait for, and fillings that would get stuck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import plain_line
from entry_samples import answered, entry, export
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica
from test_cleaned_away import DROPS, told

from workbench import diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.cleaned_origins import CLEANED_HERE
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import models_of, plan
from workbench.rules.repair_model import Model, initialise
from workbench.rules.vectors import last

HAD, FIRST, LAST = csn(3, 9), csn(30, 9), csn(40, 9)
RELEASED = "INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid 9): Successfully cleaned rid(9)"
STARTED = "INFO - main - 389-Directory/2.3.1 B2022.272.1534 starting up"
OWN = claims(r1=(1, 50), r2=(1, 50))
BOTH = [csn(1, 1), csn(1, 2), csn(50, 1), csn(50, 2)]


def came_back(*, restarted: bool = False, dropped: bool = False) -> dict[str, Any]:
    """s1 feeds hub s4. Both took HAD and cleaned ID 9 at 20 s; s9, which makes changes as it, came back with FIRST and LAST.

    The log of s9 begins behind the first change of its ID, at which every session of it would have to begin.
    restarted  s4 was started at 60 s
    dropped    s4 answered FIRST with success at 31 s
    """
    took = "".join(answered(3, "uid=u,ou=people", one, replicated=True) for one in (HAD,))
    lines = plain_line(20, f"INFO - {DROPS}") + (plain_line(60, STARTED) if restarted else "")
    return {
        "s1.replica.ldif": replica(1, elements({**OWN, 9: None})),
        "s1.changelog.ldif": changelog(BOTH, own_entries=True),
        "s1.agreements.ldif": agreement("s1-to-s4", 38904) + agreement("s1-to-s9", 38909),
        "s1.access.log": took,
        "s1.errors.log": plain_line(20, RELEASED) + listening("s1", 1),
        "s9.replica.ldif": replica(9, elements({**OWN, 9: (csn(1, 9), LAST)})),
        "s9.changelog.ldif": changelog([HAD, FIRST, LAST, *BOTH[2:]], own_entries=True),
        "s9.agreements.ldif": agreement("s9-to-s1", 38901),
        "s9.errors.log": listening("s9", 9),
        "s4.replica.ldif": replica(65535, elements(OWN)),
        "s4.changelog.ldif": changelog(BOTH, own_entries=True),
        "s4.access.log": took + (answered(31, "uid=u,ou=people", FIRST, replicated=True) if dropped else ""),
        "s4.errors.log": listening("s4", 4) + lines,
    }


def listening(name: str, number: int) -> str:
    return (
        f"\t389-Directory/2.3.1 B2022.300.0000\n\tlocalhost.localdomain:{38900 + number} (/etc/dirsrv/slapd-{name})\n\n"
    )


def waits(found: dict[str, Any]) -> dict[str, int]:
    return {row["server"]: row["count"] for row in found["pending"] if row["origin"] == "9"}


def test_a_server_waits_for_nothing_that_it_took_before_it_cleaned_the_id(tmp_path: Path) -> None:
    """s9 still claims the ID and feeds s1: what it has since then is all that s1 waits for."""
    case = case_of(tmp_path, came_back())
    found = diagnose(case)
    assert waits(found) == {"s1": 2, "s4": 2}
    assert told(case, HAD) == ("present", "applied")
    assert told(case, FIRST)[0] == told(case, LAST)[0] == "pending"
    before = {row["server"]: row["pending"] for row in plan(case).before}
    model = models_of(case)[next(iter(models_of(case)))]
    lacks = {name: model.changes(lack for lack in model.pending() if lack.server == name) for name in before}
    assert lacks == before == {"s1": 2, "s4": 2, "s9": 0}


def test_no_server_is_filled_that_ignores_an_id_which_the_source_claims(tmp_path: Path) -> None:
    case = case_of(tmp_path, came_back())
    planned = plan(case)
    fills = [one for one in planned.courses if "initialise s4" in one.says]
    assert fills and not any(step.repair == "initialise" and step.server == "s4" for step in planned.steps)
    for course in fills:
        assert not course.proven and "s4 cleaned replica ID 9 and ignores it until it is restarted" in course.refused
        assert "Restart s4 first, then collect and plan anew" in course.refused
    advised = [fix["repair"] for one in diagnose(case)["findings"] for fix in one["fix"]]
    assert any("initialise s4" in repair for repair in advised)
    assert all(
        advised[at - 1] == "restart s4 first, and collect again" for at, x in enumerate(advised) if "initialise s4" in x
    )


def test_a_server_that_was_restarted_is_filled(tmp_path: Path) -> None:
    planned = plan(case_of(tmp_path, came_back(restarted=True)))
    filled = [step.server for step in planned.steps if step.repair == "initialise"]
    assert filled == ["s1", "s4"], [(one.says, one.refused) for one in planned.courses]
    assert not [one for one in planned.courses if "Restart s4" in one.refused]
    advised = [
        fix["repair"]
        for one in diagnose(case_of(tmp_path / "2", came_back(restarted=True)))["findings"]
        for fix in one["fix"]
    ]
    assert not any("restart s4" in repair for repair in advised)


def test_the_vector_that_comes_with_new_data_lacks_what_the_server_ignores(tmp_path: Path) -> None:
    for restarted in (False, True):
        (model,) = models_of(case_of(tmp_path / str(restarted), came_back(restarted=restarted))).values()
        assert isinstance(model, Model)
        initialise(model, "s9", "s4")
        assert bool(last(model.servers["s4"].vector, "9")) is restarted and model.servers["s4"].holds


def test_what_was_answered_and_dropped_proves_nothing_after_the_restart(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, came_back(restarted=True, dropped=True)))
    assert waits(found)["s4"] == 2


@pytest.mark.parametrize("alike", [True, False])
def test_a_server_whose_entries_are_all_as_on_another_one_lacks_nothing(alike: bool, tmp_path: Path) -> None:
    """s4 got the data of s9, and its vector has no element of the ID that it ignored until then."""
    files = came_back(restarted=True)
    files["s9.entries.ldif"] = export(elements({**OWN, 9: (csn(1, 9), LAST)}), entries(True))
    files["s1.entries.ldif"] = export(elements({**OWN, 9: None}), entries(False))
    files["s4.entries.ldif"] = export(elements(OWN), entries(alike))
    found = diagnose(case_of(tmp_path, files))
    assert waits(found) == ({"s1": 2} if alike else {"s1": 2, "s4": 2})
    assert ("s1, s4" in headline(found)) is not alike


def entries(new: bool) -> list[str]:
    """Two entries; what FIRST and LAST did, is overwritten or carries another position."""
    more = [f"mail;vucsn-{LAST}: a@example.com"] if new else []
    return [entry("uid=u,ou=people", 1, f"sn;vucsn-{csn(1, 1)}: u", *more)]


IMPORTED = (
    "INFO - bdb_import_main - import userroot: Import complete.  Processed 12 entries in 1 seconds. (12.00 entries/sec)"
)


@pytest.mark.parametrize(("taken", "imported", "count"), [(31, 25, 1), (26, 28, 3), (None, 25, 3)])
def test_what_new_data_were_ahead_of_before_a_cleaning_is_not_waited_for(
    taken: int | None, imported: int, count: int, tmp_path: Path
) -> None:
    """s1 imported its own export, took a change of ID 9 into that, and cleaned the ID: its vector covered all up to that change.

    Seen on 3.1.2: of 1,167 changes 64 were lacking, and all were said to wait since the first one.
    """
    files = came_back()
    lines = [(imported, IMPORTED), (35, RELEASED)]
    files["s1.errors.log"] = "".join(plain_line(*line) for line in lines) + listening("s1", 1)
    files["s1.access.log"] = answered(3, "uid=u,ou=people", HAD, replicated=True)
    if taken:
        files["s1.access.log"] += answered(taken, "uid=u,ou=people", FIRST, replicated=True)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert waits(found)["s1"] == count
    first = {row["server"]: row["first"] for row in found["pending"] if row["origin"] == "9"}
    assert first["s1"] == (LAST if taken == 31 else HAD)
    verdict = {row["server"]: (row["verdict"], row["rule"]) for row in story(case, HAD)["servers"]}
    assert verdict["s1"] == (("unknown", CLEANED_HERE) if taken == 31 else ("pending", "not_covered"))
