"""Small incidents of Drizzle, as the files that an operator would collect: logs, exported tables, what a replica says."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from drizzle_samples import delete, event, insert, record, statement, transaction, update

Files = Mapping[str, bytes]


def one(number: int, value: str = "x", server: int = 1) -> bytes:
    """A transaction that inserts one row, its number the key."""
    row = insert((b"%d" % number, value.encode()))
    return record(transaction(number, row, server=server, at=number * 1000))


def log(*numbers: int, **contents: str) -> bytes:
    """Transactions in this order; `t5="y"` is another content of the fifth."""
    return b"".join(one(number, contents.get(f"t{number}", "x")) for number in numbers)


WHOLE = log(*range(1, 11))


def cut_between(number: int, count: int = 3) -> list[Any]:
    """The messages of a bulk that was cut between its statements."""
    rows = [insert((b"%d-%d" % (number, at), b"x")) for at in range(1, count + 1)]
    return [transaction(number, row, segment=at, ended=at == count) for at, row in enumerate(rows, 1)]


def cut_within(number: int, count: int = 3, numbered: bool = True) -> list[Any]:
    """The messages of a bulk that was cut within its one statement; not `numbered`: as writers before 2011 made them."""
    found = []
    for at in range(1, count + 1):
        row = insert((b"%d-%d" % (number, at), b"x"), piece=at, ended=at == count)
        fields: dict[str, Any] = {"segment": at, "ended": at == count} if numbered else {"segment": None, "ended": None}
        found.append(transaction(number, row, **fields))
    return found


def written(messages: Iterable[Any]) -> bytes:
    return b"".join(record(message) for message in messages)


def named(server: str, file: str, origin: str = "1") -> bytes:
    """A case.yaml in which a person names the source."""
    return f"servers:\n- name: {server}\n  origin: '{origin}'\n  files: [{file}]\n".encode()


def exported(messages: Iterable[tuple[int, Any]]) -> bytes:
    """Rows of SYS_REPLICATION_LOG: (COMMIT_ID, message) each."""
    lines = []
    for commit, message in messages:
        body = message.SerializeToString()
        about = {"ID": message.transaction_context.transaction_id, "SEGID": message.segment_id, "COMMIT_ID": commit}
        lines.append(json.dumps({**about, "MESSAGE_LEN": len(body), "MESSAGE": base64.b64encode(body).decode()}) + "\n")
    return "".join(lines).encode()


def queue(messages: Iterable[tuple[int, Any]]) -> bytes:
    """Rows of a slave's queue: (commit_order, message) each."""
    lines = []
    for commit, message in messages:
        about = {"trx_id": message.transaction_context.transaction_id, "seg_id": message.segment_id}
        lines.append(json.dumps({**about, "commit_order": commit, "msg": str(message), "master_id": 1}) + "\n")
    return "".join(lines).encode()


def state(applied: int, stopped: str = "", reader: str = "") -> bytes:
    """What a slave says of its threads; `stopped`: the error that its applier stands on, `reader`: the other thread."""
    applier = {
        "master_id": 1,
        "last_applied_commit_id": applied,
        "status": "STOPPED" if stopped else "RUNNING",
        "error_msg": stopped,
    }
    reads = {"master_id": 1, "status": "STOPPED" if reader else "RUNNING", "error_msg": reader}
    return (json.dumps({"io_state": [reads], "applier_state": [applier]}, indent=1) + "\n").encode()


def row_of(number: int) -> Any:
    return transaction(number, insert((b"%d" % number, b"x")))


def unnumbered(*numbers: int, **contents: str) -> bytes:
    """As `log`, of messages without numbers: those of a writer before 2011, or of a filter that dropped nothing."""
    rows = {number: insert((b"%d" % number, contents.get(f"t{number}", "x").encode())) for number in numbers}
    return written(transaction(number, row, segment=None, ended=None, at=number * 1000) for number, row in rows.items())


def of_two_tables(number: int, filtered: bool = False) -> bytes:
    """A transaction that changes test.t and test.u; `filtered`: a filter dropped what it did to test.u."""
    rows = [insert((b"%d" % number, b"x")), *([] if filtered else [insert((b"%d" % number, b"x"), table="u")])]
    numbers: dict[str, Any] = {"segment": None, "ended": None} if filtered else {"segment": 1, "ended": True}
    return record(transaction(number, *rows, **numbers, at=number * 1000))


