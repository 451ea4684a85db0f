"""A stream of transactions as pictures need it: what each server lacks of it, and which tables changed when.

Of a log with millions of transactions only sums are held: the tables are read batch by batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.incident import Incident
from workbench.engine.parquet_read import Part, stream_part
from workbench.engine.selective_read import rows_where
from workbench.engine.streams import StreamLog
from workbench.model import NotOfThisSystem, Problem
from workbench.replication.stream.rules.segments import ABORTED, COMMITTED, REPEATED, ROLLED_BACK
from workbench.tables import Numbers
from workbench.views.verdict_style import MISSING, PENDING, PRESENT, STRANDED, UNKNOWN

Row = Mapping[str, Any]

VOID = (ROLLED_BACK, ABORTED)
"""Outcomes of which no row counts."""

BINS = 48
TABLES = 30


class KeptLog(NamedTuple):
    """The log of a server, as the parts of two tables."""

    server: str
    transactions: list[dict[str, Any]]
    segments: list[dict[str, Any]]


def must_stream(incident: Incident) -> None:
    """Raise Problem where servers replicate no stream of transactions: there is nothing of all this."""
    if not incident.system.streaming:
        raise NotOfThisSystem(
            f"servers of {incident.system.title} replicate single changes, and no stream of transactions",
            incident.case.name,
            "the notebooks 20_overview, 23_missed_changes and 31_entry_replication show these",
        )


def log_of(incident: Incident, server: str | None, origin: str | None = None) -> KeptLog:
    """The log of a server; of none named, that of the source."""
    must_stream(incident)
    having = {one.server: one.log for one in incident.topology.replicas if one.log}
    sources = [row["source"] for row in incident.found["streams"] if origin in (None, row["origin"])]
    name = server or next((one for one in sources if one in having), None)
    if name is None or name not in having:
        what = f"the log of {name} was not collected" if name else "no log was collected"
        raise Problem(what, incident.then_label, "choose a server with a log, or load its log into the case")
    parts = (incident.then.parts(table, having[name]) for table in ("transactions", "segments"))
    return KeptLog(name, *parts)


def batches(
    parts: Iterable[Part], columns: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of some parts for which `where` holds, a batch at a time."""
    for part in parts:
        yield from stream_part(part["path"], list(columns), where)


