"""What a table of segments tells of one message: a row for each of its statements, or one if it has none.

Values of rows, the text of statements and what variables are set to are counted at most, and never kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from workbench.systems.drizzle.formats.messages import EVENTS, KINDS, open_form, unknown_in, whole

ROWS = {1: "insert", 2: "delete", 3: "update"}
"""Kinds of statements that change rows -> how their fields are called."""

KEY, VALUE, NULLS = {1: None, 2: "key_value", 3: "key_value"}, {1: "insert_value", 2: None, 3: "after_value"}, (1, 3)
_LISTED = 20


class Header(NamedTuple):
    """Of a statement that changes rows: its table, how many columns its rows name as key and as values, what is unknown in it."""

    target: str | None
    keys: int
    values: int
    unknown: tuple[str, ...]


class Segment(NamedTuple):
    """What a message tells of one of its statements; names as in the table."""

    number: int | None = None
    operation: str | None = None
    target: str | None = None
    piece: int | None = None
    piece_ended: bool | None = None
    rows: int = 0
    ragged: int = 0
    unknown: str | None = None


class Unreadable(ValueError):
    """A message that is none, or that lacks what every message has; the text says which."""


def text_of(name: bytes) -> str:
    """A name; what is not UTF-8 in it as escapes."""
    return name.decode("utf-8", "backslashreplace")


def kind_name(number: int) -> str:
    """The kind of a statement, in the words of the system; one that is not in the list by its number."""
    return KINDS.get(number, f"kind {number}")


def event_name(number: int) -> str:
    """What happened to the server; what is not in the list by its number."""
    return EVENTS.get(number, f"event {number}")


def told(unknown: Iterable[str]) -> str | None:
    """What is unknown, each thing once, for the table; None for nothing."""
    each = sorted(set(unknown))
    more = [f"and {len(each) - _LISTED} more"] if len(each) > _LISTED else []
    return "; ".join([*each[:_LISTED], *more]) or None


def table_of(metadata: Any) -> str:
    """A table as schema.table."""
    return f"{text_of(metadata.schema_name)}.{text_of(metadata.table_name)}"


@lru_cache(1 << 12)
def header_of(kind: int, data: bytes) -> Header | None:
    """The header of a statement that changes rows; None if it cannot be read. Headers repeat from message to message."""
    header = whole(f"{ROWS[kind].title()}Header", data)
    if header is None:
        return None
    keys = () if kind == 1 else header.key_field_metadata
    values = {1: "field_metadata", 3: "set_field_metadata"}.get(kind)
    columns = getattr(header, values) if values else ()
    return Header(table_of(header.table_metadata), len(keys), len(columns), tuple(unknown_in(header)))


NO_HEADER = Header(None, -1, -1, ())
"""Rows without a header can never be read."""


def target_of(statement: Any) -> str | None:
    """What a statement that changes no rows is about: a table or a schema. `statement` is in its open form."""
    for field in ("truncate_table_statement", "drop_table_statement"):
        if statement.HasField(field):
            return table_of(getattr(statement, field).table_metadata)
    if statement.HasField("create_table_statement"):
        made = statement.create_table_statement.table
        return f"{text_of(made.schema)}.{text_of(made.name)}"
    if statement.HasField("alter_table_statement"):
        before = statement.alter_table_statement.before
        return f"{text_of(before.schema)}.{text_of(before.name)}"
    if statement.HasField("create_schema_statement"):
        return text_of(statement.create_schema_statement.schema.name)
    if statement.HasField("alter_schema_statement"):
        return text_of(statement.alter_schema_statement.before.name)
    if statement.HasField("drop_schema_statement"):
        return text_of(statement.drop_schema_statement.schema_name)
    return text_of(statement.raw_sql_schema) if statement.HasField("raw_sql_schema") else None


def ragged(kind: int, header: Header, keys: int, values: int, nulls: int) -> bool:
    """True of a row that cannot be read safely: another number of values than its header has columns, or of null marks.

    Servers before 2011 wrote no null marks at all.
    """
    wrong = keys != max(header.keys, 0) or values != max(header.values, 0) or header is NO_HEADER
    return wrong or (kind in NULLS and nulls not in (0, values))


def message_of(data: bytes) -> Any:
    """The transaction that these bytes are, in its open form. Raises Unreadable."""
    try:
        message = open_form("Transaction").FromString(data)
    except DecodeError:
        raise Unreadable("the message is damaged: it is no transaction") from None
    if not message.IsInitialized():
        missing = sorted(message.FindInitializationErrors())
        raise Unreadable(f"the message lacks required fields: {', '.join(missing[:3])}")
    return message


def segments_of(message: Any) -> Iterator[Segment]:
    """What the message tells of each of its statements, read one by one: what all faster ways have to agree with."""
    beside = [
        *(said for said in unknown_in(message) if not said.startswith("statement.")),
        *([f"event {message.event.type}"] if message.HasField("event") and message.event.type not in EVENTS else []),
    ]
    if not message.statement:
        yield Segment(unknown=told(beside))
    for number, statement in enumerate(message.statement):
        yield _segment(number, statement, [*(beside if number == 0 else ())])


def _segment(number: int, statement: Any, beside: list[str]) -> Segment:
    kind = statement.type
    unknown = [f"kind {kind}"] if kind not in KINDS else []
    unknown += [said for said in unknown_in(statement) if not said.startswith("type ")]
    name = ROWS.get(kind)
    if name is None:
        return Segment(number, kind_name(kind), target_of(statement), unknown=told([*beside, *unknown]))
    header = NO_HEADER
    if statement.HasField(f"{name}_header"):
        header = header_of(kind, getattr(statement, f"{name}_header").SerializeToString()) or NO_HEADER
    if not statement.HasField(f"{name}_data"):
        return Segment(number, kind_name(kind), header.target, unknown=told([*beside, *unknown]))
    data = getattr(statement, f"{name}_data")
    key, value = KEY[kind], VALUE[kind]
    odd = sum(
        ragged(
            kind,
            header,
            len(getattr(row, key)) if key else 0,
            len(getattr(row, value)) if value else 0,
            len(row.is_null) if kind in NULLS else 0,
        )
        for row in data.record
    )
    rows = len(data.record)
    about = (header.target, data.segment_id, data.end_segment, rows, odd)
    return Segment(number, kind_name(kind), *about, told([*beside, *unknown]))
