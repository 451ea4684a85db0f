"""A server whose RUV lost its own element: no session with it finds where to begin until it makes one change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import listening, of
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

Files = dict[str, Any]
MADE = [csn(second, 3) for second in range(10)]


def without_element(*, own: int = 3, logged: int = 10, whole: bool = False) -> Files:
    """s3 made ten changes as 3, was made a hub, and a supplier again; the changelogs of s1 and s2 begin behind the first.

    own     its replica ID now
    logged  how many of its own changes its log has
    whole   the changelogs of s1 and s2 have all
    """
    files: Files = {}
    for name in ("s1", "s2", "s3"):
        files |= {f"{name}.errors.log": listening(name)[f"{name}.errors.log"].replace(":3890", ".localdomain:3890")}
    first = [csn(second, rid) for rid in (1, 2) for second in (10, 11)]
    late = [csn(second, rid) for rid in (1, 2) for second in range(20, 26)]
    for rid in (1, 2):
        files[f"s{rid}.replica.ldif"] = replica(rid, elements(claims(r1=(0, 25), r2=(0, 25), r3=(0, 9))))
        kept = MADE[0 if whole else 5 :]
        files[f"s{rid}.changelog.ldif"] = changelog(sorted([*kept, *first, *late]), own_entries=True)
        files[f"s{rid}.agreements.ldif"] = agreement(f"s{rid}-to-s{3 - rid}", 38903 - rid) + agreement(
            f"s{rid}-to-s3", 38903
        )
    spans = claims(r1=(0, 11), r2=(0, 11))
    files["s3.replica.ldif"] = replica(own, elements({3: None, **spans} if own == 3 else spans))
    files["s3.changelog.ldif"] = changelog(sorted([*MADE[:logged], *first]), own_entries=True)
    files["s3.agreements.ldif"] = agreement("s3-to-s1", 38901) + agreement("s3-to-s2", 38902)
    return files


def test_one_change_brings_the_element_back_and_nothing_is_initialised(tmp_path: Path) -> None:
    case = case_of(tmp_path, without_element())
    found = diagnose(case)
    assert headline(found).startswith("Nothing goes to s3: its RUV has lost its own element, of replica ID 3; ")
    assert not of("REINIT_REQUIRED", found["findings"])
    (broken,) = of("BROKEN_VECTOR", found["findings"])
    assert (broken["server"], broken["severity"]) == ("s3", "error")
    assert "sessions over s1-to-s3 and s2-to-s3 would have to begin at a record" in broken["summary"]
    assert "with one change of s3 as 3 they begin, and bring the 12 changes that s3 waits for" in broken["summary"]
    (fix,) = broken["fix"]
    assert fix["repair"] == f"make one change on s3, for example in its entry cn=repl keep alive 3,{SUFFIX}"
    assert fix["caution"].startswith("do not initialise s3: ")
    waiting = of("PENDING_CHANGES", found["findings"])
    assert len(waiting) == 2
    for one in waiting:
        assert one["fix"][0]["repair"] == "do what BROKEN_VECTOR says of s3: make one change on it"
    made = plan(case)
    (step,) = made.steps
    assert (step.key, step.repair, step.on, step.details["level"]) == ("1-wake-s3", "wake", "s3", ["s1", "s3"])
    (row,) = (row for row in made.after if row["server"] == "s3")
    assert (row["missing"], row["pending"]) == (0, 0)
    assert not [line for line in made.open if "BROKEN_VECTOR" in line]


def test_a_hub_is_made_a_supplier_again_or_initialised_by_a_person(tmp_path: Path) -> None:
    case = case_of(tmp_path, without_element(own=65535))
    (broken,) = of("BROKEN_VECTOR", diagnose(case)["findings"])
    again, stays = broken["fix"]
    assert "--newrole supplier --replica-id 3`; then make one change on it" in again["repair"]
    assert "neither cleaned since nor given to another server" in again["caution"]
    assert stays["repair"].startswith("or, if s3 is to stay a hub, initialise it ")
    made = plan(case)
    assert not [step for step in made.steps if step.repair == "initialise"]
    refused = {way.way: way.refused for way in made.courses if way.way.startswith("initialise-from-")}
    assert refused and all(why.startswith("s3 need not be filled: ") for why in refused.values())
    assert plan(case, ways=["initialise-from-s1"]).steps


@pytest.mark.parametrize("changed", [{"logged": 9}, {"whole": True}])
def test_nothing_is_said_where_it_may_lack_own_changes_or_sessions_begin(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    """A next change would hide what it lost; and a record that is there needs no such change."""
    found = diagnose(case_of(tmp_path, without_element(**changed)))
    assert not of("BROKEN_VECTOR", found["findings"])
    assert bool(of("REINIT_REQUIRED", found["findings"])) == ("logged" in changed)
