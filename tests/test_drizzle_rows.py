"""The rows of transactions, read again from the log: as the contract has them, or refused by name."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import zstandard
from drizzle_samples import expected, record
from drizzle_samples import sample as bytes_of
from stream_samples import committed, log_of, records

from workbench.model import Problem
from workbench.systems.drizzle.formats.messages_pb2 import Statement, Table, Transaction
from workbench.systems.drizzle.ids import content_of
from workbench.systems.drizzle.rows import (
    Delete,
    Insert,
    Log,
    Place,
    Unsafe,
    Update,
    final_rows,
    operations,
    reading,
)

WITH_ROWS = sorted(name for name, told in expected().items() if "final_rows" in told)


def rows_in(path: Path, data: bytes) -> Any:
    with reading(path) as log:
        return final_rows(log.operations(places) for _, places in committed(data))


@pytest.mark.parametrize("name", WITH_ROWS)
def test_tables_hold_what_the_committed_transactions_left(name: str) -> None:
    assert rows_in(log_of(name), bytes_of(name)) == expected()[name]["final_rows"]


def test_enough_files_tell_what_is_left() -> None:
    assert len(WITH_ROWS) == 15


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gz", "zst"])
def test_however_it_is_packed(tmp_path: Path, pack: Any) -> None:
    name = "07_interleaved_bulk.log"
    (tmp_path / name).write_bytes(pack(bytes_of(name)))
    assert rows_in(tmp_path / name, bytes_of(name)) == expected()[name]["final_rows"]


def test_of_a_packed_log_that_was_cut_what_is_there_is_read(tmp_path: Path) -> None:
    data = bytes_of("01_simple.log")
    places = committed(data)[3][1]
    whole = gzip.compress(data, 0)
    (tmp_path / "cut.log.gz").write_bytes(whole[: places[0].offset + 2000])
    with reading(tmp_path / "cut.log.gz") as log:
        assert len(list(log.operations(places))) == 3
        with pytest.raises(Problem, match="shorter than when it was loaded"):
            list(log.operations(committed(data)[-1][1]))


def test_a_ragged_row_is_refused_with_its_key() -> None:
    data = bytes_of("16_ragged_update.log")
    with reading(log_of("16_ragged_update.log")) as log, pytest.raises(Unsafe) as refused:
        final_rows(log.operations(places) for _, places in committed(data))
    assert "a row of test.person (key 2) cannot be read safely" in refused.value.what
    assert "values: 2" in refused.value.what and "columns in the header: 1" in refused.value.what
    assert refused.value.where.endswith("16_ragged_update.log.gz:705, statement 0")


# --- each way in which a row can be unsafe


def message(**header: Any) -> Transaction:
    whole = Transaction()
    context = whole.transaction_context
    context.server_id, context.transaction_id, context.start_timestamp, context.end_timestamp = 1, 7, 1, 2
    return whole


def inserting(values: list[bytes], null: list[bool], *kinds: int) -> bytes:
    whole = message()
    statement = whole.statement.add(type=Statement.INSERT, start_timestamp=1, end_timestamp=2)
    header = statement.insert_header
    header.table_metadata.schema_name, header.table_metadata.table_name = "s", "t"
    for at, kind in enumerate(kinds):
        header.field_metadata.add(type=kind, name=f"c{at}")  # type: ignore[arg-type]
    statement.insert_data.segment_id, statement.insert_data.end_segment = 1, True
    statement.insert_data.record.add(insert_value=values, is_null=null)
    return whole.SerializeToString()


F = Table.Field
REFUSED = {
    "a value too few": ([b"1"], [False, False], (F.INTEGER, F.VARCHAR)),
    "a mark too few": ([b"1", b""], [False], (F.INTEGER, F.VARCHAR)),
    "no marks": ([b"1", b""], [], (F.INTEGER, F.VARCHAR)),
    "a value too many": ([b"1", b"x"], [False, False], (F.INTEGER,)),
    "no columns": ([], [], ()),
    "null with a value": ([b"1", b"x"], [False, True], (F.INTEGER, F.VARCHAR)),
    "text for a number": ([b"1 OR 1=1"], [False], (F.INTEGER,)),
    "text for a decimal": ([b"Ana"], [False], (F.DECIMAL,)),
    "text for a double": ([b"nan"], [False], (F.DOUBLE,)),
    "text for a day": ([b"2012-02-29'"], [False], (F.DATE,)),
    "a time for a moment": ([b"23:59:59"], [False], (F.EPOCH,)),
    "a day for a moment": ([b"2012-02-29"], [False], (F.DATETIME,)),
    "a moment for a time": ([b"2012-02-29 23:59:59"], [False], (F.TIME,)),
    "text for truth": ([b"maybe"], [False], (F.BOOLEAN,)),
    "text for a uuid": ([b"550e8400"], [False], (F.UUID,)),
    "text for an address": ([b"localhost"], [False], (F.IPV6,)),
    "a line behind a number": ([b"1\n"], [False], (F.BIGINT,)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_safely_is_refused(name: str) -> None:
    values, null, kinds = REFUSED[name]
    with pytest.raises(Unsafe, match=r"a row of s\.t cannot be read safely"):
        list(operations(inserting(values, null, *kinds), None, "log"))


def test_text_and_bytes_come_as_given() -> None:
    values = [b"\xff\x00'\\", "naïve ✓ 😀\n".encode(), b"", b"x\x00y"]
    (row,) = operations(inserting(values, [False, False, False, False], F.BLOB, F.VARCHAR, F.VARCHAR, F.ENUM), None, "")
    assert isinstance(row, Insert) and list(row.values) == values


def test_a_key_of_an_update_that_has_another_number_of_values() -> None:
    whole = message()
    statement = whole.statement.add(type=Statement.UPDATE, start_timestamp=1, end_timestamp=2)
    header = statement.update_header
    header.table_metadata.schema_name, header.table_metadata.table_name = "s", "t"
    header.key_field_metadata.add(type=F.INTEGER, name="a")
    header.key_field_metadata.add(type=F.INTEGER, name="b")
    header.set_field_metadata.add(type=F.INTEGER, name="c")
    statement.update_data.segment_id, statement.update_data.end_segment = 1, True
    statement.update_data.record.add(key_value=[b"1"], after_value=[b"2"], is_null=[False])
    with pytest.raises(Unsafe, match="columns in the header: 2"):
        list(operations(whole.SerializeToString(), None, "log"))


def test_only_the_statements_that_count_are_read() -> None:
    data = bytes_of("12_rollback_statement.log")
    rows = dict(committed(data))
    with reading(log_of("12_rollback_statement.log")) as log:
        counted = {name: sum(1 for _ in log.operations(places)) for name, places in rows.items()}
    told = {
        f"{one['server_id']}:{one['transaction_id']}": sum(sum(of.values()) for of in one["rows"].values())
        for one in expected()["12_rollback_statement.log"]["transactions"]
        if one["outcome"] == "committed" and "ddl" not in one
    }
    assert {name: counted[name] for name in told} == told


def test_kinds_of_operations() -> None:
    data = bytes_of("01_simple.log")
    with reading(log_of("01_simple.log")) as log:
        found = [one for _, places in committed(data) for one in log.operations(places)]
    moved = next(one for one in found if isinstance(one, Update) and len(one.values) == 2)
    assert (str(moved.table), moved.key, moved.values) == ("shop.orders", (b"2",), (b"20", b"moved"))
    gone = next(one for one in found if isinstance(one, Delete))
    assert (str(gone.table), gone.key) == ("shop.items", (b"1", b"2"))


# --- a log that is not what was loaded


def test_each_bit_of_a_record_counts(tmp_path: Path) -> None:
    """With its checksum off, too: then the hash in the evidence tells."""
    data = bytearray(bytes_of("02_simple_no_checksum.log"))
    place = committed(bytes(data))[3][1][0]
    for at in range(place.offset, place.offset + place.length + 8):
        data[at] ^= 1
        (tmp_path / "a.log").write_bytes(data)
        with reading(tmp_path / "a.log") as log, pytest.raises(Problem):
            log.message(place)
        data[at] ^= 1


def test_a_log_that_was_replaced(tmp_path: Path) -> None:
    first, second = record(message()), record(inserting([b"1"], [False], F.INTEGER))
    (tmp_path / "a.log").write_bytes(second)
    with reading(tmp_path / "a.log") as log:
        with pytest.raises(Problem, match="not the one that was loaded"):
            log.message(Place(0, len(first) - 12))
        with pytest.raises(Problem, match="another content"):
            log.message(Place(0, len(second) - 12, None, content_of(b"")))
        with pytest.raises(Problem, match="shorter"):
            log.message(Place(0, 1 << 30))
        with pytest.raises(Problem, match="not the statements"):
            list(log.operations([Place(0, len(second) - 12, (1,))]))
    with pytest.raises(Problem, match="cannot be read"), reading(tmp_path / "b.log"):
        pass


def test_a_big_transaction_is_never_in_memory_whole(tmp_path: Path) -> None:
    """Of two logs the one twenty times as long needs no more: a message at a time."""
    body = inserting([b"1", b"x" * 100_000], [False, False], F.INTEGER, F.VARCHAR)
    peaks = []
    for times in (10, 200):
        path = tmp_path / f"{times}.log"
        path.write_bytes(record(body) * times)
        places = (Place(at * (len(body) + 12), len(body)) for at in range(times))
        with reading(path) as log:
            tracemalloc.start()
            assert sum(1 for _ in log.operations(places)) == times
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.5


# --- tables that a log does not tell all about


def test_keys_that_only_later_statements_tell() -> None:
    """Of a log that begins behind the CREATE TABLE the first UPDATE tells the key; rows that are not there stay away."""
    data = bytes_of("01_simple.log")
    whole = [body for _, message, body, _ in records(data) if message.statement]
    without = [list(operations(body, None, "")) for body in whole]
    no_create = [ones for ones in without if not any(getattr(one, "kind", "") == "CREATE_TABLE" for one in ones)]
    assert final_rows(no_create) == expected()["01_simple.log"]["final_rows"]
    orders_gone = final_rows(no_create[2:])
    assert orders_gone["shop.orders"] == {}


def test_keys_that_read_alike_are_two_rows() -> None:
    whole = message()
    create = whole.statement.add(type=Statement.CREATE_TABLE, start_timestamp=1, end_timestamp=2)
    table = create.create_table_statement.table
    table.name, table.schema, table.engine.name, table.type = "t", "s", "InnoDB", Table.STANDARD
    table.creation_timestamp = table.update_timestamp = 1
    for name in ("c0", "c1"):
        table.field.add(name=name, type=F.VARCHAR)
    index = table.indexes.add(name="PRIMARY", is_primary=True, is_unique=True, type=Table.Index.BTREE, key_length=4)
    index.index_part.add(fieldnr=0)
    index.index_part.add(fieldnr=1)
    rows = [inserting(list(key), [False, False], F.VARCHAR, F.VARCHAR) for key in ((b"a|b", b"c"), (b"a", b"b|c"))]
    found = final_rows(operations(body, None, "") for body in (whole.SerializeToString(), *rows))
    assert len(found["s.t"]) == 2 and "a|b|c" in found["s.t"]


def test_a_log_can_be_asked_at_any_place() -> None:
    with reading(log_of("01_simple.log")) as log:
        assert isinstance(log, Log)
        places = [place for _, ones in committed(bytes_of("01_simple.log")) for place in ones]
        assert [content_of(log.message(one)) for one in reversed(places)] == [one.content for one in reversed(places)]


def exported(messages: list[bytes]) -> bytes:
    rows = [
        {"ID": at, "SEGID": 1, "COMMIT_ID": at, "MESSAGE": b64encode(one).decode()}
        for at, one in enumerate(messages, 1)
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_rows_of_an_exported_log(tmp_path: Path) -> None:
    messages = [inserting([str(at).encode()], [False], F.INTEGER) for at in range(3)]
    (tmp_path / "log.jsonl").write_bytes(data := exported(messages))
    places = [Place(at, len(one), (0,), content_of(one)) for at, one in zip(line_starts(data), messages, strict=True)]
    with reading(tmp_path / "log.jsonl") as log:
        assert [one.values for one in log.operations(reversed(places)) if isinstance(one, Insert)] == [
            (str(at).encode(),) for at in (2, 1, 0)
        ]
        for wrong, what in (
            (Place(places[1].offset + 1, places[1].length), "no message begins here"),
            (Place(places[1].offset, places[1].length + 1), "another length"),
            (Place(places[1].offset, places[1].length, None, 7), "another content"),
            (Place(len(data), 5), "no message begins here"),
        ):
            with pytest.raises(Problem, match=what):
                log.message(wrong)


def line_starts(data: bytes) -> list[int]:
    return [0, *(at + 1 for at, one in enumerate(data[:-1]) if one == 10)]
