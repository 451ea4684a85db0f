"""Exported tables of a stream: SYS_REPLICATION_LOG of a master and the queue of a slave, as JSON lines, a JSON array, or CSV.

    ID, SEGID, COMMIT_ID, END_TIMESTAMP, ORIGINATING_SERVER_UUID, ORIGINATING_COMMIT_ID, MESSAGE_LEN, MESSAGE
    trx_id, seg_id, commit_order, originating_server_uuid, originating_commit_id, msg, master_id

A message of the log is protobuf, here in base64 or hexadecimal digits; one of the queue is protobuf as text. A row that does
not fit its own message is rejected: there is no checksum, and its numbers are all that can be held against it.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from google.protobuf import text_format

from workbench import tables
from workbench.model import LINES, WHOLE, Format, Parsed, Piece, Reject
from workbench.replication.stream.rules.segments import QUEUED
from workbench.systems.drizzle.formats.messages_pb2 import Transaction
from workbench.systems.drizzle.formats.segments import Messages

Row = dict[str, str | int | None]

_LONGEST_TEXT = 256 << 20
_NUMBER = re.compile(r"[0-9]{1,20}", re.ASCII)
_BOM = "\ufeff"


class _Exported(NamedTuple):
    """A kind of exported table: its columns, in lower case, and how the text of a message becomes its bytes."""

    number: str
    segment: str
    commit: str
    message: str
    bytes_of: Callable[[str], bytes]
    master: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.number, self.segment, self.commit, self.message


def _packed(text: str) -> bytes:
    try:
        if text[:2].lower() == "0x":
            return bytes.fromhex(text[2:])
        return base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        raise ValueError("the message is neither base64 nor hexadecimal digits") from None


def _text(text: str) -> bytes:
    try:
        return text_format.Parse(text, Transaction()).SerializePartialToString()
    except (text_format.ParseError, ValueError, RecursionError):
        raise ValueError("the message is no protobuf text of a transaction") from None


_LOG = _Exported("id", "segid", "commit_id", "message", _packed)
_QUEUE = _Exported("trx_id", "seg_id", "commit_order", "msg", _text, "master_id")


def _number(row: Mapping[str, Any], column: str, bits: int = 64) -> int:
    value = row.get(column)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = int(value)
    if type(value) is int and 0 <= value < 1 << bits:
        return value
    raise ValueError(f"no number in the column {column}")


def _add(messages: Messages, masters: list[Row], of: _Exported, offset: int, given: Any) -> None:
    """One row of the table, and its master. Raises ValueError for one that is none, or does not fit its message."""
    if not isinstance(given, Mapping):
        raise ValueError("not a row of the table")
    row = {str(name).lower(): value for name, value in given.items()}
    number, segment, commit = _number(row, of.number), _number(row, of.segment, 32), _number(row, of.commit, 63)
    text = row.get(of.message)
    if not isinstance(text, str):
        raise ValueError(f"no message in the column {of.message}")
    body = of.bytes_of(text)
    if "message_len" in row and _number(row, "message_len") != len(body):
        raise ValueError(f"the message has {len(body):,} bytes, not as many as the row says")
    messages.add(offset, None, body, commit or None)
    if _NUMBER.fullmatch(master := str(row.get(of.master, "")).strip()):
        masters.append({"offset": offset, "master": str(int(master)), "part": QUEUED, "commit": commit or None})
    messages.row[len(messages.offset) - 1] = (number, segment)


def _read(of: _Exported, rows: Iterator[tuple[int, Any]]) -> Parsed:
    """`rows`: (place, row) of each; in place of a row the reason why there is none."""
    messages, masters, rejects, count = Messages(), list[Row](), [], 0
    for offset, row in rows:
        count += 1
        try:
            if isinstance(row, ValueError):
                raise row
            _add(messages, masters, of, offset, row)
        except ValueError as error:
            rejects.append(Reject(offset, str(error)))
            messages.add_lost(offset, None, 0)
    messages.read()
    made = {"segments": messages.table()} if messages.offset else {}
    made |= {"appliers": tables.table("appliers", masters)} if masters else {}
    return Parsed(count, sorted([*rejects, *messages.rejects], key=lambda one: one.offset), made, messages.times())


def _document(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # Not what it says: that may quote values.
        return ValueError("broken JSON")


def _lines(piece: Piece) -> Iterator[tuple[int, Any]]:
    at = piece.offset
    for line in piece.data.split(b"\n"):
        if line.strip():
            yield at, _document(line.removeprefix(_BOM.encode()))
        at += len(line) + 1


def message_in_line(line: bytes) -> bytes:
    """The message of a line of the exported log. Raises ValueError if there is none."""
    given = _document(line.removeprefix(_BOM.encode()))
    text = {name.lower(): value for name, value in given.items()}.get("message") if isinstance(given, dict) else None
    if not isinstance(text, str):
        raise ValueError("no row of the log")
    return _packed(text)


def _array(piece: Piece) -> Iterator[tuple[int, Any]]:
    try:
        text = piece.data.decode()
    except UnicodeDecodeError as error:
        yield error.start, ValueError("not UTF-8 text")
        return
    decode, blank = json.JSONDecoder().raw_decode, re.compile(r"[\s,]*")
    at, place, behind = text.index("[") + 1, 0, 0
    while True:
        found = blank.match(text, at)
        assert found is not None  # no blanks at all fit, too
        at = found.end()
        place, behind = place + len(text[behind:at].encode()), at
        if text.startswith("]", at):
            return
        try:
            row, at = decode(text, at)
        except (ValueError, RecursionError):
            yield place, ValueError("broken JSON: the file was cut, or is damaged here")
            return
        yield place, row


def _table(piece: Piece) -> Iterator[tuple[int, Any]]:
    """Rows of CSV or of a tab-separated file, in which a value may hold the end of a line."""
    text = piece.data.decode("utf-8", "surrogateescape").removeprefix(_BOM)
    place = [len(piece.data) - len(text.encode("utf-8", "surrogateescape"))]

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            place[0] += len(line.encode("utf-8", "surrogateescape"))
            yield line

    csv.field_size_limit(_LONGEST_TEXT)
    tabs = "\t" in text.partition("\n")[0]
    rows = csv.reader(lines(), delimiter="\t" if tabs else ",")
    names: list[str] = []
    while True:
        here = place[0]
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield here, ValueError("broken CSV")
            continue
        if not row:
            continue
        if not names:
            names = row
        elif len(row) != len(names):
            yield here, ValueError(f"{len(row)} values, but {len(names)} columns")
        else:
            # What mysql --batch writes for a line end within a value.
            yield here, dict(zip(names, (value.replace("\\n", "\n") if tabs else value for value in row), strict=True))


def _named(of: _Exported, text: bytes) -> bool:
    """True where all columns are named, in either case."""
    lower = text.lower()
    return all(re.search(rb'"%s"\s*:' % name.encode(), lower) for name in of.columns)


def _formats(name: str, of: _Exported, **more: Any) -> tuple[Format, ...]:
    def in_lines(head: bytes, _: str) -> bool:
        return head.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{") and _named(of, head.partition(b"\n")[0])

    def in_array(head: bytes, _: str) -> bool:
        return bool(re.match(rb"(\xef\xbb\xbf)?\s*\[\s*\{", head)) and _named(of, head)

    def in_table(head: bytes, _: str) -> bool:
        first = head.removeprefix(_BOM.encode()).partition(b"\n")[0].strip().lower()
        names = {one.strip(b'" ') for one in re.split(rb"[,\t]", first)}
        return {column.encode() for column in of.columns} <= names

    return (
        Format(name, in_lines, lambda: lambda piece: _read(of, _lines(piece)), LINES, True, variant="lines", **more),
        Format(name, in_array, lambda: lambda piece: _read(of, _array(piece)), WHOLE, variant="array", **more),
        Format(name, in_table, lambda: lambda piece: _read(of, _table(piece)), WHOLE, variant="table", **more),
    )


REPLICATION_LOG = _formats("drizzle.replication-log", _LOG, streams=True, evidence="log", is_log=True)
QUEUE = _formats("drizzle.queue", _QUEUE, streams=True)
