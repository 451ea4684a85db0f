"""A file on disk: what it is, and its pieces. No pyspark here, so `inspect` starts at once and workers stay light.

Plain files are cut by position: a piece is the bytes from one border to another, where a border is the end of an empty
line (records) or of a line (lines), or the place where an item of a list begins (items). Two neighbours that look for the
border behind the same byte find the same one, so ranges can be handed to different workers and nothing is read twice or
lost. Of binary files (frames) the format finds the borders. Compressed files are read as one stream.
"""

from __future__ import annotations

import copy
import fnmatch
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.intake.decompression import PIECE, Broken, packed, unpacked
from workbench.model import (
    FRAMES,
    ITEMS,
    LINES,
    RECORDS,
    WHOLE,
    Format,
    Frame,
    Parsed,
    Piece,
    Reject,
    Source,
    System,
    merge_facts,
)
from workbench.systems import format_with, systems
from workbench.tables import joined

LONGEST = 64 << 20
"""A longer record or line is rejected whole. A server's largest message (nsslapd-maxbersize, 2 MB by default) is far below."""

TOO_LONG = {unit: f"{unit[:-1]} longer than {LONGEST >> 20} MiB" for unit in (RECORDS, LINES, ITEMS, FRAMES)}

Watch = Callable[[int, int], None]
"""Told how far a file is read, in bytes (at most its size: what is packed unpacks to more), and how many rows that were."""

SHORTER = "the file became shorter while it was read: collect it again"

_ONE = {RECORDS: "record", LINES: "line", ITEMS: "item", FRAMES: "frame", WHOLE: "document"}
_MANY = 200

LARGEST_DOCUMENT = 256 << 20
_WINDOW = 64 << 10
_HEAD = 64 << 10
_ZEROS = 64


def _hole(data: bytes) -> int:
    return len(data) - len(data.lstrip(b"\0"))


def head(path: Path) -> tuple[bytes, str]:
    """The first 64 KiB, decompressed, and why there are no more of them if the packing is damaged.

    Of a hole of zeros that is longer only the end: what stands behind it tells what the file is.
    """
    if not packed(path):
        with open(path, "rb") as file:
            start = file.read(_HEAD)
            while len(start) == _HEAD and (hole := _hole(start)) > _HEAD // 2:
                start = start[hole - _ZEROS :] + file.read(hole - _ZEROS)
            return start, ""
    start = b""
    try:
        for chunk in unpacked(path):
            start += chunk
            if (hole := _hole(start)) > _HEAD // 2:
                start = start[hole - _ZEROS :]
            elif len(start) >= _HEAD:
                break
    except Broken as error:
        return start[:_HEAD], str(error)
    return start[:_HEAD], ""


def path_text(path: str | Path) -> str:
    """A path as text that can be stored and shown: bytes that are not UTF-8 as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def plain_name(path: Path) -> str:
    """The file's name without the ending of the packing."""
    return path.name.removesuffix(".gz").removesuffix(".zst")


EMPTY = "the file is empty, which no JSON document is"


def recognise(path: Path) -> tuple[Format | None, str, str]:
    """(format or None, its name, why it is unknown). The content decides; `text` and `unknown` are of no system."""
    try:
        if not stat.S_ISREG(mode := path.stat().st_mode):
            # Never opened: a pipe without a writer would be waited for, for ever.
            return (
                None,
                "unknown",
                "is a folder, not a file" if stat.S_ISDIR(mode) else "is a pipe, a socket or a device",
            )
        start, broken = head(path)
    except OSError as error:
        return None, "unknown", f"cannot be read: {error.strerror}"
    for system in systems():
        for kind in system.formats:
            if kind.sniff(start, plain_name(path)):
                return kind, kind.name, ""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return None, "unknown", "text in UTF-16: convert it to UTF-8 first"
    if b"\0" in start:
        return None, "unknown", "binary data of no known format"
    try:
        start[: len(start) - 3 if len(start) == _HEAD else None].decode()
    except UnicodeDecodeError as error:
        return None, "unknown", f"not UTF-8 text: byte {error.object[error.start]:#04x} at {error.start}"
    if broken:
        return None, "unknown", broken
    if not start and plain_name(path).endswith(".json"):  # an export that failed: a document has at least its brackets
        return None, "unknown", EMPTY
    return None, "text", ""


