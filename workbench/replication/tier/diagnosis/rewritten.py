"""Sources whose own log holds other records now than in an earlier snapshot, or ends before those: a log only grows.

S@s1 in snapshot s1  1 2 3 4 5 6        what was committed as 4, 5, 6 is gone from S@s1;
S@s1 now             1 2 3 7 8 9        A@a1 still has it, until it connects anew
A@a1 now             1 2 3 4 5 6
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.intake.inputs import Input
from workbench.replication.tier.diagnosis.earlier_snapshots import taken_later
from workbench.replication.tier.diagnosis.node_logs import NodeLogs
from workbench.replication.tier.rules.physical_log import Place
from workbench.topology.tier_snapshot import tiered_snapshot

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


@dataclass(frozen=True)
class Rewritten:
    """What the dump of a node of a source showed in an earlier snapshot, and its dump of now does not.

    places   of these records, as far as they are listed; `count`: how many they are
    ends     where its dump ends now, if that is all: it may only have ended early. None: other records stand there now
    keepers  the nodes below whose logs still have what stood there
    generations  of the newest commits then and now, where both are known
    """

    server: str
    snapshot: str
    places: Sequence[Place]
    count: int
    ends: Place | None
    keepers: tuple[str, ...]
    generations: tuple[int, int] | None


def rewritten_sources(context: DetectorContext) -> Mapping[str, Rewritten]:
    """Node of a source -> what it lost since the newest earlier snapshot that shows it."""
    tiers = context.verdicts.tiers
    if tiers is None or not tiers.source_is_known:
        return {}
    return {one.server: one for source in tiers.sources for one in _rewritten(tiers, source)}


def kept_by(found: Mapping[str, Rewritten], name: str) -> Rewritten | None:
    """What the source of a node lost, if the log of the node still has it."""
    return next((one for one in found.values() if name in one.keepers), None)


def _rewritten(tiers: Tiers, source: str) -> Iterator[Rewritten]:
    labels, later = list(tiers.case.snapshots), {then.label for then in taken_later(tiers.case, tiers.seen)}
    before = [label for label in labels[: labels.index(tiers.seen.label)] if label not in later]
    left = [name for name in tiers.roots(source) if name in tiers.logs.parts and _whole(tiers.seen.logs[name])]
    for label in reversed(before):
        then = tiered_snapshot(tiers.case, label)
        for name in [one for one in left if one in then.logs and _whole(then.logs[one])]:
            if one := _since(tiers, source, name, label, then.logs[name]):
                left.remove(name)
                yield one


def _whole(inputs: Sequence[Input]) -> bool:
    return not any(one.rejected for one in inputs)


def _since(tiers: Tiers, source: str, name: str, label: str, then: list[Input]) -> Rewritten | None:
    old = f"{name} of {label}"

    def held_against(reference: str, others: Sequence[str]) -> NodeLogs:
        logs = {old: then} | {one: tiers.seen.logs[one] for one in (reference, *others) if one != old}
        of = {one: [reference] for one in logs}
        return NodeLogs(tiers.case, replace(tiers.seen, logs=logs), tiers.tiering.form, of, tiers.limit)

    logs = held_against(name, [old])
    both, span = logs.beside_source(old), logs.span(name)
    if both is None or span is None or both.last_same is None:
        return None
    other, head = logs.other_history(old), tiers.known_head(source)
    shorter = both.ahead.first and (head is None or both.ahead.first[-1] > head)
    if not other and not shorter:
        return None
    places = other or both.ahead.first
    below = [one for one in tiers.members[source] if one in tiers.logs.parts and one not in tiers.roots(source)]
    kept = held_against(old, below)
    keepers = tuple(one for one in below if _has(kept, one, places))
    told = logs.generations([old, name])
    generations = (told[old], told[name]) if len(told) == 2 else None
    count = logs.count_other(old) if other else both.ahead.count
    return Rewritten(name, label, places, count, None if other else span[1], keepers, generations)


def _has(kept: NodeLogs, name: str, places: Sequence[Place]) -> bool:
    """Whether a log has the records at these places as the earlier dump has them, at least the first."""
    both = kept.beside_source(name)
    same = both is not None and both.last_same is not None and both.last_same >= places[0]
    return same and places[0] not in kept.other_history(name)
