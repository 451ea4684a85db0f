"""Samples of Comdb2: what was collected of real nodes, what cdb2sql makes of a table in each of its shapes, and made-up logs."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import md5
from pathlib import Path
from typing import Any

from workbench.intake.files import CarefulReader
from workbench.model import Format, Parsed, Piece, Source
from workbench.systems import format_with

TIERS = Path(__file__).parent / "incidents" / "comdb2-tiers"
SAMPLES = Path(__file__).parent / "samples" / "comdb2"
SNAPSHOTS = sorted(path.name for path in TIERS.iterdir() if path.is_dir())

TABS, CLASSIC, BOXES = "tabs", "classic", "tabular"
SHAPES = [(shape, typed) for shape in (TABS, CLASSIC, BOXES) for typed in (False, True)]


@cache
def sample(name: str) -> bytes:
    """A recorded dump."""
    return gzip.decompress((SAMPLES / f"{name}.gz").read_bytes())


def read(kind: str | Format, data: bytes, server: str = "shopdb@src1", pieces: Sequence[int] = ()) -> list[Parsed]:
    """What the reader makes of the data, cut at these places, which must be ends of lines."""
    kind = format_with(kind) if isinstance(kind, str) else kind
    reader, ends = CarefulReader(kind), sorted({*pieces, len(data)})
    source = Source("file", "snapshot", server)
    return [
        reader(Piece(source, data[start:end], start, end == len(data)))
        for start, end in zip([0, *ends], ends, strict=False)
        if start < end or not data
    ]


def rows_in(parsed: list[Parsed], table: str) -> list[dict[str, Any]]:
    """The rows of one table, of all pieces."""
    return [row for one in parsed if table in one.tables for row in one.tables[table].to_pylist()]


@dataclass(frozen=True)
class When:
    """A time as the server prints it."""

    text: str


def printed(names: Sequence[str], rows: Sequence[Sequence[Any]], shape: str, typed: bool = False) -> bytes:
    """A table as cdb2sql prints it: text, When, bytes, whole numbers and None."""
    if shape == BOXES:
        return _boxes(names, rows, typed)
    lines = []
    for row in rows:
        fields = []
        for name, value in zip(names, row, strict=True):
            kind = f"{_type(value)} " if typed else ""
            if shape == TABS:
                fields.append(kind + (value if isinstance(value, str) else _plain(value)))
            else:  # quotes within a text are not doubled here
                fields.append(f"{kind}{name}={repr_of(value)}")
        lines.append("\t".join(fields) if shape == TABS else f"({', '.join(fields)})")
    return "".join(f"{line}\n" for line in lines).encode()


def repr_of(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, When):
        return f'"{value.text}"'
    return f"x'{value.hex()}'" if isinstance(value, bytes) else str(value)


def _type(value: Any) -> str:
    kinds = {str: "CSTRING", int: "INTEGER", bytes: "BLOB", When: "DATETIME"}
    return "NULL" if value is None else kinds[type(value)]


def _boxes(names: Sequence[str], rows: Sequence[Sequence[Any]], typed: bool) -> bytes:
    heading = [cell for name in names for cell in ([f"{name} COLTYPE", name] if typed else [name])]
    cells = [[name.encode() for name in heading]]
    for row in rows:
        texts = []
        for value in row:
            text = "'{}'".format(value.replace("'", "''")) if isinstance(value, str) else _plain(value)
            texts += [_type(value), text] if typed else [text]
        cells.append([text.encode() for text in texts])
    widths = [max(len(row[at]) for row in cells) for at in range(len(heading))]
    border = b"+" + b"+".join(b"-" * (width + 2) for width in widths) + b"+\n"
    lines = [
        b"|" + b"".join(b" %s |" % cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + b"\n"
        for row in cells
    ]
    return border + lines[0] + border + b"".join(lines[1:]) + (border if rows else b"")


RECORD = ("lsn", "rectype", "generation", "timestamp", "payload", "txnid", "utxnid", "logcgen")
DIGEST = (*RECORD[:4], "length(payload)", "checksum_md5(payload)", *RECORD[5:], "maxutxnid", "childutxnid")

Record = tuple[int, int, int, bytes]
"""File, place, kind, payload."""


def full(record: Record) -> list[Any]:
    """The record as `select *` gives it."""
    file, place, kind, payload = record
    commit = kind in (151, 1151, 2151, 3151)
    return [
        f"{{{file}:{place}}}",
        kind,
        4 if commit else None,
        1795186774 if commit else None,
        payload,
        2147483648,
        place,
        1,
    ]


def digest(record: Record) -> list[Any]:
    """The record with length and md5 in place of its payload."""
    row = full(record)
    payload = row[4]
    return [*row[:4], len(payload), md5(payload, usedforsecurity=False).hexdigest(), *row[5:], None, None]