def _reader_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, length: data[offset : offset + length]


def _border(read: Callable[[int, int], bytes], size: int, position: int, unit: str, opens: bytes = b"") -> int:
    """The first border at or behind `position`: the end of an empty line (before `opens`), or of a line, or where `opens`
    stands; else `size`.
    """

    def is_border(place: int) -> bool:
        return place >= position and (not opens or place >= size or read(place, len(opens)) == opens)

    if position <= 0:
        return 0
    at = {RECORDS: max(position - 3, 0), ITEMS: position}.get(unit, position - 1)
    while at < size:
        window = read(at, _WINDOW)
        if not window:
            return size
        if unit == ITEMS:
            if (index := window.find(opens)) >= 0:
                return at + index
            found = []
        elif unit == LINES:
            found = [window.find(b"\n") + 1]
        else:
            found = []
            for mark in (b"\n\n", b"\n\r\n"):
                index = window.find(mark)
                while index >= 0 and not is_border(at + index + len(mark)):
                    index = window.find(mark, index + 1)
                found.append(index + len(mark) if index >= 0 else 0)
        if ends := [at + end for end in found if end]:
            return min(ends)
        # A border that the window does not hold whole is looked for again.
        at += max(len(window) - {RECORDS: 2, LINES: 0, ITEMS: len(opens) - 1}[unit], 1)
    return size


def _plain(path: Path, source: Source, unit: str, start: int, end: int, opens: bytes) -> Iterator[Piece | Reject]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size

        def read(offset: int, length: int) -> bytes:
            return os.pread(descriptor, length, offset)

        here = _border(read, size, start, unit, opens)
        last = size if end >= size else _border(read, size, end, unit, opens)
        while here < last:
            there = _border(read, size, min(here + PIECE, last), unit, opens)
            if there - here > LONGEST:
                # The oversized unit is the last one of this piece; what stands before it is read as usual.
                long_one = here + _cut(read(here, min(PIECE, there - here)), unit, opens)
                if long_one == here:
                    yield Reject(here, TOO_LONG[unit])
                    here = there
                    continue
                there = long_one
            data = read(here, there - here)
            if len(data) < there - here:
                yield Reject(here, SHORTER)
                return
            yield Piece(source, data, here, there == size)
            here = there
    finally:
        os.close(descriptor)


Frames = Callable[[Callable[[int, int], bytes], int, int, int, bool], Iterator[Frame]]


