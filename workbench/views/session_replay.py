"""One session played record by record, under all rule sets of the system side by side: what a stepper shows.

    stepping = stepping_of(incident, "s1", "s2", per_load=3)
    stepping.page(0)                      the window around the first record, and why it is sent or not
    stepping.next_skip(-1)                the number of the first row that is not sent

Nothing is played further than somebody looks, so a session of a hundred million changes opens at once; each rule set plays
LIMIT records at most, fewer where buffers are small. A row is a record that one rule set reads, or that several read at
this place: those that read the same record next share it, and the lowest goes first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.diagnosis.pair_matrix_text import OUTCOMES, told
from workbench.model import NotOfThisSystem, Problem, System
from workbench.rules.send_session import (
    DELIVERED,
    ENDLESS,
    ORIGINS,
    PROMOTED,
    SEND,
    End,
    Load,
    Passed,
    Reason,
    Rules,
    SendSession,
    Step,
    play,
)
from workbench.systems import systems
from workbench.views.parameters import natural

if TYPE_CHECKING:
    from workbench.diagnosis.incident import Incident
    from workbench.replication.changelog.diagnosis.planned_sessions import PlannedSession

LIMIT = 100_000
"""Records that one rule set plays at most."""

LOAD_COSTS = 9
"""Records that each load after the first counts for: it asks the log where to go on, and a jump shall take a second or two."""

WINDOW = 12
"""Rows that are seen at once."""

WHOLE = 1 << 62
"""Records of a buffer that holds any session."""

_ORIGINS_NAMED = 6
_MARK = "mark"
_ENDLESS = "it would read the same records again and again: the supplier's vector contradicts itself"


class Record(NamedTuple):
    """A record that was read: in the so-manieth load, and whether it is a mark, which is never sent."""

    step: Step
    load: int
    mark: bool

    @property
    def sent(self) -> bool:
        """True if it was sent."""
        return not self.mark and self.step.outcome in DELIVERED


class Track:
    """The session under one rule set, played as far as somebody has asked.

    records  what was read
    loads    each load, with the number of its first record
    end      how it ended; None while it goes on, and where it is not played to its end
    cut      it has more records than are played
    """

    def __init__(
        self, rules: Rules, talk: SendSession, seen: Iterator[Load | Step | Passed | End], origin_of: Callable[[str], str],
        limit: int = LIMIT,
    ) -> None:  # fmt: skip
        self.rules, self.start, self._seen, self._origin_of, self._limit = rules, talk.start, seen, origin_of, limit
        self.records: list[Record] = []
        self.loads: list[tuple[int, Load]] = []
        self.end: End | None = None
        self.cut = False
        self._sent: dict[str, list[int]] = {}
        self._moved: list[tuple[int, str, str]] = []

    def record(self, number: int) -> Record | None:
        """The so-manieth record, from 0; None: there is none, or it is not played."""
        while len(self.records) <= number and not self.cut:
            seen = next(self._seen, None)
            if seen is None:
                return None
            self._take(seen)
        return self.records[number] if number < len(self.records) else None

    def _take(self, seen: Load | Step | Passed | End) -> None:
        number = len(self.records)
        if isinstance(seen, Load):
            self.loads.append((number, seen))
        elif isinstance(seen, End):
            self.end = seen
        elif number + LOAD_COSTS * (len(self.loads) - 1) >= self._limit:
            self.cut = True
        else:
            mark = isinstance(seen, Passed)
            record = Record(seen.step if isinstance(seen, Passed) else seen, len(self.loads), mark)
            self.records.append(record)
            origin = self._origin_of(record.step.position)
            if record.step.outcome == PROMOTED:
                self._moved.append((number, origin, record.step.position))
            if record.sent:
                self._sent.setdefault(origin, []).append(number)

    def begins_load(self, number: int) -> bool:
        """True if the buffer was loaded right before this record."""
        return number == 0 or self.records[number].load != self.records[number - 1].load

    def load_of(self, number: int) -> Load:
        """The load that the record came with."""
        return self.loads[self.records[number].load - 1][1]

    def stops(self, number: int) -> dict[str, str]:
        """Origin -> stop behind this record: that of its load, moved by what was sent past it."""
        stops = dict(self.load_of(number).stops)
        begun = self.loads[self.records[number].load - 1][0]
        low, high = (bisect_left(self._moved, (at,)) for at in (begun, number + 1))
        return stops | {origin: position for _, origin, position in self._moved[low:high]}

    def sent_upto(self, number: int) -> int:
        """How many changes were sent up to this record, it included."""
        return sum(bisect_right(mine, number) for mine in self._sent.values())

    def sent(self, origin: str, number: int) -> tuple[int, str | None]:
        """How many changes of the origin were sent up to this record, it included, and the last one."""
        mine = self._sent.get(origin, [])
        many = bisect_right(mine, number)
        return many, self.records[mine[many - 1]].step.position if many else None


Row = tuple[int | None, ...]
"""Of each rule set the number of its record, or None where it does not read this one here."""

ALIKE, OTHERWISE, DIFFERENT = "", "reason", "sent"
"""How the rule sets compare on a row: the same outcome; all or none send it, for other reasons; one sends, another not."""


class Stepping:
    """The tracks of one session, laid side by side.

    planned  what each rule set would do undisturbed and in one load, counted over the whole session; may be empty
    """

    def __init__(self, system: System, tracks: Sequence[Track], planned: Sequence[PlannedSession] = ()) -> None:
        self.system, self.tracks, self.planned = system, tracks, planned
        self._rows: list[Row] = []
        self._read: list[tuple[int, ...]] = []
        self._next = [0] * len(tracks)
        self._over = False

    # --- rows

    def row(self, number: int) -> Row | None:
        """The so-manieth row, from 0; None: there is none."""
        while len(self._rows) <= number and not self._over:
            self._grow()
        return self._rows[number] if 0 <= number < len(self._rows) else None

    def _grow(self) -> None:
        heads = [track.record(at) for track, at in zip(self.tracks, self._next, strict=True)]
        positions = [record.step.position for record in heads if record]
        # Where one track is cut the rows end: behind it nobody knows what that rule set does.
        if not positions or any(track.cut and head is None for track, head in zip(self.tracks, heads, strict=True)):
            self._over = True
            return
        row = tuple(
            at if head and head.step.position == min(positions) else None
            for head, at in zip(heads, self._next, strict=True)
        )
        self._next = [at + (found is not None) for at, found in zip(self._next, row, strict=True)]
        self._rows.append(row)
        self._read.append(tuple(self._next))

    @property
    def cut(self) -> bool:
        """True if the session has more records than are played; known once the last row was asked for."""
        return self._over and any(track.cut for track in self.tracks)

    @property
    def total(self) -> int | None:
        """How many rows there are; None while nobody has played to the end."""
        return len(self._rows) if self._over else None

    def last(self) -> int:
        """The number of the last row, -1 if there is none: plays to the end."""
        while not self._over:
            self._grow()
        return len(self._rows) - 1

    @property
    def leading(self) -> int:
        """Which rule set a skip is one of: the chosen one, which is the first, unless it reads nothing."""
        return next((at for at, track in enumerate(self.tracks) if track.record(0)), 0)

    def _first(self, after: int, wanted: Callable[[Row], bool]) -> int | None:
        for number in count(after + 1):
            row = self.row(number)
            if row is None:
                return None
            if wanted(row):
                return number
        return None

    def next_skip(self, after: int) -> int | None:
        """The next row behind this one whose record the leading rule set reads and does not send; -1 is before the first."""
        track, leading = self.tracks[self.leading], self.leading

        def skipped(row: Row) -> bool:
            at = row[leading]
            return at is not None and not track.records[at].mark and not track.records[at].sent

        return self._first(after, skipped)

    def next_load(self, after: int) -> int | None:
        """The next row behind this one before which one of the rule sets loads its buffer again."""
        return self._first(
            after, lambda row: any(at and track.begins_load(at) for track, at in zip(self.tracks, row, strict=True))
        )

    def next_difference(self, after: int) -> int | None:
        """The next row behind this one that one rule set sends and another does not."""
        return self._first(after, lambda row: self.compared(row) == DIFFERENT)

    def compared(self, row: Row) -> str:
        """How the rule sets compare on the row. One that does not read the record here does not send it here."""
        found = [track.records[at] if at is not None else None for track, at in zip(self.tracks, row, strict=True)]
        if len({bool(record and record.sent) for record in found}) > 1:
            return DIFFERENT
        return ALIKE if len({record and record.step.outcome for record in found}) == 1 else OTHERWISE

    # --- a page of it, ready to be shown

    def page(self, at: int, size: int = WINDOW) -> dict[str, Any]:
        """The rows around the one at `at`, the rule that decided it, and where each rule set stands behind it."""
        first = max(0, at - (size - 1) // 2)
        rows = [row for number in range(first, first + size + 1) if (row := self.row(number))]
        now = self.row(at)
        return {
            "at": at,
            "first": first,
            "total": self.total,
            "cut": self.cut,
            "played": max((len(track.records) for track in self.tracks if track.cut), default=None),
            "leading": self.tracks[self.leading].rules.name if self.tracks else "",
            "rows": [self._shown(rows, place, first) for place in range(min(size, len(rows)))],
            "sides": [self._side(side, at) for side in range(len(self.tracks))],
            "same": now is not None and self.compared(now) != DIFFERENT,
        }

    def _shown(self, rows: Sequence[Row], place: int, first: int) -> dict[str, Any]:
        row = rows[place]
        cells = [self._cell(side, at) for side, at in enumerate(row)]
        position = self._position(row)
        return {
            "number": first + place + 1,
            "position": self.system.show(position),
            "at": when(self.system, position),
            "origin": self.system.origin_of(position),
            "differs": self.compared(row),
            "cells": cells,
            "loads": [self._border(side, at) for side, at in enumerate(row)],
            "stops": [self._stop_line(side, rows, place) for side in range(len(self.tracks))],
        }

    def _position(self, row: Row) -> str:
        return next(
            track.records[at].step.position for track, at in zip(self.tracks, row, strict=True) if at is not None
        )

    def _cell(self, side: int, at: int | None) -> dict[str, Any] | None:
        if at is None:
            return None
        record = self.tracks[side].records[at]
        outcome = _MARK if record.mark else record.step.outcome
        words = "a mark: passed, never sent" if record.mark else OUTCOMES.get(outcome, outcome.replace("_", " "))
        return {"outcome": outcome, "words": words, "sent": record.sent, "load": record.load, "rule": record.step.rule}

    def _border(self, side: int, at: int | None) -> str | None:
        """What is written at the border of a buffer that begins with this record."""
        if at is None or not self.tracks[side].begins_load(at):
            return None
        track = self.tracks[side]
        bound = track.load_of(at).start.bound
        where = f" from{'' if bound.included else ' behind'} {self.system.show(bound.position)}" if bound else ""
        return f"load {track.records[at].load}{where}"

    def _stop_line(self, side: int, rows: Sequence[Row], place: int) -> list[str]:
        """The origins whose stop lies between this record and the next one; behind the last record all that lie beyond."""
        track, at = self.tracks[side], rows[place][side]
        if at is None:
            return []
        here, following = track.records[at], track.record(at + 1)
        upto = following.step.position if following else None
        stops = sorted(track.stops(at).items(), key=lambda one: one[1])
        behind = [origin for origin, stop in stops if here.step.position <= stop and (upto is None or stop < upto)]
        more = len(behind) - _ORIGINS_NAMED
        return behind[:_ORIGINS_NAMED] + ([f"and {more} more"] if more > 0 else [])

    def _side(self, side: int, at: int) -> dict[str, Any]:
        track, system = self.tracks[side], self.system
        reached = self._reached(side, at)
        row = self.row(at)
        read = row[side] if row else None
        start = track.start if reached is None else track.load_of(reached).start
        planned = self.planned[side].row if self.planned else {}
        ended = track.end is not None and len(track.records) - 1 == (reached if reached is not None else -1)
        return {
            "rules": track.rules.name,
            "decision": planned.get("decision", track.start.decision),
            "says": "\n".join(told(planned, shown_moment(system), always=True)) if planned else "",
            "anchor": system.show(track.start.anchor) if track.start.anchor else None,
            "anchor_at": when(system, track.start.anchor),
            "load": track.records[reached].load if reached is not None else 0,
            "reasons": reasons(system, track.rules, start.reasons),
            "sent": track.sent_upto(reached) if reached is not None else 0,
            "stops": self._stops(side, reached, read),
            "now": self._now(track, read, reached),
            "end": ended_because(track.rules, track.end) if ended and track.end else "",
            "counts": [[OUTCOMES.get(outcome, outcome), many] for outcome, many in planned.get("counts", {}).items()],
            "cut": track.cut,
        }

    def _reached(self, side: int, at: int) -> int | None:
        """The last record that the rule set has read when the row is done; None: it has read none."""
        read = self._read[min(at, len(self._read) - 1)][side] if self._read else 0
        return read - 1 if read else None

    def _stops(self, side: int, reached: int | None, read: int | None) -> list[dict[str, Any]]:
        track, system = self.tracks[side], self.system
        if reached is None:
            return []
        had = self.planned[side].pair[1].vector if self.planned else {}
        current = system.origin_of(track.records[read].step.position) if read is not None else None
        rows = []
        for origin, stop in sorted(track.stops(reached).items(), key=lambda one: natural(one[0])):
            many, last = track.sent(origin, reached)
            has = last or (had[origin].max if origin in had else None)
            rows.append(
                {
                    "origin": origin,
                    "has": system.show(has) if has else None,
                    "has_at": when(system, has),
                    "sent": many,
                    "stop": system.show(stop),
                    "stop_at": when(system, stop),
                    "chosen": origin == current,
                }
            )
        return rows

    def _now(self, track: Track, read: int | None, reached: int | None) -> dict[str, Any]:
        """Why the record of this row is sent or not, as a sentence with the values compared."""
        if read is None:
            if not track.records:
                why = "nothing is read: see the decision above"
            elif reached is None:
                why = "not read: the session begins behind this record"
            elif track.end and reached == len(track.records) - 1:
                why = f"not read: the session has ended ({ended_because(track.rules, track.end)})"
            else:
                why = "not read here: this rule set has passed this record already, or begins its load behind it"
            return {"read": False, "says": why, "values": []}
        record, system = track.records[read], self.system
        step = record.step
        words = (
            "a mark, judged like a change and never sent" if record.mark else OUTCOMES.get(step.outcome, step.outcome)
        )
        return {
            "read": True,
            "outcome": _MARK if record.mark else step.outcome,
            "words": words,
            "sent": record.sent,
            "rule": step.rule,
            "says": track.rules.says[step.rule],
            "values": [
                [
                    "the consumer has",
                    system.show(step.consumer) if step.consumer else "nothing",
                    when(system, step.consumer),
                ],
                ["the stop is", system.show(step.stop) if step.stop else "none", when(system, step.stop)],
            ],
        }


def stepping_of(
    incident: Incident,
    supplier: str,
    consumer: str,
    suffix: str | None = None,
    rules: str | None = None,
    per_load: int = 0,
) -> Stepping:
    """The session that this supplier would hold with this consumer now; the named rule set first, the others beside it.

    `per_load` records fit into the buffer; 0: all of them. Raises Problem where no such session is known.
    """
    if per_load < 0:
        raise Problem(
            f"{per_load} records do not fit into a buffer", "per_load", "give 1 or more, or 0 for all in one load"
        )
    planned = planned_sessions(incident, supplier, consumer, suffix, rules)
    tracks = []
    for one in planned:
        talk = one.open()
        if one.row["decision"] == SEND:
            seen = play(talk, one.log, one.pair[0].vector, per_load or WHOLE)
        else:
            seen = iter(())
        tracks.append(Track(one.rules, talk, seen, incident.system.origin_of))
    return Stepping(incident.system, tracks, planned)


def planned_sessions(
    incident: Incident, supplier: str, consumer: str, suffix: str | None = None, rules: str | None = None
) -> list[PlannedSession]:
    """The session of the pair under each rule set of the system, the named one first (None: that of the real servers)."""
    system = incident.system
    if system.supplying is None:
        known = ", ".join(one.title for one in systems() if one.supplying)
        kept = f"{system.notebook} shows how its servers replicate; " if system.notebook else ""
        raise NotOfThisSystem(
            f"no rules of sending are known for {system.title}",
            incident.case.name,
            f"{kept}sessions are played for {known}",
        )
    first = incident.session(supplier, consumer, suffix or None, rules or None)
    names = incident.topology.supplying.rule_sets
    return [first, *(first.under(name) for name in names if name != first.rules.name)]


def when(system: System, position: str | None) -> str | None:
    """When a change was made, as text (UTC), by its order key."""
    moment = system.moment(position) if position else None
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else None


def shown_moment(system: System) -> Callable[[str], Any]:
    """The same of a position as the system writes it."""

    def moment(position: str) -> Any:
        key = system.typed(position)
        return system.moment(key) if key else None

    return moment


def values_shown(system: System, values: Mapping[str, Any]) -> list[list[str | None]]:
    """The values of a reason as [name, text, time]: positions as the system writes them, nothing for what is not there."""
    rows: list[list[str | None]] = []
    for name, value in values.items():
        label = name.replace("_", " ")
        if isinstance(value, str) and name not in ORIGINS:
            rows.append([label, system.show(value), when(system, value)])
        elif isinstance(value, (list, tuple)):
            rows.append([label, ", ".join(map(str, value)), None])
        else:
            words = "none" if value is None else ("yes" if value else "no") if isinstance(value, bool) else str(value)
            rows.append([label, words, None])
    return rows


def reasons(system: System, rules: Rules, given: Sequence[Reason]) -> list[dict[str, Any]]:
    """Reasons as sentences with their values."""
    return [
        {"rule": one.rule, "says": rules.says[one.rule], "values": values_shown(system, one.values)} for one in given
    ]


def ended_because(rules: Rules, end: End) -> str:
    """How a session ended, and by which rule."""
    if end.why == ENDLESS:
        return _ENDLESS
    why = (end.why or "").replace("_", " ")
    return f"{why}: {rules.says[end.reasons[-1].rule]}" if end.reasons else why
