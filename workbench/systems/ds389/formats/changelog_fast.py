"""Whole pieces of changelog LDIF at once, with numpy and Arrow; anything unusual goes to `changelog.read_record`.

How it goes: find the lines, walk the fields of all records side by side (the server writes them in one order), take
the values as slices of the buffer in one copy per column, and decode all base64 bodies in a single call. Then look for
secrets: an attribute name at the beginning of a line, `{` or `$` as hashes carry them, and the same inside values that
are base64 once more. Suspicious bodies are redacted one by one; on ordinary data that is one in a hundred.

This module never decides that a record is bad. It only decides that a record is ordinary.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pybase64

from workbench.model import RECORDS, Format, Parsed, Piece, merge_facts
from workbench.systems.ds389.formats import changelog as exact
from workbench.systems.ds389.formats.changelog_facts import EMPTY
from workbench.systems.ds389.secrets import SECRETS, harmless_start
from workbench.tables import TIME

_NEWLINE, _BLANK, _COLON, _BRACE, _DOLLAR, _PAD = 10, 32, 58, 123, 36, 61
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
        self.ends = np.flatnonzero(self.bytes == _NEWLINE)
        self.starts = np.empty_like(self.ends)
        self.starts[:1] = 0
        self.starts[1:] = self.ends[:-1] + 1
        self._words = np.ndarray((max(len(self.bytes) - 7, 0),), "<u8", data, strides=(1,))

    def at(self, places: np.ndarray) -> np.ndarray:
        """The byte at each place; the last one for places behind the end."""
        last = len(self.bytes) - 1
        return self.bytes[places if not places.size or places.max() <= last else np.minimum(places, last)]

    def places(self, byte: int) -> np.ndarray:
        """Where the byte stands. Most that is asked for stands nowhere, which a plain search tells ten times faster."""
        return np.flatnonzero(self.bytes == byte) if self.data.find(byte) >= 0 else np.empty(0, np.int64)

    def doubles(self, byte: int) -> np.ndarray:
        """Where the byte stands twice in a row."""
        here = self.bytes == byte
        return np.flatnonzero(here[:-1] & here[1:])

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

    def slices(self, starts: np.ndarray, ends: np.ndarray) -> pa.BinaryArray:
        """The bytes between each start and end as one array; starts must ascend. A single copy, made by Arrow."""
        if not len(starts):
            return pa.array([], pa.binary())
        offsets = np.empty(2 * len(starts), np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        parts = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        wanted_and_gaps = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, parts)
        return wanted_and_gaps.take(pa.array(np.arange(0, len(offsets) - 1, 2, dtype=np.int32)))


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

    Concatenated base64 decodes as one text once every padding sign is a letter. A value then carries up to two bytes of
    dirt behind it: zeros, which no text holds, so that they can all be taken out at once; where a text does hold zeros,
    they stay, and the ends leave them out.
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

    def _decode(self, buffer: _Buffer, starts: np.ndarray, ends: np.ndarray, folds: np.ndarray) -> bool:
        letters = bytearray(_content(buffer.slices(starts, ends))[1])
        if folds.any():
            letters = letters.translate(None, b"\n ")
        lengths = ends - starts - 2 * folds
        if int(lengths.sum()) != len(letters) or (lengths % 4).any() or (lengths < 0).any():
            return False
        borders = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=borders[1:])
        text = np.frombuffer(letters, np.uint8)
        filled = lengths > 0
        last = borders[1:][filled] - 1
        one = text[last] == _PAD
        two = one & (text[last - 1] == _PAD)
        pads = np.zeros(len(lengths), np.int64)
        pads[filled] = one.astype(np.int64) + two
        text[last[one]] = text[last[two] - 1] = ord("A")
        try:
            self.plain = pybase64.b64decode_as_bytearray(letters, validate=True)
        except ValueError:
            return False
        borders = borders // 4 * 3
        self.starts, self.ends = borders[:-1], borders[1:] - pads
        clean = self.plain.translate(None, b"\0")
        if len(clean) == len(self.plain) - int(pads.sum()):
            self.plain = clean
            np.cumsum(self.ends - self.starts, out=borders[1:])
            self.starts, self.ends = borders[:-1], borders[1:]
        return True


def _decodes(data: bytes | bytearray, start: int, end: int) -> bool:
    try:
        pybase64.b64decode(data[start:end].replace(b"\n ", b""), validate=True)
    except ValueError:
        return False
    return True


# The first six letters of every secret attribute, made lower case by `| 0x20`, hashed into a small table.
_LOWER, _MIX = np.uint64(0x2020202020202020), np.uint64(0x9E3779B97F4A7C15)


def _name_hash(words: np.ndarray) -> np.ndarray:
    return ((words | _LOWER) & _mask(6)) * _MIX >> np.uint64(50)


_SECRET_NAME = np.zeros(1 << 14, bool)
_SECRET_NAME[_name_hash(np.array([_word(name.encode()[:8]) for name in sorted(SECRETS.attributes)]))] = True


_ANY_NAME = "(?i:" + "|".join(re.escape(name) for name in sorted(SECRETS.attributes)) + ")"


# What a value that is base64 may hold: a hash, a hash packed once more, or text that names a secret.
_PACKED_SECRET = rf"[{{$]|^(?:e[0-3]|JD)|{_ANY_NAME}"


def _holds_name(buffer: _Buffer, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which names of entries speak of a secret attribute: `userPassword=...` may be part of a DN."""
    texts = buffer.slices(starts, ends)
    if (_content(texts)[1] == _NEWLINE).any():
        texts = pc.replace_substring(texts, "\n ", "")
    return pc.match_substring_regex(texts, _ANY_NAME).to_numpy(zero_copy_only=False)


