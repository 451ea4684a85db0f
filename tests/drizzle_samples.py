"""Samples of Drizzle: recorded logs with what a correct reader finds in them, and a small writer of others."""

from __future__ import annotations

import gzip
import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from workbench.intake.files import pieces
from workbench.model import Parsed, Piece, Reject, Source
from workbench.systems import format_with
from workbench.systems.drizzle.formats import messages_pb2 as messages

SAMPLES = Path(__file__).parent / "samples" / "drizzle"
LOG = format_with("drizzle.transaction-log")
KIND = messages.Statement.Type
TYPE = messages.Table.Field.FieldType


@cache
def expected() -> dict[str, Any]:
    """What a correct reader finds in each sample."""
    found: dict[str, Any] = json.loads(gzip.decompress((SAMPLES / "expected.json.gz").read_bytes()))
    return found


def logs() -> list[str]:
    """The names of the recorded logs that come with the tests."""
    return [name for name in expected() if (SAMPLES / f"{name}.gz").exists()]


@cache
def sample(name: str) -> bytes:
    """A recorded file."""
    return gzip.decompress((SAMPLES / f"{name}.gz").read_bytes())


def read_pieces(path: Path) -> list[Piece]:
    """The pieces of a log; none of it may be left out."""
    found = list(pieces(path, Source(path.name, "s", "x"), LOG.unit, frames=LOG.frames))
    assert not [one for one in found if isinstance(one, Reject)]
    return [one for one in found if isinstance(one, Piece)]


def frames_of(data: bytes) -> list[tuple[int, int, str]]:
    """The frames of a log."""
    assert LOG.frames
    return list(LOG.frames(lambda at, length: data[at : at + length], len(data), 0, len(data), True))


def parsed_of(data: bytes, frames: list[tuple[int, int, str]], reader: Any = None) -> Parsed:
    """What the reader makes of a log, all in one piece."""
    return (reader or LOG.reader())(Piece(Source("x.log", "s", "x"), data, 0, True, tuple(frames)))


def read_bytes(data: bytes) -> Parsed:
    """The same, with the frames that it has."""
    return parsed_of(data, frames_of(data))


def record(message: Any, checksum: bool = True, kind: int = 1) -> bytes:
    """A record of a log; `message` may be bytes."""
    body = message if isinstance(message, bytes) else message.SerializePartialToString()
    head = kind.to_bytes(4, "little") + len(body).to_bytes(4, "little")
    return head + body + (zlib.crc32(body) if checksum else 0).to_bytes(4, "little")


def transaction(
    number: int, *statements: Any, server: int = 1, segment: int | None = 1, ended: bool | None = True, at: int = 0
) -> Any:
    """A message of a transaction; `segment` and `ended` None as in a filtered stream."""
    made = messages.Transaction()
    about = made.transaction_context
    about.server_id, about.transaction_id = server, number
    about.start_timestamp = about.end_timestamp = 1330211976000000 + at
    made.statement.extend(statements)
    if segment is not None:
        made.segment_id = segment
    if ended is not None:
        made.end_segment = ended
    return made


def statement(kind: str, **fields: Any) -> Any:
    """A statement of that kind."""
    times = {"start_timestamp": 1330211976000000, "end_timestamp": 1330211976000001}
    return messages.Statement(type=KIND.Value(kind), **times, **fields)


def insert(*rows: tuple[bytes | None, ...], table: str = "t", piece: int = 1, ended: bool = True, **types: str) -> Any:
    """An INSERT of rows; a value None is NULL. Columns are `id`, `c1`, `c2` ... of type VARCHAR, unless `types` names them."""
    names = types or {("id" if not at else f"c{at}"): "VARCHAR" for at in range(len(rows[0]) if rows else 1)}
    made = statement("INSERT")
    made.insert_header.table_metadata.schema_name, made.insert_header.table_metadata.table_name = "test", table
    for name, kind in names.items():
        made.insert_header.field_metadata.add(type=TYPE.Value(kind), name=name)
    made.insert_data.segment_id, made.insert_data.end_segment = piece, ended
    for row in rows:
        nulls = [value is None for value in row]
        made.insert_data.record.add(insert_value=[value or b"" for value in row], is_null=nulls)
    return made


def update(*rows: tuple[bytes, bytes | None], table: str = "t", piece: int = 1, ended: bool = True) -> Any:
    """An UPDATE: (key, new value of `c1`) of each row."""
    made = statement("UPDATE")
    made.update_header.table_metadata.schema_name, made.update_header.table_metadata.table_name = "test", table
    made.update_header.key_field_metadata.add(type=TYPE.Value("VARCHAR"), name="id")
    made.update_header.set_field_metadata.add(type=TYPE.Value("VARCHAR"), name="c1")
    made.update_data.segment_id, made.update_data.end_segment = piece, ended
    for key, value in rows:
        made.update_data.record.add(key_value=[key], after_value=[value or b""], is_null=[value is None])
    return made


def delete(*keys: bytes, table: str = "t", piece: int = 1, ended: bool = True) -> Any:
    """A DELETE of the rows with these keys."""
    made = statement("DELETE")
    made.delete_header.table_metadata.schema_name, made.delete_header.table_metadata.table_name = "test", table
    made.delete_header.key_field_metadata.add(type=TYPE.Value("VARCHAR"), name="id")
    made.delete_data.segment_id, made.delete_data.end_segment = piece, ended
    for key in keys:
        made.delete_data.record.add(key_value=[key])
    return made


def event(number: int, kind: str = "STARTUP", server: int = 1) -> Any:
    """A message that tells what happened to the server."""
    made = transaction(number, server=server)
    made.event.type = messages.Event.Type.Value(kind)
    return made
