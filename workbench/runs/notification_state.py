"""What is news: how a checked run is, held against what people were last told of it.

    .nightly.yaml.told.json   of each run of nightly.yaml, and each way of telling: what people know; and the runs that were not
                              begun the last time, because somebody else was at work in their case

That is the outcome, the facts, and what counted, as they were when they were told last, or clean since. So what nobody was told
stays news: growth that is within the tolerance each night, and what was acknowledged when they were told and counts now.

It lies beside the parameters file, or in the folder that STATE_DIRECTORY names: systemd sets that to one that the user of the
service may write. It is not the run before that counts: what nobody could be told is news until somebody was, and what was
told is none, however often it is looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from workbench.journal import write_whole
from workbench.runs.baseline_check import CLEAN, OUTCOMES
from workbench.runs.fact_diff import Difference, Terms, judged
from workbench.runs.facts import are_facts
from workbench.runs.regression_check import NOT_BEGUN, NOT_TOLD, CheckedRun
from workbench.runs.run_config import home_of
from workbench.runs.running import DONE, Run
from workbench.safety import printable

STATE = "STATE_DIRECTORY"
_VERSION = 3


@dataclass(frozen=True)
class Owed:
    """A run of which people do not know how it is now.

    before  the outcome that they know; empty: none
    worse   what is new or worse than they know
    """

    checked: CheckedRun
    before: str = ""
    worse: Sequence[str] = ()


@dataclass
class News:
    """The checked runs of one parameters file, and what people know of them.

    looked  nothing was run: whether somebody else is at work in a case nobody has seen
    """

    path: Path
    checked: Sequence[CheckedRun]
    terms: Terms
    today: date
    looked: bool = False
    _known: dict[str, dict[str, Any]] = field(init=False)
    _met: list[str] = field(init=False)
    _read: str = field(init=False)

    def __post_init__(self) -> None:
        self._known, self._met = _known(kept_for(self.path))
        self._read = json.dumps([self._known, self._met])

    def owed(self, way: str) -> list[Owed]:
        """The runs that are not as those know it who are told by this way."""
        known = self._known.get(way, {})
        found = [owed for one in self.checked if (owed := self._owed(one, known.get(one.run.name)))]
        for name in (NOT_BEGUN, NOT_TOLD):
            if name in known and name not in self._there:
                found.append(Owed(CheckedRun(Run(name, "", DONE), CLEAN, []), known[name]["outcome"]))
        return found

    @property
    def _there(self) -> set[str]:
        return {one.run.name for one in self.checked}

    def _owed(self, one: CheckedRun, known: dict[str, Any] | None) -> Owed | None:
        if self._tells_itself(one):
            return None
        if known is None:
            return Owed(one) if one.outcome != CLEAN else None
        worse = []
        if one.outcome != CLEAN and one.run.facts and known["facts"]:
            held = judged(one.run.facts, known["facts"], self.terms, self.today)
            counts = [each for each in held.differences or () if each.counts]
            told = {_subject(each) for each in counts}
            more = [each for each in _counting(one) if each not in told and each not in known["counting"]]
            worse = [str(each) for each in counts] + [f"it counts now: {each}" for each in more]
        return Owed(one, known["outcome"], worse) if worse or one.outcome != known["outcome"] else None

    def _tells_itself(self, one: CheckedRun) -> bool:
        """True if somebody else is at work there, who tells; met twice in a row, that may be a run by hand that hangs."""
        return one.run.met and one.run.name not in self._met

    def told(self, way: str) -> None:
        """Those who are told by this way were told what is owed to them."""
        before, there = self._known.get(way, {}), self._there
        told = {one.checked.run.name for one in self.owed(way)}
        # Of a file that cannot be used nothing new is known about its runs; else, what it does not name any more is forgotten.
        mine = {
            name: known for name, known in before.items() if name in there or (NOT_BEGUN in there and name != NOT_TOLD)
        }
        self._known[way] = mine
        for one in self.checked:
            name, counting = one.run.name, _counting(one)
            if self._tells_itself(one):
                continue
            if name in told or one.outcome == CLEAN:
                mine[name] = {"outcome": one.outcome, "facts": one.run.facts, "counting": counting}
            else:  # what has ceased to count is news when it is back
                mine[name]["counting"] = [each for each in mine[name]["counting"] if each in counting]

    def keep(self) -> str:
        """Keep it for the next check; gives a sentence if that cannot be."""
        met = self._met if self.looked else [one.run.name for one in self.checked if one.run.met]
        if json.dumps([self._known, met]) == self._read:
            return ""
        place = kept_for(self.path)
        try:
            write_whole(place, json.dumps({"told": _VERSION, "ways": self._known, "met": met}) + "\n")
        except OSError as error:
            where = printable(str(place))
            return f"what was told could not be kept: {error.strerror} ({where}). It will be told again"
        return ""


def kept_for(path: Path) -> Path:
    """The file that keeps what was told of a parameters file."""
    folder = os.environ.get(STATE, "").partition(":")[0]
    if not folder:
        return path.with_name(f".{path.name}.told.json")
    # Files of one name from several folders meet there.
    mark = hashlib.sha256(str(home_of(path)).encode()).hexdigest()[:8]
    return Path(folder) / f"{path.name}.{mark}.told.json"


def _counting(one: CheckedRun) -> list[str]:
    """What counts of a run, without the numbers, which go up and down."""
    if one.accepted is None:
        return []
    differing = [each for each in one.accepted.differences or () if each.counts]
    said = {str(each) for each in differing}
    found = [_subject(each) for each in differing] + [each for each in one.accepted.because if each not in said]
    # Its evidence is too old: the sentence names a time, which goes on where it is collected late every night.
    return list(dict.fromkeys([*found, *["old evidence"] * (len(one.why) > len(one.accepted.because))]))


def _subject(one: Difference) -> str:
    """What it is about, called as it is where there is no baseline."""
    about = ", ".join(one.about)
    return about if one.fact == "findings" else f"{one.fact} {about}"


def _known(place: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What was told, by way and run, and the runs that met others the last time; of a file that is absent or damaged nothing:
    to tell twice is better than never.
    """
    try:
        said = json.loads(place.read_text(encoding="utf-8"))
        if said["told"] != _VERSION:
            return {}, []
        ways = {
            way: {
                name: {key: one[key] for key in ("outcome", "facts", "counting")}
                for name, one in runs.items()
                if one["outcome"] in OUTCOMES
                and (one["facts"] == {} or are_facts(one["facts"]))  # those of a run that failed
                and all(isinstance(each, str) for each in one["counting"])
            }
            for way, runs in said["ways"].items()
        }
        return ways, [name for name in said["met"] if isinstance(name, str)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, []
