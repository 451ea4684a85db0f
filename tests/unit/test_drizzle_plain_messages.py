"""Messages that hold rows alone are read by the column: whatever they hold, it tells what the protobuf runtime does."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_messages import F, insert, message, update

from workbench.systems.drizzle.formats import plain_messages
from workbench.systems.drizzle.formats.segments import Messages

COLUMNS = [("id", F.BIGINT), ("name", F.VARCHAR)]


def told(bodies: list[bytes], many: bool) -> tuple[list[dict[str, object]], list[tuple[int, str]], object]:
    messages = Messages()
    for number, body in enumerate(bodies):
        messages.add(number, True, body)
    messages.read(many)
    rejects = [(one.offset, one.reason) for one in messages.rejects]
    return messages.table().to_pylist(), sorted(rejects), messages.times()


class Wire:
    """Writes messages as no program does, and any may: fields in any order, twice or not at all, long numbers, odd tags."""

    def __init__(self, seed: int, oddity: float) -> None:
        self.random, self.oddity = random.Random(seed), oddity

    def odd(self) -> bool:
        return self.random.random() < self.oddity

    def number(self, value: int) -> bytes:
        if self.odd():
            value = self.random.choice([0, 2, 127, 128, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64 + 5, 2**69])
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
        if self.odd():  # longer than it need be
            for _ in range(self.random.randrange(12 - len(out))) if len(out) < 12 else ():
                out[-1] |= 128
                out.append(0)
        return bytes(out)

    def field(self, number: int, value: int | bytes) -> bytes:
        if self.odd():
            number = self.random.choice([0, 1, 2, 3, 4, 5, 6, 10, 15, 16, 19, 100])
        if isinstance(value, int):
            return self.number(number << 3) + self.number(value)
        if self.odd():
            return self.number(number << 3 | self.random.choice([1, 3, 5])) + bytes(8)
        return self.number(number << 3 | 2) + self.number(len(value)) + value

    def whole(self, fields: list[bytes]) -> bytes:
        fields = list(fields)
        if self.odd():
            self.random.shuffle(fields)
        if self.odd():
            fields.append(self.random.choice(fields or [b""]))
        if self.odd() and fields:
            fields.pop(self.random.randrange(len(fields)))
        data = b"".join(fields)
        return data[: self.random.randrange(len(data) + 1)] if self.odd() else data

    def row(self, kind: int, keys: int, values: int) -> bytes:
        key, value, null = {1: (0, 1, 2), 2: (1, 0, 0), 3: (1, 2, 4)}[kind]
        texts = [self.random.randbytes(self.random.choice([0, 1, 5, 127, 128, 300])) for _ in range(keys + values)]
        made = [self.field(key, text) for text in texts[:keys]] if key else []
        made += [self.field(value, text) for text in texts[keys:]] if value else []
        nulls = [self.field(null, self.random.randrange(2)) for _ in range(values)] if null else []
        return self.whole(made + (nulls if self.random.random() < 0.9 else []))

    def statement(self, rows: int) -> bytes:
        kind = self.random.choice([1, 1, 2, 3])
        keys, values = (0 if kind == 1 else 1), (0 if kind == 2 else self.random.randrange(3))
        table = self.whole([self.field(1, b"shop"), self.field(2, self.random.choice([b"orders", b"n\xff", b""]))])
        column = self.whole([self.field(1, 1), self.field(2, b"c")])
        header = [self.field(1, table), *(self.field(2, column) for _ in range(keys if kind != 1 else values))]
        header += [self.field(3, column) for _ in range(values)] if kind == 3 else []
        data = [self.field(1, self.random.choice([1, 1, 2])), self.field(2, self.random.randrange(2))]
        data += [self.field(3, self.row(kind, keys, values)) for _ in range(rows)]
        first = {1: 5, 2: 9, 3: 7}[kind]
        made = [self.field(1, kind), self.field(2, 10**15), self.field(3, 10**15 + 5)]
        made += [self.field(4, b"insert ...")] if self.random.random() < 0.2 else []
        return self.whole([*made, self.field(first, self.whole(header)), self.field(first + 1, self.whole(data))])

    def transaction(self, statements: int, rows: int) -> bytes:
        times = [self.field(3, 10**15), self.field(4, 10**15 + self.random.randrange(100))]
        about = self.whole([self.field(1, 1), self.field(2, self.random.randrange(2**64)), *times])
        made = [self.field(1, about), *(self.field(2, self.statement(rows)) for _ in range(statements))]
        return self.whole([*made, self.field(4, 1), self.field(5, 1)] if self.random.random() < 0.8 else made)


@pytest.mark.parametrize("oddity", [0.0, 0.0005, 0.02])
@pytest.mark.parametrize("count", [3, 120])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_whatever_messages_hold_the_columns_tell_what_the_runtime_tells(seed: int, count: int, oddity: float) -> None:
    wire = Wire(seed, oddity)
    bodies = [
        wire.transaction(wire.random.choice([0, 1, 1, 2, 60]), wire.random.choice([0, 1, 3])) for _ in range(count)
    ]
    bodies += [wire.transaction(1, wire.random.choice([200, 500])) for _ in range(2)]
    wire.random.shuffle(bodies)
    assert told(bodies, True) == told(bodies, False)
    if not oddity:  # or the runtime would have been asked about all of them
        assert plain_messages.read(bodies).plain.all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**40), flips=st.integers(1, 60))
def test_so_it_is_with_bits_that_are_flipped(seed: int, flips: int) -> None:
    wire = Wire(seed, 0)
    bodies = [bytearray(wire.transaction(2, wire.random.choice([1, 2, 90]))) for _ in range(70)]
    for _ in range(flips):
        body = wire.random.choice(bodies)
        body[wire.random.randrange(len(body))] ^= 1 << wire.random.randrange(8)
    damaged = [bytes(body) for body in bodies]
    assert told(damaged, True) == told(damaged, False)


def test_rows_are_counted_in_messages_of_every_length() -> None:
    rows = [(b"%d" % number, None if number % 3 else b"x" * (number % 400)) for number in range(9_000)]
    bulk = insert(message(1), "shop.orders", COLUMNS, rows).SerializeToString()
    small = update(message(2), "shop.orders", COLUMNS[:1], COLUMNS[1:], [((b"1",), (b"2",))]).SerializeToString()
    found = plain_messages.read([bulk, *[small] * 100, bulk])
    assert found.plain.all()
    assert found.statements["rows"].to_pylist() == [9_000, *[1] * 100, 9_000]
    assert found.statements["ragged"].to_pylist() == [0] * 102
    short = insert(message(3), "shop.orders", COLUMNS, [row[:1] for row in rows[:5]]).SerializeToString()
    assert plain_messages.read([short, bulk]).statements["ragged"].to_pylist() == [5, 0]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("length", range(1, 12))
@pytest.mark.parametrize("level", ["message", "context", "statement", "data", "row"])
@pytest.mark.parametrize("odd", ["no field", "length"])
def test_a_field_of_no_number_and_a_long_length_are_what_they_are_to_the_runtime(
    odd: str, level: str, length: int, count: int
) -> None:
    """A zero in place of a byte ends a number, and what follows is a field with the number 0: no message has one."""
    wire = Wire(1, 0)

    def made(fields: list[bytes], here: str, number: int) -> bytes:
        if here != level:
            return b"".join(fields)
        if odd == "no field":
            return b"".join([*fields, wire.number(0), wire.number(5)])
        padded = bytes([1 | 128, *[128] * (length - 2), 0])[: max(length, 2)] if length > 1 else b"\x01"
        return b"".join([*fields, wire.number(number << 3 | 2), padded, b"x"])

    row = made([wire.field(1, b"v"), wire.field(2, 0)], "row", 1)
    data = made([wire.field(1, 1), wire.field(2, 1), wire.field(3, row)], "data", 3)
    header = wire.field(1, wire.field(1, b"shop") + wire.field(2, b"t")) + wire.field(
        2, wire.field(1, 1) + wire.field(2, b"c")
    )
    fields = [wire.field(1, 1), wire.field(2, 1), wire.field(3, 1), wire.field(5, header), wire.field(6, data)]
    statement = made(fields, "statement", 4)
    about = made([wire.field(number, 1) for number in (1, 2, 3, 4)], "context", 5)
    body = made([wire.field(1, about), wire.field(2, statement), wire.field(4, 1), wire.field(5, 1)], "message", 2)
    assert told([body] * count, True) == told([body] * count, False)


def test_a_row_with_fewer_null_marks_than_values_is_ragged() -> None:
    wire = Wire(1, 0)
    row = wire.field(1, b"1") + wire.field(1, b"")
    header = insert(message(1), "shop.orders", COLUMNS, []).statement[0].insert_header.SerializeToString()
    data = wire.field(1, 1) + wire.field(2, 1) + wire.field(3, row + wire.field(2, 0)) * 2 + wire.field(3, row)
    made = [wire.field(1, 1), wire.field(2, 5), wire.field(3, 5), wire.field(5, header), wire.field(6, data)]
    about = b"".join(wire.field(number, 1) for number in (1, 2, 3, 4))
    body = wire.field(1, about) + wire.field(2, b"".join(made)) + wire.field(4, 1) + wire.field(5, 1)
    found = plain_messages.read([body])
    assert found.plain.all() and found.statements["ragged"].to_pylist() == [2]
    assert told([body], True) == told([body], False)


def test_messages_that_are_made_to_take_long_do_not() -> None:
    """Records and others in turn, so that no stretch is alike: each is gone through once."""
    wire = Wire(1, 0)
    inside = b"".join([wire.field(3, b""), wire.field(2, 1)] * 40_000)
    header = wire.field(1, wire.field(1, b"a") + wire.field(2, b"b"))
    made = [wire.field(1, 1), wire.field(2, 5), wire.field(3, 5), wire.field(5, header), wire.field(6, inside)]
    about = b"".join(wire.field(number, 1) for number in (1, 2, 3, 4))
    body = wire.field(1, about) + wire.field(2, b"".join(made))
    assert told([body] * 3, True) == told([body] * 3, False)


@pytest.mark.parametrize("count", [1, 60])
def test_rows_of_fields_without_end_are_left_to_the_runtime(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_messages, "_STEPS", 20)
    monkeypatch.setattr(plain_messages, "_MOST", 1000)
    bodies = {
        wide: insert(message(1), "shop.orders", COLUMNS * wide, [(b"1", None) * wide] * 2).SerializeToString()
        for wide in (3, 240, 260)
    }
    assert plain_messages.read([bodies[3], bodies[240]] * count).plain.all()
    assert not plain_messages.read([bodies[260]] * count).plain.any()
    assert told([bodies[260]] * count, True) == told([bodies[260]] * count, False)


@pytest.mark.parametrize("count", [1, 100])
def test_numbers_beyond_those_that_a_field_holds_are_left_to_the_runtime(count: int) -> None:
    wire = Wire(1, 0)
    for server, transaction, plain in (
        (1, 2**64 - 1, True),
        (1, 2**64, False),
        (2**32, 1, False),
        (2**32 - 1, 1, True),
    ):
        about = wire.field(1, server) + wire.field(2, transaction) + wire.field(3, 1) + wire.field(4, 1)
        assert plain_messages.read([wire.field(1, about)] * count).plain.tolist() == [plain] * count
