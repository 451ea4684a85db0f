"""Lines of the logs of 389 DS, and the shared way to read them in tests."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from workbench.intake.files import CarefulReader
from workbench.model import Format, Parsed, Piece, Source, merge_facts
from workbench.systems.ds389.formats.access_log import ACCESS_LOG
from workbench.systems.ds389.formats.audit_log import AUDIT_LOG
from workbench.systems.ds389.formats.errors_log import ERRORS_LOG, ERRORS_LOG_PRETTY
from workbench.tables import COLUMNS

SAMPLES = Path(__file__).parent / "samples" / "ds389"
SOURCE = Source("log", "snapshot", "s1")
LOGS = (ACCESS_LOG, ERRORS_LOG, ERRORS_LOG_PRETTY, AUDIT_LOG)

STAMP = "[20/Nov/2026:14:42:07.217971982 +0000]"
CSN = "6b005c13000000030000"
RESULT = f"{STAMP} conn=10 op=7 RESULT err=0 tag=105 nentries=0 wtime=0.000389772 optime=0.003129032 etime=0.003517412"
PLUGIN = f"{STAMP} - DEBUG - NSMMReplicationPlugin - "


def sample(name: str) -> bytes:
    """A captured log, decompressed."""
    return gzip.decompress((SAMPLES / name).read_bytes())


def read(kind: Format, data: bytes | str, size: int | None = None) -> tuple[dict[str, pa.Table], Parsed]:
    """The log cut into pieces of about that many bytes; what came out, folded."""
    data = data.encode() if isinstance(data, str) else data
    reader, parsed, at, size = kind.reader(), [], 0, size or len(data) or 1
    while at < len(data) or not parsed:
        end = data.find(b"\n", min(at + size, len(data)) - 1) + 1 or len(data)
        parsed.append(reader(Piece(SOURCE, data[at:end], at, end == len(data))))
        at = end
    whole = Parsed(sum(p.rows for p in parsed), [r for p in parsed for r in p.rejects])
    whole.facts = merge_facts([dict(kind.empty), *(p.facts for p in parsed)])
    names = sorted({name for p in parsed for name in p.tables})
    for name in names:
        found = pa.concat_tables([p.tables[name] for p in parsed if name in p.tables])
        whole.tables[name] = found.sort_by("offset")
        assert [column for column in found.schema.names if column != "suffix"] == list(COLUMNS[name])
    assert whole.rows == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert len({reject.offset for reject in whole.rejects}) == len(whole.rejects) <= whole.rows
    return whole.tables, whole


def rows(kind: Format, *lines: str, table: str = "applied") -> list[dict]:
    """The rows that these lines, all readable, give."""
    tables, parsed = read(kind, "\n".join(lines) + "\n")
    assert not parsed.rejects, parsed.rejects
    return tables[table].to_pylist() if table in tables else []


def comparable(tables: dict[str, pa.Table], without: str = "") -> dict[str, list[dict]]:
    """Tables as rows, without a column."""
    return {name: found.drop_columns([without] if without else []).to_pylist() for name, found in tables.items()}


def same_in_pieces(kind: Format, data: bytes | str, *sizes: int) -> bool:
    """True if the log gives the same in one piece and in pieces of these sizes."""
    tables, parsed = read(kind, data)
    pieces = [read(kind, data, size) for size in sizes]
    return all(comparable(found) == comparable(tables) and part.facts == parsed.facts for found, part in pieces)


def kinds(head: bytes, name: str = "any.log") -> list[str]:
    """The names of the formats that know this log."""
    return [kind.name for kind in LOGS if kind.sniff(head, name)]


def json_time(stamp: str) -> str:
    """A time stamp of the text form as the JSON forms write it."""
    moment = datetime.strptime(stamp[:20] + " +0000", "%d/%b/%Y:%H:%M:%S %z").replace(tzinfo=None)
    return moment.isoformat() + stamp[20:]


FAULT_MARK = "here the reader fails"


def failing(kind: Format) -> Format:
    """The format with a reader that fails on a piece that holds FAULT_MARK - after it has remembered all of it."""

    class Faulty:
        def __init__(self) -> None:
            self.reader = kind.reader()

        def __call__(self, piece: Piece) -> Parsed:
            parsed = self.reader(piece)
            if FAULT_MARK.encode() in piece.data:
                raise IndexError("a part of the data")
            return parsed

    return replace(kind, reader=lambda: CarefulReader(replace(kind, reader=Faulty)))
