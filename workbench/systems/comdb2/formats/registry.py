"""The tables of the registry (the metadb): its nodes, who pulls from whom, who waits until its source connects, its clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.systems.comdb2.formats.listed import Column, Listing, Row, listing_format
from workbench.systems.comdb2.formats.printed import first_rows
from workbench.systems.comdb2.formats.settings import names_a_setting
from workbench.systems.comdb2.formats.values import moment, moment_of, number, place, word
from workbench.systems.comdb2.lsn import order_key
from workbench.systems.comdb2.naming import node_name

_NODE = (Column("dbname", word), Column("host", word))
_REPORTED = (Column("file", number, null=True), Column("offset", number, null=True))
_LIVES = (Column("last_keepalive", moment, null=True), Column("state", str, null=True))
_FIRST = (Column("firstfile", number, null=True),)


def _nodes(row: Row, server: str) -> Iterator[tuple[str, Row]]:
    lsn = place(row["file"], row["offset"])
    first = row.get("firstfile")
    if first is not None and first < 0:
        raise ValueError("firstfile is no number of a file")
    yield (
        "nodes",
        {
            "server": node_name(row["dbname"], row["host"]),
            "position": order_key("", *lsn) if lsn else None,
            "first_file": first,
            "reported_at": moment_of(row["last_keepalive"]) if row["last_keepalive"] else None,
            "state": row["state"],
        },
    )


PHYSREPS = replace(
    listing_format(
        "comdb2.physreps",
        Listing(((*_NODE, *_REPORTED, *_FIRST, *_LIVES), (*_NODE, *_REPORTED, *_LIVES)), _nodes),
        empty="comdb2_physreps",
    ),
    tells_nodes=True,
)
"""Since 2026 the table may have the column of the first file."""

_PULL = (*_NODE, Column("source_dbname", word), Column("source_host", word))


def _pulls(awaited: bool) -> Listing:
    def made(row: Row, server: str) -> Iterator[tuple[str, Row]]:
        source = node_name(row["source_dbname"], row["source_host"])
        yield "pulls", {"server": node_name(row["dbname"], row["host"]), "source": source, "awaited": awaited}

    return Listing((_PULL,), made)


def _are_nodes(head: bytes) -> bool:
    """Four words in each row may be two nodes, or anything: names of nodes have no blanks, and settings are known by name."""
    rows = [list(row.values()) if isinstance(row, dict) else list(row) for row in first_rows(head)]
    names = isinstance(first_rows(head)[0], dict)
    plain = all(value and not any(sign.isspace() for sign in value) for row in rows for value in row)
    return names or (plain and not names_a_setting(head))


SOURCES = listing_format(
    "comdb2.sources",
    _pulls(True),
    lambda head, name: "source" in name.lower() and _are_nodes(head),
    empty="comdb2_physrep_sources",
)
CONNECTIONS = replace(
    listing_format(
        "comdb2.connections", _pulls(False), lambda head, name: _are_nodes(head), empty="comdb2_physrep_connections"
    ),
    tells_links=True,
)
"""Both have the same four columns: only the name of the file tells which it is, and one without a word of it is this one."""

_NOW = Listing(((Column("now", moment),),), lambda row, server: [("clocks", {"at": moment_of(row["now"])})])
CLOCK = listing_format(
    "comdb2.positions",
    Listing(_NOW.layouts, _NOW.made),
    lambda head, name: head.lstrip()[:1] == b'"',
    variant="clock",
)
"""What `select now()` printed, before the tables were collected and after. A time without quotes is no answer of cdb2sql."""
