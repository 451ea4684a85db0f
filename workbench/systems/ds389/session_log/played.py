"""A logged session of 389 DS under the rules: its anchors from its control blocks, its records from the changelog.

There is no second implementation of the rules here: a control block is a line of two vectors, and vectors and records are
all that the rule set asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from workbench.rules.send_session import (
    BEYOND,
    CONSUMERS_OWN,
    COVERED,
    DELIVERED,
    HELPER,
    SENT,
    UNKNOWN,
    Bound,
    SendSession,
    Start,
    Tally,
)
from workbench.rules.vectors import Span
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.sending import HELPER_TIMES, Sending
from workbench.systems.ds389.session_log.lines import Load, Session

if TYPE_CHECKING:
    from workbench.engine.logs import StoredLog

RULES = Sending()

Firsts = Mapping[str, str | None]
"""Replica ID -> first CSN in the supplier's vector, which no control block shows; None: nothing tells it."""


class _Told:
    """The supplier's changelog as the log of the session tells it: the anchor was there, or it was not.

    Whether it *should* have been there is the question of other findings; here only the choice of the anchor counts.
    """

    marks: Collection[str] = ()

    def __init__(self, located: bool = True) -> None:
        self._located = located

    def origin_of(self, position: str) -> str:
        return origin_of(position)

    def holds(self, position: str) -> bool:
        return self._located

    def after(self, position: str) -> str | None:
        return position

    def origins(self) -> Iterable[str]:
        return ()

    def first_of(self, origin: str) -> str | None:
        return None

    def changes(self, origin: str, low: Bound) -> Iterator[str]:
        return iter(())

    def tally(self, origin: str, low: Bound, high: str | None) -> Tally:
        return Tally()


def _supplier(load: Load, firsts: Firsts) -> dict[str, Span]:
    """The supplier's vector. The first CSN counts only for a replica ID of which the consumer has nothing."""
    return {rid: Span(firsts.get(rid) or block.stop, block.stop) for rid, block in load.blocks.items()}


def _consumer(load: Load) -> dict[str, Span]:
    return {rid: Span(block.consumer, block.consumer) for rid, block in load.blocks.items() if block.consumer}


def opened(session: Session, firsts: Firsts, consumer_origin: str) -> SendSession:
    """The session as the rules begin it from its first control blocks."""
    load = session.loads[0]
    return RULES.open(_Told(load.located is not False), _supplier(load, firsts), _consumer(load), consumer_origin)


def reload_anchor(load: Load, firsts: Firsts) -> str | None:
    """The anchor of a reload, from nothing but its own control blocks."""
    stops = {rid: Span(block.previous, block.previous) for rid, block in load.blocks.items() if block.previous}
    # A replica ID with a block is not ignored, whatever its consumer has got by now: so no consumer is named.
    talk = RULES.open(_Told(), stops, _consumer(load), "")
    return _anchor_of(talk.reload(_supplier(load, firsts), load.read or ""))


def _anchor_of(start: Start) -> str | None:
    """The anchor of a reload; a session that ends because it lies below its start has printed it all the same."""
    below = (str(reason.values["anchor"]) for reason in start.reasons if "anchor" in reason.values)
    return start.anchor or next(below, None)


class Played:
    """A session played from the changelog, load by load, up to where the log says that each buffer ended.

    certain   outcome -> records that the session read for sure
    perhaps   outcome -> records that it may have read besides, if they were there by then
    met       CSNs of the records that are certain
    last      outcome of the last of them
    late      records at or below a stop may have been written after the session had passed them, too: LMDB shows a reader what
              was committed when its transaction began, and the vector may be further
    differs   a reload for which the rules, coming from the records read, give another anchor: (load, that anchor)
    """

    def __init__(
        self,
        session: Session,
        talk: SendSession,
        changelog: StoredLog,
        consumer_origin: str,
        firsts: Firsts,
        late: bool = False,
    ) -> None:
        self.certain: Counter[str] = Counter()
        self.perhaps: Counter[str] = Counter()
        self.met: set[str] = set()
        self.last: str | None = None
        self.differs: tuple[Load, str | None] | None = None
        self._session, self._talk, self._late = session, talk, late
        self._ignored = consumer_origin if talk.about["consumer_rid_ignored"] else None
        self._marks = frozenset(changelog.marks)  # handed on without a line of the log
        self._held: dict[str, str | None] = {}
        self._play(changelog, firsts)

    def _play(self, changelog: StoredLog, firsts: Firsts) -> None:
        bound, loads = self._talk.start.bound, self._session.loads
        filled = self._session.filled
        for load, then in zip(loads, [*loads[1:], None], strict=True):
            for rid, block in load.blocks.items():
                self._held.setdefault(rid, block.consumer)
            if load.alternative:
                bound = Bound(load.alternative, True)
            if bound is None or load not in filled:
                return
            self._read(load, then, changelog.records(bound, then.read if then else None))
            if then is None or then.read is None:
                return
            start = self._talk.reload(_supplier(then, firsts), then.read)
            if _anchor_of(start) != then.anchor:
                self.differs = then, _anchor_of(start)
                return
            bound = start.bound

    def _read(self, load: Load, then: Load | None, records: Iterator[str]) -> None:
        """Judge the records of one load.

        Without a reload after it the log does not show the end of the buffer, only the last record that it names. If the
        buffer was used up, whatever else was due was handed on, and nobody knows how far the others go. If the session
        broke off, the next that is due may have been handed on without a line.
        """
        named, own = set(load.named), set(load.own)
        shown = max(named | own, default="")
        for csn in records:
            rid = origin_of(csn)
            stop = self._talk.stops.get(rid)
            within = stop is not None and csn <= stop
            behind = then is None and csn > shown
            told = csn in named or csn in own
            due = within and rid != self._ignored and csn > (self._held.get(rid) or "")
            if self._late and due and not told and csn not in self._marks:
                continue  # the log does not say that it was handed on: it was not to be seen yet
            if not told and not within:
                self.perhaps[self._beyond(csn, rid, stop)] += 1
                continue
            if behind and not self._session.used_up and rid != self._ignored and csn > (self._held.get(rid) or ""):
                self.perhaps[SENT] += 1
                return
            step = self._talk.judge(csn)
            outcome = SENT if step.outcome in DELIVERED else step.outcome
            if outcome == SENT:
                self._held[rid] = csn
            if outcome != SENT and (behind or (self._late and not told)):
                self.perhaps[outcome] += 1
            else:
                self.certain[outcome] += 1
                self.met.add(csn)
                self.last = outcome

    def _beyond(self, csn: str, rid: str, stop: str | None) -> str:
        """What became of a record beyond the stops, if it was there by then and none of its replica ID blocked it."""
        if rid == self._ignored:
            return CONSUMERS_OWN
        if csn.startswith(HELPER_TIMES):
            return HELPER
        if stop is None:
            return UNKNOWN
        return COVERED if csn <= (self._held.get(rid) or "") else BEYOND
