"""No sentence of a recorded 389 DS incident contradicts its rows, and the reader that says so can say otherwise."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from consistent_findings import contradictions
from incident_samples import LOST, NAMES, case_of
from raw_rows import Collected, read

from workbench import diagnose, plan, story
from workbench.diagnosing.diagnosis_text import diagnosis_text, story_text
from workbench.repairs.plan_text import plan_text
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
    case = case_of(name)
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


PLANTED = {
    "another number": (_reworded("missed 12", "missed 13"), "rows are missing"),
    "an invented position": (lambda found: found["missing"][0].update(position="6b00aaaa000000010000"), "no collected row"),
    "another origin": (lambda found: found["missing"][0].update(origin="77"), "is not of origin 77"),
    "an invented server": (lambda found: found["missing"][0].update(held_by=["s9"]), "no file is of a server s9"),
    "an invented link": (lambda found: found["links"][0].update(name="s1-to-s9"), "has no agreement s1-to-s9"),
    "a list that was cut": (lambda found: found["missing"].pop(), "rows are missing"),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_seen(planted: str) -> None:
    change, expected = PLANTED[planted]
    wrong = said_of(LOST).wrong(found=_with(change))
    assert any(expected in one for one in wrong), wrong
