"""Transactions that a copy of a stream has in part, or its source, held against each other message by message.

A number alone proves nothing: every server has the id 1 that was not told otherwise.

    source  104/1 104/2 104/3     copy  104/1 104/2       the rest is missing, or on its way
    source  104/1 104/2 104/3     copy  another 104/1     two transactions under one number: a conflict
    source  104/1 x 104/2 104/3   copy  x 104/2 104/3     the log of the copy may begin behind 104/1: unknown
    source  104/1 x 104/2 104/3   copy  104/1 104/2       the copy is past x, and will not be sent it
    source  y 104/1 x 104/2       copy  y x               the copy is past 104/1: 104 cannot arrive whole, and is missing
    source  104/1 x 104/2         copy  x                 the log of the copy may begin behind 104/1: unknown
    source  y 104/1 x 104/2       copy  y (lost) x        104/1 may be what the copy lost: unknown

The last three need a log that got message after message: one with a transaction in part, or with others between its messages.
A server that applies whole transactions has the messages of each together, and 104 reaches it behind x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.parquet_read import Part
from workbench.engine.selective_read import rows_where
from workbench.engine.stream_diff import Compared
from workbench.engine.streams import StreamLog
from workbench.replication.stream.rules.segments import (
    ABORTED,
    COMMITTED,
    INCOMPLETE,
    ROLLBACK,
    ROLLBACK_STATEMENT,
    ROW_STATEMENTS,
    SET_VARIABLE,
    TABLE_STATEMENTS,
    UNFINISHED,
)
from workbench.replication.stream.rules.streams import BEGINS_LATER, LOST, MissingTransaction

IN_PART = frozenset({UNFINISHED, ABORTED, INCOMPLETE})


@dataclass(frozen=True)
class Messages:
    """The messages of a transaction that a log has: hash of each -> where it stands. `numbered`: all tell which one they are."""

    places: Mapping[int, int]
    numbered: bool


class TableStatement(NamedTuple):
    """A statement that changes a table or a schema as a whole: its kind, and the table, schema, or None if nothing names it."""

    kind: str
    target: str | None

    def __str__(self) -> str:
        return f"{self.kind} of {self.target}" if self.kind in TABLE_STATEMENTS else self.kind


@dataclass(frozen=True)
class SegmentedLog:
    """A log, and the parts of the table `segments` that hold its messages."""

    log: StreamLog
    segments: Sequence[Part]

    def messages(self, origin: str, positions: Iterable[str]) -> dict[str, Messages]:
        """Position -> what the log has of these transactions, without messages that do not fit their checksum."""
        wanted = pa.array(sorted(set(positions)), pa.string())
        if not wanted:
            return {}
        where = (pc.field("origin") == origin) & pc.field("position").isin(wanted)
        where &= (pc.field("sound").is_null() | pc.field("sound")) & pc.field("event").is_null()
        rows = rows_where(self.segments, ["position", "offset", "content", "segment"], where).to_pylist()
        found: dict[str, Messages] = {}
        for row in rows:
            before = found.get(row["position"], Messages({}, True))
            numbered = before.numbered and row["segment"] is not None
            found[row["position"]] = Messages({row["content"]: row["offset"], **before.places}, numbered)
        return found

    def table_statements(self, origin: str, positions: Iterable[str]) -> dict[str, list[TableStatement]]:
        """Position -> what these transactions do to tables and schemas as a whole, in their order; without those that do not."""
        wanted = pa.array(sorted(set(positions)), pa.string())
        if not wanted:
            return {}
        rows_and_ends = [*ROW_STATEMENTS, ROLLBACK, ROLLBACK_STATEMENT, SET_VARIABLE]
        where = (pc.field("origin") == origin) & pc.field("position").isin(wanted)
        where &= pc.field("operation").is_valid() & ~pc.field("operation").isin(rows_and_ends)
        rows = rows_where(self.segments, ["position", "offset", "number", "operation", "target"], where).to_pylist()
        found: dict[str, list[TableStatement]] = {}
        for row in sorted(rows, key=lambda row: (row["offset"], row["number"])):
            statement = TableStatement(row["operation"], row["target"] or None)
            if statement not in found.setdefault(row["position"], []):  # a record may come twice
                found[row["position"]].append(statement)
        return found

    def begun(self, origin: str, lacks: Iterable[MissingTransaction], after: int, before: int) -> set[str]:
        """Which of these transactions the log has from before a place on, and to behind another one."""
        wanted = {lack.position for lack in lacks}
        where = (pc.field("origin") == origin) & (pc.field("offset") < before) & (pc.field("last") > after)
        rows = rows_where(self.log.parts, ["position"], where) if wanted else None
        return set() if rows is None else wanted.intersection(rows["position"].to_pylist())

    def first_message(self, origin: str) -> tuple[str, int] | None:
        """The position and the hash of the first message that the log has of an origin."""
        first = self.log.first_of(origin)
        if first is None:
            return None
        rows = rows_where(self.segments, ["content"], pc.field("offset") == first["offset"]).to_pylist()
        return (first["position"], rows[0]["content"]) if rows else None


def by_messages(found: Compared, source: SegmentedLog, copy: SegmentedLog, origin: str, limit: int) -> Compared:
    """What was found of two logs, and of what one has in part how it stands message by message."""
    one = found.difference
    parts = {lack.position for lack in (*one.inside, *one.behind) if lack.outcome in IN_PART}
    unended = source.log.ended_so(origin, IN_PART, limit)
    whole = {at for at, row in copy.log.rows_of(origin, unended).items() if row["outcome"] == COMMITTED}
    late = [lack for lack in one.behind if lack.outcome is None]
    if found.shared is None or not (parts or whole or one.undecided or late):
        return found
    theirs, mine = (log.messages(origin, parts | whole | one.undecided.keys()) for log in (source, copy))
    apart = {at for at in parts if _differ(mine.get(at), theirs.get(at))}
    apart |= {at for at in whole if _differ(theirs.get(at), mine.get(at))}
    if source.log.by_commit:
        return moved(found, apart, {}, set()) if apart else found
    covers = max([found.shared.covers, *_reached(one.undecided.keys() - apart, theirs, mine)])
    shared = replace(found.shared, covers=covers)
    by_piece = bool(parts or one.undecided) or copy.log.interleaved(origin)
    begun = source.begun(origin, late, found.shared.covers, covers) if by_piece else set()
    theirs, mine = theirs | source.messages(origin, begun), mine | dict.fromkeys(begun, Messages({}, True))
    begins = _beginning(source, copy, origin) if parts or begun else None
    if begins is None:
        begins = shared.begins if shared.begins >= 0 else covers
    unknown, never = dict[str, str](), set[str]()
    for lack in (*one.inside, *one.behind):
        gone = [place for place in _lacks(theirs.get(lack.position), mine.get(lack.position)) if place < covers]
        if lack.position in apart or not gone:
            continue
        # What the log of a copy may have had before it begins is not known; what it is past will not come.
        if max(gone) < begins:
            unknown[lack.position] = BEGINS_LATER
        elif lack in one.behind and any(low < place < high for place in gone for low, high in shared.gaps):
            unknown[lack.position] = LOST
        elif lack in one.behind:
            never.add(lack.position)
    if not (apart or unknown or never) and covers == found.shared.covers:
        return found
    return moved(replace(found, shared=shared), apart, unknown, never)


def behind_as_unknown(found: Compared, why: str, limit: int) -> Compared:
    """The same, with all that was taken for coming as unknown."""
    one, counts = found.difference, found.counts.copy()
    unknown = sorted([*one.unknown, *((lack.position, lack.place, why) for lack in one.behind)], key=lambda row: row[1])
    counts["unknown"] += counts["behind"]
    counts["behind"] = 0
    made = replace(one, behind=[], unknown=unknown[:limit])
    return replace(found, difference=made, counts=counts, first=None, last=None, bytes=0, rows=0)


def _reached(positions: Iterable[str], theirs: Mapping[str, Messages], mine: Mapping[str, Messages]) -> Iterator[int]:
    """Where the log of the source has the messages that the copy has of these transactions."""
    for at in positions:
        if at in theirs and at in mine:
            yield from (place for content, place in theirs[at].places.items() if content in mine[at].places)


def _differ(part: Messages | None, whole: Messages | None) -> bool:
    """True if what one log has in part is not of what the other one has whole. A filtered stream numbers no messages."""
    return bool(part and whole and part.numbered and whole.numbered and part.places.keys() - whole.places.keys())


def _beginning(source: SegmentedLog, copy: SegmentedLog, origin: str) -> int | None:
    """Where the log of the source has the first message of the copy's log; None: it has it not."""
    first = copy.first_message(origin)
    if first is None:
        return None
    there = source.messages(origin, [first[0]]).get(first[0])
    return there.places.get(first[1]) if there else None


