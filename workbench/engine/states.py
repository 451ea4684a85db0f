"""States of entries held against each other: which entries differ between servers, and what each of them lacks.

A system without a log of changes shows of each attribute of an entry its last change only. A load sorts these states by a
number of their entry and keeps digests by ranges of that number, so that entries which are alike everywhere are never read.
What a server lacks of the others is `workbench.rules.entries.lacking`, for all entries of a range at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.digests import digest, mix
from workbench.engine.likeness import among, beginnings
from workbench.engine.reading import Part, groups_near, opened, read_part, some_at_once
from workbench.rules.entries import Cid, Ranges
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


def states_in(parts: Sequence[Iterable[Part]], numbers: Sequence[int]) -> Shown:
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


def states_of_entries(parts: Sequence[Iterable[Part]], time: int, origin: str) -> Shown:
    """All states, at every server, of the entries that carry a change of this time and origin at any of them."""
    parts = [list(mine) for mine in parts]
    here = (pc.field("hi") == time) & (pc.field("origin") == origin)
    named = [read_part(part["path"], ["entry"], here)["entry"] for mine in parts for part in mine]
    entries = pc.unique(
        pa.chunked_array([chunk.cast(pa.string()) for one in named for chunk in one.chunks], pa.string())
    )
    if not len(entries):
        return Shown.of(None, len(parts))
    return _shown(parts, lambda part: read_part(part["path"], _COLUMNS, pc.field("entry").isin(entries)))


def _shown(parts: Sequence[Iterable[Part]], read: Callable[[Part], pa.Table]) -> Shown:
    tables = []
    for server, mine in enumerate(parts):
        found = [rows for rows in some_at_once(read, mine) if len(rows)]
        tables += [_even(one.append_column("server", pa.array(np.full(len(one), server, np.int8)))) for one in found]
    return Shown.of(pa.concat_tables(tables) if tables else None, len(parts))


def _even(table: pa.Table) -> pa.Table:
    plain = [pa.field(one.name, pa.string() if pa.types.is_dictionary(one.type) else one.type) for one in table.schema]
    return table.cast(pa.schema(plain))


@dataclass(frozen=True)
class Lacked:
    """Changes that a server lacks: numbers of entries, attributes (-1: the deletion) and origins; times; is it certain?"""

    entry: Numbers
    attribute: Numbers
    time: Numbers
    origin: Numbers
    certain: Numbers

    def __len__(self) -> int:
        return len(self.entry)

    def __getitem__(self, which: Any) -> Lacked:
        return Lacked(
            self.entry[which], self.attribute[which], self.time[which], self.origin[which], self.certain[which]
        )


_NEVER = -1


@dataclass(frozen=True)
class Shown:
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
    def of(cls, rows: pa.Table | None, servers: int) -> Shown:
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

    def lacked_by(self, server: int, seen: Ranges, forgotten: int) -> Lacked:
        """What the server claims (`seen`) and does not show; what was created before `forgotten` may have been deleted since."""
        upto = np.array([seen.get(origin, (0, _NEVER))[1] for origin in self.origins] or [_NEVER], np.int64)
        at, by, gone = self.at[server], self.at_by[server], self.gone[server] >= 0
        grave, grave_by = self._graves(server, upto)
        dug = grave >= 0
        alive = at >= 0
        found = [_lacked(e := np.flatnonzero(alive & dug & ~gone), np.full(len(e), -1), grave[e], grave_by[e], True)]
        others = self.server != server
        entry, origin, time = self.entry, self.origin, self.time
        fits = others & (self.at[self.server, entry] >= 0) & (time <= upto[origin]) & ~dug[entry] & ~gone[entry]
        which = np.flatnonzero(fits)
        of, e = self.server[which], entry[which]
        absent = ~alive[e]
        some = which[absent]
        found.append(self._changes(some, self.at[self.server[some], entry[some]] >= forgotten))
        same = alive[e] & (self.at[of, e] == at[e]) & (self.at_by[of, e] == by[e])
        some = which[same]
        when, whose = self._last(server, entry[some], self.attribute[some])
        some = some[(when < time[some]) | ((when == time[some]) & (whose < origin[some]))]
        found.append(self._changes(some, np.ones(len(some), bool)))
        return _each_once(found)

    def pending_at(self, server: int, seen: Ranges) -> Lacked:
        """The changes that others show and the server does not claim, each once."""
        upto = np.array([seen.get(origin, (0, _NEVER))[1] for origin in self.origins] or [_NEVER], np.int64)
        which = np.flatnonzero((self.server != server) & (self.time > upto[self.origin]))
        found = [self._changes(which, np.ones(len(which), bool))]
        for other in range(len(self.at)):
            e = np.flatnonzero((self.gone[other] >= 0) & (self.gone[other] > upto[self.gone_by[other]]))
            if other != server:
                found.append(_lacked(e, np.full(len(e), -1), self.gone[other][e], self.gone_by[other][e], True))
        return _each_once(found)

    def only_at(self, server: int, others: Sequence[Ranges]) -> Lacked:
        """What the server shows and none of the others claims."""
        upto = np.array(
            [max([one.get(origin, (0, _NEVER))[1] for one in others], default=_NEVER) for origin in self.origins],
            np.int64,
        )
        which = np.flatnonzero((self.server == server) & (self.time > upto[self.origin]))
        e = np.flatnonzero((self.gone[server] >= 0) & (self.gone[server] > upto[self.gone_by[server]]))
        dead = _lacked(e, np.full(len(e), -1), self.gone[server][e], self.gone_by[server][e], True)
        return _each_once([self._changes(which, np.ones(len(which), bool)), dead])

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

    def shows(self, server: int, time: int, origin: str) -> bool:
        """True if any entry of the server carries a change of this time and origin."""
        number = self.origins.index(origin) if origin in self.origins else _NEVER
        ends = ((self.gone, self.gone_by), (self.at, self.at_by))
        whole = any(((when[server] == time) & (by[server] == number)).any() for when, by in ends)
        return whole or bool(((self.server == server) & (self.time == time) & (self.origin == number)).any())

    def cid(self, some: Lacked, number: int) -> Cid:
        """One of the changes."""
        return int(some.time[number]), self.origins[int(some.origin[number])]

    def _graves(self, server: int, upto: Numbers) -> tuple[Numbers, Numbers]:
        """The first covered tombstone of each entry at any other server."""
        size = self.at.shape[1]
        grave, grave_by = np.full(size, _NEVER, np.int64), np.full(size, _NEVER, np.int64)
        for other in range(len(self.at)):
            time, by = self.gone[other], self.gone_by[other]
            covered = (time >= 0) & (time <= upto[by]) if other != server else np.zeros(size, bool)
            sooner = covered & ((grave < 0) | (time < grave) | ((time == grave) & (by < grave_by)))
            grave[sooner], grave_by[sooner] = time[sooner], by[sooner]
        return grave, grave_by

    def _last(self, server: int, entry: Numbers, attribute: Numbers) -> tuple[Numbers, Numbers]:
        """The server's own last changes of these attributes: time and origin; -1 where it shows none."""
        never = np.full(len(entry), _NEVER, np.int64)
        if not len(self.key):
            return never, never
        key = (server * self.at.shape[1] + entry) * (len(self.attributes) + 1) + attribute
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        there = self.key[at] == key
        return np.where(there, self.time[at], never), np.where(there, self.origin[at], never)

    def _changes(self, which: Numbers, certain: Numbers) -> Lacked:
        return Lacked(self.entry[which], self.attribute[which], self.time[which], self.origin[which], certain)


