"""CSNs and RUV elements of 389 Directory Server, as text.

A CSN is 20 hex digits: time (8, unix seconds), sequence (4), replica ID (4), sub-sequence (4). Lower case, its text
order is the order of the protocol: it is its own order key. The replica ID is hex in a CSN and decimal in a RUV; an
origin is always the decimal text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

CSN = re.compile(r"[0-9a-fA-F]{20}")


def csn_or_none(text: str) -> str | None:
    """The CSN in lower case, or None if the text is not exactly 20 hex digits."""
    return text.lower() if CSN.fullmatch(text) else None


def change_of(csn: str) -> str:
    """The CSN of the whole change: a sub-sequence marks a step inside one."""
    return csn[:16] + "0000"


def origin_of(csn: str) -> str:
    """The replica ID of a CSN as decimal text: `6b005c14001602670000` -> `615`."""
    return str(int(csn[12:16], 16))


def halves(csn: str) -> tuple[int, int]:
    """(time and sequence, replica ID and sub-sequence): 48 and 32 bits, so no year and no sub-sequence is lost."""
    return int(csn[:12], 16), int(csn[12:], 16)


def order_key(origin: str, hi: int, lo: int) -> str:
    """The CSN of the two integers; `halves` backwards."""
    return f"{hi:012x}{lo:08x}"


def seconds(csn: str) -> int:
    """The time part of a CSN as unix seconds."""
    return int(csn[:8], 16)


@dataclass(frozen=True)
class Element:
    """One nsds50ruv value: of an origin, or (origin None) the generation line."""

    raw: str
    origin: str | None = None
    generation: str | None = None
    url: str | None = None
    min: str | None = None
    max: str | None = None
    modified: int | None = None
    problem: str | None = None


_GENERATION = re.compile(r"\{replicageneration\}(?: (.*))?", re.IGNORECASE)
_REPLICA = re.compile(r"\{replica\s+0*([0-9]{1,5})(?:\s+(\S+?))?\s*\}(.*)", re.IGNORECASE)
_LOGIN = re.compile(r"//[^/\s}]*@")  # the server writes none; what a person typed into an address may hold a password
_CSNS = re.compile(r" *([0-9a-f]{20}) ([0-9a-f]{20})(?: ([0-9a-f]{8}))?", re.IGNORECASE)


def ruv_element(value: str) -> Element:
    """Read one RUV value as the server does: both CSNs or none, and neither URL nor CSNs is malformed.

    Like the server it passes over blanks in front of the CSNs; more lenient, it also takes those behind the value.
    """
    value = _LOGIN.sub("//", value.rstrip())
    if found := _GENERATION.fullmatch(value):
        generation = (found[1] or "").strip()
        if not generation:
            return Element(value, problem="no generation")
        return Element(value, generation=csn_or_none(generation) or generation)  # the server takes any text for one
    if not (found := _REPLICA.fullmatch(value)):
        return Element(value, problem="neither a replica nor a generation")
    origin, url, rest = str(int(found[1])), found[2], found[3]
    if not rest:
        return Element(value, origin, url=url, problem=None if url else "neither address nor CSNs")
    if not (csns := _CSNS.fullmatch(rest)):
        return Element(value, origin, url=url, problem="not two CSNs behind the replica")
    low, high, modified = csns.groups()
    return Element(value, origin, None, url, low.lower(), high.lower(), int(modified, 16) if modified else None)


_MODIFIED = re.compile(r"\{replica\s+0*([0-9]{1,5})(?:\s+\S+?)?\s*\}\s+([0-9a-f]{8})", re.IGNORECASE)


def ruv_modified(value: str) -> tuple[str, int] | None:
    """(origin, unix seconds) of an nsruvReplicaLastModified value."""
    found = _MODIFIED.fullmatch(value.strip())
    return (str(int(found[1])), int(found[2], 16)) if found else None


def utc(epoch: int | None) -> datetime | None:
    """Unix seconds as a UTC time; 0 means "never" in every place where the server writes it."""
    return datetime.fromtimestamp(epoch, UTC) if epoch else None
