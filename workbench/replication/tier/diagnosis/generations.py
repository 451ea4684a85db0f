"""What the generations of newest commits tell: along one log they never fall."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from workbench.topology.tier_snapshot import TieredSnapshot

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def older_source(tiers: Tiers, name: str) -> str | None:
    """A node of the source that is as far as another node, or further, and whose newest commit is of an older generation than
    that one's, as those of all its source are: these are two histories.
    """
    roots = [one for one in tiers.roots(tiers.source_of(name) or "") if one != name]
    mine, generation = tiers.seen.probed(name, "commit"), _generation(tiers.seen, name)
    told = {one: found for one in roots if (found := _generation(tiers.seen, one)) is not None}
    if mine is None or generation is None or not told or max(told.values()) >= generation:
        return None
    return next((one for one in told if (tiers.seen.probed(one, "commit") or (0, 0)) >= mine), None)


def newer_root(seen: TieredSnapshot, roots: Iterable[str], name: str) -> str | None:
    """A node of the source that is no further than another node, and whose newest commit is of a newer generation: that one is
    of another history, and the higher generation was elected.
    """
    mine, generation = seen.probed(name, "commit"), _generation(seen, name)
    if mine is None or generation is None:
        return None
    for root in roots:
        theirs, newer = seen.probed(root, "commit"), _generation(seen, root)
        if root != name and theirs is not None and newer is not None and generation < newer and mine >= theirs:
            return root
    return None


def not_elected(seen: TieredSnapshot, names: Sequence[str], roots: Sequence[str]) -> Iterator[str]:
    """The nodes that are of such another history by their answers, where no log of theirs was collected."""
    yield from (name for name in names if name not in seen.logs and newer_root(seen, roots, name) is not None)


def _generation(seen: TieredSnapshot, name: str) -> int | None:
    found: int | None = (seen.probes.get(name) or {}).get("commit_generation")
    return found


def cut_without_it(tiers: Tiers, name: str) -> bool:
    """Whether a source cut its log off, or writes a newer generation, or a copy of it went back, and the node did not follow
    there: whether the source still has where the node ends, nothing tells but their logs.
    """
    own = tiers.seen.probes.get(name)
    if own is None or name in tiers.logs.parts or name in (roots := tiers.roots(tiers.source_of(name) or "")):
        return False

    def cuts(one: str) -> bool:
        known = (shot.probes[one]["cuts"] for shot in tiers.history if one in shot.probes)
        counts = [count for count in known if count is not None]
        return any(later > before for before, later in pairwise(counts))

    mine = own["commit_generation"]
    newer = ((tiers.seen.probes.get(one) or {}).get("commit_generation") for one in roots)
    fell = any(fall.kept and name == holder.name for fall in tiers.falls for holder in fall.holders)
    return (
        fell
        or (any(map(cuts, roots)) and not cuts(name))
        or any(mine is not None and one is not None and one > mine for one in newer)
    )