def _suspicious(buffer: _Buffer, line_starts: np.ndarray) -> np.ndarray:
    """Places where a secret may stand: more than there are, never fewer."""
    found = [line_starts[_SECRET_NAME[_name_hash(buffer.word(line_starts))]]]
    found.append(buffer.places(_BRACE))
    if len(dollars := buffer.places(_DOLLAR)):
        # `$6$`, `$2b$`, `$argon2id$`, or cut by a fold: a postal address with `$` between its lines has none of these.
        named = np.isin(buffer.at(dollars + 1), np.frombuffer(b"apsgy\n", np.uint8))
        near = [np.isin(buffer.at(dollars + step), np.frombuffer(b"$\n", np.uint8)) for step in (2, 3)]
        found.append(dollars[named | near[0] | near[1]])
    return np.concatenate(found)


def _twice_packed(buffer: _Buffer) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(place, start, end, folds) of every value behind `::`, up to the next line that does not go on."""
    colons = buffer.doubles(_COLON)
    line = np.searchsorted(buffer.ends, colons)
    colons = colons[np.diff(line, prepend=-1) > 0]  # a second `::` on the line belongs to the value of the first
    line = np.searchsorted(buffer.ends, colons)
    new_lines = np.append(np.flatnonzero(buffer.at(buffer.starts) != _BLANK), len(buffer.ends))
    last = new_lines[np.searchsorted(new_lines, line, "right")] - 1
    finish = buffer.ends[last]
    start = np.minimum(colons + 2, finish)
    return colons, start + (buffer.at(start) == _BLANK) * (start < finish), finish, last - line


def _judged(unpacked: _Unpacked) -> tuple[np.ndarray, np.ndarray]:
    """Which bodies may hold a secret, in clear or packed once more, and which only the exact reader can judge."""
    secret, odd = np.zeros(len(unpacked.starts), bool), unpacked.bad.copy()
    plain = unpacked.plain
    if not len(plain):
        return secret, odd
    if plain[-1] != _NEWLINE:
        plain.append(_NEWLINE)
    buffer = _Buffer(plain)
    owners = np.flatnonzero(~unpacked.bad)
    begins = unpacked.starts[owners]

    def mark(flags: np.ndarray, places: np.ndarray) -> None:
        flags[owners[np.searchsorted(begins, places, "right") - 1]] = True

    mark(odd, buffer.foreign())
    # Where a body does not end its last line, newlines alone do not find the first line of the next one.
    apart = begins[(begins > 0) & (buffer.at(np.maximum(begins, 1) - 1) != _NEWLINE) & (begins < len(plain))]
    mark(secret, _suspicious(buffer, np.concatenate([apart, buffer.starts])))
    places, *spans = _twice_packed(buffer)
    if len(places):
        inner = _Unpacked(buffer, *spans)
        mark(secret, places[inner.bad])
        if len(inner.plain):
            texts = _Buffer(inner.plain).slices(inner.starts, inner.ends)
            mark(secret, places[pc.match_substring_regex(texts, _PACKED_SECRET).to_numpy(zero_copy_only=False)])
    return secret, odd


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
        self.doubt(np.concatenate([odd_lines, buffer.foreign(), _suspicious(buffer, self.field_starts[:-1])]))

    def doubt(self, places: np.ndarray) -> None:
        """The records around these places are not ordinary."""
        owner = np.searchsorted(self.record_starts, places, "right") - 1
        self.ordinary[owner[owner >= 0]] = False

    def here(self) -> np.ndarray:
        """Where the current field of each record begins; its end for a record that is used up."""
        return np.where(self.now < self.stop, self.field_starts[self.now], self.record_ends)

    def stands(self, key: str) -> np.ndarray:
        """Where the current field is the named one."""
        start, found = self.here(), self.now < self.stop
        for shift, text in _KEYS[key]:
            found &= self.buffer.word(start + shift) & _mask(len(text)) == _word(text)
        return found

    def take(self, key: str, required: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """(start, end) of the field's value, folds included, and on to the next field; an empty span where it is absent."""
        found, start = self.stands(key), self.here()
        behind = np.where(
            self.now + 1 < self.stop,
            self.field_starts[np.minimum(self.now + 1, len(self.fields))] - 1,
            self.record_ends,
        )
        value = np.where(found, start + _VALUE_AT.get(key, len(key) + 2), start)
        end = np.where(found, behind, start)
        self.ordinary &= ~found | ((value < end) & (self.buffer.at(value) != _BLANK))
        if required:
            self.ordinary &= found
        self.now = self.now + found
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
    walk.ordinary &= ~_holds_name(buffer, *target)
    rename = walk.here()
    new_rdn = walk.take("newrdn", required=False)
    walk.take("deleteoldrdn", required=False)
    new_parent = walk.take("newsuperiordn", required=False)
    for start, end in (new_rdn, new_parent):
        moved = np.flatnonzero(end > start)
        walk.ordinary[moved[_holds_name(buffer, start[moved], end[moved])]] = False
    change = walk.here()
    holds = walk.stands("change")
    mark = buffer.at(change + 8)
    packed = holds & (mark == _BLANK) & (walk.now + 1 == walk.stop)
    clear = holds & (mark == _NEWLINE) & (buffer.at(change + 9) != _BLANK) & (change + 9 < walk.record_ends)
    walk.ordinary &= (operations >= 0) & (csn_end - csn == 20) & (packed | clear | (walk.now == walk.stop))
    digits = _HEX[buffer.at(csn[:, None] + np.arange(20))]
    walk.ordinary &= (digits < 16).all(axis=1)
    if clear.any():
        walk.doubt(_twice_packed_in(buffer, walk, clear, change))

    bodies = np.flatnonzero(packed & walk.ordinary)
    folds = walk.last_lines[bodies] - walk.fields[walk.now[bodies]]
    unpacked = _Unpacked(buffer, change[bodies] + 9, walk.record_ends[bodies], folds)
    names = np.flatnonzero(packed_dn & walk.ordinary)
    begin, end = (side[names] for side in target64)
    folds = np.searchsorted(buffer.ends, end) - np.searchsorted(buffer.ends, begin)
    unpacked_names = _Unpacked(buffer, begin, end, folds)
    walk.ordinary[names[_odd_names(unpacked_names)]] = False
    secret, odd = _judged(unpacked)
    walk.ordinary[bodies[odd]] = False
    doubted = np.zeros(len(walk.ordinary), bool)
    doubted[bodies[secret]] = True

    chosen = np.flatnonzero(walk.ordinary)
    rename_end = np.where(holds, change - 1, walk.record_ends)
    table = pa.table(
        {
            "offset": piece.offset + walk.record_starts[chosen],
            **_positions(digits[chosen]),
            "operation": pa.DictionaryArray.from_arrays(pa.array(operations[chosen]), list(exact.OPERATIONS)),
            "target": _names(_texts(buffer, *(side[chosen] for side in target)), chosen, names, unpacked_names),
            "entry": _texts(buffer, *(side[chosen] for side in entry)),
            "parent": _texts(buffer, *(side[chosen] for side in parent)),
            "rename": _texts(buffer, rename[chosen], np.maximum(rename_end, rename)[chosen]),
            "body": _redacted(
                _bodies(buffer, chosen, clear, change, walk.record_ends, bodies, unpacked), doubted[chosen]
            ),
        }
    )
    return _joined(piece, table, walk.record_starts[~walk.ordinary])


