"""Operations at work on one server, and what the server may claim meanwhile under each rule set of the pending list.

Out of the evidence: an operation begins and is given up where the server's log says so; it is committed when its result was
logged. An operation whose end nothing shows is drawn open and takes no part in the rolling up: nobody knows when it ended.
Out of the worked examples: step by step, without a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.incident import Incident
from workbench.engine.selective_read import rows_where
from workbench.model import NotOfThisSystem, Problem
from workbench.tables import TIME
from workbench.topology.history import moment_of

if TYPE_CHECKING:
    from workbench.replication.changelog.rules.pending import Replica, Server

SHOWN = 400
"""Operations of one picture."""

BEGIN, COMMIT, CANCEL, ABORT = "begin", "commit", "cancel", "abort"


class Event(NamedTuple):
    """Something that happens to an operation; `at` is a number that orders: seconds of the picture, or the step."""

    at: float
    op: str
    thread: str
    replica: int
    position: str


def examples(incident: Incident) -> Mapping[str, str]:
    """Name of each worked example of the system -> what it shows; none where the system keeps no pending list."""
    pending = incident.system.pending() if incident.system.pending else None
    return {name: one.title for name, one in pending.examples.items()} if pending else {}


def of_example(incident: Incident, name: str) -> dict[str, Any]:
    """A worked example as a picture."""
    pending = incident.system.pending() if incident.system.pending else None
    if pending is None or name not in pending.examples:
        raise Problem(f"there is no example {name}", "", f"there are {', '.join(examples(incident)) or 'none'}")
    example = pending.examples[name]
    events = [
        Event(float(number), step.op, str(step.thread), step.replica, step.csn)
        for number, step in enumerate(example.steps)
    ]
    made = _picture(incident, events, list(example.replicas), pending, len(events))
    return {**made, "title": example.title, "from": None, "to": None, "count": len(made["operations"])}


def at_work(
    incident: Incident,
    server: str,
    suffix: str | None = None,
    origin: str | None = None,
    since: str = "",
    until: str = "",
) -> dict[str, Any]:
    """The operations that a server worked on in some time, the first so many, and what it might claim under each rule set."""
    if incident.system.pending is None:
        raise NotOfThisSystem(
            f"servers of {incident.system.title} keep no pending list",
            incident.case.name,
            "what they hold is in 20_overview, 31_entry_replication and 32_transactions",
        )
    pending = incident.system.pending()
    begun, count = _begun(incident, server, suffix, origin, since, until)
    ended = _ended(incident, server, suffix, begun) if begun else {}
    times = [*begun.values(), *(at for _, at in ended.values())]
    title = f"{server}: operations as its logs show them"
    if not begun:
        return {
            "title": title,
            "operations": [],
            "tracks": [],
            "differ": [],
            "from": None,
            "to": None,
            "count": 0,
            "span": 0,
        }
    chosen = sorted(begun, key=lambda position: (begun[position], position))
    first = min(times)
    last = max(max((ended[one][1] for one in chosen if one in ended), default=first), *(begun[one] for one in chosen))
    events = []
    for position in chosen:
        if position in ended:
            events.append(Event((begun[position] - first).total_seconds(), BEGIN, position, 0, position))
            how, at = ended[position]
            events.append(Event(max((at - first).total_seconds(), events[-1].at), how, position, 0, position))
    # What happens at one time: who was there first ends first, so that nothing ends before it began.
    events.sort(key=lambda one: (one.at, one.op != BEGIN, one.position))
    replica = next((one for one in incident.topology.replicas if (one.server, one.suffix) == (server, suffix)), None)
    local = (replica.origin if replica else None) or ""
    replicas = [pending.replica(local, {})] if pending and local else []
    made = _picture(incident, events, replicas, pending, (last - first).total_seconds())
    known = {one["position"] for one in made["operations"]}
    for position in chosen:
        if position not in known:
            made["operations"].append(
                _operation(incident, position, position, (begun[position] - first).total_seconds())
            )
    made["operations"].sort(key=lambda one: (one["begin"], one["position"]))
    return {**made, "title": title, "from": _iso(first), "to": _iso(last), "count": count}


def _begun(
    incident: Incident, server: str, suffix: str | None, origin: str | None, since: str, until: str
) -> tuple[dict[str, datetime], int]:
    """Position -> when it began, of the first operations in that time; and how many there are."""
    where = pc.field("step") == BEGIN
    if origin is not None:
        where &= pc.field("origin") == origin
    if since:
        where &= pc.field("at") >= pa.scalar(moment_of(since), TIME)
    if until:
        where &= pc.field("at") <= pa.scalar(moment_of(until), TIME)
    first, count = pa.table({"position": pa.array([], pa.string()), "at": pa.array([], TIME)}), 0
    for found in _rows(incident, "operations", ["position", "at"], server, suffix, where):
        count += len(found)
        first = pa.concat_tables([first, found.cast(first.schema)]).sort_by("at").slice(0, SHOWN)
    begun: dict[str, datetime] = {}
    for row in first.to_pylist():
        begun.setdefault(row["position"], row["at"])
    return begun, count


def _ended(
    incident: Incident, server: str, suffix: str | None, begun: Mapping[str, datetime]
) -> dict[str, tuple[str, datetime]]:
    """How and when these operations ended, as far as anything shows it: whenever that was."""
    wanted = pc.field("position").isin(list(begun))
    ended: dict[str, tuple[str, datetime]] = {}
    for table, column, words in (
        ("operations", "step", {ABORT: CANCEL, COMMIT: COMMIT}),
        ("applied", "outcome", {"applied": COMMIT, "received": COMMIT}),
    ):
        where = wanted & pc.field(column).isin(list(words))
        for found in _rows(incident, table, ["position", column, "at"], server, suffix, where):
            for row in found.sort_by("at").to_pylist():
                ended.setdefault(row["position"], (words[row[column]], row["at"]))
    return ended


def _rows(
    incident: Incident, table: str, columns: list[str], server: str, suffix: str | None, where: pc.Expression
) -> Iterable[pa.Table]:
    """The dated rows of the server's logs in the chosen snapshot, part by part.

    Of a server with several suffixes, a row that names none counts where the log of this one holds its change.
    """
    mine = pc.field("suffix").is_null() | (pc.field("suffix") == suffix) if suffix else pc.scalar(True)
    where = where & mine & pc.field("position").is_valid() & pc.field("at").is_valid()
    replica = next((one for one in incident.topology.replicas if (one.server, one.suffix) == (server, suffix)), None)
    log = incident.log_of(replica) if replica else None
    for one in incident.then.inputs:
        about = suffix is None or one.may_tell_of(suffix)
        if about and one.server == server and one.snapshot == incident.then_label:
            for part in incident.then.parts(table, one):
                several = suffix is not None and one.suffix is None and bool(one.suffixes)
                rows = rows_where([part], [*columns, *(["suffix"] if several else [])], where)
                if several and len(rows):
                    told = zip(rows["suffix"].to_pylist(), rows["position"].to_pylist(), strict=True)
                    kept = [bool(of or (log and log.holds(position))) for of, position in told]
                    rows = rows.filter(pa.array(kept, pa.bool_())).select(columns)
                yield rows


def _picture(
    incident: Incident, events: list[Event], replicas: list[Replica], pending: Any, span: float
) -> dict[str, Any]:
    operations: dict[tuple[int, str], dict[str, Any]] = {}
    for event in events:
        key = event.replica, event.position
        if event.op == BEGIN:
            operations.setdefault(key, _operation(incident, event.position, event.thread, event.at))
        elif key in operations and event.op in (COMMIT, CANCEL):
            operations[key] |= {"end": event.at, "how": event.op}
    rule_sets = pending.rule_sets if replicas else {}
    tracks = [_track(incident, name, rules, events, replicas, pending) for name, rules in rule_sets.items()]
    return {"operations": list(operations.values()), "tracks": tracks, "differ": _differ(tracks), "span": span}


def _operation(incident: Incident, position: str, thread: str, begin: float) -> dict[str, Any]:
    about = {
        "position": position,
        "position_at": incident.when(position),
        "origin": incident.system.origin_of(position),
    }
    return {**about, "thread": thread, "begin": begin, "end": None, "how": None}


def _track(
    incident: Incident, name: str, rules: Any, events: list[Event], replicas: list[Replica], pending: Any
) -> dict[str, Any]:
    """What the server claims after each event that moves a claim, under one rule set, and the sentences that say why."""
    server: Server = pending.server(replicas, rules)
    # What it claims before the first event is no move.
    claims = {f"{at}/{origin}": one.max for at, state in enumerate(server.state()) for origin, one in state.items()}
    moves = []
    for event in events:
        server.take(pending.step(event.op, event.thread, event.replica, event.position))
        for at, state in enumerate(server.state()):
            for origin, element in state.items():
                where = f"{at}/{origin}"
                if element.max != claims.get(where) and element.max is not None:
                    claims[where] = element.max
                    moves.append(
                        {
                            "at": event.at,
                            "origin": origin,
                            "replica": at,
                            "max": element.max,
                            "max_at": incident.when(element.max),
                            "why": "; ".join(map(str, server.history[-1].why)),
                        }
                    )
    held = [
        {"origin": origin, "position": position} for one in server.holding_back() for origin, position in one.items()
    ]
    return {"rules": name, "moves": moves, "held": held, "claims": claims}


def _differ(tracks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each rule set claims in the end, where they do not agree."""
    places = sorted({place for track in tracks for place in track["claims"]})
    rows = [
        {"origin": place.partition("/")[2], **{track["rules"]: track["claims"].get(place) for track in tracks}}
        for place in places
    ]
    return [row for row in rows if len({row[track["rules"]] for track in tracks}) > 1]


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
