"""One send session: does a supplier send to a consumer, from where, up to where, and why is each other change left out?

The machine (`play`) loads records into a buffer, has each one judged, and asks at the end of the buffer where to go on.
What it asks is a *rule set*, chosen by name: `design` in this module is the design document "Processing the replication
changelog when sending updates"; what a real server does instead is a rule set in its folder under `workbench/systems`.

A rule set answers from two vectors and a few questions to the supplier's log (`Log`), never from the whole log, and of a
session in one load it tells the outcome of every record as a handful of bands per origin. So an exact replay over a list,
a pass of Spark over a hundred million changes and prefix sums on the driver are answered by the same functions.

Every decision comes with its reason as data: the rule's name (a key of the rule set's `says`) and the values compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Protocol

from workbench.rules.vectors import Vector, advanced

SEND, NOTHING, ANCHOR_NOT_FOUND, REFUSED = "send", "nothing_to_send", "anchor_not_found", "refused"
"""What becomes of a session between two servers; refused: they may exchange nothing."""
KEEPS_NO_LOG, LOG_NOT_WHOLE = "keeps_no_log", "log_not_whole"
"""Reasons that no rule set gives: of the evidence, not of the protocol."""

SENT, COVERED, UNKNOWN, BEYOND = "sent", "covered", "unknown_rid", "beyond_local_max"
PROMOTED, CONSUMERS_OWN, HELPER = "sent_promoted", "consumer_rid", "helper"
DELIVERED = frozenset({SENT, PROMOTED})
"""Outcomes that send the change; all others leave it out."""

NO_MORE, BELOW_START = "no_more_updates", "stopped_below_session_start"
RELOAD_NOT_FOUND, END_OF_LOG = "stopped_reload_anchor_not_found", "end_of_changelog"
ENDLESS = "would_never_end"
"""No rule set says this; the machine does, where a rule set would read the same records again and again."""


class Tally(NamedTuple):
    """Records of one origin in some range: how many, the first and the last."""

    changes: int = 0
    first: str | None = None
    last: str | None = None


class Log(Protocol):
    """What a rule may ask of the supplier's log.

    Marks are records that are no changes, written where a log was made anew (`cn=start iteration`): reading can begin at
    one and passes it like a change, it is only never sent.
    """

    @property
    def marks(self) -> Collection[str]:
        """The marks, in any order: a few."""

    def origin_of(self, position: str) -> str:
        """Who made the change."""

    def origins(self) -> Iterable[str]:
        """The origins of its changes."""

    def holds(self, position: str) -> bool:
        """True if there is a record, change or mark, of exactly this position."""

    def after(self, position: str) -> str | None:
        """The first record, change or mark, above the position."""

    def first_of(self, origin: str) -> str | None:
        """The first change of the origin."""

    def changes(self, origin: str, low: Bound) -> Iterator[str]:
        """The changes of the origin from the bound on, in order; read only as far as needed."""

    def tally(self, origin: str, low: Bound, high: str | None) -> Tally:
        """The changes of the origin from the bound to `high`, this one included; None: to the end."""


class Readable(Log, Protocol):
    """A log that can be read record by record."""

    def read(self, bound: Bound, limit: int) -> Iterable[str]:
        """So many records, changes and marks, from the bound on, as they are now."""


class Bound(NamedTuple):
    """Where reading begins: at this position, or right behind it."""

    position: str
    included: bool

    def place(self, positions: Sequence[str]) -> int:
        """Where in ascending positions reading begins."""
        return (bisect_left if self.included else bisect_right)(positions, self.position)


class Reason(NamedTuple):
    """Why something was decided: the rule, and the values that it compared.

    Text among the values is a position, except under the keys of ORIGINS: there it names origins.
    """

    rule: str
    values: Mapping[str, Any]


ORIGINS = frozenset({"origin", "rid", "changed"})
"""Keys of a reason's values under which origins stand."""


class Step(NamedTuple):
    """One record read: what became of it, by which rule, against which two values (None: there is none)."""

    position: str
    outcome: str
    rule: str
    consumer: str | None
    stop: str | None


class Band(NamedTuple):
    """All records of one origin up to `upto` (None: to the end) that no band before it has share one outcome."""

    upto: str | None
    outcome: str


