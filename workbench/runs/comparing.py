"""The facts of two runs held against each other: what is new, worse, cleared, better; all else is the same.

Only facts are compared (`facts.py`), never sentences or times of the run. A tolerance says how much worse a number may be
before that counts; an acknowledgement takes findings, and the numbers that say the same, out of the count until a day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple

from workbench.checks import CLEAN, FAILED, FINDINGS, INCONCLUSIVE, OUTCOMES
from workbench.model import SEVERITIES
from workbench.rules.sending import NOTHING, SEND
from workbench.runs.facts import SCOPE

NEW, WORSE, CLEARED, BETTER = "new", "worse", "cleared", "better"

NOT_COMPARED = ("pending", "lag")
"""Numbers that go up and down all day: without a tolerance of their own they are not compared."""

AHEAD = 300
"""Seconds that clocks of two machines may differ."""


class Difference(NamedTuple):
    """One fact that is not as it was.

    kind    new, worse, cleared or better
    fact    findings, evidence, lag, sessions, anchors, cases, or the list that was counted
    about   of what: the code and its scope, server and origin, supplier and consumer
    counts  it is a reason not to pass
    """

    kind: str
    fact: str
    about: tuple[str, ...]
    before: Any
    now: Any
    counts: bool

    def __str__(self) -> str:
        value = f"{self.before} before, {self.now} now" if self.kind in (WORSE, BETTER) else self.now or self.before
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

    outcome      clean, findings or inconclusive
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

    Where the evidence does not go far enough nothing else makes up for that: also if it never went farther.
    """
    found = list(differences(now, before, terms, today)) if before is not None else None
    open_ = list(_not_told(now, terms, today, before is None))
    if found is None:
        strong = [
            ", ".join(_told(SCOPE, [row[key] for key in SCOPE])) for row in now["findings"] if terms.counts(row, today)
        ]
        strong += [f"{row['case']}: {row['outcome']}" for row in now["cases"] if row["outcome"] in (FINDINGS, FAILED)]
    else:
        # Servers that are gone are the reason why nothing can be told, where nothing can be.
        weak = ("unknown", "evidence") if open_ else ("unknown",)
        reasons = [one for one in found if one.counts]
        soft = [one for one in reasons if one.fact in weak or (one.fact == "cases" and one.now == INCONCLUSIVE)]
        strong = [str(one) for one in reasons if one not in soft]
        open_ = [str(one) for one in soft] + open_
        # That a case could not be looked at before, either, makes it no pass.
        strong = strong or [f"{row['case']}: {FAILED}" for row in now["cases"] if row["outcome"] == FAILED]
    outcome = FINDINGS if strong else INCONCLUSIVE if open_ else CLEAN
    return Judged(outcome, found, list(dict.fromkeys([*strong, *open_])), _expired(now, terms, today))


def _not_told(now: Mapping[str, Any], terms: Terms, today: date, first: bool) -> Iterator[str]:
    """Why nobody can tell whether it is clean, but for what is acknowledged. Beside findings that were accepted, stretches
    that are unknown count when there are more: `first` is for a run that is held against nothing.
    """
    unknown = [row for row in _numbers(now) if row["code"] == INCONCLUSIVE.upper()]
    if not now["compared"] and not terms.known(_NOBODY_CAN_TELL, today):
        yield "fewer than two servers of each suffix tell what they have seen: of missing changes nothing can be said"
    elif (now["verdict"] == INCONCLUSIVE or (first and unknown)) and not all(
        terms.known(row, today) for row in unknown or [_NOBODY_CAN_TELL]
    ):
        yield "the evidence does not go far enough"
    for row in now["cases"]:
        if row["outcome"] == INCONCLUSIVE and not terms.known(_NOBODY_CAN_TELL, today):
            yield f"{row['case']}: {INCONCLUSIVE}"


_NOBODY_CAN_TELL = {"code": INCONCLUSIVE.upper()}


def _numbers(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lists that were counted, as what can be acknowledged."""
    return [{**row, "code": SAYS[row["list"]]} for row in facts["counts"]]


def _expired(now: Mapping[str, Any], terms: Terms, today: date) -> list[Acknowledged]:
    there = [*now["findings"], *_numbers(now), *([_NOBODY_CAN_TELL] if now["verdict"] == INCONCLUSIVE else [])]
    return [one for one in terms.acknowledged if today > one.until and any(one.covers(row) for row in there)]


def too_old(facts: Mapping[str, Any], most: int | None, now: datetime) -> str:
    """Why the evidence of a run is no longer, or not yet, to be relied on; empty if it may be `most` seconds old and is not."""
    if most is None:
        return ""
    if facts["evidence_at"] is None:
        return "nothing tells how old the evidence is"
    age = (now - datetime.fromisoformat(facts["evidence_at"])).total_seconds()
    if age < -AHEAD:
        return f"the newest evidence is of {facts['evidence_at']}: a clock is wrong"
    return f"the newest evidence is of {facts['evidence_at']}. Look whether it is still collected" if age > most else ""


def differences(now: Mapping[str, Any], before: Mapping[str, Any], terms: Terms, today: date) -> Iterator[Difference]:
    """Every fact that is not as it was."""
    for fact, keys, value, rank in _FACTS:
        mine, was = (_by(keys, some[fact], value, rank) for some in (now, before))
        for about in dict.fromkeys([*mine, *was]):
            new, old = mine.get(about), was.get(about)
            name = about[0] if fact == "counts" else fact
            tolerance = terms.tolerance(name)
            high, low = (rank(one[value]) if one else 0 for one in (new, old))
            if high == low or tolerance is None:
                continue
            kind = (NEW if old is None else WORSE) if high > low else (CLEARED if new is None else BETTER)
            counts = high > low + tolerance and _counts(name, new or {}, now, terms, today)
            yield Difference(kind, name, _told(keys, about), old and old[value], new and new[value], counts)
    mine, was = (_by(_SERVER, some["servers"], "server", lambda _: 0) for some in (now, before))
    for about in dict.fromkeys([*mine, *was]):
        if about not in mine or about not in was:
            gone = about in was
            then, is_so = _COLLECTED if gone else _COLLECTED[::-1]
            yield Difference(WORSE if gone else BETTER, "evidence", _told(_SERVER, about), then, is_so, gone)
    yield from _gone_back(now, before["sessions"], terms, today)


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
    return not terms.known({**row, "code": SAYS.get(name)}, today)


def _of_a_known_link(session: Mapping[str, Any], now: Mapping[str, Any], terms: Terms, today: date) -> bool:
    """True if findings tell what is wrong with its link, and all that count are acknowledged."""
    mine = [row for row in now["findings"] if row["link"] and row["link"] == session["link"]]
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


_PAIR = ("supplier", "consumer", "suffix")
_SERVER = ("case", "server", "suffix")
_COLLECTED = ("collected", "not collected")
_GOOD = (SEND, NOTHING)

_FACTS: tuple[tuple[str, tuple[str, ...], str, Callable[[Any], float]], ...] = (
    ("findings", SCOPE, "severity", lambda value: SEVERITIES.index(value) + 1),
    ("counts", ("list", "server", "origin", "suffix"), "count", float),
    ("lag", ("server", "origin", "suffix"), "seconds", float),
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
