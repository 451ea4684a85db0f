"""Regression checks: are the runs of a parameters file as they were accepted, and what changed since the runs before?

    nightly.yaml                 what is run, and how strictly it is compared (`check:`)
    nightly.yaml.baseline.json   the facts that were accepted, with the reasons; written by `workbench check --accept`

    check:
      threshold: warning
      tolerances: {pending: 1000, lag: 300}
      max_age: 26h               # of the last run that was done; `--no-run` demands it
      max_evidence_age: 36h      # of the server whose evidence is oldest: a collector that died leaves a case as clean as it was
      acknowledged:
        - code: LINK_DISABLED
          server: s3
          until: 2026-12-31
          reason: s3 is being rebuilt

A run that failed has failed, and one that could not tell is inconclusive: neither is a pass. That nobody can tell may be
acknowledged, too, under the code INCONCLUSIVE. This baseline has nothing to do with the diagnosis `CASE/baseline.json`, which
the notebook `50_checks` reads (`workbench/runs/baseline_check.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from workbench.diagnosis.codes import all_codes
from workbench.journal import alone, write_together
from workbench.model import SEVERITIES, Problem
from workbench.runs.baseline_check import CLEAN, FAILED, INCONCLUSIVE
from workbench.runs.config_values import check_names, list_of, mapping_of, meant, number_of, seconds_of, text_of
from workbench.runs.fact_diff import AHEAD, SAYS, Acknowledged, Judged, Terms, judged, too_old
from workbench.runs.facts import VERSION, are_facts
from workbench.runs.run_config import RESERVED, Order, Orders, home_of
from workbench.runs.running import DONE, Run, runs_in
from workbench.safety import printable

NOT_BEGUN, NOT_TOLD, NOT_ACCEPTED = RESERVED
"""The names of what stands for all runs of a parameters file that cannot be used; for those who are to be told by a way that
cannot be used; and for what was not accepted.
"""

_KEYS = ("threshold", "tolerances", "max_age", "max_evidence_age", "acknowledged")
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
    path      the parameters file as it was named
    """

    run: Run
    outcome: str
    why: Sequence[str]
    accepted: Judged | None = None
    before: Judged | None = None
    was: str | None = None
    path: Path = Path()


@dataclass(frozen=True)
class Demands:
    """The section `check:` of a parameters file.

    max_age           seconds since the last run that was done; None: any
    max_evidence_age  seconds since the newest evidence of the server that was left behind; None: any
    """

    terms: Terms = field(default_factory=Terms)
    max_age: int | None = None
    max_evidence_age: int | None = None


def demands_of(orders: Orders, only_look: bool = False) -> Demands:
    """What the file demands of its runs. Raises Problem for what would not be compared as it is written, and where nobody
    says how old a run may be that is only looked at: one of last year would pass.
    """
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
    if only_look and "max_age" not in said:
        do = "write for example `max_age: 26h` under `check:`"
        raise Problem("nothing says how old a run may be that is only looked at", where, do)
    ages = [seconds_of(said[key], f"{where}: {key}") if key in said else None for key in _KEYS[2:4]]
    return Demands(Terms(threshold, tolerances, acknowledged), *ages)


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
    known = [*SAYS.values(), *dict.fromkeys(code for codes in all_codes().values() for code in codes)]
    if texts["code"] not in known:
        shown = printable(texts["code"])[:80]
        raise Problem(
            f"there is no code {shown}", where, meant(shown, known) or "see docs/findings.md for those there are"
        )
    scope = {key: texts[key] for key in ("server", "link", "origin", "suffix") if key in texts}
    return Acknowledged(texts["code"], until, texts["reason"], scope)


def baseline_of(orders: Orders) -> Path:
    """Where what was accepted is kept: beside the parameters file, under its whole name."""
    return orders.path.with_name(f"{orders.path.name}.baseline.json")


def read_baseline(path: Path) -> dict[str, Any]:
    """What was accepted: `accepted` (when and why, the latest last) and `runs` (name -> facts). Nothing, if nothing was."""
    version, said = _baseline(path)
    if version != VERSION:
        raise Problem(
            "this baseline is of another version", printable(str(path)), "accept the runs anew, with --accept"
        )
    return said


