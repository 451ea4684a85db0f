"""All lines of a piece of LDIF at once, as numpy arrays: where they begin, where their values stand, to which record.

Written for exports of millions of entries: no Python code runs per line. What is unusual is not decided here but
marked: the exact reader (`ldif`) reads such records again, one by one, and has the last word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.model import Piece
from workbench.systems.ds389.formats import ldif

Numbers = np.ndarray[Any, Any]

_NEWLINE, _BLANK, _COMMENT, _COLON, _LESS = 10, 32, 35, 58, 60


class Lines:
    """The lines of a piece that say something: unfolded, without comments, `version:` and empty lines.

    text, bytes   the piece with LF line ends and unfolded lines, and the same as an array
    start, end    of every line in the text
    colon, value  of every line: where its colon stands and where its value begins
    packed        is the value base64?
    first         is it the first line of its record, the one with the name?
    record        number of its record
    offset        of every record: the first byte of its block in the piece's data
    unusual       of every record: leave it to the exact reader
    cut           the file ends inside the last record
    """

    def __init__(self, piece: Piece) -> None:
        newlines = self._unfold(piece)
        data = self.bytes = np.frombuffer(self.text, np.uint8)
        start, end = newlines[:-1] + 1, newlines[1:]
        empty = end == start
        block = np.cumsum(empty[:-1] & ~empty[1:])
        start, end = start[1:], end[1:]
        said = ~empty[1:] & (data[start] != _COMMENT)
        self._keep(start[said], end[said], block[said] - 1)
        candidates = np.flatnonzero(self.first & (data[self.start] == ord("v"))).tolist()
        versions = [line for line in candidates if self.text.startswith(b"version:", int(self.start[line]))]
        if versions:
            self._keep(*(np.delete(array, versions) for array in (self.start, self.end, self._block)))
        blocks = self._block[self.first]
        self.offset, self._behind = self._places[blocks], self._places[blocks + 1]
        self.unusual = self._undecodable()
        self.cut = self._open and len(blocks) > 0 and int(blocks[-1]) == len(self._places) - 2
        if self.cut:
            self.unusual[-1] = True
        self._find_values()

    def doubt(self, lines: Numbers) -> None:
        """Leave the records of these lines (numbers, or true and false) to the exact reader."""
        self.unusual[self.record[lines]] = True

    def extent(self, record: int) -> tuple[int, int]:
        """(start, end) of a record in the piece's data, with the empty lines behind it."""
        return int(self.offset[record]), int(self._behind[record])

    def _unfold(self, piece: Piece) -> Numbers:
        """Make the text; returns its newlines, of which two stand in front and two behind."""
        data = piece.data
        mark = ldif.BYTE_ORDER_MARK if piece.offset == 0 and data.startswith(ldif.BYTE_ORDER_MARK) else b""
        text = b"\n\n" + data[len(mark) :] if mark else b"\n\n" + data
        removed = np.empty(0, np.int64)
        if b"\r\n" in text:
            raw = np.frombuffer(text, np.uint8)
            removed = np.flatnonzero((raw[:-1] == 13) & (raw[1:] == _NEWLINE))
            removed -= np.arange(len(removed))
            text = text.replace(b"\r\n", b"\n")
        self._open = piece.ended and not text.endswith(b"\n\n")
        text += b"\n\n"
        folded = np.frombuffer(text, np.uint8)
        newlines = np.flatnonzero(folded == _NEWLINE)
        behind_newline = np.diff(newlines) == 1
        starts = newlines[1:-1][behind_newline[:-1] & ~behind_newline[1:]] + 1
        places = np.append(starts, len(text) - 2)
        self._places = places + np.searchsorted(removed, places) - 2 + len(mark)
        fold = folded[np.minimum(newlines + 1, len(folded) - 1)] == _BLANK
        if (stray := fold[1:] & behind_newline).any():
            # A line that continues nothing must not flow into the block before it.
            fold[1:] &= ~stray
            text = text.replace(b"\n\n ", b"\n\n\x01")
        self.text = text.replace(b"\n ", b"")
        unfolded: Numbers = (newlines - 2 * np.cumsum(fold))[~fold]
        return unfolded

    def _keep(self, start: Numbers, end: Numbers, block: Numbers) -> None:
        self.start, self.end, self._block = start, end, block
        self.first = np.diff(block, prepend=-1) > 0
        self.record = np.cumsum(self.first) - 1

    def _undecodable(self) -> Numbers:
        """Of every record: does it hold bytes that are not UTF-8?"""
        bad = np.zeros(int(self.first.sum()), bool)
        try:
            if self.text.isascii() or self.text.decode():
                return bad
        except UnicodeDecodeError:
            pass
        starts = self.start[self.first]
        ends = np.append(starts[1:], len(self.text))
        high = np.searchsorted(starts, np.flatnonzero(self.bytes > 127), "right") - 1
        for record in np.unique(high[high >= 0]):
            try:
                self.text[starts[record] : ends[record]].decode()
            except UnicodeDecodeError:
                bad[record] = True
        return bad

    def _find_values(self) -> None:
        data = self.bytes
        colons = np.append(np.flatnonzero(data == _COLON), len(data))
        colon = colons[np.searchsorted(colons, self.start)]
        self.doubt((colon >= self.end) | (colon == self.start))
        self.colon = np.minimum(colon, self.end)
        behind = data[np.minimum(self.colon + 1, self.end)]
        self.packed = behind == _COLON
        value = np.minimum(self.colon + 1 + self.packed, self.end)
        self.value = value + (data[value] == _BLANK)
        self.doubt((data[self.value] == _BLANK) | (behind == _LESS))
        heads = self.start[self.first]
        named = (data[heads] | 32 == ord("d")) & (data[heads + 1] | 32 == ord("n"))
        self.unusual |= ~named | (self.colon[self.first] - heads != 2)
        if b"\0" in self.text:
            at = np.searchsorted(self.start, np.flatnonzero(data == 0), "right") - 1
            self.doubt(at[at >= 0])
