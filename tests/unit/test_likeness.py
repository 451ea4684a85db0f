"""The numbers by which twins are found: those of twins always meet, and hardly any others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.change_fingerprints import among, likeness, twin_numbers
from workbench.rules.verdicts import Proving
from workbench.systems.ds389.rules.proving import PROVING, groups

PLAIN = Proving(lambda code: False, frozenset(), lambda messages: [], lambda *change: None, lambda loss: [])
"""A system whose texts are all taken as they are."""

TEXTS = st.text(alphabet="aAb\né\0", max_size=90)


def numbers(rows: list[tuple[str, str]], proving: Proving) -> list[int]:
    entry, text = (pa.array([row[side] for row in rows], pa.string()) for side in (0, 1))
    return [int(number) for number in likeness(entry, text, proving)]


def looked_at(text: str) -> bytes:
    """The first two lines, 64 bytes at most; a letter and what differs from it by the bit of capitals count alike."""
    lines = b"\n".join(text.encode().split(b"\n")[:2])
    return bytes(one | 32 for one in lines[:64]).ljust(64)


@given(st.lists(st.tuples(st.text(alphabet="0aA-", max_size=45), TEXTS), min_size=2, max_size=40))
def test_alike_as_if_taken_out_one_by_one(rows: list[tuple[str, str]]) -> None:
    told = [(bytes(c | 32 for c in entry.encode()[:40]).ljust(40), looked_at(text)) for entry, text in rows]
    found = numbers(rows, PLAIN)
    for one, number in zip(told, found, strict=True):
        for other, its in zip(told, found, strict=True):
            # Eight blanks are no text of nothing, but nobody asks whether they count like one.
            if one == other and b"  " not in one[1].rstrip(b" "):
                assert (number == its) or not one[1].strip(b" ")
            elif one[0] != other[0] or one[1].strip(b" ") != other[1].strip(b" "):
                assert number != its, (one, other)


@given(st.integers(0, 5), st.lists(TEXTS, min_size=8, max_size=20), st.sampled_from([PLAIN, PROVING]))
def test_a_part_of_a_column_counts_like_a_column(begin: int, texts: list[str], proving: Proving) -> None:
    column, entries = pa.array(texts), pa.array(["e"] * len(texts))
    whole = likeness(entries, column, proving)
    assert (likeness(entries[begin:], column[begin:], proving) == whole[begin:]).all()
    assert [numbers([("e", text)], proving)[0] for text in texts] == whole.tolist()


VALUES = st.text(alphabet="ab: =,é", max_size=80)
VERBS = st.sampled_from(["add", "delete", "replace", "Replace", "increment"])
GROUPS = st.tuples(
    VERBS, st.sampled_from(["x", "MemberOf", "mail", "deleteTime", "addr"]), st.lists(VALUES, max_size=2)
)
BY = st.tuples(st.just("replace"), st.sampled_from(["modifiersname", "modifyTimestamp", "entryusn"]), st.lists(VALUES))
Group = tuple[str, str, list[str]]


def whole(groups: list[Group], before: str = "", end: bool = True) -> str:
    """As LDIF prints it."""
    told = ["\n".join([f"{how}: {name}", *(f"{name}: {value}" for value in values)]) for how, name, values in groups]
    return before + "\n-\n".join(told) + ("\n-\n" if end and told else "")


def values_only(groups: list[Group]) -> str:
    """As `dbscan` prints it."""
    return "\n".join(f"{name}: {value}" for _, name, values in groups for value in values)


@st.composite
def printed(draw: Any, groups: list[Group]) -> str:
    """The same modifications, by anybody, in any order, by any tool."""
    told = draw(st.permutations([*groups, *draw(st.lists(BY, max_size=3))]))
    if draw(st.booleans()):
        return values_only(told)
    return whole(told, draw(st.sampled_from(["", "", "\n", "-\n"])), draw(st.booleans()))


@st.composite
def two_of_the_same(draw: Any) -> tuple[str, str]:
    done = draw(st.lists(GROUPS, max_size=3))
    return draw(printed(done)), draw(printed(done))


@given(two_of_the_same())
def test_twins_share_a_number_whoever_is_looked_for(pair: tuple[str, str]) -> None:
    for one, other in (pair, pair[::-1]):
        mine, theirs = (PROVING.modification("modify", body, "") for body in (one, other))
        assert mine and theirs
        told = mine.whole is not None and theirs.whole is not None
        # Printed by dbscan, a modification without values is nothing.
        hidden = mine.whole is None and theirs.whole is not None and any(len(group) == 1 for group in groups(other))
        if (mine.whole == theirs.whole) if told else (mine.values == theirs.values and not hidden):
            found, entries = twin_numbers(["e"], [one], PROVING)
            assert set(numbers([("e", other)], PROVING)) & set(found.tolist()), (one, other)
            assert set(entries.to_pylist()) == {"e"} and (np.diff(found) >= 0).all()


def test_the_same_modifications_are_twins_in_any_order_and_by_any_tool() -> None:
    done: list[Group] = [("add", "memberOf", ["cn=x"]), ("delete", "mail", ["a@b"])]
    by: list[Group] = [("replace", "modifiersname", ["cn=somebody"])]
    forms = [whole([*done, *by]), whole([*by, *done[::-1]]), values_only([*by, *done])]
    for one in forms:
        found, _ = twin_numbers(["e"], [one], PROVING)
        assert all(number in found for number in numbers([("e", other) for other in forms], PROVING))
        assert not set(numbers([("f", one), ("e", whole([("add", "memberOf", ["cn=y"])]))], PROVING)) & set(
            found.tolist()
        )


@given(st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)))
def test_among(some: list[int], others: list[int]) -> None:
    found = among(np.array(some, np.int64), np.array(sorted(others), np.int64))
    assert found.tolist() == [one in others for one in some]


@pytest.mark.parametrize("texts", [[], [""], [None], ["x"], [None, "abc", None]])
def test_few_and_none(texts: list[str | None]) -> None:
    for proving in (PLAIN, PROVING):
        found = likeness(pa.array(["e"] * len(texts), pa.string()), pa.array(texts, pa.string()), proving)
        assert len(found) == len(texts) and (found >= 0).all() and (found < 1 << 32).all()
