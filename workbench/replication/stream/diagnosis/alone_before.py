"""What an earlier log of a copy has of its own, and its present log does not show any more: its rows may still be there.

    log of a, the source, both snapshots   1 2 3     4 5 6
    log of b, first snapshot               1 2 3 900 4          900 is b's own
    log of b, second snapshot                          5 6      it was begun anew, and shows nothing of 900

What an earlier log has before all that it shares with its source, or behind all that its source shows, proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.selective_read import rows_where
from workbench.engine.streams import StreamLog
from workbench.replication.stream.rules.segments import COMMITTED

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.earlier_logs import EarlierLog
    from workbench.replication.stream.diagnosis.log_comparison import Streams


class AloneBefore(NamedTuple):
    """What an earlier log of a server has, and no other log of any other server, in the order of that log."""

    server: str
    origin: str
    positions: Sequence[str]
    earlier: EarlierLog


def alone_before(streams: Streams) -> Iterator[AloneBefore]:
    """The same of every server whose earlier logs have something of their own that its present log does not have."""
    told = set[tuple[str, str, str]]()
    for server, earlier in streams.earlier:
        if earlier.moved:
            continue  # it is the log of another server
        others = [log for name, log in streams.logs.items() if name != server]
        others += [other.log for name, other in streams.earlier if name != server]
        for origin in sorted(earlier.log.sums):
            if server == streams.told.get(origin) or streams.source_of(origin) == server:
                continue
            known = None if streams.is_open(origin) else streams.source_of(origin)
            sources = [log for name, log in streams.logs.items() if name == known]
            sources += [other.log for name, other in streams.earlier if name == known]
            having = any(origin in log.sums for log in others)
            found = _of_its_own(earlier.log, origin, sources, others) if having else _all_of(earlier.log, origin)
            there = streams.logs[server].rows_of(origin, found)
            left = [at for at in found if at not in there and (server, origin, at) not in told]
            if left and (having or _shares_another(earlier.log, others)):
                told |= {(server, origin, at) for at in left}
                yield AloneBefore(server, origin, left, earlier)


def _shares_another(log: StreamLog, others: Sequence[StreamLog]) -> bool:
    """True if a log is one of a copy: it has transactions of an origin that another one has, too."""
    return any(log.sums.keys() & other.sums.keys() for other in others)


def _places(log: StreamLog, origin: str) -> pa.Table:
    where = (pc.field("outcome") == COMMITTED) & (pc.field("origin") == origin)
    return rows_where(log.parts, ["position", log.order], where).rename_columns(["position", "place"])


def _all_of(log: StreamLog, origin: str) -> list[str]:
    return list(_places(log, origin).sort_by("place")["position"].to_pylist())


def _of_its_own(log: StreamLog, origin: str, sources: Sequence[StreamLog], others: Sequence[StreamLog]) -> list[str]:
    """The positions that no other log has, and a log of the source would have: it goes on behind what came before."""
    mine = _places(log, origin)
    covered = pa.array([False] * len(mine))
    for source in sources:
        theirs = _places(source, origin) if origin in source.sums else mine.slice(0, 0)
        both = pc.is_in(
            mine["position"], theirs["position"].combine_chunks() if len(theirs) else pa.array([], pa.string())
        )
        shared = mine.filter(both)
        if not len(shared) or source.lost:
            continue
        first, last = pc.min(shared["place"]), pc.max(shared["place"])
        here = theirs.filter(pc.is_in(theirs["position"], shared["position"].combine_chunks()))
        goes_on = pc.max(theirs["place"]).as_py() > pc.max(here["place"]).as_py()
        inside = pc.greater(mine["place"], first)
        inside = inside if goes_on else pc.and_(inside, pc.less(mine["place"], last))
        covered = pc.or_(covered, inside)
    mine = mine.filter(covered)
    for other in others if len(mine) else ():
        theirs = rows_where(other.parts, ["position"], pc.field("origin") == origin)
        mine = mine.filter(pc.invert(pc.is_in(mine["position"], theirs["position"].combine_chunks())))
    return list(mine.sort_by("place")["position"].to_pylist())
