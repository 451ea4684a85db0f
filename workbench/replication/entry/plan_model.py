"""A model of servers whose entries carry the ids of their changes: which of these each server shows, and may forget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.diagnosis.missed_lots import MissedLots
from workbench.engine.state_fates import Fate
from workbench.replication.entry.diagnosis.domains_told import with_domain
from workbench.replication.entry.diagnosis.pull_outcomes import links_between, lots_of
from workbench.replication.entry.diagnosis.shown_changes import changes_shown
from workbench.replication.entry.diagnosis.state_comparison import now_at, states_of
from workbench.replication.entry.rules.repair_model import PullModel
from workbench.rules.fresh_positions import FreshPositions
from workbench.rules.repair_model import ChangeGroup, MissingAt, Model, Server
from workbench.rules.vectors import last
from workbench.topology.topology import Replica

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def model_of_entries(context: DetectorContext, suffix: str | None) -> Model:
    """The model of one domain."""
    return _FromEntries(context, suffix).model()


class _FromEntries(MissedLots):
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
