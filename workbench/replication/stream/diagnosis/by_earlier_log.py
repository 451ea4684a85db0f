"""What a copy lacks by an earlier log of its source, where the present log begins behind it.

log of a, first snapshot   1 2 3 4 5 6 7 8
log of a, second snapshot            6 7 8      (its beginning was purged)
log of b                   1 2 3   5 6 7        b passed over 4, which no present log has
log of c                   1 2 3                c needs 4 next, and then 5, which a does not have any more, either
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.engine.stream_diff import Compared, compared
from workbench.engine.streams import StreamLog
from workbench.engine.streams_unnumbered import contents_compared
from workbench.replication.stream.diagnosis.contents import with_contents
from workbench.replication.stream.diagnosis.earlier_logs import EarlierLog
from workbench.replication.stream.diagnosis.gone_from_log import without_starts
from workbench.replication.stream.diagnosis.parts import SegmentedLog, by_messages
from workbench.replication.stream.rules.segments import COMMITTED, CORRUPT, INCOMPLETE
from workbench.replication.stream.rules.streams import MissingTransaction

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.log_comparison import Streams

DAMAGED = frozenset({CORRUPT, INCOMPLETE})


class ByEarlierLog(NamedTuple):
    """What a copy lacks by an earlier log of its source, and the present log of the source does not have.

    inside   the copy is past them
    behind   the copy is not there yet: it needs them before anything that the present log has
    """

    earlier: EarlierLog
    inside: Sequence[MissingTransaction]
    behind: Sequence[MissingTransaction]


def by_earlier_logs(streams: Streams) -> dict[tuple[str, str], ByEarlierLog]:
    """(server, origin) -> the same by the latest of the earlier logs that tells anything of it."""
    found: dict[tuple[str, str], ByEarlierLog] = {}
    for source, earlier in streams.earlier:
        now = streams.logs[source]
        for origin in sorted(filter(earlier.tells_of, now.sums)):
            of_another = streams.source_of(origin) != source or streams.is_open(origin)
            if of_another or not _begins_behind(now, earlier.log, origin):
                continue
            gone = {one.position for one in streams.gone.get((source, origin), ())}
            goes_on: bool | None = None
            for name, log in streams.logs.items():
                if name == source or origin not in log.sums:
                    continue
                both = _compared(streams, earlier, name, origin)
                lacks = [*both.difference.inside, *both.difference.behind] if both.shared else []
                there = gone | without_starts(now.rows_of(origin, [lack.position for lack in lacks])).keys()
                inside, behind = (
                    [lack for lack in some if lack.position not in there]
                    for some in (both.difference.inside, both.difference.behind)
                )
                if behind and goes_on is None:
                    goes_on = compared(earlier.log, now, origin, 1).difference.last is not None
                if inside or (behind and goes_on):
                    found[name, origin] = ByEarlierLog(earlier, inside, behind if goes_on else ())
    return found


def _begins_behind(now: StreamLog, log: StreamLog, origin: str) -> bool:
    """True if the present log begins behind something that an earlier one has; what it lacks further on, it lost."""
    if now.by_commit and log.by_commit:
        return (now.first_commit or 0) > (log.first_commit or 0)
    first = log.sums[origin].first
    return first is not None and not without_starts(now.rows_of(origin, [first[1]]))


def _compared(streams: Streams, earlier: EarlierLog, server: str, origin: str) -> Compared:
    log, limit = streams.logs[server], streams.limit
    segmented = SegmentedLog(earlier.log, streams.case.parts("segments", earlier.file))
    both = by_messages(compared(earlier.log, log, origin, limit), segmented, streams.segmented(server), origin, limit)
    return with_contents(both, contents_compared(earlier.log, log, origin), earlier.log, origin, limit)


def whole_before(streams: Streams, server: str, origin: str, position: str) -> str:
    """The earlier log of a server that has whole what its present log has damaged or in part, in words; empty: there is none.

    Both have the same messages, as far as the present log shows them.
    """
    found = whole_before_in(streams, server, origin, position, DAMAGED)
    return found.earlier.place if found else ""


class WholeBefore(NamedTuple):
    """An earlier log that has a transaction whole, and its row there."""

    earlier: EarlierLog
    row: Mapping[str, Any]


def whole_before_in(
    streams: Streams, server: str, origin: str, position: str, outcomes: Collection[str]
) -> WholeBefore | None:
    """The same with its row, of what ended so in the present log."""
    now = streams.logs[server].rows_of(origin, [position]).get(position)
    if now is None or now["outcome"] not in outcomes:
        return None
    here = streams.segmented(server).messages(origin, [position]).get(position)
    for name, earlier in reversed(streams.earlier):
        told = name == server and not earlier.moved
        row = earlier.log.rows_of(origin, [position]).get(position) if told else None
        if row is None or row["outcome"] != COMMITTED:
            continue
        segmented = SegmentedLog(earlier.log, streams.case.parts("segments", earlier.file))
        there = segmented.messages(origin, [position]).get(position)
        same = now["outcome"] == CORRUPT and None is not row["content"] == now["content"]
        if here and there and here.places:
            same = same or here.places.keys() <= there.places.keys()
        if same:
            return WholeBefore(earlier, row)
    return None
