"""What `inspect` tells of a file of a stream: its records, the transactions that they make, and what the tables hold in the end.

Lists are cut at a limit, counts are not. Of a file with millions of transactions their segments are held while it is read,
some hundred bytes each; a case holds more than that.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.engine.assembly import READ, assembled, damaged, message_of, starts_of
from workbench.model import Format, Parsed, Piece, Problem, System
from workbench.replication.stream.rules.segments import COMMITTED, TAIL, Stream, kept_pieces, transactions

LISTED = 10_000
"""So many records and transactions are listed, unless more are asked for."""

_FEW = ("origin", "target")


class StreamDetail:
    """Takes what was read of the pieces of one file, in order, and tells it as the contract has it."""

    def __init__(self, kind: Format, system: System, limit: int = LISTED) -> None:
        self._kind, self._system, self._limit = kind, system, limit
        self._segments: list[pa.Table] = []
        self._records: list[dict[str, Any]] = []
        self._resync: list[dict[str, Any]] = []
        self._count = 0

    def add(self, piece: Piece, parsed: Parsed) -> None:
        """What was read of one more piece."""
        segments = parsed.tables.get("segments")
        if segments is not None:
            few = {name: segments[name].dictionary_encode() for name in _FEW}
            kept = segments.select(READ)
            for name, column in few.items():
                kept = kept.set_column(kept.schema.get_field_index(name), name, column)
            self._segments.append(kept)
        if self._kind.records:
            found, lost = self._kind.records(piece)
            self._resync += lost
            self._count += len(found)
            if segments is not None and (more := found[: self._limit - len(self._records)]):
                self._records += _told(more, segments, self._system)

    def detail(self, end_of_file: Any, lost: bool) -> dict[str, Any]:
        """All of it; `lost` says that something in the file could not be read."""
        made = assembled(self._all(), lost) if self._segments else pa.table({"outcome": pa.array([], pa.string())})
        counts = Counter(made["outcome"].to_pylist())
        listed = [_transaction(row, self._system) for row in made.slice(0, self._limit).to_pylist()]
        detail: dict[str, Any] = {"transactions": listed, "counts": dict(counts)}
        if self._kind.records:
            ends = {"end_of_file": end_of_file or {"state": "clean", "offset": 0}, "resync": self._resync}
            detail = {"records": self._records, **ends, **detail}
        cut = {"records": self._count} if self._count > len(self._records) else {}
        cut |= {"transactions": len(made)} if len(made) > len(listed) else {}
        return detail | ({"truncated": cut} if cut else {})

    def final_rows(self, path: Path, lost: bool) -> dict[str, Any]:
        """What the tables hold when the committed transactions were applied, in their order, to empty ones; null, and why,
        where a row cannot be read safely.
        """
        if not self._kind.final_rows:
            return {}
        try:
            return {"final_rows": self._kind.final_rows(path, self._places(lost)) if self._segments else {}}
        except Problem as error:
            return {"final_rows": None, "final_rows_why": str(error)}

    def _all(self) -> pa.Table:
        return pa.concat_tables(self._segments).unify_dictionaries().combine_chunks()

    def _places(self, lost: bool) -> Iterator[list[tuple[int, int, tuple[int, ...], int]]]:
        """(offset, length, statements that count, content) of the messages of each committed transaction, in their order."""
        segments = self._all()
        segments = segments.filter(segments["origin"].is_valid())
        starts, lost = starts_of(segments), lost or damaged(segments)
        keyed: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
        for row in segments.to_pylist():
            if not row["event"]:
                keyed.setdefault((row["origin"], row["position"]), {}).setdefault(row["offset"], []).append(row)
        found = []
        for (origin, _), records in keyed.items():
            began = starts.get(origin, np.array([], np.int64))
            messages = [
                message_of(rows, int(np.searchsorted(began, at, "right"))) for at, rows in sorted(records.items())
            ]
            for one in transactions(messages, Stream(len(began), lost)):
                if one.outcome == COMMITTED:
                    numbers: dict[int, list[int]] = {}
                    for message, number in kept_pieces(one.counting):
                        numbers.setdefault(message.offset, []).append(number)
                    places = [
                        (at, records[at][0]["length"], tuple(of), records[at][0]["content"])
                        for at, of in numbers.items()
                    ]
                    found.append((one.last, places))
        yield from (places for _, places in sorted(found, key=lambda one: one[0]))


def _told(records: list[dict[str, Any]], segments: pa.Table, system: System) -> list[dict[str, Any]]:
    """The records with what their messages say."""
    last = records[-1]["offset"]
    by_offset: dict[int, list[dict[str, Any]]] = {}
    columns = segments.select(["offset", "origin", "position", "segment", "ended", "event", "operation"])
    for batch in columns.to_batches(max_chunksize=1 << 14):
        for row in batch.to_pylist():
            by_offset.setdefault(row["offset"], []).append(row)
        if by_offset and max(by_offset) > last:
            break
    return [record | _message(by_offset.get(record["offset"], []), system) for record in records]


def _message(rows: list[dict[str, Any]], system: System) -> dict[str, Any]:
    first = rows[0] if rows else {}
    known = first.get("position") is not None
    event = first.get("event")
    kind = f"event:{event}" if event else "+".join(row["operation"] for row in rows if row["operation"])
    return {
        "server_id": int(first["origin"]) if known else None,
        "transaction_id": int(system.show(first["position"])) if known else None,
        "segment_id": first.get("segment"),
        "end_segment": first.get("ended"),
        "kind": kind or None,
    }


def _transaction(row: dict[str, Any], system: System) -> dict[str, Any]:
    """A transaction as the contract has it. `end_marker` stands there only where the stream says so."""
    missing = row["missing"]
    told = {
        "server_id": int(row["origin"]),
        "transaction_id": int(system.show(row["position"])),
        "messages": row["messages"],
        "outcome": row["outcome"],
    }
    if row["event"]:
        return told | {"event": row["event"]}
    told |= {"rows": None if row["rows"] is None else json.loads(row["rows"])}
    told |= {"ddl": row["ddl"]} if row["ddl"] else {}
    told |= {"end_marker": row["ended"]} if row["ended"] is not None else {}
    if missing:
        told["missing_segments"] = missing if missing == TAIL else [int(number) for number in missing.split()]
    told |= {name: row[name] for name in ("why", "ragged", "commit") if row[name]}
    return told
