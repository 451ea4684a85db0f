"""Repairs for missing changes in systems whose servers keep their own log, and whose log continues after the changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.replication.stream.diagnosis.contents import left_out
from workbench.replication.stream.diagnosis.later_changes import changed_later
from workbench.replication.stream.diagnosis.table_statements import WholeTable, in_the_way, not_applied
from workbench.replication.stream.rules.segments import ROW_STATEMENTS, SET_VARIABLE

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.stream.diagnosis.log_comparison import Streams


def missed_of_copy(context: DetectorContext, server: str, where: str) -> tuple[str, str, str, str]:
    """Why changes do not come that a copy goes on behind, what mends it, why, and what to beware of."""
    tiers = context.verdicts.tiers
    where = next(iter(tiers.copied_from(server)), where) if tiers is not None and tiers.source_is_known else where
    return (
        "its log goes on behind them",
        f"{context.topology.system.refill} {server} from a copy of {where}, which is shut down cleanly for the time of copying",
        "what follows was applied to pages that lack them: nothing that is written later mends that",
        "read the logs once more before: a dump that was cut or put together wrong looks the same",
    )


def missed_of_stream(
    context: DetectorContext, server: str, where: str, rows: Sequence[Mapping[str, Any]]
) -> tuple[str, str, str, str]:
    """The same of what a log of transactions goes on behind."""
    streams, refill = context.verdicts.streams, context.topology.system.refill
    assert streams is not None
    own = any(row["server"] == server for row in (*context.verdicts.errant, *context.verdicts.stranded))
    saved = f"save what only {server} has, then " if own else ""
    goes_on, origin = "its log goes on behind them", rows[0]["origin"]
    against = ""
    if way := list(in_the_way(streams, server, origin)):
        against = f"{server} has {_statements(way)}, which came behind what it missed"
        why = "applied now, what was missed would stand behind that, as it never did on its source"
    elif never := list(not_applied(streams, server, origin)):
        against = f"of what it missed, {_statements(never)} cannot be applied from a log"
        why = "the log tells too little of such a statement, and what follows it may need it"
    if against:
        return goes_on, f"{saved}{refill} {server} from {where}: {against}", why, ""
    source = streams.source_of(origin)
    if before := _only_before(streams, server, origin, rows):
        return (
            goes_on,
            f"{saved}{refill} {server} from {source}, or apply them whole on {server} from {before}, where their rows were not "
            "changed since",
            "nothing will ever send them: a replica asks for what follows the last transaction that it has",
            f"rows that were changed since may stand otherwise: compare them with those of {source} first",
        )
    of_tables = [f"{row['position']}: {row['operation']}" for row in rows if row["operation"] and _of_no_rows(row)]
    beware = "rows that were changed since may stand otherwise there: `workbench plan` tells whether they were"
    if of_tables:
        more = f" and {len(of_tables) - 3:,} more" if len(of_tables) > 3 else ""
        beware = f"of these some change tables or schemas as a whole ({', '.join(of_tables[:3])}{more}): applied late, they undo "
        beware += "what was written since; `workbench plan` tells which can still be applied"
    instead = "" if own else f", or {refill} {server} from there"
    filtered = sorted(left_out(streams, server, origin))
    but = f", without what they did to {', '.join(filtered)} (CONTENT_NOT_COMPARED)" if filtered else ""
    if (later := changed_later(streams, server, origin)) and not of_tables:
        named = ", ".join(later.positions[:3]) + (" and more" if len(later.positions) > 3 else "")
        return (
            goes_on,
            f"ask `workbench plan` whether {named}, which {server} has and which came behind, changed the same rows of "
            f"{', '.join(later.tables)}: if not, apply what it missed from the log of {where}, in the order of commits{but}; if "
            f"so, compare these rows with those of {where}: where they are alike, nothing is to be done",
            "what is applied late takes a row back to what it was before the later change",
            "" if own else f"if the rows are not alike, {refill} {server} from {where}",
        )
    return (
        goes_on,
        f"apply them whole on {server} from the log of {where}, in the order of commits{but}, if `workbench plan` finds nothing "
        f"against it{instead}",
        "nothing will ever send them: a replica asks for what follows the last transaction that it has",
        beware,
    )


def _only_before(streams: Streams, server: str, origin: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The earlier log of the source that alone has some of what a server missed, in words; empty: present logs have it all."""
    before = streams.by_earlier.get((server, origin))
    return before.earlier.place if before and before.inside and not all(row["held_by"] for row in rows) else ""


def _statements(whole: Sequence[WholeTable]) -> str:
    """The first of them, by name."""
    named = [f"{change.position} ({change.statement})" for change in whole[:3]]
    return ", ".join(named) + (f" and {len(whole) - 3:,} more" if len(whole) > 3 else "")


def _of_no_rows(row: Mapping[str, Any]) -> bool:
    """True of a transaction with a statement that changes no rows."""
    return not {*row["operation"].split("+")} <= {*ROW_STATEMENTS.values(), SET_VARIABLE.lower()}
