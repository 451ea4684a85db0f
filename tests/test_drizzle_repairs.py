"""Repairs of a stream: the plan that the fleet calls for, done on a real server, killed and resumed, and looked after."""

from __future__ import annotations

import gzip
import json
import subprocess
from base64 import b64encode
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from drizzle_samples import SAMPLES as STREAMS
from drizzle_samples import expected, record
from drizzle_samples import sample as bytes_of
from sql_server import PASSWORD, USER, Database
from stream_files import name_source
from stream_messages import F, create, delete, insert, message, update
from stream_samples import records
from test_drizzle_applying import Killed, Mortal, apply_all, contents, todos

from workbench import Case
from workbench.cli import main
from workbench.intake.collection import Access, Address
from workbench.model import Problem
from workbench.repair.bundles import write_bundle
from workbench.repair.case_plan import keep, rehearse
from workbench.repair.plan_executor import FAILED, FINISHED, Outcome, apply
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan
from workbench.replication.stream.rules.repair_model import StreamModel
from workbench.rules.repair_model import ChangeGroup, Link, MissingAt, Server
from workbench.rules.repair_result import achieved
from workbench.systems.drizzle.formats.messages_pb2 import Statement, Transaction
from workbench.systems.drizzle.live import site as live
from workbench.systems.drizzle.live.site import StreamSite
from workbench.systems.drizzle.overtaken import Read, overtaken
from workbench.systems.drizzle.rows import operations

Logs = dict[str, bytes]


def case_of(folder: Path, logs: Logs) -> Case:
    (folder / "in").mkdir(parents=True)
    for name, data in logs.items():
        (folder / "in" / f"{name}.log").write_bytes(data)
    name_source(folder / "in", f"{next(iter(logs))}.log")
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return case


FLEET = {name: bytes_of(f"fleet/{name}.log") for name in ("primary", "replica1", "replica2")}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The fleet of the samples; nobody writes into it but plans."""
    return case_of(tmp_path_factory.mktemp("fleet"), FLEET)


@pytest.fixture(scope="module")
def planned(fleet: Case) -> Plan:
    made = plan(fleet)
    keep(made, fleet.folder)
    return made


def test_the_plan_that_the_fleet_calls_for(planned: Plan) -> None:
    due = expected()["fleet"]["replica2"]["repair_plan"]
    (step,) = planned.steps
    assert (step.server, step.on) == ("replica2", "replica2")
    transactions = step.details["transactions"]
    assert [int(one["position"]) for one in transactions] == due["apply_in_order"]
    assert {one["position"]: json.loads(one["rows"]) for one in transactions} == due["rows"]
    assert [int(one) for one in step.details["discard"]] == due["discard"]
    assert "790 (rolled back) is discarded" in step.says
    assert [(one["server"], one["count"]) for one in planned.promise] == [("replica2", 5)]
    assert all(not one["missing"] and not one["pending"] for one in planned.after)
    assert {course.way: course.chosen for course in planned.courses} == {"apply": True, "provision": False}
    assert planned.unmended == 0


def test_it_is_rehearsed_on_the_model(planned: Plan, fleet: Case, tmp_path: Path) -> None:
    assert rehearse(planned, fleet.folder, tmp_path, lambda sentence: None).state == FINISHED


# --- on a real server


def as_replica2(sql: Database) -> None:
    """What replica2 has applied: whole transactions of its log, in the order of their last messages."""
    sql.run("CREATE DATABASE test", "CREATE DATABASE shop")
    every = todos("fleet/replica2.log")
    apply_all(sql, every[:1])
    sql.run("ALTER TABLE test.person MODIFY last_name TEXT")
    apply_all(sql, every)
    sql.run("DROP DATABASE replication_workbench")  # it did so itself
    assert contents(sql) != expected()["fleet/primary.log"]["final_rows"]


def site_of(sql: Database, planned: Plan, folder: Path) -> StreamSite:
    return StreamSite(planned, [sql.address], sql.access, folder, str)


def run(sql: Database, planned: Plan, folder: Path, **options: Any) -> Outcome:
    return apply(planned, site_of(sql, planned, folder), folder, patience=5, **options)


def applied_once(sql: Database) -> None:
    assert contents(sql) == expected()["fleet/primary.log"]["final_rows"]
    assert sql.run("SELECT position, done FROM replication_workbench.applied ORDER BY position") == [
        (number, 1) for number in ("780", "784", "789", "794", "796")
    ]


def test_the_replica_ends_as_its_source(sql: Database, planned: Plan, tmp_path: Path) -> None:
    as_replica2(sql)
    assert run(sql, planned, tmp_path).state == FINISHED
    applied_once(sql)
    assert [row["kept"] for row in site_of(sql, planned, tmp_path).kept()] == [True]
    with pytest.raises(Problem, match="the plan is done already"):
        run(sql, planned, tmp_path)
    (tmp_path / "again").mkdir()
    said: list[str] = []
    assert run(sql, planned, tmp_path / "again", told=said.append).state == FINISHED
    assert any("is done already" in one for one in said)
    applied_once(sql)


def test_killed_anywhere_and_resumed(
    sql: Database, planned: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each third of all statements and COMMITs: what lies between is tried with single transactions."""
    as_replica2(sql)
    before = dump(sql)
    for at in count(0, 3):
        restore(sql, before)
        folder = tmp_path / str(at)
        folder.mkdir()
        killed = False
        with monkeypatch.context() as patched:
            _mortal(patched, at)
            try:
                run(sql, planned, folder)
            except Killed:
                killed = True
        if not killed:
            break
        assert run(sql, planned, folder, resume=True).state == FINISHED
        applied_once(sql)
    assert at > 45
    assert PASSWORD not in "".join(path.read_text() for path in tmp_path.rglob("*.jsonl"))


