"""Names and values for a server that speaks MySQL's protocol, so that they mean the same under every SQL mode.

Whoever quotes for a server that reads backslashes has not quoted for one that does not (NO_BACKSLASH_ESCAPES), and what
stands between double quotes may be a name (ANSI_QUOTES). So text goes between single quotes, which only double themselves;
what has a backslash in it or cannot be seen goes as hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.drizzle.formats.messages_pb2 import Table
from workbench.systems.drizzle.rows import BLOB, LIKE, Columns, Named, Value

OWN_SCHEMA = "replication_workbench"

SYSTEM_SCHEMAS = frozenset(
    {"mysql", "sys", "information_schema", "performance_schema", "data_dictionary", "sys_replication", OWN_SCHEMA}
)
"""Schemas of servers themselves: who may write rows there may become anybody."""

_LONGEST_NAME, _LAST = 64, "\uffff"
_NUMBERS = frozenset({Table.Field.INTEGER, Table.Field.BIGINT, Table.Field.DECIMAL})
"""Those that are written as they are. A DOUBLE of a hundred digits would be read as a decimal number, and these are shorter."""
_TRUE = frozenset({b"TRUE", b"YES"})


def name(text: str) -> str:
    """A name between backquotes, which mean the same in every mode. Raises Problem for one that no server can have."""
    if not text.isprintable() or not 0 < len(text) <= _LONGEST_NAME or text != text.rstrip(" ") or max(text) > _LAST:
        raise Problem(f"no server has a thing of this name: {printable(repr(text))[:100]}", do="copy it by hand")
    return "`" + text.replace("`", "``") + "`"


def table_name(table: Named) -> str:
    """A table by its two names. Raises Problem for one of a server's own schemas, or of another catalog."""
    if table.catalog:
        what = (
            f"{printable(str(table))} is of the catalog {printable(table.catalog)}, and such a server has no catalogs"
        )
        raise Problem(what, do="see what the transaction did, and do that by hand")
    return f"{schema_name(table.schema)}.{name(table.table)}"


def schema_name(text: str) -> str:
    """The name of a schema. Raises Problem for one of a server's own."""
    if text.rstrip(" ").lower() in SYSTEM_SCHEMAS:
        what = f"{printable(text)} is a schema of the server itself: nothing of a log is written there"
        raise Problem(what, do="see what the transaction did, and do that by hand")
    return name(text)


def text_literal(text: str) -> str:
    """Text as a string: between quotes if every letter can be seen, else in hexadecimal digits with its character set."""
    if "\\" not in text and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return f"_utf8mb4 X'{text.encode().hex().upper()}'"


def literal(value: Value, kind: int) -> str:
    """A value of a column of this type, as an expression. Raises Problem for one that such a column cannot have."""
    if value is None:
        return "NULL"
    if kind == BLOB:
        return f"X'{value.hex().upper()}'"
    try:
        text = value.decode()
    except UnicodeDecodeError:  # bytes in a column of text: of VARBINARY right, and refused by the server if it is text
        return f"X'{value.hex().upper()}'"
    if (like := LIKE.get(kind)) and not like.fullmatch(text):
        raise Problem(f"a value is no {Table.Field.FieldType.Name(kind)}")
    if kind in _NUMBERS:
        return text
    if kind == Table.Field.BOOLEAN:
        return "TRUE" if value in _TRUE else "FALSE"
    return text_literal(text)


def row_where(keys: Columns, key: Sequence[Value]) -> str:
    """What only the row with this key fulfils."""
    pairs = zip(keys, key, strict=True)
    return " AND ".join(f"{name(column.name)} = {literal(value, column.type)}" for column, value in pairs)
