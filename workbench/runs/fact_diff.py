"""The facts of two runs held against each other: what is new, worse, cleared, better; all else is the same.

Only facts are compared (`facts.py`), never sentences or times of the run. A tolerance says how much worse a number may be
before that counts; an acknowledgement takes findings, and the numbers that say the same, out of the count until a day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple

from workbench.diagnosis.diagnosis_text import ONE_SERVER
from workbench.model import SEVERITIES
from workbench.rules.send_session import NOTHING, SEND
from workbench.runs.baseline_check import CLEAN, FAILED, FINDINGS, INCONCLUSIVE, OUTCOMES
from workbench.runs.case_facts import CUT, NAMED, NOT_WHOLE, SCOPE
from workbench.topology.topology import IS_DOWN, NO_VECTOR, NOT_ALL, NOT_COLLECTED

NEW, WORSE, CLEARED, BETTER = "new", "worse", "cleared", "better"

NOT_COMPARED = ("pending", "lag")
"""Numbers that go up and down all day: without a tolerance of their own they are not compared."""

AHEAD = 300
"""Seconds that clocks of two machines may differ."""


class Difference(NamedTuple):
    """One fact that is not as it was.

    kind    new, worse, cleared or better
    fact    findings, evidence, lag, links, sessions, anchors, cases, or the list that was counted
    about   of what: the case, the code and its scope, server and origin, supplier and consumer
    counts  it is a reason not to pass
    others  of single changes, how many were not among those before where the number does not tell; None: nobody can tell
    """

    kind: str
    fact: str
    about: tuple[str, ...]
    before: Any
    now: Any
    counts: bool
    others: int | None = 0

    def __str__(self) -> str:
        now = self.now
        if self.others != 0:
            now = f"{now} ({'nobody can tell how many' if self.others is None else self.others} new)"
        value = f"{self.before} before, {now} now" if self.kind in (WORSE, BETTER) else now or self.before
        return f"{self.kind}: {self.fact} {', '.join(self.about)}: {value}"


@dataclass(frozen=True)
class Acknowledged:
    """Something that somebody knows of: up to and including that day it does not count.

    code   of findings; with them go the numbers and sessions that say the same. INCONCLUSIVE: that nobody can tell
    scope  server, link, origin, suffix: those that are given must be those of the finding
    """

    code: str
    until: date
    reason: str
    scope: Mapping[str, str] = field(default_factory=dict)

    def covers(self, finding: Mapping[str, Any]) -> bool:
        """True if it speaks of this finding, on whatever day."""
        return finding["code"] == self.code and all(finding.get(key) == value for key, value in self.scope.items())


@dataclass(frozen=True)
class Terms:
    """How strictly runs are compared.

    threshold     from which severity on a finding counts
    tolerances    list of changes, or `lag` -> how much higher the number may be
    """

    threshold: str = "warning"
    tolerances: Mapping[str, int] = field(default_factory=dict)
    acknowledged: Sequence[Acknowledged] = ()

    def counts(self, finding: Mapping[str, Any], today: date) -> bool:
        """True if the finding is grave enough and nobody has acknowledged it for today."""
        grave = SEVERITIES.index(finding["severity"]) >= SEVERITIES.index(self.threshold)
        return grave and not self.known(finding, today)

    def known(self, finding: Mapping[str, Any], today: date) -> bool:
        """True if somebody has acknowledged it for today."""
        return any(one.covers(finding) and today <= one.until for one in self.acknowledged)

    def tolerance(self, name: str) -> int | None:
        """How much higher a number may be; None: it is not compared."""
        return self.tolerances.get(name, None if name in NOT_COMPARED else 0)


@dataclass(frozen=True)
class Judged:
    """What a run comes to when it is held against another, or against nothing.

    outcome      clean, findings, inconclusive or failed
    differences  from the other run; None: there was none to hold it against
    because      the reasons for the outcome, a sentence each
    expired      acknowledgements that have run out and whose findings are there
    """

    outcome: str
    differences: Sequence[Difference] | None
    because: Sequence[str]
    expired: Sequence[Acknowledged] = ()

    @property
    def worse(self) -> bool:
        """True if anything that counts is new or worse than in the other run."""
        return any(one.counts for one in self.differences or ())


SAYS = {"missing": "MISSED_CHANGE", "stranded": "STRANDED_CHANGE", "unknown": "INCONCLUSIVE"}
SAYS |= dict.fromkeys(NOT_COMPARED, "PENDING_CHANGES")
"""List of changes, or `lag` -> the code that says the same, by which it is acknowledged."""


def judged(now: Mapping[str, Any], before: Mapping[str, Any] | None, terms: Terms, today: date) -> Judged:
    """Hold the facts of a run against those of an earlier one. Without one, every finding that counts is a reason.

    Where the evidence does not go far enough nothing else makes up for that: also if it never went farther. The same is true
    of a case that could not be looked at.
    """
    found = list(differences(now, before, terms, today)) if before is not None else None
    failed = [f"{row['case']}: {FAILED}" for row in now["cases"] if row["outcome"] == FAILED]
    open_ = list(_not_told(now, terms, today))
    if found is None:
        strong = list(_found(now, terms, today))
    else:
        # Servers that are gone are the reason why nothing can be told, where nothing can be.
        nothing = now["verdict"] == INCONCLUSIVE or any(row["why"] in (ONE_SERVER, NO_VECTOR) for row in now["untold"])
        weak = ("unknown", "evidence") if open_ and nothing else ("unknown",)
        reasons = [one for one in found if one.counts]
        soft = [one for one in reasons if one.fact in weak]
        strong = [str(one) for one in reasons if one not in soft]
        open_ = [str(one) for one in soft] + open_
    outcome = FAILED if failed else FINDINGS if strong else INCONCLUSIVE if open_ else CLEAN
    return Judged(outcome, found, list(dict.fromkeys([*failed, *strong, *open_])), _expired(now, terms, today))


def _found(now: Mapping[str, Any], terms: Terms, today: date) -> Iterator[str]:
    """What counts of a run that is held against nothing. A case of several was held against its own baseline already."""
    bad = [row["case"] for row in now["cases"] if row["outcome"] == FINDINGS]
    for case in bad if now["cases"] else [None]:
        rows = [row for row in now["findings"] if row["case"] == case]
        counting = [row for row in rows if terms.counts(row, today)]
        for row in counting:
            yield ", ".join(_told(_FINDING, [row[key] for key in _FINDING]))
        if case is not None and not counting and not any(terms.known(row, today) for row in rows):
            yield f"{case}: {FINDINGS}"


def _not_told(now: Mapping[str, Any], terms: Terms, today: date) -> Iterator[str]:
    """Why nobody can tell whether it is clean, but for what is acknowledged: whatever else was found, and was accepted."""
    verdicts = {row["case"]: row["outcome"] for row in now["cases"]} or {None: now["verdict"]}
    for case, verdict in verdicts.items():
        of = f"{case}: " if case is not None else ""
        unknown, untold = ([row for row in rows if row["case"] == case] for rows in (_unknown(now), _untold(now)))
        if not unknown and not untold and verdict == INCONCLUSIVE:  # whatever it could not be held against
            unknown = [_NOBODY_CAN_TELL]
        if not all(terms.known(row, today) for row in unknown):
            yield f"{of}the evidence does not go far enough"
        codes = [SAYS[name] for name in NAMED]
        listed = [row for row in now["findings"] if row["case"] == case and row["code"] in codes]
        for row in untold:
            if row["why"] == CUT and listed and all(terms.known(one, today) for one in listed):
                continue  # whichever they are, somebody knows of them
            if not terms.known(row, today):
                about = f"{row['server'] or ''}{' of ' + row['suffix'] if row['suffix'] else ''}".strip()
                yield f"{of}{_UNTOLD[row['why']].format(about or 'the servers')}"


_UNTOLD = {
    ONE_SERVER: "only {} tells what it has seen: of missing changes nothing can be said",
    NO_VECTOR: "no vector or log of {} was collected: of missing changes nothing can be said",
    IS_DOWN: "{} was not collected: it could not be read",
    NOT_COLLECTED: "{} was not collected: a link leads there",
    NOT_ALL: "{} or another server that links lead to was not collected",
    CUT: "more changes are missing or stranded than a list holds: whether they are others than before nobody can tell",
    NOT_WHOLE: "it or the diagnosis in it that it is held against is not whole: not all could be compared",
}
_NOBODY_CAN_TELL: dict[str, Any] = {"code": INCONCLUSIVE.upper()}


def _numbers(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lists that were counted, as what can be acknowledged."""
    return [{**row, "code": SAYS[row["list"]]} for row in facts["counts"]]


