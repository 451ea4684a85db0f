"""A fleet step by step: the walk-through of the design note, its flip-flop, and what leaving out a change does."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.model import Problem
from workbench.replication.entry.rules.entries import FORGOTTEN, NOT_SHOWN, Kept, lacking
from workbench.systems.kanidm.rules.merging import Live, Tombstone
from workbench.systems.kanidm.rules.walk import DESIGN, FLIPS, KANIDM, OK, REFUSED, RULE_SETS, Walk


def vectors(walk: Walk) -> dict[str, dict[str, tuple[int, int]]]:
    return {name: dict(server.vector) for name, server in walk.servers.items()}


def test_the_walk_through_of_the_note() -> None:
    """One entry, x, and each table that the note prints; B has heard of A, and of itself nothing yet."""
    walk = Walk("AB", "R")
    walk.write("A", "x", "data", ["one"], 1)
    assert walk.session("A", "R")._replace(went_back=()) == (*("A", "R", OK, [(1, "A")], ["x"], {}, {"A": (0, 1)}, ()),)
    walk.session("A", "B")
    walk.write("B", "x", "from-b", ["two"], 2)
    walk.write("A", "x", "data", ["three"], 3)
    assert vectors(walk) == {"A": {"A": (0, 3)}, "B": {"A": (0, 1), "B": (0, 2)}, "R": {"A": (0, 1)}}
    made = walk.session("A", "R")
    assert (made.cids, made.entries, made.after) == ([(3, "A")], ["x"], {"A": (0, 3)})
    walk.session("B", "A")
    assert sorted(walk.servers["A"].listed) == [(1, "A"), (2, "B"), (3, "A")]
    made = walk.session("A", "R")
    assert (made.cids, made.entries, made.after) == ([(2, "B")], ["x"], {"A": (0, 3), "B": (0, 2)})
    # The entry goes whole: with (2, B) comes what is later, so the order in which they came does not matter.
    assert walk.content("R") == {"x": {"data": ["three"], "from-b": ["two"]}} == walk.content("A")


def flipping(**options: bool) -> Walk:
    walk = Walk("AB", "R", **options)
    walk.write("A", "x", "data", ["one"], 1)
    walk.session("A", "R")
    walk.session("A", "B")
    walk.write("A", "x", "data", ["three"], 3)
    walk.write("B", "x", "from-b", ["four"], 4)
    walk.session("A", "R")
    return walk


def test_without_the_condition_a_read_only_consumer_flips_and_with_it_waits() -> None:
    walk = flipping(condition=False)
    made = walk.session("B", "R")
    assert (made.status, made.went_back) == (OK, [("x", "data")])
    assert walk.content("R") == {"x": {"data": ["one"], "from-b": ["four"]}}, "what A wrote is gone again"
    assert made.after["A"] == (0, 3), "and its vector says that it is there"

    walk = flipping()
    made = walk.session("B", "R")
    assert (made.status, made.went_back, made.before) == (FLIPS, [], made.after)
    assert walk.content("R") == {"x": {"data": ["three"]}}
    walk.session("A", "B")
    assert walk.session("B", "R").status == OK
    assert walk.content("R") == walk.content("B") == {"x": {"data": ["three"], "from-b": ["four"]}}


def test_a_supplier_that_has_trimmed_does_not_feed_a_newcomer() -> None:
    walk = Walk("AB")
    walk.write("A", "x", "data", ["one"], 5)
    walk.servers["A"].vector["A"] = (5, 5)
    made = walk.session("A", "B")
    assert (made.status, made.cids, walk.content("B")) == (REFUSED, [], {})


@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_change_that_is_left_out_because_it_seems_to_change_nothing_is_lost(rules: str) -> None:
    def apart(no_ops: bool) -> Walk:
        walk = Walk("AB", rules=rules)
        walk.write("A", "x", "name", ["w"], 1)
        walk.session("A", "B")
        walk.write("B", "x", "name", ["l"], 2)
        walk.write("A", "x", "name", ["w"], 3, no_op=no_ops)  # the last word, of somebody who sees w already
        if rules == KANIDM and "B" not in walk.servers["A"].vector:
            walk.write("A", "y", "name", ["y"], 4)
        for _ in range(2):
            walk.session("A", "B")
            walk.session("B", "A")
        return walk

    for name in "AB":
        assert apart(no_ops=True).content(name)["x"] == {"name": ["w"]}
        assert apart(no_ops=False).content(name)["x"] == {"name": ["l"]}, "an earlier change has won"


DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("ABC"), st.sampled_from("xy"), st.sampled_from("mn"), st.integers(0, 3)),
        st.tuples(st.just("session"), st.permutations("ABCR").map(lambda names: tuple(names[:2]))),
    ),
    max_size=25,
)  # fmt: skip


@settings(max_examples=200)
@given(DEEDS, st.sampled_from(RULE_SETS))
def test_every_fleet_converges_and_nothing_goes_back(deeds, rules: str) -> None:
    walk = Walk("ABC", "R", rules)
    walk.write("A", "x", "m", [0], 0)
    walk.write("A", "y", "m", [0], 0)
    for name in "BCR":
        walk.session("A", name)
    for second, (do, *what) in enumerate(deeds, 3):  # behind the first two: clocks that agree
        if do == "write":
            server, entry, attribute, value = what
            walk.write(server, entry, attribute, [value], second)
        elif what[0][0] != "R" or rules == KANIDM:  # under the note a read-only server keeps no list, and feeds nobody
            assert walk.session(*what[0]).went_back == []
    for _ in range(3):
        for supplier, consumer in permutations("ABCR", 2):
            if supplier != "R":
                assert walk.session(supplier, consumer).went_back == []
    contents = [walk.content(name) for name in "ABCR"]
    assert contents == [contents[0]] * 4
    assert len({tuple(sorted((o, high) for o, (_, high) in v.items())) for v in vectors(walk).values()}) == 1


def test_a_deleted_entry_stays_deleted_whatever_is_written_elsewhere() -> None:
    for rules in (DESIGN, KANIDM):
        walk = Walk("AB", rules=rules)
        walk.write("A", "x", "data", ["one"], 1)
        walk.session("A", "B")
        walk.delete("A", "x", 2)
        walk.write("B", "x", "data", ["late"], 9)
        for _ in range(2):
            walk.session("B", "A")
            walk.session("A", "B")
        assert walk.content("A") == walk.content("B") == {}
        with pytest.raises(Problem, match="x is deleted"):
            walk.write("B", "x", "data", ["again"], 10)


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(Problem, match="R is read-only"):
        Walk("A", "R").write("R", "x", "data", ["one"], 1)
    with pytest.raises(Problem, match="there is no rule set ds389"):
        Walk("A", rules="ds389")


def test_a_server_whose_clock_is_behind_loses_what_it_writes() -> None:
    """Only its own last CID moves a server's clock, so its change may be older than the one that it replaces."""
    walk = Walk("AB", rules=KANIDM)
    walk.write("A", "x", "data", ["one"], 100)
    walk.session("A", "B")
    assert walk.write("B", "x", "data", ["two"], 50) == (50, "B")
    assert walk.content("B") == {"x": {"data": ["two"]}}
    walk.write("A", "y", "data", ["other"], 101)
    walk.session("B", "A")
    assert walk.content("A")["x"] == {"data": ["one"]}


