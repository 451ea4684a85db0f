"""Contents of transactions in two logs of a stream, where messages have no numbers: conflicts, and what a copy leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.engine.selective_read import rows_where
from workbench.engine.stream_diff import Compared
from workbench.engine.streams import StreamLog
from workbench.engine.streams_unnumbered import ContentsOfTwo, rows_of_text
from workbench.replication.stream.diagnosis.parts import moved
from workbench.replication.stream.rules.segments import COMMITTED
from workbench.replication.stream.rules.streams import FILTERED, UNRELATED, Difference

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.log_comparison import Streams


def with_contents(found: Compared, contents: ContentsOfTwo, source: StreamLog, origin: str, limit: int) -> Compared:
    """What was found of two logs, with the conflicts that their contents show, and without what a copy leaves out."""
    if found.shared is None or not contents.counts:
        return found
    if contents.unrelated:
        return _unrelated(found, source, origin, limit)
    known = set(found.difference.conflicts)
    more = [position for _, position in contents.unlike if position not in known]
    conflicts = [*found.difference.conflicts, *more][:limit]
    counts = found.counts.copy()
    counts["conflicts"] += len(more)
    made = replace(found, difference=replace(found.difference, conflicts=conflicts), counts=counts)
    return moved(made, set(), dict.fromkeys(_of_left_out(found.difference, contents, source, origin), FILTERED), set())


def _of_left_out(one: Difference, contents: ContentsOfTwo, source: StreamLog, origin: str) -> set[str]:
    """Which of the lacked transactions changed nothing but tables that the copy leaves out of others."""
    lacked = [lack.position for lack in (*one.inside, *one.behind)]
    rows = source.rows_of(origin, lacked) if contents.left_out else {}
    return {at for at, row in rows.items() if is_of_left_out(contents, row)}


def is_of_left_out(contents: ContentsOfTwo, row: Mapping[str, Any]) -> bool:
    """True if a transaction of the source changed nothing but tables that the copy leaves out of others."""
    tables = rows_of_text(row["rows"] or "{}").keys()
    return bool(tables) and not row["ddl"] and tables <= contents.left_out.keys()


def _unrelated(found: Compared, source: StreamLog, origin: str, limit: int) -> Compared:
    """The same of two servers that run under one id."""
    where = (pc.field("origin") == origin) & (pc.field("outcome") == COMMITTED)
    rows = rows_where(source.parts, ["position", source.order], where).to_pylist()
    places = sorted((row[source.order] or 0, row["position"]) for row in rows)
    unknown = [(position, place, UNRELATED) for place, position in places]
    counts = Counter(dict.fromkeys(found.counts, 0) | {"unknown": len(unknown)})
    made = Difference(None, unknown=unknown[:limit], unrelated=True)
    return replace(found, difference=made, shared=None, counts=counts, first=None, last=None, bytes=0, rows=0)


def left_out(streams: Streams, server: str, origin: str) -> frozenset[str]:
    """The tables that the log of a server has nothing of, though its source changed them in transactions that both have."""
    source = streams.source_for(server, origin)
    return frozenset(streams.contents(source, server, origin).left_out) if source is not None else frozenset()
