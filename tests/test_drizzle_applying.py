"""Transactions of a stream, applied to a real server: each exactly once whatever happens, and every value as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pymysql
import pytest
from drizzle_samples import expected
from drizzle_samples import sample as bytes_of
from pymysql.converters import encoders
from sql_server import PASSWORD, USER, Database
from stream_messages import F, create, delete, insert, message, update
from stream_samples import committed, log_of

from workbench.intake.collection import Access, Address
from workbench.model import Problem
from workbench.systems.drizzle.formats.messages_pb2 import Statement, Transaction
from workbench.systems.drizzle.live.applying import Todo, applied_at, apply_one, dry_run, is_done, prepare
from workbench.systems.drizzle.live.connection import Server, connected, place_of
from workbench.systems.drizzle.rows import operations, reading

WITH_ROWS = sorted(name for name, told in expected().items() if "final_rows" in told)
NOT_DONE = ("RAW_SQL", "ALTER_TABLE")


def todos(name: str) -> list[Todo]:
    """The committed transactions of a sample, in the order of their last messages."""
    path = log_of(name)

    def of(places: Any) -> Any:
        def rows() -> Iterator[Any]:
            with reading(path) as log:
                yield from log.operations(places)

        return rows

    return [
        Todo(*key.split(":"), f"c{number}", of(places))
        for number, (key, places) in enumerate(committed(bytes_of(name)))
    ]


def todo(whole: Transaction) -> Todo:
    """A transaction that a test made."""
    context, body = whole.transaction_context, whole.SerializeToString()
    return Todo(str(context.server_id), str(context.transaction_id), "c", lambda: operations(body, None, "log"))


def contents(sql: Database) -> dict[str, dict[str, dict[str, str | None]]]:
    """All rows of the server, as the contract shows them; of parts of seconds without the zeros at their end."""
    tables = [(schema, table) for schema in ("shop", "test") for table in sql.tables(schema)]
    raw = pymysql.connect(
        unix_socket=str(sql.socket),
        user=USER,
        password=PASSWORD,
        charset="utf8mb4",
        conv=encoders,
        use_unicode=False,
        ssl_disabled=True,
    )
    found = {}
    with raw, raw.cursor() as cursor:
        for schema, table in tables:
            cursor.execute(
                "SELECT column_name, column_type, column_key FROM information_schema.columns "
                f"WHERE table_schema = '{schema}' AND table_name = '{table}' ORDER BY ordinal_position"
            )
            columns = [tuple(one.decode() for one in row) for row in cursor.fetchall()]
            cursor.execute(f"SELECT * FROM `{schema}`.`{table}`")
            rows = [
                {name: shown(value, kind) for (name, kind, _), value in zip(columns, row, strict=True)}
                for row in cursor.fetchall()
            ]
            keys = [name for name, _, key in columns if key == "PRI"]
            found[f"{schema}.{table}"] = {"|".join(row[key] or "" for key in keys): row for row in rows}
    return found


def shown(value: bytes | None, kind: str) -> str | None:
    if value is None:
        return None
    if kind == "longblob":
        return value.hex()
    text = value.decode()
    if kind == "tinyint(1)":
        return {"1": "TRUE", "0": "FALSE"}[text]
    return text.rstrip("0").rstrip(".") if kind in ("datetime(6)", "time(6)") and "." in text else text


def apply_all(sql: Database, every: list[Todo]) -> list[str]:
    """Apply what is not done; returns what could not be, which only statements that change tables may be."""
    refused = []
    with sql.connected() as server:
        prepare(server)
        for one in every:
            if is_done(one, applied_at(server)):
                continue
            try:
                apply_one(server, one)
            except Problem as problem:
                if not any(problem.what.startswith(kind) for kind in NOT_DONE):
                    raise
                refused.append(one.position)
    return refused


def with_schema(sql: Database, every: list[Todo]) -> list[Todo]:
    """The logs begin on a server that has this schema."""
    sql.run("CREATE DATABASE IF NOT EXISTS test")
    return every


@pytest.mark.parametrize("name", WITH_ROWS)
def test_the_server_ends_as_its_source(sql: Database, name: str) -> None:
    """And what was applied is not applied again, whoever asks for it."""
    sql.run("SET GLOBAL sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'")
    if name.startswith("fleet"):
        sql.run("CREATE DATABASE shop")
    every = with_schema(sql, todos(name))
    if name.startswith("fleet"):  # its values are longer than its own table says
        apply_all(sql, every[:1])
        sql.run("ALTER TABLE test.person MODIFY last_name TEXT")
    refused = apply_all(sql, every)
    assert contents(sql) == expected()[name]["final_rows"]
    assert len(refused) == (2 if name.startswith(("01", "02")) else 0)
    assert apply_all(sql, every) == refused
    assert contents(sql) == expected()[name]["final_rows"]
    sql.run("SET GLOBAL sql_mode = DEFAULT")


TYPES = [
    ("id", F.INTEGER), ("d", F.DOUBLE), ("s", F.VARCHAR), ("b", F.BLOB), ("g", F.BIGINT), ("dc", F.DECIMAL), ("dt", F.DATE),
    ("ts", F.EPOCH), ("dm", F.DATETIME), ("u", F.UUID), ("t", F.TIME), ("bo", F.BOOLEAN), ("ip", F.IPV6),
]  # fmt: skip
ROWS = [
    [b"-2147483648", b"1.7976931348623157e308", b"'\"\\`%s\0\x1a\n\r\t", bytes(range(256)), b"9223372036854775807", b"-0.01",
     b"9999-12-31", b"2038-01-19 03:14:07.999999", b"9999-12-31 23:59:59", b"FFFFFFFF-e29b-41d4-a716-446655440000",
     b"00:00:00.000001", b"FALSE", b"::ffff:1.2.3.4"],
    [b"0", b"5e-324", "naïve ✓ 😀 \u202e \u00a0".encode(), b"\xff\xfe'\\\0", b"0", b"99999999.99", b"1000-01-01",
     b"2012-02-25 02:30:00", b"1000-01-01 00:00:00", b"00000000-0000-0000-0000-000000000000", b"-12:00:00", b"TRUE", b"::"],
    [b"7", b"0.1", b"", b"", b"-1", b"0.00", b"2000-02-29", b"1970-01-01 00:00:01", b"2011-03-27 02:30:00.5",
     b"123e4567-e89b-12d3-a456-426614174000", b"23:59:59", b"YES", b"fe80::1"],
    [b"8", *[None] * 12],
    [b"9", b"1e22", b"trail ", b" ", b"1", b"1.50", b"2000-02-29", b"1970-01-01 00:00:01", b"2011-03-27 02:30:00",
     b"123e4567-e89b-12d3-a456-426614174000", b"23:59:59", b"NO", b"1.2.3.4"],
]  # fmt: skip


def test_hostile_values_land_as_they_were(sql: Database) -> None:
    table = message(1)
    create(table, "test.t", TYPES, ["id"])
    apply_all(sql, with_schema(sql, [todo(table), todo(insert(message(2), "test.t", TYPES, ROWS))]))
    there = contents(sql)["test.t"]
    words = {b"YES": "TRUE", b"NO": "FALSE"}
    for row in ROWS:
        found = there[(row[0] or b"").decode()]
        for (name, kind), value in zip(TYPES, row, strict=True):
            due = None if value is None else value.hex() if kind == F.BLOB else words.get(value, value.decode())
            assert found[name] == due, (row[0], name)


def test_rows_are_found_by_keys_of_every_type(sql: Database) -> None:
    """Each row by its old key, which may be hostile; a changed key; and a key of several columns."""
    chosen = [at for at, (name, _) in enumerate(TYPES) if name not in ("d", "b", "bo")]
    columns = [TYPES[at] for at in chosen]
    keys, rows = columns[:9], [[row[at] or b"" for at in chosen] for row in ROWS if None not in row]
    table = message(1)
    create(table, "test.t", columns, [name for name, _ in keys])
    whole = insert(message(2), "test.t", columns, rows)
    new = [(row[:9], [str(100 + at).encode(), None]) for at, row in enumerate(rows)]
    changed = update(message(3), "test.t", keys, [("id", F.INTEGER), ("ip", F.IPV6)], new)
    gone = delete(message(4), "test.t", keys, [[b"100", *rows[0][1:9]]])
    apply_all(sql, with_schema(sql, [todo(table), todo(whole), todo(changed), todo(gone)]))
    assert sorted(row["id"] or "" for row in contents(sql)["test.t"].values()) == ["101", "102", "103"]
    assert {row["ip"] for row in contents(sql)["test.t"].values()} == {None}


# --- killed


class Killed(BaseException):
    """The process is gone: nothing more is done over its connection, not even a rollback."""


class Mortal(Server):
    """A connection whose process dies before one of the things that it does, which is behind the one before."""

    def __init__(self, server: Server, at: int) -> None:
        super().__init__(server._raw, server.name)
        self._left = at

    def _live(self) -> None:
        self._left -= 1
        if self._left < 0:
            self._raw._force_close()
            raise Killed

    def run(self, statement: str) -> int:
        self._live()
        return super().run(statement)

    def commit(self) -> None:
        self._live()
        super().commit()


def counting() -> list[Todo]:
    """Transactions that leave another table if one of them is applied twice, or in part; of each kind one."""
    table, columns = message(1), [("id", F.INTEGER), ("note", F.VARCHAR)]
    create(table, "test.t", columns, ["id"])
    dropped = message(6)
    dropped.statement.add(
        type=Statement.TRUNCATE_TABLE, start_timestamp=1, end_timestamp=2
    ).truncate_table_statement.table_metadata.MergeFrom(_named("test", "u"))
    other = message(5)
    create(other, "test.u", columns, ["id"])
    first = insert(message(2), "test.t", columns, [[b"1", b"a"], [b"2", b"b"]])
    update(first, "test.t", columns[:1], columns, [([b"1"], [b"3", b"c"])])  # a second time there is no row 1
    both = delete(message(3), "test.t", columns[:1], [[b"2"]])
    insert(both, "test.t", columns, [[b"2", b"anew"]])
    gone = message(8)
    gone.statement.add(
        type=Statement.DROP_TABLE, start_timestamp=1, end_timestamp=2
    ).drop_table_statement.table_metadata.MergeFrom(_named("test", "u"))
    last = insert(message(9), "test.t", columns, [[b"9", b"last"]])
    return [
        todo(one)
        for one in (
            table,
            first,
            both,
            other,
            insert(message(4), "test.u", columns, [[b"1", None]]),
            dropped,
            gone,
            last,
        )
    ]


def _named(schema: str, table: str) -> Any:
    from workbench.systems.drizzle.formats.messages_pb2 import TableMetadata

    return TableMetadata(schema_name=schema, table_name=table)


def test_killed_at_any_point_each_is_applied_once(sql: Database) -> None:
    """Before and behind every statement and every COMMIT; then somebody resumes."""
    every = counting()
    for at in count():
        sql.empty()
        sql.run("CREATE DATABASE test")
        killed = False
        with sql.connected() as server:
            mortal = Mortal(server, at)
            try:
                prepare(mortal)
                for one in every:
                    apply_one(mortal, one)
            except Killed:
                killed = True
        assert apply_all(sql, every) == []
        rows = contents(sql)
        held = sorted((row["id"], row["note"]) for row in rows["test.t"].values())
        assert held == [("2", "anew"), ("3", "c"), ("9", "last")]
        assert set(rows) == {"test.t"}
        assert sql.run("SELECT COUNT(*), SUM(done) FROM replication_workbench.applied") == [(8, 8)]
        if not killed:
            break
    assert at == 37  # 3 to prepare, 4 x 5 for what servers commit by themselves, 14 for rows


KILLED_INSIDE = """
import sys, time
sys.path[:0] = sys.argv[1:3]
from test_drizzle_applying import *
from workbench.systems.drizzle.live import applying
access = Access(USER, lambda: PASSWORD)
with connected(Address("r", url=sys.argv[3]), access) as server:
    run = server.run
    def slow(statement):
        hit = run(statement)
        print(statement[:6], flush=True)
        time.sleep(0.002)
        return hit
    server.run = slow
    for one in todos("03_bulk_update.log"):
        if not is_done(one, applied_at(server)):
            apply_one(server, one)
