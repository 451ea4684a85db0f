"""`ds389.entries`: entries with their replication state, as `db2ldif -r` and `dsconf backend export -r` write them.

An export can hold millions of entries, so whole pieces are handled at once: numpy finds lines and options, Arrow copies
the texts. An entry with anything unusual in it is left to `entry_states`, which reads one entry line by line and is the
definition of what the fast way must give; a test holds them against each other. Ordinary LDIF without state is read as
well; its rows have no position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench import tables
from workbench.model import RECORDS, Format, Parsed, Piece, Reject
from workbench.systems.ds389.formats import ldif
from workbench.systems.ds389.formats.directory import kind_of_file
from workbench.systems.ds389.formats.entry_states import (
    MARKS,
    STATES,
    VECTOR_ENTRY,
    entry_rows,
    is_tombstone,
    is_vector_entry,
)
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.formats.line_arrays import Lines, Numbers
from workbench.systems.ds389.formats.values import LONGEST, SUSPECT, clean, shortened, shown, shown_name, suffix_named
from workbench.systems.ds389.formats.vectors import Row, link_row, vector_facts, vector_rows
from workbench.systems.ds389.secrets import SECRETS

_FIRST_ENTRY = re.compile(rb"# entry-id: 1\r?\n")
_SEMICOLON = 59
_MARK_LENGTH = len("vucsn-6b0059bd000000010000")
_DELETED, _ATTRIBUTE_DELETED = b"deleted", b"deletedattribute"

# NUL for whatever is no digit of a CSN.
_DIGITS = bytes(byte if byte in b"0123456789abcdef" else 0 for byte in range(256))
_LOWER = np.frombuffer(bytes(range(256)).lower(), np.uint8)

# Two letters of an option -> number in MARKS, -1 for any others.
_KINDS = np.full(1 << 16, -1, np.int8)
for _number, _mark in enumerate(MARKS):
    _KINDS[int.from_bytes(_mark[:2].encode(), "big")] = _number


class _Options(NamedTuple):
    """The state options of all lines, in the order of the file."""

    line: Numbers  # of every mark
    kind: Numbers  # of every mark: number in MARKS
    csn: bytes  # 20 lower-case digits for every mark
    state: Numbers  # of every line: number in STATES
    name_end: Numbers  # of every line: where its state options or its colon begin


def _options(lines: Lines) -> _Options:
    data = lines.bytes
    at = np.flatnonzero(data == _SEMICOLON)
    line = np.searchsorted(lines.start, at, "right") - 1
    inside = line >= 0
    inside[inside] = at[inside] < lines.colon[line[inside]]
    at, line = at[inside], line[inside]
    end = lines.colon[line]
    same = line[1:] == line[:-1]
    end[:-1][same] = at[1:][same]
    length = end - at - 1

    def letters(which: Numbers, offset: int, count: int) -> Numbers:
        if not len(which):
            return np.empty((0, count), np.uint8)
        found: Numbers = _LOWER[np.lib.stride_tricks.sliding_window_view(data, count)[at[which] + offset]]
        return found

    def spelled(word: bytes) -> Numbers:
        which = np.flatnonzero(length == len(word))
        found: Numbers = which[(letters(which, 1, len(word)) == np.frombuffer(word, np.uint8)).all(axis=1)]
        return found

    long_enough = np.flatnonzero(length >= 6)
    front = letters(long_enough, 1, 6)
    csn = (front[:, 2:] == np.frombuffer(b"csn-", np.uint8)).all(axis=1)
    kind = _KINDS[front[:, 0].astype(np.uint16) << 8 | front[:, 1]]
    whole = csn & (length[long_enough] == _MARK_LENGTH) & (kind >= 0)
    lines.doubt(line[long_enough[csn & ~whole]])
    marks, kind = long_enough[whole], kind[whole]
    digits = letters(marks, 7, 20).tobytes().translate(_DIGITS)
    if b"\0" in digits:
        lines.doubt(line[marks[np.frombuffer(digits, np.uint8).reshape(-1, 20).min(axis=1) == 0]])
        digits = digits.replace(b"\0", b"0")

    state = np.zeros(len(lines.start), np.int8)
    deleted, attribute_deleted = spelled(_DELETED), spelled(_ATTRIBUTE_DELETED)
    state[line[deleted]] = STATES.index("deleted")
    state[line[attribute_deleted]] = STATES.index("attribute_deleted")
    is_state = np.zeros(len(at), bool)
    is_state[np.concatenate([marks, deleted, attribute_deleted])] = True
    # A real option behind a state option would have to be moved: the server never writes it there.
    lines.doubt(line[1:][same & is_state[:-1] & ~is_state[1:]])
    name_end = lines.colon.copy()
    firsts = np.flatnonzero(is_state & ~np.append(False, same & is_state[:-1])[: len(at)])
    name_end[line[firsts]] = at[firsts]
    return _Options(line[marks], kind, digits, state, name_end)


def _texts(lines: Lines, options: _Options) -> pa.Array:
    """The text in consecutive parts, four for every line: attribute, state options and colon, value, line end."""
    borders = np.empty(4 * len(lines.start) + 1, np.int32)
    borders[0:-1:4], borders[1::4], borders[2::4], borders[3::4] = lines.start, options.name_end, lines.value, lines.end
    borders[-1] = len(lines.text)
    return pa.StringArray.from_buffers(len(borders) - 1, pa.py_buffer(borders), pa.py_buffer(lines.text))


class _Attributes(NamedTuple):
    """The attribute of every line: its name with real options, is it secret, and which ones mean something here."""

    name: pa.DictionaryArray
    secret: Numbers
    classes: Numbers
    identities: Numbers


def _attributes(lines: Lines, texts: pa.Array) -> _Attributes:
    mask = lines.unusual[lines.record] if lines.unusual.any() else None
    names = texts.take(pa.array(4 * np.arange(len(lines.start)), mask=mask)).fill_null("").dictionary_encode()
    words = [*names.dictionary.to_pylist()]
    plain = [word.split(";", 1)[0].lower() for word in words]
    number = np.asarray(names.indices)

    def which(property_of_words: Iterable[bool]) -> Numbers:
        found: Numbers = np.array([*property_of_words, False], bool)[number]
        return found

    lines.doubt(
        which(
            not ldif.NAME.fullmatch(word.encode()) or short in ("changetype", "control")
            for word, short in zip(words, plain, strict=True)
        )
    )
    secret = which(SECRETS.is_secret(word) for word in words)
    classes, identities = which(word == "objectclass" for word in plain), which(word == "nsuniqueid" for word in plain)
    lines.doubt((classes | identities) & lines.packed)
    return _Attributes(names, secret, np.flatnonzero(classes), np.flatnonzero(identities))


def _numbers(*arrays: Numbers) -> Iterable[tuple[int, ...]]:
    return zip(*(array.tolist() for array in arrays), strict=True)


def _values(lines: Lines, texts: pa.Array, secret: Numbers) -> tuple[pa.Array, Numbers]:
    """(texts, number of each line's shown value among them, -1 for none); nonsense for lines of unusual records."""
    text = lines.text
    usual = ~lines.unusual[lines.record]
    place = 4 * np.arange(len(lines.start)) + 2
    plain = texts.take(pa.array(place, mask=~usual | secret | lines.packed))
    doubtful = pc.or_(pc.match_substring_regex(plain, SUSPECT), pc.greater(pc.binary_length(plain), LONGEST))
    at = np.flatnonzero(np.asarray(doubtful.fill_null(False)))
    replaced = [
        shown_name(text[begin:end]) if first else shown(text[begin:end])
        for first, begin, end in _numbers(lines.first[at], lines.value[at], lines.end[at])
    ]
    packed = np.flatnonzero(lines.packed & usual)
    raws, broken = [], []
    for number, begin, end in _numbers(packed, lines.value[packed], lines.end[packed]):
        try:
            raws.append(ldif.decode_base64(text[begin:end]))
        except ValueError:
            raws.append(b"")
            broken.append(number)
    lines.doubt(np.array(broken, np.int64))
    # A packed name is rare enough to be read the exact way, which also finds out whether it is text.
    lines.doubt(packed[lines.first[packed]])
    suspect = np.asarray(pc.match_substring_regex(pa.array(raws, pa.binary()), SUSPECT))
    replaced += [shown(raw) if doubt else shortened(raw) for raw, doubt in zip(raws, suspect.tolist(), strict=True)]
    place[at] = len(texts) + np.arange(len(at))
    place[packed] = len(texts) + len(at) + np.arange(len(packed))
    place[secret | ~usual] = -1
    return pa.concat_arrays([texts, pa.array(replaced, pa.string())]), place


def _read_usual(lines: Lines, found: _Found, offset: int) -> pa.Table:
    """Rows of all records that hold nothing unusual; marks every other one."""
    options = _options(lines)
    texts = _texts(lines, options)
    attributes = _attributes(lines, texts)
    texts, place = _values(lines, texts, attributes.secret)

    def values(which: Numbers) -> pa.Array:
        return texts.take(pa.array(place[which], mask=place[which] < 0))

    names = values(lines.first)
    identities = np.full(len(names), None, object)
    at = attributes.identities[::-1]  # the first one of an entry counts
    identities[lines.record[at]] = [(text or "").strip().lower() or None for text in values(at).to_pylist()]
    lines.unusual |= identities == VECTOR_ENTRY
    lines.unusual |= np.asarray(pc.starts_with(pc.utf8_lower(names.fill_null("")), f"nsuniqueid={VECTOR_ENTRY}"))
    lines.unusual |= ~np.asarray(pc.match_substring(names.fill_null(""), "="))

    at = attributes.classes[options.state[attributes.classes] == 0]
    at = at[lines.end[at] - lines.value[at] == len("nsTombstone")]
    dead = [lines.text[begin:end].lower() == b"nstombstone" for begin, end in _numbers(lines.value[at], lines.end[at])]
    grave = np.zeros(len(names), bool)
    grave[lines.record[at[np.array(dead, bool)]]] = True

    usual = ~lines.unusual
    found.records += int(usual.sum())
    found.tombstones += int((usual & grave).sum())
    found.entries += int((usual & ~grave).sum())

    state = np.where((options.state == 0) & grave[lines.record], STATES.index("tombstone"), options.state)
    marks = np.bincount(options.line, minlength=len(lines.start))
    rows = np.where(lines.first | lines.unusual[lines.record], 0, np.maximum(marks, 1))
    line = np.repeat(np.arange(len(rows)), rows)
    marked = marks[line] > 0
    mark = np.zeros(len(line), np.int64)
    mark[marked] = np.flatnonzero(rows[options.line])
    which_mark = pa.array(mark, mask=~marked)
    record = pa.array(lines.record[line])
    borders = np.arange(0, len(options.csn) + 1, 20, dtype=np.int32)
    csns = pa.StringArray.from_buffers(len(options.line), pa.py_buffer(borders), pa.py_buffer(options.csn))
    replicas = pc.utf8_slice_codeunits(csns, 12, 16).dictionary_encode()
    origins = pa.array([str(int(rid, 16)) for rid in replicas.dictionary.to_pylist()], pa.string())
    return pa.table(
        {
            "offset": pa.array(lines.offset[lines.record[line]] + offset),
            "entry": pa.array(identities, pa.string()).take(record),
            "target": names.take(record),
            "attribute": attributes.name.take(pa.array(line)).cast(pa.string()),
            "value": values(line),
            "state": pa.array(STATES).take(pa.array(state[line])),
            "mark": pa.array(MARKS).take(pa.array(options.kind).take(which_mark)),
            "origin": origins.take(replicas.indices.take(which_mark)),
            "position": csns.take(which_mark),
        }
    )


@dataclass
class _Found:
    """What one piece gave so far."""

    rejects: list[Reject] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    vectors: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)
    suffixes: dict[str, int] = field(default_factory=dict)
    records: int = 0
    entries: int = 0
    tombstones: int = 0

    def take(self, block: bytes, offset: int, cut: bool, server: str) -> None:
        """Read one block of lines the exact way."""
        entry = ldif.read_block(block, offset, cut)
        if entry is None:
            return
        self.records += 1
        if isinstance(entry, Reject):
            self.rejects.append(entry)
            return
        try:
            rows, grave = entry_rows(entry), is_tombstone(entry)
        except ValueError as error:
            self.rejects.append(Reject(offset, str(error), ldif.safe_excerpt(block)))
            return
        if is_vector_entry(entry):
            self._take_vector(entry, server)
            return
        self.rows += rows
        self.tombstones += grave
        self.entries += not grave

    def _take_vector(self, entry: Entry, server: str) -> None:
        suffix = suffix_named(entry.text("nscpEntryDN") or clean(entry.dn).partition(",")[2])
        self.suffixes = {suffix: 1} if suffix else {}
        values, modified = entry.texts("nsds50ruv"), entry.texts("nsruvReplicaLastModified")
        rows = vector_rows(values, modified, offset=entry.offset, kind="server", holder=server)
        links = (link_row(value, entry.offset, self.suffixes) for value in entry.texts("nsds5agmtmaxcsn"))
        self.vectors += [{**row, "suffix": suffix} for row in rows]
        self.links += [{**row, "suffix": suffix} for row in links if row]


