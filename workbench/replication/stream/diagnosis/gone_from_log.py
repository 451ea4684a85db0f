"""Transactions that a log of an earlier snapshot has, and the present log of the same server lacks, or has otherwise.

    log of a, first snapshot   1 2 3 4 5
    log of a, second snapshot  1 2 3   5 6 7      4 was committed, and its log does not give it any more
    log of a, another one      1 2 3 4' 5 6       4 has another content: nothing tells which of the two was committed

What the present log begins behind was purged, and is not told. Where the present log ends before what an earlier one has, its
server was set back, or its log is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from workbench.engine.stream_diff import Compared, compared
from workbench.engine.streams import StreamLog
from workbench.replication.stream.diagnosis.earlier_logs import EarlierLog, log_in_words, under_same_commits
from workbench.replication.stream.rules.segments import COMMITTED, CONFLICT, EVENT, NUMBER_REUSED
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
    holder   the name of the server in that snapshot: its file may have another one now
    content  a hash of what counts of it
    ordered  whether that place is its own
    moved    the server of that log was the source of the origin then, and is not now
    """

    position: str
    place: int
    snapshot: str
    holder: str
    file: str
    content: int | None
    ordered: bool = True
    moved: bool = False

    @property
    def log(self) -> str:
        """The log that has it, in words."""
        return log_in_words(self.holder, self.snapshot)


class Changed(NamedTuple):
    """A transaction with one content in an earlier log of a server, and with another one in the present log.

    moved  as of what is gone
    """

    position: str
    place: int
    snapshot: str
    holder: str
    moved: bool = False

    @property
    def log(self) -> str:
        """The log that has the other content, in words."""
        return log_in_words(self.holder, self.snapshot)


class Renumbered(NamedTuple):
    """Numbers of commits under which the present log of a master has other transactions than an earlier one.

    first  the first of them; was, now: what the two logs have under it; numbers: how many such there are
    """

    snapshot: str
    first: int
    was: str
    now: str
    numbers: int


@dataclass
class History:
    """What the present logs have otherwise than earlier logs of the same servers; keys: server and origin, or the server."""

    gone: dict[tuple[str, str], list[Gone]] = field(default_factory=dict)
    changed: dict[tuple[str, str], list[Changed]] = field(default_factory=dict)
    renumbered: dict[str, Renumbered] = field(default_factory=dict)


def history_of(streams: Streams) -> History:
    """Every present log held against those of earlier snapshots; each list in the order of commits."""
    gone: dict[tuple[str, str], dict[str, Gone]] = {}
    changed: dict[tuple[str, str], dict[str, Changed]] = {}
    found = History()
    for server, earlier in streams.earlier:
        log, now = earlier.log, streams.logs[server]
        for origin in sorted(filter(earlier.tells_of, now.sums)):
            one, key = compared(log, now, origin, LOOKED_BACK), (server, origin)
            if one.shared is not None:
                gone.setdefault(key, {}).update((each.position, each) for each in _gone(earlier, one, now, origin))
                again = {each.position: each for each in _changed(earlier, one.difference.conflicts, now, origin)}
                changed.setdefault(key, {}).update(again)
        if not earlier.moved and (anew := _renumbered(earlier, now)) is not None:
            found.renumbered[server] = anew
    for key, of_log in gone.items():
        if of_log:
            found.gone[key] = sorted(of_log.values(), key=lambda each: (each.place, each.position))
    for key, others in changed.items():
        if others:
            found.changed[key] = sorted(others.values(), key=lambda each: (each.place, each.position))
    return found


def _gone(earlier: EarlierLog, one: Compared, now: StreamLog, origin: str) -> Iterator[Gone]:
    log = earlier.log
    places = {
        lack.position: lack.place for lack in (*one.difference.inside, *one.difference.behind) if not lack.outcome
    }
    places |= {at: place for at, place, why in one.difference.unknown if why == LOST}
    rows, there = log.rows_of(origin, sorted(places)), without_starts(now.rows_of(origin, sorted(places)))
    positions = sorted((at for at in rows if at not in there), key=lambda at: (places[at], at))
    since = reached_before(log, now, origin, [places[at] for at in positions])
    last, side = -1, 0
    for position, behind in zip(positions, since, strict=True):
        last, side = behind, side + 1 if behind == last else 1
        # Of logs that number their commits the number is the place.
        place = places[position] if now.by_commit else behind + min(side, SIDE_BY_SIDE)
        ordered = now.by_commit or side < SIDE_BY_SIDE
        content, moved = rows[position]["content"], bool(earlier.moved)
        yield Gone(position, place, earlier.snapshot, earlier.server, log.file, content, ordered, moved)


def without_starts(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The same without starts and stops of a server: each has a number, as a transaction does, and is none."""
    return {position: row for position, row in rows.items() if row["outcome"] != EVENT}


def _changed(earlier: EarlierLog, positions: Sequence[str], now: StreamLog, origin: str) -> Iterator[Changed]:
    """A number that was given again, or that came with two contents in the present log alone, is told by other findings."""
    for position, row in now.rows_of(origin, positions).items():
        if row["outcome"] != CONFLICT and row["why"] != NUMBER_REUSED:
            yield Changed(position, row[now.order], earlier.snapshot, earlier.server, bool(earlier.moved))


def _renumbered(earlier: EarlierLog, now: StreamLog) -> Renumbered | None:
    """None: both have the same under each number of a commit that both have, or do not number them."""
    if not (earlier.log.by_commit and now.by_commit):
        return None
    was, those = under_same_commits(earlier.log, now)
    same = pc.and_(pc.equal(was["origin"], those["origin"]), pc.equal(was["position"], those["position"]))
    differ = np.flatnonzero(~same.to_numpy())
    if not len(differ):
        return None
    first = int(differ[0])
    commit, before, after = (column[first].as_py() for column in (was["commit"], was["position"], those["position"]))
    return Renumbered(earlier.snapshot, commit, before, after, len(differ))


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
