"""Moves of entries under other parents that exclude each other: each was made where the other one was not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from workbench.rules.contents import name_of
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

    `moves` are all renamings of the suffix, `added` the positions at which an entry was added, by its name: one that was added
    in between is another entry of the same name.
    """
    of_entry: dict[str, list[Move]] = {}
    by_name: dict[str, list[Move]] = {}
    for move in sorted(set(moves)):
        of_entry.setdefault(move.entry, []).append(move)
        if move.parent:
            by_name.setdefault(name_of(move.before), []).append(move)
    found = set()
    for later in (move for some in of_entry.values() for move in some if move.parent):
        for above in _at_and_above(name_of(later.parent)):
            for earlier in by_name.get(above, ()):
                if (
                    earlier.position < later.position
                    and earlier.origin != later.origin
                    and earlier.entry != later.entry
                    and name_of(later.before) in _at_and_above(name_of(earlier.parent))
                    and not _between(earlier, later, (*of_entry[earlier.entry], *of_entry[later.entry]))
                    and not any(earlier.position < one < later.position for one in added.get(above, ()))
                ):
                    found.add((earlier, later))
    return sorted(found)


def undone(move: Move, moves: Iterable[Move]) -> bool:
    """True if the entry was renamed or moved again later."""
    return any(one.entry == move.entry and one.position > move.position for one in moves)


def _between(earlier: Move, later: Move, moves: Iterable[Move]) -> bool:
    return any(earlier.position < one.position < later.position for one in moves)


def _at_and_above(name: str) -> Iterator[str]:
    """A name, and those of all entries above it."""
    while name:
        yield name
        name = parent_of(name)


def parent_of(name: str) -> str:
    r"""The name of the entry above; empty: there is none.

    >>> parent_of(r"cn=a\, b,ou=c,dc=d")
    'ou=c,dc=d'
    """
    at = 0
    while (at := name.find(",", at)) > 0 and name[at - 1] == "\\":
        at += 1
    return name[at + 1 :] if at >= 0 else ""
