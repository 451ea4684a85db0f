"""The rules of Kanidm and of its early design note: the given cases, and slow obvious oracles on random input."""

from __future__ import annotations

from functools import reduce
from itertools import permutations

import pytest
from given_cases import given_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_cases import disagreements

from workbench.model import Problem
from workbench.replication.entry.rules import entries as note
from workbench.scenarios import answer, kinds
from workbench.systems.kanidm.cid import cid_or_none, cid_text, halves, nanoseconds, order_key, origin_of
from workbench.systems.kanidm.rules import fleet
from workbench.systems.kanidm.rules import ranges as real
from workbench.systems.kanidm.rules.merging import Live, State, Tombstone, merge, reaped, sent

CASES = [case for name in ("kanidm-rules", "kanidm-seed") for case in given_cases(name)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_given_case(case) -> None:
    assert not disagreements([case])


def test_the_given_cases_are_of_every_kind() -> None:
    assert {case["kind"] for case in CASES} == {name for name in kinds() if name.startswith("kanidm.")}


# --- ranges

TIMES = st.integers(1, 12)
ORIGINS = st.sampled_from("abc")
RANGES = st.dictionaries(ORIGINS, st.tuples(TIMES, TIMES).map(lambda ends: (min(ends), max(ends))))
CIDS = st.sets(st.tuples(TIMES, ORIGINS))


@settings(max_examples=500)
@given(RANGES, RANGES)
def test_ranges_compare_as_their_times_do(consumer: note.Ranges, supplier: note.Ranges) -> None:
    """The times between the ends written out: what is said of ranges is said of those."""
    lag, advance, owed = set(), set(), {}
    for origin, (first, last) in supplier.items():
        theirs = range(consumer[origin][0], consumer[origin][1] + 1) if origin in consumer else None
        if theirs is None:
            owed[origin] = list(range(1, last + 1))
        elif all(time < first for time in theirs):
            lag.add(origin)
        elif all(time > last for time in theirs):
            advance.add(origin)
        elif lacking := [time for time in range(first, last + 1) if time > max(theirs)]:
            owed[origin] = lacking
    found = real.range_diff(consumer, supplier)
    if not set(consumer) & set(supplier):
        assert found == real.Compared(real.NO_OVERLAP)
        return
    assert (set(found.lag), set(found.advance)) == (lag, advance)
    assert {origin: list(range(after + 1, upto + 1)) for origin, (after, upto) in found.owed.items()} == (
        {} if lag or advance else owed
    )
    table = {(1, 1): "Critical", (1, 0): "Refresh", (0, 1): "Unwilling", (0, 0): "Ok"}
    assert found.status == table[bool(lag), bool(advance)]


@given(RANGES, CIDS, st.integers(0, 13))
def test_what_a_supplier_shows_and_what_a_trim_leaves(ranges: note.Ranges, cids: set[note.Cid], cut_off: int) -> None:
    assert set(real.supplier_view(ranges, cut_off)) == {
        origin for origin, (low, high) in ranges.items() if any(time >= cut_off for time in range(low, high + 1))
    }
    kept = real.trimmed(cids, cut_off)
    assert kept == sorted(kept) and set(kept) == {cid for cid in cids if not cid < (cut_off, "")}
    whole = real.ranges_of(kept)
    assert all(whole[origin][0] <= time <= whole[origin][1] for time, origin in kept)
    assert set(kept) >= {(end, origin) for origin, ends in whole.items() for end in ends}


@given(CIDS, CIDS, st.booleans())
def test_after_a_message_the_consumer_has_all_times_that_it_carries_and_no_other(
    mine: set[note.Cid], theirs: set[note.Cid], twice: bool
) -> None:
    found = real.range_diff(real.ranges_of(mine), real.ranges_of(theirs), before_all=0)
    carried = real.supplied(theirs, found.owed)
    after = mine | {(time, origin) for origin, one in carried.items() for time in (*one.anchors, one.upto)}
    assert after - mine <= theirs
    for origin, (low, high) in found.owed.items():
        assert {cid for cid in theirs if cid[1] == origin and low < cid[0] <= high} <= after
    if found.status == real.OK:
        assert real.range_diff(real.ranges_of(after), real.ranges_of(theirs)).owed == {}


# --- states

STATES = st.one_of(
    st.builds(
        # A change has one value everywhere: it was made once.
        lambda at, changes: Live(at, changes, {name: None if cid[0] % 3 == 0 else [cid] for name, cid in changes.items()}),
        st.tuples(TIMES, ORIGINS),
        st.dictionaries(st.sampled_from("xyz"), st.tuples(TIMES, ORIGINS)),
    ),
    st.builds(Tombstone, st.tuples(TIMES, ORIGINS)),
)  # fmt: skip


def winner(states: list[State]) -> State:
    """What the last word on each part is, of all states at once."""
    if gone := [one.at for one in states if isinstance(one, Tombstone)]:
        return Tombstone(min(gone))
    live = [one for one in states if isinstance(one, Live)]
    first = min(one.at for one in live)
    changes: dict[str, note.Cid] = {}
    for name, cid in sorted(
        (item for one in live if one.at == first for item in one.changes.items()), key=lambda item: item[1]
    ):
        changes[name] = cid
    return Live(first, changes, {name: [cid] for name, cid in changes.items() if cid[0] % 3})


@settings(max_examples=300)
@given(st.lists(STATES, min_size=2, max_size=4))
def test_states_come_to_the_same_in_whatever_order_they_meet(states: list[State]) -> None:
    for some in permutations(states):
        assert reduce(lambda local, one: merge(one, local).state, some) == winner(states)


@given(STATES, STATES)
def test_a_creation_that_loses_is_told_by_whoever_made_it(one: State, other: State) -> None:
    made = merge(one, other)
    both = isinstance(one, Live) and isinstance(other, Live) and one.at != other.at
    assert (made.loser is not None) == both
    if both:
        assert made.conflict_written_by(max(one.at, other.at)[1])
        assert made.loser != made.state.at


@given(RANGES, STATES)
def test_of_an_entry_the_owed_attributes_are_sent(owed: note.Ranges, state: State) -> None:
    changes = state.changes if isinstance(state, Live) else {}
    every = {(time, origin) for origin, (low, high) in owed.items() for time in range(low + 1, high + 1)}
    assert sent(state, owed) == sorted(name for name, cid in changes.items() if cid in every)


@given(st.dictionaries(st.sampled_from("pqr"), st.none() | TIMES), st.lists(TIMES))
def test_a_tombstone_goes_once_and_a_live_entry_never(entries: dict[str, int | None], cut_offs: list[int]) -> None:
    gone, left = reaped(entries, cut_offs)
    for name, time in entries.items():
        turn = next((n for n, cut_off in enumerate(cut_offs) if time is not None and cut_off > time), None)
        assert [n for n, names in enumerate(gone) if name in names] == ([] if turn is None else [turn])
        assert (name in left) == (turn is None)


# --- days

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "purge"]), st.sampled_from("ABC")),
        st.tuples(st.sampled_from(["incremental", "refresh"]), st.permutations("ABC").map(lambda names: names[:2])),
    ),
    max_size=30,
)


