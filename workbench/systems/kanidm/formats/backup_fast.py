"""Many entries of a backup at once, with numpy and Arrow; whatever is unusual is left to be read by itself.

How it goes: Arrow's JSON reader says which items are JSON at all and what lies where in their attributes. In JSON without a
backslash every quote begins or ends a text, so the quotes alone show the change states: twelve belong to each change, as the
server writes it, and what stands between them is compared, eight bytes of all changes in one step. An item is ordinary if
every byte of its change state is where it should be, and if each name that means something occurs where it means that.

This module never decides that an item is bad. It only decides that an item is ordinary; values are looked at where they say
what an entry is called and which classes it has, and no others are taken out of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from workbench.systems.kanidm.cid import SECOND
from workbench.systems.kanidm.formats.documents import (
    CHANGED,
    CONFLICT,
    CREATED,
    DELETED,
    LATEST,
    RECYCLED,
    TOMBSTONE,
)
from workbench.tables import Numbers

OPENS = b',{"ent":{'
"""What an item begins with as the server writes it."""

_QUOTE, _BLANK, _LINE, _ZERO, _COLON = b'" \n0:'
_ODD = (b"\\", b"NaN", b"Inf")
"""A quote may not be one behind a backslash; the others are numbers for Arrow's reader."""

_PADDING = b"\n" * 64
"""Behind the last item, so that no look ahead goes beyond the end."""

_DEEP = 300
"""Brackets that an item may open: Python's own reader ends at a depth of less than a thousand, Arrow's does not end."""

_DIGITS = 640
"""So long a number Python may refuse to read, Arrow does not."""

_FEWEST = 32
"""So few items of which one is no JSON are not divided any more."""

_LIVE, _DEAD = (b'{"ent":{"V_":{"changestate":{"%s":{"at":' % one for one in (b"V1Live", b"V1Tombstone"))
_VERSION = _LIVE.index(b"_")
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_UUID_LENGTH = 36
_TAGS = {"uuid": "UU", "name": "N8", "class": "I8"}
_TENS = 10 ** np.arange(9, -1, -1, dtype=np.int64)


@dataclass(frozen=True)
class Ordinary:
    """The ordinary items of a piece.

    left      the numbers of the others
    dead      how many of them are tombstones
    """

    left: list[int]
    dead: int
    states: pa.Table
    entries: pa.Table

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.entries)

    def tables(self, offset: int) -> dict[str, pa.Table]:
        """The evidence; `offset` is the place of the piece."""
        found = {"states": self.states, "entries": self.entries}
        return {
            name: one.set_column(0, "offset", pc.add(one["offset"], pa.scalar(offset, pa.int64())))
            for name, one in found.items()
        }


def _word(text: bytes) -> tuple[np.uint64, np.uint64]:
    """The first eight bytes as a number, and what of eight bytes they are."""
    size = min(len(text), 8)
    return np.uint64(int.from_bytes(text[:8], "little")), np.uint64((1 << 8 * size) - 1)