def _framed(
    path: Path, source: Source, frames: Frames, start: int, end: int | None, known: bool
) -> Iterator[Piece | Reject]:
    """The pieces of a file whose borders only its format knows. What is longer than LONGEST comes without its bytes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size

        def read(offset: int, length: int) -> bytes:
            data = os.pread(descriptor, length, offset)
            if len(data) < min(length, size - offset):
                raise Broken(SHORTER)
            return data

        kept: list[Frame] = []
        full = start
        try:
            for frame in frames(read, size, start, size if end is None else end, known):
                if frame[1] > full:  # so a frame that is longer than a piece comes alone
                    if kept:
                        yield _piece_of(source, read, kept, size)
                    kept, full = [], frame[0] + PIECE
                kept.append(frame)
            if kept:
                yield _piece_of(source, read, kept, size)
        except Broken as error:
            yield Reject(kept[-1][1] if kept else start, str(error))
    finally:
        os.close(descriptor)


def _piece_of(source: Source, read: Callable[[int, int], bytes], kept: list[Frame], size: int) -> Piece:
    first, last = kept[0][0], kept[-1][1]
    data = read(first, last - first) if last - first <= LONGEST else b""
    return Piece(source, data, first, last == size, tuple(kept))


def _framed_packed(path: Path, source: Source, frames: Frames) -> Iterator[Piece | Reject]:
    """The same of a compressed file: whether a length is wrong shows only by what stands far behind it."""
    broken = ""
    with tempfile.NamedTemporaryFile(prefix="workbench-") as plain:
        try:
            for chunk in unpacked(path):
                plain.write(chunk)
        except Broken as error:
            broken = str(error)
        plain.flush()
        yield from _framed(Path(plain.name), source, frames, 0, None, True)
        if broken:
            yield Reject(plain.tell(), broken)


def _cut(data: bytes, unit: str, opens: bytes = b"") -> int:
    """How much of the data is whole units."""
    if unit == LINES:
        return data.rfind(b"\n") + 1
    if unit == ITEMS:
        return max(data.rfind(opens), 0)
    marks = (b"\n\n", b"\n\r\n")
    return max(0, *(data.rfind(mark + opens) + len(mark) if mark + opens in data else 0 for mark in marks))


def _stream(chunks: Iterable[bytes], source: Source, unit: str, opens: bytes) -> Iterator[Piece | Reject]:
    """The pieces of a compressed file. What was read before the packing broke still counts."""
    kept: list[bytes] = []
    length = offset = 0
    skipping, broken = False, ""
    chunks = iter(chunks)
    while True:
        try:
            chunk = next(chunks, b"")
        except Broken as error:
            chunk, broken = b"", str(error)
        kept.append(chunk)
        length += len(chunk)
        if chunk and length < PIECE:
            continue
        data = b"".join(kept)
        whole = _cut(data, unit, b"" if broken and unit != ITEMS else opens) if chunk or broken else len(data)
        if skipping and (whole or not chunk):
            first = _border(_reader_of(data), len(data), 1, unit, opens)
            offset, data, whole, skipping = offset + first, data[first:], max(whole - first, 0), False
        if whole:
            yield Piece(source, data[:whole], offset, not chunk and not broken)
            offset, data = offset + whole, data[whole:]
        elif len(data) > LONGEST or skipping:
            if not skipping:
                yield Reject(offset, TOO_LONG[unit])
            skipping = True
            left = 2 + len(opens)  # a border may straddle the chunks
            offset, data = offset + len(data) - left, data[-left:]
        kept, length = [data], len(data)
        if not chunk:
            if broken:
                yield Reject(offset, broken)
            return


Stream = Callable[[Path], Iterator[bytes]]


def _streamed(stream: Stream, path: Path) -> Iterator[bytes]:
    """What a format makes of a file that is no text. It opens the file itself, so one that is packed is unpacked first."""
    if not packed(path):
        try:
            yield from stream(path)
        except ValueError as error:
            raise Broken(str(error)) from None
        return
    with tempfile.NamedTemporaryFile(prefix="workbench-") as plain:
        for chunk in unpacked(path):
            plain.write(chunk)
        plain.flush()
        yield from _streamed(stream, Path(plain.name))


def pieces(
    path: Path,
    source: Source,
    unit: str,
    start: int = 0,
    end: int | None = None,
    opens: bytes = b"",
    stream: Stream | None = None,
    frames: Frames | None = None,
    known: bool = True,
) -> Iterator[Piece | Reject]:
    """The file as whole units that begin in [start, end); a Reject stands for a unit that could not even be cut out.

    `unit`, `opens`, `stream` and `frames` are those of the `Format`; `known`: a frame begins at `start`.
    """
    if frames:
        yield from (
            _framed_packed(path, source, frames) if packed(path) else _framed(path, source, frames, start, end, known)
        )
    elif stream:
        yield from _stream(_streamed(stream, path), source, unit, opens)
    elif packed(path):
        if unit == WHOLE:
            unit_bytes, broken = b"", ""
            try:
                for chunk in unpacked(path):
                    unit_bytes += chunk
                    if len(unit_bytes) > LARGEST_DOCUMENT:
                        raise Broken(f"document larger than {LARGEST_DOCUMENT >> 20} MiB")
            except Broken as error:
                broken = str(error)
            yield Reject(0, broken) if broken else Piece(source, unit_bytes, 0, True)
        else:
            yield from _stream(unpacked(path), source, unit, opens)
    elif unit == WHOLE:
        if path.stat().st_size > LARGEST_DOCUMENT:
            yield Reject(0, f"document larger than {LARGEST_DOCUMENT >> 20} MiB")
        else:
            yield Piece(source, path.read_bytes(), 0, True)
    else:
        yield from _plain(path, source, unit, start, path.stat().st_size if end is None else end, opens)


class CarefulReader:
    """The reader of a format, made so that a fault in it costs the units on which it fails and nothing else.

    A piece on which the reader raises is read again by halves, down to the units that make it fail. Each of them is a
    reject; all others are kept, and rows = accepted + rejected holds. The reject names the kind of the exception only:
    its message may quote data. Of a format that is one document (WHOLE) the document is the reject.

    The parts of such a piece are read one after the other, with the memory that the reader had before it. So what lines
    say together is still joined if the reader joins it across pieces (a request and its result in a log), and a unit
    that was left out is missing like a line that was damaged: a result without its request has no target, and a JSON
    object spread over lines of which one is missing counts as cut, all its lines are rejects. What a reader joins only
    within a piece is not joined across the parts: elements of a vector may lose their generation, links their suffix -
    null, as where the file does not say. The errors log joins nothing.

    Where a fault meets a large share of the units, reading them singly would take hours (a call costs about as much
    for one line as for hundreds): once hundreds have failed in a piece, and more than every fifth, a stretch that fails
    is not divided any more. Its units are counted one by one all the same, each as a reject that says so.
    """

    def __init__(self, kind: Format) -> None:
        self._kind = kind
        self._reader = kind.reader()
        self._read = self._failed = 0

    def __call__(self, piece: Piece) -> Parsed:
        """What the reader makes of the piece, without the units on which it fails."""
        self._read = self._failed = 0
        parts = self._parts(piece)
        if len(parts) == 1:
            return parts[0]
        whole = Parsed(sum(part.rows for part in parts), [reject for part in parts for reject in part.rejects])
        whole.facts = merge_facts(part.facts for part in parts)
        for name in dict.fromkeys(name for part in parts for name in part.tables):
            whole.tables[name] = joined([part.tables[name] for part in parts if name in part.tables])
        return whole

    def _parts(self, piece: Piece) -> list[Parsed]:
        found = self._try(piece)
        if isinstance(found, Parsed):
            self._read += found.rows
            return [found]
        if piece.frames:
            return self._by_frames(piece, found)
        half = _half(piece.data, self._kind.unit, self._kind.opens)
        if not half:
            self._failed += 1
            return self._refused(piece, f"this {_ONE[self._kind.unit]} could not be read ({found}): please report it")
        if self._failed > max(_MANY, self._read // 4):
            return self._refused(piece, f"left out among many that could not be read ({found}): please report it")
        first = replace(piece, data=piece.data[:half], ended=False)
        second = replace(piece, data=piece.data[half:], offset=piece.offset + half)
        return [*self._parts(first), *self._parts(second)]

    def _by_frames(self, piece: Piece, found: str) -> list[Parsed]:
        """Like `_parts`, of a piece that tells its units itself."""
        half = len(piece.frames) // 2
        if not half or self._failed > max(_MANY, self._read // 4):
            self._failed += 1
            why = f"could not be read ({found}): please report it"
            return [Parsed(len(piece.frames), [Reject(at, why) for at, _, _ in piece.frames])]
        border = piece.frames[half][0] - piece.offset
        first = replace(piece, data=piece.data[:border], ended=False, frames=piece.frames[:half])
        rest = replace(piece, data=piece.data[border:], offset=piece.offset + border, frames=piece.frames[half:])
        return [*self._parts(first), *self._parts(rest)]

    def _try(self, piece: Piece) -> Parsed | str:
        """What the reader makes of it, or the kind of its fault; the reader then knows what it knew before."""
        before = None if self._kind.splittable else copy.deepcopy(self._reader)
        try:
            return self._reader(piece)
        except Exception as error:  # a fault of ours: no input may stop a load
            self._reader = self._kind.reader() if before is None else before
            return type(error).__name__

    def _refused(self, piece: Piece, why: str) -> list[Parsed]:
        units = _units(piece.data, self._kind.unit, self._kind.opens)
        rejects = [Reject(piece.offset + at, why, self._excerpt(unit)) for at, unit in units]
        refused = Parsed(len(rejects), rejects)
        if not piece.ended or self._kind.splittable or self._kind.unit == WHOLE:
            return [refused]
        # The reader has not heard yet that the file ends: what is still open in its memory never will be finished.
        end = self._try(replace(piece, data=b"", offset=piece.offset + len(piece.data)))
        return [refused, end] if isinstance(end, Parsed) else [refused]

    def _excerpt(self, unit: bytes) -> str:
        try:
            return self._kind.excerpt(unit)
        except Exception:  # the reader may have failed where it made the very same excerpt
            return ""


def _half(data: bytes, unit: str, opens: bytes) -> int:
    """A border near the middle of the data; 0 if it holds one unit only."""
    if unit == WHOLE:
        return 0
    middle = max(len(data) // 2, 1)
    behind = _border(_reader_of(data), len(data), middle, unit, opens)
    return behind if behind < len(data) else _cut(data[:middle], unit, opens)


def _units(data: bytes, unit: str, opens: bytes) -> Iterator[tuple[int, bytes]]:
    """(place, bytes) of each unit. Empty lines are lines, but no records."""
    if unit == WHOLE:
        yield 0, data
        return
    read, here = _reader_of(data), 0
    while here < len(data):
        there = _border(read, len(data), here + 1, unit, opens)
        said = data[here:there].lstrip(b"\r\n" if unit == RECORDS else b"")
        if said:
            yield there - len(said), said
        here = there


def server_of(path: Path, system: System | None = None, kind: str = "") -> str:
    """The first dotted part of the file's name (`s1.changelog.ldif.gz` -> `s1`); of one called alike everywhere, the side of a
    link that it comes from, or its folder. The system may know better, of a format of the name `kind`.
    """
    name = path_text(plain_name(path))
    if system and (known := system.server_in(name, kind)):
        return known
    first = name.split(".", 1)[0]
    for word, side in system.sides.items() if system else ():
        if fnmatch.fnmatchcase(first, word):
            return side
    words = system.log_words if system else ()
    of_any = not first or "." not in name or any(fnmatch.fnmatchcase(first, word) for word in words)
    return path_text(path.resolve().parent.name) if of_any else first


def inspect_file(
    path: Path, watch: Watch | None = None, rows: bool = False, limit: int | None = None
) -> dict[str, Any]:
    """What one file holds, in the shape of the contract: format, rows = accepted + rejected, rejects, detail.

    Of formats whose detail the contract fixes, other facts are left out: the case asks `facts_of` for them. Of a stream at
    most `limit` records and transactions are listed, and with `rows` what its tables hold in the end.
    """
    kind, *_ = recognise(path)
    if not (kind and kind.streams):
        shown = kind.detail() if kind and kind.detail else None
        kind, seen = _look(path, watch, shown.add if shown else None)
        if shown:
            seen["detail"] = shown.detail()
        elif kind and kind.empty:
            seen["detail"] = {key: seen["detail"][key] for key in kind.empty}
        return seen
    from workbench.intake.stream_detail import LISTED, StreamDetail  # most files need none of it

    system = next(system for system in systems() if kind in system.formats)
    stream = StreamDetail(kind, system, LISTED if limit is None else limit)
    _, seen = _look(path, watch, stream.add)
    end = seen["detail"].get("end_of_file")
    lost = seen["rejected"] > bool(end and end["state"] == "truncated")
    seen["detail"] = stream.detail(end, lost)
    if rows:
        seen["detail"] |= stream.final_rows(path, lost)
    return seen


def facts_of(path: Path) -> dict[str, Any]:
    """Every fact that the parser gives of one file."""
    _, seen = _look(path)
    facts: dict[str, Any] = seen["detail"]
    return facts


def first_targets(path: Path, source: Source, key: str) -> list[str]:
    """What the first changes of a changelog are about; nothing for files that hold no changes."""
    kind = format_with(key)
    if kind.unit != RECORDS:
        return []
    start, _ = head(path)
    parsed = CarefulReader(kind)(Piece(source, start[: _cut(start, RECORDS, kind.opens)], 0, False))
    return parsed.tables["changes"]["target"].drop_null().to_pylist() if "changes" in parsed.tables else []


def _look(
    path: Path, watch: Watch | None = None, also: Callable[[Piece, Parsed], None] | None = None
) -> tuple[Format | None, dict[str, Any]]:
    kind, name, why = recognise(path)
    size = path.stat().st_size if path.is_file() else 0
    result = {"file": path_text(path), "format": name, "bytes": size}
    rows, detail = 0, dict(kind.empty) if kind else {}
    rejects: list[Reject] = []
    if kind:
        system = next(system for system in systems() if kind in system.formats)
        source = Source(path_text(path), path_text(path.resolve().parent.name), server_of(path, system, name))
        reader = CarefulReader(kind)
        for piece in pieces(path, source, kind.unit, opens=kind.opens, stream=kind.stream, frames=kind.frames):
            if isinstance(piece, Reject):
                rows, rejects = rows + 1, [*rejects, piece]
                continue
            parsed = reader(piece)
            rows += parsed.rows
            rejects += parsed.rejects
            if watch:
                watch(min(piece.offset + len(piece.data), size), rows)
            detail = merge_facts([detail, parsed.facts])
            if also:
                also(piece, parsed)
    elif name == "text":
        for piece in pieces(path, Source(str(path), "", ""), LINES):
            if isinstance(piece, Piece):
                rows += piece.data.count(b"\n") + (piece.ended and not piece.data.endswith(b"\n"))
            elif piece.reason == TOO_LONG[LINES]:
                rows += 1  # no evidence is lost with it: a text rejects nothing
            else:
                result["format"], rows, rejects = "unknown", rows + 1, [piece]
    else:
        rows, rejects = 1, [Reject(0, why)]
    listed = [{"offset": reject.offset, "reason": reject.reason} for reject in sorted(rejects, key=lambda r: r.offset)]
    counts = {"rows": rows, "accepted": rows - len(rejects), "rejected": len(rejects)}
    return kind, {**result, **counts, "rejects": listed, "detail": detail}


def unreadable(path: Path, error: OSError) -> dict[str, Any]:
    """What `inspect` says of a file that cannot even be opened."""
    reason = f"cannot be read: {error.strerror}"
    counts = {"rows": 1, "accepted": 0, "rejected": 1, "rejects": [{"offset": 0, "reason": reason}]}
    return {"file": path_text(path), "format": "unknown", "bytes": 0, **counts, "detail": {}}


def inspect(paths: Iterable[str | Path], rows: bool = False, limit: int | None = None) -> list[dict[str, Any]]:
    """What each file holds; a file that is missing or unreadable is an object like any other, never an abort.

    `rows` and `limit` are those of `inspect_file`.
    """
    results = []
    for path in map(Path, paths):
        try:
            results.append(inspect_file(path, rows=rows, limit=limit))
        except OSError as error:
            results.append(unreadable(path, error))
    return results
