"""What earlier snapshots tell: what logs lacked, where no later dump shows the place, and how fast files are deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from workbench.case.case import Case
from workbench.replication.tier.diagnosis.node_logs import NodeLogs
from workbench.replication.tier.rules.physical_log import Form, Place
from workbench.topology.tier_snapshot import TieredSnapshot, tiered_snapshot

Span = tuple[Place, Place]

APART = timedelta(minutes=1)
"""Clocks of two snapshots that differ by less tell no order: one may be that of a registry, the other that of a node."""


@dataclass(frozen=True)
class Hole:
    """Records that the log of a node lacked.

    snapshot    the last one that shows it
    after, until  the records before and behind it; `first`, `last`: those that it lacked, as far as they are known
    count       how many these are; None: nothing tells
    """

    server: str
    snapshot: str
    after: Place
    until: Place
    first: Place
    last: Place
    count: int | None


@dataclass(frozen=True)
class Parting:
    """Other records than those of its source that the log of a node held.

    snapshot   the last one that shows it
    reference  whose log it was held against
    places     of them, as far as they are listed; `count`: how many they were
    """

    server: str
    snapshot: str
    reference: str
    places: Sequence[Place]
    count: int


@dataclass(frozen=True)
class Earlier:
    """What earlier snapshots prove of logs, where no later dump shows the place."""

    holes: Sequence[Hole]
    partings: Sequence[Parting]

    @property
    def servers(self) -> set[str]:
        """The nodes that it is about."""
        return {hole.server for hole in self.holes} | {parting.server for parting in self.partings}


def shown_before(
    case: Case, seen: TieredSnapshot, form: Form, sources: Mapping[str, Sequence[str]], limit: int
) -> Earlier:
    """That of all snapshots before this one. A later dump that reaches over the place speaks for itself."""
    labels = list(case.snapshots)
    shown: dict[str, list[Span]] = {}
    _take(case, seen, shown)
    found: list[Hole] = []
    partings: dict[str, Parting] = {}
    for label in reversed(labels[: labels.index(seen.label)]):
        then = tiered_snapshot(case, label)
        names = [
            name for name in sorted(then.logged) if name in sources and not _covered(shown, name, then.logged[name])
        ]
        needed = {one for name in names for one in (name, *sources[name]) if one in then.logs}
        if names:
            logs = NodeLogs(
                case, replace(then, logs={one: then.logs[one] for one in sorted(needed)}), form, sources, limit
            )
            told = [hole for name in names for hole in _holes(logs, name, label)]
            # A hole that an even later snapshot shows, too, is told once.
            known = {(hole.server, hole.after) for hole in found}
            found += [
                hole
                for hole in told
                if not _covered(shown, hole.server, (hole.after, hole.until)) and (hole.server, hole.after) not in known
            ]
            for name in (one for one in names if one not in partings and not _cut_since(case, label, seen, one)):
                parting = _parting(logs, name, label)
                if parting and not _covered(shown, name, (parting.places[0], parting.places[-1])):
                    partings[name] = parting
        _take(case, then, shown)
    return Earlier(
        sorted(found, key=lambda hole: (hole.server, hole.after)), [partings[one] for one in sorted(partings)]
    )


def _cut_since(case: Case, label: str, seen: TieredSnapshot, name: str) -> bool:
    """Whether a node counts more cuts of its log than in an earlier snapshot: what it had of its own is gone then."""
    labels = list(case.snapshots)
    between = [tiered_snapshot(case, one) for one in labels[labels.index(label) : labels.index(seen.label)]]
    counts = [shot.probes[name]["cuts"] for shot in (*between, seen) if name in shot.probes]
    counts = [count for count in counts if count is not None]
    return any(later > before for before, later in pairwise(counts)) or name in seen.cut_since


def _parting(logs: NodeLogs, name: str, label: str) -> Parting | None:
    """What the log of a node proves against that of its source. Two logs of one cluster are another matter."""
    reference, places = logs.reference(name), logs.other_history(name)
    if reference is None or not places or any(one.rejected for one in logs.inputs[name]) or logs.apart_above(name):
        return None
    return Parting(name, label, reference, places, logs.count_other(name))


def _take(case: Case, seen: TieredSnapshot, shown: dict[str, list[Span]]) -> None:
    for name, inputs in seen.logs.items():
        for one in inputs:
            if parts := case.parts("records", one):
                ends = [(tuple(part["first"]), tuple(part["last"])) for part in parts]
                shown.setdefault(name, []).append((min(first for first, _ in ends), max(last for _, last in ends)))


def _covered(shown: Mapping[str, Sequence[Span]], name: str, span: Span) -> bool:
    return any(first <= span[0] and span[1] <= last for first, last in shown.get(name, ()))


def _holes(logs: NodeLogs, name: str, label: str) -> Iterator[Hole]:
    """What its own records prove, and what the log of its source shows besides. Rows that were not read prove nothing."""
    if any(one.rejected for one in logs.inputs[name]) or logs.apart_above(name):
        return
    lacking = [tuple(row["position"]) for row in logs.lacking(name)]
    for gap in logs.own_gaps(name):
        inside = [place for place in lacking if gap.after < place < gap.next]
        lacking = [place for place in lacking if place not in inside]
        ends = (inside[0], inside[-1], len(inside)) if inside else (gap.expected, gap.next, None)
        yield Hole(name, label, gap.after, gap.next, *ends)
    if lacking:
        yield Hole(name, label, lacking[0], lacking[-1], lacking[0], lacking[-1], len(lacking))


def snapshots_up_to(case: Case, seen: TieredSnapshot) -> list[TieredSnapshot]:
    """The snapshots before this one, as far as their clocks do not say that they were taken after it."""
    return [then for then in _given_before(case, seen) if not _taken_after(then, seen)]


def taken_later(case: Case, seen: TieredSnapshot) -> list[TieredSnapshot]:
    """The snapshots given before this one whose clock was further: they were taken after it."""
    return [then for then in _given_before(case, seen) if _taken_after(then, seen)]


def _given_before(case: Case, seen: TieredSnapshot) -> list[TieredSnapshot]:
    labels = list(case.snapshots)
    return [tiered_snapshot(case, label) for label in labels[: labels.index(seen.label)]]


def _taken_after(then: TieredSnapshot, seen: TieredSnapshot) -> bool:
    return then.now is not None and seen.now is not None and then.now - seen.now >= APART


def told_anew(seen: TieredSnapshot, before: TieredSnapshot, name: str) -> bool:
    """Whether a node told its place anew since an earlier snapshot: it was asked both times, or what it tells is younger."""
    if seen.answered_at(name) and before.answered_at(name):
        return True
    then, now = _told_at(before, name), _told_at(seen, name)
    return then is not None and now is not None and now > then


def _told_at(seen: TieredSnapshot, name: str) -> datetime | None:
    """When a node told last where it stands: it answered, or reported itself."""
    asked = seen.probes[name]["at"] if seen.probed(name) else None
    row = seen.nodes.get(name)
    times: list[datetime | None] = [asked, row["reported_at"] if row else None]
    return max((at for at in times if at is not None), default=None)


def deletion_speeds(
    before: TieredSnapshot | None, seen: TieredSnapshot, clusters: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Source database -> log files that its nodes deleted in a second, since the snapshot before; `clusters`: these nodes."""
    if before is None or before.now is None or seen.now is None or seen.now <= before.now:
        return {}
    found: dict[str, float] = {}
    for source, roots in clusters.items():
        then, now = (
            max((one for name in roots if (one := shot.first_file(name)) is not None), default=None)
            for shot in (before, seen)
        )
        if then is not None and now is not None and now > then:
            found[source] = (now - then) / (seen.now - before.now).total_seconds()
    return found
