"""What pictures of a tiered log show: of recorded snapshots, of trees that nobody recorded, and what cannot be shown."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from incident_samples import incident_of
from tier_samples import DELAYED, FROZEN, HEALTHY, a_node, a_tree, tiers_incident

from widgets import LogCoverage, TierChanges, TierTree
from workbench.model import NotOfThisSystem, Problem
from workbench.replication.tier.rules import conditions as tier_conditions
from workbench.replication.tier.rules.tiers import Node
from workbench.replication.tier.rules.topology_what_if import Add, Fanout, Lose, Move, Reset
from workbench.views import tier_changes, tier_views
from workbench.views.tier_changes import changes_of, what_if_picture
from workbench.views.tier_views import coverage, node_facts, tree_in, tree_picture


def shown(picture: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {one["name"]: tuple(one[key] for key in keys) for one in picture["nodes"]}


def test_a_healthy_tree_of_two_tiers() -> None:
    picture = tree_picture(tree_in(tiers_incident(HEALTHY)))
    assert (picture["tiers"], picture["left"], picture["adrift"], picture["head"]) == (3, 0, None, "{4:647677}")
    assert {one["verdict"] for one in picture["nodes"]} == {"present"}
    assert shown(picture, "tier", "up", "edge")["shopdb_dr@r4"] == (2, 1, "0")
    assert [one["name"] for one in picture["nodes"] if one["tier"] == 0] == ["shopdb@src1", "shopdb@src2"]


def test_what_was_stopped_and_frozen_is_seen_and_those_that_wait_hang_on_nothing() -> None:
    tree = tree_in(tiers_incident(HEALTHY, FROZEN))
    picture = tree_picture(tree)
    told = shown(picture, "condition", "verdict", "edge", "needs")
    assert told["shopdb_dr@r4"] == ("stopped", "stranded", "4.9 MB", 4)
    assert told["shopdb_ro@r2"] == ("frozen", "stranded", "?", 6)
    assert told["shopdb_an@r6"][:2] == ("pending", "pending")
    rows = [one["row"] for one in picture["nodes"]]
    assert rows == sorted(set(rows)) and picture["adrift"] not in rows
    below = [one["name"] for one in picture["nodes"] if one["row"] > picture["adrift"]]
    assert below == ["shopdb_an@r6", "shopdb_dr@r5"]
    facts = node_facts(tree, "shopdb_an@r6")
    assert {"what": "file that it needs next", "value": "6"} in facts["rows"]
    assert {one["node"] for one in facts["offered"] if one["offered"]} == {"shopdb_ro@r2", "shopdb_ro@r3"}
    with pytest.raises(Problem, match="no node nobody@x"):
        node_facts(tree, "nobody@x")


def test_an_inherited_delay_is_on_the_edge_where_it_comes_from_and_on_no_other() -> None:
    told = shown(tree_picture(tree_in(tiers_incident(HEALTHY, DELAYED))), "tier", "edge", "lag", "full")
    assert told["shopdb_an@r6"] == (2, "142 kB", "142 kB", False)
    assert told["shopdb_ro@r2"] == (3, "0", "142 kB", False)
    assert told["shopdb_ro@r1"][3], "three pull from it, and the fanout is 2"


def test_files_are_shown_as_the_nodes_have_them() -> None:
    found = coverage(tree_in(tiers_incident(HEALTHY, FROZEN)))
    rows = {one["name"]: one for one in found["rows"]}
    assert (found["low"], found["high"]) == (2, 9)
    assert (rows["shopdb_dr@r4"]["runs"], rows["shopdb_dr@r4"]["needs"]) == ([[2, 4]], 4)
    assert rows["shopdb_dr@r4"]["served_by"][0] == "shopdb_dr@r5" and rows["shopdb_dr@r4"]["silent"] == ["shopdb_ro@r2"]
    assert rows["shopdb_dr@r5"]["needs"] is None
    view = LogCoverage(tiers_incident(HEALTHY, FROZEN)).text()
    assert "##!.....      4: shopdb_dr@r5" in view


def test_files_that_are_told_by_the_registry_alone_are_not_certain() -> None:
    quiet = a_node("db@r1", "db@s", 1, files=[], node_first=None, node_last=None, registry_lsn="{7:5}", firstfile="5")
    probed = a_node("db@r2", "db@s", 1, files=[])
    holes = a_node("db@r3", "db@s", 1, files=[[4, 9], [5, 9], [8, 9]])
    nothing = a_node("db@r4", "db@s", 1, files=[], node_first=None, node_last=None, registry_lsn=None)
    found = coverage(a_tree(a_node("db@s", None, 0), quiet, probed, holes, nothing))
    told = {one["name"]: (one["runs"], one["certain"]) for one in found["rows"]}
    assert told["db@r1"] == ([[5, 7]], False)
    assert told["db@r2"] == ([[8, 9]], True)
    assert told["db@r3"] == ([[4, 5], [8, 8]], True)
    assert told["db@r4"] == ([], False)


def test_a_node_that_nobody_can_help_is_shown_as_lost_whatever_it_is_doing() -> None:
    lost = a_node("db@r", "db@s", 1, gap="now", condition="stopped", actual_lag_bytes=500)
    (one,) = [row for row in coverage(a_tree(a_node("db@s", None, 0), lost))["rows"] if row["name"] == "db@r"]
    assert (one["verdict"], one["needs"], one["helped"]) == ("missing", 9, False)


def test_every_condition_has_a_look() -> None:
    assert set(tier_views.VERDICTS) == set(tier_conditions.SAYS)


def test_a_node_looked_at_later_than_its_source_is_not_ahead_of_it() -> None:
    early = a_node("db@r1", "db@s", 1, actual_lag_bytes=-50)
    late = a_node("db@r2", "db@r1", 2, actual_lag_bytes=None, registry_lag_bytes=70_000)
    picture = tree_picture(a_tree(a_node("db@s", None, 0), early, late))
    told = shown(picture, "lag", "edge", "edge_says")
    assert told["db@r1"][:2] == ("0", "0") and "later than its source" in told["db@r1"][2]
    assert told["db@r2"][:2] == ("70 kB as reported", "?"), "one was asked itself, the other one was not"


def test_who_holds_the_log_is_marked() -> None:
    holder = a_node("db@r1", "db@s", 1, holds_log=True)
    tree = a_tree(a_node("db@s", None, 0), holder, retention={"file": 8, "held_by": ["db@r1"], "says": "db@r1 holds"})
    assert [one["name"] for one in tree_picture(tree)["nodes"] if one["holds"]] == ["db@r1"]
    assert coverage(tree)["held"] == 8


@given(st.integers(0, 1 << 32))
def test_of_a_large_tree_what_is_drawn_hangs_together(seed: int) -> None:
    chance = random.Random(seed)
    nodes = [a_node(f"db@s{number}", None, 0) for number in range(chance.randrange(1, 4))]
    for number in range(chance.randrange(1, 80)):
        above = chance.choice(nodes)
        if chance.random() < 0.1:
            nodes.append(a_node(f"db@r{number}", None, None, condition="pending"))
        elif above["tier"] is not None:
            bad = {"condition": chance.choice(["healthy", "healthy", "stopped", "behind"])}
            nodes.append(a_node(f"db@r{number}", above["node"], above["tier"] + 1, **bad))
    if chance.random() < 0.3 and len(nodes) > 6:
        for one, other in ((nodes[-1], nodes[-2]), (nodes[-2], nodes[-1])):
            one |= {"parent": other["node"], "tier": None, "condition": "cycle"}
    chance.shuffle(nodes)
    most = chance.choice([5, 20, 200])
    tree = a_tree(*nodes)
    picture = tree_picture(tree, most)
    drawn = {one["row"]: one for one in picture["nodes"]}
    names = {one["name"] for one in picture["nodes"]}
    known = {one["node"]: one for one in nodes}
    assert len(drawn) == len(names) == len(nodes) - picture["left"] <= max(most, 1)
    assert picture["left"] == 0 or most < len(nodes)
    for one in picture["nodes"]:
        if one["up"] is not None:
            assert drawn[one["up"]]["name"] == known[one["name"]]["parent"]
            assert drawn[one["up"]]["tier"] == one["tier"] - 1 < picture["tiers"] and one["up"] < one["row"]
        elif one["tier"] and known[one["name"]]["tier"]:
            raise AssertionError("a node hangs in the air")
    hidden = [one for one in nodes if one["node"] not in names]
    assert sum(one["more"] for one in picture["nodes"]) == sum(one["parent"] in names for one in hidden)
    assert {one["name"] for one in coverage(tree, most)["rows"]} == names


def test_changes_are_read_as_people_write_them() -> None:
    read = changes_of(" lose a@b;reset  c@d ; move e@f under g@h; add i@j; add k@l under m@n; fanout 3;", 9)
    assert read == [
        Lose("a@b"),
        Reset("c@d"),
        Move("e@f", "g@h"),
        Add(Node("i", "j", 9, first_file=9, age=0.0)),
        Add(Node("k", "l", 9, first_file=9, age=0.0), "m@n"),
        Fanout(3),
    ]
    assert changes_of("") == []
    for bad in (
        "lose",
        "lose r1",
        "move a@b",
        "lose a@b under c@d",
        "fanout x",
        "drop a@b",
        "fanout -1",
        "move a@b to c@d",
    ):
        with pytest.raises(Problem, match="no change of a tree"):
            changes_of(bad)


def test_what_if_tells_who_would_go_where_and_what_brings_it_in_order() -> None:
    incident = tiers_incident(HEALTHY, FROZEN)
    found = what_if_picture(incident, "lose shopdb_ro@r1")
    assert "shopdb_dr@r4 is offered nobody" in found["sentences"]
    rows = {one["node"]: (one["source_was"], one["source_now"]) for one in found["nodes"]}
    assert rows["shopdb_dr@r4"] == ("shopdb_ro@r1", "nobody")
    assert rows["shopdb_ro@r1"] == ("shopdb@src1", "not there")
    shapes = {one["what"]: (one["before"], one["after"]) for one in found["shapes"]}
    assert shapes["nodes that hang on the source"][0] == 6 > shapes["nodes that hang on the source"][1]
    # A frozen node can be nobody's source, although its files are known.
    assert "shopdb_ro@r2" not in {one["to"] for one in found["balance"]["moves"]}
    assert found["balance"]["count"] == len(found["balance"]["moves"]) > 0
    # The moves can be written and tried in turn, and then nothing is left to do.
    again = what_if_picture(incident, f"{found['written']}; {found['balance']['written']}")
    assert again["balance"]["moves"] == []
    assert what_if_picture(tiers_incident(HEALTHY), "")["nodes"] == []
    with pytest.raises(Problem, match="nobody@x"):
        what_if_picture(incident, "lose nobody@x")


def test_of_many_nodes_some_can_be_chosen_and_all_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier_changes, "MOST", 3)
    found = what_if_picture(tiers_incident(HEALTHY), "lose shopdb_ro@r2; lose shopdb_ro@r1; lose shopdb@src1")
    assert (found["names"], found["unnamed"]) == (["shopdb@src2", "shopdb_an@r6", "shopdb_dr@r4"], 2)
    assert len(found["nodes"]) == 3 < found["changed"]


def test_a_change_that_cannot_be_is_said_in_the_view_and_the_last_one_stays() -> None:
    view = TierChanges(tiers_incident(HEALTHY, FROZEN))
    view._heard(view, {"what": "write", "text": "lose shopdb_ro@r1"}, [])
    assert (view.notice, view.data["written"]) == ("", "lose shopdb_ro@r1")
    assert "shopdb_dr@r4  hangs on no source" in view.as_text()
    for bad in ("lose everything", "lose nobody@x"):
        view._heard(view, {"what": "write", "text": bad}, [])
        assert view.notice and view.data["written"] == "lose shopdb_ro@r1"
    view._heard(view, {"what": "write", "text": 7}, [])
    assert view.data["written"] == "lose shopdb_ro@r1"


def test_of_another_system_there_are_no_tiers() -> None:
    lost = incident_of("missed_behind_equal_vectors")
    with pytest.raises(NotOfThisSystem, match="in tiers"):
        tree_in(lost)
    assert "in tiers" in TierTree(lost).text()
    with pytest.raises(Problem, match="no tree of elsewhere"):
        tree_in(tiers_incident(HEALTHY), "elsewhere")


def test_the_tree_is_drawn_before_and_after_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = what_if_picture(tiers_incident(HEALTHY), "lose shopdb_ro@r1")
    before, after = found["trees"]
    assert [one["name"] for one in before if not one["depth"]] == ["shopdb@src1", "shopdb@src2"]
    assert {one["name"] for one in before} - {one["name"] for one in after} == {"shopdb_ro@r1"}
    for tree, served in ((before, "serves_was"), (after, "serves_now")):
        told = {one["name"]: one["serves"] for one in tree}
        assert all(told.get(row["node"], row[served]) == row[served] for row in found["nodes"])
        assert {one["name"] for one in tree if one["changed"]} == {row["node"] for row in found["nodes"]} & told.keys()
    adrift = {one["name"] for one in after if one["adrift"]}
    assert adrift == {row["node"] for row in found["nodes"] if row["source_now"] == "nobody"}
    # Of a large tree those that change are drawn, and all that are above them.
    monkeypatch.setattr(tier_changes, "DRAWN", 4)
    few = what_if_picture(tiers_incident(HEALTHY), "lose shopdb_an@r6")
    everyone = {one["name"] for one in before}
    shown = {one["name"] for tree in few["trees"] for one in tree}
    assert few["left"] == len(everyone - shown) > 0 and "shopdb_an@r6" in shown
    assert all(
        one["depth"] == next(was["depth"] for was in before if was["name"] == one["name"]) for one in few["trees"][0]
    )


def test_a_node_that_is_silent_and_needs_a_file_that_nobody_has_is_moved_nowhere() -> None:
    incident = tiers_incident("04_clean_exit_parent")
    balance = what_if_picture(incident, "move shopdb_an@r6 under shopdb_dr@r5")["balance"]
    assert "shopdb_dr@r4" not in {one["node"] for one in balance["moves"]}
    told = {one["node"]: one["why"] for one in balance["unplaced"]}
    assert told["shopdb_dr@r4"] == "no node that hangs on the source has file 4"
    assert "It is in order" not in TierChanges(incident).as_text()
