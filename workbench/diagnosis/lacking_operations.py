"""Changes that the log of operations of a server lacks: what it never logged although it logged all that time, it never got.

access log of s2   from 10:00 on, names the changes 10:01 and 10:05 of s1     10:03 is lacking
it begins at 10:04, names 10:05                                                10:03 may have come before
it was off from 10:02 to 10:04, or the clock went back over that time          10:03 may have come unlogged
the positions are ahead of the clock, and the log names none before 10:03      nobody knows when it came
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.positions import NONE, Positions, of_keys, place, union
from workbench.engine.selective_read import changes_of, named_in
from workbench.intake.inputs import SILENT, Input, set_back_in, spans_of
from workbench.model import ACCESS_LOG_SWITCHES, AHEAD_OF_CLOCK, NO_END, OFF, ROOM
from workbench.rules.verdicts import TOTAL, Reset
from workbench.systems import System, format_with
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica

HAD = ("applied", "received")
"""Outcomes of a change that a server has."""
_IN_TIME = timedelta(seconds=60)
"""A position may be so far ahead of the clock that logs it, and still tell when its change was made."""


def switched_off(events: Iterable[str]) -> list[tuple[datetime, datetime]]:
    """The spans in which a server wrote no log of operations, out of what its logs tell, whichever file or snapshot they are of.

    >>> [(begin.hour, end.hour) for begin, end in switched_off(["2026-01-01T05:00Z/off", "2026-01-01T09:00Z/room"])]
    [(5, 9)]
    """
    found, since = [], None
    begun = False
    for event in sorted(events):
        text, _, what = event.partition("/")
        at = datetime.fromisoformat(text).astimezone(UTC)
        if what == OFF:
            since = since or at
        elif since:
            found.append((since, at))
            since = None
        elif what == ROOM and not begun:  # that it was off stands in a file that was not collected
            found.append((datetime.min.replace(tzinfo=UTC), at))
        begun = True
    return [*found, (since, NO_END)] if since else found


@dataclass(frozen=True)
class OperationLogs:
    """The logs of operations of one server; `resets`: what replaced its data or its log, in the order of time."""

    evidence: Evidence
    replica: Replica
    resets: Sequence[Reset]

    @property
    def system(self) -> System:
        """The system of the servers."""
        return self.evidence.system

    @property
    def names(self) -> Sequence[str]:
        """The origins by their numbers."""
        return self.evidence.names

    def lacking(self, positions: Positions, without: Numbers) -> Numbers:
        """For each position: a log of operations that covers its time names a later change of its origin, and not it.

        What the server lacked that its data came from (`without`), can only have come since.
        """
        lacking = np.zeros(len(positions), bool)
        own = self.evidence.numbers.get(self.replica.origin or "", -1)
        # What came with the data of another server was never logged, also if the data were replaced again since.
        came = [reset.ended for reset in self.resets if reset.kind == TOTAL]
        for log in self.evidence.inputs:
            span = log.facts.get("time", {})
            counts = log.facts.get("results_with_csn", 1) and not log.facts.get("results_without_position")
            if log.server != self.replica.server or format_with(log.kind).evidence != "access_log" or not counts:
                continue
            if not span.get("min"):
                continue
            first = datetime.fromisoformat(span["min"]).astimezone(UTC)
            began = max([first, *came])
            lacking |= self._lacking_in(log, began, positions, own)
            # By a clock that was behind the log began later than its first line says.
            ahead = max((span["max"] for span in log.facts.get(AHEAD_OF_CLOCK, {}).values()), default=0)
            if came and first + timedelta(seconds=max(ahead, 0)) < began:
                left = np.flatnonzero(without & ~lacking & (positions.origin != own))
                lacking[left] = self._never_named(log, began, positions[left])
        return lacking

    def _never_named(self, log: Input, since: datetime, positions: Positions) -> Numbers:
        """For each position: the log names a later change of its origin that came since, without a gap, and not it."""
        found = np.zeros(len(positions), bool)
        keys = positions.keys(self.system, self.names)
        named = union([*named_in(self.evidence.parts_of("named", log), self.evidence.numbers), self._unclear_in(log)])
        origins = sorted({self.names[number] for number in positions.origin.tolist()})
        where = pc.field("outcome").isin(HAD) & pc.field("origin").isin(pa.array(origins, pa.string()))
        where &= pc.field("at") > pa.scalar(since, pa.timestamp("us", "UTC"))
        rows = (
            self.evidence.told("applied", ["position", "at", "replicated"], where, one=log).to_pylist() if keys else []
        )
        silent = [begin for begin, end in self._silences(log) if end > since]
        for number in np.flatnonzero(~positions.within(named)).tolist():
            key, origin = keys[number], self.names[int(positions.origin[number])]
            later = [
                row["at"]
                for row in rows
                if row["replicated"] is not False
                and row["position"] > key
                and self.system.origin_of(row["position"]) == origin
            ]
            found[number] = bool(later) and not any(begin <= min(later) for begin in silent)
        return found

    def _lacking_in(self, log: Input, began: datetime, positions: Positions, own: int) -> Numbers:
        lacking = np.zeros(len(positions), bool)
        silent = self._silences(log)
        asked = np.flatnonzero((positions.origin != own) & (positions.hi >= self.system.instant(began)))
        named = union([*named_in(self.evidence.parts_of("named", log), self.evidence.numbers), self._unclear_in(log)])
        # What it names is not lacking, though the data may have been replaced since: then that line proves nothing.
        asked = asked[~positions[asked].within(named)]
        if not len(asked):
            return lacking
        for origin in np.unique(positions.origin[asked]).tolist():
            theirs = named[named.origin == origin]
            asked_of = asked[positions.origin[asked] == origin]
            after = np.array(
                [
                    place(theirs.hi, theirs.lo, (int(positions.hi[at]), int(positions.lo[at])), "right")
                    for at in asked_of
                ]
            )
            followed = after < len(theirs)
            asked_of, after = asked_of[followed], after[followed]
            if not len(asked_of):
                continue
            chosen = np.unique(after)
            around = np.unique(np.concatenate([chosen, chosen[chosen > 0] - 1]))
            first = self._first_times(log, theirs[around].keys(self.system, self.names))
            furthest = self._furthest_ahead(self.names[origin])
            in_time = furthest <= _IN_TIME
            times = {
                int(at): first.get(key)
                for at, key in zip(around, theirs[around].keys(self.system, self.names), strict=True)
            }
            for number, key in zip(chosen.tolist(), theirs[chosen].keys(self.system, self.names), strict=True):
                at, made, before = times[number], self.system.moment(key), times.get(number - 1)
                if at is None or made is None or any(since <= at and until == NO_END for since, until in silent):
                    continue
                # Positions of a clock that is ahead are of a later time than their changes; a change that comes late hides it.
                ahead = max(timedelta(0), made - at, furthest if in_time else timedelta(0))
                # The log may have been off, or of a form that tells nothing, until it went on.
                whole = max([began, *(until for since, until in silent if since <= at)])
                covered = positions.hi[asked_of] >= self.system.instant(whole + ahead + timedelta(seconds=1))
                # Positions that ran far ahead stand while the clock catches up: only what came before it in this log tells then.
                covered &= in_time or (before is not None and before >= whole)
                lacking[asked_of[(after == number) & covered]] = True
        return lacking

    def _furthest_ahead(self, origin: str) -> timedelta:
        """By how much the positions of an origin were ahead of a clock that logged them, at the most, in any log."""
        found = (log.facts.get(AHEAD_OF_CLOCK, {}).get(origin, {}).get("max", 0) for log in self.evidence.inputs)
        return timedelta(seconds=max(found, default=0))

    def _first_times(self, log: Input, wanted: Sequence[str]) -> dict[str, datetime]:
        """When a log first names these changes as applied, or as received over a session."""
        where = pc.field("position").isin(list(wanted)) & pc.field("outcome").isin(HAD)
        rows = self.evidence.told("applied", ["position", "at", "replicated"], where, one=log)
        first: dict[str, datetime] = {}
        for row in rows.to_pylist():
            if row["at"] is not None and row["replicated"] is not False:
                first[row["position"]] = min(row["at"], first.get(row["position"], row["at"]))
        return first

    def _silences(self, log: Input) -> list[tuple[datetime, datetime]]:
        """The spans of which a log of operations may not tell, by all that its server wrote."""
        logs = [other for other in self.evidence.inputs if other.server == log.server]
        spans = [span for each in logs for span in spans_of(each, SILENT)]
        spans += [span for each in logs if (span := set_back_in(each))]
        return spans + switched_off({event for each in logs for event in each.facts.get(ACCESS_LOG_SWITCHES, ())})

    def _unclear_in(self, log: Input) -> Positions:
        """What lines of a log name that may be of another suffix: nobody knows whether it is lacking."""
        if not self.evidence.of_several(log):
            return NONE
        named = pc.field("position").is_valid()
        rows = self.evidence.told("applied", ["position"], named, one=log, unclear=True)
        keys = pc.unique(changes_of(self.system, rows["position"])).to_pylist() if len(rows) else []
        known = [key for key in keys if self.system.origin_of(key) in self.evidence.numbers]
        return of_keys(self.system, known, self.evidence.numbers)
