"""The rows of transactions, read again from the log where they stand: the evidence tells where, and holds no values.

A message is taken only if it is the one that was loaded: of the same length, with the same checksum and the same content.
A row that cannot be read safely is refused by name and never guessed. One message is in memory at a time: a transaction of
ten million rows is thousands of them.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import DecodeError

from workbench.intake.decompression import opened
from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.drizzle.formats.exports import message_in_line
from workbench.systems.drizzle.formats.messages_pb2 import FieldMetadata, Statement, Table, TableMetadata, Transaction
from workbench.systems.drizzle.ids import content_of

_HEAD, _TRAILER = struct.Struct("<II"), struct.Struct("<I")
_TRANSACTION = 1
_LONGEST_LINE = 1 << 30
BLOB = Table.Field.BLOB

Value = bytes | None
"""As the log has it: text as the server printed it, of a BLOB its bytes; None is NULL."""

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_MOMENT = re.compile(f"{_DAY} {_TIME}", re.ASCII)
LIKE: dict[int, re.Pattern[str]] = {
    Table.Field.DOUBLE: _NUMBER,
    Table.Field.INTEGER: _WHOLE,
    Table.Field.BIGINT: _WHOLE,
    Table.Field.DECIMAL: _NUMBER,
    Table.Field.DATE: re.compile(_DAY, re.ASCII),
    Table.Field.EPOCH: _MOMENT,
    Table.Field.DATETIME: _MOMENT,
    Table.Field.TIME: re.compile(f"-?{_TIME}", re.ASCII),
    Table.Field.UUID: re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE),
    Table.Field.BOOLEAN: re.compile("TRUE|FALSE|YES|NO"),
    Table.Field.IPV6: re.compile(r"[0-9a-f:.]{2,45}", re.ASCII | re.IGNORECASE),
}
"""What the values of a type look like. Another value stands under a header that is not its own: one that lists the columns
of the first row only."""


@dataclass(frozen=True)
class Place:
    """A record of a log, as the evidence has it.

    offset      its first byte in the file as it reads when it is unpacked; length: bytes of its message
    statements  which of its statements count, ascending; None: all of them
    content     hash of the message when it was loaded; None: nobody knows
    """

    offset: int
    length: int
    statements: tuple[int, ...] | None = None
    content: int | None = None


@dataclass(frozen=True)
class Named:
    """A table. `str` of it is the name that the evidence has; `catalog` is empty for the one that every server has."""

    schema: str
    table: str
    catalog: str = ""

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class Column:
    """A column, as the header of a statement lists it: `type` is one of `Table.Field.FieldType`."""

    name: str
    type: int


Columns = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row: every column."""

    table: Named
    columns: Columns
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """A changed row: its key as it was before, and the columns that changed, of the key too."""

    table: Named
    keys: Columns
    key: tuple[Value, ...]
    columns: Columns
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """A row that goes, by its key."""

    table: Named
    keys: Columns
    key: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """A statement that changes no rows, or all of a table at once. `table` is None where it is about none."""

    kind: str
    table: Named | None
    statement: Statement


RowOperation = Insert | Update | Delete
Operation = RowOperation | Definition


class Unsafe(Problem):
    """A row that cannot be read safely."""


