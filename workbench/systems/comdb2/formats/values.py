"""Values in what cdb2sql prints: numbers, places in the log, times. Each raises ValueError with the reason for what is none."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from workbench.systems.comdb2.lsn import LARGEST, Lsn, lsn_of, order_key

_NUMBER = re.compile(r"-?0*[0-9]{1,19}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]{1,19})?", re.ASCII)
_MOMENT = re.compile(
    r"\"?(\d{4})-(\d\d)-(\d\d)[T ](\d\d):?(\d\d):?(\d\d)(?:\.(\d{1,6}))?(?: ?(Z|[A-Za-z][\w/+-]{0,60}))?\"?", re.ASCII
)
_ZERO = {"UTC", "GMT", "Z"}


def number(text: str) -> int:
    """A whole number of 64 bits."""
    if not _NUMBER.fullmatch(text) or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError("is no number")
    return int(text)


def decimal(text: str) -> str:
    """A number with a point: it stays text."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError("is no number")
    return text


def word(text: str) -> str:
    """A name: not empty."""
    if not text.strip():
        raise ValueError("is empty")
    return text


def flag(text: str) -> str:
    """Y or N."""
    if text not in ("Y", "N"):
        raise ValueError("is neither Y nor N")
    return text


def lsn(text: str) -> str:
    """A place in the log as the server writes it: `{9:706500}`."""
    if not lsn_of(text):
        raise ValueError("is no place in the log, {file:offset}")
    return text


def lsn_key(text: str | None) -> str | None:
    """The order key of such a text. Whose log it is the text does not say: the database at the top of the tree."""
    found = lsn_of(text) if text else None
    return order_key("", *found) if found else None


def place(file: int | None, offset: int | None) -> Lsn | None:
    """Both numbers as a place in the log; None where one of them is not told."""
    if file is None or offset is None:
        return None
    if not (0 <= file <= LARGEST and 0 <= offset <= LARGEST):
        raise ValueError("file and offset are no place in the log")
    return file, offset


@lru_cache(64)
def _zone(name: str) -> tzinfo:
    if name in _ZERO:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):  # a folder of zones is an OSError, a name with `..` a ValueError
        raise ValueError("has a time zone that this machine does not know") from None


@lru_cache(4096)
def moment_of(text: str) -> datetime:
    """A time as UTC: `"2026-11-20T144841.923 UTC"`, or in the zone that stands behind it.

    The hour that a zone has twice in a year is taken for its first time; `--set "timezone UTC"` has no such hour.

    >>> moment_of('"2026-11-20T094841.923 America/New_York"').isoformat()
    '2026-11-20T14:48:41.923000+00:00'
    """
    found = _MOMENT.fullmatch(text)
    if not found or text.startswith('"') != text.endswith('"'):
        raise ValueError("is no time")
    *parts, fraction, zone = found.groups()
    try:
        year, month, day, hour, minute, second = map(int, parts)
        microsecond = int((fraction or "0").ljust(6, "0"))
        local = datetime(year, month, day, hour, minute, second, microsecond, _zone(zone or "UTC"))
        return local.astimezone(UTC)
    except OverflowError:
        raise ValueError("is no time") from None


def moment(text: str) -> str:
    """A time, as written but for its quotes."""
    moment_of(text)
    return text.strip('"')


def seconds(text: str) -> int:
    """A time as seconds since 1970, as a number."""
    found = number(text)
    if not 0 <= found < 1 << 36:
        raise ValueError("is no time in seconds")
    return found


def at_seconds(value: int | None) -> datetime | None:
    """Such a number as a time."""
    return None if value is None else datetime.fromtimestamp(value, UTC)
