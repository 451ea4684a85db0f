"""Whole pieces of changelog LDIF at once, with numpy and Arrow; anything unusual goes to `changelog.read_record`.

How it goes: find the lines, walk the fields of all records side by side (the server writes them in one order), take
the values as slices of the buffer in one copy per column, and decode all base64 bodies in a single call. Then look for
secrets with the expressions that belong to the rules of `Secrets`: in names, in bodies without their folds, and in what
the values behind `::` stand for. A record with a suspicious name goes to the exact reader; suspicious bodies are redacted
one by one: on ordinary data that is one in a hundred.

This module never decides that a record is bad. It only decides that a record is ordinary.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pybase64

from workbench.model import RECORDS, Format, Parsed, Piece, merge_facts
from workbench.systems.ds389.formats import changelog as exact
from workbench.systems.ds389.formats.changelog_facts import EMPTY
from workbench.systems.ds389.formats.values import SUSPECT
from workbench.systems.ds389.secrets import harmless_start
from workbench.tables import TIME, order_of

_NEWLINE, _BLANK, _PAD = 10, 32, 61
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_HEX = np.full(256, 255, np.uint8)
_HEX[_DIGITS] = np.arange(16)  # upper case is legal, but never seen from a server: the exact reader lowers it


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text.ljust(8, b"\0"), "little"))


def _mask(length: int) -> np.uint64:
    return np.uint64((1 << 8 * length) - 1)


class _Buffer:
    """Bytes and their lines. Views only: nothing is copied."""

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = data
        self.bytes = np.frombuffer(data, np.uint8)
        self._words = np.ndarray((max(len(self.bytes) - 7, 0),), "<u8", data, strides=(1,))

    @cached_property
    def ends(self) -> np.ndarray:
        """The newline of each line."""
        return np.flatnonzero(self.bytes == _NEWLINE)

    @cached_property
    def starts(self) -> np.ndarray:
        """The beginning of each line."""
        return np.concatenate([[0], self.ends[:-1] + 1])[: len(self.ends)]

    def at(self, places: np.ndarray) -> np.ndarray:
        """The byte at each place; the last one for places behind the end."""
        last = len(self.bytes) - 1
        return self.bytes[places if not places.size or places.max() <= last else np.minimum(places, last)]

    def pairs(self, two: bytes) -> np.ndarray:
        """Where the two bytes stand one behind the other."""
        wanted, size = int.from_bytes(two, "little"), len(self.data)
        views = [np.frombuffer(self.data, "<u2", (size - shift) // 2, shift) for shift in (0, 1) if size > shift]
        return np.sort(np.concatenate([2 * np.flatnonzero(view == wanted) + shift for shift, view in enumerate(views)]))

    def foreign(self) -> np.ndarray:
        """Where bytes stand that are not ASCII."""
        return np.empty(0, np.int64) if self.data.isascii() else np.flatnonzero(self.bytes > 127)

    def word(self, places: np.ndarray) -> np.ndarray:
        """Eight bytes at each place as one number; zero where fewer than eight are left."""
        last = len(self._words) - 1
        if not len(places) or int(places.max()) <= last:
            return self._words[places]
        words = self._words[np.clip(places, 0, last)] if last >= 0 else np.zeros(len(places), np.uint64)
        return np.where(places <= last, words, np.uint64(0))

    def unfolded(self, starts: np.ndarray, ends: np.ndarray, folds: np.ndarray) -> pa.BinaryArray:
        """The lines between each start and end, without the newline and the blank of a fold; a line is an element."""
        if not folds.any():
            return self.slices(starts, ends)
        count = folds + 1
        first = np.cumsum(count) - count
        line = np.arange(int(count.sum())) - np.repeat(first - np.searchsorted(self.ends, starts), count)
        begins, finish = self.starts[line] + 1, self.ends[line]
        begins[first], finish[first + folds] = starts, ends
        return self.slices(begins, finish)

    def slices(self, starts: np.ndarray, ends: np.ndarray) -> pa.BinaryArray:
        """The bytes between each start and end as one array; starts must ascend. A single copy, made by Arrow."""
        if not len(starts):
            return pa.array([], pa.binary())
        offsets = np.empty(2 * len(starts), np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        parts = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        wanted_and_gaps = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, parts)
        return wanted_and_gaps.take(pa.array(np.arange(0, len(offsets) - 1, 2, dtype=np.int32)))

    def texts(self, starts: np.ndarray, ends: np.ndarray, here: np.ndarray) -> pa.StringArray:
        """As `slices`, of bytes that are ASCII, as text; null where there is none."""
        if not len(starts):
            return pa.array([], pa.string())
        _, offsets, content = self.slices(starts, ends).buffers()
        valid = None if here.all() else pa.py_buffer(np.packbits(here, bitorder="little"))
        return pa.Array.from_buffers(pa.string(), len(starts), [valid, offsets, content])


def _content(array: pa.BinaryArray) -> tuple[np.ndarray, np.ndarray]:
    """(offsets, bytes) of an array that begins at the start of its buffers."""
    if not len(array):
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int32, len(array) + 1)
    return places, np.frombuffer(data, np.uint8, int(places[-1])) if places[-1] else np.empty(0, np.uint8)


class _Unpacked:
    """Base64 values decoded in one call; `folds` says over how many lines each goes on. `bad` marks those that only the
    exact reader can judge.

    Concatenated base64 decodes as one text once every padding sign is a letter. A value then carries up to two more bytes
    behind its end; the letters are chosen so that these are newlines, behind which the next value begins a line.
    """

    plain: bytearray
    starts: np.ndarray
    ends: np.ndarray

    def __init__(self, buffer: _Buffer, starts: np.ndarray, ends: np.ndarray, folds: np.ndarray) -> None:
        self.bad = np.zeros(len(starts), bool)
        if not self._decode(buffer, starts, ends, folds):
            self.bad = np.array([not _decodes(buffer.data, *span) for span in zip(starts, ends, strict=True)], bool)
            good = np.flatnonzero(~self.bad)
            self._decode(buffer, starts[good], ends[good], folds[good])
            spread = np.cumsum(~self.bad) - 1
            at = np.maximum(spread, 0)
            self.ends = np.where(self.bad, 0, self.ends[at]) if len(good) else np.zeros(len(starts), np.int64)
            self.starts = np.where(self.bad, self.ends, self.starts[at]) if len(good) else self.ends

    def odd(self) -> np.ndarray:
        """Which values only the exact reader can judge: not base64, or not ASCII inside."""
        odd, owners = self.bad.copy(), np.flatnonzero(~self.bad)
        if len(owners):
            places = np.searchsorted(self.starts[owners], _Buffer(self.plain).foreign(), "right") - 1
            odd[owners[places]] = True
        return odd

    def _decode(self, buffer: _Buffer, starts: np.ndarray, ends: np.ndarray, folds: np.ndarray) -> bool:
        lengths = ends - starts - 2 * folds
        if (lengths % 4).any() or (lengths < 0).any():
            return False
        letters = bytearray(_content(buffer.unfolded(starts, ends, folds))[1])
        borders = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=borders[1:])
        text = np.frombuffer(letters, np.uint8)
        filled = lengths > 0
        last = borders[1:][filled] - 1
        one = text[last] == _PAD
        two = one & (text[last - 1] == _PAD)
        pads = np.zeros(len(lengths), np.int64)
        pads[filled] = one.astype(np.int64) + two
        text[last[one]], text[last[two] - 1] = ord("K"), ord("o")
        try:
            self.plain = pybase64.b64decode_as_bytearray(letters, validate=True)
        except ValueError:
            return False
        borders = borders // 4 * 3
        self.starts, self.ends = borders[:-1], borders[1:] - pads
        return True


def _decodes(data: bytes | bytearray, start: int, end: int) -> bool:
    try:
        pybase64.b64decode(data[start:end].replace(b"\n ", b""), validate=True)
    except ValueError:
        return False
    return True


def _found(texts: pa.Array, pattern: str) -> np.ndarray:
    """Which texts the expression finds something in."""
    return pc.fill_null(pc.match_substring_regex(texts, pattern), False).to_numpy(zero_copy_only=False)


def _suspects(bodies: pa.StringArray) -> np.ndarray:
    """Which bodies may hold a secret, in clear or packed once more: more than do, never fewer."""
    suspect = _found(bodies, exact.SUSPECT_BODY)
    offsets, content = _content(bodies)
    buffer = _Buffer(content.tobytes() + b"\n\n")
    folded = buffer.at(buffer.ends[:-1] + 1) == _BLANK

    def owners(places: np.ndarray) -> np.ndarray:
        return np.minimum(np.searchsorted(offsets, places, "right"), len(bodies)) - 1

    if folded.any():  # a name may go on behind the fold
        torn = np.unique(owners(buffer.ends[:-1][folded]))
        texts = bodies.take(pa.array(torn))
        # A torn `::` is not among the pairs below, and `\n\n  ` leaves a fold that `redact_body` takes out as well.
        suspect[torn] |= _found(texts, r":(?:\n )+:")
        suspect[torn] |= _found(pc.replace_substring(texts, "\n ", ""), rf"{exact.SUSPECT_BODY}|\n ")
    packed = buffer.pairs(b"::")
    if len(packed):
        ends = np.flatnonzero(~folded)  # of the lines that do not go on
        line = np.searchsorted(buffer.ends, packed)
        last = np.searchsorted(ends, line)
        first = np.flatnonzero(np.diff(last, prepend=-1))  # a second `::` belongs to the value of the first
        packed, finish, folds = packed[first], buffer.ends[ends[last[first]]], ends[last[first]] - line[first]
        start = np.minimum(packed + 2, finish)
        start += (buffer.at(start) == _BLANK) & (start < finish)
        inner = _Unpacked(buffer, start, finish, folds)
        suspect[owners(packed[inner.bad])] = True
        texts = _Buffer(inner.plain).slices(inner.starts, inner.ends)
        suspect[owners(packed[_found(texts, SUSPECT)])] = True
    return suspect


_KEYS = {
    "changetype": [(0, b"changety"), (4, b"getype: ")],
    "replgen": [(0, b"replgen:"), (1, b"eplgen: ")],
    "csn": [(0, b"csn: ")],
    "nsuniqueid": [(0, b"nsunique"), (4, b"iqueid: ")],
    "parentuniqueid": [(0, b"parentun"), (8, b"iqueid: ")],
    "dn": [(0, b"dn: ")],
    "dn64": [(0, b"dn:: ")],
    "newrdn": [(0, b"newrdn: ")],
    "deleteoldrdn": [(0, b"deleteol"), (6, b"oldrdn: ")],
    "newsuperiordn": [(0, b"newsuper"), (7, b"riordn: ")],
    "change": [(0, b"change::")],
}


_VALUE_AT = {"dn64": 5}
_RENAME = ("newrdn", "deleteoldrdn", "newsuperiordn")


class _Walk:
    """All records side by side: one field of each is looked at, in the order in which the server writes them.

    `ordinary` says of each record whether every field so far was what the server writes.
    """

    def __init__(self, buffer: _Buffer) -> None:
        self.buffer = buffer
        empty = buffer.starts == buffer.ends
        begins = ~empty
        begins[1:] &= empty[:-1]
        first = np.flatnonzero(begins)
        empties = np.append(np.flatnonzero(empty), len(empty))
        stop = empties[np.searchsorted(empties, first)]
        lead = buffer.at(buffer.starts)
        self.fields = np.flatnonzero(~empty & (lead != _BLANK))  # line numbers; a folded line is part of its field
        self.field_starts = np.append(buffer.starts[self.fields], len(buffer.bytes) + 1)
        self.now, self.stop = np.searchsorted(self.fields, first), np.searchsorted(self.fields, stop)
        self.last_lines = stop - 1
        self.record_starts, self.record_ends = buffer.starts[first], buffer.ends[self.last_lines]
        self.ordinary = lead[first] != _BLANK
        # A field whose line ends in a blank, or a byte that is not ASCII, is left to the exact reader.
        odd_lines = buffer.starts[(buffer.at(np.maximum(buffer.ends - 1, 0)) == _BLANK) & ~empty]
        self.doubt(np.concatenate([odd_lines, buffer.foreign()]))

    def doubt(self, places: np.ndarray) -> None:
        """The records around these places are not ordinary."""
        owner = np.searchsorted(self.record_starts, places, "right") - 1
        self.ordinary[owner[owner >= 0]] = False

    def here(self) -> np.ndarray:
        """Where the current field of each record begins; its end for a record that is used up."""
        return np.where(self.now < self.stop, self.field_starts[self.now], self.record_ends)

    def stands(self, key: str, start: np.ndarray | None = None) -> np.ndarray:
        """Where the current field is the named one."""
        start, found = self.here() if start is None else start, self.now < self.stop
        for shift, text in _KEYS[key]:
            if found.any():
                found &= self.buffer.word(start + shift) & _mask(len(text)) == _word(text)
        return found

    def take(self, key: str, required: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """(start, end) of the field's value, folds included, and on to the next field; an empty span where it is absent."""
        start = self.here()
        found = self.stands(key, start)
        if required:
            self.ordinary &= found
        if not found.any():
            return start, start
        self.now = self.now + found
        behind = np.where(self.now < self.stop, self.field_starts[self.now] - 1, self.record_ends)
        value = np.where(found, start + _VALUE_AT.get(key, len(key) + 2), start)
        end = np.where(found, behind, start)
        self.ordinary &= ~found | ((value < end) & (self.buffer.at(value) != _BLANK))
        return value, end


