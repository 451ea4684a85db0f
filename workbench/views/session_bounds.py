"""Where a session begins and where it stops, as data: the candidates of the decision, the stops, and what lies beyond them.

Everything here is counted from digests or played on few records: it costs the same however long the log is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.pair_matrix_text import told
from workbench.rules.send_session import DELIVERED, NOTHING, SEND, Bound, End, Load, Passed, Reason, Start, Step, play
from workbench.rules.vectors import Vector, last
from workbench.views.parameters import natural
from workbench.views.session_replay import (
    LOAD_COSTS,
    WHOLE,
    ended_because,
    planned_sessions,
    reasons,
    shown_moment,
    when,
)

if TYPE_CHECKING:
    from workbench.diagnosis.incident import Incident
    from workbench.engine.logs import StoredLog
    from workbench.model import System
    from workbench.replication.changelog.diagnosis.planned_sessions import PlannedSession

PLAYED = 20_000
"""Records that are played at most to show what a reload would do; a load counts as in a stepper."""

LOADS_SHOWN = 6
"""Loads that are shown of a session: the first ones, and the last."""


def starting_points(
    incident: Incident, supplier: str, consumer: str, suffix: str | None = None, rules: str | None = None
) -> dict[str, Any]:
    """The decision of each rule set, the chosen one first: its candidates, the anchor, and whether the log has it.

    Keys: supplier, consumer, sides (rules, decision, says, anchor, anchor_at, included, in_log, next, reasons, candidates),
    points: every position that plays a part, in order, with what it is under each rule set.
    """
    planned = planned_sessions(incident, supplier, consumer, suffix, rules)
    system, log = incident.system, planned[0].log
    sides = [_decision(system, one) for one in planned]
    points: dict[str, dict[str, Any]] = {}

    def point(key: str) -> dict[str, Any]:
        empty: dict[str, Any] = {
            "position": system.show(key),
            "at": when(system, key),
            "log": [],
            "marks": [[] for _ in planned],
        }
        return points.setdefault(key, empty)

    first, final = _ends(log)
    if first:
        point(first)["log"].append("the log begins")
    if final:
        point(final)["log"].append("the log ends")
    for number, one in enumerate(planned):
        start = one.open().start
        for reason in start.reasons:
            key = _candidate(reason)
            if key:
                mark = {"kind": "candidate", "origin": _origin(reason), "says": one.rules.says[reason.rule]}
                point(key)["marks"][number].append(mark)
        if start.anchor:
            kind = "anchor" if log.holds(start.anchor) else "absent"
            says = "the anchor" if kind == "anchor" else "the anchor, which the log does not have"
            point(start.anchor)["marks"][number].insert(0, {"kind": kind, "origin": "", "says": says})
    return {
        "supplier": supplier,
        "consumer": consumer,
        "sides": sides,
        "points": [points[key] for key in sorted(points)],
    }


def _origin(reason: Reason) -> str:
    return str(reason.values.get("origin", reason.values.get("rid", "")))


def _candidate(reason: Reason) -> str | None:
    """Where reading would begin for the origin of this reason: behind what the consumer has, else at the first change."""
    if not _origin(reason):
        return None
    found = reason.values.get("consumer") or reason.values.get("first")
    return str(found) if found else None


def _decision(system: System, planned: PlannedSession) -> dict[str, Any]:
    supplier, consumer, _ = planned.pair
    start, log = planned.open().start, planned.log
    why = {_origin(reason): reason for reason in start.reasons if _origin(reason)}
    # Of several candidates before the anchor it is the smallest that counts.
    fitting = [one for one in map(_candidate, why.values()) if one and start.anchor and _behind(one, start.anchor, log)]
    taken = min(fitting, default=None)
    candidates = []
    for origin in sorted({*supplier.vector, *consumer.vector, *log.origins()}, key=natural):
        reason = why.get(origin)
        position = _candidate(reason) if reason else None
        span = supplier.vector.get(origin)
        candidates.append(
            {
                "origin": origin,
                **_told(system, "consumer", last(consumer.vector, origin)),
                **_told(system, "stop", last(supplier.vector, origin)),
                **_told(system, "first", span.min if span else None),
                **_told(system, "first_in_log", log.first_of(origin)),
                **_told(system, "candidate", position),
                "chosen": position is not None and position == taken,
                "says": planned.rules.says[reason.rule]
                if reason
                else _no_candidate(origin, supplier.vector, consumer.vector),
            }
        )
    bound = start.bound
    begins = (bound.position if bound.included else log.after(bound.position)) if bound else None
    return {
        "rules": planned.rules.name,
        "decision": planned.row["decision"],
        "says": "\n".join(told(planned.row, shown_moment(system), always=True)),
        **_told(system, "anchor", start.anchor),
        "included": bool(bound and bound.included),
        "in_log": log.holds(start.anchor) if start.anchor else None,
        **_told(system, "next", begins),
        "reasons": reasons(system, planned.rules, [one for one in start.reasons if not _origin(one)]),
        "candidates": candidates,
    }


def _behind(candidate: str, anchor: str, log: StoredLog) -> bool:
    """True if the anchor comes from this candidate: it is the same, or the first record behind it."""
    return candidate == anchor or log.after(candidate) == anchor


def _no_candidate(origin: str, supplier: Vector, consumer: Vector) -> str:
    ahead, has = last(supplier, origin), last(consumer, origin)
    if ahead is None:
        return "no candidate: the supplier's vector claims nothing of it"
    if has is not None and has >= ahead:
        return "no candidate: the consumer has all that the supplier claims"
    return "no candidate: the rule set leaves this origin out of the decision"


def _told(system: System, name: str, position: str | None) -> dict[str, str | None]:
    return {name: system.show(position) if position else None, f"{name}_at": when(system, position)}


def _ends(log: StoredLog) -> tuple[str | None, str | None]:
    """The first and the last record of a log, marks among them."""
    firsts = [first for origin in log.origins() if (first := log.first_of(origin))]
    lasts = [
        tally.last
        for origin, first in zip(log.origins(), firsts, strict=True)
        if (tally := log.tally(origin, Bound(first, True), None)).last
    ]
    return min([*firsts, *log.marks], default=None), max([*lasts, *log.marks], default=None)


# --- stops


def stopping_points(
    incident: Incident,
    supplier: str,
    consumer: str,
    suffix: str | None = None,
    rules: str | None = None,
    per_load: int = 0,
) -> dict[str, Any]:
    """Under each rule set, the chosen one first: the stop of every origin, what lies beyond it, what a reload would do.

    Keys: supplier, consumer, per_load, sides (rules, decision, says, origins, reloads). A reload is played twice: with the
    supplier's vector as it was collected, and with one that has moved on to what its log shows.
    """
    planned = planned_sessions(incident, supplier, consumer, suffix, rules)
    return {
        "supplier": supplier,
        "consumer": consumer,
        "per_load": per_load,
        "sides": [_stopping(incident.system, one, per_load) for one in planned],
    }


def _stopping(system: System, planned: PlannedSession, per_load: int) -> dict[str, Any]:
    supplier, consumer, _ = planned.pair
    log, stops = planned.log, planned.open().stops
    origins = []
    for origin in sorted({*stops, *supplier.vector, *log.origins()}, key=natural):
        stop, first = stops.get(origin), log.first_of(origin)
        low = Bound(stop, False) if stop else Bound(first, True) if first else None
        beyond = log.tally(origin, low, None) if low else None
        origins.append(
            {
                "origin": origin,
                **_told(system, "consumer", last(consumer.vector, origin)),
                **_told(system, "stop", stop),
                "beyond": beyond.changes if beyond else 0,
                **_told(system, "first", beyond.first if beyond else None),
                **_told(system, "last", beyond.last if beyond else None),
                "says": _about_stop(origin, stop, beyond.changes if beyond else 0, supplier.vector),
            }
        )
    return {
        "rules": planned.rules.name,
        "decision": planned.row["decision"],
        "says": "\n".join(told(planned.row, shown_moment(system), always=True)),
        "origins": origins,
        "reloads": _reloads(system, planned, per_load) if planned.row["decision"] == SEND else [],
        "why": "" if planned.row["decision"] == SEND else _no_reload(planned),
    }


def _about_stop(origin: str, stop: str | None, beyond: int, vector: Vector) -> str:
    if stop is None and last(vector, origin) is None:
        return "no stop: the supplier's vector claims nothing of it, so nothing of it is sent"
    if stop is None:
        return "no stop: the rule set leaves this origin out of the session"
    return "not sent before a reload finds a higher stop" if beyond else "the log ends at or before the stop"


def _no_reload(planned: PlannedSession) -> str:
    if planned.row["decision"] == NOTHING:
        return "No buffer is loaded, for nothing is to send: the stops are those that the decision compared."
    return "No buffer is loaded: the session ends before it reads a record."


def _reloads(system: System, planned: PlannedSession, per_load: int) -> list[dict[str, Any]]:
    """The loads of the session, with the supplier's vector as collected, and as its log would have it."""
    supplier = planned.pair[0]
    further = {**supplier.vector, **supplier.seen()}
    moved = [origin for origin, span in further.items() if span.max != last(supplier.vector, origin)]
    rows = [_played(system, planned, per_load, "with the supplier's vector as it was collected", {})]
    if moved:
        names = ", ".join(sorted(moved, key=natural))
        of = f"once the supplier's vector has moved to what its log shows (origin {names})"
        rows.append(_played(system, planned, per_load, of, {0: lambda _: further}))
    return rows


