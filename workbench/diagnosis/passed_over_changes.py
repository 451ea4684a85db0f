"""Sessions that would skip changes for good: the supplier does not have them, and sends later ones of the same origin.

b waits for 4 changes of origin 3, the last from 14:13:37; the first 3 are missing on c    b's vector moves past these 3
r waits for 14 changes of a; h recreated its changelog after the 7th                       r's vector moves past 7
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.closed_ways import has_some, runs
from workbench.engine.position_index import Span
from workbench.model import listed, step
from workbench.rules.send_session import SEND

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = Mapping[str, Any]


def note_passed_over(context: DetectorContext) -> None:
    """Note of what waits how many changes every session that brings it would pass over: whoever feeds the server lacks them."""
    feeding: dict[tuple[str, str | None], list[Row]] = {}
    for pair in context.pairs:
        if runs(pair):
            feeding.setdefault((pair["consumer"], pair["suffix"]), []).append(pair)
    for row in context.verdicts.pending:
        if "may_pass_over" in row:  # played with the pulls
            row["passed_over"] = 0
            continue
        ways = [
            pair
            for pair in feeding.get((row["server"], row["suffix"]), ())
            if pair["supplier"] in row["suppliers"] and has_some(pair, row["origin"])
        ]
        by = {pair["supplier"]: passed_over(context, pair).get(row["origin"], 0) for pair in ways}
        row["passed_over"] = _for_good(row, ways, by)
        row["may_pass_over"] = {} if row["passed_over"] else {name: count for name, count in by.items() if count}


def _for_good(row: Row, ways: Sequence[Row], by: Mapping[str, int]) -> int:
    """How many of what waits no session brings, whichever comes first: each passes over some, or ends before the last of them.

    5 to 9 wait; a has 5 alone, and the log of h begins at 7    -> 6 comes over none
    """
    sent = {pair["supplier"]: pair["to_send"][row["origin"]] for pair in ways}
    if any(some["last"] >= row["last"] and not by[name] for name, some in sent.items()):
        return 0
    whole = max((some["count"] for name, some in sent.items() if not by[name]), default=0)
    return max(min(filter(None, by.values()), default=0) - whole, 0)


def brought_in_part(row: Row) -> bool:
    """True if a session over a link that runs would pass over some of the changes that a server waits for."""
    return bool(row.get("passed_over") or row.get("may_pass_over"))


def passed_over(context: DetectorContext, pair: Row) -> dict[str, int]:
    """Origin -> how many changes that its consumer waits for a session would pass over: its supplier has only later ones."""
    found: dict[str, int] = {}
    for row in context.verdicts.pending if pair["decision"] == SEND else ():
        sent = pair["to_send"].get(row["origin"])
        if not sent or (row["server"], row["suffix"]) != (pair["consumer"], pair["suffix"]):
            continue
        hidden = _before_its_log(context, pair, row) + _missed_itself(context, pair, row, sent["last"])
        if sent["last"] >= row["last"]:
            hidden = min(hidden, row["available"] - sent["count"])
        if hidden > 0:
            found[row["origin"]] = hidden
    return found


def are_lost(row: Row, count: int) -> bool:
    """True if so many changes that a session passes over are those that no server has any more: no other way brings them."""
    return count <= (row.get("lost") or 0)


def of_them_passed_over(row: Row) -> str:
    """How many of the changes that a server waits for do not come, and why, in words."""
    count, suppliers = row["passed_over"], row["suppliers"]
    these = "it" if row["count"] == 1 else "all of them" if count == row["count"] else f"{count:,} of them"
    logs, lack, have = ("log", "lacks", "has") if len(suppliers) == 1 else ("logs", "lack", "have")
    it = "it" if count == 1 else "them"
    if are_lost(row, count):
        return f"the next session passes over {these}, which no server has any more (CHANGES_THROWN_AWAY)"
    return (
        f"the next session passes over {these} for good, for the {logs} of {listed(suppliers, 'and')} {lack} {it} and {have} "
        "later ones"
    )


def fill_instead(context: DetectorContext, row: Row) -> Mapping[str, Any]:
    """What to do for a server whose next session would pass over changes."""
    server, feeds = row["server"], listed(row["suppliers"], "and")
    refill = context.topology.system.refill
    return step(
        f"switch off what leads from {feeds} to {server} until another server that has them sends to it; where none does, "
        f"{refill} {server} from one that has all changes",
        f"as soon as a later change comes from {feeds}, the vector of {server} covers them, and no session sends them again",
        f"first see that {server} holds nothing that no other server has; what {server} passes on lacks them, too",
    )


def _before_its_log(context: DetectorContext, pair: Row, row: Row) -> int:
    """How many of the changes that wait are older than all that the supplier's log, which was read whole, has of the origin."""
    system, known = context.topology.system, context.verdicts.known.get(pair["suffix"])
    begins = _log_begins(context, pair, row["origin"])
    if not begins or not known:
        return 0
    low, high = (system.halves(position) for position in (system.typed(row["first"]) or "", begins))
    return known[-1].tally(row["origin"], Span((low[0], low[1] - 1), (high[0], high[1] - 1)))[0]


def _missed_itself(context: DetectorContext, pair: Row, row: Row, upto: str) -> int:
    """How many of the changes that wait the supplier is proven to lack, before the last one that it would send."""
    typed = context.topology.system.typed
    lacks = context.once(_lacking).get((pair["supplier"], pair["suffix"], row["origin"]), [])
    low = max(typed(row["first"]) or "", _log_begins(context, pair, row["origin"]) or "")
    return max(bisect_right(lacks, typed(upto) or "") - bisect_left(lacks, low), 0)


def _lacking(context: DetectorContext) -> dict[tuple[str, str | None, str], list[str]]:
    """Server, suffix and origin -> the positions that it is proven to lack, in their order."""
    found: dict[tuple[str, str | None, str], list[str]] = {}
    for row in context.verdicts.missing:
        if position := context.topology.system.typed(row["position"]):
            found.setdefault((row["server"], row["suffix"], row["origin"]), []).append(position)
    return {key: sorted({*positions}) for key, positions in found.items()}


def _log_begins(context: DetectorContext, pair: Row, origin: str) -> str | None:
    """The first position that the log of the supplier of a pair, which was read whole, has of an origin."""
    supplier = context.replica(pair["supplier"], pair["suffix"])
    log = supplier.log if supplier else None
    begins: str | None = log.facts.get("by_origin", {}).get(origin, {}).get("min") if log and log.whole else None
    return begins
