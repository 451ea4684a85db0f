"""A plain walk over the records of a transaction log of Drizzle: which transactions it holds, and where their rows stand."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from drizzle_samples import SAMPLES

from workbench.replication.stream.rules.segments import (
    COMMITTED,
    Message,
    Piece,
    Stream,
    Transaction,
    kept_pieces,
    transactions,
)
from workbench.systems.drizzle.formats import messages_pb2
from workbench.systems.drizzle.ids import content_of
from workbench.systems.drizzle.rows import Place

_HEAD = struct.Struct("<II")


def log_of(name: str) -> Path:
    """The packed sample of a log."""
    return SAMPLES / f"{name}.gz"


def records(data: bytes) -> Iterator[tuple[int, messages_pb2.Transaction, bytes, bool]]:
    """(offset, message, its bytes, sound) of each whole record of a log whose framing is whole."""
    at = 0
    while at + 12 <= len(data):
        _, length = _HEAD.unpack_from(data, at)
        body = data[at + 8 : at + 8 + length]
        if at + 12 + length > len(data):
            return
        stored = int.from_bytes(data[at + 8 + length : at + 12 + length], "little")
        yield at, messages_pb2.Transaction.FromString(body), body, stored in (0, zlib.crc32(body))
        at += 12 + length


def _piece(statement: messages_pb2.Statement) -> Piece:
    kind = messages_pb2.Statement.Type.Name(statement.type)
    if kind not in ("INSERT", "UPDATE", "DELETE"):
        return Piece(kind)
    header = getattr(statement, f"{kind.lower()}_header").table_metadata
    data = getattr(statement, f"{kind.lower()}_data")
    table = f"{header.schema_name}.{header.table_name}"
    return Piece(kind, table, data.segment_id, data.end_segment, len(data.record))


def streamed(data: bytes) -> list[tuple[str, Transaction, list[Place]]]:
    """(server:number, transaction, where its rows stand) in the order of their last messages; events are left out."""
    lives: dict[int, int] = {}
    found: dict[tuple[int, int], list[Message]] = {}
    places: dict[int, tuple[int, int]] = {}
    for offset, message, body, sound in records(data):
        server, number = message.transaction_context.server_id, message.transaction_context.transaction_id
        if message.HasField("event"):
            lives[server] = lives.get(server, 0) + (message.event.type == messages_pb2.Event.STARTUP)
            continue
        places[offset] = len(body), content_of(body)
        one = Message(
            offset,
            message.segment_id if message.HasField("segment_id") else None,
            message.end_segment if message.HasField("end_segment") else None,
            tuple(map(_piece, message.statement)),
            content_of(body),
            sound,
            life=lives.get(server, 0),
        )
        found.setdefault((server, number), []).append(one)
    every = [
        (f"{server}:{number}", one, _places(one, places))
        for (server, number), messages in found.items()
        for one in transactions(messages, Stream(lives.get(server, 0)))
    ]
    return sorted(every, key=lambda one: one[1].messages[-1].offset)


def _places(one: Transaction, places: dict[int, tuple[int, int]]) -> list[Place]:
    by_message: dict[int, list[int]] = {}
    for message, number in kept_pieces(one.counting):
        by_message.setdefault(message.offset, []).append(number)
    return [Place(at, places[at][0], tuple(numbers), places[at][1]) for at, numbers in by_message.items()]


def committed(data: bytes) -> list[tuple[str, list[Place]]]:
    """The committed transactions of a log and where their rows stand, in the order of their last messages."""
    return [(name, places) for name, one, places in streamed(data) if one.outcome == COMMITTED]