def _played(
    system: System,
    planned: PlannedSession,
    per_load: int,
    words: str,
    happens: Mapping[int, Callable[[Vector], Vector]],
) -> dict[str, Any]:
    loads: list[dict[str, Any]] = []
    end, played = "", 0
    for seen in play(planned.open(), planned.log, planned.pair[0].vector, per_load or WHOLE, happens):
        if isinstance(seen, Load):
            loads.append(_load(system, planned, len(loads) + 1, seen))
        elif isinstance(seen, End):
            end = ended_because(planned.rules, seen)
        elif played + LOAD_COSTS * (len(loads) - 1) >= PLAYED:
            break
        else:
            played += 1
            _count(system, loads[-1], seen)
    return {
        "with": words,
        "loads": [*loads[: LOADS_SHOWN - 1], *loads[LOADS_SHOWN - 1 :][-1:]],
        "count": len(loads),
        "records": sum(load["records"] for load in loads),
        "sent": sum(load["sent"] for load in loads),
        "end": end,
        "cut": not end,
    }


def _because(start: Start) -> Reason | None:
    """The reason that names where the load begins: that the anchor was found says little."""
    position = start.bound.position if start.bound else None
    fitting = (reason for reason in start.reasons if position in reason.values.values())
    return next(fitting, start.reasons[-1] if start.reasons else None)


def _load(system: System, planned: PlannedSession, number: int, load: Load) -> dict[str, Any]:
    bound = load.start.bound
    because = _because(load.start)
    return {
        "number": number,
        "included": bool(bound and bound.included),
        **_told(system, "from", bound.position if bound else None),
        "says": planned.rules.says[because.rule] if because else "",
        "records": 0,
        "sent": 0,
        **_told(system, "last", None),
    }


def _count(system: System, load: dict[str, Any], seen: Step | Passed) -> None:
    step = seen.step if isinstance(seen, Passed) else seen
    load["records"] += 1
    load["sent"] += isinstance(seen, Step) and step.outcome in DELIVERED
    load |= _told(system, "last", step.position)
