"""What has not arrived at a server yet: how many changes of each origin, who would send them, and which no log has any more.

Servers are read one after the other while they go on working. A change that was made meanwhile need not stand in files that
were read before it, so nothing is concluded from its absence there: it is not counted, and no log is said to have lost it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from workbench.engine.known import HIGHEST, LOWEST, Known, Pair, Span
from workbench.engine.positions import of_keys
from workbench.fleet.topology import Replica, Topology

MOMENTS_APART = timedelta(seconds=60)
"""The files of one server are read moments apart: a change of that time may stand in one of them and not in the other."""


class Holder(NamedTuple):
    """A server of the suffix: what it has seen by origin, and the number of its present log among the sources."""

    replica: Replica
    source: int | None
    seen: Mapping[str, str]


class Waiting:
    """What waits for the servers of one suffix.

    newest  server -> the latest time that its own files tell
    """

    def __init__(
        self, shown: Topology, known: Known, holders: Sequence[Holder], numbers: Mapping[str, int],
        newest: Mapping[str, datetime],
    ) -> None:  # fmt: skip
        self.shown, self.known, self.holders = shown, known, holders
        self.system, self._numbers, self._newest = shown.system, numbers, newest
        self._claimed = {origin for one in holders for origin in one.replica.vector or one.seen}

    def of(self, server: Holder, origin: str) -> dict[str, Any] | None:
        """Count, first and last position, how many a log can supply, how many none can; None if nothing waits."""
        if origin not in self._claimed:
            return None  # cleaned away everywhere: nobody will send it, and nobody waits for it
        top = max(server.seen.get(origin, ""), server.replica.later.get(origin, ""))
        spans = list(self._judged(Span(self._pair(top), HIGHEST)))
        others = [one.source for one in self.holders if one.source is not None and one.replica is not server.replica]
        claimed = self._only_claimed(origin, top)
        ends = sorted(claimed)
        count = available = gone = 0
        shown = self._shown_up_to(origin)
        for span in spans:
            there, first, last = self.known.tally(origin, span)
            count += there
            ends += [self.system.order_key(origin, *end) for end in (first, last) if end is not None]
            available += self.known.tally(origin, span, others)[0]
            reached = Span(span.low, min(span.high, shown))
            gone += self.known.tally(origin, reached)[0] - self.known.tally(origin, reached, others)[0]
        if not ends or self._still_made(server.replica, origin, min(ends)):
            return None
        return {
            "count": count + len(claimed),
            "first": self.system.show(min(ends)),
            "last": self.system.show(max(ends)),
            "available": available,
            "gone": gone + sum(self._pair(key) <= shown for key in claimed),
        }

    def _still_made(self, server: Replica, origin: str, first: str) -> bool:
        """True for changes that the server itself made after the newest of its files: it does not wait for those."""
        made, newest = self.system.moment(first), self._newest.get(server.server)
        if server.origin != origin or made is None:
            return False
        tops = (self.system.moment(span.max) for span in server.seen().values() if span.max)
        return made >= max(filter(None, (newest, *tops)), default=made)

    def _judged(self, above: Span) -> Iterator[Span]:
        """The span without what was made while the servers were being read."""
        if (meanwhile := self.shown.meanwhile) is None:
            yield above
            return
        began, ended = ((self.system.instant(at), -1) for at in meanwhile)
        for span in (Span(above.low, min(above.high, began)), Span(max(above.low, ended), above.high)):
            if not span.empty:
                yield span

    def _shown_up_to(self, origin: str) -> Pair:
        """Up to where the log of the server that makes the changes of the origin was written when it was read.

        What it made later stands in no log, and is not lost for that. What is a minute older than its newest file should stand
        there.
        """
        maker = next((one for one in self.holders if one.replica.origin == origin), None)
        if maker is None or maker.replica.log is None:
            return HIGHEST
        logged = maker.replica.log.facts.get("by_origin", {})
        end = max((str(one["max"]) for one in logged.values() if one["max"]), default="")
        newest = self._newest.get(maker.replica.server)
        old = (self.system.instant(newest - MOMENTS_APART), 0) if newest else LOWEST
        return max(self._pair(end), old)

    def _only_claimed(self, origin: str, above: str) -> set[str]:
        """The last changes of the origin that vectors claim and nothing else names: they were made all the same."""
        tops = {one.replica.vector[origin].max or "" for one in self.holders if origin in one.replica.vector}
        tops = {top for top in tops if top > above and not self.shown.made_meanwhile(self.system.moment(top))}
        if not tops:
            return set()
        some = of_keys(self.system, tops, self._numbers)
        for source in self.known.sources:
            some = some[~source.contains(some)] if len(some) else some
        return set(some.keys(self.system, self.known.names))

    def _pair(self, key: str) -> Pair:
        return self.system.halves(key) if key else LOWEST
