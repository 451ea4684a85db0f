"""Many entries of a backup at once, with numpy and Arrow; whatever is unusual is left to be read by itself.

How it goes: each item is cut in two before its attributes. What stands before them is its change state: twelve quotes belong to
each change, as the server writes it, and what lies between them is compared, eight bytes of all changes in one step. Whether the
attributes are JSON, and what lies where in them, says Arrow's JSON reader; in JSON without a backslash every quote begins or
ends a text, so names are found by the quotes. An item is ordinary if every byte of its change state is where it should be, and
if each name that means something occurs where it means that.

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

_BETWEEN = b',"attrs":{'
_QUOTE, _BLANK, _ZERO, _COLON = b'" 0:'
_PADDING = b"\n" * 64
"""Before the first line and behind the last one, so that no look aside goes beyond the ends."""

_ODD = (b"\\", b"NaN", b"Inf")
"""A quote may not be one behind a backslash; the others are numbers for Arrow's reader."""

_DEEP = 300
"""Brackets that an item may open: Python's own reader ends at a depth of less than a thousand, Arrow's does not end."""

_DIGITS = 640
"""So long a number Python may refuse to read, Arrow does not."""

_FEWEST = 32
"""So few items of which one is no JSON are not divided any more."""

_LIVE, _DEAD = (b'"V_":{"changestate":{"%s":{"at":' % one for one in (b"V1Live", b"V1Tombstone"))
_BEFORE, _EACH = 20, 12
"""Quotes of a live entry's change state before the first change, and of each change; a tombstone has two less than before it."""

_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_UUID_LENGTH = 36
_NAME = r"^[ !#-\[\]-~]*$"
_TAGS = {"uuid": "UU", "name": "N8", "class": "I8"}


@dataclass(frozen=True)
class Ordinary:
    """The ordinary items of a piece, and the numbers of those that are `left` to the exact reader."""

    left: list[int]
    dead: int
    states: pa.Table
    entries: pa.Table

    @property
    def count(self) -> int:
        """How many there are, `dead` of them tombstones."""
        return len(self.entries)

    def tables(self, offset: int) -> dict[str, pa.Table]:
        """The evidence; `offset` is the place of the piece."""
        found = {"states": self.states, "entries": self.entries}
        return {
            name: one.set_column(0, "offset", pc.add(one["offset"], pa.scalar(offset, pa.int64())))
            for name, one in found.items()
        }


def ordinary_items(data: bytes, borders: Sequence[int]) -> Ordinary | None:
    """The ordinary ones of the items between these borders; None: there are none."""
    numbers, heads, tails = _cut(data, borders)
    if not numbers or heads[0][1:3] not in (b"V1", b"V2", b"V3"):
        return None
    changes = _Changes(_Lines(heads, b""), heads[0][1:3])
    chosen = np.flatnonzero(changes.ordinary).tolist()
    if not chosen:
        return None
    about = _Attributes(_Lines([tails[at] for at in chosen], b"{" + _BETWEEN[1:]))
    kept = np.array(chosen, np.int64)[about.numbers]
    if not len(kept):
        return None
    places = np.array(borders, np.int64)[np.array(numbers, np.int64)[kept]]
    places += np.frombuffer(data, np.uint8)[places] == OPENS[0]
    dead = changes.dead[kept]
    entries = pa.table(
        {
            "offset": places,
            "entry": about.uuids,
            "target": about.names,
            "class": pc.if_else(pa.array(dead), TOMBSTONE, about.special),
            "source": pa.nulls(len(kept), pa.string()),
        }
    )
    left = sorted(set(range(len(borders) - 1)) - {numbers[at] for at in kept.tolist()})
    return Ordinary(left, int(dead.sum()), changes.table(kept, places, about.uuids), entries)


