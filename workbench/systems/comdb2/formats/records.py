"""Dumps of comdb2_transaction_logs: the records of a physical log, each with its content, or with length and md5 of that.

    {9:640045}  3041  NULL  NULL  134  c832...587a  2147483904  376  1  NULL  NULL     lsn, rectype, generation, timestamp,
    length(payload), checksum_md5(payload), txnid, utxnid, logcgen, maxutxnid, childutxnid: made in the database

    {9:1014305}  2151  7  1795186774  x'0000...'  2147483662  417  1                   the same with the payload itself

The payload is not kept: of it there are its length and 64 bits of its md5. `{-1:-1}` is no record but the answer that the one
asked for is not there. Lines with tabs are read as columns (`records_fast`); what is doubtful there is read again here.
"""

from __future__ import annotations

import re
from hashlib import md5
from typing import Any

import numpy as np

from workbench import tables
from workbench.model import LINES, Format, Parsed, Piece, Reject
from workbench.safety import excerpt
from workbench.systems.comdb2.formats.gaps import Gaps
from workbench.systems.comdb2.formats.printed import Printed, Values, first_rows, why_rejected
from workbench.systems.comdb2.formats.records_fast import read_fast
from workbench.systems.comdb2.formats.values import at_seconds, number, seconds
from workbench.systems.comdb2.lsn import COMMITS, SENTINEL, lsn_of, order_key
from workbench.systems.comdb2.secrets import SECRETS

_COMMITS = sorted(COMMITS)
_FIRST = ("lsn", "rectype", "generation", "timestamp")
_NUMBERS = ("txnid", "utxnid", "logcgen", "maxutxnid", "childutxnid")
_FULL, _DIGEST = (*_FIRST, "payload", *_NUMBERS), (*_FIRST, "length", "md5", *_NUMBERS)
_CALLED = {"length(payload)": "length", "checksum_md5(payload)": "md5"}
_BLOB = re.compile(r"x'((?:[0-9A-Fa-f]{2})*)'")
_MD5 = re.compile("[0-9a-f]{32}")
_CUT = re.compile(
    rb"(?:\{[0-9]+:[0-9]+\}(?:\t(?:NULL|[0-9]+)){3}\t|\(lsn='\{[0-9]+:[0-9]+\}', rectype=[0-9]+, .{0,80}payload=)x'[0-9a-f]*\Z"
)
"""A first record so long that its end is not among the first bytes."""
_CONTENT = re.compile(rb"[0-9A-Fa-f]{24,}'?")


def _named(values: Values) -> dict[str, str | None]:
    """The row by the names of its columns: the content, or its length and md5, stands behind the first four."""
    if not isinstance(values, list):
        return {_CALLED.get(name, name): value for name, value in values.items()}
    names = _FULL if len(values) > 4 and (values[4] or "x'")[:2] == "x'" else _DIGEST
    if not len(_FIRST) + 2 - (names is _FULL) <= len(values) <= len(names):
        raise ValueError(f"{len(values)} columns instead of 8 or 11")
    return dict(zip(names, values, strict=False))


