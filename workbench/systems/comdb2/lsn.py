"""Positions of Comdb2: a log sequence number, the file of the log and the place in it, and the database that wrote it.

A position is written `{9:706500}`, as the server prints it; its order key is file and place as ten digits each, and the name
of the source database: `0000000009:0000706500:shopdb`. A number is compared as a number, never as text: file 10 follows file 9.
"""

from __future__ import annotations

import re

Lsn = tuple[int, int]
"""File, and place in that file."""

HEAD = 12
"""Bytes of the head of a record: the next one begins behind its content and these."""

FIRST = 28
"""Where the first record of every file begins."""

_VERSIONS = (0, 1000, 2000, 3000)
"""What the number of a kind of records is raised by, for its version."""

COMMITS = frozenset(151 + version for version in _VERSIONS)
"""Kinds of records that end a transaction, with the generation. From 10000 on are other kinds: 12151 is no commit."""

ANCHORS = COMMITS | {11 + version for version in _VERSIONS}
"""These and checkpoints: kinds of records at which a log can be joined to another one."""

SENTINEL = "{-1:-1}"
"""What the server answers, in place of a record, when the record that was asked for is not there."""

_WRITTEN = re.compile(r"\{([0-9]{1,10}):([0-9]{1,10})\}", re.ASCII)
_TYPED = re.compile(
    r"(?:([^\s{}:@]{1,60})[: ]?)?(?:\{([0-9]{1,10}):([0-9]{1,10})\}|(?<![^\s:])([0-9]{1,10}):([0-9]{1,10}))"
)
_KEY = re.compile(r"([0-9]{10}):([0-9]{10}):(.*)", re.ASCII | re.DOTALL)
LARGEST = (1 << 32) - 1


def lsn_of(text: str) -> Lsn | None:
    """What the server's own text says, `{9:706500}`; None for all else, the sentinel `{-1:-1}` too.

    >>> lsn_of("{9:706500}"), lsn_of("9:706500"), lsn_of("{-1:-1}")
    ((9, 706500), None, None)
    """
    found = _WRITTEN.fullmatch(text)
    lsn = (int(found[1]), int(found[2])) if found else None
    return lsn if lsn and max(lsn) <= LARGEST else None


def lsn_text(lsn: Lsn) -> str:
    """As the server writes it: `{9:706500}`."""
    return f"{{{lsn[0]}:{lsn[1]}}}"


def order_key(origin: str, file: int, place: int) -> str:
    """The order key of a record of that source database.

    >>> order_key("shopdb", 9, 706500)
    '0000000009:0000706500:shopdb'
    """
    return f"{file:010d}:{place:010d}:{origin}"


def halves(key: str) -> Lsn:
    """The order key as file and place."""
    return int(key[:10]), int(key[11:21])


def origin_of(key: str) -> str:
    """The source database; empty where nobody named it."""
    return key[22:]


def shown(key: str) -> str:
    """The order key as the server writes it: `{9:706500}`."""
    return lsn_text(halves(key))


def typed(text: str) -> str | None:
    """What a person types, `{9:706500}`, `9:706500` or `shopdb{9:706500}`, as an order key; None if it is none.

    >>> typed("shopdb{9:706500}")
    '0000000009:0000706500:shopdb'
    """
    text = text.strip()
    if _KEY.fullmatch(text):
        return text
    found = _TYPED.fullmatch(text)
    if not found:
        return None
    file, place = (int(found[at] or found[at + 2]) for at in (2, 3))
    return order_key(found[1] or "", file, place) if max(file, place) <= LARGEST else None
