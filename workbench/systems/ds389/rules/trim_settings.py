"""How long a changelog keeps changes, by the settings of its configuration entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

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


def settings_in(
    facts: Iterable[Mapping[str, Mapping[str, Any]]], suffix: str | None, several: bool
) -> TrimSettings | None:
    """The settings of the changelog of a suffix out of what the files of a server tell; None: they do not, or not whose they are.

    several  the server holds several suffixes
    """
    found: dict[str, Mapping[str, str | None]] = {}
    backends: dict[str, str] = {}
    for one in facts:
        found |= one.get("trimming", {})
        backends |= one.get("backends", {})
    mine = [about for name, about in found.items() if backends.get(name) == suffix]
    if not mine and "" in found:
        mine = [found[""]]
    elif not (mine or backends or several):
        mine = [*found.values()]
    return trim_settings(mine[0]) if len(mine) == 1 else None


def may_be_trimmed(settings: TrimSettings | None, records: int, age: timedelta | None) -> bool:
    """True if changes that a changelog once had may have been trimmed, by its settings; `age`: how old it may be.

    >>> may_be_trimmed(TrimSettings(timedelta(days=7), None), 10, timedelta(hours=2))
    False
    >>> may_be_trimmed(TrimSettings(timedelta(days=7), 10), 10, timedelta(hours=2))
    True
    """
    if settings is None:
        return False
    return bool((settings.entries and records >= settings.entries) or (settings.age and age and age > settings.age))


def spelt_out(span: timedelta) -> str:
    """A span in the largest unit that it is a whole number of.

    >>> spelt_out(timedelta(days=7)), spelt_out(timedelta(hours=36))
    ('7 days', '36 hours')
    """
    seconds = int(span.total_seconds())
    name, size = next((name, size) for name, size in _NAMES if seconds % size == 0)
    count = seconds // size
    return f"{count} {name if count != 1 else name[:-1]}"