class _Text:
    """The items as bytes, a line each; what is not worth a look is blank."""

    def __init__(self, data: bytes, borders: Sequence[int]) -> None:
        self.base = borders[0]
        self.text = bytearray(data[borders[0] : borders[-1]])
        self.text += _PADDING
        self.bytes = np.frombuffer(self.text, np.uint8)
        self._words = np.ndarray((len(self.text) - 7,), "<u8", self.text, strides=(1,))
        edges = np.array(borders, np.int64) - self.base
        self.starts, self.ends = edges[:-1].copy(), edges[1:]
        self.starts[self.bytes[self.starts] == OPENS[0]] += 1
        self.ordinary = self.ends - self.starts > len(_DEAD)
        self._doubt(np.flatnonzero(self.bytes[: len(self.text) - len(_PADDING)] < _BLANK))
        for odd in _ODD:
            if odd in self.text:
                self._doubt(np.array([one.start() for one in re.finditer(re.escape(odd), self.text)], np.int64))
        self._doubt(np.flatnonzero(self._deep()), owned=True)
        self._doubt(self._long_numbers())
        self._doubt(self._no_text(), owned=True)
        for number in np.flatnonzero(~self.ordinary).tolist():
            self.blank(number)
        self.bytes[self.ends[:-1]] = _LINE

    def blank(self, number: int) -> None:
        """Leave an item to the exact reader."""
        self.ordinary[number] = False
        self.bytes[self.starts[number] : self.ends[number]] = _BLANK

    def owners(self, places: Numbers) -> Numbers:
        """The items around these places."""
        return np.searchsorted(self.starts, places, "right") - 1

    def _doubt(self, found: Numbers, owned: bool = False) -> None:
        if len(found):
            self.ordinary[found if owned else np.maximum(self.owners(found), 0)] = False

    def _deep(self) -> Numbers:
        opening = np.flatnonzero((self.bytes | 0x20) == ord("{"))
        return np.diff(np.searchsorted(opening, [*self.starts, self.ends[-1]])) > _DEEP

    def _long_numbers(self) -> Numbers:
        some = self.bytes[:: _DIGITS // 20]
        digits = (some >= _ZERO) & (some < _COLON)
        for step in (1, 2, 4, 8):
            digits = digits[step:] & digits[:-step]
        if not digits.any():  # sixteen of them in a row
            return np.zeros(0, np.int64)
        return np.array([one.start() for one in re.finditer(rb"[0-9]{%d}" % _DIGITS, self.text)], np.int64)

    def _no_text(self) -> Numbers:
        try:
            self.text.decode()
        except UnicodeDecodeError:
            pairs = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
            return np.array([n for n, (begin, end) in enumerate(pairs) if not _is_text(self.text[begin:end])], np.int64)
        return np.zeros(0, np.int64)

    def like(self, places: Numbers, text: bytes) -> Numbers:
        """At which of these places the text stands."""
        found = np.ones(len(places), bool)
        for at in range(0, len(text), 8):
            at = max(min(at, len(text) - 8), 0)
            word, mask = _word(text[at:])
            found &= (self._words[places + at] & mask) == word
        return found

    def named(self, opens: Numbers, lengths: Numbers, name: bytes) -> Numbers:
        """Which of the texts that begin at these quotes are the name."""
        found = np.flatnonzero(lengths == len(name))
        return found[self.like(opens[found] + 1, name)]

    def slices(self, starts: Numbers, ends: Numbers) -> pa.Array:
        """The texts between each start and end, which ascend."""
        if not len(starts):
            return pa.array([], pa.string())
        offsets = np.empty(2 * len(starts), np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.text)]
        wanted_and_gaps = pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)
        return wanted_and_gaps.take(pa.array(np.arange(0, len(offsets) - 1, 2, dtype=np.int32)))

    def number(self, ends: Numbers, lengths: Numbers | int) -> tuple[Numbers, Numbers]:
        """The numbers of at most ten digits that end at these places, and whether each of them is one."""
        digits = self.bytes[ends[:, None] + np.arange(-10, 0)].astype(np.int64) - _ZERO
        digits = np.where(np.arange(10) < 10 - np.reshape(lengths, (-1, 1)), 0, digits)
        return digits @ _TENS, ((digits >= 0) & (digits <= 9)).all(axis=1)


def _is_text(data: bytearray) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _valid(text: _Text, version: str) -> Iterator[pa.Table]:
    """What Arrow makes of the ordinary items, in their order; those that are no JSON are ordinary no longer."""
    kinds = {name: pa.struct([(tag, pa.list_(pa.string()))]) for name, tag in _TAGS.items()}
    schema = pa.schema({"ent": pa.struct({version: pa.struct({"attrs": pa.struct(kinds)})})})
    how = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    whole = pa.py_buffer(text.text)

    def read(first: int, last: int) -> Iterator[pa.Table]:
        count = int(text.ordinary[first:last].sum())
        if not count:
            return
        begin, size = int(text.starts[first]), int(text.ends[last - 1] - text.starts[first])
        source, one_block = pa.BufferReader(whole.slice(begin, size + 1)), arrow_json.ReadOptions(False, size + 2)
        try:
            found = arrow_json.read_json(source, read_options=one_block, parse_options=how)
        except pa.ArrowException:
            found = None
        if found is not None and len(found) == count:
            yield found
        elif last - first > _FEWEST:
            middle = (first + last) // 2
            yield from read(first, middle)
            yield from read(middle, last)
        else:
            for number in range(first, last):
                text.blank(number)

    yield from read(0, len(text.starts))


