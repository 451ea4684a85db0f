"""What comes before a server is filled: its source has to be whole, and no other server may depend on its log alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.gone_entries import missing_in_effect
from workbench.diagnosis.only_holders import waits_for_it, write_again_first
from workbench.diagnosis.repair_sources import fed_by_it_alone, lacking_what_it_has
from workbench.diagnosis.stuck_servers import holders_of_waits, to_be_filled
from workbench.model import counted, listed, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def source_first(context: DetectorContext, source: str, suffix: str | None, server: str) -> Iterator[Mapping[str, Any]]:
    """The step before a source initialises this server, where no session delivers the changes that the source waits for."""
    waits = [row for row in context.verdicts.pending if (row["server"], row["suffix"]) == (source, suffix)]
    stuck = sum(row["count"] for row in waits if not (row["suppliers"] or row.get("through")))
    if write_again_first(context, source, suffix) or holders_of_waits(context, source, suffix) == [server]:
        return  # it waits for what only the server itself has
    if source in context.once(waits_for_it).get((server, suffix), ()):
        return  # that is saved first
    if stuck and (source, suffix) in context.once(to_be_filled):
        yield step(
            f"first do what REINIT_REQUIRED says of {source}",
            f"{source} itself waits for {counted(stuck)}, and hands on only what it has",
        )


def losing_sources(context: DetectorContext, server: str, suffix: str | None) -> set[str]:
    """The servers from which this one, filled, would lose what it has, or be stuck."""
    return lacking_what_it_has(context, server, suffix) | _waiting_for_what_it_has(context, server, suffix)


def filled_in_a_circle(context: DetectorContext, server: str, suffix: str | None) -> set[str]:
    """The servers that lack changes and wait in vain for what this one has, and others that lack changes, too.

    carl lacks a change, and waits for what alba and bern have; these lack a change each    neither is filled from carl
    """
    missing, typed = (
        {row["server"] for row in missing_in_effect(context) if row["suffix"] == suffix},
        context.topology.system.typed,
    )
    waits: dict[str, list[Mapping[str, Any]]] = {}
    for row in context.verdicts.pending:
        if row["suffix"] == suffix and not (row["suppliers"] or row.get("through")):
            waits.setdefault(row["server"], []).append(row)
    found = set()
    for name, rows in waits.items() if server in missing else ():
        having = {
            one.server
            for one in context.topology.replicas
            if one.suffix == suffix and all(one.top(row["origin"]) >= (typed(row["last"]) or "") for row in rows)
        }
        if name in missing - {server} and server in having and having <= missing:
            found.add(name)
    return found


def _waiting_for_what_it_has(context: DetectorContext, server: str, suffix: str | None) -> set[str]:
    """The servers that no session brings what this one has, and of which nothing else says so: filled from one, it is stuck."""
    mine, typed = context.replica(server, suffix), context.topology.system.typed
    return {
        row["server"]
        for row in context.verdicts.pending
        if mine and row["suffix"] == suffix and row["server"] != server and not (row["suppliers"] or row.get("through"))
        if mine.top(row["origin"]) >= (typed(row["first"]) or "")
        # What the server alone has is saved before it is filled.
        and any(
            other.suffix == suffix
            and other.server not in (server, row["server"])
            and other.top(row["origin"]) >= (typed(row["first"]) or "")
            for other in context.topology.replicas
        )
        and (row["server"], suffix) not in context.once(to_be_filled)
    }


def fed_alone_first(context: DetectorContext, server: str, suffix: str | None) -> Iterator[Mapping[str, Any]]:
    """What comes before a server is filled that alone feeds another one: its log is new then."""
    failing = {(one.supplier, one.consumer) for one in context.topology.links if one.suffix == suffix and one.blocked}
    if found := fed_by_it_alone(context, server, suffix, failing):
        fed, failed = found
        yield step(
            f"before {server} is initialised, do what LINK_FAILING says on {listed(failed)}",
            f"{server} alone feeds {fed} now, and the log of a filled server is new: {fed} might get nothing more",
        )
