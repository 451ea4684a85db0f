"""Logs that went back between two snapshots, and the nodes that may be the last to have what was lost.

S@s1   {3:500} in s1   {3:200} in s2   {3:600} in s3    what stood behind {3:200} is lost, whatever S@s1 wrote since
A@a1   {3:500} in s1   {3:500} in s2   {3:500} in s3    still has it, and cuts it off when it connects anew
B@b1   {3:500} in s1   {3:200} in s2   {3:600} in s3    followed its source: it has nothing of it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from workbench.replication.tier.diagnosis.earlier_snapshots import APART, told_anew
from workbench.replication.tier.diagnosis.other_histories import above_of, all_above, is_alike
from workbench.replication.tier.diagnosis.rewritten import shows_again
from workbench.replication.tier.rules.tiers import Lsn

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers
    from workbench.topology.tier_snapshot import TieredSnapshot


class Holder(NamedTuple):
    """A node that may still have what another one lost: the last place at which it stood, and the snapshot that shows it."""

    name: str
    place: Lsn
    snapshot: str


@dataclass(frozen=True)
class Fall:
    """A log that went back.

    snapshot   in which `server` stood at `then`
    low        the lowest place since, at which `lower`, a node of its cluster, stood in snapshot `fallen`
    older      the generations of its newest commits then and in `fallen`, if that fell; `newer`: if it rose
    unseen     other nodes of its cluster that were as far, and of which `fallen` tells nothing
    holders    the nodes below that may still have what was lost
    at_top     it is a node of the source; else a copy, and `kept`: the source was never seen to go back, and is further
    since, at  the numbers of the snapshots in which that history began, and of the first in which it was gone
    """

    source: str
    server: str
    snapshot: str
    then: Lsn
    fallen: str
    lower: str
    low: Lsn
    since: int
    at: int
    older: tuple[int, int] | None = None
    newer: tuple[int, int] | None = None
    unseen: tuple[str, ...] = ()
    holders: tuple[Holder, ...] = ()
    at_top: bool = True
    kept: bool = False

    @property
    def behind(self) -> Lsn:
        """The place behind which the history that was lost may part from the other one."""
        return self.low if self.low < self.then else (0, 0)


class _Peak(NamedTuple):
    at: int
    name: str
    place: Lsn
    generation: int | None


@dataclass
class _Watch:
    """Every snapshot in order, and what nodes told anew in each."""

    shots: Sequence[TieredSnapshot]
    places: dict[str, dict[int, Lsn]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        before: dict[str, TieredSnapshot] = {}
        for number, shot in enumerate(self.shots):
            for name in shot.names:
                place = shot.last(name)
                if place is not None and (name not in before or told_anew(shot, before[name], name)):
                    self.places.setdefault(name, {})[number] = place
                    before[name] = shot

    def cluster(self, source: str) -> list[str]:
        """The nodes of a source database in all snapshots."""
        return sorted(name for name in self.places if name.partition("@")[0] == source)

    def head(self, names: Sequence[str], number: int) -> Lsn | None:
        """The newest place that any of these nodes is known to have had in a snapshot, by old rows, too."""
        return max(filter(None, map(self.shots[number].last, names)), default=None)

    def generation(self, names: Sequence[str], number: int) -> int | None:
        """The newest generation of which any of these nodes told a commit in a snapshot."""
        rows = (self.shots[number].probes.get(name) or {} for name in names)
        known = (row.get("commit_generation") for row in rows)
        return max((generation for generation in known if generation is not None), default=None)

    def falls(self, source: str, names: Sequence[str]) -> Iterator[Fall]:
        """Each time that the log of these nodes, which are one cluster, went back."""
        peak: _Peak | None = None
        found: list[Fall] = []
        for number, shot in enumerate(self.shots):
            here = [(self.places[name][number], name) for name in names if number in self.places[name]]
            head = self.head(names, number)
            if not here or head is None:
                continue
            now = _Peak(number, max(here)[1], head, self.generation(names, number))
            if peak is None or _in_wrong_order(self.shots[peak.at], shot):
                peak = peak or now
                continue
            fell = peak.generation is not None and now.generation is not None and now.generation < peak.generation
            if head >= peak.place and not fell:
                peak = now
                continue
            if not fell and not any(self._went_back(name, number) for _, name in here):
                continue  # who stood there tells nothing now
            name = found[-1].server if found and number in self.places[found[-1].server] else now.name
            lowest = [
                replace(fall, low=head, lower=name, fallen=shot.label) if head < fall.low else fall for fall in found
            ]
            if found and peak.at == found[-1].at and not fell:
                found = lowest  # it stood at its lowest place, and went back further
            else:
                begun = found[-1].at if found else 0
                found = [*lowest, self._fall(source, names, begun, peak, now)]
            peak = now
        yield from found

    def _went_back(self, name: str, number: int) -> bool:
        """Whether a node told a place that it had left behind before, or told its first one: another host took over.

        S@s1 {3:500}, S@s2 {3:450}, then S@s2 {3:460} alone     S@s1 was not collected, and none went back
        """
        before = [place for at, place in self.places[name].items() if at < number]
        return not before or max(before) > self.places[name][number]

    def _fall(self, source: str, names: Sequence[str], begun: int, peak: _Peak, now: _Peak) -> Fall:
        far_then = [name for name in names if self.places[name].get(peak.at) == peak.place]
        server = next((name for name in far_then if now.at in self.places[name]), peak.name)
        both = (peak.generation, now.generation)
        known = (both[0], both[1]) if both[0] is not None and both[1] is not None else None
        shot = self.shots[now.at]
        far = {
            name: max((at for k, at in self.places[name].items() if begun <= k < now.at), default=None)
            for name in names
        }
        unseen = tuple(
            name for name, place in far.items() if place is not None and place > now.place and shot.last(name) is None
        )
        return Fall(
            source,
            server,
            self.shots[peak.at].label,
            peak.place,
            shot.label,
            server if now.at in self.places[server] else now.name,
            now.place,
            begun,
            now.at,
            known if known and known[0] > known[1] else None,
            known if known and known[0] < known[1] else None,
            unseen,
        )

    def cuts(self, name: str, number: int) -> int | None:
        """How often a node counts that it cut off the end of its log."""
        found: int | None = (self.shots[number].probes.get(name) or {}).get("cuts")
        return found

    def asked_first(self, name: str, names: Sequence[str], number: int) -> bool:
        """Whether a node told its place not after these did in a snapshot: what it has beyond them it did not get since."""
        shot = self.shots[number]
        asked = [shot.probes[other]["at"] for other in names if shot.answered_at(other)]
        own = shot.probes[name]["at"] if shot.answered_at(name) else None
        return own is not None and bool(asked) and None not in asked and own <= min(asked)


def _in_wrong_order(before: TieredSnapshot, later: TieredSnapshot) -> bool:
    return before.now is not None and later.now is not None and before.now - later.now >= APART


def log_falls(tiers: Tiers) -> tuple[Fall, ...]:
    """Every fall that the snapshots up to this one show, of sources first; copies that followed their source are none."""
    if len(tiers.history) < 2:
        return ()
    watch = _Watch(tiers.history)
    found: list[Fall] = []
    for source in tiers.sources_so_far:
        cluster = watch.cluster(source)
        below = _below(tiers, watch, source)
        top = [fall for fall in watch.falls(source, cluster) if not shows_again(tiers, fall.server, fall.then, fall.at)]
        copies = [
            replace(fall, at_top=False, kept=not top and _goes_on(watch, cluster, fall))
            for name in below
            for fall in watch.falls(source, [name])
            if not any(above.behind < fall.then and above.at <= fall.at for above in top)
        ]
        held: set[str] = set()
        for fall in (*top, *copies):
            until = min((later.at for later in top if later.at > fall.at), default=len(watch.shots))
            holders = _holders(tiers, watch, fall, until, [name for name in below if name not in held])
            holders = [holder for holder in holders if holder.name != fall.server]
            held |= {holder.name for holder in holders if not fall.kept}
            found.append(replace(fall, holders=tuple(holders)))
    return tuple(found)


def _below(tiers: Tiers, watch: _Watch, source: str) -> list[str]:
    """The nodes below a source, those among them that this snapshot tells nothing of."""
    followed = {name for name, of in tiers.followed_before.items() if of == source}
    if tiers.source_is_known:
        followed = followed - set(tiers.seen.names) | set(tiers.members[source])
    return sorted(name for name in followed & watch.places.keys() if name.partition("@")[0] != source)


def _goes_on(watch: _Watch, cluster: Sequence[str], fall: Fall) -> bool:
    """Whether the source is known to be further than a copy of it ever was, by what it told in the last snapshot."""
    last = len(watch.shots) - 1
    places = [watch.places[name][last] for name in cluster if last in watch.places[name]]
    before = watch.generation(cluster, fall.since), watch.generation(cluster, last)
    return bool(places) and max(places) >= fall.then and (None in before or before[0] == before[1])


def _holders(tiers: Tiers, watch: _Watch, fall: Fall, until: int, below: Sequence[str]) -> list[Holder]:
    found: dict[str, Holder] = {}
    moved: dict[str, Holder] = {}
    for name in below:
        whole = is_alike(tiers, fall.source, name) and not tiers.logs.own_records(name)
        held = None if whole else _held(watch, fall, until, name)
        if held is not None:
            (moved if held[1] else found)[name] = held[0]
    # What a node got since from one that still has what was lost is of that history, too.
    for name, holder in moved.items():
        above = all_above(name, lambda node: above_of(tiers, node))
        if any(found[node].place >= holder.place for node in above & found.keys()):
            found[name] = holder
    return [found[name] for name in sorted(found)]


def _held(watch: _Watch, fall: Fall, until: int, name: str) -> tuple[Holder, bool] | None:
    """Where a node stood last that may still have what was lost, and whether it went on since as those do that joined again."""
    base: tuple[int, Lsn] | None = None
    moved, cluster = False, watch.cluster(fall.source)
    for number, place in watch.places[name].items():
        if number < fall.since:
            continue
        head = watch.head(cluster, number)
        if number < fall.at:
            base = (number, place) if place > fall.behind else None
        elif place <= fall.behind:
            return None
        elif base is None:
            beyond = head is not None and place > head and watch.asked_first(name, cluster, number)
            base = (number, place) if beyond and number < until else None
        else:
            counts = watch.cuts(name, base[0]), watch.cuts(name, number)
            joined = counts[0] is not None and counts[1] is not None and counts[1] > counts[0]
            if joined and place != base[1] and (head is None or place <= head):
                return None
            # Behind its source it goes on with what that has now; of what lies beyond, the source has sent it nothing.
            beyond = head is not None and place > head and watch.asked_first(name, cluster, number)
            level = head is not None and (place == head or place > max(head, fall.then))
            moved = moved or (place > base[1] and not beyond and (base[0] >= fall.at or level))
            base = number, place
    return (Holder(name, base[1], watch.shots[base[0]].label), moved) if base is not None else None


class Kept(NamedTuple):
    """What a node may be the last to have: who lost it, from which place on the two logs may part, and how that is known."""

    holder: Holder
    lost_by: str
    behind: Lsn
    says: str


def last_holders(tiers: Tiers) -> Mapping[str, Kept]:
    """Node -> what it may be the last to have, by dumps or by places alone."""
    show = partial(_shown, tiers)
    found: dict[str, Kept] = {}
    for lost in tiers.rewritten:
        says = f"{lost.server} had records in snapshot {lost.snapshot} that are gone from it in snapshot {lost.since}"
        for name, label in lost.keepers.items():
            found.setdefault(name, Kept(Holder(name, lost.places[-1], label), lost.server, lost.places[0], says))
    for fall in (fall for fall in tiers.falls if not fall.kept):
        says = f"{fall.server} stood at {show(fall.then)} in snapshot {fall.snapshot}, and was "
        says += f"back at {show(fall.low)}" if fall.low < fall.then else "of another history"
        for holder in fall.holders:
            found.setdefault(holder.name, Kept(holder, fall.server, fall.behind, f"{says} in snapshot {fall.fallen}"))
    return found


def _shown(tiers: Tiers, place: Lsn) -> str:
    system = tiers.shown.system
    return system.show(system.order_key("", *place))
