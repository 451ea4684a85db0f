"""The database of a Kanidm server (SQLite, an offline copy), read as the backup that it would make.

Nothing is written and no journal beside the file is replayed: a copy of a running server's database may lack its last
changes. Of the tables only those that a backup tells of are read; keys and indexes are not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from workbench.systems.kanidm.formats.backup import BACKUP
from workbench.systems.kanidm.formats.backup_fast import OPENS

_MAGIC = b"SQLite format 3\0"
_NAMES = (b"id2entry", b"db_sid")
_ONES = {
    "db_s_uuid": "SELECT data FROM db_sid WHERE id = 2",
    "db_d_uuid": "SELECT data FROM db_did WHERE id = 2",
    "db_ts_max": "SELECT data FROM db_op_ts WHERE id = 1",
}
_ROWS = 500
_NO_ENTRY = b',{"ent":{}}'
"""Stands for a row that is no entry: a reject in its place."""


def _is_database(head: bytes, name: str) -> bool:
    return head.startswith(_MAGIC) and all(one in head for one in _NAMES)


def as_backup(path: Path) -> Iterator[bytes]:
    """The text of a backup of this database."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            yield from _text(database)
    except sqlite3.Error as error:
        raise ValueError(f"the database is damaged ({type(error).__name__})") from None


def _text(database: sqlite3.Connection) -> Iterator[bytes]:
    ones = [
        b'"%s":%s' % (name.encode(), _bytes(row[0]))
        for name, asked in _ONES.items()
        if (row := database.execute(asked).fetchone())
    ]
    ruv = b",".join(_bytes(cid) for (cid,) in database.execute("SELECT cid FROM ruv ORDER BY cid"))
    yield b"{" + b",".join([*ones, b'"repl_meta":{"V1":{"ruv":[' + ruv + b']}},"entries":['])
    rows, first = database.execute("SELECT data FROM id2entry ORDER BY id"), True
    while some := rows.fetchmany(_ROWS):
        text = b"".join(map(_item, some))
        yield text[1:] if first else text
        first = False
    yield b"]}"


def _item(row: tuple[object]) -> bytes:
    data = b"," + _bytes(row[0])
    return data if data.startswith(OPENS) else _NO_ENTRY


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


DATABASE = replace(BACKUP, name="kanidm.sqlite", sniff=_is_database, stream=as_backup)
"""Its rows are those of a backup."""
