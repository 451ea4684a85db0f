"""The segments of a transaction.log: what each of its records holds, as rows of a table.

Most messages hold nothing but rows. They are read many at a time in their light form, and their rows, which stay bytes, are
counted all at once. A message with anything else in it - definitions, events, what this reader does not know - is read by
itself; so is one whose encoding is not the shortest, for it has the length of one with unknown fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, compress
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError, EncodeError

from workbench import tables
from workbench.model import Parsed, Piece, Reject
from workbench.systems.drizzle.formats.framing import (
    AROUND,
    HEAD,
    LONGEST,
    NO_SUM,
    SUM_FITS,
    SUMS,
    TORN,
    TRANSACTION,
    end_of_file,
)
from workbench.systems.drizzle.formats.messages import light_form
from workbench.systems.drizzle.formats.statements import (
    NULLS,
    ROWS,
    Header,
    Segment,
    Unreadable,
    event_name,
    header_of,
    kind_name,
    message_of,
    segments_of,
)
from workbench.systems.drizzle.ids import content_of, order_key

Column = np.ndarray[Any, Any]

_AT_ONCE, _BYTES_AT_ONCE = 512, 1 << 20
_LATEST = int((datetime(9999, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
_MANY_FIELDS, _FEW_ROWS = 64, 8

TOO_LONG = f"the message is longer than {LONGEST >> 20} MiB: it is not read"


def entry_kind(kind: int) -> str:
    """What is said of a record that holds no transaction."""
    return f"entry type {kind}"


@dataclass
class Messages:
    """The messages of a piece, and the segments that were found in them; all lists of a kind are as long as each other."""

    offset: list[int] = field(default_factory=list)
    sound: list[bool | None] = field(default_factory=list)
    commit: list[int | None] = field(default_factory=list)
    body: list[bytes] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    origin: list[str | None] = field(default_factory=list)
    position: list[str | None] = field(default_factory=list)
    segment: list[int | None] = field(default_factory=list)
    ended: list[bool | None] = field(default_factory=list)
    event: list[str | None] = field(default_factory=list)
    started_at: list[int | None] = field(default_factory=list)
    ended_at: list[int | None] = field(default_factory=list)
    segments: list[tuple[int, Segment]] = field(default_factory=list)
    row: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of an exported table: which transaction and which message of it the row says that it holds."""
    rejects: list[Reject] = field(default_factory=list)

    def add(self, offset: int, sound: bool | None, body: bytes, commit: int | None = None) -> None:
        """One more message, still to be read."""
        self.offset.append(offset)
        self.sound.append(sound)
        self.commit.append(commit)
        self.body.append(body)
        self.length.append(len(body))

    def add_lost(
        self, offset: int, sound: bool | None, length: int, body: bytes = b"", unknown: str | None = None
    ) -> None:
        """What is in the stream and cannot be read: who finds transactions has to know that something is lost there."""
        self.add(offset, sound, body)
        self.length[-1] = length
        self._said(None, None, None, None, None, 0, 0)
        self.segments.append((len(self.offset) - 1, Segment(unknown=unknown)))

    def read(self, many: bool = True) -> None:
        """Read what was added since the last time; `many`: at once, where they hold rows alone."""
        first = len(self.origin)
        light = _Light(self)
        while first < len(self.offset):
            last, size = first, 0
            while last < len(self.offset) and last < first + _AT_ONCE and size < _BYTES_AT_ONCE:
                size += self.length[last]
                last += 1
            light.read(range(first, last), many)
            first = last
        for number in sorted(light.finish()):
            try:
                self.segments += [(number, one) for one in segments_of(message_of(self.body[number]))]
            except Unreadable as error:  # a row of it is damaged: its light form does not look into rows
                self._refuse(number, str(error))
        wrong = {number for number, said in self.row.items() if not self._fits(number, said)}
        self.row.clear()
        if wrong:
            self.segments = [one for one in self.segments if one[0] not in wrong]
            for number in sorted(wrong):
                self._refuse(number, "the message is not the one that its row says")

    def _fits(self, number: int, said: tuple[int, int]) -> bool:
        """Hold a message against its row. A filter takes the numbers out of messages, and leaves them in the rows."""
        position, segment = self.position[number], self.segment[number]
        if position is None:
            return True
        if segment is None:
            segment = self.segment[number] = said[1]
            self.ended[number] = self.commit[number] is not None
        if (int(position[:20]), segment) == said:
            return True
        return False

    def _refuse(self, number: int, why: str) -> None:
        """A message that was thought to be readable is not."""
        self.rejects.append(Reject(self.offset[number], why))
        for column in (
            self.origin,
            self.position,
            self.segment,
            self.ended,
            self.event,
            self.started_at,
            self.ended_at,
        ):
            column[number] = None  # type: ignore[call-overload]
        self.segments.append((number, Segment()))

    def read_one(self, number: int) -> None:
        """Read one message by itself."""
        try:
            message = message_of(self.body[number])
        except Unreadable as error:
            self.rejects.append(Reject(self.offset[number], str(error)))
            self._said(None, None, None, None, None, 0, 0)
            self.segments.append((number, Segment()))
            return
        about = message.transaction_context
        segment = message.segment_id if message.HasField("segment_id") else None
        ended = message.end_segment if message.HasField("end_segment") else None
        event = event_name(message.event.type) if message.HasField("event") else None
        times = (about.start_timestamp, about.end_timestamp)
        self._said(about.server_id, about.transaction_id, segment, ended, event, *times)
        self.segments += [(number, one) for one in segments_of(message)]

    def _said(
        self,
        server: int | None,
        transaction: int | None,
        segment: int | None,
        ended: bool | None,
        event: str | None,
        started_at: int,
        ended_at: int,
    ) -> None:
        self.origin.append(None if server is None else str(server))
        self.position.append(None if server is None or transaction is None else order_key(server, transaction))
        self.segment.append(segment)
        self.ended.append(ended)
        self.event.append(event)
        self.started_at.append(started_at if 0 < started_at < _LATEST else None)
        self.ended_at.append(ended_at if 0 < ended_at < _LATEST else None)

    def table(self) -> pa.Table:
        """The rows of the table `segments`."""
        self.segments.sort(key=lambda one: (one[0], one[1].number or 0))
        columns = list(zip(*(one for _, one in self.segments), strict=True)) or [()] * len(Segment._fields)
        of_segment = dict(zip(Segment._fields, columns, strict=True))
        number = pa.array([number for number, _ in self.segments], pa.int64())
        content = [content_of(body) for body in self.body]
        about = {name: getattr(self, name) for name in _OF_MESSAGE} | {"content": content}
        made = {}
        for name, (kind, _) in tables.COLUMNS["segments"].items():
            if name in about:
                made[name] = pa.array(about[name], kind).take(number)
            else:
                made[name] = pa.array(of_segment[name], kind)
        return pa.table(made)

    def times(self) -> dict[str, Any]:
        """The facts of when the first message was begun and the last closed."""
        told_of = [time for time in chain(self.started_at, self.ended_at) if time]
        ends = {"min": min(told_of), "max": max(told_of)} if told_of else {}
        start = datetime(1970, 1, 1, tzinfo=UTC)
        return {"time": {name: (start + timedelta(microseconds=at)).isoformat() for name, at in ends.items()}}


