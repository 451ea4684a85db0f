"""Where the records of a transaction.log begin and end, and which bytes between them are none.

A record is its kind and its length (4 bytes each, little-endian), that many bytes, and their CRC-32, which is 0 where the
server was told to write none. Nothing marks a beginning, so a length that is wrong loses the place. Then the next record is
looked for whose checksum fits; where there are no checksums, one that reads as a transaction and is followed by another.

What follows a place depends on that place and the file alone. So a file read from two places gives the same records from
where both ways meet, and a way that began wrongly - within a value that itself holds a log, say - is known by it that the
way before it does not end where it began.

A message tells by its own fields where it may end. That is asked before anything else where a length is in doubt:
otherwise records within a value of the damaged, or cut, record would be taken for records of the log.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from workbench.model import Frame
from workbench.systems.drizzle.formats.messages import whole

Read = Callable[[int, int], bytes]
"""(place, length) -> the bytes there; fewer at the end of the file."""

HEAD, _WORD = struct.Struct("<II"), struct.Struct("<I")
AROUND = 12
"""Bytes of a record beside its message."""

TRANSACTION, OPAQUE = KNOWN_KINDS = (1, 2)
SUM_FITS, NO_SUM, SUM_WRONG = SUMS = ("ok", "none", "bad")
"""What a record's checksum says of it; the state of every frame that is a record."""

TORN = "the last record is cut"
LOST = "bytes that are no record"
"""How the states of all other frames begin, or go on behind a number."""

TO_THE_END = "up to the end of the file"

LONGEST = 64 << 20
"""Longer messages are records, where their checksum fits, but are not read. The server cuts them at 1 MiB and one row."""

_MOST = (1 << 31) - 1
_LEAST = 10
_WINDOW = 4 << 20
_LONGEST_OPAQUE = 1 << 20
_BEGINS = re.compile(rb"\x01\x00\x00\x00[\s\S]{4}\x0a[\s\S]\x08|\x02\x00\x00\x00[\s\S]{2}[\x00-\x10]\x00")
"""A transaction begins with its context, and that with the server id: every writer puts fields in the order of their numbers."""

_FIXED = {1: 8, 5: 4}


def frames(read: Read, size: int, start: int, end: int, known: bool) -> Iterator[Frame]:
    """The frames that begin in [start, end). `known`: one begins at `start`; else the first good record behind it is taken."""
    return _Framing(read, size).follow(start, end, known)


def next_good(data: bytes, at: int = 0) -> int:
    """Where the first good record of this data begins, at `at` or behind it; its length if it holds none."""
    return _Framing(lambda place, length: data[place : place + length], len(data)).next_good(at)


_CUT = re.compile(rf"{TORN} in its (?P<part>\w+): (?P<have>\d+)(?: of (?P<need>\d+))? bytes.*")


def end_of_file(frame: Frame) -> dict[str, Any]:
    """How a file ends, told by its last frame, in the words of the contract; `damaged` where that is no record at all."""
    at, end, state = frame
    if cut := _CUT.fullmatch(state):
        have = {name: int(number) for name, number in cut.groupdict().items() if name != "part" and number}
        return {"state": "truncated", "offset": at, "part": cut["part"], **have}
    return {"state": "clean", "offset": end} if state in SUMS else {"state": "damaged", "offset": at}


