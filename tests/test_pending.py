"""The pending list: the given cases, the scenarios of the design, a second implementation, and what must always hold."""

from __future__ import annotations

import doctest
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from given_cases import given_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from pending_slowly import Slow
from pydantic import ValidationError

from workbench.replication.changelog.rules import pending, pending_examples
from workbench.replication.changelog.rules.pending import (
    BEFORE_359,
    PRIMARY_CSN,
    RULE_SETS,
    SENTENCES,
    SINCE_359,
    Context,
    Element,
    Replica,
    Rules,
    Server,
    Step,
)
from workbench.replication.changelog.rules.pending_examples import EXAMPLES, play
from workbench.rules.vectors import Span
from workbench.systems.ds389.scenarios.pending import (
    PendingList,
    PendingListVersions,
    pending_list,
    pending_list_versions,
)

KINDS: dict[str, Any] = {
    "pending_list": (PendingList, pending_list),
    "pending_list_versions": (PendingListVersions, pending_list_versions),
}


def csn(number: int, rid: int = 1) -> str:
    return f"660000{number:02x}0000{rid:04x}0000"


OLD, C1, C2, C3, C4 = (csn(number) for number in range(5))
R1, R2, R3 = (csn(number, 2) for number in (1, 2, 3))


def maxima(server: Server) -> list[dict[str, str | None]]:
    return [{rid: element.max for rid, element in ruv.items()} for ruv in server.state()]


def said(server: Server) -> list[str]:
    """The rules that the last step went by."""
    return [why.rule for why in server.history[-1].why]


# The given cases


