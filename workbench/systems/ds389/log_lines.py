"""What the logs of 389 Directory Server have in common: lines, time stamps, JSON objects, and which log a file is.

The server writes each of its logs as text or, since 3.1, as JSON: one object to a line (`json`) or spread over several
(`json-pretty`). Logs are many gigabytes, so the lines of a piece are handled as columns of positions in one buffer.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.boundary import excerpt
from workbench.model import Piece, Reject
from workbench.systems.ds389.secrets import SECRETS

Column = np.ndarray[Any, Any]

_PAD = 64
"""Bytes of `\\n` on both sides of the buffer, so that a window at its edge needs no test. `\\n` matches nothing."""
_PART = 1 << 18

NO_TIME = np.iinfo(np.int64).min
"""Stands in a column of times for "the line does not say"."""


# Eight digits are read at once, as one number of eight bytes.
_ZEROS, _LOW, _HIGH = np.uint64(0x3030303030303030), np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)
_OVER_NINE, _ONE, _BYTE, _ALL = np.uint64(0x7676767676767676), np.uint64(1), np.uint64(8), np.uint64(64)
_PAIRS = [
    (np.uint64(10 * 256 + 1), np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
    (np.uint64(100 * 65536 + 1), np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
    (np.uint64((10000 << 32) + 1), np.uint64(32), np.uint64(0xFFFFFFFF)),
]


class Room:
    """Memory that is used again for each piece: fresh memory costs more time than the copy. One `Lines` at a time."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

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
        if b"\r" in piece.data:
            self.ends -= (self.buffer[self.ends - 1] == 13) & (self.ends > self.starts)
        self.rejects: list[Reject] = []
        self.usable = np.ones(len(self.starts), bool)
        if b"\0" in piece.data:
            self._refuse(self.buffer == 0, "zero bytes: not text, as a crash leaves them")
        if not piece.data.isascii() and not _is_utf8(piece.data):
            self._refuse(self.buffer > 127, "not UTF-8")

    def _refuse(self, suspect: Column, reason: str) -> None:
        for line in np.unique(np.searchsorted(self.starts, np.flatnonzero(suspect), "right") - 1).tolist():
            try:
                if reason == "not UTF-8":
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
        whole = np.lib.stride_tricks.sliding_window_view(self.buffer, width)
        return whole[np.minimum(at, len(whole) - 1)]

    def eight(self, at: Column) -> Column:
        """The eight bytes behind each position as a number; compare it with `stands`."""
        return self._words[np.minimum(at, len(self._words) - 1)]

    def says(self, at: Column, word: bytes) -> Column:
        """True where the word, of any length, stands at the position."""
        found = stands(self.eight(at), word[:8])
        return found if len(word) <= 8 else found & self.says(at + 8, word[8:])

    def number(self, at: Column, most: int) -> tuple[Column, Column]:
        """(value, position behind it) of the number of at most `most` digits; the position stays if there is none."""
        digits = self.eight(at) ^ _ZEROS
        other = _no_digit(digits)
        if not other.all():  # eight digits or more somewhere: one by one
            rows = self.window(at, most + 1) - np.uint8(48)
            length = np.argmin(rows <= 9, axis=1)
            value = np.zeros(len(at), np.int64)
            for column in range(int(length.max(initial=0))):
                value = np.where(column < length, value * 10 + rows[:, column], value)
            return value, at + length
        length = np.bitwise_count((other & (~other + _ONE)) - _ONE) >> np.uint8(3)
        digits = np.where(length > 0, digits << (_ALL - length.astype(np.uint64) * _BYTE), 0)
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
        minus = self.buffer[np.minimum(at, len(self.buffer) - 1)] == ord("-")
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


def _no_digit(digits: Column) -> Column:
    """The high bit of each byte that is above nine."""
    found: Column = ((digits & _LOW) + _OVER_NINE | digits) & _HIGH
    return found


