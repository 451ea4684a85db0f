"""A physical log checked by arithmetic: is a record missing, and where do two logs part?

The log is a row of files. A record says where it stands and how long it is, so that the place of the next one in the same
file is known: what is missing between two records is proven by these two alone. Between two files nothing is proven, unless
somebody knows where the first of them ends. All here is one record at a time; large logs go the same way by the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

Place = tuple[int, int]
"""Number of the file, and place in that file."""

One = TypeVar("One")

MOST = 1 << 32
"""Files, places and lengths are below this."""

LIMIT = 1000
"""How many of each kind are listed; all are counted."""


@dataclass(frozen=True)
class Form:
    """How a program writes such a log.

    head     bytes of the head of a record: the next one begins behind its content and these
    begins   where the first record of every file begins
    commits  kinds of records that end a transaction
    anchors  kinds of records at which a log can be joined to another one
    """

    head: int = 12
    begins: int = 28
    commits: frozenset[int] = frozenset({2151})
    anchors: frozenset[int] = frozenset({2011, 2151})


FORM = Form()


class Record(NamedTuple):
    """A row of a dump; what is None the dump does not say, and nothing is concluded from it."""

    file: int
    place: int
    length: int | None = None
    kind: int | None = None
    generation: int | None = None
    content: int | None = None


WHOLE, GAP, OVERLAP, UNPROVEN = "whole", "gap", "overlap", "unproven"


class Gap(NamedTuple):
    """Records that are missing: between `after` and `next`; the first of them begins at `expected`."""

    after: Place
    next: Place
    expected: Place


@dataclass
class Listed:
    """How many there are, and the first of them in the order of the log."""

    count: int = 0
    first: list[Any] = field(default_factory=list)

    def add(self, some: Sequence[Any], count: int | None = None, limit: int = LIMIT) -> None:
        """Take more, which stand behind those that are there; of these `count`, if not all are given."""
        self.count += len(some) if count is None else count
        self.first += some[: max(limit - len(self.first), 0)]


@dataclass
class Checked:
    """What a log shows by itself.

    rows            of the dumps, repeated ones included
    records         places at which a record stands
    commits, bytes  of these; bytes with their heads
    first, last     the first and the last record
    end             where the file of the last one ends, as far as the log goes; None: that record does not tell its length
    commit          the last commit
    gaps            records that are proven to be missing
    overlaps        (record, the next one), which begins inside a record before it
    contradictions  places at which rows disagree on length, generation or content
    duplicates      rows that only repeat what another one says
    borders         changes of file
    unproven        records behind which something may be missing: nothing tells where their file ends, or how long they are
    """

    rows: int = 0
    records: int = 0
    commits: int = 0
    bytes: int = 0
    first: Place | None = None
    last: Place | None = None
    end: int | None = None
    commit: Place | None = None
    gaps: Listed = field(default_factory=Listed)
    overlaps: Listed = field(default_factory=Listed)
    contradictions: Listed = field(default_factory=Listed)
    duplicates: int = 0
    borders: int = 0
    unproven: Listed = field(default_factory=Listed)

    @property
    def sound(self) -> bool:
        """Nothing is proven to be wrong with it."""
        return not (self.gaps.count or self.overlaps.count or self.contradictions.count)

    def neighbours(self, verdict: str, expected: Place, following: Place, limit: int = LIMIT) -> None:
        """Take what was said of the last record and the one that follows."""
        assert self.last is not None
        if verdict == GAP:
            self.gaps.add([Gap(self.last, following, expected)], limit=limit)
        elif verdict == OVERLAP:
            self.overlaps.add([(self.last, following)], limit=limit)
        elif verdict == UNPROVEN:
            self.unproven.add([self.last], limit=limit)

    def go_on(
        self, other: Checked, sizes: Mapping[int, int] | None = None, form: Form = FORM, limit: int = LIMIT
    ) -> None:
        """Take what another part of the same log shows, which begins with a later file."""
        if other.first is None:
            return
        if self.last is not None:
            assert other.first[0] > self.last[0], "no two parts may hold one file"
            self.borders += 1
            self.neighbours(*between(self.last, self.end, other.first, sizes, form), other.first, limit)
        for name in ("rows", "records", "commits", "bytes", "duplicates", "borders"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("gaps", "overlaps", "contradictions", "unproven"):
            getattr(self, name).add(getattr(other, name).first, getattr(other, name).count, limit)
        self.first, self.commit = self.first or other.first, other.commit or self.commit
        self.last, self.end = other.last, other.end


def between(
    last: Place, end: int | None, following: Place, sizes: Mapping[int, int] | None = None, form: Form = FORM
) -> tuple[str, Place]:
    """Is anything missing between two records that follow each other in a dump? The verdict, and where a record should stand.

    `end` is where the records of the first one's file end up to there, None if that is not told; `sizes` of whole files,
    where they are known.

    >>> between((9, 1045964), 1046072, (10, 28)), between((9, 1045964), 1046072, (10, 28), {9: 1046072})
    (('unproven', (9, 1046072)), ('whole', (10, 28)))
    >>> between((9, 100), 150, (9, 150)), between((9, 100), 150, (9, 180))
    (('whole', (9, 150)), ('gap', (9, 150)))
    """
    file, place = following
    if file == last[0]:
        if end is None:
            return UNPROVEN, last
        return WHOLE if place == end else GAP if place > end else OVERLAP, (file, end)
    size = (sizes or {}).get(last[0])
    if end is not None and size is not None and end < size:
        return GAP, (last[0], end)
    if following != (last[0] + 1, form.begins):
        # Files are numbered without a break, and each one holds a record.
        inside = file == last[0] + 1 and place < form.begins
        return OVERLAP if inside else GAP, (last[0] + 1, form.begins)
    if end is not None and end == size:
        return WHOLE, following
    # A file that is listed smaller than it is was still written to when it was listed.
    return UNPROVEN, (last[0], end or last[1])


class _Said(NamedTuple):
    """What all rows of one place say together; what none of them tells is empty."""

    place: Place
    rows: int
    lengths: frozenset[int]
    kinds: frozenset[int]
    generations: frozenset[int]
    contents: frozenset[int]

    @property
    def end(self) -> int | None:
        return self.place[1] + max(self.lengths) if self.lengths else None

    @property
    def kind(self) -> int | None:
        return max(self.kinds, default=None)

    @property
    def at_odds(self) -> bool:
        return max(len(self.lengths), len(self.generations), len(self.contents)) > 1

    def unlike(self, other: _Said) -> bool:
        return _Said(
            self.place,
            0,
            self.lengths | other.lengths,
            self.kinds,
            self.generations | other.generations,
            self.contents | other.contents,
        ).at_odds


def _said(rows: Iterable[Record], form: Form) -> dict[Place, _Said]:
    """By place, in their order; lengths with the head of the record."""
    found = {}
    for place, of in groupby(sorted(rows, key=lambda one: one[:2]), key=lambda one: one[:2]):
        same = list(of)
        # No file is longer than its places can tell, so a record that claims to be tells nothing.
        lengths = frozenset(one.length + form.head for one in same if one.length is not None and 0 <= one.length < MOST)
        told = (frozenset(value for one in same if (value := one[at]) is not None) for at in (3, 4, 5))
        found[place] = _Said(place, len(same), lengths, *told)
    return found


def checked(
    rows: Iterable[Record], sizes: Mapping[int, int] | None = None, form: Form = FORM, limit: int = LIMIT
) -> Checked:
    """What the dumps of one log show: in any order, repeated or not."""
    found = Checked()
    for place, one in _said(rows, form).items():
        end = one.end
        if found.last is not None:
            found.neighbours(*between(found.last, found.end, place, sizes, form), place, limit)
            if place[0] != found.last[0]:
                found.borders += 1
            elif end is not None and found.end is not None:
                end = max(end, found.end)
        found.first = found.first or place
        found.last, found.end = place, end
        found.rows += one.rows
        found.records += 1
        found.bytes += max(one.lengths, default=0)
        if one.at_odds:
            found.contradictions.add([place], limit=limit)
        else:
            found.duplicates += one.rows - 1
        if one.kind in form.commits:
            found.commits, found.commit = found.commits + 1, place
    return found


COMMIT_LISTS = ("commits_reference", "commits_copy")
_LISTS = (*COMMIT_LISTS, "differing", "only_reference", "only_copy", "behind", "ahead")


@dataclass
class Compared:
    """Two logs held against each other, a reference and a copy of it.

    same                       records that both have alike
    differing                  places at which both have a record, with another length, generation or content
    unclear                    places at which one of the logs contradicts itself
    only_reference, only_copy  where both logs reach, records that only one of them has
    commits_reference          commits of only_reference; commits_copy: all that only the copy has, wherever they are
    behind, ahead              records behind the end of the copy, and of the reference; with their bytes
    earlier_reference          records before the copy begins: nothing tells whether it had them
    earlier_copy               records before the reference begins
    last_same                  the last record that both have alike
    parts                      the first place behind that one at which they are not alike: they part there, and for good
    match                      the last commit, or checkpoint, that both have alike: a copy that joins again is cut back to it
    cut, cut_commits           records, and commits, of the copy behind the match: it would lose these; without a match, all
    after_match                records of the reference behind the match: a copy that was cut back to it waits for these
    """

    same: int = 0
    differing: Listed = field(default_factory=Listed)
    unclear: int = 0
    only_reference: Listed = field(default_factory=Listed)
    only_copy: Listed = field(default_factory=Listed)
    behind: Listed = field(default_factory=Listed)
    behind_bytes: int = 0
    ahead: Listed = field(default_factory=Listed)
    ahead_bytes: int = 0
    earlier_reference: int = 0
    earlier_copy: int = 0
    last_same: Place | None = None
    parts: Place | None = None
    match: Place | None = None
    cut: int = 0
    cut_commits: int = 0
    after_match: Listed = field(default_factory=Listed)
    commits_reference: Listed = field(default_factory=Listed)
    commits_copy: Listed = field(default_factory=Listed)

    @property
    def prefix(self) -> bool:
        """As far as both reach the copy has what the reference has, and it has nothing beyond."""
        return not (
            self.unclear or any(one.count for one in (self.differing, self.only_reference, self.only_copy, self.ahead))
        )

    def go_on(self, other: Compared, limit: int = LIMIT) -> None:
        """Take what a later part of the same two logs shows."""
        for name in ("same", "unclear", "behind_bytes", "ahead_bytes", "earlier_reference", "earlier_copy"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _LISTS:
            getattr(self, name).add(getattr(other, name).first, getattr(other, name).count, limit)
        if other.last_same is not None:
            self.last_same, self.parts = other.last_same, None
        self.parts = self.parts or other.parts
        if other.match is not None:
            self.match, self.cut, self.cut_commits, self.after_match = other.match, 0, 0, Listed()
        self.after_match.add(other.after_match.first, other.after_match.count, limit)
        self.cut, self.cut_commits = self.cut + other.cut, self.cut_commits + other.cut_commits


def compared(reference: Iterable[Record], copy: Iterable[Record], form: Form = FORM, limit: int = LIMIT) -> Compared:
    """What the dumps of two logs show beside each other."""
    theirs, mine = _said(reference, form), _said(copy, form)
    found = Compared()
    if not theirs or not mine:
        return found
    first, last = max(min(theirs), min(mine)), min(max(theirs), max(mine))
    for place in sorted(theirs.keys() | mine.keys()):
        found.go_on(_judged(theirs.get(place), mine.get(place), first <= place <= last, place > last, form), limit)
    return found


def _judged(theirs: _Said | None, mine: _Said | None, both: bool, beyond: bool, form: Form) -> Compared:
    """Of one place; `both` logs reach there, or it is `beyond` the end of one."""
    found = Compared()
    one = theirs or mine
    assert one is not None
    place, alike = one.place, False
    if theirs and mine:
        if theirs.at_odds or mine.at_odds:
            found.unclear = 1
        elif theirs.unlike(mine):
            found.differing.add([place])
        else:
            alike = True
            found.same, found.last_same = 1, place
    elif both:
        (found.only_reference if theirs else found.only_copy).add([place])
    elif beyond and theirs:
        found.behind.add([place])
        found.behind_bytes = max(theirs.lengths, default=0)
    elif beyond:
        found.ahead.add([place])
        found.ahead_bytes = max(one.lengths, default=0)
    elif theirs:
        found.earlier_reference = 1
    else:
        found.earlier_copy = 1
    if found.differing.count or found.only_reference.count or found.only_copy.count:
        found.parts = place
    if one.kind in form.commits:
        found.commits_reference.add(found.only_reference.first)
        found.commits_copy.add([place] if mine and not theirs else [])
    if alike and mine and form.anchors & {one.kind, mine.kind}:
        found.match = place
        return found
    if mine:
        found.cut, found.cut_commits = 1, int(mine.kind in form.commits)
    if theirs:
        found.after_match.add([place])
    return found
