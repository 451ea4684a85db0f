"""Servers that can still supply one which others cannot any more: behind a session with one of them nothing is to be refreshed.

    A remembers from 50 on, C has seen up to 40     A asks C to be refreshed
    B remembers from 30 on, and has seen up to 60   C pulls from B, has seen up to 60, and A supplies it again

B forgets, too: at its next purge, every ten minutes while it runs, it may be where A is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.model import listed, step
from workbench.replication.entry.diagnosis.state_comparison import ranges_of
from workbench.replication.entry.rules.entries import TURNED_DOWN
from workbench.systems.kanidm.cid import nanoseconds
from workbench.systems.kanidm.rules.ranges import OK

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = Mapping[str, Any]


class OtherSuppliers(NamedTuple):
    """Servers that bring one to where those that are ahead of it supply it again: those that it pulls from, and others."""

    linked: list[str]
    unlinked: list[str]


def other_suppliers(
    context: DetectorContext, server: str, suffix: str | None, ahead: Mapping[str, Row]
) -> OtherSuppliers:
    """The servers that can supply one; `ahead`: who remembers too little for it -> origin -> the first that is remembered."""
    rows = [row for row in context.pairs if (row["consumer"], row["suffix"]) == (server, suffix)]
    found = OtherSuppliers([], [])
    some_linked = any(row["link"] for row in context.pairs)
    for row in rows:
        supplier = row["supplier"]
        turned_down = any(reason["rule"] == TURNED_DOWN for reason in row["reasons"])
        if supplier in ahead or row["decision"] != OK or turned_down or row["delivers"] is False:
            continue
        replica = context.replica(supplier, suffix)
        last = {of: high for of, (_, high) in ranges_of(context.topology, replica).items()} if replica else {}
        if all(last.get(of, -1) >= nanoseconds(first) for firsts in ahead.values() for of, first in firsts.items()):
            runs = row["link"] and row["link_enabled"] is not False
            linked = runs if some_linked else not row["leads_elsewhere"]
            (found.linked if linked else found.unlinked).append(supplier)
    return OtherSuppliers(sorted(found.linked), sorted(found.unlinked))


def instead_of_refresh(
    context: DetectorContext, server: str, suffix: str | None, ahead: Sequence[str], others: OtherSuppliers
) -> Mapping[str, Any] | None:
    """The step that comes before any refresh of a server, or makes it needless; None: no server can supply it any more."""
    names = listed(ahead)
    why = f"behind that session {server} has seen what {names} still remember{'s' if len(ahead) == 1 else ''}"
    if others.linked:
        return step(
            f"let {server} pull from {listed(others.linked, 'or')}{_before(context, server, suffix, others.linked)}: refresh "
            "nothing",
            why,
        )
    if others.unlinked:
        source = others.unlinked[0]
        return step(
            f"link {source} and {server} in both server.toml{_before(context, server, suffix, [source])}: nothing is deleted "
            "by that, and no server is refreshed",
            f"{source} can still supply {server}, which does not pull from it; {why}",
        )
    return None


def brought_together(
    context: DetectorContext, rows: Sequence[Row], servers: Sequence[str], suffix: str | None
) -> list[Mapping[str, Any]]:
    """For each of these servers that are behind each other, the session that ends it, if one that it pulls from can supply it.

    rows  the pairs of them
    """
    steps = []
    for server in servers:
        ahead = {
            row["supplier"]: {of: first for of, (first, _) in row["lag"].items()}
            for row in rows
            if row["consumer"] == server
        }
        for row in rows:
            if row["supplier"] == server:
                firsts = {of: first for of, (_, first) in row["advance"].items()}
                ahead[row["consumer"]] = {**ahead.get(row["consumer"], {}), **firsts}
        still = other_suppliers(context, server, suffix, ahead)
        if still.linked and (way := instead_of_refresh(context, server, suffix, sorted(ahead), still)):
            steps.append(way)
    return steps


def _before(context: DetectorContext, server: str, suffix: str | None, suppliers: Sequence[str]) -> str:
    """Until when these can supply a server, if they forget soon what it needs."""
    late = [
        supplier
        for supplier in suppliers
        if any(
            one["server"] == supplier and server in one["leaves_behind"]
            for row in context.floors.floors
            if row["suffix"] == suffix
            for one in row["servers"]
        )
    ]
    return f" before the next purge of {listed(late)} (every ten minutes while it runs)" if late else ""
