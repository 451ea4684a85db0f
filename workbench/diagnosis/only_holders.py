"""Changes that one server alone holds: what is to be done before anything is filled.

b  was restored from a backup, lacks 4 changes that all others have, and made 1 since that it cannot send
a  has the 4 and waits for the 1: filled from b, it would lose the 4: the 1 is written again

c  made 3 changes that reached a alone, was initialised from b, which lacks them, and made 1 since
a  is the last server with the 3, and waits for the 1: filled from anywhere, it would lose the 3: c is initialised from a
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.closed_ways import unlogged
from workbench.diagnosis.gone_entries import missing_in_effect
from workbench.diagnosis.repair_sources import can_fill
from workbench.model import counted, ends, listed, step
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


@dataclass(frozen=True)
class _Kept:
    """What a server waits for and only the log of one server has whose data lack changes.

    logged   how many of them that log has; the others its entries alone show
    also_on  the servers that got them, and can give them to nobody
    """

    holder: str
    count: int
    logged: int
    also_on: tuple[str, ...]


def write_again_first(context: DetectorContext, consumer: str, suffix: str | None) -> dict[str, Any] | None:
    """What to do for a server that waits for nothing but what only one has whose data lack changes; None for another."""
    if (kept := _kept_by_one(context, consumer, suffix)) is None:
        return None
    holder, count, them = kept.holder, kept.count, "it" if kept.count == 1 else "them"
    shown = max(count - kept.logged, 0)
    saved = f"save {counted(count - shown)} from the changelog of {holder}"
    if shown:
        saved += f" and from its entries what {counted(shown)} made that no log has"
    also = listed(kept.also_on) if kept.also_on else ""
    has = f"of the servers that can fill others none has {them}" if also else f"no other collected server has {them}"
    added = f"; an entry that is added again gets another unique ID than it has on {also}" if also else ""
    if holder not in lacking_what_others_have(context, suffix):
        return step(
            f"do what REPLICATION_WAS_OFF says of {holder}; then {saved}, initialise {holder} from another server, and "
            f"write {them} again",
            f"{has}, and {context.unrecorded[holder, suffix]}",
            f"do not initialise {consumer} from {holder}: what clients did there would come to {consumer}, too{added}",
        )
    return step(
        f"{saved}, initialise {holder} from a server that has what {holder} lacks, "
        f"{f'then {also}, ' if also else ''}then write {them} again",
        f"{has}, and {holder} lacks changes itself that others have (MISSED_CHANGE)",
        f"do not initialise {consumer} from {holder}: {consumer} would lose what {holder} lacks{added}",
    )


def _kept_by_one(context: DetectorContext, consumer: str, suffix: str | None) -> _Kept | None:
    found = context.verdicts
    if {"missing", "stranded", "pending"} & found.cut().keys():
        return None
    unrecorded = {server for server, of in context.unrecorded if of == suffix}
    waits = [
        row
        for row in found.pending
        if (row["server"], row["suffix"]) == (consumer, suffix) and not (row["suppliers"] or row.get("through"))
    ]
    if not waits or not all(row.get("counted", True) for row in waits):
        return None
    for holder in sorted((lacking_what_others_have(context, suffix) | unrecorded) - {consumer}):
        own = context.replica(holder, suffix)
        logged = [_in_its_log(context, holder, row) for row in waits]
        # What its log lost it has all the same, if it made them.
        if all(
            row["count"] <= held + (unlogged(row) if own and own.origin == row["origin"] else 0) and held
            for row, held in zip(waits, logged, strict=True)
        ):
            others = (name for row in waits for name in _having(context, row) if name != holder)
            return _Kept(holder, sum(row["count"] for row in waits), sum(logged), tuple(sorted({*others})))
    return None


def _in_its_log(context: DetectorContext, holder: str, row: Mapping[str, Any]) -> int:
    """How many of the changes of one origin that a server waits for only the log of this one has."""
    typed, suffix, origin = context.topology.system.typed, row["suffix"], row["origin"]
    low, high = typed(row["first"]) or "", typed(row["last"]) or ""
    stranded = sum(
        (one["server"], one["suffix"], one["origin"]) == (holder, suffix, origin)
        and low <= (typed(one["position"]) or "") <= high
        for one in context.verdicts.stranded
    )
    logs = {name for name in _having(context, row, some=True) if keeps_log(context, name, suffix)}
    return max(stranded, row["available"] if logs == {holder} else 0)


def _having(context: DetectorContext, row: Mapping[str, Any], some: bool = False) -> list[str]:
    """The servers that have all the changes of one origin that another one waits for; or any of them (`some`)."""
    wanted = context.topology.system.typed(row["first"] if some else row["last"]) or ""
    return [
        one.server
        for one in context.topology.replicas
        if one.suffix == row["suffix"] and (last(one.seen(), row["origin"]) or "") >= wanted
    ]


def keeps_log(context: DetectorContext, server: str, suffix: str | None) -> bool:
    """True if the server keeps a changelog: the others can fill none."""
    replica = context.replica(server, suffix)
    return replica is not None and replica.keeps_log


def waits_for_it(context: DetectorContext) -> dict[tuple[str, str | None], list[str]]:
    """A server whose data lack changes -> those that wait for what it has and no whole server: it is saved before a filling.

    a and c were restored and wrote again, b and h have what both lack, and wait for what they made since    a and c, each: b, h
    """
    found: dict[tuple[str, str | None], set[str]] = {}
    for row in context.verdicts.pending:
        if row["suppliers"] or row.get("through"):
            continue
        suffix = row["suffix"]
        lossy = lacking_what_others_have(context, suffix) | {name for name, of in context.unrecorded if of == suffix}
        giving = {name for name in _having(context, row, some=True) if keeps_log(context, name, suffix)}
        for name in giving - {row["server"]} if giving - {row["server"]} <= lossy else ():
            found.setdefault((name, suffix), set()).add(row["server"])
    return {key: sorted(found[key]) for key in sorted(found, key=str)}


def lacking_what_others_have(context: DetectorContext, suffix: str | None) -> set[str]:
    """The servers that lack for good what another one can give them. What no server has, no filling brings."""
    return {
        row["server"]
        for row in missing_in_effect(context)
        if row["suffix"] == suffix and (row["held_by"] or row.get("shown_by"))
    }


def only_here(context: DetectorContext, server: str, suffix: str | None) -> list[dict[str, Any]]:
    """The changes that servers lack for good and this one alone holds, a row of each; the others lack or wait for them."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    lacking: dict[tuple[str, str], set[str]] = {}
    for row in missing_in_effect(context):
        key = row["origin"], row["position"]
        if row["suffix"] == suffix and row["held_by"] == [server]:
            rows.setdefault(key, row)
            lacking.setdefault(key, set()).add(row["server"])
    typed = context.topology.system.typed
    others = [
        one
        for one in context.topology.replicas
        if one.suffix == suffix and one.server != server and one.keeps_log  # no other one gives anything back
    ]
    return [
        row
        for (origin, position), row in sorted(rows.items())
        if server not in lacking[origin, position]
        and all(
            one.server in lacking[origin, position] or (last(one.seen(), origin) or "") < (typed(position) or "")
            for one in others
        )
    ]