CASES = [case for name in ("ds389-pending", "ds389-rules") for case in given_cases(name) if case["kind"] in KINDS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_given_case(case: dict[str, Any]) -> None:
    inputs, function = KINDS[case["kind"]]
    result = function(inputs.model_validate(case["inputs"]))
    assert {key: result[key] for key in case["expected"]} == case["expected"]


def test_there_are_cases() -> None:
    kinds = [case["kind"] for case in CASES]
    assert {kind: kinds.count(kind) for kind in KINDS} == {"pending_list": 150, "pending_list_versions": 5}


# The scenarios of the design


def test_1_only_the_roll_up_of_359_moves_the_max_over_open_operations() -> None:
    at_op_3 = {}
    for rules in RULE_SETS.values():
        server = Server(EXAMPLES["1"].replicas, rules)
        for step in EXAMPLES["1"].steps[:4]:
            server.take(step)
        at_op_3[rules.name] = server.state()[0]["1"].max
        open_csns = [entry.csn for entry in server.state()[0]["1"].pending if not entry.committed]
        assert open_csns == [C1, C2]
    assert at_op_3 == {"before_359": OLD, "since_359": C3, "primary_csn": OLD}
    for rules in RULE_SETS.values():
        assert play("1", rules).state() == [{"1": Element(OLD, C3)}]


@pytest.mark.parametrize(
    ("name", "before_359", "since_359", "primary_csn"),
    [
        ("2.1", [OLD], [C3], [OLD]),
        ("2.1 beside another writer", [C3], [C3], [C1]),
        ("2.2", [C2], [C2], [OLD]),
        ("2.3", [OLD, C4], [OLD, C4], [OLD, OLD]),
    ],
)
def test_2_an_aborted_operation(name: str, before_359: Any, since_359: Any, primary_csn: Any) -> None:
    """Of an aborted operation nothing is in the changelog: a max above the last one that succeeded is ahead of it."""
    for rules, expected in zip(RULE_SETS.values(), (before_359, since_359, primary_csn), strict=True):
        server = play(name, rules)
        assert [ruv["1"].max for ruv in server.state()] == expected, rules
    assert all(not element.pending for ruv in server.state() for element in ruv.values()), "primary_csn leaves some"


def test_2_1_before_359_what_is_left_of_an_aborted_operation_waits_for_the_next_roll_up() -> None:
    left = play("2.1", BEFORE_359).state()[0]["1"].pending
    assert [(entry.csn, entry.committed) for entry in left] == [(C2, True), (C3, True)]


# Single rules, each with the reason that is given for it


def test_a_csn_is_seen_at_the_max_and_at_the_end_of_the_list() -> None:
    server = Server([Replica("1", {"1": Span(C1, C2)})])
    assert [server.begin("t", 0, C1), server.begin("t", 0, C2)] == ["covered"] * 2
    assert server.history[-1].why == (("in_ruv", 0, "1", (C2,), C2),)
    assert server.contexts == {}
    assert server.begin("t", 0, C4) == "ok"
    assert [server.begin("u", 0, C4), server.begin("u", 0, C3)] == ["covered"] * 2
    assert server.history[-1].why[-1] == ("in_list", 0, "1", (C3,), C4)


def test_a_csn_seen_in_the_list_costs_the_thread_its_context_and_one_seen_in_the_ruv_does_not() -> None:
    server = Server([Replica(1, {"1": Span(OLD, OLD)})])
    server.begin("t", 0, C3)
    server.begin("t", 0, OLD)
    assert server.contexts["t"].prim_csn == C3
    server.begin("t", 0, C2)
    assert server.contexts == {}
    assert [server.commit("t", 0, C3), said(server)] == ["ok", ["not_primary"]]
    assert server.holding_back() == [{"1": C3}]


def test_the_min_of_an_origin_is_the_first_of_it_that_was_claimed_and_never_that_of_the_local_one() -> None:
    server = Server([Replica("1", {"1": Span(), "2": Span()})])
    server.begin("t", 0, R1)
    server.begin("t", 0, R2)
    server.begin("t", 0, C1)
    assert server.commit("t", 0, R1) == "ok"
    assert server.state() == [{"1": Element(None, C1), "2": Element(R1, R2)}]
    server.end("t")
    server.begin("t", 0, R3)
    server.commit("t", 0, R3)
    assert server.state()[0]["2"] == Element(R1, R3)


def test_an_element_comes_into_being_with_the_first_csn_of_its_origin() -> None:
    server = Server([Replica("1", {})])
    assert [server.cancel("t", 0, R1), said(server)] == ["notfound", ["no_element"]]
    assert server.begin("t", 0, R1) == "ok"
    assert said(server) == ["new_element", "primary", "inserted"]
    assert server.state()[0].keys() == {"2"}


def test_the_cancel_of_a_nested_csn_takes_that_one_only() -> None:
    server = Server([Replica("1", {"1": Span()})])
    for one in (C1, C2, C3):
        server.begin("t", 0, one)
    assert [server.cancel("t", 0, C2), server.cancel("t", 0, C2)] == ["ok", "notfound"]
    assert [entry.csn for entry in server.state()[0]["1"].pending] == [C1, C3]
    server.commit("t", 0, C1)
    assert maxima(server) == [{"1": C3}]


def test_a_cancel_rolls_nothing_up() -> None:
    server = Server([Replica("1", {"1": Span()})])
    server.begin("one", 0, C1)
    server.begin("two", 0, C2)
    server.commit("two", 0, C2)
    assert server.history[-1].why[-1] == ("held_back", 0, "1", (C2,), C1)
    assert [server.cancel("one", 0, C1), maxima(server)] == ["ok", [{"1": None}]]
    server.begin("three", 0, C3)
    server.commit("three", 0, C3)
    assert maxima(server) == [{"1": C3}]


def test_a_read_only_replica_is_passed_over_when_cancelling() -> None:
    server = Server([Replica(65535, {}), Replica(65535, {})])
    server.begin("t", 0, R1)
    server.begin("t", 1, csn(1, 65535))
    assert server.cancel("t", 0, R1) == "ok"
    assert said(server) == ["removed", "read_only", "read_only"]
    assert [len(element.pending) for ruv in server.state() for element in ruv.values()] == [0, 1]
    assert server.begin("u", 0, R2) == "ok"
    assert server.commit("u", 0, R2) == "ok", "a commit passes over the element that is not there"
    assert maxima(server)[0] == {"2": R2}


def test_the_cancel_of_a_replicated_operation_misses_the_local_element() -> None:
    server = Server([Replica(1, {})])
    server.begin("t", 0, R1)
    assert server.cancel("t", 0, R1) == "notfound"
    assert server.state() == [{"2": Element()}]


def test_of_several_replicas_the_last_one_decides_about_a_cancel() -> None:
    for locals_, expected in [((1, 3), "notfound"), ((3, 1), "ok"), ((3, 65535), "notfound"), ((1, 65535), "ok")]:
        server = Server([Replica(2, {}), *(Replica(local, {}) for local in locals_)])
        server.begin("t", 0, R1)
        for place in (1, 2):
            server.begin("t", place, csn(5, 1))  # of rid 1, whatever is local there
        assert server.cancel("t", 0, R1) == expected, locals_


def test_another_replica_has_its_own_primary() -> None:
    server = Server([Replica(1, {"1": Span()}), Replica(1, {"1": Span()})])
    server.begin("one", 0, C1)
    server.begin("two", 1, C1)
    assert server.commit("one", 1, C1) == "ok"
    assert said(server) == ["not_primary"]
    assert server.commit("one", 0, C1) == "ok"
    assert maxima(server) == [{"1": C1}, {"1": None}]


def test_a_context_lists_each_other_replica_once() -> None:
    server = Server([Replica(1, {}), Replica(1, {}), Replica(1, {})])
    for place, one in ((0, C1), (2, C1), (0, C2), (2, C2), (1, C2)):
        server.begin("t", place, one)
    assert server.contexts["t"] == Context(C1, 0, [2, 1])


def test_one_csn_in_two_replicas_is_the_primary_of_two_contexts() -> None:
    server = Server([Replica(1, {}), Replica(1, {}), Replica(1, {})])
    for thread, place, one in (("one", 0, C1), ("two", 1, C1), ("one", 2, C2), ("two", 2, C3)):
        server.begin(thread, place, one)
    server.commit("two", 1, C1)
    assert maxima(server) == [{"1": None}, {"1": C1}, {"1": None}]
    assert server.history[-1].why[-1] == ("held_back", 2, "1", (C3,), C2)
    assert server.cancel("one", 0, C1) == "ok"
    assert [entry.csn for entry in server.state()[2]["1"].pending] == [C3]


def test_an_entry_with_the_csn_of_the_primary_is_committed_with_it_although_another_context_made_it() -> None:
    server = Server([Replica(1, {}), Replica(1, {})])
    for thread, place, one in (("one", 0, C1), ("one", 1, C2), ("two", 0, C2), ("two", 1, C3)):
        assert server.begin(thread, place, one) == "ok"
    server.commit("two", 0, C2)
    assert maxima(server) == [{"1": None}, {"1": C3}]


def test_a_max_that_was_moved_from_outside_stays() -> None:
    """By begin and commit alone it never happens: a list lies above its max."""
    server = Server([Replica(1, {"1": Span(), "2": Span()}), Replica(1, {"1": Span()})])
    for place, one in ((0, R1), (0, C1), (1, C1)):
        server.begin("t", place, one)
    server._ruvs[0]["2"] = server._ruvs[0]["2"]._replace(max=R1)  # as after an import
    assert [server.commit("t", 0, R1), said(server)[-1]] == ["covered", "max_stays"]
    assert server.history[-1].why[-1] == ("max_stays", 0, "2", (R1,), R1)
    assert server.state() == [
        {"1": Element(None, None, server.state()[0]["1"].pending), "2": Element(R1, R1)},
        *server.state()[1:],
    ]
    assert [len(ruv["1"].pending) for ruv in server.state()] == [1, 1], "what comes behind is left alone"
    assert not any(entry.committed for ruv in server.state() for entry in ruv["1"].pending)


def test_an_origin_that_is_being_cleaned_is_consumed() -> None:
    server = Server([Replica(1, {"1": Span()})], cleaned=["2"])
    assert [server.begin("t", 0, R1), said(server)] == ["covered", ["cleaned"]]
    assert server.state()[0].keys() == {"1"}
    assert server.contexts == {}
    assert server.begin("t", 0, C1) == "ok"


@pytest.mark.parametrize("rules", [BEFORE_359, SINCE_359], ids=lambda rules: rules.name)
def test_older_servers_know_no_threads(rules: Rules) -> None:
    server = Server([Replica(1, {"1": Span()})], rules)
    server.begin("t", 0, C1)
    server.begin("t", 0, C2)
    assert [server.cancel("t", 0, C1), server.commit("u", 0, C3), said(server)] == ["ok", "notfound", ["no_entry"]]
    assert [server.commit("u", 0, C2), maxima(server), server.contexts] == ["ok", [{"1": C2}], {}]
    assert [server.commit("u", 0, R1), said(server)] == ["ok", ["no_element"]]


def test_since_359_a_late_commit_leaves_the_list_and_the_max_where_it_is() -> None:
    server = Server([Replica(1, {"1": Span()})], SINCE_359)
    server.begin("one", 0, C1)
    server.begin("two", 0, C2)
    server.commit("two", 0, C2)
    assert server.holding_back() == [{}]
    assert [server.commit("one", 0, C1), server.state()] == ["covered", [{"1": Element(None, C2)}]]


def test_the_start_is_not_changed() -> None:
    start = [Replica(1, {"1": Span(OLD, OLD)})]
    Server(start).begin("t", 0, R1)
    server = Server(start)
    server.begin("t", 0, C1)
    server.commit("t", 0, C1)
    assert start[0].vector == {"1": Span(OLD, OLD)}


def test_every_reason_reads_as_a_sentence() -> None:
    seen = {
        why.rule: str(why)
        for name in EXAMPLES
        for rules in RULE_SETS.values()
        for done in play(name, rules).history
        for why in done.why
    }
    assert seen["held_back"] == f"{C3} waits behind {C1}, which is not committed"
    assert seen["not_primary"].endswith("its commit settles nothing")
    assert not any("{" in sentence for sentence in seen.values())
    for module in (pending, pending_examples):
        assert doctest.testmod(module).failed == 0
    assert {rule for rule in SENTENCES if f'"{rule}",' not in Path(pending.__file__).read_text()} == set()


# Any history


# Small numbers, so that CSNs meet again; 0xa beside 1 and 2, so that a rid read as hex or as decimal text differs.
LOCALS = [1, 1, 2, 10, 65535]
texts = st.builds(
    lambda time, seq, rid, sub: f"{0x66000000 + time:08x}{seq:04x}{rid:04x}{sub:04x}",
    st.integers(0, 6),
    st.integers(0, 1),
    st.sampled_from([1, 1, 2, 10, 65535]),
    st.sampled_from([0, 0, 0, 1]),
)


@st.composite
def starts(draw: st.DrawFn) -> list[Replica]:
    """One to three replicas; an element may be missing, empty, or have both ends."""
    replicas = []
    for _ in range(draw(st.integers(1, 3))):
        vector = {}
        for rid in (1, 2, 10, 65535):
            low, high = sorted((draw(st.integers(0, 2)), draw(st.integers(0, 2))))
            kind = draw(st.sampled_from(["missing", "empty", "full", "full"]))
            if kind != "missing":
                vector[str(rid)] = Span(csn(low, rid), csn(high, rid)) if kind == "full" else Span()
        replicas.append(Replica(draw(st.sampled_from(LOCALS)), vector))
    return replicas


@st.composite
def histories(draw: st.DrawFn, longest: int = 24) -> tuple[list[Replica], list[Step]]:
    """Steps of two or three threads; most commits and cancels name a CSN that the thread began, some any."""
    replicas = draw(starts())
    places = st.integers(0, len(replicas) - 1)
    begun: dict[int, list[tuple[int, str]]] = {}
    steps = []
    for _ in range(draw(st.integers(4, longest))):
        thread = draw(st.integers(0, 2))
        op = draw(st.sampled_from(["begin"] * 5 + ["commit"] * 4 + ["cancel"] * 2 + ["end"]))
        mine = begun.setdefault(thread, [])
        if op == "end":
            steps.append(Step("end", thread))
            mine.clear()
            continue
        place, text = draw(places), draw(texts)
        if op == "begin":
            mine.append((place, text))
        elif mine and draw(st.integers(0, 7)):
            place, text = draw(st.sampled_from([mine[0], mine[0], *mine]))
        steps.append(Step(op, thread, place, text))
    return replicas, steps


def shape(server: Server) -> list[dict[str, Any]]:
    return [{rid: (one.min, one.max, len(one.pending)) for rid, one in ruv.items()} for ruv in server.state()]


@pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)
@settings(max_examples=300, deadline=None)
@given(history=histories())
def test_it_agrees_with_a_second_implementation(rules: Rules, history: tuple[list[Replica], list[Step]]) -> None:
    replicas, steps = history
    server, slow = Server(replicas, rules), Slow(replicas, rules.name)
    for step in steps:
        assert server.take(step) == slow.step(*step), step
        assert shape(server) == slow.state(), step


