"""When the logs of a case saw which position: the dated rows of its tables, asked without Spark and part by part.

Of millions of rows only what the question needs is held at once: the columns of one part. What is summed up over time is
one row for each origin and step of time, however many rows there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.parquet_read import read_part
from workbench.model import System
from workbench.tables import TEXT, TIME, Numbers

_SEEN: dict[
    str, tuple[str, str, tuple[str, ...]]
] = {  # table -> its time, and which rows say that a server has the change
    "applied": ("at", "outcome", ("applied", "received")),
    "operations": ("at", "step", ("commit", "rolled_up")),
    "changes": ("logged_at", "kind", ("change",)),
}
TABLES = tuple(_SEEN)
"""The tables that tell when a server had a change."""

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
_REGROUPED = 100_000
"""Rows of sums that may wait until they are summed up themselves."""


@dataclass(frozen=True)
class Sighting:
    """One observation: by this time the server had the position.

    evidence  kind of evidence (`access_log`, `vector` ...); `snapshot`: a vector that bears no time of its own
    included  False where it is an upper bound: this position it did not have yet
    """

    position: str
    at: datetime | None
    evidence: str
    snapshot: str | None = None
    file: str | None = None
    offset: int | None = None
    included: bool = True


@dataclass(frozen=True)
class Part:
    """One part of a table, with what is known of it unread.

    suffix   of its rows that name none
    between  first and last time of its file; None where nothing tells
    """

    table: str
    path: str
    evidence: str
    snapshot: str
    file: str
    server: str
    suffix: str | None
    between: tuple[datetime, datetime] | None = None


@dataclass(frozen=True)
class ObservationQuery:
    """Which rows count: of a suffix and an origin (None: all), after one time and up to another."""

    suffix: str | None = None
    origin: str | None = None
    after: datetime | None = None
    upto: datetime | None = None

    def may_hold(self, part: Part) -> bool:
        """False if the part's file began too late or ended too early."""
        if part.between is None:
            return True
        first, last = part.between
        return not (self.upto is not None and first > self.upto) and not (self.after is not None and last <= self.after)

    def rows(self, part: Part, *more: pc.Expression) -> pc.Expression:
        """The filter for one part."""
        time, column, words = _SEEN[part.table]
        found = pc.field(column).isin(list(words)) & pc.field("position").is_valid() & pc.field(time).is_valid()
        if self.suffix is not None:
            mine = pc.field("suffix") == self.suffix
            found &= mine | pc.field("suffix").is_null() if part.suffix == self.suffix else mine
        if self.origin is not None:
            found &= pc.field("origin") == self.origin
        if self.after is not None:
            found &= pc.field(time) > pa.scalar(self.after, TIME)
        if self.upto is not None:
            found &= pc.field(time) <= pa.scalar(self.upto, TIME)
        for one in more:
            found &= one
        return found


