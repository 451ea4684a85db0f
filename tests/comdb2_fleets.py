"""Trees of Comdb2 made up by a seed: nodes that pull a log from each other, faults of several kinds, and the truth of each.

Places are a file and an offset. A node holds its files from the first to the one that it writes, and gets what its source has
while it runs, hangs on a node that runs, and finds there the file that it needs next.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tier_files import Made, written

from workbench.case.case import Case

SOURCE = "S"
HEALTHY, FROZEN, STOPPED, PENDING, RETIRED, CUT = "healthy", "frozen", "stopped", "pending", "retired", "cut"
KEEPALIVE = 10
HOLDS = {"physrep_check_minlog_freq_sec": "600"}


@dataclass
class Node:
    """A node, what is the matter with it, and what the files show of it."""

    made: Made
    fault: str

    @property
    def runs(self) -> bool:
        """Whether it pulls from the node that it hangs on."""
        return self.fault in (HEALTHY, CUT)


@dataclass
class Tree:
    """A fleet: nodes by name. `holds`: its program keeps log files that others need."""

    seed: int
    nodes: dict[str, Node]
    holds: bool

    def sources(self) -> list[str]:
        """The nodes of the source."""
        return [name for name in self.nodes if name.startswith(f"{SOURCE}@")]

    def has(self, name: str, file: int) -> bool:
        """Whether a node has a file of the log."""
        made = self.nodes[name].made
        return made.first <= file <= made.at[0]

    def serves(self, name: str, to: str) -> bool:
        """Whether a node has the file that another one needs next, and goes further."""
        made = self.nodes[to].made
        return self.has(name, made.at[0]) and self.nodes[name].made.at > made.at

    def played(self) -> dict[str, tuple[int, int]]:
        """Where each node is once all that runs has pulled what it can.

        A node that answers serves its log to who pulls from it: its row only says whom the registry offers to others.
        """
        at = {name: node.made.at for name, node in self.nodes.items()}
        moved = True
        while moved:
            moved = False
            for name, node in self.nodes.items():
                above = node.made.source
                if above is None or not node.runs or not self.nodes[above].made.answers:
                    continue
                if at[above] > at[name] and self.nodes[above].made.first <= at[name][0]:
                    at[name], moved = at[above], True
        return at


def tree(seed: int) -> Tree:
    """The tree of a seed."""
    chance = random.Random(seed)
    head = chance.randrange(9, 15), chance.randrange(1000, 9000)
    first = head[0] - chance.randrange(1, 5)
    made = Tree(seed, {}, chance.random() < 0.3)
    for at in range(chance.choice((1, 1, 2))):
        name = f"{SOURCE}@s{at + 1}"
        made.nodes[name] = Node(Made(name, head, first, age=chance.randrange(0, KEEPALIVE)), HEALTHY)
    for at in range(chance.randrange(1, 6)):
        name = f"R{at % 2}@r{at + 1}"
        above = chance.choice(list(made.nodes))
        made.nodes[name] = _node(name, above, head, first, chance)
    return made


def _node(name: str, above: str, head: tuple[int, int], first: int, chance: random.Random) -> Node:
    fault = chance.choice((HEALTHY, HEALTHY, HEALTHY, HEALTHY, FROZEN, STOPPED, PENDING, RETIRED, CUT))
    late = fault not in (HEALTHY, CUT) or chance.random() < 0.4
    file = head[0] - (chance.randrange(0, 7) if late else 0)
    at = (max(file, 2), chance.randrange(100, 900)) if late else head
    made = Made(name, at, max(1, at[0] - chance.randrange(0, 4)), age=chance.randrange(0, KEEPALIVE), source=above)
    if fault == FROZEN:
        made.age, made.answers = chance.choice((70, 400, 4000)), False
    elif fault == STOPPED:
        made.age = chance.choice((70, 400, 4000))
    elif fault in (PENDING, RETIRED):
        made.state, made.source = ("Pending" if fault == PENDING else "Inactive"), None
        made.age = made.age if fault == PENDING else chance.choice((70, 4000))
    elif fault == CUT:  # it reported itself before the end of its log was cut off
        made.reported, made.cuts, made.at = (at[0], at[1] + 5000), 1, (at[0], at[1] // 2 + 28)
        made.age = max(made.age or 0, 1)
    return Node(made, fault)


def case_of(made: Tree, folder: Path) -> Case:
    """The tree as a case."""
    nodes: Sequence[Made] = [node.made for node in made.nodes.values()]
    case = Case.create(folder / "case")
    case.load([written(folder / "now", nodes, **(HOLDS if made.holds else {}))])
    return case