def _mortal(patched: pytest.MonkeyPatch, at: int) -> None:
    """From here on a connection that applies dies at this of its statements."""
    apply_one = live.apply_one
    left = {"at": at}

    def dying(server: Any, todo: Any) -> None:
        mortal = Mortal(server, left["at"])
        try:
            apply_one(mortal, todo)
        finally:
            left["at"] = mortal._left

    patched.setattr(live, "apply_one", dying)


def dump(sql: Database) -> list[str]:
    tables = [(schema, table) for schema in ("shop", "test") for table in sql.tables(schema)]
    for schema, table in tables:
        sql.run("CREATE DATABASE IF NOT EXISTS kept", f"CREATE TABLE kept.`{schema}_{table}` LIKE {schema}.{table}")
        sql.run(f"INSERT INTO kept.`{schema}_{table}` SELECT * FROM {schema}.{table}")
    return [f"{schema}.{table}" for schema, table in tables]


def restore(sql: Database, tables: list[str]) -> None:
    sql.run("DROP DATABASE IF EXISTS replication_workbench")
    for one in tables:
        sql.run(f"DELETE FROM {one}", f"INSERT INTO {one} SELECT * FROM kept.`{one.replace('.', '_')}`")


def test_a_row_that_was_changed_at_the_replica_stops_and_is_mended(
    sql: Database, planned: Plan, tmp_path: Path
) -> None:
    as_replica2(sql)
    sql.run("DELETE FROM test.person WHERE id = 7")
    outcome = run(sql, planned, tmp_path)
    assert outcome.state == FAILED
    assert (
        "transaction 789 of 1: test.person, id 7" in outcome.why and "0 rows were hit where 1 had to be" in outcome.why
    )
    assert sql.run("SELECT position FROM replication_workbench.applied ORDER BY position") == [("780",), ("784",)]
    sql.run("INSERT INTO test.person VALUES (7, 'x', 'x', 'Y')")
    assert run(sql, planned, tmp_path, resume=True).state == FINISHED
    assert sql.run("SELECT COUNT(*) FROM replication_workbench.applied") == [(5,)]


