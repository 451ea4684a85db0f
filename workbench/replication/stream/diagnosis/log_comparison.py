"""The diagnosis of a system that replicates a stream of transactions: what each log lacks of that of its source.

Every server keeps its own log of what it has done, in the order of commits. Of each origin one log is the source, and all others
are held against it; where nothing tells which, only what two logs have counts as committed there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.selective_read import rows_where
from workbench.engine.stream_diff import Compared, compared
from workbench.engine.streams import StreamLog
from workbench.engine.streams_unnumbered import ContentsOfTwo, contents_compared, whole_beside
from workbench.intake.inputs import Input
from workbench.replication.stream.diagnosis.alone_before import AloneBefore, alone_before
from workbench.replication.stream.diagnosis.appliers import (
    Applied,
    Behind,
    applied_of,
    behind_of,
    past_their_logs,
    told_beyond,
)
from workbench.replication.stream.diagnosis.broken_commits import BrokenCommit, broken_commits, without_number
from workbench.replication.stream.diagnosis.by_earlier_log import ByEarlierLog, by_earlier_logs
from workbench.replication.stream.diagnosis.commits_elsewhere import Elsewhere, Found, commits_elsewhere, rows_of
from workbench.replication.stream.diagnosis.contents import with_contents
from workbench.replication.stream.diagnosis.earlier_logs import EarlierLog, earlier_logs
from workbench.replication.stream.diagnosis.emptied_logs import EmptiedLog, emptied_logs
from workbench.replication.stream.diagnosis.gone_from_log import (
    Changed,
    Gone,
    History,
    history_of,
    still_in,
    without_starts,
)
from workbench.replication.stream.diagnosis.parts import SegmentedLog, behind_as_unknown, by_messages
from workbench.replication.stream.diagnosis.passed_since import PassedSince, passed_since
from workbench.replication.stream.diagnosis.queues import Key
from workbench.replication.stream.diagnosis.sources import StreamSource, named_by_person, source_of
from workbench.replication.stream.rules.segments import ABORTED, ASK, COMMITTED, ROLLED_BACK, SAYS
from workbench.replication.stream.rules.streams import (
    ANYWHERE,
    BEGINS_LATER,
    COPY_AHEAD,
    GONE_FROM_SOURCE,
    NOTHING_SHARED,
)
from workbench.rules.assumptions import LOG_READ_FIRST, MASTER_BY_ONLY_LOG
from workbench.topology.topology import Topology, topology

Row = Mapping[str, Any]

LOG, APPLIED = "log", "applied"
"""The kinds of evidence that this rests on: what a server's log holds, and what a replica says that it applied."""

CAME_IN_PART = {"incomplete": "TXN_INCOMPLETE", "unfinished": "TXN_UNFINISHED", "aborted": "TXN_ABORTED"}
"""What a server has of a transaction that it lacks -> the code that tells how it was missed."""

VOID = (ROLLED_BACK, ABORTED)

LISTED = 10_000
"""So many transactions of a kind are told one by one."""

NO_SOURCE, OWN_ID, AHEAD, LOST_THERE = "no_source_named", "id_of_its_own", "ahead_of_source", "source_lost_records"
ERRANT_SAYS = {
    NO_SOURCE: "no other log has anything of it, and nothing tells which log is the source",
    OWN_ID: "no other log has anything of its server id",
    AHEAD: "the log of its source ends before it",
    LOST_THERE: "no other log has it, and that of its source lost records where it would stand",
}

LACKS, IN_PART = "log_lacks", "came_in_part"
EVIDENT = {
    LACKS: "its log goes on behind the transaction and does not hold it",
    IN_PART: "its log holds the transaction in part: nothing partial may be applied",
    "log_shows": "its log holds the transaction, whole",
}