def time_text(at: datetime | None) -> str | None:
    """A time as text for people (UTC)."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}" if at else None


# --- the fleet

_CELLS: tuple[tuple[str, str, str], ...] = (
    ("", PRESENT, ""),
    ("errant", STRANDED, "only here"),
    ("undecided", UNKNOWN, "has no end of it"),
    ("unknown", UNKNOWN, "nothing tells"),
    ("behind", PENDING, "not yet"),
    ("inside", MISSING, "missing"),
    ("incomplete", MISSING, "only a part of it"),
    ("conflicts", MISSING, "other content or end"),
)
"""What a cell of the grid may say: list of the output, verdict, words. Of a transaction in several lists the last one counts."""


def fleet_grid(incident: Incident, origin: str | None = None, server: str | None = None) -> list[dict[str, Any]]:
    """Of each origin the transactions that some server lacks, or holds otherwise, in the order of commits.

    Keys: origin, source, servers, lag (server -> transactions behind), count, rows. A row is one transaction, or several that
    were committed one after the other and are alike on all servers: first, last, count, outcome and kept (rows) at the source,
    at, story (how the first is typed), cells.
    """
    must_stream(incident)
    return [
        _differing(incident, one, server)
        for one in dict.fromkeys(row["origin"] for row in incident.found["streams"])
        if origin in (None, one)
    ]


def _differing(incident: Incident, origin: str, server: str | None) -> dict[str, Any]:
    differing = [row for row in incident.found["fleet"] if row["origin"] == origin and server in (None, row["server"])]
    source = next(row["source"] for row in incident.found["streams"] if row["origin"] == origin)
    names = [row["server"] for row in differing]
    codes: dict[str, list[int]] = {}
    ends: dict[tuple[str, int], str] = {}
    for at, row in enumerate(differing):
        for code, (name, _, _) in enumerate(_CELLS[1:], 1):
            for position in row[name]:
                codes.setdefault(position, [0] * len(names))[at] = code
        ends |= {(position, at): outcome for position, outcome in row["undecided"].items()}
    log = log_of(incident, source, origin)
    known, consecutive = _places(incident, log, origin, list(codes))
    order = sorted(codes, key=lambda position: (position not in known, known.get(position, {}).get("place", 0)))
    rows: list[dict[str, Any]] = []
    for position in order:
        there = known.get(position)
        place = consecutive.get(position) if there else None
        mine = (
            tuple(codes[position]),
            there["outcome"] if there else None,
            *(ends.get((position, at)) for at in range(len(names))),
        )
        if rows and place is not None and rows[-1]["_like"] == mine and rows[-1]["_place"] == place - 1:
            rows[-1] |= {"last": position, "count": rows[-1]["count"] + 1, "_place": place}
            rows[-1]["kept"] += there["kept"] if there else 0
            continue
        rows.append({"first": position, "last": position, "count": 1, "_like": mine, "_place": place})
        rows[-1] |= {"outcome": there["outcome"] if there else None, "kept": there["kept"] if there else 0}
        rows[-1] |= {"at": time_text(there["ended_at"]) if there else None, "story": incident.written(origin, position)}
        rows[-1]["cells"] = [_cell(code, ends.get((position, at))) for at, code in enumerate(codes[position])]
    for one in rows:
        del one["_like"], one["_place"]
    lag = {row["server"]: len(row["behind"]) for row in differing}
    return {"origin": origin, "source": source, "servers": names, "lag": lag, "count": len(codes), "rows": rows}


def _cell(code: int, at_source: str | None) -> dict[str, str]:
    name, verdict, says = _CELLS[code]
    if name == "undecided" and at_source in VOID:
        verdict, says = STRANDED, f"has no end of it; {at_source.replace('_', ' ')} at its source: to be discarded"
    elif at_source and name != "undecided":
        says += ", without an end"
    return {"verdict": verdict, "says": says}


def _places(
    incident: Incident, log: KeptLog, origin: str, positions: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """What the source has of these transactions, with its `place`; and the number of each among all that ended there."""
    by = "commit" if StreamLog(log.server, "", log.transactions, ()).by_commit else "last"
    keys = {incident.system.typed(incident.written(origin, one)): one for one in positions}
    where = (pc.field("origin") == origin) & (pc.field("outcome") != REPEATED)
    columns = ["position", by, "outcome", "kept", "ended_at"]
    wanted = where & pc.field("position").isin(pa.array(sorted(filter(None, keys)), pa.string()))
    rows = rows_where(log.transactions, columns, wanted).to_pylist() if keys else []
    known = {keys[row["position"]]: row | {"place": row[by] or 0} for row in sorted(rows, key=lambda row: row[by] or 0)}
    every = (
        [batch[by].to_numpy(zero_copy_only=False) for batch in batches(log.transactions, [by], where)] if keys else []
    )
    places = np.sort(np.concatenate(every)) if every else np.empty(0, np.int64)
    numbers = np.searchsorted(places, [row["place"] for row in known.values()])
    return known, dict(zip(known, numbers.tolist(), strict=True))


# --- tables


def heat(
    incident: Incident, server: str | None = None, origin: str | None = None, by: str = "time", bins: int = BINS
) -> dict[str, Any]:
    """Rows of each table by time, or by place in the log: seen in any message, kept by commits, cancelled by their source.

    Keys: server, by, from, to, bins, edges (where each bin begins, and the last ends), tables (table, seen, kept, cancelled: a
    number for each bin; `open` in all, of which the log does not tell the end), others (tables that are not shown). A second
    delivery is not counted.
    """
    log = log_of(incident, server, origin)
    sums = _Heat(log, origin, by == "time", bins)
    tables = sorted(sums.of.items(), key=lambda one: (-int(one[1][0].sum()), one[0]))
    low, high = sums.low, sums.high
    edges = [] if low is None or high is None else [low + (high - low) * at // bins for at in range(bins + 1)]
    times = [time_text(datetime.fromtimestamp(one / 1e6, UTC)) for one in edges]
    ends: list[Any] = [*(times if by == "time" else edges)]
    return {
        "server": log.server,
        "by": by,
        "from": ends[0] if ends else None,
        "to": ends[-1] if ends else None,
        "edges": ends,
        "bins": bins,
        "tables": [
            {
                "table": table,
                "seen": one[0].tolist(),
                "kept": one[1].tolist(),
                "cancelled": one[2].tolist(),
                "open": int(one[0].sum() - one[1].sum() - one[2].sum()),
            }
            for table, one in tables[:TABLES]
        ],
        "others": max(0, len(tables) - TABLES),
    }


class _Heat:
    """The sums of one log: table -> rows seen, kept and cancelled in each bin.

    A transaction that counts whole, or not at all, is counted piece by piece where the pieces stand. One of which statements were
    taken back, or that came again, is counted where it ended, by what the table `transactions` says of it.
    """

    def __init__(self, log: KeptLog, origin: str | None, by_time: bool, bins: int) -> None:
        self.by_time, self.bins = by_time, bins
        self.of: dict[str, Numbers] = {}
        self.low: int | None = None
        self.high: int | None = None
        where = pc.field("event").is_null()
        self.mine = where & (pc.field("origin") == origin) if origin is not None else where
        self._span(log)
        if self.low is not None:
            self._segments(log, *self._odd(log))

    def _span(self, log: KeptLog) -> None:
        ends = ("started_at", "ended_at") if self.by_time else ("offset", "last")
        for batch in batches(log.transactions, ends, self.mine):
            first, last = (column.cast(pa.int64()) if self.by_time else column for column in batch.columns)
            for low, high in ((pc.min(first).as_py(), pc.max(last).as_py()),):
                self.low = low if self.low is None else min(self.low, low if low is not None else self.low)
                self.high = high if self.high is None else max(self.high, high if high is not None else self.high)

    def _bin(self, at: Any) -> Numbers:
        """The bins of times or offsets; what has none is counted in the first."""
        low, high = self.low or 0, self.high or 0
        places = np.asarray(pc.fill_null(at.cast(pa.int64()), low)) - low
        return np.clip(places * self.bins // max(1, high - low + 1), 0, self.bins - 1)

    def _odd(self, log: KeptLog) -> tuple[pa.Array, pa.Array, dict[str, list[Row]]]:
        """Positions that are void, and those of which nothing tells what counts; and what needs a closer look."""
        void: list[str] = []
        undecided: list[str] = []
        closer: dict[str, list[Row]] = {}
        parted = (pc.field("outcome") == COMMITTED) & (pc.field("seen") > pc.field("kept"))
        odd = self.mine & (pc.field("why").is_valid() | parted | (pc.field("repeated") > 0))
        columns = ["position", "outcome", "why", "repeated", "rows", "seen", "kept", "last", "ended_at"]
        rows = [row for batch in batches(log.transactions, columns, odd) for row in batch.to_pylist()]
        twice = {
            row["position"]
            for row in rows
            if row["repeated"] or (row["why"] and row["outcome"] in (COMMITTED, REPEATED))
        }
        for row in rows:
            position, outcome = row["position"], row["outcome"]
            if position in twice or outcome == COMMITTED:
                closer.setdefault(position, []).append(row)
            elif outcome in VOID:
                void.append(position)
            else:
                undecided.append(position)
        return pa.array(void, pa.string()), pa.array(undecided, pa.string()), closer

    def _segments(self, log: KeptLog, void: pa.Array, undecided: pa.Array, closer: Mapping[str, list[Row]]) -> None:
        columns = ["position", "target", "rows", "offset", "ended_at", "segment", "content", "number"]
        where = self.mine & (pc.field("rows") > 0)
        apart, held = pa.array(list(closer), pa.string()), []
        for batch in batches(log.segments, columns, where):
            other = pc.is_in(batch["position"], apart)
            if len(apart) and pc.any(other).as_py():
                held.append(pa.Table.from_batches([batch.filter(other)]))
                batch = batch.filter(pc.invert(other))
            bins = pa.array(self._bin(batch["ended_at" if self.by_time else "offset"]))
            table = pa.table({"target": batch["target"].cast(pa.string()), "bin": bins, "rows": batch["rows"]})
            gone = pc.is_in(batch["position"], void)
            counts = pc.invert(pc.or_(gone, pc.is_in(batch["position"], undecided)))
            for which, chosen in ((0, table), (1, table.filter(counts)), (2, table.filter(gone))):
                for row in chosen.group_by(["target", "bin"]).aggregate([("rows", "sum")]).to_pylist():
                    self._add(row["target"], which, row["bin"], row["rows_sum"])
        if held:
            self._closer(pa.concat_tables(held), closer)

    def _closer(self, held: pa.Table, closer: Mapping[str, list[Row]]) -> None:
        once = held.group_by(["position", "target", "segment", "content", "number"]).aggregate([("rows", "max")])
        seen = once.group_by(["position", "target"]).aggregate([("rows_max", "sum")]).to_pylist()
        tables: dict[str, dict[str, int]] = {}
        for row in seen:
            tables.setdefault(row["position"], {})[row["target"]] = row["rows_max_sum"]
        for position, of in tables.items():
            rows = closer[position]
            at = pa.array([max(rows, key=lambda row: row["last"])["ended_at" if self.by_time else "last"]])
            where = int(self._bin(at)[0])
            kept: dict[str, int] = {}
            for row in rows:
                for table, counted in json.loads(row["rows"] or "{}").items() if row["outcome"] == COMMITTED else ():
                    kept[table] = kept.get(table, 0) + sum(counted.values())
            settled = all(row["outcome"] in (COMMITTED, REPEATED, *VOID) for row in rows)
            for table, count in of.items():
                counts = min(count, kept.get(table, 0))
                for which, rows_of in ((0, count), (1, counts), (2, count - counts if settled else 0)):
                    self._add(table, which, where, rows_of)

    def _add(self, table: str | None, which: int, where: int, rows: int) -> None:
        if (table or "") not in self.of:
            self.of[table or ""] = np.zeros((3, self.bins), np.int64)
        self.of[table or ""][which][where] += rows
