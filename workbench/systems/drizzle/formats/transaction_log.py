"""transaction.log: records of transactions back to back, without a beginning or an end of the file's own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from workbench.model import FRAMES, Format, Piece
from workbench.systems.drizzle.formats.framing import HEAD, SUMS, TO_THE_END, TORN, TRANSACTION, frames, next_good
from workbench.systems.drizzle.formats.messages import open_form
from workbench.systems.drizzle.formats.segments import read

_NAME = "transaction.log"


def _is_log(head: bytes, name: str) -> bool:
    """True where the first record has the context of a transaction, or a whole good record stands behind damage."""
    if not head:
        return name == _NAME
    if len(head) < HEAD.size:
        return False
    if HEAD.unpack_from(head)[0] == TRANSACTION and _has_context(head[HEAD.size :]):
        return True
    return b"\0" in head and next_good(head) < len(head)


def _has_context(body: bytes) -> bool:
    if len(body) < 2 or body[0] != 0x0A or len(body) < 2 + body[1]:
        return False
    try:
        return open_form("TransactionContext").FromString(body[2 : 2 + body[1]]).IsInitialized()
    except DecodeError:
        return False


def _records(piece: Piece) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(the records of a piece, the stretches where framing is lost), as the contract has them."""
    records, lost = [], []
    for at, end, state in piece.frames:
        if state in SUMS and piece.data:
            kind, length = HEAD.unpack_from(piece.data, at - piece.offset)
            stored = int.from_bytes(piece.data[end - piece.offset - 4 : end - piece.offset], "little")
            about = {"offset": at, "entry_type": kind, "length": length}
            records.append({**about, "crc_stored": stored, "crc": state})
        elif state not in SUMS and not state.startswith(TORN):
            behind = None if state.endswith(TO_THE_END) else end
            lost.append({"damaged_offset": at, "next_good_offset": behind})
    return records, lost


def _final_rows(path: Path, transactions: Iterable[Iterable[tuple[int, int, tuple[int, ...], int]]]) -> Any:
    from workbench.systems.drizzle.rows import Place, final_rows, reading

    with reading(path) as log:
        return final_rows(log.operations(Place(*place) for place in places) for places in transactions)


TRANSACTION_LOG = Format(
    "drizzle.transaction-log",
    _is_log,
    lambda: read,
    FRAMES,
    splittable=True,
    frames=frames,
    streams=True,
    records=_records,
    final_rows=_final_rows,
    evidence="log",
    is_log=True,
)
