"""Changes that a server refused, that its suppliers go on without, and that its vector does not cover yet.

389 Directory Server, a change of an entry that the consumer c lacks (live, 2.3.1):

    17:27:11  a sends 6b086bef000400010000, c answers 32 (no such object): the vector of c does not move
    17:27:12  the session goes on; the next one sends the change again, and c refuses it again
    17:40:00  c applies a later change of the same origin: its vector covers this one, and no session sends it again

So no session that runs now brings the change: it arrives only if c gets the entry before a later change of its origin arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.positions import of_keys
from workbench.model import counted, listed, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.diagnosis.evidence_grounds import Proofs
    from workbench.intake.inputs import Input

Row = Mapping[str, Any]

NO_ENTRY = 32
"""The result for a change of an entry that the server does not have."""


class RefusedChange(TypedDict):
    """A change that a server refused: its result as a number and in words, how often, and what is known of the change."""

    position: str
    code: int
    result: str
    times: int
    operation: str | None
    target: str | None


def refused_of(proofs: Proofs, row: Row, logs: Iterable[Input]) -> list[RefusedChange]:
    """The changes of a row of what waits that the server refused at every attempt, in their order.

    Each with its result, how often the access log shows it, operation and target. A result after which the supplier sends the
    change again before anything else does not count: APPLY_RETRY_LOOP says so.
    """
    system, evidence = proofs.system, proofs.evidence
    first, last = system.typed(row["first"]) or "", system.typed(row["last"]) or ""
    where = (pc.field("origin") == row["origin"]) & pc.field("position").is_valid() & pc.field("link").is_null()
    where &= (pc.field("position") >= first) & (pc.field("position") <= last)
    since = max(filter(None, (proofs.since, proofs.perhaps)), default=None)
    if since is not None:
        where &= pc.field("at") >= pa.scalar(since, pa.timestamp("us", "UTC"))
    outcomes = pc.field("outcome").isin(["applied", "refused"])
    told = evidence.told("applied", ["position", "outcome", "code"], where & outcomes, row["server"])
    ends = [("outcome", "max"), ("outcome", "min"), ("code", "max"), ("code", "min"), ("position", "count")]
    answered = told.group_by("position").aggregate(ends).sort_by("position").to_pylist()
    codes: dict[str, tuple[int, int]] = {}
    for answer in answered:
        code = answer["code_max"]
        refused = answer["outcome_min"] == answer["outcome_max"] == "refused" and code == answer["code_min"]
        if refused and code is not None and proofs.proving.goes_on(code):
            codes[answer["position"]] = code, answer["position_count"]
    about = evidence.described(of_keys(system, [*codes], evidence.numbers), logs) if codes else {}
    return [
        RefusedChange(
            position=system.show(position),
            code=code,
            result=proofs.proving.in_words(code),
            times=times,
            operation=about.get(position, {}).get("operation"),
            target=about.get(position, {}).get("target"),
        )
        for position, (code, times) in codes.items()
    ]


def lacked_entries(context: DetectorContext, row: Row) -> list[Row]:
    """The missing changes of the server that the refused ones need: those that made an entry of the same name."""
    names = {(one["target"] or "").lower() for one in row["refused"] if one["code"] == NO_ENTRY and not harmless(one)}
    return [
        one
        for one in context.verdicts.missing
        if (one["server"], one["suffix"]) == (row["server"], row["suffix"])
        and one["operation"] == "add"
        and (one["target"] or "").lower() in names - {""}
    ]


def harmless(one: Row) -> bool:
    """True for the refused delete of an entry that is not there."""
    return bool(one["code"] == NO_ENTRY and one["operation"] == "delete")


def how_refused(row: Row) -> str:
    """`c refused 1 change of them with 32 (no such object), 5 times by its access log`."""
    refused = row["refused"]
    results = listed(sorted({one["result"] for one in refused}), "or")
    times, count = sum(one["times"] for one in refused), len(refused)
    what = "it" if row["count"] == count == 1 else "them" if row["count"] == count else f"{count:,} of them"
    often = "once" if times == 1 else f"{times:,} times"
    return f"{row['server']} refused {what} with {results}, {often} in all by its access log"


def entry_first(context: DetectorContext, row: Row) -> Mapping[str, Any]:
    """What to do about changes that a server refuses."""
    refused, server = [one for one in row["refused"] if not harmless(one)], row["server"]
    if not refused:
        return step(
            "leave it: a delete of an entry that is not there changes nothing",
            "each session sends it again, and it is refused again, until a later change of its origin arrives",
        )
    it, they, is_ = ("it", "it", "is") if len(refused) == 1 else ("them", "they", "are")
    why = (
        f"each session sends {it} again and {server} refuses {it} again; the next change of origin {row['origin']} that "
        f"{server} applies moves its vector over {it}: {they} {is_} missing for good then"
    )
    if lacked := lacked_entries(context, row):
        these = counted(len(lacked))
        return step(
            f"do what MISSED_CHANGE says of {server} on {these}, {lacked[0]['position']}{' and later' * (len(lacked) > 1)}",
            f"without {'it' if len(lacked) == 1 else 'them'} {server} lacks the entry; {why}",
        )
    if all(one["code"] == NO_ENTRY for one in refused):
        entries = listed(sorted({one["target"] or "an entry that no log names" for one in refused})[:3])
        return step(f"see whether {server} has {entries}, or waits for the change that makes it", why)
    return step(f"see why {server} refuses {it}, and mend that before later changes of this origin arrive", why)


def refused_say(count: int, on: str, least: str) -> str:
    """`1 change was refused by b, c at every attempt`, for a headline."""
    return f"{least}{count:,} {'change was' if count == 1 else 'changes were'} refused by {on} at every attempt"


def refused_at(pending: Sequence[Row], server: str, suffix: str | None) -> list[Row]:
    """The refused changes of a server among what waits."""
    return [
        one for row in pending if (row["server"], row["suffix"]) == (server, suffix) for one in row.get("refused") or ()
    ]
