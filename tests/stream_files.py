"""Logs of a stream that tests write, as bytes: from messages of the rule, or of a simulated source; and the recorded fleet."""

from __future__ import annotations

import atexit
import struct
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from stream_histories import Sent, Source

from workbench.case.case import Case
from workbench.diagnosis.incident import Incident
from workbench.replication.stream.rules.segments import Message, Piece
from workbench.systems.drizzle.formats import messages_pb2 as wire

BEGAN = 1_330_211_976_000_000
"""Microseconds since 1970: offsets of messages count as milliseconds behind it."""


def record(number: int, one: Message, server: int = 1) -> bytes:
    """A message as a record of a log."""
    message = wire.Transaction()
    context = message.transaction_context
    context.server_id, context.transaction_id = server, number
    context.start_timestamp = context.end_timestamp = BEGAN + one.offset * 1000
    if one.number is not None:
        message.segment_id = one.number
    if one.ended is not None:
        message.end_segment = one.ended
    for piece in one.pieces:
        _add(message.statement.add(), piece, one.offset)
    body = message.SerializeToString()
    return struct.pack("<II", 1, len(body)) + body + struct.pack("<I", zlib.crc32(body))


def _add(statement: wire.Statement, piece: Piece, offset: int) -> None:
    statement.type = wire.Statement.Type.Value(piece.operation)
    statement.start_timestamp = statement.end_timestamp = BEGAN
    if piece.operation not in ("INSERT", "UPDATE", "DELETE"):
        return
    kind = piece.operation.lower()
    header, data = getattr(statement, f"{kind}_header"), getattr(statement, f"{kind}_data")
    header.table_metadata.schema_name, _, header.table_metadata.table_name = (piece.target or "").partition(".")
    columns = {"insert": ["field_metadata"], "update": ["key_field_metadata", "set_field_metadata"]}
    for name in columns.get(kind, ["key_field_metadata"]):
        getattr(header, name).add(type=wire.Table.Field.VARCHAR, name="value")
    data.segment_id, data.end_segment = piece.number, piece.ended
    for row in range(piece.rows):
        one = data.record.add()
        for name in {"insert": ["insert_value"], "update": ["key_value", "after_value"], "delete": ["key_value"]}[kind]:
            getattr(one, name).append(f"{offset}-{row}".encode())
        if kind != "delete":
            one.is_null.append(False)


def log_of(sent: Iterable[Sent]) -> bytes:
    """What was sent, as a log."""
    return b"".join(record(one.transaction, one.message) for one in sent)


def bulk() -> list[Sent]:
    """Bulks between plain commits: 1 is committed, 3 is taken back, of 5 one statement fails, and 6 has no end."""
    sent: list[Sent] = []

    def send(number: int, segment: int, ended: bool, *pieces: Piece) -> None:
        sent.append(Sent(number, Message(len(sent) * 10, segment, ended, pieces, len(sent))))

    def update(number: int, ended: bool, rows: int, table: str = "test.person") -> Piece:
        return Piece("UPDATE", table, number, ended, rows)

    send(7, 1, True, Piece("INSERT", "shop.orders", 1, True, 1))
    send(1, 1, False, update(1, False, 4))
    send(2, 1, True, Piece("INSERT", "shop.orders", 1, True, 1))
    send(3, 1, False, update(1, False, 3))
    send(1, 2, False, update(2, False, 4))
    send(3, 2, False, update(2, False, 3))
    send(4, 1, True, Piece("INSERT", "shop.orders", 1, True, 1))
    send(3, 3, True, Piece("ROLLBACK"))
    send(1, 3, True, update(3, True, 2))
    send(5, 1, False, Piece("INSERT", "shop.orders", 1, True, 2), update(1, False, 5))
    send(5, 2, True, Piece("ROLLBACK_STATEMENT"), Piece("DELETE", "shop.orders", 1, True, 1))
    send(6, 1, False, update(1, False, 7))
    return sent


def history(seed: int, transactions: int = 25) -> list[Sent]:
    """What a simulated source sends."""
    source = Source(seed, savepoints=True)
    source.run(transactions)
    return source.log


def name_source(folder: Path, file: str, origin: str = "1") -> None:
    """Have a person name the server of a log as the source of an origin."""
    about = f"servers:\n- name: {file.partition('.')[0]}\n  origin: '{origin}'\n  files: [{file}]\n"
    (folder / "case.yaml").write_text(about, encoding="utf-8")


def case_of_logs(folder: Path, **logs: bytes) -> Case:
    """A case of servers with these logs; a person named the first as the source."""
    (folder / "now").mkdir(parents=True)
    for server, data in logs.items():
        (folder / "now" / f"{server}.log").write_bytes(data)
    name_source(folder / "now", f"{next(iter(logs))}.log")
    case = Case.create(folder / "case")
    case.load([folder / "now"])
    return case


def without(sent: Iterable[Sent], *transactions: int) -> list[Sent]:
    """The same without some transactions: what a copy has that missed them."""
    return [one for one in sent if one.transaction not in transactions]


@cache
def bulk_case() -> Case:
    """`bulk`, and a copy that lacks 2, 6 and the end, as a case that several tests look at; nobody loads more into it."""
    folder = Path(mkdtemp(prefix="workbench-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    return case_of_logs(folder, main=log_of(bulk()), copy=log_of(without(bulk(), 2, 6)[:-3]))


def bulk_incident() -> Incident:
    """The same, diagnosed anew."""
    return Incident(bulk_case())
