"""Transactions as they reached a log: pieces against commits, what may be applied in advance, and what must be undone then.

Of a log with millions of transactions no more is held than a page of them: the tables are read batch by batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.incident import Incident
from workbench.engine.assembly import message_of
from workbench.engine.parquet_read import Part
from workbench.engine.selective_read import rows_where
from workbench.engine.streams import StreamLog
from workbench.model import Problem
from workbench.replication.stream.rules.segments import (
    ABORTED,
    ASK,
    COMMITTED,
    CONFLICT,
    CORRUPT,
    INCOMPLETE,
    REPEATED,
    ROLLBACK,
    ROLLBACK_STATEMENT,
    ROLLED_BACK,
    SAYS,
    UNFINISHED,
    Stream,
    kept_pieces,
    transactions,
)
from workbench.tables import SCHEMAS, SOURCE, Numbers
from workbench.views.stream_views import VOID, KeptLog, Row, batches, log_of, time_text
from workbench.views.verdict_style import MISSING, NOTHING, PENDING, PRESENT, STRANDED, UNKNOWN

PAGE = 12
"""Transactions that are shown at once."""

MARKS = 160
"""Pieces of one transaction that are drawn; of more, some beside each other are one mark."""

WHICH = {
    "telling": "in several messages, or no plain commit",
    "big": "the biggest first",
    "all": "all, in the order in which they began",
}
AXES = {"order": "as the pieces came", "log": "place in the log", "time": "time"}
KEPT, CANCELLED, OPEN, AGAIN = "kept", "cancelled", "open", "again"
BACK = {"transaction": "back", "statement": "statement_back"}
"""What a message takes back, and how that is called where messages are counted."""

VERDICTS = {COMMITTED: PRESENT, ROLLED_BACK: STRANDED, ABORTED: STRANDED, UNFINISHED: PENDING, REPEATED: NOTHING}
VERDICTS |= dict.fromkeys((INCOMPLETE, CORRUPT, CONFLICT), MISSING)

_BY_RULE = 100_000
"""Statements of one transaction up to which the rule is asked piece by piece which of them were taken back."""

_TRANSACTION = [name for name in SCHEMAS["transactions"].names if name not in SOURCE]
_PIECE = [
    *("offset", "length", "sound", "content", "position", "segment", "ended", "number", "operation", "target", "piece"),
    *("piece_ended", "rows", "ragged", "event", "ended_at"),
]


class Wanted(NamedTuple):
    """Which transactions are to be shown: those of the log of a server, of one origin or of all.

    which     a word of WHICH
    position  those around this one, in place of the first
    """

    server: str | None = None
    origin: str | None = None
    which: str = "telling"
    position: str = ""


def lanes(incident: Incident, wanted: Wanted, after: Sequence[int] | None = None, size: int = PAGE) -> dict[str, Any]:
    """A page of transactions, each with its pieces as they reached the log: those behind the mark `after`.

    Keys: server, which, in_order (the log holds the pieces in the order in which they came), more, mark (of the next page),
    pieces (how many messages), first and last (bytes), from and to (times), lanes. A lane has what the output says of its
    transaction, and `verdict`, `ahead` (rows that came before its end: a replica can apply them in advance), `undo` (rows that
    one which did so must take back), `at_risk` (rows that it may have to, as nothing tells what counts), `open` (seconds),
    `meanwhile` (commits between its first piece and its last; None: the log does not tell) and `marks`.

    A mark stands for one message, or for several of the transaction one after the other: count, rows, kept, state, back (what it
    takes back), segment, offset, last, at, and where it stands on each axis of AXES, 0 to 1.
    """
    log = log_of(incident, wanted.server, wanted.origin)
    where = _of(wanted)
    big = wanted.which == "big" and not wanted.position
    if wanted.position and after is None:
        after = _before(incident, log, wanted, where, size)
    keys = _first_keys(log.transactions, where, big, after, size + 1)
    rows = {row["offset"]: row for row in _rows(log, keys[:size, 1])}
    shown = [rows[offset] for offset in keys[:size, 1].tolist()]
    # The table of a master is in the order of numbers: it tells when each was committed, and not how the pieces came.
    in_order = not StreamLog(log.server, "", log.transactions, ()).by_commit
    held = _meanwhile(log, shown) if in_order else [None] * len(shown)
    messages = _messages(log, shown)
    found = [_lane(incident, log, row, messages, held[at]) for at, row in enumerate(shown)]
    _place(found)
    every = [mark for lane in found for mark in lane["marks"]]
    times = [mark["at"] for mark in every if mark["at"]]
    return {
        "server": log.server,
        "which": WHICH[wanted.which] if not wanted.position else f"around {wanted.position}",
        "in_order": in_order,
        "more": len(keys) > size,
        "mark": keys[size - 1].tolist() if len(keys) > size else None,
        "pieces": sum(mark["count"] for mark in every),
        "first": min((mark["offset"] for mark in every), default=None),
        "last": max((mark["last"] for mark in every), default=None),
        "from": min(times, default=None),
        "to": max(times, default=None),
        "lanes": found,
    }


def lane_says(lane: Row) -> list[str]:
    """What a replica may do with a transaction, in sentences."""
    seen, ahead, undo = _rows_are(lane["seen"]), lane["ahead"], lane["undo"]
    came, outcome = _rows_are(ahead), lane["outcome"]
    messages = f"{lane['messages']:,} message{'' if lane['messages'] == 1 else 's'}"
    found = [f"{messages}, {lane['bytes']:,} bytes, {seen}: {outcome.replace('_', ' ')}."]
    if outcome == ROLLED_BACK:
        found.append(f"{came} came before its source took all of it back.")
    elif outcome in (UNFINISHED, ABORTED):
        found.append(f"{came} came, and no end.")
    elif lane["messages"] - lane["repeated"] > 1:
        found.append(f"{ahead:,} of its {seen} came before its last message.")
    if undo:
        what = "what its statements that failed had changed" if outcome == COMMITTED else "all of it"
        waited = "One that waited for the end has nothing to undo."
        found.append(f"A replica that applied pieces in advance must undo {what}: {_rows_are(undo)}. {waited}")
    elif outcome == COMMITTED and ahead:
        left = _rows_are(lane["seen"] - ahead)
        found.append(f"A replica that applies these in advance has {left} left to apply at the commit.")
    elif lane["at_risk"]:
        risk = _rows_are(lane["at_risk"])
        found.append(
            f"A replica that applied pieces in advance may have to undo {risk}: nothing tells yet what counts."
        )
    if held := lane["meanwhile"]:
        others = "1 other transaction was" if held == 1 else f"{held:,} other transactions were"
        found.append(f"{others} committed between its first message and its last.")
    found += [f"Why: {lane['says']}."] if lane["says"] else []
    return found + ([f"To be asked: {lane['ask']}"] if lane["ask"] else [])


def _rows_are(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _of(wanted: Wanted) -> pc.Expression:
    where = pc.field("event").is_null()
    if wanted.origin is not None:
        where &= pc.field("origin") == wanted.origin
    if wanted.which not in WHICH:
        raise Problem(f"{wanted.which} is no choice of transactions", "", f"choose one of {', '.join(WHICH)}")
    if wanted.which == "telling" and not wanted.position:
        several = (pc.field("messages") > 1) | (pc.field("ragged") > 0)
        where &= pc.field("why").is_valid() | several
    return where


def _first_keys(
    parts: Iterable[Part], where: pc.Expression, big: bool, after: Sequence[int] | None, size: int, back: bool = False
) -> Numbers:
    """What the next of these transactions are ordered by, and their offsets; `back`: those before the mark, the nearest first."""
    best, sign = np.empty((0, 2), np.int64), -1 if back else 1
    for batch in batches(parts, ["offset", "bytes"], where):
        offset = batch["offset"].to_numpy()
        keys = np.column_stack([-batch["bytes"].to_numpy() if big else offset, offset])
        if after is not None:
            beyond = sign * (keys - np.array(after, np.int64))
            keys = keys[(beyond[:, 0] > 0) | ((beyond[:, 0] == 0) & (beyond[:, 1] > 0))]
        best = np.concatenate([best, keys])
        best = best[np.lexsort((sign * best[:, 1], sign * best[:, 0]))][:size]
    return best


def _before(incident: Incident, log: KeptLog, wanted: Wanted, where: pc.Expression, size: int) -> list[int] | None:
    """The mark from which a page has this transaction in its midst."""
    key = incident.system.typed(wanted.position)
    at = [row["offset"] for row in _rows(log, None, key)] if key else []
    if not at:
        do = "choose a position of this log, as the tables show it; of another origin write ORIGIN:POSITION"
        raise Problem(f"the log of {log.server} does not hold {wanted.position}", incident.then_label, do)
    before = _first_keys(log.transactions, where, False, [min(at), min(at)], size // 2 + 1, back=True)
    return before[-1].tolist() if len(before) > size // 2 else None


def _rows(log: KeptLog, offsets: Numbers | None, position: str | None = None) -> list[dict[str, Any]]:
    where = (
        pc.field("position") == position
        if offsets is None
        else pc.field("event").is_null() & pc.field("offset").isin(pa.array(offsets))
    )
    return rows_where(log.transactions, _TRANSACTION, where).to_pylist()


def _meanwhile(log: KeptLog, rows: Sequence[Row]) -> list[int]:
    """How many transactions were committed between the first and the last record of each."""
    held = np.zeros(len(rows), np.int64)
    if any(row["messages"] > 1 for row in rows):
        for batch in batches(log.transactions, ["last"], pc.field("outcome") == COMMITTED):
            lasts = batch["last"].to_numpy()
            held += np.array([np.count_nonzero((lasts > row["offset"]) & (lasts < row["last"])) for row in rows])
    return held.tolist()


def _messages(log: KeptLog, rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """Position -> its messages as they stand in the log, without their statements."""
    positions = pa.array(sorted({row["position"] for row in rows}), pa.string())
    found: list[pa.Table] = []
    by = ["position", "offset", "segment", "content", "ended_at"]
    columns = [*by, "operation", "rows", "length"]
    where = pc.field("position").isin(positions) & pc.field("event").is_null()
    for batch in batches(log.segments, columns, where) if len(positions) else ():
        plain = {name: batch[name] for name in [*by, "length"]}
        plain |= {
            "rows": pc.fill_null(batch["rows"], 0),
            "statements": pc.cast(batch["operation"].is_valid(), pa.int64()),
        }
        for name, operation in (("back", ROLLBACK), ("statement_back", ROLLBACK_STATEMENT)):
            plain[name] = pc.cast(pc.fill_null(pc.equal(batch["operation"], operation), False), pa.int64())
        found.append(_folded(pa.table(plain), by))
    if not found:
        return {}
    messages = _folded(pa.concat_tables(found), by).sort_by("offset")
    of: dict[str, list[dict[str, Any]]] = {}
    for row in messages.to_pylist():
        of.setdefault(row["position"], []).append(row)
    return of


def _folded(messages: pa.Table, by: list[str]) -> pa.Table:
    how = {"rows": "sum", "statements": "sum", "back": "max", "statement_back": "max", "length": "max"}
    made = messages.group_by(by).aggregate(list(how.items()))
    return made.rename_columns([name.removesuffix("_sum").removesuffix("_max") for name in made.column_names])


def _lane(
    incident: Incident, log: KeptLog, row: Row, messages: Mapping[str, list[dict[str, Any]]], held: int | None
) -> dict[str, Any]:
    mine = [one for one in messages.get(row["position"], []) if row["offset"] <= one["offset"]][: row["messages"]]
    outcome, partly = row["outcome"], row["outcome"] == COMMITTED and row["kept"] < row["seen"]
    kept = _kept_rows(log, row, sum(one["statements"] for one in mine)) if partly else None
    there: set[tuple[Any, Any]] = set()
    for one in mine:
        again = outcome == REPEATED or (one["segment"], one["content"]) in there
        there.add((one["segment"], one["content"]))
        if again:
            one |= {"state": AGAIN, "kept": 0}
        elif outcome in VOID:
            one |= {"state": CANCELLED, "kept": 0}
        elif outcome == COMMITTED:
            count = kept.get(one["offset"], 0) if kept is not None else None if partly else one["rows"]
            one |= {"state": CANCELLED if count == 0 < one["rows"] else KEPT, "kept": count}
        else:
            one |= {"state": OPEN, "kept": None}
    first = [one for one in mine if one["state"] != AGAIN]
    before_its_end = first if outcome in (UNFINISHED, ABORTED) else first[:-1]
    settled = outcome in (COMMITTED, *VOID)
    span = (row["ended_at"] - row["started_at"]).total_seconds() if row["ended_at"] and row["started_at"] else None
    show = incident.system.show
    return {
        "position": show(row["position"]),
        "story": incident.written(row["origin"], show(row["position"])),
        **{
            name: row[name]
            for name in ("origin", "outcome", "why", "messages", "repeated", "missing", "bytes", "ragged", "ddl")
        },
        "says": SAYS.get(row["why"] or ""),
        "ask": ASK.get(row["why"] or ""),
        "verdict": VERDICTS.get(outcome, UNKNOWN),
        "rows": None if row["rows"] is None else json.loads(row["rows"]),
        "seen": row["seen"],
        "kept": row["kept"],
        "ahead": sum(one["rows"] for one in before_its_end),
        "undo": row["seen"] - row["kept"] if settled else 0,
        "at_risk": 0 if settled or outcome == REPEATED else row["seen"],
        "open": max(span, 0.0) if span is not None else None,
        "meanwhile": held,
        "started_at": time_text(row["started_at"]),
        "ended_at": time_text(row["ended_at"]),
        "marks": [
            _mark(mine[at : at + size]) for size in [-(-len(mine) // MARKS) or 1] for at in range(0, len(mine), size)
        ],
    }


def _kept_rows(log: KeptLog, row: Row, statements: int) -> dict[int, int] | None:
    """Offset -> rows that count, of a transaction of which statements were taken back; None: it has too many statements."""
    if statements > _BY_RULE:
        return None
    records: dict[int, list[dict[str, Any]]] = {}
    where = (pc.field("position") == row["position"]) & (pc.field("offset") >= row["offset"])
    found = rows_where(log.segments, _PIECE, where & (pc.field("offset") <= row["last"]))
    for one in found.sort_by([("offset", "ascending"), ("number", "ascending")]).to_pylist():
        records.setdefault(one["offset"], []).append(one)
    messages = [message_of(rows, row["life"]) for rows in records.values()]
    kept: dict[int, int] = {}
    for one in transactions(messages, Stream(row["life"])):
        for message, number in kept_pieces(one.counting):
            kept[message.offset] = kept.get(message.offset, 0) + message.pieces[number].rows
    return kept


def _mark(messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    states = {one["state"] for one in messages}
    kept = [one["kept"] for one in messages]
    return {
        "count": len(messages),
        "rows": sum(one["rows"] for one in messages),
        "kept": None if None in kept else sum(kept),
        "state": next(iter(states)) if len(states) == 1 else KEPT if KEPT in states else OPEN,
        "back": next((word for word, sign in BACK.items() if any(one[sign] for one in messages)), None),
        "segment": messages[0]["segment"],
        "offset": messages[0]["offset"],
        "last": messages[-1]["offset"],
        "at": time_text(messages[-1]["ended_at"]),
        "_time": messages[-1]["ended_at"],
    }


def _place(found: Sequence[dict[str, Any]]) -> None:
    """Where each mark stands on the three axes."""
    marks = sorted((mark for lane in found for mark in lane["marks"]), key=lambda mark: mark["offset"])
    told = [mark.pop("_time") for mark in marks]
    earliest = min((at for at in told if at), default=None)
    times = [at.timestamp() if at else earliest.timestamp() if earliest else 0.0 for at in told]
    for at, mark in enumerate(marks):
        mark["order"] = at / max(1, len(marks) - 1)
        mark["log"] = _part(mark["offset"], marks[0]["offset"], marks[-1]["offset"])
        mark["time"] = _part(times[at], min(times), max(times))


def _part(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 0.0