"""


def test_a_process_that_is_killed_in_a_big_transaction_leaves_nothing_of_it(sql: Database) -> None:
    every = with_schema(sql, todos("03_bulk_update.log"))
    apply_all(sql, every[:2])
    before = contents(sql)
    here = Path(__file__).parent
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_INSIDE, str(here), str(here.parent), sql.url],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in zip(range(150), process.stdout, strict=False):
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 10
    while sql.run("SELECT COUNT(*) FROM information_schema.innodb_trx") != [(0,)] and time.monotonic() < until:
        time.sleep(0.05)
    assert contents(sql) == before
    apply_all(sql, every)
    assert contents(sql) == expected()["03_bulk_update.log"]["final_rows"]


# --- a replica that differs


@contextmanager
def stopped(what: str) -> Iterator[None]:
    with pytest.raises(Problem, match=what) as problem:
        yield
    assert "CANARY" not in str(problem.value)  # what servers say quotes values


COLUMNS = [("id", F.INTEGER), ("note", F.VARCHAR)]


def table_t(sql: Database) -> None:
    whole = message(1)
    create(whole, "test.t", COLUMNS, ["id"])
    apply_all(
        sql,
        with_schema(sql, [todo(whole), todo(insert(message(2), "test.t", COLUMNS, [[b"1", b"CANARY"], [b"2", b"b"]]))]),
    )


def test_a_row_that_is_not_as_it_has_to_be_stops_and_can_be_mended(sql: Database) -> None:
    table_t(sql)
    several = update(message(3), "test.t", COLUMNS[:1], COLUMNS[1:], [([b"1"], [b"x"]), ([b"2"], [b"y"])])
    sql.run("DELETE FROM test.t WHERE id = 2")
    with stopped("0 rows were hit where 1 had to be"):
        apply_all(sql, [todo(several)])
    assert sql.run("SELECT id, note FROM test.t") == [(1, "CANARY")]
    sql.run("INSERT INTO test.t VALUES (2, 'b')")
    apply_all(sql, [todo(several)])
    assert sql.run("SELECT id, note FROM test.t ORDER BY id") == [(1, "x"), (2, "y")]
    with stopped("a row with this key is there already"):
        apply_all(sql, [todo(insert(message(4), "test.t", COLUMNS, [[b"5", b"CANARY"], [b"1", b"CANARY"]]))])
    with stopped("0 rows were hit"):
        apply_all(sql, [todo(delete(message(5), "test.t", COLUMNS[:1], [[b"9"]]))])
    assert sql.run("SELECT COUNT(*) FROM test.t") == [(2,)]


def test_an_update_that_changes_nothing_has_hit_its_row(sql: Database) -> None:
    table_t(sql)
    assert apply_all(sql, [todo(update(message(3), "test.t", COLUMNS[:1], COLUMNS[1:], [([b"2"], [b"b"])]))]) == []


def test_the_same_number_with_another_content(sql: Database) -> None:
    table_t(sql)
    with sql.connected() as server, stopped("was applied with another content"):
        is_done(Todo("1", "2", "other", list), applied_at(server))


def test_two_at_once_apply_it_once(sql: Database) -> None:
    table_t(sql)
    one = todo(insert(message(3), "test.t", COLUMNS, [[b"3", b"x"]]))
    with sql.connected() as first, sql.connected() as second:
        apply_one(first, one)
        with stopped("is applied by somebody else"):
            apply_one(second, one)
    assert sql.run("SELECT COUNT(*) FROM test.t") == [(3,)]


TABLES = {
    "is not there": None,
    "no table of InnoDB": "CREATE TABLE test.t (id INT PRIMARY KEY, note VARCHAR(100)) ENGINE=MyISAM",
    "has no column note": "CREATE TABLE test.t (id INT PRIMARY KEY) ENGINE=InnoDB",
    "columns that its source has not: more": "CREATE TABLE test.t (id INT PRIMARY KEY, note TEXT, more INT) ENGINE=InnoDB",
    "does not hold every INTEGER": "CREATE TABLE test.t (id VARCHAR(9) PRIMARY KEY, note VARCHAR(100)) ENGINE=InnoDB",
    "it is longer": "CREATE TABLE test.t (id INT PRIMARY KEY, note VARCHAR(3)) ENGINE=InnoDB",
    "ends in a blank": "CREATE TABLE test.t (id INT PRIMARY KEY, note CHAR(9)) ENGINE=InnoDB",
}  # fmt: skip


@pytest.mark.parametrize("why", TABLES)
def test_a_table_that_does_not_fit_is_not_written(sql: Database, why: str) -> None:
    sql.run("CREATE DATABASE test", *([TABLES[why]] if TABLES[why] else []))
    with stopped(why):
        apply_all(sql, [todo(insert(message(1), "test.t", COLUMNS, [[b"1", b"abc "]]))])
    if TABLES[why]:
        assert sql.run("SELECT * FROM test.t") == []


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("(id INT, note VARCHAR(9), KEY (id))", "no index makes sure"),
        ("(id INT NULL, note VARCHAR(9), UNIQUE (id))", "no index makes sure"),
        ("(id INT NOT NULL, note VARCHAR(9), PRIMARY KEY (id, note))", "no index makes sure"),
        (
            "(id INT PRIMARY KEY, note VARCHAR(9), at TIMESTAMP(6) NOT NULL DEFAULT NOW(6) ON UPDATE NOW(6))",
            "changes by itself",
        ),
    ],
)
def test_a_key_that_may_find_other_rows_is_not_used(sql: Database, table: str, why: str) -> None:
    sql.run("CREATE DATABASE test", f"CREATE TABLE test.t {table} ENGINE=InnoDB")
    with stopped(why):
        apply_all(sql, [todo(update(message(1), "test.t", COLUMNS[:1], COLUMNS[1:], [([b"1"], [b"x"])]))])


@pytest.mark.parametrize(
    ("kind", "column", "value", "why"),
    [
        (F.DECIMAL, "DECIMAL(9,2)", b"1.234", "more decimals"),
        (F.DOUBLE, "DOUBLE(9,2)", b"1.234", "fixed number of decimals"),
        (F.DATETIME, "DATETIME(3)", b"2012-02-29 01:02:03.0001", "smaller parts of a second"),
        (F.TIME, "TIME", b"01:02:03.5", "smaller parts of a second"),
        (F.ENUM, "ENUM('red','green')", b"blue", "none of its labels"),
        (F.INTEGER, "TINYINT", b"300", "beyond its column"),
        (F.VARCHAR, "VARCHAR(9) CHARACTER SET latin1", "✓".encode(), "does not fit"),
        (F.VARCHAR, "VARCHAR(9) CHARACTER SET utf8mb4", b"\xff", "does not fit"),
        (F.DATE, "DATE", b"2011-02-29", "error 1292"),
    ],
)
def test_nothing_of_a_value_is_lost_in_silence(sql: Database, kind: int, column: str, value: bytes, why: str) -> None:
    sql.run("CREATE DATABASE test", f"CREATE TABLE test.t (id INT PRIMARY KEY, v {column}) ENGINE=InnoDB")
    with stopped(why):
        apply_all(sql, [todo(insert(message(1), "test.t", [("id", F.INTEGER), ("v", kind)], [[b"1", value]]))])
    assert sql.run("SELECT * FROM test.t") == []


def test_a_trigger_would_do_twice_what_the_stream_has_already(sql: Database) -> None:
    table_t(sql)
    sql.run("CREATE TRIGGER test.x BEFORE INSERT ON test.t FOR EACH ROW SET NEW.note = 'y'")
    with stopped("it has triggers"):
        apply_all(sql, [todo(insert(message(3), "test.t", COLUMNS, [[b"3", b"x"]]))])


def test_definitions_stop_where_the_server_has_it_otherwise(sql: Database) -> None:
    table_t(sql)
    again = message(3)
    create(again, "test.t", COLUMNS, ["id"])
    with stopped("what it makes is there already"):
        apply_all(sql, [todo(again)])
    gone = message(4)
    gone.statement.add(
        type=Statement.DROP_TABLE, start_timestamp=1, end_timestamp=2
    ).drop_table_statement.table_metadata.MergeFrom(_named("test", "nowhere"))
    with stopped("what it takes away is not there"):
        apply_all(sql, [todo(gone)])
    gone.statement[0].drop_table_statement.if_exists_clause = True
    assert apply_all(sql, [todo(gone)]) == []
    with sql.connected() as server:
        assert {key[1]: one.done for key, one in applied_at(server).items()} == {"1": True, "2": True, "4": True}


def test_a_dry_run_finds_what_shows_without_writing(sql: Database) -> None:
    every = with_schema(sql, counting())
    with sql.connected() as server:
        assert dry_run(server, every) == []
        assert contents(sql) == {} and applied_at(server) == {}
        unknown = todo(insert(message(3), "test.nowhere", COLUMNS, [[b"1", b"CANARY"]]))
        (why,) = dry_run(server, [*every[:2], unknown, *every[2:]])
        assert "transaction 3 of 1: the table test.nowhere of the server does not fit" in why and "CANARY" not in why
        ragged = todos("16_ragged_update.log")
        (why,) = dry_run(server, ragged)
        assert "a row of test.person (key 2) cannot be read safely" in why


# --- reaching it


def test_a_wrong_password_and_a_server_that_is_not_there(sql: Database, tmp_path: Path) -> None:
    with stopped("the user or the password is wrong"), connected(sql.address, Access(USER, lambda: "CANARY")):
        pass
    nowhere = Address("r", url=f"mysql://{tmp_path}/none")
    with stopped("nobody answers there"), connected(nowhere, Access(USER, lambda: "CANARY")):
        pass


@pytest.mark.parametrize(
    "url", ["mysql://", "http://a", "mysql://h/path", "mysql://u:CANARY@h", "mysql://h:x", "mysql:///", "a"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(Problem, match="this is no address"):
        place_of(url)


def test_addresses() -> None:
    assert (place_of("mysql://h").host, place_of("mysql://h").port) == ("h", 3306)
    assert (place_of("mysql://[::1]:33").host, place_of("mysql://[::1]:33").port) == ("::1", 33)
    assert place_of("mysql:///run/mysqld/mysqld.sock").socket == "/run/mysqld/mysqld.sock"