# What must always hold


@settings(max_examples=150, deadline=None)
@given(history=histories())
def test_a_claim_never_goes_back(history: tuple[list[Replica], list[Step]]) -> None:
    for rules in RULE_SETS.values():
        server = Server(history[0], rules)
        states = [server.state()]
        for step in history[1]:
            server.take(step)
            states.append(server.state())
        for before, after in pairwise(states):
            for earlier, later in zip(before, after, strict=True):
                assert earlier.keys() <= later.keys()
                for rid, element in earlier.items():
                    assert (element.max or "") <= (later[rid].max or "")
                    assert element.min in (None, later[rid].min)


@settings(max_examples=150, deadline=None)
@given(history=histories())
def test_no_max_passes_a_csn_that_is_not_committed(history: tuple[list[Replica], list[Step]]) -> None:
    for rules in (BEFORE_359, PRIMARY_CSN):
        server = Server(history[0], rules)
        for step in history[1]:
            server.take(step)
            for ruv, holding in zip(server.state(), server.holding_back(), strict=True):
                for rid, element in ruv.items():
                    csns = [entry.csn for entry in element.pending]
                    assert csns == sorted(set(csns))
                    assert all(one > (element.max or "") for one in csns)
                    assert holding.get(rid) == next((one.csn for one in element.pending if not one.committed), None)
        assert all(done.result != "covered" for done in server.history if done.step.op == "commit")


