"""Two logs of a stream held against each other, some million transactions at a time: `workbench.replication.stream.rules.streams`
by the column.

The logs are cut by the positions of their transactions, which rise nearly as the records do, so that statistics of the parts
find each cut. A first pass tells how far the copy goes, a second one judges. What is kept are counts and the first of each kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.parquet_read import opened, stream_part
from workbench.engine.streams import StreamLog
from workbench.replication.stream.rules.segments import (
    COMMITTED,
    CONFLICT,
    CORRUPT,
    EVENT,
    INCOMPLETE,
    OUTCOMES,
    REPEATED,
    ROLLED_BACK,
    UNKNOWN,
)
from workbench.replication.stream.rules.streams import (
    ANYWHERE,
    BEGINS_LATER,
    BELOW_ALL,
    DAMAGED,
    LOST,
    NOT_HERE_YET,
    NOT_READ,
    NOTHING_SHARED,
    SETTLED,
    SOURCE_UNCLEAR,
    UNCLEAR,
    UNRELATED,
    Difference,
    MissingTransaction,
    Shared,
)
from workbench.tables import Numbers

AT_ONCE = 1_000_000
"""Transactions of both logs that are compared at once."""

_CODE = {outcome: number for number, outcome in enumerate(OUTCOMES)}
_ABSENT = -1
_WORDS = (
    "",
    "inside",
    "behind",
    LOST,
    BEGINS_LATER,
    DAMAGED,
    NOT_READ,
    SOURCE_UNCLEAR,
    NOTHING_SHARED,
    UNRELATED,
    "undecided",
    "errant",
    "conflicts",
    "alone",
    "lost_alone",
    "lost_ahead",
)
_WORD = {word: number for number, word in enumerate(_WORDS)}
_UNTOLD = frozenset({LOST, BEGINS_LATER, DAMAGED, NOT_READ, SOURCE_UNCLEAR, NOTHING_SHARED, UNRELATED})


@dataclass
class Compared:
    """The difference of a log from that of its source; its lists hold the first of each kind, `counts` tells of all.

    shared       how far the copy goes; None: nothing is shared
    said         `counts` once more, with each reason why something is unknown by itself
    first, last  of the transactions that the copy is behind
    bytes, rows  of these
    lost_alone   what the source has where the copy lost records, and no log that stands beside it has alike; the first ones
    lost_ahead   what the source has where the copy lost its last records: it may have been among these; the first ones
    """

    difference: Difference
    shared: Shared | None = None
    counts: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    first: str | None = None
    last: str | None = None
    bytes: int = 0
    rows: int = 0
    lost_alone: list[str] = field(default_factory=list)
    lost_ahead: list[str] = field(default_factory=list)


Cut = tuple[str, str | None]
"""From one position on, below another; None: to the end."""


@dataclass
class _Rows:
    """Transactions of one log, one for each position, by `number`: twice that of its name in `names`, and one more for a start.

    ends  which of them show where they ended: `workbench.replication.stream.rules.streams.Entry.ends`
    """

    names: pa.StringArray
    number: Numbers
    begin: Numbers
    place: Numbers
    outcome: Numbers
    content: Numbers
    comparable: np.ndarray
    ends: np.ndarray
    bytes: Numbers
    kept: Numbers


_COLUMNS = ["position", "outcome", "content", "ended", "bytes", "kept"]
_PLACES = ["begin", "place"]


def _read(logs: Sequence[StreamLog], origin: str, cut: Cut) -> list[_Rows]:
    """Those of an origin within a cut, of each log; equal positions have equal numbers, unless a number was used again."""
    tables = []
    for log in logs:
        places = [log.begin, log.order]
        where = (pc.field("origin") == origin) & (pc.field("position") >= cut[0]) & (pc.field("outcome") != REPEATED)
        where = where if cut[1] is None else where & (pc.field("position") < cut[1])
        batches = [
            batch
            for part in log.parts
            for batch in stream_part(part["path"], [*_COLUMNS, *dict.fromkeys(places)], where)
        ]
        rows = pa.Table.from_batches(batches) if batches else None
        tables.append(None if rows is None else rows.select([*_COLUMNS, *places]).rename_columns([*_COLUMNS, *_PLACES]))
    texts = [rows["position"].cast(pa.string()) for rows in tables if rows is not None]
    coded = pa.chunked_array([chunk for one in texts for chunk in one.chunks], pa.string()).combine_chunks()
    coded = coded.dictionary_encode()
    sizes = [0 if rows is None else len(rows) for rows in tables]
    numbers = np.split(np.asarray(coded.indices).astype(np.int64), np.cumsum(sizes)[:-1])
    names, numbers = _by_content(coded.dictionary, numbers, tables)
    return [_rows(names, number, rows) for number, rows in zip(numbers, tables, strict=True)]


def _by_content(
    names: pa.StringArray, numbers: list[Numbers], tables: Sequence[pa.Table | None]
) -> tuple[pa.StringArray, list[Numbers]]:
    """The names and numbers with one for each content of what was used again: `streams.used_again` of the rules.

    What the first two logs have of it counts; the others have to have nothing but commits of it.
    """
    plain = [
        np.ones(0, bool) if rows is None else np.asarray(pc.not_equal(rows["outcome"].cast(pa.string()), EVENT))
        for rows in tables
    ]
    count = len(names)
    twice = [np.bincount(number[which], minlength=count) > 1 for number, which in zip(numbers, plain, strict=True)]
    if not any(one.any() for one in twice[:2]):
        return names, numbers
    several, odd = np.zeros(count, bool), np.zeros(count, bool)
    contents: list[Numbers] = []
    for at, (number, which, often, rows) in enumerate(zip(numbers, plain, twice, tables, strict=True)):
        if rows is None:
            contents.append(np.zeros(0, np.int64))
            continue
        told = pc.and_(rows["ended"].is_valid(), rows["content"].is_valid())
        told = np.asarray(pc.and_(told, pc.equal(rows["outcome"].cast(pa.string()), COMMITTED)))
        contents.append(pc.fill_null(rows["content"], 0).to_numpy())
        odd[number[which & ~told]] = True
        if at > 1:
            continue
        mine = which & often[number]
        pairs = np.unique(np.stack([number[mine], contents[-1][mine]]), axis=1)
        several[pairs[0][1:][pairs[0][1:] == pairs[0][:-1]]] = True
    again = several & ~odd
    mine_of = [which & again[number] for number, which in zip(numbers, plain, strict=True)]
    pairs = np.concatenate(
        [np.stack([number[mine], of[mine]]) for number, of, mine in zip(numbers, contents, mine_of, strict=True)],
        axis=1,
    )
    kinds, which_kind = np.unique(pairs, axis=1, return_inverse=True)
    given, at = [number.copy() for number in numbers], 0
    for number, mine in zip(given, mine_of, strict=True):
        number[mine] = count + which_kind.reshape(-1)[at : at + mine.sum()]
        at += mine.sum()
    return pa.concat_arrays([names, names.take(pa.array(kinds[0]))]), given


def _rows(names: pa.StringArray, number: Numbers, rows: pa.Table | None) -> _Rows:
    if rows is None:
        nothing: Numbers = np.array([], np.int64)
        never = nothing.astype(bool)
        return _Rows(names, nothing, nothing, nothing, nothing, nothing, never, never, nothing, nothing)
    begins, places = (pc.fill_null(rows[name], 0).to_numpy() for name in _PLACES)
    outcome = rows["outcome"].cast(pa.string()).combine_chunks().dictionary_encode()
    codes = np.array([_CODE[word] for word in outcome.dictionary.to_pylist()], np.int64)[np.asarray(outcome.indices)]
    number = 2 * number + (codes == _CODE[EVENT])
    # Of a position that was used twice the last one counts, as in the rule, unless contents tell them apart.
    order = np.lexsort((places, number))
    order = order[np.append(number[order][1:] != number[order][:-1], True)]
    cut = (codes == _CODE[CORRUPT]) & np.asarray(pc.fill_null(pc.invert(rows["ended"]), False))
    ends = ~np.isin(codes, [_CODE[word] for word in NOT_HERE_YET]) & ~cut
    comparable = np.asarray(pc.and_(rows["ended"].is_valid(), rows["content"].is_valid()))
    content = pc.fill_null(rows["content"], 0).to_numpy()
    sizes = rows["bytes"].to_numpy(), rows["kept"].to_numpy()
    columns = [number, begins, places, codes, content, comparable, ends, *sizes]
    return _Rows(names, *(np.asarray(column)[order] for column in columns))


def cuts(logs: Sequence[StreamLog]) -> Iterator[Cut]:
    """Ranges of positions that hold about as many transactions as are compared at once."""
    firsts: list[tuple[str, int]] = []
    for part in (part for log in logs for part in log.parts):
        with opened(part) as file:
            at = file.schema_arrow.get_field_index("position")
            for group in range(file.num_row_groups):
                about = file.metadata.row_group(group)
                told = about.column(at).statistics
                firsts.append((told.min if told is not None and told.has_min_max else "", about.num_rows))
    low, held = "", 0
    for first, rows in sorted(firsts):
        if held + rows > AT_ONCE and first > low and held:
            yield low, first
            low, held = first, 0
        held += rows
    yield low, None


class _Reach:
    """How far the copy goes: `workbench.replication.stream.rules.streams.shared`, gathered cut by cut."""

    def __init__(self, lost: Sequence[int]) -> None:
        self.lost = np.array(sorted(lost), np.int64)
        self.any = False
        self.alike = self.unlike = 0
        self.begins = self.goes_beyond = np.iinfo(np.int64).max
        self.covers = self.ended = -1
        self.last: str | None = None
        self.ends = (np.iinfo(np.int64).max, -1)
        most = np.iinfo(np.int64).max
        count = len(self.lost)
        self.before, self.low = np.full(count, -1), np.where(self.lost == ANYWHERE, ANYWHERE, BELOW_ALL)
        self.behind, self.high = np.full(count, most), np.full(count, most)

    def add(self, source: _Rows, copy: _Rows) -> None:
        """Count in the transactions of one cut that both have."""
        _, here, there = np.intersect1d(source.number, copy.number, assume_unique=True, return_indices=True)
        if not len(here):
            return
        self.any = True
        theirs, mine = source.place[here], copy.place[there]
        whole = (source.outcome[here] == _CODE[COMMITTED]) & (copy.outcome[there] == _CODE[COMMITTED])
        whole &= source.comparable[here] & copy.comparable[there]
        same = source.content[here] == copy.content[there]
        self.alike, self.unlike = self.alike + int((whole & same).sum()), self.unlike + int((whole & ~same).sum())
        self.begins = min(self.begins, int(theirs.min()))
        if copy.ends[there].any():
            self.goes_beyond = min(self.goes_beyond, int(theirs[copy.ends[there]].min()))
        first = np.where(source.outcome[here] == _CODE[COMMITTED], copy.begin[there], mine)
        self.ends = min(self.ends[0], int(first.min())), max(self.ends[1], int(mine.max()))
        settled = np.isin(copy.outcome[there], [_CODE[one] for one in SETTLED]) & copy.ends[there]
        if settled.any():
            top = int(np.argmax(np.where(settled, theirs, -1)))
            if theirs[top] > self.covers:
                self.covers, self.last = int(theirs[top]), source.names[int(source.number[here][top]) // 2].as_py()
        order = np.argsort(mine, kind="stable")
        theirs, mine = theirs[order], mine[order]
        self.ended = max(self.ended, int(mine[-1]))
        low, high = copy.ends[there][order], source.ends[here][order]
        if low.any():
            at = np.searchsorted(mine[low], self.lost, "right")
            nearer = (at > 0) & (mine[low][np.maximum(at - 1, 0)] > self.before)
            self.before[nearer], self.low[nearer] = mine[low][at[nearer] - 1], theirs[low][at[nearer] - 1]
        if high.any():
            at = np.searchsorted(mine[high], self.lost, "right")
            behind = (at < high.sum()) & (self.lost != ANYWHERE)
            nearer = behind & (mine[high][np.minimum(at, high.sum() - 1)] < self.behind)
            self.behind[nearer], self.high[nearer] = mine[high][at[nearer]], theirs[high][at[nearer]]

    @property
    def unrelated(self) -> bool:
        """Most commits that bear one number in both are not the same."""
        return self.unlike > self.alike

    @property
    def first(self) -> int:
        """`Shared.begins`."""
        if self.covers >= 0:
            return self.begins
        return self.goes_beyond if self.goes_beyond < np.iinfo(np.int64).max else -1

    @property
    def shared(self) -> Shared | None:
        """The same as the rules have it."""
        most = np.iinfo(np.int64).max
        low, high = self._gaps()
        gaps = {
            (low, float("inf") if high == most else high) for low, high in zip(low.tolist(), high.tolist(), strict=True)
        }
        return (
            Shared(self.first, self.covers, self.last, tuple(sorted(gaps)), self.ends)
            if self.any and not self.unrelated
            else None
        )

    def _gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Between which places of the source records were lost; the last that both have may be the damaged one itself."""
        counts = self.lost != self.ended
        return self.low[counts], self.high[counts]

    def in_gap(self, place: Numbers, anywhere: bool = True) -> np.ndarray:
        """Which places of the source lie between two that both have and between which the copy lost records.

        `anywhere`: a loss of which nothing shows what stood before it counts, too.
        """
        low, high = self._gaps()
        low, high = (low, high) if anywhere else (low[low != ANYWHERE], high[low != ANYWHERE])
        if not len(low):
            return np.zeros(len(place), bool)
        order = np.argsort(low, kind="stable")
        low, high = low[order], np.maximum.accumulate(high[order])
        at = np.searchsorted(low, place, "left")
        return (at > 0) & (high[np.maximum(at - 1, 0)] > place)


