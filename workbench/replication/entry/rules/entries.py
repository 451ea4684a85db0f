"""Replication of entries by CID, as the early design note has it: who may feed whom, with what, and what may be forgotten.

A CID is (time, origin); times are whole numbers, 0 is before every change. A vector says of each origin (first, last); an
origin that it does not list reads as (0, 0). Sessions send entries as they are now: one list says which entries each CID
changed. What the real system does instead is in `systems/kanidm/rules`, over the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

Cid = tuple[int, str]
"""When, by the clock of its origin, and the origin: their order is that of the protocol."""

Ranges = Mapping[str, tuple[int, int]]
"""Origin -> the first time and the last one. Of what is owed the first is not included."""

NOTHING_YET = (0, 0)


class Gate(NamedTuple):
    """Of one origin: what the consumer has seen, from where on the supplier can tell, and whether these meet."""

    consumer_max: int
    supplier_min: int
    open: bool


def gate(supplier: Ranges, consumer: Ranges) -> dict[str, Gate]:
    """For each origin of the supplier: has the consumer seen as far as the supplier's changelog goes back? Equal is enough."""
    seen = {origin: consumer.get(origin, NOTHING_YET)[1] for origin in supplier}
    return {origin: Gate(seen[origin], low, seen[origin] >= low) for origin, (low, _) in supplier.items()}


def may_supply(supplier: Ranges, consumer: Ranges) -> bool:
    """True if the gate is open for every origin of the supplier."""
    return all(one.open for one in gate(supplier, consumer).values())


def owed(supplier: Ranges, consumer: Ranges) -> dict[str, tuple[int, int]]:
    """What the supplier has seen and the consumer has not: origin -> (behind this time, up to this one)."""
    seen = {origin: consumer.get(origin, NOTHING_YET)[1] for origin in supplier}
    return {origin: (seen[origin], last) for origin, (_, last) in supplier.items() if seen[origin] < last}


def among(cids: Iterable[Cid], ranges: Ranges) -> list[Cid]:
    """Those of the CIDs that lie in the ranges, in their order."""
    return sorted({(time, origin) for time, origin in cids if origin in ranges and _within(time, ranges[origin])})


def _within(time: int, owed_range: tuple[int, int]) -> bool:
    after, upto = owed_range
    return after < time <= upto


def dense(ranges: Ranges) -> Iterator[Cid]:
    """Every whole number of the ranges as a change, as the note counts them. No real clock is like that."""
    for origin, (after, upto) in ranges.items():
        yield from ((time, origin) for time in range(after + 1, upto + 1))


def vector_after(supplier: Ranges, consumer: Ranges, read_only: bool = False) -> dict[str, tuple[int, int]]:
    """The consumer's vector after a session: the higher end of both; where it knew nothing it begins at 0.

    A read-only consumer keeps no changelog: it can tell of nothing before the last change, so its ends are equal.
    """
    merged = {}
    for origin in dict.fromkeys((*consumer, *supplier)):
        low, high = consumer.get(origin, NOTHING_YET)
        high = max(high, supplier.get(origin, NOTHING_YET)[1])
        merged[origin] = (high if read_only else low, high)
    return merged


def next_time(last: int, clock: int) -> int:
    """The time of a server's next change: the clock, but never that of its last change, and never before it."""
    return max(clock, last + 1)


# --- whole entries

Listed = Mapping[Cid, Collection[str]]
"""Which entries each CID changed."""


@dataclass(frozen=True)
class EntrySession:
    """What a session that sends whole entries does.

    cids            the CIDs that the consumer lacks, in their order
    entries         the entries that they changed, each once, as they are now: later changes of them come along
    consumer_after  its vector
    listed_after    its own list of CIDs, if it keeps one
    """

    allowed: bool
    cids: Sequence[Cid]
    entries: Sequence[str]
    consumer_after: Ranges
    listed_after: Listed | None


def entry_session(supplier: Ranges, consumer: Ranges, listed: Listed, own: Listed | None) -> EntrySession:
    """The supplier sends the entries of every CID that the consumer lacks; nothing, if the gate is shut.

    `own` is the consumer's list of CIDs; None: it keeps none. Of a CID that both list the consumer's row stays.
    """
    if not may_supply(supplier, consumer):
        return EntrySession(False, [], [], consumer, own)
    cids = among(listed, owed(supplier, consumer))
    entries = sorted({entry for cid in cids for entry in listed[cid]})
    both = None if own is None else {**listed, **own}
    return EntrySession(True, cids, entries, vector_after(supplier, consumer), both)


class Blocking(NamedTuple):
    """An origin of which the read-only consumer has seen more than the source: its entries would go back in time."""

    origin: str
    source_max: int
    destination_max: int


def flips(source: Ranges, destination: Ranges) -> list[Blocking]:
    """Why the source may not feed this read-only consumer, by origin; nothing, if it may.

    Entries are replaced blindly. A source that lacks (3, A) would take (3, A) away from a consumer that has it, until
    another source brings it back: the content flips to and fro. So the source must have seen all that the consumer has.
    """
    found = [
        Blocking(origin, source.get(origin, NOTHING_YET)[1], high) for origin, (_, high) in sorted(destination.items())
    ]
    return [one for one in found if one.destination_max > one.source_max]


