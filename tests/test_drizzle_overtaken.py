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

from workbench.case import Case
from workbench.planning import plan
from workbench.plans import Plan
from workbench.systems.drizzle.formats import messages_pb2
from workbench.systems.drizzle.overtaken import Done, Late, overtaken
from workbench.systems.drizzle.rows import Operation, operations


def does(*statements: Any) -> Any:
    message = transaction(1, *statements).SerializeToString()

    def read() -> Iterator[Operation]:
        return operations(message, None, "here")

    return read


def judged(late: list[tuple[int, Any]], done: list[tuple[int, Any]]) -> int | None:
    """The number of the first late transaction that must not be applied; `late` tells behind which place each comes late."""
    mine = [Late(f"late {at}", read, after) for at, (after, read) in enumerate(late)]
    theirs = [Done(f"done {place}", place, read) for place, read in done]
    found = overtaken(mine, lambda: theirs)
    return None if found is None else found[0]


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
    ],
)
def test_a_row_that_was_changed_since(late: Any, done: Any, harmed: bool) -> None:
    assert judged([(10, does(late))], [(20, does(done))]) == (0 if harmed else None)
    # What the replica did before stays right.
    assert judged([(10, does(late))], [(10, does(done))]) is None


def test_a_key_that_changes_is_two_rows() -> None:
    moved = messages_pb2.Statement()
    moved.CopyFrom(update((b"1", b"2")))
    moved.update_header.set_field_metadata[0].name = "id"
    for other, harmed in ((b"1", True), (b"2", True), (b"3", False)):
        assert judged([(0, does(moved))], [(5, does(update((other, b"y"))))]) == (0 if harmed else None)
        assert judged([(0, does(update((other, b"y"))))], [(5, does(moved))]) == (0 if harmed else None)


def test_each_is_judged_by_its_own_place() -> None:
    late = [(10, does(update((b"1", b"x")))), (30, does(update((b"2", b"x"))))]
    assert judged(late, [(20, does(update((b"2", b"y"))))]) is None
    assert judged(late, [(40, does(update((b"2", b"y"))))]) == 1
    assert judged(late, [(40, does(update((b"2", b"y")), update((b"1", b"y"))))]) == 0


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_a_slow_look_says_the_same(seed: int) -> None:
    chance = random.Random(seed)

    def some() -> list[tuple[str, bytes]]:
        return [(chance.choice("tu"), bytes([chance.randrange(6) + 48])) for _ in range(chance.randrange(1, 4))]

    late = [(chance.randrange(20), some()) for _ in range(chance.randrange(1, 4))]
    done = [(chance.randrange(20), some()) for _ in range(chance.randrange(4))]
    harmed = [
        at for at, (after, rows) in enumerate(late) if any(place > after and set(rows) & set(of) for place, of in done)
    ]

    def made(rows: list[tuple[str, bytes]]) -> Any:
        return does(*(update((key, b"x"), table=table) for table, key in rows))

    found = judged([(after, made(rows)) for after, rows in late], [(place, made(rows)) for place, rows in done])
    assert found == min(harmed, default=None)


def fleet(folder: Path, *messages: Any, lacks: int) -> Plan:
    """The plan for a primary with these transactions, and a replica that lacks one."""
    collected = folder / "collected"
    collected.mkdir()
    (collected / "primary.log").write_bytes(b"".join(map(record, messages)))
    kept = (one for one in messages if one.transaction_context.transaction_id != lacks)
    (collected / "replica.log").write_bytes(b"".join(map(record, kept)))
    case = Case.create(folder / "case")
    case.load([collected])
    return plan(case)


def test_the_plan_stops_at_what_comes_too_late(tmp_path: Path) -> None:
    begin = transaction(1, insert((b"1", b"a"), (b"2", b"a")))
    missed, later = transaction(2, update((b"1", b"b"))), transaction(3, update((b"1", b"c")))
    made = fleet(tmp_path, begin, missed, later, lacks=2)
    assert "changed the row 1 of test.t, and so did transaction 3 of 1" in str(made)
    assert all(step.repair != "apply" for step in made.steps)


def test_the_plan_goes_on_where_other_rows_were_changed(tmp_path: Path) -> None:
    begin = transaction(1, insert((b"1", b"a"), (b"2", b"a")))
    missed, later = transaction(2, update((b"1", b"b"))), transaction(3, update((b"2", b"c")))
    made = fleet(tmp_path, begin, missed, later, lacks=2)
    assert [step.repair for step in made.steps] == ["apply"]