def _cut(data: bytes, borders: Sequence[int]) -> tuple[list[int], list[bytes], list[bytes]]:
    """Of the items that begin and end as the server writes them the numbers, what stands before the attributes, and the rest but
    for the two brackets that close the item.
    """
    numbers, heads, tails = [], [], []
    for number in range(len(borders) - 1):
        begin, end = borders[number], borders[number + 1]
        begin += data.startswith(OPENS[:1], begin)
        between = data.find(_BETWEEN, begin, end)
        if between > 0 and data.startswith(OPENS[1:], begin) and data.endswith(b"}}}}", between, end):
            numbers.append(number)
            heads.append(data[begin + len(OPENS) - 1 : between])
            tails.append(data[between + len(_BETWEEN) : end - 2])
    return numbers, heads, tails


class _Lines:
    """Texts as the lines of one buffer, each with the same beginning."""

    def __init__(self, texts: Sequence[bytes], beginning: bytes) -> None:
        self.text = bytearray(_PADDING)
        self.text += beginning
        self.text += (b"\n" + beginning).join(texts)
        self.text += _PADDING
        self.bytes = np.frombuffer(self.text, np.uint8)
        self._words = np.ndarray((len(self.text) - 7,), "<u8", self.text, strides=(1,))
        sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + len(beginning) + 1
        self.ends = np.cumsum(sizes) + len(_PADDING) - 1
        self.starts = self.ends + 1 - sizes

    def __len__(self) -> int:
        return len(self.ends)

    def quotes(self) -> Numbers:
        """Where they are."""
        return np.flatnonzero(self.bytes == _QUOTE)

    def owners(self, places: Numbers) -> Numbers:
        """The lines of these places."""
        return np.searchsorted(self.starts, places, "right") - 1

    def word(self, places: Numbers) -> Numbers:
        """The eight bytes from each place on as a number, the first one lowest."""
        return self._words[places]

    def like(self, places: Numbers, text: bytes) -> Numbers:
        """At which of these places the text stands."""
        found = np.ones(len(places), bool)
        for at in range(0, len(text), 8):
            at = max(min(at, len(text) - 8), 0)
            some = text[at : at + 8]
            word = self._words[places + at]
            if len(some) < 8:
                word &= np.uint64((1 << 8 * len(some)) - 1)
            found &= word == np.uint64(int.from_bytes(some, "little"))
        return found

    def slices(self, starts: Numbers, ends: Numbers) -> pa.Array:
        """The bytes between each start and end, which ascend."""
        if not len(starts):
            return pa.array([], pa.binary())
        offsets = np.empty(2 * len(starts), np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.text)]
        wanted_and_gaps = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
        return wanted_and_gaps.take(pa.array(np.arange(0, len(offsets) - 1, 2, dtype=np.int32)))


# --- change states

_ALL = {digit: np.uint64(int.from_bytes(bytes([digit]) * 8, "little")) for digit in (0x06, 0x30, 0x80)}


