"""What a repair achieves on a model: what is restored, what is lost, and what it would hide or throw away unsaid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.rules.repair_model import MissingAt, Model


@dataclass(frozen=True)
class Achieved:
    """A repair on the model: what was lacking and is there, what is lost, and what it would hide or throw away unsaid.

    restored   lots that a server lacked and holds when the repair is done
    lost       lots that a server held and now does not
    unsaid     lots that are missing now, were not before, and were not saved; and those that a server held, and waits for now
    left       what is missing still
    pending    what waits still
    cut        servers that get the changes of a supplier now, and would not once another server was filled
    """

    restored: frozenset[MissingAt]
    lost: frozenset[MissingAt]
    unsaid: frozenset[MissingAt]
    left: frozenset[MissingAt]
    pending: frozenset[MissingAt]
    cut: frozenset[str] = frozenset()


def achieved(before: Model, effects: Sequence[Mapping[str, Any]]) -> tuple[Achieved, Model]:
    """Try a repair: what it achieves when life goes on behind it, and the model with its effects done.

    What would have been delivered or hidden without the repair is no merit and no fault of it: what comes only when life
    goes on behind it is not restored, and what would be hidden anyway is not unsaid.
    """
    without = before.copy()
    without.settle()
    lacking = without.missing() | without.pending()
    held = without.kept()
    done = before.copy()
    done.settle()
    done.do(effects)
    there = done.held()
    after = done.copy()
    after.go_on()
    without.go_on()
    known = before.given
    # What no server holds, no repair can take away: a session that moves a vector over it hides what nobody would send.
    somewhere = set(known) if before.more else {lack.lot for lack in held if lack.lot in known}
    missing = {lack for lack in after.missing() if lack.lot in known}
    now = after.kept()
    doomed = without.missing()
    # What a server had and does not get back while life goes on is taken from it, whoever else may send it some day.
    taken = after.pending() & (held - now)
    filling = any(effect["do"] == "initialise" for effect in effects)
    unfed = _fed(without) - _fed(after) if filling else ()
    return (
        Achieved(
            frozenset(lack for lack in lacking & there if lack.lot in known),
            frozenset(lack for lack in held - now if lack.lot in known),
            frozenset(
                lack for lack in (missing - doomed) | taken if lack.lot in somewhere and lack.lot not in after.saved
            ),
            frozenset(missing),
            frozenset(lack for lack in after.pending() if lack.lot in known),
            frozenset(server for server, writer in unfed if server != writer),
        ),
        done,
    )


def left_behind(before: Model, effects: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Servers that get nothing more from some supplier if others write while a repair fills servers.

    What is written before a filling begins comes to the filled server as data, and its new log has none of it: whoever it feeds
    has not got that either, and no session finds the record to begin at.

        a and b feed h, h feeds r; a writes, and h is filled from a before it has sent that on     -> r is left behind
    """
    filled = {str(effect["server"]) for effect in effects if effect["do"] == "initialise"}
    if not filled:
        return frozenset()
    at_rest = before.copy()
    at_rest.settle()
    busy = at_rest.copy()
    for name, server in busy.servers.items():
        if server.origin is not None and server.works and name not in filled:
            busy.write(name)
    apart = [link for link in busy.links if not {link.supplier, link.consumer} & filled]
    while sum(busy.session(link) for link in apart):
        pass
    busy.do(effects)
    return frozenset(server for server, writer in _fed(at_rest) - _fed(busy) if server != writer)


_ROUNDS = 3
"""Of changes of all suppliers: one that a consumer got from elsewhere first may keep a single session from its anchor."""


def _fed(model: Model) -> set[tuple[str, str]]:
    """(server, writer): who gets what each supplier writes, once life has gone on for some time."""
    later = model.copy()
    for _ in range(_ROUNDS):
        later.go_on()
    writers = [server.name for server in later.servers.values() if server.origin is not None and server.works]
    written = range(len(later.lots) - len(writers), len(later.lots))
    return {
        (server.name, writer)
        for number, writer in zip(written, writers, strict=True)
        for server in later.servers.values()
        if number in server.holds
    }
