"""Moves of entries under other parents that exclude each other: each was made where the other one was not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from workbench.rules.contents import name_of
from workbench.rules.spelling import parent_of
from workbench.systems.ds389.rules.proving import rename_words, renamed


class Move(NamedTuple):
    """One renaming of an entry.

    entry   the entry's lasting id
    before  its name before, as logged
    after   its name afterwards
    parent  the parent that it was moved under; empty: it kept its own
    """

    position: str
    origin: str
    entry: str
    before: str
    after: str
    parent: str


def move_of(position: str, origin: str, entry: str, target: str, rename: str) -> Move:
    """The move that a record of a changelog tells."""
    words = rename_words(rename)
    parent = words.get("newsuperiordn") or words.get("newsuperior") or ""
    return Move(position, origin, entry, target, renamed(target, rename), parent)


def exclusive(moves: Iterable[Move], added: Mapping[str, Iterable[str]]) -> list[tuple[Move, Move]]:
    """Pairs of moves of two origins, the earlier first, of which each puts its entry below the entry of the other.

        s1  10  ou=a  below ou=b        s1 has ou=a,ou=b and cannot put ou=b below that
        s2  12  ou=b  below ou=a        s2 has ou=b,ou=a, so at 12 it did not know 10

        s1  10  ou=a  below ou=b        no pair: ou=a was back when s2 moved ou=b
        s1  11  ou=a  below the suffix
        s2  12  ou=b  below ou=a

    `moves` are renamings of one suffix, `added` the positions at which an entry was added, by its name. An entry that was added
    or renamed to the name in between is another one:

        s1  10  ou=a  below ou=b        no pair: the ou=a of 12 was ou=z before
        s2  11  ou=z  becomes ou=a
        s2  12  ou=b  below ou=a
    """
    of_entry: dict[str, list[Move]] = {}
    by_name: dict[str, list[Move]] = {}
    taken: dict[str, list[tuple[str, str]]] = {}
    for move in sorted(set(moves)):
        of_entry.setdefault(move.entry, []).append(move)
        taken.setdefault(name_of(move.after), []).append((move.position, move.entry))
        if move.parent:
            by_name.setdefault(name_of(move.before), []).append(move)
    found = set()
    for later in (move for some in of_entry.values() for move in some if move.parent):
        for above in at_and_above(name_of(later.parent)):
            for earlier in by_name.get(above, ()):
                if (
                    earlier.position < later.position
                    and earlier.origin != later.origin
                    and earlier.entry != later.entry
                    and name_of(later.before) in at_and_above(name_of(earlier.parent))
                    and not _between(earlier, later, (*of_entry[earlier.entry], *of_entry[later.entry]))
                    and not any(earlier.position < one < later.position for one in added.get(above, ()))
                    and not any(
                        earlier.position < position < later.position and entry != earlier.entry
                        for position, entry in taken.get(above, ())
                    )
                ):
                    found.add((earlier, later))
    return sorted(found)


def still_below(move: Move, other: Move, moves: Iterable[Move]) -> bool:
    """True if the entry is below the other one still, whatever it was renamed to since.

        s1  10  ou=a        below ou=b                  of 10: True, the entry has another name in the same place
        s1  20  ou=a,ou=b   renamed to ou=c

        s1  10  ou=a        below ou=b                  of 10: False
        s1  20  ou=a,ou=b   below the suffix

    `moves` are those of the two entries which the server has that made the move.
    """
    moves = sorted({move, other, *moves})
    parent = next(one.parent for one in reversed(moves) if one.entry == move.entry and one.parent)
    names = {name_of(name) for one in moves if one.entry == other.entry for name in (one.before, one.after)}
    return any(name in names for name in at_and_above(name_of(parent)))


def present_name(move: Move, moves: Iterable[Move]) -> str:
    """The name that the entry has after all of these moves."""
    return max({move, *(one for one in moves if one.entry == move.entry)}).after


def _between(earlier: Move, later: Move, moves: Iterable[Move]) -> bool:
    return any(earlier.position < one.position < later.position for one in moves)


def at_and_above(name: str) -> Iterator[str]:
    """A name, and those of all entries above it."""
    while name:
        yield name
        name = parent_of(name)
