"""Rows of the registry that are old though their nodes got on since: what stands still there are the reports alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from workbench.replication.tier.diagnosis.commit_times import got_a_commit

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


@dataclass(frozen=True)
class OldRow:
    """A node that answers from beyond the place of its row, which is older than the limit.

    goes_on  its row tells nothing of it: it got something that was made after reports were due, or no row is any younger
    whole    the rows of all nodes that answer are old: the registry itself stands still
    """

    goes_on: bool
    whole: bool = False


def outrun_rows(tiers: Tiers) -> dict[str, OldRow]:
    """Node -> what is known of it. One that was stopped between two reports stands a little beyond its row, too."""
    found: dict[str, OldRow] = {}
    for source in tiers.sources:
        found |= dict.fromkeys(registry_stands_still(tiers, source), OldRow(goes_on=True, whole=True))
        for name in (one for one in tiers.members[source] if one not in found):
            age, told, reported = tiers.seen.age(name), tiers.seen.probed(name), tiers.seen.reported(name)
            if tiers.seen.answered(name) is not True or age is None or age < tiers.told.stale_after:
                continue
            if told is not None and reported is not None and told > reported and not tiers.seen.superseded(name):
                found[name] = OldRow(_goes_on(tiers, name))
    return found


def _goes_on(tiers: Tiers, name: str) -> bool:
    # Two reports have to be missing: one may be on its way.
    got, reported_at = got_a_commit(tiers, name), tiers.seen.nodes[name]["reported_at"]
    return got is not None and got > reported_at + timedelta(seconds=2 * tiers.told.rules.keepalive_s)


def registry_stands_still(tiers: Tiers, source: str) -> list[str]:
    """The nodes that answer, if the rows of all of them are older than the limit, that of the source among them; else none."""
    names = [name for name in tiers.members[source] if tiers.seen.answered(name) and name in tiers.seen.nodes]
    ages = [tiers.seen.age(name) for name in names]
    old = all(age is not None and age >= tiers.told.stale_after for age in ages)
    above = [name for name in names if name in tiers.roots(source)]
    return names if old and above and len(above) < len(names) else []
