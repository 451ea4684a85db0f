"""What a run found, as facts that can be compared with those of another run: no prose, no times of the run.

The last cell of a notebook calls `finished`. In a run without a person that is the completion record: a notebook that did
not come so far has failed, whatever its exit code says. For a person it shows the verdict.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from workbench.case import Case
from workbench.checks import FAILED, OUTCOMES, Checked, collected, newest_evidence, outcome_of
from workbench.diagnosis_text import nothing_to_compare
from workbench.incident import RECORD, Incident
from workbench.journal import write_whole
from workbench.model import SEVERITIES, Problem

VERSION = 2

SCOPE = ("code", "server", "link", "origin", "suffix")
_COUNTED = ("missing", "stranded", "pending", "unknown")


class Finished:
    """What the last cell shows: the verdict, and what it counts."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = facts

    def __repr__(self) -> str:
        counted = Counter[str]()
        for row in self.facts["counts"]:
            counted[row["list"]] += row["count"]
        told = ", ".join(f"{count:,} {name}" for name, count in counted.items() if count)
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
    compared     two servers of a suffix tell what they have seen; if not, nothing can be said of missing changes
    evidence_at  the newest time that the evidence tells; never compared
    servers      case, server, suffix of each that tells what it has seen; `case` of a notebook that checks several
    findings     code, server, link, origin, suffix; severity
    counts       list (missing, stranded, pending, unknown), server, origin, suffix; count
    lag          server, origin, suffix; seconds from what it claims to what any server claims, by the clock of the origin
    sessions     supplier, consumer, suffix; link, the decision, the anchor, and its order key
    cases        of a notebook that checks several: case, as it was named; outcome
    """
    found = incident.found
    counts: Counter[tuple[Any, ...]] = Counter()
    for name in _COUNTED:
        for row in found[name]:
            # A stretch of which nobody knows how many changes it holds counts as one: it is there, or it is not.
            number = 1 if name in ("missing", "stranded") else row["count"] or 1
            counts[name, row["server"], row["origin"], row["suffix"]] += number
    for name, whole in found["run"]["truncated"].items():
        counts[name, None, None, None] = whole
    severities: dict[tuple[Any, ...], str] = {}
    for one in found["findings"]:  # the gravest comes first
        severities.setdefault(tuple(one[key] for key in SCOPE), one["severity"])
    return {
        "facts": VERSION,
        "verdict": outcome_of(found),
        "compared": not nothing_to_compare(found),
        "evidence_at": newest_evidence(incident.then),
        "servers": [{"case": None, "server": server, "suffix": suffix} for server, suffix in collected(found)],
        "findings": [dict(zip((*SCOPE, "severity"), (*key, one), strict=True)) for key, one in severities.items()],
        "counts": [
            {"list": name, "server": server, "origin": origin, "suffix": suffix, "count": count}
            for (name, server, origin, suffix), count in counts.items()
        ],
        "lag": list(_lags(incident, found["servers"])),
        "sessions": [_session(incident, row) for row in found["pairs"]],
        "cases": [],
    }


def _session(incident: Incident, row: Mapping[str, Any]) -> dict[str, Any]:
    key = incident.system.typed(row["anchor"]) if row["anchor"] else None
    about = {name: row[name] for name in ("supplier", "consumer", "suffix", "link", "decision", "anchor")}
    return {**about, "anchor_key": key}


def _lags(incident: Incident, servers: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    typed, moment = incident.system.typed, incident.system.moment
    claims: dict[tuple[str | None, str], dict[str, str]] = {}
    for one in servers:
        for origin, span in one["vector"].items():
            if span["max"] and (key := typed(span["max"])):
                claims.setdefault((one["suffix"], origin), {})[one["name"]] = key
    for (suffix, origin), keys in claims.items():
        newest = moment(max(keys.values()))
        for server, key in keys.items():
            has = moment(key)
            if newest and has and newest > has:
                seconds = (newest - has).total_seconds()
                yield {"server": server, "origin": origin, "suffix": suffix, "seconds": seconds}


def facts_of_checks(checked: Sequence[Checked]) -> dict[str, Any]:
    """The facts of a notebook that checked several cases: the worst outcome, and that of each."""
    if not checked:
        raise Problem("no case was checked", "", "name at least one")
    nothing: dict[str, Any] = {name: [] for name in ("findings", "counts", "lag", "sessions")}
    dated = [one.evidence_at for one in checked if one.outcome != FAILED]
    return {
        "facts": VERSION,
        "verdict": max((one.outcome for one in checked), key=OUTCOMES.index),
        "compared": True,  # what a case alone could not tell is the outcome of that case
        "evidence_at": min(filter(None, dated)) if all(dated) and dated else None,  # of the case that was left behind
        "servers": [
            {"case": one.case, "server": server, "suffix": suffix} for one in checked for server, suffix in one.servers
        ],
        **nothing,
        "cases": [{"case": one.case, "outcome": one.outcome} for one in checked],
    }


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _one_of(known: Sequence[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in known


_ROWS: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "servers": {"case": _text_or_none, "server": _text, "suffix": _text_or_none},
    "findings": {**dict.fromkeys(SCOPE, _text_or_none), "code": _text, "severity": _one_of(SEVERITIES)},
    "counts": {
        "list": _one_of(_COUNTED),
        **dict.fromkeys(("server", "origin", "suffix"), _text_or_none),
        "count": _amount,
    },
    "lag": {**dict.fromkeys(("server", "origin", "suffix"), _text_or_none), "seconds": _amount},
    "sessions": {
        **dict.fromkeys(("supplier", "consumer", "decision"), _text),
        **dict.fromkeys(("suffix", "link", "anchor", "anchor_key"), _text_or_none),
    },
    "cases": {"case": _text, "outcome": _one_of(OUTCOMES)},
}
"""List of facts -> what each of its rows holds."""


def are_facts(said: Any) -> bool:
    """True for facts as they are written here. They are read from files: one that is damaged must not pass, nor end a check."""
    if not isinstance(said, dict) or said.get("facts") != VERSION or said.get("verdict") not in OUTCOMES:
        return False
    if not isinstance(said.get("compared"), bool) or not _moment_or_none(said.get("evidence_at", "absent")):
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
