"""Twins of missing changes: the same modification of the same entry under another position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from workbench.engine.change_fingerprints import twin_numbers
from workbench.rules.verdicts import Modification, Proving
from workbench.tables import Numbers


class MissedChanges:
    """Changes of which a twin is looked for, by entry and by what they did."""

    def __init__(self, proving: Proving) -> None:
        self._proving = proving
        self._rows: list[Mapping[str, Any]] = []
        self._whole: dict[tuple[str, str], set[str]] = {}
        self._values: dict[tuple[str, str], set[str]] = {}
        self._told: set[str] = set()
        """Those of which some log tells what was done to the values."""

    def _modification(self, row: Mapping[str, Any]) -> Modification | None:
        if not row["entry"]:
            return None
        return self._proving.modification(row["operation"] or "", row["body"] or "", row["rename"] or "")

    def add(self, key: str, row: Mapping[str, Any]) -> None:
        """A change as one log has it."""
        found = self._modification(row)
        if found is None:
            return
        self._rows.append(row)
        self._values.setdefault((row["entry"], found.values), set()).add(key)
        if found.whole is not None:
            self._whole.setdefault((row["entry"], found.whole), set()).add(key)
            self._told.add(key)

    def numbers(self) -> tuple[Numbers, pa.Array]:
        """The numbers by which twins are found, ascending, each with the entry that it is of."""
        rows = self._rows
        return twin_numbers([row["entry"] for row in rows], [row["body"] or "" for row in rows], self._proving)

    def twins_of(self, row: Mapping[str, Any]) -> set[str]:
        """Which of them did the same. Where either tool does not tell what was done to the values, these alone decide."""
        found = self._modification(row)
        if found is None:
            return set()
        same_values = self._values.get((row["entry"], found.values), set())
        if found.whole is None:
            return same_values
        return self._whole.get((row["entry"], found.whole), set()) | (same_values - self._told)
