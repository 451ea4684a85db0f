"""The digest form of a dump, read as columns: the same rows as `records` reads, or None where anything is doubtful.

Only what is surely plain is read here: eleven columns, no other letters than such a dump has, each place in the log at the
beginning of its line. The brackets of places are then made blanks and their colon a tab, so that one reader of columns does
all the rest.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from workbench.model import Piece
from workbench.systems.comdb2.lsn import LARGEST
from workbench.tables import TIME, Numbers

_LETTERS = b"0123456789abcdef{}:\t\nNUL"
_TABS = bytes.maketrans(b":{}", b"\t  ")
_DIGITS = 10
_NUMBERS = ("hi", "lo", "kind", "generation", "seconds", "length")
_COLUMNS = (*_NUMBERS, "md5", "txnid", "utxnid", "logcgen", "maxutxnid", "childutxnid")
_TYPES = {name: pa.string() if name == "md5" else pa.int64() for name in _COLUMNS}
_NEVER_NULL = ("hi", "lo", "kind", "length", "md5")
_CHUNK = 1 << 20
"""What is read at once: its columns then stay in the cache of the processor, which makes a difference."""


def read_fast(piece: Piece) -> pa.Table | None:
    """The records of a piece, or None: then each line has to be looked at."""
    parts, at, size = [], 0, len(piece.data)
    while at < size:
        end = piece.data.find(b"\n", at + _CHUNK) + 1 or size
        part = _read(piece.data[at:end], piece.offset + at)
        if part is None:
            return None
        parts.append(part)
        at = end
    return pa.concat_tables(parts) if parts else None


def _read(data: bytes, offset: int) -> pa.Table | None:
    if not data.startswith(b"{") or data.translate(None, _LETTERS):
        return None
    places = _places(data)
    if places is None:
        return None
    try:
        found = csv.read_csv(
            pa.BufferReader(data.translate(_TABS)),
            csv.ReadOptions(column_names=_COLUMNS, block_size=len(data) + 1, use_threads=False),
            csv.ParseOptions(delimiter="\t", quote_char=False, double_quote=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=_TYPES, null_values=["NULL"], strings_can_be_null=True, check_utf8=False),
        )
    except pa.ArrowInvalid:
        return None
    if len(found) != len(places) or any(found[name].null_count for name in _NEVER_NULL):
        return None
    content = _content(found["md5"])
    if content is None or not _possible(found):
        return None
    transaction = found["utxnid"]
    return pa.table(
        {
            "offset": places + offset,
            **{name: found[name] for name in ("hi", "lo", "length", "kind", "generation")},
            "at": pc.multiply(found["seconds"], 1_000_000).cast(TIME),
            "content": content,
            "transaction": pc.if_else(pc.equal(transaction, 0), pa.scalar(None, pa.int64()), transaction),
        }
    )


def _places(data: bytes) -> Numbers | None:
    """Where each line begins; None unless each has its `{digits:digits}` there, and no other bracket or colon."""
    letters = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.append(0, ends[:-1] + 1)
    colons, closes = np.flatnonzero(letters == ord(":")), np.flatnonzero(letters == ord("}"))
    if not len(starts) == len(colons) == len(closes) == data.count(b"{") or bool((closes[-1:] + 1 >= len(data)).any()):
        return None
    whole = (letters[starts] == ord("{")) & (letters[closes + 1] == ord("\t")) & (closes < ends)
    file, place = colons - starts - 1, closes - colons - 1
    whole &= (file > 0) & (file <= _DIGITS) & (place > 0) & (place <= _DIGITS)
    if not bool(whole.all()):
        return None
    # A tab between the brackets would be one column more: the reader of columns refuses such a line.
    return starts


def _content(md5: pa.ChunkedArray) -> Numbers | None:
    """The first eight bytes of each md5 as one number; None if any is not 32 hex digits."""
    column = md5.combine_chunks()
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    if not bool((np.diff(ends) == 32).all()):
        return None
    letters = np.frombuffer(column.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    if bool(((letters > ord("9")) & (letters < ord("a"))).any()):
        return None
    # Of the letters that a dump has, only digits and a to f are left: those have 64 set, and count on from 9.
    pairs = letters.reshape(-1, 32)[:, :16]
    nibbles = (pairs & 15) + 9 * (pairs >> 6)
    half = (nibbles[:, ::2] << 4) | nibbles[:, 1::2]
    return half.view("<i8").ravel()


def _possible(found: pa.Table) -> bool:
    """True if no number is beyond what one record of a log can have."""
    below = {"hi": LARGEST, "lo": LARGEST, "length": (1 << 32) - 1, "seconds": (1 << 36) - 1}
    return all((pc.max(found[name]).as_py() or 0) <= most for name, most in below.items())