@settings(max_examples=200)
@given(EVENTS, st.integers(0, 3))
def test_after_a_pull_that_succeeds_the_consumer_lacks_nothing_that_the_supplier_shows(events, age: int) -> None:
    servers = fleet.Fleet("ABC", age)
    for second, (do, who) in enumerate(events):
        if do in ("write", "purge"):
            servers.play([fleet.Event(second, do, server=who)])
            continue
        supplier, consumer = (servers.servers[name] for name in who)
        (*_, made) = [None, *servers.play([fleet.Event(second, do, supplier=who[0], consumer=who[1])])]
        shown = real.supplier_view(real.ranges_of(supplier.cids), supplier.last - servers.age)
        if do == "refresh" or (made is not None and (made.message, made.consumer) == (real.SUPPLY, real.APPLIED)):
            theirs = real.ranges_of(consumer.cids)
            assert all(theirs[origin][1] >= last for origin, (_, last) in shown.items())
            assert consumer.domain == supplier.domain


# --- the design note


@given(RANGES, RANGES, CIDS)
def test_what_the_note_has_sent_is_what_lies_between_the_last_times(
    supplier: note.Ranges, consumer: note.Ranges, listed: set[note.Cid]
) -> None:
    lacking = sorted(
        (time, origin)
        for time, origin in listed
        if origin in supplier and consumer.get(origin, (0, 0))[1] < time <= supplier[origin][1]
    )
    assert note.among(listed, note.owed(supplier, consumer)) == lacking
    assert [cid for cid in sorted(note.dense(note.owed(supplier, consumer))) if cid in listed] == lacking
    if note.may_supply(supplier, consumer):
        assert note.owed(supplier, note.vector_after(supplier, consumer)) == {}


