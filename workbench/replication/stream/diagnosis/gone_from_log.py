"""Transactions that a log of an earlier snapshot has, and the present log of the same server lacks.

    log of a, first snapshot   1 2 3 4 5
    log of a, second snapshot  1 2 3   5 6 7      4 was committed, and its log does not give it any more

What the present log begins behind was purged, and is not told. Where the present log ends before what an earlier one has, its
server was set back, or its log is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from workbench.engine.stream_diff import compared
from workbench.engine.streams import StreamLog
from workbench.replication.stream.rules.segments import COMMITTED
from workbench.replication.stream.rules.streams import LOST

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.log_comparison import Streams

LOOKED_BACK = 10_000
"""So many transactions before the first that is gone are looked for in the present log."""

SIDE_BY_SIDE = 20
"""So many that are gone one behind the other have places of their own between two records of the present log."""


class Gone(NamedTuple):
    """A transaction that an earlier log of a server has.

    place    where the present log would have it, behind all that was committed before it
    content  a hash of what counts of it
    ordered  whether that place is its own
    """

    position: str
    place: int
    snapshot: str
    file: str
    content: int | None
    ordered: bool = True


def gone_from_logs(streams: Streams) -> dict[tuple[str, str], list[Gone]]:
    """(server, origin) -> what its log lacks of that of an earlier snapshot, in the order of commits."""
    labels = [*streams.case.snapshots]
    before = labels[: labels.index(streams.shown.snapshot)] if streams.shown.snapshot in labels else []
    found: dict[tuple[str, str], list[Gone]] = {}
    for one in streams.shown.replicas:
        if one.log is None:
            continue
        now, kind = streams.logs[one.server], one.log.kind
        told: dict[tuple[str, str], Gone] = {}
        for earlier in streams.case.inputs:
            if (earlier.server, earlier.kind) == (one.server, kind) and earlier.snapshot in before:
                log = streams.stored(one.server, earlier)
                for origin in sorted(log.sums.keys() & now.sums.keys()):
                    told |= {(origin, gone.position): gone for gone in _gone(earlier.snapshot, log, now, origin)}
        for (origin, _), gone in sorted(told.items(), key=lambda item: (item[0][0], item[1].place, item[0][1])):
            found.setdefault((one.server, origin), []).append(gone)
    return found


def _gone(snapshot: str, log: StreamLog, now: StreamLog, origin: str) -> Iterator[Gone]:
    one = compared(log, now, origin, LOOKED_BACK)
    if one.shared is None:
        return
    places = {
        lack.position: lack.place for lack in (*one.difference.inside, *one.difference.behind) if not lack.outcome
    }
    places |= {at: place for at, place, why in one.difference.unknown if why == LOST}
    rows, there = log.rows_of(origin, sorted(places)), now.rows_of(origin, sorted(places))
    positions = sorted((at for at in rows if at not in there), key=lambda at: (places[at], at))
    since = reached_before(log, now, origin, [places[at] for at in positions])
    last, side = -1, 0
    for position, behind in zip(positions, since, strict=True):
        last, side = behind, side + 1 if behind == last else 1
        # Of logs that number their commits the number is the place.
        place = places[position] if now.by_commit else behind + min(side, SIDE_BY_SIDE)
        row = rows[position]
        yield Gone(position, place, snapshot, log.file, row["content"], now.by_commit or side < SIDE_BY_SIDE)


def reached_before(theirs: StreamLog, mine: StreamLog, origin: str, places: Sequence[int]) -> list[int]:
    """For each of these ascending places of one log: the last place in another of what that one had committed before.

    What stands behind it there was done later; -1 is before all of it.
    """
    there = theirs.last_before(origin, places[0], LOOKED_BACK) if places else []
    there += list(theirs.commits(places[0] - 1, places[-1], origin)) if places else []
    held = mine.rows_of(origin, sorted({row["position"] for row in there}))
    both = sorted((row[theirs.order], held[row["position"]][mine.order]) for row in there if row["position"] in held)
    found, last, at = [], -1, 0
    for place in places:
        while at < len(both) and both[at][0] < place:
            last, at = max(last, both[at][1]), at + 1
        found.append(last)
    return found


def still_in(log: StreamLog, origin: str, gone: Iterable[Gone]) -> set[str]:
    """The positions of those that a log has as the earlier one had them."""
    wanted = {one.position: one for one in gone}
    rows = log.rows_of(origin, sorted(wanted))
    return {
        at
        for at, row in rows.items()
        if row["outcome"] == COMMITTED and None is not row["content"] == wanted[at].content
    }