_OF_MESSAGE = (
    *(
        "offset",
        "length",
        "sound",
        "origin",
        "position",
        "commit",
        "segment",
        "ended",
        "event",
        "started_at",
        "ended_at",
    ),
)


class _Light:
    """Reads messages that hold rows alone. What it finds of their statements is kept as columns until `finish`."""

    def __init__(self, messages: Messages) -> None:
        self._into = messages
        self._exactly: set[int] = set()
        self._rows: dict[int, list[bytes]] = {kind: [] for kind in ROWS}
        self._found: dict[int, list[tuple[int, int, Header, int, bool, int]]] = {kind: [] for kind in ROWS}

    def read(self, numbers: range, many: bool) -> None:
        """Read these messages, at once if nothing is in them but rows, else one by one."""
        bodies = self._into.body[numbers.start : numbers.stop]
        batch = _ordinary(bodies) if many else None
        if batch is not None:
            for number, message in zip(numbers, batch.transaction, strict=True):
                self._take(number, message)
            return
        for number, body in zip(numbers, bodies, strict=True):
            alone = _ordinary([body]) if many else None
            if alone is None:
                self._into.read_one(number)
            else:
                self._take(number, alone.transaction[0])

    def _take(self, number: int, message: Any) -> None:
        about = message.transaction_context
        self._into._said(
            about.server_id,
            about.transaction_id,
            message.segment_id if message.HasField("segment_id") else None,
            message.end_segment if message.HasField("end_segment") else None,
            None,
            about.start_timestamp,
            about.end_timestamp,
        )
        found = []
        for place, statement in enumerate(message.statement):
            kind = statement.type
            if kind == 1:
                data, header = statement.insert_data, header_of(1, statement.insert_header)
            elif kind == 3:
                data, header = statement.update_data, header_of(3, statement.update_header)
            elif kind == 2:
                data, header = statement.delete_data, header_of(2, statement.delete_header)
            else:
                header = None
            if header is None or header.unknown or not data.segment_id:
                self._exactly.add(number)
                return
            found.append((kind, place, header, data))
        if not found:
            self._into.segments.append((number, Segment()))
        for kind, place, header, data in found:
            rows = data.record
            self._rows[kind] += rows
            self._found[kind].append((number, place, header, data.segment_id, data.end_segment, len(rows)))

    def finish(self) -> set[int]:
        """Give all segments to the messages; returns the numbers of those that have to be read by themselves."""
        ready: list[tuple[int, Segment]] = []
        for kind, found in self._found.items():
            name, counts = kind_name(kind), np.array([one[-1] for one in found], np.int64)
            odd, plain = _odd_rows(kind, self._rows[kind], counts, [one[2] for one in found])
            self._exactly |= set(compress((one[0] for one in found), ~plain))
            for (number, place, header, piece, ended, rows), ragged in zip(found, odd.tolist(), strict=True):
                ready.append((number, Segment(place, name, header.target, piece, ended, rows, ragged)))
        self._into.segments += [one for one in ready if one[0] not in self._exactly]
        return self._exactly


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _ordinary(bodies: Sequence[bytes]) -> Any:
    """The messages in their light form, all in one; None if any is damaged, lacks a field, or has one that is unknown to it."""
    joined = b"".join(chain.from_iterable((b"\x0a", _varint(len(body)), body) for body in bodies))
    try:
        batch = light_form("Batch").FromString(joined)
        batch.DiscardUnknownFields()
        return batch if len(batch.SerializeToString()) == len(joined) else None
    except (DecodeError, EncodeError):
        return None


