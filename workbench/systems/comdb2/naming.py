"""What names look like here: of databases, hosts and nodes, and which file tells of which node."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.model import Naming

REGISTRY = "registry"
"""The server of a file that speaks of many nodes: its rows name theirs."""

_OF_ONE = ("comdb2.transaction-logs", "comdb2.program-log", "comdb2.lrl", "comdb2.tunables", "comdb2.metrics")
_OF_MANY = ("comdb2.physreps", "comdb2.connections", "comdb2.sources", "comdb2.positions", "comdb2.logfiles")
_NODE = re.compile(r"([\w-]{1,60})\.([\w-]{1,120})\.[\w.-]+")
"""`shopdb.src1.digest.tsv`. A host of several dotted parts needs a `case.yaml`, which names the server itself."""


def node_name(database: str, host: str) -> str:
    """As the workbench names a node: one host may run several databases.

    >>> node_name("shopdb", "src1")
    'shopdb@src1'
    """
    return f"{database}@{host}"


def database_in(server: str) -> str:
    """The database of a node's name; empty where the name holds none."""
    return server.rpartition("@")[0]


def server_in(name: str, kind: str) -> str | None:
    """The node that a file named DATABASE.HOST.rest is of; the registry for a table of many nodes that has no such name.

    >>> server_in("shopdb.src1.digest.tsv", "comdb2.transaction-logs"), server_in("tunables.tsv", "comdb2.tunables")
    ('shopdb@src1', 'registry')
    """
    if found := _NODE.fullmatch(name):
        return node_name(found[1], found[2])
    return REGISTRY if kind in (*_OF_MANY, "comdb2.tunables", "comdb2.metrics") else None


def parts(text: str) -> Iterator[tuple[str, str]]:
    """The name of a table: one name, whatever is in it."""
    yield "entry", text


NAMING = Naming(
    parts,
    common=frozenset({REGISTRY, "comdb2", "default", "localhost"}),
    # Words of the commands and settings: with a name for one of them nobody could do what a report says.
    ordinary=frozenset(
        {
            REGISTRY,
            "comdb2",
            "cdb2sql",
            "source",
            "sources",
            "node",
            "nodes",
            "tier",
            "cluster",
            "log",
            "logs",
            "file",
            "files",
        }
        | {
            "exec",
            "procedure",
            "sys",
            "physrep",
            "cmd",
            "put",
            "tunable",
            "database",
            "host",
            "active",
            "inactive",
            "pending",
        }
        | {"replicant", "replicants", "registration", "candidates", "fanout", "keepalive", "metadb"}
    ),
)
"""Nodes, databases and hosts are learned from the trees; the changes of a physical log name nothing."""
