"""A stream of transactions and a copy of it, held against each other.

Numbers of transactions rise as they begin, and a stream holds them as they end: which one a copy should have by now is told
by its place in the stream, never by its number. What the copy lacks before the last one that it has is missing inside; what
comes after is behind, and on its way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.replication.stream.rules.segments import (
    ABORTED,
    COMMITTED,
    CONFLICT,
    CORRUPT,
    EVENT,
    INCOMPLETE,
    ROLLED_BACK,
    UNFINISHED,
    UNKNOWN,
)

SETTLED = frozenset({COMMITTED, ROLLED_BACK, EVENT, INCOMPLETE, CORRUPT, CONFLICT})
"""Outcomes of which the copy has the end."""

ANYWHERE = -1
"""A place at which records were lost, where a log tells the order of commits by numbers: what was lost has none."""

BELOW_ALL = -2
"""Where a gap begins that follows nothing of what both logs have."""

NOT_HERE_YET = frozenset({UNFINISHED, ABORTED})

UNCLEAR = frozenset({CORRUPT, INCOMPLETE, UNKNOWN})
"""Outcomes in the log of a source that leave open whether it committed."""

(
    BEGINS_LATER,
    LOST,
    DAMAGED,
    NOT_READ,
    SOURCE_UNCLEAR,
    COPY_AHEAD,
    NOTHING_SHARED,
    UNRELATED,
    FILTERED,
    GONE_FROM_SOURCE,
    NUMBERED_ANEW,
    PASSED_SINCE,
) = (
    *(
        "copy_begins_later",
        "copy_lost_records",
        "copy_is_damaged",
        "copy_not_understood",
        "source_unclear",
        "copy_is_ahead",
        "nothing_shared",
        "unrelated",
        "copy_leaves_out_tables",
        "gone_from_source",
        "numbered_anew",
        "passed_since",
    ),
)
WHY_UNKNOWN = {
    BEGINS_LATER: "its log begins behind this transaction: whether it was applied before, the log cannot tell",
    LOST: "records of its log were lost just where this transaction would stand",
    DAMAGED: "it has the transaction, but a message of it does not fit its checksum",
    NOT_READ: "it has the transaction in a form that could not be understood",
    SOURCE_UNCLEAR: "the log of its source has it damaged, in part, or in a form that could not be understood",
    COPY_AHEAD: "its log goes on with what its source's log does not have: if the source made that, the copy is past this one",
    UNRELATED: "most transactions that bear one number are not the same in both logs: two servers that run under one id",
    FILTERED: "its log leaves out the tables of this transaction in others: a filter may have kept it away",
    GONE_FROM_SOURCE: "an earlier log of the source has it, and the present one lacks it: nothing tells whether it comes",
    NUMBERED_ANEW: "the log of its master has others under these numbers than an earlier one: nothing tells by which it went",
    PASSED_SINCE: "an earlier snapshot shows that it could not apply this one, and it is past it: nothing shows that it got it",
    NOTHING_SHARED: "its log shares no transaction with that of the source: nothing shows where it stands",
}


Key = tuple[str, bool, int | None]
"""A position, whether it is that of a start or stop of a server, and the content, where the number was given to several."""


class Entry(NamedTuple):
    """One transaction of a stream.

    place    where it ended: the order of commits
    content  what counts of it, as a number; None: not to be compared, for one of a filtered stream may lack statements
    hash     the same, also where it may lack some
    cut      it is damaged, and no message with its end is there
    begin    where its first message stands; None: nothing tells
    """

    position: str
    place: int
    outcome: str
    content: int | None = None
    hash: int | None = None
    cut: bool = False
    begin: int | None = None

    def key(self, again: Set[str] = frozenset()) -> Key:
        """What it is known by in two logs: a start is no transaction, though it may have the number of one.

        `again`: positions that were given to several transactions. Those are known by their contents.
        """
        is_event = self.outcome == EVENT
        return self.position, is_event, self.content if self.position in again and not is_event else None

    @property
    def ends(self) -> bool:
        """Whether the log shows where it ended: its place is that of its last message."""
        return self.outcome not in NOT_HERE_YET and not self.cut


class MissingTransaction(NamedTuple):
    """A transaction that the copy lacks; `outcome` is what the copy has of it, None: nothing."""

    position: str
    place: int
    outcome: str | None


@dataclass(frozen=True)
class Difference:
    """What a copy lacks of a stream, and has beyond it; each in the order of the stream.

    last       the last transaction of the stream that the copy has; None: it has none
    inside     committed, and the copy is past them
    behind     committed, and the copy is not there yet
    unknown    nothing tells whether the copy has them, or whether the source committed them, of which it has no end: position,
               place, why
    undecided  what the copy has without an end -> what its source says of it
    errant     only the copy has committed them, between transactions that both have
    conflicts  both have them, with different contents or ends
    alone      committed, the copy is past them or not there yet, and no other log has anything of them: told only where nobody
               knows which log is the source, for then their server may have made them by itself
    unrelated  most of what bears one number in both is not the same: then nothing else is told
    """

    last: str | None
    inside: list[MissingTransaction] = field(default_factory=list)
    behind: list[MissingTransaction] = field(default_factory=list)
    unknown: list[tuple[str, int, str]] = field(default_factory=list)
    undecided: dict[str, str] = field(default_factory=dict)
    errant: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    unrelated: bool = False
    alone: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Shared:
    """How far a copy goes in a stream: places in the stream of what both have.

    begins, covers  the first, and the last of which the copy has the end. If there is none, `begins` is the first that the copy
                    goes beyond; -1: nothing shows that
    gaps            between which places the copy lost records
    ends            the places in the copy of the first message, and of the last end, that both have
    """

    begins: int
    covers: int
    last: str | None
    gaps: tuple[tuple[int, float], ...]
    ends: tuple[int, int]


def shared(source: Mapping[Key, Entry], copy: Mapping[Key, Entry], lost: Iterable[int]) -> Shared | None:
    """How far the copy goes; `lost` are places in the copy at which records could not be read. None: nothing is shared."""
    both = sorted(
        ((mine, source[key]) for key, mine in copy.items() if key in source),
        key=lambda pair: (pair[0].place, pair[1].place),
    )
    if not both:
        return None
    places = [mine.place for mine, _ in both]
    # A piece in the copy stands somewhere before the end in the source: a loss behind it may be of what comes before that end,
    # a loss before it is of nothing that comes behind.
    low = [(mine.place, theirs.place) for mine, theirs in both if mine.ends]
    high = [(mine.place, theirs.place) for mine, theirs in both if theirs.ends]
    gaps = set()
    for place in lost:
        if place == ANYWHERE:
            gaps.add((ANYWHERE, float("inf")))
            continue
        if place == places[-1]:
            continue  # the last that both have is the damaged one itself
        before, behind = (bisect_right(borders, place, key=lambda border: border[0]) for borders in (low, high))
        # What both had first or last is no border: the copy may begin, or end, with the loss.
        gaps.add((low[before - 1][1] if before else BELOW_ALL, high[behind][1] if behind < len(high) else float("inf")))
    settled = [(theirs.place, theirs.position) for mine, theirs in both if mine.outcome in SETTLED and not mine.cut]
    covers, last = max(settled, default=(-1, None))
    begins = min((theirs.place for mine, theirs in both if settled or mine.ends), default=-1)
    # What the source has whole it has from its first message on, though the end comes later in both.
    first = min(
        mine.place if mine.begin is None or theirs.outcome != COMMITTED else mine.begin for mine, theirs in both
    )
    return Shared(begins, covers, last, tuple(sorted(gaps)), (first, places[-1]))


def used_again(streams: Iterable[Iterable[Entry]], beside: Iterable[Entry] = ()) -> frozenset[str]:
    """Positions that one log has of several transactions: numbers begin anew where the data directory of a server does.

    Only where all logs, those `beside` too, have nothing but commits of it whose contents can be compared.
    """
    several = set[str]()
    odd = {one.position for one in beside if one.outcome != EVENT and (one.outcome != COMMITTED or one.content is None)}
    for stream in streams:
        contents: dict[str, set[int | None]] = {}
        for one in stream:
            if one.outcome != EVENT:
                contents.setdefault(one.position, set()).add(one.content)
                odd |= {one.position} if one.outcome != COMMITTED or one.content is None else set()
        several |= {position for position, of in contents.items() if len(of) > 1}
    return frozenset(several - odd)


def difference(
    source: Sequence[Entry],
    copy: Sequence[Entry],
    lost: Sequence[int] = (),
    lost_there: Sequence[int] = (),
    elsewhere: Iterable[Entry] | None = None,
) -> Difference:
    """What the copy lacks of the source's stream, and has beyond it. Of a number used twice the last one counts, unless contents
    tell them apart (`used_again`).

    `lost` are places in the copy at which records could not be read, `lost_there` those in the source. `elsewhere`: nobody knows
    which log is the source, and these are of third ones: what one of them has committed alike is no server's own.
    """
    third = [*(elsewhere or ())]
    again = used_again((source, copy), third)
    order, there = (sorted(stream, key=lambda one: (one.place, one.position)) for stream in (source, copy))
    theirs, mine = ({one.key(again): one for one in stream} for stream in (order, there))
    both = shared(theirs, mine, lost)
    unrelated = apart(theirs, mine)
    if both is None or unrelated:
        why = UNRELATED if unrelated else NOTHING_SHARED
        last_ones = [one for one in order if theirs[one.key(again)] is one and one.outcome == COMMITTED]
        return Difference(None, unknown=[(one.position, one.place, why) for one in last_ones], unrelated=unrelated)
    found = Difference(both.last)
    for one in order:
        if theirs[one.key(again)] is one:
            _judge(one, mine.get(one.key(again)), both, lost, found)
    if elsewhere is not None:
        keys = {key for key, one in mine.items() if one.outcome != EVENT}
        keys |= {other.key(again) for other in third if alike(theirs.get(other.key(again)), other)}
        at = {(one.position, one.place): key for key, one in theirs.items() if one.outcome != EVENT}
        known = {named for named, key in at.items() if key in keys}
        lacks = sorted((*found.inside, *found.behind), key=lambda lack: (lack.place, lack.position))
        found.alone.extend(lack.position for lack in lacks if (lack.position, lack.place) not in known)
        found.inside[:], found.behind[:] = (
            [lack for lack in some if (lack.position, lack.place) in known] for some in (found.inside, found.behind)
        )
    first, last = both.ends
    back = shared(mine, theirs, lost_there)
    holes = back.gaps if back else ()
    for one in there:
        in_hole = any(low < one.place < high for low, high in holes)  # the source may have had it, too
        if one.outcome == COMMITTED and one.key(again) not in theirs and first < one.place < last and not in_hole:
            found.errant.append(one.position)
    return found


def apart(source: Mapping[Key, Entry], copy: Mapping[Key, Entry]) -> bool:
    """True if more of the commits that bear one number in both differ than not: a server id is 1 unless somebody changes it."""
    pairs = [(source[key], mine) for key, mine in copy.items() if key in source]
    whole = [(one, mine) for one, mine in pairs if one.outcome == mine.outcome == COMMITTED]
    told = [one.content == mine.content for one, mine in whole if None not in (one.content, mine.content)]
    return told.count(False) > told.count(True)


def _judge(one: Entry, there: Entry | None, both: Shared, lost: Sequence[int], found: Difference) -> None:
    """Put one transaction of the source into the difference."""
    if there is not None and there.outcome in NOT_HERE_YET:
        found.undecided[one.position] = one.outcome
    if there is not None and unlike(one, there):
        found.conflicts.append(one.position)
    elif one.outcome in UNCLEAR and (there is None or there.outcome in NOT_HERE_YET):
        found.unknown.append((one.position, one.place, SOURCE_UNCLEAR))
    elif one.outcome == COMMITTED and (there is None or there.outcome != COMMITTED):
        later = there is not None and max(lost, default=ANYWHERE) > there.place
        verdict = judged(one.place, there.outcome if there else None, both, bool(lost), later)
        lack = MissingTransaction(one.position, one.place, there.outcome if there else None)
        if verdict == "inside":
            found.inside.append(lack)
        elif verdict == "behind":
            found.behind.append(lack)
        else:
            found.unknown.append((one.position, one.place, verdict))


def alike(one: Entry | None, there: Entry) -> bool:
    """True if two logs have one transaction alike; of a stream that is filtered, and one that is not, the number has to do."""
    if one is None or one.outcome != COMMITTED or there.outcome not in (COMMITTED, UNKNOWN):
        return False
    filtered = (one.content is None) != (there.content is None)
    return one.hash == there.hash or (filtered and there.outcome == COMMITTED)


def unlike(one: Entry, there: Entry) -> bool:
    """True if both ended the transaction, and not alike."""
    if there.outcome == CONFLICT != one.outcome:
        return one.outcome == COMMITTED
    if one.outcome == there.outcome == COMMITTED:
        return None not in (one.content, there.content) and one.content != there.content
    return {one.outcome, there.outcome} == {COMMITTED, ROLLED_BACK}


def judged(place: int, outcome: str | None, both: Shared, lost: bool, later: bool = False) -> str:
    """`inside`, `behind`, or why nothing tells: of a transaction committed at this place of the source.

    `outcome` is what the copy has of it, None: nothing; `lost` says that the copy lost records anywhere, `later` that it did so
    behind what it has of this transaction.
    """
    if outcome in (CORRUPT, UNKNOWN):
        return DAMAGED if outcome == CORRUPT else NOT_READ
    if outcome is not None:
        # Pieces of it are there. With records lost, the others may have been there, too.
        if lost and (outcome == INCOMPLETE or place < both.covers or later):
            return LOST
        return "behind" if outcome in NOT_HERE_YET and place > both.covers else "inside"
    # Of a loss that may have been anywhere, the end of the log is no likelier place than any other.
    if any(low < place < high for low, high in both.gaps if low != ANYWHERE or place <= both.covers):
        return LOST
    if place < both.begins:
        return BEGINS_LATER
    return "behind" if place > both.covers else "inside"