def stands(eight: Column, word: bytes) -> Column:
    """True where the eight bytes begin with the word (at most eight letters)."""
    mask = np.uint64((1 << 8 * len(word)) - 1)
    found: Column = (eight & mask) == np.uint64(int.from_bytes(word, "little"))
    return found


# [20/Nov/2026:14:42:07.217971982 +0000] or, with nsslapd-logging-hr-timestamps-enabled off, without the nanoseconds
STAMP = rb"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?:\.\d{1,9})? [+-]\d{4}\]"
_STAMP = re.compile(  # the same, in parts
    r"\[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))? ([+-])(\d\d)(\d\d)\] ", re.ASCII
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_EPOCH = date(1970, 1, 1).toordinal()
_NO_DAY = -(1 << 40)


def _day(year: int, month: int, day: int) -> int:
    """Days since 1970; _NO_DAY for what no calendar has, as 31 November."""
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return _NO_DAY


def _month(name: str) -> int:
    return _MONTHS.index(name) + 1 if name in _MONTHS else 0


def _moment(days: int, hour: str, minute: str, second: str, fraction: str | None, *zone: str | None) -> int:
    """Microseconds since 1970 UTC; NO_TIME if the parts make no time. Zone: sign, hours, minutes."""
    if days == _NO_DAY or int(hour) > 23 or int(minute) > 59 or int(second) > 60:
        return NO_TIME
    sign, zone_hour, zone_minute = zone
    ahead = (int(zone_hour or 0) * 60 + int(zone_minute or 0)) * (-60 if sign == "-" else 60)
    seconds = days * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second) - ahead
    return seconds * 1_000_000 + int((fraction or "").ljust(9, "0")) // 1000


class _Shape:
    """Eight letters: `0` for a digit, `*` for anything, every other letter for itself."""

    def __init__(self, shape: bytes) -> None:
        self._digits = np.uint64(sum(0x80 << 8 * place for place, letter in enumerate(shape) if letter == ord("0")))
        fixed = [(place, letter) for place, letter in enumerate(shape) if letter not in b"0*"]
        self._mask = np.uint64(sum(0xFF << 8 * place for place, _ in fixed))
        self._letters = np.uint64(sum(letter << 8 * place for place, letter in fixed))

    def fits(self, words: Column) -> Column:
        """True where the eight letters have this shape."""
        good: Column = ((_no_digit(words ^ _ZEROS) & self._digits) == 0) & ((words & self._mask) == self._letters)
        return good


_DATE, _CLOCK, _ZONE = _Shape(b"[00/***/"), _Shape(b"0000:00:"), _Shape(b" *0000] ")
_SECOND = {32: _Shape(b"00:00.00"), 22: _Shape(b"00:00 **")}
_FRACTION = _Shape(b"00000000")


def _pairs(words: Column, *places: int) -> list[Column]:
    """The numbers of the two digits that begin at each of these places of the eight letters."""
    digits = words ^ _ZEROS
    digits &= ~((_no_digit(digits) >> np.uint64(7)) * np.uint64(0xFF))
    both = (digits * np.uint64(10) + (digits >> _BYTE)).view(np.int64)
    return [(both >> 8 * place) & 0xFF for place in places]


def stamps(lines: Lines) -> tuple[Column, Column]:
    """(microseconds since 1970 UTC, position behind the stamp's blank) of each line; NO_TIME and 0 without a stamp."""
    times = np.full(len(lines), NO_TIME, np.int64)
    behind = np.zeros(len(lines), np.int64)
    rows = np.flatnonzero(lines.usable & (lines.buffer[lines.starts] == ord("[")))
    for zone in (32, 22):  # the column of the zone's sign, with nine digits behind the point and without
        if len(rows):
            time, good = _read(lines, lines.starts[rows], zone)
            fits = rows[good]
            times[fits] = time[good]
            behind[fits] = lines.starts[fits] + zone + 7
            rows = rows[~good]
    for row in rows.tolist():  # another number of digits behind the point
        if found := _STAMP.match(lines.raw(row)[:64].decode("latin-1")):
            day, month, year, *clock = found.groups()
            if (time := _moment(_day(int(year), _month(month), int(day)), *clock)) != NO_TIME:
                times[row], behind[row] = time, lines.starts[row] + found.end()
    return times, behind


