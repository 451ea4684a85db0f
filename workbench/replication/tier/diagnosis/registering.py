"""Nodes that look for a source at this very moment: each does when it starts, once an hour, and after each election.

It sets its own row to Inactive and deletes its connection, is Pending once the registry has answered, and Active when it found a
source: seconds later. One snapshot shows the moment alone; how long it has lasted the one before tells, or what the node got.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.replication.tier.diagnosis.commit_times import got_a_commit
from workbench.replication.tier.diagnosis.earlier_snapshots import taken_later
from workbench.topology.tier_snapshot import WAITING

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

LONGEST = 60.0
"""Seconds: a node that waits asks once a second, and one that waits for its source to connect tries for so long. The program
itself warns of a node that applied nothing for longer.
"""


@dataclass(frozen=True)
class Registering:
    """A node that looks for a source, and was seen to get on until a moment ago, or has all there is.

    says      what shows that
    pulled_from  the nodes that it pulled from in the snapshot before
    """

    says: str
    pulled_from: tuple[str, ...] = ()


def registering(tiers: Tiers) -> dict[str, Registering]:
    """Node -> why it is taken to register anew. Of one that waited in the snapshot before, too, that is known of none."""
    found = {}
    for source in tiers.sources:
        own = {*tiers.roots(source), *tiers.guessed}
        for name in tiers.members[source]:
            if name not in own and (one := _registering(tiers, name)):
                found[name] = one
    return found


def _registering(tiers: Tiers, name: str) -> Registering | None:
    row, age, before = tiers.seen.nodes.get(name), tiers.seen.age(name), tiers.before
    if row is None or (row["state"] or "").lower() not in WAITING or not tiers.seen.knows_pulls_of(name):
        return None
    if age is None or age >= tiers.told.stale_after or tiers.seen.answered(name) is not True:
        return None
    if any(pull.name == name for pull in tiers.seen.pulls):
        return None
    pulled_from = tuple(sorted(pull.source for pull in before.pulls if pull.name == name)) if before else ()
    if before is None or before.now is None or tiers.seen.now is None or before in taken_later(tiers.case, tiers.seen):
        return None
    old, between = before.nodes.get(name), (tiers.seen.now - before.now).total_seconds()
    if not before.lists_nodes or (old is None and name in before.names):
        return None
    if old is not None and not pulled_from:
        return None  # it waited then already, or nothing shows that it pulled
    then = f"in snapshot {before.label}, {between:,.0f} s before, " + (
        f"it pulled from {' and '.join(pulled_from)}" if pulled_from else "the registry had no row of it"
    )
    if not tiers.needs(name):
        return Registering(f"{then}, and it has all that its source has", pulled_from)
    got, now = got_a_commit(tiers, name), tiers.seen.now
    since = (now - got).total_seconds() if got else None
    if since is not None and since <= LONGEST:
        return Registering(f"{then}, and its newest commit was made {since:,.0f} s ago", pulled_from)
    return Registering(then, pulled_from) if 0 <= between <= LONGEST else None


def waited_before(tiers: Tiers, name: str) -> str:
    """That a node waited for a source in the snapshot before already, longer ago than that lasts; empty: it did not."""
    row, before, now = tiers.seen.nodes.get(name), tiers.before, tiers.seen.now
    if row is None or before is None or before.now is None or now is None or name not in before.nodes:
        return ""
    between = (now - before.now).total_seconds()
    waited = (before.nodes[name]["state"] or "").lower() in WAITING and all(pull.name != name for pull in before.pulls)
    if between <= LONGEST or not waited or not before.lists_pulls:
        return ""
    return f"it waited in snapshot {before.label}, {between / 60:,.0f} min before, too"


def pending_donors(tiers: Tiers, name: str) -> list[str]:
    """The nodes that have what one needs next and all that their source has, if all that have it are Pending; else none."""
    donors = tiers.donors(name)[0]
    rows = [tiers.seen.nodes.get(one) for one in donors]
    waiting = all(row is not None and row["state"] == "Pending" for row in rows)
    level = all(not tiers.needs(one) and not tiers.contradicts(one) and not waited_before(tiers, one) for one in donors)
    return donors if tiers.gap(name) == "source" and waiting and level else []


def about_to_feed(tiers: Tiers, name: str) -> list[str]:
    """From whom a node that registers anew gets what it lacks a moment later: the nodes that it is offered, or waits for."""
    awaited = sorted({pull.source for pull in tiers.seen.awaited if pull.name == name})
    return [one for one in awaited if tiers.there(one)] if awaited else tiers.offered(name) or []


def registering_above(tiers: Tiers, name: str) -> str | None:
    """The node above one that registers anew, where this alone keeps it from hanging on its source; None: there is none."""
    seen, level = {name}, [name]
    while level:
        above = sorted({pull.source for pull in tiers.seen.pulls if pull.name in level} - seen)
        if found := [one for one in above if one in tiers.registering]:
            return found[0]
        seen |= set(above)
        level = above
    return None
