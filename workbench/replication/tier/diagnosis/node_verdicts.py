"""The diagnosis of a system whose nodes pull a physical log in tiers: the tree, how far each node is, and who can still help.

A node's log is a prefix of its source's. So nothing can be missing inside it but by damage; what counts is how far a node is,
whether somebody still has the file that it needs next, and whether the ends of two logs are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from workbench.case.case import Case
from workbench.replication.tier.diagnosis.earlier_snapshots import (
    Earlier,
    deletion_speeds,
    shown_before,
)
from workbench.replication.tier.diagnosis.generations import not_elected
from workbench.replication.tier.diagnosis.heads import behind_beyond
from workbench.replication.tier.diagnosis.log_falls import Fall, Kept, last_holders, log_falls
from workbench.replication.tier.diagnosis.node_logs import NodeLogs
from workbench.replication.tier.diagnosis.node_states import state_of
from workbench.replication.tier.diagnosis.old_rows import OldRow, outrun_rows
from workbench.replication.tier.diagnosis.registering import Registering, registering
from workbench.replication.tier.diagnosis.rewritten import Rewritten, rewritten_sources
from workbench.replication.tier.diagnosis.snapshot_history import SnapshotHistory
from workbench.replication.tier.diagnosis.standstill import Standstill, said_stops, standstills
from workbench.replication.tier.diagnosis.two_sources import Doubt, doubted_sources
from workbench.replication.tier.rules.candidates import Call, hosts_asked_for
from workbench.replication.tier.rules.log_distance import exact, file_size_of, nominal, sizes_of
from workbench.replication.tier.rules.log_retention import LogHold, log_holder
from workbench.replication.tier.rules.registration import Offer, register
from workbench.replication.tier.rules.settings import Settings
from workbench.replication.tier.rules.tiers import Lsn, Place, Registry, Tree, tree
from workbench.topology.tier_snapshot import last_messages
from workbench.topology.tier_sources import followed_source, furthest_node, known_sources, source_databases
from workbench.topology.topology import Topology

Row = dict[str, Any]

HELPERS = 10
"""So many nodes that could help another one are named."""


class Tiers(SnapshotHistory):
    """The trees of one snapshot, what each node of them is doing, and what the logs of nodes show."""

    def __init__(self, case: Case, shown: Topology, limit: int = 10_000) -> None:
        super().__init__(case, shown)
        self.limit = limit
        self._holds: dict[str, LogHold] = {}

    @cached_property
    def logs(self) -> NodeLogs:
        """The collected logs."""
        return NodeLogs(self.case, self.seen, self.tiering.form, self._clusters, self.limit)

    @cached_property
    def _clusters(self) -> dict[str, list[str]]:
        return {name: self.roots(source) for source, names in self.members.items() for name in names}

    @cached_property
    def earlier(self) -> Earlier:
        """What logs lacked, or had of their own, in earlier snapshots, where no later dump shows the place."""
        return shown_before(self.case, self.seen, self.tiering.form, self._clusters, self.limit)

    @cached_property
    def standstills(self) -> dict[str, Standstill]:
        """The nodes that are known to get nothing although they look connected, and why."""
        return standstills(self)

    @cached_property
    def told(self) -> Settings:
        """What the settings of the nodes mean."""
        return self.tiering.told(self.seen.settings)

    @cached_property
    def sources(self) -> list[str]:
        """The databases at the top of the trees."""
        return source_databases(self.seen, self._told_sources, self.sources_before)

    @cached_property
    def source_is_known(self) -> bool:
        """Whether a registry, a setting, or the log of a program tells who follows whom; else the node whose log goes furthest
        is taken for the source.
        """
        return bool(known_sources(self.seen, self._told_sources))

    @property
    def sources_so_far(self) -> list[str]:
        """The same; where nothing tells who follows whom, those of which an earlier snapshot told it."""
        return self.sources if self.source_is_known else sorted(self.sources_before)

    @cached_property
    def trees(self) -> dict[str, Tree]:
        """Source database -> its tree."""
        return {source: tree(self.seen.registry, source) for source in self.sources}

    def source_of(self, name: str) -> str | None:
        """The source database at the top of a node's tree; None: the node takes no part, or nobody knows."""
        return self._followed.get(name)

    @property
    def _followed(self) -> dict[str, str]:
        return self._following[0]

    @property
    def guessed(self) -> frozenset[str]:
        """The nodes that answer, and of which nothing tells which source they follow: they are listed below the only one."""
        return self._following[1]

    @cached_property
    def _following(self) -> tuple[dict[str, str], frozenset[str]]:
        return followed_source(self.seen, self.sources, self._told_sources, self.told.outside, self.sources_before)

    @cached_property
    def of_no_source(self) -> list[str]:
        """The nodes that have a row or answer, and of which nothing tells which of several sources they follow."""
        return [
            name
            for name in self.seen.names
            if name not in self._followed
            and (name in self.seen.nodes or self.seen.answered(name))
            and not self.told.outside(name)
            and name.partition("@")[0] not in self.seen.registries
        ]

    @cached_property
    def _told_sources(self) -> dict[str, str]:
        """Node -> the database that it follows: as it is set, else where the registry says nothing as its log says, or as an
        earlier snapshot does of a source of which this one tells nothing.
        """
        said = {} if self.seen.pulls else self.seen.said_sources
        return {**self.followed_unseen, **said} | {name: database for name, (database, _) in self.told.sources.items()}

    @property
    def followed_as_told(self) -> set[str]:
        """The nodes of which a setting or a log says which database they follow."""
        return {*self._told_sources}

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """Source database -> its own nodes and all that follow it, by name."""
        return {source: [name for name, of in self._followed.items() if of == source] for source in self.sources}

    def roots(self, source: str) -> list[str]:
        """The nodes of the source cluster."""
        return self._roots[source]

    @cached_property
    def _roots(self) -> dict[str, list[str]]:
        found = {
            source: [name for name in names if name.partition("@")[0] == source]
            for source, names in self.members.items()
        }
        if self.source_is_known:
            return found
        # That nodes of one database are one cluster, with one log, nothing tells either.
        return {source: [furthest_node(self.seen, names)] for source, names in found.items() if names}

    @cached_property
    def not_elected(self) -> frozenset[str]:
        """The nodes that are of another history than the one that was elected, by their answers alone: what lies behind the place
        where it parts from that, nobody else waits for.
        """
        members = self.members.items()
        found = (one for source, names in members for one in not_elected(self.seen, names, self.roots(source)))
        return frozenset(found) - self.guessed

    def elected(self, source: str) -> list[str]:
        """The nodes of the source cluster that may be of the history that was elected."""
        return [name for name in self.roots(source) if name not in self.not_elected]

    @cached_property
    def _heads(self) -> dict[str, Lsn | None]:
        return {one: max(filter(None, map(self.seen.last, self.elected(one))), default=None) for one in self._roots}

    @cached_property
    def named(self) -> dict[str, list[Lsn]]:
        """Source database -> every place that a node reported or answered, in order."""
        found: dict[str, set[Lsn]] = {}
        for source, names in self.members.items():
            told = (
                place
                for name in (names if self.source_is_known else self.roots(source))
                if name not in self.logs.spoilt | self.not_elected | self.guessed | self.last_holders.keys()
                for place in (
                    None if name in self.seen.cut_since or self.seen.outdated(name) else self.seen.reported(name),
                    *(() if self.seen.fell_back(name) else (self.seen.probed(name, at) for at in ("last", "commit"))),
                )
            )
            found[source] = {place for place in told if place is not None}
        return {source: sorted(places) for source, places in found.items()}

    def head(self, source: str, probed: bool) -> Lsn | None:
        """The newest place of the source: as its nodes answered, or reported after that; or as they reported to the registry."""
        roots = self.elected(source)
        if not probed:
            return max(filter(None, map(self.seen.reported, roots)), default=None)
        told = (self.seen.answered_at(one) or self.seen.reported(one) for one in roots if self.seen.probed(one))
        return max(filter(None, told), default=None)

    def known_head(self, source: str) -> Lsn | None:
        """The newest place that anything tells of the source, its log included."""
        return self._heads[source]

    def head_above(self, name: str) -> Lsn | None:
        """How far the source of a node is, as far as anything shows that the node is behind it."""
        return self._beyond.get(name) or self.known_head(self.source_of(name) or "")

    @cached_property
    def _beyond(self) -> dict[str, Lsn]:
        return {name: place for source in self.sources for name, place in behind_beyond(self, source)}

    def last(self, name: str) -> Lsn | None:
        """The newest place that anything tells of a node."""
        return self.seen.last(name)

    @cached_property
    def sizes(self) -> tuple[dict[int, int], frozenset[int]]:
        """The size of each log file, and those of which nobody shows the end."""
        return sizes_of(self.seen.files.values())

    @cached_property
    def file_size(self) -> int | None:
        """How large a log file may be: as told, else guessed by the files themselves."""
        return self.told.file_size or file_size_of(self.sizes[0].values())

    def lag(self, here: Lsn | None, there: Lsn | None) -> tuple[int | None, int | None]:
        """Bytes between two places: exact by the sizes of the files, and nominal."""
        if here is None or there is None:
            return None, None
        far = exact(here, there, self.sizes[0])
        return far, nominal(here, there, self.file_size) if self.file_size else None

    # --- who can help

    def has(self, name: str, needed: Lsn) -> bool:
        """Whether a node has the file of that place, and goes further."""
        last = self.seen.last(name)
        apart = self.not_elected | self.guessed | self.last_holders.keys()
        further = last is not None and last > needed and name not in apart
        return further and self.seen.has_file(name, needed[0])

    def there(self, name: str) -> bool:
        """Whether a node can be asked: it answered, or nobody tried and it reports itself; or its log was read."""
        answered = self.seen.answered(name)
        age = self.seen.age(name)
        if answered is None:
            return name in self.seen.logs or (age is not None and age < self.told.stale_after)
        return answered

    def donors(self, name: str) -> tuple[list[str], list[str]]:
        """Who has what a node needs next: nodes that can be asked and bring it to the head of the source, those that are
        furthest first, and those that do not answer; the first of both.

        A node that cannot go on itself is no help: it would leave the other one where it is stuck.
        """
        needed, source = self.last(name), self.source_of(name)
        if needed is None or source is None:
            return [], []
        useful = self._going_on[source]
        helpers: list[str] = []
        silent: list[str] = []
        for other in self._furthest_first[source]:
            if (self.seen.last(other) or needed) <= needed or len(helpers) == HELPERS:
                break
            if other != name and self.has(other, needed):
                if other in useful:
                    helpers.append(other)
                elif not self.there(other) and len(silent) < HELPERS:
                    silent.append(other)
        return helpers, silent

    def coming_back(self, name: str) -> list[str]:
        """The silent nodes that have what a node needs next, and can bring it to the head: to start one may spare a rebuild.

        Empty while a node that answers has it, and for nodes that are silent and stuck themselves.
        """
        donors, silent = self.donors(name)
        return [] if donors else [node for node in silent if self.may_reach_head(node)]

    def copied_from(self, name: str) -> list[str]:
        """The nodes that a rebuild of this one may copy: up to date, and with a log that is whole. Those of its own database come
        first, and no node of the source is among them: while that is shut down it cannot be written.
        """
        source, database = self.source_of(name) or "", name.partition("@")[0]
        head, own = self.known_head(source), set(self.roots(source))
        whole = [node for node in self.members[source] if node not in own and node != name and self.last(node) == head]
        doubted = self.logs.spoilt | self.logs.at_odds | self.earlier.servers | self.not_elected | self.guessed
        doubted |= self.last_holders.keys()
        whole = [node for node in whole if self.there(node) and node not in doubted]
        return sorted(whole, key=lambda node: (node.partition("@")[0] != database, node))

    def may_be_served(self, name: str, start: Lsn | None = None) -> bool:
        """False where it is known that no node that can be asked has what this one needs next: that is what stands behind its
        end, or, of one that cuts its log back, behind the commit where that starts.
        """
        needed, source = self.last(name), self.source_of(name)
        if needed is None or source is None or self.donors(name)[0]:
            return True
        if name in self.roots(source) and any(self.there(root) and root != name for root in self.roots(source)):
            return True  # its cluster brings it up to date, not from files
        needed = start or needed
        further = [
            one for one in self._furthest_first[source] if (self.seen.last(one) or needed) > needed and one != name
        ]
        if needed != self.last(name) and any(self.there(one) and self.seen.has_file(one, needed[0]) for one in further):
            return True
        # Where nobody tells its oldest file, nobody can say that the one that is needed is gone.
        return any(not self.seen.knows_files(one) for one in further if self.there(one))

    @cached_property
    def _furthest_first(self) -> dict[str, list[str]]:
        def far(name: str) -> tuple[int, int, str]:
            file, place = self.seen.last(name) or (0, 0)
            return -file, -place, name

        return {source: sorted(names, key=far) for source, names in self.members.items()}

    @cached_property
    def _going_on(self) -> dict[str, set[str]]:
        """Source database -> the nodes that can be asked, and that are at its head or come there from one that is."""
        found = {}
        for source, names in self.members.items():
            useful = {name for name in names if self.there(name) and not self.needs(name)}
            waiting = [name for name in names if self.there(name) and name not in useful and self.last(name)]
            while new := {name for name in waiting if name not in useful and self._helped(name, useful)}:
                useful |= new
            found[source] = useful
        return found

    def may_reach_head(self, name: str) -> bool:
        """Whether a node gets to the head of its source if all come back that do not answer."""
        source = self.source_of(name)
        return source is not None and name in self._reaching[source]

    @cached_property
    def _reaching(self) -> dict[str, set[str]]:
        found = {}
        for source, names in self.members.items():
            head = self.known_head(source)
            known = {name: last for name in names if (last := self.last(name))}
            able = {name for name, last in known.items() if head and (last >= head or name in self.roots(source))}
            while new := {name for name in known.keys() - able if self._helped(name, able)}:
                able |= new
            found[source] = able
        return found

    def _helped(self, name: str, useful: set[str]) -> bool:
        last = self.last(name)
        return last is not None and any(self.has(other, last) for other in useful)

    def needs(self, name: str) -> bool:
        """Whether a node has not all that its source has."""
        last, head = self.last(name), self.head_above(name)
        if self.retired(name):
            return False
        return last is not None and head is not None and last < head

    def retired(self, name: str) -> bool:
        """Whether a node was taken out of the tree: what it lacks, nobody misses."""
        row, age = self.seen.nodes.get(name), self.seen.age(name)
        silent = age is None or age >= self.told.stale_after
        out = row and row["state"] == "Inactive" and silent and name not in self._pulling
        return bool(out and not self.seen.answered(name))

    @cached_property
    def _pulling(self) -> set[str]:
        return {pull.name for pull in self.seen.pulls}

    def alive_roots(self, source: str) -> list[str]:
        """The nodes of the source that answer, or report themselves although they did not answer when they were asked."""

        def reports(name: str) -> bool:
            age = self.seen.age(name)
            return age is not None and age < self.told.stale_after

        return [one for one in self.roots(source) if self.there(one) or reports(one)]

    def source_firsts(self, source: str) -> list[int]:
        """The oldest file of each node of the source that can serve it; where none is there, of all."""
        told = {one: first for one in self.roots(source) if (first := self.seen.first_file(one)) is not None}
        return [told[one] for one in self.alive_roots(source) if one in told] or list(told.values())

    @cached_property
    def doubts(self) -> dict[str, Doubt]:
        """The nodes of which it is in doubt which source they follow."""
        return dict(doubted_sources(self))

    def gap(self, name: str) -> str | None:
        """The same as `lacks_file`; None where it is in doubt whom the node follows."""
        return None if name in self.doubts or name in self.guessed else self.lacks_file(name)

    def lacks_file(self, name: str) -> str | None:
        """`now`: no node that can be asked has what it needs next; `source`: the source cluster has it no more, others do."""
        source, needed = self.source_of(name), self.last(name)
        if source is None or needed is None or not self.needs(name) or name in self.seen.cut_since:
            return None
        roots = self.roots(source)  # one of these is brought up to date by its cluster, not from files
        told = [one for one in roots if self.seen.first_file(one) is not None]
        # Where no node of the source is there, those that come back may have it still.
        if name in roots or not told or any(self.has(one, needed) for one in self.alive_roots(source) or told):
            return None
        if name in self._beyond and any(self.seen.has_file(one, needed[0]) for one in told):
            return None  # it went further since its nodes told of themselves
        return "source" if self.donors(name)[0] else "now"

    @cached_property
    def deleted_per_second(self) -> dict[str, float]:
        """Source database -> log files deleted in a second, between the two last snapshots; without two, nothing."""
        return deletion_speeds(self.before, self.seen, self._roots)

    @cached_property
    def falls(self) -> tuple[Fall, ...]:
        """Logs that went back between two of them."""
        return log_falls(self)

    @cached_property
    def rewritten(self) -> tuple[Rewritten, ...]:
        """What sources lost between two of them, by their own dumps."""
        return rewritten_sources(self)

    @cached_property
    def last_holders(self) -> Mapping[str, Kept]:
        """Node -> what was lost elsewhere, and what it may be the last to have."""
        return last_holders(self)

    def lost_in(self, name: str) -> float | None:
        """Seconds until the source has deleted the file that a node needs next, if it goes on as between the last two
        snapshots. None: it does not delete, nobody knows how fast, or the file is gone already.
        """
        source, needed = self.source_of(name), self.last(name)
        speed = self.deleted_per_second.get(source or "")
        if source is None or needed is None or not speed or not self.needs(name):
            return None
        if self.kept_for(name) or self.kept_by_others(name):
            return None
        first = min(self.source_firsts(source), default=None)
        return None if first is None or first > needed[0] else (needed[0] + 1 - first) / speed

    # --- what each node is doing

    def place(self, name: str) -> Place | None:
        """Where a node stands in its tree."""
        source = self.source_of(name)
        return self.trees[source].places.get(name) if source else None

    def offer(self, name: str, back: Collection[str] = ()) -> Offer | None:
        """What the registry would answer if the node registered now, or once the nodes `back` report themselves again; None: its
        source or its place are not known.
        """
        source, last = self.source_of(name), self.seen.last(name)
        if source is None or last is None:
            return None
        # It asks for the database and the hosts that it is told to follow, which need not be the top of the tree.
        asked, hosts = self.told.sources.get(name, (source, ()))
        there = (one.partition("@")[2] for one in self.seen.names if one.startswith(f"{asked}@"))
        database, _, host = name.partition("@")
        # A node makes itself inactive and deletes its own connection before it asks: else it may be offered itself.
        registry = self.seen.registry
        rows = (replace(one, age=0.0) if one.name in back else one for one in registry.nodes)
        alone = Registry(
            tuple(replace(one, state="Inactive") if one.name == name else one for one in rows),
            tuple(pull for pull in registry.pulls if pull.name != name),
            registry.awaited,
            registry.keeps_first_file,
        )
        return register(self.told.rules, alone, Call(database, host, last[0], asked, hosts_asked_for(hosts, there)))

    def offered(self, name: str) -> list[str] | None:
        """Whom the registry would offer a node now, of those that can be asked and have its file, as far as they tell."""
        offer, last = self.offer(name), self.last(name)
        if offer is None or last is None:
            return None
        return [one.name for one in offer.union if self.there(one.name) and self._may_have(one.name, last[0])]

    def _may_have(self, name: str, file: int) -> bool:
        """Whether a node has a file, or had it when it last reported itself: it was asked later, and may have deleted it."""
        row = self.seen.nodes.get(name)
        told = [one for one in (self.seen.first_file(name), row["first_file"] if row else None) if one is not None]
        return (not told or min(told) <= file) and not any(hole >= file for hole in self.seen.holes(name))

    def hold(self, source: str) -> LogHold:
        """Who keeps the source from deleting log files; not named are its own nodes that only need what they write now."""
        if source not in self._holds:
            hosts = [one.partition("@")[2] for one in self.roots(source)]
            held = log_holder(self.told.rules, self.seen.registry, source, hosts, self.told.local(source))
            writing = {one for one in self.roots(source) if self._writes_now(source, one)}
            self._holds[source] = replace(
                held,
                holders=tuple(one for one in held.holders if one not in writing),
                counted={name: file for name, file in held.counted.items() if name not in writing},
            )
        return self._holds[source]

    @property
    def holding_is_known(self) -> bool:
        """Whether any setting shows which version the nodes run, and so whether it keeps log files for nodes that lag."""
        return bool(self.told.versions) or self.told.rules.holding is not None

    def _writes_now(self, source: str, name: str) -> bool:
        """Whether a node of the source is there and in the newest file, as its row says, or will say at its next report."""
        head, last = self.known_head(source), self.last(name)
        reported, age = self.seen.reported(name), self.seen.age(name)
        if head is None or last is None or last[0] < head[0] or not self.there(name):
            return False
        reports = age is not None and age < self.told.stale_after
        return reports or (reported is not None and reported[0] >= head[0])

    def kept_for(self, name: str) -> bool:
        """Whether the source keeps the log file that a node needs next, because the row of that node says so."""
        source, needed = self.source_of(name), self.last(name)
        if source is None or needed is None:
            return False
        held = self.hold(source)
        own = held.counted.get(name) if held.kept_from is not None else None
        return own is not None and own <= needed[0]

    def kept_by_others(self, name: str) -> tuple[str, ...]:
        """The nodes for whose rows the source keeps the log file that a node needs next; empty: it does not, or for that node."""
        source, needed = self.source_of(name), self.last(name)
        if source is None or needed is None or self.kept_for(name):
            return ()
        held = self.hold(source)
        return held.holders if held.kept_from is not None and held.kept_from <= needed[0] else ()

    def has_no_row(self, name: str) -> bool:
        """Whether the registry has no row of a node: the whole table was collected and read."""
        return name not in self.seen.nodes and self._all_listed

    @cached_property
    def _all_listed(self) -> bool:
        files = {row["file"] for row in self.seen.nodes.values()}
        return self.seen.lists_nodes and not any(read.rejected for read in self.case.inputs if read.file in files)

    def contradicts(self, name: str) -> bool:
        """Whether a row says that a node waits and another one that it pulls: who is Pending, or was reset, has no connection."""
        state, age = self.seen.nodes.get(name, {}).get("state"), self.seen.age(name)
        reports = self.seen.answered(name) is True or (age is not None and age < self.told.stale_after)
        waits = state == "Pending" or (state == "Inactive" and reports)
        return waits and bool((at := self.place(name)) and at.parents)

    def fanout(self, name: str) -> int:
        """How many nodes may pull from this one."""
        return self.told.rules.fanout_of(self.source_of(name) or "")

    def children(self, name: str) -> tuple[str, ...]:
        """The nodes that pull from it, as the registry says."""
        return place.children if (place := self.place(name)) else ()

    def parent(self, name: str) -> str | None:
        """The node that it pulls from, as the registry says; of several the one nearest to the source."""
        source, place = self.source_of(name), self.place(name)
        above = [
            (tier, one) for one in (place.parents if place else ()) if source for tier in (self._tier(source, one),)
        ]
        return min(above, key=lambda one: (one[0] is None, one[0] or 0, one[1]))[1] if above else None

    def _tier(self, source: str, name: str) -> int | None:
        return place.tier if (place := self.trees[source].places.get(name)) else None

    @cached_property
    def registering(self) -> dict[str, Registering]:
        """The nodes that look for a source at this very moment, as each does from time to time."""
        return registering(self)

    @cached_property
    def outrun_rows(self) -> dict[str, OldRow]:
        """The nodes whose rows are old though they got on since."""
        return outrun_rows(self)

    @cached_property
    def said_stop(self) -> dict[str, str]:
        """Node -> what its own log says last, if that is the end of its replication."""
        return said_stops(last_messages(self.case, self.seen.label), self.seen.full_names)

    @cached_property
    def states(self) -> dict[str, str]:
        """Node -> what it is doing (`workbench.replication.tier.rules.conditions`); of the source cluster whether it answers."""
        return {name: state_of(self, name) for names in self.members.values() for name in names}
