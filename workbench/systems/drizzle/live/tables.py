"""Whether the tables of a server hold the rows of a stream without loss, and whether a key finds one row there.

In its strictest mode a server still cuts decimals, parts of seconds and blanks at the end, and says so in a note that nobody
reads. So each value is held against its column first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.drizzle.formats.messages_pb2 import Table
from workbench.systems.drizzle.live.connection import Server
from workbench.systems.drizzle.quoting import text_literal
from workbench.systems.drizzle.rows import Column, Delete, Insert, Named, RowOperation, Update, Value

_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_LONG = frozenset({"tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob"})
_LETTERS = frozenset({"varchar", "varbinary", *_LONG})
_MOMENTS = frozenset({"datetime", "timestamp"})
F = Table.Field
_HOLD: dict[int, frozenset[str]] = {
    F.DOUBLE: frozenset({"double"}),
    F.VARCHAR: _LETTERS | {"char"},
    F.BLOB: _LETTERS,
    F.ENUM: _LETTERS | {"char", "enum"},
    F.INTEGER: _WHOLE,
    F.BIGINT: _WHOLE,
    F.DECIMAL: frozenset({"decimal"}),
    F.DATE: frozenset({"date"}),
    F.EPOCH: _MOMENTS,
    F.DATETIME: _MOMENTS,
    F.TIME: frozenset({"time"}),
    F.UUID: _LETTERS | {"char", "uuid"},
    F.BOOLEAN: frozenset({"tinyint"}),
    F.IPV6: _LETTERS | {"char", "inet6"},
}
"""Type in the stream -> types of columns that hold its values, and print them as they were."""


@dataclass(frozen=True)
class There:
    """A column of a server."""

    kind: str
    whole: str
    letters: int | None
    bytes: int | None
    scale: int | None
    parts: int | None
    extra: str


class Tables:
    """The tables of a server, asked once each."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known: dict[Named, tuple[dict[str, There], list[frozenset[str]]]] = {}
        self._fit: set[tuple[Named, tuple[Column, ...], tuple[Column, ...]]] = set()

    def checked(self, rows: Iterable[RowOperation], but: Collection[Named] = ()) -> Iterator[RowOperation]:
        """The rows, each checked before it is passed on; those of the tables in `but` are not."""
        for one in rows:
            if one.table not in but:
                self.check(one)
            yield one

    def check(self, one: RowOperation) -> None:
        """Raise Problem if the row would be stored otherwise than it was at its source, or its key may find another one."""
        keys = () if isinstance(one, Insert) else one.keys
        columns = () if isinstance(one, Delete) else one.columns
        there, unique = self._of(one.table)
        if (one.table, keys, columns) not in self._fit:
            self._shape(one, keys, columns, there, unique)
            self._fit.add((one.table, keys, columns))
        if isinstance(one, Insert | Update):
            for column, value in zip(columns, one.values, strict=True):
                if value is not None and (why := _lost(there[column.name.lower()], value, column.type)):
                    raise _unfit(one.table, f"column {printable(column.name)} would not hold a value as it is: {why}")

    def _shape(
        self,
        one: RowOperation,
        keys: tuple[Column, ...],
        columns: tuple[Column, ...],
        there: dict[str, There],
        unique: list[frozenset[str]],
    ) -> None:
        for column in (*keys, *columns):
            found = there.get(column.name.lower())
            if found is None:
                raise _unfit(one.table, f"it has no column {printable(column.name)}")
            if found.kind not in _HOLD.get(column.type, ()):
                kind = F.FieldType.Name(column.type)
                why = f"column {printable(column.name)} is {printable(found.whole)[:60]}, which does not hold every {kind}"
                raise _unfit(one.table, why)
        if keys and not any(index <= {column.name.lower() for column in keys} for index in unique):
            raise _unfit(one.table, "no index makes sure that the key of the stream is that of one row")
        if isinstance(one, Insert) and (more := set(there) - {column.name.lower() for column in columns}):
            raise _unfit(one.table, f"it has columns that its source has not: {printable(', '.join(sorted(more)))}")
        if isinstance(one, Update):
            named = {column.name.lower() for column in columns}
            moving = [name for name, column in there.items() if "on update" in column.extra and name not in named]
            if moving:
                raise _unfit(one.table, f"column {printable(moving[0])} changes by itself when its row does")

    def _of(self, table: Named) -> tuple[dict[str, There], list[frozenset[str]]]:
        if table not in self._known:
            self._known[table] = self._asked(table)
        return self._known[table]

    def _asked(self, table: Named) -> tuple[dict[str, There], list[frozenset[str]]]:
        names = (table.schema, table.table)
        kinds = self._server.rows(
            "SELECT engine, table_type FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
            *names,
        )
        if not kinds:
            raise _unfit(table, "it is not there")
        if (kinds[0][0] or "").lower() != "innodb":
            raise _unfit(table, "it is no table of InnoDB, so that no transaction holds for its rows")
        if self._server.rows(
            "SELECT 1 FROM information_schema.triggers WHERE event_object_schema = %s AND event_object_table = %s",
            *names,
        ):
            raise _unfit(table, "it has triggers, and what they did at the source is in the stream already")
        columns = self._server.rows(
            "SELECT column_name, data_type, column_type, character_maximum_length, character_octet_length, numeric_scale, "
            "datetime_precision, extra FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
            *names,
        )
        found = {
            name.lower(): There(kind.lower(), whole, letters, size, scale, parts, (extra or "").lower())
            for name, kind, whole, letters, size, scale, parts, extra in columns
        }
        indexes: dict[str, set[str]] = {}
        cut: set[str] = set()
        for index, column, part, null in self._server.rows(
            "SELECT index_name, column_name, sub_part, nullable FROM information_schema.statistics "
            "WHERE table_schema = %s AND table_name = %s AND non_unique = 0",
            *names,
        ):
            indexes.setdefault(index, set()).add((column or "").lower())
            if part is not None or null == "YES" or column is None:
                cut.add(index)
        return found, [frozenset(columns) for index, columns in indexes.items() if index not in cut]


def _unfit(table: Named, why: str) -> Problem:
    what = f"the table {printable(str(table))} of the server does not fit the stream: {why}"
    return Problem(what, do="make it as its source has it, and resume; or provision the replica anew")


def _lost(column: There, value: Value, kind: int) -> str:
    """What the column would lose of the value without an error; empty: nothing."""
    assert value is not None
    if column.kind in _LONG or column.kind in ("varchar", "varbinary", "char"):
        as_bytes = column.letters == column.bytes
        size = len(value) if as_bytes else len(value.decode("utf-8", "replace"))
        if column.letters is not None and size > column.letters:
            return "it is longer"
        return (
            "it ends in a blank, and CHAR does not keep that" if column.kind == "char" and value.endswith(b" ") else ""
        )
    if column.kind == "enum":
        label = value.decode("utf-8", "replace")
        known = "'" + label.replace("'", "''") + "'"
        return "" if known in column.whole or text_literal(label) in column.whole else "it is none of its labels"
    digits = len(value.decode("ascii", "replace").partition(".")[2].rstrip("0"))
    if kind == F.DECIMAL and digits > (column.scale or 0):
        return "it has more decimals"
    if kind == F.DOUBLE and column.scale is not None:
        return "it keeps a fixed number of decimals"
    if column.parts is not None and digits > column.parts:
        return "it has smaller parts of a second"
    return ""