@st.composite
def real_operations(draw: st.DrawFn) -> tuple[list[Replica], list[Step]]:
    """External operations as servers have them: any origin first, then CSNs of the local replica IDs, then the outcome."""
    replicas = [
        Replica(local, {str(local): Span()})
        for local in draw(st.lists(st.sampled_from([1, 2]), min_size=1, max_size=3))
    ]
    clock = 0
    steps = []
    for number in range(draw(st.integers(1, 5))):
        home = draw(st.integers(0, len(replicas) - 1))
        rid = draw(st.sampled_from([1, 2]))
        made = [(home, csn(clock := clock + 1, rid))]
        for _ in range(draw(st.integers(0, 3))):
            place = draw(st.integers(0, len(replicas) - 1))
            made.append((place, csn(clock := clock + 1, int(replicas[place].local_rid))))
        steps += [Step("begin", number, place, one) for place, one in made]
        steps += [Step("commit", number, place, one) for place, one in reversed(made[1:]) if draw(st.booleans())]
        outcome = draw(st.sampled_from(["commit", "cancel", "neither"]))
        steps += [Step(outcome, number, *made[0])] * (outcome != "neither")
    return replicas, steps


@settings(max_examples=150, deadline=None)
@given(history=real_operations())
def test_the_cancel_of_a_primary_leaves_nothing_of_its_context(history: tuple[list[Replica], list[Step]]) -> None:
    server = Server(history[0])
    for step in history[1]:
        assert server.take(step) == "ok"
        left = {
            entry.csn
            for ruv in server.state()
            for one in ruv.values()
            for entry in one.pending
            if entry.prim_csn == step.csn
        }
        if step.op == "cancel":
            assert not left
        elif server.contexts[step.thread].prim_csn == step.csn and step.op == "commit":
            uncommitted = {
                entry.csn
                for ruv in server.state()
                for one in ruv.values()
                for entry in one.pending
                if not entry.committed
            }
            assert not left & uncommitted


