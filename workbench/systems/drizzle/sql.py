"""Rows of a stream as statements for a server that speaks MySQL's protocol, each with how many rows it must hit.

Nothing of the log is ever run as it stands: the statements that its source was given are not looked at.
"""

# ruff: noqa: S608 - every part of these statements is quoted for every mode, in `quoting` or as a constant here

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.drizzle.definitions import SET_VARIABLE, defined
from workbench.systems.drizzle.quoting import OWN_SCHEMA, literal, name, row_where, table_name, text_literal
from workbench.systems.drizzle.rows import (
    Column,
    Definition,
    Insert,
    Operation,
    RowOperation,
    Update,
    Value,
)

APPLIED = f"`{OWN_SCHEMA}`.`applied`"
"""The table that tells which transactions were applied by this tool."""

MODES = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO"
"""What does not fit is an error and never cut to fit; a 0 is a 0, also in a column that counts by itself."""

SESSION = (
    "SET NAMES utf8mb4",
    f"SET SESSION sql_mode = '{MODES}'",
    "SET SESSION time_zone = '+00:00'",  # in which the stream tells all times
    "SET SESSION foreign_key_checks = 1",  # what a key cascades to is not in the stream
    "SET SESSION unique_checks = 1",
    "SET SESSION autocommit = 0",
)

BATCH_ROWS, BATCH_BYTES = 200, 256 << 10
"""New rows that go in one statement: few enough for the smallest packet that servers take by default."""


@dataclass(frozen=True)
class Change:
    """A statement, and how many rows it must hit: not one more, not one less."""

    text: str
    rows: int
    about: RowOperation
    """Of several rows the first."""


def changes(operations: Iterable[RowOperation]) -> Iterator[Change]:
    """The statements for these rows, in their order; new rows of one table that follow each other go together."""
    waiting: list[str] = []
    size, first = 0, None
    for one in operations:
        if first is not None and not (
            isinstance(one, Insert) and (one.table, one.columns) == (first.table, first.columns)
        ):
            yield _inserted(first, waiting)
            waiting, size, first = [], 0, None
        if not isinstance(one, Insert):
            yield _changed(one)
            continue
        values = _joined(literal(value, column.type) for column, value in zip(one.columns, one.values, strict=True))
        if first is not None and (len(waiting) >= BATCH_ROWS or size + len(values) > BATCH_BYTES):
            yield _inserted(first, waiting)
            waiting, size, first = [], 0, None
        first = first or one
        waiting.append(f"({values})")
        size += len(values)
    if first is not None:
        yield _inserted(first, waiting)


def _inserted(first: Insert, rows: Sequence[str]) -> Change:
    columns = _joined(name(column.name) for column in first.columns)
    return Change(f"INSERT INTO {table_name(first.table)} ({columns}) VALUES {_joined(rows)}", len(rows), first)


def _changed(one: RowOperation) -> Change:
    assert not isinstance(one, Insert)
    where = row_where(one.keys, one.key)
    if isinstance(one, Update):
        pairs = zip(one.columns, one.values, strict=True)
        values = _joined(f"{name(column.name)} = {literal(value, column.type)}" for column, value in pairs)
        return Change(f"UPDATE {table_name(one.table)} SET {values} WHERE {where}", 1, one)
    return Change(f"DELETE FROM {table_name(one.table)} WHERE {where}", 1, one)


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def key_text(one: RowOperation) -> str:
    """Which row it is about, for people: names and values of its key; no other value of it is ever shown."""
    if isinstance(one, Insert):
        return printable(str(one.table))
    pairs = zip(one.keys, one.key, strict=True)
    return printable(f"{one.table}, {', '.join(f'{column.name} {_seen(value, column)}' for column, value in pairs)}")


def _seen(value: Value, column: Column) -> str:
    shown = literal(value, column.type)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


# --- which transactions were applied

CREATE_APPLIED = (
    f"CREATE DATABASE IF NOT EXISTS `{OWN_SCHEMA}`",
    f"CREATE TABLE IF NOT EXISTS {APPLIED} (`origin` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
    "`position` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
    "`content` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, `done` BOOLEAN NOT NULL, "
    "`at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), PRIMARY KEY (`origin`, `position`)) ENGINE=InnoDB",
)
"""`done` is false for one that a server cannot do in one transaction with this row: a CREATE TABLE that was begun."""


def noted(origin: str, position: str, content: str, done: bool = True) -> str:
    """The statement which notes that a transaction was applied, in the same transaction; once more it fails."""
    values = _joined([text_literal(origin), text_literal(position), text_literal(content), "TRUE" if done else "FALSE"])
    return f"INSERT INTO {APPLIED} (`origin`, `position`, `content`, `done`) VALUES ({values})"


def noted_done(origin: str, position: str) -> str:
    """The statement which notes that what was begun is done."""
    where = f"`origin` = {text_literal(origin)} AND `position` = {text_literal(position)}"
    return f"UPDATE {APPLIED} SET `done` = TRUE WHERE {where} AND NOT `done`"


# --- for people

_FAILS = "(SELECT 1 UNION SELECT 2)"
"""More than one row where one value is due: the way to stop a script that every server has."""


def opening() -> Iterator[str]:
    """What stands at the head of such a file."""
    yield from (f"{one};\n" for one in (*SESSION, *CREATE_APPLIED))


def script(operations: Iterable[Operation], origin: str, position: str, content: str) -> Iterator[str]:
    """A transaction as lines of a file for a server's own client, which stops at the first that fails.

    It is applied once: the first thing it writes is that it was. Before a row is changed or deleted it is counted: where it is
    not there exactly once, nothing of the transaction is done. A line is one statement, and what is in
    `opening` was run before.
    """
    definition, rows = parts(operations)
    if definition is not None:
        yield f"{noted(origin, position, content, done=False)};\nCOMMIT;\n"
        yield from (f"{text};\n" for text in defined(definition))
        yield f"{noted_done(origin, position)};\nCOMMIT;\n"
        return
    yield "START TRANSACTION;\n"
    yield f"{noted(origin, position, content)};\n"
    for one in changes(rows):
        if not isinstance(one.about, Insert):
            there = (
                f"(SELECT COUNT(*) FROM {table_name(one.about.table)} WHERE {row_where(one.about.keys, one.about.key)})"
            )
            yield f"SET @workbench = IF({there} = 1, 1, {_FAILS});\n"
        yield f"{one.text};\n"
    yield "COMMIT;\n"


def parts(operations: Iterable[Operation]) -> tuple[Definition | None, Iterator[RowOperation]]:
    """The one statement of a transaction that servers commit by themselves, or its rows.

    What only sets a variable of its session changes none. Raises Problem where both stand in one transaction: then no
    server can do it at once.
    """
    body = (one for one in operations if not (isinstance(one, Definition) and one.kind == SET_VARIABLE))
    first = next(body, None)
    if isinstance(first, Definition):
        if next(body, None) is not None:
            raise _mixed(first)
        return first, iter(())
    return None, _rows(chain([first] if first else [], body))


def _rows(operations: Iterable[Operation]) -> Iterator[RowOperation]:
    for one in operations:
        if isinstance(one, Definition):
            raise _mixed(one)
        yield one


def _mixed(definition: Definition) -> Problem:
    what = f"{definition.kind} stands in one transaction with other statements: no server can do that at once"
    return Problem(what, do="do it by hand, and skip the transaction with that reason")
