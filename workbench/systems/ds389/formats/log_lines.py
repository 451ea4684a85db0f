"""The lines of a log of 389 Directory Server, and the JSON objects in them.

The server writes each of its logs as text or, since 3.1, as JSON: one object to a line (`json`) or spread over several
(`json-pretty`). Logs are many gigabytes, so the lines of a piece are handled as columns of positions in one buffer.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.model import NOT_TEXT, Piece, Reject
from workbench.safety import excerpt
from workbench.systems.ds389.formats.ldif import BYTE_ORDER_MARK
from workbench.systems.ds389.formats.log_kinds import is_title
from workbench.systems.ds389.secrets import SECRETS

Column = np.ndarray[Any, Any]

_PAD = 512
"""Bytes of `\\n` on both sides of the buffer: what is looked for behind a position needs no test of the edge. `\\n` is
part of no word and no number, so nothing looks further than the fixed words of one line, some 200 bytes."""
_PART = 1 << 18

# Eight digits are read at once, as one number of eight bytes.
ZEROS, _LOW, _HIGH = np.uint64(0x3030303030303030), np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)
_OVER_NINE, _ONE, BYTE, _ALL = np.uint64(0x7676767676767676), np.uint64(1), np.uint64(8), np.uint64(64)
_PAIRS = [
    (np.uint64(10 * 256 + 1), np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
    (np.uint64(100 * 65536 + 1), np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
    (np.uint64((10000 << 32) + 1), np.uint64(32), np.uint64(0xFFFFFFFF)),
]


class Room:
    """Memory that is used again for each piece: fresh memory costs more time than the copy. One `Lines` at a time."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def __deepcopy__(self, memo: Any) -> Room:
        return self  # nothing in it outlasts a piece

    def hold(self, data: bytes) -> Column:
        """The data with `_PAD` line ends before and behind."""
        size = len(data) + 2 * _PAD
        if len(self._bytes) < size:
            self._bytes = np.empty(size, np.uint8)
        held = self._bytes[:size]
        held[:_PAD] = held[size - _PAD :] = ord("\n")
        held[_PAD : size - _PAD] = np.frombuffer(data, np.uint8)
        return held


