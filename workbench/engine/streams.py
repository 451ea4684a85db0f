"""What the logs of a stream hold: read out of the table `transactions`, a log at a time.

Of a log with millions of transactions only sums are kept, and the few that a person has to know of; comparing two logs reads
five columns of both.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.parquet_read import Part, stream_part
from workbench.engine.selective_read import rows_where
from workbench.replication.stream.rules.segments import ABORTED, COMMITTED, CORRUPT, EVENT, REPEATED, ROLLED_BACK
from workbench.replication.stream.rules.streams import Entry
from workbench.tables import SCHEMAS, SOURCE, Numbers, joined

BIG_MESSAGES, BIG_BYTES, BIG_ROWS = 16, 16 << 20, 100_000
"""From so many messages, bytes or rows on a transaction is big: it fills at least a dozen messages of the usual limit."""

BIGGEST = 20
"""So many big transactions of a log are told of."""

_VOID = (ROLLED_BACK, ABORTED)
_COLUMNS = [name for name in SCHEMAS["transactions"].names if name not in SOURCE]


@dataclass
class Sums:
    """Of one log and origin: how many transactions ended how, and what they hold.

    unnumbered  commits whose messages do not say which is the last: of a filter, or of a writer before 2011
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    seen: int = 0
    kept: int = 0
    cancelled: int = 0
    repeated: int = 0
    ragged: int = 0
    unnumbered: int = 0
    tables: dict[str, Counter[str]] = field(default_factory=dict)
    first: tuple[int, str] | None = None
    last: tuple[int, str] | None = None
    until: Any = None


