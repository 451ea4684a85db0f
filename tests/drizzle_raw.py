"""A slow reader of recorded files of Drizzle: records, transactions, and what a replica says of itself.

It shares nothing with the readers of the workbench but the generated classes of the messages.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from workbench.systems.drizzle.formats import messages_pb2 as wire

KIND = wire.Statement.Type
Rows = Mapping[str, Mapping[str, int]]


@dataclass
class Record:
    """A record of a log. `sound`: its checksum fits, or it has none."""

    offset: int
    message: Any
    sound: bool = True
    commit: int | None = None
    length: int = 0


@dataclass
class Taken:
    """A transaction: its records in their order, equal ones once."""

    number: int
    server: int
    records: list[Record] = field(default_factory=list)
    repeated: int = 0

    @property
    def event(self) -> bool:
        return self.records[0].message.HasField("event")

    @property
    def numbers(self) -> list[int]:
        return [one.message.segment_id for one in self.records]

    @property
    def numbered(self) -> bool:
        return all(one.message.HasField("segment_id") for one in self.records)

    @property
    def taken_back(self) -> bool:
        return any(s.type == KIND.Value("ROLLBACK") for one in self.records for s in one.message.statement)

    @property
    def ends(self) -> bool:
        return any(one.message.end_segment for one in self.records)

    @property
    def whole(self) -> bool:
        """Whether all messages of it are there, numbered, each once."""
        return self.ends and self.numbers == list(range(1, len(self.records) + 1)) and not self.taken_back

    @property
    def lacks(self) -> list[int]:
        """Which messages are not there, below the highest that is."""
        return sorted(set(range(1, max(self.numbers) + 1)) - set(self.numbers))

    @property
    def bytes(self) -> int:
        return sum(one.length for one in self.records)

    def rows(self) -> dict[str, dict[str, int]]:
        """What it does to which tables, statements that were taken back left out: rows by operation."""
        found: dict[str, dict[str, int]] = {}
        open_: dict[tuple[str, str], int] = {}
        for statement in (s for one in self.records for s in one.message.statement):
            name = KIND.Name(statement.type)
            if name == "ROLLBACK_STATEMENT":
                open_ = {}
                continue
            told = _data(statement)
            if told is None:
                continue
            table, operation, count, ended = told
            open_[table, operation] = open_.get((table, operation), 0) + count
            if ended:
                for (of, does), rows in open_.items():
                    found.setdefault(of, {})[does] = found.get(of, {}).get(does, 0) + rows
                open_ = {}
        return found

    def seen(self) -> int:
        """Rows in all of its messages."""
        return sum(told[2] for one in self.records for s in one.message.statement if (told := _data(s)))


def _data(statement: Any) -> tuple[str, str, int, bool] | None:
    for operation in ("insert", "update", "delete"):
        if statement.HasField(f"{operation}_header"):
            header, data = getattr(statement, f"{operation}_header"), getattr(statement, f"{operation}_data")
            table = f"{header.table_metadata.schema_name}.{header.table_metadata.table_name}"
            return table, operation, len(data.record), data.end_segment
    return None


@dataclass
class Held:
    """What one log holds. `damage`: where nothing could be read; `cut`: where its last record is cut, and how much is there."""

    records: list[Record] = field(default_factory=list)
    damage: list[int] = field(default_factory=list)
    cut: tuple[int, int] | None = None

    def transactions(self) -> dict[tuple[int, int], Taken]:
        """Server id and number -> the transaction, in the order in which they begin."""
        found: dict[tuple[int, int], Taken] = {}
        for one in self.records:
            about = one.message.transaction_context
            mine = found.setdefault(
                (about.server_id, about.transaction_id), Taken(about.transaction_id, about.server_id)
            )
            if any(one.message == other.message and one.sound == other.sound for other in mine.records):
                mine.repeated += 1
            else:
                mine.records.append(one)
        return found


def log_of(data: bytes) -> Held:
    """A transaction.log, read from its beginning on, up to what is no record."""
    held, at = Held(), 0
    while at < len(data):
        kind, length = int.from_bytes(data[at : at + 4], "little"), int.from_bytes(data[at + 4 : at + 8], "little")
        if len(data) < at + 8 or len(data) < at + 12 + length:
            held.cut = (at, len(data) - at)
            break
        body, told = data[at + 8 : at + 8 + length], int.from_bytes(data[at + 8 + length : at + 12 + length], "little")
        try:
            message = wire.Transaction.FromString(body)
        except DecodeError:
            message = None
        if kind != 1 or message is None:
            held.damage.append(at)
        else:
            held.records.append(Record(at, message, told in (0, zlib.crc32(body)), None, length))
        at += length + 12
    return held


def table_of(data: bytes) -> Held:
    """The exported log of a master, or a queue, as lines of JSON."""
    held, at = Held(), 0
    for line in data.splitlines(keepends=True):
        row = json.loads(line)
        if "MESSAGE" in row:
            body, commit = base64.b64decode(row["MESSAGE"]), row["COMMIT_ID"]
            message = wire.Transaction.FromString(body)
        else:
            message, commit = text_format.Parse(row["msg"], wire.Transaction()), row["commit_order"]
            body = message.SerializeToString()
        held.records.append(Record(at, message, True, commit or None, len(body)))
        at += len(line)
    return held
