"""How long a changelog keeps changes, by the settings of its configuration entry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

_DURATION = re.compile(r"([0-9]{1,9}) ?([smhdw]?)", re.IGNORECASE)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NAMES = (("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


class TrimSettings(NamedTuple):
    """What a changelog is trimmed by. `age`, `entries`: None where there is no such limit."""

    age: timedelta | None
    entries: int | None

    @property
    def limits(self) -> str:
        """The limits in words; only for a changelog that is trimmed."""
        told = [f"{spelt_out(self.age)} (nsslapd-changelogmaxage)"] if self.age else []
        told += [f"{self.entries:,} changes (nsslapd-changelogmaxentries)"] if self.entries else []
        return " or ".join(told)


def trim_settings(written: Mapping[str, str | None]) -> TrimSettings | None:
    """The settings out of `max_age` and `max_entries` as written; None: they do not tell.

    They are written in a way that is not known; or neither is there, and nothing (`whole`) tells that it would be shown.

    >>> trim_settings({"max_age": "7d"})
    TrimSettings(age=datetime.timedelta(days=7), entries=None)
    >>> trim_settings({"max_age": "-1", "max_entries": "0"})
    TrimSettings(age=None, entries=None)
    >>> trim_settings({"whole": "yes"}), trim_settings({})
    (TrimSettings(age=None, entries=None), None)
    """
    if not any(written.get(key) for key in ("max_age", "max_entries", "whole")):
        return None
    age, entries = ((written.get(key) or "0").strip() for key in ("max_age", "max_entries"))
    found = _DURATION.fullmatch("0" if age == "-1" else age)
    if not found or not re.fullmatch(r"-1|[0-9]{1,12}", entries):
        return None
    seconds = int(found[1]) * _UNITS[found[2].lower()]
    return TrimSettings(timedelta(seconds=seconds) if seconds else None, max(int(entries), 0) or None)


def spelt_out(span: timedelta) -> str:
    """A span in the largest unit that it is a whole number of.

    >>> spelt_out(timedelta(days=7)), spelt_out(timedelta(hours=36))
    ('7 days', '36 hours')
    """
    seconds = int(span.total_seconds())
    name, size = next((name, size) for name, size in _NAMES if seconds % size == 0)
    count = seconds // size
    return f"{count} {name if count != 1 else name[:-1]}"
