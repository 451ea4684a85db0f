"""What cdb2sql prints, in each of its shapes, as rows of values.

    (dbname='shopdb', host='src1', file=4)                  by default; with --coltype (CSTRING dbname='shopdb', ...)
    shopdb <tab> src1 <tab> 4                               --tabs: no heading; the number of columns tells the table
    +----------+--------+------+                            --tabular: the border tells how wide each column is
    | dbname   | host   | file |
    | 'shopdb' | 'src1' | 4    |

Only --tabular doubles a quote within a text. By default a text ends where a quote is followed by the next column, and with tabs
at a tab, so a text that holds just that cannot be told from columns: who reads the rows refuses one with other columns than
its table has. A text with a line break in it is cut there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from workbench.model import CUT_LINE, Piece, Source

Values = Mapping[str, str | None] | list[str | None]
"""By the names of their columns, or in their order where no names are printed."""

_TYPE = r"(?:INTEGER|REAL|CSTRING|BLOB|DATETIMEUS|DATETIME|INTERVALYM|INTERVALDSUS|INTERVALDS|UNKNOWN)"
_NAME = r"[A-Za-z_][\w()*., -]{0,119}?"
_HEAD = rf"(?:(?:{_TYPE}|NULL) )?{_NAME}="
_FIELD = re.compile(
    rf"(?:(?:{_TYPE}|NULL) )?(?P<name>{_NAME})="
    rf"(?:(?P<bare>NULL|-?[0-9][0-9.eE+-]*|(?P<blob>x'[0-9A-Fa-f]*')|\"(?P<time>[^\"]*)\")|'(?P<text>.*?)')"
    rf"(?=\)\Z|, {_HEAD}(?:NULL|-?[0-9]|x'|\"|'))",
    re.DOTALL,
)
_NAMED = re.compile(rf"\({_HEAD}(?:NULL|-?[0-9]|x'|\"|')")
_BORDER = re.compile(rb"\+(?:-{2,}\+)+")
_TYPED = re.compile(rf"(?:{_TYPE} |NULL (?=NULL\Z))(.*)", re.DOTALL)
_DONE = re.compile(r"\[.*\] rc 0\Z", re.DOTALL)
_FAILED = re.compile(r"\[.*\] failed with rc -?[0-9]+", re.DOTALL)
_COLTYPE = " COLTYPE"
_ROWS_SNIFFED = 20

FAILED = "the query failed: collect the table again"


class Printed:
    """Reads what one call of cdb2sql printed. Remembers of boxes the heading, and how wide they are, from piece to piece.

    With `apart` it remembers nothing: each row stands for itself, and boxes, which cannot be read so, are none.
    """

    def __init__(self, apart: bool = False) -> None:
        self._apart = apart
        self._widths: list[tuple[int, int]] = []
        self._heading: list[str] | None = None

    def rows(self, piece: Piece) -> Iterator[tuple[int, bytes, Values | str]]:
        """(place, line, values, or why it is no row) of each row. Borders, headings, empty lines and `rc 0` are none."""
        if piece.offset == 0:
            self._widths, self._heading = [], None
        at = piece.offset
        for raw in piece.data.split(b"\n"):
            here, at = at, at + len(raw) + 1
            line = raw.rstrip(b"\r")
            if line.strip() and (values := self._read(line)) is not None:
                yield here, line, values

    def _read(self, line: bytes) -> Values | str | None:
        if b"\0" in line:
            return "zero bytes in a row: the file is damaged"
        if not self._apart and _BORDER.fullmatch(line):
            if not self._widths:
                signs = [at for at, letter in enumerate(line) if letter == ord("+")]
                self._widths = [(left + 2, right - 1) for left, right in pairwise(signs)]
            return None
        if self._widths and line[:1] == b"|":
            return self._boxed(line)
        text = line.decode("utf-8", "backslashreplace")
        if _DONE.fullmatch(text):
            return None
        if _FAILED.match(text):
            return FAILED
        if self._widths:
            return "not a row of this table"
        if _NAMED.match(text):
            return self._named(text)
        fields = text.split("\t")
        typed = [_TYPED.fullmatch(field) for field in fields]
        if all(typed):
            fields = [found[1] for found in typed if found]
        return [None if field == "NULL" else field for field in fields]

    def _named(self, text: str) -> Values | str:
        values: dict[str, str | None] = {}
        at, count = 1, 0
        while found := _FIELD.match(text, at):
            text_of = next((found[one] for one in ("text", "time", "bare") if found[one] is not None), None)
            values[found["name"]] = None if found["bare"] == "NULL" else text_of
            at, count = found.end() + 2, count + 1
        if at != len(text) + 1:  # the last field ends before the bracket, and two are added
            return "broken row: a value without an end, or columns that are none"
        if count != len(values):
            return "columns that cannot be told apart: one name stands there twice"
        return values

    def _boxed(self, line: bytes) -> Values | str | None:
        if len(line) != self._widths[-1][1] + 2:
            return "another width than the heading"
        cells = [line[left:right].decode("utf-8", "backslashreplace").rstrip() for left, right in self._widths]
        if self._heading is None:
            self._heading = cells
            return None
        both = zip(self._heading, cells, strict=True)
        return {name: _unquoted(cell) for name, cell in both if not name.endswith(_COLTYPE)}


def _unquoted(cell: str) -> str | None:
    if cell == "NULL":
        return None
    if len(cell) >= 2 and cell[0] == cell[-1] == "'":
        return cell[1:-1].replace("''", "'")
    return cell[1:-1] if len(cell) >= 2 and cell[0] == cell[-1] == '"' else cell


def why_rejected(piece: Piece, at: int, line: bytes, error: ValueError) -> str:
    """Why a row is set aside; cdb2sql ends every line, so that one without its end was cut with the file."""
    return f"{CUT_LINE}: {error}" if ends_within(piece, at, line) else str(error)


def ends_within(piece: Piece, at: int, line: bytes) -> bool:
    """Whether the file ends with this line, and the line has no end of its own."""
    return piece.ended and at + len(line) >= piece.offset + len(piece.data)


@lru_cache(4)
def first_rows(head: bytes) -> tuple[Values, ...]:
    """The first rows that a file may hold, as far as its first bytes show them whole."""
    whole = head[: head.rfind(b"\n") + 1] or head
    found: list[Values] = []
    for _, _, values in Printed().rows(Piece(Source("", "", ""), whole, 0, True)):
        if not isinstance(values, str):
            found.append(values)
        if len(found) == _ROWS_SNIFFED:
            break
    return tuple(found)
