"""The numbers by which twins are found: never different for twins, and the same for hardly anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.likeness import among, entry_only, likeness
from workbench.systems.ds389.rules.proving import PROVING

TEXTS = st.text(alphabet="aAb\né\0", max_size=90)


def _number(entry: str, text: str, passed_over: Any = ()) -> int:
    return int(likeness(pa.array([entry]), pa.array([text]), passed_over)[0])


def _looked_at(text: str) -> bytes:
    """The first two lines, 64 bytes at most, with capital letters and what differs from others by their bit made alike."""
    lines = b"\n".join(text.encode().split(b"\n")[:2])
    return bytes(one | 32 for one in lines[:64])


@given(st.lists(st.tuples(st.text(alphabet="0aA-", max_size=45), TEXTS), min_size=2, max_size=40))
def test_alike_as_if_taken_out_one_by_one(rows: list[tuple[str, str]]) -> None:
    entry, text = (pa.array(column) for column in zip(*rows, strict=True))
    numbers = likeness(entry, text).tolist()
    told = [(bytes(c | 32 for c in e.encode()[:40]).ljust(40), _looked_at(t).ljust(64) if t else b"") for e, t in rows]
    for one, number in zip(told, numbers, strict=True):
        for other, its in zip(told, numbers, strict=True):
            # An empty text is not the same as one of blanks: of these nothing more is asked than that they are found.
            if one == other:
                assert number == its
            elif one[0] != other[0] or (one[1].strip(b" ") and other[1].strip(b" ")):
                assert number != its, (one, other)


@given(st.integers(0, 5), st.lists(TEXTS, min_size=8, max_size=20))
def test_a_part_of_a_column_counts_like_a_column(begin: int, texts: list[str]) -> None:
    column, entries = pa.array(texts), pa.array(["e"] * len(texts))
    whole = likeness(entries, column)
    assert (likeness(entries[begin:], column[begin:]) == whole[begin:]).all()
    assert [_number("e", text) for text in texts] == whole.tolist()


def test_a_text_that_says_who_wrote_counts_for_nothing() -> None:
    by = "replace: modifiersname\nmodifiersname: cn=a\n-\n"
    other = "Replace: ModifiersName\nmodifiersname: cn=b\n-\nreplace: x\nx: 1\n"
    numbers = {_number("e", text, PROVING.of_the_writer) for text in (by, other, "")}
    assert numbers == set(entry_only(pa.array(["e"])).tolist())
    assert _number("e", "replace: x\nx: 1\n", PROVING.of_the_writer) not in numbers


VALUES = st.text(alphabet="ab: =,é", max_size=80)
GROUPS = st.tuples(st.sampled_from(["add", "delete", "replace", "Replace"]), st.sampled_from(["x", "MemberOf", "mail"]))
WRITERS = st.lists(st.tuples(st.sampled_from(["modifiersname", "modifyTimestamp", "entryusn"]), VALUES), max_size=3)


def _body(groups: list[tuple[tuple[str, str], str]], by: list[tuple[str, str]]) -> str:
    told = [f"{how}: {name}\n{name}: {value}\n-\n" for (how, name), value in groups]
    return "".join([*told, *(f"replace: {name}\n{name}: {value}\n-\n" for name, value in by)])


@given(st.lists(st.tuples(GROUPS, VALUES), max_size=3), WRITERS, WRITERS, st.booleans())
def test_twins_have_the_same_number(groups: Any, by: Any, by_other: Any, first: bool) -> None:
    """Whoever wrote them, and should one of them begin with that, under the number of its entry alone."""
    one, other = _body(groups, by), _body(groups, by_other)
    if first:
        other = _body([], by_other) + _body(groups, [])
    assert PROVING.modification("modify", one, "") == PROVING.modification("modify", other, "")
    there = {_number("e", other, PROVING.of_the_writer)}
    assert there & {_number("e", one, PROVING.of_the_writer), *entry_only(pa.array(["e"])).tolist()}


@given(st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)))
def test_among(some: list[int], others: list[int]) -> None:
    found = among(np.array(some, np.int64), np.array(sorted(others), np.int64))
    assert found.tolist() == [one in others for one in some]


@pytest.mark.parametrize("texts", [[], [""], [None], ["x"], [None, "abc", None]])
def test_few_and_none(texts: list[str | None]) -> None:
    numbers = likeness(pa.array(["e"] * len(texts), pa.string()), pa.array(texts, pa.string()))
    assert len(numbers) == len(texts) and (numbers >= 0).all() and (numbers < 1 << 32).all()
