"""Backups of Kanidm: one line of JSON in five layouts, however long, read item by item of its list of entries.

    V5  {version, db_s_uuid, db_d_uuid, db_ts_max, keyhandles, repl_meta: {V1: {ruv: [CID, ...]}}, entries: [...]}
    V4  without version; V3 without repl_meta too; V2 without keyhandles; V1 is the bare list

What stands before the entries tells whose backup it is, and the vector. `keyhandles` are private keys: dropped. The vector of
a backup without `repl_meta` is not told: that of its entries would claim too little (anchors have no entry).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from workbench import tables
from workbench.model import ITEMS, Format, Parsed, Piece, Reject
from workbench.systems.kanidm.formats.backup_fast import OPENS, Ordinary, ordinary_items
from workbench.systems.kanidm.formats.documents import (
    TOMBSTONE,
    Cid,
    Entry,
    cid_of,
    entry_of,
    nanoseconds_of,
    parsed,
    uuid_of,
)
from workbench.systems.kanidm.rules.ranges import ranges_of

_NAME = b'"ent"'
_ITEM = re.compile(rb',\s*\{\s*"ent"\s*:\s*\{')
"""What an item begins with where a tool has printed the JSON anew, with blanks."""

_ENTRIES = re.compile(rb'"entries"\s*:\s*\[')
_KEYS = re.compile(rb'\A\s*\{\s*"(?:version|db_s_uuid)"\s*:')


def _is_backup(head: bytes, name: str) -> bool:
    if _KEYS.match(head):
        return b'"db_s_uuid"' in head
    return bool(re.match(rb'\s*\[\s*\{\s*"ent"\s*:\s*\{\s*"V[123]"', head))


def _start(data: bytes) -> tuple[bytes, int]:
    """What stands before the entries, as a whole document, and where the entries begin."""
    if data.lstrip().startswith(b"["):
        return b"{}", data.index(b"[") + 1
    if not (found := _ENTRIES.search(data)):
        raise ValueError("the list of entries is missing: the file was cut, or is no backup")
    return data[: found.start()].rstrip().rstrip(b",") + b"}", found.end()


class _About:
    """What stands before the entries of one backup."""

    def __init__(self, document: Any, server: str) -> None:
        self.version = document.get("version")
        self.server_uuid = uuid_of(document["db_s_uuid"]) if "db_s_uuid" in document else None
        self.domain = uuid_of(document["db_d_uuid"]) if "db_d_uuid" in document else None
        self.ts_max = nanoseconds_of(document["db_ts_max"]) if "db_ts_max" in document else None
        meta = document.get("repl_meta")
        ruv = meta.get("V1", {}).get("ruv") if isinstance(meta, Mapping) else None
        if meta is not None and not isinstance(ruv, list):
            raise ValueError("repl_meta without a list of CIDs")
        self.ruv: list[Cid] | None = None if ruv is None else [cid_of(one) for one in ruv]
        self.ranges = ranges_of(self.ruv or [])
        self.name = server

    def tables(self) -> dict[str, Any]:
        """Its vector, and the CIDs that it is made of."""
        about = {"offset": 0, "kind": "server", "holder": self.name, "generation": self.domain}
        ends = {origin: (Cid(low, origin).text, Cid(high, origin).text) for origin, (low, high) in self.ranges.items()}
        rows = [{**about, "origin": origin, "min": low, "max": high} for origin, (low, high) in ends.items()]
        found = {}
        if self.ruv is not None:
            found["vectors"] = tables.table("vectors", rows or [about])
            found["listed"] = tables.table(
                "listed", [{"offset": 0, "origin": one.origin, "position": one.text} for one in self.ruv]
            )
        return found

    def facts(self) -> dict[str, Any]:
        """What `inspect` shows of it."""
        return {
            "version": self.version,
            "s_uuid": self.server_uuid,
            "d_uuid": self.domain,
            "ts_max_ns": self.ts_max,
            "ruv_cids": len(self.ruv or []),
            "ranges": {origin: list(ends) for origin, ends in self.ranges.items()},
            "origins": {"": self.server_uuid} if self.server_uuid else {},
        }


def read_exactly(piece: Piece) -> Parsed:
    """Read a piece, each item by itself: what all other ways have to agree with."""
    return _read(piece, lambda data, borders: None)


def read(piece: Piece) -> Parsed:
    """Read a piece, the ordinary items of it all at once."""
    return _read(piece, ordinary_items)


def _read(piece: Piece, many: Callable[[bytes, Sequence[int]], Ordinary | None]) -> Parsed:
    data, at, rejects, made, facts = piece.data, 0, [], {}, {}
    if piece.offset == 0:
        try:
            before, at = _start(data)
            about = _About(parsed(before), piece.source.server)
        except (ValueError, AttributeError, KeyError) as error:
            why = str(error) if isinstance(error, ValueError) else "what stands before the entries is damaged"
            return Parsed(1, [Reject(0, _told(why))])
        made, facts = about.tables(), about.facts()
    borders, cut = _borders(data, at, piece.ended)
    found = many(data, borders)
    count = dead = 0
    entries: list[tuple[int, Entry]] = []
    for place, item in _items(data, borders, found.left if found else range(len(borders) - 1)):
        count += 1
        try:
            entries.append((piece.offset + place, entry_of(parsed(item))))
        except ValueError as error:
            rejects.append(Reject(piece.offset + place, _told(str(error))))
    if cut:
        rejects.append(Reject(piece.offset + len(data), "the list of entries has no end: the file was cut"))
    dead = sum(one.special == TOMBSTONE for _, one in entries)
    facts |= {"live": len(entries) - dead, "tombstones": dead}
    made |= _tables_of(entries)
    if found and found.count:
        count += found.count
        facts |= {"live": facts["live"] + found.count - found.dead, "tombstones": dead + found.dead}
        made |= {name: _in_order(one, made.get(name)) for name, one in found.tables(piece.offset).items()}
    return Parsed(count + cut, rejects, made, facts)


def _in_order(some: pa.Table, more: pa.Table | None) -> pa.Table:
    """The rows of both, in the order of their places in the file."""
    if more is None:
        return some
    both = tables.joined([some, more])
    return both.take(pa.array(np.argsort(both["offset"].to_numpy(), kind="stable")))


def _told(why: str) -> str:
    """A reason without any text of the file: it may be a secret."""
    return re.sub(r": line \d+ column \d+ \(char \d+\)\Z", "", why)


def _borders(data: bytes, at: int, ended: bool) -> tuple[list[int], bool]:
    """Where items begin, their commas included, and the last one ends; and whether the end of the list is missing where it
    must be.
    """
    end, cut = len(data), False
    if ended:
        closed = re.search(rb"\]\s*\}?\s*\Z", data)
        end, cut = (closed.start(), False) if closed else (end, True)
    sizes = [len(one) for one in data[at + 1 : end].split(OPENS)]
    first = data.startswith((OPENS, OPENS[1:]), at)
    if (
        data.count(_NAME, at, end) == len(sizes) - 1 + first
    ):  # all as the server writes them: to look for others takes long
        inner = accumulate([size + len(OPENS) for size in sizes[1:-1]], initial=at + 1 + sizes[0])
        return [at, *(inner if len(sizes) > 1 else ()), end], cut
    return [at, *(one.start() for one in _ITEM.finditer(data, at + 1, end)), end], cut


def _items(data: bytes, borders: Sequence[int], which: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """(place, bytes) of the items of these numbers; what is blank is none."""
    for number in which:
        here = borders[number]
        item = data[here : borders[number + 1]]
        start = len(item) - len(item.lstrip(b", \r\n\t"))
        if item := item[start:].rstrip(b" \r\n\t"):
            yield here + start, item


def _tables_of(entries: Sequence[tuple[int, Entry]]) -> dict[str, Any]:
    if not entries:
        return {}
    states = [
        {
            "offset": place,
            "kind": state.kind,
            "entry": one.uuid,
            "attribute": state.attribute,
            "origin": state.cid.origin,
            "hi": state.cid.time,
        }
        for place, one in entries
        for state in one.states
    ]
    return {"states": tables.table("states", states), "entries": tables.table("entries", _rows(entries))}


def _rows(entries: Iterable[tuple[int, Entry]]) -> Iterable[dict[str, Any]]:
    for place, one in entries:
        yield {"offset": place, "entry": one.uuid, "target": one.name, "class": one.special, "source": one.source}


_NOTHING: dict[str, Any] = {
    "version": None,
    "s_uuid": None,
    "d_uuid": None,
    "ts_max_ns": None,
    "ruv_cids": 0,
    "ranges": {},
}

BACKUP = Format(
    "kanidm.backup",
    _is_backup,
    lambda: read,
    ITEMS,
    splittable=True,
    empty={**_NOTHING, "live": 0, "tombstones": 0},
    opens=OPENS,
    evidence="change_state",
)
