"""A table as cdb2sql prints it, made a format: its columns tell it, each row is read by itself, `inspect` shows the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from workbench import tables
from workbench.boundary import excerpt
from workbench.model import LINES, Format, Parsed, Piece, Reject
from workbench.systems.comdb2.formats.printed import Printed, Values, first_rows
from workbench.systems.comdb2.secrets import SECRETS


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
    """

    layouts: tuple[tuple[Column, ...], ...]
    made: Made

    def read(self, values: Values) -> Row:
        """The row, with numbers as numbers; raises ValueError where it is none of this table."""
        if isinstance(values, dict):
            names = [tuple(column.name for column in layout) for layout in self.layouts]
            for layout, of in zip(self.layouts, names, strict=True):
                if set(of) <= values.keys():
                    return {column.name: column.of(values[column.name]) for column in layout}
            lacking = min((set(of) - values.keys() for of in names), key=len)
            raise ValueError(f"a row without the column {', '.join(sorted(lacking))}")
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
        """True if most of the first rows are rows of this table."""
        rows = first_rows(head)
        return bool(rows) and sum(self._reads(row) for row in rows) * 2 > len(rows)

    def _reads(self, values: Values) -> bool:
        try:
            self.read(values)
        except ValueError:
            return False
        return True


class Reader:
    """Reads one such table, piece by piece."""

    def __init__(self, listing: Listing) -> None:
        self._listing, self._printed = listing, Printed()

    def __call__(self, piece: Piece) -> Parsed:
        found: dict[str, list[Row]] = {}
        rejects, count = [], 0
        for at, line, values in self._printed.rows(piece):
            count += 1
            try:
                if isinstance(values, str):
                    raise ValueError(values)
                made = list(self._listing.made(self._listing.read(values), piece.source.server))
            except ValueError as error:
                rejects.append(Reject(at, str(error), excerpt(line, SECRETS)))
                continue
            for name, row in made:
                found.setdefault(name, []).append({"offset": at, **row})
        return Parsed(count, rejects, {name: tables.table(name, rows) for name, rows in found.items()})


class Rows:
    """The rows of a table as `inspect` shows them: under the names of their columns, numbers as numbers, all else as text."""

    def __init__(self, listing: Listing) -> None:
        self._listing, self._printed = listing, Printed()
        self._rows: list[Row] = []

    def add(self, piece: Piece, parsed: Parsed) -> None:
        """The rows of one more piece."""
        self._rows += self._good(piece)

    def detail(self) -> Row:
        """All of them."""
        return {"rows": self._rows}

    def _good(self, piece: Piece) -> Iterator[Row]:
        for _, _, values in self._printed.rows(piece):
            try:
                if not isinstance(values, str):
                    row = self._listing.read(values)
                    list(self._listing.made(row, piece.source.server))
                    yield row
            except ValueError:
                continue  # the reader has rejected it


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
        detail=lambda: Rows(listing),
    )