def _lacks(whole: Messages | None, part: Messages | None) -> list[int]:
    """Where the log of the source has the messages that the copy lacks of a transaction which it has in part."""
    if whole is None or part is None:
        return []
    return [place for content, place in whole.places.items() if content not in part.places]


def moved(found: Compared, apart: set[str], why: Mapping[str, str], never: set[str]) -> Compared:
    """The same, some of it as conflicts, some as unknown (`why`), and some that was taken for coming as missing."""
    one, counts = found.difference, found.counts.copy()
    out = apart | why.keys()
    passed = [lack for lack in one.behind if lack.position in never - out]
    inside = sorted(
        [*(lack for lack in one.inside if lack.position not in out), *passed],
        key=lambda lack: (lack.place, lack.position),
    )
    behind = [lack for lack in one.behind if lack.position not in out | never]
    lacks = [lack for lack in (*one.inside, *one.behind) if lack.position in why]
    unknown = [(lack.position, lack.place, why[lack.position]) for lack in lacks]
    conflicts = [*one.conflicts, *sorted(apart - set(one.conflicts))]
    made = replace(
        one,
        inside=inside,
        behind=behind,
        unknown=sorted([*one.unknown, *unknown], key=lambda row: (row[1], row[0])),
        undecided={at: outcome for at, outcome in one.undecided.items() if at not in apart},
        conflicts=conflicts,
    )
    for word in ("inside", "behind", "unknown", "conflicts"):
        counts[word] += len(getattr(made, word)) - len(getattr(one, word))
    whole = len(behind) == counts["behind"]
    first = behind[0].position if behind else None if whole else found.first
    last = (behind[-1].position if behind else None) if whole else found.last
    return replace(found, difference=made, counts=counts, first=first, last=last)