@dataclass(frozen=True)
class Start:
    """Where a session, or a further load of it, begins: there is a record to read from the bound on.

    Without a bound nothing is read: `decision` or `end` says why.
    """

    bound: Bound | None
    anchor: str | None = None
    decision: str = SEND
    end: str | None = None
    reasons: Sequence[Reason] = ()


class SendSession(Protocol):
    """One session under one rule set: what it remembers from the first decision to the end of the last buffer."""

    start: Start
    about: Mapping[str, Any]
    """What the rule set found out at the start and wants to be known of (`consumer_rid_ignored`, `anchor1` ...)."""

    @property
    def stops(self) -> Mapping[str, str]:
        """Per origin the position beyond which this load sends nothing."""

    def judge(self, position: str) -> Step:
        """What becomes of the next record of the buffer."""

    def reload(self, supplier: Vector, read: str) -> Start:
        """Where to go on after the buffer, whose last record was `read`; the supplier's vector as it is now."""

    def bands(self, origin: str) -> Sequence[Band]:
        """The outcome of every record of the origin, if all are read in one load and nothing happens meanwhile."""


class Rules(Protocol):
    """A named rule set with its settings."""

    @property
    def name(self) -> str:
        """What it is chosen by."""

    @property
    def says(self) -> Mapping[str, str]:
        """Rule -> the sentence for people."""

    def open(self, log: Log, supplier: Vector, consumer: Vector, consumer_origin: str) -> SendSession:
        """Begin a session: the consumer has just said what it holds."""


@dataclass(frozen=True)
class Supplying:
    """What the suppliers of one system do.

    rule_sets  by name; the first is that of the real servers
    refuses    generations of supplier and consumer -> why the two may exchange nothing; None: they may
    contacts   the supplier's vector, and what it remembers of the consumer's (None: nothing) -> does it open a session?
    absent     an anchor that the log lacks, the supplier's vector, how far the log was trimmed -> the class of its absence
    losing     the rule set of a supplier that was told to go on where the anchor is gone; None: it cannot be told
    not_found  the codes of lines by which a supplier says that its log lacks an anchor
    """

    rule_sets: Mapping[str, Callable[[], Rules]]
    refuses: Callable[[str | None, str | None], str | None]
    contacts: Callable[[Vector, Vector | None], bool]
    absent: Callable[[str, Vector, Mapping[str, str | None]], str]
    losing: Callable[[], Rules] | None = None
    not_found: frozenset[str] = frozenset()


class Event(NamedTuple):
    """Something that happens while a session runs: `changelog_add`, `changelog_delete` or `supplier_ruv_advance`."""

    do: str
    position: str


class Load(NamedTuple):
    """The buffer is loaded: from where and why from there, and per origin the position beyond which it sends nothing."""

    start: Start
    stops: Mapping[str, str]


class Passed(NamedTuple):
    """A mark was read: judged like a change, which can move the stop, and never sent."""

    step: Step


class End(NamedTuple):
    """Nothing more is read. Without a `why` nothing was: the decision of the start says it all."""

    why: str | None
    reasons: Sequence[Reason]


@dataclass
class Session:
    """What a session did."""

    rules: str
    decision: str
    anchor: str | None
    included: bool
    about: Mapping[str, Any]
    reasons: list[Reason] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    end: str | None = None
    loads: int = 0

    @property
    def sent(self) -> list[str]:
        """The positions that were sent, in the order of sending."""
        return [step.position for step in self.steps if step.outcome in DELIVERED]


@dataclass(frozen=True)
class Plan:
    """What a session would do now, in one load and undisturbed: the outcomes counted instead of listed."""

    rules: str
    decision: str
    anchor: str | None
    included: bool
    stops: Mapping[str, str]
    counts: Mapping[str, int]
    to_send: Mapping[str, Tally]
    reasons: Sequence[Reason]
    about: Mapping[str, Any]


