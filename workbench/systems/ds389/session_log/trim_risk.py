"""Whether a supplier's changelog keeps what waits behind an agreement that does not run, until it runs again.

Trimming by age or number spares what a direct consumer lacks by the RUV that its agreement remembers. So it takes only changes
of which nothing is remembered: the agreement never had a session, or, in some versions, its consumer has nothing of their
origin (#6280).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.rules.vectors import last
from workbench.systems.ds389.rules.trim_settings import TrimSettings, settings_in

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link

Row = Mapping[str, Any]


def kept_behind(
    context: DetectorContext, link: Link, consumer: str | None, waiting: Mapping[str, str] | None = None
) -> str:
    """The clause that says it; empty: the settings of the changelog were not collected.

    waiting  origin -> the first change that waits, for each origin of which anything does; None: not known
    """
    settings = settings_of(context, link.supplier, link.suffix)
    if settings is None or waiting == {}:
        return ""
    whose = f"the changelog of {link.supplier}"
    if not settings.age and not settings.entries:
        return f"{whose} is not trimmed, so what waits stays there"
    limit = f"{whose} has a limit of {settings.limits}"
    replica = context.replica(consumer, link.suffix)
    session = context.statuses().get((link.supplier, link.suffix, link.name), {}).get("ended_at")
    if waiting is None and (session or link.remembered):
        return f"{limit}, and may keep what its consumer lacks for longer, as long as this agreement exists"
    if waiting is None:
        return f"{limit}; whether the agreement remembers what its consumer had, so that the rest is kept longer, is not known"
    exposed, open_ = [], []
    for origin in sorted(waiting):
        if link.remembered and last(link.remembered, origin):
            continue
        # Of a session since its start the supplier remembers the RUV in memory; the entry shows it after a restart only.
        if replica and replica.claims and not last(replica.vector, origin):
            exposed.append(origin)
        elif not (replica and replica.claims and session):
            open_.append(origin)
    if exposed:
        when = _from(context, settings, [waiting[one] for one in exposed])
        return (
            f"{limit}: what waits of origin {', '.join(exposed)} may be trimmed {when}, for trimming may not spare changes of "
            "an origin of which the consumer has none"
        )
    if open_:
        when = _from(context, settings, [waiting[one] for one in open_])
        return f"{limit}: what waits may be trimmed {when}, unless the agreement remembers what its consumer had"
    return f"{whose} keeps what waits beyond its limit of {settings.limits}, as long as this agreement exists"


def settings_of(context: DetectorContext, server: str, suffix: str | None) -> TrimSettings | None:
    """The settings of the changelog of a replica; None: they were not collected, or nothing tells whose they are."""
    facts = (one.facts for one in context.inputs if one.server == server)
    return settings_in(facts, suffix, context.of_several(server))


def _from(context: DetectorContext, settings: TrimSettings, positions: Iterable[str]) -> str:
    """From when on: a change is logged when it is made or later, and its age counts from then."""
    system = context.topology.system
    made: list[datetime] = [at for one in positions if (at := system.moment(system.typed(one) or ""))]
    if settings.age and made:
        more = " or as soon as there are more" if settings.entries else ""
        return f"from {min(made) + settings.age:%Y-%m-%d %H:%M:%S} UTC on{more}"
    return "as soon as there are more" if settings.entries else "when that time is over"
