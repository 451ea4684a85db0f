"""cid_compare, cid_lamport, cid_text: what single CIDs and clocks say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from workbench.input_validation import Inputs
from workbench.replication.entry.rules.entries import next_time
from workbench.systems.kanidm.cid import SECOND, cid_text
from workbench.systems.kanidm.scenarios.fields import Time

_LONGEST = 32


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST):
        raise ValueError("is not a decimal number")
    return int(text)


if TYPE_CHECKING:
    Decimal = int
else:  # text, because a reader of JSON may round a number of that size
    Decimal = Annotated[str, AfterValidator(_number), WithJsonSchema({"type": "string", "format": "decimal text"})]


class CidGiven(Inputs):
    """A CID in whole seconds."""

    ts_s: Time
    s_uuid: str


class CidCompare(Inputs):
    """Two CIDs."""

    left: CidGiven
    right: CidGiven


def cid_compare(given: CidCompare) -> dict[str, Any]:
    """Left against right: the time decides, then the UUID."""
    left, right = ((one.ts_s, one.s_uuid.lower()) for one in (given.left, given.right))
    return {"order": "less" if left < right else "greater" if left > right else "equal"}


class CidLamport(Inputs):
    """Nanoseconds: the clock, and the server's last own CID."""

    clock_ns: Decimal
    last_cid_ns: Decimal


def cid_lamport(given: CidLamport) -> dict[str, Any]:
    """The time of the next own CID."""
    return {"ts_ns": str(next_time(given.last_cid_ns, given.clock_ns))}


class Duration(Inputs):
    """Since 1970."""

    secs: Time
    nanos: Time


class WireCid(Inputs):
    """A CID as it stands in a backup."""

    t: Duration
    s: str


class CidText(Inputs):
    """A CID."""

    cid: WireCid


def cid_as_text(given: CidText) -> dict[str, Any]:
    """As the server prints it."""
    return {"text": cid_text(given.cid.t.secs * SECOND + given.cid.t.nanos, given.cid.s)}