@dataclass(frozen=True)
class StreamLog:
    """One log of a stream.

    lost   places in it at which records could not be read
    parts  of the table `transactions`
    """

    server: str
    file: str
    parts: Sequence[Part]
    lost: tuple[int, ...]

    @cached_property
    def sums(self) -> dict[str, Sums]:
        """Origin -> what its transactions come to."""
        found: dict[str, Sums] = {}
        for batch in self._batches(_COLUMNS):
            for origin in pc.unique(batch["origin"]).to_pylist():
                _add(found.setdefault(origin, Sums()), batch.filter(pc.equal(batch["origin"], origin)))
        return found

    @property
    def committed(self) -> dict[str, int]:
        """Origin -> how many of its transactions were committed."""
        return {origin: one.outcomes[COMMITTED] for origin, one in self.sums.items()}

    @cached_property
    def by_commit(self) -> bool:
        """True if the log tells the order of commits itself: then its records may stand in any order."""
        return any(pc.any(batch["commit"].is_valid()).as_py() for batch in self._batches(["commit"]))

    @cached_property
    def first_commit(self) -> int | None:
        """The lowest number of a commit that it has; None: it does not number them."""
        lowest = (pc.min(batch["commit"]).as_py() for batch in self._batches(["commit"]))
        return min((commit for commit in lowest if commit is not None), default=None)

    @cached_property
    def last_commit(self) -> int | None:
        """The highest number of a commit that it has; None: it does not number them."""
        highest = (pc.max(batch["commit"]).as_py() for batch in self._batches(["commit"]))
        return max((commit for commit in highest if commit is not None), default=None)

    def entries(self, origin: str) -> list[Entry]:
        """Its transactions of one origin, as they are compared. What was delivered again is left out."""
        place, found = self.order, []
        wanted = dict.fromkeys(["origin", "position", "outcome", "content", "ended", place, self.begin])
        for batch in self._batches([*wanted]):
            rows = batch.filter(pc.and_(pc.equal(batch["origin"], origin), pc.not_equal(batch["outcome"], REPEATED)))
            # A filtered copy leaves out statements, and says no more which message is the last: its contents differ.
            content = pc.if_else(rows["ended"].is_null(), None, rows["content"])
            columns = rows["position"], rows[place], rows["outcome"], content, rows["content"], rows["ended"]
            lists = [column.to_pylist() for column in (*columns, rows[self.begin])]
            found += [
                Entry(a, b or 0, c, d, e, c == CORRUPT and f is False, g or 0)
                for a, b, c, d, e, f, g in zip(*lists, strict=True)
            ]
        return found

    def rows_of(self, origin: str, positions: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Position -> the whole row of these transactions; of a number used twice the last one, a start only if alone."""
        where = (pc.field("origin") == origin) & pc.field("position").isin(pa.array(list(positions), pa.string()))
        rows = rows_where(self.parts, _COLUMNS, where).to_pylist() if positions else []
        return {row["position"]: row for row in sorted(rows, key=lambda row: (row["outcome"] != EVENT, row["last"]))}

    def odd(self, limit: int) -> list[dict[str, Any]]:
        """The transactions that are no plain commits, the first ones up to the limit, and the biggest ones."""
        where = pc.field("why").is_valid() | (pc.field("ragged") > 0) | (pc.field("repeated") > 0)
        rows = {(row["origin"], row["offset"]): row for row in self._first(where, "offset", limit)}
        return sorted(
            ({(row["origin"], row["offset"]): row for row in self.big()} | rows).values(), key=lambda row: row["offset"]
        )

    def big(self) -> list[dict[str, Any]]:
        """The biggest transactions, those that are big at all, the biggest first; `held` is how many ended while it was open."""
        big = (pc.field("messages") >= BIG_MESSAGES) | (pc.field("bytes") >= BIG_BYTES) | (pc.field("seen") >= BIG_ROWS)
        rows = self._first(big & (pc.field("outcome") != EVENT), "bytes", BIGGEST, "descending")
        return [row | {"held": int(count)} for row, count in zip(rows, self._held(rows), strict=True)]

    def interleaved(self, origin: str) -> bool:
        """True if others ended between the messages of a transaction, of the biggest ones that have several."""
        several = (pc.field("messages") > 1) & (pc.field("origin") == origin)
        return bool(self._held(self._first(several, "bytes", BIGGEST, "descending")).any())

    def _held(self, rows: Sequence[Mapping[str, Any]]) -> Numbers:
        """How many transactions ended while each of these was open."""
        held = np.zeros(len(rows), np.int64)
        # An exported table stands in the order of numbers: there only the times tell what came in between.
        begin, end = ("started_at", "ended_at") if self.by_commit else ("offset", "last")
        spans = [(_number(row[begin]), _number(row[end])) for row in rows]
        for batch in self._batches([end]) if rows else ():
            ends = pc.fill_null(batch[end].cast(pa.int64()), 0).to_numpy()
            held += np.array([np.count_nonzero((ends > low) & (ends < high)) for low, high in spans])
        return held

    @property
    def order(self) -> str:
        """The column that tells the order of commits."""
        return "commit" if self.by_commit else "last"

    @property
    def begin(self) -> str:
        """The column that tells where the first message of a transaction stands in this order."""
        return "commit" if self.by_commit else "offset"

    def commits(self, after: int = -1, upto: int | None = None, origin: str | None = None) -> Iterator[dict[str, Any]]:
        """What was committed behind a place, up to another; of one origin if named. In no order."""
        where = (pc.field("outcome") == COMMITTED) & (pc.field(self.order) > after)
        where = where if upto is None else where & (pc.field(self.order) <= upto)
        where = where if origin is None else where & (pc.field("origin") == origin)
        for part in self.parts:
            for batch in stream_part(part["path"], _COLUMNS, where):
                yield from batch.to_pylist()

    def table_changes(self, origin: str, after: int, upto: int, limit: int) -> list[dict[str, Any]]:
        """The first commits of an origin between two places, the later one included, with statements that change no rows."""
        where = (pc.field("outcome") == COMMITTED) & (pc.field("origin") == origin) & pc.field("ddl").is_valid()
        where &= (pc.field(self.order) > after) & (pc.field(self.order) <= upto)
        return self._first(where, self.order, limit)

    def first_commits(self, origin: str, limit: int) -> list[str]:
        """The positions of its first commits of an origin, in the order of commits."""
        where = (pc.field("outcome") == COMMITTED) & (pc.field("origin") == origin)
        return [row["position"] for row in self._first(where, self.order, limit)]

    def begins_with_event(self, origin: str) -> bool:
        """True if the first that it has of a server is that it started or stopped."""
        first = next(iter(self._first(pc.field("origin") == origin, "offset", 1)), None)
        return first is not None and first["outcome"] == EVENT

    def first_of(self, origin: str) -> dict[str, Any] | None:
        """The first transaction that it has something of."""
        where = (pc.field("origin") == origin) & (pc.field("outcome") != EVENT)
        return next(iter(self._first(where, "offset", 1)), None)

    def ended_so(self, origin: str, outcomes: Iterable[str], limit: int) -> list[str]:
        """The positions of the first transactions with these outcomes."""
        where = (pc.field("origin") == origin) & pc.field("outcome").isin(sorted(outcomes))
        return [row["position"] for row in self._first(where, "offset", limit)]

    def last_before(self, origin: str, place: int, limit: int) -> list[dict[str, Any]]:
        """The last of its commits of an origin before a place, the last one first."""
        where = (pc.field("outcome") == COMMITTED) & (pc.field(self.order) < place) & (pc.field("origin") == origin)
        return self._first(where, self.order, limit, "descending")

    def at_commit(self, commit: int) -> dict[str, Any] | None:
        """The last that was committed up to a commit; of logs that number these."""
        return next(iter(self._first(pc.field("commit") <= commit, "commit", 1, "descending")), None)

    def after(self, commit: int) -> Iterator[pa.RecordBatch]:
        """The origin, position, commit and outcome of what stands behind a commit; of logs that number these."""
        columns = ["origin", "position", "commit", "outcome"]
        for part in self.parts:
            yield from stream_part(part["path"], columns, pc.field("commit") > commit)

    def _first(self, where: pc.Expression, by: str, limit: int, order: str = "ascending") -> list[dict[str, Any]]:
        """The first rows that fit, in the order of a column: no more of them are ever held."""
        kept = pa.table({})
        for part in self.parts:
            for batch in stream_part(part["path"], _COLUMNS, where):
                some = joined([pa.Table.from_batches([batch]), *([kept] if len(kept) else [])])
                kept = some.take(pc.sort_indices(some, [(by, order), ("offset", "ascending")])[:limit])
        return kept.to_pylist()

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part in self.parts:
            yield from stream_part(part["path"], list(columns))


def _number(value: Any) -> int:
    """A place, or a time in microseconds since 1970; 0 where nothing tells."""
    return value if isinstance(value, int) else 0 if value is None else round(value.timestamp() * 1e6)


def _add(sums: Sums, batch: pa.RecordBatch) -> None:
    """Count these transactions of one origin in."""
    plain = {name: batch[name] for name in batch.schema.names}
    outcome = plain["outcome"].cast(pa.string())
    sums.outcomes.update({one["values"]: one["counts"] for one in pc.value_counts(outcome).to_pylist()})
    for name in ("bytes", "seen", "kept", "repeated", "ragged"):
        setattr(sums, name, getattr(sums, name) + (pc.sum(plain[name]).as_py() or 0))
    void = pc.is_in(outcome, pa.array(_VOID))
    sums.cancelled += pc.sum(pc.if_else(void, plain["seen"], 0)).as_py() or 0
    committed = pc.equal(outcome, COMMITTED)
    sums.unnumbered += pc.sum(pc.and_(committed, plain["ended"].is_null())).as_py() or 0
    sums.cancelled += pc.sum(pc.if_else(committed, pc.subtract(plain["seen"], plain["kept"]), 0)).as_py() or 0
    for one in pc.value_counts(plain["rows"].filter(committed).cast(pa.string())).to_pylist():
        for name, operations in json.loads(one["values"] or "{}").items():
            of_table = sums.tables.setdefault(name, Counter())
            for operation, rows in operations.items():
                of_table[operation] += rows * one["counts"]
    ended = batch.filter(committed)
    if ended.num_rows:
        order = pc.sort_indices(ended, [("last", "ascending")])
        ends = [(ended["last"][i.as_py()].as_py(), ended["position"][i.as_py()].as_py()) for i in (order[0], order[-1])]
        sums.first = min(filter(None, (sums.first, ends[0])))
        sums.last = max(filter(None, (sums.last, ends[1])))
        until = pc.max(ended["ended_at"]).as_py()
        sums.until = max(filter(None, (sums.until, until)), default=None)