def replay(
    rules: Rules,
    log: SortedLog,
    supplier: Vector,
    consumer: Vector,
    consumer_origin: str,
    per_load: int = 1 << 62,
    events: Mapping[int, Sequence[Event]] | None = None,
) -> Session:
    """Play one session to its end.

    `per_load` records fit into the buffer. `events` after the n-th change was sent (0: after the first load) change the
    log and the supplier's vector, not the buffer that is already loaded; the given log stays as it is.
    """
    log = log.copy() if events else log
    happens = {number: partial(happened, several, log) for number, several in (events or {}).items()}
    talk = rules.open(log, supplier, consumer, consumer_origin)
    start = talk.start
    session = Session(rules.name, start.decision, start.anchor, bool(start.bound and start.bound.included), talk.about)
    for seen in play(talk, log, supplier, per_load, happens):
        if isinstance(seen, Load):
            session.loads += 1
            session.reasons += seen.start.reasons
        elif isinstance(seen, Step):
            session.steps.append(seen)
        elif isinstance(seen, End):
            session.reasons += seen.reasons
            session.end = seen.why
    return session


def play(
    talk: SendSession,
    log: Readable,
    supplier: Vector,
    per_load: int = 1 << 62,
    happens: Mapping[int, Callable[[Vector], Vector]] | None = None,
) -> Iterator[Load | Step | Passed | End]:
    """Play one session, record by record, no further than somebody asks: the machine.

    `per_load` records fit into the buffer. `happens` after the n-th change was sent (0: after the first load) is told the
    supplier's vector and gives it as it is then; it may change the log, but not the buffer that is already loaded.
    """
    waiting = dict(happens or {})
    passed: set[tuple[Bound, int, int]] = set()
    start = talk.start
    sent, delivered = 0, set[str]()
    while start.bound:
        # A vector that contradicts itself (the first position above the last) can lead the real server back to the same
        # record for ever. With nothing sent for the first time and no event since, what follows is what followed then.
        here = (start.bound, len(delivered), len(waiting))
        if here in passed:
            yield End(ENDLESS, start.reasons)
            return
        passed.add(here)
        buffer, read = log.read(start.bound, per_load), start.bound.position
        yield Load(start, talk.stops)
        if sent in waiting:
            supplier = waiting.pop(sent)(supplier)
        for position in buffer:
            read = position
            step = talk.judge(position)
            if position in log.marks:
                yield Passed(
                    step
                )  # dropped behind the judgement, which takes it for a change that the consumer now has
                continue
            yield step
            if step.outcome in DELIVERED:
                sent += 1
                delivered.add(position)
                if sent in waiting:
                    supplier = waiting.pop(sent)(supplier)
        start = talk.reload(supplier, read)
    yield End(start.end if passed else None, start.reasons)


def happened(events: Iterable[Event], log: SortedLog, supplier: Vector) -> Vector:
    """Let the events change the log, and give the supplier's vector as it is after them."""
    for event in events:
        if event.do == "supplier_ruv_advance":
            supplier = advanced(supplier, log.origin_of(event.position), event.position)
        elif event.do == "changelog_add":
            log.add(event.position)
        elif event.do == "changelog_delete":
            log.delete(event.position)
        else:
            raise ValueError(f"unknown event {event.do!r}")
    return supplier


def plan(rules: Rules, log: Log, supplier: Vector, consumer: Vector, consumer_origin: str) -> Plan:
    """What a session would do, without reading the log record by record: the same answer as `replay` in one load."""
    talk = rules.open(log, supplier, consumer, consumer_origin)
    start = talk.start
    counts: dict[str, int] = {}
    to_send: dict[str, Tally] = {}
    if start.bound:
        for origin in log.origins():
            low = start.bound
            for band in talk.bands(origin):
                if band.upto is not None and band.upto < low.position:
                    continue
                found = log.tally(origin, low, band.upto)
                if found.changes:
                    counts[band.outcome] = counts.get(band.outcome, 0) + found.changes
                    if band.outcome in DELIVERED:
                        to_send[origin] = _joined(to_send.get(origin, Tally()), found)
                if band.upto is not None:
                    low = Bound(band.upto, False)
    return Plan(
        rules.name,
        start.decision,
        start.anchor,
        bool(start.bound and start.bound.included),
        dict(talk.stops) if start.bound else {},
        counts,
        to_send,
        start.reasons,
        talk.about,
    )


