"""What one worker does: read a share of the files and write it as Parquet parts. No Spark in here.

A part is written under a name of its own into a folder of this load and returned by name; it belongs to the case only
once it is moved to its table and the manifest lists it. So a task may run twice, on two workers at once, die half way or
outlive its load: what it left is never read, and gone with the folder.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.engine.change_fingerprints import likeness
from workbench.engine.digests import digest
from workbench.engine.parquet_read import footer_of
from workbench.engine.states import digest_of, numbered
from workbench.intake.files import CarefulReader, packed, pieces
from workbench.model import LINES, Piece, Reject, Source, merge_facts
from workbench.systems import format_with, system_named
from workbench.tables import COLUMNS, SCHEMAS, SOURCE, joined, order_of, table

RANGE = 32 << 20
"""A share of a large file: long enough to pay for its task, short enough to spread over the workers and to be tried again."""

ROWS_PER_PART = 250_000
_ROWS_FOUND = {"changes": 1 << 13, "positions": 1 << 14, "states": 1 << 14, "listed": 1 << 14, "records": 1 << 16}
"""Rows that are read to find one of them: half as many make a load of changes a twentieth slower."""

_INDEXED = {"number", "hi", "lo", "origin", "position", "server", "at", "logged_at"}
_PLAIN = {
    "number": "DELTA_BINARY_PACKED",
    "offset": "DELTA_BINARY_PACKED",
    "hi": "DELTA_BINARY_PACKED",
    "lo": "DELTA_BINARY_PACKED",
}
_FEW = {
    "snapshot",
    "server",
    "suffix",
    "file",
    "kind",
    "origin",
    "operation",
    "evidence",
    "outcome",
    "step",
    "severity",
    "state",
    "mark",
}


@dataclass(frozen=True)
class Share:
    """A range of one file, or (start 0, end None) a whole one that cannot be split."""

    number: int
    """Which input of the load."""
    path: str
    source: Source
    kind: str
    start: int = 0
    end: int | None = None
    size: int = 0
    known: bool = True
    """A frame begins at `start`; False: the first one of this share is guessed."""


def shares_of(number: int, path: Path, source: Source, kind: str) -> list[Share]:
    """The shares of one file: ranges of it where lines or records stand for themselves, else the whole file."""
    size, read = path.stat().st_size, format_with(kind)
    if not read.splittable or read.stream or size <= RANGE or packed(path):
        return [Share(number, str(path), source, kind, size=size)]
    return [
        Share(
            number, str(path), source, kind, at, min(at + RANGE, size), min(RANGE, size - at), not (read.frames and at)
        )
        for at in range(0, size, RANGE)
    ]


def out_of_step(shares: Iterable[Share], results: Iterable[dict[str, Any]]) -> list[Share]:
    """The shares to read again, each from where the one before it ends: where they begin was guessed, and wrongly.

    Each round makes the first wrong share of a file right, for all before it are. A guess costs its share only, because two
    ways through a file soon meet: what follows a place does not depend on how one came there.
    """
    found = {(result["number"], result["frames"]["end"]): result["frames"] for result in results if result["frames"]}
    wrong, file, at = [], -1, 0
    for share in sorted(shares, key=lambda one: (one.number, one.start)):
        if seen := found.get((share.number, share.end)):
            file, at = share.number, at if share.number == file else 0
            if seen["known"] != at and seen["first"] != (at if at < (share.end or 0) else None):
                wrong.append(replace(share, start=at, known=True))
            at = max(at, seen["last"] or 0)
    return wrong


def streams(shares: Iterable[Share]) -> list[list[Share]]:
    """The shares by stream: what one reader must read in order stays together, in order."""
    found: dict[tuple[Any, ...], list[Share]] = {}
    for share in shares:
        splittable = format_with(share.kind).splittable
        key = (share.number, share.start) if splittable else (share.kind, share.source.snapshot, share.source.server)
        found.setdefault(key, []).append(share)
    return list(found.values())


class _Writer:
    """Collects the tables of one share and writes them as parts."""

    def __init__(self, share: Share, evidence: Path) -> None:
        self.share, self.evidence = share, evidence
        self.system = system_named(share.kind.split(".", 1)[0])
        self.waiting: dict[str, list[pa.Table]] = {}
        self.counts: dict[str, int] = {}
        self.parts: list[dict[str, Any]] = []

    def add(self, name: str, rows: pa.Table) -> None:
        """Take rows of a table as the parser made them."""
        if not len(rows):
            return
        self.waiting.setdefault(name, []).append(rows)
        self.counts[name] = self.counts.get(name, 0) + len(rows)
        if self.counts[name] >= ROWS_PER_PART:
            self.flush(name)

    def flush(self, name: str) -> None:
        """Write what waits for the table; with it the sorted positions that a log holds, or that other evidence names."""
        self.counts[name] = 0
        rows = joined(self.waiting.pop(name))
        if name == "changes":
            self._changes(rows)
            return
        if name == "records":
            self._records(rows)
            return
        if name == "states":
            rows = numbered(rows)
            self._write("digests", digest_of(rows))
        self._write(name, rows)
        if name in ("applied", "entry_states"):
            self._named(rows.filter(named_by(name)))

    def _records(self, rows: pa.Table) -> None:
        """Records of a physical log, in the order of the log: a dump may have them the other way round, or twice."""
        hi, lo = rows["hi"].to_numpy(), rows["lo"].to_numpy()
        order = order_of(hi, lo)
        if bool((np.diff(order) != 1).any()):
            rows = rows.take(pa.array(order))
        self._write("records", rows, *_ends(hi[order], lo[order]))

    def _changes(self, rows: pa.Table) -> None:
        kind = rows["kind"]
        real = (
            rows
            if kind.type != pa.string() and _only(kind, "change")
            else rows.filter(pc.equal(kind.cast(pa.string()), "change"))
        )
        origin = real["origin"].combine_chunks()
        if not pa.types.is_dictionary(origin.type):
            origin = origin.dictionary_encode()
        # The exact comparison and the digests rely on the order; exports are sorted, but nothing promises it.
        hi, lo = real["hi"].to_numpy(), real["lo"].to_numpy()
        order = order_of(hi, lo)
        hi, lo, origin = hi[order], lo[order], origin.take(pa.array(order))
        ends = _ends(hi, lo)
        self._write("changes", rows, *ends)
        of = self.parts[-1]["name"]
        if ends:
            self._write("positions", pa.table({"origin": origin, "hi": hi, "lo": lo}), *ends)
            self._write("digests", digest(origin, hi, lo, self.system.bucket_shift))
            self._alike(real, of)

    def _alike(self, changes: pa.Table, of: str) -> None:
        """The numbers by which twins among these changes are found; `of` is the part that holds them."""
        if self.system.proving is not None:
            entry, text = (changes[name].cast(pa.string()).combine_chunks() for name in ("entry", "body"))
            numbers = np.sort(likeness(entry, text, self.system.proving()))
            self._write("alike", pa.table({"number": numbers}))
            self.parts[-1]["of"] = of

    def _named(self, rows: pa.Table) -> None:
        """The changes that these rows name, each once and in order; of a server with several suffixes, each suffix by itself.

        A row that does not tell its suffix there names nothing: origins of two suffixes often bear the same name, and a
        change of the one would be missing in every log of the other.
        """
        source, several = self.share.source, bool(self.share.source.suffixes)
        suffix = _suffix_of(rows, source, self.system.below)
        for one in pc.unique(suffix).drop_null().to_pylist() if several or source.suffix else [None]:
            mine = rows.filter(pc.equal(suffix, one)) if one else rows
            found = pc.unique(mine["position"].cast(pa.string())).drop_null().to_pylist()
            keys = sorted({self.system.change_of(position) for position in found})
            if keys:
                origin = pa.array(map(self.system.origin_of, keys), pa.string()).dictionary_encode()
                hi, lo = (np.array(half, np.int64) for half in zip(*map(self.system.halves, keys), strict=True))
                self._write("named", pa.table({"origin": origin, "hi": hi, "lo": lo}), *_ends(hi, lo))
                self.parts[-1] |= {"origins": sorted(origin.dictionary.to_pylist()), "suffix": one}

    def _write(self, name: str, rows: pa.Table, *ends: tuple[int, int]) -> None:
        self.parts.append(write_part(self.evidence, name, rows, self.share.source, *ends, below=self.system.below))


def named_by(name: str) -> pc.Expression:
    """Which rows of the table prove that a change was made, wherever it is now.

    An operation that a client asked for and that was refused has a position and is no change; so is one that was only
    cancelled. What came over a link and was refused is one: its supplier has it.
    """
    if name == "entry_states":
        return pc.field("position").is_valid()
    outcome = pc.field("outcome")
    sent = (outcome == "refused") & pc.field("replicated")
    return pc.field("position").is_valid() & (
        outcome.isin(["applied", "received", "acknowledged", "dropped", "skipped"]) | sent
    )


def _ends(hi: np.ndarray, lo: np.ndarray) -> list[tuple[int, int]]:
    """The first and the last of sorted positions; nothing of none."""
    return [(int(hi[at]), int(lo[at])) for at in (0, -1)] if len(hi) else []


def _only(column: pa.ChunkedArray, value: str) -> bool:
    return all(pc.all(pc.equal(chunk.cast(pa.string()), value)).as_py() for chunk in column.chunks)


def _constant(value: str | None, rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(rows, pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([value]))


def _with_source(name: str, rows: pa.Table, source: Source, below: str) -> pa.Table:
    """The table with its source columns in front, as in the schema. A parser's own suffix and server go before the file's."""
    columns: dict[str, Any] = {column: _constant(getattr(source, column), len(rows)) for column in SOURCE}
    columns["suffix"] = _suffix_of(rows, source, below)
    if "server" in rows.column_names:
        columns["server"] = pc.coalesce(rows["server"], pa.scalar(source.server, pa.string()))
    for column, (kind, _) in COLUMNS[name].items():
        have = rows[column]
        columns[column] = have if pa.types.is_dictionary(have.type) else have.cast(kind)
    return pa.table({column: columns[column] for column in SCHEMAS[name].names})


def _suffix_of(rows: pa.Table, source: Source, below: str) -> pa.ChunkedArray:
    """What each row names itself, else the longest of the server's suffixes that its target lies below, else that of the file.

    None for a result whose target lies below none of them: a server may hold suffixes that nobody collected.
    """
    if "suffix" in rows.column_names:
        return pc.coalesce(rows["suffix"], pa.scalar(source.suffix, pa.string()))
    known = source.suffixes or ((source.suffix,) if source.suffix and "outcome" in rows.column_names else ())
    if not (known and below and "target" in rows.column_names) or rows["target"].null_count == len(rows):
        return _constant(source.suffix, len(rows))
    target = rows["target"].cast(pa.string())
    if not source.suffixes and pc.all(pc.ends_with(target, below + known[0])).as_py():
        return _constant(source.suffix, len(rows))  # nearly all of them, and quickly told
    lower = pc.utf8_lower(target)
    if pc.any(pc.or_(pc.match_substring(lower, f"{below} "), pc.match_substring(lower, f" {below}"))).as_py():
        lower = pc.replace_substring_regex(lower, rf" *({below}) *", r"\1")
    found: Any = pa.scalar(None, pa.string())
    for suffix in sorted(known, key=len):
        inside = pc.or_(pc.equal(lower, suffix.lower()), pc.ends_with(lower, below + suffix.lower()))
        found = pc.if_else(pc.fill_null(inside, False), suffix, found)
    return pc.if_else(pc.is_null(target), pa.scalar(source.suffix, pa.string()), found)


def write_part(
    evidence: Path,
    name: str,
    rows: pa.Table | list[dict[str, Any]],
    source: Source,
    *ends: tuple[int, int],
    below: str = "",
) -> dict[str, Any]:
    """Write rows of one source as a Parquet part of the table; returns what the manifest says of it.

    `ends` are the lowest and the highest (hi, lo) of sorted positions; `below` is that of the system. The folder
    `evidence` must exist: a task that outlives its load must not bring back what the load has taken away.
    """
    folder = evidence / name
    folder.mkdir(exist_ok=True)
    whole = _with_source(name, table(name, rows) if isinstance(rows, list) else rows, source, below)
    part = f"{uuid.uuid4().hex}.parquet"
    plain = {column: _PLAIN[column] for column in whole.column_names if column in _PLAIN}
    pq.write_table(
        whole,
        folder / part,
        compression="zstd",
        compression_level=1,
        use_dictionary=[column for column in whole.column_names if column in _FEW],
        column_encoding=plain or None,
        store_schema=False,
        row_group_size=_ROWS_FOUND.get(name),
        write_batch_size=1 << 14,
        write_page_checksum=True,
        write_statistics=[column for column in whole.column_names if column in _INDEXED],
    )
    with open(folder / part, "rb") as written:
        footer = footer_of(written)
    about: dict[str, Any] = {"table": name, "name": part, "rows": len(whole), "footer": footer}
    return {**about, "first": ends[0], "last": ends[1]} if ends else about


def _whatever_comes(found: Iterator[Piece | Reject]) -> Iterator[Piece | Reject]:
    """The pieces; a file that vanishes or breaks while it is read is a reject, not the end of the load."""
    try:
        yield from found
    except OSError as error:
        yield Reject(0, f"cannot be read: {error.strerror}")


def read_shares(shares: list[Share], evidence: Path) -> Iterator[dict[str, Any]]:
    """Read the shares one after the other; each gives what it read and the names of its parts.

    Shares of one stream (a log and its rotated predecessors) follow each other and are read by one reader.
    """
    reader, stream = None, None
    for share in shares:
        kind = format_with(share.kind)
        key = (share.kind, share.source.snapshot, share.source.server, share.source.suffix)
        if reader is None or kind.splittable or key != stream:
            reader, stream = CarefulReader(kind), key
        writer, rows, rejects = _Writer(share, evidence), 0, 0
        facts: dict[str, Any] = {}
        frames = {"end": share.end, "known": share.start if share.known else None, "first": None, "last": None}
        found = pieces(
            Path(share.path),
            *(share.source, kind.unit, share.start, share.end, kind.opens, kind.stream, kind.frames, share.known),
        )
        # What a range leaves open is not finished by the next one, which has a reader of its own.
        close = (
            [Piece(share.source, b"", share.end, True)] if share.end and kind.splittable and kind.unit == LINES else []
        )
        for piece in chain(_whatever_comes(found), close):
            if isinstance(piece, Reject):
                rows += 1
                bad = [piece]
            else:
                if piece.frames:
                    first = piece.offset if frames["first"] is None else frames["first"]
                    frames |= {"first": first, "last": piece.frames[-1][1]}
                parsed = reader(piece)
                rows += parsed.rows
                bad = parsed.rejects
                facts = merge_facts([facts, parsed.facts])
                for name, made in parsed.tables.items():
                    writer.add(name, made)
            rejects += len(bad)
            if bad:
                writer.add("rejects", table("rejects", [asdict(reject) for reject in bad]))
        for name in list(writer.waiting):
            writer.flush(name)
        result = {"number": share.number, "rows": rows, "rejected": rejects, "facts": facts, "parts": writer.parts}
        yield {**result, "frames": frames if kind.frames and share.end is not None else None}
