"""Whether a supplier's changelog keeps what waits behind an agreement that does not run, until it runs again.

Trimming by age or number spares what a direct consumer lacks by the RUV that its agreement remembers. So it takes only changes
of which nothing is remembered: the agreement never had a session, or, in some versions, its consumer has nothing of their
origin (#6280).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.model import listed
from workbench.rules.vectors import last
from workbench.systems.ds389.rules.trim_settings import TrimSettings, settings_in

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link

Row = Mapping[str, Any]


def kept_behind(
    context: DetectorContext, link: Link, consumer: str | None, waiting: Mapping[str, str] | None = None
) -> str:
    """The clause that says it, and what is not kept for others; empty: the settings of the changelog were not collected.

    waiting  origin -> the first change that waits, for each origin of which anything does; None: not known
    """
    return "; ".join(filter(None, (_kept(context, link, consumer, waiting), goes_then(context, link))))


def _kept(context: DetectorContext, link: Link, consumer: str | None, waiting: Mapping[str, str] | None) -> str:
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


def goes_then(context: DetectorContext, link: Link) -> str:
    """What the supplier trims once a link has delivered, although others wait for it; empty: nothing, or it is not known.

    alba keeps 5 seconds, and what waits behind alba-to-carl, which is off; hub waits for the same, and no agreement leads there
        alba-to-carl is switched on: carl gets all, alba trims it, and hub can no longer be supplied from there
    """
    settings, shown = settings_of(context, link.supplier, link.suffix), context.topology
    if settings is None or not (settings.age or settings.entries):
        return ""
    replica, moment, typed = context.replica(link.supplier, link.suffix), shown.system.moment, shown.system.typed
    fed = {x.consumer for x in shown.links if (x.supplier, x.suffix) == (link.supplier, link.suffix)}
    tops = (span.max for x in shown.replicas for span in x.seen().values())
    newest = max(filter(None, (moment(top) for top in tops if top)), default=None)
    waiting = set[str]()
    for row in context.verdicts.pending:
        first = typed(row["first"]) or ""
        if (
            row["suffix"] != link.suffix
            or row["server"] in {*fed, link.supplier}
            or row["suppliers"]
            or row.get("through")
        ):
            continue
        made = moment(first)
        old = not settings.age or (made and newest and newest - made > settings.age)
        if old and replica and replica.log and context.case.log(replica.log).holds(first):
            waiting.add(row["server"])
    behind = {x.consumer for x in shown.links if x.suffix == link.suffix and x.supplier in waiting} & waiting
    if not waiting - behind:
        return ""
    waiting -= behind  # they get it from those that wait themselves
    names, wait = listed(sorted(waiting)), "waits" if len(waiting) == 1 else "wait"
    return (
        f"once it has delivered, {link.supplier} trims what {names} {wait} for: make an agreement "
        f"from {link.supplier} to {names} first, or raise nsslapd-changelogmaxage"
    )


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