class _Framing:
    """A file of records; what is looked at often is kept in a window."""

    def __init__(self, read: Read, size: int) -> None:
        self._read, self._size = read, size
        self._base, self._data = 0, b""

    def _window(self, at: int, length: int) -> int:
        """Let the window hold `length` bytes from `at` on, or all there are; returns the place of `at` in it."""
        if at < self._base or at + length > self._base + len(self._data):
            self._base, self._data = at, self._read(at, max(min(length, self._size - at), _WINDOW))
        return at - self._base

    def _bytes(self, at: int, length: int) -> bytes:
        here = self._window(at, length)
        return self._data[here : here + length]

    def follow(self, start: int, end: int, known: bool) -> Iterator[Frame]:
        """See `frames`."""
        at = start if known else self.next_good(start)
        crc32, head, word = zlib.crc32, HEAD.unpack_from, _WORD.unpack_from
        base, data, size, view = 0, b"", 0, memoryview(b"")
        stop = min(end, self._size)
        while at < stop:
            here = at - base
            if not 0 <= here <= size - 8:
                self._window(at, 8)
                base, data = self._base, self._data
                size, view, here = len(data), memoryview(data), at - base
            state = ""
            if here + 8 <= size:
                kind, length = head(data, here)
                behind = here + length + AROUND
                if behind + 8 > size and length <= LONGEST:
                    self._window(at, length + AROUND + 8)
                    base, data = self._base, self._data
                    size, view, here = len(data), memoryview(data), at - base
                    behind = here + length + AROUND
                if behind <= size:
                    (stored,) = word(data, behind - 4)
                    if stored:
                        if kind and crc32(view[here + 8 : behind - 4]) == stored:
                            state = SUM_FITS
                    elif behind + 8 <= size and length and kind in KNOWN_KINDS:
                        state = NO_SUM if head(data, behind)[0] in KNOWN_KINDS else ""
            if state:
                last = at + length + AROUND
            else:
                last, state = self._judged(at)
            yield at, last, state
            at = last

    def _judged(self, at: int) -> tuple[int, str]:
        """(where the frame that begins here ends, its state), of one that is not plainly a record."""
        left = self._size - at
        if left < HEAD.size:
            return self._size, f"{TORN} in its header: {left} bytes of it are there"
        kind, length = HEAD.unpack(self._bytes(at, HEAD.size))
        last, stored = at + length + AROUND, None
        if last <= self._size:
            (stored,) = _WORD.unpack(self._bytes(last - 4, 4))
            if stored and self._sum(at + 8, last - 4) == stored:
                return last, SUM_FITS
            if stored == 0 and self._may_begin(last) and (length >= _LEAST or kind in KNOWN_KINDS):
                return last, NO_SUM if self._sum(at + 8, last - 4) else SUM_FITS
            if kind == OPAQUE and self._may_begin(last):
                return last, SUM_WRONG
        end, fits = self._own_end(at, length)
        if end is not None and end != last:
            return self._lost(at, end)
        if kind == TRANSACTION and last <= self._size:
            if stored and (fits or self._may_begin(last)):
                return last, SUM_WRONG
            if not stored and length <= LONGEST and whole("Transaction", self._bytes(at + 8, length)):
                return last, NO_SUM
        cut = kind in KNOWN_KINDS and last > self._size and length <= _MOST
        if cut and ((kind == TRANSACTION and fits) or self.next_good(at + 1) >= self._size):
            return self._size, self._torn(at, length)
        return self._lost(at, at + 1)

    def _torn(self, at: int, length: int) -> str:
        have, need = self._size - at, length + AROUND
        return f"{TORN} in its {'body' if have - HEAD.size < length else 'checksum'}: {have} of {need} bytes are there"

    def _lost(self, at: int, behind: int) -> tuple[int, str]:
        """A stretch that is lost: up to the next good record, which begins at `behind` or later."""
        last = self.next_good(behind)
        where = f"the next good record begins at {last}" if last < self._size else TO_THE_END
        return last, f"{last - at} {LOST}: {where}"

    def _may_begin(self, at: int) -> bool:
        """True where the file ends, or what stands there looks like the beginning of a record."""
        begun = self._bytes(at, 4)
        return any(_WORD.pack(kind).startswith(begun) for kind in KNOWN_KINDS) if at < self._size else True

    def _sum(self, start: int, end: int, of_before: int = 0) -> int:
        for at in range(start, end, _WINDOW):
            of_before = zlib.crc32(self._bytes(at, min(_WINDOW, end - at)), of_before)
        return of_before

    def next_good(self, at: int) -> int:
        """Where the first good record begins, at `at` or behind it; the size of the file if there is none."""
        while at < self._size:
            here = self._window(at, 1 << 16)
            for found in _each(_BEGINS, self._data, here):
                base, data = self._base, self._data
                if self._is_good(base + found):
                    return base + found
                self._base, self._data = base, data
            at = max(self._base + len(self._data) - AROUND, at + 1)
            if self._base + len(self._data) >= self._size:
                break
        return self._size

    def _is_good(self, at: int) -> bool:
        kind, length = HEAD.unpack(self._bytes(at, HEAD.size))
        last = at + length + AROUND
        most = LONGEST if kind == TRANSACTION else _LONGEST_OPAQUE
        if last > self._size or not (kind == OPAQUE or length >= _LEAST) or length > most:
            return False
        (stored,) = _WORD.unpack(self._bytes(last - 4, 4))
        if stored:
            return self._sum(at + 8, last - 4) == stored
        readable = kind == TRANSACTION and self._may_begin(last)
        return readable and whole("Transaction", self._bytes(at + 8, length)) is not None

    def _own_end(self, at: int, length: int) -> tuple[int | None, bool]:
        """(where the record at `at` ends by its own fields and its checksum, None where they do not tell; its fields fit its
        length: they end with it, or the file ends within one that does).
        """
        first = place = summed = at + HEAD.size
        end, total, fits = first + length, 0, False
        while place < self._size:
            fits |= place == end
            if place > first:
                total, summed = self._sum(summed, place, total), place
                trailer = self._bytes(place, 4)
                if len(trailer) == 4 and self._closes(first, place, _WORD.unpack(trailer)[0], total):
                    return place + 4, place == end
            behind = self._behind_field(place)
            if behind is None:
                return None, fits
            if behind > self._size:
                return None, fits or (place < end and (behind <= end or behind == self._size + 1))
            place = behind
        return None, fits or place <= end

    def _closes(self, first: int, place: int, stored: int, total: int) -> bool:
        if stored:
            return stored == total
        if place - first > LONGEST or not self._may_begin(place + 4):
            return False
        return whole("Transaction", self._bytes(first, place - first)) is not None

    def _behind_field(self, at: int) -> int | None:
        """Where the field of a transaction ends that begins here; one byte behind the file if it ends in between; None if
        it is none.
        """
        tag, place = self._varint(at)
        if place > self._size:
            return self._size + 1
        number, form = tag >> 3, tag & 7
        if not number or (number <= 3 and form != 2) or (number in (4, 5) and form):
            return None
        if form == 0:
            return self._varint(place)[1]
        if form == 2:
            length, place = self._varint(place)
            return self._size + 1 if place > self._size else place + length
        return place + _FIXED[form] if form in _FIXED else None

    def _varint(self, at: int) -> tuple[int, int]:
        """(number, place behind it); one byte behind the file if it ends in between."""
        data = self._bytes(at, 10)
        value = 0
        for number, byte in enumerate(data):
            value |= (byte & 127) << 7 * number
            if byte < 128:
                return value, at + number + 1
        return (0, at + 10) if len(data) == 10 else (0, self._size + 1)


def _each(pattern: re.Pattern[bytes], data: bytes, at: int) -> Iterator[int]:
    """Where the pattern begins in the data, also where two of its places overlap."""
    while found := pattern.search(data, at):
        yield found.start()
        at = found.start() + 1
