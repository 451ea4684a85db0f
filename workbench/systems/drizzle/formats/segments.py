"""The segments of a transaction.log: what each of its records holds, as rows of a table.

Most messages hold nothing but rows, and are read all at once (`plain_messages`). A message with anything else in it -
definitions, events, what this reader does not know - is read by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench import tables
from workbench.model import Parsed, Piece, Reject
from workbench.systems.drizzle.formats import plain_messages
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
from workbench.systems.drizzle.formats.plain_messages import SEGMENTS, Column, Said
from workbench.systems.drizzle.formats.statements import Segment, Unreadable, event_name, message_of, segments_of

_LATEST = int((datetime(9999, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))

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
        self._said = Said.of(0)
        self._plain = SEGMENTS.empty_table()
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
        waiting = np.ones(len(self.offset), bool)
        waiting[list(self._lost)] = False
        self._said = Said.of(len(self.offset))
        if many:
            # What is lost may read as a message, and is none.
            lost = self._lost
            bodies = [b"" if at in lost else body for at, body in enumerate(self._body)] if lost else self._body
            found = plain_messages.read(bodies)
            self._said, self._plain = found.said, found.statements
            empty = found.plain.copy()
            empty[self._plain["message"].to_numpy()] = False
            self._segments += [(number, Segment()) for number in np.flatnonzero(empty).tolist()]
            waiting &= ~found.plain
        for number in np.flatnonzero(waiting).tolist():
            self._read_one(number)
        if self.row:
            self._hold_against_rows()

    def _read_one(self, number: int) -> None:
        """Read one message by itself."""
        try:
            message = message_of(self._body[number])
        except Unreadable as error:
            self._refuse(number, str(error))
            return
        about, said = message.transaction_context, self._said
        said.server[number], said.transaction[number] = about.server_id, about.transaction_id
        said.started_at[number], said.ended_at[number] = about.start_timestamp, about.end_timestamp
        said.segment[number] = message.segment_id if message.HasField("segment_id") else -1
        said.ended[number] = message.end_segment if message.HasField("end_segment") else -1
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
        for number, (transaction, segment) in self.row.items():
            if number not in self._lost:
                if said.segment[number] < 0:
                    said.segment[number], said.ended[number] = segment, self._commit[number] is not None
                if (said.transaction[number], said.segment[number]) != (transaction, segment):
                    wrong.add(number)
        self._segments = [one for one in self._segments if one[0] not in wrong]
        if wrong:
            theirs = pc.is_in(self._plain["message"], pa.array(sorted(wrong), pa.int64()))
            self._plain = self._plain.filter(pc.invert(theirs))
        for number in sorted(wrong):
            self._refuse(number, "the message is not the one that its row says")

    def table(self) -> pa.Table:
        """The rows of the table `segments`."""
        said, lost = self._said, np.zeros(len(self.offset), bool)
        lost[list(self._lost)] = True

        def times(of: Column) -> pa.Array:
            return pa.array(of, mask=lost | (of >= _LATEST) | (of == 0)).cast(pa.int64()).cast(tables.TIME)

        server = pa.array(said.server, mask=lost).cast(pa.string())
        transaction = pa.array(said.transaction, mask=lost).cast(pa.string())
        length = np.fromiter(map(len, self._body), np.int64, len(self._body))
        for number, told in self._length.items():
            length[number] = told
        events = pa.nulls(len(lost), pa.string())
        if self._events:
            events = pa.array(
                [self._events.get(number) if not lost[number] else None for number in range(len(lost))], pa.string()
            )
        of_message: dict[str, Any] = {
            "offset": pa.array(self.offset, pa.int64()),
            "length": pa.array(length),
            "sound": pa.array(self._sound, pa.bool_()),
            "content": pa.array(contents_of(self._body)),
            "origin": server,
            "position": order_keys(server, transaction),
            "commit": pa.array(self._commit, pa.int64()),
            "segment": pa.array(said.segment, mask=lost | (said.segment < 0)),
            "ended": pa.array(said.ended, mask=lost | (said.ended < 0)).cast(pa.bool_()),
            "event": events,
            "started_at": times(said.started_at),
            "ended_at": times(said.ended_at),
        }
        segments = self._plain
        if self._segments:
            alone = list(zip(*((number, *one) for number, one in self._segments), strict=True))
            made = [pa.array(column, field.type) for column, field in zip(alone, SEGMENTS, strict=True)]
            segments = pa.concat_tables([segments, pa.table(made, schema=SEGMENTS)])
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
        known = np.ones(len(self.offset), bool)
        known[list(self._lost)] = False
        told = np.concatenate([self._said.started_at[known], self._said.ended_at[known]])
        told = told[(told > 0) & (told < _LATEST)]
        ends = {"min": int(told.min()), "max": int(told.max())} if len(told) else {}
        start = datetime(1970, 1, 1, tzinfo=UTC)
        return {"time": {name: (start + timedelta(microseconds=at)).isoformat() for name, at in ends.items()}}


def contents_of(bodies: Sequence[bytes]) -> Column:
    """The hashes of messages, as `content_of` makes them."""
    sha1 = hashlib.sha1
    joined = b"".join([sha1(body, usedforsecurity=False).digest()[:8] for body in bodies])
    return np.frombuffer(joined, "<i8")


def order_keys(server: pa.Array, transaction: pa.Array) -> pa.Array:
    """The order keys of transactions, as `ids.order_key` makes them."""
    return pc.binary_join_element_wise(pc.utf8_lpad(transaction, 20, "0"), pc.utf8_lpad(server, 10, "0"), ":")


def read(piece: Piece) -> Parsed:
    """Read a piece, messages that hold rows alone all at once."""
    return _read(piece, many=True)


def read_exactly(piece: Piece) -> Parsed:
    """Read a piece, each message by itself: what `read` has to agree with."""
    return _read(piece, many=False)


_SOUND = {SUM_FITS: True, NO_SUM: None}


def _all_transactions(data: bytes, begins: Column) -> bool:
    whole = np.frombuffer(data, np.uint8)
    return all((whole[begins + at] == sign).all() for at, sign in enumerate(TRANSACTION.to_bytes(4, "little")))


def _read(piece: Piece, many: bool) -> Parsed:
    messages, rejects, data, base = Messages(), [], piece.data, piece.offset
    head = HEAD.unpack_from
    waiting = piece.frames
    if data and waiting:
        # Nearly always all of them are plain records of transactions.
        begins, ends, states = zip(*waiting, strict=True)
        if set(states) <= set(SUMS) and _all_transactions(data, np.array(begins) - base):
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
