"""How far a source is at least, where rows of the registry tell more of it than its own last report does.

S@s1  reported 58 s ago  {9:500}      the source is at {9:900} at least: what A@a1 has, it had before
A@a1  reported  2 s ago  {9:900}      a distance to {9:500} would be too small
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.replication.tier.rules.tiers import Lsn

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def proven_beyond(tiers: Tiers, source: str) -> Lsn | None:
    """The newest place of a source that a node below it reported after all nodes of the source told of themselves.

    None: none goes further, or it may be of another history: its log was cut back since, or is known to have parted.
    """
    return max((place for place, _ in _reported_beyond(tiers, source)), default=None)


def behind_beyond(tiers: Tiers, source: str) -> Iterator[tuple[str, Lsn]]:
    """The nodes below a source that told, not before another one was seen beyond its end, that they are not as far; and how far.

    S@s1 reported 50 min ago {9:1000}, A@a1 5 s ago {9:1400}; A@a2 answers {9:1000}: 400 bytes lack there
    """
    found = _reported_beyond(tiers, source)
    for name in tiers.members[source] if found else ():
        last, age, now = tiers.last(name), tiers.seen.age(name), tiers.seen.now
        if name in {*tiers.roots(source), *tiers.guessed, *tiers.seen.cut_since} or last is None or now is None:
            continue
        asked = tiers.seen.probes[name]["at"] if tiers.seen.answered_at(name) else None
        told = 0.0 if asked is not None and asked >= now else age
        proven = [place for place, at in found if told is not None and told <= at and place > last]
        if proven:
            yield name, max(proven)


def _reported_beyond(tiers: Tiers, source: str) -> list[tuple[Lsn, float]]:
    """The places beyond the end of a source that nodes below it reported, and how many seconds ago."""
    head, roots = tiers.known_head(source), tiers.roots(source)
    if head is None or not tiers.source_is_known:
        return []
    ages = [tiers.seen.since_report(name) for name in roots]
    youngest = min((age for age in ages if age is not None), default=None)
    if youngest is None or any(tiers.seen.probed(name) or name in tiers.seen.logged for name in roots):
        return []  # what a node answered, or its log, has a time of another clock
    found: list[tuple[Lsn, float]] = []
    for name in tiers.members[source]:
        place, age = tiers.seen.reported(name), tiers.seen.since_report(name)
        apart = name in tiers.logs.spoilt | tiers.not_elected | tiers.seen.cut_since.keys()
        apart = apart or tiers.seen.outdated(name)
        if name not in roots and not apart and place is not None and age is not None and 0 <= age < youngest:
            found.append((place, age))
    return [(place, age) for place, age in found if place > head]
