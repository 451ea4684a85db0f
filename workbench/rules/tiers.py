"""Physical log replication in tiers, as the design document has it: who may pull from whom, and what a registry knows of it.

A node pulls the log of its source, record by record, and its own log is a prefix of the source's. The source cluster is tier
0; a node that pulls from one of tier N is of tier N + 1. A registry holds a row for each node, and one for each that pulls.
"""

from __future__ import annotations

from dataclasses import dataclass

Lsn = tuple[int, int]
"""A place in a log: number of the file, and place in that file."""


@dataclass(frozen=True)
class Node:
    """What the registry says of a node.

    file        of the last position that it reported, with `offset`
    first_file  the oldest file of its log; None: not told
    age         seconds since it last reported itself; None: it never did
    state       as written: rules compare it exactly, upper and lower case are not the same
    """

    database: str
    host: str
    file: int
    offset: int = 0
    first_file: int | None = None
    age: float | None = None
    state: str | None = "Active"

    @property
    def name(self) -> str:
        """As the workbench names the node: one host may run several databases."""
        return f"{self.database}@{self.host}"


@dataclass(frozen=True)
class Pull:
    """A row that says from which node another one pulls."""

    database: str
    host: str
    source_database: str
    source_host: str

    @property
    def name(self) -> str:
        """The node that pulls."""
        return f"{self.database}@{self.host}"

    @property
    def source(self) -> str:
        """The node that it pulls from."""
        return f"{self.source_database}@{self.source_host}"


@dataclass(frozen=True)
class Registry:
    """What the tables of the registry hold at one moment.

    awaited           rows of the nodes that wait until their source connects to them
    keeps_first_file  the table has the column of the first file
    """

    nodes: tuple[Node, ...]
    pulls: tuple[Pull, ...]
    awaited: tuple[Pull, ...] = ()
    keeps_first_file: bool = False