# --- what may be forgotten


class Trim(NamedTuple):
    """How far an own changelog may be cut.

    floor    the last own change that every peer has; None: nobody can tell
    removed  the changes below it, in their order
    after    the own vector
    """

    floor: int | None
    removed: Sequence[Cid]
    after: Ranges


def trim(
    own: Ranges, origin: str, polled: Mapping[str, Ranges | None], peers: Iterable[str], changelog: Iterable[Cid]
) -> Trim:
    """Cut the own changes that every known peer has, the last of these excepted; a peer that was not asked keeps all.

    Only changes of the own origin are judged: of the others their own servers know who has what.
    """
    asked = [polled.get(peer) for peer in peers]
    known = [one.get(origin, NOTHING_YET)[1] for one in asked if one is not None]
    floor = min(known) if known and len(known) == len(asked) else None
    low, high = own.get(origin, NOTHING_YET)
    if floor is None or floor <= low:
        return Trim(floor, [], own)
    removed = sorted(cid for cid in changelog if cid[1] == origin and cid[0] < floor)
    return Trim(floor, removed, {**own, origin: (floor, high)})


class Held(NamedTuple):
    """Who keeps a tombstone from being purged: replicas by name, and the origins on account of which they do."""

    replicas: Sequence[str]
    origins: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.replicas)


def held(tombstone: Cid, replicas: Mapping[str, Ranges | None], own_origin_only: bool = False) -> Held:
    """Who may still need the tombstone: every first time of every origin, everywhere, must lie behind it.

    A replica that was not asked (None) holds it. One that does not list the tombstone's origin has seen nothing of it.
    """
    time, origin = tombstone
    names, origins = set(), set()
    for name, vector in replicas.items():
        if vector is None:
            names.add(name)
            continue
        firsts = {origin: 0} | {one: low for one, (low, _) in vector.items()}
        early = {one for one, low in firsts.items() if low <= time and (one == origin or not own_origin_only)}
        names |= {name} if early else set()
        origins |= early
    return Held(sorted(names), sorted(origins))


# --- operations on attributes, and why none may be left out


class Operation(NamedTuple):
    """`add` of a value, or `del` of all values of an attribute."""

    time: int
    origin: str
    do: str
    attribute: str
    value: str | None = None


def replayed(initial: Mapping[str, Iterable[str]], log: Iterable[Operation]) -> dict[str, list[str]]:
    """What the operations of all servers add up to, in the order of their CIDs."""
    entry = {attribute: set(values) for attribute, values in initial.items()}
    for one in sorted(
        log, key=lambda one: (one.time, one.origin)
    ):  # what one server did at one time stays in its order
        if one.do == "del":
            entry.pop(one.attribute, None)
        elif one.value is not None:
            entry.setdefault(one.attribute, set()).add(one.value)
    return {attribute: sorted(values) for attribute, values in entry.items() if values}


