"""Worked examples of small fleets, step by step: the walk-through of the design note, its flip-flop, and no-operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from workbench.replication.entry.rules.entries import Example, Moment
from workbench.systems.kanidm.rules.walk import DESIGN, FLIPS, KANIDM, OK, REFUSED, Walk

_WHY = {
    REFUSED: "the consumer has not seen as far back as the supplier's changelog goes",
    FLIPS: "the supplier has not seen all that the read-only consumer has: what that has would go back in time",
}


class _Played:
    """A fleet that tells what is done to it."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk

    def write(self, server: str, attribute: str, value: str, at: int, no_op: bool | None = None) -> Moment:
        """A server sets an attribute of the entry x."""
        made = self.walk.write(server, "x", attribute, [value], at, no_op)
        what = f"{server} sets {attribute} of x to {value}"
        if made is None:
            return self._moment(f"{what}, which it is already: the change is left out", (), (server,))
        return self._moment(f"{what}: the change ({made[0]}, {made[1]})", (), (server,))

    def session(self, supplier: str, consumer: str) -> Moment:
        """A session."""
        made = self.walk.session(supplier, consumer)
        lacked = ", ".join(f"({time}, {origin})" for time, origin in made.cids)
        if made.status != OK:
            why = _WHY.get(made.status, made.status)
            return self._moment(f"{supplier} gives {consumer} nothing", (), (supplier, consumer), why)
        sent = f"{', '.join(made.entries)}, for {consumer} lacks {lacked}" if made.cids else "nothing: it lacks nothing"
        return self._moment(f"{supplier} gives {consumer} {sent}", made.went_back, (supplier, consumer))

    def _moment(self, says: str, back: Sequence[tuple[str, str]], servers: Sequence[str], refused: str = "") -> Moment:
        names = self.walk.servers
        vectors = {name: dict(names[name].vector) for name in names}
        contents: dict[str, Mapping[str, Mapping[str, Sequence[Any]]]] = {
            name: self.walk.content(name) for name in names
        }
        return Moment(says, refused, back, servers, vectors, contents)


def _walk_through() -> Iterator[Moment]:
    fleet = _Played(Walk("AB", "R"))
    yield fleet.write("A", "data", "one", 1)
    yield fleet.session("A", "R")
    yield fleet.session("A", "B")
    yield fleet.write("B", "from-b", "two", 2)
    yield fleet.write("A", "data", "three", 3)
    yield fleet.session("A", "R")
    yield fleet.session("B", "A")
    yield fleet.session("A", "R")
    yield fleet.session("A", "B")


def _flipping(condition: bool) -> Iterator[Moment]:
    fleet = _Played(Walk("AB", "R", condition=condition))
    yield fleet.write("A", "data", "one", 1)
    yield fleet.session("A", "R")
    yield fleet.session("A", "B")
    yield fleet.write("A", "data", "three", 3)
    yield fleet.write("B", "from-b", "four", 4)
    yield fleet.session("A", "R")
    yield fleet.session("B", "R")
    yield fleet.session("A", "R")
    yield fleet.session("A", "B")
    yield fleet.session("B", "R")
    yield fleet.session("B", "A")


def _no_operation(rules: str, no_op: bool) -> Iterator[Moment]:
    fleet = _Played(Walk("AB", rules=rules))
    yield fleet.write("A", "name", "w", 1)
    yield fleet.session("A", "B")
    yield fleet.write("B", "name", "l", 2)
    yield fleet.write("A", "name", "w", 3, no_op)
    for supplier, consumer in ("BA", "AB", "BA", "AB"):
        yield fleet.session(supplier, consumer)


def _example(title: str, shows: str, play: Callable[..., Iterator[Moment]], *given: Any) -> Example:
    return Example(title, shows, partial(play, *given))


EXAMPLES: Mapping[str, Example] = {
    "walk-through": _example(
        "Two servers and a read-only one, as the design note walks through it",
        "Entries go whole, so that later changes come along: the order in which changes arrive does not matter.",
        _walk_through,
    ),
    "flip-flop": _example(
        "A read-only consumer that two sources feed, without the condition",
        "B has not seen (3, A), and takes it away from R. The vector of R still claims it, and nobody sends it again.",
        _flipping,
        False,
    ),
    "flip-flop prevented": _example(
        "The same with the supply condition: a source has to have seen all that the consumer has",
        "B waits until it has seen (3, A) itself. Then R gets both.",
        _flipping,
        True,
    ),
    "no-operation": _example(
        "A sets a value that is there already, after B has changed it unseen",
        "That is a change all the same: the last word is that of A, and both servers end with it.",
        _no_operation,
        DESIGN,
        True,
    ),
    "no-operation left out": _example(
        "The same, with the change left out because it seems to change nothing",
        "The servers agree, on the wrong value: an earlier change has won over the last word.",
        _no_operation,
        DESIGN,
        False,
    ),
    "no-operation today": _example(
        "The no-operation under the rules of today's servers, where attributes are sent, not entries",
        "The same holds: a change is a change whatever the value was.",
        _no_operation,
        KANIDM,
        True,
    ),
}
"""Name -> what a small fleet is put through."""
