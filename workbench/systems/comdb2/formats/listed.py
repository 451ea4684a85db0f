"""A table as cdb2sql prints it, made a format: its columns tell it, each row is read by itself, `inspect` shows the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from workbench import tables
from workbench.model import LINES, Format, Parsed, Piece, Reject
from workbench.safety import excerpt
from workbench.systems.comdb2.formats.printed import Printed, Values, ends_within, first_rows, why_rejected
from workbench.systems.comdb2.secrets import SECRETS

_LONGEST_NAMES = 100
_HEAD = 1 << 16


@dataclass(frozen=True)
class Column:
    """A column: its name, what reads its text, or raises ValueError, and whether it may be null."""

    name: str
    reads: Callable[[str], Any]
    null: bool = False

    def of(self, text: str | None) -> Any:
        """What the text says."""
        if text is None:
            if not self.null:
                raise ValueError(f"{self.name} is null")
            return None
        try:
            return self.reads(text)
        except ValueError as error:
            raise ValueError(f"{self.name} {error}") from None


Row = dict[str, Any]
Made = Callable[[Row, str], Iterable[tuple[str, Row]]]
"""(row as shown, server of the file) -> (evidence table, row of it). Raises ValueError for a row that says nothing possible."""


@dataclass(frozen=True)
class Listing:
    """One kind of table.

    layouts  the lists of columns that it may have, in their order; rows without names are told by their number and shape
    made     what its rows are in the evidence
    kept     a row as read -> what may be kept of it, where values may be secret
    alike    all rows of a file have the same columns, so that a text with a tab in it cannot pass for two columns
    """

    layouts: tuple[tuple[Column, ...], ...]
    made: Made
    kept: Callable[[Row], Row] = dict
    alike: bool = True

    def read(self, values: Values) -> Row:
        """The row, with numbers as numbers; raises ValueError where it is none of this table."""
        if not isinstance(values, list):
            for layout in self.layouts:
                if {column.name for column in layout} == values.keys():
                    return {column.name: column.of(values[column.name]) for column in layout}
            near = min(({column.name for column in layout} ^ values.keys() for layout in self.layouts), key=len)
            raise ValueError(f"columns that lack or are too many: {', '.join(sorted(near))[:_LONGEST_NAMES]}")
        why: ValueError | None = None
        for layout in self.layouts:
            if len(layout) == len(values):
                try:
                    return {column.name: column.of(value) for column, value in zip(layout, values, strict=True)}
                except ValueError as error:
                    why = why or error
        raise why or ValueError(
            f"{len(values)} columns instead of {' or '.join(str(len(layout)) for layout in self.layouts)}"
        )

    def fits(self, head: bytes) -> bool:
        """True if at least half of the first rows are rows of this table."""
        rows = first_rows(head)
        return bool(rows) and len(self._good(head)) * 2 >= len(rows)

    def usual(self, head: bytes) -> tuple[str, ...]:
        """The columns that most of the first rows have: one of them may be damaged."""
        counts = Counter(tuple(row) for row in self._good(head)).most_common(1)
        return counts[0][0] if counts else ()

    def _good(self, head: bytes) -> list[Row]:
        good = []
        for values in first_rows(head):
            with suppress(ValueError):
                good.append(self.read(values))
        return good


@dataclass
class _Told:
    """One row: its place, its line, and what it says, or why it says nothing."""

    at: int
    line: bytes
    row: Row
    made: list[tuple[str, Row]]
    why: str = ""


class _Rows:
    """The rows of one file, piece by piece."""

    def __init__(self, listing: Listing) -> None:
        self._listing, self._printed = listing, Printed()
        self._usual: tuple[str, ...] = ()

    def read(self, piece: Piece) -> Iterator[_Told]:
        if piece.offset == 0:
            self._usual = self._listing.usual(piece.data[:_HEAD])
        for at, line, values in self._printed.rows(piece):
            try:
                if isinstance(values, list) and at and ends_within(piece, at, line) and not line.endswith(b'"'):
                    raise ValueError("nothing tells whether its last value is whole")
                row = self._listing.kept(self._read(values))
                yield _Told(at, line, row, list(self._listing.made(row, piece.source.server)))
            except ValueError as error:
                yield _Told(at, line, {}, [], why_rejected(piece, at, line, error))

    def _read(self, values: Values | str) -> Row:
        if isinstance(values, str):
            raise ValueError(values)
        row = self._listing.read(values)
        if self._listing.alike and tuple(row) != self._usual:
            raise ValueError("other columns than most rows have")
        return row


class Reader:
    """Reads one such table, piece by piece."""

    def __init__(self, listing: Listing) -> None:
        self._rows = _Rows(listing)

    def __call__(self, piece: Piece) -> Parsed:
        found: dict[str, list[Row]] = {}
        rejects, count = [], 0
        for told in self._rows.read(piece):
            count += 1
            if told.why:
                rejects.append(Reject(told.at, told.why, excerpt(told.line, SECRETS)))
            for name, row in told.made:
                found.setdefault(name, []).append({"offset": told.at, **row})
        return Parsed(count, rejects, {name: tables.table(name, rows) for name, rows in found.items()})


class Shown:
    """The rows of a table as `inspect` shows them: under the names of their columns, numbers as numbers, all else as text."""

    def __init__(self, listing: Listing) -> None:
        self._rows = _Rows(listing)
        self._shown: list[Row] = []

    def add(self, piece: Piece, parsed: Parsed) -> None:
        """The rows of one more piece."""
        self._shown += [told.row for told in self._rows.read(piece) if not told.why]

    def detail(self) -> Row:
        """All of them."""
        return {"rows": self._shown}


def listing_format(
    name: str, listing: Listing, sniff: Callable[[bytes, str], bool] | None = None, variant: str = "", empty: str = ""
) -> Format:
    """The format of such a table. `empty` is a part of the name that a file without rows needs to be taken for it."""

    def is_one(head: bytes, called: str) -> bool:
        if not head.strip():
            return bool(empty) and empty in called
        return listing.fits(head) and (sniff is None or sniff(head, called))

    return Format(
        name,
        is_one,
        lambda: Reader(listing),
        LINES,
        variant=variant,
        empty={"rows": []},
        excerpt=lambda unit: excerpt(unit, SECRETS),
        detail=lambda: Shown(listing),
    )
