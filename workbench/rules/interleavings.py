"""Whether a repair makes a server worse in any order in which servers may exchange changes: all orders are tried.

A few servers have one entry, or lack it. Each keeps a vector and a log, and any link may at any moment bring its consumer the
next change that it lacks. So a change may come by several paths, and in another order than it was made in:

    s1 deletes ann      s3, which never had her, refuses that (32), goes on, and does not log it
    s1 adds ann again   s3 takes that and logs it
    s3 -> s2            s2 still has the old ann: it keeps both, as a conflict, and its vector covers the deletion now
    s1 -> s2            nothing: the deletion never comes to s2

To wait before the addition is not enough where clients write meanwhile: any later change of s1 that s3 passes on does the same.
It is enough where the server that lacks the entry feeds no other one.

What is covered: at most `MOST_SERVERS` servers that run, links that run, the acts of a repair on one entry, and so many changes
of clients at any supplier and moment, to other entries or to the same one. What is not: clocks that disagree, servers that stop,
links that fail, refusals for other reasons than that the entry is absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

MOST_SERVERS = 4
MOST_STATES = 200_000
"""So many states are looked at: a search that needs more proves nothing."""

DELETE, ADD, MODIFY, OTHER = "delete", "add", "modify", "other"
OLD, NEW = 0, 1
"""The entry as it was, and the one that was added again."""


class Act(NamedTuple):
    """What a repair does: `everywhere`: the next act waits until every server has this one, and shows it."""

    kind: Literal["delete", "add", "modify"]
    server: int
    everywhere: bool = False


@dataclass(frozen=True)
class Shape:
    """Servers by number, and what a repair does there.

    links    supplier and consumer of every link that runs
    writers  the servers that make changes
    without  those that lack the entry, or its value, and whose vectors cover that
    whole    True: they lack the entry; False: only its present value
    others   how many changes of other entries clients make meanwhile
    same     how many changes of this entry; the acts of a repair compare it with all servers first
    """

    servers: int
    links: frozenset[tuple[int, int]]
    writers: frozenset[int]
    without: frozenset[int]
    acts: tuple[Act, ...]
    whole: bool = True
    others: int = 1
    same: int = 0


class _Change(NamedTuple):
    """A change, by its place in the order of all: `value` is the client's change whose content it has."""

    origin: int
    kind: str
    value: int


class _Server(NamedTuple):
    """`entries`: (which, change that wrote it, content); `aside`: a second entry of the name; `had`: the newest content seen."""

    entries: tuple[tuple[int, int, int], ...]
    aside: bool
    vector: tuple[int, ...]
    log: frozenset[int]
    had: int


class _State(NamedTuple):
    servers: tuple[_Server, ...]
    changes: tuple[_Change, ...]
    acts: int
    others: int
    same: int


@dataclass(frozen=True)
class Damage:
    """A server that ends worse than it began, and the events that lead there. `server` is None where the search was cut."""

    server: int | None
    what: str
    events: tuple[tuple[str, int, int], ...] = ()
    """(what happened, by or from which server, to which server)"""


@lru_cache(maxsize=512)
def damage(shape: Shape) -> Damage | None:
    """The shortest way in which the repair makes a server worse; None if no order does."""
    assert shape.servers <= MOST_SERVERS, "more servers are too many to try all orders"
    start = _begin(shape)
    before: dict[_State, tuple[_State, tuple[str, int, int]] | None] = {start: None}
    edge = [start]
    while edge:
        found: list[_State] = []
        for state in edge:
            resting = True
            for event, after, of_client in _events(shape, state):
                resting = resting and of_client
                if after not in before:
                    before[after] = state, event
                    found.append(after)
            if resting and (worse := _worse(shape, state)):
                return Damage(*worse, tuple(_path(before, state)))
        if len(before) > MOST_STATES:
            return Damage(None, f"more than {MOST_STATES:,} states: not all orders were tried")
        edge = found
    return None


def _path(
    before: dict[_State, tuple[_State, tuple[str, int, int]] | None], state: _State
) -> list[tuple[str, int, int]]:
    events = []
    while step := before[state]:
        state, event = step
        events.append(event)
    return events[::-1]


def _begin(shape: Shape) -> _State:
    def server(number: int) -> _Server:
        lacks = number in shape.without
        entries = () if lacks and shape.whole else ((OLD, -1, -1 if lacks else 0),)
        return _Server(entries, False, (-1,) * shape.servers, frozenset(), -1 if lacks else 0)

    return _State(tuple(map(server, range(shape.servers))), (), 0, shape.others, shape.same)