def compared(
    source: StreamLog,
    copy: StreamLog,
    origin: str,
    limit: int,
    others: Sequence[StreamLog] | None = None,
    beside: Sequence[StreamLog] | None = None,
) -> Compared:
    """What the copy lacks of the source's transactions of an origin, and has beyond them; lists no longer than the limit.

    `others`: nobody knows which log is the source. Of what the copy has nothing of, that alone is lacked then which one of these
    has alike. `beside`: more logs, to tell what only the source has where the copy lost records.
    """
    logs = (source, copy, *(others or ()), *(beside or ()))
    ranges = list(cuts(logs))
    # Of logs that fit into one cut nothing is read twice.
    kept = _read(logs, origin, ranges[0]) if len(ranges) == 1 else None
    reach, back, found = _Reach(copy.lost), _Reach(source.lost), _Found(limit)
    for cut in ranges:
        theirs, mine, *_ = kept or _read(logs, origin, cut)
        reach.add(theirs, mine)
        back.add(mine, theirs)
    for cut in ranges:
        theirs, mine, *more = kept or _read(logs, origin, cut)
        asked, near = more[: len(others or ())], more[len(others or ()) :]
        known = None if others is None else np.concatenate([mine.number, *(_alike(theirs, rows) for rows in asked)])
        said = _judge(theirs, mine, reach, back, found, known)
        if beside is not None:
            _judge_lost(theirs, mine, reach, found, said, near)
    return found.compared(reach)


