"""Two states of an entry that meet: the rules agree with a second merge, written from the reference, whatever the order."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from kanidm_fleets import ATTRIBUTES, meeting

from workbench.replication.entry.rules.entries import Cid
from workbench.systems.kanidm.rules.merging import Live, State, Tombstone, merge


def some_state(random: Random) -> State:
    def cid() -> Cid:
        return random.randrange(4), random.choice("ab")

    if random.random() < 0.2:
        return Tombstone(cid())
    return Live(
        random.choice([(0, "a"), (0, "b"), (1, "a")]), {name: cid() for name in ATTRIBUTES if random.random() < 0.7}
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_rules_and_the_reference_leave_the_same(seed: int) -> None:
    random = Random(seed)
    for _ in range(200):
        one, other, third = (some_state(random) for _ in range(3))
        assert merge(one, other).state == meeting(one, other) == meeting(other, one)
        left = [meeting(meeting(*two[:2]), two[2]) for two in permutations((one, other, third))]
        assert all(state == left[0] for state in left)
