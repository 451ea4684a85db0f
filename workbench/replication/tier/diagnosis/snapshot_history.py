"""The snapshots of a case up to one of them: what it tells, and what earlier ones tell of nodes that are silent in it.

S@s1   answers {3:800} in s1   does not answer in s2, its row of before s1 says {3:500}    it stood at {3:800}
A@a1   pulls from S@s1 in s1   s2 has no row of S@s1, and none that A@a1 pulls             A@a1 is no source by that
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from workbench.case.case import Case
from workbench.replication.tier.diagnosis.earlier_snapshots import snapshots_up_to, told_anew
from workbench.replication.tier.rules.settings import Tiering
from workbench.replication.tier.rules.tiers import Lsn
from workbench.topology.tier_snapshot import TieredSnapshot, tiered_snapshot
from workbench.topology.tier_sources import followed_source, known_sources
from workbench.topology.topology import Topology


class SnapshotHistory:
    """The snapshots up to one of them, in order."""

    def __init__(self, case: Case, shown: Topology) -> None:
        self.case, self.shown = case, shown
        seen = tiered_snapshot(case, shown.snapshot)
        self._before = snapshots_up_to(case, seen)
        self.seen: TieredSnapshot = replace(seen, stood=_stood(self._before, seen))

    @cached_property
    def tiering(self) -> Tiering:
        """What holds for this system."""
        assert self.shown.system.tiering is not None
        found: Tiering = self.shown.system.tiering()
        return found

    @cached_property
    def before(self) -> TieredSnapshot | None:
        """The snapshot given before this one."""
        labels = list(self.case.snapshots)
        at = labels.index(self.seen.label)
        known = {shot.label: shot for shot in self._before}
        return (known.get(labels[at - 1]) or tiered_snapshot(self.case, labels[at - 1])) if at else None

    @cached_property
    def history(self) -> list[TieredSnapshot]:
        """The snapshots before this one, as far as they were taken before it, and this one."""
        return [*self._before, self.seen]

    @cached_property
    def _placed_before(self) -> tuple[frozenset[str], Mapping[str, str]]:
        tops, followed = set[str](), dict[str, str]()
        for shot in self._before:
            settings = self.tiering.told(shot.settings)
            follows = {} if shot.pulls else {**shot.said_sources}
            follows |= {name: database for name, (database, _) in settings.sources.items()}
            if not (above := known_sources(shot, follows)):
                continue
            placed, guessed = followed_source(shot, above, follows, settings.outside)
            below = {name: of for name, of in placed.items() if name.partition("@")[0] != of and name not in guessed}
            tops |= set(below.values())
            followed |= below
        return frozenset(tops), followed

    @property
    def sources_before(self) -> frozenset[str]:
        """The databases that others followed in an earlier snapshot, and that followed none."""
        return self._placed_before[0]

    @property
    def followed_before(self) -> Mapping[str, str]:
        """Node -> the database at the top of its tree in the newest earlier snapshot that tells it."""
        return self._placed_before[1]

    @cached_property
    def followed_unseen(self) -> Mapping[str, str]:
        """Node -> the database that it followed, by an earlier snapshot alone: this one tells nothing of that, nor from whom the
        node pulls.
        """
        here = {name.partition("@")[0] for name in self.seen.names}
        pulling = {pull.name for pull in (*self.seen.pulls, *self.seen.awaited)}
        followed = self.followed_before
        return {
            name: followed[name]
            for name in self.seen.names
            if name in followed and name not in pulling and followed[name] not in here
        }


def _stood(before: list[TieredSnapshot], seen: TieredSnapshot) -> dict[str, tuple[Lsn, str]]:
    """Node that tells nothing anew in a snapshot -> where it told last that it stood, and in which one, if that is further."""
    found: dict[str, tuple[Lsn, str]] = {}
    for name in (name for name in seen.names if name not in seen.logs):
        newest: tuple[Lsn, TieredSnapshot] | None = None
        for shot in before:
            place = shot.last(name)
            if place is not None and (newest is None or told_anew(shot, newest[1], name)):
                newest = place, shot
        if newest and not told_anew(seen, newest[1], name) and newest[0] > (seen.last(name) or (0, 0)):
            found[name] = newest[0], newest[1].label
    return found