def dated(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts whose rows bear times; some systems do not date the records of their changelogs."""
    for part in parts:
        if part.table != "changes" or not _undated(part.path):
            yield part


def _undated(path: str) -> bool:
    times = read_part(path, ["logged_at"])["logged_at"]
    return bool(times.null_count == len(times))


def highest(parts: Iterable[Part], asked: ObservationQuery) -> Sighting | None:
    """The highest position that was seen; of several sightings of it the first one."""
    return _extreme(parts, asked, pc.max, lambda new, old: new > old, None)


def lowest_above(parts: Iterable[Part], asked: ObservationQuery, position: str | None) -> Sighting | None:
    """The lowest position above this one that was seen: before that, the server did not have it."""
    return _extreme(parts, asked, pc.min, lambda new, old: new < old, position)


def _extreme(
    parts: Iterable[Part],
    asked: ObservationQuery,
    pick: Callable[[pa.ChunkedArray], pa.Scalar],
    better: Callable[[str, str], bool],
    above: str | None,
) -> Sighting | None:
    best: Sighting | None = None
    fitting = list(filter(asked.may_hold, parts))
    # From the end on that holds the answer: then the statistics of the other parts tell that nothing better is in them.
    if pick is pc.max:
        fitting.reverse()
    for part in sorted(fitting, key=_ends, reverse=pick is pc.max):
        low = best.position if best and pick is pc.max else above
        more = [pc.field("position") > low] if low is not None else []
        if best and pick is pc.min:
            more.append(pc.field("position") < best.position)
        rows = read_part(part.path, ["position", _SEEN[part.table][0], "offset"], asked.rows(part, *more))
        if not len(rows):
            continue
        position = pick(rows["position"].cast(TEXT)).as_py()
        if best is None or better(position, best.position):
            same = rows.filter(pc.equal(rows["position"].cast(TEXT), position))
            same = same.rename_columns(["position", "at", "offset"]).sort_by("at").slice(0, 1).to_pylist()[0]
            where = part.evidence, part.snapshot, part.file, same["offset"]
            best = Sighting(position, same["at"], *where, included=pick is pc.max)
    return best


def _ends(part: Part) -> tuple[bool, Any]:
    return (part.between is not None, part.between[1] if part.between else None)


def by_steps(parts: Iterable[Part], asked: ObservationQuery, step: timedelta) -> list[dict[str, Any]]:
    """Per suffix, origin, kind of evidence and step of time: lowest and highest position seen, the first and last time.

    Keys: suffix, origin, evidence, low, high, first, last.
    """
    width = step // timedelta(microseconds=1)
    waiting: list[pa.Table] = []
    most = _REGROUPED
    for part in filter(asked.may_hold, parts):
        time = _SEEN[part.table][0]
        columns = ["suffix", "origin", "position", time]
        rows = read_part(part.path, columns, asked.rows(part))
        if len(rows):
            waiting.append(_steps(rows.rename_columns([*columns[:3], "at"]), part, width))
        if sum(map(len, waiting)) > most:
            waiting = [_regrouped(waiting)]
            most = max(most, 2 * len(waiting[0]))
    return _regrouped(waiting).drop_columns(["step"]).to_pylist() if waiting else []


_KEYS = ["suffix", "origin", "evidence", "step"]


def _steps(rows: pa.Table, part: Part, width: int) -> pa.Table:
    step = pa.array(rows["at"].cast(pa.int64()).to_numpy() // width)
    suffix = pc.coalesce(rows["suffix"].cast(TEXT), pa.scalar(part.suffix, TEXT))
    keys = [suffix, rows["origin"].cast(TEXT), pa.repeat(pa.scalar(part.evidence, TEXT), len(rows)), step]
    position = rows["position"].cast(TEXT)
    whole = pa.table([*keys, position, position, rows["at"], rows["at"]], [*_KEYS, "low", "high", "first", "last"])
    return _regrouped([whole])


def _regrouped(tables: Sequence[pa.Table]) -> pa.Table:
    sums = [("low", "min"), ("high", "max"), ("first", "min"), ("last", "max")]
    grouped = pa.concat_tables(tables).group_by(_KEYS, use_threads=False).aggregate(sums)
    return grouped.select([*_KEYS, "low_min", "high_max", "first_min", "last_max"]).rename_columns(
        [*_KEYS, "low", "high", "first", "last"]
    )


def rows_about(part: str, position: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of one part that speak of exactly this position; a part that cannot hold it is told by its statistics."""
    found: list[dict[str, Any]] = read_part(part, list(columns), pc.field("position") == position).to_pylist()
    return found


def whole(at: datetime) -> datetime:
    """From when on a stamp is certain: one of whole seconds from the end of its second."""
    return at if at.microsecond else at + timedelta(seconds=1)


class OwnLog:
    """The changes that a server made itself, in one log of it, by the times that their positions carry.

    parts  of the table `positions`, with their paths and ends
    """

    def __init__(self, system: System, origin: str, parts: Iterable[Mapping[str, Any]]) -> None:
        self._system, self._origin = system, origin
        self._parts = sorted(parts, key=lambda part: tuple(part["first"]))

    def around(self, when: datetime) -> tuple[str | None, str | None]:
        """The last change that certainly was made by this time, and the first one that bears a later time."""
        before: str | None = None
        for part in sorted(self._parts, key=lambda part: tuple(part["last"]), reverse=True):
            if before and tuple(part["last"]) <= self._system.halves(before):
                break
            if self._certain(part["first"]) <= when:
                pairs = self._of_origin(part)
                at = bisect_right(pairs, when, key=self._certain)
                before = max(filter(None, (before, self._key(pairs[at - 1]) if at else None)), default=None)
        after: str | None = None
        for part in self._parts:
            if after and tuple(part["first"]) >= self._system.halves(after):
                break
            if self._made(part["last"]) > when:
                pairs = self._of_origin(part)
                at = bisect_right(pairs, when, key=self._made)
                after = min(filter(None, (after, self._key(pairs[at]) if at < len(pairs) else None)), default=None)
        return before, after

    def by_steps(
        self, after: datetime | None, upto: datetime | None, step: timedelta
    ) -> Iterator[tuple[datetime, str]]:
        """The last change of each step of time between the two, with the time from which on it was certainly made."""
        for part in self._parts:
            late, early = upto and self._certain(part["first"]) > upto, after and self._certain(part["last"]) <= after
            if late or early:
                continue
            pairs = self._of_origin(part)
            at = bisect_right(pairs, after, key=self._certain) if after else 0
            while at < len(pairs) and not (upto and self._certain(pairs[at]) > upto):
                number = (self._certain(pairs[at]) - _ZERO) // step
                # The steps are those of the logs: a time right on an edge begins the next one.
                edge = _ZERO + (number + 1) * step - timedelta(microseconds=1)
                at = bisect_right(pairs, min(edge, upto) if upto else edge, lo=at, key=self._certain)
                yield self._certain(pairs[at - 1]), self._key(pairs[at - 1])

    def _of_origin(self, part: Mapping[str, Any]) -> _Pairs:
        rows = read_part(part["path"], ["origin", "hi", "lo"], pc.field("origin") == self._origin)
        return _Pairs(rows["hi"].to_numpy(), rows["lo"].to_numpy())

    def _made(self, pair: Sequence[int]) -> datetime:
        return self._system.moment(self._key(pair)) or _NO_TIME

    def _certain(self, pair: Sequence[int]) -> datetime:
        return whole(self._made(pair))

    def _key(self, pair: Sequence[int]) -> str:
        return self._system.order_key(self._origin, int(pair[0]), int(pair[1]))


class _Pairs(Sequence[tuple[int, int]]):
    """Sorted (hi, lo) as a sequence, of which a search makes Python numbers only where it looks."""

    def __init__(self, hi: Numbers, lo: Numbers) -> None:
        self._hi, self._lo = hi, lo

    def __len__(self) -> int:
        return len(self._hi)

    def __getitem__(self, at: Any) -> Any:
        return int(self._hi[at]), int(self._lo[at])
