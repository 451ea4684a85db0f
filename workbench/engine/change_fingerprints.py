"""Numbers of what changes did: two of different numbers are no twins, and nothing else has to be read to know that.

A server's log may hold millions of changes, and the search for a twin would read what all of them did. So a load keeps a
number of each, of the entry and of how the text of its modifications begins, sorted within each part: 2 bytes a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.parquet_read import Part, read_part, some_at_once
from workbench.rules.verdicts import Proving
from workbench.tables import Numbers

_LINE_END = np.uint64(0x0A0A0A0A0A0A0A0A)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_SMALL_LETTERS = np.uint64(0x2020202020202020)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)

_ENTRY, _VERB, _BEGINNING = 40, 8, 64
"""Bytes that are looked at: of the id of an entry, of a beginning that is usual, of a text."""
_AT_ONCE = 8192
"""Rows of which all intermediate numbers stay in the cache of a processor."""


def likeness(entry: pa.Array, text: pa.Array, proving: Proving) -> Numbers:
    """For each change a number of its entry and of the first two lines of its `beginning`, whatever their case.

    Changes of equal `modification` share one with `twin_numbers`: that is what lets the others be passed over.
    """
    found = []
    shortest = min(
        map(len, proving.unusual), default=0
    )  # of one length they cost one look, and more are asked, not fewer
    for begin in range(0, len(entry), _AT_ONCE):
        some = text[begin : begin + _AT_ONCE]
        numbers = beginnings(some, _BEGINNING, two_lines=True)
        # Few, but for tools that print bodies in a way of their own: these are asked one by one.
        sizes = pc.fill_null(pc.binary_length(some), 0).to_numpy(zero_copy_only=False)
        odd = ~_begin_like(some, proving.usual, _VERB) | _begin_like(some, proving.unusual, shortest)
        at = np.flatnonzero((odd | (sizes <= _BEGINNING)) & (sizes > 0))
        if len(at):
            own = [proving.beginning(one) for one in some.take(pa.array(at)).to_pylist()]
            numbers[at] = beginnings(pa.array(own, pa.string()), _BEGINNING, two_lines=True)
        found.append(_number(entry[begin : begin + _AT_ONCE], numbers))
    return np.concatenate([np.array([], np.int64), *found])


def twin_numbers(entry: Sequence[str], text: Sequence[str], proving: Proving) -> tuple[Numbers, pa.Array]:
    """The numbers of which any twin of the changes has one, ascending, and the entry that each is of."""
    pairs = [(one, begins) for one, body in zip(entry, text, strict=True) for begins in proving.beginnings(body)]
    entries, texts = (pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1))
    numbers = _number(entries, beginnings(texts, _BEGINNING, two_lines=True))
    order = np.argsort(numbers)
    return numbers[order], entries.take(pa.array(order))


def parts_with(parts: Iterable[Part], wanted: Numbers) -> Iterator[tuple[str, Numbers]]:
    """The names of the parts of `changes` in which wanted numbers stand, and for each of these, ascending: is it there?"""

    def read(part: Part) -> tuple[str, Numbers]:
        return part["of"], among(wanted, read_part(part["path"], ["number"])["number"].to_numpy())

    for of, there in some_at_once(read, parts):
        if there.any():
            yield of, there


def among(some: Numbers, sought: Numbers) -> Numbers:
    """For each of some numbers: is it one of the others, which are in ascending order?"""
    at = np.minimum(np.searchsorted(sought, some), len(sought) - 1)
    return sought[at] == some if len(sought) else np.zeros(len(some), bool)


def _number(entry: pa.Array, of_text: Numbers) -> Numbers:
    return (_mixed(beginnings(entry, _ENTRY), of_text) >> np.uint64(32)).astype(np.int64)


def _mixed(one: Numbers, other: Numbers) -> Numbers:
    mixed = (one ^ other) * _MIX
    return mixed ^ (mixed >> np.uint64(29))


def _begin_like(texts: pa.Array, known: Iterable[str], size: int) -> Numbers:
    """For each text: are its first bytes, so many at most, those of one that is known?"""
    found = np.zeros(len(texts), bool)
    for length, same in groupby(sorted({one[:size] for one in known}, key=len), key=len):
        found |= np.isin(beginnings(texts, length), beginnings(pa.array(list(same)), length))
    return found


def beginnings(texts: pa.Array, size: int, two_lines: bool = False) -> Numbers:
    """A number of the first bytes of each text, or of its first two lines; small and capital letters count alike.

    The texts are never taken out: eight bytes of each are looked at in one step.
    """
    _, ends, data = texts.buffers()
    ends = np.frombuffer(ends or bytes(4), np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    begin, left = ends[:-1], np.minimum(ends[1:] - ends[:-1], size)
    bytes_ = np.frombuffer(data or b"", np.uint8)
    if len(bytes_) < 8:
        bytes_ = np.concatenate([bytes_, np.zeros(8, np.uint8)])
    every = np.lib.stride_tricks.as_strided(bytes_[:8].view("<u8"), (len(bytes_) - 7,), (1,), writeable=False)
    found = np.zeros(len(texts), np.uint64)
    lines = np.full(len(texts), 2, np.uint8)
    for at in range(0, size, 8):
        place = begin + at
        there = np.minimum(place, len(every) - 1)
        word = every[there] >> (np.minimum(place - there, 7) << 3).astype(np.uint64)
        word &= _MASKS[np.clip(left - at, 0, 8)]
        if two_lines:
            word, counted = _cut(word, lines)
            over = counted >= lines
            lines -= np.where(over, 0, counted)
            left[over] = 0
        found = _mixed(found, word | _SMALL_LETTERS)
    return found


def _cut(word: Numbers, lines: Numbers) -> tuple[Numbers, Numbers]:
    """Each eight bytes up to the first line end, or the second where that is to come; and how many line ends there are."""
    other = word ^ _LINE_END
    flags = ~(((other & _LOW_BITS) + _LOW_BITS) | other | _LOW_BITS)
    last = np.where(lines > 1, flags & (flags - _ONE), flags)
    below = ((last & (~last + _ONE)) >> np.uint64(7)) - _ONE  # where there is none: all
    return word & below, np.bitwise_count(flags)
