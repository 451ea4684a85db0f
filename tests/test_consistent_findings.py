"""No sentence of a recorded 389 DS incident contradicts its rows, and the reader that says so can say otherwise."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from consistent_findings import contradictions
from incident_samples import LOST, NAMES, ONE, OTHER, case_of, of_suffixes
from raw_rows import Collected, read

from workbench import Case, diagnose, plan, story
from workbench.diagnosis.change_explanation_text import story_text
from workbench.diagnosis.diagnosis_text import diagnosis_text
from workbench.repair.plan_text import plan_text
from workbench.systems import system_named

Found = dict[str, Any]
_TOLD = 3
"""Missing changes of which the story is told, too."""


@dataclass(frozen=True)
class Said:
    """What the commands say of an incident, and what its files hold."""

    held: Collected
    found: Found
    text: str
    plan: str
    stories: tuple[str, ...]

    def wrong(self, **changed: Any) -> list[str]:
        """What contradicts the files, or would if something else were said."""
        said = {"found": self.found, "text": self.text, "plan": self.plan, "stories": self.stories, **changed}
        return contradictions(self.held, **said)


@cache
def said_of(name: str) -> Said:
    """What is said of a recorded incident."""
    return said_in(case_of(name))


def said_in(case: Case) -> Said:
    """What is said of a case, with the stories of the first changes that are missing."""
    found = json.loads(json.dumps(diagnose(case)))
    named = list(dict.fromkeys(row["position"] for row in found["missing"]))[:_TOLD]
    return Said(
        read([Path(folder) for folder in case.snapshots.values()]),
        found,
        diagnosis_text(system_named("ds389"), found),
        plan_text(plan(case)),
        tuple(story_text(story(case, position)) for position in named),
    )


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_contradicts_the_rows(name: str) -> None:
    assert said_of(name).wrong() == []


def test_no_sentence_contradicts_the_rows_of_two_suffixes(tmp_path: Path) -> None:
    assert said_in(of_suffixes(tmp_path, ONE, OTHER)).wrong() == []


def _with(change: Callable[[Found], None]) -> Found:
    found = copy.deepcopy(said_of(LOST).found)
    change(found)
    return found


def _missed(found: Found) -> Found:
    return next(one for one in found["findings"] if one["code"] == "MISSED_CHANGE")


def _reworded(old: str, new: str) -> Callable[[Found], None]:
    def change(found: Found) -> None:
        one = _missed(found)
        assert old in one["summary"]
        one["summary"] = one["summary"].replace(old, new, 1)

    return change


def _pending(**changed: Any) -> Callable[[Found], None]:
    def change(found: Found) -> None:
        row = next(row for row in found["missing"] if row["server"] == "s3")
        told = {
            "server": "s1",
            "suffix": row["suffix"],
            "origin": "1",
            "count": 1,
            "first": row["position"],
            "last": row["position"],
        }
        found["pending"].append(told | {"available": 2, "gone": 0, "suppliers": [], "through": []} | changed)

    return change


def _finding(code: str, summary: str, **more: Any) -> Callable[[Found], None]:
    def change(found: Found) -> None:
        found["findings"].append(
            {**_missed(found), "code": code, "summary": summary, "fix": [], "items": [], "root": "", **more}
        )

    return change


PLANTED = {
    "another number": (_reworded("missed 12", "missed 13"), "rows are missing"),
    "an invented position": (lambda found: found["missing"][0].update(position="6b00aaaa000000010000"), "no collected row"),
    "another origin": (lambda found: found["missing"][0].update(origin="77"), "is not of origin 77"),
    "an invented server": (lambda found: found["missing"][0].update(held_by=["s9"]), "no file is of a server s9"),
    "an invented link": (lambda found: found["links"][0].update(name="s1-to-s9"), "has no agreement s1-to-s9"),
    "a list that was cut": (lambda found: found["missing"].pop(), "rows are missing"),
    "a server that has it": (lambda found: found["missing"][0].update(server="s1"), "entry"),
    "a holder that has it not": (lambda found: found["missing"][0].update(held_by=["s3"]), "does not hold it"),
    "nobody, and some have it": (lambda found: found["missing"][0].update(held_by=[]), "held by nobody, but"),
    "pending, and covered": (_pending(), "wait for s1, but it shows"),
    "another count that waits": (_pending(count=9), "the logs hold 1 of them"),
    "another count of copies": (_pending(available=7), "not 7"),
    "missing, and pending": (_pending(server="s3"), "is missing on s3, and pending"),
    "not newer than all vectors": (
        lambda found: found["pending"][0].update(first="6b006166000100030000"),
        "is not newer than every vector",
    ),
    "through one that does not wait": (_pending(through=["s2"]), "s2, which does not wait for them"),
    "a link that runs": (
        _finding("LINK_FAILING", "the link s1-to-s2 fails: x (code 49)", server="s1", link="s1-to-s2", reason="x", since=None,
                 waiting=0),
        "has the code 49",
    ),
    "a link that is on": (_finding("LINK_DISABLED", "x", server="s1", link="s1-to-s2"), "s1-to-s2 is not off"),
    "a clock that is right": (_finding("CLOCK_AHEAD", "the clock of s1 is 3.0 days ahead", server="s1"), "is that far ahead"),
    "another age": (_finding("PENDING_CHANGES", "the oldest made 9 days before", server="s1"), "nothing that waits is that old"),
    "equal entries": (
        _finding("ENTRIES_DIFFER", "99 entries of s1 differ from those of s3, although", server="s1"),
        "entries of s1 differ",
    ),
    "entries that nobody tells of": (lambda found: found.update(missing=[], findings=[]), "and nothing says so"),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_seen(planted: str) -> None:
    change, expected = PLANTED[planted]
    wrong = said_of(LOST).wrong(found=_with(change))
    assert any(expected in one for one in wrong), wrong


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("12 changes are MISSING on s3", "11 changes are MISSING on s3", "12 changes are missing"),
        ("MISSING on s3", "MISSING on s2", "missing on ['s3']"),
        ("12        0        0", "12        4        0", "the table says 12 missing and 4 pending"),
    ],
)
def test_a_planted_fault_in_the_text_is_seen(old: str, new: str, expected: str) -> None:
    said = said_of(LOST)
    assert old in said.text
    wrong = said.wrong(text=said.text.replace(old, new))
    assert any(expected in one for one in wrong), wrong


def test_planted_faults_in_the_plan_and_in_a_story_are_seen() -> None:
    said = said_of(LOST)
    assert any("the plan says" in one for one in said.wrong(plan=said.plan.replace("12        0", "10        0", 1)))
    assert any("nothing needs mending" in one for one in said.wrong(plan="Nothing needs mending."))
    first = said.stories[0]
    place = re.search(r"[^/ ]+/s1\.changelog\.ldif\.gz:\d+", first)
    assert place
    moved = first.replace(place[0], place[0].partition(":")[0] + ":0", 1)
    assert any("does not name" in one for one in said.wrong(stories=(moved,)))
    wrong = said.wrong(stories=("made 2026-11-20 01:02:03 UTC on localhost:4711",))
    assert any("no row is of the time" in one for one in wrong), wrong