class Lines:
    """The lines of a piece as columns: where each starts and ends in `buffer`, and whether it can be read as text."""

    def __init__(self, piece: Piece, room: Room) -> None:
        self.data = piece.data
        self.buffer = room.hold(piece.data)
        # The eight bytes behind every position as one number: a word of eight letters is found by one comparison.
        self._words: Column = np.ndarray((len(self.buffer) - 7,), "<u8", self.buffer, strides=(1,))
        self._offset = piece.offset - _PAD
        end = _PAD + len(piece.data)
        parts = [np.flatnonzero(self.buffer[at : min(at + _PART, end)] == 10) + at for at in range(_PAD, end, _PART)]
        breaks = np.concatenate([np.zeros(0, np.int64), *parts])
        self.starts = np.concatenate(([_PAD], breaks + 1))
        self.ends = np.concatenate((breaks, [end]))
        self.unfinished = piece.ended and end > int(self.starts[-1])
        if end == self.starts[-1]:
            self.starts, self.ends = self.starts[:-1], self.ends[:-1]
        if piece.offset == 0 and piece.data.startswith(BYTE_ORDER_MARK):
            self.starts[0] += len(BYTE_ORDER_MARK)
        if b"\r" in piece.data:
            self.ends -= (self.buffer[self.ends - 1] == 13) & (self.ends > self.starts)
        self.rejects: list[Reject] = []
        self.usable = np.ones(len(self.starts), bool)
        if b"\0" in piece.data:
            self._refuse(self.buffer == 0, "zero bytes: not text, as a crash leaves them")
        if not piece.data.isascii() and not _is_utf8(piece.data):
            self._refuse(self.buffer > 127, NOT_TEXT)

    def _refuse(self, suspect: Column, reason: str) -> None:
        for line in np.unique(np.searchsorted(self.starts, np.flatnonzero(suspect), "right") - 1).tolist():
            try:
                if reason == NOT_TEXT:
                    self.raw(line).decode()
                    continue
            except UnicodeDecodeError:
                pass
            self.reject(line, reason)

    def __len__(self) -> int:
        return len(self.starts)

    def raw(self, line: int) -> bytes:
        """The line without its end mark."""
        return self.data[self.starts[line] - _PAD : self.ends[line] - _PAD]

    def cut(self, begins: Column, ends: Column) -> list[bytes]:
        """The bytes from each position to its end."""
        data = self.data
        return [data[at:end] for at, end in zip((begins - _PAD).tolist(), (ends - _PAD).tolist(), strict=True)]

    def offset(self, at: Any) -> Any:
        """Place in the file of a position (or a column of positions) in the buffer."""
        return at + self._offset

    def reject(self, line: int, reason: str) -> None:
        """The line cannot be read; it is counted once, with the first reason."""
        if self.usable[line]:
            self.usable[line] = False
            where = int(self.offset(self.starts[line]))
            self.rejects.append(Reject(where, reason, excerpt(self.raw(line), SECRETS)))

    def refuse_at(self, offset: int, reason: str) -> None:
        """Like `reject`, of the line at that place of the file, which may stand in an earlier piece."""
        line = int(np.searchsorted(self.starts, offset - self._offset))
        if line < len(self) and self.offset(self.starts[line]) == offset:
            self.reject(line, reason)
        else:
            self.rejects.append(Reject(offset, reason))

    def window(self, at: Column, width: int) -> Column:
        """The `width` bytes behind each position, one row each."""
        whole: Column = np.lib.stride_tricks.sliding_window_view(self.buffer, width)
        return whole[at]

    def eight(self, at: Column) -> Column:
        """The eight bytes behind each position as a number; compare it with `stands`."""
        return self._words[at]

    def says(self, at: Column, word: bytes) -> Column:
        """True where the word, of any length, stands at the position."""
        found = stands(self.eight(at), word[:8])
        return found if len(word) <= 8 else found & self.says(at + 8, word[8:])

    def number(self, at: Column, most: int) -> tuple[Column, Column]:
        """(value, position behind it) of the number of at most `most` digits; the position stays if there is none."""
        digits = self.eight(at) ^ ZEROS
        other = no_digit(digits)
        if not other.all():  # eight digits or more somewhere: one by one
            rows = self.window(at, most + 1) - np.uint8(48)
            length = np.argmin(rows <= 9, axis=1)
            value = np.zeros(len(at), np.int64)
            for column in range(int(length.max(initial=0))):
                value = np.where(column < length, value * 10 + rows[:, column], value)
            return value, at + length
        length = np.bitwise_count((other & (~other + _ONE)) - _ONE) >> np.uint8(3)
        digits = np.where(length > 0, digits << (_ALL - length.astype(np.uint64) * BYTE), 0)
        for factor, shift, mask in _PAIRS:  # units of 1, 2, then 4 digits become units of twice as many
            digits = (digits * factor >> shift) & mask
        return digits.astype(np.int64), at + length

    def decimal(self, at: Column) -> Column:
        """The position behind digits and points, at most 23."""
        letters = self.window(at, 24)
        end: Column = at + np.argmin(((letters >= 48) & (letters <= 57)) | (letters == ord(".")), axis=1)
        return end

    def signed(self, at: Column, most: int) -> tuple[Column, Column]:
        """Like `number`, of one that may begin with a minus."""
        minus = self.buffer[at] == ord("-")
        value, behind = self.number(at + minus, most)
        none = behind == at + minus
        return np.where(minus, -value, value), np.where(none, at, behind)


