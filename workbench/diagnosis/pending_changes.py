"""What has not arrived at a server yet: how many changes of each origin, who would send them, and which no log has any more.

Servers are read one after the other while they go on working. What a server claimed when it was read once more at the end counts:
what it had got by then it does not wait for. No log is said to have lost what was made after it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from workbench.diagnosis.cleaned_origins import claims_nothing_of_cleaned, forgot, had_before, taken_before
from workbench.diagnosis.closed_ways import runs
from workbench.diagnosis.data_sources import JudgedServer
from workbench.diagnosis.dropped_changes import dropping, remembers, told_of_dropping
from workbench.diagnosis.evidence_grounds import Proofs
from workbench.diagnosis.initialisations import initialisations
from workbench.diagnosis.kept_after_cleaning import kept_of
from workbench.diagnosis.refusals import refused_of
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.engine.position_index import HIGHEST, LOWEST, Pair, PositionIndex, Span
from workbench.engine.positions import NONE, Positions, of_keys, union
from workbench.engine.selective_read import rows_at
from workbench.rules.send_session import ANCHOR_NOT_FOUND, NOTHING, SEND
from workbench.rules.verdicts import MOMENTS_APART, REPLACED, TOTAL
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica

Row = Mapping[str, Any]

_NOTHING = Span(LOWEST, LOWEST)

NOBODY: Mapping[str, str] = {}

LOG_READ_BEFORE = "log_read_before"
"""Reason of a pair that sends nothing by what was collected: its supplier's log lacks only what was made since it was read."""

_SECOND = timedelta(seconds=1)
_READ = 10_000
"""Changes that wait of which each is read, where some of them may be none that a server takes from another one."""


def who_would_send(
    pairs: Sequence[Row], consumer: str, origin: str, first: str = "", moved: Mapping[str, str] = NOBODY
) -> list[str]:
    """Who would send changes of the origin to the server now: over links that run, if any is known between two servers.

    If none is, each would that has no links, or one of which nobody knows where it leads.

    first  the first that the server waits for; what it got while others were read, nobody needs to send
    moved  server -> up to where it has the origin by now, of those that got more since they were read
    """
    linked = any(row["link"] for row in pairs)

    def has_some(row: Row) -> bool:
        sent = row["to_send"].get(origin)
        got = row["decision"] in (SEND, NOTHING) and moved.get(row["supplier"], "")
        return bool((sent and sent["last"] >= first) or (got and got >= first))

    return sorted(
        row["supplier"]
        for row in pairs
        if row["consumer"] == consumer
        and has_some(row)
        and row.get("delivers", True)  # a consumer may refuse what it is sent
        and (runs(row) if linked else not row.get("leads_elsewhere"))
    )


def would_send(pairs: Sequence[Row], holder: JudgedServer, consumer: JudgedServer, origin: str) -> bool:
    """True if a session from one to the other would send changes of the origin, should its link run."""
    linked, ends = any(row["link"] for row in pairs), (holder.replica.server, consumer.replica.server)
    mine = (row for row in pairs if (row["supplier"], row["consumer"]) == ends)
    open_ = [row for row in mine if (row["link"] if linked else not row.get("leads_elsewhere"))]
    return any(row["decision"] == SEND and origin in row["to_send"] for row in open_)


class Holder(NamedTuple):
    """A server of the suffix.

    source  the number of its present log among the sources
    seen    what it has seen, by origin
    last    up to where its log shows each origin
    proofs  what else its evidence says
    has     for each of some changes: is it shown that the server has it?
    """

    replica: Replica
    source: int | None
    seen: Mapping[str, str]
    last: Mapping[str, str]
    proofs: Proofs
    has: Callable[[Positions], Numbers]


