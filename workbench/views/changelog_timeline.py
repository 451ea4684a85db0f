"""The changelogs side by side on one line of time: how many changes each server's log shows when, and where it has gaps.

A change stands at the time that its position bears, by the clock of its origin; when it arrived is another question, which
`workbench.diagnosis.propagation` answers. Counts come from the digests; only for short times are positions read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.incident import Incident
from workbench.diagnosis.propagation import arrivals
from workbench.engine.logs import StoredLog
from workbench.model import Problem, System
from workbench.topology.history import moment_of
from workbench.topology.topology import Replica

BINS = 120
_EXACT_BELOW = 4
"""Buckets of digests in a bin: with fewer, their borders would show in the picture."""

PAGE = 100

_NO_LOG, _KEEPS_NONE = "no log was collected", "it keeps no log: 31_entry_replication shows what it lists"
"""Why a lane shows no changes."""


def lanes(
    incident: Incident,
    suffix: str | None = None,
    origin: str | None = None,
    since: str = "",
    until: str = "",
    position: str = "",
) -> dict[str, Any]:
    """One lane for each server: changes in its log by time, and the missing, unknown and pending ones in their place.

    `since` and `until` cut the time; `position` marks one change, when it was made and when it arrived where.
    """
    system = incident.system
    times = _span(incident, suffix, since, until)
    if times is None:
        return {"from": None, "to": None, "lanes": [], "bins": 0}
    edges = [system.instant(times[0] + (times[1] - times[0]) * n / BINS) for n in range(BINS + 1)]
    exact = (edges[-1] - edges[0]) >> system.bucket_shift < BINS * _EXACT_BELOW
    if not exact:  # at the borders of buckets the digests count exactly
        edges = [edge >> system.bucket_shift << system.bucket_shift for edge in edges]
        edges[-1] += 1 << system.bucket_shift
    found: list[dict[str, Any]] = []
    for replica in incident.topology.replicas:
        if replica.suffix == suffix:
            log = incident.log_of(replica)
            found.append(_lane(incident, replica, log, edges, exact, origin))
    made = {"from": _iso(times[0]), "to": _iso(times[1]), "bins": BINS, "edges": edges, "lanes": found}
    return {**made, **_marked(incident, position, times)} if position else made


def _lane(
    incident: Incident, replica: Replica, log: StoredLog | None, edges: list[int], exact: bool, origin: str | None
) -> dict[str, Any]:
    below = [log.below(edge, origin, exact) for edge in edges] if log else [0] * len(edges)
    counts = np.diff(np.array(below))
    place = _Places(incident.system, edges)
    mine: dict[str, list[Mapping[str, Any]]] = {
        name: [
            row
            for row in incident.found[name]
            if (row["server"], row["suffix"]) == (replica.server, replica.suffix) and origin in (None, row["origin"])
        ]
        for name in ("missing", "stranded", "unknown", "pending")
    }
    return {
        "server": replica.server,
        "log": log is not None,
        "no_log": "" if log else _NO_LOG if incident.topology.pulling is None else _KEEPS_NONE,
        "counts": counts.tolist(),
        "missing": place.counted(row["position"] for row in mine["missing"]),
        "stranded": place.counted(row["position"] for row in mine["stranded"]),
        "unknown": place.stretches((row["from"], row["to"]) for row in mine["unknown"]),
        "pending": place.stretches((row["first"], row["last"]) for row in mine["pending"]),
    }


class _Places:
    """In which bins positions lie."""

    def __init__(self, system: System, edges: list[int]) -> None:
        self.system, self.edges = system, np.array(edges)

    def bin(self, position: str | None) -> int | None:
        key = self.system.typed(position) if position else None
        if key is None:
            return None
        at = int(np.searchsorted(self.edges, self.system.halves(key)[0], "right")) - 1
        return at if 0 <= at < BINS else -1 if at < 0 else BINS

    def counted(self, positions: Iterable[str]) -> dict[str, int]:
        """Bin -> how many; the keys are text, as JSON has them."""
        counts: dict[str, int] = {}
        for position in positions:
            at = self.bin(position)
            if at is not None and 0 <= at < BINS:
                counts[str(at)] = counts.get(str(at), 0) + 1
        return counts

    def stretches(self, ends: Iterable[tuple[str | None, str | None]]) -> list[list[int]]:
        """First and last bin of each stretch that lies in the picture."""
        found = []
        for first, last in ends:
            low, high = self.bin(first), self.bin(last)
            if low is not None and high is not None and low < BINS and high >= 0:
                found.append([max(low, 0), min(high, BINS - 1)])
        return found


def _span(incident: Incident, suffix: str | None, since: str, until: str) -> tuple[datetime, datetime] | None:
    """From the first to the last change of any log or claim, cut as asked; None where positions carry no time."""
    times = []
    for replica in incident.topology.replicas:
        if replica.suffix != suffix:
            continue
        logged = replica.log.facts.get("by_origin", {}).values() if replica.log else ()
        ends = [end for one in logged for end in (one["min"], one["max"])]
        ends += [end for span in replica.vector.values() for end in (span.min, span.max)]
        times += [at for end in ends if end and (at := incident.system.moment(end))]
    if not times:
        return None
    first = moment_of(since) if since else min(times)
    last = moment_of(until) if until else max(times) + timedelta(seconds=1)
    if first >= last:
        raise Problem("the time ends before it begins", f"{since} to {until}", f"seen: {min(times)} to {max(times)}")
    return first, last


def _marked(incident: Incident, position: str, times: tuple[datetime, datetime]) -> dict[str, Any]:
    """Where on the line one change stands, and when it came to each server."""
    try:
        way = arrivals(incident.then, position)
    except Problem as problem:  # of another snapshot, or a typing error: the lanes are right all the same
        return {"position": None, "says": str(problem)}

    def at(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - times[0]) / (times[1] - times[0])

    rows = [
        {"server": one.server, "outcome": one.outcome, "at": at(one.at), "when": _iso(one.at) if one.at else None}
        for one in way.arrivals
    ]
    made = incident.system.moment(incident.system.typed(position) or "")
    return {"position": position, "made": at(made), "made_at": _iso(made) if made else None, "arrivals": rows}


def changes_between(
    incident: Incident, server: str, suffix: str | None, origin: str | None, low: int, high: int, limit: int = PAGE
) -> list[dict[str, Any]]:
    """The changes that a server's log shows between two edges of a lane, the first so many, and those that it lacks there.

    Keys: position, at, origin, verdict.
    """
    replica = next((one for one in incident.topology.replicas if (one.server, one.suffix) == (server, suffix)), None)
    log = incident.log_of(replica) if replica else None
    system = incident.system
    rows: dict[str, dict[str, Any]] = {}
    if log:
        held = log.between((low, 0), (high, 0))
        mine = slice(None) if origin is None else np.flatnonzero(np.asarray(pc.equal(held.origin, origin)))
        origins, his, los = (
            held.origin.take(pa.array(np.arange(len(held.hi))[mine][:limit])),
            held.hi[mine],
            held.lo[mine],
        )
        for name, hi, lo in zip(origins.to_pylist(), his[:limit], los[:limit], strict=True):
            key = system.order_key(name, int(hi), int(lo))
            rows[key] = {"position": system.show(key), "origin": name, "verdict": "present"}
    for name in ("missing", "stranded"):
        for row in incident.found[name]:
            key = system.typed(row["position"]) or ""
            here = (row["server"], row["suffix"]) == (server, suffix) and origin in (None, row["origin"])
            if here and low <= system.halves(key)[0] < high:
                rows[key] = {"position": row["position"], "origin": row["origin"], "verdict": name}
    return [{**rows[key], "at": incident.when(rows[key]["position"])} for key in sorted(rows)[:limit]]


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
