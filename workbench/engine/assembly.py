"""Segments of a stream to transactions: plain commits by the column, all others by the rule, one after the other.

Most transactions are one message with an end, and nothing is to be decided. The rest (in several messages, repeated, taken
back, damaged) go through `workbench.replication.stream.rules.segments`, keyed by server and number. Nothing here needs Spark;
`engine.streams` does the same to streams that do not fit into one process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.replication.stream.rules.segments import (
    COMMITTED,
    EVENT,
    ROLLBACK,
    ROLLBACK_STATEMENT,
    ROW_STATEMENTS,
    Message,
    Piece,
    Stream,
    Transaction,
    transactions,
)
from workbench.tables import COLUMNS, Numbers, table

STARTUP = "STARTUP"
"""The event with which a server begins a new life."""

UNKNOWN_KIND = "kind "
"""How the operation of a statement reads of whose kind the reader knows the number only."""

READ = [
    *("offset", "length", "sound", "content", "origin", "position", "commit", "segment", "ended", "event", "number"),
    *("operation", "target", "piece", "piece_ended", "rows", "ragged", "started_at", "ended_at"),
]
"""What of the table `segments` this reads."""

_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS["transactions"].items()])

Starts = Mapping[str, Numbers]
"""Origin -> where in the stream its server tells that it started, ascending."""


def starts_of(segments: pa.Table) -> dict[str, Numbers]:
    """Where the servers of a stream started. A damaged record may tell it of another server, or have told a SHUTDOWN."""
    told = segments.filter(pc.and_(pc.equal(segments["event"], STARTUP), pc.fill_null(segments["sound"], True)))
    places: dict[str, list[int]] = {}
    for origin, offset in zip(told["origin"].to_pylist(), told["offset"].to_pylist(), strict=True):
        places.setdefault(origin, []).append(offset)
    return {origin: np.array(sorted(set(found)), np.int64) for origin, found in places.items()}


def damaged(segments: pa.Table) -> bool:
    """True if a message does not fit its checksum: not even its number can be trusted, so another's may be lost with it."""
    return bool(pc.any(pc.invert(segments["sound"])).as_py())


def assembled(segments: pa.Table, lost: bool, starts: Starts | None = None) -> pa.Table:
    """The transactions of a stream, or of all its segments with some numbers, as rows of the table `transactions`.

    `lost` says that parts of the stream could not be read; `starts` is that of the whole stream. They come in the order of
    their first messages.
    """
    segments = segments.select(READ)
    if segments["origin"].null_count:
        segments = segments.filter(segments["origin"].is_valid())
    segments = _in_order(segments)
    starts, lost = starts_of(segments) if starts is None else starts, lost or damaged(segments)
    if not len(segments):
        return _SCHEMA.empty_table()
    plain = _plain(segments, lost)
    parts = []
    if plain.any():
        parts.append(_commits(segments if plain.all() else segments.filter(pa.array(plain)), starts))
    if not plain.all():
        rest = segments.filter(pa.array(~plain))
        parts.append(table("transactions", _by_rule(rest, lost, starts)).select(_SCHEMA.names))
    whole = pa.concat_tables([part.cast(_SCHEMA) for part in parts])
    return whole if len(parts) == 1 and plain.all() else _ordered(whole, "offset", "origin")


def _in_order(segments: pa.Table) -> pa.Table:
    """The rows by place and number, as most streams have them."""
    offset, number = segments["offset"].to_numpy(), pc.fill_null(segments["number"], 0).to_numpy()
    later = offset[1:] > offset[:-1]
    if (later | ((offset[1:] == offset[:-1]) & (number[1:] > number[:-1]))).all():
        return segments.combine_chunks()
    return _ordered(segments, "offset", "number").combine_chunks()


def _ordered(rows: pa.Table, *by: str) -> pa.Table:
    return rows.take(pc.sort_indices(rows, [(name, "ascending") for name in by]))


def _truth(column: Any, null: bool) -> np.ndarray:
    filled = pc.fill_null(column, null)
    filled = filled.combine_chunks() if isinstance(filled, pa.ChunkedArray) else filled
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=bool)


def _firsts(offset: Numbers) -> Numbers:
    """Which rows are the first of their records, or of whatever else stands together."""
    return np.flatnonzero(np.append(True, offset[1:] != offset[:-1])[: len(offset)])


