"""Changes that one server alone holds: what is to be done before anything is filled.

b  was restored from a backup, lacks 4 changes that all others have, and made 1 since that it cannot send
a  has the 4 and waits for the 1: filled from b, it would lose the 4: the 1 is written again

c  made 3 changes that reached a alone, was initialised from b, which lacks them, and made 1 since
a  is the last server with the 3, and waits for the 1: filled from anywhere, it would lose the 3: c is initialised from a
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.diagnosing.closed_ways import unlogged
from workbench.diagnosing.repair_sources import can_fill
from workbench.model import counted, step
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def write_again_first(situation: Situation, consumer: str, suffix: str | None) -> dict[str, Any] | None:
    """What to do for a server that waits for nothing but what is stranded on one whose data lacks changes; None for another."""
    found = situation.verdicts
    if {"missing", "stranded", "pending"} & found.cut().keys():
        return None
    lacking = lacking_what_others_have(situation, suffix)
    unrecorded = {server for server, of in situation.unrecorded if of == suffix}
    waits = [
        row
        for row in found.pending
        if (row["server"], row["suffix"]) == (consumer, suffix) and not (row["suppliers"] or row.get("through"))
    ]
    if not waits or not all(row.get("counted", True) for row in waits):
        return None
    typed = situation.topology.system.typed
    for holder in sorted((lacking | unrecorded) - {consumer}):
        mine = [
            (row["origin"], typed(row["position"]) or "")
            for row in found.stranded
            if (row["server"], row["suffix"]) == (holder, suffix)
        ]
        ranges = [(row["origin"], typed(row["first"]) or "", typed(row["last"]) or "", row["count"]) for row in waits]
        own = situation.replica(holder, suffix)
        logged = [
            sum(of == origin and low <= position <= high for of, position in mine) for origin, low, high, _ in ranges
        ]
        # What its log lost it has all the same, if it made them.
        if all(
            count <= held + (unlogged(row) if own and own.origin == origin else 0) and held
            for (origin, _, _, count), held, row in zip(ranges, logged, waits, strict=True)
        ):
            count = sum(row["count"] for row in waits)
            shown, them = max(count - sum(logged), 0), "it" if count == 1 else "them"
            saved = f"save {counted(count - shown)} from the changelog of {holder}"
            if shown:
                saved += f" and from its entries what {counted(shown)} made that no log has"
            if holder not in lacking:
                return step(
                    f"do what REPLICATION_WAS_OFF says of {holder}; then {saved}, initialise {holder} from another server, and "
                    f"write {them} again",
                    f"no other collected server has {them}, and {situation.unrecorded[holder, suffix]}",
                    f"do not initialise {consumer} from {holder}: what clients did there would come to {consumer}, too",
                )
            return step(
                f"{saved}, initialise {holder} from a server that has what {holder} lacks, then write {them} again",
                f"no other collected server has {them}, and {holder} lacks changes itself that others have (MISSED_CHANGE)",
                f"do not initialise {consumer} from {holder}: {consumer} would lose what {holder} lacks",
            )
    return None


def lacking_what_others_have(situation: Situation, suffix: str | None) -> set[str]:
    """The servers that lack for good what another one can give them. What no server has, no filling brings."""
    return {
        row["server"]
        for row in situation.verdicts.missing
        if row["suffix"] == suffix and (row["held_by"] or row.get("shown_by"))
    }


def only_here(situation: Situation, server: str, suffix: str | None) -> list[dict[str, Any]]:
    """The changes that servers lack for good and this one alone holds, a row of each; the others lack or wait for them."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    lacking: dict[tuple[str, str], set[str]] = {}
    for row in situation.verdicts.missing:
        key = row["origin"], row["position"]
        if row["suffix"] == suffix and row["held_by"] == [server]:
            rows.setdefault(key, row)
            lacking.setdefault(key, set()).add(row["server"])
    typed = situation.topology.system.typed
    others = [
        one
        for one in situation.topology.replicas
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


def keep_only_holder(situation: Situation, consumer: str, suffix: str | None) -> dict[str, Any] | None:
    """What to do for a server that waits and is the last one to hold changes that others lack; None for another."""
    if situation.topology.pulling or not (mine := only_here(situation, consumer, suffix)):
        return None
    positions, them = {row["position"] for row in mine}, "it" if len(mine) == 1 else "them"
    lacking = sorted({row["server"] for row in situation.verdicts.missing if row["position"] in positions})
    these = f"{counted(len(mine))}, {mine[0]['position']} to {mine[-1]['position']}"
    why = f"filled from another server, {consumer} would lose {them}, and nothing could give {them} back any more"
    if len(lacking) == 1 and can_fill(situation, consumer, lacking[0], suffix):
        return step(
            f"do not initialise {consumer}: only {consumer} holds {these}; initialise {lacking[0]} from {consumer} instead",
            why,
            f"what {consumer} waits for, only {lacking[0]} may hold: save it first, and write it again afterwards",
        )
    return step(
        f"save {these}, from the changelog of {consumer}, which alone has {them}; then initialise {consumer} from a server "
        f"that has what it waits for, and write {them} again",
        why,
        f"do not initialise {consumer} before that",
    )
