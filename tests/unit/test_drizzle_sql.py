"""Statements for a server of MySQL's protocol: they mean the same under every SQL mode, and nothing of a log acts."""

from __future__ import annotations

import pytest
from drizzle_samples import sample as bytes_of
from sql_server import Database
from stream_messages import F, create, delete, insert, message, update
from stream_samples import committed, records

from workbench.model import Problem
from workbench.systems.drizzle.definitions import defined
from workbench.systems.drizzle.formats.messages_pb2 import Statement, Table
from workbench.systems.drizzle.quoting import literal, name, schema_name, table_name, text_literal
from workbench.systems.drizzle.rows import Definition, Named, RowOperation, operations
from workbench.systems.drizzle.sql import BATCH_BYTES, BATCH_ROWS, changes, opening, parts, script

MODES = (
    "",
    "NO_BACKSLASH_ESCAPES",
    "ANSI_QUOTES",
    "ANSI",
    "ORACLE",
    "NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT",
)
HOSTILE = (
    "", "'", "''", '"', "\\", "\\'", "'\\", "\\\\", "`", "%s %d %%", "a\0b", "\n", "\r\n", "\t", "\x1a", "; DROP TABLE t; -- ",
    "'; DROP TABLE `t`; -- ", "\\'; DROP TABLE t; #", "/*! SELECT 1 */", "*/", "naïve ✓ 😀", "\u202egnp.exe", "\ufeff", "\u00a0",
    "delimiter //", "\\q", " lead", "trail ", "a" * 5000, "\x7f", "é", "\U0010ffff", "؃", "¿'", "NULL", "0x41", "?",
)  # fmt: skip


@pytest.mark.parametrize("modes", MODES)
def test_text_is_the_same_text_under_every_mode(sql: Database, modes: str) -> None:
    shown = ", ".join(f"HEX({text_literal(text)}), CHARSET({text_literal(text)})" for text in HOSTILE)
    ((*found,),) = sql.run(f"SELECT {shown}", modes=modes)
    assert found == [one for text in HOSTILE for one in (text.encode().hex().upper(), "utf8mb4")]


@pytest.mark.parametrize("modes", MODES)
def test_names_are_the_same_names_under_every_mode(sql: Database, modes: str) -> None:
    hostile = [text for text in HOSTILE if text.isprintable() and 0 < len(text) <= 64 and not text.endswith(" ")]
    named = [text for text in hostile if max(text) <= "\uffff"]
    columns = ", ".join(f"{name(text)} INT" for text in named)
    sql.run("CREATE DATABASE s", f"CREATE TABLE s.{name(named[0])} ({columns})", modes=modes)
    assert [row[0] for row in sql.run(f"SHOW COLUMNS FROM s.{name(named[0])}")] == named
    assert len(named) > 12


@pytest.mark.parametrize("text", ["", "a" * 65, "a ", "a\0", "a\n", "😀", "\ud800", "\u202e"])
def test_a_name_that_no_server_has_is_refused(text: str) -> None:
    with pytest.raises(Problem, match="no server has a thing of this name"):
        name(text)


@pytest.mark.parametrize("schema", ["mysql", "MySQL", "mysql ", "information_schema", "sys", "replication_workbench"])
def test_schemas_of_the_server_itself_are_never_written(schema: str) -> None:
    with pytest.raises(Problem, match="schema of the server itself"):
        schema_name(schema)
    with pytest.raises(Problem, match="schema of the server itself"):
        list(changes(_rows(insert(message(), f"{schema}.user", [("a", F.INTEGER)], [[b"1"]]))))


