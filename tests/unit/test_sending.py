"""One send session under both rule sets: the given cases, and random sessions against a slow second opinion."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import slow_sessions
from given_cases import given_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from session_checks import ORACLES, check, check_expected, check_plan, four, rule_set
from session_samples import CORNERS, csn, random_session, session_inputs

from workbench.rules import send_session, vectors
from workbench.rules.vectors import Span
from workbench.systems.ds389.rules import sending as real

HOUSE = SimpleNamespace(vectors=vectors, sending=send_session, real=real)
SESSIONS_AT_A_TIME = 50


@pytest.mark.parametrize(("name", "cases"), [("ds389-sessions", 300), ("design-sessions", 73)])
def test_every_given_case_comes_out_as_given(name: str, cases: int) -> None:
    seen = 0
    for case in given_cases(name):
        check(HOUSE, case["kind"], case["inputs"])
        check_expected(HOUSE, case["kind"], case["inputs"], case["expected"])
        seen += 1
    assert seen == cases


def check_random_sessions(seed: int) -> None:
    random = Random(seed)
    for _ in range(SESSIONS_AT_A_TIME):
        inputs = random_session(random)
        for kind in ORACLES:
            check(HOUSE, kind, inputs)


@given(st.integers(0, 2**64))
@settings(max_examples=40, deadline=None)
def test_random_sessions_agree_with_the_second_opinion(seed: int) -> None:
    check_random_sessions(seed)


@pytest.mark.slow
@given(st.integers(0, 2**64))
@settings(max_examples=2_000, deadline=None)
def test_very_many_random_sessions_agree_with_the_second_opinion(seed: int) -> None:
    check_random_sessions(seed)


def test_everything_that_can_be_said_is_said_in_the_random_sessions() -> None:
    """Else the comparison above proves less than it seems to."""
    seen: Counter[Any] = Counter()
    random = Random(3)
    for _ in range(4_000):
        inputs = random_session(random)
        for kind in ORACLES:
            session = check(HOUSE, kind, inputs)
            seen.update((session.rules, "rule", said.rule) for said in (*session.steps, *session.reasons))
            seen.update((session.rules, "outcome", step.outcome) for step in session.steps)
            seen[session.rules, "decision", session.decision] += 1
            seen[session.rules, "end", session.end] += 1
            twice = len(set(session.sent)) < len(session.sent)
            seen[session.rules, "loads", min(session.loads, 3)] += 1
            seen[session.rules, "twice", twice and session.end != send_session.ENDLESS] += 1
            seen[session.rules, "marks", session.decision == "send" and bool(inputs["start_iteration_records"])] += 1
    for rules in (send_session.Design, real.Sending):
        assert {rule for name, what, rule in seen if (name, what) == (rules.name, "rule")} == set(rules.says)
        assert seen[rules.name, "marks", True] > 50
    ends = {(name, end) for name, what, end in seen if what == "end" and end not in (None, send_session.ENDLESS)}
    assert ends == {
        ("design", "no_more_updates"),
        ("design", "end_of_changelog"),
        ("ds389", "no_more_updates"),
        ("ds389", "stopped_below_session_start"),
        ("ds389", "stopped_reload_anchor_not_found"),
    }
    outcomes = {outcome for name, what, outcome in seen if (name, what) == ("ds389", "outcome")}
    assert outcomes == {
        "sent", "sent_promoted", "covered", "beyond_local_max", "unknown_rid", "consumer_rid", "helper",
    }  # fmt: skip
    assert {found for name, what, found in seen if (name, what) == ("design", "decision")} == {
        "send", "nothing_to_send", "anchor_not_found",
    }  # fmt: skip
    assert not seen["design", "twice", True]


POOL = [f"660000{time:02x}0000000{rid}0000" for time, rid in product(range(3), (1, 2))]


def test_the_class_of_a_missing_anchor_for_every_order_of_its_three_positions() -> None:
    for anchor, local_max, purge_point in product(POOL, [None, *POOL], [None, *POOL]):
        said = real.missing_anchor_class(anchor, local_max, purge_point)
        assert said == slow_sessions.missing_anchor_class(anchor, local_max, purge_point), (
            anchor,
            local_max,
            purge_point,
        )


@pytest.mark.parametrize("name", CORNERS)
def test_a_session_that_turns_on_one_detail_agrees_with_the_second_opinion(name: str) -> None:
    for kind in ORACLES:
        check(HOUSE, kind, CORNERS[name])


def test_a_vector_that_contradicts_itself_leads_round_in_circles_and_the_session_says_so() -> None:
    """The first position is the one after the last in the same second: promoted each time, and never had."""
    session = check(HOUSE, "session", CORNERS["endless"])
    assert (session.end, session.sent) == (send_session.ENDLESS, [csn(1, 1, 1)] * 2)


def test_the_real_server_can_send_a_change_twice() -> None:
    """Promoted while the consumer has nothing of its origin, then read again from the origin's first change."""
    sent = check(HOUSE, "session", CORNERS["sent twice"]).sent
    assert sent[:4] == [csn(1, 1, 1), csn(1, 1), csn(1, 1, 1), csn(2, 1)]


