"""Statements that change tables, not rows, as a server that speaks MySQL's protocol takes them: right, or not at all.

A type gets the one there that holds every value of it without loss. What such a server has not, or would do otherwise,
raises Problem with the reason: a table that is nearly the same would differ from its source row by row, later and unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.drizzle.formats.messages_pb2 import Schema, Table
from workbench.systems.drizzle.quoting import literal, name, schema_name, table_name, text_literal
from workbench.systems.drizzle.rows import Definition

SET_VARIABLE = "SET_VARIABLE"

_COLLATION = re.compile(r"utf8_([a-z0-9_]{1,40})", re.ASCII)
_BINARY = "binary"
_TEXT = frozenset({Table.Field.VARCHAR, Table.Field.BLOB, Table.Field.ENUM})
_PLAIN = {
    Table.Field.DOUBLE: "DOUBLE",
    Table.Field.INTEGER: "INT",
    Table.Field.BIGINT: "BIGINT",
    Table.Field.DATE: "DATE",
    Table.Field.EPOCH: "DATETIME(6)",  # a TIMESTAMP changes by itself, ends in 2038, and depends on the zone of a session
    Table.Field.DATETIME: "DATETIME(6)",
    Table.Field.TIME: "TIME(6)",
    Table.Field.BOOLEAN: "BOOLEAN",
    Table.Field.UUID: "CHAR(36) CHARACTER SET ascii COLLATE ascii_general_ci",
    Table.Field.IPV6: "VARCHAR(39) CHARACTER SET ascii COLLATE ascii_general_ci",
}
_BYTES_EACH = 4
"""Of a letter: in indexes the stream counts bytes, and SQL letters."""


def defined(one: Definition) -> tuple[str, ...]:
    """The statements that do the same. Raises Problem, with the reason, for one that cannot be done."""
    made = _DEFINED.get(one.kind)
    if made is None:
        about = f" of {printable(str(one.table))}" if one.table else ""
        why = _NOT_DONE.get(one.kind, "this tool does not know it")
        raise Problem(
            f"{one.kind}{about} is not done: {why}", do="do it by hand, and skip the transaction with that reason"
        )
    return made(one)


_NOT_DONE = {
    "RAW_SQL": "the log has the text alone that its source was given, and such a text is never run",
    "ALTER_TABLE": "the log has the table before and behind it, and not what happened to the rows in between",
    "ALTER_SCHEMA": "what it changed has no counterpart that means the same",
}


def _create_schema(one: Definition) -> tuple[str, ...]:
    schema: Schema = one.statement.create_schema_statement.schema
    collation = schema.collation or "utf8_general_ci"
    return (f"CREATE DATABASE {schema_name(schema.name)}{_default_collation(collation)}",)


def _drop_schema(one: Definition) -> tuple[str, ...]:
    return (f"DROP DATABASE {schema_name(one.statement.drop_schema_statement.schema_name)}",)


def _drop_table(one: Definition) -> tuple[str, ...]:
    return (f"DROP TABLE {'IF EXISTS ' * one.statement.drop_table_statement.if_exists_clause}{_table(one)}",)


def _truncate(one: Definition) -> tuple[str, ...]:
    return (f"TRUNCATE TABLE {_table(one)}",)


def _table(one: Definition) -> str:
    assert one.table is not None, f"{one.kind} names its table"
    return table_name(one.table)


def _create_table(one: Definition) -> tuple[str, ...]:
    table = one.statement.create_table_statement.table
    whole = one.table
    assert whole is not None, "it names the table"
    _check(table, printable(str(whole)))
    parts = [*(_column(field, table) for field in table.field), *_indexes(table)]
    options = "".join(_options(table))
    return (f"CREATE TABLE {table_name(whole)} ({', '.join(parts)}) ENGINE=InnoDB{options}",)


_DEFINED: dict[str, Callable[[Definition], tuple[str, ...]]] = {
    "CREATE_SCHEMA": _create_schema,
    "DROP_SCHEMA": _drop_schema,
    "CREATE_TABLE": _create_table,
    "DROP_TABLE": _drop_table,
    "TRUNCATE_TABLE": _truncate,
}


# --- a table


def _refused(table: str, why: str) -> Problem:
    return Problem(
        f"the table {table} is not created: {why}", do="create it by hand, and skip the transaction with that reason"
    )


def _check(table: Table, shown: str) -> None:
    """Raise Problem for what a table may have and SQL cannot say, or would say otherwise."""
    if table.type != Table.STANDARD:
        raise _refused(shown, f"it is {Table.TableType.Name(table.type)}")
    if table.engine.name.lower() != "innodb":
        raise _refused(shown, f"rows of its engine, {printable(table.engine.name)}, take part in no transaction")
    if table.fk_constraint:
        raise _refused(shown, "it has foreign keys")
    if not table.field:
        raise _refused(shown, "it has no columns")
    for field in table.field:
        column = printable(field.name)
        if field.constraints.expression:
            raise _refused(shown, f"column {column} has a condition")
        if field.options.update_expression or field.options.update_value:
            raise _refused(shown, f"column {column} changes by itself when its row does")
        if field.options.default_expression or field.options.HasField("default_bin_value"):
            raise _refused(shown, f"column {column} has a default that is worked out")
    if not any(index.is_primary for index in table.indexes):
        raise _refused(shown, "it has no primary key, so that no row of it could be found again")


def _column(field: Any, table: Table) -> str:
    options, constraints = field.options, field.constraints
    words = [name(field.name), _type(field, table)]
    if field.type in _PLAIN and field.type in (Table.Field.INTEGER, Table.Field.BIGINT) and constraints.is_unsigned:
        words.append("UNSIGNED")
    words.append("NOT NULL" if constraints.is_notnull or _in_primary(field, table) else "NULL")
    if options.HasField("default_value"):
        words.append(f"DEFAULT {literal(options.default_value.encode(), field.type)}")
    elif options.default_null and not constraints.is_notnull and not _in_primary(field, table):
        words.append("DEFAULT NULL")
    if field.numeric_options.is_autoincrement:
        words.append("AUTO_INCREMENT")
    if constraints.is_unique:
        words.append("UNIQUE")
    if field.comment:
        words.append(f"COMMENT {_plain(field.comment, table)}")
    return " ".join(words)


def _in_primary(field: Any, table: Table) -> bool:
    parts = [part.fieldnr for index in table.indexes if index.is_primary for part in index.index_part]
    return any(at < len(table.field) and table.field[at].name == field.name for at in parts)


def _type(field: Any, table: Table) -> str:
    if field.type in _PLAIN:
        return _PLAIN[field.type]
    strings, numbers, shown = field.string_options, field.numeric_options, printable(f"{table.schema}.{table.name}")
    if field.type == Table.Field.DECIMAL:
        if not 1 <= numbers.precision <= 65 or not 0 <= numbers.scale <= min(38, numbers.precision):
            raise _refused(shown, f"column {printable(field.name)} is a DECIMAL of a size that no server has")
        return f"DECIMAL({numbers.precision},{numbers.scale})"
    if field.type == Table.Field.ENUM:
        labels = ",".join(_plain(label, table) for label in field.enumeration_values.field_value)
        if not labels:
            raise _refused(shown, f"column {printable(field.name)} is an ENUM without labels")
        return f"ENUM({labels}){_collation(field.enumeration_values.collation or table.options.collation, shown)}"
    collation = strings.collation or (_BINARY if field.type == Table.Field.BLOB else table.options.collation)
    if field.type == Table.Field.BLOB:
        return "LONGBLOB" if collation == _BINARY else f"LONGTEXT{_collation(collation, shown)}"
    if not 0 < strings.length <= 65535:
        raise _refused(shown, f"of column {printable(field.name)} the length is not told")
    kind = "VARBINARY" if collation == _BINARY else "VARCHAR"
    return f"{kind}({strings.length}){'' if collation == _BINARY else _collation(collation, shown)}"


def _plain(text: str, table: Table) -> str:
    """A string where a server takes nothing but one between quotes."""
    shown = text_literal(text)
    if not shown.startswith("'"):
        raise _refused(
            printable(f"{table.schema}.{table.name}"), "a label or comment of it has letters that cannot be seen"
        )
    return shown


def _collation(collation: str, table: str) -> str:
    """Of a column. What a source calls utf8 has letters of four bytes, which others call utf8mb4."""
    found = _COLLATION.fullmatch(collation or "utf8_general_ci")
    if found is None:
        raise _refused(table, f"nobody knows the collation {printable(collation)}")
    return f" CHARACTER SET utf8mb4 COLLATE utf8mb4_{found[1]}"


def _default_collation(collation: str) -> str:
    return _collation(collation, "of this schema")


def _indexes(table: Table) -> Iterator[str]:
    shown = printable(f"{table.schema}.{table.name}")
    for index in table.indexes:
        if index.type not in (Table.Index.BTREE, Table.Index.UNKNOWN_INDEX):
            raise _refused(shown, f"it has an index of type {Table.Index.IndexType.Name(index.type)}")
        parts = ", ".join(_part(part, table, shown) for part in index.index_part)
        if not parts:
            raise _refused(shown, "it has an index without columns")
        kind = "PRIMARY KEY" if index.is_primary else f"{'UNIQUE ' * index.is_unique}KEY {name(index.name)}"
        yield f"{kind} ({parts})"


def _part(part: Any, table: Table, shown: str) -> str:
    if part.fieldnr >= len(table.field):
        raise _refused(shown, "it has an index of a column that it has not")
    if part.in_reverse_order:
        raise _refused(shown, "it has an index in reverse order")
    field = table.field[part.fieldnr]
    if field.type not in _TEXT or field.type == Table.Field.ENUM:
        return name(field.name)
    each = 1 if field.string_options.collation == _BINARY or field.type == Table.Field.BLOB else _BYTES_EACH
    letters = part.compare_length // each
    whole = field.type == Table.Field.VARCHAR and (not letters or letters >= field.string_options.length)
    if not whole and not letters:
        raise _refused(shown, "it has an index of a BLOB without a length")
    return name(field.name) + ("" if whole else f"({letters})")


def _options(table: Table) -> Iterator[str]:
    options = table.options
    yield " DEFAULT" + _collation(options.collation, printable(f"{table.schema}.{table.name}"))
    if options.auto_increment_value > 1:
        yield f" AUTO_INCREMENT={options.auto_increment_value}"
    if options.comment:
        yield f" COMMENT={_plain(options.comment, table)}"
