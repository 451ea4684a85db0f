"""Which nodes of a tree hold another log than the one that counts as that of the source, and which were held against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def of_another_history(tiers: Tiers, source: str) -> set[str]:
    """The nodes of a tree that are known to hold another log than the one that counts as that of the source."""
    found = {name for name in tiers.members[source] if tiers.logs.other_history(name) or name in tiers.not_elected}
    for apart in tiers.logs.apart:
        if apart.elected is not None and tiers.source_of(apart.elected) == source:
            found |= {name for history in apart.histories if apart.elected not in history for name in history}
    return found


def above_of(tiers: Tiers, name: str) -> Iterable[str]:
    """The nodes that one pulls from, as the registry says."""
    return place.parents if (place := tiers.place(name)) else ()


def all_above(name: str, parents: Callable[[str], Iterable[str]]) -> set[str]:
    """The nodes that one pulls from, over others or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        fresh = {*parents(waiting.pop())} - found
        found |= fresh
        waiting += fresh
    return found - {name}


def fed_with_another(tiers: Tiers, name: str) -> list[str]:
    """The nodes of another history from which a node gets its log, itself among them."""
    source = tiers.source_of(name)
    above = all_above(name, lambda one: above_of(tiers, one))
    return sorted(of_another_history(tiers, source) & {name, *above}) if source else []


def is_alike(tiers: Tiers, source: str, name: str) -> bool:
    """Whether the log of a node is that of the source, or was held against it and is alike up to its end."""
    if name in tiers.roots(source):
        return True
    both, span = tiers.logs.beside_source(name), tiers.logs.span(name)
    return both is not None and span is not None and span[1] == tiers.last(name) and not tiers.logs.other_history(name)
