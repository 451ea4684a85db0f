"""What names look like here: schemas and their tables, so that a report can do without them."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.model import Naming


def parts(text: str) -> Iterator[tuple[str, str]]:
    """`schema.table` cut into the two: the first point ends the schema; without one it is a schema."""
    schema, point, table = text.partition(".")
    yield "unit", schema
    if point:
        yield "", point
        yield "entry", table


NAMING = Naming(
    parts,
    common=frozenset({"information_schema", "data_dictionary", "sys_replication", "mysql"}),
    ordinary=frozenset(
        {
            "drizzle",
            "drizzled",
            "innodb",
            "stream",
            "transaction",
            "transactions",
            "commit",
            "commits",
            "rollback",
            "insert",
        }
        | {
            "update",
            "delete",
            "table",
            "tables",
            "row",
            "rows",
            "message",
            "messages",
            "segment",
            "master",
            "slave",
            "queue",
        }
        | {"statement", "statements", "schema", "applier", "piece", "pieces", "source"}
    ),
)