def _odd_rows(kind: int, rows: list[bytes], counts: Column, headers: Sequence[Header]) -> tuple[Column, Column]:
    """Of each statement: how many of its rows cannot be read safely, and whether all can be told apart this way."""
    keys, values, nulls, plain = _fields(kind, rows)
    statement = np.repeat(np.arange(len(counts)), counts)
    wide_keys = np.array([header.keys for header in headers], np.int64)[statement]
    wide = np.array([header.values for header in headers], np.int64)[statement]
    odd = (keys != wide_keys) | (values != wide)
    if kind in NULLS:
        odd |= (nulls != 0) & (nulls != values)
    plain_of = np.ones(len(counts), bool)
    plain_of[statement[~plain]] = False
    return np.bincount(statement[odd], minlength=len(counts)), plain_of


_TAGS = {1: (0, 0x0A, 0x10), 2: (0x0A, 0, 0), 3: (0x0A, 0x12, 0x20)}
"""Kind -> what stands before a key, a value, a null mark; 0: its rows have none."""


def _fields(kind: int, rows: list[bytes]) -> tuple[Column, Column, Column, Column]:
    """Of each row: how many keys, values and null marks it has, and whether it has nothing else.

    All rows are gone through at once, a field at each step.
    """
    length = np.fromiter(map(len, rows), np.int64, len(rows))
    buffer = np.frombuffer(b"".join([*rows, bytes(16)]), np.uint8)
    end = np.cumsum(length)
    place, who = end - length, np.arange(len(rows))
    counts = [np.zeros(len(rows), np.int64) for _ in range(3)]
    plain = np.ones(len(rows), bool)
    steps = 0
    while True:
        inside = place < end[who]
        if not inside.all():
            plain[who[place > end[who]]] = False
            place, who = place[inside], who[inside]
        if not len(who):
            return counts[0], counts[1], counts[2], plain
        steps += 1
        if steps > _MANY_FIELDS and len(who) < _FEW_ROWS:
            plain[who] = False
            return counts[0], counts[1], counts[2], plain
        tag, size = buffer[place], buffer[place + 1].astype(np.int64)
        known = np.zeros(len(who), bool)
        for count, sign in zip(counts, _TAGS[kind], strict=True):
            if sign:
                here = tag == sign
                count[who[here]] += 1
                known |= here
        null = tag == _TAGS[kind][2]
        known &= ~null | (size < 2)
        behind = place + 2
        long = np.flatnonzero((size > 127) & ~null)
        if len(long):
            size[long], behind[long] = _long(buffer, place[long] + 1)
        place = np.where(null, behind, behind + size)
        place[~known] = np.iinfo(np.int64).max


