"""Clocks that disagree: CSNs are made from them, and a peer's clock that is ahead pulls the own one forward."""

from __future__ import annotations

from datetime import timedelta

_HOUR, _DAY = 3600, 86400

_CODES = ((24 * _HOUR, "DSSKEWLE0003"), (12 * _HOUR, "DSSKEWLE0002"), (6 * _HOUR, "DSSKEWLE0001"))
_CODES_IGNORING = ((365 * _DAY, "DSSKEWLE0004"),)

HEALTH_LEVELS = ((24 * _HOUR, "error"), (12 * _HOUR, "warning"), (6 * _HOUR, "info"))
"""Seconds of skew -> how grave the health check takes it. From a day on servers refuse each other (unless told otherwise)."""

FURTHEST = timedelta(seconds=_DAY)
"""So far ahead of its clock a server makes a CSN, or accepts one; nsslapd-ignore-time-skew lifts the limit."""


def time_skew_code(skew: int, ignored: bool) -> str | None:
    """What the health check says of a skew of so many seconds, forward or back; `ignored`: nsslapd-ignore-time-skew is on."""
    return next((code for limit, code in (_CODES_IGNORING if ignored else _CODES) if abs(skew) >= limit), None)