@given(RANGES, RANGES, RANGES)
def test_a_read_only_consumer_never_goes_back_under_the_supply_condition(
    one: note.Ranges, other: note.Ranges, reader: note.Ranges
) -> None:
    """Fed by two sources in turns it only ever sees more; without the condition what it has seen may go."""
    seen = dict(reader)
    for source in (one, other, one):
        if not note.flips(source, seen):
            assert all(source.get(origin, (0, 0))[1] >= last for origin, (_, last) in seen.items())
            seen = note.vector_after(source, seen, read_only=True)
            assert note.flips(source, seen) == []


@given(st.tuples(TIMES, ORIGINS), st.dictionaries(st.sampled_from("RST"), st.none() | RANGES, min_size=1))
def test_a_tombstone_is_held_by_whoever_may_not_have_it(
    tombstone: note.Cid, replicas: dict[str, note.Ranges | None]
) -> None:
    late = {
        name
        for name, vector in replicas.items()
        if vector is None
        or tombstone[1] not in vector
        or any(time <= tombstone[0] for low, high in vector.values() for time in range(low, high + 1))
    }
    assert set(note.held(tombstone, replicas).replicas) == late


def test_a_purge_that_is_left_out_brings_a_value_back() -> None:
    log = [note.Operation(1, "DB2", "add", "n", "l"), note.Operation(2, "DB1", "del", "n")]
    log += [note.Operation(2, "DB1", "add", "n", "w")]
    assert note.replayed({}, log) == {"n": ["w"]}
    without = [one for one in log if one.do != "del"]
    assert note.replayed({}, without) == {"n": ["l", "w"]}
    assert note.left_out(without, [(2, "DB1", "n")]) == [(2, "DB1", "n")]
    assert note.left_out(log, [(2, "DB1", "n")]) == []


# --- CIDs

UUIDS = st.uuids().map(str)


@given(st.tuples(st.integers(0, 2**63 - 1), UUIDS), st.tuples(st.integers(0, 2**63 - 1), UUIDS))
def test_the_text_of_a_cid_is_its_order_key(one: tuple[int, str], other: tuple[int, str]) -> None:
    left, right = cid_text(*one), cid_text(*other)
    assert (left < right) == (one < other)
    assert cid_or_none(left.upper()) == left
    assert (nanoseconds(left), origin_of(left)) == one
    assert order_key(one[1], *halves(left)) == left
    if one < other:
        assert halves(left) <= halves(right)


ZERO = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("text", ["", f"1-{ZERO}", "0" * 32, f"{0:032d}-x", f"{0:031d}-{ZERO}", f"{'٣' * 32}-{ZERO}"])
def test_what_is_no_cid(text: str) -> None:
    assert cid_or_none(text) is None


def test_a_range_that_ends_before_it_begins_is_none() -> None:
    ranges = {"consumer": {"A": [3, 1]}, "supplier": {"A": [1, 5]}}
    with pytest.raises(Problem, match="a range ends before it begins"):
        answer("kanidm.range_diff", ranges)
