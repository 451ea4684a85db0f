"""csn_decode, csn_order, time_skew_class: what single CSNs and clocks say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from workbench.input_validation import Inputs
from workbench.systems.ds389.csn import csn_or_none, origin_of, seconds
from workbench.systems.ds389.rules.clocks import time_skew_code
from workbench.systems.ds389.scenarios.fields import Csn


class CsnDecode(Inputs):
    """Texts that may be CSNs."""

    csns: list[str]


class CsnOrder(Inputs):
    """CSNs to sort, and pairs of them to compare; null is the absent CSN."""

    csns: list[Csn | None]
    pairs: list[Annotated[list[Csn | None], Field(min_length=2, max_length=2)]]


class TimeSkew(Inputs):
    """Seconds, ahead or behind."""

    skew_seconds: list[int]


def csn_decode(given: CsnDecode) -> dict[str, Any]:
    """The parts of each CSN."""
    return {"decoded": [_parts(csn) if csn else None for csn in map(csn_or_none, given.csns)]}


def _parts(csn: str) -> dict[str, Any]:
    epoch = seconds(csn)
    return {
        "time_utc": f"{datetime.fromtimestamp(epoch, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "epoch": epoch,
        "seq": int(csn[8:12], 16),
        "rid": origin_of(csn),
        "subseq": int(csn[16:], 16),
    }


def csn_order(given: CsnOrder) -> dict[str, Any]:
    """The order of the protocol, in which no CSN is lower than any."""
    pairs = [(one or "", other or "") for one, other in given.pairs]
    return {
        "ascending": sorted(given.csns, key=lambda csn: csn or ""),
        "compare": [(one > other) - (one < other) for one, other in pairs],
    }


def time_skew_class(given: TimeSkew) -> dict[str, Any]:
    """The codes of the health check, with nsslapd-ignore-time-skew off and on."""
    return {
        "ignore_off": [time_skew_code(skew, ignored=False) for skew in given.skew_seconds],
        "ignore_on": [time_skew_code(skew, ignored=True) for skew in given.skew_seconds],
    }