def _baseline(path: Path) -> tuple[int, dict[str, Any]]:
    """The version of a baseline, and what it says; of another version, why it was accepted alone."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        version, accepted, runs = (said[key] for key in ("baseline", "accepted", "runs"))
        if not all(isinstance(one["at"], str) and isinstance(one["reason"], str) for one in accepted):
            raise ValueError("no reason")
        if version == VERSION and not all(are_facts(facts) for facts in runs.values()):
            raise ValueError("no facts")
        return version, {"accepted": list(accepted), "runs": dict(runs) if version == VERSION else {}}
    except FileNotFoundError:
        return VERSION, {"accepted": [], "runs": {}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        do = "bring it back, or take it away and accept the runs anew: then its reasons are gone, too"
        raise Problem("this baseline cannot be read", printable(str(path)), do) from None


def baseline_if_any(orders: Orders) -> dict[str, Any]:
    """What was accepted; nothing, if that cannot be read."""
    try:
        return read_baseline(baseline_of(orders))
    except Problem:
        return {"accepted": [], "runs": {}}


def accept(made: Sequence[tuple[Orders, Sequence[Run]]], reason: str) -> list[Path]:
    """Make these runs what later ones of their files are held against: all of them, or none.

    Raises Problem if one of them failed, if no reason is given, if the earlier reasons cannot be read, or if somebody else
    accepts runs of one of these files at this moment. The names of the files change one after the other: a kill just then
    leaves the first of them new and the others old, each of them whole.
    """
    if not reason.strip():
        raise Problem("no reason is given", "--reason", "say why this is as it should be: somebody will ask")
    for _, runs in made:
        for one in runs:
            if one.outcome != DONE:
                do = "a run that failed tells nothing that can be accepted; no baseline was changed"
                raise Problem(f"{one} failed: {one.why}", "--accept", do)
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    texts = {}
    with ExitStack() as locks:
        for path in sorted({home_of(baseline_of(orders)) for orders, _ in made}):
            try:
                locks.enter_context(alone(path.with_name(f".{path.name}.lock")))
            except BlockingIOError:
                do = "look at what they accept, then start again"
                raise Problem("somebody else accepts at this moment", printable(str(path)), do) from None
        for orders, runs in made:
            path = baseline_of(orders)
            said = {
                "baseline": VERSION,
                "accepted": [*_baseline(path)[1]["accepted"], {"at": now, "reason": reason.strip()}],
                "runs": {one.name: one.facts for one in runs},
            }
            texts[path] = json.dumps(said, indent=1) + "\n"
        write_together(texts)
    return list(texts)


def last_runs(orders: Orders, demands: Demands, now: datetime) -> list[Run]:
    """The last run of each order, as it was published; one that is too old, or is not there, has failed."""
    found = []
    for order in orders.runs:
        try:
            mine = _runs_of(order)
        except OSError as error:
            where = printable(str(error.filename or order.case_folder))
            found.append(failed(order, f"its runs cannot be read: {error.strerror} ({where})"))
            continue
        done = [one for one in mine if one.outcome == DONE]
        age = (now - datetime.fromisoformat(done[-1].began)).total_seconds() if done else 0
        if not mine:
            found.append(failed(order, "it has never been run. Run it with `workbench check`"))
        elif (mine[-1].notebook, mine[-1].parameters) != (order.notebook.stem, order.asked):
            found.append(failed(order, "it has not been run with these parameters. Run it with `workbench check`"))
        elif demands.max_age is not None and not done:
            found.append(failed(order, "no run was ever done. Look whether it is still scheduled"))
        elif demands.max_age is not None and not -AHEAD <= age <= demands.max_age:
            do = "a clock is wrong: run it anew when it is right" if age < 0 else "look whether it is still scheduled"
            found.append(failed(order, f"the last run that was done is of {done[-1].began}: {do}"))
        else:
            found.append(mine[-1])
    return found


def _runs_of(order: Order) -> list[Run]:
    return [one for one in runs_in(order.case_folder) if (one.file, one.name) == (order.file, order.name)]


def failed(order: Order, why: str) -> Run:
    """A run that could not be."""
    return Run(order.name, order.notebook.stem, "failed", why, file=order.file)


def not_begun(path: Path, why: str, what: str = NOT_BEGUN) -> CheckedRun:
    """What stands for all runs of a parameters file that cannot be used: whoever looks at the outcome has to see it."""
    return CheckedRun(Run(what, "", "failed", why, file=path.name), FAILED, [why], path=path)


def not_ended(orders: Orders) -> list[CheckedRun]:
    """What its runs are while they are made: whoever looks meanwhile, or after a check that was killed, sees no old pass."""
    why = "the check has not come to its end"
    asked = [*orders.runs, *(each.order for each in orders.refused)]
    return [CheckedRun(failed(one, why), FAILED, [why], path=orders.path) for one in asked]


def checked(
    orders: Orders, runs: Iterable[Run], demands: Demands, baseline: Mapping[str, Any], now: datetime
) -> list[CheckedRun]:
    """Hold each run against what was accepted, and against the run before."""
    asked = {one.name: one for one in [*orders.runs, *(each.order for each in orders.refused)]}
    made = []
    for one in runs:
        accepted = baseline["runs"].get(one.name)
        earlier = list[Run]()
        with suppress(OSError):  # of a case that cannot be read: the run has failed for that, and the others go on
            earlier = [other for other in _runs_of(asked[one.name]) if not one.number or other.number < one.number]
        was = _held(earlier[-1], accepted, demands)[0] if earlier else None
        if one.outcome != DONE:
            made.append(CheckedRun(one, FAILED, [one.why], was=was, path=orders.path))
            continue
        outcome, why, held = _held(one, accepted, demands, now)
        done = [other for other in earlier if other.outcome == DONE]
        before = judged(one.facts, done[-1].facts, demands.terms, now.date()) if done else None
        made.append(CheckedRun(one, outcome, why, held, before, was, orders.path))
    return made


def _held(
    one: Run, accepted: Mapping[str, Any] | None, demands: Demands, now: datetime | None = None
) -> tuple[str, list[str], Judged | None]:
    """The outcome of a run, as of now, or as of when it was; why; and what came of holding it against the baseline."""
    if one.outcome != DONE:
        return FAILED, [one.why], None
    now = now or datetime.fromisoformat(one.began)
    held = judged(one.facts, accepted, demands.terms, now.date())
    old = too_old(one.facts, demands.max_evidence_age, now)
    outcome = INCONCLUSIVE if old and held.outcome == CLEAN else held.outcome
    return outcome, [*held.because, *([old] if old else [])], held