def _unknown(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [row for row in _numbers(facts) if row["list"] == "unknown"]


def _untold(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the evidence does not tell, as what can be acknowledged."""
    return [{**row, **_NOBODY_CAN_TELL} for row in facts["untold"]]


def _expired(now: Mapping[str, Any], terms: Terms, today: date) -> list[Acknowledged]:
    nobody = now["verdict"] == INCONCLUSIVE or any(row["outcome"] == INCONCLUSIVE for row in now["cases"])
    there = [*now["findings"], *_numbers(now), *_untold(now), *([_NOBODY_CAN_TELL] if nobody else [])]
    return [one for one in terms.acknowledged if today > one.until and any(one.covers(row) for row in there)]


def too_old(facts: Mapping[str, Any], most: int | None, now: datetime) -> str:
    """Why the evidence of a run is no longer, or not yet, to be relied on; empty if it may be `most` seconds old and is not."""
    if most is None:
        return ""
    if facts["evidence_at"] is None:
        return f"nothing tells how old the evidence{' of ' + facts['evidence_of'] if facts['evidence_of'] else ''} is"
    age = (now - datetime.fromisoformat(facts["evidence_at"])).total_seconds()
    of = f"the newest evidence{' of ' + facts['evidence_of'] if facts['evidence_of'] else ''} is of {facts['evidence_at']}"
    if age < -AHEAD:
        return f"{of}: a clock is wrong"
    return f"{of}. Look whether it is still collected" if age > most else ""


def differences(now: Mapping[str, Any], before: Mapping[str, Any], terms: Terms, today: date) -> Iterator[Difference]:
    """Every fact that is not as it was; of a case that could not be looked at, that alone."""
    failed = {row["case"] for row in now["cases"] if row["outcome"] == FAILED}
    now, before = (_comparable(some, failed) for some in (now, before))
    for fact, keys, value, rank in _FACTS:
        mine, was = (_by(keys, some[fact], value, rank) for some in (now, before))
        for about in dict.fromkeys([*mine, *was]):
            new, old = mine.get(about), was.get(about)
            name = about[0] if fact == "counts" else fact
            tolerance = terms.tolerance(name)
            high, low = (rank(one[value]) if one else 0 for one in (new, old))
            others = _others(new, old) if name in NAMED and new and old else 0
            if (high == low and not others) or tolerance is None:
                continue
            kind = (NEW if old is None else WORSE) if high > low or others else (CLEARED if new is None else BETTER)
            counts = max(high - low, others) > tolerance and _counts(name, new or {}, now, terms, today)
            hidden = others if others > max(high - low, 0) else 0  # the number alone does not tell
            more = None if hidden == math.inf else int(hidden)
            yield Difference(kind, name, _told(keys, about), old and old[value], new and new[value], counts, more)
    yield from _collected(now, before)
    yield from _linked(now, before)
    yield from _gone_back(now, before["sessions"], terms, today)


def _comparable(facts: Mapping[str, Any], failed: Collection[str]) -> dict[str, Any]:
    """The facts but for those of cases that failed, and for sessions of servers without a link: nobody would hold them."""
    there: dict[str, Any] = {
        name: [row for row in rows if name == "cases" or row["case"] not in failed]
        for name, rows in facts.items()
        if isinstance(rows, list)
    }
    return {**facts, **there, "sessions": [row for row in there["sessions"] if row["link"]]}


def _others(new: Mapping[str, Any], old: Mapping[str, Any]) -> float:
    """How many single changes are listed now that were not: in the place of others, which may hide them. Of a list that is
    whole and one that was cut all may be; two that were cut cannot be told apart, and that is untold (`CUT`).
    """
    now, before = new["positions"], old["positions"]
    if now is None or before is None:
        return 0 if now is before else math.inf
    return len({*now} - {*before})


def _collected(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Difference]:
    """Servers that tell no longer what they have seen, or do again."""
    mine, was = (_by(_SERVER, some["servers"], "server", lambda _: 0) for some in (now, before))
    for about in dict.fromkeys([*mine, *was]):
        if about not in mine or about not in was:
            gone = about in was
            then, is_so = _COLLECTED if gone else _COLLECTED[::-1]
            yield Difference(WORSE if gone else BETTER, "evidence", _told(_SERVER, about), then, is_so, gone)


def _linked(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Difference]:
    """Links that are gone, lead elsewhere, or are there again. Those of a supplier that was not collected are not known."""
    mine, was = (_by(_LINK, some["links"], "link", lambda _: 0) for some in (now, before))
    telling = {(row["case"], row["server"]) for row in now["servers"]}
    for about in dict.fromkeys([*was, *mine]):
        new, old = mine.get(about), was.get(about)
        if old is None and new:
            yield Difference(BETTER, "links", _told(_LINK, about), "no link", _leads(new), False)
        elif old and new is None and about[:2] in telling:
            yield Difference(WORSE, "links", _told(_LINK, about), _leads(old), "gone", True)
        elif old and new and old["consumer"] and new["consumer"] and old["consumer"] != new["consumer"]:
            yield Difference(WORSE, "links", _told(_LINK, about), _leads(old), _leads(new), True)


def _leads(link: Mapping[str, Any]) -> str:
    return f"to {link['consumer'] or 'a server that nothing names'}"


def _by(
    keys: Sequence[str], rows: Iterable[Mapping[str, Any]], value: str, rank: Callable[[Any], float]
) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """The rows by what tells them apart; of two that nothing does, the worse."""
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        about = tuple(row[key] for key in keys)
        if about not in found or rank(row[value]) > rank(found[about][value]):
            found[about] = row
    return found


def _counts(name: str, row: Mapping[str, Any], now: Mapping[str, Any], terms: Terms, today: date) -> bool:
    """True unless somebody has acknowledged what is worse, or it is a finding that is not grave."""
    if name == "findings":
        return terms.counts(row, today)
    if name == "sessions":
        return not _of_a_known_link(row, now, terms, today)
    if name == "cases" and row["outcome"] != FAILED:
        # What cannot be told is a reason anyway, and what is acknowledged is none.
        mine = [one for one in now["findings"] if one["case"] == row["case"]]
        return row["outcome"] == FINDINGS and not any(terms.known(one, today) for one in mine)
    return not terms.known({**row, "code": SAYS.get(name)}, today)


def _of_a_known_link(session: Mapping[str, Any], now: Mapping[str, Any], terms: Terms, today: date) -> bool:
    """True if findings tell what is wrong with its link, and all that count are acknowledged."""
    about = session["case"], session["link"]
    mine = [row for row in now["findings"] if row["link"] and (row["case"], row["link"]) == about]
    return any(terms.known(row, today) for row in mine) and not any(terms.counts(row, today) for row in mine)


def _gone_back(
    now: Mapping[str, Any], before: Iterable[Mapping[str, Any]], terms: Terms, today: date
) -> Iterator[Difference]:
    """Sessions that would begin before the record at which they would have begun: somebody has lost what it had."""
    was = {tuple(row[key] for key in _PAIR): row for row in before}
    for new in now["sessions"]:
        about = tuple(new[key] for key in _PAIR)
        old = was.get(about)
        if old and new["anchor_key"] and old["anchor_key"] and new["anchor_key"] < old["anchor_key"]:
            counts = not _of_a_known_link(new, now, terms, today)
            yield Difference(WORSE, "anchors", _told(_PAIR, about), old["anchor"], new["anchor"], counts)


_FINDING = ("case", *SCOPE)
_PAIR = ("case", "supplier", "consumer", "suffix")
_SERVER = ("case", "server", "suffix")
_LINK = ("case", "supplier", "suffix", "link")
_COLLECTED = ("collected", "not collected")
_GOOD = (SEND, NOTHING)

_FACTS: tuple[tuple[str, tuple[str, ...], str, Callable[[Any], float]], ...] = (
    ("findings", _FINDING, "severity", lambda value: SEVERITIES.index(value) + 1),
    ("counts", ("list", "case", "server", "origin", "suffix"), "count", float),
    ("lag", ("case", "server", "origin", "suffix"), "seconds", float),
    ("sessions", _PAIR, "decision", lambda value: 0 if value in _GOOD else 1),
    ("cases", ("case",), "outcome", OUTCOMES.index),
)
"""List of facts, what tells its rows apart, what is compared, and how bad that is; a row that is not there is 0."""


def _told(keys: Sequence[str], about: Sequence[Any]) -> tuple[str, ...]:
    """The scope in words, without what is empty or stands there already."""
    return tuple(
        str(part) if key in ("code", "case") else f"{key} {part}"
        for key, part in zip(keys, about, strict=True)
        if part and key != "list"
    )