def _plain(segments: pa.Table, lost: bool) -> np.ndarray:
    """Which rows are of a transaction that is a commit in one message, seen once, of statements that are whole."""
    operation = segments["operation"]
    numbered = pc.and_(pc.equal(segments["segment"], 1), segments["ended"])
    unnumbered = pc.and_(segments["segment"].is_null(), segments["ended"].is_null())
    decided = _truth(numbered, False) | (_truth(unnumbered, False) & (not lost))
    whole = pc.or_(segments["piece"].is_null(), pc.and_(pc.equal(segments["piece"], 1), segments["piece_ended"]))
    plain = decided & _truth(whole, False) & _truth(segments["sound"], True) & _truth(segments["event"].is_null(), True)
    kinds = operation.combine_chunks().dictionary_encode()
    odd_kinds = np.array([one is None or _is_odd(one) for one in kinds.dictionary.to_pylist()] + [True])
    plain &= ~odd_kinds[pc.fill_null(kinds.indices, len(odd_kinds) - 1).to_numpy()]  # nor without any statement
    firsts = _firsts(segments["offset"].to_numpy())
    key = segments["position"].combine_chunks()
    codes = key.indices if pa.types.is_dictionary(key.type) else key.dictionary_encode().indices
    numbers = np.asarray(codes)[firsts]
    once = np.logical_and.reduceat(plain, firsts) & (np.bincount(numbers)[numbers] == 1)
    return np.repeat(once, np.diff(np.append(firsts, len(segments))))


def _is_odd(operation: str) -> bool:
    return operation in (ROLLBACK, ROLLBACK_STATEMENT) or operation.startswith(UNKNOWN_KIND)


def _lives(origin: pa.Array, offset: Numbers, starts: Starts) -> np.ndarray:
    """How often the server of each row had started up to there."""
    lives = np.zeros(len(offset), np.int64)
    plain = origin.cast(pa.string())
    for server, places in starts.items():
        here = _truth(pc.equal(plain, server), False)
        lives[here] = np.searchsorted(places, offset[here], "right")
    return lives


def _commits(rows: pa.Table, starts: Starts) -> pa.Table:
    """Rows of which those of one record are a whole transaction."""
    firsts = _firsts(rows["offset"].to_numpy())
    count, record = len(firsts), np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(rows))))
    number = pc.fill_null(rows["rows"].combine_chunks(), 0).to_numpy()
    word = _words(rows["operation"].combine_chunks().cast(pa.string()))
    kept = np.where(_truth(word.is_valid(), False), number, 0)
    sums, ragged = np.add.reduceat(kept, firsts), np.add.reduceat(pc.fill_null(rows["ragged"], 0).to_numpy(), firsts)
    head = rows.take(pa.array(firsts))
    offset = head["offset"]
    zeros, ones = pa.array(np.zeros(count, np.int64)), pa.array(np.ones(count, np.int64))
    columns: dict[str, Any] = {
        "offset": offset,
        "origin": head["origin"],
        "position": head["position"],
        "life": pa.array(_lives(head["origin"].combine_chunks(), offset.to_numpy(), starts)),
        "outcome": pa.array([COMMITTED]).take(zeros),
        "why": pa.nulls(count, pa.string()),
        "event": pa.nulls(count, pa.string()),
        "ddl": _joined_by(record, count, rows["operation"].combine_chunks(), _truth(word.is_null(), False), "+", None),
        "messages": ones,
        "repeated": zeros,
        "ended": head["ended"],
        "missing": pa.nulls(count, pa.string()),
        "bytes": head["length"],
        "rows": _told(record, count, rows["target"].combine_chunks(), word, kept),
        "seen": pa.array(sums),
        "kept": pa.array(sums),
        "ragged": pa.array(ragged),
        "content": head["content"],
        "commit": head["commit"],
        "last": offset,
        "started_at": head["started_at"],
        "ended_at": head["ended_at"],
    }
    return pa.table({name: columns[name] for name in _SCHEMA.names})


def _words(operation: pa.Array) -> pa.Array:
    """What the statements that change rows are called; null for the others."""
    word: Any = pa.nulls(len(operation), pa.string())
    for statement, name in ROW_STATEMENTS.items():
        word = pc.if_else(pc.equal(operation, statement), name, word)
    return word


def _told(record: Numbers, count: int, target: pa.Array, word: pa.Array, kept: Numbers) -> pa.Array:
    """Of each record its rows by table and operation, as JSON."""
    coded = pc.fill_null(target.cast(pa.string()), "").dictionary_encode()
    tables = sorted(coded.dictionary.to_pylist())
    rank = np.searchsorted(np.array(tables, object), np.array(coded.dictionary.to_pylist(), object))
    names = pa.array([json.dumps(one) for one in tables], pa.string())
    changed = np.flatnonzero(kept > 0)
    targets = rank[coded.indices.to_numpy()[changed]]
    kinds = sorted(ROW_STATEMENTS.values())
    words = pc.index_in(word, pa.array(kinds)).fill_null(0).to_numpy()[changed]
    # One number for each record, table and operation, so that what belongs together is counted in their order.
    keys = (record[changed] * len(tables) + targets) * len(kinds) + words
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    each = _firsts(keys)
    rows = np.add.reduceat(kept[changed][order], each) if len(each) else each
    pairs, words = np.divmod(keys[each], len(kinds))
    text = pc.binary_join_element_wise(
        '"', pa.array(kinds).take(pa.array(words)), '": ', pa.array(rows).cast(pa.string()), ""
    )
    first = _firsts(pairs)
    groups = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(pairs))))
    numbers, targets = np.divmod(pairs[first], max(len(tables), 1))
    of_table = _joined_by(groups, len(first), text, np.ones(len(groups), bool), ", ", "")
    told = pc.binary_join_element_wise(names.take(pa.array(targets)), ": {", of_table, "}", "")
    whole = _joined_by(numbers, count, told, np.ones(len(first), bool), ", ", "")
    return pc.binary_join_element_wise("{", whole, "}", "")


