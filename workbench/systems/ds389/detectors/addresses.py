"""Agreements of one supplier that lead to one server: as a rule, one of them is meant for another server."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation
    from workbench.fleet.topology import Link


def two_links_to_one(situation: Situation) -> Iterator[Finding]:
    """Of one suffix: two or more agreements of a supplier that are switched on and whose addresses are of one server."""
    leading: dict[tuple[str, str | None, str], list[Link]] = {}
    for link in situation.topology.links:
        if link.consumer and link.enabled is not False:
            leading.setdefault((link.supplier, link.suffix, link.consumer), []).append(link)
    statuses = situation.statuses()
    for (supplier, suffix, consumer), links in sorted(leading.items(), key=str):
        if len(links) < 2:
            continue
        known = {link.name: statuses.get((supplier, suffix, link.name), {}) for link in links}
        led = {name: _server_of(situation, suffix, row.get("consumer_origin")) for name, row in known.items()}
        moved = {name: other for name, other in led.items() if other not in (None, consumer)}
        names = " and ".join(sorted(known))
        before = "".join(f"; {name} led to {other} before" for name, other in sorted(moved.items()))
        yield Finding(
            "LINKS_TO_ONE_SERVER",
            "warning",
            f"{len(links)} agreements of {supplier} lead to {consumer} ({links[0].address}): {names}{before}",
            server=supplier,
            suffix=suffix,
            evidence=tuple(
                {key: known[link.name].get(key) for key in ("file", "offset", "name", "consumer_host", "consumer_port")}
                for link in links
            ),
            root=f"{len(links)} agreements of {supplier} lead to {consumer} ({names}){before}",
            fix=tuple(_address(situation, supplier, suffix, name, other) for name, other in sorted(moved.items()))
            or (
                step(
                    "see which server each is meant for: correct the address of one, or delete it",
                    "one agreement delivers everything; two to one server only turn each other away",
                ),
            ),
        )


def _server_of(situation: Situation, suffix: str | None, origin: str | None) -> str | None:
    replicas = situation.topology.replicas
    found = [one.server for one in replicas if origin and (one.suffix, one.origin) == (suffix, origin)]
    return found[0] if len(found) == 1 else None


def _address(
    situation: Situation, supplier: str, suffix: str | None, name: str, other: str | None
) -> dict[str, str | None]:
    links, statuses = situation.topology.links, situation.statuses()
    transport = statuses.get((supplier, suffix, name), {}).get("transport")
    alike = (
        link.address or ""
        for link in links
        if link.consumer == other and link.supplier != supplier and link.suffix == suffix
        if statuses.get((link.supplier, suffix, link.name), {}).get("transport") == transport
    )
    at = next(filter(None, alike), "")
    host, _, port = at.rpartition(":")
    words = ("repl-agmt", "set", "--suffix", suffix or "", "--host", host or "HOST", "--port", port or "PORT", name)
    return step(
        f"correct the address of {name}, on {supplier}: `dsconf INSTANCE {shlex.join(words)}`",
        f"the last consumer that it remembers is {other}, and {other} gets nothing from {supplier} itself now",
        f"if that is so on purpose, delete {name}",
    )