def test_another_catalog_is_refused() -> None:
    assert table_name(Named("s", "t", "")) == table_name(Named("s", "t")) == "`s`.`t`"
    with pytest.raises(Problem, match="of the catalog b"):
        table_name(Named("s", "t", "b"))


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (None, F.VARCHAR, "NULL"),
        (b"", F.VARCHAR, "''"),
        (b"\x00'\\", F.BLOB, "X'00275C'"),
        (b"", F.BLOB, "X''"),
        (b"-9223372036854775808", F.BIGINT, "-9223372036854775808"),
        (b"-1e-300", F.DOUBLE, "'-1e-300'"),
        (b"0.10", F.DECIMAL, "0.10"),
        (b"TRUE", F.BOOLEAN, "TRUE"),
        (b"YES", F.BOOLEAN, "TRUE"),
        (b"NO", F.BOOLEAN, "FALSE"),
        (b"2012-02-29", F.DATE, "'2012-02-29'"),
        (b"red", F.ENUM, "'red'"),
        (b"\xff", F.VARCHAR, "X'FF'"),
    ],
)
def test_literals(value: bytes | None, kind: int, shown: str) -> None:
    assert literal(value, kind) == shown


@pytest.mark.parametrize(
    ("value", "kind"), [(b"1;", F.INTEGER), (b"1 OR 1", F.DECIMAL), (b"x", F.BOOLEAN), (b"\xff", F.DATE)]
)
def test_a_value_that_is_none_of_its_type_is_no_literal(value: bytes, kind: int) -> None:
    if value == b"\xff":
        assert literal(value, kind) == "X'FF'"  # bytes, which the server refuses as a day
    else:
        with pytest.raises(Problem, match="a value is no"):
            literal(value, kind)


def _rows(*messages: object) -> list[RowOperation]:
    return [one for each in messages for one in operations(each.SerializeToString(), None, "log")]  # type: ignore[attr-defined,misc]


ID, NOTE = ("id", F.INTEGER), ("note", F.VARCHAR)


def test_statements_and_how_many_rows_each_has_to_hit() -> None:
    whole = insert(message(), "s.t", [ID, NOTE], [[b"1", b"it's"], [b"2", None]])
    update(whole, "s.t", [ID], [ID, NOTE], [([b"1"], [b"10", b"x"])])
    delete(whole, "s.i", [ID, ("line", F.INTEGER)], [[b"1", b"2"], [b"1", b"3"]])
    assert [(one.text, one.rows) for one in changes(_rows(whole))] == [
        ("INSERT INTO `s`.`t` (`id`, `note`) VALUES (1, 'it''s'), (2, NULL)", 2),
        ("UPDATE `s`.`t` SET `id` = 10, `note` = 'x' WHERE `id` = 1", 1),
        ("DELETE FROM `s`.`i` WHERE `id` = 1 AND `line` = 2", 1),
        ("DELETE FROM `s`.`i` WHERE `id` = 1 AND `line` = 3", 1),
    ]