def test_an_applier_that_runs_and_a_log_that_changed_are_obstacles(
    sql: Database, tmp_path: Path, planned: Plan
) -> None:
    as_replica2(sql)
    sql.run("CREATE DATABASE sys_replication", "CREATE TABLE sys_replication.applier_state (status VARCHAR(9))")
    sql.run("INSERT INTO sys_replication.applier_state VALUES ('RUNNING')")
    with pytest.raises(Problem, match="its own applier runs"):
        run(sql, planned, tmp_path)
    sql.run("UPDATE sys_replication.applier_state SET status = 'STOPPED'")
    case = case_of(tmp_path / "b", FLEET)
    made = plan(case)
    log = Path(made.steps[0].details["transactions"][2]["file"])
    data = bytearray(log.read_bytes())
    data[made.steps[0].details["transactions"][2]["records"][0][0] + 100] ^= 1
    log.write_bytes(data)
    with pytest.raises(Problem, match="does not fit its checksum"):
        run(sql, made, tmp_path)
    assert sql.run("SHOW DATABASES LIKE 'replication_workbench'") == []


def test_by_the_command_line(sql: Database, fleet: Case, planned: Plan, tmp_path: Path) -> None:
    as_replica2(sql)
    secret = tmp_path / "password"
    secret.write_text(PASSWORD + "\n")
    reach = ["--url", f"replica2={sql.url}", "--user", USER, "--password-file", str(secret)]
    said = CliRunner().invoke(main, ["apply", str(fleet.folder), *reach, "--confirm", "replica2"])
    assert said.exit_code == 0, said.output
    applied_once(sql)
    verified = CliRunner().invoke(main, ["verify", str(fleet.folder), *reach])
    assert verified.exit_code == 0 and "notes 5 of 5 transactions as applied" in verified.output
    for variable in ("WORKBENCH_PASSWORD", "WORKBENCH_LDAP_PASSWORD"):
        asked = CliRunner().invoke(main, ["verify", str(fleet.folder), *reach[:4]], env={variable: PASSWORD})
        assert asked.exit_code == 0, asked.output
    assert PASSWORD not in said.output + (fleet.folder / "journal.jsonl").read_text()


def test_the_bundle_is_run_by_the_servers_own_client(sql: Database, planned: Plan, tmp_path: Path) -> None:
    """All of it, though the plan shows the beginning only; and a second time it changes nothing."""
    as_replica2(sql)
    write_bundle(planned, tmp_path / "b")
    script = (tmp_path / "b" / "repair.sh").read_text()
    assert "sql replica2 1-apply-1-to-replica2.sql" in script
    subprocess.run(["sh", "-n", str(tmp_path / "b" / "repair.sh")], check=True)
    text = (tmp_path / "b" / "1-apply-1-to-replica2.sql").read_text()
    assert text.count("COMMIT;") == 5
    assert sql.client(text).returncode == 0
    applied_once(sql)
    assert sql.client(text).returncode != 0
    applied_once(sql)


@pytest.mark.parametrize(
    ("addresses", "what"),
    [
        ([], "no address was given"),
        ([Address("other", url="mysql://h")], "the plan changes no server other"),
        (
            [Address("replica2", url="mysql://h"), Address("replica2", url="mysql://i")],
            "two servers are named replica2",
        ),
        ([Address("replica2", url="ldap://h")], "this is no address"),
    ],
)
def test_addresses_that_do_not_fit_the_plan(planned: Plan, tmp_path: Path, addresses: list[Address], what: str) -> None:
    with pytest.raises(Problem, match=what):
        StreamSite(planned, addresses, Access(), tmp_path, str)


# --- what stops a plan

COLUMNS = [("id", F.INTEGER), ("note", F.VARCHAR)]


def log_of_some(*some: Transaction) -> bytes:
    return b"".join(record(one) for one in some)


def emptied(number: int, table: str) -> Transaction:
    whole = message(number)
    statement = whole.statement.add(type=Statement.TRUNCATE_TABLE, start_timestamp=1, end_timestamp=2)
    named = statement.truncate_table_statement.table_metadata
    named.schema_name, named.table_name = "s", table
    return whole


