"""What a copy of a stream needs before other transactions, and the log of its source cannot give.

The source committed something where its log has a record that does not fit its checksum, a transaction that lacks a message,
or a place that is no record. Whoever applies what follows, and goes on behind that, makes a missed change where none was:

    a  1 2 3 4 (5) 6 7      5 is damaged; b waits for it, and then for 6 and 7
    b  1 2 3 4
    c  1 2 3 4  5  6 7      the message of 5 is the same: it can be taken from here
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.selective_read import rows_where
from workbench.engine.streams import StreamLog
from workbench.model import listed
from workbench.replication.stream.diagnosis.by_earlier_log import whole_before
from workbench.replication.stream.diagnosis.gone_from_log import still_in
from workbench.replication.stream.rules.segments import COMMITTED, CORRUPT, INCOMPLETE
from workbench.replication.stream.rules.streams import ANYWHERE, SOURCE_UNCLEAR, Shared

if TYPE_CHECKING:
    from workbench.replication.stream.diagnosis.log_comparison import Streams

Row = Mapping[str, Any]

_NAMED = 3
"""So much of it a sentence names."""


class NotGiven(NamedTuple):
    """Something in the log of a source that the log cannot give, where a copy has nothing of it.

    position  None: nothing tells what was there
    outcome   of the transaction in the log of the source; None as well, and where only an earlier log of it has the transaction
    snapshot  the one with that earlier log
    holders   the servers whose logs have it whole, and have the same messages as far as the source's log shows them
    changed   the log of the source has it whole, and with another content than that earlier log
    earlier   the log of an earlier snapshot that has it whole, in words; empty: none is known
    moved     that is the log of the server that was the source then
    """

    place: int
    position: str | None
    outcome: str | None
    holders: tuple[str, ...] = ()
    snapshot: str | None = None
    changed: bool = False
    earlier: str = ""
    moved: bool = False

    def says(self, source: str, name: str) -> str:
        """What is the matter with it; `name` is how the position is shown."""
        if self.position is None:
            return f"the log of {source} lost records there"
        whole = f" (whole in the log of {listed(self.holders, 'or')})" if self.holders else ""
        if self.moved:
            if self.changed:
                return f"the log of {source} has {name} with another content than {self.earlier}"
            return f"the log of {source} lacks {name}, and {self.earlier} has it{whole}"
        if self.changed:
            return f"the log of {source} has {name} with another content than in snapshot {self.snapshot}"
        if self.snapshot is not None:
            return f"the log of {source} has {name} no more, as it had in snapshot {self.snapshot}{whole}"
        whole = whole or (f" (whole in {self.earlier})" if self.earlier else "")
        how = {CORRUPT: "damaged", INCOMPLETE: "in part"}.get(self.outcome or "", "in a form that is not understood")
        return f"the log of {source} has {name} {how}{whole}"


def not_given(streams: Streams, server: str, origin: str) -> list[NotGiven]:
    """All of it that stands before something that the server lacks, in the order of commits; none where the source is not known.

    What nothing tells about counts only behind all that the server is known to have.
    """
    source, both = streams.source_of(origin), streams.differences.get((server, origin))
    if source in (None, server) or both is None or both.shared is None or streams.is_open(origin):
        return []
    assert source is not None
    upto = max((lack.place for lack in (*both.difference.inside, *both.difference.behind)), default=-1)
    unclear = {
        at: place
        for at, place, why in both.difference.unknown
        if why == SOURCE_UNCLEAR and both.shared.begins < place < upto
    }
    log = streams.logs[source]
    rows = log.rows_of(origin, sorted(unclear))
    holders = _holders(streams, source, server, origin, rows)
    found = [
        NotGiven(place, at, rows[at]["outcome"], holders.get(at, ()), earlier=whole_before(streams, source, origin, at))
        for at, place in unclear.items()
        if at in rows
    ]
    for gone in streams.gone_from_source(server, origin):
        if both.shared.begins < gone.place < upto:
            others = sorted(streams.logs.keys() - {source, server}) if gone.ordered else []
            having = tuple(name for name in others if still_in(streams.logs[name], origin, [gone]))
            found.append(
                NotGiven(gone.place, gone.position, None, having, gone.snapshot, earlier=gone.log, moved=gone.moved)
            )
    for one in streams.changed_at_source(server, origin):
        if both.shared.begins < one.place <= upto:
            told = one.log if one.moved else ""
            found.append(NotGiven(one.place, one.position, None, (), one.snapshot, True, told, one.moved))
    recorded = _records_of(streams, source, origin, unclear)
    found += [NotGiven(place, None, None) for place in _lost(log, both.shared, upto) if place not in recorded]
    return sorted(found, key=lambda lack: (lack.place, lack.position or ""))


def said_first(
    streams: Streams, server: str, origin: str, shared: Shared | None, show: Callable[[str], str]
) -> list[str]:
    """The same of what the server is not past, in words; no more than a sentence can hold."""
    source, first = streams.source_of(origin) or "", _not_passed(streams, server, origin, shared)
    return [lack.says(source, show(lack.position) if lack.position else "") for lack in first[:_NAMED]]


def differs_from_earlier(streams: Streams, server: str, origin: str, shared: Shared | None) -> bool:
    """True if some of it is what the log of the source has no more, or otherwise than in an earlier snapshot."""
    return any(lack.snapshot is not None for lack in _not_passed(streams, server, origin, shared))


def _not_passed(streams: Streams, server: str, origin: str, shared: Shared | None) -> list[NotGiven]:
    covers = shared.covers if shared else 0
    return [lack for lack in not_given(streams, server, origin) if lack.place > covers]


def _holders(
    streams: Streams, source: str, server: str, origin: str, rows: Mapping[str, Row]
) -> dict[str, tuple[str, ...]]:
    """Position -> the servers whose logs have it whole and alike."""
    parts = streams.segmented(source).messages(origin, rows)
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(streams.logs.keys() - {source, server}):
        there = {at: row for at, row in streams.logs[name].rows_of(origin, sorted(rows)).items() if _is_whole(row)}
        whole = streams.segmented(name).messages(origin, there)
        for at, row in there.items():
            part, of_it = parts.get(at), whole.get(at)
            same = rows[at]["outcome"] == CORRUPT and None is not row["content"] == rows[at]["content"]
            if rows[at]["outcome"] == INCOMPLETE and part and of_it:
                same = part.numbered and of_it.numbered and part.places.keys() <= of_it.places.keys()
            if same:
                found[at] = (*found.get(at, ()), name)
    return found


def _is_whole(row: Row) -> bool:
    return bool(row["outcome"] == COMMITTED)


def _records_of(streams: Streams, source: str, origin: str, positions: Iterable[str]) -> set[int]:
    """Where the records of these transactions stand in the log of the source."""
    where = (pc.field("origin") == origin) & pc.field("position").isin(pa.array(sorted(positions), pa.string()))
    return set(rows_where(streams.segmented(source).segments, ["offset"], where)["offset"].to_pylist())


def _lost(log: StreamLog, shared: Shared, upto: int) -> Sequence[int]:
    """Places behind all that a copy has where the log of the source lost records.

    Of a log that numbers its commits: the numbers that are not there, as it lost records.
    """
    if not log.lost or upto <= shared.covers:
        return ()
    if ANYWHERE not in log.lost:
        return [place for place in log.lost if shared.covers < place < upto]
    there = {commit for batch in log.after(shared.covers) for commit in batch["commit"].to_pylist()}
    first = next((commit for commit in range(shared.covers + 1, upto) if commit not in there), None)
    return () if first is None else (first,)