def _judge(
    source: _Rows, copy: _Rows, reach: _Reach, back: _Reach, found: _Found, known: Numbers | None = None
) -> Numbers:
    if reach.unrelated:
        said = np.where(source.outcome == _CODE[COMMITTED], _WORD[UNRELATED], 0)
        found.add(source, said, source.outcome)
        return said
    there = np.full(len(source.number), _ABSENT)
    _, here, at = np.intersect1d(source.number, copy.number, assume_unique=True, return_indices=True)
    there[here] = copy.outcome[at]
    is_ = {word: source.outcome == _CODE[word] for word in (COMMITTED, ROLLED_BACK)}
    has = {word: there == _CODE[word] for word in (COMMITTED, ROLLED_BACK, CONFLICT, CORRUPT, UNKNOWN, INCOMPLETE)}
    same = np.ones(len(source.number), bool)
    same[here] = ~(source.comparable[here] & copy.comparable[at] & (source.content[here] != copy.content[at]))
    unlike = (has[CONFLICT] & is_[COMMITTED]) | (is_[COMMITTED] & has[COMMITTED] & ~same)
    unlike |= (is_[COMMITTED] & has[ROLLED_BACK]) | (is_[ROLLED_BACK] & has[COMMITTED])
    undecided = np.isin(there, [_CODE[one] for one in NOT_HERE_YET])
    lack = is_[COMMITTED] & ~has[COMMITTED] & ~unlike
    said = np.zeros(len(source.number), np.int64)
    behind, absent = source.place > reach.covers, there == _ABSENT
    if not reach.any:
        said[lack] = _WORD[NOTHING_SHARED]
    else:
        gap = reach.in_gap(source.place) & ~(behind & ~reach.in_gap(source.place, anywhere=False))
        later = np.zeros(len(source.number), bool)
        later[here] = copy.place[at] < (reach.lost[-1] if len(reach.lost) else ANYWHERE)
        lost = bool(len(reach.lost)) & ~absent & (has[INCOMPLETE] | (source.place < reach.covers) | later)
        rules = [
            (has[CORRUPT], DAMAGED),
            (has[UNKNOWN], NOT_READ),
            (lost, LOST),
            (~absent & undecided & behind, "behind"),
            (~absent, "inside"),
            (gap, LOST),
            (source.place < reach.first, BEGINS_LATER),
            (behind, "behind"),
        ]
        said = np.select([lack & which for which, _ in rules], [_WORD[word] for _, word in rules], 0)
        said = np.where(lack & (said == 0), _WORD["inside"], said)
        unclear = np.isin(source.outcome, [_CODE[one] for one in UNCLEAR])
        said = np.where(unclear & (absent | undecided), _WORD[SOURCE_UNCLEAR], said)
        if known is not None:
            lacked = np.isin(said, [_WORD["inside"], _WORD["behind"]])
            said = np.where(lacked & ~np.isin(source.number, known), _WORD["alone"], said)
    found.add(source, said, there)
    found.add(source, np.where(undecided, _WORD["undecided"], 0), source.outcome)
    found.add(source, np.where(unlike, _WORD["conflicts"], 0), there)
    errant = (copy.outcome == _CODE[COMMITTED]) & ~np.isin(copy.number, source.number)
    errant &= (copy.place > reach.ends[0]) & (copy.place < reach.ends[1])
    errant &= ~back.in_gap(copy.place)  # there the source lost records: it may have had them, too
    found.add(copy, np.where(errant, _WORD["errant"], 0), copy.outcome)
    return said