def _number(word: Numbers) -> tuple[Numbers, Numbers]:
    """The numbers that eight digits each make, the first one lowest; and whether they are digits."""
    value = word ^ _ALL[0x30]
    digits = ((value + (_ALL[0x06])) | value) & np.uint64(0xF0F0F0F0F0F0F0F0) == 0
    for shift, mask in ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0x00000000FFFFFFFF)):
        value = (value * np.uint64(10 ** (shift // 8)) + (value >> np.uint64(shift))) & np.uint64(mask)
    return value.astype(np.int64), digits


def _of_few(some: pa.Array, pattern: str) -> tuple[pa.DictionaryArray, Numbers]:
    """Texts of which there are few, and which of them are like the pattern; nothing stands for the others."""
    coded = some.dictionary_encode()
    known = pc.match_substring_regex(coded.dictionary, pattern)
    texts = pc.if_else(known, coded.dictionary, pa.scalar(b"")).cast(pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices, texts), np.asarray(known)[np.asarray(coded.indices)]


class _Changes:
    """All changes of all items, each item's creation or deletion first."""

    def __init__(self, lines: _Lines, version: bytes) -> None:
        quotes = lines.quotes()
        first = np.searchsorted(quotes, np.append(lines.starts, lines.ends[-1]))
        held = np.diff(first)
        live, self.dead = (lines.like(lines.starts, one.replace(b"V_", version)) for one in (_LIVE, _DEAD))
        several, rest = np.divmod(held - _BEFORE, _EACH)
        self.ordinary = (live & (several > 0) & (rest == 0)) | (self.dead & (held == _BEFORE - 2))
        chosen = np.flatnonzero(self.ordinary)
        counts = np.where(self.dead[chosen], 1, 1 + several[chosen])
        self.item = np.repeat(chosen, counts)
        number = np.arange(len(self.item)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.whole = number == 0
        begin = first[self.item] + (6 + _EACH * number) + 2 * ~self.whole
        opens, name_ends, at_s, uuid_ends = (quotes[begin + at] for at in (0, 1, 8, 11))
        good = lines.like(name_ends, b'":{"t":{"secs":') & lines.like(name_ends + 25, b',"nanos":')
        good &= lines.like(at_s - 2, b'},"s":"') & (uuid_ends == at_s + 5 + _UUID_LENGTH)
        good &= self._times(lines, name_ends + 15, name_ends + 34, at_s - 2)
        good &= self._borders(lines, opens, uuid_ends)
        self.origins, known = _of_few(lines.slices(np.minimum(at_s + 5, uuid_ends), uuid_ends), _UUID)
        self.attributes, names = _of_few(lines.slices(opens + 1, name_ends), _NAME)
        good &= known & names
        self.ordinary[self.item[~good]] = False
        self.ordinary[self.item[self._twice()]] = False

    def _times(self, lines: _Lines, seconds: Numbers, nanos: Numbers, ends: Numbers) -> Numbers:
        """Ten digits, and one to nine: where they are such."""
        value, good = _number(lines.word(seconds))
        lengths = ends - nanos
        good &= (lengths > 0) & (lengths < 10) & (lines.bytes[seconds] != _ZERO)
        good &= (lines.bytes[nanos] != _ZERO) | (lengths == 1)
        tens, ones, ninth = (lines.bytes[at].astype(np.int64) - _ZERO for at in (seconds + 8, seconds + 9, ends - 9))
        ninth[lengths != 9] = 0
        for digit in (tens, ones, ninth):
            good &= (digit >= 0) & (digit <= 9)
        value = value * 100 + tens * 10 + ones
        unused = (np.clip(8 - lengths, 0, 7) * 8).astype(np.uint64)
        zeros = (np.uint64(1) << unused) - np.uint64(1)
        below, digits = _number((lines.word(ends - 8) & ~zeros) | (_ALL[0x30] & zeros))
        self.time = value * SECOND + ninth * 10**8 + below
        return good & digits & (value <= LATEST)

    def _borders(self, lines: _Lines, opens: Numbers, uuid_ends: Numbers) -> Numbers:
        """Does nothing but the usual stand between a change and the next one, or the end?"""
        last = np.append(self.whole[1:], True)[: len(self.whole)]
        follows = np.append(opens[1:], 0)[: len(opens)] - uuid_ends
        good = np.where(self.whole, follows == 14, follows == 3) | last
        good &= lines.like(uuid_ends, b'"}')
        for which, text in (
            (last & self.dead[self.item], b"}}\n"),
            (last & ~self.dead[self.item], b"}}}\n"),
            (self.whole & ~last, b',"changes":{"'),
            (~self.whole & ~last, b',"'),
        ):
            rows = np.flatnonzero(which)
            good[rows] &= lines.like(uuid_ends[rows] + 2, text)
        return good

    def _twice(self) -> Numbers:
        """Which changes are of an attribute that another one of the same entry is of."""
        changes = np.flatnonzero(~self.whole)
        key = self.item[changes] * (len(self.attributes.dictionary) + 1) + np.asarray(self.attributes.indices)[changes]
        order = np.argsort(key, kind="stable")
        return changes[order[1:][key[order[1:]] == key[order[:-1]]]]

    def table(self, items: Numbers, places: Numbers, uuids: pa.Array) -> pa.Table:
        """The rows of `states` of these items, of which the places and the UUIDs are told."""
        number = np.full(len(self.ordinary), -1, np.int64)
        number[items] = np.arange(len(items))
        kept = np.flatnonzero(number[self.item] >= 0)
        item, whole, rows = self.item[kept], self.whole[kept], pa.array(kept)
        kind = np.where(whole, np.where(self.dead[item], 2, 1), 0).astype(np.int8)
        few = pa.array(np.asarray(self.attributes.indices)[kept], mask=whole)
        return pa.table(
            {
                "offset": places[number[item]],
                "kind": pa.DictionaryArray.from_arrays(pa.array(kind), [CHANGED, CREATED, DELETED]),
                "entry": uuids.take(pa.array(number[item])),
                "attribute": pa.DictionaryArray.from_arrays(few, self.attributes.dictionary),
                "origin": self.origins.take(rows),
                "hi": self.time[kept],
                "number": pa.nulls(len(kept), pa.int64()),
            }
        )


# --- attributes


class _Attributes:
    """Who the entries are: `numbers` are those of the ordinary lines, and of these there are `uuids`, `names`, `special`."""

    def __init__(self, lines: _Lines) -> None:
        self._lines, self._ordinary = lines, np.ones(len(lines), bool)
        self._suspect()
        for number in np.flatnonzero(~self._ordinary).tolist():
            self._blank(number)
        valid = list(self._valid())
        self.numbers = np.flatnonzero(self._ordinary)
        if valid:
            self._look(pa.concat_tables(valid)["attrs"].combine_chunks())

    def _suspect(self) -> None:
        """Leave to the exact reader what Arrow and Python may take for different things."""
        lines, odd = self._lines, []
        control = np.flatnonzero(lines.bytes < _BLANK)
        if len(control) != 2 * len(_PADDING) + len(lines) - 1:
            odd.append(control[~np.isin(control, lines.ends)])
        for text in _ODD:
            if text in lines.text:
                odd.append(np.array([one.start() for one in re.finditer(re.escape(text), lines.text)]))
        some = lines.bytes[:: _DIGITS // 20]
        digits: Numbers = (some >= _ZERO) & (some < _COLON)
        for step in (1, 2, 4, 8):
            digits = digits[step:] & digits[:-step]
        if digits.any():  # sixteen of them in a row
            odd.append(np.array([one.start() for one in re.finditer(rb"[0-9]{%d}" % _DIGITS, lines.text)], np.int64))
        for places in odd:
            owners = lines.owners(places)
            self._ordinary[owners[(owners >= 0) & (places < lines.ends[np.maximum(owners, 0)])]] = False
        opening = np.flatnonzero((lines.bytes | 0x20) == ord("{"))
        deep = np.diff(np.searchsorted(opening, np.append(lines.starts, lines.ends[-1]))) > _DEEP
        self._ordinary &= ~deep
        try:
            lines.text.decode()
        except UnicodeDecodeError:
            for number, (begin, end) in enumerate(zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)):
                self._ordinary[number] &= _is_text(lines.text[begin:end])

    def _blank(self, number: int) -> None:
        self._ordinary[number] = False
        self._lines.bytes[self._lines.starts[number] : self._lines.ends[number]] = _BLANK

    def _valid(self) -> Iterator[pa.Table]:
        """What Arrow makes of the lines, in their order; those that are no JSON are ordinary no longer."""
        lines = self._lines
        kinds = {name: pa.struct([(tag, pa.list_(pa.string()))]) for name, tag in _TAGS.items()}
        schema = pa.schema({"attrs": pa.struct(kinds)})
        how = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        whole = pa.py_buffer(lines.text)

        def read(first: int, last: int) -> Iterator[pa.Table]:
            count = int(self._ordinary[first:last].sum())
            if not count:
                return
            begin, size = int(lines.starts[first]), int(lines.ends[last - 1] - lines.starts[first])
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
                    self._blank(number)

        yield from read(0, len(lines))

    def _look(self, valid: pa.Array) -> None:
        """`valid` is what Arrow has of the lines that are ordinary so far; from here on these are all."""
        lines = self._lines
        self._starts = lines.starts[self.numbers]
        quotes = lines.quotes()
        self._opens, self._closes = quotes[0::2], quotes[1::2]
        self._lengths = self._closes - self._opens - 1
        self._good = np.ones(len(self.numbers), bool)
        _, count = self._named(b"attrs")
        self._good &= count == 1
        # Whatever has one of these names could stand for what the server writes before the attributes.
        for name in (b"ent", b"V1", b"V2", b"V3", b"changestate"):
            self._good &= self._named(name)[1] == 0
        uuids, known = self._only("uuid", valid)
        names, named = self._only("name", valid)
        special = self._classes(valid)
        self._good &= known & (named | (self._named(b"spn")[1] == 0))
        found = self._texts(uuids, known)
        self._good &= np.asarray(pc.match_substring_regex(found, _UUID))
        kept = pa.array(np.flatnonzero(self._good))
        self.numbers = self.numbers[self._good]
        self.uuids, self.special = found.take(kept), special.take(kept)
        self.names = pc.if_else(pa.array(named), self._texts(names, named), pa.scalar(None, pa.string())).take(kept)

    def _named(self, name: bytes) -> tuple[Numbers, Numbers]:
        """Of each line the number of the text that is this name of something, and how many there are."""
        found = np.flatnonzero(self._lengths == len(name))
        found = found[self._lines.like(self._opens[found] + 1, name)]
        behind = self._lines.bytes[self._closes[found] + 1]
        found = found[(behind != ord(",")) & (behind != ord("]")) & (behind != ord("}"))]
        owner = np.searchsorted(self._starts, self._opens[found], "right") - 1
        text = np.zeros(len(self._starts), np.int64)
        text[owner] = found
        return text, np.bincount(owner, minlength=len(self._starts))

    def _attribute(self, name: str, valid: pa.Array) -> tuple[Numbers, Numbers, pa.Array]:
        """The number of the text that names it, which lines have it, and its values as Arrow has them."""
        text, count = self._named(name.encode())
        values = pc.struct_field(valid, [name, _TAGS[name]])
        here = count == 1
        as_written = self._lines.like(self._closes[text], b'":{"%s":["' % _TAGS[name].encode())
        self._good &= (count == 0) | (here & as_written & np.asarray(values.is_valid()))
        return text, here, values

    def _only(self, name: str, valid: pa.Array) -> tuple[Numbers, Numbers]:
        """The number of the text that is the only value of an attribute, and which lines have that."""
        text, here, _ = self._attribute(name, valid)
        value = np.minimum(text + 2, len(self._opens) - 1)
        alone = self._lines.like(self._closes[value], b'"]}') & (self._lengths[value] > 0)
        self._good &= ~here | alone
        return value, here

    def _classes(self, valid: pa.Array) -> pa.Array:
        """What is special about an entry: recycled; of a conflict more has to be known than is looked at here."""
        text, here, values = self._attribute("class", valid)
        sizes = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
        last = np.minimum(text + 1 + sizes, len(self._opens) - 1)
        self._good &= ~here | ((sizes > 0) & self._lines.like(self._closes[last], b'"]}'))
        texts, owners = values.flatten(), np.asarray(pc.list_parent_indices(values))

        def with_class(where: pa.Array) -> Numbers:
            found = np.zeros(len(here), bool)
            found[owners[np.asarray(pc.fill_null(where, False))]] = True
            return found

        self._good &= ~with_class(texts.is_null()) & ~with_class(pc.equal(texts, CONFLICT))
        recycled = with_class(pc.equal(texts, RECYCLED))
        return pc.if_else(pa.array(recycled), RECYCLED, pa.scalar(None, pa.string()))

    def _texts(self, numbers: Numbers, here: Numbers) -> pa.Array:
        """These texts, where there is one and all is as it should be."""
        here = here & self._good
        begin, end = (np.where(here, one[numbers], self._starts) for one in (self._opens + 1, self._closes))
        return self._lines.slices(begin, end).cast(pa.string())


def _is_text(data: bytearray) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