def test_a_start_iteration_record_starts_a_session_is_never_sent_and_hides_what_lies_before_it() -> None:
    """A changelog made anew holds only such a record per origin, at its maximum.

    The consumer lacks a change of replica 2 that the old changelog had. The session starts at the record of replica 1,
    passes the one of replica 2 as if it had sent it, and ends as a success.
    """
    inputs = session_inputs(
        [csn(7, 1)],
        [f"1 {csn(1, 1)} {csn(7, 1)}", f"2 {csn(1, 2)} {csn(5, 2)}"],
        [f"1 {csn(1, 1)} {csn(1, 1)}", f"2 {csn(1, 2)} {csn(3, 2)}"],
        start_iteration_records=[csn(1, 1), csn(5, 2)],
    )
    session = check(HOUSE, "session", inputs)
    assert (session.anchor, session.sent, session.end) == (csn(1, 1), [csn(7, 1)], "no_more_updates")


def test_a_load_of_marks_alone_is_a_load_in_which_nothing_happens() -> None:
    inputs = session_inputs(
        [],
        [f"1 {csn(1, 1)} {csn(1, 1, 1)}", f"2 {csn(1, 2)} {csn(5, 2)}"],
        [f"1 {csn(1, 1)} {csn(1, 1)}", f"2 {csn(1, 2)} {csn(3, 2)}"],
        start_iteration_records=[csn(1, 1), csn(5, 2)],
    )
    session = check(HOUSE, "session", inputs)
    assert (session.decision, session.steps, session.loads) == ("send", [], 1)


def test_a_mark_right_behind_the_stop_moves_it_like_a_change() -> None:
    """So the change of the next sequence number but one is sent, and without the mark it would not be."""
    for marks, outcome in (([csn(5, 1, 1)], "sent_promoted"), ([], "beyond_local_max")):
        inputs = session_inputs(
            [csn(1, 1), csn(4, 1), csn(5, 1, 2)],
            [f"1 {csn(1, 1)} {csn(5, 1)}"],
            [f"1 {csn(1, 1)} {csn(1, 1)}"],
            start_iteration_records=marks,
        )
        check_plan(HOUSE, "session", inputs)
        plan = send_session.plan(rule_set(HOUSE, "session", inputs), *four(HOUSE, inputs))
        assert plan.counts == {"sent": 1, outcome: 1}


def test_a_plan_promotes_no_change_that_follows_one_before_the_start() -> None:
    """The consumer is as far as the supplier for replica 1, so the session starts behind the record after its stop."""
    inputs = CORNERS["promotable only behind one before the start"]
    plan = send_session.plan(rule_set(HOUSE, "session", inputs), *four(HOUSE, inputs))
    assert plan.counts == {"sent": 1, "beyond_local_max": 1}


def test_an_event_of_another_kind_is_refused_by_name() -> None:
    log = send_session.SortedLog(["66000002000000010000"], slow_sessions.rid_of)
    supplier = {"1": Span("66000002000000010000", "66000002000000010000")}
    with pytest.raises(ValueError, match="unknown event 'trim'"):
        send_session.replay(real.Sending(), log, supplier, {}, "9", events={0: [send_session.Event("trim", "")]})


def test_reasons_and_steps_are_data() -> None:
    inputs = next(given_cases("ds389-sessions"))["inputs"]
    session = check(HOUSE, "session", inputs)
    assert json.loads(json.dumps([step._asdict() for step in session.steps]))
    assert json.loads(json.dumps([reason._asdict() for reason in session.reasons]))
