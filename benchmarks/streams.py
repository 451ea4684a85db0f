"""Loading a transaction.log, beside plain readers of protobuf, in one run: `make bench` or `python -m benchmarks.streams -h`.

The log is mixed: half of its bytes are small transactions, half bulk ones in messages of a mebibyte. The plain reader is what
one writes first: framing, checksum, `FromString`, and a walk over all rows; it uses one core. Another one asks of each row what
the workbench asks, too: has it as many values as its header has columns? `protoc --decode` is C++, and
prints what it reads: its time is that of decoding and of printing, and it knows neither framing nor checksums, so it is given
the messages of a part of the log as fields of one.

A load does more than read: it hashes the input, writes the evidence and puts the transactions together. `--reading` shows
what each of these takes of one core, in processor time, which other work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.ingest import peak_memory
from workbench.systems.drizzle.formats import messages_pb2 as messages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
_HEAD = struct.Struct("<II")
_BULK_ROWS = 24_000
_DECODED = 64 << 20


def _statement(kind: str, rows: int, first: int) -> Any:
    made = messages.Statement(
        type=messages.Statement.Type.Value(kind), start_timestamp=1330211976689868, end_timestamp=1330211976689999
    )
    header = getattr(made, f"{kind.lower()}_header")
    header.table_metadata.schema_name, header.table_metadata.table_name = "shop", "orders"
    columns = [("id", "BIGINT"), ("customer", "VARCHAR"), ("amount", "DECIMAL"), ("note", "VARCHAR")]
    types = messages.Table.Field.FieldType
    data = getattr(made, f"{kind.lower()}_data")
    data.segment_id, data.end_segment = 1, True
    if kind == "INSERT":
        for name, of in columns:
            header.field_metadata.add(type=types.Value(of), name=name)
        for number in range(first, first + rows):
            values = [b"%d" % number, b"customer %d" % (number % 977), b"%d.00" % (number % 89), b""]
            data.record.add(insert_value=values, is_null=[False, False, False, True])
    else:
        header.key_field_metadata.add(type=types.BIGINT, name="id")
        header.set_field_metadata.add(type=types.VARCHAR, name="note")
        for number in range(first, first + rows):
            data.record.add(
                key_value=[b"%d" % number], after_value=[b"sent on day %d" % (number % 31)], is_null=[False]
            )
    return made


def _message(transaction: int, statements: list[Any], segment: int = 1, ended: bool = True) -> bytes:
    made = messages.Transaction(segment_id=segment, end_segment=ended, statement=statements)
    about = made.transaction_context
    about.server_id, about.transaction_id = 1, transaction
    about.start_timestamp = about.end_timestamp = 1330211976000000 + 1000 * transaction
    return made.SerializeToString()


def generate(path: Path, size: int) -> None:
    """Write a log of about that many bytes."""
    number = rows = 0
    bulk = {kind: _statement(kind, _BULK_ROWS, 1_000_000) for kind in ("INSERT", "UPDATE")}
    with open(path, "wb") as out:

        def put(body: bytes) -> int:
            out.write(_HEAD.pack(1, len(body)) + body + zlib.crc32(body).to_bytes(4, "little"))
            return len(body) + 12

        while out.tell() < size:
            number += 1
            kind = "INSERT" if number % 2 else "UPDATE"
            pieces, written = 2 + number % 3, 0
            for piece in range(1, pieces + 1):
                data = getattr(bulk[kind], f"{kind.lower()}_data")
                data.segment_id, data.end_segment = piece, piece == pieces
                written += put(_message(number, [bulk[kind]], piece, piece == pieces))
            while written > 0:
                number += 1
                rows += 3
                statements = [_statement("INSERT", 2, rows)]
                if number % 3 == 0:
                    statements.append(_statement("UPDATE", 1, rows))
                written -= put(_message(number, statements))


def plain_reader(path: Path) -> tuple[int, int]:
    """(messages, rows) as a plain reader finds them: framing, checksum, messages, and a walk over the rows."""
    count = rows = 0
    read = messages.Transaction.FromString
    with open(path, "rb", buffering=1 << 22) as file:
        while head := file.read(8):
            _, length = _HEAD.unpack(head)
            body = file.read(length)
            (stored,) = struct.unpack("<I", file.read(4))
            assert not stored or zlib.crc32(body) == stored
            for statement in read(body).statement:
                for data in (statement.insert_data, statement.update_data, statement.delete_data):
                    for _ in data.record:
                        rows += 1
            count += 1
    return count, rows


def checking_reader(path: Path) -> tuple[int, int]:
    """The same with what the workbench asks: has each row as many values as columns, has each transaction an end?"""
    count = rows = ragged = 0
    read = messages.Transaction.FromString
    ended: dict[tuple[int, int], bool] = {}
    with open(path, "rb", buffering=1 << 22) as file:
        while head := file.read(8):
            _, length = _HEAD.unpack(head)
            body = file.read(length)
            (stored,) = struct.unpack("<I", file.read(4))
            assert not stored or zlib.crc32(body) == stored
            message = read(body)
            about = message.transaction_context
            ended[about.server_id, about.transaction_id] = message.end_segment
            for statement in message.statement:
                width = len(statement.insert_header.field_metadata)
                for inserted in statement.insert_data.record:
                    ragged += len(inserted.insert_value) != width
                    rows += 1
                keys, width = (
                    len(statement.update_header.key_field_metadata),
                    len(statement.update_header.set_field_metadata),
                )
                for updated in statement.update_data.record:
                    ragged += len(updated.key_value) != keys or len(updated.after_value) != width
                    rows += 1
                keys = len(statement.delete_header.key_field_metadata)
                for deleted in statement.delete_data.record:
                    ragged += len(deleted.key_value) != keys
                    rows += 1
            count += 1
    assert not ragged and all(ended.values())
    return count, rows


def decoded(path: Path, where: Path) -> tuple[int, float] | None:
    """(bytes, seconds) of `protoc --decode` of the first messages; None where there is no protoc."""
    if not shutil.which("protoc"):
        return None
    source = ROOT / "workbench" / "systems" / "drizzle" / "formats" / "messages.proto"
    batch = where / "batch.proto"
    text = source.read_text(encoding="utf-8")
    batch.write_text(text + "\nmessage Batch { repeated Transaction transaction = 1; }\n", encoding="utf-8")
    data = bytearray()
    with open(path, "rb") as file:
        while len(data) < _DECODED and (head := file.read(8)):
            _, length = _HEAD.unpack(head)
            data += b"\x0a" + _varint(length) + file.read(length)
            file.read(4)
    given = where / "batch.bin"
    given.write_bytes(data)
    with open(given, "rb") as file:
        started = time.perf_counter()
        command = ["protoc", "--decode=workbench.drizzle.Batch", "-I", str(where), batch.name]
        subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, check=True)
        return len(data), time.perf_counter() - started


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def workbench(folder: Path, spark: SparkSession) -> tuple[int, float]:
    """(records, seconds) of one load into a new case."""
    from workbench import Case

    with tempfile.TemporaryDirectory() as where:
        case = Case.create(Path(where) / "case")
        started = time.perf_counter()
        loaded = case.load([folder], spark)
        return loaded.rows, time.perf_counter() - started


def by_step(log: Path) -> dict[str, float]:
    """Seconds of processor time, in this process: the plain reader; reading and writing segments; putting them together."""
    from workbench.engine.assembling import assemble
    from workbench.engine.partition_writer import read_shares, shares_of
    from workbench.model import Source

    source, found = Source(log.name, "snapshot", "primary"), {}
    with tempfile.TemporaryDirectory() as where:
        started = time.process_time()
        plain_reader(log)
        found["plain reader"] = time.process_time() - started
        started = time.process_time()
        checking_reader(log)
        found["plain reader that checks rows"] = time.process_time() - started
        started = time.process_time()
        results = list(read_shares(shares_of(0, log, source, "drizzle.transaction-log"), Path(where)))
        found["reading, writing segments"] = time.process_time() - started
        parts = [part for result in results for part in result["parts"] if part["table"] == "segments"]
        started = time.process_time()
        assemble(parts, Path(where), source, lost=False)
        found["putting transactions together"] = time.process_time() - started
    return found


def main() -> None:
    """Generate the log, run all readers in turn, print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=int, default=256)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--data", type=Path, default=ROOT / "bench-data", help="where the generated log is kept")
    options.add_argument("--reading", action="store_true", help="measure the steps of a load instead, on one core")
    asked = options.parse_args()
    folder = asked.data / f"stream-{asked.megabytes}"
    log = folder / "primary.log"
    if not log.exists():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"generating {asked.megabytes:,} MB in {folder} ...")
        generate(log, asked.megabytes * 1_000_000)
    size = log.stat().st_size / 1e6
    if asked.reading:
        by_step(log)  # warm
        for name, seconds in by_step(log).items():
            print(f"{name:32}{seconds:9.2f} s{size / seconds:8.0f} MB/s")
        return

    from workbench import spark_session

    spark = spark_session("local[2]", size="large")
    spark.range(10).collect()
    best: dict[str, float] = {}
    count = rows = records = 0
    with peak_memory() as memory:
        for _ in range(asked.rounds):
            started = time.perf_counter()
            count, rows = plain_reader(log)
            best["plain reader, one core"] = min(best.get("plain reader, one core", 1e9), time.perf_counter() - started)
            started = time.perf_counter()
            assert checking_reader(log) == (count, rows)
            best["one that checks rows"] = min(best.get("one that checks rows", 1e9), time.perf_counter() - started)
            records, seconds = workbench(folder, spark)
            best["workbench, two cores"] = min(best.get("workbench, two cores", 1e9), seconds)
    assert records == count, "the readers disagree"
    with tempfile.TemporaryDirectory() as where:
        told = decoded(log, Path(where))
    print(
        f"{size:,.0f} MB, {count:,} messages, {rows:,} rows, {os.cpu_count()} cores; best of {asked.rounds} rounds, in turn\n"
    )
    plain = best["plain reader, one core"]
    for name, seconds in best.items():
        print(f"{name:28}{seconds:9.2f} s{size / seconds:8.0f} MB/s  {plain / seconds:.2f} times the plain reader")
    if told:
        taken, seconds = told
        print(
            f"{'protoc --decode':28}{seconds:9.2f} s{taken / 1e6 / seconds:8.0f} MB/s  of the first {taken / 1e6:,.0f} MB"
        )
    else:
        print("protoc --decode: not measured, there is no protoc here")
    print(f"\npeak memory: Python {memory['python']:,.0f} MB in all processes, Java {memory['java']:,.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
