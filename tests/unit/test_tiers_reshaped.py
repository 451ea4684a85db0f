"""What if nodes come, go, move or are reset: the tree afterwards, and who could no longer be brought up to date."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.model import Problem
from workbench.replication.tier.rules.limits import SEED, Rules
from workbench.replication.tier.rules.tiers import Node, Pull, Registry, tree
from workbench.replication.tier.rules.topology_what_if import Add, Fanout, Lose, Move, Reset, donors, shape, what_if

RULES = replace(SEED, fanout=2, fresh_s=600, second_pass=True)


def registry(**files: tuple[str | None, int, int]) -> Registry:
    """Host -> (the host it pulls from, its first file, its last file); who pulls from nobody is of the source S."""
    base = {host: "S" if above is None else "R" for host, (above, _, _) in files.items()}
    nodes = tuple(Node(base[host], host, last, 0, first, 5) for host, (_, first, last) in files.items())
    pulls = tuple(Pull("R", host, base[above], above) for host, (above, _, _) in files.items() if above is not None)
    return Registry(nodes, pulls)


CHAIN = registry(s1=(None, 7, 9), s2=(None, 7, 9), a=("s1", 5, 9), b=("a", 5, 6), c=("a", 7, 9))


def test_the_tree_in_numbers() -> None:
    found = shape(tree(CHAIN, "S"), 1)
    assert found.depths == {0: 2, 1: 1, 2: 2}
    assert (found.over_full, found.idle, found.adrift) == (("R@a",), ("S@s2",), ())
    assert found.load["R@a"] == 2
    assert found.median_load == 1.5


def test_a_node_that_is_lost_takes_the_last_copy_of_a_file_with_it() -> None:
    made = what_if(RULES, CHAIN, "S", [Lose("R@a")])
    assert [(one.name, one.file) for one in made.stranded] == [("R@b", 6)]
    assert "only R@a had" in made.stranded[0].why
    assert made.after.tree.places.keys() == {"S@s1", "S@s2", "R@b", "R@c"}
    assert made.told == ("R@b goes to S@s1", "R@c goes to S@s2")
    assert made.before.tree.places.keys() > made.after.tree.places.keys()


def test_nobody_is_lost_who_was_lost_before() -> None:
    lost = registry(s1=(None, 7, 9), a=("s1", 3, 4), b=("s1", 7, 9))
    assert what_if(RULES, lost, "S", [Lose("R@b")]).stranded == ()


def test_what_was_probed_counts_more_than_what_the_registry_tells() -> None:
    files = {"S@s1": (5, 9), "S@s2": (7, 9), "R@a": (5, 9), "R@b": (5, 6), "R@c": (7, 9)}
    assert what_if(RULES, CHAIN, "S", [Lose("R@a")], files).stranded == ()


def test_a_reset_of_the_node_that_holds_logs_lets_them_go() -> None:
    """A dead node holds file 4 for ever; reset, it sets free what a node that hangs nowhere still needs."""
    nodes = registry(s1=(None, 4, 9), dead=("s1", 4, 4), late=("s1", 4, 4))
    nodes = replace(
        nodes, nodes=tuple(replace(one, state="Inactive") if one.host == "late" else one for one in nodes.nodes)
    )
    files = {"S@s1": (4, 9), "R@late": (4, 4)}
    made = what_if(RULES, nodes, "S", [Reset("R@dead")], files)
    assert made.told == ("files 4 to 8 are held no longer: they may be deleted at once",)
    assert [one.name for one in made.stranded] == ["R@late"]
    assert what_if(replace(RULES, holding=None), nodes, "S", [Reset("R@dead")], files).stranded == ()


def test_a_reset_leaves_those_below_where_they_are() -> None:
    made = what_if(RULES, CHAIN, "S", [Reset("R@a")])
    assert made.told[:2] == ("R@b goes on pulling from it", "R@c goes on pulling from it")
    assert made.after.adrift == ("R@a", "R@b", "R@c")
    assert made.after.load["S@s1"] == 0


def test_a_subtree_moves_whole() -> None:
    made = what_if(RULES, CHAIN, "S", [Move("R@a", "S@s2")])
    assert {name: place.root for name, place in made.after.tree.places.items()}["R@b"] == "S@s2"
    assert made.after.depths == made.before.depths
    with pytest.raises(Problem, match="they would pull from each other"):
        what_if(RULES, CHAIN, "S", [Move("R@a", "R@b")])


def test_a_new_node_goes_where_the_registry_sends_it_or_where_it_is_told_to() -> None:
    new = Node("R", "new", 9, age=None)
    assert what_if(RULES, CHAIN, "S", [Add(new)]).told == ("R@new goes to S@s2",)
    named = what_if(RULES, CHAIN, "S", [Add(new, "R@c")])
    assert named.after.tree.places["R@new"].tier == 3
    wide = what_if(RULES, CHAIN, "S", [Fanout(1), Add(new)])
    assert wide.after.over_full == ("R@a",)
    assert what_if(RULES, CHAIN, "S", [Fanout(3, "S")]).after.fanout == 3
    assert what_if(RULES, CHAIN, "S", [Fanout(3, "T")]).after.fanout == 2


@pytest.mark.parametrize("change", [Lose("R@x"), Move("R@a", "R@x"), Reset("R@x"), Add(CHAIN.nodes[0])])
def test_a_node_that_is_not_there_or_is_there_already_is_told(change) -> None:
    with pytest.raises(Problem, match=r"the registry (knows no node R@x|has S@s1 already)"):
        what_if(RULES, CHAIN, "S", [change])


FILES = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(st.integers(1, 4), st.integers(1, 4)).map(lambda ends: tuple(sorted(ends))),
)


@settings(max_examples=200)
@given(FILES, FILES)
def test_a_donor_has_the_file_that_is_needed(files, others) -> None:
    every = files | others
    for name in every:
        has = {one for one, (first, last) in every.items() if every[name][1] in range(first, last + 1)}
        assert set(donors(name, every, every)) == has - {name}


def test_more_than_the_fanout_are_shown_as_such_by_a_soft_rule() -> None:
    soft = Rules("soft", fanout=1, second_pass=True)
    made = what_if(soft, registry(s1=(None, 1, 9), a=("s1", 1, 9)), "S", [Lose("R@a"), Add(Node("R", "n", 9))])
    assert made.after.load == {"S@s1": 1, "R@n": 0}
