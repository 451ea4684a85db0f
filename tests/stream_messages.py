"""Messages of a stream of Drizzle that a test makes: a table, rows of it, and records around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.systems.drizzle.formats.messages_pb2 import Statement, Table, Transaction
from workbench.systems.drizzle.rows import Value

F = Table.Field
Columns = Sequence[tuple[str, int]]


def message(number: int = 7, server: int = 1, segment: int = 1, ended: bool = True) -> Transaction:
    """A transaction without statements."""
    whole = Transaction(segment_id=segment, end_segment=ended)
    context = whole.transaction_context
    context.server_id, context.transaction_id, context.start_timestamp, context.end_timestamp = server, number, 1, 2
    return whole


def _statement(whole: Transaction, kind: Statement.Type) -> Statement:
    return whole.statement.add(type=kind, start_timestamp=1, end_timestamp=2)


def insert(whole: Transaction, table: str, columns: Columns, rows: Iterable[Sequence[Value]]) -> Transaction:
    """New rows of `schema.table`."""
    statement = _statement(whole, Statement.INSERT)
    header, data = statement.insert_header, statement.insert_data
    header.table_metadata.schema_name, header.table_metadata.table_name = table.split(".", 1)
    for name, kind in columns:
        header.field_metadata.add(name=name, type=kind)  # type: ignore[arg-type]
    data.segment_id, data.end_segment = 1, True
    for row in rows:
        data.record.add(insert_value=[value or b"" for value in row], is_null=[value is None for value in row])
    return whole


def update(
    whole: Transaction,
    table: str,
    keys: Columns,
    columns: Columns,
    rows: Iterable[tuple[Sequence[bytes], Sequence[Value]]],
) -> Transaction:
    """Changed rows: (key, values) each."""
    statement = _statement(whole, Statement.UPDATE)
    header, data = statement.update_header, statement.update_data
    header.table_metadata.schema_name, header.table_metadata.table_name = table.split(".", 1)
    for name, kind in keys:
        header.key_field_metadata.add(name=name, type=kind)  # type: ignore[arg-type]
    for name, kind in columns:
        header.set_field_metadata.add(name=name, type=kind)  # type: ignore[arg-type]
    data.segment_id, data.end_segment = 1, True
    for key, row in rows:
        null = [value is None for value in row]
        data.record.add(key_value=list(key), after_value=[value or b"" for value in row], is_null=null)
    return whole


def delete(whole: Transaction, table: str, keys: Columns, rows: Iterable[Sequence[bytes]]) -> Transaction:
    """Rows that go, by their keys."""
    statement = _statement(whole, Statement.DELETE)
    header, data = statement.delete_header, statement.delete_data
    header.table_metadata.schema_name, header.table_metadata.table_name = table.split(".", 1)
    for name, kind in keys:
        header.key_field_metadata.add(name=name, type=kind)  # type: ignore[arg-type]
    data.segment_id, data.end_segment = 1, True
    for row in rows:
        data.record.add(key_value=list(row))
    return whole


def create(whole: Transaction, table: str, columns: Columns, keys: Sequence[str]) -> Table:
    """A table of InnoDB with this primary key; more can be said of what is returned."""
    made = _statement(whole, Statement.CREATE_TABLE).create_table_statement.table
    made.schema, made.name = table.split(".", 1)
    made.engine.name, made.type = "InnoDB", Table.STANDARD
    made.creation_timestamp = made.update_timestamp = 1
    for name, kind in columns:
        field = made.field.add(name=name, type=kind)  # type: ignore[arg-type]
        if kind == F.VARCHAR:
            field.string_options.length, field.string_options.collation = 100, "utf8_general_ci"
        if kind == F.DECIMAL:
            field.numeric_options.precision, field.numeric_options.scale = 10, 2
    index = made.indexes.add(name="PRIMARY", is_primary=True, is_unique=True, type=Table.Index.BTREE, key_length=4)
    for key in keys:
        index.index_part.add(fieldnr=[name for name, _ in columns].index(key), compare_length=400)
    return made