def _joined(one: Tally, more: Tally) -> Tally:
    return Tally(one.changes + more.changes, one.first or more.first, more.last)


class SortedLog:
    """A log in memory: what an exact replay reads, and the model of `Log` for everything faster."""

    def __init__(self, positions: Iterable[str], origin_of: Callable[[str], str], marks: Iterable[str] = ()) -> None:
        changes = set(positions)
        self.marks = set(marks) - changes
        self._origin_of = origin_of
        self._records = sorted(changes | self.marks)
        self._of: dict[str, list[str]] | None = None

    @property
    def positions(self) -> list[str]:
        """Its changes, in order."""
        return [position for position in self._records if position not in self.marks]

    def copy(self) -> SortedLog:
        """A log of its own with the same records."""
        return SortedLog(self.positions, self._origin_of, self.marks)

    def origin_of(self, position: str) -> str:
        """Who made the change."""
        return self._origin_of(position)

    def add(self, position: str) -> None:
        """Write a change; where there is a record, it stays as it is."""
        if not self.holds(position):
            insort(self._records, position)
            self._of = None

    def delete(self, position: str) -> None:
        """Take a record away, if it is there."""
        if self.holds(position):
            self._records.remove(position)
            self.marks.discard(position)
            self._of = None

    def read(self, bound: Bound, limit: int) -> list[str]:
        """So many records from the bound on."""
        at = bound.place(self._records)
        return self._records[at : at + limit]

    def _by_origin(self) -> dict[str, list[str]]:
        if self._of is None:
            self._of = {}
            for position in self.positions:
                self._of.setdefault(self._origin_of(position), []).append(position)
        return self._of

    def origins(self) -> Iterable[str]:
        """The origins of its changes."""
        return self._by_origin()

    def holds(self, position: str) -> bool:
        """True if there is a record, change or mark, of exactly this position."""
        at = bisect_left(self._records, position)
        return at < len(self._records) and self._records[at] == position

    def after(self, position: str) -> str | None:
        """The first record, change or mark, above the position."""
        at = bisect_right(self._records, position)
        return self._records[at] if at < len(self._records) else None

    def first_of(self, origin: str) -> str | None:
        """The first change of the origin."""
        return next(iter(self._by_origin().get(origin, ())), None)

    def changes(self, origin: str, low: Bound) -> Iterator[str]:
        """The changes of the origin from the bound on, in order."""
        mine = self._by_origin().get(origin, [])
        return islice(mine, low.place(mine), None)

    def tally(self, origin: str, low: Bound, high: str | None) -> Tally:
        """The changes of the origin from the bound to `high`, this one included; None: to the end."""
        mine = self._by_origin().get(origin, [])
        begin = low.place(mine)
        end = len(mine) if high is None else bisect_right(mine, high)
        return Tally(end - begin, mine[begin], mine[end - 1]) if begin < end else Tally()