# --- what a server claims and does not show


def kept(walk: Walk, server: str, entry: str) -> Kept:
    state = walk.servers[server].entries.get(entry)
    if state is None:
        return NOT_SHOWN
    return Kept(gone=state.at) if isinstance(state, Tombstone) else Kept(state.at, None, state.changes)


def found_on(walk: Walk, server: str, reaped_before: int = -1) -> set[tuple[str, str | None, tuple[int, str], str]]:
    others = [name for name in walk.servers if name != server]
    return {
        (entry, *one)
        for entry in "xyz"
        for one in lacking(
            kept(walk, server, entry),
            [kept(walk, name, entry) for name in others],
            walk.servers[server].vector,
            reaped_before,
        )
    }


@settings(max_examples=200)
@given(
    DEEDS,
    st.sets(st.tuples(st.sampled_from("ABC"), st.sampled_from("xy"), st.sampled_from("mn")), max_size=3),
    st.booleans(),
)
def test_what_was_taken_away_is_found_and_nothing_else(deeds, taken: set[tuple[str, str, str]], dead: bool) -> None:
    walk = Walk("ABC", rules=KANIDM)
    walk.write("A", "x", "m", [0], 0)
    walk.write("A", "y", "m", [0], 0)
    for name in "BC":
        walk.session("A", name)
    for second, (do, *what) in enumerate(deeds, 3):
        if do == "write":
            walk.write(what[0], what[1], what[2], [what[3]], second)
        elif "R" not in what[0]:
            walk.session(*what[0])
    assert all(found_on(walk, name) == set() for name in "ABC"), "what is only late is not lost"
    if dead:
        walk.delete("B", "x", 100)
    for _ in range(3):
        for supplier, consumer in permutations("ABC", 2):
            walk.session(supplier, consumer)
    assert all(found_on(walk, name) == set() for name in "ABC")
    lost: dict[str, set[tuple[str, str | None, tuple[int, str], str]]] = {name: set() for name in "ABC"}
    for server, entry, attribute in taken:
        state = walk.servers[server].entries[entry]
        if isinstance(state, Live) and attribute in state.changes:
            cid = state.changes[attribute]
            left = {name: one for name, one in state.changes.items() if name != attribute}
            if walk.servers[server].listed and cid[1] in walk.servers[server].vector:
                walk.servers[server].entries[entry] = Live(state.at, left, {})
                lost[server].add((entry, attribute, cid, ""))
    for name in "ABC":
        others = [one for one in "ABC" if one != name]
        still = {
            one
            for one in lost[name]
            if any(kept(walk, other, one[0]).changes.get(one[1] or "") == one[2] for other in others)
        }
        assert found_on(walk, name) == still


def test_a_deletion_that_never_came_and_one_that_is_forgotten() -> None:
    walk = Walk("AB", rules=KANIDM)
    walk.write("A", "x", "m", [1], 10)
    walk.write("A", "z", "m", [1], 20)
    walk.session("A", "B")
    cid = walk.delete("A", "x", 30)
    assert found_on(walk, "B") == set(), "it is on its way"
    low, _ = walk.servers["B"].vector["A"]
    walk.servers["B"].vector["A"] = (low, 30)
    assert found_on(walk, "B") == {("x", None, cid, "")}
    assert found_on(walk, "A") == set(), "a tombstone stands for all that came before"
    del walk.servers["A"].entries["x"]  # its tombstone was purged
    assert found_on(walk, "A", reaped_before=15) == {("x", "m", (10, "A"), FORGOTTEN)}
    del walk.servers["B"].entries["z"]
    assert found_on(walk, "B", reaped_before=15) == {("z", "m", (20, "A"), "")}


def test_of_two_deletions_of_an_entry_each_is_judged_by_itself() -> None:
    """The server lists nothing of B, which deleted the entry long ago; of A, which did so later, it claims all."""
    alive = Kept(at=(1, "A"), changes={"m": (1, "A")})
    others = [Kept(gone=(5, "B")), Kept(gone=(30, "A"))]
    assert lacking(alive, others, {"A": (1, 40)}, 20) == [(None, (5, "B"), FORGOTTEN), (None, (30, "A"), "")]
