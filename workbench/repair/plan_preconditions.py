"""Whether the servers are still those that a plan was made for: their vectors now against those that it stands on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from workbench.repair.plan_types import Vectors


@dataclass(frozen=True)
class Allowed:
    """What may have changed.

    progress   positions may have gone forward: written changes go on on a live system
    still      but not at these (server, origin)
    down       servers that need not answer: the plan has taken them down
    ours       servers whose data a step that was begun already may have changed in part: how they stand is its work
    origins    origins that may have become known where they were not
    delivered  what servers claimed after the last step that was done: it may reach others of which that step did not wait
    """

    progress: bool = False
    still: Collection[tuple[str, str]] = ()
    down: Collection[str] = ()
    ours: Collection[str] = ()
    origins: Collection[str] = ()
    delivered: Collection[Mapping[str, str]] = ()


def not_as_planned(
    planned: Vectors, now: Vectors, order: Callable[[str], str | None], allowed: Allowed = Allowed()
) -> list[str]:
    """What changed and may not have, one sentence each.

    `order` gives a position's order key, None if it is none. A server that the plan does not know was down when it was
    made: it is asked nothing.
    """
    found = []
    for server, held in planned.items():
        if server not in now:
            if server not in allowed.down:
                found.append(f"{server} cannot be asked what it holds")
            continue
        for origin in sorted({*held, *now[server]}):
            before, after = held.get(origin), now[server].get(origin)
            if before != after and not _may(server, origin, before, after, order, allowed):
                found.append(f"{server} {_moved(origin, before, after)}")
    return found


def _may(
    server: str,
    origin: str,
    before: str | None,
    after: str | None,
    order: Callable[[str], str | None],
    allowed: Allowed,
) -> bool:
    if (server, origin) in allowed.still:
        # A step that throws data away may have done so and been killed: what is gone is its work, what was written is not.
        return server in allowed.ours and _forward(after, before, order)
    if server in allowed.ours:
        return True
    if _forward(before, after, order) and any(_within(after, held.get(origin), order) for held in allowed.delivered):
        return True
    if before is None:
        return origin in allowed.origins
    return allowed.progress and _forward(before, after, order)


def _forward(before: str | None, after: str | None, order: Callable[[str], str | None]) -> bool:
    if before is None or after is None:
        return before is None
    first, second = order(before), order(after)
    return first is not None and second is not None and first < second


def _within(position: str | None, limit: str | None, order: Callable[[str], str | None]) -> bool:
    return position is not None and limit is not None and (position == limit or _forward(position, limit, order))


def _moved(origin: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"knows of an origin {origin} that it did not know of, up to {after}"
    if after is None:
        return f"knows nothing of origin {origin} any more, where it was at {before}"
    return f"went from {before} to {after} for origin {origin}"
