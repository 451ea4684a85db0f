"""Contents of transactions in two logs, where messages have no numbers: what is alike, unlike, left out, or not compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import (
    WHOLE,
    commits,
    exported,
    named,
    of_second,
    of_two_tables,
    one,
    queue,
    state,
    two_masters,
    unnumbered,
)
from drizzle_samples import insert, record, transaction

from workbench.case.case import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.diagnosis_text import headline
from workbench.replication.stream.rules.unnumbered import (
    ALIKE,
    LEFT_OUT,
    NOT_COMPARED,
    UNLIKE,
    Committed,
    contents_of_two,
)


def of(content: int, numbered: bool, size: int = 100, messages: int = 1, **rows: int) -> Committed:
    return Committed(content, numbered, {table: {"insert": count} for table, count in rows.items()}, "", messages, size)


WHICH: list[tuple[str, Committed, Committed, set[str], str]] = [
    ("the same bytes", of(1, False, t=1), of(1, False, t=1), {"t"}, ALIKE),
    ("both have numbers", of(1, True, t=1), of(2, True, t=1), {"t"}, UNLIKE),
    ("neither has, and both have the same tables", of(1, False, t=1), of(2, False, t=1), {"t"}, UNLIKE),
    ("a filter takes whole tables, no rows", of(1, True, t=2), of(2, False, t=1), {"t"}, UNLIKE),
    ("the copy has nothing of u anywhere", of(1, True, t=1, u=1), of(2, False, t=1), {"t"}, LEFT_OUT),
    ("the copy has u elsewhere", of(1, True, t=1, u=1), of(2, False, t=1), {"t", "u"}, UNLIKE),
    ("a copy with numbers is behind no filter", of(1, False, t=1, u=1), of(2, True, t=1), {"t"}, UNLIKE),
    ("shorter by the numbers", of(1, True, t=1), of(2, False, 96, t=1), {"t"}, NOT_COMPARED),
    ("shorter by more", of(1, True, t=1), of(2, False, 95, t=1), {"t"}, UNLIKE),
    ("the source is that without numbers", of(1, False, 96, t=1), of(2, True, t=1), {"t"}, NOT_COMPARED),
    ("three messages", of(1, True, 300, 3, t=3), of(2, False, 288, 3, t=3), {"t"}, NOT_COMPARED),
    ("as many bytes without numbers", of(1, True, 300, 3, t=3), of(2, False, 300, 3, t=3), {"t"}, UNLIKE),
    ("cut otherwise", of(1, True, 300, 3, t=3), of(2, False, 200, 2, t=3), {"t"}, NOT_COMPARED),
]


@pytest.mark.parametrize(
    ("source", "copy", "here", "says"), [each[1:] for each in WHICH], ids=[each[0] for each in WHICH]
)
def test_how_two_contents_compare(source: Committed, copy: Committed, here: set[str], says: str) -> None:
    assert contents_of_two(source, copy, {"t", "u"}, here)[0] == says


def diagnosed(folder: Path, files: dict[str, bytes]) -> dict[str, Any]:
    (folder / "in").mkdir()
    for name, data in files.items():
        (folder / "in" / name).write_bytes(data)
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return diagnose(case)


def test_old_servers_of_one_id_are_unrelated(tmp_path: Path) -> None:
    other = unnumbered(*range(1, 8), **{f"t{number}": "other" for number in range(1, 8)})
    found = diagnosed(tmp_path, {"a.log": unnumbered(*range(1, 8)), "b.log": other})
    assert {row["why"] for row in found["unknown"]} == {"unrelated"}
    assert all(row["unrelated"] for row in found["pairs"])


def test_what_changed_only_a_table_that_is_left_out_is_not_called_missing(tmp_path: Path) -> None:
    only_u = transaction(5, insert((b"5", b"x"), table="u"))
    numbers = [1, 2, 3, 4, 6, 7]
    source = b"".join(map(of_two_tables, numbers[:4])) + record(only_u) + b"".join(map(of_two_tables, numbers[4:]))
    copy = b"".join(of_two_tables(number, True) for number in numbers)
    found = diagnosed(
        tmp_path, {"a.log": source + one(9), "b.log": copy + unnumbered(9), "case.yaml": named("a", "a.log")}
    )
    assert found["missing"] == []
    assert [(row["server"], row["from"], row["why"]) for row in found["unknown"]] == [
        ("b", "5", "copy_leaves_out_tables")
    ]
    told = {
        row["server"]: (row["verdict"], row["rule"]) for row in story(Case.open(tmp_path / "case"), "1:5")["servers"]
    }
    assert told["b"] == ("unknown", "copy_leaves_out_tables")


def test_a_copy_that_leaves_out_a_statement_holds_no_transaction_whole(tmp_path: Path) -> None:
    """b lacks 5; c, behind a filter, has it without its statement of test.u: only a can give it."""
    logs = {
        name: b"".join(of_two_tables(n, name == "c") for n in range(1, 9) if (name, n) != ("b", 5)) for name in "abc"
    }
    found = diagnosed(
        tmp_path, {**{f"{name}.log": log for name, log in logs.items()}, "case.yaml": named("a", "a.log")}
    )
    assert [(row["server"], row["position"], row["held_by"]) for row in found["missing"]] == [("b", "5", ["a"])]


def test_a_log_is_found_by_what_a_queue_of_one_master_holds(tmp_path: Path) -> None:
    """Two logs number commits, and the one master of s is that of which its queue holds commits 5 and 6."""
    found = diagnosed(
        tmp_path,
        {
            "m.replication-log.jsonl": exported(commits(*range(1, 7))),
            "n.replication-log.jsonl": exported((at, of_second(at)) for at in range(1, 7)),
            "s.state.json": state(4),
            "s.queue.jsonl": queue([(at, of_second(at)) for at in (5, 6)]),
        },
    )
    assert [(row["source"], row["behind"]) for row in found["appliers"]] == [("n", 2)]
    assert "MASTER_NOT_MATCHED" not in {row["code"] for row in found["findings"]}


def test_a_queue_that_two_logs_have_alike_names_no_master(tmp_path: Path) -> None:
    log = exported(commits(*range(1, 7)))
    files = {"m.replication-log.jsonl": log, "n.replication-log.jsonl": log, "s.state.json": state(4)}
    found = diagnosed(tmp_path, {**files, "s.queue.jsonl": two_masters(*((1, at, row) for at, row in commits(5, 6)))})
    assert [row["source"] for row in found["appliers"]] == [None]
    assert "MASTER_NOT_MATCHED" in {row["code"] for row in found["findings"]}


def test_a_queue_behind_a_filter_is_not_called_another_content(tmp_path: Path) -> None:
    """The rows of a queue tell the numbers of messages from which a filter took them."""
    rows = [(at, _without_numbers(row)) for at, row in commits(3, 4)]
    files = {"m.replication-log.jsonl": exported(commits(*range(1, 5))), "s.state.json": state(2)}
    lines = [json.loads(line) for line in queue(rows).splitlines()]
    given = "".join(json.dumps({**line, "seg_id": 1}) + "\n" for line in lines).encode()
    found = diagnosed(tmp_path, {**files, "s.queue.jsonl": given})
    assert headline(found).startswith("No change is missing; 2 are on the way to s")


def test_an_empty_document_is_told(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, {"a.log": WHOLE, "b.log": WHOLE, "s.state.json": b"", "s.queue.jsonl": b""})
    assert [row["summary"] for row in found["findings"] if row["code"] == "UNREADABLE_INPUT"] == [
        "s.state.json: the file is empty, which no JSON document is; what it does not show is not known"
    ]


def _without_numbers(message: Any) -> Any:
    made = transaction(1)
    made.CopyFrom(message)
    made.ClearField("segment_id")
    made.ClearField("end_segment")
    return made