def _events(shape: Shape, state: _State) -> Iterator[tuple[tuple[str, int, int], _State, bool]]:
    """What may happen next, the state then, and whether it needs a client."""
    for by, to in sorted(shape.links):
        supplier, consumer = state.servers[by], state.servers[to]
        news = [one for one in supplier.log if one > consumer.vector[state.changes[one].origin]]
        if news:
            number = min(news)
            taken = _taken(consumer, number, state.changes[number])
            yield (state.changes[number].kind, by, to), _with(state, to, taken), False
    if state.acts < len(shape.acts) and _ready(shape, state):
        act = shape.acts[state.acts]
        after = _made(state, act.server, act.kind, _content(state.servers[act.server]))
        yield (act.kind, act.server, act.server), after._replace(acts=state.acts + 1), False
    for server in sorted(shape.writers):
        if state.others:
            after = _made(state, server, OTHER, 0)
            yield (OTHER, server, server), after._replace(others=state.others - 1), True
        if state.same and state.servers[server].entries:
            after = _made(state, server, MODIFY, len(state.changes) + 1)
            yield ("write", server, server), after._replace(same=state.same - 1), True


def _ready(shape: Shape, state: _State) -> bool:
    """True if the next act may be done: the one before has arrived where it must, and no server has a later value."""
    act = shape.acts[state.acts]
    before = shape.acts[state.acts - 1] if state.acts else None
    if before is not None and before.everywhere:
        own = (before.server, before.kind)
        last = max(number for number, one in enumerate(state.changes) if (one.origin, one.kind) == own)
        for one in state.servers:
            kept = before.kind == DELETE and any(which == OLD for which, _, _ in one.entries)
            if kept or one.vector[before.server] < last:
                return False
    if act.kind == ADD:
        return True
    return bool(state.servers[act.server].entries) and all(
        _content(one) <= _content(state.servers[act.server]) for one in state.servers
    )


def _content(server: _Server) -> int:
    return max((content for _, _, content in server.entries), default=0)


def _made(state: _State, server: int, kind: str, content: int) -> _State:
    change = _Change(server, kind, content)
    number = len(state.changes)
    taken = _taken(state.servers[server], number, change)
    return _with(state._replace(changes=(*state.changes, change)), server, taken)


def _with(state: _State, number: int, server: _Server) -> _State:
    servers = (*state.servers[:number], server, *state.servers[number + 1 :])
    return state._replace(servers=servers)


def _taken(server: _Server, number: int, change: _Change) -> _Server:
    """The server after it was sent the change: its vector has passed it, and it logs it unless it refused it."""
    vector = tuple(number if at == change.origin else seen for at, seen in enumerate(server.vector))
    entries, aside = {which: (wrote, content) for which, wrote, content in server.entries}, server.aside
    refused = False
    if change.kind == DELETE:
        refused = entries.pop(OLD, None) is None
    elif change.kind == ADD:
        aside = aside or OLD in entries
        entries[NEW] = number, change.value
    elif change.kind == MODIFY:
        refused = not entries
        for which, (wrote, _) in list(entries.items()):
            if number > wrote:
                entries[which] = number, change.value
    kept = tuple(sorted((which, *some) for which, some in entries.items()))
    log = server.log if refused else server.log | {number}
    after = _Server(kept, aside, vector, log, server.had)
    return after._replace(had=max(server.had, _content(after) if kept else -1))


def _worse(shape: Shape, state: _State) -> tuple[int, str] | None:
    """A server that has less than it had, or an entry twice, now that nothing moves any more."""
    stuck = state.acts < len(shape.acts) and state.acts > 0
    for number, one in enumerate(state.servers):
        if one.aside:
            return number, "keeps the old entry and the new one, as a conflict"
        if stuck and any(which == OLD for which, _, _ in one.entries):
            return number, "never gets the deletion, and the entry is gone elsewhere"
    for number, one in enumerate(state.servers):
        if not one.entries and not (shape.whole and number in shape.without):
            return number, "has lost the entry"
        if one.entries and _content(one) < one.had:
            return number, "has lost a value that a client wrote"
    return None


def told(found: Damage, names: Sequence[str]) -> str:
    """The events in one sentence, with the names of the servers."""
    if found.server is None:
        return found.what
    said = []
    for what, by, to in found.events:
        change = {DELETE: "the deletion", ADD: "the addition", MODIFY: "the new value"}.get(what, "another change")
        if by != to:
            said.append(f"{names[by]} sends {names[to]} {change}")
        elif what in (OTHER, "write"):
            said.append(f"a client writes {'another entry' if what == OTHER else 'the entry'} on {names[by]}")
        else:
            said.append(f"{names[by]} makes {change}")
    return f"{names[found.server]} {found.what}: {', '.join(said)}"
