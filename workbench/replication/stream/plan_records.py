"""Where the rows of transactions stand in the log that holds them, by the evidence, which holds no values itself."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.assembly import READ, message_of
from workbench.engine.selective_read import rows_where
from workbench.replication.stream.diagnosis.gone_from_log import reached_before as reached_in
from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.rules.segments import COMMITTED, Stream, kept_pieces, transactions

Record = tuple[int, int, tuple[int, ...], int]
"""First byte of a record, bytes of its message, which of its statements count, and the hash of the message."""


def records_of(
    streams: Streams, server: str, rows: Mapping[str, Mapping[str, Any]], without: Collection[str] = ()
) -> dict[str, list[Record]]:
    """Position -> the records of these committed transactions in the log of a server, in the order of the transaction.

    `rows` are their rows of the table `transactions` (`StreamLog.rows_of`); statements on the tables `without` do not count.
    """
    one = next(one.log for one in streams.shown.replicas if one.server == server and one.log)
    where = pc.field("position").isin(pa.array(list(rows), pa.string()))
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for segment in rows_where(streams.case.parts("segments", one), READ, where).to_pylist():
        position = segment["position"]
        if rows[position]["offset"] <= segment["offset"] <= rows[position]["last"]:
            found.setdefault(position, {}).setdefault(segment["offset"], []).append(segment)
    return {position: _records(of, without) for position, of in found.items()}


def _records(found: Mapping[int, Sequence[dict[str, Any]]], without: Collection[str]) -> list[Record]:
    rows = {at: sorted(of, key=lambda row: row["number"] or 0) for at, of in sorted(found.items())}
    (one,) = transactions([message_of(list(of), 0) for of in rows.values()], Stream())
    kept: dict[int, list[int]] = {}
    for message, piece in kept_pieces(one.counting):
        told = [row for row in rows[message.offset] if row["operation"]]
        if told[piece]["target"] not in without:
            kept.setdefault(message.offset, []).append(told[piece]["number"])
    return [(at, rows[at][0]["length"], tuple(numbers), rows[at][0]["content"]) for at, numbers in kept.items()]


def committed_between(
    streams: Streams, server: str, origin: str, after: int, upto: int, tables: Iterable[str] | None
) -> dict[str, dict[str, Any]]:
    """Position -> row and `place` of what the log of a server has committed between two places, of these tables alone.

    What defines tables counts for all of them; None: of all tables.
    """
    log = streams.logs[server]
    place = log.order
    where = (pc.field("origin") == origin) & (pc.field("outcome") == COMMITTED)
    where &= (pc.field(place) > after) & (pc.field(place) <= upto)
    rows = rows_where(log.parts, list(dict.fromkeys(["position", "offset", "last", "rows", "ddl", place])), where)
    chosen = rows["ddl"].is_valid() if tables is not None else rows["position"].is_valid()
    for table in tables or ():
        chosen = pc.or_(chosen, pc.fill_null(pc.match_substring(rows["rows"], json.dumps(table)), False))
    return {row["position"]: row | {"place": row[place]} for row in rows.filter(chosen).to_pylist()}


def committed_elsewhere(
    streams: Streams, server: str, origin: str, after: int, tables: Iterable[str] | None
) -> dict[str, dict[str, Any]]:
    """The same of a log behind a place of its own: of other origins, and of this one what the log of the source has not whole."""
    log, wanted = streams.logs[server], frozenset(tables or ())
    rows = [
        row
        for row in log.commits(after)
        if tables is None or row["ddl"] or wanted & json.loads(row["rows"] or "{}").keys()
    ]
    source = streams.source_of(origin)
    mine = [row["position"] for row in rows if row["origin"] == origin]
    there = streams.logs[source].rows_of(origin, mine) if source else {}
    # Wherever it stands: what the log of the source lost, in whole or in part, was done all the same.
    whole = {position for position, row in there.items() if row["outcome"] == COMMITTED}
    return {row["position"]: row | {"place": row[log.order]} for row in rows if row["position"] not in whole}


def not_understood(streams: Streams, server: str, positions: Iterable[str]) -> frozenset[str]:
    """Which of these transactions hold, in the log of a server, what its reader does not know."""
    one = next(one.log for one in streams.shown.replicas if one.server == server and one.log)
    where = pc.field("unknown").is_valid() & pc.field("position").isin(pa.array(list(positions), pa.string()))
    return frozenset(rows_where(streams.case.parts("segments", one), ["position"], where)["position"].to_pylist())


def reached_before(streams: Streams, source: str, copy: str, origin: str, places: Sequence[int]) -> list[int]:
    """For each of these ascending places of the source: the last place in the copy of what the source had committed before.

    What stands behind it in the copy was done there later; -1 is before all of it.
    """
    return reached_in(streams.logs[source], streams.logs[copy], origin, places)