class Waiting:
    """What waits for the servers of one suffix.

    found  where `kept` and `remembers` are noted (`Verdicts`)
    """

    def __init__(self, evidence: Evidence, known: PositionIndex, holders: Sequence[Holder], found: Verdicts) -> None:
        self.shown, self.known, self.holders, self.found = evidence.shown, known, holders, found
        self.system, self._numbers, self._newest = evidence.system, evidence.numbers, evidence.newest
        self._claimed = {origin for one in holders for origin in one.replica.vector or one.seen}
        self._made = evidence.made_for_nobody
        self._claimed |= {origin for _, origin in self._made}
        self._former = evidence.former
        for one in holders:
            if told := remembers(one.proofs):
                found.remembers[one.replica.server, one.replica.suffix] = told

    def of(self, server: Holder, origin: str) -> dict[str, Any] | None:
        """Count, first and last position, how many a log can supply, how many none can; None if nothing waits."""
        if not self.is_claimed(origin) or (server.replica.server, origin) in self._made:
            return None  # what it made itself it has, or it went with its old data
        seen = server.seen.get(origin, "")
        told = server.proofs.exported.get(origin, "")
        top = max(seen, server.replica.later.get(origin, ""), told)
        low = self._pair(top)
        if not top:
            low = self._forgotten(server, origin) or low
        high = max(low, self._waits_below(server, origin))
        own, mine = self._is_own(server, origin), self._shown_above(server, origin, Span(low, high))
        kept = self._kept(server, origin)
        others = [one.source for one in self.holders if one.source is not None and one.replica is not server.replica]
        shown = self._shown_up_to(origin)
        count = available = gone = 0
        ends: list[Pair] = []
        span = Span(low, high)
        if not span.empty:
            notes = self._notes(origin, span)
            apart = own or len(mine) > 0 or len(notes) > 0 or len(kept) > 0
            for some in self.known.chunks(origin, span) if apart else ():
                left = some.minus(mine).minus(notes).minus(kept)
                held = union(left[self.known.sources[source].contains(left)] for source in others)
                count, available = count + len(left), available + len(held)
                gone += len(Span(LOWEST, shown).of(left)) - len(Span(LOWEST, shown).of(held))
                ends += [(int(left.hi[at]), int(left.lo[at])) for at in (0, -1)] if len(left) else []
            if not apart:
                there, *some_ends = self.known.tally(origin, span)
                count, available = count + there, available + self.known.tally(origin, span, others)[0]
                ends += [end for end in some_ends if end is not None]
                reached = Span(span.low, min(span.high, shown))
                gone += self.known.tally(origin, reached)[0] - self.known.tally(origin, reached, others)[0]
        top = max([top, *mine[-1:].keys(self.system, self.known.names)])
        claimed = {key for key in self._only_claimed(origin, top) if low < self._pair(key) <= high}
        keys = [*claimed, *(self.system.order_key(origin, *end) for end in ends)]
        if not keys:
            return None
        gone += sum(self._pair(key) <= shown for key in claimed)
        return {
            "count": count + len(claimed),
            "first": self.system.show(min(keys)),
            "last": self.system.show(max(keys)),
            "available": available,
            "gone": gone,
            "unread_log": gone > 0 and self._in_unread_log(origin, min(keys)),
        }

    def _in_unread_log(self, origin: str, first: str) -> bool:
        """True if a log may have such changes that was not collected: that of their maker, or of a server that has seen them."""
        return any(
            one.replica.log is None
            and one.replica.keeps_log
            and (self._is_own(one, origin) or one.replica.top(origin) >= first)
            and not vector_stands_still(one.proofs)
            for one in self.holders
        )

    def counted(self, server: str, origin: str, span: Span) -> Positions:
        """The known changes of the span that the row of the server counts: what it is shown to have is not among them."""
        (holder,) = (one for one in self.holders if one.replica.server == server)
        aside = self._shown_above(holder, origin, span), self._notes(origin, span), self._kept(holder, origin)
        return union(some.minus(union(aside)) for some in self.known.chunks(origin, span))

    def _shown_above(self, server: Holder, origin: str, span: Span) -> Positions:
        """What the server is shown to have above what it has seen, and what came with its data."""
        came = self._came_with_data(server, origin)
        both = Span(max(span.low, came.low), min(span.high, came.high))
        copied = union(self.known.chunks(origin, both)) if not both.empty else NONE
        return union([copied, self._shown_since(server, origin, span)])

    def _came_with_data(self, server: Holder, origin: str) -> Span:
        """The changes of an origin that came with whole data from their maker, or from a server that had them so.

        The data count, not the vectors: that of a maker without an element of its own tells nothing of what it made.
        """
        replaced = server.proofs.initialised
        suppliers = server.proofs.filled_by if replaced is not None and replaced.sure else []
        sent = [one for one in self.holders if [one.replica] == suppliers]
        if len(sent) != 1 or (server.replica.server, origin) in self._made:
            return _NOTHING
        (by,) = sent
        begins = (
            began
            for name, began, _ in initialisations(server.proofs.evidence, server.replica)
            if name == by.replica.server
        )
        began = max((at for at in begins if at <= server.proofs.filled_until[by.replica.server]), default=None)
        if began is None:
            return _NOTHING
        before = [one for one in by.proofs.resets if one.kind in (TOTAL, REPLACED)]
        if any(one.ended > began for one in before):
            return _NOTHING
        if not self._is_own(by, origin):
            return self._came_with_data(by, origin)
        since = max((self._end_of(one.ended) for one in before), default=LOWEST)
        return Span(since, (self.system.instant(began), -1))

    def _shown_since(self, server: Holder, origin: str, span: Span) -> Positions:
        # An export is of a later moment than the vector that comes with it: its entries show more.
        closed = vector_stands_still(server.proofs)
        if not (
            self._is_own(server, origin) or closed or (server.proofs.exported and self.known.tally(origin, span)[0])
        ):
            return NONE
        return server.proofs.shown_above(origin, server.seen.get(origin, ""), closed)

    def _kept(self, server: Holder, origin: str) -> Positions:
        """What the server has of an origin that was cleaned away from its vector."""
        kept, stretches = kept_of(server.proofs, self.known, origin, server.has)
        if stretches:
            self.found.kept[server.replica.server, server.replica.suffix, origin] = stretches
        return kept

    def is_claimed(self, origin: str) -> bool:
        """False for an origin that was cleaned away everywhere: nobody will send a change of it, and nobody waits for one."""
        return origin in self._claimed

    def _end_of(self, moment: datetime) -> Pair:
        """Behind all that was made until then; what its position tells is the second in which it was made."""
        return self.system.instant(moment + _SECOND), -1

    def _forgotten(self, server: Holder, origin: str) -> Pair | None:
        """Up to where a server waits for nothing of an origin that it cleaned; None: it waits for all that it does not have."""
        if cleaned := forgot(server.proofs, origin):
            return self._end_of(cleaned)
        taken = taken_before(server.proofs, origin)
        return self._pair(taken) if taken else None

    def cleaned_before(self, server: Holder, origin: str) -> tuple[str, str, int] | None:
        """First, last and number of the changes of an origin that the server cleaned away, and is not shown to have had."""
        if not self.is_claimed(origin) or not (end := self._forgotten(server, origin)):
            return None
        span = Span(LOWEST, end)
        claimed = sorted(key for key in self._only_claimed(origin, "") if self._pair(key) <= span.high)
        known = union([*self.known.chunks(origin, span), of_keys(self.system, claimed, self._numbers)])
        lacking = known[~had_before(server.proofs, known)].minus(self._kept(server, origin)) if len(known) else known
        ends = [*lacking[:1].keys(self.system, self.known.names), *lacking[-1:].keys(self.system, self.known.names)]
        return (ends[0], ends[-1], len(lacking)) if ends else None

    def _notes(self, origin: str, span: Span) -> Positions:
        """Of what waits, the changes that no server takes from another one: they arrive nowhere, and nothing is lost."""
        if not self.shown.proving.notes_refused or not self._refuse_notes or self.known.tally(origin, span)[0] > _READ:
            return NONE
        logs = [one.replica.log for one in self.holders if one.replica.log is not None]
        evidence, found = self.holders[0].proofs.evidence, set[str]()
        for some in self.known.chunks(origin, span):
            for log in logs:
                parts = evidence.case.parts("changes", log)
                for there, rows in rows_at(parts, some, self._numbers, ["operation", "body"]):
                    keys = there.keys(self.system, self.known.names)
                    found |= {key for key, row in zip(keys, rows.to_pylist(), strict=True) if self._is_note(row)}
        return of_keys(self.system, sorted(found), self._numbers) if found else NONE

    def _is_note(self, row: Row) -> bool:
        touched = self.shown.proving.touched(row["body"] or "") if row["operation"] == "modify" else frozenset()
        return bool(touched) and touched <= self.shown.proving.own_notes

    @cached_property
    def _refuse_notes(self) -> bool:
        """True if a server of the suffix says that it refuses them. Those behind it do not get them either."""
        code, servers = self.shown.proving.notes_refused, {one.replica.server for one in self.holders}
        inputs = self.holders[0].proofs.evidence.case.inputs
        return any(one.facts.get("codes", {}).get(code) for one in inputs if one.server in servers)

    def waits(self, server: str, origin: str, some: Positions) -> Numbers:
        """For each of some changes of the origin: has the server not seen it, so that somebody else would have to send it?

        Its log may show what its vector does not claim: the vector was not collected, or the origin was cleaned out of it.
        """
        (holder,) = (one for one in self.holders if one.replica.server == server)
        (hi, lo), (below, _) = self._pair(holder.seen.get(origin, "")), self._waits_below(holder, origin)
        found = ((some.hi > hi) | ((some.hi == hi) & (some.lo > lo))) & (some.hi < below)
        if holder.source is not None:
            found &= ~self.known.sources[holder.source].contains(some)
        if found.any() and claims_nothing_of_cleaned(holder.proofs, origin):
            found[found] = ~holder.has(some[found])
        return found

    def how_it_comes(self, server: Holder, row: Row, pairs: Sequence[Row]) -> dict[str, Any]:
        """Who would send what the server waits for by this row, what of it it refused, and since when it drops the origin."""
        origin = row["origin"]
        suppliers = who_would_send(pairs, row["server"], origin, row["first"], self.moved(origin))
        logs = [one.replica.log for one in self.holders if one.replica.log is not None]
        refused = refused_of(server.proofs, row, logs)
        return {
            "suppliers": suppliers,
            "refused": refused,
            **told_of_dropping(dropping(server.proofs, row["last"], origin)),
        }

    def moved(self, origin: str) -> dict[str, str]:
        """Server -> up to where it had the origin by the end of its reading, of those that had more by then."""
        tops = {one.replica.server: one.replica.later.get(origin, "") for one in self.holders}
        for one in self.holders:
            if origin in self._since_read[one.replica.server]:
                tops[one.replica.server] = max(tops[one.replica.server], one.seen[origin])
        return {server: self.system.show(position) for server, position in tops.items() if position}

    @cached_property
    def _since_read(self) -> dict[str, set[str]]:
        """Server -> origins of which it claims changes beyond its log that were all made when that may have been read."""
        return {
            one.replica.server: {
                origin
                for origin, top in (one.seen.items() if one.replica.log else ())
                if top > one.last.get(origin, "") and origin in self._numbers
                if self._is_new(one, self._first_above(one, origin))
            }
            for one in self.holders
        }

    def _first_above(self, holder: Holder, origin: str) -> str:
        """The first change that the server claims of an origin and its log does not show."""
        end, top = holder.last.get(origin, ""), holder.seen[origin]
        _, first, _ = self.known.tally(origin, Span(self._pair(end), self._pair(top)))
        claimed = {key for key in self._only_claimed(origin, end) if key <= top}
        return min([*claimed, *([self.system.order_key(origin, *first)] if first else [])], default=top)

    def _is_new(self, holder: Holder, position: str) -> bool:
        """True for a change made in the last minute that files of the server tell of: its log may have been read before that."""
        newest = self._newest.get(holder.replica.server)
        return newest is not None and self._pair(position) >= (self.system.instant(newest - MOMENTS_APART), 0)

    def note_logs_read_before(self, pairs: Sequence[MutableMapping[str, Any]]) -> None:
        """Say of the pairs that seem to lack their anchor where it, or all behind it, was made since the supplier's log was read.

        s1: log 1 to 10, read first; vector 12; s2 has 11    the log cannot have 11, and s1 sends 12 from there
        """
        holders = {one.replica.server: one for one in self.holders}
        for row in pairs:
            supplier = holders.get(row["supplier"])
            lost = row["decision"] == ANCHOR_NOT_FOUND
            if lost and supplier is not None and self._read_before(supplier, row["anchor"]):
                says = "its log was read before its vector: what it claims beyond it was made since"
                reasons = [*row["reasons"], {"rule": LOG_READ_BEFORE, "says": says, "values": {}}]
                row.update(decision=NOTHING, anchor_class=None, anchor_class_assumed=False, reasons=reasons)

    def _read_before(self, supplier: Holder, anchor: str) -> bool:
        if supplier.replica.log is None or self._says_not_found(supplier.replica.server):
            return False
        key = self.system.typed(anchor) or ""
        end = supplier.last.get(self.system.origin_of(key), "")
        beyond = {origin for origin, top in supplier.seen.items() if top > supplier.last.get(origin, "")}
        there = key == end or (key > end and self._is_new(supplier, key))
        return there and bool(beyond) and beyond <= self._since_read[supplier.replica.server]

    def _says_not_found(self, server: str) -> bool:
        """True if the server itself logged that it did not find an anchor."""
        inputs = (one for one in self.holders[0].proofs.evidence.inputs if one.server == server)
        return any(one.facts.get("codes", {}).keys() & self.shown.supplying.not_found for one in inputs)

    def _is_own(self, server: Holder, origin: str) -> bool:
        return origin == server.replica.origin or (server.replica.server, origin) in self._former

    def _waits_below(self, server: Holder, origin: str) -> Pair:
        """Up to where it can wait for changes: what it made since with its present data it has, though it was read before."""
        if not self._is_own(server, origin):
            return HIGHEST
        since = server.proofs.unbroken_since or self._alive(server)
        return (self.system.instant(since), -1) if since else HIGHEST

    def _alive(self, server: Holder) -> datetime | None:
        """The latest time that the server's files tell by its own clock, or that what it has seen is of."""
        told = self._newest.get(server.replica.server)
        tops = filter(None, map(self.system.moment, filter(None, server.seen.values())))
        return max([told, *tops]) if told else None

    def _shown_up_to(self, origin: str) -> Pair:
        """Up to where the log of the server that makes the changes of the origin was written when it was read.

        What it made later stands in no log, and is not lost for that. What is a minute older than its newest file should stand
        there. Where the log of a server that claims more could not be read whole, what no log shows may stand in that part.
        """
        if all(one.replica.log is None for one in self.holders):
            return LOWEST  # what logs have that were not collected, nobody knows
        return min([self._written_up_to(origin), *self._unread_behind(origin)])

    def _unread_behind(self, origin: str) -> Iterator[Pair]:
        """Behind which places the logs that could not be read whole may have changes of the origin."""
        for one in self.holders:
            if one.replica.log is not None and not one.replica.log.whole:
                holes = one.proofs.evidence.holes(one.replica.log)
                yield from (low for low, _ in holes if low < self._pair(one.seen.get(origin, "")))

    def _written_up_to(self, origin: str) -> Pair:
        makers = [one for one in self.holders if one.replica.origin == origin]
        if len(makers) != 1:
            return HIGHEST
        (maker,) = makers
        if (log := maker.replica.log) is None:
            return HIGHEST
        if since := maker.proofs.unbroken_since:
            # Its own log is never trimmed that far: what it made since its last start is there.
            return max(self._pair(maker.last.get(origin, "")), (self.system.instant(since), -1))
        logged = log.facts.get("by_origin", {})
        end = max((str(one["max"]) for one in logged.values() if one["max"]), default="")
        newest = self._newest.get(maker.replica.server)
        old = (self.system.instant(newest - MOMENTS_APART), 0) if newest else LOWEST
        return max(self._pair(end), old)

    def _only_claimed(self, origin: str, above: str) -> set[str]:
        """The last changes of the origin that vectors claim and nothing else names: they were made all the same."""
        tops = {one.replica.vector[origin].max or "" for one in self.holders if origin in one.replica.vector}
        tops = {top for top in tops if top > above}
        if not tops:
            return set()
        some = of_keys(self.system, tops, self._numbers)
        for source in self.known.sources:
            some = some[~source.contains(some)] if len(some) else some
        return set(some.keys(self.system, self.known.names))

    def _pair(self, key: str) -> Pair:
        return self.system.halves(key) if key else LOWEST


def vector_stands_still(proofs: Proofs) -> bool:
    """True for a supplier without an open log of changes: its vector does not move, whatever it takes.

    Its messages say so behind its last start, which opens the log, and behind the last time that its data were replaced.
    """
    evidence, since = proofs.evidence, proofs.unbroken_since
    if proofs.replica.origin is None or since is None or not evidence.shown.proving.log_closed:
        return False
    closed = evidence.once(proofs.replica.server, _last_closed)
    return closed is not None and closed > since


def _last_closed(evidence: Evidence, server: str) -> datetime | None:
    return max(evidence.moments(server, {evidence.shown.proving.log_closed}), default=None)
