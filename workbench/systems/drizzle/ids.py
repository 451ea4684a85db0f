"""Ids of transactions of Drizzle: the number that a server gave it, and the server. Numbers are unique on one server only.

A position is written as the number alone, as the server prints it; its order key is the number as 20 digits, a colon, and
the server id as 10 digits. The numbers of one server rise as its transactions begin, not as they are committed.
"""

from __future__ import annotations

import hashlib
import re

_TYPED = re.compile(r"(?:([0-9]{1,10}):)?([0-9]{1,20})", re.ASCII)
_AT_SOURCE = (
    "SELECT ID, SEGID, COMMIT_ID, END_TIMESTAMP, MESSAGE_LEN FROM DATA_DICTIONARY.SYS_REPLICATION_LOG WHERE ID = {} "
    "ORDER BY SEGID"
)
_DEFAULT_SERVER = "1"
"""Which every server has that was not told otherwise."""


def order_key(server: int | str, transaction: int | str) -> str:
    """The order key of a transaction of that server.

    >>> order_key(1, 780)
    '00000000000000000780:0000000001'
    """
    return f"{int(transaction):020d}:{int(server):010d}"


def shown(key: str) -> str:
    """The number of the transaction, as the server prints it."""
    return key[:20].lstrip("0") or "0"


def origin_of(key: str) -> str:
    """The id of the server that made it."""
    return key[21:].lstrip("0") or "0"


def halves(key: str) -> tuple[int, int]:
    """The number as two integers, neither of which is negative."""
    number = int(key[:20])
    return number >> 32, number & 0xFFFFFFFF


def query_at_source(key: str) -> str:
    """What to run at the source to learn what became of a transaction, where it keeps the replication log in InnoDB.

    Its rows are written inside the transaction itself: with all messages and a commit number it was committed; a single row
    without the messages before it is a ROLLBACK; none at all, and it was never committed.
    """
    return _AT_SOURCE.format(int(key[:20]))


def typed(text: str) -> str | None:
    """What a person types, `780` or `SERVER:780`, as an order key; None if it is none.

    >>> typed("9:776")
    '00000000000000000776:0000000009'
    """
    found = _TYPED.fullmatch(text.strip())
    if not found or int(found[2]) >= 1 << 64 or int(found[1] or 0) >= 1 << 32:
        return None
    return order_key(found[1] or _DEFAULT_SERVER, found[2])


def content_of(message: bytes) -> int:
    """A 64-bit hash of a message, as the evidence holds it: with a sign. SHA-1 is the quickest where processors help it."""
    return int.from_bytes(hashlib.sha1(message, usedforsecurity=False).digest()[:8], "little", signed=True)
