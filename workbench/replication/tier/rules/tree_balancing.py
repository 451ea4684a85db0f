"""A tree brought back within its fanout, and under nodes that have the files needed, with the fewest moves.

A move gives a node, with all below it, another source. Who must move: a node without a source that can serve it, and as many of
an over-full node's children as are too many. Nodes whose logs end in the same file are alike in where they may go, so the moves
are found as a flow from files to free places, and single nodes are named at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from workbench.replication.tier.rules.moves import Exchanging
from workbench.replication.tier.rules.tiers import Pull, Registry, tree
from workbench.replication.tier.rules.topology_what_if import Files, files_of

_Class = int | None
"""The file in which a log ends; None: not known, such a node may go anywhere."""


@dataclass(frozen=True)
class Moved:
    """A node that gets another source; `was` is None where it had none."""

    name: str
    was: str | None
    to: str
    why: str


@dataclass(frozen=True)
class Balance:
    """How the tree is brought in order.

    moves     each node at most once, in an order in which they can be done
    fewest    it was proven that no fewer moves do
    unplaced  node -> why no source was found for it: it has to be built anew, and takes no place meanwhile
    after     the registry with all of it done
    """

    moves: tuple[Moved, ...]
    fewest: bool
    unplaced: Mapping[str, str]
    after: Registry


def balanced(
    registry: Registry,
    source_database: str,
    fanout: int,
    files: Files | None = None,
    ends: Mapping[str, int] | None = None,
) -> Balance:
    """The fewest moves after which every node hangs on the source, none serves more than the fanout, and each has a source
    with the file that it needs.

    files  what each node's log holds, as it was probed; else what the registry tells. A node of which nothing is known keeps
           those that pull from it, and gets no other
    ends   the file in which a log ends, of nodes of which nothing more is known: they need that one
    """
    named = {one.name: (one.database, one.host) for one in registry.nodes}
    # The registry offers nobody that it has no row of, whatever such a node has.
    known = {name: held for name, held in (files_of(registry) if files is None else files).items() if name in named}
    made = _Balancing(registry, source_database, fanout, known, ends or {})
    made.go()
    named |= {pull.source: (pull.source_database, pull.source_host) for pull in registry.pulls}
    named |= {pull.name: (pull.database, pull.host) for pull in registry.pulls}
    to = {one.name: one.to for one in made.moves}
    pulls = tuple(pull for pull in registry.pulls if made.parent.get(pull.name, pull.source) == pull.source)
    pulls = tuple(pull for pull in pulls if pull.name not in to)
    pulls += tuple(Pull(*named[name], *named[source]) for name, source in to.items())
    return Balance(tuple(made.moves), made.fewest, made.unplaced, replace(registry, pulls=pulls))


class _Balancing:
    def __init__(self, registry: Registry, source: str, fanout: int, files: Files, ends: Mapping[str, int]) -> None:
        self.fanout, self.files = fanout, files
        places = tree(registry, source).places
        self.tier = {name: place.tier for name, place in places.items()}
        self.roots = [name for name in places if self.tier[name] == 0]
        self.nodes = [name for name in places if self.tier[name] != 0]
        # Of several sources the one by the shortest way is the node's own.
        self.parent: dict[str, str] = {}
        for name in self.nodes:
            known = [above for above in places[name].parents if above in places]
            if known:
                self.parent[name] = min(known, key=lambda above: (self._rank(above), above))
        self.file: dict[str, _Class] = {
            name: files[name][1] if name in files else ends.get(name) for name in self.nodes
        }
        self.moves: list[Moved] = []
        self.unplaced: dict[str, str] = {}
        self.fewest = True

    def go(self) -> None:
        """Find the moves."""
        self._find_servers()
        self._find_kept()
        free = self._flow()
        self._name_them(free)

    def _rank(self, name: str) -> float:
        tier = self.tier[name]
        return float("inf") if tier is None else tier

    def _serves(self, parent: str, file: _Class) -> bool:
        return parent in self.files and (file is None or self.files[parent][0] <= file <= self.files[parent][1])

    def _keeps(self, child: str) -> bool:
        """Its source can serve it, or nothing says that it cannot."""
        above, file = self.parent.get(child), self.file[child]
        return above in self.able and (above not in self.files or self._serves(above, file))

    def _find_servers(self) -> None:
        """From the source downwards: who could be served at all, whatever the fanout, and by whom."""
        self.able = set(self.roots)
        self.servers: dict[_Class, list[str]] = {}
        waiting = list(self.roots)
        by_file: dict[_Class, list[str]] = {}
        for name in self.nodes:
            by_file.setdefault(self.file[name], []).append(name)
        kept: dict[str, list[str]] = {}
        for name, above in self.parent.items():
            if above not in self.files:
                kept.setdefault(above, []).append(name)
        for name in waiting:  # grows
            for file in [one for one in by_file if self._serves(name, one)]:
                fresh = [one for one in by_file.pop(file) if one not in self.able]
                self.able.update(fresh)
                waiting += fresh
            fresh = [one for one in kept.get(name, ()) if one not in self.able]
            self.able.update(fresh)
            waiting += fresh
        for name in self.nodes:
            if name not in self.able:
                self.unplaced[name] = f"no node that hangs on the source has file {self.file[name]}"
        order = sorted(self.able, key=lambda name: (self._rank(name), name))
        for file in {self.file[name] for name in self.able if name in self.file}:
            self.servers[file] = [name for name in order if self._serves(name, file)]

    def _find_kept(self) -> None:
        """Who may stay where it is, circles cut; and how many moves there must be at the least."""
        self.placing = [name for name in self.nodes if name in self.able]
        kept = {name: self.parent[name] for name in self.placing if self._keeps(name)}
        least = len(self.placing) - len(kept)
        load = Counter(kept.values())
        over = {name: count - self.fanout for name, count in load.items() if count > self.fanout}
        least += sum(over.values())
        self.circles = False
        for circle in _circles(kept):
            self.circles = True
            cut = next((name for name in circle if over.get(kept[name], 0) > 0), None)
            if cut is None:
                cut, least = circle[0], least + 1
            else:
                over[kept[cut]] -= 1
            del kept[cut]
        self.kept, self.least = kept, least

    def _flow(self) -> Counter[tuple[str, _Class]]:
        """How many of which file each node serves, within the fanout: as few of them new as can be."""
        self.had = Counter((above, self.file[name]) for name, above in self.kept.items())
        has: Counter[tuple[str, _Class]] = Counter()
        self.used: Counter[str] = Counter()
        for (above, file), count in sorted(self.had.items(), key=lambda item: (item[0][0], str(item[0][1]))):
            taken = min(count, self.fanout - self.used[above])
            if taken > 0:
                has[above, file] = taken
                self.used[above] += taken
        lacking = Counter(self.file[name] for name in self.placing)
        for (_, file), count in has.items():
            lacking[file] -= count
        self.cost = self.short = 0
        self.inside = _reached(self.roots, self.kept)
        self.next = dict.fromkeys(self.servers, 0)
        for file in sorted(lacking, key=lambda one: (one is not None, one or 0)):
            for _ in range(lacking[file]):
                if (parent := self._spare(file)) is not None:
                    has[parent, file] += 1
                    self.used[parent] += 1
                    self.cost += 1
                elif not self._rearranged(file, has):
                    self.short += 1
        return has

    def _spare(self, file: _Class) -> str | None:
        """A node with a free place for that file: one that hangs on the source now, as high as there is."""
        servers = self.servers[file]
        while self.next[file] < len(servers) and self.used[servers[self.next[file]]] >= self.fanout:
            self.next[file] += 1
        found = None
        for name in servers[self.next[file] :]:
            if self.used[name] < self.fanout:
                if name in self.inside:
                    return name
                found = found or name
        return found

    def _rearranged(self, file: _Class, has: Counter[tuple[str, _Class]]) -> bool:
        """Make room by moving others on, by the way that costs the fewest further moves (Bellman and Ford over the files)."""
        places: dict[str, list[_Class]] = {}
        for (parent, other), count in has.items():
            if count:
                places.setdefault(parent, []).append(other)
        cost: dict[_Class, int] = {file: 0}
        came: dict[_Class, tuple[_Class, str]] = {}
        for _ in range(len(self.servers) + 1):
            changed = False
            for one, so_far in list(cost.items()):
                for parent in self._open_to(one):
                    adding = so_far + (has[parent, one] >= self.had[parent, one])
                    for other in places.get(parent, ()):
                        price = adding - (has[parent, other] > self.had[parent, other])
                        if other != one and price < cost.get(other, 1 << 30):
                            cost[other], came[other], changed = price, (one, parent), True
            if not changed:
                break
        best: tuple[int, _Class, str] | None = None
        for one, so_far in cost.items():
            for parent in self._open_to(one):
                price = so_far + (has[parent, one] >= self.had[parent, one])
                if self.used[parent] < self.fanout and (best is None or price < best[0]):
                    best = (price, one, parent)
        if best is None:
            return False
        price, one, parent = best
        self.cost += price
        self.used[parent] += 1
        has[parent, one] += 1
        while one in came and one != file:
            before, through = came[one]
            has[through, one] -= 1
            has[through, before] += 1
            one = before
        return True

    def _open_to(self, file: _Class) -> Iterable[str]:
        yield from self.servers[file]
        yield from (
            parent for (parent, one), count in self.had.items() if one == file and count and parent not in self.files
        )

    def _name_them(self, has: Counter[tuple[str, _Class]]) -> None:
        """Who stays, and who goes where: first to those that hang on the source then, so that no two hang on each other."""
        weight = _weights(self.kept)
        left = Counter(has)
        self.above: dict[str, str] = {}
        for name in sorted(self.kept, key=lambda one: (-weight.get(one, 0), one)):
            key = (self.kept[name], self.file[name])
            if left[key] > 0:
                left[key] -= 1
                self.above[name] = self.kept[name]
        self.children: dict[str, set[str]] = {}
        for name, parent in self.above.items():
            self.children.setdefault(parent, set()).add(name)
        self.slots = {key: count for key, count in left.items() if count > 0}
        self.load = Counter(self.above.values())
        self.inside = _reached(self.roots, self.above)
        pools: dict[_Class, list[str]] = {}
        for name in sorted(set(self.placing) - self.above.keys(), key=lambda one: (-weight.get(one, 0), one)):
            pools.setdefault(self.file[name], []).append(name)
        while any(pools.values()):
            wanted = {parent for parent, _ in self.slots}
            spot = next((key for key in self.slots if key[0] in self.inside and pools.get(key[1])), None)
            if spot is not None:
                parent, file = spot
                self._give_up(spot)
                name = next((one for one in pools[file] if wanted & _below(one, self.children)), pools[file][0])
            else:
                found = self._elsewhere(pools)
                if found is None:
                    break
                name, parent = found
                file = self.file[name]
            pools[file].remove(name)
            self._put(name, parent)
        self._exchange([one for pool in pools.values() for one in pool])
        waiting = list(self.roots)
        for parent in waiting:  # grows, downwards: whom a node is moved to hangs on the source already
            for name in sorted(self.children.get(parent, ())):
                waiting.append(name)
                if self.parent.get(name) != parent:
                    self._move(name, parent)
        self.parent.update(self.above)
        self.fewest = self.fewest and len(self.moves) in self._proven()

    def _put(self, name: str, parent: str) -> None:
        self.above[name] = parent
        self.children.setdefault(parent, set()).add(name)
        self.load[parent] += 1
        self.inside |= _below(name, self.children)

    def _give_up(self, slot: tuple[str, _Class]) -> None:
        self.slots[slot] -= 1
        if not self.slots[slot]:
            del self.slots[slot]

    def _elsewhere(self, pools: Mapping[_Class, list[str]]) -> tuple[str, str] | None:
        """All places left are below nodes that are not placed yet: one that is free, or one whose node can move on."""
        taken = Counter(self.load)
        for (parent, _), count in self.slots.items():
            taken[parent] += count
        for file, pool in pools.items():
            hanging = [one for one in self.servers[file] if one in self.inside] if pool else []
            free = next((one for one in hanging if taken[one] < self.fanout), None)
            if free is not None:
                if (given_up := next((key for key in self.slots if key[1] == file), None)) is not None:
                    self._give_up(given_up)
                return pool[0], free
            for parent in hanging:
                for child in sorted(self.children.get(parent, ())):
                    if self._makes_room(child, pool[0], taken):
                        return pool[0], parent
        return None

    def _makes_room(self, child: str, name: str, taken: Counter[str]) -> bool:
        """Move one on to a place that hangs on the source, or will as soon as the node hangs there that gets its place."""
        if self.file[child] == self.file[name]:
            return False
        below, coming = _below(child, self.children), _below(name, self.children)
        for other in self.servers[self.file[child]]:
            if (other in self.inside or other in coming) and other not in below and taken[other] < self.fanout:
                parent = self.above[child]
                self.children[parent].remove(child)
                self.load[parent] -= 1
                self._put(child, other)
                return True
        return False

    def _exchange(self, left: list[str]) -> None:
        """What the flow could not know: a place may lie below the node that is to have it. Then others make room."""
        homes = {name: self.parent[name] for name in self.placing if self._keeps(name)}
        tree = Exchanging(self.above, homes, lambda name: self._open_to_one(homes, name), self.fanout, set(self.roots))
        for top in left:
            if not tree.place(top):
                tree.take_apart(top)
        loose = tree.fill(self.placing, self.short)
        moved = sum(homes.get(name) != parent for name, parent in self.above.items())
        if loose or moved not in self._proven():
            tree.send_home()
        self.above, self.children = tree.above, tree.children
        for name in loose:
            self.fewest = False
            self.unplaced[name] = self._why_without(name, tree)

    def _open_to_one(self, homes: Mapping[str, str], name: str) -> Iterable[str]:
        if name in homes and homes[name] not in self.files:
            yield homes[name]
        yield from self.servers[self.file[name]]

    def _why_without(self, name: str, tree: Exchanging) -> str:
        file, above = self.file[name], self.parent.get(name)
        if any(tree.hangs(one) for one in self.servers[file]):
            return "all nodes are full" if file is None else f"the nodes that have file {file} are full"
        if above in self.unplaced or (above in self.able and above not in self.above and above not in self.roots):
            return f"it hangs on {above}, for which there is no source"
        return f"no node that hangs on the source has file {file}"

    def _proven(self) -> Collection[int]:
        """So many moves are the fewest, if nobody is left without a place."""
        return [self.least] if self.circles else [self.least, self.cost]

    def _move(self, name: str, to: str) -> None:
        was = self.parent.get(name)
        if was is None:
            why = "it pulls from no node that is known"
        elif self.kept.get(name) == was:
            why = f"{was} serves more than {self.fanout}, or makes room"
        elif was in self.able and self._serves(was, self.file[name]):
            why = f"it and {was} pull, over others, from each other"
        elif was in self.able:
            why = f"{was} does not have file {self.file[name]}"
        else:
            why = f"no node that could serve {was} is left"
        self.moves.append(Moved(name, was, to, why))


def _reached(roots: Iterable[str], parents: Mapping[str, str]) -> set[str]:
    children: dict[str, list[str]] = {}
    for name, above in parents.items():
        children.setdefault(above, []).append(name)
    return {name for root in roots for name in _below(root, children)}


def _below(name: str, children: Mapping[str, Iterable[str]]) -> set[str]:
    found, waiting = {name}, [name]
    for one in waiting:  # grows
        fresh = [child for child in children.get(one, ()) if child not in found]
        found.update(fresh)
        waiting += fresh
    return found


def _circles(parents: Mapping[str, str]) -> list[list[str]]:
    """Each node has one parent at most: following it from any node ends, or goes round."""
    done: set[str] = set()
    found = []
    for start in sorted(parents):
        way: dict[str, int] = {}
        name = start
        while name in parents and name not in done and name not in way:
            way[name] = len(way)
            name = parents[name]
        if name in way:
            found.append(list(way)[way[name] :])
        done.update(way)
    return found


def _weights(parents: Mapping[str, str]) -> dict[str, int]:
    """Node -> how many hang on it; circles are cut before."""
    count = Counter(parents.values())
    weight = dict.fromkeys(parents, 0)
    waiting = [name for name in parents if not count[name]]
    for name in waiting:  # grows, upwards
        above = parents[name]
        if above in weight:
            weight[above] += weight[name] + 1
            count[above] -= 1
            if not count[above]:
                waiting.append(above)
    return weight
