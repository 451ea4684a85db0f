"""A model of a case, on which a repair is tried before anybody does it, and rehearsed by the one who will.

What is modelled stands in `workbench.rules.repair_model`. Here it is filled: single changes where a server misses them, and
stretches of changes where servers are merely behind one another, as the digests count them, or as entries show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from workbench.diagnosis.cleaned_origins import CLEANED_HERE
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.dropped_changes import dropped_rows
from workbench.diagnosis.left_in_logs import left_in_log
from workbench.diagnosis.repair_sources import doubted_on
from workbench.engine.logs import StoredLog
from workbench.engine.position_index import LOWEST, Pair, Span
from workbench.engine.state_fates import Fate
from workbench.model import counted
from workbench.repair.cut_off_suppliers import without_unsent
from workbench.repair.fresh_positions import FreshPositions
from workbench.repair.plan_types import ROLLED_BACK, Plan, Step, Vectors
from workbench.replication.entry.diagnosis.domains_told import with_domain
from workbench.replication.entry.diagnosis.pull_outcomes import links_between, lots_of
from workbench.replication.entry.diagnosis.shown_changes import changes_shown
from workbench.replication.entry.diagnosis.state_comparison import now_at, states_of
from workbench.replication.entry.rules.repair_model import PullModel
from workbench.replication.stream.plan_model import model_of_streams
from workbench.replication.tier.plan_model import model_of_tiers
from workbench.rules.repair_model import ChangeGroup, Link, LogModel, MissingAt, Model, Server, maxima
from workbench.rules.send_session import SEND, SortedLog
from workbench.rules.vectors import last, newer
from workbench.rules.verdicts import PERHAPS_NO_EFFECT, TOTAL
from workbench.topology.topology import Replica, Row

NONE_UNAPPLIED: Mapping[str, frozenset[str]] = {}

Codes = Iterable[tuple[str, str | None, str | None]]
"""(code, server, link) of findings."""


def model_of(
    context: DetectorContext,
    suffix: str | None,
    codes: Codes,
    waiting: Collection[str] = (),
    unapplied: Mapping[str, frozenset[str]] = NONE_UNAPPLIED,
) -> Model:
    """The model of one suffix. `waiting`: codes of findings on a link that opens no session, though its consumer is behind.

    unapplied  server -> positions of changes that it answers with success and does not apply
    """
    if context.verdicts.streams is not None:
        return model_of_streams(context.verdicts.streams)
    if context.verdicts.tiers is not None:
        return model_of_tiers(context.verdicts.tiers, context.verdicts.pending)
    if context.topology.pulling:
        return _FromEntries(context, suffix).model()
    return _FromLogs(context, suffix, set(codes), waiting, unapplied).model()


class _Filling:
    """What both ways share: who replicates, and a lot for each change that some server misses."""

    def __init__(self, context: DetectorContext, suffix: str | None) -> None:
        self.context, self.suffix, self.system = context, suffix, context.topology.system
        self.replicas = [one for one in context.topology.replicas if one.suffix == suffix and one.claims]
        self.names = {one.server for one in self.replicas}
        self.lots: list[ChangeGroup] = []
        self.holders: list[set[str]] = []
        self._unknown = {name: doubted_on(context, name, suffix) for name in self.names}
        self._cleaned: dict[str, list[tuple[str, str, str]]] = {}
        for row in context.verdicts.unknown:
            if (row["suffix"], row["why"]) == (suffix, CLEANED_HERE):
                low, high = (self.system.typed(row[end]) or "" for end in ("from", "to"))
                self._cleaned.setdefault(row["origin"], []).append((row["server"], low, high))

    def missed(self) -> None:
        """One lot for each change that some server misses, and for each part of a change where parts are told apart."""
        rows: dict[tuple[str, Any, Any], list[Row]] = {}
        for row in [*self.context.verdicts.missing, *self._perhaps_lacking()]:
            if row["suffix"] == self.suffix and row["server"] in self.names:
                position = self.system.typed(row["position"]) or ""
                rows.setdefault((position, row.get("entry"), row.get("attribute")), []).append(row)
        for (position, _, _), mine in rows.items():
            missed = mine[0]
            lacking = {one["server"] for one in mine}
            shown = {name for one in mine for name in one.get("shown_by", ())} - lacking
            if not missed["held_by"]:
                lacking |= self._not_judged(missed["origin"], position)
            target = (missed["target"] or "").lower() or None
            does = {"creates": missed["operation"] == "add", "renames": missed["operation"] == "modrdn"}
            self.lots.append(ChangeGroup(missed["origin"], position, position, 1, target, **does))
            place = self.system.halves(position)
            self.holders.append(
                {
                    one.server
                    for one in self.replicas
                    if one.server in shown
                    or (
                        one.server not in lacking
                        and (
                            self.has_seen(one, missed["origin"], position)
                            or self.kept(one, missed["origin"], place, place)
                        )
                        and not self.thrown_away(one, position)
                    )
                }
            )

    def _perhaps_lacking(self) -> Iterator[Row]:
        """Changes that the log of a server lacks and that may do nothing there: whoever has them may lose them to its data."""
        for row in self.context.verdicts.unknown:
            if row["why"] in PERHAPS_NO_EFFECT:
                yield {**row, "position": row["from"], "operation": None, "target": None, "held_by": [row["server"]]}

    def _not_judged(self, origin: str, position: str) -> set[str]:
        """The servers of which nothing tells whether they have a change that no log has: nothing is promised from their data."""
        typed = self.system.typed
        return {
            name
            for name, rows in self._unknown.items()
            if any(
                row["origin"] == origin and (typed(row["from"]) or "") <= position <= (typed(row["to"]) or "")
                for row in rows
            )
        }

    def has_seen(self, one: Replica, origin: str, position: str) -> bool:
        """True if the server is known to have come to this position."""
        return self.top(one, origin) >= position

    def kept(self, one: Replica, origin: str, first: Pair, end: Pair) -> bool:
        """True if a server has all these changes of an origin that was cleaned away from its vector."""
        kept = self.context.verdicts.kept.get((one.server, self.suffix, origin), ())
        return any(low <= first and end <= high for low, high in kept)

    def top(self, one: Replica, origin: str) -> str:
        """Up to where a server has seen the changes of an origin."""
        return one.top(origin)

    def thrown_away(self, one: Replica, position: str) -> bool:
        """True for a change that the server lost with its data, and so never missed."""
        return False

    def held_by(self, server: str) -> set[int]:
        """The numbers of the lots that a server has."""
        return {number for number, names in enumerate(self.holders) if server in names}


class _FromLogs(_Filling):
    def __init__(
        self,
        context: DetectorContext,
        suffix: str | None,
        codes: set[Any],
        waiting: Collection[str],
        unapplied: Mapping[str, frozenset[str]],
    ) -> None:
        super().__init__(context, suffix)
        self.codes, self.waiting, self.unapplied = codes, waiting, unapplied
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
        back = {server for code, server, _ in self.codes if code == ROLLED_BACK} | self._went_back()
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


class _FromEntries(_Filling):
    """Of a system that keeps no log: a lot is a last change of an attribute, or a stretch of them, or a deletion.

    within   server -> its generation, where servers of several are there: no server lacks what belongs to another one
    blind    the servers whose entries were not collected
    """

    within: Mapping[str, str | None] = {}
    blind: frozenset[str] | set[str] = frozenset()

    def model(self) -> PullModel:
        """Lots first, then the servers; where no link is known, everybody may pull from everybody, as the pairs do."""
        shown, case = self.context.topology, self.context.case
        assert shown.pulling is not None
        self.replicas = with_domain(self.replicas)  # no step may rest on the others
        self.names = {one.server for one in self.replicas}
        self.blind = {one.server for one in self.replicas if states_of(case, shown, one) is None}
        generations = {replica.server: replica.generation for replica in self.replicas}
        self.within = generations if len({*generations.values()}) > 1 else {}
        fates = self.context.verdicts.fates.get(self.suffix, ())
        shown_by = self._differing(fates)
        if self.within:
            self._alike(fates)
        shown_by += self.holders[len(fates) :]
        made = FreshPositions(self.system, self.replicas)
        servers = {
            one.server: Server(one.server, one.origin, one.generation, one.seen(), None, self.held_by(one.server))
            for one in self.replicas
        }
        return PullModel(
            self.lots,
            servers,
            links_between(shown, self.context.pairs, self.suffix, self.names),
            made.origin_of,
            made,
            pulling=shown.pulling,
            now={one.server: now_at(case, shown, one) for one in self.replicas},
            time_of=lambda position: self.system.halves(position)[0],
            order_key=lambda origin, time: self.system.order_key(origin, time, 0),
            doubted=frozenset(
                MissingAt(name, number)
                for number, fate in enumerate(fates)
                for name in fate.doubted | self._not_shown(fate)
            ),
            needless={MissingAt(name, number) for number, fate in enumerate(fates) for name in fate.needless},
            unsure={MissingAt(x, n) for n, of in enumerate(fates) for x in self.holders[n] & self.blind - of.compared},
            shows={name: {n for n, names in enumerate(shown_by) if name in names} for name in self.names},
            more=bool(self.context.not_collected(self.suffix)),
        )

    def _differing(self, fates: Sequence[Fate]) -> list[set[str]]:
        """Lots of what not every server has, with the numbers of the fates; which servers show each of them.

        Of several generations no entries are compared with each other: whoever is filled with those of another one throws all
        of its own away.
        """
        names = {(row["entry"], row["attribute"]): row["target"] for row in self.context.verdicts.missing}
        shown_by = []
        for fate, lot in zip(fates, lots_of(fates, self.system.order_key), strict=True):
            target = (names.get(fate.change) or "").lower() if fate.change else ""
            within = self.within.get(next(iter(fate.compared), ""))
            self.lots.append(replace(lot, entry=target or None, within=within))
            mine = [one for one in self.replicas if not self.within or one.generation == within]
            tops = {one.server: self._top(one, fate.origin) for one in mine}
            blind = self._not_shown(fate)
            self.holders.append({name for name, top in tops.items() if fate.has(name, top)} - blind)
            shown_by.append({name for name, top in tops.items() if fate.shows(name, top)} - blind)
        return shown_by

    def _not_shown(self, fate: Fate) -> frozenset[str]:
        """The servers whose entries were not collected, of changes that others missed: what ranges cover proves nothing there."""
        return frozenset(self.blind - fate.compared if fate.missed else ())

    def _alike(self, fates: Sequence[Fate]) -> None:
        """Lots of what all servers of a generation show: whoever is filled with the data of another one throws that away."""
        shown, case = self.context.topology, self.context.case
        for generation in dict.fromkeys(self.within.values()):
            mine = [one for one in self.replicas if one.generation == generation]
            files = [(one.server, file) for one in mine if (file := states_of(case, shown, one))]
            for name, file in files[:1]:
                unlike = Counter[str]()
                for fate in (fate for fate in fates if name in fate.shown):
                    unlike[fate.origin] += fate.count
                for origin, (count, *times) in sorted(changes_shown(case, file).items()):
                    if count > unlike[origin]:
                        first, end = (self.system.order_key(origin, time, 0) for time in times)
                        self.lots.append(ChangeGroup(origin, first, end, count - unlike[origin], within=generation))
                        seen = {one.server for one in mine if self._top(one, origin) >= times[-1]}
                        self.holders.append(seen.union(server for server, _ in files))

    def _top(self, one: Replica, origin: str) -> int:
        """How far the server has seen an origin. One that was quiet for long stands in no vector, seen or not."""
        position = last(one.seen(), origin)
        if position:
            return self._time(position)
        shown = self.context.topology
        assert shown.pulling is not None
        return max(-1, now_at(self.context.case, shown, one) - shown.pulling.remember - 1)

    def _time(self, position: str) -> int:
        return self.system.halves(position)[0]


class Rehearsal:
    """The model, where a plan is done (`workbench.repair.plan_executor.Site`): it answers as the real servers should."""

    def __init__(self, plan: Plan, models: Mapping[str | None, Model], show: Callable[[str], str] = str) -> None:
        self._plan, self._show = plan, show
        self._models = {suffix: model.copy() for suffix, model in models.items()}
        self._lacked = {}
        for suffix, model in self._models.items():
            # What is on its way counts as arrived. The model itself stays as the case shows it: the first step is checked
            # against the vectors of the plan, and on those nothing has moved yet.
            later = model.copy()
            later.settle()
            self._lacked[suffix] = later.missing() | later.pending()
        self._applied: set[str] = set()

    def vectors(self, suffix: str | None) -> Vectors:
        """What every server of the model claims."""
        return {
            name: {origin: self._show(span.max) for origin, span in server.vector.items() if span.max}
            for name, server in self._models[suffix].servers.items()
        }

    def obstacles(self, step: Step, begun: bool) -> list[str]:
        """None: the model is what the plan was made on."""
        return []

    def memo(self, step: Step) -> dict[str, Any]:
        """Nothing has to be remembered."""
        return {}

    def done(self, step: Step, memo: Mapping[str, Any]) -> bool:
        """True if it was done in this rehearsal."""
        return step.key in self._applied

    def apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        """Let the model do what the step does, once what was on its way has arrived: so it was proven."""
        self._models[step.suffix].settle()
        self._models[step.suffix].do(step.effects)
        self._applied.add(step.key)

    def shortfall(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        """What the plan promised and the model lacks, once the last step of the suffix is done."""
        mine = [one for one in self._plan.steps if one.suffix == step.suffix]
        if step.key != mine[-1].key:
            return []
        return [
            f"{row['server']} still lacks {lacks:,} of {counted(row['count'])} of origin {row['origin']}"
            for row in self._plan.promise
            if row["suffix"] == step.suffix and (lacks := row["count"] - self._came(row))
        ]

    def _came(self, row: Mapping[str, Any]) -> int:
        """How many changes of an origin a server holds that it lacked when all began."""
        model, lacked = self._models[row["suffix"]], self._lacked[row["suffix"]]
        mine = (one for one in lacked & model.held() if one.server == row["server"])
        return model.changes(one for one in mine if model.lots[one.lot].origin == row["origin"])
