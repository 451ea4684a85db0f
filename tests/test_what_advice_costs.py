"""Advice that says what it costs: fillings that are broken off, changes of one server alone, and suppliers that are cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, zulu
from entry_samples import answered, entry, export
from link_samples import line
from mesh_samples import SUFFIX, agreement, case_of, csn, elements, pair_of_servers, replica
from planning_samples import stranded
from test_cleaned_and_filled import LAST, OWN, came_back
from test_no_false_comfort import REFUSED
from test_silent_servers import _with_failed

from workbench import diagnose
from workbench.diagnosis.before_replacing import with_what_goes
from workbench.diagnosis.case_diagnosis import context_of
from workbench.diagnosis.diagnosis_text import headline
from workbench.model import Finding, step
from workbench.repair.planner import plan

Files = dict[str, Any]
OFFLINE = (
    "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is going offline; disabling "
    "replication"
)


def steps(found: dict[str, Any], code: str, server: str | None = None) -> list[dict[str, str]]:
    return [
        fix
        for one in of(code, found["findings"])
        if server in (None, one["server"], *one["servers"])
        for fix in one["fix"]
    ]


# --- a server that is being filled


def filled_now(filled: str = "s4") -> Files:
    """s4 cleaned ID 9, and drops its changes until it is restarted; s9 is filling it, or it fills s9."""
    files, by = came_back(), "s9" if filled == "s4" else "s4"
    links = files.get(f"{by}.agreements.ldif", "")
    links = links if f"{by}-to-{filled}" in links else links + agreement(f"{by}-to-{filled}", 38900 + int(filled[1]))
    files[f"{by}.agreements.ldif"] = links.rstrip("\n") + (
        f"\nnsds5replicaLastInitStatus: Error (0) Total update in progress\nnsds5replicaLastInitStart: {zulu(70)}\n"
        "nsds5replicaLastInitEnd: 19700101000000Z\nnsds5BeginReplicaRefresh: start\n\n"
    )
    files[f"{filled}.errors.log"] += line(70, OFFLINE)
    return files


@pytest.mark.parametrize("filled", ["s4", "s9"])
def test_a_server_that_takes_part_in_a_filling_is_restarted_afterwards(filled: str, tmp_path: Path) -> None:
    case = case_of(tmp_path, filled_now(filled))
    found = diagnose(case)
    assert of("INITIALISATION_RUNNING", found["findings"])
    (back,) = steps(found, "CLEANED_ORIGIN_BACK")
    assert back["repair"].startswith(
        f"wait until {filled} is filled (INITIALISATION_RUNNING), then restart s4, if s9 is meant"
    )
    assert f"a restart breaks the filling of {filled} off" in back["caution"]
    said = [text for text in plan(case).open if "restart s4" in text]
    assert said
    assert all(f"once the filling of {filled} has ended, restart s4" in text for text in said), said


def test_a_server_that_is_not_being_filled_is_restarted_at_once(tmp_path: Path) -> None:
    (back,) = steps(diagnose(case_of(tmp_path, came_back())), "CLEANED_ORIGIN_BACK")
    assert back["repair"].startswith("restart s4, if s9 is meant to take part")


def test_only_who_is_restarted_has_to_be_filled_before(tmp_path: Path) -> None:
    """s1 fills s9, which the advice for s4 names, too."""
    files = came_back()
    files["s1.agreements.ldif"] = files["s1.agreements.ldif"].rstrip("\n") + (
        f"\nnsds5replicaLastInitStatus: Error (0) Total update in progress\nnsds5replicaLastInitStart: {zulu(70)}\n"
        "nsds5replicaLastInitEnd: 19700101000000Z\n\n"
    )
    files["s9.errors.log"] += line(70, OFFLINE)
    found = diagnose(case_of(tmp_path, files))
    assert [one["server"] for one in of("INITIALISATION_RUNNING", found["findings"])] == ["s9"]
    assert not [fix for fix in steps(found, "CLEANED_ORIGIN_BACK") if "wait until" in fix["repair"]]


# --- a server that misses a change and alone holds others


@pytest.mark.parametrize("known", [True, False])
def test_who_is_to_be_initialised_and_alone_holds_changes_is_told_to_save_them(known: bool, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, stranded(known)))
    count = sum(row["server"] == "s2" for row in found["stranded"])
    first, missed = steps(found, "MISSED_CHANGE", "s2")
    assert first["repair"].startswith("first save from s2 what s1 waits for")
    assert "or initialise s2 from s1" in missed["repair"]
    assert f"to initialise s2 throws away {count} changes that only s2 holds: save them first" in missed["caution"]


@pytest.mark.parametrize(
    ("words", "added"),
    [
        ("first save its 3 changes", False),
        ("it throws away 3 changes", False),
        ("3 changes that only s2 holds go with it", False),
        ("3 changes of s2 are lost by it", False),
        ("it would lose 3 changes", False),
        ("an initialisation replaces all data", True),
        ("what only s1 holds stays", True),
    ],
)
def test_advice_that_says_already_what_is_lost_does_not_say_it_twice(words: str, added: bool, tmp_path: Path) -> None:
    context, _ = context_of(case_of(tmp_path, stranded(True)))
    assert len([row for row in context.verdicts.stranded if row["server"] == "s2"]) == 3
    advice = Finding("X", "error", "x", server="s2", suffix=SUFFIX, fix=(step("initialise s2 from s1", "y", words),))
    (found,) = with_what_goes(context, [advice])
    (fix,) = found.fix
    more = "; to initialise s2 throws away 3 changes that only s2 holds: save them first (STRANDED_CHANGE)"
    assert fix["caution"] == words + (more if added else "")


# --- a server without entries whose access log shows changes


def emptied_with_access_log(*made: int) -> Files:
    files: Files = dict(pair_of_servers(9, 9))
    files["s2.replica.ldif"] = replica(2, elements({2: None}, generation="66ffabcd000000020000"))
    files["s2.access.log"] = "".join(answered(at, "uid=u,ou=people", csn(at, 2)) for at in made)
    del files["s2.changelog.ldif"]
    return _with_failed(files, "s2", REFUSED.format("noSuchObject (32)"))


def test_what_only_the_access_log_of_an_empty_server_shows_is_to_be_made_again(tmp_path: Path) -> None:
    case = case_of(tmp_path, emptied_with_access_log(1, 2, 12, 13))
    found, made = diagnose(case), plan(case)
    again, fill = steps(found, "UNRELATED_DATA")
    assert (
        f"make 2 changes of s2 again on another supplier, if still right: {csn(12, 2)} to {csn(13, 2)}"
        in again["repair"]
    )
    assert fill["why"] == "no entry is lost by it: it shows none"
    assert "2 changes of s2 went with its data, and no other collected server has them" in headline(found)
    (said,) = made.open
    assert (
        "make 2 changes of s2 again" in said and "then initialise s2 from s1" in said and "nothing is lost" not in said
    )


def test_an_empty_server_whose_changes_others_have_loses_nothing(tmp_path: Path) -> None:
    case = case_of(tmp_path, emptied_with_access_log(1, 2))
    (fill,) = steps(diagnose(case), "UNRELATED_DATA")
    assert (fill["repair"], fill["why"]) == ("initialise s2 from s1", "nothing is lost by it: it shows none")
    assert "initialise s2 from s1; nothing is lost by it" in str(plan(case).open)


# --- a filling that leaves a supplier cut off


def filled_from_who_names_less() -> Files:
    """s1 waits for changes of s9. s4 has them, and its vector has no element 9; the log of s9 begins behind its first one."""
    files = came_back(restarted=True)
    more = [entry("uid=u,ou=people", 1, f"sn;vucsn-{csn(1, 1)}: u", f"mail;vucsn-{LAST}: a@example.com")]
    less = [entry("uid=u,ou=people", 1, f"sn;vucsn-{csn(1, 1)}: u")]
    files["s4.replica.ldif"] = replica(4, elements({**OWN, 4: None}))
    files["s4.agreements.ldif"] = agreement("s4-to-s1", 38901)
    files["s9.entries.ldif"] = export(elements({**OWN, 9: (csn(1, 9), LAST)}), more)
    files["s1.entries.ldif"] = export(elements({**OWN, 9: None}), less)
    files["s4.entries.ldif"] = export(elements({**OWN, 4: None}), more)
    return files


def test_a_source_that_leaves_a_supplier_cut_off_comes_last(tmp_path: Path) -> None:
    case = case_of(tmp_path, filled_from_who_names_less())
    assert any(one["link"] == "s9-to-s1" for one in of("ANCHOR_PURGED", diagnose(case)["findings"]))
    ways = {one.way: one for one in plan(case).courses}
    assert (ways["initialise-from-s9"].chosen, ways["initialise-from-s9"].costs) == (True, "")
    assert ways["initialise-from-s4"].costs == "nothing that s9 writes afterwards comes to s1"
    assert "costs" not in ways["initialise-from-s9"].why


def test_a_filling_that_leaves_a_supplier_cut_off_has_not_mended_its_anchor(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, filled_from_who_names_less()), ways=["initialise-from-s4"])
    assert made.steps[0].key == "1-initialise-s1-from-s4"
    (left,) = (text for text in made.left if text.startswith("ANCHOR_PURGED s9-to-s1: "))
    assert "no session over s9-to-s1 can begin afterwards; initialise s1 from s9" in left


def test_a_filling_after_which_sessions_begin_has_mended_the_anchor(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, filled_from_who_names_less()))
    assert not [text for text in made.left if "s9-to-s1" in text]