class Streams:
    """The logs of one snapshot, and each held against the source of its origins."""

    def __init__(
        self, case: Case, shown: Topology, limit: int = LISTED, before: Sequence[Streams] | None = None
    ) -> None:
        self.case, self.shown, self.limit, self._before = case, shown, limit, before
        self._between: dict[tuple[str, str, str, bool], Compared] = {}
        self._contents: dict[tuple[str, str, str], ContentsOfTwo] = {}
        self._broken: dict[str, Mapping[Key, BrokenCommit]] = {}
        self._lost: dict[tuple[str, str, str], Compared] = {}
        self.logs = {one.server: self.stored(one.server, one.log) for one in shown.replicas if one.log}
        self.told = named_by_person(shown.replicas) | case.sources

    def stored(self, server: str, one: Input) -> StreamLog:
        """A log of a server, of this snapshot or another."""
        places = [part["path"] for part in self.case.parts("rejects", one)]
        whole = [{"path": path} for path in places]
        lost = set(rows_where(whole, ["offset"], pc.field("offset") >= 0)["offset"].to_pylist())
        # A record that is cut at the end of its log is the next to come, and hides none before it.
        end = one.facts.get("end_of_file", {})
        lost -= {end.get("offset")} if end.get("state") == "truncated" else set()
        # What a damaged message says of itself cannot be trusted: it may have been of another transaction than it says.
        unread = rows_where(
            self.case.parts("segments", one),
            ["offset"],
            pc.field("origin").is_null() | ~pc.field("sound"),
        )["offset"].to_pylist()
        log = StreamLog(server, one.file, self.case.parts("transactions", one), tuple(sorted({*lost, *unread})))
        return replace(log, lost=(ANYWHERE,) * len(log.lost)) if log.lost and log.by_commit else log

    @cached_property
    def torn(self) -> frozenset[str]:
        """The servers whose logs are cut in their last record: they may have been writing it."""
        ends = {one.server: one.log.facts.get("end_of_file", {}) for one in self.shown.replicas if one.log}
        return frozenset(server for server, end in ends.items() if end.get("state") == "truncated")

    @cached_property
    def origins(self) -> list[str]:
        """Whose transactions the logs hold."""
        return sorted({origin for log in self.logs.values() for origin in log.sums})

    @cached_property
    def sources(self) -> dict[str, StreamSource]:
        """Origin -> the log that all others are held against."""
        applying = {one.server for one in self.applied}
        found = {origin: source_of(origin, self.logs, self.told, applying) for origin in self.origins}
        return {origin: one for origin, one in found.items() if one}

    def source_of(self, origin: str) -> str | None:
        """The server of that log."""
        return self.sources[origin].server if origin in self.sources else None

    def source_for(self, server: str, origin: str) -> str | None:
        """The server whose log that of a server is held against; None: it is the source, or no other log has the origin.

        Where nobody knows the source, the log with most of an origin may lack something, too: it is held against the next one.
        """
        source = self.source_of(origin)
        if source != server or not self.is_open(origin):
            return source if source != server else None
        others = {name: log.committed.get(origin, 0) for name, log in self.logs.items() if name != server}
        return max(sorted(name for name in others if origin in self.logs[name].sums), key=others.__getitem__)

    def is_open(self, origin: str) -> bool:
        """True if nobody knows which of several logs is the source of an origin."""
        return origin in self.sources and self.sources[origin].known_by is None

    def assumes(self, origin: str) -> tuple[str, ...]:
        """What is taken for granted of the source of an origin, as codes."""
        return self.sources[origin].assumes if origin in self.sources else ()

    def assumes_of_queue(self, server: str) -> tuple[str, ...]:
        """What is taken for granted where the queue of a server is held against the log of its master, as codes."""
        order = (LOG_READ_FIRST,) if server in past_their_logs(self.applied, self.logs) else ()
        assumed = any(one.assumed for one in self.applied if one.server == server)
        return (*order, MASTER_BY_ONLY_LOG) if assumed else order

    @cached_property
    def differences(self) -> dict[tuple[str, str], Compared]:
        """(server, origin) -> what its log lacks of the source's."""
        found = {
            (name, origin): self.between(source, name, origin, self.is_open(origin))
            for origin in self.origins
            for name in self.logs
            if (source := self.source_for(name, origin)) and not self._of_a_copy_alone(origin)
        }
        found |= {
            key: behind_as_unknown(one, COPY_AHEAD, self.limit)
            for key, one in found.items()
            if one.first and self.may_be_past(*key)
        }
        found = {key: self._without_gone(*key, one) for key, one in found.items()}
        found = {key: self._shown_before(*key, one) for key, one in found.items()}
        found = {key: self._settled(key[0], self.source_for(*key), one) for key, one in found.items()}
        # Two logs that are not alike are that once, however they are held against each other. Of two without anything in common
        # each may lack what the other one has.
        return {
            key: one
            for key, one in found.items()
            if key[0] != self.source_of(key[1]) or one.counts["inside"] or one.first or self.apart(*key, one)
        }

    def apart(self, server: str, origin: str, one: Compared) -> bool:
        """True if the log of a server and that it is held against have nothing of an origin in common, and both have some."""
        other = self.source_for(server, origin)
        having = [self.logs[name].committed.get(origin, 0) for name in (server, other) if name in self.logs]
        return one.shared is None and not one.difference.unrelated and len(having) == 2 and all(having)

    @cached_property
    def history(self) -> History:
        """What the logs have otherwise than those of earlier snapshots."""
        return history_of(self)

    @cached_property
    def earlier(self) -> list[tuple[str, EarlierLog]]:
        """Each log of a snapshot before, with the name that its server has now."""
        return [*earlier_logs(self)]

    @cached_property
    def before(self) -> Sequence[Streams]:
        """The streams of each earlier snapshot, as they were judged then; they share those before them."""
        if self._before is not None:
            return self._before
        labels, found = [*self.case.snapshots], list[Streams]()
        for label in labels[: labels.index(self.shown.snapshot)]:
            found.append(Streams(self.case.until(label), topology(self.case, label), self.limit, (*found,)))
        return found

    @cached_property
    def emptied(self) -> dict[str, EmptiedLog]:
        """Server -> its log that shows no transaction."""
        return {one.server: one for one in emptied_logs(self)}

    @cached_property
    def passed_since(self) -> list[PassedSince]:
        """What replicas are past now, and an earlier snapshot shows that they could not apply."""
        return passed_since(self)

    @cached_property
    def by_earlier(self) -> dict[tuple[str, str], ByEarlierLog]:
        """(server, origin) -> what its log lacks by an earlier log of the source, whose present log begins behind it."""
        return by_earlier_logs(self)

    @cached_property
    def alone_before(self) -> list[AloneBefore]:
        """What earlier logs of copies have of their own, and the present ones show no more."""
        return [*alone_before(self)]

    @property
    def gone(self) -> dict[tuple[str, str], list[Gone]]:
        """(server, origin) -> what its log lacks of that of an earlier snapshot."""
        return self.history.gone

    def gone_from_source(self, server: str, origin: str) -> list[Gone]:
        """Of what the known source of an origin has in its log no more: what the log of a server does not have, either."""
        source = self.source_of(origin)
        gone = [] if source in (None, server) or self.is_open(origin) else self.gone.get((source or "", origin), [])
        there = without_starts(self.logs[server].rows_of(origin, [one.position for one in gone]))
        return [one for one in gone if one.position not in there]

    def changed_at_source(self, server: str, origin: str) -> list[Changed]:
        """Of what the known source of an origin has with another content than before: what the log of a server does not have."""
        source = self.source_of(origin)
        changed = (
            []
            if source in (None, server) or self.is_open(origin)
            else self.history.changed.get((source or "", origin), [])
        )
        there = without_starts(self.logs[server].rows_of(origin, [one.position for one in changed]))
        return [one for one in changed if one.position not in there]

    def _without_gone(self, server: str, origin: str, one: Compared) -> Compared:
        """The same with what only an earlier log of the source shows: unknown where it is not, and nobody's own where it is."""
        lacks = self.gone_from_source(server, origin) if one.shared else []
        gone = self.gone.get((self.source_of(origin) or "", origin), [])
        had = still_in(self.logs[server], origin, gone) if one.shared and not self.is_open(origin) else set[str]()
        if not lacks and not had:
            return one
        unknown = sorted(
            [*one.difference.unknown, *((gone.position, gone.place, GONE_FROM_SOURCE) for gone in lacks)],
            key=lambda row: row[1],
        )
        errant = [position for position in one.difference.errant if position not in had]
        counts = one.counts.copy()
        counts["unknown"] += len(lacks)
        counts["errant"] -= len(one.difference.errant) - len(errant)
        return replace(one, difference=replace(one.difference, unknown=unknown, errant=errant), counts=counts)

    def _shown_before(self, server: str, origin: str, one: Compared) -> Compared:
        """The same without what its log begins behind, and an earlier log of it has whole."""
        asked = [at for at, _, why in one.difference.unknown if why == BEGINS_LATER]
        there = {at for at in asked if self.logged_before(server, origin, at)} if asked else set[str]()
        left = [entry for entry in one.difference.unknown if entry[0] not in there or entry[2] != BEGINS_LATER]
        counts = one.counts.copy()
        counts["unknown"] -= len(one.difference.unknown) - len(left)
        return replace(one, difference=replace(one.difference, unknown=left), counts=counts) if there else one

    def logged_before(self, server: str, origin: str, position: str) -> EarlierLog | None:
        """The latest earlier log of a server that has a transaction whole; None: there is none."""
        mine = (each for name, each in reversed(self.earlier) if name == server and not each.moved)
        for each in mine:
            row = each.log.rows_of(origin, [position]).get(position)
            if row is not None and row["outcome"] == COMMITTED:
                return each
        return None

    def _settled(self, server: str, source: str | None, one: Compared) -> Compared:
        """The same without what its log leaves open and a replica tells itself: where it stands in the log of its master."""
        told = [each.commit for each in self.applied if (each.server, each.source) == (server, source)]
        upto = max((commit for commit in told if commit is not None), default=None)
        if upto is None or not one.difference.unknown:
            return one
        left = [entry for entry in one.difference.unknown if entry[1] <= upto and entry[2] != NOTHING_SHARED]
        counts = one.counts.copy()
        counts["unknown"] -= len(one.difference.unknown) - len(left)
        return replace(one, difference=replace(one.difference, unknown=left), counts=counts)

    def may_be_past(self, server: str, origin: str) -> bool:
        """True if a copy goes on with what its source may have made: then it is past all that the source's log has before."""
        ahead = {} if self.is_open(origin) else self._ahead(origin, [server])
        if (server, origin) not in ahead:
            return False
        name = self.source_of(origin) or ""
        source, last = self.logs[name], self.between(server, name, origin).last
        until = source.sums[origin].until if origin in source.sums and not source.lost else None
        ended = self.logs[server].rows_of(origin, [last])[last]["ended_at"] if last else None
        # What ended before the last that the source's log has would be in that log, too.
        return until is None or ended is None or bool(ended >= until)

    def between(self, source: str, copy: str, origin: str, known_to_two: bool = False) -> Compared:
        """What the log of one server lacks of that of another one; `known_to_two`: of what a second log has, too."""
        key = source, copy, origin, known_to_two
        if key not in self._between:
            others = [log for name, log in self.logs.items() if name not in (source, copy)] if known_to_two else None
            found = compared(self.logs[source], self.logs[copy], origin, self.limit, others)
            found = by_messages(found, self.segmented(source), self.segmented(copy), origin, self.limit)
            contents = self.contents(source, copy, origin)
            self._between[key] = with_contents(found, contents, self.logs[source], origin, self.limit)
        return self._between[key]

    def contents(self, source: str, copy: str, origin: str) -> ContentsOfTwo:
        """How the contents compare of what two logs committed, where messages of one have no numbers."""
        key = source, copy, origin
        if key not in self._contents:
            self._contents[key] = contents_compared(self.logs[source], self.logs[copy], origin)
        return self._contents[key]

    def segmented(self, server: str) -> SegmentedLog:
        """The log of a server with its messages."""
        log = next(one.log for one in self.shown.replicas if one.server == server and one.log)
        return SegmentedLog(self.logs[server], self.case.parts("segments", log))

    @cached_property
    def errant(self) -> dict[tuple[str, str], tuple[int, list[str]]]:
        """(server, origin) -> how many transactions only its log has, and the first, where nothing tells whose they are.

        Either nobody knows the source of their origin, and another log goes on behind each of them, or ends before it; or they
        bear an id of their own, in a log that shares another id with a second log; or they follow the end of the source's log.
        """
        found: dict[tuple[str, str], tuple[int, list[str]]] = {}
        for origin in self.origins:
            having = self._having(origin)
            if self._of_a_copy_alone(origin):
                log = self.logs[having[0]]
                found[log.server, origin] = log.committed[origin], log.first_commits(origin, self.limit)
            if not self.is_open(origin):
                found |= self._ahead(origin, having)
                continue
            for name in having:
                told = [self.between(name, other, origin, True) for other in having if other != name]
                most = max(told, key=lambda one: one.counts["alone"])
                if most.counts["alone"]:
                    found[name, origin] = most.counts["alone"], most.difference.alone
        return found

    @cached_property
    def lost_at_source(self) -> dict[tuple[str, str], tuple[int, list[str]]]:
        """(server, origin) -> how many its log alone has, and the first, where the log of a known source lost records."""
        found: dict[tuple[str, str], tuple[int, list[str]]] = {}
        for origin in self.origins:
            source = self.source_of(origin) or ""
            if self.is_open(origin) or not (source in self.logs and self.logs[source].lost):
                continue
            for name in set(self._having(origin)) - {source}:
                back = self._in_lost(name, source, origin)
                if count := back.said["lost_alone"]:
                    found[name, origin] = count, back.lost_alone
        return self._not_its_own(found)

    def alone(self) -> list[tuple[str, str, str, int, list[str]]]:
        """Server, origin, why, how many and the first of what one log alone has, and nothing tells whether the others should."""
        found = []
        for (server, origin), (count, some) in self.errant.items():
            ahead = self.source_of(origin) != server
            why = NO_SOURCE if self.is_open(origin) else AHEAD if ahead else OWN_ID
            found.append((server, origin, why, count, some))
        found += [(*key, LOST_THERE, count, some) for key, (count, some) in self.lost_at_source.items()]
        return sorted(found)

    def _in_lost(self, name: str, source: str, origin: str) -> Compared:
        """What a log has of the source's, and what it has where that lost records."""
        key = name, source, origin
        if key not in self._lost:
            beside = [log for other, log in self.logs.items() if other not in (name, source)]
            self._lost[key] = compared(self.logs[name], self.logs[source], origin, self.limit, None, beside)
        return self._lost[key]

    @cached_property
    def holders(self) -> dict[str, dict[str, list[str]]]:
        """Origin -> position -> the servers whose logs have it whole, of what some server lacks as far as it is listed."""
        found: dict[str, dict[str, list[str]]] = {}
        for origin in self.origins:
            lacked = {
                lack.position
                for (_, of), one in self.differences.items()
                if of == origin
                for lack in (*one.difference.inside, *one.difference.behind)
            }
            source = self.logs[self.source_of(origin) or ""]
            there = source.rows_of(origin, sorted(lacked))
            for name in sorted(self.logs):
                is_whole = whole_beside(source, self.logs[name])
                for position, row in self.logs[name].rows_of(origin, sorted(lacked)).items():
                    if row["outcome"] == COMMITTED and is_whole(there.get(position), row):
                        found.setdefault(origin, {}).setdefault(position, []).append(name)
        return found

    @cached_property
    def applied(self) -> list[Applied]:
        """What the replicas of the snapshot say of themselves, for each of their masters."""
        return applied_of(self.case, self.shown, self.logs)

    @cached_property
    def behind(self) -> list[Behind]:
        """What replicas have not applied, where they number commits as their master's log does."""
        beyond = {name: told_beyond(self.applied, log) for name, log in self.logs.items() if log.by_commit}
        found = []
        for one in self.applied:
            if one.source is not None and one.commit is not None:
                after, passed = max(one.commit, self._covered(one)), rows_of(self.passed[one.server, one.master])
                passed = passed if one.queued is not None else {}  # its queue may have them
                log, gone = self.logs[one.source], self._commits_gone(one.source)
                broken = self.broken_commits(one.source)
                numbers = {key: each.commit for key, each in broken.items()}
                unended = without_number(log, one, after, broken)
                told = beyond[one.source], passed, gone, numbers, unended
                found.append(behind_of(one, log, after, self.limit, *told))
        return found

    def broken_commits(self, master: str) -> Mapping[Key, BrokenCommit]:
        """What the log of a master has in part."""
        if master not in self._broken:
            self._broken[master] = broken_commits(self, master)
        return self._broken[master]

    def _commits_gone(self, master: str) -> dict[Key, int]:
        """What an earlier log of a master has under the number of a commit, and its present log has no more."""
        if not self.logs[master].by_commit:
            return {}
        of_master = ((origin, lost) for (server, origin), lost in self.gone.items() if server == master)
        return {(origin, one.position): one.place for origin, lost in of_master for one in lost}

    @cached_property
    def passed(self) -> dict[tuple[str, str], dict[int, Elsewhere]]:
        """Replica and master -> the commits that the replica passed over, and that another file has, and none otherwise."""
        return {key: found.undisputed for key, found in self.elsewhere.items()}

    @cached_property
    def elsewhere(self) -> dict[tuple[str, str], Found]:
        """The same, and the commits under which other files have different transactions."""
        told = self.case, self.shown.snapshot, self.applied
        return {
            (one.server, one.master): commits_elsewhere(*told, one, self.logs[one.source] if one.source else None)
            for one in self.applied
        }

    def _covered(self, one: Applied) -> int:
        """The last commit of its master that a replica's own log shows, where it keeps one; it may be younger than its tables."""
        mine = (
            both
            for key, both in self.differences.items()
            if key[0] == one.server and self.source_for(*key) == one.source
        )
        return max((both.shared.covers for both in mine if both.shared), default=-1)

    def fetches(self, server: str, source: str) -> bool:
        """True if a replica tells how far it applied the log of a server: that and its queue tell what it waits for."""
        return any((one.applied.server, one.applied.source) == (server, source) for one in self.behind)

    def _ahead(self, origin: str, having: Sequence[str]) -> dict[tuple[str, str], tuple[int, list[str]]]:
        """The same of what follows the end of the log of a source that is known."""
        source, found = self.source_of(origin) or "", {}
        for name in having:
            back = self.between(name, source, origin) if name != source else None
            if back is None or back.shared is None:
                continue
            # Where the source lost its last records, they may have been among these: this server alone has them all the same.
            lost = self._in_lost(name, source, origin) if self.logs[source].lost else Compared(back.difference)
            if count := back.counts["behind"] + lost.said["lost_ahead"]:
                first = [lack.position for lack in back.difference.behind] + lost.lost_ahead
                found[name, origin] = count, first[: self.limit]
        return self._not_its_own(found)

    def _not_its_own(
        self, found: Mapping[tuple[str, str], tuple[int, list[str]]]
    ) -> dict[tuple[str, str], tuple[int, list[str]]]:
        """The same without what an earlier log of the source has alike."""
        left = dict[tuple[str, str], tuple[int, list[str]]]()
        for (name, origin), (count, positions) in found.items():
            had = still_in(self.logs[name], origin, self.gone.get((self.source_of(origin) or "", origin), []))
            others = [position for position in positions if position not in had]
            if count := count - (len(positions) - len(others)):
                left[name, origin] = count, others
        return left

    def _having(self, origin: str) -> list[str]:
        return [name for name, log in self.logs.items() if origin in log.sums]

    def _of_a_copy_alone(self, origin: str) -> bool:
        """True for an origin of one log alone, which has transactions of another origin as a second log does."""
        having = self._having(origin)
        if len(having) != 1 or origin in self.told or not self.logs[having[0]].committed.get(origin):
            return False
        mine = self.logs[having[0]].sums.keys() - {origin}
        return any(mine & log.sums.keys() for name, log in self.logs.items() if name != having[0])

    def rows_at(self, position: str) -> dict[str, dict[str, Any] | None]:
        """Server -> the row of one transaction in its log; None: it has none."""
        origin = self.shown.system.origin_of(position)
        return {name: log.rows_of(origin, [position]).get(position) for name, log in self.logs.items()}

    def having(self, position: str) -> list[str]:
        """The servers whose logs hold a transaction whole."""
        return [name for name, row in sorted(self.rows_at(position).items()) if row and row["outcome"] == COMMITTED]

    def at_source(self, server: str, origin: str, position: str) -> str | None:
        """What its source says of a transaction that a log has without an end; None: nothing that settles it."""
        found = self.differences.get((server, origin))
        told = found.difference.undecided.get(position) if found else None
        # Where the source's log lost records, the end of what seems cut off may have been among them.
        return None if told == ABORTED and self.logs[self.source_for(server, origin) or ""].lost else told

    def odd(self, limit: int) -> list[dict[str, Any]]:
        """The transactions that are no plain commits, and the biggest ones, of each log."""
        return [self.transaction(name, row) for name, log in sorted(self.logs.items()) for row in log.odd(limit)]

    @cached_property
    def odd_ones(self) -> list[dict[str, Any]]:
        """The same, as many as are told one by one."""
        return self.odd(self.limit)

    def transaction(self, server: str, row: Row) -> dict[str, Any]:
        """One transaction of a log as a row of the output."""
        why = row["why"]
        return {
            "server": server,
            "origin": row["origin"],
            "position": self.shown.system.show(row["position"]),
            "life": row["life"],
            "outcome": row["outcome"],
            "why": why,
            "says": SAYS.get(why or ""),
            "ask": ASK.get(why or ""),
            "query": self._query(row) if why in ASK else None,
            "at_source": self.at_source(server, row["origin"], row["position"]),
            "offset": row["offset"],
            "last": row["last"],
            "messages": row["messages"],
            "repeated": row["repeated"],
            "missing": row["missing"],
            "bytes": row["bytes"],
            "rows": None if row["rows"] is None else json.loads(row["rows"]),
            "seen": row["seen"],
            "kept": row["kept"],
            "cancelled": row["seen"] - row["kept"] if row["outcome"] in ("committed", "rolled_back", "aborted") else 0,
            "ragged": row["ragged"],
            "ddl": row["ddl"],
            "started_at": time_text(row["started_at"]),
            "ended_at": time_text(row["ended_at"]),
            "held": row.get("held"),
        }

    def _query(self, row: Row) -> str | None:
        """What to ask the source of a transaction, to learn what became of it."""
        settling = self.shown.system.settling
        return settling(row["position"]) if settling else None


def time_text(at: datetime | None) -> str | None:
    """A time as it stands in the output."""
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"
