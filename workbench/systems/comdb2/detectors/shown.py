"""How findings of Comdb2 show nodes and places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.replication.tier.diagnosis.beyond_source import stands_beyond
from workbench.replication.tier.diagnosis.sole_suppliers import (
    cut_off_without,
    left_of,
    served_where_it_hangs,
)
from workbench.rules.assumptions import DEFAULT_SETTING
from workbench.systems.comdb2.lsn import lsn_text

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

Row = Mapping[str, Any]


def tiers_of(context: DetectorContext) -> Tiers:
    """The trees of a case."""
    assert context.verdicts.tiers is not None
    return context.verdicts.tiers


def each(tiers: Tiers) -> Iterator[tuple[str, str]]:
    """Source database and name of every node that is known to follow it, the source's own nodes left out."""
    for source in tiers.sources:
        own = {*tiers.roots(source), *tiers.guessed}
        yield from ((source, name) for name in tiers.members[source] if name not in own)


def is_files_behind(tiers: Tiers, name: str) -> bool:
    """Whether a node needs an older file than the one that its source writes: its row alone may be old."""
    last, head = tiers.last(name), tiers.known_head(tiers.source_of(name) or "")
    return last is not None and head is not None and last[0] < head[0]


def place_text(place: tuple[int, int] | None) -> str | None:
    """A place as the server writes it."""
    return lsn_text(place) if place else None


def evidence_of(tiers: Tiers, name: str) -> dict[str, Any]:
    """What the registry says of a node, and what it answered itself."""
    row, place = tiers.seen.nodes.get(name), tiers.place(name)
    age = tiers.seen.age(name)
    told = {
        "node": name,
        "state": row["state"] if row else None,
        "keepalive_age_s": None if age is None else round(age, 1),
        "reported": place_text(tiers.seen.reported(name)),
        "answered": tiers.seen.answered(name),
        "last": place_text(tiers.seen.probed(name)),
        "pulls_from": ", ".join(place.parents) if place and place.parents else None,
        "file": row["file"] if row else None,
        "offset": row["offset"] if row else None,
        "its_log_ends": tiers.said_stop.get(name),
    }
    return {key: value for key, value in told.items() if value is not None}


def stood_before(tiers: Tiers, name: str) -> str:
    """Where a silent node stood in an earlier snapshot, as a clause, and that no other one is as far; empty: it is not known."""
    if name not in tiers.seen.stood:
        return ""
    (place, label), source = tiers.seen.stood[name], tiers.source_of(name) or ""
    others = (tiers.last(other) for other in tiers.members.get(source, ()) if other != name)
    most = max(filter(None, others), default=place)
    alone = f": no other node is known to have what stands behind {place_text(most)}" if place > most else ""
    return f"; in snapshot {label} it stood at {place_text(place)}{alone}"


def some(names: list[str] | tuple[str, ...], most: int = 3) -> str:
    """A few names, and how many more."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def span_text(seconds: float) -> str:
    """A time as people say it; who reported itself after the registry's clock was read, did so now."""
    seconds = max(seconds, 0.0)
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def fanout_text(tiers: Tiers, name: str) -> str:
    """The fanout below a node's source, and that it is the default where nothing tells it."""
    known = tiers.told.tells_fanout(tiers.source_of(name) or "")
    return f"fanout {tiers.fanout(name)}{'' if known else ', the default, as it was not collected'}"


def not_before(tiers: Tiers, name: str) -> str | None:
    """What comes before a node registers anew: where its file is gone, the registry offers it nothing that brings it on."""
    if kept := tiers.last_holders.get(name):
        return f"not before the log of {name} was dumped (LOG_DIVERGED): {kept.says}, and {name} may be the last to have that"
    if served := served_where_it_hangs(tiers, name):
        return f"not before {name} is past log file {served.until}, which {some(served.suppliers)} sends it (LOG_GAP)"
    if tiers.gap(name):
        return f"not before the gap in the log of {name} is mended (LOG_GAP)"
    if head := stands_beyond(tiers, name):
        return f"not before the ends of both logs were compared (LOG_DIVERGED): it cuts off what it has behind {place_text(head)}"
    return None


def not_stopped_before(tiers: Tiers, names: list[str]) -> str | None:
    """What comes before nodes are shut down or started again: others may get the file they need from these alone."""
    left = left_of(tiers)
    for name in names:
        if name in tiers.last_holders:
            return not_before(tiers, name)
        if lost := cut_off_without(left, {name}):
            served = left[lost[0]]
            whose = f"which {some(served.suppliers) if name == lost[0] else name} sends it"
            past = f"{some(lost)} {'is' if len(lost) == 1 else 'are'} past log file {served.until}"
            return f"restart {name} not before {past}, {whose} (LOG_GAP)"
    return None


def by_default(tiers: Tiers, name: str) -> tuple[str, ...]:
    """What is taken for granted by whoever names the fanout below a node's source."""
    return () if tiers.told.tells_fanout(tiers.source_of(name) or "") else (DEFAULT_SETTING,)
