"""How far a source is at least, where rows of the registry tell more of it than its own last report does.

S@s1  reported 58 s ago  {9:500}      the source is at {9:900} at least: what A@a1 has, it had before
A@a1  reported  2 s ago  {9:900}      a distance to {9:500} would be too small
"""

from __future__ import annotations

from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.rules.tiers import Lsn


def proven_beyond(tiers: Tiers, source: str) -> Lsn | None:
    """The newest place of a source that a node below it reported after all nodes of the source told of themselves.

    None: none goes further, or it may be of another history: its log was cut back since, or is known to have parted.
    """
    head, roots = tiers.known_head(source), tiers.roots(source)
    if head is None or not tiers.source_is_known:
        return None
    ages = [tiers.seen.since_report(name) for name in roots]
    youngest = min((age for age in ages if age is not None), default=None)
    if youngest is None or any(tiers.seen.probed(name) or name in tiers.seen.logged for name in roots):
        return None  # what a node answered, or its log, has a time of another clock
    found: list[Lsn] = []
    for name in tiers.members[source]:
        place, age = tiers.seen.reported(name), tiers.seen.since_report(name)
        apart = name in tiers.logs.spoilt | tiers.not_elected | tiers.seen.cut_since.keys()
        apart = apart or tiers.seen.outdated(name)
        if name not in roots and not apart and place is not None and age is not None and 0 <= age < youngest:
            found.append(place)
    return max((place for place in found if place > head), default=None)