class _Attributes:
    """What the attributes of the items show of who they are; `ordinary` says where that is as the server writes it.

    quotes, first   all quotes, and the number of the first of each item
    begins          the number of the quote with which the name `attrs` begins
    """

    def __init__(self, text: _Text, items: Numbers, valid: pa.Table, version: str) -> None:
        self.text, self.starts, self.ends = text, text.starts[items], text.ends[items]
        self.quotes = np.flatnonzero(text.bytes == _QUOTE)
        self._opens, self._closes = self.quotes[0::2], self.quotes[1::2]
        self._lengths = self._closes - self._opens - 1
        self.first = np.searchsorted(self.quotes, self.starts)
        self.ordinary = np.ones(len(items), bool)
        token, once = self._tokens(b"attrs", np.zeros(len(items), np.int64))
        self.begins, self.ordinary = 2 * token, once
        # Whatever has one of these names elsewhere could stand for what the server writes at the beginning.
        for name, usual in ((b"ent", 0), (b"V1", 1), (b"V2", 1), (b"V3", 1), (b"changestate", 2)):
            token, once = self._tokens(name, np.zeros(len(items), np.int64))
            self.ordinary &= (once & (token == self.first // 2 + usual)) | self._never
        self._valid, self._version, self._after = valid, version, self.begins // 2 + 1
        self.uuid, self.known = self._one("uuid")
        self.ordinary &= self.known
        self.name, self.named = self._one("name")
        self.ordinary &= self.named | ~self._tokens_any(b"spn")
        self.special = self._classes()

    def _tokens(self, name: bytes, after: Numbers) -> tuple[Numbers, Numbers]:
        """Of each item the text that is this name of something, from a text of that number on; and where it occurs once."""
        found = self.text.named(self._opens, self._lengths, name)
        behind = self.text.bytes[self._closes[found] + 1]
        found = found[(behind != ord(",")) & (behind != ord("]")) & (behind != ord("}"))]
        owner = np.searchsorted(self.starts, self._opens[found], "right") - 1
        inside = found >= after[owner]
        found, owner = found[inside], owner[inside]
        token = np.zeros(len(self.starts), np.int64)
        token[owner] = found
        count = np.bincount(owner, minlength=len(self.starts))
        self._never = count == 0
        return token, count == 1

    def _tokens_any(self, name: bytes) -> Numbers:
        self._tokens(name, self._after)
        return ~self._never

    def _one(self, name: str) -> tuple[Numbers, Numbers]:
        """The only value of an attribute as the number of its text, and which items have the attribute."""
        token, once, _ = self._attribute(name)
        value = np.minimum(token + 2, len(self._opens) - 1)
        alone = self.text.like(self._closes[value], b'"]}') & (self._lengths[value] > 0)
        self.ordinary &= ~once | alone
        return value, once

    def _attribute(self, name: str) -> tuple[Numbers, Numbers, pa.Array]:
        """The number of the text that names it, in which items it occurs, and the values as Arrow has them."""
        token, once = self._tokens(name.encode(), self._after)
        self.ordinary &= once | self._never
        values = pc.struct_field(self._valid["ent"].combine_chunks(), [self._version, "attrs", name, _TAGS[name]])
        as_written = self.text.like(self._closes[token], b'":{"%s":["' % _TAGS[name].encode())
        self.ordinary &= ~once | (as_written & np.asarray(values.is_valid()))
        return token, once, values

    def _classes(self) -> pa.Array:
        """What is special about an entry: recycled; of a conflict more is to be known than is looked at here."""
        token, once, values = self._attribute("class")
        sizes = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
        last = np.minimum(token + 1 + sizes, len(self._opens) - 1)
        self.ordinary &= ~once | ((sizes > 0) & self.text.like(self._closes[last], b'"]}'))
        texts, owners = values.flatten(), np.asarray(pc.list_parent_indices(values))

        def with_class(where: pa.Array) -> Numbers:
            found = np.zeros(len(once), bool)
            found[owners[np.asarray(where)]] = True
            return found

        self.ordinary &= ~with_class(texts.is_null()) & ~with_class(pc.fill_null(pc.equal(texts, CONFLICT), False))
        recycled = with_class(pc.fill_null(pc.equal(texts, RECYCLED), False))
        return pa.array(np.where(recycled, RECYCLED, None), pa.string())

    def values(self, token: Numbers, here: Numbers) -> pa.Array:
        """These texts, where they are."""
        here = here & self.ordinary
        begin, end = (np.where(here, one[token], self.starts) for one in (self._opens + 1, self._closes))
        return self.text.slices(begin, end)


class _Changes:
    """All changes of all items, each item's creation or deletion first: twelve quotes each."""

    def __init__(self, text: _Text, about: _Attributes) -> None:
        quotes, first, starts, self.ordinary = about.quotes, about.first, about.starts, about.ordinary
        live, dead = (_begin_with(text, starts, one) for one in (_LIVE, _DEAD))
        between = about.begins - first
        several, rest = np.divmod(between - 22, 12)
        self.ordinary &= (live & (several > 0) & (rest == 0)) | (dead & (between == 20))
        self.dead = dead
        chosen = np.flatnonzero(self.ordinary)
        counts = np.where(dead[chosen], 1, 1 + several[chosen])
        self.item = np.repeat(chosen, counts)
        number = np.arange(len(self.item)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.whole = number == 0
        begin = first[self.item] + 8 + 12 * number + 2 * (number > 0)
        opens, name_ends, at_s, uuid_ends = (quotes[begin + at] for at in (0, 1, 8, 11))
        seconds, of_digits = text.number(name_ends + 25, 10)
        lengths = at_s - 2 - (name_ends + 34)
        nanos, of_digits_too = text.number(at_s - 2, lengths)
        self.time = seconds * SECOND + nanos
        good = text.like(name_ends, b'":{"t":{"secs":') & text.like(name_ends + 25, b',"nanos":') & (lengths > 0)
        good &= text.like(at_s - 2, b'},"s":"') & (lengths < 10) & (uuid_ends == at_s + 5 + _UUID_LENGTH)
        good &= text.like(uuid_ends, b'"}') & of_digits & of_digits_too & (seconds <= LATEST)
        last = np.append(self.whole[1:], True)
        follows = np.append(opens[1:], 0)
        of_dead = self.dead[self.item]
        good &= np.select(
            [last & of_dead, last, self.whole],
            [
                text.like(uuid_ends + 2, b'}},"attrs":{'),
                text.like(uuid_ends + 2, b'}}},"attrs":{'),
                text.like(uuid_ends + 2, b',"changes":{"') & (follows == uuid_ends + 14),
            ],
            text.like(uuid_ends + 2, b',"') & (follows == uuid_ends + 3),
        )
        self.origins = text.slices(np.minimum(at_s + 5, uuid_ends), uuid_ends).dictionary_encode()
        known = np.asarray(pc.match_substring_regex(self.origins.dictionary, _UUID))
        good &= known[np.asarray(self.origins.indices)]
        self.attributes = text.slices(opens + 1, name_ends).dictionary_encode()
        self.ordinary[self.item[~good | self._twice()]] = False

    def _twice(self) -> Numbers:
        """Which changes are of an attribute that another one of the same entry is of."""
        key = self.item * (len(self.attributes.dictionary) + 2) + np.asarray(self.attributes.indices) + 1
        key[self.whole] -= np.asarray(self.attributes.indices)[self.whole] + 1
        order = np.argsort(key, kind="stable")
        found = np.zeros(len(key), bool)
        found[order[1:]] = key[order[1:]] == key[order[:-1]]
        return found

    def table(self, offsets: Numbers, uuids: pa.Array) -> pa.Table:
        """The rows of `states`; `offsets` and `uuids` are those of the items."""
        kept = np.flatnonzero(self.ordinary[self.item])
        item, whole, rows = self.item[kept], self.whole[kept], pa.array(kept)
        kind = np.where(whole, np.where(self.dead[item], 2, 1), 0).astype(np.int8)
        attribute = self.attributes.take(rows)
        few = pa.array(np.asarray(attribute.indices), mask=whole)
        return pa.table(
            {
                "offset": offsets[item],
                "kind": pa.DictionaryArray.from_arrays(pa.array(kind), [CHANGED, CREATED, DELETED]),
                "entry": pa.DictionaryArray.from_arrays(pa.array(item.astype(np.int32)), uuids),
                "attribute": pa.DictionaryArray.from_arrays(few, attribute.dictionary),
                "origin": self.origins.take(rows),
                "hi": self.time[kept],
                "number": pa.nulls(len(kept), pa.int64()),
            }
        )


def _begin_with(text: _Text, starts: Numbers, beginning: bytes) -> Numbers:
    return text.like(starts, beginning[:_VERSION]) & text.like(starts + _VERSION + 1, beginning[_VERSION + 1 :])


def ordinary_items(data: bytes, borders: Sequence[int]) -> Ordinary | None:
    """The ordinary ones of the items between these borders; None: there are none."""
    text = _Text(data, borders)
    some = np.flatnonzero(text.ordinary)
    if not len(some):
        return None
    at = int(text.starts[some[0]]) + _VERSION - 1
    version = bytes(text.text[at : at + 2]).decode("ascii", "replace")
    if version not in ("V1", "V2", "V3"):
        return None
    valid = list(_valid(text, version))
    items = np.flatnonzero(text.ordinary)
    if not valid:
        return None
    about = _Attributes(text, items, pa.concat_tables(valid), version)
    about.ordinary &= text.bytes[about.starts + _VERSION] == ord(version[1])
    changes = _Changes(text, about)
    uuids = about.values(about.uuid, about.known)
    about.ordinary &= np.asarray(pc.match_substring_regex(uuids, _UUID))
    kept = np.flatnonzero(about.ordinary)
    offsets = text.base + about.starts
    left = np.ones(len(text.starts), bool)
    left[items[kept]] = False
    chosen = pa.array(kept)
    dead = changes.dead[kept]
    names = pc.if_else(pa.array(about.named), about.values(about.name, about.named), pa.scalar(None, pa.string()))
    entries = pa.table(
        {
            "offset": offsets[kept],
            "entry": uuids.take(chosen),
            "target": names.take(chosen),
            "class": pc.if_else(pa.array(dead), TOMBSTONE, about.special.take(chosen)),
            "source": pa.nulls(len(kept), pa.string()),
        }
    )
    return Ordinary(np.flatnonzero(left).tolist(), int(dead.sum()), changes.table(offsets, uuids), entries)
