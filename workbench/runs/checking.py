"""Regression checks: are the runs of a parameters file as they were accepted, and what changed since the runs before?

    nightly.yaml            what is run, and how strictly it is compared (`check:`)
    nightly.baseline.json   the facts that were accepted, with the reasons; written by `workbench check --accept`

    check:
      threshold: warning
      tolerances: {pending: 1000, lag: 300}
      max_age: 26h
      acknowledged:
        - code: LINK_DISABLED
          server: s3
          until: 2026-12-31
          reason: s3 is being rebuilt

A run that failed has failed, and one that could not tell is inconclusive: neither is a pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from workbench.boundary import printable
from workbench.checks import FAILED
from workbench.journal import write_whole
from workbench.model import SEVERITIES, Problem
from workbench.runs.comparing import Acknowledged, Judged, Terms, judged
from workbench.runs.facts import VERSION
from workbench.runs.orders import Order, Orders
from workbench.runs.running import DONE, Run, runs_in
from workbench.runs.values import check_names, list_of, mapping_of, number_of, seconds_of, text_of

_KEYS = ("threshold", "tolerances", "max_age", "acknowledged")
_NUMBERS = ("missing", "stranded", "pending", "unknown", "lag")
_OF_AN_ACKNOWLEDGEMENT = ("code", "server", "link", "origin", "suffix", "until", "reason")


@dataclass(frozen=True)
class CheckedRun:
    """One run, held against what was accepted and against the run before.

    outcome   clean, findings, inconclusive or failed
    why       the reasons for the outcome, a sentence each
    accepted  against the baseline; None if the run failed
    before    against the run before; None if the run failed or is the first
    was       the outcome of the run before; None: there was none
    """

    run: Run
    outcome: str
    why: Sequence[str]
    accepted: Judged | None = None
    before: Judged | None = None
    was: str | None = None

    @property
    def changed(self) -> bool:
        """True if it is not as the run before was: that is when people want to be told."""
        return self.outcome != self.was and not (self.was is None and self.outcome == "clean")


@dataclass(frozen=True)
class Demands:
    """The section `check:` of a parameters file. `max_age`: seconds since the last run that was done; None: any."""

    terms: Terms = field(default_factory=Terms)
    max_age: int | None = None


def demands_of(orders: Orders) -> Demands:
    """What the file demands of its runs. Raises Problem for what would not be compared as it is written."""
    said, where = orders.check, f"{orders.path}: check"
    check_names(said, _KEYS, where)
    threshold = text_of(said.get("threshold", "warning"), f"{where}: threshold")
    if threshold not in SEVERITIES:
        raise Problem(f"there is no severity {printable(threshold)}", where, f"there are {', '.join(SEVERITIES)}")
    given = mapping_of(said, "tolerances", where)
    check_names(given, _NUMBERS, f"{where}: tolerances")
    tolerances = {name: number_of(value, f"{where}: {name}") for name, value in given.items()}
    if any(value < 0 for value in tolerances.values()):
        raise Problem("a tolerance is less than 0", where, "say how much higher the number may be")
    acknowledged = [_acknowledged(one, where) for one in list_of(said.get("acknowledged", []), where)]
    max_age = seconds_of(said["max_age"], f"{where}: max_age") if "max_age" in said else None
    return Demands(Terms(threshold, tolerances, acknowledged), max_age)


def _acknowledged(said: Any, where: str) -> Acknowledged:
    where = f"{where}: acknowledged"
    if not isinstance(said, dict):
        raise Problem("this is no acknowledgement", where, "give code, until and reason")
    check_names(said, _OF_AN_ACKNOWLEDGEMENT, where)
    for key in ("code", "until", "reason"):
        if not said.get(key):
            raise Problem(f"an acknowledgement without {key}", where, "give code, until and reason: none is for ever")
    texts = {key: text_of(value, f"{where}: {key}") for key, value in said.items()}
    try:
        until = date.fromisoformat(texts["until"])
    except ValueError:
        raise Problem(f"{printable(texts['until'])} is no day", where, "write it as 2026-12-31") from None
    scope = {key: texts[key] for key in ("server", "link", "origin", "suffix") if key in texts}
    return Acknowledged(texts["code"], until, texts["reason"], scope)


def baseline_of(orders: Orders) -> Path:
    """Where what was accepted is kept: beside the parameters file."""
    return orders.path.with_suffix(".baseline.json")


def read_baseline(path: Path) -> dict[str, Any]:
    """What was accepted: `accepted` (when and why, the latest last) and `runs` (name -> facts). Nothing, if nothing was."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["baseline"] != VERSION or not all(facts["facts"] == VERSION for facts in said["runs"].values()):
            raise Problem("this baseline is of another version", str(path), "accept the runs anew, with --accept")
        return {"accepted": list(said["accepted"]), "runs": dict(said["runs"])}
    except FileNotFoundError:
        return {"accepted": [], "runs": {}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        do = "bring it back, or take it away and accept the runs anew"
        raise Problem("this baseline cannot be read", str(path), do) from None


def accept(orders: Orders, runs: Sequence[Run], reason: str) -> Path:
    """Make these runs what later ones are held against. Raises Problem if one of them failed, or no reason is given."""
    if not reason.strip():
        raise Problem("no reason is given", "--reason", "say why this is as it should be: somebody will ask")
    if failed := [one.name for one in runs if one.outcome != DONE]:
        raise Problem(
            f"{printable(failed[0])} failed", "--accept", "a run that failed tells nothing that can be accepted"
        )
    path, now = baseline_of(orders), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    try:
        known = read_baseline(path)["accepted"]
    except Problem:
        known = []
    said = {
        "baseline": VERSION,
        "accepted": [*known, {"at": now, "reason": reason.strip()}],
        "runs": {one.name: one.facts for one in runs},
    }
    write_whole(path, json.dumps(said, indent=1) + "\n")
    return path


def last_runs(orders: Orders, demands: Demands, now: datetime) -> list[Run]:
    """The last run of each order, as it was published; one that is too old, or is not there, has failed."""
    found = []
    for order in orders.runs:
        mine = [one for one in runs_in(order.case_folder) if one.name == order.name]
        done = [one for one in mine if one.outcome == DONE]
        if not mine:
            found.append(_failed(order, "it has never been run. Run it with `workbench check`"))
        elif demands.max_age is not None and (not done or _age(done[-1], now) > demands.max_age):
            since = f"the last run that was done is of {done[-1].began}" if done else "no run was ever done"
            found.append(_failed(order, f"{since}. Look whether it is still scheduled"))
        else:
            found.append(mine[-1])
    return found


def _age(one: Run, now: datetime) -> float:
    return (now - datetime.fromisoformat(one.began)) / timedelta(seconds=1)


def _failed(order: Order, why: str) -> Run:
    return Run(order.name, order.notebook.stem, "failed", why)


def checked(
    orders: Orders, runs: Iterable[Run], demands: Demands, baseline: Mapping[str, Any], today: date
) -> list[CheckedRun]:
    """Hold each run against what was accepted, and against the run before."""
    folders = {one.name: one.case_folder for one in orders.runs}
    made = []
    for one in runs:
        accepted = baseline["runs"].get(one.name)
        earlier = [
            other
            for other in runs_in(folders[one.name])
            if other.name == one.name and (one.folder is None or other.folder != one.folder)
        ]
        if one.folder is not None:
            earlier = [other for other in earlier if other.began <= one.began]
        last = earlier[-1] if earlier else None
        was = _outcome(last, accepted, demands.terms) if last else None
        if one.outcome != DONE:
            made.append(CheckedRun(one, FAILED, [one.why], was=was))
            continue
        held = judged(one.facts, accepted, demands.terms, today)
        done = [other for other in earlier if other.outcome == DONE]
        before = judged(one.facts, done[-1].facts, demands.terms, today) if done else None
        made.append(CheckedRun(one, held.outcome, held.because, held, before, was))
    return made


def _outcome(one: Run, accepted: Mapping[str, Any] | None, terms: Terms) -> str:
    if one.outcome != DONE:
        return FAILED
    return judged(one.facts, accepted, terms, date.fromisoformat(one.began[:10])).outcome