def _judge_lost(
    source: _Rows, copy: _Rows, reach: _Reach, found: _Found, said: Numbers, beside: Sequence[_Rows]
) -> None:
    """Of what the copy may have lost: what no other log has, and what stands behind all that both have."""
    lost, behind = said == _WORD[LOST], source.place > reach.covers
    there = np.concatenate([copy.number, *(_not_unlike(source, rows) for rows in beside)])
    alone = lost & ~behind & ~np.isin(source.number, there)
    found.add(source, np.where(alone, _WORD["lost_alone"], 0), source.outcome)
    found.add(source, np.where(lost & behind, _WORD["lost_ahead"], 0), source.outcome)


def _not_unlike(source: _Rows, other: _Rows) -> Numbers:
    """The numbers of what another log has something of, unless its content is surely another one."""
    both, here, there = np.intersect1d(source.number, other.number, assume_unique=True, return_indices=True)
    unlike = source.comparable[here] & other.comparable[there] & (source.content[here] != other.content[there])
    return both[~unlike]


def _alike(source: _Rows, other: _Rows) -> Numbers:
    """The numbers of what both have alike: `workbench.replication.stream.rules.streams.alike`."""
    both, here, there = np.intersect1d(source.number, other.number, assume_unique=True, return_indices=True)
    whole = other.outcome[there] == _CODE[COMMITTED]
    filtered = whole & (source.comparable[here] != other.comparable[there])
    same = (source.content[here] == other.content[there]) & (whole | (other.outcome[there] == _CODE[UNKNOWN]))
    same = (same | filtered) & (source.outcome[here] == _CODE[COMMITTED])
    return both[same]


