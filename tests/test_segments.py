"""The state machine of transactions: the cases of the given logs in words, and histories of a source that is simulated."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_histories import Sent, Source

from workbench.engine.assembly import assembled
from workbench.replication.stream.rules import segments
from workbench.replication.stream.rules.segments import Message, Piece, Stream, Transaction, transactions
from workbench.tables import table


def insert(number: int = 1, ended: bool = True, rows: int = 1) -> Piece:
    return Piece("INSERT", "test.person", number, ended, rows)


def message(offset: int, number: int | None, ended: bool | None, *pieces: Piece, **more: Any) -> Message:
    return Message(offset, number, ended, pieces or (insert(),), more.pop("content", offset), **more)


ROLLBACK = Piece("ROLLBACK")
LAST, MORE = True, False
NOTHING_ELSE = Stream()


def only(messages: Iterable[Message], stream: Stream = NOTHING_ELSE) -> Transaction:
    (one,) = transactions(messages, stream)
    return one


@pytest.mark.parametrize(
    ("messages", "outcomes"),
    [
        ([message(0, 1, MORE, insert(1, MORE)), message(9, 2, LAST, insert(2), life=1)], ["committed"]),
        ([message(0, 1, MORE, insert(1, MORE)), message(9, 3, LAST, insert(3), life=1)], ["incomplete"]),
        ([message(0, 1, MORE, insert(1, MORE)), message(9, 2, LAST, ROLLBACK, life=1)], ["rolled_back"]),
        ([message(0, 1, MORE, insert(1, MORE)), message(9, 1, LAST, life=1)], ["aborted", "committed"]),
        ([message(0, None, None, insert(1, MORE)), message(9, None, None, insert(2), life=1)], ["committed"]),
    ],
)
def test_what_goes_on_behind_a_start_was_not_cut_by_it(messages: list[Message], outcomes: list[str]) -> None:
    """A replica with the server id of its source notes its own starts under that id."""
    assert [one.outcome for one in transactions(messages, Stream(lives=1))] == outcomes


def test_one_message_with_its_end_is_a_commit() -> None:
    one = only([message(0, 1, LAST)])
    assert (one.outcome, one.rows, one.ended, one.kept) == ("committed", {"test.person": {"insert": 1}}, True, 1)


@pytest.mark.parametrize(
    ("messages", "outcome", "missing"),
    [
        ([message(0, 1, MORE, insert(1, MORE)), message(9, 2, LAST, insert(2))], "committed", None),
        ([message(0, 1, MORE, insert(1, MORE)), message(9, 3, LAST, insert(3))], "incomplete", (2,)),
        ([message(9, 2, LAST, insert(2))], "incomplete", (1,)),
        ([message(0, 1, MORE, insert(1, MORE))], "unfinished", "tail"),
        ([message(0, 1, MORE)], "unfinished", None),
        ([message(0, 1, MORE, insert(1, MORE)), message(9, 2, LAST, ROLLBACK)], "rolled_back", None),
        ([message(0, 1, LAST, ROLLBACK)], "rolled_back", None),
        ([message(0, 1, LAST), message(9, 1, LAST, content=0)], "committed", None),
        ([message(0, 1, LAST), message(9, 1, LAST)], "conflict", None),
        ([message(0, 1, LAST), message(9, 2, LAST)], "conflict", None),
        ([message(0, 1, LAST), message(9, 2, LAST, ROLLBACK)], "conflict", None),
        ([message(0, 1, LAST, sound=False)], "corrupt", None),
        ([message(0, None, MORE)], "unfinished", None),
        ([message(0, 1, LAST, known=False)], "unknown", None),
        ([message(0, 1, MORE, insert(1, MORE)), message(9, 2, LAST, insert(1))], "unknown", None),
        ([message(0, None, None), message(9, None, None)], "committed", None),
        ([message(0, None, None, insert(1, MORE)), message(9, None, None, insert(2))], "committed", None),
        ([message(0, None, None, insert(1, MORE))], "unfinished", "tail"),
        ([message(0, None, None, insert(2))], "incomplete", (1,)),
    ],
)
def test_outcomes(messages: list[Message], outcome: str, missing: Any) -> None:
    one = only(messages)
    assert (one.outcome, one.missing) == (outcome, missing)
    assert (one.counting == ()) == (outcome != "committed")


def test_a_start_of_the_server_closes_what_was_open() -> None:
    open_one = [message(0, 1, MORE, insert(1, MORE))]
    assert only(open_one, Stream(lives=1)).outcome == "aborted"
    assert only([message(0, 1, MORE, insert(1, MORE), life=1)], Stream(lives=1)).outcome == "unfinished"


def test_a_number_used_again_after_a_start_is_another_transaction() -> None:
    first, second = transactions([message(0, 1, LAST), message(99, 1, LAST, life=1)], Stream(lives=1))
    assert (first.outcome, first.why, second.outcome, second.why) == (
        "committed",
        None,
        "committed",
        segments.NUMBER_REUSED,
    )


def test_a_second_delivery_after_a_start_is_no_new_transaction() -> None:
    first, second = transactions([message(0, 1, LAST), message(99, 1, LAST, content=0, life=1)], Stream(lives=1))
    assert (first.outcome, second.outcome, second.repeated, second.rows) == ("committed", "repeated", 1, {})


def test_a_failed_statement_takes_back_its_own_pieces_and_no_others() -> None:
    failed = Piece("UPDATE", "shop.orders", 1, False, 5)
    one = only(
        [message(0, 1, MORE, insert(rows=2), failed), message(9, 2, LAST, Piece("ROLLBACK_STATEMENT"), insert(rows=4))]
    )
    assert (one.outcome, one.rows, one.seen, one.kept) == ("committed", {"test.person": {"insert": 6}}, 11, 6)


def test_of_a_message_of_which_half_was_taken_back_the_other_half_is_told_again() -> None:
    failed = Piece("UPDATE", "test.person", 1, MORE, 4)
    back = Piece("ROLLBACK_STATEMENT")
    one = only([message(0, 1, MORE, insert(rows=2), failed), message(5, 2, LAST, back)])
    assert one.kept == 2
    assert [(found.offset, number) for found, number in segments.kept_pieces(one.counting)] == [(0, 0)]


def test_a_second_delivery_does_not_move_the_end() -> None:
    one = only([message(0, 1, MORE), message(10, 2, LAST), message(20, 1, MORE, content=0)])
    assert (one.outcome, one.repeated, one.last) == ("committed", 1, 10)


def test_a_savepoint_repeats_a_number_and_the_last_one_stands() -> None:
    one = only(
        [
            message(0, 1, MORE, insert(1, MORE, 100)),
            message(5, 2, MORE, insert(2, True, 24)),
            message(9, 1, LAST, insert(rows=3)),
        ]
    )
    assert (one.outcome, one.why, one.rows) == ("conflict", segments.OTHER_CONTENT, {"test.person": {"insert": 3}})


def test_without_numbers_a_loss_makes_a_commit_uncertain() -> None:
    assert only([message(0, None, None)], Stream(lost=True)).why == segments.LOST_BESIDE
    assert only([message(0, 1, LAST)], Stream(lost=True)).outcome == "committed"


def test_every_reason_has_a_sentence_and_every_open_one_a_question() -> None:
    reasons = {segments.OPEN, segments.RESTARTED, segments.GAPS, segments.BAD_SUM, segments.OTHER_CONTENT}
    reasons |= {segments.NUMBER_REUSED, segments.TWO_ENDS, segments.NOT_KNOWN, segments.UNFIT, segments.LOST_BESIDE}
    assert set(segments.ASK) == reasons
    assert set(segments.SAYS) == reasons | {segments.TAKEN_BACK, segments.AGAIN}


def by_transaction(sent: Iterable[Sent], lives: int, lost: bool = False) -> dict[int, list[Transaction]]:
    messages: dict[int, list[Message]] = {}
    for one in sent:
        messages.setdefault(one.transaction, []).append(one.message)
    return {number: transactions(mine, Stream(lives, lost)) for number, mine in messages.items()}


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 10**9), st.booleans())
def test_what_the_source_sent_whole_is_told_as_it_was(seed: int, numbered: bool) -> None:
    source = Source(seed, numbered)
    source.run()
    found = by_transaction(source.log, source.life)
    for number, truth in source.truth.items():
        told = found.get(number)
        if told is None:
            # Rolled back, or lost in a crash, before anything was sent; or a commit in which nothing was left.
            assert truth.fate != "committed" or truth.rows == {}
            continue
        (one,) = told
        if one.outcome == "committed":
            assert (truth.fate, one.rows) == ("committed", truth.rows)
        if truth.fate == "committed" and one.outcome != "committed":
            # The known silence: an empty last message is not sent.
            assert one.outcome in ("unfinished", "aborted") and not segments_open(one)
        if truth.fate == "rolled_back":
            assert one.outcome in ("rolled_back", "unfinished", "aborted")


def segments_open(one: Transaction) -> bool:
    last = one.messages[-1].pieces[-1]
    return last.number is not None and not last.ended


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 10**9))
def test_with_messages_lost_no_commit_is_told_that_was_none(seed: int) -> None:
    source = Source(seed, savepoints=True)
    source.run()
    kept = [one for one in source.log if source.random.random() > 0.25]
    for number, told in by_transaction(kept, source.life, lost=True).items():
        truth = source.truth[number]
        for one in told:
            if one.outcome == "committed" and not repeats(source.log, number):
                assert (truth.fate, one.rows) == ("committed", truth.rows)


def repeats(log: Iterable[Sent], number: int) -> bool:
    """A number sent twice by a savepoint, of which one copy is lost: nothing in what is left shows that there was another."""
    numbers = [one.message.number for one in log if one.transaction == number]
    return len(numbers) != len(set(numbers))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_numbered_messages_may_come_in_any_order(seed: int) -> None:
    source = Source(seed)
    source.run()
    before = by_transaction(source.log, 0)
    for number, told in before.items():
        mine = [one.message for one in source.log if one.transaction == number]
        shuffled = random.Random(seed).sample(mine, len(mine))
        moved = [Message(at, m.number, m.ended, m.pieces, m.content) for at, m in enumerate(shuffled)]
        assert [one.outcome for one in transactions(moved, Stream())][-1:] == [
            one.outcome
            for one in transactions([Message(m.offset, m.number, m.ended, m.pieces, m.content) for m in mine], Stream())
        ][-1:], (number, told)


def rows_of(source: Source) -> pa.Table:
    """What a reader of the source's log would write into the table `segments`."""
    rows = []
    lives = {one.message.life for one in source.log}
    first = {life: min(one.message.offset for one in source.log if one.message.life == life) for life in lives}
    for life, offset in first.items():
        # A start is told before the first message of each life but the first.
        if life:
            about = {
                "offset": offset - 1,
                "length": 1,
                "content": life,
                "origin": "1",
                "position": f"{life:020d}:0000000001",
            }
            rows.append(about | {"segment": 1, "ended": True, "event": "STARTUP"})
    for one in source.log:
        m = one.message
        about = {
            "offset": m.offset,
            "length": 7,
            "content": m.content,
            "origin": "1",
            "position": f"{one.transaction:020d}:0000000001",
        }
        about |= {"segment": m.number, "ended": m.ended}
        for number, piece in enumerate(m.pieces):
            cut = {"piece": piece.number, "piece_ended": piece.ended if piece.number else None}
            rows.append(
                about
                | cut
                | {
                    "number": number,
                    "operation": piece.operation,
                    "target": piece.target,
                    "rows": piece.rows,
                    "ragged": 0,
                }
            )
    return table("segments", rows)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.booleans(), st.booleans())
