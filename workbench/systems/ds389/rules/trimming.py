"""Which records may leave the changelog: the safe rule. Where the server is known to go beyond it, it is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.rules import vectors
from workbench.rules.vectors import Vector
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.ruvs import numeric


def trim_limits(local: Vector, remembered: Iterable[Vector]) -> dict[str, str | None]:
    """Replica ID -> the CSN from which on everything is kept; None: one of the consumers has nothing of it, all is kept.

    `remembered` are the consumers' vectors of every agreement, of disabled ones too. Only direct consumers protect
    records: a server two hops away that gets a new supplier may find its anchor gone.
    """
    limits = vectors.floor([local, *remembered])
    return {rid: limits[rid] for rid in local if vectors.last(local, rid) is not None}


def at_risk(limits: Mapping[str, str | None]) -> list[str]:
    """The replica IDs that the server itself may trim all the same.

    It leaves those without a limit out of its vector (#6280), and then takes a change of a replica ID that is not in the
    vector for covered, as long as others are in it.
    """
    return numeric(rid for rid, limit in limits.items() if limit is None)


def removable(ages: Iterable[tuple[str, int]], limits: Mapping[str, str | None], max_age: int) -> list[str]:
    """The CSNs that go, out of (CSN, seconds since it was logged): in the order of CSNs, up to the first that may not go.

    So one idle replica ID holds up the trimming of all others.
    """
    gone = []
    for csn, age in sorted(ages):
        limit = limits.get(origin_of(csn))
        if age <= max_age or limit is None or csn >= limit:
            break
        gone.append(csn)
    return gone
