"""Repairs for missing changes in systems whose servers keep their own log, and whose log continues after the changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def missed_of_copy(situation: Situation, server: str, where: str) -> tuple[str, str, str, str]:
    """Why changes do not come that a copy goes on behind, what mends it, why, and what to beware of."""
    tiers = situation.verdicts.tiers
    where = next(iter(tiers.copied_from(server)), where) if tiers is not None and tiers.source_is_known else where
    return (
        "its log goes on behind them",
        f"{situation.topology.system.refill} {server} from a copy of {where}, which is shut down cleanly for the time of copying",
        "what follows was applied to pages that lack them: nothing that is written later mends that",
        "read the logs once more before: a dump that was cut or put together wrong looks the same",
    )


def missed_of_stream(
    situation: Situation, server: str, where: str, rows: Sequence[Mapping[str, Any]]
) -> tuple[str, str, str, str]:
    """The same of what a log of transactions goes on behind."""
    of_tables = [f"{row['position']}: {row['operation']}" for row in rows if row["operation"] and not row["target"]]
    beware = "rows that were changed since may stand otherwise there: compare them before"
    if of_tables:
        more = f" and {len(of_tables) - 3:,} more" if len(of_tables) > 3 else ""
        beware = f"of these some change tables or schemas as a whole ({', '.join(of_tables[:3])}{more}): applied late, they undo "
        beware += "what was written since; `workbench plan` tells which can still be applied"
    own = any(row["server"] == server for row in (*situation.verdicts.errant, *situation.verdicts.stranded))
    refill = "" if own else f", or {situation.topology.system.refill} {server} from there"
    return (
        "its log goes on behind them",
        f"apply them whole on {server} from the log of {where}, in the order of commits{refill}",
        "nothing will ever send them: a replica asks for what follows the last transaction that it has",
        beware,
    )
