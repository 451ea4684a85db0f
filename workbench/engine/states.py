"""States of entries held against each other: which entries differ between servers, and what each of them lacks.

A system without a log of changes shows of each attribute of an entry its last change only. A load sorts these states by a
number of their entry and keeps digests by ranges of that number, so that entries which are alike everywhere are never read.
What a server lacks of the others is `workbench.replication.entry.rules.entries.lacking`, for all entries of a range at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.change_fingerprints import among, beginnings
from workbench.engine.digests import digest, mix
from workbench.engine.parquet_read import Part, groups_near, opened, read_part, some_at_once
from workbench.engine.selective_read import rows_where
from workbench.replication.entry.rules.entries import FORGOTTEN, MADE_TWICE, NOT_READ, Cid, Ranges
from workbench.tables import Numbers

CREATED, CHANGED, DELETED = "created", "changed", "deleted"

_SHIFT = 52
"""The highest 12 bits of an entry's number are its bucket: 2 million entries make some 500 in each."""

_ID, _NAME = 40, 64
"""Bytes that are looked at of an entry's id, and of an attribute's name."""

_AT_ONCE = 1_500_000
"""States that are held at once, of all servers together."""

LOOKED_AT = 10 * _AT_ONCE
"""States of which the entries are held at once, a number of each."""

_COLUMNS = ["number", "entry", "kind", "attribute", "origin", "hi"]


def numbered(states: pa.Table) -> pa.Table:
    """The states in the order of their entries' numbers, which fill a column."""
    number = beginnings(_plain(states["entry"]), _ID).view(np.int64)
    order = pa.array(np.argsort(number, kind="stable"))
    at = states.column_names.index("number")
    return states.set_column(at, "number", pa.array(number)).take(order)


def digest_of(states: pa.Table) -> pa.Table:
    """Digests of numbered states, by origin and bucket of entries."""
    return digest(_few(states["origin"]), _key(states), states["hi"].to_numpy(), _SHIFT)


def _key(states: pa.Table) -> Numbers:
    """A number of each state's entry, kind and attribute; its bucket is that of the entry."""
    kinds, attributes = (_few(states[name]) for name in ("kind", "attribute"))
    size = len(attributes.dictionary) + 1
    code = np.asarray(pc.fill_null(attributes.indices, size - 1)) + np.asarray(kinds.indices).astype(np.int64) * size
    names = [*attributes.dictionary.to_pylist(), ""]
    texts = pa.array([f"{kind} {name}" for kind in kinds.dictionary.to_pylist() for name in names], pa.string())
    named = (beginnings(texts, _NAME) >> np.uint64(64 - _SHIFT)).view(np.int64)
    key: Numbers = states["number"].to_numpy() ^ named[code]
    return key


