"""A fleet played through time, held against the registry that is asked anew each time."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tier_play import SOURCE, Fleet, Setting, play

from workbench.model import Problem
from workbench.replication.tier.rules.candidates import Call
from workbench.replication.tier.rules.registration import register
from workbench.replication.tier.rules.tiers import tree
from workbench.systems.comdb2.rules import V2023, V2026, VERSIONS

SETTINGS = st.builds(
    Setting,
    nodes=st.integers(0, 25),
    sources=st.integers(1, 3),
    start_s=st.sampled_from([0, 5, 300]),
    connect_s=st.sampled_from([0, 0.5, 40]),
    lost=st.integers(0, 8),
    lost_at=st.sampled_from([0, 30, 400]),
    first_file=st.booleans(),
    seed=st.integers(0, 5),
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(list(VERSIONS)),
    st.integers(0, 4),
    SETTINGS,
    st.lists(st.sampled_from([1, 20, 61, 300, 650, 900, 1100]), min_size=1, max_size=3),
)
def test_at_any_moment_the_fleet_offers_what_the_registry_would(version: str, fanout: int, setting, times) -> None:
    rules = replace(VERSIONS[version], fanout=fanout, register_s=350, keepalive_s=20)
    fleet = Fleet(rules, setting)
    hosts = tuple(fleet.name(node)[1] for node in range(setting.sources))
    for second in sorted(times):
        fleet.run(second + 0.123)
        registry = fleet.registry()
        made = register(replace(rules, most_pending=None), registry, Call("new", "x", 9, SOURCE, hosts))
        groups, soft = fleet.offered()
        rows, expected = 0, []
        for group in groups:
            if rows < rules.most_offered:
                expected += [fleet.name(node) for node in group]
                rows = min(rows + len(group), rules.most_offered)
        if not rules.random_ties:
            expected = expected[:rows]
            assert [(one.database, one.host) for one in made.in_order] == expected
        else:
            assert {(one.database, one.host) for one in made.union} == set(expected)
        assert made.second_pass == soft
        assert fleet.pending == sum(one.state == "Pending" for one in registry.nodes)
        places = tree(registry, SOURCE).places
        assert not any(place.tier is None and place.parents and "itself" in place.problem for place in places.values())
        assert not made.endless


def test_the_same_setting_gives_the_same_fleet() -> None:
    one, same, other = (play(V2026, Setting(nodes=60, seed=seed)) for seed in (1, 1, 2))
    assert one == same
    assert one.registry != other.registry


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(VERSIONS)), SETTINGS)
def test_what_is_told_of_the_end_is_what_the_tables_say(version: str, setting: Setting) -> None:
    made = play(VERSIONS[version], replace(setting, lost=0), moments=3)
    places = tree(made.registry, SOURCE).places
    tiers = [place.tier for place in places.values() if place.tier is not None]
    assert made.depths == {tier: tiers.count(tier) for tier in sorted(set(tiers))}
    assert made.on_sources == tuple(len(place.children) for place in places.values() if place.tier == 0)
    assert made.waiting == setting.nodes - (len(tiers) - setting.sources)
    assert sum(made.loads.values()) == len(tiers)
    assert sum(count * load for load, count in made.loads.items()) == len(tiers) - setting.sources


def test_a_lost_node_stays_in_the_tables_and_its_children_find_another_source() -> None:
    made = play(V2026, Setting(nodes=40, lost=5, lost_at=3000, seconds=6000))
    assert made.waiting == 0
    late = [one for one in made.registry.nodes if (one.age or 0) > 600]
    assert len(late) == 5
    assert all(one.state == "Active" for one in late)


def test_ghosts_at_the_head_of_a_short_list_stop_everybody_where_no_age_is_asked_for() -> None:
    """A dead node's row stays for ever: where only it is offered, the living are never reached; its age makes it vanish."""
    setting = Setting(nodes=40, sources=1, lost=20, lost_at=1500, seconds=6000)
    assert play(replace(V2023, fanout=2, most_offered=1), setting).waiting == 20
    assert play(replace(V2026, fanout=2, most_offered=1), setting).waiting == 0


def test_the_newer_rules_let_a_node_serve_more_than_the_fanout_and_the_document_does_not_when_they_come_one_by_one() -> (
    None
):
    at_once = Setting(nodes=300, start_s=20, seconds=900)
    assert play(V2026, at_once).soft > 0
    assert max(play(V2026, at_once).loads) > V2026.fanout
    slowly = Setting(nodes=300, start_s=3000, connect_s=0.001, seconds=3100)
    assert max(play(VERSIONS["seed"], slowly).loads) <= VERSIONS["seed"].fanout


def test_the_limit_of_those_that_wait_keeps_a_large_fleet_from_ever_being_complete() -> None:
    """Eleven at a time, half a second each, and all ask anew every ten minutes: no more than that can hang on the source."""
    setting = Setting(nodes=4000, connect_s=2, seconds=3600)
    made = play(V2023, setting)
    assert made.waiting > 500
    assert play(replace(V2023, most_pending=None), setting).waiting < 50
    assert made.refused > 100 * made.waiting


def test_ten_thousand_take_seconds() -> None:
    began = time.perf_counter()
    for rules in VERSIONS.values():
        made = play(rules, Setting(nodes=10_000))
        assert sum(made.depths.values()) + made.waiting == 10_002
    assert time.perf_counter() - began < 60


def test_keepalives_must_come_more_often_than_they_are_asked_for() -> None:
    with pytest.raises(Problem, match="looks dead between two"):
        Fleet(replace(V2026, keepalive_s=600), Setting())
