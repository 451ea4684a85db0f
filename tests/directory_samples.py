"""Samples of the small formats of 389 DS, and the shared way to read them in tests."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from workbench.model import Format, Parsed, Piece, Reject, Source, merge_facts
from workbench.systems.ds389.formats.dbscan import DBSCAN
from workbench.systems.ds389.formats.directory import AGREEMENTS, REPLICA
from workbench.systems.ds389.formats.entries import ENTRIES
from workbench.systems.ds389.formats.reports import LAG_REPORT, MONITOR, REPLCHECK, STATUS
from workbench.systems.ds389.formats.ruv_text import RUV

FORMATS = (REPLICA, AGREEMENTS, ENTRIES, DBSCAN, RUV, STATUS, MONITOR, REPLCHECK, LAG_REPORT)
_FOLDER = Path(__file__).parent / "samples" / "ds389" / "directory"
_ROOT = Path(__file__).parent.parent

"""The full collection of real files; tests over it run only where it exists."""


def sample(name: str) -> bytes:
    """The bytes of a sample, decompressed."""
    path = _FOLDER / name
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def parse(kind: Format, *pieces: bytes, server: str = "s1") -> Parsed:
    """What the reader of a format makes of a file that comes in these pieces, folded as `inspect` folds it."""
    reader, offset, whole = kind.reader(), 0, Parsed(facts=dict(kind.empty))
    tables: dict[str, list[Any]] = {}
    for number, data in enumerate(pieces):
        piece = Piece(Source("file", "snapshot", server), data, offset, number == len(pieces) - 1)
        parsed = reader(piece)
        assert 0 <= len(parsed.rejects) <= parsed.rows
        assert all(isinstance(reject, Reject) and reject.reason for reject in parsed.rejects)
        assert all(offset <= reject.offset <= offset + len(data) for reject in parsed.rejects)
        whole.rows += parsed.rows
        whole.rejects += parsed.rejects
        whole.facts = merge_facts([whole.facts, parsed.facts])
        for name, table in parsed.tables.items():
            table.validate(full=True)
            tables.setdefault(name, []).extend(table.to_pylist())
        offset += len(data)
    whole.tables = tables
    return whole


def rows(parsed: Parsed, table: str, *without: str) -> list[dict[str, Any]]:
    """The rows of a parsed table, without some columns."""
    return [{key: value for key, value in row.items() if key not in without} for row in parsed.tables.get(table, [])]


def elements(parsed: Parsed) -> set[tuple[Any, ...]]:
    """Every element of every vector in the facts, as (holder, origin, min, max, url)."""
    return {
        (holder, origin, element["min"], element["max"], element["url"])
        for holder, vector in parsed.facts.get("vectors", {}).items()
        for origin, element in vector["elements"].items()
    }


def everything(parsed: Parsed) -> str:
    """All that leaves a parser, as one text: for looking whether a secret is in it."""
    return repr((parsed.rejects, parsed.tables, parsed.facts))
