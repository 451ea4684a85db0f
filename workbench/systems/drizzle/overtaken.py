"""Transactions that come late to a replica, against what it did since: a row that was changed again must not be set back.

A replica that missed an UPDATE and took a later one of the same row would lose the later one, were the first applied now. Its
own log tells what it did since. Rows are known by their keys; which columns these are, the headers of updates and deletions
say. Rows of a table of which no header tells are only added, and the server itself refuses one that is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from workbench.boundary import printable
from workbench.by_stream import Streams, reached_before
from workbench.stream_records import records_of
from workbench.systems.drizzle.rows import (
    Columns,
    Definition,
    Insert,
    Named,
    Operation,
    Place,
    Update,
    Value,
    primary_key,
    reading,
    shown,
)

_AT_ONCE, _TRANSACTIONS = 100_000, 1_000
"""Rows that are looked up at once, and transactions whose records are."""

Read = Callable[[], Iterator[Operation]]
"""What a transaction does, read from its log anew each time."""

_Key = tuple[Named, tuple[Value, ...]]


@dataclass(frozen=True)
class Late:
    """A transaction that comes late. `after` is the place in the replica's log behind which what it did came later."""

    name: str
    read: Read
    after: int


@dataclass(frozen=True)
class Done:
    """A transaction that the replica has, at its place in the replica's log."""

    name: str
    place: int
    read: Read


def overtaken(late: Sequence[Late], done: Callable[[], Iterable[Done]]) -> tuple[int, str] | None:
    """The first late transaction that must not be applied any more: its number in the list, and why. None: all may be."""
    keys = _keys(late, done)
    owners, hashes = _touched(late, keys)
    whole = {(one.table, number) for number, of in enumerate(late) for one in of.read() if isinstance(one, Definition)}
    tables = {one.table for of in late for one in of.read()}
    found: tuple[int, str] | None = None
    for one in done():
        if not any(one.place > of.after for of in late):
            continue
        for number, table, key in _meets(one, late, keys, owners, hashes, whole, tables):
            if found is None or number < found[0]:
                row = f" the row {_named(key)} of" if key else ""
                told = f"{late[number].name} changed{row} {printable(str(table))}, and so did {one.name}"
                told += ", which came later and is there"
                found = number, told
    return found


def _named(key: tuple[Value, ...]) -> str:
    return printable("|".join(shown(value, 0) or "" for value in key))


def _keys(late: Sequence[Late], done: Callable[[], Iterable[Done]]) -> Mapping[Named, tuple[str, ...]]:
    """The key columns of the tables that late transactions change, as far as any statement tells them."""
    keys: dict[Named, tuple[str, ...]] = {}
    wanted: set[Named] = set()

    def learn(operations: Iterable[Operation], all_of_them: bool) -> None:
        for one in operations:
            if isinstance(one, Definition):
                if one.kind == "CREATE_TABLE" and one.table and one.table not in keys:
                    keys[one.table] = primary_key(one.statement.create_table_statement.table)
                continue
            if all_of_them:
                wanted.add(one.table)
            if not isinstance(one, Insert):
                keys.setdefault(one.table, tuple(column.name for column in one.keys))

    for of in late:
        learn(of.read(), True)
    for other in done():
        if wanted <= keys.keys():
            break
        learn(other.read(), False)
    return {table: names for table, names in keys.items() if names}


def _key_of(columns: Columns, values: tuple[Value, ...], names: tuple[str, ...]) -> tuple[Value, ...] | None:
    """The values of the key among those of a row; None if it is not all there."""
    row = {column.name: value for column, value in zip(columns, values, strict=True)}
    return tuple(row[name] for name in names) if all(name in row for name in names) else None


def _rows(operations: Iterable[Operation], keys: Mapping[Named, tuple[str, ...]]) -> Iterator[_Key]:
    """The rows that operations change, by key: of one whose key changes both."""
    for one in operations:
        if isinstance(one, Definition):
            continue
        names = keys.get(one.table)
        if isinstance(one, Insert):
            key = _key_of(one.columns, one.values, names) if names else None
            if key is not None:
                yield one.table, key
            continue
        yield one.table, one.key
        if isinstance(one, Update) and any(column in one.columns for column in one.keys):
            told = {column.name: value for column, value in zip(one.keys, one.key, strict=True)}
            told |= {column.name: value for column, value in zip(one.columns, one.values, strict=True)}
            yield one.table, tuple(told[column.name] for column in one.keys)