@settings(max_examples=100, deadline=None)
@given(history=real_operations(), data=st.data())
def test_threads_in_different_replicas_do_not_see_each_other(
    history: tuple[list[Replica], list[Step]], data: st.DataObject
) -> None:
    replicas, steps = history
    count = len(replicas)
    twins = [step._replace(thread=("twin", step.thread), replica=step.replica + count) for step in steps]
    for rules in RULE_SETS.values():
        mixed, mine, theirs = Server([*replicas, *replicas], rules), iter(steps), iter(twins)
        order_ = data.draw(st.permutations([0] * len(steps) + [1] * len(steps)))
        for turn in order_:
            mixed.take(next(theirs if turn else mine))
        alone = Server(replicas, rules)
        for step in steps:
            alone.take(step)
        assert shape(mixed) == [*shape(alone), *shape(alone)]


# The inputs of the scenario kinds


LIST = {"replicas": [{"local_rid": 1, "ruv_min_max": {"1": None}}], "steps": []}
VERSIONS = {"rid": 1, "ruv_max_before": None, "steps": []}
BEGIN = {"op": "begin", "thread": 1, "replica": 0, "csn": C1}


@pytest.mark.parametrize(
    ("kind", "inputs", "where"),
    [
        ("pending_list", {"steps": []}, "replicas"),
        ("pending_list", {**LIST, "steps": [{**BEGIN, "replica": 1}]}, "there is no replica 1"),
        ("pending_list", {**LIST, "steps": [{**BEGIN, "replica": -1}]}, "steps.0"),
        ("pending_list", {**LIST, "steps": [{**BEGIN, "csn": C1[1:]}]}, "not a CSN"),
        ("pending_list", {**LIST, "steps": [{**BEGIN, "op": "abort"}]}, "abort"),
        ("pending_list", {**LIST, "steps": [{"op": "begin", "thread": 1, "csn": C1}]}, "replica"),
        ("pending_list", {**LIST, "steps": [{"op": "end"}]}, "thread"),
        ("pending_list", {**LIST, "replicas": [{"local_rid": "1", "ruv_min_max": {}}]}, "local_rid"),
        ("pending_list", {**LIST, "replicas": [{"local_rid": 65536, "ruv_min_max": {}}]}, "local_rid"),
        ("pending_list", {**LIST, "replicas": [{"local_rid": 1, "ruv_min_max": {"x": None}}]}, "not a replica ID"),
        ("pending_list", {**LIST, "replicas": [{"local_rid": 1, "ruv_min_max": {"1": [C1]}}]}, "ruv_min_max.1"),
        ("pending_list_versions", {**VERSIONS, "ruv_max_before": R1}, "not of replica ID 1"),
        ("pending_list_versions", {**VERSIONS, "steps": [{**BEGIN, "csn": R1}]}, "but of 2"),
        ("pending_list_versions", {**VERSIONS, "rid": None}, "rid"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_its_place(kind: str, inputs: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError, match=where):
        KINDS[kind][0].model_validate(inputs)


def test_a_csn_is_read_in_any_case_and_a_replica_id_with_zeros() -> None:
    upper = csn(10, 10).upper()
    replica = {"local_rid": 10, "ruv_min_max": {"0010": None}, "more": 1}
    steps = [{**BEGIN, "csn": upper}, {**BEGIN, "op": "commit", "csn": upper}, {"op": "end", "thread": 1, "csn": "?"}]
    result = pending_list(PendingList.model_validate({"replicas": [replica], "steps": steps}))
    assert result["state_after_each_step"][-1] == [{"10": {"min": None, "max": upper.lower(), "pending": 0}}]
    assert result["why_of_each_step"][-1] == ["the thread has no context any more"]


def test_what_holds_a_vector_back_is_named() -> None:
    steps = [BEGIN, {**BEGIN, "thread": 2, "csn": C2}, {**BEGIN, "op": "commit", "thread": 2, "csn": C2}]
    result = pending_list(PendingList.model_validate({**LIST, "steps": steps}))
    assert result["held_back_by"] == [{"1": C1}]
    assert result["why_of_each_step"][-1] == [f"{C2} is committed", f"{C2} waits behind {C1}, which is not committed"]
