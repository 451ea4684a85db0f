"""What a run found, as facts that can be compared with those of another run: no prose, no times of the run.

The last cell of a notebook calls `finished`. In a run without a person that is the completion record: a notebook that did
not come so far has failed, whatever its exit code says. For a person it shows the verdict.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from workbench.case.case import Case
from workbench.diagnosis.diagnosis_text import ONE_SERVER
from workbench.diagnosis.incident import RECORD, Incident
from workbench.journal import write_whole
from workbench.model import SEVERITIES, Problem
from workbench.runs.baseline_check import FAILED, OUTCOMES, Checked, oldest_evidence, outcome_of
from workbench.runs.case_facts import COUNTED, CUT, NOT_WHOLE, SCOPE, facts_of_case
from workbench.topology.topology import IS_DOWN, NO_VECTOR, NOT_ALL, NOT_COLLECTED

VERSION = 4


class Finished:
    """What the last cell shows: the verdict, and what it counts."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = facts

    def __repr__(self) -> str:
        counted, whole = Counter[tuple[str | None, str]](), Counter[tuple[str | None, str]]()
        for row in self.facts["counts"]:
            # The whole number of a list that was cut stands in a row of its own, beside those that were shown.
            (counted if row["server"] else whole)[row["case"], row["list"]] += row["count"]
        by_list = Counter[str]()
        for (_, name), count in (counted | whole).items():
            by_list[name] += count
        told = ", ".join(f"{count:,} {name}" for name, count in by_list.items() if count)
        codes = ", ".join(sorted({row["code"] for row in self.facts["findings"]}))
        return "; ".join(filter(None, (f"finished: {self.facts['verdict']}", told, codes)))


def finished(what: Incident | Case | Sequence[Checked]) -> Finished:
    """Tell that the notebook came to its end, with the facts about its case, or about the cases that it checked."""
    if isinstance(what, Case):
        what = Incident(what)
    facts = facts_of(what) if isinstance(what, Incident) else facts_of_checks(what)
    if record := os.environ.get(RECORD):
        write_whole(Path(record), json.dumps(facts, indent=1) + "\n")
    return Finished(facts)


def facts_of(incident: Incident) -> dict[str, Any]:
    """The facts of one case.

    verdict      clean, findings or inconclusive
    evidence_at  what is oldest of the newest times that each server's evidence tells; never compared
    evidence_of  the server of which that is
    cases        of a notebook that checks several: case, as it was named; outcome
    and the lists of `facts_of_case`. Each of their rows names its case; null: the notebook is about one.
    """
    at, server = oldest_evidence(incident.then)
    about = {"facts": VERSION, "verdict": outcome_of(incident.found), "evidence_at": at, "evidence_of": server}
    return {**about, **facts_of_case(incident), "cases": []}


def facts_of_checks(checked: Sequence[Checked]) -> dict[str, Any]:
    """The facts of a notebook that checked several cases: the worst outcome, that of each, and the facts of each."""
    if not checked:
        raise Problem("no case was checked", "", "name at least one")
    looked = [one for one in checked if one.outcome != FAILED]
    dated = all(one.evidence_at for one in looked)
    old = min(looked, key=lambda one: one.evidence_at or "") if looked and dated else None  # that was left behind
    return {
        "facts": VERSION,
        "verdict": max((one.outcome for one in checked), key=OUTCOMES.index),
        "evidence_at": old and old.evidence_at,
        "evidence_of": old and f"{old.evidence_of} of {old.case}",
        **{name: [row for one in looked for row in one.facts[name]] for name in _ROWS if name != "cases"},
        "cases": [{"case": one.case, "outcome": one.outcome} for one in checked],
    }


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _texts_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(_text, value)))


def _amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _one_of(known: Sequence[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in known


_PLACE = dict.fromkeys(("case", "server", "suffix"), _text_or_none)
_ROWS: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "servers": {**_PLACE, "server": _text},
    "untold": {**_PLACE, "why": _one_of((ONE_SERVER, NO_VECTOR, IS_DOWN, NOT_COLLECTED, NOT_ALL, CUT, NOT_WHOLE))},
    "findings": {
        **dict.fromkeys(("case", *SCOPE), _text_or_none),
        "code": _text,
        "severity": _one_of(SEVERITIES),
    },
    "counts": {
        **_PLACE,
        "origin": _text_or_none,
        "list": _one_of(COUNTED),
        "count": _amount,
        "positions": _texts_or_none,
    },
    "lag": {**_PLACE, "origin": _text_or_none, "seconds": _amount},
    "links": {**dict.fromkeys(("case", "suffix", "consumer"), _text_or_none), "supplier": _text, "link": _text},
    "sessions": {
        **dict.fromkeys(("case", "suffix", "link", "anchor", "anchor_key"), _text_or_none),
        **dict.fromkeys(("supplier", "consumer", "decision"), _text),
    },
    "cases": {"case": _text, "outcome": _one_of(OUTCOMES)},
}
"""List of facts -> what each of its rows holds."""


def are_facts(said: Any) -> bool:
    """True for facts as they are written here. They are read from files: one that is damaged must not pass, nor end a check."""
    if not isinstance(said, dict) or said.get("facts") != VERSION or said.get("verdict") not in OUTCOMES:
        return False
    if not _moment_or_none(said.get("evidence_at", "absent")) or not _text_or_none(said.get("evidence_of", 0)):
        return False
    return all(
        isinstance(rows := said.get(name), list)
        and all(isinstance(row, dict) and row.keys() == keys.keys() for row in rows)
        and all(fits(row[key]) for row in rows for key, fits in keys.items())
        for name, keys in _ROWS.items()
    )


def _moment_or_none(value: Any) -> bool:
    return value is None or is_moment(value)


def is_moment(value: Any) -> bool:
    """True for a time as runs write it, with its zone."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