def _hashes(rows: Iterable[_Key]) -> np.ndarray:
    """64 bits for each row: two rows that share them by chance stop a plan, and do no harm."""
    return np.fromiter((hash((str(table), key)) for table, key in rows), np.int64)


def _touched(late: Sequence[Late], keys: Mapping[Named, tuple[str, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """(number of the late transaction, hash of the row) of all rows that they change, in the order of the hashes."""
    found = [_hashes(_rows(of.read(), keys)) for of in late]
    owners = np.repeat(np.arange(len(found)), [len(one) for one in found])
    hashes = np.concatenate(found) if found else np.array([], np.int64)
    order = np.lexsort((owners, hashes))
    return owners[order], hashes[order]


def _meets(
    one: Done,
    late: Sequence[Late],
    keys: Mapping[Named, tuple[str, ...]],
    owners: np.ndarray,
    hashes: np.ndarray,
    whole: set[tuple[Named | None, int]],
    tables: set[Named | None],
) -> Iterator[tuple[int, Named | None, tuple[Value, ...]]]:
    """Late transactions before this one that changed what it changed: number, table, and key (none: the whole table)."""
    before = np.array([one.place > of.after for of in late])
    for operation in one.read():
        for table, number in whole:
            if table == operation.table and before[number]:
                yield number, table, ()
        if isinstance(operation, Definition) and operation.table in tables:
            for number, of in enumerate(late):
                if before[number] and any(other.table == operation.table for other in of.read()):
                    yield number, operation.table, ()
    rows = _rows(one.read(), keys)
    while some := list(islice(rows, _AT_ONCE)):
        theirs = _hashes(some)
        low, high = np.searchsorted(hashes, theirs, "left"), np.searchsorted(hashes, theirs, "right")
        for at in np.flatnonzero(low < high).tolist():
            for number in owners[low[at] : high[at]].tolist():
                if before[number]:
                    yield number, some[at][0], some[at][1]


def done_since(streams: Streams, server: str, log: Path, after: int, tables: Iterable[str]) -> Iterator[Done]:
    """What the replica committed behind a place of its own log, of whatever origin, and that may have changed these tables."""
    mine, wanted = streams.logs[server], frozenset(tables)
    rows = (row for row in mine.commits(after) if row["ddl"] or wanted & json.loads(row["rows"] or "{}").keys())
    while some := list(islice(rows, _TRANSACTIONS)):
        by_origin: dict[str, dict[str, dict[str, object]]] = {}
        for row in some:
            by_origin.setdefault(row["origin"], {})[row["position"]] = row
        for origin, of in sorted(by_origin.items()):
            for position, records in records_of(streams, server, of).items():
                name = f"transaction {streams.shown.system.show(position)} of {origin}"
                yield Done(name, int(str(of[position][mine.order])), _reader(log, [Place(*one) for one in records]))


def _reader(log: Path, places: Sequence[Place]) -> Read:
    def read() -> Iterator[Operation]:
        with reading(log) as file:
            yield from file.operations(places)

    return read


def come_too_late(
    streams: Streams,
    server: str,
    log: Path,
    source: str,
    origin: str,
    wanted: Sequence[tuple[str, int, Read]],
    tables: Iterable[str],
) -> tuple[int, str] | None:
    """The first of these transactions that the replica must not apply any more, and why; `wanted` tells their names, their
    places in the source, ascending, and what they do. `log` is the replica's own.
    """
    after = reached_before(streams, source, server, origin, [place for _, place, _ in wanted])
    late = [Late(name, read, since) for (name, _, read), since in zip(wanted, after, strict=True)]
    named = frozenset(tables)
    return overtaken(late, lambda: done_since(streams, server, log, min(after), named)) if late else None