def test_the_columns_and_the_rule_tell_the_same(seed: int, numbered: bool, lost: bool) -> None:
    source = Source(seed, numbered, savepoints=True)
    source.run(12)
    if not source.log:
        return
    whole = rows_of(source)
    lives = len(np.unique(whole.filter(pa.compute.is_valid(whole["event"]))["offset"].to_numpy()))
    renumbered = sorted({one.message.life for one in source.log})
    expected = {}
    for number, mine in _messages(source, renumbered).items():
        expected[number] = [
            (one.outcome, one.rows, one.seen, one.kept, one.repeated) for one in transactions(mine, Stream(lives, lost))
        ]
    found: dict[int, list[Any]] = {}
    for row in assembled(whole, lost).to_pylist():
        if not row["event"]:
            rows = None if row["rows"] is None else json.loads(row["rows"])
            told = (row["outcome"], rows, row["seen"], row["kept"], row["repeated"])
            found.setdefault(int(row["position"][:20]), []).append(told)
    assert found == expected


def _messages(source: Source, lives: list[int]) -> dict[int, list[Message]]:
    """By transaction, with lives counted as the log shows them: one in which nothing was sent leaves no start."""
    found: dict[int, list[Message]] = {}
    for one in source.log:
        m = one.message
        life = lives.index(m.life) + (0 if lives[0] == 0 else 1)
        found.setdefault(one.transaction, []).append(
            Message(m.offset, m.number, m.ended, m.pieces, m.content, life=life)
        )
    return found


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_without_numbers_a_loss_is_never_a_commit(seed: int) -> None:
    source = Source(seed, numbered=False)
    source.run()
    kept = [one for one in source.log if source.random.random() > 0.25]
    told = by_transaction(kept, source.life, lost=len(kept) < len(source.log))
    for number, found in told.items():
        truth = source.truth[number]
        assert all((truth.fate, one.rows) == ("committed", truth.rows) for one in found if one.outcome == "committed")