def _twice_packed_in(buffer: _Buffer, walk: _Walk, clear: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Places of `::` inside bodies in clear: the exact reader unpacks them to look for secrets."""
    places, *_ = _twice_packed(buffer)
    owner = np.maximum(np.searchsorted(walk.record_starts, places, "right") - 1, 0)
    return places[clear[owner] & (places > change[owner] + 6)]


def _positions(digits: np.ndarray) -> dict[str, pa.Array]:
    """The columns that a CSN gives, out of its 20 digits."""
    wide, hi, lo = digits.astype(np.int64), np.zeros(len(digits), np.int64), np.zeros(len(digits), np.int64)
    for place in range(12):
        hi = hi << 4 | wide[:, place]
    for place in range(12, 20):
        lo = lo << 4 | wide[:, place]
    rids, origin = np.unique(lo >> 16, return_inverse=True)
    offsets = np.arange(0, 20 * len(digits) + 1, 20, dtype=np.int32)
    letters = _DIGITS[digits].tobytes() if len(digits) else b""
    return {
        "origin": pa.DictionaryArray.from_arrays(
            pa.array(origin, pa.int32()), pa.array([str(r) for r in rids], pa.string())
        ),
        "position": pa.Array.from_buffers(
            pa.string(), len(digits), [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
        ),
        "hi": pa.array(hi),
        "lo": pa.array(lo),
    }


def _texts(buffer: _Buffer, starts: np.ndarray, ends: np.ndarray) -> pa.StringArray:
    """A column of ASCII values, unfolded; null where the span is empty."""
    column = buffer.slices(starts, ends)
    if (_content(column)[1] == _NEWLINE).any():
        column = pc.replace_substring(column, "\n ", "")
    column = column.cast(pa.string())
    here = ends > starts
    return column if here.all() else pc.if_else(pa.array(here), column, pa.scalar(None, pa.string()))


def _odd_names(unpacked: _Unpacked) -> np.ndarray:
    """Which unpacked names only the exact reader can judge: not UTF-8, on several lines, or with a secret in it."""
    odd = unpacked.bad.copy()
    if not len(odd):
        return odd
    plain = _Buffer(unpacked.plain or b"\n")
    texts = plain.slices(unpacked.starts, unpacked.ends)
    odd |= pc.match_substring_regex(texts, rf"[\x00-\x1f{{$]|^ | $|{_ANY_NAME}").to_numpy(zero_copy_only=False)
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


def _names(plain: pa.StringArray, chosen: np.ndarray, packed: np.ndarray, unpacked: _Unpacked) -> pa.StringArray:
    """The names of the chosen records: as they stand, or unpacked."""
    from_packed = np.full(int(max(chosen.max(initial=-1), packed.max(initial=-1))) + 1, -1)
    from_packed[packed] = np.arange(len(packed))
    where = from_packed[chosen]
    picked = where[where >= 0]
    if not len(picked):
        return plain
    texts = _Buffer(unpacked.plain).slices(unpacked.starts[picked], unpacked.ends[picked]).cast(pa.string())
    return pc.replace_with_mask(plain, pa.array(where >= 0), texts)


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
    from_packed = where[chosen]
    ends, here = unpacked.ends, from_packed >= 0
    in_a_row = len(ends) > 0 and unpacked.starts[0] == 0 and bool((unpacked.starts[1:] == ends[:-1]).all())
    if in_a_row and here.sum() == len(packed) and not clear.any():  # as Arrow wants them: no copy
        offsets = np.zeros(len(chosen) + 1, np.int32)
        offsets[1:] = np.maximum.accumulate(np.where(here, ends[from_packed], 0))
        valid = pa.py_buffer(np.packbits(here, bitorder="little"))
        return pa.Array.from_buffers(
            pa.string(), len(chosen), [valid, pa.py_buffer(offsets), pa.py_buffer(unpacked.plain)]
        )
    picked = from_packed[from_packed >= 0]
    plain = _Buffer(unpacked.plain) if len(unpacked.plain) else _Buffer(b"\n")
    texts = plain.slices(unpacked.starts[picked], unpacked.ends[picked]).cast(pa.string())
    in_clear = chosen[clear[chosen]]
    if len(in_clear):
        # As in the exact reader: a body in clear ends with one newline.
        texts = pa.concat_arrays(
            [texts, buffer.slices(change[in_clear] + 9, record_ends[in_clear] + 1).cast(pa.string())]
        )
    index = np.full(len(chosen), -1)
    index[from_packed >= 0] = np.arange(len(picked))
    index[clear[chosen]] = len(picked) + np.arange(len(in_clear))
    if len(texts) == len(chosen) and not len(in_clear):
        return texts
    return texts.take(pa.array(index, mask=index < 0))


def _redacted(bodies: pa.StringArray, doubted: np.ndarray) -> pa.StringArray:
    """The bodies, those in doubt looked at one by one."""
    if not doubted.any():
        return bodies
    looked_at = [exact.redact_body(body) for body in bodies.filter(pa.array(doubted)).to_pylist()]
    return pc.replace_with_mask(bodies, pa.array(doubted), pa.array(looked_at, pa.string()))


def _facts(table: pa.Table) -> dict[str, object]:
    facts = dict(EMPTY, by_origin={})
    origins = table["origin"].combine_chunks()
    hi, lo = table["hi"].to_numpy(), table["lo"].to_numpy()
    codes = np.asarray(origins.indices)
    facts["csns"] = len(table)
    for code, origin in enumerate(origins.dictionary.to_pylist()):
        mine = np.flatnonzero(codes == code)
        if len(mine):
            order = np.lexsort((lo[mine], hi[mine]))
            first, last = int(mine[order[0]]), int(mine[order[-1]])
            positions = table["position"]
            facts["by_origin"][origin] = {
                "count": len(mine),
                "min": positions[first].as_py(),
                "max": positions[last].as_py(),
            }
    counts = np.bincount(np.asarray(table["operation"].combine_chunks().indices), minlength=len(exact.OPERATIONS))
    facts["operations"] = {name: int(n) for name, n in zip(exact.OPERATIONS, counts, strict=True) if n}
    return facts


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
    "ds389.changelog-ldif", exact.is_packed, lambda: read, RECORDS, splittable=True, empty=EMPTY, excerpt=harmless_start
)
CHANGELOG_DECODED = Format(
    "ds389.changelog-decoded",
    exact.is_decoded,
    lambda: read,
    RECORDS,
    splittable=True,
    empty=EMPTY,
    excerpt=harmless_start,
)
