"""The rules of tiers and of Comdb2: the given cases, executed examples, and SQL and walks written out on random rows."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from given_cases import FOLDER, given_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_cases import disagreements
from tier_rows import CALLS, NAMES, candidates, lowest_file, registries

from workbench.model import Problem
from workbench.replication.tier.rules import reconnection
from workbench.replication.tier.rules.candidates import Call
from workbench.replication.tier.rules.log_retention import hung, log_holder, self_check
from workbench.replication.tier.rules.registration import register
from workbench.replication.tier.rules.tiers import ADRIFT, CIRCLE, NO_PULL, NO_ROW, Node, Pull, Registry, sources, tree
from workbench.scenarios import answer, kinds
from workbench.systems.comdb2.rules import HOLDING, V2023, V2026, VERSIONS

CASES = list(given_cases("comdb2-rules"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_given_case(case) -> None:
    assert not disagreements([case])


def test_the_given_cases_are_of_every_kind() -> None:
    assert {case["kind"] for case in CASES} == {name for name in kinds() if name.startswith("comdb2.")}


with gzip.open(FOLDER / "comdb2-executed.jsonl.gz", "rt", encoding="utf-8") as lines:
    EXECUTED = [one for one in map(json.loads, lines) if f"comdb2.{one['rule']}" in kinds()]


@pytest.mark.parametrize("case", EXECUTED, ids=lambda case: case["id"])
def test_an_executed_example(case) -> None:
    got = answer(f"comdb2.{case['rule']}", case["input"] | {"firstfile_column": case.get("firstfile_column", False)})
    seen = case.get("observed") or case["expected"]
    if case["rule"] != "register_replicant":
        assert {key: got[key] for key in seen} == seen
        return
    assert got["candidate_union"] == seen["candidate_union"]
    assert got["row_count"] in seen["row_counts"]
    assert got["tier_sequence"] in seen["tier_sequences"]
    assert got["after"] == seen["after"]
    assert got["reasons"].keys() == {f"{row[0]}@{row[1]}" for row in seen["after"]["physreps"]}


# --- the query against SQL

LIMITS = st.tuples(st.integers(0, 4), st.integers(0, 4))


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(list(VERSIONS)), LIMITS, registries(), CALLS)
def test_the_query_says_what_sql_says_of_the_rows(version: str, limits: tuple[int, int], registry, call) -> None:
    rules = replace(VERSIONS[version], fanout=limits[0], most_offered=limits[1], most_pending=None)
    made = register(rules, registry, call)
    found, endless = candidates(rules, registry, call, strict=True)
    second = rules.second_pass and not found
    if second:
        found, more = candidates(rules, registry, call, strict=False)
        endless = endless or more
    assert made.endless == endless
    if endless:
        return  # the real query does not answer
    assert made.second_pass == second
    evenest = rules.evenest_first or (rules.checks_files and registry.keeps_first_file)
    ranks = [row[:2] if evenest else row[:1] for row in found]
    rows = found[: rules.most_offered]
    assert made.rows == len(rows)
    assert list(made.tiers) == [row[0] for row in rows]
    assert [(one.tier, one.count, one.database, one.host) for one in made.in_order] == rows
    if rules.random_ties:
        rows = [row for row, rank in zip(found, ranks, strict=True) if rows and rank <= ranks[len(rows) - 1]]
    assert {(one.tier, one.database, one.host) for one in made.union} == {(row[0], *row[2:]) for row in rows}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(VERSIONS)), st.integers(0, 3), registries(), CALLS)
def test_every_known_node_has_a_reason_and_only_what_may_be_offered_is_called_so(
    version, fanout, registry, call
) -> None:
    rules = replace(VERSIONS[version], fanout=fanout, most_offered=2, most_pending=None)
    made = register(rules, registry, call)
    ends = [name for pull in registry.pulls for name in (pull.name, pull.source)]
    asked = [f"S@{host}" for host in call.source_hosts]
    assert made.reasons.keys() == {*(one.name for one in registry.nodes), *ends, *asked, call.name}
    assert {name for name, why in made.reasons.items() if why.startswith("offered")} == {one.name for one in made.union}
    rows = {one.name: one for one in registry.nodes}
    for name, why in made.reasons.items():
        assert why
        if why.startswith("it is "):
            assert why.split()[2] == rows[name].state
        if why.startswith("its keepalive is "):
            assert rows[name].age is not None and rows[name].age >= 600


@given(registries(), CALLS, st.integers(0, 3), st.sampled_from(["2023", "seed"]))
def test_too_many_that_wait_are_refused_and_their_rows_of_pulls_are_gone_all_the_same(
    registry, call, limit: int, version: str
) -> None:
    made = register(replace(VERSIONS[version], most_pending=limit), registry, call)
    waiting = [one for one in registry.nodes if one.state == "Pending"]
    assert bool(made.refused) == (len(waiting) > limit if version == "2023" else len(waiting) >= limit)
    own = (call.database, call.host)
    assert set(made.after.pulls) == {pull for pull in registry.pulls if (pull.database, pull.host) != own}
    if made.refused:
        assert made.after.nodes == registry.nodes
        assert made.rows == 0
    else:
        assert next(one.state for one in made.after.nodes if one.name == call.name) == "Pending"


def test_a_node_is_offered_itself_and_its_child_when_it_was_not_reset_first() -> None:
    nodes = tuple(Node(database, host, 9, age=5) for database, host in (("S", "s1"), ("A", "a1"), ("B", "b1")))
    pulls = (Pull("A", "a1", "S", "s1"), Pull("B", "b1", "A", "a1"))
    made = register(V2026, Registry(nodes, pulls), Call("A", "a1", 9, "S", ("s1",)))
    assert "the caller itself" in made.reasons["A@a1"]
    assert "a circle" in made.reasons["B@b1"]
    assert made.reasons["S@s1"] == "offered, tier 0: it serves 1 of 8"


def test_a_node_that_does_not_cover_hides_what_is_below_it() -> None:
    nodes = (Node("S", "s1", 9, 0, 7, 5), Node("A", "a1", 9, 0, 1, 5), Node("B", "b1", 9, 0, 1, 5))
    pulls = (Pull("A", "a1", "S", "s1"), Pull("B", "b1", "A", "a1"))
    registry = Registry(nodes, pulls, keeps_first_file=True)
    made = register(V2026, registry, Call("new", "x", 6, "S", ("s1",)))
    assert made.rows == 0
    assert made.reasons["S@s1"] == "it does not cover file 6: its log begins in file 7"
    for name in ("A@a1", "B@b1"):
        assert made.reasons[name] == f"an ancestor S@s1 is dropped: {made.reasons['S@s1']}"


def test_a_fanout_of_one_is_never_met_by_the_real_program_and_is_by_the_document() -> None:
    registry = Registry((Node("S", "s1", 9, age=5),), ())
    call = Call("new", "x", 9, "S", ("s1",))
    assert register(replace(V2023, fanout=1), registry, call).rows == 0
    assert "counts as if it had one" in register(replace(V2023, fanout=1), registry, call).reasons["S@s1"]
    assert register(replace(VERSIONS["seed"], fanout=1), registry, call).rows == 1
    assert register(replace(V2023, fanout=1, fanouts={"S": 2}), registry, call).rows == 1


# --- who holds logs, who is late


@settings(max_examples=400, deadline=None)
@given(registries(), st.lists(st.sampled_from(["s1", "s2"]), max_size=2))
def test_the_file_that_is_held_is_that_of_the_query(registry, hosts: list[str]) -> None:
    for rules in (HOLDING, V2023):
        found = log_holder(rules, registry, "S", hosts)
        assert found.file == lowest_file(registry, str(rules.holding), "S", hosts)
        rows = {one.name: one.file for one in registry.nodes}
        assert all(rows[name] == found.file for name in found.holders)
        assert bool(found.holders) == (found.file is not None)
    assert log_holder(V2026, registry, "S", hosts).file is None
    assert log_holder(HOLDING, registry, "S", hosts, table_is_local=False).file is None


def test_by_the_document_a_node_holds_only_if_it_hangs_on_the_source_itself() -> None:
    """The program follows databases: a sibling that pulls from nobody holds too."""
    nodes = (Node("S", "s1", 20), Node("A", "a1", 20), Node("A", "a2", 3))
    registry = Registry(nodes, (Pull("A", "a1", "S", "s1"),))
    assert log_holder(VERSIONS["seed"], registry, "S", ["s1"]).file == 20
    assert log_holder(HOLDING, registry, "S", ["s1"]).holders == ("A@a2",)


def test_a_source_without_a_position_of_its_own_holds_nothing() -> None:
    registry = Registry((Node("S", "s1", 0),), ())
    assert log_holder(HOLDING, registry, "S", ["s1"]).kept_from is None
    assert log_holder(HOLDING, registry, "S", ["s1"]).file == 0


@given(registries(), st.sampled_from([59, 60, 61]))
def test_late_are_rows_with_a_keepalive_that_is_too_old(registry, threshold: int) -> None:
    late = {one.name for one in registry.nodes if one.age is not None and one.age >= threshold}
    assert set(hung(V2023, registry, "S", threshold)) == late
    children = {pull.name for pull in registry.pulls if pull.source_database == "S"}
    assert set(hung(V2026, registry, "S", threshold)) == late & children


LSNS = st.tuples(st.integers(0, 12), st.sampled_from([28, 100, 900]))


@given(LSNS, LSNS, st.sampled_from([0, 60, 61]))
def test_a_node_calls_itself_inactive_also_when_it_is_ahead_and_its_offset_smaller(mine, theirs, idle: int) -> None:
    found = self_check(mine, theirs, idle, 60)
    assert found.behind == (mine < theirs)
    assert found.false_alarm == (idle > 60 and mine >= theirs and mine[1] < theirs[1])
    assert found.says_inactive or not (found.behind and idle > 60)


# --- logs that meet


@given(LSNS, LSNS, LSNS, LSNS, st.integers(0, 3))
def test_ranges_overlap_when_some_place_is_in_both(a, b, c, d, most: int) -> None:
    (source_first, source_last), (first, last) = sorted((a, b)), sorted((c, d))
    every = [(file, place) for file in range(13) for place in (28, 100, 900)]
    meets = any(source_first <= lsn <= source_last and first <= lsn <= last for lsn in every)
    far = most > 0 and last[0] > source_last[0] + most
    assert reconnection.overlaps(source_first, source_last, first, last, most) == (meets and not far)


RECORDS = st.lists(
    st.builds(reconnection.Record, LSNS, st.sampled_from("xy"), st.booleans()), unique_by=lambda r: r.lsn
)


@settings(max_examples=300)
@given(RECORDS, RECORDS)
def test_a_log_is_cut_behind_the_newest_commit_that_both_have(mine, theirs) -> None:
    made = reconnection.rewind(mine, theirs)
    both = [a for a in mine for b in theirs if a.commits and (a.lsn, a.digest) == (b.lsn, b.digest)]
    if not both:
        assert made.match is None and made.why and not made.cut
        return
    assert made.match in both and all(one.lsn <= made.match.lsn for one in both)
    assert sorted(one.lsn for one in mine if one.lsn > made.match.lsn) == [one.lsn for one in made.cut]


def test_a_log_that_is_a_beginning_of_the_sources_is_not_cut_by_newer_builds() -> None:
    log = [reconnection.Record((1, place), "x", commits=place == 28) for place in (28, 100, 200)]
    assert len(reconnection.rewind(log[:2], log).cut) == 1
    assert reconnection.rewind(log[:2], log, spares_prefix=True).cut == ()
    other = [*log[:1], replace(log[1], digest="y")]
    assert len(reconnection.rewind(other, log, spares_prefix=True).cut) == 1
    assert len(reconnection.rewind(log, log[:2], spares_prefix=True).cut) == 2


@pytest.mark.parametrize(
    ("text", "lsn"),
    [
        (" {3:5} ", [3, 5]),
        ("{4294967295:0}", [4294967295, 0]),
        ("{4294967296:0}", None),
        ("{-1:-1}", None),
        ("{3:5}x", None),
        ("{٣:5}", None),
        ("{3:5", None),
        ("", None),
    ],
)
def test_what_the_server_reads_as_an_lsn(text: str, lsn: list[int] | None) -> None:
    assert answer("comdb2.lsn_text", {"text": text}) == {"lsn": lsn}


REGISTRATION = {
    "physreps": [{"dbname": "S", "host": "s1", "file": 9, "keepalive_age_s": 5, "state": "Active"}],
    "call": {"dbname": "n", "host": "x", "lsn": "{5:100}", "source_dbname": "S", "source_hosts": ["s1"]},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": "2019"}, "version: '2019' is not 'seed', '2023' or '2026'"),
        ({"physreps": REGISTRATION["physreps"] * 2}, "has the row of S@s1 twice"),
        ({"call": {**REGISTRATION["call"], "lsn": "5"}}, "call.lsn: '5' is not file:offset"),
        ({"physrep_fanout": True}, "physrep_fanout: true is not a whole number"),
        ({"call": {**REGISTRATION["call"], "source_hosts": "s1"}}, "source_hosts: 's1' is not a list"),
    ],
)
def test_what_does_not_fit_is_told(change, said: str) -> None:
    assert answer("comdb2.register_replicant", REGISTRATION)["row_count"] == 1
    with pytest.raises(Problem, match=r"^inputs\.") as caught:
        answer("comdb2.register_replicant", REGISTRATION | change)
    assert said in str(caught.value)


ANY = {
    "comdb2.register_replicant": REGISTRATION,
    "comdb2.min_log_file": {"source_dbname": "S", "source_hosts": ["s1"], "physreps": REGISTRATION["physreps"]},
    "comdb2.hung_count": {"source_dbname": "S", "threshold_s": 60, "physreps": REGISTRATION["physreps"]},
    "comdb2.hung_self_check": {"my_lsn": [9, 1], "source_row": [9, 2], "idle_s": 61},
    "comdb2.range_overlap": dict.fromkeys(
        ("source_first", "source_last", "replicant_first", "replicant_last"), "{1:1}"
    ),
    "comdb2.allowed_source": {"my_class": "prod", "source_class": "prod"},
    "comdb2.lsn_text": {"text": "{1:2}"},
}
"""Kind -> inputs that it answers."""


@pytest.mark.parametrize("kind", ANY)
def test_each_kind_knows_its_versions(kind: str) -> None:
    assert answer(kind, ANY[kind] | {"version": "2023"})
    for version in ("1999", 2023, None):
        with pytest.raises(Problem, match=r"^inputs\.version: .* is not 'seed', '2023' or '2026'"):
            answer(kind, ANY[kind] | {"version": version})


def test_columns_that_a_row_lacks_are_null() -> None:
    """A state of null is none of those that keep a node from being offered; no keepalive is no young one."""
    bare = {"dbname": "S", "host": "s1"}
    assert answer("comdb2.register_replicant", REGISTRATION | {"physreps": [bare]})["row_count"] == 1
    for kind in ("comdb2.min_log_file", "comdb2.hung_count"):
        given = {**bare, "file": None, "offset": None, "firstfile": None, "keepalive_age_s": None, "state": None}
        assert answer(kind, ANY[kind] | {"physreps": [bare]}) == answer(kind, ANY[kind] | {"physreps": [given]})


ODD = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    *(st.just("{1:2"), st.just("{-1:-1}"), st.just("1:99999999999"), st.just(10**400), st.just(2**32)),
    *(
        st.lists(st.one_of(st.none(), st.integers(-1, 9), st.text(max_size=2)), max_size=3),
        st.builds(dict, a=st.none()),
    ),
)


def steps(data: object, so_far: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to every part of the inputs."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [so_far, *(way for key, value in inner for way in steps(value, (*so_far, key)))]


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_what_is_no_input_of_a_kind_is_told_in_words(data) -> None:
    kind = data.draw(st.sampled_from(sorted(ANY)))
    inputs: Any = [deepcopy(ANY[kind])]
    for _ in range(data.draw(st.integers(1, 2))):
        *ways, last = data.draw(st.sampled_from(steps(inputs)[1:]))
        place = reduce(lambda inner, key: inner[key], ways, inputs)
        if ways and data.draw(st.booleans()):
            del place[last]
        else:
            place[last] = data.draw(ODD)
    try:
        json.dumps(answer(kind, inputs[0]), allow_nan=False)
    except Problem as problem:
        assert str(problem).startswith("inputs")


def test_a_place_that_lacks_its_second_number_is_told() -> None:
    with pytest.raises(Problem, match=r"^inputs\.my_lsn\[1\]: is missing$"):
        answer("comdb2.hung_self_check", ANY["comdb2.hung_self_check"] | {"my_lsn": [9]})


def test_a_class_that_is_none_is_told() -> None:
    with pytest.raises(Problem, match="'gold' is no class of machines"):
        answer("comdb2.allowed_source", {"my_class": "gold", "source_class": "prod"})


# --- the tree


@settings(max_examples=400, deadline=None)
@given(registries())
def test_places_are_what_walks_of_every_length_say(registry: Registry) -> None:
    """Ways of up to as many steps as there are nodes, written out."""
    made = tree(registry, "S")
    steps = {(pull.name, pull.source) for pull in registry.pulls}
    up = [{(name, name) for name in {end for step in steps for end in step} | {one.name for one in registry.nodes}}]
    for _ in NAMES:
        up.append({(child, top) for child, middle in steps for start, top in up[-1] if start == middle})
    others = set(sources(registry)) - {"S"}
    for name, place in made.places.items():
        tiers = [n for n, ways in enumerate(up) for start, top in ways if start == name and top.startswith("S@")]
        assert place.tier == min(tiers, default=None)
        if place.tier is not None:
            assert (name, place.root) in up[place.tier]
        assert place.parents == tuple(sorted(parent for child, parent in steps if child == name))
        assert place.children == tuple(sorted(child for child, parent in steps if parent == name))
        circles = any((name, name) in ways for ways in up[1:])
        known = {one.name for one in registry.nodes}
        if circles:
            assert place.problem == CIRCLE
        elif place.tier is None:
            expected = ADRIFT if known & set(place.parents) else NO_ROW if place.parents else NO_PULL
            assert place.problem == expected
        else:
            assert place.problem == ""
    left_out = {one.name for one in registry.nodes} - made.places.keys()
    for name in left_out:
        assert any(start == name and top.split("@")[0] in others for ways in up for start, top in ways)


def test_hosts_of_the_source_are_roots_without_any_row_of_theirs() -> None:
    nodes = (Node("S", "s1", 9), Node("S", "s2", 9), Node("A", "a1", 9), Node("B", "b1", 9), Node("N", "n1", None))
    registry = Registry(nodes, (Pull("A", "a1", "S", "s3"), Pull("B", "b1", "Z", "gone")))
    made = tree(registry, "S")
    assert made.roots == ("S@s1", "S@s2", "S@s3")
    assert made.places["A@a1"].tier == 1
    assert made.places["B@b1"].problem == NO_ROW
    assert made.places["N@n1"].problem == NO_PULL
    assert made.depth == 1


def test_two_sources_in_one_registry_are_two_trees() -> None:
    nodes = tuple(Node(*name.split("@"), 9) for name in ("S@s1", "T@t1", "A@a1", "B@b1"))
    registry = Registry(nodes, (Pull("A", "a1", "S", "s1"), Pull("B", "b1", "T", "t1")))
    assert sources(registry) == ("S", "T")
    assert tree(registry, "S").places.keys() == {"S@s1", "A@a1"}
    assert tree(registry, "T").places.keys() == {"T@t1", "B@b1"}