def _read(lines: Lines, at: Column, zone: int) -> tuple[Column, Column]:
    """(microseconds, readable) of stamps whose zone begins at that column."""
    date, clock, second, fraction, ahead = (lines.eight(at + place) for place in (0, 8, 16, 22, zone - 1))
    good = _DATE.fits(date) & _CLOCK.fits(clock) & _SECOND[zone].fits(second) & _ZONE.fits(ahead)
    sign = (ahead >> _BYTE) & np.uint64(0xFF)
    minus = sign == ord("-")
    good &= minus | (sign == ord("+"))
    (day,) = _pairs(date, 1)
    century, year, hour = _pairs(clock, 0, 2, 5)
    minute, seconds = _pairs(second, 0, 3)
    zone_hour, zone_minute = _pairs(ahead, 2, 4)
    month = (date.view(np.int64) >> 32) & 0xFFFFFF
    key = month << 32 | (century * 100 + year) * 100 + day
    good &= (hour < 24) & (minute < 60) & (seconds <= 60)
    keys, which = np.unique(np.where(good, key, 0), return_inverse=True)
    days = np.array([_day_of(*divmod(key, 1 << 32)) for key in keys.tolist()], np.int64)[which]
    good &= days != _NO_DAY
    away = (zone_hour * 60 + zone_minute) * np.where(minus, -60, 60)
    total = (np.where(good, days, 0) * 86400 + hour * 3600 + minute * 60 + seconds - away) * 1_000_000
    if zone == 32:
        good &= _FRACTION.fits(fraction)
        for pair, worth in zip(_pairs(fraction, 0, 2, 4), (10_000, 100, 1), strict=True):
            total += pair * worth
    return total, good


