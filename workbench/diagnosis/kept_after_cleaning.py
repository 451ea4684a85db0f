"""What a server has of an origin although its vector has no element of it any more: the cleaning takes that, and leaves the data.

a took 1 to 10 of ID 3, and cleaned ID 3; c made 11 to 32 as it since     a waits for 22, not for 32
h cleaned ID 3 and was filled with the data of a, which has all           h waits for none
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from workbench.diagnosis.cleaned_origins import claims_nothing_of_cleaned
from workbench.engine.position_index import HIGHEST, LOWEST, Pair, PositionIndex, Span
from workbench.engine.positions import NONE, Positions, union
from workbench.tables import Numbers

if TYPE_CHECKING:
    from workbench.diagnosis.contents import Contents
    from workbench.diagnosis.evidence_grounds import Proofs

LOOKED_UP = 200_000
"""Changes of an origin that are looked up; of more, all that the vector does not claim are said to wait."""

_STRETCHES = 500
"""Stretches that are kept apart for a plan; of more, the others count as lacking there."""

Stretch = tuple[Pair, Pair]
"""The first and the last of some changes that follow each other, all of which a server has."""


def as_elsewhere(contents: Contents, server: str, some: Positions) -> Numbers:
    """For each change: are all entries of the server as on another one, whose entries were exported when it had the change?"""
    found = np.zeros(len(some), bool)
    if server not in contents.exports or not contents.unequal.whole:
        return found
    keys = some.keys(contents.evidence.system, contents.evidence.names)
    for other in sorted(contents.exports.keys() - {server}):
        left_out = contents.left_out[server] | contents.left_out[other]
        if all(held[server].like(held[other], left_out) for held in contents.held.values()):
            lacks = contents.lacks.get(other, set())
            found |= np.array([contents.covers(other, key) and key not in lacks for key in keys], bool)
    return found


def kept_of(
    proofs: Proofs, known: PositionIndex, origin: str, has: Callable[[Positions], Numbers]
) -> tuple[Positions, tuple[Stretch, ...]]:
    """The changes of such an origin that logs or entries show the server to have, and the stretches that they make up."""
    if not claims_nothing_of_cleaned(proofs, origin):
        return NONE, ()
    span = Span(LOWEST, HIGHEST)
    if not 0 < known.tally(origin, span)[0] <= LOOKED_UP:
        return NONE, ()
    found, stretches = list[Positions](), list[Stretch]()
    for some in known.chunks(origin, span):
        there = has(some)
        found.append(some[there])
        stretches += _stretches(some, there)
    return union(found), tuple(stretches[:_STRETCHES])


def _stretches(some: Positions, there: Numbers) -> Iterable[Stretch]:
    steps = np.diff(np.concatenate([[0], there.astype(np.int8), [0]]))
    for first, behind in zip(np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True):
        yield _pair(some, first), _pair(some, behind - 1)


def _pair(some: Positions, at: int) -> Pair:
    return int(some.hi[at]), int(some.lo[at])
