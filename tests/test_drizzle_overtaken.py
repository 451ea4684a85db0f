"""Transactions that come late must not set back what the replica changed since: the rule, and the plan that asks it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drizzle_samples import delete, insert, record, statement, transaction, update
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_files import name_source

from workbench.case.case import Case
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan
from workbench.systems.drizzle.formats import messages_pb2
from workbench.systems.drizzle.overtaken import Read, overtaken
from workbench.systems.drizzle.rows import Operation, operations


def does(*statements: Any) -> Any:
    message = transaction(1, *statements).SerializeToString()

    def read() -> Iterator[Operation]:
        return operations(message, None, "here")

    return read


def judged(late: list[tuple[int, Any]], done: list[tuple[int, Any]]) -> bool:
    """True if one of the late transactions was overtaken; each stands at its place in the order of commits."""
    mine = [Read(f"late {place}", place, read) for place, read in late]
    return bool(overtaken(mine, [Read(f"done {place}", place, read) for place, read in done]))


DROP_SCHEMA = statement("DROP_SCHEMA")
DROP_SCHEMA.drop_schema_statement.schema_name = "test"
TRUNCATE = statement("TRUNCATE_TABLE")
TRUNCATE.truncate_table_statement.table_metadata.schema_name = "test"
TRUNCATE.truncate_table_statement.table_metadata.table_name = "t"


@pytest.mark.parametrize(
    ("late", "done", "harmed"),
    [
        (update((b"1", b"x")), update((b"1", b"y")), True),
        (update((b"1", b"x")), update((b"2", b"y")), False),
        (update((b"1", b"x")), update((b"1", b"y"), table="u"), False),
        (update((b"1", b"x")), delete(b"1"), True),
        (delete(b"1"), insert((b"1", b"y")), True),
        (delete(b"1"), insert((b"2", b"y")), False),
        (insert((b"1", b"x")), update((b"1", b"y")), True),
        (insert((b"1", b"x")), update((b"2", b"y")), False),
        # No statement tells the key: the server itself refuses a row that is there.
        (insert((b"1", b"x")), insert((b"1", b"y")), False),
        (update((b"1", b"x")), TRUNCATE, True),
        (TRUNCATE, insert((b"1", b"y")), True),
        (TRUNCATE, insert((b"1", b"y"), table="u"), False),
        (insert((b"1", b"x")), statement("RAW_SQL", sql="RENAME TABLE test.t TO test.u", raw_sql_schema="test"), True),
        (TRUNCATE, DROP_SCHEMA, True),
        (insert((b"1", b"x")), statement("CREATE_SCHEMA"), False),
        (DROP_SCHEMA, insert((b"1", b"x")), True),
    ],
)
def test_a_row_that_was_changed_since(late: Any, done: Any, harmed: bool) -> None:
    assert judged([(10, does(late))], [(20, does(done))]) == harmed
    # What the replica did before stays right.
    assert not judged([(10, does(late))], [(9, does(done))])


def test_a_key_that_changes_is_two_rows() -> None:
    moved = messages_pb2.Statement()
    moved.CopyFrom(update((b"1", b"2")))
    moved.update_header.set_field_metadata[0].name = "id"
    for other, harmed in ((b"1", True), (b"2", True), (b"3", False)):
        assert judged([(0, does(moved))], [(5, does(update((other, b"y"))))]) == harmed
        assert judged([(0, does(update((other, b"y"))))], [(5, does(moved))]) == harmed


def test_each_is_judged_by_its_own_place() -> None:
    late = [(10, does(update((b"1", b"x")))), (30, does(update((b"2", b"x"))))]
    assert not judged(late, [(20, does(update((b"2", b"y"))))])
    assert judged(late, [(40, does(update((b"2", b"y"))))])
    assert judged(late, [(20, does(update((b"2", b"y")), update((b"1", b"y"))))])


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_a_slow_look_says_the_same(seed: int) -> None:
    chance = random.Random(seed)

    def some() -> list[tuple[str, bytes]]:
        return [(chance.choice("tu"), bytes([chance.randrange(6) + 48])) for _ in range(chance.randrange(1, 4))]

    late = [(chance.randrange(20), some()) for _ in range(chance.randrange(1, 4))]
    done = [(chance.randrange(20), some()) for _ in range(chance.randrange(4))]
    harmed = any(place > after and set(rows) & set(of) for after, rows in late for place, of in done)

    def made(rows: list[tuple[str, bytes]]) -> Any:
        return does(*(update((key, b"x"), table=table) for table, key in rows))

    found = judged([(after, made(rows)) for after, rows in late], [(place, made(rows)) for place, rows in done])
    assert found == harmed


def fleet(folder: Path, *messages: Any, lacks: int, own: tuple[Any, ...] = ()) -> Plan:
    """The plan for a primary with these transactions, and a replica that lacks one."""
    collected = folder / "collected"
    collected.mkdir()
    (collected / "primary.log").write_bytes(b"".join(map(record, messages)))
    kept = (one for one in messages if one.transaction_context.transaction_id != lacks)
    (collected / "replica.log").write_bytes(b"".join(map(record, (*kept, *own))))
    name_source(collected, "primary.log")
    case = Case.create(folder / "case")
    case.load([collected])
    return plan(case)


def test_the_plan_stops_at_what_comes_too_late(tmp_path: Path) -> None:
    begin = transaction(1, insert((b"1", b"a"), (b"2", b"a")))
    missed, later = transaction(2, update((b"1", b"b"))), transaction(3, update((b"1", b"c")))
    made = fleet(tmp_path, begin, missed, later, lacks=2)
    assert "transaction 3, which is there, changed rows of test.t later" in str(made)
    assert all(step.repair != "apply" for step in made.steps)


def test_the_plan_goes_on_where_other_rows_were_changed(tmp_path: Path) -> None:
    begin = transaction(1, insert((b"1", b"a"), (b"2", b"a")))
    missed, later = transaction(2, update((b"1", b"b"))), transaction(3, update((b"2", b"c")))
    made = fleet(tmp_path, begin, missed, later, lacks=2)
    assert [step.repair for step in made.steps] == ["apply"]


@pytest.mark.parametrize(("key", "harmed"), [(b"1", True), (b"2", False)])
def test_what_the_replica_did_by_itself_counts_as_well(tmp_path: Path, key: bytes, harmed: bool) -> None:
    begin, missed = transaction(1, insert((b"1", b"a"), (b"2", b"a"))), transaction(2, update((b"1", b"b")))
    later = transaction(3, insert((b"9", b"c")))
    of_its_own = transaction(70, update((key, b"c")), server=7)
    made = fleet(tmp_path, begin, missed, later, lacks=2, own=(of_its_own,))
    assert ("transaction 70 of 7, which is there, changed rows of test.t later" in str(made)) == harmed
    assert [step.repair for step in made.steps if step.repair == "apply"] == ([] if harmed else ["apply"])


@pytest.mark.parametrize("missed", [TRUNCATE, DROP_SCHEMA])
@pytest.mark.parametrize("own", [False, True])
def test_what_empties_a_table_takes_nothing_with_it_that_came_later(missed: Any, own: bool, tmp_path: Path) -> None:
    begin, late = transaction(1, insert((b"1", b"a"))), transaction(2, missed)
    new, last = transaction(3, insert((b"5", b"new"))), transaction(4, insert((b"9", b"c"), table="u"))
    # Under the number of the source, behind all that both have: nothing but the replica's log tells of it.
    of_its_own = (transaction(70, insert((b"6", b"new"))),)
    made = fleet(tmp_path, begin, late, *(() if own else (new,)), last, lacks=2, own=of_its_own if own else ())
    assert "which is there, changed test." in str(made)
    assert all(step.repair != "apply" for step in made.steps)