def _is_utf8(text: bytes) -> bool:
    ends = pa.py_buffer(np.array([0, len(text)], np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(text)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def no_digit(digits: Column) -> Column:
    """The high bit of each byte that is above nine."""
    found: Column = ((digits & _LOW) + _OVER_NINE | digits) & _HIGH
    return found


def stands(eight: Column, word: bytes) -> Column:
    """True where the eight bytes begin with the word (at most eight letters)."""
    mask = np.uint64((1 << 8 * len(word)) - 1)
    found: Column = (eight & mask) == np.uint64(int.from_bytes(word, "little"))
    return found


_TIMED = re.compile(rb"\[\d")
_BRACE = re.compile(rb'\{\s*(?:"|$)')
_INSIDE = re.compile(rb'\s*"\w+":|\s*[\]}]+,?$')
"""How a line begins that has a time stamp, and one that begins an object (messages may hold braces, too); a line inside one."""


class Objects:
    """JSON objects out of the lines of a log, also of objects that began in an earlier piece of the same file.

    The format is a setting of the running server and changes no file, so one file may hold lines of all forms:

        [25/Nov/2026:06:01:12.15 +0000] conn=11 op=1 UNBIND      text: `read` leaves it to the reader of text
        {"local_time":"2026-11-25T06:01:13.20 +0000", ...}        json
        {                                                         json-pretty, up to the line `}`
          "local_time":"2026-11-25T06:01:14.09 +0000", ...
    """

    def __init__(self) -> None:
        self._begun: list[tuple[int, bytes]] = []
        self._next = 0
        self._in_json: bool | None = None
        self.text = np.zeros(0, bool)

    def __deepcopy__(self, memo: Any) -> Objects:
        other = Objects()
        other._begun, other._next, other._in_json = list(self._begun), self._next, self._in_json
        return other

    def any_in(self, lines: Lines) -> bool:
        """True if any line is to be read as JSON. If not, all of them are text, and `read` need not be called."""
        first = lines.buffer[lines.starts]
        if self._in_json is None and len(lines):  # a range of a file may begin inside an object
            self._in_json = bool(_INSIDE.match(lines.raw(0)))
        if self._begun or bool((first == ord("{")).any()) or (self._in_json and bool((first != ord("[")).any())):
            return True
        if len(lines):
            self._in_json = False
        return False

    def read(self, lines: Lines, ended: bool) -> list[tuple[int, dict[str, Any]]]:
        """(offset, object) in order. Lines that belong to JSON and cannot be read are rejected in `lines`.

        `text` says afterwards which lines are of the text form. A line that begins neither as an object nor as a time stamp
        is of the form of the line before it.
        """
        found: list[tuple[int, dict[str, Any]]] = []
        begin = int(lines.offset(_PAD))
        if begin != self._next:  # an object that is cut together from two places of the file would say something else
            self._give_up(lines)
        if begin == 0:
            first = lines.buffer[lines.starts]
            telling = np.flatnonzero((first == ord("{")) | (first == ord("[")))
            self._in_json = bool(len(telling)) and first[telling[0]] == ord("{")
        self._next = begin + len(lines.data)
        self.text = np.zeros(len(lines), bool)
        for line in range(len(lines)):
            raw, offset = lines.raw(line), int(lines.offset(lines.starts[line]))
            if not lines.usable[line]:
                self._give_up(lines)
            elif _TIMED.match(raw) or not (self._in_json or _BRACE.match(raw)):
                self._give_up(lines)
                self._in_json, self.text[line] = False, True
            elif raw == b"{":
                self._give_up(lines)
                self._begun, self._in_json = [(offset, raw)], True
            elif self._begun and raw[:1] in (b" ", b"\t", b"}"):
                self._begun.append((offset, raw))
                if raw == b"}":
                    if (value := _object(b"\n".join(raw for _, raw in self._begun))) is None:
                        self._give_up(lines)
                    else:
                        found.append((self._begun[0][0], value))
                    self._begun = []
            else:
                self._give_up(lines)  # an object without one of its lines would say something else
                self._in_json = True
                if (value := _object(raw)) is not None:
                    found.append((offset, value))
                elif not is_title(raw):
                    cut = lines.unfinished and line == len(lines) - 1
                    lines.reject(line, "the last line was cut" if cut else "not a JSON object, nor a part of one")
        if ended:
            self._give_up(lines)
        return found

    def _give_up(self, lines: Lines) -> None:
        """The object that is open was never finished: none of its lines counts."""
        for offset, raw in self._begun:
            lines.rejects.append(Reject(offset, "JSON object that was cut or damaged", excerpt(raw, SECRETS)))
        self._begun = []


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return _text_only(value) if b"\\ud" in raw.lower() else value


def _text_only(value: Any) -> Any:
    """The value with `?` for the halves of characters: JSON may hold them, no table does."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_text_only(item) for item in value]
    if isinstance(value, dict):
        return {_text_only(key): _text_only(item) for key, item in value.items()}
    return value