def test_new_rows_go_together_as_far_as_a_packet_holds_them() -> None:
    many = _rows(insert(message(), "s.t", [ID], [[b"1"]] * (2 * BATCH_ROWS + 3)))
    assert [one.rows for one in changes(many)] == [BATCH_ROWS, BATCH_ROWS, 3]
    long = _rows(insert(message(), "s.t", [NOTE], [[b"x" * (BATCH_BYTES // 3)]] * 7))
    assert [one.rows for one in changes(long)] == [2, 2, 2, 1]
    other = _rows(insert(message(), "s.t", [ID], [[b"1"]]), insert(message(), "s.u", [ID], [[b"1"]]))
    assert [one.rows for one in changes(other)] == [1, 1]


def test_the_statements_of_the_source_are_never_run() -> None:
    for _, _, body, _ in records(bytes_of("01_simple.log")):
        try:
            definition, rows = parts(operations(body, None, ""))
            texts = list(defined(definition)) if definition else [one.text for one in changes(rows)]
        except Problem as problem:
            assert "RAW_SQL" in problem.what or "ALTER_TABLE" in problem.what
            continue
        assert not any("ADD COLUMN" in text or "..." in text for text in texts)


@pytest.mark.parametrize("kind", [Statement.RAW_SQL, Statement.ALTER_TABLE, Statement.ALTER_SCHEMA])
def test_what_cannot_be_done_right_is_not_done(kind: Statement.Type) -> None:
    whole = message()
    whole.statement.add(type=kind, start_timestamp=1, end_timestamp=2, sql="DROP TABLE t")
    definition, _ = parts(operations(whole.SerializePartialToString(), None, ""))
    assert definition is not None
    with pytest.raises(Problem, match="is not done"):
        defined(definition)


def test_definitions_and_rows_in_one_transaction_are_refused() -> None:
    first = message()
    create(first, "s.t", [ID], ["id"])
    insert(first, "s.t", [ID], [[b"1"]])
    with pytest.raises(Problem, match="no server can do that at once"):
        parts(_rows(first))
    behind = insert(message(), "s.t", [ID], [[b"1"]])
    create(behind, "s.u", [ID], ["id"])
    with pytest.raises(Problem, match="no server can do that at once"):
        list(parts(_rows(behind))[1])
    only_set = message()
    statement = only_set.statement.add(type=Statement.SET_VARIABLE, start_timestamp=1, end_timestamp=2)
    statement.set_variable_statement.variable_metadata.name, statement.set_variable_statement.variable_value = "a", b"b"
    statement.set_variable_statement.variable_metadata.type = F.INTEGER
    insert(only_set, "s.t", [ID], [[b"1"]])
    assert len(list(parts(_rows(only_set))[1])) == 1


# --- tables


def _definition(table: Table) -> Definition:
    whole = message()
    whole.statement.add(
        type=Statement.CREATE_TABLE, start_timestamp=1, end_timestamp=2
    ).create_table_statement.table.CopyFrom(table)
    (one,) = operations(whole.SerializeToString(), None, "")
    assert isinstance(one, Definition)
    return one


def _table() -> Table:
    return create(message(), "s.t", [ID, NOTE, ("d", F.DECIMAL), ("b", F.BLOB)], ["id"])


def test_a_table_as_the_server_makes_it(sql: Database) -> None:
    table = _table()
    table.field[0].numeric_options.is_autoincrement = True
    table.field[1].options.default_value = "it's \\"
    table.field[1].comment = "say 'it'"
    index = table.indexes.add(name="by`note", is_primary=False, is_unique=True, type=Table.Index.BTREE, key_length=4)
    index.index_part.add(fieldnr=1, compare_length=40)
    index.index_part.add(fieldnr=3, compare_length=5)
    table.options.auto_increment_value = 77
    sql.run("CREATE DATABASE s", *defined(_definition(table)), modes="ANSI_QUOTES,NO_BACKSLASH_ESCAPES")
    shown = sql.run("SHOW CREATE TABLE s.t")[0][1]
    for part in (
        "`id` int(11) NOT NULL AUTO_INCREMENT", "`note` varchar(100)", "DEFAULT 'it''s \\\\'", "COMMENT 'say ''it'''",
        "decimal(10,2)",
        "`b` longblob", "PRIMARY KEY (`id`)", "UNIQUE KEY `by``note` (`note`(10),`b`(5))", "ENGINE=InnoDB AUTO_INCREMENT=77",
    ):  # fmt: skip
        assert part in shown, part


def _broken(what: str) -> Table:
    table = _table()
    if what == "engine":
        table.engine.name = "MyISAM"
    elif what == "temporary":
        table.type = Table.TEMPORARY
    elif what == "foreign key":
        table.fk_constraint.add(references_table_name="x", match=0, update_option=0, delete_option=0)
    elif what == "condition":
        table.field[0].constraints.expression.append("id > 0")
    elif what == "by itself":
        table.field[0].options.update_expression = "CURRENT_TIMESTAMP"
    elif what == "default":
        table.field[0].options.default_expression = "SLEEP(9)"
    elif what == "no key":
        del table.indexes[:]
    elif what == "collation":
        table.field[1].string_options.collation = "utf8_x; DROP TABLE t"
    elif what == "decimal":
        table.field[2].numeric_options.precision = 99
    elif what == "length":
        table.field[1].string_options.length = 0
    elif what == "labels":
        table.field.add(name="e", type=F.ENUM)
    elif what == "label":
        table.field.add(name="e", type=F.ENUM).enumeration_values.field_value.append("a\\b")
    elif what == "hash":
        table.indexes[0].type = Table.Index.HASH
    elif what == "reverse":
        table.indexes[0].index_part[0].in_reverse_order = True
    elif what == "blob key":
        table.indexes[0].index_part.add(fieldnr=3)
    elif what == "column":
        table.indexes[0].index_part[0].fieldnr = 99
    elif what == "no columns":
        del table.field[:]
    return table


REFUSED = (
    "engine", "temporary", "foreign key", "condition", "by itself", "default", "no key", "collation", "decimal", "length",
    "labels", "label", "hash", "reverse", "blob key", "column", "no columns",
)  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_table_that_would_not_be_the_same_is_not_made(what: str) -> None:
    with pytest.raises(Problem, match=r"the table s\.t is not created"):
        defined(_definition(_broken(what)))


# --- a file for people


def lines(name: str, number: int) -> str:
    position, places = committed(bytes_of(name))[number]
    found = dict(zip([place.offset for place in places], places, strict=True))
    ones = (
        one
        for at, _, body, _ in records(bytes_of(name))
        if at in found
        for one in operations(body, found[at].statements, "")
    )
    origin, transaction = position.split(":")
    return "".join([*opening(), *script(ones, origin, transaction, "c")])


@pytest.mark.parametrize("modes", ["", "NO_BACKSLASH_ESCAPES", "ANSI"])
def test_the_servers_own_client_runs_the_file_once(sql: Database, modes: str) -> None:
    before = f"SET GLOBAL sql_mode = '{modes}'"
    sql.run(before)
    sql.run("CREATE DATABASE test")
    for number in (0, 1):
        ran = sql.client(lines("18_field_types.log", number))
        assert ran.returncode == 0, ran.stderr
    assert sql.run("SELECT s, bl FROM test.alltypes WHERE id = 1") == [("naïve ✓ 😀", bytes(range(256)))]
    for number in (0, 1):
        again = sql.client(lines("18_field_types.log", number))
        assert again.returncode != 0 and "Duplicate entry '1-77" in again.stderr
    assert sql.run("SELECT COUNT(*) FROM test.alltypes") == [(3,)]
    sql.run("SET GLOBAL sql_mode = DEFAULT")


def test_the_file_stops_where_a_row_is_not_as_it_has_to_be(sql: Database) -> None:
    """Then nothing of its transaction is there; when the row is as it has to be, the same file goes through."""
    sql.run("CREATE DATABASE test")
    every = committed(bytes_of("03_bulk_update.log"))
    bulk = max(range(len(every)), key=lambda number: len(every[number][1]))
    for number in range(bulk):
        assert sql.client(lines("03_bulk_update.log", number)).returncode == 0
    sql.run(
        "CREATE TABLE test.aside AS SELECT * FROM test.person WHERE id = 300", "DELETE FROM test.person WHERE id = 300"
    )
    before = sql.run("SELECT * FROM test.person ORDER BY id")
    text = lines("03_bulk_update.log", bulk)
    assert text.count("UPDATE `test`") == 400
    ran = sql.client(text)
    assert ran.returncode != 0 and "more than 1 row" in ran.stderr
    assert sql.run("SELECT * FROM test.person ORDER BY id") == before
    sql.run("INSERT INTO test.person SELECT * FROM test.aside")
    assert sql.client(text).returncode == 0
    assert sql.run("SELECT COUNT(*) FROM test.person") == [(len(before) + 1,)]
    assert sql.run("SELECT * FROM test.person ORDER BY id") != before
