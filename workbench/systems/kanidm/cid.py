"""CIDs of Kanidm as text: 32 digits of nanoseconds since 1970, a hyphen, the UUID of the server that made the change.

Lower case, this text is its own order key: the time decides, then the UUID.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

SECOND = 10**9
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_CID = re.compile(rf"[0-9]{{32}}-{UUID.pattern}", re.IGNORECASE | re.ASCII)
DIGITS = 32
"""Of the time."""
_UUID_BITS = 15  # hexadecimal digits of the UUID in the second half: 60 bits of an integer that may not be negative


def cid_text(nanoseconds: int, server: str) -> str:
    """The CID as the server prints it."""
    return f"{nanoseconds:0{DIGITS}d}-{server.lower()}"


def cid_or_none(text: str) -> str | None:
    """The CID in lower case, or None if the text is none."""
    return text.lower() if _CID.fullmatch(text) else None


def origin_of(cid: str) -> str:
    """The UUID of the server that made the change."""
    return cid[DIGITS + 1 :]


def nanoseconds(cid: str) -> int:
    """When it was made, since 1970, by the clock of that server."""
    return int(cid[:DIGITS])


def halves(cid: str) -> tuple[int, int]:
    """(nanoseconds, first 60 bits of the UUID): in the order of the protocol, and of two servers that share these bits the
    origin, which every table has beside the two, tells them apart.
    """
    return nanoseconds(cid), int(origin_of(cid).replace("-", "")[:_UUID_BITS], 16)


def order_key(origin: str, hi: int, lo: int) -> str:
    """The CID of that origin and time; `halves` backwards."""
    return cid_text(hi, origin)


def moment(cid: str) -> datetime | None:
    """When the change was made, by the clock of its server; None for a time that no calendar has."""
    seconds = nanoseconds(cid) // SECOND
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
