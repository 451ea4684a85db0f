"""Why a person has to ask for a repair: what earlier logs of a server, or of the source before, show."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.model import listed
from workbench.repair.plan_types import View
from workbench.replication.stream.diagnosis.gone_from_log import still_in

_NAMED = 5
"""Transactions that a sentence names."""


def had_before(view: View, server: str, lots: Iterable[int]) -> str:
    """Why a person has to ask for what an earlier log of a server has: its rows may be there; empty: no earlier log has it."""
    streams, model, show = view.context.verdicts.streams, view.model, view.context.topology.system.show
    assert streams is not None
    wanted = {(model.lots[number].origin, model.lots[number].last) for number in lots}
    had = [
        gone
        for (name, origin), of_log in streams.gone.items()
        for gone in of_log
        if name == server and (origin, gone.position) in wanted
    ]
    if not had:
        return ""
    named, them = listed([show(gone.position) for gone in had], "and", _NAMED), "it" if len(had) == 1 else "them"
    return (
        f"{server} had {named}, as {listed(sorted({gone.log for gone in had}), 'and')} shows, and must not apply {them} twice: "
        f"first see whether the rows of {them} are there (GONE_FROM_LOG)"
    )


def was_source(view: View, server: str, lots: Iterable[int]) -> str:
    """Why a person has to ask for what a server lacks of an origin that moved away from it; empty: it was not its source."""
    streams = view.context.verdicts.streams
    assert streams is not None
    origins = {view.model.lots[number].origin for number in lots}
    for now, earlier in streams.earlier:
        if earlier.server == server and (moved := sorted(earlier.moved & origins)):
            return (
                f"{server} was the source of server {listed(moved, 'and')} in snapshot {earlier.snapshot}, and {now} is it now: "
                f"no file shows that {server} follows {now}"
            )
    return ""


def thrown_away(view: View, server: str) -> str:
    """Why a person has to ask for all data in place of those of a server, whatever it lacks: earlier logs show more of it."""
    streams, show = view.context.verdicts.streams, view.context.topology.system.show
    assert streams is not None
    own = [told for told in streams.alone_before if told.server == server]
    for (now, origin), of_log in streams.gone.items():
        moved = [one for one in of_log if one.moved]
        held = still_in(streams.logs[server], origin, moved) if server in streams.logs and server != now else set[str]()
        if held:
            named, them = listed([*map(show, sorted(held))], "and", _NAMED), "it" if len(held) == 1 else "them"
            return f"{server} has {named}, which {now} became the source without: first save {them} (GONE_FROM_LOG)"
    gone = [lost for (name, _), of_log in streams.gone.items() if name == server for lost in of_log]
    if not own and not gone:
        return ""
    places = listed(sorted({told.earlier.place for told in own} or {lost.log for lost in gone}), "and")
    if own:
        kept = [f"{show(at)} of server {told.origin}" for told in own for at in told.positions]
        named, them = listed(kept, "and", _NAMED), "it" if len(kept) == 1 else "them"
        return (
            f"{places} shows {named}, which no log of another server has: if the rows of {them} are on {server}, they are thrown "
            f"away; first look for them, and save them (ERRANT_CHANGE, GONE_FROM_LOG)"
        )
    named, them = listed([show(lost.position) for lost in gone], "and", _NAMED), "it" if len(gone) == 1 else "them"
    return (
        f"{server} had {named}, as {places} shows: first see whether the rows of {them} are there (GONE_FROM_LOG): then its log "
        f"alone lost {them}, and its data need not be replaced for {them}"
    )
