"""What must hold of every send session, asked of the rules or of a copy of them with a fault in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import slow_sessions

MOST_LOADS = 2_000

ORACLES = {"session": slow_sessions.session, "design_session": slow_sessions.design_session}


class Disagreement(AssertionError):
    """What the rules say, and what must be said."""


def must(holds: object, *what: object) -> None:
    if not holds:
        raise Disagreement(*what)


def vector(house: Any, values: list[str]) -> dict[str, Any]:
    read = slow_sessions.read_ruv(values)
    return {rid: house.vectors.Span(low or None, high or None) for rid, (low, high) in read.items()}


def rule_set(house: Any, kind: str, inputs: dict[str, Any]) -> Any:
    if kind == "design_session":
        return house.sending.Design(inputs["consumer_rid_policy"])
    cleaned = frozenset(str(rid) for rid in inputs["cleaned_replica_ids"])
    return house.real.Sending(inputs["ignore_missing_change"], cleaned)


def log_of(house: Any, inputs: dict[str, Any]) -> Any:
    class Bounded(house.sending.SortedLog):
        """A session that goes round in circles fails instead of running for ever."""

        reads = 0

        def copy(self) -> Bounded:
            other = super().copy()
            return Bounded(other.positions, slow_sessions.rid_of, other.marks)

        def read(self, bound: Any, limit: int) -> list[str]:
            self.reads += 1
            must(self.reads <= MOST_LOADS, "the session does not end")
            return super().read(bound, limit)

    return Bounded(inputs["supplier_changelog"], slow_sessions.rid_of, inputs.get("start_iteration_records", ()))


def four(house: Any, inputs: dict[str, Any]) -> tuple[Any, ...]:
    supplier, consumer = (vector(house, inputs[side]) for side in ("supplier_ruv", "consumer_ruv"))
    return log_of(house, inputs), supplier, consumer, str(inputs["consumer_replica_id"])


def result_of(kind: str, session: Any) -> dict[str, Any]:
    """A session in the words of the contract, and what the oracle says beyond them."""
    result = {
        "decision": session.decision,
        "anchor_csn": session.anchor,
        "sent": session.sent,
        "outcome_in_order": [{"csn": step.position, "outcome": step.outcome} for step in session.steps],
        "session_end": session.end,
        "buffer_loads": session.loads,
        "against": [[step.consumer, step.stop] for step in session.steps],
        **session.about,
    }
    if kind == "design_session":
        result["first_sent"] = session.sent[0] if session.sent else None
    return result


def played(house: Any, kind: str, inputs: dict[str, Any]) -> Any:
    events = {
        int(after): [house.sending.Event(event["do"], event["csn"]) for event in several]
        for after, several in inputs["events_after_n_changes_sent"].items()
    }
    log, *rest = four(house, inputs)
    before = log.positions, set(log.marks)
    session = house.sending.replay(
        rule_set(house, kind, inputs), log, *rest, per_load=inputs["records_per_buffer"], events=events
    )
    must((log.positions, log.marks) == before, "the given log has changed")
    return session


def check_expected(house: Any, kind: str, inputs: dict[str, Any], expected: dict[str, Any]) -> Any:
    """The session comes out as expected; every key that is expected counts."""
    session = played(house, kind, inputs)
    result = result_of(kind, session)
    for key, value in expected.items():
        if key != "stops":
            must(result.get(key) == value, kind, key, "is", result.get(key), "must be", value, inputs)
    return session


STEP_HOLDS: dict[str, Callable[[Any], object]] = {
    "covered": lambda step: step.position <= step.consumer,
    "up_to_stop": lambda step: (step.consumer or "") < step.position <= step.stop,
    "due": lambda step: (step.consumer or "") < step.position <= step.stop,
    "next_in_second": lambda step: step.position > step.stop and step.position[:8] == step.stop[:8],
    "beyond_stop": lambda step: step.position > step.stop,
    "beyond_copy": lambda step: step.position > step.stop,
    "not_in_copy": lambda step: step.stop is None,
}
"""Rule -> what the values of a step must be for it to apply."""

REASON_HOLDS: dict[str, Callable[[Any], object]] = {
    "from_first": lambda its: its.consumer is None and its.first and its.stop,
    "behind_consumer": lambda its: its.consumer < its.stop,
    "anchor_found": lambda its: its.anchor,
    "alternative": lambda its: its.anchor <= its.start,
    "on_from_read": lambda its: its.stop == its.before or its.before > its.read,
    "reload_below_start": lambda its: its.anchor < its.start,
    "csn_max": lambda its: its.consumer < its.local,
    "csn_min": lambda its: slow_sessions.rid_of(its.first) == its.origin and its.local,
    "unknown_without_records": lambda its: its.first is None and its.local,
    "anchor2": lambda its: its.anchor1 is None or its.anchor2 < its.anchor1,
    "next_of_anchor1": lambda its: its.anchor1 < its.next,
    "case_1": lambda its: its.read < its.next,
    "cases_2_3": lambda its: its.changed,
}
"""Rule -> what the values of a reason must be for it to apply."""

ENDS_WITH = {
    "nothing_to_send": {"no_candidate", "nothing_due"},
    "anchor_not_found": {"anchor_absent", "nothing_behind", "no_record"},
    "no_more_updates": {"no_candidate", "nothing_due"},
    "stopped_below_session_start": {"reload_below_start"},
    "stopped_reload_anchor_not_found": {"anchor_absent", "nothing_behind"},
    "end_of_changelog": {"no_record"},
}
"""Decision or end -> the rules of which one must be the last reason."""

STARTS_WITH = {"anchor_found", "alternative", "anchor2", "next_of_anchor1"}
"""The rules of which one must be the last reason of a start."""


def check_reasons(house: Any, kind: str, inputs: dict[str, Any], session: Any) -> None:
    """Every rule named is one that the rule set explains, and the values given with it are such that it applies."""
    says = rule_set(house, kind, inputs).says
    for step in session.steps:
        must(step.rule in says and STEP_HOLDS.get(step.rule, bool)(step), step)
    for reason in session.reasons:
        must(reason.rule in says, reason)
        if reason.rule in REASON_HOLDS:
            must(REASON_HOLDS[reason.rule](SimpleNamespace(**reason.values)), reason)
    must((session.end is None) == (session.decision != "send"), session.decision, session.end)
    because = ENDS_WITH.get(session.end or session.decision)
    must(because is None or session.reasons[-1].rule in because, session.end, session.reasons)


def check_sending(session: Any, inputs: dict[str, Any]) -> None:
    """Nothing beyond what the supplier ever claimed, a promotion apart; and nothing twice.

    One change can go twice in the real server: promoted while the consumer has nothing of its origin, which leaves it
    having nothing.
    """
    claimed = {rid: [high] for rid, (_, high) in slow_sessions.read_ruv(inputs["supplier_ruv"]).items()}
    for events in inputs["events_after_n_changes_sent"].values():
        for event in events:
            if event["do"] == "supplier_ruv_advance":
                claimed.setdefault(slow_sessions.rid_of(event["csn"]), []).append(event["csn"])
    twice = Counter(session.sent)
    for step in session.steps:
        limits = claimed.setdefault(slow_sessions.rid_of(step.position), [""])
        if step.outcome == "sent_promoted":
            must(step.stop in limits, step, "from a stop that nobody claimed")
            limits.append(step.position)
            if step.consumer is None:
                twice[step.position] = 1
        elif step.outcome == "sent":
            must(step.position <= max(limits), step, "beyond what the supplier claims")
    must(max(twice.values(), default=1) == 1, "sent twice", twice)


def check_plan(house: Any, kind: str, inputs: dict[str, Any]) -> None:
    """A session in one load and undisturbed is what `plan` says without reading the log."""
    calm = {**inputs, "records_per_buffer": 1 << 62, "events_after_n_changes_sent": {}}
    expected = ORACLES[kind](calm)
    plan = house.sending.plan(rule_set(house, kind, calm), *four(house, calm))
    session = house.sending.replay(rule_set(house, kind, calm), *four(house, calm))
    check_expected(house, kind, calm, expected)
    # The first load alone: a session in one load may still read again from where a load ended.
    steps = session.steps
    for at in range(1, len(steps)):
        if steps[at].position <= steps[at - 1].position:
            steps = steps[:at]
            break
    to_send: dict[str, list[str]] = {}
    for step in steps:
        if step.outcome in ("sent", "sent_promoted"):
            to_send.setdefault(slow_sessions.rid_of(step.position), []).append(step.position)
    counts = Counter(step.outcome for step in steps)
    must(plan.counts == counts, "counts", plan.counts, counts, calm)
    tallies = {rid: (len(sent), sent[0], sent[-1]) for rid, sent in to_send.items()}
    must(plan.to_send == tallies, "to_send", plan.to_send, tallies, calm)
    for same in ("rules", "decision", "anchor", "included", "about"):
        must(getattr(plan, same) == getattr(session, same), same, getattr(plan, same), getattr(session, same))
    must(list(plan.reasons) == session.reasons[: len(plan.reasons)], "reasons", plan.reasons)
    must((plan.decision == "send") == (plan.reasons[-1].rule in STARTS_WITH), plan.decision, plan.reasons)
    must(plan.stops == (expected["stops"] if plan.decision == "send" else {}), "stops", plan.stops, expected["stops"])


def check(house: Any, kind: str, inputs: dict[str, Any], expected: dict[str, Any] | None = None) -> Any:
    """All of it for one session; `expected` is what the oracle says, if it was asked before."""
    session = check_expected(house, kind, inputs, expected or ORACLES[kind](inputs))
    check_reasons(house, kind, inputs, session)
    check_sending(session, inputs)
    check_plan(house, kind, inputs)
    return session
