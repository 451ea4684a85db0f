"""What the generations of newest commits tell: along one log they never fall."""

from __future__ import annotations

from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def older_source(tiers: Tiers, name: str) -> str | None:
    """A node of the source that is as far as another node, or further, and whose newest commit is of an older generation than
    that one's, as those of all its source are: these are two histories.
    """
    roots = [one for one in tiers.roots(tiers.source_of(name) or "") if one != name]
    mine, generation = tiers.seen.probed(name, "commit"), _generation(tiers, name)
    told = {one: found for one in roots if (found := _generation(tiers, one)) is not None}
    if mine is None or generation is None or not told or max(told.values()) >= generation:
        return None
    return next((one for one in told if (tiers.seen.probed(one, "commit") or (0, 0)) >= mine), None)


def _generation(tiers: Tiers, name: str) -> int | None:
    found: int | None = (tiers.seen.probes.get(name) or {}).get("commit_generation")
    return found
