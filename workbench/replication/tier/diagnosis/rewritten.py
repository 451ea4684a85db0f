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
from workbench.replication.tier.diagnosis.node_logs import NodeLogs
from workbench.replication.tier.rules.physical_log import Place

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers
    from workbench.topology.tier_snapshot import TieredSnapshot


@dataclass(frozen=True)
class Rewritten:
    """What the dump of a node of a source showed in an earlier snapshot, and its newest dump, of snapshot `since`, does not.

    places   of these records, as far as they are listed; `count`: how many they are
    ends     where its newest dump ends, if that is all: it may only have ended early. None: other records stand there
    keepers  the nodes below whose newest dumps still have what stood there, and the snapshots of these
    generations  of the newest commits then and since, where both are known
    """

    server: str
    snapshot: str
    since: str
    places: Sequence[Place]
    count: int
    ends: Place | None
    keepers: Mapping[str, str]
    generations: tuple[int, int] | None


def rewritten_sources(tiers: Tiers) -> tuple[Rewritten, ...]:
    """What the nodes of sources lost, by their dumps of all snapshots: of each history the newest dump that shows it."""
    found: list[Rewritten] = []
    for source in tiers.sources_so_far:
        dumped = {name for shot in tiers.history for name in shot.logs}
        cluster = sorted(name for name in dumped if name.partition("@")[0] == source)
        below = {name for name, of in tiers.followed_before.items() if of == source} | {*tiers.members.get(source, ())}
        for name in cluster:
            found += _rewritten(tiers, name, cluster, sorted(below & dumped - {*cluster}))
    return tuple(found)


def _rewritten(tiers: Tiers, name: str, cluster: Sequence[str], below: Sequence[str]) -> Iterator[Rewritten]:
    """What the newest dump of a node, of this snapshot or an earlier one, does not show, and those before it do."""
    dumps = [shot for shot in tiers.history if name in shot.logs and _whole(shot.logs[name])]
    shown: list[TieredSnapshot] = []
    for then in reversed(dumps[:-1]):
        lost = _since(tiers, name, then, dumps[-1], cluster, below)
        # What a later dump shows, too, is told of that one.
        if lost and all(_since(tiers, name, then, later, cluster, ()) for later in shown):
            shown.append(then)
            yield lost


def _whole(inputs: Sequence[Input]) -> bool:
    return not any(one.rejected for one in inputs)


def _since(
    tiers: Tiers, name: str, then: TieredSnapshot, now: TieredSnapshot, cluster: Sequence[str], below: Sequence[str]
) -> Rewritten | None:
    old = f"{name} of {then.label}"
    logs = _held_against(tiers, now, name, {old: then.logs[name], name: now.logs[name]})
    both, span = logs.beside_source(old), logs.span(name)
    if both is None or span is None or both.last_same is None:
        return None
    other, head = logs.other_history(old), max(filter(None, map(now.last, cluster)), default=None)
    shorter = both.ahead.first and (head is None or both.ahead.first[-1] > head)
    if not other and not shorter:
        return None
    places = other or both.ahead.first
    shots = tiers.history[tiers.history.index(then) :]
    newest = {node: (shot.label, shot.logs[node]) for shot in shots for node in below if node in shot.logs}
    copies = {node: inputs for node, (_, inputs) in newest.items()}
    kept = _held_against(tiers, now, old, {old: then.logs[name], **copies})
    keepers = {node: label for node, (label, _) in newest.items() if _has(kept, node, places)}
    newer = logs.generations([old, name])
    generations = (newer[old], newer[name]) if len(newer) == 2 else None
    count = logs.count_other(old) if other else both.ahead.count
    return Rewritten(name, then.label, now.label, places, count, None if other else span[1], keepers, generations)


def _held_against(tiers: Tiers, shot: TieredSnapshot, reference: str, logs: dict[str, list[Input]]) -> NodeLogs:
    """Dumps, each beside one of them."""
    of = {name: [reference] for name in logs}
    return NodeLogs(tiers.case, replace(shot, logs=logs), tiers.tiering.form, of, tiers.limit)


def shows_again(tiers: Tiers, name: str, place: Place, since: int) -> bool:
    """Whether the newest dump of a node, from a snapshot on, has all that one before that showed up to a place."""
    dumps = [(at, shot) for at, shot in enumerate(tiers.history) if name in shot.logs and _whole(shot.logs[name])]
    if not dumps or dumps[-1][0] < since:
        return False
    now, old = dumps[-1][1], f"{name} before"
    for then in (shot for at, shot in dumps if at < since and shot.logged[name][1] >= place):
        both = _held_against(tiers, now, name, {old: then.logs[name], name: now.logs[name]}).beside_source(old)
        if both is not None and both.last_same is not None and both.last_same >= place:
            return True
    return False


def _has(kept: NodeLogs, name: str, places: Sequence[Place]) -> bool:
    """Whether a log has the records at these places as the earlier dump has them, at least the first."""
    both = kept.beside_source(name)
    same = both is not None and both.last_same is not None and both.last_same >= places[0]
    return same and places[0] not in kept.other_history(name)