def _day_of(letters: int, rest: int) -> int:
    """Days since 1970 of the month's three letters as a number, and of year * 100 + day."""
    return _day(rest // 100, _month(letters.to_bytes(3, "little").decode("latin-1")), rest % 100)


# The server appends fraction and offset to what the administrator's strftime format made; the default is %FT%TZ.
_JSON_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(Z)?(?:[+-]\d\d:?\d\d)?(?:\.(\d{1,9}))?(Z)?"
    r"\s*(?:([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)


def json_time(text: Any) -> int:
    """Microseconds since 1970 UTC of a `local_time`; NO_TIME if it is of another shape or without a zone."""
    found = _JSON_TIME.fullmatch(text) if isinstance(text, str) else None
    if not found:
        return NO_TIME
    year, month, day, hour, minute, second, zulu, fraction, zulu_behind, *zone = found.groups()
    if not (zone[0] or zulu or zulu_behind):
        return NO_TIME
    return _moment(_day(int(year), int(month), int(day)), hour, minute, second, fraction, *zone)


def time_facts(times: Column) -> dict[str, Any]:
    """`{"time": {"min", "max"}}` of a column of times, or nothing."""
    known = times[times != NO_TIME]
    if not len(known):
        return {}
    return {"time": {"min": _iso(int(known.min())), "max": _iso(int(known.max()))}}


def _iso(microseconds: int) -> str:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:  # the zone moves 31/Dec/9999 into a year that no calendar has
        moment = datetime.max.replace(tzinfo=UTC) if microseconds > 0 else datetime.min.replace(tzinfo=UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


# The first lines of a log file: version, host and folder of the instance, an empty line
_TITLE = re.compile(rb"\s*\S*Directory\S*/\d\S*.*|\s*\S+:\d+ \(/\S*slapd-\S*\)\s*|LOGINFO:.*|\s*")


def is_title(raw: bytes) -> bool:
    """True for the lines at the top of a log file that say who writes it, and for empty ones."""
    return bool(_TITLE.fullmatch(raw))


def is_json(lines: Lines) -> bool:
    """True if the piece holds JSON: a line begins with a brace, none with the time stamp of the text form."""
    if not len(lines):
        return False
    first = lines.buffer[lines.starts]
    return bool((first == ord("{")).any()) and not ((first == ord("[")) & lines.usable).any()


def is_pretty(head: bytes) -> bool:
    """True if the JSON objects of the file are spread over several lines."""
    return re.search(rb"^\{\r?$", head, re.MULTILINE) is not None


class Objects:
    """JSON objects out of the lines of a log, also of objects that began in an earlier piece of the same file."""

    def __init__(self) -> None:
        self._begun: list[tuple[int, bytes]] = []

    @property
    def open(self) -> bool:
        """True if the lines so far end inside an object that is spread over several lines."""
        return bool(self._begun)

    def read(self, lines: Lines, ended: bool) -> list[tuple[int, dict[str, Any]]]:
        """(offset, object) in order; lines that are no part of one are rejected in `lines`."""
        found: list[tuple[int, dict[str, Any]]] = []
        for line in range(len(lines)):
            if not lines.usable[line]:
                continue
            raw, offset = lines.raw(line), int(lines.offset(lines.starts[line]))
            if raw == b"{":
                self._give_up(lines)
                self._begun = [(offset, raw)]
            elif self._begun and raw[:1] in b" \t}":
                self._begun.append((offset, raw))
                if raw == b"}":
                    if (value := _object(b"\n".join(raw for _, raw in self._begun))) is None:
                        self._give_up(lines)
                    else:
                        found.append((self._begun[0][0], value))
                    self._begun = []
            elif (value := _object(raw)) is not None:
                self._give_up(lines)
                found.append((offset, value))
            elif self._begun or not is_title(raw):
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
    return value if isinstance(value, dict) else None


_ACCESS, _ERRORS, _AUDIT = "access", "errors", "audit"
_LEVEL = rb"(?:EMERG|ALERT|CRIT|ERR|WARN|NOTICE|INFO|DEBUG)"
_TEXT_LINE = re.compile(
    rb"^" + STAMP + rb" (?:(?P<access>conn=)|(?P<errors>- " + _LEVEL + rb"[A-Z]* - |[^\n]*?(?<=\S) - ))"
    rb"|^(?P<audit>time: \d{14}\r?\ndn:)",
    re.MULTILINE,
)
_AUDIT_RESULT = re.compile(rb"^(?:result: -?\d+|changetype: \w+)\r?$", re.MULTILINE)
_KEYS = {
    _ACCESS: {"local_time", "operation", "conn_id"},
    _ERRORS: {"local_time", "severity", "subsystem", "msg"},
    _AUDIT: {"gm_time", "target_dn", "bind_dn", "result"},
}


def kind_of(head: bytes, name: str) -> str | None:
    """Which log the file is, by the first line that tells them apart; by its name if only the title lines are there.

    >>> kind_of(b"[20/Nov/2026:14:42:07 +0000] conn=1 op=2 UNBIND", "any")
    'access'
    """
    if found := _TEXT_LINE.search(head):
        kind = found.lastgroup
        return kind if kind != _AUDIT or _AUDIT_RESULT.search(head, found.start()) else None
    titled = b"Directory" in head[:200] and all(map(is_title, head.splitlines()))
    text = head.decode("utf-8", "replace")
    for number, brace in enumerate(re.finditer(r"^\{", text, re.MULTILINE)):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            if number < 20:  # the file may begin inside a line; a large foreign document is not searched to its end
                continue
            return None
        if isinstance(value.get("header"), dict) and "Directory" in str(value["header"].get("version")):
            titled = True
            continue
        return next((kind for kind, keys in _KEYS.items() if keys <= value.keys()), None)
    if titled:
        words = {_ACCESS: "access", _ERRORS: "error", _AUDIT: "audit"}
        return next((kind for kind, word in words.items() if word in name.lower()), None)
    return None