def streams(*lacking: int, change: dict[int, Transaction] | None = None) -> Logs:
    """A source of transactions 1 to 6, and a replica that lacks some of them."""
    table = message(1)
    create(table, "s.t", COLUMNS, ["id"])
    every = {1: table, **{n: insert(message(n), "s.t", COLUMNS, [[str(n).encode(), b"x"]]) for n in range(2, 7)}}
    every |= change or {}
    return {
        "source": log_of_some(*every.values()),
        "replica": log_of_some(*(one for number, one in every.items() if number not in lacking)),
    }


def courses(made: Plan) -> dict[str, str]:
    return {course.way: "chosen" if course.chosen else course.refused for course in made.courses}


def test_a_ragged_row_stops_the_plan_at_it(tmp_path: Path) -> None:
    ragged = update(message(3), "s.t", COLUMNS[:1], COLUMNS[1:], [([b"2"], [b"x"])])
    ragged.statement[0].update_data.record.add(key_value=[b"2"], after_value=[b"a", b"b"], is_null=[False, False])
    made = plan(case_of(tmp_path, streams(2, 3, 4, change={3: ragged})))
    found = courses(made)
    assert "transaction 3 of 1 has 1 rows that cannot be read safely" in found["apply"]
    assert found["provision"] == "chosen"


def test_a_row_of_another_type_stops_it_too(tmp_path: Path) -> None:
    odd = update(message(3), "s.t", COLUMNS[:1], COLUMNS[:1], [([b"2"], [b"Ana"])])
    assert "no INTEGER" in courses(plan(case_of(tmp_path, streams(3, change={3: odd}))))["apply"]


def test_a_statement_that_is_never_run_stops_it(tmp_path: Path) -> None:
    raw = message(3)
    raw.statement.add(type=99, start_timestamp=1, end_timestamp=2, sql="DROP TABLE t", raw_sql_schema="s")  # type: ignore[arg-type]
    assert "RAW_SQL is not done" in courses(plan(case_of(tmp_path, streams(3, change={3: raw}))))["apply"]


def test_what_is_not_understood_is_not_applied(tmp_path: Path) -> None:
    newer = insert(message(3), "s.t", COLUMNS, [[b"3", b"x"]])
    newer.statement[0].insert_data.record[0].MergeFromString(b"\xa2\x06\x01?")  # a field 100
    made = plan(case_of(tmp_path, streams(3, change={3: newer})))
    assert "transaction 3 of 1 holds what this tool does not know" in courses(made)["apply"]


def test_another_content_asks_for_all_data_anew(tmp_path: Path) -> None:
    logs = streams(5)
    other = streams(5, change={3: insert(message(3), "s.t", COLUMNS, [[b"3", b"OTHER"]])})
    made = plan(case_of(tmp_path, {"source": logs["source"], "replica": other["replica"]}))
    assert "is there with another content" in courses(made)["apply"]
    assert courses(made)["provision"] == "the model throws away 1 change unsaved", "the other content"


def changing(number: int, row: bytes, new: bytes | None = None) -> Transaction:
    columns, values = (COLUMNS, [new, b"y"]) if new else (COLUMNS[1:], [b"y"])
    return update(message(number), "s.t", COLUMNS[:1], columns, [([row], values)])


LATER = {  # what the replica has behind the INSERT of row 3, which it lacks -> it would be undone
    "the same row": ({5: changing(5, b"3")}, True),
    "another row": ({5: changing(5, b"2")}, False),
    "another row becomes it": ({5: changing(5, b"2", b"3")}, True),
    "it is deleted": ({5: delete(message(5), "s.t", COLUMNS[:1], [[b"3"]])}, True),
    "the table is emptied": ({5: emptied(5, "t")}, True),
    "another table is emptied": ({5: emptied(5, "u")}, False),
    "an earlier change of it": ({2: changing(2, b"3")}, False),
    "nothing but new rows": ({}, False),
}


