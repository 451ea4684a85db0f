"""Certificates that links need and that expire soon, or have expired while a session over an old connection still runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workbench.model import Finding
from workbench.rules.link_failures import TLS
from workbench.systems.ds389.rules.certificates import EXPIRED
from workbench.systems.ds389.rules.link_reasons import encrypted
from workbench.systems.ds389.session_log.certificates import Found, found_against, kept_by

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link

_SOON = timedelta(days=7)


def certificate_expires(context: DetectorContext) -> Iterator[Finding]:
    """One finding for each certificate that expires within a week after it was collected, with the links that need it."""
    statuses = context.statuses()
    links = [
        link
        for link in context.topology.links
        # LINK_FAILING says it of a link that does not run for it.
        if link.enabled is not False
        and encrypted(statuses.get((link.supplier, link.suffix, link.name), {}).get("transport"))
        and not (link.failure and link.failure.reason == TLS)
    ]
    kept = kept_by(context.case, context.topology.snapshot) if links else {}
    read = context.newest() | {one.server: one.began for one in context.topology.readings}
    needed: dict[tuple[str, str], tuple[Found, datetime, list[Link]]] = {}
    for link in links:
        row = statuses[link.supplier, link.suffix, link.name]
        for one in found_against(kept, link, row, lambda server: read[server] + _SOON if server in read else None):
            if one.fault.kind == EXPIRED:
                key = one.holder.server, one.fault.certificate.key
                needed.setdefault(key, (one, read[one.holder.server], []))[2].append(link)
    for one, at, mine in needed.values():
        yield _finding(one, at, mine)


def _finding(one: Found, at: datetime, links: list[Link]) -> Finding:
    names = sorted({link.name for link in links})
    them = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    over = at > one.fault.certificate.not_after
    then = f"the next connection of {them} will be refused" if over else f"then {them} will not connect any more"
    left = f", {_span(one.fault.certificate.not_after - at)} after it was collected" if not over else ""
    return Finding(
        "CERTIFICATE_EXPIRES",
        "warning",
        f"{one.expires(over)}{left}; {then}",
        server=one.holder.server,
        link=names[0] if len(names) == 1 else None,
        evidence=(one.shows(),),
        fix=(one.mends(links[0]),),
    )


def _span(left: timedelta) -> str:
    hours = int(left.total_seconds()) // 3600
    return (
        f"{hours // 24} days"
        if hours >= 48
        else f"{hours} h"
        if hours >= 2
        else f"{int(left.total_seconds()) // 60} min"
    )
