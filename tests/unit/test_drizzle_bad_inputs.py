"""Damaged logs of Drizzle: no crash, every byte is in a record or a reject, and nothing is called committed that is not.

What nobody can see is left out here: without checksums a value that changed, and of a stream that does not number its
messages one that is gone without a trace. Of two transactions with one number, in conflict, the second stands alone where
the first is lost; and where a stretch is overwritten together with the beginning of a record, a log within a value of that
record looks like records of the log itself.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from drizzle_samples import (
    LOG,
    delete,
    event,
    frames_of,
    insert,
    parsed_of,
    record,
    sample,
    statement,
    transaction,
    update,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.engine.assembly import assembled
from workbench.model import Parsed
from workbench.replication.stream.rules.segments import COMMITTED
from workbench.systems.drizzle.formats.framing import SUMS, TORN
from workbench.systems.drizzle.formats.segments import read_exactly

NUMBERED = [
    *(
        "01_simple.log",
        "03_bulk_update.log",
        "04_bulk_rollback.log",
        "07_interleaved_bulk.log",
        "11_missing_segment.log",
    ),
    *("12_rollback_statement.log", "13_split_between_statements.log", "14_crash_then_restart.log"),
]


def read(data: bytes, reader: Any = None) -> Parsed:
    """What the reader makes of it; all bytes are accounted for."""
    frames = frames_of(data)
    assert [at for at, _, _ in frames] == [0, *(end for _, end, _ in frames)][: len(frames)]
    assert (frames[-1][1] if frames else 0) == len(data)
    parsed = parsed_of(data, frames, reader)
    assert parsed.rows == len(frames)
    assert len(parsed.rejects) <= parsed.rows
    rejected = {reject.offset for reject in parsed.rejects}
    assert rejected >= {at for at, _, state in frames if state not in SUMS}
    assert rejected <= {at for at, _, _ in frames}
    told = set(parsed.tables["segments"]["offset"].to_pylist()) if parsed.tables else set()
    assert told | {at for at, _, state in frames if state.startswith(TORN)} == {at for at, _, _ in frames}
    return parsed


def committed(parsed: Parsed) -> set[tuple[Any, ...]]:
    """What is told to be committed: who, which, and what is in it."""
    if not parsed.tables:
        return set()
    torn = sum(reject.reason.startswith(TORN) for reject in parsed.rejects)
    made = assembled(parsed.tables["segments"], len(parsed.rejects) > torn)
    rows = made.filter(pa.compute.equal(made["outcome"], COMMITTED)).to_pylist()
    return {(row["origin"], row["position"], row["rows"], row["content"]) for row in rows}


@cache
def truth(name: str) -> set[tuple[Any, ...]]:
    return committed(read(sample(name)))


@pytest.mark.parametrize("name", ["01_simple.log", "02_simple_no_checksum.log", "16_ragged_update.log"])
def test_a_log_cut_anywhere_is_its_whole_records_and_a_torn_one(name: str) -> None:
    data = sample(name)
    frames = frames_of(data)
    for cut in range(len(data)):
        whole = [frame for frame in frames if frame[1] <= cut]
        at = whole[-1][1] if whole else 0
        found = frames_of(data[:cut])
        assert found[: len(whole)] == whole, cut
        assert [one[:2] for one in found[len(whole) :]] == ([(at, cut)] if cut > at else []), cut
        assert all(one[2].startswith(TORN) for one in found[len(whole) :]), cut


@pytest.mark.parametrize("name", ["04_bulk_rollback.log", "16_ragged_update.log", "19_seed_version_bulk.log"])
def test_nothing_more_is_committed_where_a_log_is_cut(name: str) -> None:
    data = sample(name)
    for cut in sorted({*(frame[1] for frame in frames_of(data)), *random.Random(3).sample(range(len(data)), 60)}):
        assert committed(read(data[:cut])) <= truth(name), cut


def flips(names: list[str], count: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(count):
        name = names[number % len(names)]
        data = bytearray(sample(name))
        bit = chance.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        assert committed(read(bytes(data))) <= truth(name), (name, bit)


def test_one_wrong_bit_makes_no_commit() -> None:
    flips(NUMBERED, 250, seed=5)


@pytest.mark.slow
def test_five_thousand_wrong_bits_make_no_commit() -> None:
    flips(NUMBERED, 5000, seed=6)


def test_one_wrong_bit_without_checksums_is_read_without_a_crash() -> None:
    chance = random.Random(8)
    data = sample("02_simple_no_checksum.log")
    for _ in range(300):
        wrong = bytearray(data)
        bit = chance.randrange(8 * len(data))
        wrong[bit // 8] ^= 1 << bit % 8
        assert len(committed(read(bytes(wrong)))) <= len(truth("02_simple_no_checksum.log"))


@pytest.mark.parametrize("checksum", [True, False])
def test_one_wrong_bit_in_a_record_whose_value_is_a_log_brings_none_of_that_log_to_light(checksum: bool) -> None:
    inner = b"".join(record(transaction(900 + number, insert((b"1", b"x")))) for number in range(3))
    outer = record(transaction(800, insert((b"1", inner), (b"2", inner))), checksum)
    around = [record(transaction(number, update((b"1", b"x"))), checksum) for number in (799, 801)]
    data = around[0] + outer + around[1]
    numbers = {int(one[1][:20]) for one in committed(read(data))}
    assert numbers == {799, 800, 801}
    for bit in range(8 * len(around[0]), 8 * (len(around[0]) + len(outer))):
        if 64 + 8 * len(around[0]) < bit and bit % 7:
            continue  # every bit of its header, some of the rest
        wrong = bytearray(data)
        wrong[bit // 8] ^= 1 << bit % 8
        # Without a checksum its own number may change; those of the log within it never show.
        found = {int(one[1][:20]) for one in committed(read(bytes(wrong)))}
        assert not found & {900, 901, 902}, bit
        assert {799, 801} <= found, bit


@pytest.mark.parametrize("name", NUMBERED)
def test_records_in_any_order_make_no_other_commit(name: str) -> None:
    data, chance = sample(name), random.Random(name)
    records = [data[at:end] for at, end, _ in frames_of(data)]
    for _ in range(12):
        some = chance.sample(records, chance.randint(1, len(records)))
        some += chance.choices(records, k=chance.randint(0, 4))
        chance.shuffle(some)
        junk = [chance.choice([b"", b"", bytes(40), chance.randbytes(30)]) for _ in some]
        found = committed(read(b"".join(part for pair in zip(some, junk, strict=True) for part in pair)))
        assert found <= truth(name)


@pytest.mark.parametrize("name", NUMBERED)
def test_a_hole_of_zeros_anywhere_makes_no_commit(name: str) -> None:
    chance = random.Random(name)
    for _ in range(25):
        data = bytearray(sample(name))
        at, length = chance.randrange(len(data)), chance.choice([1, 8, 100, 3000])
        data[at : at + length] = bytes(len(data[at : at + length]))
        assert committed(read(bytes(data))) <= truth(name)


# Logs that are made

VALUES = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=120, max_size=300))
STRANGE = st.sampled_from(["", "", "", "field", "kind", "type", "long"])


@st.composite
def messages(draw: Any, number: int, numbered: bool) -> tuple[list[Any], bool]:
    """(the messages of a transaction, whether it is committed)."""
    server = draw(st.integers(1, 3))
    count = draw(st.integers(1, 3))
    made = []
    for piece in range(1, count + 1):
        rows = draw(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=3))
        one: Any = insert(*rows, piece=piece, ended=piece == count)
        if count == 1 and draw(st.booleans()):
            one = draw(
                st.sampled_from(
                    [update((b"k", b"v"), (b"l", None)), delete(b"a", b"b"), statement("ROLLBACK_STATEMENT")]
                )
            )
        ends = (piece, piece == count) if numbered else (None, None)
        made.append(transaction(number, one, server=server, segment=ends[0], ended=ends[1], at=piece))
    fate = draw(st.sampled_from(["commit", "commit", "cut", "rollback"]))
    if fate == "cut" and count > 1:
        made.pop()
    elif fate == "rollback":
        made[-1] = transaction(
            number, statement("ROLLBACK"), server=server, segment=count if numbered else None, ended=True
        )
        if not numbered:
            made[-1].ClearField("end_segment")
    return made, fate == "commit" or (fate == "cut" and count == 1)


def strange(body: bytes, how: str) -> bytes:
    """The message with something that the reader does not know."""
    if how == "field":
        return body + b"\x7a\x03new"
    if how == "long":  # another spelling of the same: a number in more bytes than it needs
        return body + b"\x20\x81\x80\x00" if body[-4:-2] == b"\x20\x01" else body
    return body


@st.composite
def streams(draw: Any) -> tuple[bytes, set[str], bool]:
    """(a log, the numbers of its committed transactions, whether anything in it is no record)."""
    numbered, checksum = draw(st.booleans()), draw(st.booleans())
    waiting = [draw(messages(number, numbered)) for number in range(100, 100 + draw(st.integers(1, 6)))]
    good = {
        f"{100 + at:020d}:{one[0][0].transaction_context.server_id:010d}" for at, one in enumerate(waiting) if one[1]
    }
    queues = [list(made) for made, _ in waiting]
    parts, lost = [], False
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        parts.append(record(strange(queue.pop(0).SerializeToString(), draw(STRANGE)), checksum))
        match draw(st.integers(0, 12)):
            case 0:
                junk = draw(st.one_of(st.integers(1, 90).map(bytes), st.binary(min_size=1, max_size=60)))
                parts, lost = [*parts, junk], True
            case 1:
                parts.append(record(b"what nobody knows", checksum, kind=draw(st.sampled_from([2, 5, 77]))))
            case 2:
                inner = b"".join(record(transaction(n, insert((b"1",))), draw(st.booleans())) for n in (900, 901))
                parts.append(record(transaction(500 + len(parts), insert((b"1", inner)), server=9), checksum))
                good.add(f"{500 + len(parts) - 1:020d}:{9:010d}")
            case 3:
                parts.append(record(event(600, server=8), checksum))
    return b"".join(parts), good, lost


@settings(max_examples=80, deadline=None)
@given(streams())
def test_made_logs_are_read_alike_both_ways_and_only_commits_are_committed(made: tuple[bytes, set[str], bool]) -> None:
    data, good, lost = made
    parsed, exact = read(data), read(data, read_exactly)
    assert parsed.tables["segments"] == exact.tables["segments"]
    assert parsed.rejects == exact.rejects
    found = {one[1] for one in committed(parsed)}
    assert found <= good
    if not lost:
        assert found == good


@settings(max_examples=60, deadline=None)
@given(streams(), st.integers(min_value=30, max_value=2000))
def test_made_logs_are_read_alike_in_shares(made: tuple[bytes, set[str], bool], share: int) -> None:
    """Guessing where shares begin and reading again those that were wrong ends at what reading from the start gives."""
    data, assert_frames = made[0], LOG.frames
    assert assert_frames

    def within(start: int, end: int, known: bool) -> list[tuple[int, int, str]]:
        return list(assert_frames(lambda at, length: data[at : at + length], len(data), start, end, known))

    whole, at, found = within(0, len(data), True), 0, []
    for start in range(0, len(data), share):
        end = min(start + share, len(data))
        guess = within(start, end, start == 0)
        if (guess[0][0] if guess else None) != (at if at < end else None):
            guess = within(at, end, True)
        found += guess
        at = found[-1][1]
    assert found == whole


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=400), st.binary(max_size=30))
def test_anything_can_be_read(data: bytes, more: bytes) -> None:
    for some in (
        data,
        b"\1\0\0\0" + data,
        b"\1\0\0\0\x14\0\0\0\x0a\x10\x08" + data,
        record(data),
        record(data, False) + more,
    ):
        assert len(committed(read(some))) <= 1