def _joined_by(
    group: Numbers, count: int, texts: pa.Array, which: np.ndarray, mark: str, empty: str | None
) -> pa.Array:
    """The chosen texts of each of so many groups, joined; `group` ascends. `empty` stands for a group without any."""
    chosen = texts if which.all() else texts.filter(pa.array(which))
    many = np.bincount(group[which], minlength=count)
    ends = np.append(0, np.cumsum(many)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(ends), chosen.cast(pa.string()))
    joined = pc.binary_join(lists, mark)
    return joined if empty == "" else pc.if_else(pa.array(many > 0), joined, pa.scalar(empty, pa.string()))


def _by_rule(rows: pa.Table, lost: bool, starts: Starts) -> Iterator[dict[str, Any]]:
    records: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
    for row in rows.to_pylist():
        records.setdefault((row["origin"], row["position"]), {}).setdefault(row["offset"], []).append(row)
    for (origin, _), of_key in records.items():
        yield from of_one(origin, of_key, lost, starts.get(origin, np.array([], np.int64)))


def of_one(
    origin: str, records: Mapping[int, list[dict[str, Any]]], lost: bool, starts: Numbers
) -> Iterator[dict[str, Any]]:
    """The rows of `transactions` that the records with one number of one server make; `records` by offset, ascending."""
    messages = []
    for offset, rows in records.items():
        life = int(np.searchsorted(starts, offset, "right"))
        if rows[0]["event"] and rows[0]["sound"] is not False:
            yield _row(
                rows[0], offset, records, outcome=EVENT, event=rows[0]["event"], life=life, ended=rows[0]["ended"]
            )
        else:
            messages.append(message_of(rows, life))
    for one in transactions(messages, Stream(len(starts), lost)) if messages else ():
        first = records[one.messages[0].offset][0]
        yield _row(
            first,
            one.last,
            {message.offset: records[message.offset] for message in one.messages},
            outcome=one.outcome,
            why=one.why,
            life=one.life,
            ddl=_ddl(one),
            messages=len(one.messages),
            repeated=one.repeated,
            ended=one.ended,
            missing=" ".join(map(str, one.missing)) if isinstance(one.missing, tuple) else one.missing,
            rows=None if one.rows is None else json.dumps(one.rows, sort_keys=True),
            seen=one.seen,
            kept=one.kept,
            ragged=one.ragged,
            content=_content(one),
        )


def message_of(rows: list[dict[str, Any]], life: int) -> Message:
    """The message of one record out of its rows of `segments`."""
    first = rows[0]
    pieces = tuple(
        Piece(
            row["operation"],
            row["target"],
            row["piece"],
            row["piece_ended"] is not False,
            row["rows"] or 0,
            row["ragged"] or 0,
        )
        for row in rows
        if row["operation"]
    )
    known = not any(piece.operation.startswith(UNKNOWN_KIND) for piece in pieces)
    return Message(
        first["offset"],
        first["segment"],
        first["ended"],
        pieces,
        first["content"],
        first["sound"] is not False,
        known,
        life,
    )


def _row(
    first: Mapping[str, Any], last: int, records: Mapping[int, list[dict[str, Any]]], **more: Any
) -> dict[str, Any]:
    heads = [rows[0] for rows in records.values()]
    one: dict[str, Any] = {
        "messages": 1,
        "repeated": 0,
        "rows": "{}",
        "seen": 0,
        "kept": 0,
        "ragged": 0,
        "content": first["content"],
    }
    return (
        one
        | {
            "offset": first["offset"],
            "origin": first["origin"],
            "position": first["position"],
            "bytes": sum(head["length"] for head in heads),
            "commit": max((head["commit"] for head in heads if head["commit"]), default=None),
            "last": last,
            "started_at": _end(min, (head["started_at"] for head in heads)),
            "ended_at": _end(max, (head["ended_at"] for head in heads)),
        }
        | more
    )


def _end(which: Any, times: Iterable[datetime | None]) -> datetime | None:
    found: datetime | None = which((at for at in times if at), default=None)
    return found


def _ddl(one: Transaction) -> str | None:
    kinds = [piece.operation for message in one.messages for piece in message.pieces]
    told = [kind for kind in kinds if kind not in ROW_STATEMENTS and kind not in (ROLLBACK, ROLLBACK_STATEMENT)]
    return "+".join(told) or None


def _content(one: Transaction) -> int:
    """A hash of what counts of it, in its order: of one message its own."""
    of = one.counting or one.messages
    mixed = of[0].content
    for message in of[1:]:
        mixed = (mixed * 0x9E3779B97F4A7C15 + message.content) & 0xFFFFFFFFFFFFFFFF
    return mixed - (1 << 64) if mixed >= 1 << 63 else mixed