def left_out(log: Iterable[Operation], replaced: Iterable[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Replacements (time, origin, attribute) of which the log has no `del`: it was left out because it seemed to change nothing.

    It did: another server's value of before, which comes later, is no longer taken away.
    """
    purged = {(one.time, one.origin, one.attribute) for one in log if one.do == "del"}
    return [one for one, _ in groupby(sorted(one for one in replaced if one not in purged))]


# --- what a server claims and its entries do not show


@dataclass(frozen=True)
class Kept:
    """What one server shows of one entry: the last change of each attribute; an entry that is gone shows when it went.

    at       when it was created; None: the server shows no such entry
    gone     the tombstone's CID; then nothing else is known of it
    changes  attribute -> its last change
    """

    at: Cid | None = None
    gone: Cid | None = None
    changes: Mapping[str, Cid] = field(default_factory=dict)


NOT_SHOWN = Kept()


class Lacking(NamedTuple):
    """A change that a server claims to have and does not show.

    attribute  None: the deletion of the entry
    why        why nobody can tell whether it ever had it: FORGOTTEN, MADE_TWICE or NOT_READ; empty: it has missed it
    """

    attribute: str | None
    cid: Cid
    why: str


def lacking(mine: Kept, others: Iterable[Kept], seen: Ranges, forgotten: int, whole: bool = True) -> list[Lacking]:
    """The changes of one entry that the others show, that `seen` covers, and that `mine` is without.

    A later change of the same attribute, and a tombstone, stand for all that came before. Where several servers deleted the
    entry, each deletion is judged by itself: the first may be in doubt and the second one missed. Of two creations of one id the
    earlier one stays, so the changes of the later one are no loss; who shows the later one and claims the earlier one may
    have lost that, or set it aside.

    What lies before `forgotten` leaves no trace of its deletion. Of an entry that is not shown and was created before, nobody
    can tell whether it never came or is gone; a tombstone from before may be that of an earlier entry of the same id; and an
    origin that was quiet since stands in no vector any more, so that what it did before may be claimed or not. Where not all
    entries could be read (not `whole`), one that is not shown may be one of those.
    """
    others = list(others)
    if mine.gone is not None:
        return []
    found: set[Lacking] = set()
    graves = sorted(one.gone for one in others if one.gone is not None and _covered(one.gone, seen, forgotten))
    if mine.at is not None:
        for grave in graves:
            proven = _stands(grave, mine.at, forgotten) and grave[1] in seen
            found.add(Lacking(None, grave, "" if proven else FORGOTTEN))
    for one in others:
        if one.at is None or (graves and _stands(graves[-1], one.at, forgotten)):
            continue
        for attribute, cid in one.changes.items():
            if not _covered(cid, seen, forgotten) or settled(mine, one, attribute):
                continue
            if mine.at is None or mine.at >= one.at:
                told = cid[1] in seen and (mine.at == one.at or one.at[0] >= forgotten)
                unlike = MADE_TWICE if mine.at not in (None, one.at) else "" if mine.at or whole else NOT_READ
                found.add(Lacking(attribute, cid, unlike if told else FORGOTTEN))
    return sorted(found, key=lambda one: (one.cid, one.attribute or ""))


def settled(mine: Kept, other: Kept, attribute: str | None) -> bool:
    """True if the other's last change of an attribute, or its tombstone (None), would change nothing here."""
    if mine.gone is not None:
        return True
    if attribute is None or mine.at is None or mine.at != other.at:
        return False
    return attribute in mine.changes and mine.changes[attribute] >= other.changes[attribute]


def _covered(cid: Cid, seen: Ranges, forgotten: int) -> bool:
    return cid[0] <= seen[cid[1]][1] if cid[1] in seen else cid[0] < forgotten


def _stands(grave: Cid, at: Cid, forgotten: int) -> bool:
    """True if the tombstone is that of the entry with this creation, and not of an earlier one."""
    return grave[0] >= forgotten or grave > at


# --- what a supplier answers


class Peer(NamedTuple):
    """What one side of a pull shows: which data it holds, its vector as times, what time it was there, and its own origin.

    shared  another server makes changes as the same origin
    """

    generation: str | None
    ranges: Ranges
    now: int
    origin: str | None = None
    shared: bool = False


@dataclass(frozen=True)
class Answer:
    """What a consumer hears that pulls now.

    decision  what the comparison comes to, in the words of the rule set
    message   what is sent, in the words of the system
    unrelated the two hold data that have nothing to do with each other
    supplies  changes would be sent
    replaces  the consumer will take all data of the supplier in place of its own
    refused   by one of the two: nothing goes over this link, now or later, before something else is done
    owed      origin -> (behind this time, up to this one)
    lag       origins that the consumer is too far behind: (supplier's first, consumer's last)
    advance   origins that the supplier is too far behind: (supplier's last, consumer's first)
    reasons   rule, what it says
    """

    decision: str
    message: str
    unrelated: bool = False
    supplies: bool = False
    replaces: bool = False
    refused: bool = False
    owed: Ranges = field(default_factory=dict)
    lag: Ranges = field(default_factory=dict)
    advance: Ranges = field(default_factory=dict)
    reasons: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Pulling:
    """How the servers of one system, which keep no log of changes, supply each other.

    answers   rule set -> what a supplier (the first) answers to a consumer; the first rule set is that of the real servers
    now       facts of a server's file -> what time it was there, as the times of CIDs are; None: it does not say
    remember  how long a deleted entry leaves a tombstone, and a vector lists a CID, in the same unit
    times     a column of order keys -> their times, as whole numbers
    """

    answers: Mapping[str, Callable[[Peer, Peer], Answer]]
    now: Callable[[Mapping[str, Any]], int | None]
    remember: int
    times: Callable[[Any], Any]


class Moment(NamedTuple):
    """One step of a worked example, and how all servers stand behind it.

    says      what was done, as a sentence
    refused   nothing was sent, and why; empty: it was done
    back      (entry, attribute) of what a server had and has no more
    servers   those that it concerns
    vectors   server -> its vector
    contents  server -> its entries, as somebody reads them there: entry -> attribute -> values
    """

    says: str
    refused: str
    back: Sequence[tuple[str, str]]
    servers: Sequence[str]
    vectors: Mapping[str, Ranges]
    contents: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]]


class Example(NamedTuple):
    """Something that a small fleet is put through: a title, what it shows, and how it is played anew, step by step."""

    title: str
    shows: str
    play: Callable[[], Iterable[Moment]]


ALL_SEEN = "nothing"
"""The reason of an answer that supplies nothing because the consumer has all: the only one that is no refusal."""

TURNED_DOWN, MAY_TURN_DOWN = "split", "own_younger"
"""The reason of an answer that supplies changes which the consumer refuses, or refuses if it was restored."""

OTHER_VERSION = "version"
"""The reason why nothing goes between two servers until both are of one version: all of it comes then."""

FORGOTTEN, MADE_TWICE, NOT_READ, NO_ENTRIES = "forgotten", "made_twice", "not_read", "no_entries"
DOMAIN_UNTOLD = "domain_untold"
"""Why nobody can tell whether a server has a change."""
