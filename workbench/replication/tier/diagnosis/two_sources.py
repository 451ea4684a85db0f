"""Nodes of which it is in doubt which of two sources they follow: what such a node lacks nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


class Doubt(NamedTuple):
    """What speaks for another source than the one that the registry's row leads to.

    source  that other source
    kin     a node of the same database that hangs on it; None: the node's own settings name it
    """

    source: str
    kin: str | None


def placed_by_kin(tiers: Tiers) -> frozenset[str]:
    """The nodes of which nothing but the name of their database tells which source they follow: others of it do."""
    seen = tiers.seen
    told = {pull.name for pull in (*seen.pulls, *seen.awaited)} | seen.nodes.keys() | tiers.followed_as_told
    return frozenset(
        name
        for source, names in tiers.members.items()
        for name in names
        if name not in told and name.partition("@")[0] != source and name not in tiers.guessed
    )


def doubted_sources(tiers: Tiers) -> Iterator[tuple[str, Doubt]]:
    """The nodes whose settings name another source than the registry; and those that cannot be served below their source,
    where another node of their database hangs on another one: a row of the registry may be wrong, or old.
    """
    if len(tiers.sources) < 2:
        return
    hanging: dict[str, dict[str, str]] = {}
    for source, names in tiers.members.items():
        for name in names:
            place = tiers.place(name)
            if name not in tiers.roots(source) and place and place.parents:
                hanging.setdefault(name.partition("@")[0], {}).setdefault(source, name)
    for source, names in tiers.members.items():
        for name in names:
            said, _ = tiers.told.sources.get(name, (None, ()))
            others = {other: kin for other, kin in hanging.get(name.partition("@")[0], {}).items() if other != source}
            if name in tiers.roots(source):
                continue
            if said is not None and said != source and said in tiers.sources:
                yield name, Doubt(said, None)
            elif said is None and others and tiers.lacks_file(name):
                yield name, Doubt(*min(others.items()))