def two_masters(*rows: tuple[int, int, Any]) -> bytes:
    """Rows of the queue of a slave with several masters: (master_id, commit_order, message) each."""
    lines = [
        queue([(commit, message)]).replace(b'"master_id": 1', b'"master_id": %d' % of) for of, commit, message in rows
    ]
    return b"".join(lines)


def applied_of_two(first: int, second: int) -> bytes:
    """What a slave of two masters says: how far it applied each."""
    threads = [{"master_id": of, "status": "RUNNING", "error_msg": ""} for of in (1, 2)]
    appliers = [dict(thread, last_applied_commit_id=at) for thread, at in zip(threads, (first, second), strict=True)]
    return (json.dumps({"io_state": threads, "applier_state": appliers}, indent=1) + "\n").encode()


def of_second(commit: int) -> Any:
    """What the second master committed: transaction 200 + n of server 2."""
    return transaction(200 + commit, insert((b"%d" % (200 + commit), b"x")), server=2)


def updated(number: int, value: bytes) -> bytes:
    return record(transaction(number, update((b"3", value)), at=number * 1000))


def commits(*numbers: int, bulk: int = 0) -> list[tuple[int, Any]]:
    """The rows of a master's log: transaction 100 + n has commit n; one may be a bulk of three messages."""
    found: list[tuple[int, Any]] = []
    for number in numbers:
        if number == bulk:
            parts = cut_within(100 + number)
            found += [(number if part is parts[-1] else 0, part) for part in parts]
        else:
            found.append((number, row_of(100 + number)))
    return found


def without_segment(rows: list[tuple[int, Any]], number: int, segment: int) -> list[tuple[int, Any]]:
    return [r for r in rows if (r[1].transaction_context.transaction_id, r[1].segment_id) != (number, segment)]


def waits(**rest: Any) -> dict[str, bytes]:
    """A master with commits 1 to 6, commit 3 a bulk of three messages, and a slave that applied 2 of them."""
    return {
        "m.replication-log.jsonl": exported(commits(*range(1, 7), bulk=3)),
        "s.state.json": state(2, rest.get("stopped", "")),
        "s.queue.jsonl": queue(rest.get("rows", commits(*range(3, 7), bulk=3))),
    }


def emptied(number: int, table: str = "t") -> bytes:
    made = statement("TRUNCATE_TABLE")
    named_by = made.truncate_table_statement.table_metadata
    named_by.schema_name, named_by.table_name = "test", table
    return record(transaction(number, made))


def _raw(number: int) -> bytes:
    text = "ALTER TABLE t ADD COLUMN c2 INT"
    return record(transaction(number, statement("RAW_SQL", sql=text, raw_sql_schema="test")))


def damaged(data: bytes, at: int) -> bytes:
    """The same with one byte turned."""
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def _ragged() -> bytes:
    made = update((b"5", b"new"))
    made.update_data.record.add(key_value=[b"6"], after_value=[b"a", b"b"], is_null=[False, False])
    return record(transaction(11, made))


def _unknown() -> bytes:
    made = transaction(11, insert((b"11", b"x")))
    made.statement[0].insert_data.record[0].MergeFromString(b"\xa2\x06\x01?")  # a field 100
    return record(made)


def _taken_back() -> list[Any]:
    parts = cut_within(50, 4)[:3]
    return [*parts, transaction(50, statement("ROLLBACK"), segment=4)]


def _statement_taken_back() -> list[Any]:
    """The second statement is cut, fails, and is replaced; the third one commits."""
    first = transaction(50, insert((b"a", b"x")), insert((b"b1", b"x"), piece=1, ended=False), segment=1, ended=False)
    second = transaction(50, insert((b"b2", b"x"), piece=2, ended=False), segment=2, ended=False)
    third = transaction(50, statement("ROLLBACK_STATEMENT"), insert((b"c", b"x")), segment=3)
    return [first, second, third]


START = record(event(11))
BULK, OLD_BULK = cut_between(50), cut_within(50, numbered=False)
AFTER = log(51, 52)