# --- the design document -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """The rule set `design`.

    `own` says what to do with changes that the consumer itself made: `ignore` leaves them out of the decision and of the
    anchor (they are sent all the same if the session passes them), `include` treats them like all others. The document
    asks the question and leaves it open.
    """

    own: str = "ignore"
    name: ClassVar[str] = "design"
    says: ClassVar[Mapping[str, str]] = {
        "csn_max": "the consumer knows the origin and is behind: reading may begin behind what it has",
        "csn_min": "the consumer does not know the origin: reading may begin at its first change in the changelog",
        "unknown_without_records": "the consumer does not know the origin, of which the changelog has no record",
        "anchor2": "no origin is both known and behind, or the first change of an unknown one lies before anchor1",
        "next_of_anchor1": "reading begins behind the smallest position that the consumer has and others follow",
        "nothing_due": "the consumer has everything that the supplier claims",
        "no_record": "changes are due, but the changelog has no record to begin with",
        "covered": "the consumer has it",
        "not_in_copy": "the supplier's vector, as copied at this load, does not know the origin",
        "beyond_copy": "it lies beyond the supplier's vector as copied at this load",
        "due": "the consumer lacks it and the supplier's copied vector covers it",
        "case_1": "the supplier's vector has not changed: go on behind the last record read",
        "cases_2_3": "the supplier's vector has changed: compute the start again",
    }

    def open(self, log: Log, supplier: Vector, consumer: Vector, consumer_origin: str) -> SendSession:
        """Begin a session."""
        return _DesignTalk(log, supplier, consumer, consumer_origin if self.own == "ignore" else None)


class _DesignTalk:
    about: Mapping[str, Any]

    def __init__(self, log: Log, supplier: Vector, consumer: Vector, left_out: str | None) -> None:
        self._log, self._left_out = log, left_out
        # An element without positions makes the origin known all the same, and gives no csnMax.
        self._consumer = {origin: span.max for origin, span in consumer.items()}
        self._copy = _maxima(supplier)
        self.start, self.about = self._begin()

    @property
    def stops(self) -> Mapping[str, str]:
        return self._copy

    def _begin(self) -> tuple[Start, dict[str, str | None]]:
        """Chapter "Determining the starting point", for the copied vector and what the consumer has by now."""
        reasons: list[Reason] = []
        anchor1 = anchor2 = None
        for origin, high in self._copy.items():
            if origin == self._left_out:
                continue
            has = self._consumer.get(origin)
            if has is not None and has < high:
                anchor1 = has if anchor1 is None else min(anchor1, has)
                reasons.append(Reason("csn_max", {"origin": origin, "consumer": has, "local": high}))
            elif origin not in self._consumer:
                first = self._log.first_of(origin)
                if first is not None:
                    anchor2 = first if anchor2 is None else min(anchor2, first)
                rule = "csn_min" if first else "unknown_without_records"
                reasons.append(Reason(rule, {"origin": origin, "first": first, "local": high}))
        about = {"anchor1": anchor1, "anchor2": anchor2}
        if not reasons:
            return Start(None, None, NOTHING, NO_MORE, [Reason("nothing_due", {})]), about
        if anchor2 is not None and (anchor1 is None or anchor2 < anchor1):
            reasons.append(Reason("anchor2", about))
            return Start(Bound(anchor2, True), anchor2, reasons=reasons), about
        found = self._log.after(anchor1) if anchor1 is not None else None
        if found is None:
            return Start(None, None, ANCHOR_NOT_FOUND, END_OF_LOG, [*reasons, Reason("no_record", about)]), about
        reasons.append(Reason("next_of_anchor1", {**about, "next": found}))
        return Start(Bound(found, True), found, reasons=reasons), about

    def judge(self, position: str) -> Step:
        origin = self._log.origin_of(position)
        has, stop = self._consumer.get(origin), self._copy.get(origin)
        if has is not None and position <= has:
            return Step(position, COVERED, "covered", has, stop)
        if stop is None:
            return Step(position, UNKNOWN, "not_in_copy", has, stop)
        if position > stop:
            return Step(position, BEYOND, "beyond_copy", has, stop)
        self._consumer[origin] = position
        return Step(position, SENT, "due", has, stop)

    def reload(self, supplier: Vector, read: str) -> Start:
        before, self._copy = self._copy, _maxima(supplier)
        start, _ = self._begin()
        if before != self._copy:
            changed = sorted(origin for origin, high in self._copy.items() if before.get(origin) != high)
            return replace(start, reasons=[Reason("cases_2_3", {"read": read, "changed": changed}), *start.reasons])
        if start.decision == NOTHING:
            return start
        # Case 1 says "continue with currentCSN", the last change *sent*. Read that way, a buffer in which nothing was sent
        # is loaded for ever; it must be the last record *read*.
        found = self._log.after(read)
        if found is None:
            return Start(None, end=END_OF_LOG, reasons=[Reason("no_record", {"read": read})])
        return Start(Bound(found, True), found, reasons=[Reason("case_1", {"read": read, "next": found})])

    def bands(self, origin: str) -> Sequence[Band]:
        has, stop = self._consumer.get(origin), self._copy.get(origin)
        covered = [Band(has, COVERED)] if has is not None else []
        if stop is None:
            return [*covered, Band(None, UNKNOWN)]
        return [*covered, Band(stop, SENT), Band(None, BEYOND)]


def _maxima(vector: Vector) -> dict[str, str]:
    return {origin: span.max for origin, span in vector.items() if span.max is not None}
