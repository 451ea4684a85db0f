"""Which changes each server has missed, which are still to come, and what nobody can know: the verdicts of a diagnosis.

Of each server and origin the log shows a span: from its first change, or from behind the mark of a log made anew, to its last.
Inside, digests find what others hold and it does not. Outside, each change is looked up, or one row says that all is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from workbench.case.case import Case
from workbench.diagnosis.cleaned_origins import CLEANED_HERE, forgot, not_covered
from workbench.diagnosis.comparable_servers import Comparable, comparable
from workbench.diagnosis.contents import Contents
from workbench.diagnosis.data_sources import JudgedServer, came_without, not_then, untrimmed
from workbench.diagnosis.evidence_grounds import Proofs, evidence_kinds
from workbench.diagnosis.kept_after_cleaning import as_elsewhere
from workbench.diagnosis.lacking_nothing import note_lacking_nothing, with_lacking_nothing
from workbench.diagnosis.left_in_logs import note_left_in_logs
from workbench.diagnosis.lost_with_maker import note_lost
from workbench.diagnosis.not_added import logged_and_nowhere, not_added
from workbench.diagnosis.pending_changes import Holder, Waiting, would_send
from workbench.diagnosis.relayed_changes import mark_arrival
from workbench.diagnosis.resets import resets_of
from workbench.diagnosis.uncertain_losses import note_unsure, softened
from workbench.diagnosis.unlogged_changes import deletions
from workbench.diagnosis.verdict_rows import LIMIT, Verdicts
from workbench.diagnosis.without_effect import note_without_effect, with_those_without_effect
from workbench.engine.logs import StoredLog
from workbench.engine.position_index import (
    HIGHEST,
    LOWEST,
    Pair,
    PositionIndex,
    Source,
    Span,
    UnloggedPositions,
    in_holes,
    only,
)
from workbench.engine.positions import NONE, Positions, of_keys, union
from workbench.intake.inputs import Input
from workbench.rules.send_session import Bound
from workbench.rules.verdicts import (
    ENTRIES_LACK,
    LOG_REPLACED,
    MISSING,
    PRESENT,
    REPLACED,
    RULES,
    SAYS,
    TABLE,
    TOTAL,
    UNKNOWN,
    Ground,
    Rule,
    Verdict,
    shown_up_to,
)
from workbench.systems import format_with
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica, Topology

Row = dict[str, Any]

_RULE_OF, _VERDICTS = np.array(TABLE), np.array([rule.verdict for rule in RULES])


def verdicts(
    case: Case, shown: Topology, logs: Mapping[str, StoredLog], pairs: Sequence[Row], limit: int = LIMIT
) -> Verdicts:
    """The verdicts for every server of every suffix that has a vector or a log."""
    found = Verdicts()
    for alike in comparable(shown):
        judging = _Suffix(case, shown, alike, logs, pairs, limit, found)
        if alike.whole or len(alike.replicas) > 1:
            judging.judge()
    note_left_in_logs(case, shown, logs, found, limit)
    for name, at in (("missing", "position"), ("stranded", "position"), ("unknown", "from")):
        getattr(found, name).sort(key=lambda row, at=at: (row["suffix"] or "", row["server"], row[at]))
    return found


def verdicts_on(case: Case, shown: Topology, logs: Mapping[str, StoredLog], position: str) -> list[Verdict]:
    """The verdict of every server with a vector or a log, in every suffix in which anything names the change."""
    found: list[Verdict] = []
    for alike in comparable(shown):
        whole = _Suffix(case, shown, alike, logs, [], 0, Verdicts())
        if whole.names_it(position):

            def unsure(alike: Comparable = alike) -> dict[tuple[str | None, str], str]:
                judging = _Suffix(case, shown, alike, logs, [], LIMIT, Verdicts())
                judging.judge()
                return judging.found.unsure

            found += softened(whole.evidence, position, whole.verdicts_on, whole.servers, unsure)
    return found


class _Suffix:
    """All servers of one suffix, and all changes that anything names."""

    def __init__(
        self,
        case: Case,
        shown: Topology,
        alike: Comparable,
        logs: Mapping[str, StoredLog],
        pairs: Sequence[Row],
        limit: int,
        found: Verdicts,
    ) -> None:
        suffix = alike.suffix
        self.case, self.shown, self.suffix, self.found = case, shown, suffix, found
        servers = None if alike.whole else frozenset(one.server for one in alike.replicas)
        # Of each suffix so many: what one of them lacks must not keep what the next one lacks from being found.
        self.limits = {name: limit + len(getattr(found, name)) for name in ("missing", "unknown", "stranded")}
        self.system, self.proving = shown.system, shown.proving
        self.pairs = [row for row in pairs if row["suffix"] == suffix]
        replicas = [one for one in alike.replicas if one.claims or one.log]
        until = [*case.snapshots][: [*case.snapshots].index(shown.snapshot) + 1]
        inputs = [one for one in case.inputs if one.kind and (servers is None or one.server in servers)]
        books = [one for one in inputs if one.snapshot in until and one.suffix == suffix]
        books = [one for one in books if format_with(one.kind).is_log]
        present = {one.log.file: one.server for one in replicas if one.log}
        self.inputs = [one for one in books if (one.snapshot, one.file) in {(shown.snapshot, file) for file in present}]
        self.earlier = [one for one in books if one not in self.inputs]
        self.books = [*self.inputs, *self.earlier]
        stored = [logs.get(one.file) or case.log(one) for one in self.inputs] + [case.log(one) for one in self.earlier]
        named = [part for one in inputs for part in one.parts if part["table"] == "named"]
        origins = {origin for log in stored for origin in log.origins()}
        origins.update(*(one.vector for one in replicas), *(part["origins"] for part in named))
        self.names = sorted(origins)
        self.judged = [origin for origin in self.names if origin not in alike.doubtful]
        self.evidence = Evidence(case, shown, suffix, self.names, servers)
        numbers = self.evidence.numbers
        sources = [Source(log, numbers) for log in stored]
        parts = self.evidence.parts("named")
        loose = UnloggedPositions.in_no_log(parts, numbers, sources, self.names, self.system.bucket_shift)
        self.known = PositionIndex(self.system, [*sources, loose], self.names)
        self.found.known.setdefault(suffix, []).append(self.known)
        self.servers = [self._server(one) for one in replicas]
        self.contents = Contents(self.evidence, alike, self.found.resets)
        self.found.contents.append(self.contents)

    # --- what is known before

    def _server(self, replica: Replica) -> JudgedServer:
        log = replica.log
        shown = log.facts.get("by_origin", {}) if log else {}
        first, last = ({origin: one[end] for origin, one in shown.items()} for end in ("min", "max"))
        seen = {origin: span.max for origin, span in replica.seen().items() if span.max}
        number = next((n for n, one in enumerate(self.inputs) if one is log), None)
        marks: dict[str, str] = {}
        if number is not None:
            source = self.known.sources[number]
            for mark in source.log.marks if isinstance(source, Source) else ():
                origin = self.system.origin_of(mark)
                marks[origin] = max(mark, marks.get(origin, ""))
        own, end = replica.origin or "", max(last.values(), default="")
        claimed = replica.log_claims.get(own)
        if end and claimed and claimed.max and (own in last or own in marks):
            last[own] = shown_up_to(last.get(own, marks.get(own, "")), claimed.max, end, self.system.moment)
        about = replica.server, replica.suffix
        self.found.resets[about] = resets = resets_of(self.evidence, replica, self.proving, marks)
        self.found.marks[about] = marks
        self.found.reach[about] = reach = untrimmed(self.evidence, replica, self.proving, marks)
        return JudgedServer(replica, number, seen, marks, first, last, resets, reach)

    def _spans(self, server: JudgedServer, origin: str, own_kept: bool = False) -> tuple[Span, Span, Span]:
        """Of what the server has seen: before what its log shows, what it shows, and behind that.

        `own_kept`: what its log shows of its own changes since it was filled, also of older ones that came back since.
        """
        seen = self.pair(server.seen.get(origin))
        if seen is None:
            return Span(LOWEST, LOWEST), Span(LOWEST, LOWEST), Span(LOWEST, LOWEST)
        mark, first, last = (self.pair(kind.get(origin)) for kind in (server.reach, server.first, server.last))
        low = mark if mark is not None else (first[0], first[1] - 1) if first is not None else None
        if server.source is None or low is None:
            return Span(LOWEST, seen), Span(seen, seen), Span(seen, seen)
        for reset in server.resets:
            if reset.kind == LOG_REPLACED:
                low = max(low, (self.system.instant(reset.ended), -1))
            elif reset.kind == TOTAL and (mark is not None if origin != server.replica.origin else not own_kept):
                # Own changes went with the old data, or came back as data behind a vector that is older: none was skipped. The
                # vector is sent first: what others made while data came may have come with them, and is logged by nobody.
                low = max(low, (self.system.instant(reset.ended), -1))
        # A mark is as old as the log, and whoever trims need not take it away.
        trimmed = self.pair((server.replica.purged or {}).get(origin)) if mark is not None else None
        low = min(max(low, trimmed or low), seen)
        end = max(low, min(last, seen)) if last is not None else low
        if mark is not None and last is None:
            end = low
        return Span(LOWEST, low), Span(low, end), Span(end, seen)

    def pair(self, position: str | None) -> Pair | None:
        return None if position is None else self.system.halves(position)

    # --- judging

    @property
    def by_filling(self) -> list[JudgedServer]:
        """All servers, each behind the one that its data came from."""
        return sorted(self.servers, key=lambda one: self.proofs(one).filled_at)

    def names_it(self, position: str) -> bool:
        """True if any log, result, entry state or vector of the suffix names the change."""
        origin = self.system.origin_of(position)
        some = of_keys(self.system, [position], self.evidence.numbers) if origin in self.evidence.numbers else NONE
        claimed = any(one.seen.get(origin) == position for one in self.servers)
        return claimed or any(bool(source.contains(some).any()) for source in self.known.sources)

    def judge(self) -> None:
        """Everything about the suffix."""
        for server in self.by_filling:
            self._judge(server)
            self._by_content(server)
        holders = {
            one.replica.server: Holder(
                one.replica, one.source, one.seen, one.last, self.proofs(one), partial(self._keeps, one)
            )
            for one in self.servers
        }
        waiting = Waiting(self.evidence, self.known, [*holders.values()], self.found)
        waiting.note_logs_read_before(self.pairs)
        for server in self.servers:
            own = server.replica.origin or ""
            if len(lost := server.missing.get(own, NONE)) and server.source is not None:
                self._near_own(server, own, lost)
            self._pending(waiting, holders[server.replica.server])
        mark_arrival(self.found.pending, self.pairs, self.servers, self.suffix, self._shows, self.evidence)
        note_lost(self.found, self.servers, self.evidence, self.known, self._has, self._described)
        note_without_effect(self.found, self.evidence, self.servers, self.books, self._has)
        note_lacking_nothing(self.found, self.evidence, self.servers, self.books)
        note_unsure(self.found, self.contents, self.servers, self.known, waiting)
        self._stranded(waiting)

    def proofs(self, server: JudgedServer) -> Proofs:
        earlier = [
            source
            for one, source in zip(self.earlier, self.known.sources[len(self.inputs) :], strict=False)
            if one.server == server.replica.server and isinstance(source, Source)
        ]
        return Proofs(self.evidence, server.replica, self.proving, earlier, server.resets)

    def _shows(self, server: JudgedServer, position: str) -> bool:
        return self.verdict_on(server, position).verdict == PRESENT

    def verdicts_on(self, position: str) -> dict[str, Verdict]:
        """The verdict on each server."""

        def judge(position: str) -> dict[str, Verdict]:
            return {server.replica.server: self.verdict_on(server, position) for server in self.by_filling}

        told = with_those_without_effect(position, judge, self.evidence, self.servers, self.books, self.contents)
        return with_lacking_nothing(self.evidence, position, told, self.servers, self.books)

    def verdict_on(self, server: JudgedServer, position: str) -> Verdict:
        """Whether this server has the change, and by which rule; the servers that its data came from are asked before."""
        origin, name = self.system.origin_of(position), server.replica.server
        if origin not in self.judged:
            return Verdict(name, self.suffix, UNKNOWN, "duplicate_origin", SAYS["duplicate_origin"])
        some = of_keys(self.system, [position], self.evidence.numbers)
        if position in self.contents.lacks.get(name, ()):
            rule = self._lacked(server, some)
        elif server.source is not None and self.known.sources[server.source].contains(some)[0]:
            rule = RULES[_IN_LOG]
        elif position > max(server.seen.get(origin, ""), self.proofs(server).exported.get(origin, "")):
            return Verdict(name, self.suffix, *not_covered(self.proofs(server), position, partial(self._keeps, server)))
        else:
            _, inside, _ = self._spans(server, origin)
            shown = bool(len(inside.of(some))) and not in_holes(some, self.evidence.holes(server.replica.log))[0]
            rules, _ = self._rules(server, self.proofs(server), some, np.array([not shown]))
            rule = RULES[int(rules[0])]
        if rule.verdict == MISSING and rule.name != ENTRIES_LACK:
            server.missing[origin] = some
        return Verdict(name, self.suffix, rule.verdict, rule.name, rule.says)

    def _judge(self, server: JudgedServer) -> None:
        proofs = self.proofs(server)
        within: list[Positions] = []
        for origin in self.judged:
            before, inside, behind = self._spans(server, origin)
            lacking: list[Positions] = []
            if proofs.any:
                for span in (before, behind):
                    for some in self._absent(server, origin, span):
                        lacking.append(self._decide(server, proofs, some, np.ones(len(some), bool), False))
            else:
                named = [self._all_unknown(server, origin, span) for span in (before, behind)]
                claimed = server.replica.vector.get(origin)
                if not any(named) and server.source is None and claimed and claimed.min and claimed.max:
                    # Nothing names a single change of what the vector covers, here or elsewhere.
                    self._unknown(server.replica, origin, claimed.min, claimed.max, None, "not_shown")
            if server.source is not None:
                within.append(self.known.lacking(server.source, origin, inside))
            server.missing[origin] = union(lacking)
        # Of all origins at once: whatever is read to look closer, is read once.
        some = union(within)
        if len(some):
            missing = self._decide(server, proofs, some, in_holes(some, self.evidence.holes(server.replica.log)), True)
            for number in np.unique(missing.origin).tolist():
                origin = self.names[number]
                server.missing[origin] = union([server.missing[origin], only(missing, number)])

    def _absent(self, server: JudgedServer, origin: str, span: Span) -> Iterator[Positions]:
        """What is known of the origin within the span and the server's log does not hold, some at a time."""
        for some in self.known.chunks(origin, span):
            if server.source is not None:
                some = some[~self.known.sources[server.source].contains(some)]
            if len(some):
                yield some

    def _all_unknown(self, server: JudgedServer, origin: str, span: Span) -> bool:
        others = [number for number in range(len(self.known.sources)) if number != server.source]
        count, first, last = self.known.tally(origin, span, others)
        if 0 < count <= _FEW and len(self._idle(server, union(self.known.chunks(origin, span)))) == count:
            return True
        if count and first is not None and last is not None:
            low, high = (self.system.order_key(origin, *one) for one in (first, last))
            self._unknown(server.replica, origin, low, high, count, "not_shown")
        return bool(count)

    def _idle(self, server: JudgedServer, some: Positions) -> Positions:
        """Of a few changes, those that carry nothing anybody stored: nothing depends on them unless data were replaced."""
        shown = server.replica.server in self.contents.exports  # entries tell whether an older state came back
        if len(some) > _FEW or (not shown and any(reset.kind == REPLACED for reset in server.resets)):
            return NONE
        about = self._described(keys := some.keys(self.system, self.names))
        return some[np.array([self.proving.idle(about.get(key, {}).get("target") or "") for key in keys], bool)]

    def _decide(
        self, server: JudgedServer, proofs: Proofs, some: Positions, not_shown: Numbers, apart: bool
    ) -> Positions:
        """Judge sorted positions that the server's log lacks; returns those that are missing.

        `apart`: between two of them the server may have changes, so a stretch of unknown ones is told one by one.
        """
        rules, about = self._rules(server, proofs, some, not_shown)
        missing = np.flatnonzero(_VERDICTS[rules] == MISSING)
        self._missing(server, some[missing], rules[missing], about)
        self._unknowns(server, some, rules, apart)
        return some[missing[rules[missing] != _LACKED]]

    def _rules(
        self, server: JudgedServer, proofs: Proofs, some: Positions, not_shown: Numbers, content: bool = True
    ) -> tuple[Numbers, dict[str, dict[str, Any]]]:
        """Which of RULES decides on each of some positions that the log lacks; and what was read of them on the way."""
        without, doubted = came_without(proofs, self.servers, self.proofs, some, self._has)
        lacks, unadded = doubted.copy(), doubted.copy()
        if doubted.any():
            lacks[doubted], unadded[doubted] = self._source_lacked(server, proofs, some[doubted], without[doubted])
        grounds = proofs.grounds(some, not_shown, server.marks, doubted, lacks)
        grounds[unadded] |= int(Ground.STATE_LACKS)
        rules = _RULE_OF[grounds]
        open_ = np.flatnonzero((_VERDICTS[rules] == MISSING) | (rules == _NOT_SHOWN))
        open_ = open_[(grounds[open_] & int(Ground.DROPPED | Ground.SKIPPED)) == 0]
        about: dict[str, dict[str, Any]] = {}
        if len(open_):
            about = self._look_closer(server, proofs, some, grounds, open_, without)
            rules = _RULE_OF[grounds]
        if content and self.contents.exports:
            name, asked = server.replica.server, np.flatnonzero(_VERDICTS[rules] != PRESENT)
            self.contents.add_grounds(name, some, grounds, asked, *self._held_by_others(server, some[asked]))
            lacked = self.contents.lacked(name, some, _VERDICTS[_RULE_OF[grounds]] != MISSING)
            lacked |= logged_and_nowhere(self.contents, proofs, some, rules == _APPLIED, self._described)
            grounds[lacked] |= int(Ground.ENTRIES_LACK)
            rules = _RULE_OF[grounds]
        server.unclear = union([server.unclear, some[rules == _UNCLEAR]])
        return rules, about

    def _keeps(self, server: JudgedServer, some: Positions) -> Numbers:
        """For each change of an origin that the vector of the server forgot: do its logs, or all of its entries, show it?"""
        return self._has(server, some, content=False) | as_elsewhere(self.contents, server.replica.server, some)

    def _has(self, server: JudgedServer, some: Positions, content: bool = True) -> Numbers:
        """For each change: is it shown that the server has it?"""
        there = np.zeros(len(some), bool)
        if server.source is not None:
            there |= self.known.sources[server.source].contains(some)
        if (left := np.flatnonzero(~there)).size:
            rules, _ = self._rules(server, self.proofs(server), some[left], np.ones(len(left), bool), content)
            there[left] = _VERDICTS[rules] == PRESENT
        return there

    def _source_lacked(
        self, server: JudgedServer, proofs: Proofs, some: Positions, without: Numbers
    ) -> tuple[Numbers, Numbers]:
        """For each change that others lack: did it not come with its data, nor since? If not: is its entry not there?

        `without`: what the server lacked that the data came from. No session sends what the vector covers that came along, and
        what came back since of its own, its log holds: that counts where its entries tell, or that server has not seen them yet.
        """
        own, name = server.replica.origin or "", server.replica.server
        proved = (name in self.contents.exports) | not_then(proofs, self.servers, self.proofs, some)
        mine, shown = some[(some.origin == self.evidence.numbers.get(own, -1)) & proved], NONE
        if server.source is not None and own in server.marks:
            shown = self._spans(server, own, own_kept=True)[1].of(mine)
        found: Numbers = some.within(shown) & ~in_holes(some, self.evidence.holes(server.replica.log))
        found |= proofs.below_marks(some, server.marks)
        unadded = np.zeros(len(some), bool)
        if name in self.contents.exports:
            unadded = not_added(self.contents, proofs, some, self._described)
            found |= unadded & (some.hi < self.system.instant(proofs.filled_at))
        found &= without
        return found, unadded & ~found

    def _by_content(self, server: JudgedServer) -> None:
        """The changes that its log holds, and its entries lack."""
        known = [key for key in self.contents.left(server.replica.server) if self.system.origin_of(key) in self.judged]
        some = of_keys(self.system, known, self.evidence.numbers).minus(union(server.missing.values()))
        if len(some):
            self.contents.tell(server.replica.server, some)
            self._missing(server, some, np.full(len(some), _LACKED), {})

    def _lacked(self, server: JudgedServer, one: Positions) -> Rule:
        logged = server.source is not None and self.known.sources[server.source].contains(one)[0]
        return RULES[_LACKED]._replace(says=SAYS["logged_and_lost" if logged else "entries_lack"])

    def _look_closer(
        self, server: JudgedServer, proofs: Proofs, some: Positions, grounds: Numbers, which: Numbers, without: Numbers
    ) -> dict[str, dict[str, Any]]:
        """The grounds that take more reading, for those changes on which they can still decide something."""
        asked = some[which]
        grounds[which[proofs.lacking_operations(asked, without[which])]] |= int(Ground.LOG_LACKS)
        lacking = proofs.lacking_states(asked, self.contents.left_out[server.replica.server])
        grounds[which[lacking & ~self.contents.undecided(asked)]] |= int(Ground.STATE_LACKS)
        which = which[_VERDICTS[_RULE_OF[grounds[which]]] == MISSING]
        if not len(which):
            return {}
        asked = some[which]
        twins, about = proofs.twins(asked, self.books)
        keys = asked.keys(self.system, self.names)
        named = ((key, about[key]["operation"], about[key]["target"]) for key in keys if key in about)
        told = {key: (what, target) for key, what, target in named if what and target}
        nothing = self.contents.no_effect(server.replica.server, about)
        nothing |= self.contents.notes_by_marks(server.replica.server, [key for key in keys if key not in about])
        dropped = proofs.dropped(told, self._acknowledged(some, grounds)) if told else set()
        for number, key in zip(which.tolist(), keys, strict=True):
            if key in dropped:
                grounds[number] |= int(Ground.DROPPED)
            if key in twins:
                grounds[number] |= int(Ground.TWIN)
            if key in nothing:
                grounds[number] |= int(Ground.NO_EFFECT)
        return about

    def _acknowledged(self, some: Positions, grounds: Numbers) -> Counter[tuple[str, str]]:
        """How many of these changes lines name as acknowledged and not applied, by operation and target."""
        about = self._described(some[(grounds & int(Ground.DROPPED)) != 0].keys(self.system, self.names))
        return Counter((row["operation"] or "", (row["target"] or "").lower()) for row in about.values())

    def _missing(self, server: JudgedServer, some: Positions, rules: Numbers, about: Mapping[str, Row]) -> None:
        self.found.totals["missing"] += len(some)
        some = some[: max(0, self.limits["missing"] - len(self.found.missing))]
        if not len(some):
            return
        _, held = self._held_by_others(server, some)
        keys = some.keys(self.system, self.names)
        about = {**about, **self._described([key for key in keys if key not in about])}
        for number, key in enumerate(keys):
            rule, told = RULES[rules[number]], about.get(key, {})
            if rules[number] == _LACKED:
                rule = self._lacked(server, some[number : number + 1])
            self.found.missing.append(
                {
                    "server": server.replica.server,
                    "suffix": self.suffix,
                    "origin": self.names[int(some.origin[number])],
                    "position": self.system.show(key),
                    "operation": told.get("operation"),
                    "target": told.get("target"),
                    "attribute": None,
                    "held_by": sorted(name for name, holds in held.items() if holds[number]),
                    "shown_by": self.contents.shown_by(server.replica.server, key),
                    "evidence": evidence_kinds(rule.name, server.replica),
                    "cause": None,
                    "rule": rule.name,
                    "says": rule.says,
                }
            )

    def _held_by_others(self, server: JudgedServer, some: Positions) -> tuple[dict[str, Input], dict[str, Numbers]]:
        """The present logs of the other servers, and for each change: does that log hold it?"""
        others = [one for one in self.servers if one is not server]
        places = {one.replica.server: one.source for one in others if one.source is not None}
        found = self.known.holding(places.values(), some)
        logs = {name: self.inputs[source] for name, source in places.items()}
        return logs, {name: found[source] for name, source in places.items()}

    def _described(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Operation and target of changes, from any log, else from any result, else of deletions that entries show."""
        some = of_keys(self.system, keys, self.evidence.numbers) if keys else NONE
        return {**deletions(self.contents, keys), **self.evidence.described(some, self.books)} if keys else {}

    def _unknowns(self, server: JudgedServer, some: Positions, rules: Numbers, apart: bool) -> None:
        unknown = _VERDICTS[rules] == UNKNOWN
        idle = self._idle(server, some[unknown]) if unknown.any() else NONE
        edges = (rules[1:] != rules[:-1]) | (some.origin[1:] != some.origin[:-1]) | apart
        begins = np.flatnonzero(np.concatenate([[True], edges]))
        ends = np.concatenate([begins[1:], [len(some)]])
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if unknown[begin] and not some[np.arange(begin, end)].within(idle).all():
                first, last = some[np.array([begin, end - 1])].keys(self.system, self.names)
                origin = self.names[int(some.origin[begin])]
                self._unknown(server.replica, origin, first, last, end - begin, RULES[rules[begin]].name)

    def _unknown(self, replica: Replica, origin: str, first: str, last: str, count: int | None, why: str) -> None:
        claimed = replica.vector.get(origin)
        if first == last == (claimed and claimed.max) and origin in replica.later:
            return  # its vector moved there as it was read, and on meanwhile: the line of its log came moments later
        self.found.totals["unknown"] += 1
        if len(self.found.unknown) < self.limits["unknown"]:
            row = {"server": replica.server, "suffix": self.suffix, "origin": origin, "count": count, "why": why}
            self.found.unknown.append(row | {"from": self.system.show(first), "to": self.system.show(last)})

    def _near_own(self, server: JudgedServer, origin: str, some: Positions) -> None:
        """What the server has of its own changes around those that it lost, as far as anybody will look at it."""
        source = self.known.sources[server.source or 0]
        assert isinstance(source, Source)
        (first,) = some[:1].keys(self.system, self.names)
        held = list(islice(source.log.changes(origin, Bound(first, False)), _NEAR))
        left = of_keys(self.system, held, self.evidence.numbers)
        for one in self.servers:
            if one is not server and one.source is not None:
                left = left[~self.known.sources[one.source].contains(left)]
        low = source.log.first_of(origin)
        below = source.log.tally(origin, Bound(low, True), first).last if low else None
        only = frozenset(left.keys(self.system, self.names))
        self.found.own_near[server.replica.server, self.suffix, origin] = tuple(held), only, below

    # --- still to come

    def _pending(self, waiting: Waiting, server: Holder) -> None:
        for origin in self.judged:
            if some := waiting.cleaned_before(server, origin):
                self._unknown(server.replica, origin, *some, CLEANED_HERE)
            if told := waiting.of(server, origin):
                row = {"server": server.replica.server, "suffix": self.suffix, "origin": origin, **told}
                self.found.pending.append(row | waiting.how_it_comes(server, row, self.pairs))

    # --- held by one, delivered by nobody

    def _stranded(self, waiting: Waiting) -> None:
        for holder in self.servers:
            for origin in self.judged if holder.source is not None else ():
                others = [one for one in self.servers if one is not holder and not forgot(self.proofs(one), origin)]
                if others and waiting.is_claimed(origin):
                    self._stranded_of(holder, others, origin, waiting)

    def _stranded_of(self, holder: JudgedServer, others: Sequence[JudgedServer], origin: str, waiting: Waiting) -> None:
        log = self.known.sources[holder.source or 0]
        # What another one had got when it was read once more at the end, counts.
        tops = [(max(one.seen.get(origin, ""), one.replica.later.get(origin, "")), one) for one in others]
        furthest, nearest = max(tops, key=lambda one: one[0])
        top = self.pair(furthest or None) or LOWEST
        delivered = any(would_send(self.pairs, holder, one, origin) for one in others)
        above = Span(HIGHEST if delivered else top, HIGHEST)
        ahead = (some[log.contains(some)] for some in self.known.chunks(origin, above))
        some = union([nearest.missing.get(origin, NONE), *ahead])
        for one in others:
            if not len(some):
                return
            waits = waiting.waits(one.replica.server, origin, some)
            if waits.any() and would_send(self.pairs, holder, one, origin):
                some, waits = some[~waits], waits[~waits]
            some = some[waits | some.within(one.missing.get(origin, NONE))] if len(some) else some
        for one in self.servers:
            # Who forgot the origin waits for nothing of it, and may have taken these before: then its data have them.
            if len(some) and one is not holder and one not in others:
                some = some[~self._keeps(one, some)]
        some = some[log.contains(some)]
        self.found.totals["stranded"] += len(some)
        some = some[: max(0, self.limits["stranded"] - len(self.found.stranded))]
        keys = some.keys(self.system, self.names)
        about = self._described(keys)
        for key in keys:
            self.found.stranded.append(
                {
                    "server": holder.replica.server,
                    "suffix": self.suffix,
                    "origin": origin,
                    "position": self.system.show(key),
                    **{what: about.get(key, {}).get(what) for what in ("operation", "target")},
                }
            )


_NEAR, _FEW = 10_000, 50
_ASKED = ("not_shown", "in_log", "entries_lack", "unclear", "applied")
_NOT_SHOWN, _IN_LOG, _LACKED, _UNCLEAR, _APPLIED = map([rule.name for rule in RULES].index, _ASKED)