def _top(piece: Piece) -> dict[str, int]:
    """The suffix, if the piece begins with the export's first entry, which is the top of the tree."""
    for start, end, whole in islice(ldif.blocks(piece.data), 2):
        if piece.offset == 0 and _FIRST_ENTRY.match(piece.data, start):
            entry = ldif.read_block(piece.data[start:end], start, piece.ended and not whole)
            if isinstance(entry, Entry):
                suffix = suffix_named(shown_name(entry.lines[0][1]))
                return {suffix: 1} if suffix else {}
    return {}


def read_entries(piece: Piece) -> Parsed:
    """Entry states of a piece; vector and links out of the tombstone that holds the server's vector."""
    lines = Lines(piece)
    found = _Found()
    states = _read_usual(lines, found, piece.offset)
    for record in np.flatnonzero(lines.unusual).tolist():
        start, end = lines.extent(record)
        cut = lines.cut and record == len(lines.unusual) - 1
        found.take(piece.data[start:end], piece.offset + start, cut, piece.source.server)
    if found.rows:
        states = pa.concat_tables([states, tables.table("entry_states", found.rows)]).sort_by("offset").combine_chunks()
    made = {"entry_states": states} if states.num_rows else {}
    more = {"vectors": found.vectors, "links": found.links}
    made |= {name: tables.table(name, rows) for name, rows in more.items() if rows}
    facts = {"vectors": vector_facts(found.vectors), "entries": found.entries, "tombstones": found.tombstones}
    return Parsed(found.records, found.rejects, made, facts | {"suffixes": found.suffixes or _top(piece)})


def _is_entries(head: bytes, name: str) -> bool:
    return kind_of_file(head) == "entries"


ENTRIES = Format(
    "ds389.entries",
    _is_entries,
    lambda: read_entries,
    RECORDS,
    splittable=True,
    empty={"vectors": {}},
    evidence="entry_state",
    excerpt=ldif.safe_excerpt,
)
