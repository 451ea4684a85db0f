"""When the lines of a log were written, as columns of microseconds."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from workbench.systems.ds389.formats.log_lines import BYTE, ZEROS, Column, Lines, no_digit

NO_TIME = np.iinfo(np.int64).min
"""Stands in a column of times for "the line does not say"."""


_STAMP = re.compile(  # STAMP in parts
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
        good: Column = ((no_digit(words ^ ZEROS) & self._digits) == 0) & ((words & self._mask) == self._letters)
        return good


_DATE, _CLOCK, _ZONE = _Shape(b"[00/***/"), _Shape(b"0000:00:"), _Shape(b" *0000] ")
_SECOND = {32: _Shape(b"00:00.00"), 22: _Shape(b"00:00 **")}
_FRACTION = _Shape(b"00000000")


def _pairs(words: Column, *places: int) -> list[Column]:
    """The numbers of the two digits that begin at each of these places of the eight letters."""
    digits = words ^ ZEROS
    digits &= ~((no_digit(digits) >> np.uint64(7)) * np.uint64(0xFF))
    both = (digits * np.uint64(10) + (digits >> BYTE)).view(np.int64)
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
            if (moment := _moment(_day(int(year), _month(month), int(day)), *clock)) != NO_TIME:
                times[row], behind[row] = moment, lines.starts[row] + found.end()
    return times, behind


def _read(lines: Lines, at: Column, zone: int) -> tuple[Column, Column]:
    """(microseconds, readable) of stamps whose zone begins at that column."""
    date, clock, second, fraction, ahead = (lines.eight(at + place) for place in (0, 8, 16, 22, zone - 1))
    good = _DATE.fits(date) & _CLOCK.fits(clock) & _SECOND[zone].fits(second) & _ZONE.fits(ahead)
    sign = (ahead >> BYTE) & np.uint64(0xFF)
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


_LOCAL_TIME = re.compile(r'"local_time":\s*"([^"]*)"')


def first_time(head: bytes) -> str | None:
    """The first time in a log as text that sorts: what orders the files that a server's log was rotated into."""
    text = head.decode("latin-1")
    if found := _STAMP.search(text):
        day, month, year, *rest = found.groups()
        time = _moment(_day(int(year), _month(month), int(day)), *rest)
    else:
        found = _LOCAL_TIME.search(text)
        time = json_time(found[1]) if found else NO_TIME
    return None if time == NO_TIME else f"{time:020d}"


def time_facts(times: Column) -> dict[str, Any]:
    """`{"time": {"min", "max"}}` of a column of times, or nothing."""
    known = times[times != NO_TIME]
    if not len(known):
        return {}
    return {"time": {"min": iso_time(int(known.min())), "max": iso_time(int(known.max()))}}


SET_BACK_BY = 60_000_000
"""Microseconds: lines of several threads stand in another order by less, and only a clock that was set back by more."""


class Backwards:
    """Finds where the times of a log go back, as its pieces are read in their order."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._highest = 0

    def __call__(self, times: Column) -> dict[str, dict[str, str]]:
        """`set_back`: from the lowest time that comes again to the highest before. `again`, `first`: what else tells of that.

        Where the parts of a log were put together in another order, the later ones reach to where the first one begins.
        """
        known = times[times != NO_TIME]
        if not len(known):
            return {}
        if self._first is None:
            self._first = self._highest = int(known[0])
        before = np.maximum.accumulate(np.concatenate([[self._highest], known]))
        again = known < before[:-1] - SET_BACK_BY
        self._highest = int(before[-1])
        if not again.any():
            return {}
        lowest, latest, first = (iso_time(int(at)) for at in (known[again].min(), known[again].max(), self._first))
        highest = iso_time(int(before[:-1][again].max()))
        return {
            "set_back": {"min": lowest, "max": highest},
            "set_back_again": {"min": lowest, "max": latest},
            "set_back_first": {"min": first, "max": first},
        }


def span_of(times: Column) -> str:
    """From the first of these moments to the last, as text."""
    span = time_facts(times)["time"]
    return f"{span['min']}/{span['max']}"


def iso_time(microseconds: int) -> str:
    """The moment as text, in UTC."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:  # the zone moves 31/Dec/9999 into a year that no calendar has
        moment = datetime.max.replace(tzinfo=UTC) if microseconds > 0 else datetime.min.replace(tzinfo=UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
