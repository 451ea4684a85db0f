"""A node given a place that others have to leave, who then find another: chains of exchanges in a tree of limited fanout.

At most one node is without a place at any moment, with all below it, and everybody else hangs on a root all the while: no chain,
wherever it ends, can leave nodes that hang on each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

_PATIENCE = 60_000
_OF_ONE = 3_000
"""How many places are looked at, in all and for one chain, before what is reached has to do: many ways lead to the same end."""


@dataclass
class Exchanging:
    """A tree, and who may hang where.

    above    node -> its parent; who is missing has no place yet
    homes    node -> the parent under which it costs no move
    parents  node -> those that it may hang on, whatever their load; the best first
    fanout   how many a node may have
    """

    above: dict[str, str]
    homes: Mapping[str, str]
    parents: Callable[[str], Iterable[str]]
    fanout: int
    roots: Collection[str]
    children: dict[str, set[str]] = field(default_factory=dict, init=False)
    left: int = field(default=_PATIENCE, init=False)

    def __post_init__(self) -> None:
        self.children = _children(self.above)

    def place(self, name: str) -> bool:
        """Give it a place, by the chain of exchanges that costs the fewest moves of those that are found."""
        for parent in [one for one in (self.homes.get(name), *self.parents(name)) if one is not None]:
            if self._room(parent) and self._hangs(parent, {}, name):
                self._apply({name: parent})
                return True
        return self._chain(name, 0, 1 << 30)

    def fill(self, names: Collection[str], least: int) -> list[str]:
        """Give places to as many as can be; who is left. `least`: that many are known to find none.

        No node that has a place is without one afterwards, unless others, more than those, get one for it.
        """
        loose = self._place_all(name for name in names if name not in self.above)
        while len(loose) > least:
            fewer = next(
                (left for name in list(self.above) if len(left := self._instead(name, loose)) < len(loose)), None
            )
            if fewer is None:
                break
            loose = fewer
        return loose

    def _place_all(self, names: Iterable[str]) -> list[str]:
        loose = list(names)
        while loose and len(loose) > len(left := [name for name in loose if not self.place(name)]):
            loose = left
        return loose

    def _instead(self, name: str, loose: list[str]) -> list[str]:
        """Who is left if that node gives way, and those that hang on it, to others and only then comes itself."""
        if self.left <= 0:
            return loose
        self.left -= len(self.above)
        before = dict(self.above)
        self.children[self.above.pop(name)].discard(name)
        self.take_apart(name)
        gone = sorted(one for one in before if one not in self.above and one != name)
        left = self._place_all([*loose, *gone, name])
        if len(left) >= len(loose):
            self.above, self.children = before, _children(before)
        return left

    def take_apart(self, top: str) -> None:
        """Of a node without a place, all below it: each may find one for itself."""
        waiting = [top]
        for name in waiting:  # grows
            for child in self.children.pop(name, set()):
                del self.above[child]
                waiting.append(child)

    def send_home(self) -> None:
        """Fewer moves: nodes go back to where they were, as long as the chain that it starts saves more than it costs."""
        again = True
        while again and self.left > 0:
            away = sorted(name for name, parent in self.above.items() if self.homes.get(name, parent) != parent)
            again = any(self._chain(name, -1, 0, first=self.homes[name]) for name in away)

    def _chain(self, start: str, cost: int, below: int, first: str | None = None, others: Collection[str] = ()) -> bool:
        """Look for the cheapest chain, cheaper than `below`, after which nobody is without a place, and do it.

        others  one that serves nobody may be left out for one of these; OUT is nobody, there the chain ends
        """
        order = count()
        waiting: list[tuple[int, int, int, dict[str, str], str]] = [(cost, 0, next(order), {}, start)]
        seen = set()
        enough = max(0, self.left - _OF_ONE)
        while waiting and self.left > enough:
            cost, _, _, changed, hand = heappop(waiting)
            if not hand:
                self._apply(changed)
                return True
            load = Counter(changed.values())
            load.subtract(Counter(self.above[name] for name in (*changed, hand) if name in self.above))
            for parent in [first] if first and not changed else self.parents(hand):
                self.left -= 1
                if not self._hangs(parent, changed, hand):
                    continue
                price = cost + self._costs(hand, parent)
                ends = [("", price)]
                if len(self.children.get(parent, ())) + load[parent] >= self.fanout:
                    ends = [(one, price - self._costs(one, parent)) for one in self._served(parent, changed, hand)]
                for one, price in ends:
                    rest = {name: to for name, to in {**changed, hand: parent}.items() if name != one}
                    key = (one, frozenset(rest.items()))
                    if key not in seen and (one or price < below):
                        seen.add(key)
                        heappush(waiting, (price, len(rest), next(order), rest, one))
        return False

    def _costs(self, name: str, parent: str) -> int:
        return int(self.homes.get(name) != parent)

    def _room(self, parent: str) -> bool:
        return len(self.children.get(parent, ())) < self.fanout

    def _served(self, parent: str, changed: Mapping[str, str], hand: str) -> list[str]:
        """Who hangs on that node; each may be the next without a place."""
        stayed = [one for one in self.children.get(parent, ()) if one not in changed and one != hand]
        return sorted(stayed + [one for one, to in changed.items() if to == parent])

    def hangs(self, name: str) -> bool:
        """On a root."""
        return self._hangs(name, {}, "")

    def _hangs(self, name: str, changed: Mapping[str, str], hand: str) -> bool:
        """On a root, and not on the node that is without a place."""
        while name not in self.roots:
            above = None if name == hand else changed.get(name) or self.above.get(name)
            if above is None:
                return False
            name = above
        return True

    def _apply(self, changed: Mapping[str, str]) -> None:
        for name, parent in changed.items():
            if name in self.above:
                self.children[self.above[name]].discard(name)
            self.above[name] = parent
            self.children.setdefault(parent, set()).add(name)


def _children(above: Mapping[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, parent in above.items():
        found.setdefault(parent, set()).add(name)
    return found