def _number(row: dict[str, str | None], name: str, reads: Any = number) -> int | None:
    value = row.get(name)
    try:
        found: int | None = None if value is None else reads(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    return found


def _content(row: dict[str, str | None]) -> tuple[int, bytes]:
    """Length and md5 of the content."""
    if row.get("payload") is not None:
        blob = _BLOB.fullmatch(row["payload"] or "")
        if not blob:
            raise ValueError("payload is no blob, x'hex digits'")
        payload = bytes.fromhex(blob[1])
        return len(payload), md5(payload, usedforsecurity=False).digest()
    length, text = _number(row, "length"), row.get("md5")
    if length is None or text is None:
        raise ValueError("a record without payload, or without its length and md5")
    if not 0 <= length < 1 << 32 or not _MD5.fullmatch(text):
        raise ValueError("length is no size, or md5 no 32 hex digits")
    return length, bytes.fromhex(text)


def record_of(values: Values) -> dict[str, Any] | None:
    """One record as a row of the table; None for the sentinel. Raises ValueError for what is neither."""
    if isinstance(values, list) and values[0] == SENTINEL and len(_FIRST) < len(values) <= len(_DIGEST):
        return None  # nothing else stands in it, so the fifth column does not tell of which shape it is
    row = _named(values)
    if row.get("lsn") == SENTINEL:
        return None
    lsn = lsn_of(row.get("lsn") or "")
    if not lsn:
        raise ValueError("lsn is no place in the log, {file:offset}")
    kind = _number(row, "rectype")
    if kind is None or kind < 0:
        raise ValueError("rectype is no kind of a record")
    length, digest = _content(row)
    generation = _number(row, "generation")
    numbers = {name: _number(row, name) for name in _NUMBERS}
    return {
        "hi": lsn[0],
        "lo": lsn[1],
        "length": length,
        "kind": kind,
        "generation": generation,
        "at": at_seconds(_number(row, "timestamp", seconds)),
        "content": int.from_bytes(digest[:8], "little", signed=True),
        "transaction": numbers["utxnid"] or None,
    }


class _Reader:
    """Reads a dump; only one in boxes needs a memory."""

    def __init__(self, apart: bool) -> None:
        self._apart, self._printed = apart, Printed(apart)

    def __call__(self, piece: Piece) -> Parsed:
        if self._apart and (found := read_fast(piece)) is not None:
            records = found
            return Parsed(len(records), [], {"records": records} if len(records) else {}, _facts(records, 0))
        rows: list[dict[str, Any]] = []
        rejects: list[Reject] = []
        count = sentinels = 0
        for at, line, values in self._printed.rows(piece):
            count += 1
            try:
                if isinstance(values, str):
                    raise ValueError(values)
                record = record_of(values)
            except ValueError as error:
                rejects.append(Reject(at, why_rejected(piece, at, line, error), _excerpt(line)))
                continue
            sentinels += record is None
            if record:
                rows.append({"offset": at, **record})
        records = tables.table("records", rows)
        return Parsed(count, rejects, {"records": records} if rows else {}, _facts(records, sentinels))


def _facts(records: Any, sentinels: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"records": len(records), "commits": 0, "sentinels": sentinels}
    if len(records):
        hi, lo, kind = (records[name].to_numpy() for name in ("hi", "lo", "kind"))
        facts["commits"] = int(np.isin(kind, _COMMITS).sum())
        low, high = int(hi.min()), int(hi.max())
        ends = order_key("", low, int(lo[hi == low].min())), order_key("", high, int(lo[hi == high].max()))
        facts["lsn"] = dict(zip(("min", "max"), ends, strict=True))
    return facts


def _excerpt(line: bytes) -> str:
    return excerpt(_CONTENT.sub(b"...", line), SECRETS)


def _fits(values: Values) -> bool:
    try:
        record_of(values)
    except ValueError:
        return False
    return True


def _is_dump(head: bytes, name: str) -> bool:
    if not head.strip():
        return "comdb2_transaction_logs" in name
    if b"{" not in head or (b"rectype" not in head and b"\t" not in head):
        return False
    if b"\n" not in head and _CUT.match(head):
        return True
    rows = first_rows(head)
    return bool(rows) and sum(map(_fits, rows)) * 2 >= len(rows)


def _in_boxes(head: bytes) -> bool:
    return head.lstrip().startswith(b"+--")


_NAME = "comdb2.transaction-logs"
_NOTHING: dict[str, Any] = {"first": None, "last": None, "records": 0, "commits": 0, "gaps": [], "duplicates": 0}

RECORDS = Format(
    _NAME,
    lambda head, name: not _in_boxes(head) and _is_dump(head, name),
    lambda: _Reader(apart=True),
    LINES,
    splittable=True,
    empty=_NOTHING,
    excerpt=_excerpt,
    evidence="log",
    detail=Gaps,
)

BOXED = Format(
    _NAME,
    lambda head, name: _in_boxes(head) and _is_dump(head, name),
    lambda: _Reader(apart=False),
    LINES,
    variant="tabular",
    empty=_NOTHING,
    excerpt=_excerpt,
    evidence="log",
    detail=Gaps,
)
"""The same with --tabular: a row says nothing without its heading, so the file is read from its beginning."""
