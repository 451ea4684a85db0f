"""The send session of the real server (`ds389`), as its changelog cache computes it; `workbench.rules.send_session` plays it.

It differs from the design document where it matters: the anchor is looked up exactly and its absence ends the session,
first changes come from the vector and not from the changelog, one record beyond the stop blocks its origin for the rest
of the buffer, the next sequence number of the same second is sent past the stop, and a session may end early and call
itself a success.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from typing import ClassVar, NamedTuple

from workbench.rules.send_session import (
    ANCHOR_NOT_FOUND,
    BELOW_START,
    BEYOND,
    CONSUMERS_OWN,
    COVERED,
    HELPER,
    NO_MORE,
    NOTHING,
    PROMOTED,
    RELOAD_NOT_FOUND,
    SENT,
    UNKNOWN,
    Band,
    Bound,
    Log,
    Reason,
    SendSession,
    Start,
    Step,
)
from workbench.rules.vectors import Vector, last

READ_ONLY = "65535"
"""The replica ID that every read-only replica and hub has: no change is made under it."""

NEVER, ONCE, ALWAYS = "never", "once", "always"

HELPER_TIMES = ("0000006f", "000000de")
"""Time parts of the records in which the changelog keeps its count and its purge vector."""

NOT_SEEN, PURGED, MISSING = "not_seen", "purged", "missing"


def missing_anchor_class(anchor: str, local_max: str | None, purge_point: str | None) -> str:
    """Why an anchor is not in the changelog, as the server tells it apart: `not_seen`, `purged` or `missing`.

    `local_max` and `purge_point` are those of the anchor's replica ID in the supplier's vector and in the changelog's purge
    vector. Without a purge point the server says purged for whatever it should hold ("came with the initialisation"), so a
    lost record of a changelog that was never trimmed is called purged too: do not trust the word. The purge point is asked
    before the maximum: below a purge point that lies above the maximum, a change that was never seen is called purged.
    """
    if local_max is None:
        return NOT_SEEN
    if purge_point is not None and anchor < purge_point:
        return PURGED
    if anchor > local_max:
        return NOT_SEEN
    return PURGED if purge_point is None else MISSING


@dataclass
class _Block:
    """What a session knows of one replica ID."""

    first: str
    stop: str
    consumer: str | None
    before: str | None = None
    """The stop of the load before; None where the replica ID is new since."""
    blocked: bool = False


class _Candidate(NamedTuple):
    bound: Bound
    reason: Reason


@dataclass(frozen=True)
class Sending:
    """The rule set `ds389`.

    ignore_missing   the agreement's nsds5ReplicaIgnoreMissingChange: `never`, `once` or `always`
    cleaned          replica IDs that are being cleaned: out of everything
    """

    ignore_missing: str = NEVER
    cleaned: frozenset[str] = field(default_factory=frozenset)
    name: ClassVar[str] = "ds389"
    says: ClassVar[Mapping[str, str]] = {
        "from_first": "the consumer has nothing of this replica ID: the first CSN that the supplier's RUV names, included",
        "behind_consumer": "the consumer is behind: the CSN it has, not included",
        "no_candidate": "no replica ID has anything to send",
        "anchor_found": "the smallest candidate is the anchor, and the changelog has that very record",
        "anchor_absent": "the changelog has no record of exactly the anchor: nothing is sent",
        "nothing_behind": "the anchor is there and no record lies behind it, which counts as not found",
        "alternative": "the anchor is absent; the agreement is set to go on at the next record, whatever is lost",
        "own_of_consumer": "the consumer made it, and the supplier had nothing newer of it when the session began",
        "helper": "a record in which the changelog keeps its own books",
        "no_block": "the replica ID had no place in the supplier's RUV when the buffer was loaded, or is being cleaned",
        "blocked": "a record of this replica ID before it in the buffer lay beyond the stop",
        "covered": "the consumer has it",
        "up_to_stop": "the consumer lacks it and the supplier's RUV covered it when the buffer was loaded",
        "next_in_second": "same second as the stop and the next sequence number: sent, and the stop moves",
        "beyond_stop": "the supplier's RUV did not cover it when the buffer was loaded",
        "on_from_read": "the stop is that of the load before, or lay ahead of the last record read: go on there",
        "reload_below_start": "the next record to read lies before the start of the session: it ends, as a success",
    }

    def open(self, log: Log, supplier: Vector, consumer: Vector, consumer_origin: str) -> SendSession:
        """Begin a session."""
        return _Talk(self, log, supplier, consumer, consumer_origin)


class _Talk:
    def __init__(self, rules: Sending, log: Log, supplier: Vector, consumer: Vector, consumer_origin: str) -> None:
        self._rules, self._log, self._consumer = rules, log, consumer
        # Not simply "the consumer's own changes": one restored from a backup lacks own changes that others hold.
        ignored = (last(supplier, consumer_origin) or "") <= (last(consumer, consumer_origin) or "")
        self._ignored = consumer_origin if ignored else None
        self._blocks: dict[str, _Block] = {}
        self.about: Mapping[str, bool] = {"consumer_rid_ignored": ignored}
        self._take(supplier)
        self.start = self._first_load()
        self._began = self.start.anchor or ""

    @property
    def stops(self) -> Mapping[str, str]:
        return {rid: block.stop for rid, block in self._blocks.items()}

    def _take(self, supplier: Vector) -> None:
        """Copy the supplier's vector: its maxima are the stops until the next load."""
        for rid, span in supplier.items():
            if rid == self._ignored or rid in self._rules.cleaned or span.min is None or span.max is None:
                continue
            block = self._blocks.get(rid)
            if block is None:
                self._blocks[rid] = _Block(span.min, span.max, self._claimed(rid))
            else:
                block.first, block.before, block.stop = span.min, block.stop, span.max
                block.blocked = False

    def _claimed(self, rid: str) -> str | None:
        """The consumer's maximum. An element with a maximum and no minimum counts as none, as in the server."""
        span = self._consumer.get(rid)
        return span.max if span and span.min is not None else None

    def _candidates(self) -> Iterator[_Candidate]:
        for rid, block in self._blocks.items():
            values = {"rid": rid, "consumer": block.consumer, "stop": block.stop, "first": block.first}
            if block.consumer is None:
                yield _Candidate(Bound(block.first, True), Reason("from_first", values))
            elif block.stop > block.consumer:
                yield _Candidate(Bound(block.consumer, False), Reason("behind_consumer", values))

    def _first_load(self) -> Start:
        candidates = list(self._candidates())
        reasons = [candidate.reason for candidate in candidates]
        if not candidates:
            return Start(None, decision=NOTHING, reasons=[Reason("no_candidate", {})])
        bound = min(candidates, key=lambda candidate: candidate.bound.position).bound
        found = self._look_up(bound)
        reasons.append(found)
        if found.rule == "anchor_found":
            return Start(bound, bound.position, reasons=reasons)
        if self._rules.ignore_missing != NEVER:
            # At or behind the anchor: one that is there with nothing behind it is read, and found covered.
            there = self._log.holds(bound.position)
            following = bound.position if there else self._log.after(bound.position)
            if following is not None:
                reasons.append(Reason("alternative", {"anchor": bound.position, "start": following}))
                return Start(Bound(following, True), bound.position, reasons=reasons)
        return Start(None, bound.position, ANCHOR_NOT_FOUND, reasons=reasons)

    def _look_up(self, bound: Bound) -> Reason:
        """Is there a record of exactly this CSN? Also where reading begins behind it."""
        if not self._log.holds(bound.position):
            return Reason("anchor_absent", {"anchor": bound.position})
        if not bound.included and self._log.after(bound.position) is None:
            return Reason("nothing_behind", {"anchor": bound.position})
        return Reason("anchor_found", {"anchor": bound.position, "included": bound.included})

    def judge(self, position: str) -> Step:
        rid = self._log.origin_of(position)
        if rid == self._ignored:
            return Step(position, CONSUMERS_OWN, "own_of_consumer", None, None)
        if position.startswith(HELPER_TIMES):
            return Step(position, HELPER, "helper", None, None)
        block = self._blocks.get(rid)
        if block is None:
            return Step(position, UNKNOWN, "no_block", None, None)
        has, stop = block.consumer, block.stop
        if block.blocked:
            return Step(position, BEYOND, "blocked", has, stop)
        if has is not None and position <= has:
            return Step(position, COVERED, "covered", has, stop)
        if position <= stop:
            block.consumer = position
            return Step(position, SENT, "up_to_stop", has, stop)
        if _next_in_second(stop, position):
            block.stop = position
            if has is not None:
                block.consumer = position
            return Step(position, PROMOTED, "next_in_second", has, stop)
        block.blocked = True
        return Step(position, BEYOND, "beyond_stop", has, stop)

    def reload(self, supplier: Vector, read: str) -> Start:
        self._take(supplier)
        candidates = list(self._again(read))
        if not candidates:
            return Start(None, end=NO_MORE, reasons=[Reason("no_candidate", {"read": read})])
        bound = min(candidates, key=lambda candidate: candidate.bound.position).bound
        reasons = [candidate.reason for candidate in candidates]
        if self._began > bound.position:
            values = {"anchor": bound.position, "start": self._began}
            return Start(None, end=BELOW_START, reasons=[*reasons, Reason("reload_below_start", values)])
        found = self._look_up(bound)
        reasons.append(found)
        if found.rule != "anchor_found":
            return Start(None, end=RELOAD_NOT_FOUND, reasons=reasons)
        return Start(bound, bound.position, reasons=reasons)

    def _again(self, read: str) -> Iterator[_Candidate]:
        for rid, block in self._blocks.items():
            if block.consumer is not None and block.stop <= block.consumer:
                continue
            values = {"rid": rid, "consumer": block.consumer, "stop": block.stop, "before": block.before, "read": read}
            if block.before is not None and (block.stop == block.before or block.before > read):
                yield _Candidate(Bound(read, False), Reason("on_from_read", values))
            elif block.consumer is None:
                yield _Candidate(Bound(block.first, True), Reason("from_first", {**values, "first": block.first}))
            else:
                yield _Candidate(Bound(block.consumer, False), Reason("behind_consumer", values))

    def bands(self, origin: str) -> Sequence[Band]:
        if origin == self._ignored:
            return [Band(None, CONSUMERS_OWN)]
        block = self._blocks.get(origin)
        if block is None:
            return _around_helpers([Band(None, UNKNOWN)])
        covered = [Band(block.consumer, COVERED)] if block.consumer is not None else []
        sent = block.stop
        beyond = Bound(max(block.stop, block.consumer or ""), False)
        if self.start.bound and self.start.bound.position > beyond.position:
            beyond = self.start.bound  # what lies before it is not read, and cannot move the stop
        # A mark is judged like a change: one right behind the stop moves it as well.
        marks = sorted(mark for mark in self._log.marks if self._log.origin_of(mark) == origin)
        for position in merge(self._log.changes(origin, beyond), marks[beyond.place(marks) :]):
            if not _next_in_second(sent, position):
                break
            sent = position
        return _around_helpers([*covered, Band(block.stop, SENT), Band(sent, PROMOTED), Band(None, BEYOND)])


def _next_in_second(stop: str, position: str) -> bool:
    """Same second, and the sequence number after it: such a change may be there before the RUV has moved to it."""
    return position[:8] == stop[:8] and int(position[8:12], 16) == int(stop[8:12], 16) + 1


_HELPERS = {f"{int(time, 16) - 1:08x}{'f' * 12}" for time in HELPER_TIMES} | {
    f"{time}{'f' * 12}" for time in HELPER_TIMES
}
"""The CSNs that end the stretches before and of the helper records."""


def _around_helpers(bands: Sequence[Band]) -> list[Band]:
    """The same bands, with the records taken out that are told by their time alone."""
    ends = sorted({band.upto for band in bands if band.upto is not None} | _HELPERS)

    def outcome(end: str) -> str:
        if end.startswith(HELPER_TIMES):
            return HELPER
        return next(band.outcome for band in bands if band.upto is None or end <= band.upto)

    return [*(Band(end, outcome(end)) for end in ends), bands[-1]]