def as_collected(context: DetectorContext, suffix: str | None) -> str:
    """How a clause begins that says what only one server has: servers that were not collected may have it, too."""
    return "of the collected servers " if context.not_collected(suffix) else ""


def keep_only_holder(context: DetectorContext, consumer: str, suffix: str | None) -> dict[str, Any] | None:
    """What to do for a server that waits and is the last one to hold changes that others lack; None for another."""
    if context.topology.pulling or not (mine := only_here(context, consumer, suffix)):
        return None
    positions, them = {row["position"] for row in mine}, "it" if len(mine) == 1 else "them"
    lacking = sorted({row["server"] for row in context.verdicts.missing if row["position"] in positions})
    these = f"{counted(len(mine))}, {ends(mine[0]['position'], mine[-1]['position'])}"
    known = as_collected(context, suffix)
    back = f"no other collected server could give {them} back" if known else f"nothing could give {them} back any more"
    why = f"filled from another server, {consumer} would lose {them}, and {back}"
    if len(lacking) == 1 and can_fill(context, consumer, lacking[0], suffix):
        return step(
            f"do not initialise {consumer}: {known}only {consumer} holds {these}; initialise {lacking[0]} from {consumer} "
            "instead",
            why,
            f"what {consumer} waits for, only {lacking[0]} may hold: save it first, and write it again afterwards",
        )
    return step(
        f"save {these}, from the changelog of {consumer}, which {known}alone has {them}; then initialise {consumer} from a "
        f"server that has what it waits for, and write {them} again",
        why,
        f"do not initialise {consumer} before that",
    )