class Log:
    """A log whose messages are read at any place: a transaction.log, or lines of JSON that were exported. Made by `reading`."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self._lines = file.read(_HEAD.size).lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{")

    def message(self, place: Place) -> bytes:
        """The message of a record. Raises Problem if the log does not hold it any more as it was loaded."""
        where, do = f"{self._name}:{place.offset}", "load the case again: `workbench load`, and make the plan again"
        self._file.seek(place.offset)
        message = self._in_line(place, where, do) if self._lines else self._in_record(place, where, do)
        if place.content is not None and content_of(message) != place.content:
            raise Problem("the record has another content than when it was loaded", where, do)
        return message

    def _in_line(self, place: Place, where: str, do: str) -> bytes:
        """Of an exported log, a line for each message; its number of bytes is all that it tells of itself."""
        try:
            message = message_in_line(self._file.readline(_LONGEST_LINE))
        except ValueError:
            raise Problem("no message begins here: the log is not the one that was loaded", where, do) from None
        if len(message) != place.length:
            raise Problem("the message has another length than when it was loaded", where, do)
        return message

    def _in_record(self, place: Place, where: str, do: str) -> bytes:
        record = self._file.read(_HEAD.size + place.length + _TRAILER.size)
        if len(record) < _HEAD.size + place.length + _TRAILER.size:
            raise Problem("the log is shorter than when it was loaded", where, do)
        message = record[_HEAD.size : -_TRAILER.size]
        if _HEAD.unpack_from(record) != (_TRANSACTION, place.length):
            raise Problem("no record of this length begins here: the log is not the one that was loaded", where, do)
        (checksum,) = _TRAILER.unpack(record[-_TRAILER.size :])
        if checksum not in (0, zlib.crc32(message)):
            raise Problem("the record does not fit its checksum", where, do)
        return message

    def operations(self, places: Iterable[Place]) -> Iterator[Operation]:
        """What the statements that count do, row by row, in the order of the places."""
        for place in places:
            yield from operations(self.message(place), place.statements, f"{self._name}:{place.offset}")


@contextmanager
def reading(path: Path) -> Iterator[Log]:
    """A log to read rows from: plain, or packed by gzip or zstd."""
    name = printable(str(path))
    try:
        with opened(path) as file:
            yield Log(file, name)
    except OSError as error:
        raise Problem(f"the log cannot be read: {error.strerror}", name, "collect it again") from None


class Logs:
    """Logs that are opened once each, while the block runs: a packed one is unpacked for all that is read from it."""

    def __init__(self) -> None:
        self._open: dict[Path, Log] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Logs:
        return self

    def __exit__(self, *ended: object) -> None:
        self._stack.close()

    def at(self, path: Path) -> Log:
        """The log of this path."""
        if path not in self._open:
            self._open[path] = self._stack.enter_context(reading(path))
        return self._open[path]


# --- what a message says


def operations(message: bytes, statements: Sequence[int] | None, where: str) -> Iterator[Operation]:
    """What these statements of a message do, row by row; None: all of them. Raises Unsafe at a row that cannot be read."""
    try:
        read = Transaction.FromString(message)
    except DecodeError:
        raise Problem("the message cannot be read", where, "collect the log again") from None
    chosen = range(len(read.statement)) if statements is None else statements
    if any(not 0 <= number < len(read.statement) for number in chosen):
        raise Problem("the message has not the statements that were loaded", where, "load the case again")
    for number in chosen:
        yield from _operations(read.statement[number], f"{where}, statement {number}")


def _operations(statement: Statement, where: str) -> Iterator[Operation]:
    kind = Statement.Type.Name(statement.type)
    rows = _ROWS.get(kind)
    if rows is not None:
        yield from rows(statement, where)
    else:
        yield Definition(kind, _defined(statement), statement)


def _named(metadata: TableMetadata) -> Named:
    return Named(metadata.schema_name, metadata.table_name, _catalog(metadata.catalog_name))


def _catalog(text: str) -> str:
    return "" if text.lower() == "local" else text


def _columns(metadata: Iterable[FieldMetadata]) -> Columns:
    return tuple(Column(one.name, one.type) for one in metadata)


def _inserts(statement: Statement, where: str) -> Iterator[Insert]:
    header = statement.insert_header
    table, columns = _named(header.table_metadata), _columns(header.field_metadata)
    for row in statement.insert_data.record:
        yield Insert(table, columns, _values(table, columns, row.insert_value, row.is_null, where))


def _updates(statement: Statement, where: str) -> Iterator[Update]:
    header = statement.update_header
    table, keys = _named(header.table_metadata), _columns(header.key_field_metadata)
    columns = _columns(header.set_field_metadata)
    for row in statement.update_data.record:
        key = _values(table, keys, row.key_value, None, where)
        yield Update(table, keys, key, columns, _values(table, columns, row.after_value, row.is_null, where, key))


def _deletes(statement: Statement, where: str) -> Iterator[Delete]:
    header = statement.delete_header
    table, keys = _named(header.table_metadata), _columns(header.key_field_metadata)
    for row in statement.delete_data.record:
        yield Delete(table, keys, _values(table, keys, row.key_value, None, where))


_ROWS: dict[str, Callable[[Statement, str], Iterator[RowOperation]]] = {
    "INSERT": _inserts,
    "UPDATE": _updates,
    "DELETE": _deletes,
}


def _values(
    table: Named,
    columns: Columns,
    values: Sequence[bytes],
    null: Sequence[bool] | None,
    where: str,
    key: tuple[Value, ...] = (),
) -> tuple[Value, ...]:
    """The values of a row, one for each column. Keys have no NULL."""
    if not columns or len(values) != len(columns) or (null is not None and len(null) != len(columns)):
        marks = "" if null is None else f", marks of NULL: {len(null)}"
        why = f"values: {len(values)}{marks}, columns in the header: {len(columns)}"
        raise _unsafe(table, why, where, key)
    for at, (column, value) in enumerate(zip(columns, values, strict=True)):
        if null is not None and null[at]:
            if value:
                raise _unsafe(table, f"column {printable(column.name)} is NULL and has a value", where, key)
        elif (like := LIKE.get(column.type)) and not like.fullmatch(value.decode("utf-8", "replace")):
            kind = Table.Field.FieldType.Name(column.type)
            raise _unsafe(table, f"column {printable(column.name)} has a value that is no {kind}", where, key)
    if null is None:
        return tuple(values)
    return tuple(None if is_null else value for value, is_null in zip(values, null, strict=True))


def _unsafe(table: Named, why: str, where: str, key: tuple[Value, ...]) -> Unsafe:
    of = f" (key {printable('|'.join(shown(value, 0) or '' for value in key))})" if key else ""
    what = f"a row of {printable(str(table))}{of} cannot be read safely: {why}"
    return Unsafe(what, where, "copy the row from the source by hand, or provision the replica anew")


def _defined(statement: Statement) -> Named | None:
    """The table that a statement without rows is about."""
    if statement.HasField("create_table_statement"):
        table = statement.create_table_statement.table
        return Named(table.schema, table.name, _catalog(table.catalog))
    if statement.HasField("alter_table_statement"):
        table = statement.alter_table_statement.before
        return Named(table.schema, table.name, _catalog(table.catalog))
    if statement.HasField("drop_table_statement"):
        return _named(statement.drop_table_statement.table_metadata)
    if statement.HasField("truncate_table_statement"):
        return _named(statement.truncate_table_statement.table_metadata)
    return None


# --- what the tables hold in the end


def primary_key(table: Table) -> tuple[str, ...]:
    """The columns of the primary key, in its order; none where it has none."""
    for index in table.indexes:
        if index.is_primary and all(part.fieldnr < len(table.field) for part in index.index_part):
            return tuple(table.field[part.fieldnr].name for part in index.index_part)
    return ()


def shown(value: Value, kind: int) -> str | None:
    """A value as the contract has it: text, a BLOB in hexadecimal digits, NULL as null."""
    if value is None:
        return None
    return value.hex() if kind == BLOB else value.decode("utf-8", "backslashreplace")


class _Contents:
    """The rows of one table. Before its key is known they stand in the order in which they came."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.rows: dict[tuple[str | None, ...], dict[str, str | None]] = {}
        self._came = 0

    def known(self, keys: Columns) -> None:
        """The key, as a header tells it."""
        names = tuple(column.name for column in keys)
        if not self.keys:
            self.keys = names
            self.rows = {self._key(row): row for row in self.rows.values()}

    def put(self, row: dict[str, str | None]) -> None:
        """A row that is new, or has changed."""
        self._came += 1
        self.rows[self._key(row)] = row

    def take(self, keys: Columns, key: tuple[Value, ...]) -> dict[str, str | None] | None:
        """The row of this key, which is not there any more; None: it never was."""
        self.known(keys)
        given = {column.name: shown(value, column.type) for column, value in zip(keys, key, strict=True)}
        return self.rows.pop(self._key(given), None)

    def _key(self, row: dict[str, str | None]) -> tuple[str | None, ...]:
        return tuple(row.get(name) for name in self.keys) if self.keys else (str(self._came),)


