"""The facts of two runs held against each other: what is new, worse, cleared, better; all else is the same.

Only facts are compared (`facts.py`), never sentences or times of the run. A tolerance says how much worse a number may be
before that counts; an acknowledgement takes findings out of the count until a day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from workbench.checks import CLEAN, FAILED, FINDINGS, INCONCLUSIVE, OUTCOMES
from workbench.model import SEVERITIES
from workbench.rules.sending import NOTHING, SEND
from workbench.runs.facts import SCOPE

NEW, WORSE, CLEARED, BETTER = "new", "worse", "cleared", "better"

NOT_COMPARED = ("pending", "lag")
"""Numbers that go up and down all day: without a tolerance of their own they are not compared."""


class Difference(NamedTuple):
    """One fact that is not as it was.

    kind    new, worse, cleared or better
    fact    findings, lag, sessions, anchors, cases, or the list that was counted
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
    """Findings that somebody knows of: they do not count up to and including that day.

    scope  server, link, origin, suffix: those that are given must be those of the finding
    """

    code: str
    until: date
    reason: str
    scope: Mapping[str, str] = field(default_factory=dict)

    def covers(self, finding: Mapping[str, Any]) -> bool:
        """True if it speaks of this finding, on whatever day."""
        return finding["code"] == self.code and all(finding[key] == value for key, value in self.scope.items())


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
        return grave and not any(one.covers(finding) and today <= one.until for one in self.acknowledged)

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


def judged(now: Mapping[str, Any], before: Mapping[str, Any] | None, terms: Terms, today: date) -> Judged:
    """Hold the facts of a run against those of an earlier one. Without one, every finding that counts is a reason."""
    expired = [
        one for one in terms.acknowledged if today > one.until and any(one.covers(row) for row in now["findings"])
    ]
    if before is None:
        grave = [
            ", ".join(_told(SCOPE, [row[key] for key in SCOPE])) for row in now["findings"] if terms.counts(row, today)
        ]
        grave += [f"{row['case']}: {row['outcome']}" for row in now["cases"] if row["outcome"] in (FINDINGS, FAILED)]
        if grave:
            return Judged(FINDINGS, None, grave, expired)
        if now["verdict"] == INCONCLUSIVE or any(row["list"] == "unknown" for row in now["counts"]):
            return Judged(INCONCLUSIVE, None, ["the evidence does not go far enough"], expired)
        return Judged(CLEAN, None, [], expired)
    found = list(differences(now, before, terms, today))
    reasons = [one for one in found if one.counts]
    weak = [one for one in reasons if one.fact == "unknown" or (one.fact == "cases" and one.now == INCONCLUSIVE)]
    became = now["verdict"] == INCONCLUSIVE and OUTCOMES.index(before["verdict"]) < OUTCOMES.index(INCONCLUSIVE)
    outcome = FINDINGS if len(reasons) > len(weak) else INCONCLUSIVE if weak or became else CLEAN
    because = [str(one) for one in reasons] + ["the evidence does not go far enough any more"] * (became and not weak)
    return Judged(outcome, found, because, expired)


def differences(now: Mapping[str, Any], before: Mapping[str, Any], terms: Terms, today: date) -> Iterator[Difference]:
    """Every fact that is not as it was."""
    for fact, keys, value, rank in _FACTS:
        mine, was = ({tuple(row[key] for key in keys): row for row in some[fact]} for some in (now, before))
        for about in dict.fromkeys([*mine, *was]):
            new, old = mine.get(about), was.get(about)
            name = about[0] if fact == "counts" else fact
            tolerance = terms.tolerance(name)
            high, low = (rank(one[value]) if one else 0 for one in (new, old))
            if high == low or tolerance is None:
                continue
            kind = (NEW if old is None else WORSE) if high > low else (CLEARED if new is None else BETTER)
            counts = high > low + tolerance and (fact != "findings" or terms.counts(new or {}, today))
            yield Difference(kind, name, _told(keys, about), old and old[value], new and new[value], counts)
    yield from _gone_back(now["sessions"], before["sessions"])


def _gone_back(now: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any]]) -> Iterator[Difference]:
    """Sessions that would begin before the record at which they would have begun: somebody has lost what it had."""
    was = {tuple(row[key] for key in _PAIR): row for row in before}
    for new in now:
        about = tuple(new[key] for key in _PAIR)
        old = was.get(about)
        if old and new["anchor_key"] and old["anchor_key"] and new["anchor_key"] < old["anchor_key"]:
            yield Difference(WORSE, "anchors", _told(_PAIR, about), old["anchor"], new["anchor"], True)


_PAIR = ("supplier", "consumer", "suffix")
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