@pytest.mark.parametrize("what", LATER)
def test_what_was_changed_again_is_not_taken_back(tmp_path: Path, what: str) -> None:
    change, undone = LATER[what]
    found = courses(plan(case_of(tmp_path, streams(3, change=change))))
    assert ("transaction 5, which is there, changed" in found["apply"]) == undone
    assert (found["apply"] == "chosen") != undone


def test_what_the_log_of_the_source_has_in_part_was_done_all_the_same(tmp_path: Path) -> None:
    """The replica has 5 whole, which deletes row 3; of the source's log its last message was lost."""
    first = insert(message(5, segment=1, ended=False), "s.t", COLUMNS, [[b"5", b"x"]])
    last = delete(message(5, segment=2), "s.t", COLUMNS[:1], [[b"3"]])
    logs = streams(3, 5)
    at = logs["replica"].index(log_of_some(insert(message(6), "s.t", COLUMNS, [[b"6", b"x"]])))
    logs["replica"] = logs["replica"][:at] + log_of_some(first, last) + logs["replica"][at:]
    logs["source"] = streams(change={5: first})["source"]
    assert "transaction 5 of 1, which is there, changed" in courses(plan(case_of(tmp_path, logs)))["apply"]


def test_pieces_that_a_replica_passed_over_are_gone_from_the_table_once_they_are_applied(tmp_path: Path) -> None:
    """The end of 6 came, its first message did not: it is missing, although nothing behind it is there."""
    first = insert(message(6, segment=1, ended=False), "s.t", COLUMNS, [[b"6", b"x"]])
    last = insert(message(6, segment=2), "s.t", COLUMNS, [[b"7", b"x"]])
    logs = streams(6)
    made = plan(
        case_of(
            tmp_path,
            {"source": logs["replica"] + log_of_some(first, last), "replica": logs["replica"] + log_of_some(last)},
        )
    )
    assert [(row["missing"], row["pending"]) for row in made.before if row["server"] == "replica"] == [(1, 0)]
    assert [row["position"] for row in made.steps[0].details["transactions"]] == ["6"]
    assert not any(row["missing"] or row["pending"] for row in made.after)


def test_rows_of_a_table_that_was_missed_itself() -> None:
    """And where no row is touched twice, nothing stops."""
    whole, into = message(3), insert(message(5), "s.u", COLUMNS, [[b"1", b"x"]])
    create(whole, "s.u", COLUMNS, ["id"])

    def read(one: Transaction, place: int) -> Read:
        return Read(f"transaction {place}", place, lambda: operations(one.SerializeToString(), None, ""))

    assert "changed s.u after transaction 3" in overtaken([read(whole, 3)], [read(into, 5)])
    assert overtaken([read(whole, 3)], [read(into, 2)]) == ""
    assert overtaken([read(into, 3)], [read(insert(message(5), "s.u", COLUMNS, [[b"2", b"x"]]), 5)]) == ""


def test_what_was_missed_before_it_does_not_overtake_it(tmp_path: Path) -> None:
    """Where the later one is missing, too, both are applied, in their order."""
    made = plan(case_of(tmp_path, streams(3, 5, change={5: changing(5, b"3")})))
    assert [one["position"] for one in made.steps[0].details["transactions"]] == ["3", "5"]


def test_rows_come_from_an_exported_log_as_well(tmp_path: Path) -> None:
    logs = streams(3)
    messages = [body for _, _, body, _ in records(logs["source"])]
    rows = [
        {"ID": at, "SEGID": 1, "COMMIT_ID": at, "MESSAGE_LEN": len(one), "MESSAGE": b64encode(one).decode()}
        for at, one in enumerate(messages, 1)
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "replica.log").write_bytes(logs["replica"])
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "in" / "master.replication_log.jsonl").write_text(text)
    name_source(tmp_path / "in", "master.replication_log.jsonl")
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "in"])
    made = plan(case)
    assert courses(made)["apply"] == "chosen"
    assert "INSERT INTO `s`.`t` (`id`, `note`) VALUES (3, 'x');" in made.steps[0].sends