class _Found:
    """What was found, cut by cut: of each kind how many, and the first ones."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.counts: Counter[str] = Counter()
        self.rows: dict[str, list[tuple[int, str, int]]] = {}
        self.ends: list[tuple[int, str]] = []
        self.bytes = self.kept = 0

    def add(self, of: _Rows, said: Numbers, outcome: Numbers) -> None:
        """Take what was said of these transactions."""
        for code in np.unique(said[said > 0]).tolist():
            word, which = _WORDS[code], np.flatnonzero(said == code)
            self.counts[word] += len(which)
            which = which[np.argsort(of.place[which], kind="stable")]
            if word == "behind":
                self.bytes += int(of.bytes[which].sum())
                self.kept += int(of.kept[which].sum())
                self.ends += [row[:2] for row in self._told(of, which[[0, -1]], outcome)]
            rows = self.rows.get(word, []) + self._told(of, which[: self.limit], outcome)
            self.rows[word] = sorted(rows)[: self.limit]

    @staticmethod
    def _told(of: _Rows, which: Numbers, outcome: Numbers) -> list[tuple[int, str, int]]:
        names = of.names.take(pa.array(of.number[which] // 2)).to_pylist()
        return list(zip(of.place[which].tolist(), names, outcome[which].tolist(), strict=True))

    def _lacks(self, word: str) -> list[MissingTransaction]:
        rows = self.rows.get(word, [])
        return [
            MissingTransaction(name, place, None if code == _ABSENT else OUTCOMES[code]) for place, name, code in rows
        ]

    def compared(self, reach: _Reach) -> Compared:
        """All of it."""
        unknown = sorted((lack.place, lack.position, word) for word in _UNTOLD for lack in self._lacks(word))
        difference = Difference(
            None if reach.unrelated else reach.last,
            self._lacks("inside"),
            self._lacks("behind"),
            [(position, place, word) for place, position, word in unknown][: self.limit],
            {lack.position: str(lack.outcome) for lack in self._lacks("undecided")},
            [lack.position for lack in self._lacks("errant")],
            [lack.position for lack in self._lacks("conflicts")],
            reach.unrelated,
            [lack.position for lack in self._lacks("alone")],
        )
        words = ("inside", "behind", "undecided", "errant", "conflicts", "alone")
        counts = Counter({word: self.counts[word] for word in words})
        counts["unknown"] = sum(self.counts[word] for word in _UNTOLD)
        first, last = (min(self.ends)[1], max(self.ends)[1]) if self.ends else (None, None)
        lost = ([lack.position for lack in self._lacks(word)] for word in ("lost_alone", "lost_ahead"))
        return Compared(difference, reach.shared, counts, self.counts, first, last, self.bytes, self.kept, *lost)
