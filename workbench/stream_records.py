"""Where the rows of transactions stand in the log that holds them, by the evidence, which holds no values itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.by_stream import Streams
from workbench.engine.assembly import READ, message_of
from workbench.engine.rows import rows_where
from workbench.rules.segments import Stream, kept_pieces, transactions

Record = tuple[int, int, tuple[int, ...], int]
"""First byte of a record, bytes of its message, which of its statements count, and the hash of the message."""


def records_of(streams: Streams, server: str, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Record]]:
    """Position -> the records of these committed transactions in the log of a server, in the order of the transaction.

    `rows` are their rows of the table `transactions` (`StreamLog.rows_of`).
    """
    one = next(one.log for one in streams.shown.replicas if one.server == server and one.log)
    where = pc.field("position").isin(pa.array(list(rows), pa.string()))
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for segment in rows_where(streams.case.parts("segments", one), READ, where).to_pylist():
        position = segment["position"]
        if rows[position]["offset"] <= segment["offset"] <= rows[position]["last"]:
            found.setdefault(position, {}).setdefault(segment["offset"], []).append(segment)
    return {position: _records(of) for position, of in found.items()}


def _records(found: Mapping[int, Sequence[dict[str, Any]]]) -> list[Record]:
    rows = {at: sorted(of, key=lambda row: row["number"] or 0) for at, of in sorted(found.items())}
    (one,) = transactions([message_of(list(of), 0) for of in rows.values()], Stream())
    kept: dict[int, list[int]] = {}
    for message, piece in kept_pieces(one.counting):
        told = [row for row in rows[message.offset] if row["operation"]]
        kept.setdefault(message.offset, []).append(told[piece]["number"])
    return [(at, rows[at][0]["length"], tuple(numbers), rows[at][0]["content"]) for at, numbers in kept.items()]
