"""Which log stands for a source cluster whose nodes hold different ones: no node is taken for the truth by its name.

The higher generation is the history that was elected. Where generations do not tell, the log of the one master does; else
nothing tells, and each node below is held against the log that it follows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from workbench.engine.physical import Looked, Pair
from workbench.replication.tier.rules.physical_log import Compared, Place


@dataclass(frozen=True)
class Apart:
    """Nodes of one source cluster that hold other records at the same places.

    histories    the nodes with a log, those of one history together; the one that stands for the cluster first
    generations  node -> the newest generation that its log, or its own answer, tells
    elected      whose log is that of the cluster; None: nothing tells
    leads        that is so because its cluster says that it is the master; else because its generation is the highest
    first        the first place at which two of them are known to differ
    count        at how many places these two do
    match        the newest commit that these two have alike
    """

    histories: tuple[tuple[str, ...], ...]
    generations: Mapping[str, int]
    elected: str | None
    leads: bool
    first: Place
    count: int
    match: Place | None

    @property
    def nodes(self) -> list[str]:
        """All of them."""
        return [name for history in self.histories for name in history]


def forked(both: Compared) -> bool:
    """Whether two logs are two histories, or hold different records somewhere: one that only lacks some, or is longer, is not."""
    if both.differing.count:
        return True
    parts = both.parts
    beyond = [
        parts is not None and any(place >= parts for place in one.first)
        for one in (both.only_copy, both.only_reference)
    ]
    return all(beyond)


def parted_from(both: Compared) -> Place:
    """The first place at which two logs are two histories: what one of them lacks before that may be a hole of its dump."""
    alone = (place for one in (both.only_copy, both.only_reference) for place in one.first)
    beyond = [place for place in alone if both.parts is not None and place >= both.parts]
    return min([*both.differing.first[:1], *beyond])


def pairs_of(roots: Sequence[str], followers: Collection[str]) -> list[Pair]:
    """Each two nodes of a cluster, and each of them with every log below it."""
    return [*permutations(roots, 2), *((root, name) for root in roots for name in followers if name not in roots)]


def apart(looked: Looked, roots: Sequence[str], generations: Mapping[str, int], leading: Sequence[str]) -> Apart:
    """What is known of the nodes of a cluster; `roots`: those with a log, that with most records first, all pairs looked at."""
    histories: list[list[str]] = []
    for root in roots:
        of = next((one for one in histories if not any(forked(looked.pairs[root, other]) for other in one)), None)
        if of is None:
            histories.append([root])
        else:
            of.append(root)
    newest = [max((generations[name] for name in one if name in generations), default=None) for one in histories]
    highest = [at for at, one in enumerate(newest) if one is not None and one == max(filter(None, newest), default=0)]
    elected, leads = None, False
    if len(highest) == 1 and None not in newest:
        elected = max(histories[highest[0]], key=lambda name: generations.get(name, -1))
    elif len(leading) == 1 and leading[0] in roots and (None in newest or len(highest) == len(newest)):
        elected, leads = leading[0], True
    if elected is not None:
        histories.sort(key=lambda one: elected not in one)
    first, *others = histories
    across = (looked.pairs[one, other] for one in first for history in others for other in history)
    both = next(pair for pair in across if forked(pair))
    return Apart(
        tuple(tuple(one) for one in histories),
        generations,
        elected,
        leads,
        parted_from(both),
        both.differing.count or both.only_copy.count,
        both.match,
    )
