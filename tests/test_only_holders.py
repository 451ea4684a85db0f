"""Changes that one server alone holds, for their maker lost them: said so, and no plan fills that server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from detector_samples import findings, of, plain_line, zulu
from entry_samples import answered, entry, export, logged
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.only_holders import lacking_what_others_have
from workbench.diagnosis.repair_sources import not_judged_on
from workbench.diagnosis.uncertain_losses import MADE_AGAIN
from workbench.repair.planner import plan
from workbench.rules.verdicts import REPLACED, Reset
from workbench.systems.ds389.repairs.links import _brought_by_each

LOST = [csn(second, 3) for second in (10, 11, 12)]
LATER = csn(60, 3)
NOTE = "cn=repl keep alive 3"


def folder(
    *, entries: bool = False, arrived: int = 0, link: str = "s3-to-s2", passed: bool = False, trimmed: bool = False
) -> dict[str, Any]:
    """s3 made the lost changes, which reached s1 alone; s2 initialised s3 in second 20, and s3 made a later one.

    `entries`: those of all servers; the vector in those of s3 ends at its change of second 5. `arrived`: how many of the lost
    ones s2 got. `link`: how the link from s3 to s2 is called. `passed`: s2 got the later one, and so passed over the lost ones.
    `trimmed`: the log of s3 begins at the later one.
    """
    old, others = csn(5, 3), {**claims(r1=(1, 2), r2=(1, 2))}
    base = changelog([csn(1, 1), csn(2, 1), csn(1, 2), csn(2, 2), old], own_entries=True)
    made = [logged(one, int(one[:8], 16), f"uid=n{one[:8]},ou=people", "objectClass: person\n", "add") for one in LOST]
    later = logged(LATER, 9, NOTE, "replace: sn\nsn: x\n")
    reached = {"s1": LOST, "s2": LOST[:arrived] + [LATER] * passed, "s3": [LATER]}
    ruvs = {name: elements({**others, 3: (csn(1, 3), [old, *mine][-1])}) for name, mine in reached.items()}
    begun = f"nsds5replicaLastInitStart: {zulu(20)}\nnsds5replicaLastInitEnd: {zulu(21)}\n"
    files = {
        "s1.changelog.ldif": base + "".join(made),
        "s2.changelog.ldif": base + "".join(made[:arrived]) + later * passed,
        "s3.changelog.ldif": changelog([], marks=[] if trimmed else [csn(2, 1), csn(2, 2), old]) + later,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902, enabled=False) + agreement("s1-to-s3", 38903),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901) + agreement("s2-to-s3", 38903).rstrip("\n") + f"\n{begun}\n",
        "s3.agreements.ldif": agreement("s3-to-s1", 38901) + agreement(link, 38902, enabled=False),
    }
    files |= {f"{name}.replica.ldif": replica(int(name[1:]), ruv) for name, ruv in ruvs.items()}
    if entries:
        noted = [entry(NOTE, 9, *([f"sn;vucsn-{LATER}: x"] if passed else []))]
        added = [entry(f"uid=n{one[:8]},ou=people", int(one[:8], 16)).replace(csn(1, 1), one) for one in LOST]
        shown = {
            "s1": (ruvs["s1"], [entry(NOTE, 9), *added]),
            "s2": (ruvs["s2"], [*noted, *added[:arrived]]),
            "s3": (elements({**others, 3: (csn(1, 3), old)}), [entry(NOTE, 9, f"sn;vucsn-{LATER}: x")]),
        }
        files |= {f"{name}.entries.ldif": export(*one) for name, one in shown.items()}
        files["s3.access.log"] = "".join(answered(int(one[:8], 16) - 0x66000000, "uid=x", one) for one in LOST)
    return files


@pytest.mark.parametrize("entries", [False, True])
def test_the_last_server_with_changes_that_their_maker_lost_is_named(entries: bool, tmp_path: Path) -> None:
    found = findings(tmp_path, folder(entries=entries))
    (hidden,) = of("OWN_CHANGES_HIDDEN", found)
    assert (hidden["server"], hidden["items"]) == ("s3", LOST)
    assert hidden["summary"].endswith("only s1 still holds them")
    assert hidden["root"] == "only s1 still holds 3 own changes that s3 lost"
    saved, filled = (step["repair"] for step in hidden["fix"])
    assert saved.startswith("first save from s3 what s1 waits for")
    assert filled == "initialise s3 from s1, and do not initialise s1 from any server before that"
    for one in (*of("ANCHOR_PURGED", found), *of("REINIT_REQUIRED", found)):
        assert one["fix"][0]["repair"].startswith("do not initialise s1: only s1 holds 3 changes")


def test_a_harmless_change_where_a_log_reaches_further_makes_the_last_holder_whole(tmp_path: Path) -> None:
    """A session from s2 begins at the own change of s2 that s1 claims, and brings the later change of s3: s1 is not filled."""
    files = folder(entries=True, passed=True)
    files |= {name: text.replace("Enabled: off", "Enabled: on") for name, text in files.items() if "agreements" in name}
    case = case_of(tmp_path, files)
    made = plan(case)
    keys = [step.key for step in made.steps]
    assert keys[0] == "1-wake-s2"
    assert not [key for key in keys if "initialise-s1" in key]
    assert {(row["server"], row["missing"], row["pending"]) for row in made.after} == {
        ("s1", 0, 0),
        ("s2", 0, 0),
        ("s3", 0, 0),
    }
    told = diagnose(case)["findings"]
    for finding in of("MISSED_CHANGE", told):
        assert finding["fix"][0]["repair"].startswith(f"first save from {finding['server']} what s1 waits for")
    (hidden,) = of("OWN_CHANGES_HIDDEN", told)
    assert hidden["fix"][0]["repair"].startswith("save 3 changes")


@pytest.mark.parametrize(("of_h", "each"), [({1, 2}, True), ({1}, False)])
def test_no_session_is_woken_where_another_link_may_bring_the_harmless_change_first(of_h: set[int], each: bool) -> None:
    """Seen on 3.1.2: only c had what r lacked; what was written on a reached r over h, and c began nowhere again."""
    feeding = [SimpleNamespace(supplier=by, consumer="r", runs=True) for by in ("c", "h")]
    servers = {"c": SimpleNamespace(holds={1, 2}), "h": SimpleNamespace(holds=of_h)}
    view: Any = SimpleNamespace(model=SimpleNamespace(links=feeding, servers=servers))
    need: Any = SimpleNamespace(server="r", lacks=[SimpleNamespace(lot=2)])
    assert _brought_by_each(view, need) is each


def test_no_session_is_woken_that_may_pass_over_what_no_log_shows(tmp_path: Path) -> None:
    """Changes of s3 between the newest that s1 claims and the first that logs show are in no log: nobody knows of them."""
    files = folder(passed=True, trimmed=True)
    files["s2.changelog.ldif"] = changelog([csn(2, 1), csn(2, 2)], own_entries=True) + logged(
        LATER, 9, NOTE, "replace: sn\nsn: x\n"
    )
    assert "wake-s2" not in {step.key.partition("-")[2] for step in plan(case_of(tmp_path, files)).steps}


@pytest.mark.parametrize("entries", [False, True])
@pytest.mark.parametrize("link", ["s3-to-s2", "a-s3-to-s2"])
def test_no_plan_fills_the_last_server_that_holds_changes(entries: bool, link: str, tmp_path: Path) -> None:
    """Nor does it switch on first, whatever it is called, the link over which s2 would pass over them."""
    made = plan(case_of(tmp_path, folder(entries=entries, link=link)))
    keys = [step.key.partition("-")[2] for step in made.steps]
    assert keys == ["save-s3", "initialise-s3-from-s1", "enable-s1-to-s2", "enable-s3-to-s2"]
    assert all(row["missing"] == row["pending"] == 0 for row in made.after)


def test_the_first_line_begins_with_it(tmp_path: Path) -> None:
    said = headline(diagnose(case_of(tmp_path, folder())))
    assert said.startswith("Only s1 still holds 3 own changes that s3 lost; nothing goes from s3 to s1"), said


def test_no_plan_fills_it_where_nothing_tells_who_filled_the_maker(tmp_path: Path) -> None:
    """The log of s3 was made anew when it was filled: what lies behind its marks did not come with the data."""
    files = folder()
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901) + agreement("s2-to-s3", 38903)
    begun = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is going offline"
    ended = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
    files["s3.errors.log"] = plain_line(20, f"{begun}; disabling replication") + plain_line(21, ended)
    case = case_of(tmp_path, files)
    assert not [row for row in diagnose(case)["missing"] if row["server"] == "s3"]
    made = plan(case)
    assert not [step.key for step in made.steps if "initialise-s1" in step.key]
    refused = {course.way: course.refused for course in made.courses if course.need == "PENDING_CHANGES s1"}
    assert "3 changes" in refused["initialise-from-s3"]


def test_a_link_that_would_pass_over_changes_stays_off(tmp_path: Path) -> None:
    found = findings(tmp_path, folder())
    told = {one["link"]: one for one in of("LINK_DISABLED", found)}
    assert {link: one["waiting"] for link, one in told.items()} == {"s1-to-s2": 3, "s3-to-s2": 1}
    assert told["s1-to-s2"]["fix"][0]["repair"].startswith("switch it on")
    assert told["s3-to-s2"]["fix"][0]["repair"] == (
        "leave it off until s2 has the 3 changes of origin 3 that s3 lacks and others have: first do what LINK_DISABLED says on "
        "s1-to-s2"
    )
    waits = {(one["server"], one["origin"]): one for one in of("PENDING_CHANGES", found)}
    assert "because the link s1-to-s2 does not run" in waits["s2", "3"]["summary"]
    assert [fix["why"] for fix in waits["s2", "3"]["fix"]] == [f"those up to {LOST[-1]} arrive as soon as it runs"]
    # s2 has nothing new for s1 now, and passes on what it gets: sessions with s1 begin.
    assert waits["s1", "3"]["fix"][0]["repair"] == "do what LINK_DISABLED says on s3-to-s2"
    assert not of("REINIT_REQUIRED", found)


def test_what_others_hold_too_is_held_by_no_one_alone(tmp_path: Path) -> None:
    """s2 has got them since: any of the two may be filled from the other."""
    found = findings(tmp_path, folder(entries=True, arrived=3))
    assert not any("only s1" in str(one) for one in found)
    assert not any("leave it off" in str(one["fix"]) for one in found)


def test_a_source_that_has_seen_changes_may_have_passed_them_on(tmp_path: Path) -> None:
    """Without entries nothing tells whether s2 had them when it filled s3."""
    found = diagnose(case_of(tmp_path, folder(arrived=3)))
    assert not [row for row in found["missing"] if row["server"] == "s3"]


def test_entries_tell_of_own_changes_up_to_the_newest_that_they_carry(tmp_path: Path) -> None:
    """The vector in the file of s3 is older than its entries: it is written now and then only."""
    files = folder(entries=True)
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901)  # nothing tells any more who filled s3
    found = diagnose(case_of(tmp_path, files))
    told = {row["position"]: row["held_by"] for row in found["missing"] if row["server"] == "s3"}
    assert told == {position: ["s1"] for position in LOST}


def test_no_server_is_filled_from_one_that_may_lack_what_others_have(tmp_path: Path) -> None:
    """Without entries nothing tells whether s2 had passed the three changes on to s3 when it filled it."""
    case = case_of(tmp_path, folder(arrived=3))
    made = plan(case)
    refused = {course.way: course.refused for course in made.courses if course.need.startswith("REINIT_REQUIRED s1")}
    says = (
        "nothing tells whether s3 has up to 3 changes of origin 3 that s1 has and would lose: collect with the entries"
    )
    assert refused["initialise-from-s3"].startswith(says), refused
    assert not [step.key for step in made.steps if "initialise-s1" in step.key]
    (stuck,) = [one for one in diagnose(case)["findings"] if (one["code"], one["server"]) == ("REINIT_REQUIRED", "s1")]
    assert stuck["fix"][0]["repair"].startswith("first collect with the entries"), stuck["fix"]


def test_who_lacks_what_no_server_has_is_no_worse_a_source() -> None:
    """Seen on 2.3.1: all lacked 60 changes that went with the data of their makers; the one complete server was to be filled."""
    rows = [
        {"server": "s1", "suffix": SUFFIX, "held_by": []},
        {"server": "s2", "suffix": SUFFIX, "held_by": ["s1"]},
        {"server": "s3", "suffix": SUFFIX, "held_by": [], "shown_by": ["s1"]},
        {"server": "s4", "suffix": "dc=other", "held_by": ["s1"]},
    ]
    context: Any = SimpleNamespace(verdicts=SimpleNamespace(missing=rows))
    assert lacking_what_others_have(context, SUFFIX) == {"s2", "s3"}


@pytest.mark.parametrize(("unsure", "up_to"), [((), 3), (LOST[:1], 2), (LOST, 0)])
def test_what_no_server_has_any_more_is_not_feared_for(unsure: list[str], up_to: int) -> None:
    """Seen on 3.1.2: all lacked 64 changes that s3 had made and lost; s1 was not to be filled from s3 for 61 of them."""
    about = {"suffix": SUFFIX, "origin": "3", "from": LOST[0], "to": LOST[-1]}
    unknown = [{**about, "server": "s3", "count": 3, "why": "not_shown"}]
    if unsure:
        unknown += [{**about, "server": "s1", "count": len(unsure), "why": MADE_AGAIN, "to": unsure[-1]}]
    read = datetime(2100, 1, 1, tzinfo=UTC)
    verdicts = SimpleNamespace(
        unknown=unknown,
        missing=[],
        resets={("s3", SUFFIX): [Reset(REPLACED, read, read)]},
        unsure={(SUFFIX, position): MADE_AGAIN for position in unsure},
    )
    system = SimpleNamespace(
        typed=str, moment=lambda position: datetime(2024, 1, 1, tzinfo=UTC), origin_of=lambda _: "3"
    )
    replica = SimpleNamespace(seen=lambda: {"3": SimpleNamespace(min=LOST[0], max=LATER)})
    context: Any = SimpleNamespace(
        verdicts=verdicts, topology=SimpleNamespace(system=system), replica=lambda server, suffix: replica
    )
    assert not_judged_on(context, "s3", "s1", SUFFIX) == ({"3": up_to} if up_to else {})
