"""Logins under the names of suppliers that a server refuses, where no collected link explains them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.model import Finding, counted, merge_facts, step
from workbench.rules.link_failures import BIND_REFUSED, PASSWORD_EXPIRED
from workbench.systems.ds389.formats.access_log import ACCESS_LOG

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_RECENT = timedelta(hours=1)
"""A supplier tries again every five minutes: whoever has not for an hour has given up, or got in."""
_LEAST = 2
"""Failed logins from one address: a single one may have been a person who mistyped."""


def logins_fail(context: DetectorContext) -> Iterator[Finding]:
    """One finding for each name with which logins from one or more addresses fail, and none of them succeeded later."""
    for server in sorted({one.server for one in context.topology.replicas}):
        allowed, logs = _allowed(context, server), _logs(context, server)
        if not allowed or not logs or any(one.facts.get("logins_cut") for one in logs):
            continue
        seen = merge_facts(one.facts["logins"] for one in logs if "logins" in one.facts)
        # A newer log may be in another form, or of later rotation: only its own end tells whether attempts went on.
        end = max((str(one.facts.get("time", {}).get("max", "")) for one in logs), default="")
        for name in sorted(allowed & seen.keys()):
            failing = {address: one for address, one in seen[name].items() if address and _fails(seen[name], one, end)}
            explained = _explained(context, server, name)
            if len(failing) > explained:
                yield _finding(server, name, failing, explained)


def _allowed(context: DetectorContext, server: str) -> set[str]:
    """The names with which suppliers may log in at a server, in lower case."""
    mine = [one.facts.get("logins_allowed", {}) for one in context.inputs if one.server == server]
    return {name.lower() for names in mine for some in names.values() for name in some}


def _logs(context: DetectorContext, server: str) -> list[Any]:
    return [one for one in context.inputs if one.server == server and one.kind == ACCESS_LOG.key]


def _fails(addresses: Mapping[str, Mapping[str, Any]], one: Mapping[str, Any], end: str) -> bool:
    """True if the logins from an address went on failing to the end of the log."""
    if one.get("failed", 0) < _LEAST or not end:
        return False
    last = one["failed_at"]["max"]
    # One from an address that is not known may have been from this.
    ended = max(other.get("ended_at", {}).get("max", "") for other in (one, addresses.get("", {})))
    return ended < last and _time(end) - _time(last) < _RECENT


def _explained(context: DetectorContext, server: str, name: str) -> int:
    """How many collected links lead there and have failed to log in: of these LINK_FAILING says it."""
    statuses = context.statuses()
    return sum(
        link.consumer == server
        and bool(link.failure and link.failure.reason in (BIND_REFUSED, PASSWORD_EXPIRED))
        and (statuses.get((link.supplier, link.suffix, link.name), {}).get("login") or name).lower() == name
        for link in context.topology.links
    )


def _finding(server: str, name: str, failing: Mapping[str, Mapping[str, Any]], explained: int) -> Finding:
    count = sum(one["failed"] for one in failing.values())
    last = max(one["failed_at"]["max"] for one in failing.values())
    where = ", ".join(sorted(failing))
    links = f"only {explained} of these addresses can be that of a collected supplier" if explained else ""
    rows = [
        {"server": server, "login": name, "address": address, "failed": one["failed"]}
        | {"first_at": one["failed_at"]["min"], "last_at": one["failed_at"]["max"]}
        for address, one in sorted(failing.items())
    ]
    return Finding(
        "LOGINS_FAIL",
        "warning",
        f"logins as {name} fail on {server} with 49 (invalid credentials), from {where}, {counted(count, 'time')}, last at "
        f"{_time(last):%Y-%m-%d %H:%M:%S} UTC, and none from there succeeded since; {links or 'no collected link explains them'}",
        server=server,
        evidence=tuple(rows),
        fix=(
            step(
                f"find the supplier at {where}, collect from it, too, and give its agreement the password that {server} has for "
                f"{name}, there: `dsconf INSTANCE repl-agmt set --suffix SUFFIX --bind-passwd PASSWORD AGREEMENT`",
                "a supplier that cannot log in delivers nothing, and says so only in its own log and status",
                "it may also be a program that nobody needs any more: then stop it",
            ),
        ),
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
