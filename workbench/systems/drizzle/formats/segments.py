"""The segments of a transaction.log: what each of its records holds, as rows of a table.

Most messages hold nothing but rows. They are read many at a time in their light form, and their rows, which stay bytes, are
counted all at once. A message with anything else in it - definitions, events, what this reader does not know - is read by
itself; so is one whose encoding is not the shortest, for it has the length of one with unknown fields.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
    NO_HEADER,
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

Column = np.ndarray[Any, Any]

_AT_ONCE = 512
_LATEST = int((datetime(9999, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
_MANY_FIELDS, _FEW_ROWS = 64, 8

TOO_LONG = f"the message is longer than {LONGEST >> 20} MiB: it is not read"


def entry_kind(kind: int) -> str:
    """What is said of a record that holds no transaction."""
    return f"entry type {kind}"


class Messages:
    """Messages of a stream: taken with `add`, read all at once with `read`, and given as rows of the table `segments`.

    Columns, not rows, are what is kept while many messages are read: an object for each of them would cost more than its
    reading.
    """

    def __init__(self) -> None:
        self.rejects: list[Reject] = []
        self.offset: list[int] = []
        self.row: dict[int, tuple[int, int]] = {}
        """Of an exported table: which transaction and which message of it the row says that it holds."""
        self._sound: list[bool | None] = []
        self._commit: list[int | None] = []
        self._body: list[bytes] = []
        self._length: dict[int, int] = {}
        self._said = _Said()
        self._light = _Light()
        self._segments: list[tuple[int, Segment]] = []
        self._events: dict[int, str] = {}
        self._lost: set[int] = set()

    def add(self, offset: int, sound: bool | None, body: bytes, commit: int | None = None) -> None:
        """One more message, to be read."""
        self.offset.append(offset)
        self._sound.append(sound)
        self._commit.append(commit)
        self._body.append(body)

    def add_all(self, offsets: Sequence[int], sound: list[bool | None], bodies: list[bytes]) -> None:
        """The same of many."""
        self.offset += offsets
        self._sound += sound
        self._commit += [None] * len(bodies)
        self._body += bodies

    def add_lost(
        self, offset: int, sound: bool | None, length: int, body: bytes = b"", unknown: str | None = None
    ) -> None:
        """What is in the stream and cannot be read: who finds transactions has to know that something is lost there."""
        number = len(self.offset)
        self.add(offset, sound, body)
        self._length[number] = length
        self._lost.add(number)
        self._segments.append((number, Segment(unknown=unknown)))

    def read(self, many: bool = True) -> None:
        """Read what was added; `many`: at once, where they hold rows alone."""
        waiting = [number for number in range(len(self.offset)) if number not in self._lost]
        for first in range(0, len(waiting), _AT_ONCE):
            numbers = waiting[first : first + _AT_ONCE]
            batch = _ordinary([self._body[number] for number in numbers]) if many else None
            if batch is not None:
                self._take(numbers, batch)
                continue
            for number in numbers:
                alone = _ordinary([self._body[number]]) if many else None
                if alone is None:
                    self._read_one(number)
                else:
                    self._take([number], alone)
        for number in sorted(self._light.finish()):
            try:
                self._segments += [(number, one) for one in segments_of(message_of(self._body[number]))]
            except Unreadable as error:  # a row of it is damaged: its light form does not look into rows
                self._refuse(number, str(error))
        if self.row:
            self._hold_against_rows()

    def _take(self, numbers: list[int], batch: Any) -> None:
        found = list(batch.transaction)
        about = [message.transaction_context for message in found]
        said = self._said
        said.number += numbers
        said.server += [one.server_id for one in about]
        said.transaction += [one.transaction_id for one in about]
        said.started_at += [one.start_timestamp for one in about]
        said.ended_at += [one.end_timestamp for one in about]
        said.segment += [one.segment_id or (0 if one.HasField("segment_id") else None) for one in found]
        said.ended += [one.end_segment or (False if one.HasField("end_segment") else None) for one in found]
        for number in self._light.take(numbers, found):
            self._segments.append((number, Segment()))

    def _read_one(self, number: int) -> None:
        """Read one message by itself."""
        try:
            message = message_of(self._body[number])
        except Unreadable as error:
            self._refuse(number, str(error))
            return
        about, said = message.transaction_context, self._said
        said.number.append(number)
        said.server.append(about.server_id)
        said.transaction.append(about.transaction_id)
        said.started_at.append(about.start_timestamp)
        said.ended_at.append(about.end_timestamp)
        said.segment.append(message.segment_id if message.HasField("segment_id") else None)
        said.ended.append(message.end_segment if message.HasField("end_segment") else None)
        if message.HasField("event"):
            self._events[number] = event_name(message.event.type)
        self._segments += [(number, one) for one in segments_of(message)]

    def _refuse(self, number: int, why: str) -> None:
        """A message that cannot be read."""
        self.rejects.append(Reject(self.offset[number], why))
        self._lost.add(number)
        self._segments.append((number, Segment()))

    def _hold_against_rows(self) -> None:
        """Messages that are not those that their rows say are refused.

        A filter takes the numbers out of messages, and leaves them in the rows.
        """
        said, wrong = self._said, set()
        for place, number in enumerate(said.number):
            if number in self.row and number not in self._lost:
                transaction, segment = self.row[number]
                if said.segment[place] is None:
                    said.segment[place], said.ended[place] = segment, self._commit[number] is not None
                if (said.transaction[place], said.segment[place]) != (transaction, segment):
                    wrong.add(number)
        if wrong:
            self._light.drop(wrong)
            self._segments = [one for one in self._segments if one[0] not in wrong]
            for number in sorted(wrong):
                self._refuse(number, "the message is not the one that its row says")

    def table(self) -> pa.Table:
        """The rows of the table `segments`."""
        count, said = len(self.offset), self._said
        place = np.array(said.number, np.int64)
        known = np.zeros(count, bool)
        known[place] = True
        known[list(self._lost)] = False

        def spread(values: list[Any], kind: Any, usable: Column | None = None) -> pa.Array:
            whole = np.zeros(count, kind)
            whole[place] = np.array([value or 0 for value in values] if None in values else values, kind)
            mask = ~known
            if None in values:
                mask[place[[value is None for value in values]]] = True
            if kind == np.uint64:
                mask |= (whole >= _LATEST) | (whole == 0) if usable is None else ~usable
            return pa.array(whole, mask=mask)

        server = spread(said.server, np.int64).cast(pa.string())
        transaction = spread(said.transaction, np.uint64, known).cast(pa.string())
        times = {name: spread(getattr(said, name), np.uint64).cast(pa.int64()) for name in ("started_at", "ended_at")}
        length = np.fromiter(map(len, self._body), np.int64, count)
        for number, told in self._length.items():
            length[number] = told
        events = pa.array(
            [self._events.get(number) for number in range(count)] if self._events else [None] * count, pa.string()
        )
        of_message: dict[str, Any] = {
            "offset": pa.array(self.offset, pa.int64()),
            "length": pa.array(length),
            "sound": pa.array(self._sound, pa.bool_()),
            "content": pa.array(contents_of(self._body)),
            "origin": server,
            "position": order_keys(server, transaction),
            "commit": pa.array(self._commit, pa.int64()),
            "segment": spread(said.segment, np.int64),
            "ended": spread(said.ended, bool),
            "event": events if not self._lost else pc.if_else(pa.array(known), events, None),
            "started_at": times["started_at"].cast(tables.TIME),
            "ended_at": times["ended_at"].cast(tables.TIME),
        }
        segments = self._light.table()
        if self._segments:
            alone = list(zip(*((number, *one) for number, one in self._segments), strict=True))
            schema = segments.schema
            made = [pa.array(column, field.type) for column, field in zip(alone, schema, strict=True)]
            segments = pa.concat_tables([segments, pa.table(made, schema=schema)])
        if self._segments or not self._light.in_order:
            segments = segments.take(pc.sort_indices(segments, [("message", "ascending"), ("number", "ascending")]))
        message = segments["message"].combine_chunks()
        return pa.table(
            {
                name: of_message[name].take(message) if name in of_message else segments[name]
                for name in tables.COLUMNS["segments"]
            }
        )

    def times(self) -> dict[str, Any]:
        """The facts of when the first message was begun and the last closed."""
        told = np.array([*self._said.started_at, *self._said.ended_at], np.uint64)
        told = told[(told > 0) & (told < _LATEST)]
        ends = {"min": int(told.min()), "max": int(told.max())} if len(told) else {}
        start = datetime(1970, 1, 1, tzinfo=UTC)
        return {"time": {name: (start + timedelta(microseconds=at)).isoformat() for name, at in ends.items()}}


@dataclass
class _Said:
    """What messages tell of themselves, as columns; `number`: which message it is."""

    number: list[int] = field(default_factory=list)
    server: list[int] = field(default_factory=list)
    transaction: list[int] = field(default_factory=list)
    started_at: list[int] = field(default_factory=list)
    ended_at: list[int] = field(default_factory=list)
    segment: list[int | None] = field(default_factory=list)
    ended: list[bool | None] = field(default_factory=list)


def contents_of(bodies: Sequence[bytes]) -> Column:
    """The hashes of messages, as `content_of` makes them."""
    sha1 = hashlib.sha1
    joined = b"".join([sha1(body, usedforsecurity=False).digest()[:8] for body in bodies])
    return np.frombuffer(joined, "<i8")


def order_keys(server: pa.Array, transaction: pa.Array) -> pa.Array:
    """The order keys of transactions, as `ids.order_key` makes them."""
    return pc.binary_join_element_wise(pc.utf8_lpad(transaction, 20, "0"), pc.utf8_lpad(server, 10, "0"), ":")


_SEGMENTS = pa.schema(
    [
        ("message", pa.int64()),
        *((name, tables.COLUMNS["segments"][name][0]) for name in Segment._fields),
    ]
)


_FIELDS = {kind: (attrgetter(f"{name}_header"), attrgetter(f"{name}_data")) for kind, name in ROWS.items()}


class _Light:
    """The statements of messages that hold rows alone, as columns; they are counted in `finish`."""

    def __init__(self) -> None:
        self._message: list[int] = []
        self._place: list[int] = []
        self._kind: list[int] = []
        self._header: list[Header] = []
        self._piece: list[int] = []
        self._ended: list[bool] = []
        self._rows: list[int] = []
        self._values: dict[int, list[bytes]] = {kind: [] for kind in ROWS}
        self._exactly: set[int] = set()
        self._table = _SEGMENTS.empty_table()
        self.in_order = True

    def take(self, numbers: list[int], found: list[Any]) -> list[int]:
        """Take the statements of these messages; returns the numbers of those that have none."""
        inside = [message.statement for message in found]
        counts = [len(statements) for statements in inside]
        flat = [statement for statements in inside for statement in statements]
        kinds = [statement.type for statement in flat]
        message = [number for number, count in zip(numbers, counts, strict=True) for _ in range(count)]
        if kinds and kinds.count(1) == len(kinds):  # most are, and asking one field of all is quick
            headers = [header_of(1, statement.insert_header) for statement in flat]
            data = [statement.insert_data for statement in flat]
        else:
            fields = [_FIELDS.get(kind, _FIELDS[1]) for kind in kinds]
            read = zip(kinds, flat, fields, strict=True)
            headers = [header_of(kind, of(one)) if kind in ROWS else None for kind, one, (of, _) in read]
            data = [of(one) for one, (_, of) in zip(flat, fields, strict=True)]
        piece = [one.segment_id for one in data]
        odd = [at for at, header in enumerate(headers) if header is None or header.unknown or not piece[at]]
        self._exactly.update(message[at] for at in odd)
        for at in odd:
            headers[at] = NO_HEADER
        self._message += message
        self._place += [place for count in counts for place in range(count)]
        self._kind += kinds
        self._header += headers  # type: ignore[arg-type]
        self._piece += piece
        self._ended += [one.end_segment for one in data]
        for kind, one in zip(kinds, data, strict=True):
            rows = one.record
            self._rows.append(len(rows))
            if kind in ROWS:
                self._values[kind] += rows
        return [number for number, count in zip(numbers, counts, strict=True) if not count]

    def finish(self) -> set[int]:
        """Count the rows of all statements; returns the numbers of the messages that have to be read by themselves."""
        kinds, rows = np.array(self._kind, np.int64), np.array(self._rows, np.int64)
        odd, plain = np.zeros(len(kinds), np.int64), np.ones(len(kinds), bool)
        for kind, values in self._values.items():
            here = np.flatnonzero(kinds == kind)
            if len(here):
                odd[here], plain[here] = _odd_rows(kind, values, rows[here], [self._header[at] for at in here.tolist()])
        message = np.array(self._message, np.int64)
        self._exactly |= set(message[~plain].tolist())
        names = pa.array([kind_name(kind) for kind in sorted(ROWS)])
        codes = np.searchsorted(sorted(ROWS), np.where(np.isin(kinds, sorted(ROWS)), kinds, 1))
        columns = {
            "message": pa.array(message),
            "number": pa.array(self._place, pa.int64()),
            "operation": names.take(pa.array(codes)),
            "target": pa.array([header.target for header in self._header], pa.string()),
            "piece": pa.array(self._piece, pa.int64()),
            "piece_ended": pa.array(self._ended, pa.bool_()),
            "rows": pa.array(rows),
            "ragged": pa.array(odd),
            "unknown": pa.nulls(len(rows), pa.string()),
        }
        self._table = pa.table(columns, schema=_SEGMENTS)
        self.in_order = bool((np.diff(message) >= 0).all())
        self.drop(self._exactly)
        return self._exactly

    def drop(self, numbers: set[int]) -> None:
        """Without what was found of these messages."""
        if numbers:
            theirs = pc.is_in(self._table["message"], pa.array(sorted(numbers), pa.int64()))
            self._table = self._table.filter(pc.invert(theirs))

    def table(self) -> pa.Table:
        """All segments, with the number of their message."""
        return self._table


@lru_cache(1 << 14)
def _opened(length: int) -> bytes:
    """What stands before a message of that length in a batch."""
    out = bytearray(b"\x0a")
    while length > 127:
        out.append(length & 127 | 128)
        length >>= 7
    return bytes([*out, length])


def _ordinary(bodies: Sequence[bytes]) -> Any:
    """The messages in their light form, all in one; None if any is damaged, lacks a field, or has one that is unknown to it."""
    joined = b"".join([part for body in bodies for part in (_opened(len(body)), body)])
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
    # Hundreds of thousands of messages are held at once, and none of them is garbage: looking through them takes a sixth.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _read(piece, many=True)
    finally:
        if collects:
            gc.enable()


def read_exactly(piece: Piece) -> Parsed:
    """Read a piece, each message by itself: what `read` has to agree with."""
    return _read(piece, many=False)


_PLAIN = TRANSACTION.to_bytes(4, "little")
_SOUND = {SUM_FITS: True, NO_SUM: None}


def _read(piece: Piece, many: bool) -> Parsed:
    messages, rejects, data, base = Messages(), [], piece.data, piece.offset
    head = HEAD.unpack_from
    waiting = piece.frames
    if data and waiting:
        # Nearly always all of them are plain records of transactions.
        begins, ends, states = zip(*waiting, strict=True)
        if set(states) <= set(SUMS) and all(data.startswith(_PLAIN, at - base) for at in begins):
            bodies = [data[at - base + 8 : end - base - 4] for at, end in zip(begins, ends, strict=True)]
            messages.add_all(begins, [_SOUND.get(state, False) for state in states], bodies)
            waiting = ()
    for at, end, state in waiting:
        sound = _SOUND.get(state, False)
        if state not in SUMS:
            rejects.append(Reject(at, state))
            if not state.startswith(TORN):
                messages.add_lost(at, False, end - at)
        elif not data:
            rejects.append(Reject(at, TOO_LONG))
            messages.add_lost(at, sound, end - at - AROUND)
        else:
            kind, length = head(data, at - base)
            body = data[at - base + 8 : end - base - 4]
            if kind == TRANSACTION:
                messages.add(at, sound, body)
            else:
                messages.add_lost(at, sound, length, body, entry_kind(kind))
    messages.read(many)
    made = {"segments": messages.table()} if messages.offset else {}
    facts = {"end_of_file": end_of_file(piece.frames[-1])} if piece.ended and piece.frames else {}
    bad = sorted([*rejects, *messages.rejects], key=lambda reject: reject.offset)
    return Parsed(len(piece.frames), bad, made, facts | messages.times())
