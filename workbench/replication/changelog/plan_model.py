"""A model of servers that keep logs, on which a repair is tried before anybody does it.

What is modelled stands in `workbench.rules.repair_model`. Here it is filled: single changes where a server misses them, and
stretches of changes where servers are merely behind one another, as the digests count them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from workbench.contracts.replication import PlanGrounds
from workbench.diagnosis.dropped_changes import dropped_rows
from workbench.diagnosis.left_in_logs import left_in_log
from workbench.diagnosis.missed_lots import MissedLots
from workbench.diagnosis.unsent_origins import without_unsent
from workbench.engine.logs import StoredLog
from workbench.engine.position_index import LOWEST, Pair, Span
from workbench.rules.fresh_positions import FreshPositions
from workbench.rules.repair_model import ChangeGroup, Link, LogModel, Model, Server, maxima
from workbench.rules.send_session import SEND, SortedLog
from workbench.rules.vectors import last, newer
from workbench.rules.verdicts import TOTAL
from workbench.topology.topology import Replica, Row

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_ROLLED_BACK = "ROLLED_BACK"


def model_of_logs(context: DetectorContext, suffix: str | None, grounds: PlanGrounds) -> Model:
    """The model of one suffix."""
    return _FromLogs(context, suffix, grounds).model()


class _FromLogs(MissedLots):
    """Single changes where a server misses them, and stretches where servers are behind one another, as digests count them."""

    def __init__(
        self,
        context: DetectorContext,
        suffix: str | None,
        grounds: PlanGrounds,
    ) -> None:
        super().__init__(context, suffix)
        self.codes, self.waiting, self.unapplied = {*grounds.codes}, grounds.waiting, grounds.unapplied
        logs = {one.server: one.log for one in self.replicas if one.log}
        self.logs = {server: context.case.log(log) for server, log in logs.items()}
        self.known = next(reversed(context.verdicts.known.get(suffix, ())), None)
        self._read_up_to: dict[str, str] = {}

    def model(self) -> Model:
        """Lots first, then the servers with as much of their logs as sessions over these lots ask for."""
        self.missed()
        self._read_up_to = self._busy()
        self._waited_for()
        self._left_in_logs()
        supplying = self.context.topology.supplying
        made = FreshPositions(self.system, self.replicas)
        rules = next(iter(supplying.rule_sets.values()))
        servers = {one.server: self._server(one, made.origin_of) for one in self.replicas}
        return LogModel(
            self.lots,
            servers,
            list(self._links(servers)),
            made.origin_of,
            made,
            rules=rules,
            losing=supplying.losing,
            refuses=supplying.refuses,
            more=bool(self.context.not_collected(self.suffix)),
        )

    # --- lots

    def thrown_away(self, one: Replica, position: str) -> bool:
        """True for an own change made before the server was filled from another one: it never missed that, and has it not."""
        made = self.system.moment(position)
        if made is None or self.system.origin_of(position) != one.origin:
            return False
        resets = self.context.verdicts.resets.get((one.server, one.suffix), [])
        filled = any(reset.kind == TOTAL and made <= reset.ended for reset in resets)
        stored = self.logs.get(one.server)
        return filled and not (stored is not None and stored.holds(position))

    def _waited_for(self) -> None:
        """The changes of each origin between one server's last position and the next one's: who is further has them."""
        if self.known is None:
            return
        single: dict[str, set[Pair]] = {}
        for lot in self.lots:
            single.setdefault(lot.origin, set()).add(self._place(lot.first))
        for suffix, position in self.context.verdicts.unsure:
            if suffix == self.suffix and (key := self.system.typed(position)):
                single.setdefault(self.system.origin_of(key), set()).add(self._place(key))
        for origin in self.known.names:
            tops = {one.server: self._place(self.top(one, origin)) for one in self.replicas}
            claimed = {
                min(self._place(last(one.vector, origin)), self._place(self.top(one, origin))) for one in self.replicas
            }
            lowest = min(tops.values(), default=LOWEST)
            cuts = {one for one in self._edges(origin) if one > lowest}
            for low, high in pairwise(sorted({*tops.values(), *cuts})):
                self._stretch(origin, Span(low, high), single.get(origin, set()), high in claimed)

    def _left_in_logs(self) -> None:
        """A lot for what only the log of a server without data still has of an origin."""
        typed = self.system.typed
        for name in sorted(self.names):
            rows: dict[str, list[str]] = {}
            for row in left_in_log(self.context.verdicts, name, self.suffix):
                rows.setdefault(row["origin"], []).append(typed(row["position"]) or "")
            for origin, positions in rows.items():
                self.lots.append(ChangeGroup(origin, positions[0], positions[-1], len(positions)))
                self.holders.append({name})

    def _edges(self, origin: str) -> Iterator[Pair]:
        """Behind which changes the logs begin and end: a log that has a part of a stretch would seem to have all, or nothing."""
        for log in self.logs.values():
            if first := log.first_of(origin):
                hi, lo = self._place(first)
                yield hi, lo - 1
        for one in self.replicas:
            if shown := (one.log.facts.get("by_origin", {}) if one.log else {}).get(origin):
                yield self._place(shown["max"])
        for hi, lo in self._waits_from(origin).values():
            yield hi, lo - 1
        for one in self.replicas:
            for (hi, lo), high in self.context.verdicts.kept.get((one.server, self.suffix, origin), ()):
                yield from ((hi, lo - 1), high)
        for position in set().union(*self.unapplied.values()):
            if self.system.origin_of(position) == origin:  # a lot of its own
                place = self._place(position)
                yield from ((place[0], place[1] - 1), place)

    def _stretch(self, origin: str, span: Span, single: set[Pair], claimed: bool) -> None:
        """A lot of what lies in the span, but for the changes that have a lot of their own. `claimed`: a vector ends there."""
        assert self.known is not None
        count, first, end = self.known.tally(origin, span)
        if claimed and span.high != end:
            count, first, end = (
                count + 1,
                first or span.high,
                span.high,
            )  # by a vector, and in nothing that was collected
        count -= sum(span.low < place <= span.high for place in single)
        if count <= 0 or first is None or end is None:
            return
        # A lot comes with its last change: that has to be one of its own.
        while end in single:
            _, _, end = self.known.tally(origin, Span(span.low, (end[0], end[1] - 1)))
            assert end is not None, "not all of the stretch have a lot of their own"
        while first in single:
            _, first, _ = self.known.tally(origin, Span(first, span.high))
            assert first is not None, "not all of the stretch have a lot of their own"
        begin, upto = (self.system.order_key(origin, *one) for one in (first, end))
        self.lots.append(ChangeGroup(origin, begin, upto, count))
        tops = {one.server: self._place(self.top(one, origin)) for one in self.replicas}
        lost = {one.server for one in self.replicas if self.thrown_away(one, upto) and self._behind_mark(one, begin)}
        lost |= self._lost_with_data(origin, begin, upto, count)
        before = {server for server, low in self._waits_from(origin).items() if span.high < low}
        holders = {name for name, top in tops.items() if top >= span.high} - lost | before | self._forgot(origin)
        if self.names - holders:
            holders -= self._cleaned_before(origin, begin, upto)
        self.holders.append(holders | {x.server for x in self.replicas if self.kept(x, origin, first, end)})

    def _lost_with_data(self, origin: str, first: str, end: str, count: int) -> set[str]:
        """The makers that lost all these changes with their old data, whatever their vector claims by now."""
        mine = [row for row in self.context.verdicts.lost if (row["suffix"], row["origin"]) == (self.suffix, origin)]
        found = Counter(row["server"] for row in mine if first <= (self.system.typed(row["position"]) or "") <= end)
        return {server for server, many in found.items() if many >= count}

    def _cleaned_before(self, origin: str, first: str, end: str) -> set[str]:
        """The servers that cleaned an origin, of which nothing tells whether they had all changes from the first to the end.

        Their data is no promise for a server that lacks these changes.
        """
        return {server for server, low, high in self._cleaned.get(origin, ()) if low <= end and first <= high}

    def _behind_mark(self, one: Replica, position: str) -> bool:
        """True for an own change behind what came with the data of a server, by its log that was made anew then."""
        mark = self.context.verdicts.marks.get((one.server, one.suffix), {}).get(one.origin or "")
        return mark is not None and position > mark

    def _waits_from(self, origin: str) -> dict[str, Pair]:
        """The servers that drop an origin which they cleaned, and what they wait for first: of before that they lack nothing."""
        rows = (row for row in self.context.verdicts.pending if (row["suffix"], row["origin"]) == (self.suffix, origin))
        return {row["server"]: self._place(self.system.typed(row["first"])) for row in rows if row.get("dropped_since")}

    def _forgot(self, origin: str) -> set[str]:
        """The servers that know nothing of an origin and wait for nothing of it, as after a cleaning: they lack nothing.

        Where the list of what waits was cut, nobody is taken for one.
        """
        found = self.context.verdicts
        if "pending" in found.cut():
            return set()
        waits = {one["server"] for one in found.pending if (one["suffix"], one["origin"]) == (self.suffix, origin)}
        return {one.server for one in self.replicas if origin not in one.seen()} - waits

    def _place(self, position: str | None) -> Pair:
        return self.system.halves(position) if position else LOWEST

    # --- what was made while servers were read

    def _busy(self) -> dict[str, str]:
        """Origin -> up to where logs show it, of those of which a vector tells more and nothing else does: it was read later.

        Of an origin of which older changes are in no log either, nobody can tell one from the other.
        """
        found = self.context.verdicts
        waiting = [row for row in found.pending if row["suffix"] == self.suffix]
        doubted = {row["origin"] for row in waiting if (row["gone"] and not row.get("unread_log")) or row.get("lost")}
        busy = {row["origin"] for row in waiting if row["available"] < row["count"] or self._sent_later(row)} - doubted
        shown: dict[str, str] = {}
        for one in self.replicas:
            marks = found.marks.get((one.server, one.suffix), {})
            logged = one.log.facts.get("by_origin", {}) if one.log else {}
            for origin in busy:
                last_of = logged.get(origin, {}).get("max") or "", marks.get(origin) or ""
                shown[origin] = max(shown.get(origin, ""), *last_of)
        for lot in self.lots:
            if lot.origin in shown:
                shown[lot.origin] = max(shown[lot.origin], lot.last)
        return {origin: position for origin, position in shown.items() if position}

    def _sent_later(self, row: Mapping[str, Any]) -> bool:
        """True for what waits if the log of a server that would send it was read before the server had it."""
        last_of = self.system.typed(row["last"]) or ""
        senders = (one for one in self.replicas if one.server in row["suppliers"] and one.log)
        logged = ((one.log.facts.get("by_origin", {}) if one.log else {}).get(row["origin"], {}) for one in senders)
        return any((shown.get("max") or "") < last_of for shown in logged)

    def top(self, one: Replica, origin: str) -> str:
        """The same, as far as any log tells of the origin. Whoever claims nothing has no data: its log is of before."""
        if one.empty:
            return ""
        position = super().top(one, origin)
        return min(position, self._read_up_to.get(origin, position))

    def _logged_since(self, replica: Replica, position: str) -> bool:
        """True for a change of a busy origin that the server took when its log had been read, and its vector had not."""
        origin = self.system.origin_of(position)
        if origin not in self._read_up_to or not self.has_seen(replica, origin, position):
            return False
        logged = replica.log.facts.get("by_origin", {}) if replica.log else {}
        marks = self.context.verdicts.marks.get((replica.server, replica.suffix), {})
        return position > max(logged.get(origin, {}).get("max") or "", marks.get(origin) or "")

    # --- servers and links

    def _server(self, replica: Replica, origin_of: Callable[[str], str]) -> Server:
        holds = self.held_by(replica.server)
        # A log that was not collected is not one that has nothing: what such a server would send, nobody can say.
        log = SortedLog([], origin_of) if replica.keeps_log else None
        stored = self.logs.get(replica.server)
        if log is not None and stored is not None:
            log = SortedLog(self._records(replica, stored, holds), origin_of, stored.marks)
        seen = {**replica.vector, **replica.seen()}
        for origin in self._read_up_to.keys() & seen.keys():
            if seen[origin].min:
                seen[origin] = replace(seen[origin], max=self.top(replica, origin))
        seen = without_unsent(self.context, replica, seen)
        drops = frozenset(dropped_rows(self.context.verdicts.pending, replica.server, replica.suffix))
        return Server(
            replica.server,
            replica.origin,
            replica.generation,
            seen,
            log,
            holds,
            drops=drops,
            forgets=drops.union(self.context.verdicts.remembers.get((replica.server, replica.suffix), ())),
            unapplied=self.unapplied.get(replica.server, frozenset()),
        )

    def _records(self, replica: Replica, stored: StoredLog, holds: set[int]) -> Iterator[str]:
        """What the log has of the records that matter: ends of vectors, of lots, and of the log itself."""
        ends = {
            position
            for one in self.replicas
            for span in (*one.vector.values(), *one.seen().values())
            for position in (span.min, span.max)
            if position
        }
        ends |= {*self._read_up_to.values()}.union(*(one.later.values() for one in self.replicas))
        facts = replica.log.facts.get("by_origin", {}) if replica.log else {}
        ends |= {str(one[end]) for one in facts.values() for end in ("min", "max")}
        for number, lot in enumerate(self.lots):
            if number in holds:
                ends.add(lot.last)
        lacked = {lot.last for number, lot in enumerate(self.lots) if number not in holds}
        for position in sorted(ends):
            if position in stored.marks:
                continue  # a record, too, but none that is ever sent
            if stored.holds(position) or (position not in lacked and self._logged_since(replica, position)):
                yield position

    def _links(self, servers: Mapping[str, Server]) -> Iterator[Link]:
        pairs = {(row["supplier"], row["consumer"]): row for row in self.context.pairs if row["suffix"] == self.suffix}
        back = {server for code, server, _ in self.codes if code == _ROLLED_BACK} | self._went_back()
        for link in self.context.topology.links:
            if link.suffix != self.suffix or link.supplier not in servers:
                continue
            if link.consumer is None or link.consumer not in servers:
                continue  # nobody knows where it leads, or what is there
            row: Row = pairs.get((link.supplier, link.consumer), {})
            waits = link.consumer in back or any(
                code in self.waiting and name == link.name and server in (link.supplier, link.consumer, None)
                for code, server, name in self.codes
            )
            waits = waits or (row.get("would_contact") is False and row.get("decision") == SEND)
            claims = maxima(servers[link.supplier].vector)
            yield Link(link.supplier, link.consumer, link.enabled is not False, claims if waits else None)

    def _went_back(self) -> set[str]:
        """The servers that claimed more in the snapshot before: their suppliers may take them for up to date."""
        earlier = self.context.earlier
        if earlier is None:
            return set()
        before = {one.server: one.seen() for one in earlier.replicas if one.suffix == self.suffix and one.claims}
        return {one.server for one in self.replicas if newer(before.get(one.server, {}), one.seen())}