def _operations(buffer: _Buffer, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The number of each operation in `exact.OPERATIONS`, -1 for none of them."""
    words, codes = buffer.word(starts), np.full(len(starts), -1, np.int8)
    for code, operation in enumerate(exact.OPERATIONS):
        length = len(operation)
        codes[(words & _mask(length) == _word(operation.encode())) & (ends - starts == length)] = code
    return codes


def read(piece: Piece) -> Parsed:
    """A piece of changelog LDIF: `changes`, the `vectors` of its header, and facts. Agrees with `changelog.read_exactly`."""
    data = piece.data
    if b"\r" in data or len(data) < 64 or not data.endswith(b"\n"):
        return exact.read_exactly(piece)
    buffer = _Buffer(data)
    walk = _Walk(buffer)
    if not data.endswith(b"\n\n"):
        walk.ordinary[-1:] = False  # cut: no empty line behind the last record
    operations = _operations(buffer, *walk.take("changetype"))
    walk.take("replgen", required=False)
    csn, csn_end = walk.take("csn")
    entry = walk.take("nsuniqueid")
    parent = walk.take("parentuniqueid", required=False)
    packed_dn = walk.stands("dn64")
    target64 = walk.take("dn64", required=False)
    target = walk.take("dn", required=False)
    walk.ordinary &= (target[1] > target[0]) != packed_dn
    rename = walk.here()
    for name in _RENAME:
        walk.take(name, required=False)
    change = walk.here()
    holds = walk.stands("change")
    mark = buffer.at(change + 8)
    packed = holds & (mark == _BLANK) & (walk.now + 1 == walk.stop)
    clear = holds & (mark == _NEWLINE) & (buffer.at(change + 9) != _BLANK) & (change + 9 < walk.record_ends)
    walk.ordinary &= (operations >= 0) & (csn_end - csn == 20) & (packed | clear | (walk.now == walk.stop))
    digits = _HEX[buffer.at(np.arange(20)[:, None] + csn)]
    walk.ordinary &= (digits < 16).all(axis=0)
    columns = {
        "target": _texts(buffer, *target),
        "entry": _texts(buffer, *entry),
        "parent": _texts(buffer, *parent),
        "rename": _texts(buffer, rename, np.maximum(np.where(holds, change - 1, walk.record_ends), rename)),
    }
    # One look at all of them where they stand, with whatever lies between; at each only where that finds something.
    doubted = np.flatnonzero(_found(buffer.slices(entry[0], np.maximum(change, entry[0])), SUSPECT))
    texts = pa.concat_arrays([column.take(pa.array(doubted)) for column in columns.values()])
    walk.ordinary[doubted] &= ~_found(texts, SUSPECT).reshape(len(columns), -1).any(axis=0)

    bodies = np.flatnonzero(packed & walk.ordinary)
    folds = walk.last_lines[bodies] - walk.fields[walk.now[bodies]]
    unpacked = _Unpacked(buffer, change[bodies] + 9, walk.record_ends[bodies], folds)
    walk.ordinary[bodies[unpacked.odd()]] = False
    names = np.flatnonzero(packed_dn & walk.ordinary)
    begin, end = (side[names] for side in target64)
    folds = np.searchsorted(buffer.ends, end) - np.searchsorted(buffer.ends, begin)
    unpacked_names = _Unpacked(buffer, begin, end, folds)
    walk.ordinary[names[_odd_names(unpacked_names)]] = False
    columns["target"] = _with_unpacked(columns["target"], names, unpacked_names, walk.ordinary[names])

    chosen, kept = np.flatnonzero(walk.ordinary), pa.array(walk.ordinary)
    table = pa.table(
        {
            "offset": piece.offset + walk.record_starts[chosen],
            **_positions(digits[:, chosen]),
            "operation": pa.DictionaryArray.from_arrays(pa.array(operations[chosen]), list(exact.OPERATIONS)),
            **{name: column.filter(kept) for name, column in columns.items()},
            "body": _redacted(_bodies(buffer, chosen, clear, change, walk.record_ends, bodies, unpacked)),
        }
    )
    return _joined(piece, table, walk.record_starts[~walk.ordinary])


def _positions(digits: np.ndarray) -> dict[str, pa.Array]:
    """The columns that CSNs give; a row of `digits` is one place of all of them."""
    count = digits.shape[1]
    hi, lo = np.zeros((2, count), np.int64)
    for place, digit in enumerate(digits):
        half = hi if place < 12 else lo
        np.bitwise_or(half << 4, digit, out=half)
    rids = np.flatnonzero(np.bincount(lo >> 16))
    code = np.zeros(1 << 16, np.int32)
    code[rids] = np.arange(len(rids))
    letters, offsets = _DIGITS[digits.T].tobytes(), np.arange(0, 20 * count + 1, 20, dtype=np.int32)
    return {
        "origin": pa.DictionaryArray.from_arrays(
            pa.array(code[lo >> 16]), pa.array([str(rid) for rid in rids], pa.string())
        ),
        "position": pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)]),
        "hi": pa.array(hi),
        "lo": pa.array(lo),
    }


def _texts(buffer: _Buffer, starts: np.ndarray, ends: np.ndarray) -> pa.StringArray:
    """A column of ASCII values, unfolded; null where the span is empty."""
    column = buffer.texts(starts, ends, ends > starts)
    return pc.replace_substring(column, "\n ", "") if (_content(column)[1] == _NEWLINE).any() else column


def _odd_names(unpacked: _Unpacked) -> np.ndarray:
    """Which unpacked names only the exact reader can judge: not UTF-8, on several lines, or with a secret in it."""
    odd = unpacked.bad.copy()
    if not len(odd):
        return odd
    plain = _Buffer(unpacked.plain or b"\n")
    texts = plain.slices(unpacked.starts, unpacked.ends)
    odd |= pc.match_substring_regex(texts, rf"[\x00-\x1f]|^ | $|{SUSPECT}").to_numpy(zero_copy_only=False)
    odd |= unpacked.starts == unpacked.ends
    try:
        texts.cast(pa.string())
    except pa.ArrowInvalid:
        odd |= ~np.array([_is_text(text) for text in texts.to_pylist()], bool)
    return odd


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _with_unpacked(plain: pa.StringArray, at: np.ndarray, unpacked: _Unpacked, good: np.ndarray) -> pa.StringArray:
    """The names as they stand, or unpacked: those `at` these places that are `good`."""
    if not good.any():
        return plain
    here = np.zeros(len(plain), bool)
    here[at[good]] = True
    texts = _Buffer(unpacked.plain).slices(unpacked.starts[good], unpacked.ends[good]).cast(pa.string())
    return pc.replace_with_mask(plain, pa.array(here), texts)


def _bodies(
    buffer: _Buffer,
    chosen: np.ndarray,
    clear: np.ndarray,
    change: np.ndarray,
    record_ends: np.ndarray,
    packed: np.ndarray,
    unpacked: _Unpacked,
) -> pa.StringArray:
    """The modifications of the chosen records: unpacked, taken as they stand, or null."""
    where = np.full(len(change), -1)
    where[packed] = np.arange(len(packed))
    where, clear = where[chosen], clear[chosen]
    here = where >= 0
    bodies = pa.nulls(len(chosen), pa.string())
    if here.any():
        starts, ends = np.zeros((2, len(chosen)), np.int64)
        starts[here], ends[here] = unpacked.starts[where[here]], unpacked.ends[where[here]]
        starts[~here] = ends[~here] = np.maximum.accumulate(ends)[~here]
        bodies = _Buffer(unpacked.plain).texts(starts, ends, here)
    if clear.any():
        # As in the exact reader: a body in clear ends with one newline.
        behind = record_ends[chosen] + 1
        bodies = pc.coalesce(bodies, buffer.texts(np.where(clear, change[chosen] + 9, behind), behind, clear))
    return bodies


def _redacted(bodies: pa.StringArray) -> pa.StringArray:
    """The bodies without secrets: those in doubt are looked at one by one."""
    suspect = _suspects(bodies)
    if not suspect.any():
        return bodies
    looked_at = [exact.redact_body(body) for body in bodies.filter(pa.array(suspect)).to_pylist()]
    return pc.replace_with_mask(bodies, pa.array(suspect), pa.array(looked_at, pa.string()))


def _facts(table: pa.Table) -> dict[str, object]:
    origins, positions = table["origin"].combine_chunks(), table["position"]
    hi, lo, codes = table["hi"].to_numpy(), table["lo"].to_numpy(), np.asarray(origins.indices)
    order = order_of(hi, lo)
    first, last = np.zeros((2, len(origins.dictionary)), np.int64)
    first[codes[order[::-1]]] = order[::-1]  # of several values for one place the last one stays
    last[codes[order]] = order
    counts = np.bincount(codes, minlength=len(origins.dictionary)).tolist()
    seen = zip(origins.dictionary.to_pylist(), counts, first.tolist(), last.tolist(), strict=True)
    done = np.bincount(np.asarray(table["operation"].combine_chunks().indices), minlength=len(exact.OPERATIONS))
    return {
        **EMPTY,
        "csns": len(table),
        "by_origin": {
            origin: {"count": count, "min": positions[low].as_py(), "max": positions[high].as_py()}
            for origin, count, low, high in seen
            if count
        },
        "operations": {name: int(n) for name, n in zip(exact.OPERATIONS, done, strict=True) if n},
    }


def _joined(piece: Piece, table: pa.Table, rest: np.ndarray) -> Parsed:
    """The ordinary records, and those that begin at the places in `rest`, which the exact reader has to judge."""
    special = (table["lo"].to_numpy() == 0) & np.isin(table["hi"].to_numpy() >> 16, exact.HELPER_TIMES)
    special |= pc.equal(table["target"], exact.DUMMY_DN).to_numpy(zero_copy_only=False)
    if special.any():  # helper and dummy records are few: the exact reader, too
        rest = np.concatenate([rest, table["offset"].to_numpy()[special] - piece.offset])
        table = table.filter(pa.array(~special))
    kinds = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(table), np.int8)), ["change"])
    table = table.add_column(1, "kind", kinds).append_column("logged_at", pa.nulls(len(table), TIME))
    parsed = exact.read_exactly(piece, [exact.block_at(piece.data, at) for at in np.sort(rest).tolist()])
    parsed.rows += len(table)
    parsed.facts = merge_facts([_facts(table), parsed.facts])
    unusual = parsed.tables.get("changes")
    if unusual is not None:
        table = pa.concat_tables([table.cast(unusual.schema), unusual]).sort_by("offset")
    parsed.tables["changes"] = table
    return parsed


CHANGELOG_LDIF = Format(
    "ds389.changelog-ldif",
    exact.is_packed,
    lambda: read,
    RECORDS,
    splittable=True,
    empty=EMPTY,
    evidence="changelog",
    is_log=True,
    excerpt=harmless_start,
)
CHANGELOG_DECODED = replace(CHANGELOG_LDIF, name="ds389.changelog-decoded", sniff=exact.is_decoded)