INCIDENTS: dict[str, Files] = {
    # --- whose log is the source
    "fourth_log_with_own_write": {"a.log": WHOLE, "b.log": WHOLE, "c.log": WHOLE, "d.log": WHOLE + log(11)},
    "two_contents_of_one_number": {"a.log": WHOLE, "b.log": log(*range(1, 11), t5="other")},
    "two_logs_each_with_own": {"a.log": WHOLE + log(20, 21), "b.log": WHOLE + log(30)},
    "named_source_would_lose_errant": {
        "a.log": WHOLE,
        "b.log": log(*range(1, 11), 20, t5="other"),
        "case.yaml": named("a", "a.log"),
    },
    "named_source_one_missed": {
        "a.log": WHOLE,
        "b.log": log(*range(1, 5), *range(6, 9)),
        "case.yaml": named("a", "a.log"),
    },
    "start_proves_the_source": {"a.log": record(event(0)) + WHOLE, "b.log": log(*range(1, 5), *range(6, 11))},
    # --- queues
    "queue_lacks_a_segment": waits(rows=without_segment(commits(*range(3, 7), bulk=3), 103, 2)),
    "queue_gap": waits(rows=commits(4, 5, 6)),
    "queue_whole": waits(),
    "applier_stopped": waits(stopped="(SQLSTATE 23000) Duplicate entry '7' for key 'PRIMARY'"),
    # --- within a log
    "old_bulk_lacks_segment_2": {"a.log": log(1, 2) + written([OLD_BULK[0], OLD_BULK[2]]) + AFTER},
    "errant_under_own_id": {"a.log": WHOLE, "b.log": WHOLE + one(3, server=7)},
    "one_bad_checksum": {"a.log": damaged(log(1, 2, 3), len(log(1)) + len(log(2)) - 1)},
    "truncate_in_the_way": {
        "a.log": log(1, 2, 3, 4) + emptied(5) + log(6),
        "b.log": log(1, 2, 4) + emptied(5) + log(6),
        "case.yaml": named("a", "a.log"),
    },
    "missed_truncate": {
        "a.log": log(1, 2, 3, 4) + emptied(5) + log(6),
        "b.log": log(1, 2, 3, 4, 6),
        "case.yaml": named("a", "a.log"),
    },
    "missed_raw_sql": {
        "a.log": log(1, 2, 3, 4) + _raw(5) + log(6),
        "b.log": log(1, 2, 3, 4, 6),
        "case.yaml": named("a", "a.log"),
    },
    # --- more of each kind
    "torn_tail": {"a.log": WHOLE[:-7]},
    "torn_header": {"a.log": WHOLE + one(11)[:5]},
    "bulk_taken_back": {"a.log": log(1) + written(_taken_back()) + AFTER},
    "statement_taken_back": {"a.log": log(1) + written(_statement_taken_back()) + AFTER},
    "crashed_bulk": {"a.log": log(1) + written(BULK[:2]) + START + AFTER},
    "open_bulk": {"a.log": log(1) + written(BULK[:2]) + AFTER},
    "interleaved_bulks": {
        name: log(1) + written(m for pair in zip(BULK, cut_within(53), strict=True) for m in pair) + AFTER
        for name in ("a.log", "b.log")
    },
    "delivered_twice": {"a.log": WHOLE, "b.log": WHOLE + log(10), "case.yaml": named("a", "a.log")},
    "copy_lacks_middle_of_bulk": {
        "a.log": log(1) + written(BULK) + AFTER,
        "b.log": log(1) + written([BULK[0], BULK[2]]) + AFTER,
        "case.yaml": named("a", "a.log"),
    },
    "copy_begins_later": {"a.log": WHOLE, "b.log": log(*range(6, 11)), "case.yaml": named("a", "a.log")},
    "zeroes_in_the_copy": {
        "a.log": WHOLE,
        "b.log": log(*range(1, 5)) + bytes(len(one(5))) + log(*range(6, 11)),
        "case.yaml": named("a", "a.log"),
    },
    "without_checksums": {
        name: b"".join(record(row_of(number), checksum=False) for number in range(1, 6)) for name in ("a.log", "b.log")
    },
    "ragged_update": {"a.log": WHOLE + _ragged()},
    "unknown_field": {"a.log": WHOLE + _unknown()},
    "later_change_of_a_missed_row": {
        "a.log": log(1, 2, 3, 4) + record(transaction(5, delete(b"3"))) + log(6),
        "b.log": log(1, 2, 4) + record(transaction(5, delete(b"3"))) + log(6),
        "case.yaml": named("a", "a.log"),
    },
    "unrelated_servers_of_one_id": {
        "a.log": log(*range(1, 8), **{f"t{n}": f"a{n}" for n in range(1, 8)}),
        "b.log": log(*range(1, 8), **{f"t{n}": f"b{n}" for n in range(1, 8)}),
    },
    # --- and more
    "two_masters_each_other": {
        name: WHOLE + b"".join(one(n, server=2) for n in range(1, 5)) for name in ("a.log", "b.log")
    },
    "reader_stopped": {
        "m.replication-log.jsonl": exported(commits(*range(1, 7))),
        "s.state.json": state(2, reader="Lost connection to master"),
        "s.queue.jsonl": queue(commits(3, 4)),
    },
    "master_purged_too_far": {
        "m.replication-log.jsonl": exported(commits(5, 6, 7)),
        "s.state.json": state(2),
        "s.queue.jsonl": b"",
    },
    "master_read_before_its_slave": {
        "m.replication-log.jsonl": exported(commits(*range(1, 7))),
        "s.state.json": state(8),
        "s.queue.jsonl": b"",
    },
    "row_of_the_queue_twice": waits(rows=[*commits(*range(3, 7), bulk=3), commits(3, bulk=3)[0]]),
    "last_message_on_its_way": waits(rows=without_segment(commits(3, bulk=3), 103, 3)),
    "copy_lacks_the_rollback": {
        "a.log": log(1) + written(_taken_back()) + AFTER,
        "b.log": log(1) + written(_taken_back()[:3]) + AFTER,
        "case.yaml": named("a", "a.log"),
    },
    "savepoint_sends_a_number_twice": {
        "a.log": log(1) + written([BULK[0], transaction(50, insert((b"other", b"x")), segment=1, ended=False)]) + AFTER
    },
    "shutdown_and_no_start": {"a.log": log(1) + written(BULK[:2]) + record(event(60, "SHUTDOWN"))},
    "number_used_again_after_a_rebuild": {"a.log": WHOLE + record(event(0)) + log(1, 2, 3, t1="n", t2="n", t3="n")},
    "length_of_a_record_damaged": {"a.log": damaged(WHOLE, 4 * len(one(1)) + 5)},
    "empty_log_of_a_copy": {"a.log": WHOLE, "b.log": b"", "case.yaml": named("a", "a.log")},
    "copy_took_other_content": {
        "a.log": WHOLE,
        "b.log": log(*range(1, 11), t5="other"),
        "c.log": WHOLE,
        "case.yaml": named("a", "a.log"),
    },
    # --- and more queues
    "unreadable_row_of_a_queue": {
        **waits(),
        "s.queue.jsonl": queue(commits(3, 4))
        + b'{"trx_id": 105, "seg_id": 1, "commit_order": 5, "msg": "?", "master_id": 1}\n'
        + queue(commits(6)),
    },
    "queue_lacks_the_first_message": waits(rows=without_segment(commits(*range(3, 7), bulk=3), 103, 1)),
    "gap_behind_what_comes": waits(rows=commits(3, 5, 6, bulk=3)),
    "left_over_in_the_queue": waits(rows=[*commits(1, 2), *commits(*range(3, 7), bulk=3)]),
    "two_slaves_one_with_a_gap": {
        **waits(),
        "t.state.json": state(2),
        "t.queue.jsonl": queue(commits(4, 5, 6)),
    },
    # --- messages without numbers
    "filtered_copy_missed_one": {
        "a.log": b"".join(map(of_two_tables, range(1, 9))),
        "b.log": b"".join(of_two_tables(number, True) for number in range(1, 9) if number != 5),
        "case.yaml": named("a", "a.log"),
    },
    "filtered_copy": {
        "a.log": b"".join(map(of_two_tables, range(1, 9))) + one(9),
        "b.log": b"".join(of_two_tables(number, True) for number in range(1, 9)) + unnumbered(9),
        "case.yaml": named("a", "a.log"),
    },
    "copy_lacks_a_statement": {
        "a.log": b"".join(map(of_two_tables, range(1, 9))),
        "b.log": b"".join(of_two_tables(number, number == 5) for number in range(1, 9)),
        "case.yaml": named("a", "a.log"),
    },
    "old_logs_of_other_content": {
        "a.log": unnumbered(*range(1, 11)),
        "b.log": unnumbered(*range(1, 11), t5="other"),
        "case.yaml": named("a", "a.log"),
    },
    "unnumbered_copy_of_other_content": {
        "a.log": WHOLE,
        "b.log": unnumbered(*range(1, 11), t5="other"),
        "case.yaml": named("a", "a.log"),
    },
    # --- later changes, and ends that another log has
    "updated_again_later": {
        "a.log": log(1, 2, 3, 4) + updated(5, b"five") + log(6) + updated(7, b"seven") + log(8),
        "b.log": log(1, 2, 3, 4, 6) + updated(7, b"seven") + log(8),
        "case.yaml": named("a", "a.log"),
    },
    "copy_has_the_end_of_a_crashed_bulk": {
        "a.log": log(1) + written(BULK[:2]) + record(event(60)) + log(61),
        "b.log": log(1) + written(BULK) + log(61),
        "case.yaml": named("a", "a.log"),
    },
    # --- queues and logs together
    "queue_has_other_content": waits(
        rows=[*commits(3, bulk=3), (4, transaction(104, insert((b"104", b"other")))), *commits(5, 6)]
    ),
    "two_masters_one_with_a_gap": {
        "m.replication-log.jsonl": exported(commits(*range(1, 7))),
        "n.replication-log.jsonl": exported((commit, of_second(commit)) for commit in range(1, 7)),
        "s.state.json": applied_of_two(4, 2),
        "s.queue.jsonl": two_masters(
            *((1, commit, message) for commit, message in commits(5, 6)),
            *((2, commit, of_second(commit)) for commit in (4, 5)),
        ),
    },
    "second_master_not_matched": {
        "m.replication-log.jsonl": exported(commits(*range(1, 7))),
        "s.state.json": applied_of_two(2, 5),
        "s.queue.jsonl": two_masters(*((1, commit, message) for commit, message in commits(4, 5, 6))),
    },
    "queue_holds_what_was_purged": {
        "m.replication-log.jsonl": exported(commits(5, 6, 7)),
        "s.state.json": state(2),
        "s.queue.jsonl": queue(commits(3, 4)),
    },
    "queue_read_after_the_log": {
        "m.replication-log.jsonl": exported(commits(*range(1, 6))),
        "s.state.json": state(2),
        "s.queue.jsonl": queue(commits(3, 5, 6, 7)),
    },
    "purged_between_queue_and_log": {
        "m.replication-log.jsonl": exported(commits(4, 5, 6)),
        "t.state.json": state(1),
        "t.queue.jsonl": queue(commits(2)),
    },
    "states_empty_and_cut": {
        "m.replication-log.jsonl": exported(commits(*range(1, 7))),
        "s.state.json": b"",
        "s.queue.jsonl": queue(commits(3, 4)),
        "t.state.json": state(2)[:40],
        "t.queue.jsonl": queue(commits(3, 4)),
    },
    # --- what another log settles
    "damaged_at_the_source_and_whole_elsewhere": {
        "a.log": damaged(WHOLE, 5 * len(one(5)) - 1),
        "b.log": log(*range(1, 5), *range(6, 11)),
        "c.log": WHOLE,
        "case.yaml": named("a", "a.log"),
    },
    "no_end_here_and_committed_there": {
        "a.log": log(1) + written(_statement_taken_back()) + AFTER,
        "b.log": log(1) + written(_statement_taken_back()[:2]) + AFTER,
        "case.yaml": named("a", "a.log"),
    },
    "export_without_an_end": {
        "m.replication-log.jsonl": exported([*commits(1, 2), *((0, part) for part in BULK[:2]), *commits(3)]),
        "s.state.json": state(3),
        "s.queue.jsonl": b"",
    },
    "two_of_three_logs_with_own": {
        "a.log": WHOLE,
        "b.log": log(1, 2, 3, 33, 4, 5, 6, 7, 9, 10),
        "c.log": log(*range(1, 8)),
    },
}