_EMPTY: Mapping[str, pa.DataType] = {
    **dict.fromkeys(("entry", "kind", "attribute", "origin"), pa.string()),
    **dict.fromkeys(("number", "hi"), pa.int64()),
    "server": pa.int8(),
}


def _numbers(column: pa.ChunkedArray) -> tuple[list[str], Numbers]:
    """The distinct texts in their order, and which of them each row has."""
    few = column.combine_chunks().dictionary_encode()
    texts = few.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(texts), np.int64)
    place[order] = np.arange(len(texts))
    return [texts[at] for at in order], place[np.asarray(few.indices)] if len(texts) else np.zeros(0, np.int64)


def _lacked(entry: Numbers, attribute: Numbers, time: Numbers, origin: Numbers, certain: bool) -> Lacked:
    return Lacked(entry, attribute, time, origin, np.full(len(entry), certain))


def _each_once(found: Sequence[Lacked]) -> Lacked:
    """All of them in the order of their positions, attributes and entries, each once."""
    names = ("entry", "attribute", "time", "origin", "certain")
    columns = [np.concatenate([getattr(one, name) for one in found]) for name in names]
    entry, attribute, time, origin, certain = columns
    order = np.lexsort((certain, entry, attribute, origin, time))
    columns = [column[order] for column in columns]
    new = np.ones(len(order), bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return Lacked(*(column[new] for column in columns))
