"""Messages that hold nothing but rows, read by the column: the n-th fields of many messages in one step.

Nearly all messages of a stream are such ones. A class of the protobuf runtime makes an object for each message, statement and
row in Python, and that takes longer than all else; here nothing is made of a message but numbers in columns, and its bytes
stay where they are.

Only what is beyond doubt is read: known fields, each as often as it may be, in lengths that end where their message ends, in
numbers that fit. Whatever else a message holds - definitions, events, something unknown, damage - it is left to the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from workbench import tables
from workbench.systems.drizzle.formats.statements import NO_HEADER, NULLS, ROWS, Header, Segment, header_of, kind_name

Column = np.ndarray[Any, Any]

SEGMENTS = pa.schema(
    [("message", pa.int64()), *((name, tables.COLUMNS["segments"][name][0]) for name in Segment._fields)]
)
"""The statements of messages: which message, and what `Segment` tells."""

_FEW = 48
"""So many messages are quicker gone through one by one than by the column."""

_LONG = 512
"""From so many bytes on it pays to ask the runtime."""

_STEPS, _MOST = 4096, 1 << 17
"""After so many fields messages are gone through one by one, and after so many no further: what the server cuts at a mebibyte has
fewer, and made to have more it would take memory and time.
"""

_SIZED, _LENGTH = 2, 5
"""How a field is marked that says its length, and of how many bytes a length may be: the runtime refuses longer ones."""

_FAR = np.int64(1) << 40
_WORD = np.uint64(1) << np.uint64(32)

_CONTEXT, _STATEMENT, _SEGMENT_ID, _END_SEGMENT = 0x0A, 0x12, 0x20, 0x28
_SERVER, _TRANSACTION, _STARTED, _ENDED = 0x08, 0x10, 0x18, 0x20
_KIND, _BEGUN, _OVER, _SQL = 0x08, 0x10, 0x18, 0x22
_DATA_OF = {1: (0x2A, 0x32), 3: (0x3A, 0x42), 2: (0x4A, 0x52)}
_PIECE, _PIECE_ENDED, _RECORD = 0x08, 0x10, 0x1A
_OF_ROWS = {1: (None, 0x0A, 0x10), 2: (0x0A, None, None), 3: (0x0A, 0x12, 0x20)}
"""Kind -> what stands before a key, a value, a null mark; None: its rows have none."""


@dataclass
class Said:
    """What messages tell of themselves, as columns; a segment or an end of -1 is not told."""

    server: Column
    transaction: Column
    started_at: Column
    ended_at: Column
    segment: Column
    ended: Column

    @classmethod
    def of(cls, count: int) -> Said:
        """Of so many messages, which have told nothing yet."""
        server, transaction, started, ended = (np.zeros(count, np.uint64) for _ in range(4))
        return cls(server, transaction, started, ended, np.full(count, -1, np.int64), np.full(count, -1, np.int64))


class PlainMessages(NamedTuple):
    """What was read: which messages are plain, what these say, and their statements, in order, as in SEGMENTS.

    Of messages that are not plain nothing counts that is said here.
    """

    plain: Column
    said: Said
    statements: pa.Table


def read(bodies: Sequence[bytes]) -> PlainMessages:
    """Read messages, all at once."""
    length = np.fromiter(map(len, bodies), np.int64, len(bodies))
    end = np.cumsum(length)
    data = _Bytes(b"".join([*bodies, bytes(16)]))
    message = _Level(data, end - length, end, (_CONTEXT, _SEGMENT_ID, _END_SEGMENT), _STATEMENT)
    message.needs(_CONTEXT)
    about = _Level(data, *message.inside(_CONTEXT), (_SERVER, _TRANSACTION, _STARTED, _ENDED))
    about.needs(_SERVER, _TRANSACTION, _STARTED, _ENDED)
    about.below(_WORD, _SERVER)
    message.below(_WORD, _SEGMENT_ID)
    message.below(2, _END_SEGMENT)
    plain = message.plain & about.plain
    statements = _statements(data, *message.many(), plain)
    server, transaction, started, ended = (about.value[tag] for tag in (_SERVER, _TRANSACTION, _STARTED, _ENDED))
    said = Said(server, transaction, started, ended, message.told(_SEGMENT_ID), message.told(_END_SEGMENT))
    return PlainMessages(plain, said, statements)


def _statements(data: _Bytes, message: Column, begin: Column, end: Column, plain: Column) -> pa.Table:
    """The statements of plain messages; clears `plain` of those that have another one."""
    tags = [tag for pair in _DATA_OF.values() for tag in pair]
    found = _Level(data, begin, end, (_KIND, _BEGUN, _OVER, _SQL, *tags))
    found.needs(_KIND, _BEGUN, _OVER)
    kind = found.value[_KIND].astype(np.int64)
    count = len(kind)
    codes, headers = np.zeros(count, np.int64), _Headers()
    piece, piece_ended, rows, odd = (np.zeros(count, np.int64) for _ in range(4))
    found.plain &= np.isin(kind, list(_DATA_OF))
    for of, (header_tag, data_tag) in _DATA_OF.items():
        here = np.flatnonzero((kind == of) & found.plain)
        if not len(here):
            continue
        # A header of another kind, or its data, would be told as unknown by nobody here.
        others = [tag for tag in tags if tag not in (header_tag, data_tag)]
        wanted = (found.seen[header_tag][here] == 1) & (found.seen[data_tag][here] == 1)
        found.plain[here] = wanted & ~np.any([found.seen[tag][here] > 0 for tag in others], axis=0)
        here = here[found.plain[here]]
        codes[here] = headers.codes(of, data, *found.inside(header_tag, here))
        inside = _Level(data, *found.inside(data_tag, here), (_PIECE, _PIECE_ENDED), _RECORD)
        inside.needs(_PIECE, _PIECE_ENDED)
        inside.below(_WORD, _PIECE)
        piece[here], piece_ended[here] = inside.value[_PIECE].astype(np.int64), inside.value[_PIECE_ENDED]
        whose, row_begin, row_end = inside.many()
        rows[here] = np.bincount(whose, minlength=len(here))
        keys, values, nulls, whole = _rows(of, data, row_begin, row_end)
        inside.plain[whose[~whole]] = False
        known = codes[here][whose]
        wrong = (keys != headers.column("keys")[known]) | (values != headers.column("values")[known])
        if of in NULLS:
            wrong |= (nulls != 0) & (nulls != values)
        odd[here] = np.bincount(whose[wrong], minlength=len(here))
        found.plain[here] = inside.plain
    found.plain &= headers.column("known")[codes]
    plain[message[~found.plain]] = False
    number = np.arange(count) - np.searchsorted(message, message)  # messages stand in order
    kept = np.flatnonzero(plain[message])
    kinds = sorted(ROWS)
    names = pa.array([kind_name(one) for one in kinds])
    columns = [
        pa.array(message[kept]),
        pa.array(number[kept]),
        names.take(pa.array(np.searchsorted(kinds, kind[kept]))),
        pa.array(headers.targets(), pa.string()).take(pa.array(codes[kept])),
        pa.array(piece[kept]),
        pa.array(piece_ended[kept].astype(bool)),
        pa.array(rows[kept]),
        pa.array(odd[kept]),
        pa.nulls(len(kept), pa.string()),
    ]
    return pa.Table.from_arrays(
        [one.cast(field.type) for one, field in zip(columns, SEGMENTS, strict=True)], schema=SEGMENTS
    )


class _Headers:
    """The headers of statements: each is read once, and has a number. The first is none."""

    def __init__(self) -> None:
        self._headers: list[Header] = [NO_HEADER]

    def codes(self, kind: int, data: _Bytes, begin: Column, end: Column) -> list[int]:
        """The numbers of the headers of a kind of statement, 0 of one that cannot be read."""
        whole, numbers = data.whole, dict[bytes, int]()
        texts = [whole[first:last] for first, last in zip(begin.tolist(), end.tolist(), strict=True)]
        for text in set(texts):
            header = header_of(kind, text)
            known = header is not None and not header.unknown
            numbers[text] = len(self._headers) if known else 0
            self._headers += [header] if header is not None and known else []
        return [numbers[text] for text in texts]

    def targets(self) -> list[str | None]:
        return [header.target for header in self._headers]

    def column(self, name: str) -> Column:
        """By number: how many `keys` and `values` the rows of a header have, whether it is `known`."""
        if name == "known":
            return np.arange(len(self._headers)) > 0
        return np.array([getattr(header, name) for header in self._headers], np.int64)


def _rows(kind: int, data: _Bytes, begin: Column, end: Column) -> tuple[Column, Column, Column, Column]:
    """Of each row: how many keys, values and null marks it has, and whether it has nothing else."""
    plain = np.ones(len(begin), bool)
    counts = [np.zeros(len(begin), np.int64) for _ in range(3)]
    of_tag = dict(zip(_OF_ROWS[kind], counts, strict=True))
    for step in data.steps(begin, end, plain):
        for tag, here in _each(step.tag):
            who = step.who[here]
            if tag in of_tag:
                _count(of_tag[tag], who)
            else:
                plain[who] = False
    return counts[0], counts[1], counts[2], plain


class _Level:
    """The fields of many messages of one kind.

    seen   of each tag: how often each message has it
    value  of each tag: the number, or the length, where it stands last in each message
    plain  which messages have nothing but these tags and `many`, and each of them once at most
    """

    def __init__(self, data: _Bytes, begin: Column, end: Column, tags: Sequence[int], many: int | None = None) -> None:
        self.plain = np.ones(len(begin), bool)
        self.seen = {tag: np.zeros(len(begin), np.int32) for tag in tags}
        self.value = {tag: np.zeros(len(begin), np.uint64) for tag in tags}
        self._start = {tag: np.zeros(len(begin), np.int64) for tag in tags if tag & 7 == _SIZED}
        self._many: list[tuple[Column, Column, Column]] = []
        for step in data.steps(begin, end, self.plain, many):
            for tag, here in _each(step.tag):
                who, value = step.who[here], step.value[here]
                if tag == many:
                    self._many.append((who, step.start[here], value.astype(np.int64)))
                elif tag in self.seen:
                    _count(self.seen[tag], who)
                    self.value[tag][who] = value
                    if tag in self._start:
                        self._start[tag][who] = step.start[here]
                else:
                    self.plain[who] = False
        for seen in self.seen.values():
            self.plain &= seen < 2

    def needs(self, *tags: int) -> None:
        """Messages that lack one of these are not plain."""
        for tag in tags:
            self.plain &= self.seen[tag] == 1

    def below(self, limit: Any, tag: int) -> None:
        """Messages in which that number reaches the limit are not plain: the runtime would cut it."""
        self.plain &= self.value[tag] < np.uint64(limit)

    def told(self, tag: int) -> Column:
        """The number of plain messages, -1 where it is lacking."""
        told = np.where(self.plain & (self.seen[tag] == 1), self.value[tag], 0).astype(np.int64)
        return told - (self.seen[tag] == 0)

    def inside(self, tag: int, of: Any = slice(None)) -> tuple[Column, Column]:
        """(begin, end) of what this tag holds, of all messages or of these; the same twice where one is not plain."""
        begin, length = self._start[tag][of], self.value[tag][of]
        return begin, begin + np.where(self.plain[of], length, 0).astype(np.int64)

    def many(self) -> tuple[Column, Column, Column]:
        """(which message, begin, end) of all that stands at the repeated tag, in order; of plain messages only."""
        if not self._many:
            none = np.zeros(0, np.int64)
            return none, none, none
        who, begin, length = (np.concatenate(each) for each in zip(*self._many, strict=True))
        kept = np.flatnonzero(self.plain[who])
        order = kept[np.argsort(who[kept], kind="stable")]
        return who[order], begin[order], begin[order] + length[order]


class _Step(NamedTuple):
    """Fields: whose, their tag, their number or length, and where what they hold begins.

    They are one of each of some messages, which stand in order, or several of one message.
    """

    who: Column
    tag: Column
    value: Column
    start: Column


class _Bytes:
    """Messages as they stand behind each other, and their fields."""

    def __init__(self, whole: bytes) -> None:
        self.whole = whole
        self._each = np.frombuffer(whole, np.uint8)

    def steps(self, begin: Column, end: Column, plain: Column, many: int | None = None) -> Iterator[_Step]:
        """The fields of the messages between these places; many of them may bear the tag `many`.

        Clears `plain` of messages that hold what is no field, or a field that is known to nobody here.
        """
        who = np.flatnonzero(begin < end)
        place, stop, steps = begin[who], end[who], 0
        while len(who) > _FEW and (steps := steps + 1) <= _STEPS:
            tag, value, start = self._each[place], self._each[place + 1].astype(np.uint64), place + 2
            sized = tag & 7 == _SIZED
            far = ~(sized | (tag & 7 == 0)) | (tag > 127)
            long = np.flatnonzero(value > 127)
            if len(long):
                value[long], start[long] = self._long(place[long] + 1)
                far[long] |= sized[long] & ((value[long] > _FAR) | (start[long] - place[long] > 1 + _LENGTH))
            yield _Step(who, tag, value, start)
            place = np.where(far, _FAR, start + np.where(sized, value, 0).view(np.int64))
            plain[who[place > stop]] = False
            left = (place < stop) & plain[who]  # nobody asks any more about one that is not plain
            if not left.all():
                who, place, stop = who[left], place[left], stop[left]
        if len(who):
            yield from self._alone(who, place, stop, plain, many)

    def _alone(self, who: Column, place: Column, stop: Column, plain: Column, many: int | None) -> Iterator[_Step]:
        """The same of few messages, which may be long."""
        data = self.whole
        for one, at, last in zip(who.tolist(), place.tolist(), stop.tolist(), strict=True):
            tags, values, starts, alike = bytearray(), [], [], None
            asked = last - at < _LONG
            while at < last:
                tag, value = data[at], data[at + 1]
                if tag == many and not asked:
                    asked = True
                    if alike := self._alike(one, tag, at, last):
                        at = last
                        break
                begun, at = at, at + 2
                if value > 127:
                    value, at = _number(data, at - 1)
                tags.append(tag)
                values.append(value)
                starts.append(at)
                sized = tag & 7 == _SIZED
                too_long = sized and at - begun > 1 + _LENGTH
                if too_long or tag > 127 or tag & 7 not in (0, _SIZED) or len(tags) > _MOST:
                    at = int(_FAR)
                elif sized:
                    at += value
            plain[one] &= at == last
            if tags and at == last:
                yield _Step(
                    np.full(len(tags), one),
                    np.frombuffer(tags, np.uint8),
                    np.array(values, np.uint64),
                    np.array(starts, np.int64),
                )
            if alike:
                yield alike

    def _alike(self, who: int, tag: int, begin: int, end: int) -> _Step | None:
        """The fields between these places, if all bear this tag and their lengths are written as shortly as they can be.

        The rows of a bulk statement are such ones; the runtime takes them apart in no time, and where they stand follows
        from their lengths.
        """
        try:
            inside = _lists().FromString(self.whole[begin:end])
        except DecodeError:
            return None
        length = np.fromiter(map(len, getattr(inside, f"of_{tag >> 3}")), np.int64)
        around = 2 + np.sum([length >= 1 << bits for bits in range(7, 35, 7)], axis=0)
        if int((length + around).sum()) != end - begin:  # something else stands between them
            return None
        start = begin + np.cumsum(length + around) - length
        return _Step(np.full(len(length), who), np.full(len(length), tag, np.uint8), length.astype(np.uint64), start)

    def _long(self, place: Column) -> tuple[Column, Column]:
        """(value, place behind it) of numbers of two bytes or more; one of no 64 bits leads far away."""
        value, behind = np.zeros(len(place), np.uint64), place.copy()
        more = np.ones(len(place), bool)
        for step in range(10):
            byte = self._each[np.minimum(place + step, len(self._each) - 1)]
            value += np.where(more, (byte & 127).astype(np.uint64) << np.uint64(7 * step), np.uint64(0))
            behind += more
            if step == 9:
                behind[more & (byte > 1)] = _FAR
            more &= byte > 127
            if not more.any():
                break
        return value, behind


@cache
def _lists() -> Any:
    """The class of a message whose fields are lists of bytes."""
    file = descriptor_pb2.FileDescriptorProto(name="lists.proto", package="lists")
    lists, of = file.message_type.add(name="Lists"), descriptor_pb2.FieldDescriptorProto
    for number in range(1, 16):
        lists.field.add(name=f"of_{number}", number=number, label=of.LABEL_REPEATED, type=of.TYPE_BYTES)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("lists.Lists"))


def _count(counts: Column, who: Column) -> None:
    """Count a step."""
    if len(who) and who[0] == who[-1]:
        counts[who[0]] += len(who)
    else:
        counts[who] += 1


def _each(tags: Column) -> Iterator[tuple[int, Any]]:
    """The different tags of a step, and where they are; mostly there is one."""
    first = int(tags[0])
    if (tags == first).all():
        yield first, slice(None)
        return
    for tag in np.flatnonzero(np.bincount(tags)).tolist():
        yield tag, np.flatnonzero(tags == tag)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The same of one number."""
    value = 0
    for step in range(10):
        byte = data[at + step]
        value |= (byte & 127) << 7 * step
        if byte < 128:
            return (value, at + step + 1) if value < 1 << 64 else (0, int(_FAR))
    return 0, int(_FAR)
