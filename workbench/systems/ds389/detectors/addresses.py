"""Agreements of one supplier that lead to one server, or to another one than they name: one is meant for another server."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.diagnosis.misnamed_links import meant_for
from workbench.model import Finding, step
from workbench.systems.ds389.session_log.agreement_addresses import address_words, host_damaged
from workbench.systems.ds389.session_log.closed_links import agreement_shown

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link


def two_links_to_one(context: DetectorContext) -> Iterator[Finding]:
    """Of one suffix: two or more agreements of a supplier that are switched on and whose addresses are of one server."""
    leading: dict[tuple[str, str | None, str], list[Link]] = {}
    for link in context.topology.links:
        if (end := link.consumer or link.address) and link.enabled is not False:
            leading.setdefault((link.supplier, link.suffix, end), []).append(link)
    statuses = context.statuses()
    for (supplier, suffix, consumer), links in sorted(leading.items(), key=str):
        if len(links) < 2:
            continue
        known = {link.name: statuses.get((supplier, suffix, link.name), {}) for link in links}
        led = {name: _server_of(context, suffix, row.get("consumer_origin")) for name, row in known.items()}
        moved = {name: other for name, other in led.items() if other not in (None, consumer)}
        names = " and ".join(sorted(known))
        at = "" if links[0].address == consumer else f" ({links[0].address})"
        before = "".join(f"; {name} led to {other} before" for name, other in sorted(moved.items()))
        yield Finding(
            "LINKS_TO_ONE_SERVER",
            "warning",
            f"{len(links)} agreements of {supplier} lead to {consumer}{at}: {names}{before}",
            server=supplier,
            suffix=suffix,
            evidence=tuple(agreement_shown(known[link.name], "consumer_host", "consumer_port") for link in links),
            root=f"{len(links)} agreements of {supplier} lead to {consumer} ({names}){before}",
            fix=tuple(
                _address(
                    context,
                    supplier,
                    suffix,
                    name,
                    other,
                    f"the last consumer that it remembers is {other}",
                    "delete",
                )
                for name, other in sorted(moved.items())
            )
            or (
                step(
                    "see which server each is meant for: correct the address of one, or delete it",
                    "one agreement delivers everything; two to one server only turn each other away",
                ),
            ),
        )


def led_elsewhere(context: DetectorContext) -> Iterator[Finding]:
    """Agreements that name one collected server and lead to another one, where no other agreement of the supplier leads there.

    b-to-h leads to the address of r, and no agreement of b to that of h: h gets nothing from b itself
    """
    shown = context.topology
    for link in shown.links:
        meant = meant_for(shown, link) if link.enabled is not False else None
        if meant is None:
            continue
        row = context.statuses().get((link.supplier, link.suffix, link.name), {})
        alike = sorted(
            other.name
            for other in shown.links
            if other.supplier == link.supplier and other.suffix != link.suffix and other.consumer == meant
            if other.name.startswith(link.name)
        )
        more = (
            f"; {' and '.join(alike)} of another suffix {'leads' if len(alike) == 1 else 'lead'} to {meant}"
            if alike
            else ""
        )
        says = f"the agreement {link.name} of {link.supplier} leads to {link.consumer}, not to {meant}"
        yield Finding(
            "LINK_LEADS_ELSEWHERE",
            "warning",
            f"{says}: its address is {link.address or 'that of another server'}, and no agreement of {link.supplier} leads to "
            f"{meant}{more}",
            server=link.supplier,
            link=link.name,
            suffix=link.suffix,
            evidence=(agreement_shown(row, "consumer_host", "consumer_port"),),
            root=says,
            fix=(_address(context, link.supplier, link.suffix, link.name, meant, f"its name says {meant}", "rename"),),
        )


def _server_of(context: DetectorContext, suffix: str | None, origin: str | None) -> str | None:
    replicas = context.topology.replicas
    found = [one.server for one in replicas if origin and (one.suffix, one.origin) == (suffix, origin)]
    return found[0] if len(found) == 1 else None


def _address(
    context: DetectorContext, supplier: str, suffix: str | None, name: str, other: str | None, why: str, otherwise: str
) -> dict[str, str | None]:
    links, statuses = context.topology.links, context.statuses()
    transport = statuses.get((supplier, suffix, name), {}).get("transport")
    alike = (
        link.address or ""
        for link in links
        if link.consumer == other and link.supplier != supplier and link.suffix == suffix
        if statuses.get((link.supplier, suffix, link.name), {}).get("transport") == transport
    )
    at = next(filter(None, alike), "")
    now = next(
        (one.address or "" for one in links if (one.supplier, one.suffix, one.name) == (supplier, suffix, name)), ""
    )
    where = address_words(now, at) if at else ["--host", "HOST", "--port", "PORT"]
    words = ("repl-agmt", "set", "--suffix", suffix or "", *where, name)
    again = f"; then {host_damaged(supplier)}" if "--host" in where else ""
    return step(
        f"correct the address of {name}, on {supplier}: `dsconf INSTANCE {shlex.join(words)}`{again}",
        f"{why}, and {other} gets nothing from {supplier} itself now",
        f"if that is so on purpose, {otherwise} {name}",
    )