def _few(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column of few texts, each of them once."""
    whole = column.unify_dictionaries().combine_chunks()
    return whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()


def _plain(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.cast(pa.string())


def differing(digests: Sequence[Iterable[Part]]) -> list[tuple[int, int]]:
    """The buckets in which not all servers show the same states, ascending, with how many states they hold there together.

    Of each server its parts of the table `digests`.
    """
    shown = [_by_bucket(parts) for parts in digests]
    buckets = sorted(set().union(*shown))
    return [
        (bucket, sum(count for one in shown for count, _ in one.get(bucket, {}).values()))
        for bucket in buckets
        if any(one.get(bucket) != shown[0].get(bucket) for one in shown)
    ]


def _by_bucket(parts: Iterable[Part]) -> dict[int, dict[str, tuple[int, int]]]:
    """Bucket -> origin -> count and mix."""
    found: dict[int, dict[str, tuple[int, int]]] = {}
    for table in some_at_once(lambda part: read_part(part["path"], ["origin", "bucket", "count", "mix"]), parts):
        origins = table["origin"].cast(pa.string()).to_pylist()
        rows = zip(origins, *(table[name].to_pylist() for name in ("bucket", "count", "mix")), strict=True)
        for origin, bucket, count, mixed in rows:
            mine = found.setdefault(bucket, {})
            before = mine.get(origin, (0, 0))
            mine[origin] = before[0] + count, (before[1] + mixed) % (1 << 64)
    return found


def held_together(some: Iterable[tuple[int, int]], at_once: int = _AT_ONCE) -> Iterator[list[int]]:
    """Buckets or entries, each with the count of its states, in groups of no more states than can be held."""
    group: list[int] = []
    held = 0
    for one, count in some:
        if group and held + count > at_once:
            yield group
            group, held = [], 0
        group.append(one)
        held += count
    if group:
        yield group


def unlike(parts: Sequence[Iterable[Part]], buckets: Sequence[int]) -> list[tuple[int, int]]:
    """The numbers of the entries in these buckets of which not all servers show the same states, ascending, each with the count
    of its states at all servers.
    """
    wanted = np.array(buckets, np.int64)

    def read(part: Part) -> tuple[Numbers, Numbers, Numbers]:
        rows = _rows_of(
            part, ["number", "kind", "attribute", "origin", "hi"], None, lambda of: among(of >> _SHIFT, wanted)
        )
        if not len(rows):
            return (_NONE,) * 3
        origin = _few(rows["origin"])
        who = beginnings(origin.dictionary.cast(pa.string()), _ID).view(np.int64)[np.asarray(origin.indices)]
        mixed = mix(_key(rows) ^ who, rows["hi"].to_numpy()).view(np.int64)
        return _summed(rows["number"].to_numpy(), mixed, np.ones(len(rows), np.int64))

    shown = []
    for mine in parts:
        found = list(some_at_once(read, mine))
        shown.append(_summed(*(np.concatenate([_NONE, *column]) for column in zip((_NONE,) * 3, *found, strict=True))))
    together, _, counts = _summed(*(np.concatenate(column) for column in zip(*shown, strict=True)))
    mixes = np.zeros((len(shown), len(together)), np.int64)
    for server, (mine, sums, _) in enumerate(shown):
        mixes[server, np.searchsorted(together, mine)] = sums
    differ = np.flatnonzero((mixes != mixes[0]).any(axis=0))
    return list(zip(together[differ].tolist(), counts[differ].tolist(), strict=True))


_NONE = np.zeros(0, np.int64)


def _summed(number: Numbers, mixed: Numbers, count: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The numbers, each once and ascending, with the sums of what belongs to them."""
    order = np.argsort(number, kind="stable")
    number, mixed, count = number[order], mixed[order], count[order]
    first = np.flatnonzero(np.append(True, number[1:] != number[:-1])[: len(number)])
    if not len(first):
        return (_NONE,) * 3
    return number[first], np.add.reduceat(mixed, first), np.add.reduceat(count, first)


def states_in(parts: Sequence[Iterable[Part]], numbers: Sequence[int]) -> EntryStates:
    """The states of the entries with these ascending numbers at each server; of each server its parts of the table `states`."""
    wanted = np.array(numbers, np.int64)
    return _shown(parts, lambda part: _rows_of(part, _COLUMNS, wanted, lambda of: among(of, wanted)))


def _rows_of(part: Part, columns: list[str], near: Numbers | None, keep: Callable[[Numbers], Numbers]) -> pa.Table:
    """The rows with numbers to keep; a row group without any of them, or none `near`, is not read."""
    rest = [name for name in columns if name != "number"]
    found = []
    with opened(part, "kind", "attribute", "origin") as file:
        for group in range(file.num_row_groups) if near is None else groups_near(file, near, "number"):
            number = file.read_row_group(group, ["number"], use_threads=False)
            at = np.flatnonzero(keep(number["number"].to_numpy()))
            if len(at):
                rows = file.read_row_group(group, rest, use_threads=False).append_column("number", number["number"])
                rows.validate(full=True)
                found.append(rows.take(pa.array(at)).select(columns))
    return pa.concat_tables(found).unify_dictionaries() if found else pa.table({name: [] for name in columns})


def states_of_entries(parts: Sequence[Iterable[Part]], time: int, origin: str) -> EntryStates:
    """All states, at every server, of the entries that carry a change of this time and origin at any of them."""
    parts = [list(mine) for mine in parts]
    here = (pc.field("hi") == time) & (pc.field("origin") == origin)
    named = [read_part(part["path"], ["entry"], here)["entry"] for mine in parts for part in mine]
    entries = pc.unique(
        pa.chunked_array([chunk.cast(pa.string()) for one in named for chunk in one.chunks], pa.string())
    )
    if not len(entries):
        return EntryStates.of(None, len(parts))
    return _shown(parts, lambda part: read_part(part["path"], _COLUMNS, pc.field("entry").isin(entries)))


def states_of_named(parts: Iterable[Part], entries: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Some columns of all states of a few entries: `parts` are in the order of their numbers, so that little is read."""
    names = pa.array(entries, pa.string())
    numbers = beginnings(names, _ID).view(np.int64)
    where = pc.field("number").isin(pa.array(numbers)) & pc.field("entry").isin(names)
    return rows_where(parts, columns, where)


def _shown(parts: Sequence[Iterable[Part]], read: Callable[[Part], pa.Table]) -> EntryStates:
    tables = []
    for server, mine in enumerate(parts):
        found = [rows for rows in some_at_once(read, mine) if len(rows)]
        tables += [_even(one.append_column("server", pa.array(np.full(len(one), server, np.int16)))) for one in found]
    return EntryStates.of(pa.concat_tables(tables) if tables else None, len(parts))


def _even(table: pa.Table) -> pa.Table:
    plain = [pa.field(one.name, pa.string() if pa.types.is_dictionary(one.type) else one.type) for one in table.schema]
    return table.cast(pa.schema(plain))


WHYS = ("", FORGOTTEN, MADE_TWICE, NOT_READ)
"""Why nobody can tell whether a server lacks a change; the first: it does."""

_CERTAIN, _FORGOTTEN, _TWICE, _NOT_READ = range(4)


@dataclass(frozen=True)
class Lacked:
    """Changes that a server lacks: numbers of entries, attributes (-1: the deletion) and origins; times; which of WHYS it is."""

    entry: Numbers
    attribute: Numbers
    time: Numbers
    origin: Numbers
    why: Numbers

    def __len__(self) -> int:
        return len(self.entry)

    def __getitem__(self, which: Any) -> Lacked:
        return Lacked(self.entry[which], self.attribute[which], self.time[which], self.origin[which], self.why[which])


_NEVER = -1


@dataclass(frozen=True)
class EntryStates:
    """States of some entries at several servers, as numbers.

    entries, attributes, origins  what the numbers stand for; origins ascend as their texts do
    at, gone    per server and entry when it was created, and when it was deleted (-1: it is not shown), with `at_by`, `gone_by`
    changes     the last changes of attributes: server, entry, attribute, time, origin; in the order of `key`
    """

    entries: list[str]
    attributes: list[str]
    origins: list[str]
    at: Numbers
    at_by: Numbers
    gone: Numbers
    gone_by: Numbers
    server: Numbers
    entry: Numbers
    attribute: Numbers
    time: Numbers
    origin: Numbers
    key: Numbers

    @classmethod
    def of(cls, rows: pa.Table | None, servers: int) -> EntryStates:
        """The rows of the table `states`, with the number of their server beside them."""
        if rows is None:
            rows = pa.table({name: pa.array([], kind) for name, kind in _EMPTY.items()})
        entries, entry = _numbers(rows["entry"])
        attributes, attribute = _numbers(pc.fill_null(rows["attribute"], ""))
        origins, origin = _numbers(rows["origin"])
        server, time = rows["server"].to_numpy().astype(np.int64), rows["hi"].to_numpy()
        kind = rows["kind"]
        size = (servers, max(len(entries), 1))

        def ends(one: str) -> tuple[Numbers, Numbers]:
            which = np.flatnonzero(np.asarray(pc.equal(kind, one)))
            when, by = np.full(size, _NEVER, np.int64), np.full(size, _NEVER, np.int64)
            when[server[which], entry[which]], by[server[which], entry[which]] = time[which], origin[which]
            return when, by

        which = np.flatnonzero(np.asarray(pc.equal(kind, CHANGED)))
        key = (server[which] * size[1] + entry[which]) * (len(attributes) + 1) + attribute[which]
        order = np.argsort(key, kind="stable")
        # A file may show an entry twice: the later one counts, here and where `ends` writes one over the other.
        order = order[np.append(key[order][1:] != key[order][:-1], True)[: len(order)]]
        which, key = which[order], key[order]
        last = (server[which], entry[which], attribute[which], time[which], origin[which])
        return cls(entries, attributes, origins, *ends(CREATED), *ends(DELETED), *last, key)

    def lacked_by(self, server: int, seen: Ranges, forgotten: int, whole: bool = True) -> Lacked:
        """What the server claims (`seen`) and does not show; what lies before `forgotten` may be gone without trace."""
        upto, listed = self._claimed(seen, forgotten)
        at, by, gone = self.at[server], self.at_by[server], self.gone[server] >= 0
        alive = at >= 0
        last, last_by = np.full(len(at), _NEVER, np.int64), np.full(len(at), _NEVER, np.int64)
        found = []
        for when, whose in self._graves(server, upto):
            e = np.flatnonzero(alive & (when >= 0) & ~gone)
            proven = _stands(when[e], whose[e], at[e], by[e], forgotten) & listed[whose[e]]
            found.append(_lacked(e, np.full(len(e), -1), when[e], whose[e], np.where(proven, _CERTAIN, _FORGOTTEN)))
            later = _after(when, whose, last, last_by)
            last[later], last_by[later] = when[later], whose[later]
        of, entry, origin, time = self.server, self.entry, self.origin, self.time
        theirs, their_by = self.at[of, entry], self.at_by[of, entry]
        dead = (last[entry] >= 0) & _stands(last[entry], last_by[entry], theirs, their_by, forgotten)
        fits = (of != server) & (theirs >= 0) & (time <= upto[origin]) & ~gone[entry] & ~dead
        which = np.flatnonzero(fits)
        which = which[~self._settled(server, which)]
        e, theirs, their_by = entry[which], theirs[which], their_by[which]
        same, absent = (at[e] == theirs) & (by[e] == their_by), ~alive[e]
        told = (same | (theirs >= forgotten)) & listed[origin[which]]
        unlike = np.where(same, _CERTAIN, np.where(absent, _CERTAIN if whole else _NOT_READ, _TWICE))
        why = np.where(told, unlike, _FORGOTTEN)
        kept = same | absent | _after(at[e], by[e], theirs, their_by)
        found.append(self._changes(which[kept], why[kept]))
        return _each_once(found)

    def pending_at(self, server: int, seen: Ranges, forgotten: int) -> Lacked:
        """The changes that others show and the server neither claims nor shows, each once."""
        upto, _ = self._claimed(seen, forgotten)
        which = np.flatnonzero((self.server != server) & (self.time > upto[self.origin]))
        which = which[~self._settled(server, which)]
        found = [self._changes(which)]
        for other in range(len(self.at)):
            time, by = self.gone[other], self.gone_by[other]
            e = np.flatnonzero((time >= 0) & (time > upto[by]) & (self.gone[server] < 0))
            if other != server:
                found.append(_lacked(e, np.full(len(e), -1), time[e], by[e]))
        return _each_once(found)

    def gone_since(self, closed: int, last: int, forgotten: Numbers, whole: Numbers) -> Lacked:
        """What states behind the `last` ones show, as servers were earlier, and these no more, nor anything in place.

        closed     this many of the last states say so whatever they show; of the others one may still show the very change
        forgotten  per earlier state and last one: a deletion before this time the server may have forgotten since
        whole      of which last states all entries are known; what the others do not show, their claims have to tell

        A change that a later one replaced in another earlier state is left out, and so is any of an entry that may have been
        deleted since and forgotten.
        """
        alive, dead = self.at[:last] >= 0, np.asarray((self.gone >= 0).any(0))
        which = np.flatnonzero((self.server >= last) & ~dead[self.entry])
        for other in range(last):
            settled = self._settled(other, which)
            if other >= closed:
                settled &= ~self._equal(other, which)
            which = which[~settled]
        for other in range(last, len(self.at)):
            when, whose = self._last(other, self.entry[which], self.attribute[which])
            which = which[~self._same(other, which) | ~_after(when, whose, self.time[which], self.origin[which])]
        for other in range(last):
            e, earlier = self.entry[which], self.server[which] - last
            absent, unread = ~alive[other][e] & whole[other], ~alive[other][e] & ~whole[other]
            made = np.maximum(self.at[self.server[which], e], forgotten[earlier, other, 0])
            which = which[self._same(other, which) | unread | (absent & (made >= forgotten[earlier, other, 1]))]
        found = [self._changes(which)]
        when, whose = self._earliest_deletions(last)
        e = np.flatnonzero((when >= 0) & alive.any(0) & ~(self.gone[:closed] >= 0).any(0))
        for other in range(last):
            e = e[~alive[other][e] | _after(when[e], whose[e], self.at[other][e], self.at_by[other][e])]
        found.append(_lacked(e, np.full(len(e), -1), when[e], whose[e]))
        return _each_once(found)

    def _equal(self, server: int, which: Numbers) -> Numbers:
        """Which of these changes a server shows, too."""
        when, whose = self._last(server, self.entry[which], self.attribute[which])
        equal: Numbers = self._same(server, which) & (when == self.time[which]) & (whose == self.origin[which])
        return equal

    def _earliest_deletions(self, last: int) -> tuple[Numbers, Numbers]:
        """Per entry the earliest deletion of it that states behind the first `last` show: of two that one stays."""
        time, by = (np.full(self.at.shape[1], _NEVER, np.int64) for _ in range(2))
        for when, whose in zip(self.gone[last:], self.gone_by[last:], strict=True):
            first = (when >= 0) & ((time < 0) | _after(time, by, when, whose))
            time[first], by[first] = when[first], whose[first]
        return time, by

    def lacking(self, server: int, some: Lacked) -> Numbers:
        """Of such changes: those that the server lacks if its vector covers them; a deletion only where the entry is there."""
        found: Numbers = (some.attribute >= 0) | (self.at[server][some.entry] >= 0)
        return found

    @staticmethod
    def together(some: Lacked, more: Lacked) -> Lacked:
        """Both, each change once."""
        return _each_once([some, more])

    def only_at(self, server: int, seen: Mapping[int, Ranges]) -> Lacked:
        """What the server shows and none of the others, whose claims these are, claims or shows."""
        mine, gone = self.server == server, self.gone[server] >= 0
        for other, theirs in seen.items():
            upto, _ = self._claimed(theirs, 0)
            mine &= self.time > upto[self.origin]
            gone &= (self.gone[server] > upto[self.gone_by[server]]) & (self.gone[other] < 0)
            which = np.flatnonzero(mine)
            mine[which[self._settled(other, which)]] = False
        alive = (self.at[list(seen)] >= 0).any(0)  # an entry that nobody shows need not be deleted
        which, e = np.flatnonzero(mine), np.flatnonzero(gone & alive)
        dead = _lacked(e, np.full(len(e), -1), self.gone[server][e], self.gone_by[server][e])
        return _each_once([self._changes(which), dead])

    def all(self) -> Lacked:
        """Every change and every deletion that some server shows, each once."""
        found = [self._changes(np.arange(len(self.entry)))]
        for time, by in zip(self.gone, self.gone_by, strict=True):
            e = np.flatnonzero(time >= 0)
            found.append(_lacked(e, np.full(len(e), -1), time[e], by[e]))
        return _each_once(found)

    def made_twice(self, forgotten: Sequence[int]) -> list[tuple[str, dict[int, Cid]]]:
        """Entries that servers show with different creations, all younger than what any of them may have forgotten."""
        shown = self.at >= 0
        oldest = np.where(shown, np.array(forgotten, np.int64)[:, np.newaxis], _NEVER).max(0)
        first = np.where(shown, self.at, np.iinfo(np.int64).max).min(0)
        last = self.at.max(0)
        maker = np.where(self.at == last, self.at_by, _NEVER).max(0)
        differs = (shown & ((self.at != last) | (self.at_by != maker))).any(0)
        found = []
        for entry in np.flatnonzero(differs & (first >= oldest)).tolist():
            ends = {
                server: (int(self.at[server, entry]), self.origins[int(self.at_by[server, entry])])
                for server in np.flatnonzero(self.at[:, entry] >= 0).tolist()
            }
            found.append((self.entries[entry], ends))
        return found

    def holders(self, some: Lacked) -> Numbers:
        """Per server and change: does it show this very change?"""
        found = np.zeros((len(self.at), len(some)), bool)
        deleted = some.attribute < 0
        for server in range(len(self.at)):
            when, whose = self._last(server, some.entry, np.maximum(some.attribute, 0))
            shown = (when == some.time) & (whose == some.origin)
            dead = (self.gone[server][some.entry] == some.time) & (self.gone_by[server][some.entry] == some.origin)
            found[server] = np.where(deleted, dead, shown)
        return found

    def never_had(self, server: int, some: Lacked) -> Numbers:
        """For each change: does the server show this very entry, and the attribute as it was before?

        Nobody trims what an entry shows of its attributes: who had it shows it, or something later.
        """
        e, at, by = some.entry, self.at[server], self.at_by[server]
        same = (self.at[:, e] == at[e]) & (self.at_by[:, e] == by[e]) & (at[e] >= 0)
        shown: Numbers = (self.holders(some) & same).any(0) & (some.attribute >= 0)
        return shown

    def shows(self, server: int, time: int, origin: str) -> bool:
        """True if any entry of the server carries a change of this time and origin."""
        number = self.origins.index(origin) if origin in self.origins else _NEVER
        ends = ((self.gone, self.gone_by), (self.at, self.at_by))
        whole = any(((when[server] == time) & (by[server] == number)).any() for when, by in ends)
        return whole or bool(((self.server == server) & (self.time == time) & (self.origin == number)).any())

    def unlike_at(self, server: int, time: int, origin: str) -> set[int]:
        """The numbers of the entries of which others show this change, and to which it would change something at the server."""
        number = self.origins.index(origin) if origin in self.origins else _NEVER
        which = np.flatnonzero((self.server != server) & (self.time == time) & (self.origin == number))
        return set(self.entry[which[~self._settled(server, which)]].tolist())

    def cid(self, some: Lacked, number: int) -> Cid:
        """One of the changes."""
        return int(some.time[number]), self.origins[int(some.origin[number])]

    def _claimed(self, seen: Ranges, forgotten: int) -> tuple[Numbers, Numbers]:
        """Per origin: up to where what it did counts as claimed, and whether the vector lists it."""
        upto = [seen[origin][1] if origin in seen else forgotten - 1 for origin in self.origins]
        return np.array(upto or [_NEVER], np.int64), np.array([one in seen for one in self.origins] or [False])

    def _settled(self, server: int, which: Numbers) -> Numbers:
        """Of these changes of others: would they change nothing at the server, by its tombstone or its own last change?"""
        e = self.entry[which]
        when, whose = self._last(server, e, self.attribute[which])
        same = self._same(server, which)
        return (self.gone[server][e] >= 0) | (same & ~_after(self.time[which], self.origin[which], when, whose))

    def _same(self, server: int, which: Numbers) -> Numbers:
        """Of these changes of others: does the server show the entry as created at the same time?"""
        of, e = self.server[which], self.entry[which]
        at, by = self.at[server][e], self.at_by[server][e]
        same: Numbers = (at == self.at[of, e]) & (by == self.at_by[of, e]) & (at >= 0)
        return same

    def _graves(self, server: int, upto: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
        """Of each other server, per entry: its tombstone if that is covered, else -1; time and origin."""
        for other in range(len(self.at)):
            if other != server:
                time, by = self.gone[other], self.gone_by[other]
                covered = (time >= 0) & (time <= upto[by])
                yield np.where(covered, time, _NEVER), np.where(covered, by, _NEVER)

    def _last(self, server: int, entry: Numbers, attribute: Numbers) -> tuple[Numbers, Numbers]:
        """The server's own last changes of these attributes: time and origin; -1 where it shows none."""
        never = np.full(len(entry), _NEVER, np.int64)
        if not len(self.key):
            return never, never
        key = (server * self.at.shape[1] + entry) * (len(self.attributes) + 1) + attribute
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        there = self.key[at] == key
        return np.where(there, self.time[at], never), np.where(there, self.origin[at], never)

    def _changes(self, which: Numbers, why: Numbers | int = _CERTAIN) -> Lacked:
        return _lacked(self.entry[which], self.attribute[which], self.time[which], self.origin[which], why)


_EMPTY: Mapping[str, pa.DataType] = {
    **dict.fromkeys(("entry", "kind", "attribute", "origin"), pa.string()),
    **dict.fromkeys(("number", "hi"), pa.int64()),
    "server": pa.int16(),
}


def _numbers(column: pa.ChunkedArray) -> tuple[list[str], Numbers]:
    """The distinct texts in their order, and which of them each row has."""
    few = column.combine_chunks().dictionary_encode()
    texts = few.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(texts), np.int64)
    place[order] = np.arange(len(texts))
    return [texts[at] for at in order], place[np.asarray(few.indices)] if len(texts) else np.zeros(0, np.int64)


def _lacked(
    entry: Numbers, attribute: Numbers, time: Numbers, origin: Numbers, why: Numbers | int = _CERTAIN
) -> Lacked:
    return Lacked(entry, attribute, time, origin, np.broadcast_to(why, len(entry)))


def _after(time: Numbers, by: Numbers, other: Numbers, other_by: Numbers) -> Numbers:
    """Is the one CID later than the other?"""
    return (time > other) | ((time == other) & (by > other_by))


def _stands(grave: Numbers, grave_by: Numbers, at: Numbers, by: Numbers, forgotten: int) -> Numbers:
    return (grave >= forgotten) | _after(grave, grave_by, at, by)


def _each_once(found: Sequence[Lacked]) -> Lacked:
    """All of them in the order of their positions, attributes and entries, each once."""
    names = ("entry", "attribute", "time", "origin", "why")
    columns = [np.concatenate([getattr(one, name) for one in found]) for name in names]
    entry, attribute, time, origin, why = columns
    order = np.lexsort((why, entry, attribute, origin, time))
    columns = [column[order] for column in columns]
    new = np.ones(len(order), bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return Lacked(*(column[new] for column in columns))
