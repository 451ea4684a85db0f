"""Whether rows that a replica lacks were changed again by transactions that it has.

What was missed inside a stream is applied late: behind transactions that its source committed later. Where these touched the
same rows, the late one would take them back to what they were before. Rows are told apart by their keys, of which hashes
are held: two that are equal by chance stop a repair, and never let one through.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from workbench.safety import printable
from workbench.systems.drizzle.definitions import SET_VARIABLE
from workbench.systems.drizzle.rows import Columns, Definition, Delete, Insert, Named, Operation, Update, Value
from workbench.tables import Numbers


@dataclass(frozen=True)
class Read:
    """A transaction that can be read again and again: its name, its place in the order of commits, what gives its operations."""

    name: str
    place: int
    operations: Callable[[], Iterable[Operation]]


def overtaken(late: Sequence[Read], later: Sequence[Read]) -> str:
    """Which of the transactions that were missed was overtaken, and by which that is there; empty: none."""
    keys = _keys([*late, *later])
    hashes: dict[Named, array[int]] = {}
    places: dict[Named, array[int]] = {}
    whole: dict[Named, Read] = {}
    dropped: dict[str, Read] = {}
    for one in late:
        if (first := _wide(one)) and first.kind == "DROP_SCHEMA":
            dropped.setdefault(first.statement.drop_schema_statement.schema_name, one)
        defined, rows = _touches(one, keys)
        whole |= dict.fromkeys(defined, one)
        for table, mine in rows.items():
            hashes.setdefault(table, array("q")).extend(mine)
            places.setdefault(table, array("q")).extend([one.place] * len(mine))
    touched = {table: _Touched(hashes[table], places[table]) for table in hashes}
    for one in later:
        if wide := _wide(one):
            if any(before.place < one.place for before in late):
                return f"{one.name}, which is there, did a {wide.kind} later, and nobody can tell to which tables"
            continue
        defined, rows = _touches(one, keys)
        for table in (*defined, *rows):
            before = whole.get(table) or dropped.get(table.schema)
            if before and before.place < one.place:
                return f"{one.name}, which is there, changed {printable(str(table))} after {before.name}"
        for table, kind in defined.items():
            if table in touched and touched[table].first < one.place:
                return f"{one.name}, which is there, changed the whole table {printable(str(table))} later ({kind})"
        for table, mine in rows.items():
            if table in touched and touched[table].before(mine, one.place):
                what = f"{one.name}, which is there, changed rows of {printable(str(table))} later"
                return f"{what}: applied now, what was missed would take them back"
    return ""


def _wide(one: Read) -> Definition | None:
    """What it does to a whole schema, or to tables that it does not name; None: nothing of the kind."""
    first = next(iter(one.operations()), None)
    if isinstance(first, Definition) and first.table is None and first.kind not in (SET_VARIABLE, "CREATE_SCHEMA"):
        return first
    return None


class _Touched:
    """Rows of a table that were touched: hashes of their keys, ascending, and where each was touched first."""

    def __init__(self, hashes: array[int], places: array[int]) -> None:
        every, at = np.asarray(hashes, np.int64), np.asarray(places, np.int64)
        order = np.lexsort((at, every))
        self._hashes, begins = np.unique(every[order], return_index=True)
        self._places: Numbers = at[order][begins]
        self.first = int(self._places.min())

    def before(self, hashes: array[int], place: int) -> bool:
        """True if any of these rows was touched before this place."""
        asked = np.asarray(hashes, np.int64)
        found = np.minimum(np.searchsorted(self._hashes, asked), len(self._hashes) - 1)
        return bool(np.any((self._hashes[found] == asked) & (self._places[found] < place)))


def _keys(every: Iterable[Read]) -> dict[Named, tuple[str, ...]]:
    """Table -> the columns of its key. Of a table whose rows are only added nobody has to know: no two of them are one."""
    found: dict[Named, tuple[str, ...]] = {}
    for one in every:
        for operation in one.operations():
            if isinstance(operation, Update | Delete) and operation.table not in found:
                found[operation.table] = tuple(sorted(column.name for column in operation.keys))
    return found


def _touches(one: Read, keys: Mapping[Named, tuple[str, ...]]) -> tuple[dict[Named, str], dict[Named, array[int]]]:
    """The tables that it changes as a whole, with the kind of statement, and hashes of the rows that it touches."""
    defined: dict[Named, str] = {}
    rows: dict[Named, array[int]] = {}
    for operation in one.operations():
        if not isinstance(operation, Definition):
            rows.setdefault(operation.table, array("q")).extend(_rows(operation, keys.get(operation.table)))
        elif operation.kind != SET_VARIABLE and operation.table is not None:
            defined[operation.table] = operation.kind
    return defined, rows


def _rows(operation: Insert | Update | Delete, key: tuple[str, ...] | None) -> Iterator[int]:
    """The rows that it touches: as they are called before, and behind."""
    if isinstance(operation, Insert):
        new = _named(operation.columns, operation.values)
        yield _hash(tuple(new.get(name) for name in key or sorted(new)))
        return
    old = _named(operation.keys, operation.key)
    assert key is not None, "its own header tells the key"
    yield _hash(tuple(old.get(name) for name in key))
    if isinstance(operation, Update) and any(column.name in old for column in operation.columns):
        new = old | _named(operation.columns, operation.values)
        yield _hash(tuple(new.get(name) for name in key))


def _named(columns: Columns, values: Sequence[Value]) -> dict[str, Value]:
    return {column.name: value for column, value in zip(columns, values, strict=True)}


def _hash(key: tuple[Value, ...]) -> int:
    return int.from_bytes(blake2b(repr(key).encode(), digest_size=8).digest(), "big", signed=True)