def _long(buffer: Column, place: Column) -> tuple[Column, Column]:
    """(value, place behind it) of numbers of two bytes or more, up to four; longer ones lead out of any row."""
    value, behind = np.zeros(len(place), np.int64), place.copy()
    more = np.ones(len(place), bool)
    for step in range(4):
        byte = buffer[np.minimum(place + step, len(buffer) - 1)].astype(np.int64)
        value += np.where(more, (byte & 127) << 7 * step, 0)
        behind += more
        more &= byte > 127
    return np.where(more, 1 << 40, value), behind


def read(piece: Piece) -> Parsed:
    """Read a piece, messages that hold rows alone many at a time."""
    return _read(piece, many=True)


def read_exactly(piece: Piece) -> Parsed:
    """Read a piece, each message by itself: what `read` has to agree with."""
    return _read(piece, many=False)


_SOUND = {SUM_FITS: True, NO_SUM: None}


def _read(piece: Piece, many: bool) -> Parsed:
    messages, rejects = Messages(), []
    for at, end, state in piece.frames:
        sound = _SOUND.get(state, False)
        here = at - piece.offset
        if state not in SUMS:
            rejects.append(Reject(at, state))
            if not state.startswith(TORN):
                messages.read(many)
                messages.add_lost(at, False, end - at)
            continue
        if not piece.data:
            rejects.append(Reject(at, TOO_LONG))
            messages.add_lost(at, sound, end - at - AROUND)
            continue
        kind, length = HEAD.unpack_from(piece.data, here)
        body = piece.data[here + HEAD.size : here + HEAD.size + length]
        if kind == TRANSACTION:
            messages.add(at, sound, body)
        else:
            messages.read(many)
            messages.add_lost(at, sound, length, body, entry_kind(kind))
    messages.read(many)
    made = {"segments": messages.table()} if messages.offset else {}
    facts = {"end_of_file": end_of_file(piece.frames[-1])} if piece.ended and piece.frames else {}
    bad = sorted([*rejects, *messages.rejects], key=lambda reject: reject.offset)
    return Parsed(len(piece.frames), bad, made, facts | messages.times())