FinalRows = dict[str, dict[str, dict[str, str | None]]]


def final_rows(transactions: Iterable[Iterable[Operation]]) -> FinalRows:
    """What the tables hold when these transactions were applied, one after the other, to a server that was empty.

    Table -> values of the primary key, joined by | -> column -> value. A row that is not there is neither changed nor taken
    away: a log need not begin with its server. Raises Unsafe at a row that cannot be read safely.
    """
    tables: dict[Named, _Contents] = {}
    for transaction in transactions:
        for one in transaction:
            if isinstance(one, Definition):
                _define(tables, one)
                continue
            contents = tables.setdefault(one.table, _Contents(()))
            if isinstance(one, Insert):
                contents.put(_row(one.columns, one.values))
                continue
            row = contents.take(one.keys, one.key)
            if row is not None and isinstance(one, Update):
                contents.put(row | _row(one.columns, one.values))
    return {str(table): _by_key(contents) for table, contents in tables.items()}


def _row(columns: Columns, values: tuple[Value, ...]) -> dict[str, str | None]:
    return {column.name: shown(value, column.type) for column, value in zip(columns, values, strict=True)}


def _define(tables: dict[Named, _Contents], one: Definition) -> None:
    if one.kind == "CREATE_TABLE" and one.table:
        tables[one.table] = _Contents(primary_key(one.statement.create_table_statement.table))
    elif one.kind == "DROP_TABLE" and one.table:
        tables.pop(one.table, None)
    elif one.kind == "TRUNCATE_TABLE" and one.table in tables:
        tables[one.table].rows.clear()
    elif one.kind == "DROP_SCHEMA":
        for table in [table for table in tables if table.schema == one.statement.drop_schema_statement.schema_name]:
            del tables[table]


def _by_key(contents: _Contents) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for key, row in contents.rows.items():
        name = "|".join(one or "" for one in key)
        found[name if name not in found else json.dumps(key)] = row  # a value may hold a | itself
    return found
