"""What the times of commits tell: for how long a node lacks what it lacks, and until when it is sure to have got something."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def lag_in_time(tiers: Tiers, name: str) -> tuple[float, float] | None:
    """Seconds since the oldest commit was made that a node lacks: at least, and at most; None: nobody tells.

    Only the newest commit of each is known: what a node lacks was made between its own and the newest of the source.
    """
    made, own, now = _newest_commit(tiers, tiers.source_of(name) or ""), own_commit(tiers, name), tiers.seen.now
    # What is newer than the registry's clock says nothing of it: the clocks are not the same.
    if not tiers.needs(name) or made is None or own is None or now is None or not own < made or own > now:
        return None
    return max(0.0, (now - made).total_seconds()), (now - own).total_seconds()


def overdue(tiers: Tiers, name: str) -> bool:
    """Whether it is proven that a node lacks a commit for longer than it waits on purpose.

    It was asked for itself, some time before or after the source, and commits tell whole seconds of the source's clock.
    """
    wait, lag = tiers.told.delays.get(name), lag_in_time(tiers, name)
    made = _newest_commit(tiers, tiers.source_of(name) or "")
    if not wait or lag is None or made is None or tiers.seen.now is None:
        return False
    asked = tiers.seen.probes[name]["at"] or tiers.seen.now
    return float((min(asked, tiers.seen.now) - made).total_seconds()) - 1 > wait


def got_a_commit(tiers: Tiers, name: str) -> datetime | None:
    """A time at which a node still got what its source wrote: its newest commit was made then, and reached it after that.

    None: nothing tells it, or it is of a time that the registry's clock had not come to.
    """
    own, now = own_commit(tiers, name), tiers.seen.now
    return own if own is not None and now is not None and own <= now else None


def own_commit(tiers: Tiers, name: str) -> datetime | None:
    """When the newest commit was made that a node told of, by the clock of its source."""
    told: datetime | None = tiers.seen.probes.get(name, {}).get("committed_at")
    return told


def _newest_commit(tiers: Tiers, source: str) -> datetime | None:
    told = (own_commit(tiers, one) for one in tiers.roots(source)) if source else ()
    return max((at for at in told if at), default=None)
