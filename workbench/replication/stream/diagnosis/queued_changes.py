"""What waits for a replica that fetches into a queue and applies from there: how it comes, and what keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.model import listed, step
from workbench.replication.stream.diagnosis.appliers import APPLIER, IO, Applied

Row = Mapping[str, Any]

_NO_SESSION = "nothing shows that"


def in_a_queue(row: Row) -> bool:
    """True if a replica told how far it applied its master's log: its queue, or what it asks for, brings what waits."""
    return "queued" in row


def behind_gap_say(count: int, on: str, least: str) -> str:
    """What a headline says of what stands behind a gap of a queue."""
    return f"{least}{count:,} {'waits' if count == 1 else 'wait'} behind what the queue of {on} lacks"


def behind_unlike_say(count: int, on: str, least: str) -> str:
    """The same of what stands behind something that a queue has otherwise than the log of the master."""
    return f"{least}{count:,} {'waits' if count == 1 else 'wait'} behind what the queue of {on} has otherwise than its master"


def behind_part_say(count: int, on: str, least: str) -> str:
    """The same of what stands behind something that the log of the master has in part."""
    return (
        f"{least}{count:,} for {on} {'waits' if count == 1 else 'wait'} behind what the log of its master has in part"
    )


def behind_kind(row: Row) -> str:
    """Which kind of it what stands behind a gap is."""
    return "behind_unlike" if row.get("unlike_first") else "behind_part" if row.get("in_part_first") else "behind_gap"


BEHIND_SAY = (("behind_gap", behind_gap_say), ("behind_unlike", behind_unlike_say), ("behind_part", behind_part_say))
"""Kinds of what stands behind something in a queue, and what a headline says of each."""


def how_queued(row: Row) -> str:
    """Where the transactions stand that wait, as the end of a sentence."""
    queued, to_fetch, unread, behind = (row[key] for key in ("queued", "to_fetch", "unread", "behind_gap"))
    told = [f"{queued:,} {_is(queued)} in its queue"] if queued else []
    source = ", ".join(row["suppliers"])
    if to_fetch and queued is None:
        told.append(f"{source} has {'it' if to_fetch == 1 else 'them'}, and nothing of its queue was collected")
    elif to_fetch:
        told.append(f"{source} would send {to_fetch:,}")
    told += (
        [f"{unread:,} may be in rows of its queue that cannot be read, or are to be fetched from {source}"]
        if unread
        else []
    )
    lacks = "has otherwise than the log of its master" if row.get("unlike_first") else "lacks"
    lacks = f"its queue {lacks}" if not row.get("earlier_first") else "its queue and the log of its master lack"
    lacks = "the log of its master has in part" if row.get("in_part_first") else lacks
    told += [f"{behind:,} {'waits' if behind == 1 else 'wait'} behind what {lacks}"] if behind else []
    before = row.get("purged", 0)
    gap = [f"{before:,} commit{'' if before == 1 else 's'} before that will not come (QUEUE_GAP)"] if before else []
    return "; ".join([listed(told), *gap, *([why_held(row)] if row["held"] else [])])


def why_held(row: Row) -> str:
    """Which thread stands still, and what does not come while it does."""
    if APPLIER in row["stopped"]:
        return "its applier stands still, and applies nothing until the server is started anew"
    return "its io thread stands still, and fetches nothing until the server is started anew"


def queue_step(row: Row) -> Mapping[str, Any] | None:
    """What to do first; None: they come by themselves."""
    if row.get("numbers_anew"):
        return step(
            f"keep {row['server']} from them until it is known whether its master was made anew (GONE_FROM_LOG)",
            "the log of its master has other transactions under the numbers that it goes by than before",
        )
    if row.get("changed_first"):
        return step(
            f"keep the applier of {row['server']} from {listed(row['changed_first'], 'and')} until its two contents are compared "
            "(TXN_CONFLICT)",
            "the log of its master has another content than an earlier one: nothing tells which one was committed",
        )
    if row["behind_gap"] and row.get("unlike_first"):
        return step("compare what differs first (TXN_CONFLICT)", "what follows must not be applied before that")
    if row["behind_gap"] and row.get("in_part_first"):
        return step(
            "fill its queue first (TXN_INCOMPLETE, TXN_UNFINISHED)",
            "of what the log of its master has in part it fetches a part, or nothing, and does not ask again",
        )
    if row["behind_gap"]:
        codes = "GONE_FROM_LOG, QUEUE_GAP, TXN_INCOMPLETE" if row.get("earlier_first") else "QUEUE_GAP, TXN_INCOMPLETE"
        return step(f"fill its queue first ({codes})", "what follows must not be applied before that")
    if row.get("not_given"):
        return step("fill its queue first (QUEUE_GAP)", "what follows must not be applied before that")
    if row.get("unended"):
        return step(
            f"first see whether {listed(row['unended'], 'and')} came before them (TXN_UNFINISHED)",
            "a replica passes over what has no end in the log of its master, and does not ask for it again",
        )
    return held_step(row)


def held_step(row: Row) -> Mapping[str, Any] | None:
    """What to do first about what a thread keeps that stands still; None: none does."""
    if row.get("held") and row.get("stopped"):
        return step("start what stands still (APPLIER_STOPPED)", "they come by themselves then")
    return None


def comes_first(row: Row) -> str:
    """What comes before what waits, and the log of the source cannot give, as the end of a sentence; empty: nothing."""
    return (
        f"; before them comes what that log cannot give: {listed(row['not_given'], 'and')}"
        if row.get("not_given")
        else ""
    )


def needed_first(row: Row) -> tuple[Mapping[str, Any], ...]:
    """The step before what waits may be applied by hand."""
    if not row.get("not_given"):
        return ()
    why = "a replica that goes on behind it never asks for it again"
    if row.get("earlier_first"):
        first = "what comes first is there (GONE_FROM_LOG, TXN_CONFLICT), and apply none of them by hand before that"
        return (step(f"keep the applier of {row['server']} from them until {first}", why),)
    return (step("apply none of them by hand before what comes first", why),)


def held_by(row: Row) -> str:
    """What keeps what waits for a server: a thread of it, or that no session is begun."""
    if row.get("rests"):
        return f"{_NO_SESSION} {listed(row['suppliers'], 'or')} begins a session with {row['server']}"
    thread = APPLIER if APPLIER in row["stopped"] else IO
    return f"the {thread} thread of {row['server']} stands still"


def no_session_say(whys: Iterable[str]) -> str:
    """Of what keeps changes (`held_by`) that no session is begun, as the end of a sentence; empty: it is something else."""
    found = [*dict.fromkeys(why for why in whys if why.startswith(_NO_SESSION))]
    return f", and {listed(found, 'and')}" if found else ""


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def kept_by_appliers(applied: Iterable[Applied], server: str, count: int) -> dict[str, Any]:
    """What a row of what a server waits for tells besides, where all its appliers stand still, whatever master they are for."""
    mine = [one for one in applied if one.server == server]
    stopped = bool(mine) and all(APPLIER in one.stopped for one in mine)
    return {"held": count, "stopped": [APPLIER]} if stopped else {}