def test_what_is_only_behind_is_applied_when_no_applier_is_known(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, streams(5, 6)))
    assert [one["position"] for one in made.steps[0].details["transactions"]] == ["5", "6"]
    assert "it applies them once more and stops at a row that is there" in made.steps[0].risk


def test_what_only_the_replica_has_is_not_thrown_away(tmp_path: Path) -> None:
    """Where a copy of all data would mend the conflict, it would lose its own transaction: a person has to decide."""
    other = streams(4, 5, change={3: insert(message(3), "s.t", COLUMNS, [[b"3", b"OTHER"]])})["replica"]
    own = record(insert(message(77), "s.t", COLUMNS, [[b"77", b"own"]]))
    made = plan(case_of(tmp_path, {"source": streams()["source"], "replica": other[:-LAST] + own + other[-LAST:]}))
    assert not made.steps and made.unmended == 1
    assert "throws away 2 changes unsaved" in courses(made)["provision"], "its own, and its other content"


LAST = len(record(insert(message(6), "s.t", COLUMNS, [[b"6", b"x"]])))


def test_a_stopped_applier_is_not_started_before_a_gap_is_filled(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("sys_replication_log.jsonl", "slave_queue.jsonl", "slave_state.json"):
        data = gzip.decompress((STREAMS / "innodb_log" / f"{name}.gz").read_bytes())
        (tmp_path / "in" / name).write_bytes(data)
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "in"])
    made = plan(case)
    assert not made.steps and made.unmended
    assert "would pass over" in str(made.courses) or "lacks what it would come to" in str(made.courses)
    assert any(one.startswith("QUEUE_GAP") for one in (*made.open, *made.left))


# --- the model


def model(*holds: int, running: bool | None = None) -> StreamModel:
    lots = [ChangeGroup("1", str(number), str(number)) for number in range(5)]
    servers = {"a": Server("a", "1", None, {}, None, set(range(5))), "b": Server("b", None, None, {}, None, set(holds))}
    links = [] if running is None else [Link("a", "b", running)]
    return StreamModel(
        lots, servers, links, lambda position: "1", lambda origin, n: str(100 + n), places=[3, 1, 4, 2, 9]
    )


def test_what_is_before_the_last_one_never_comes_by_itself() -> None:
    one = model(0, running=True)  # the places that it lacks are 1, 2 before 3, and 4, 9 behind
    assert one.missing() == {MissingAt("b", 1), MissingAt("b", 3)}
    assert one.pending() == {MissingAt("b", 2), MissingAt("b", 4)}
    one.settle()
    assert one.missing() == {MissingAt("b", 1), MissingAt("b", 3)} and not one.pending()
    assert not model(0).session(Link("a", "b", False))


def test_what_came_in_part_and_was_passed_over_is_never_sent() -> None:
    fleet = model(0, 1, 2, 3, running=True)
    fleet.missed = frozenset({("b", 4)})
    assert (fleet.missing(), fleet.pending()) == ({MissingAt("b", 4)}, set())
    fleet.settle()
    assert fleet.missing() == {MissingAt("b", 4)}
    fleet.give("b", [4])
    assert not fleet.missing()


def test_they_are_given_in_the_order_of_commits() -> None:
    result, after = achieved(model(0), [{"do": "give", "server": "b", "lots": [1, 3, 2, 4]}])
    assert len(result.restored) == 4 and not result.unsaid and not after.missing()
    for lots in ([3, 1], [0], [1, 1]):
        with pytest.raises(AssertionError):
            model(0).do([{"do": "give", "server": "b", "lots": lots}])


def test_what_is_passed_over_is_missing_from_then_on() -> None:
    result, _ = achieved(model(0, 1, 3), [{"do": "give", "server": "b", "lots": [4]}])
    assert {lack.lot for lack in result.unsaid} == {2}


def test_a_copy_of_the_model_goes_its_own_way() -> None:
    one = model(0)
    twin = one.copy()
    twin.write("a")
    twin.give("b", [1])
    assert len(one.lots) == len(one.places) == 5 and one.servers["b"].holds == {0}
    assert twin.places[-1] == 10
