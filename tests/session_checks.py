"""What must hold of every send session, asked of the rules or of a copy of them with a fault in it."""

from __future__ import annotations

from collections import Counter
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
            return Bounded(self.positions, slow_sessions.rid_of, self.marks)

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


def check_reasons(house: Any, kind: str, inputs: dict[str, Any], session: Any) -> None:
    """Every rule named is one that the rule set explains, and the values given with it are such that it applies."""
    says = rule_set(house, kind, inputs).says
    for step in session.steps:
        must(step.rule in says, step)
        has, stop = step.consumer, step.stop
        holds = {
            "covered": lambda: step.position <= has,
            "up_to_stop": lambda: (has or "") < step.position <= stop,
            "due": lambda: (has or "") < step.position <= stop,
            "next_in_second": lambda: step.position > stop and step.position[:8] == stop[:8],
            "beyond_stop": lambda: step.position > stop,
            "beyond_copy": lambda: step.position > stop,
            "not_in_copy": lambda: stop is None,
        }.get(step.rule)
        must(holds is None or holds(), step)
        must((step.rule == "blocked") <= (step.outcome == "beyond_local_max"), step)
    for reason in session.reasons:
        must(reason.rule in says, reason)
        values = SimpleNamespace(**reason.values)
        holds = {
            "from_first": lambda: values.consumer is None and values.first is not None and values.stop,
            "behind_consumer": lambda: values.consumer < values.stop,
            "anchor_found": lambda: values.anchor is not None,
            "alternative": lambda: values.anchor <= values.start,
            "on_from_read": lambda: values.stop == values.before or values.before > values.read,
            "reload_below_start": lambda: values.anchor < values.start,
            "csn_max": lambda: values.consumer < values.local,
            "csn_min": lambda: slow_sessions.rid_of(values.first) == values.origin and values.local,
            "unknown_without_records": lambda: values.first is None and values.local,
            "anchor2": lambda: values.anchor1 is None or values.anchor2 < values.anchor1,
            "next_of_anchor1": lambda: values.anchor1 < values.next,
            "case_1": lambda: values.read < values.next,
            "cases_2_3": lambda: values.changed,
        }.get(reason.rule)
        must(holds is None or holds(), reason)
    must(session.reasons, "a decision without a reason")
    last = session.reasons[-1].rule
    ends = {
        "nothing_to_send": {"no_candidate", "nothing_due"},
        "anchor_not_found": {"anchor_absent", "nothing_behind", "no_record"},
        "no_more_updates": {"no_candidate", "nothing_due"},
        "stopped_below_session_start": {"reload_below_start"},
        "stopped_reload_anchor_not_found": {"anchor_absent", "nothing_behind"},
        "end_of_changelog": {"no_record"},
    }.get(session.end or session.decision)
    must(ends is None or last in ends, session.end or session.decision, "because of", last)
    must((session.end is None) == (session.decision != "send"), session.decision, session.end)


def check_sending(session: Any, inputs: dict[str, Any]) -> None:
    """Nothing beyond what the supplier ever claimed, a promotion apart; and nothing twice.

    One change can go twice in the real server: promoted while the consumer has nothing of its origin, which leaves it
    having nothing.
    """
    claimed = {
        slow_sessions.rid_of(high): [] for _, high in slow_sessions.read_ruv(inputs["supplier_ruv"]).values() if high
    }
    for rid, (_, high) in slow_sessions.read_ruv(inputs["supplier_ruv"]).items():
        claimed.setdefault(rid, []).append(high)
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
    loads = [step.position for step in session.steps]
    first = loads.index(min(loads)) if loads else 0
    must(first == 0, "the first load does not begin at the first record")
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
    must(list(plan.reasons) == session.reasons[: len(plan.reasons)] and plan.reasons, "reasons", plan.reasons)
    must(plan.stops == (expected["stops"] if plan.decision == "send" else {}), "stops", plan.stops, expected["stops"])


def check(house: Any, kind: str, inputs: dict[str, Any], expected: dict[str, Any] | None = None) -> Any:
    """All of it for one session; `expected` is what the oracle says, if it was asked before."""
    session = check_expected(house, kind, inputs, expected or ORACLES[kind](inputs))
    check_reasons(house, kind, inputs, session)
    check_sending(session, inputs)
    check_plan(house, kind, inputs)
    return session
