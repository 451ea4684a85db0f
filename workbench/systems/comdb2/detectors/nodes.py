"""Nodes that are gone, stopped, wait for a source, or cannot go on because nobody has what they need next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, first_few, step
from workbench.replication.tier.diagnosis.earlier_snapshots import taken_later
from workbench.replication.tier.diagnosis.holders import WaitedFor, waited_for
from workbench.replication.tier.diagnosis.log_files import misled, needed_file
from workbench.replication.tier.diagnosis.registering import waited_before
from workbench.replication.tier.diagnosis.tree_rows import gone_says
from workbench.replication.tier.rules.conditions import (
    GAPPED,
    GONE,
    HUNG,
    NO_SOURCE,
    PENDING,
    SAYS,
    STOPPED,
    UNREACHABLE,
)
from workbench.systems.comdb2.detectors.shown import (
    by_default,
    each,
    evidence_of,
    fanout_text,
    not_stopped_before,
    place_text,
    some,
    span_text,
    stood_before,
    tiers_of,
)

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

RESET = """exec procedure sys.physrep.reset_nodes('{}', "'{}'", 'Inactive')"""
"""The procedure puts the host into its statement as it is, so it has to come with quotes of its own."""

FORCE = "exec procedure sys.cmd.send('physrep_force_registration') on it"


def _silent(tiers: Tiers, name: str) -> str:
    age = tiers.seen.age(name)
    if name in tiers.seen.ahead:
        return "its last report is of a time to come, by the registry's clock"
    return "it never reported itself" if age is None else f"it reported itself {span_text(age)} ago"


def _counts_as_child(tiers: Tiers, name: str) -> str:
    place = tiers.place(name)
    if not place or not place.parents:
        return ""
    parent = tiers.place(place.parents[0])
    taken = len(parent.children) if parent else 1
    return f"; it still counts as one of {taken} that pull from {place.parents[0]} ({fanout_text(tiers, name)})"


def gone(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that do not answer, or do not report themselves: frozen, killed, shut down, hung."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        for name in tiers.members[source]:
            state = tiers.states[name]
            if state not in (*GONE, HUNG, UNREACHABLE):
                continue
            row = tiers.seen.nodes.get(name)
            spelling = ""
            if row and (row["state"] or "").lower() == "inactive" and row["state"] != "Inactive":
                spelling = (
                    f"; its state is spelled {row['state']}, which is not Inactive for the registry: it may be offered"
                )
            last = tiers.seen.reported(name)
            says = gone_says(tiers, name)
            age = tiers.seen.age(name)
            if state == UNREACHABLE and (age is None or age > (tiers.told.rules.keepalive_s or 0)):
                says = "it did not answer when it was asked"  # a report that is older than the next one should be shows nothing
            yield Finding(
                "REPLICANT_HUNG",
                "warning" if state == UNREACHABLE else "error",
                f"{name}: {says}; {_silent(tiers, name)}{_counts_as_child(tiers, name)}{spelling}{stood_before(tiers, name)}",
                server=name,
                origin=source,
                items=(place_text(last) or "",) if last else (),
                evidence=(evidence_of(tiers, name),),
                assumes=by_default(tiers, name) if _counts_as_child(tiers, name) else (),
                fix=tuple(_gone_steps(tiers, name, context.once(waited_for).get(name))),
            )


def _gone_steps(tiers: Tiers, name: str, waiting: WaitedFor | None) -> Iterator[dict[str, str | None]]:
    database, _, host = name.partition("@")
    row, place = tiers.seen.nodes.get(name), tiers.place(name)
    unfit = row is None or row["state"] in tiers.told.rules.unfit
    if row and unfit and place and place.parents:
        yield step(_READ_AGAIN, "who is Pending or Inactive has no connection: a reset deletes it")
    yield step(
        f"look at the process on {host}: is it there, does it answer, what does its log say last?",
        "the registry keeps the row of a node that is gone for ever, and the tables cannot tell a frozen one from a dead one"
        if row
        else "nothing that was collected tells a frozen node from a dead one",
    )
    freed = [] if unfit else ["its row is no candidate then"]
    freed += ["its place under its source is free" + (" then" if unfit else "")] if place and place.parents else []
    if name not in tiers.roots(tiers.source_of(name) or "") and freed:
        yield step(
            f"if it is gone for good: {RESET.format(database, host)} in the registry's database",
            ", and ".join(freed),
            "a node that only was frozen registers anew when it goes on; what it needs may be gone by then"
            if waiting is None
            else f"{some(waiting.nodes)} {waiting.need} log file {waiting.file}, which no node that answers has and goes on "
            f"from: first {'do what LOG_GAP says' if waiting.sure else 'see which source it follows'}",
        )


_HANGS = "do not call sys.cmd.start_replication on it: in the one try that is known the whole node hung"


_ASKS_FOR_EVER = (
    "it asks once a second for ever, and its state stays Pending: nothing else tells that it will never find one"
)
_HAS_NOT_ASKED = {
    "InActive": "its row says InActive, as a replicant writes when it starts: it has not asked for a source since",
    "Inactive": "its row says Inactive, as when it resets itself before it asks: it is Pending once the registry has answered",
}
"""State of a row -> what it tells of a node that has no source, and was not answered by the registry since."""


_TWO_TABLES = (
    "its row in comdb2_physreps says {}, and a row of comdb2_physrep_connections says that it pulls from {}: the two "
    "tables contradict each other, or were read at two times"
)
_READ_AGAIN = "collect both tables of the registry once more, in one go"


def _taken_out(tiers: Tiers, name: str) -> str:
    """That a node may have been stopped on purpose; empty: its row does not look like that."""
    state = (tiers.seen.nodes.get(name) or {}).get("state")
    return "its row says Inactive: if it was taken out on purpose, leave it as it is" if state == "Inactive" else ""


def _answers_and_is_silent(tiers: Tiers, name: str) -> str:
    """What is said of a node that answers and whose row is old: it may stand beyond it and have been stopped since."""
    if name not in tiers.outrun_rows:
        return SAYS[STOPPED]
    beyond = f"it answers from {place_text(tiers.seen.probed(name))}, beyond its last report, and does not report itself any more"
    return f"{beyond}: its replication was stopped after that report, or its reports alone stand still"


def not_replicating(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that answer and do not replicate: stopped by command, or waiting for a source."""
    tiers = tiers_of(context)
    awaited: dict[str, set[str]] = {}
    for pull in tiers.seen.awaited:
        awaited.setdefault(pull.name, set()).add(pull.source)
    for source, name in each(tiers):
        state = tiers.states[name]
        if state not in (STOPPED, PENDING, NO_SOURCE, GAPPED):
            continue
        if state == PENDING and tiers.needs(name) and name in tiers.registering:
            yield _registers(tiers, source, name)
            continue
        if state == PENDING and not tiers.needs(name):
            if tiers.contradicts(name):
                yield _contradicted(tiers, source, name)
            continue
        host = name.partition("@")[2]
        vain = misled(tiers, name) if tiers.gap(name) else ""
        gap = tiers.gap(name) and (vain or not tiers.offered(name))
        fix = [
            step(
                f"do what LOG_GAP says of {name}, and start it again"
                if gap
                else f"shut {name} down and start it again",
                vain or f"the registry offers it no node that has log file {needed_file(tiers, name)}"
                if gap
                else "it registers when it starts, and pulls from there",
                "; ".join(filter(None, (_taken_out(tiers, name), not_stopped_before(tiers, [name]), _HANGS))),
            )
        ]
        if state == STOPPED and name in tiers.outrun_rows:
            fix.insert(
                0, step(f"first ask {name} once more: does it get on?", "who gets on replicates, whatever its row says")
            )
        why = _silent(tiers, name)
        says = _answers_and_is_silent(tiers, name) if state == STOPPED else SAYS[state]
        if state != STOPPED:
            offer = tiers.offer(name)
            offered = [one.name for one in offer.union] if offer else []
            unknown = names_no_host(tiers, name)
            why = (
                f"it would be offered {some(offered)}{_which_serve(tiers, name, offered)}"
                + (
                    f", if {unknown} is the name of the cluster or tier: no row is of a host of that name"
                    if unknown
                    else ""
                )
                if offered
                else _why_none(tiers, name)
            )
            fix = [
                *(
                    [
                        step(
                            f"see whether {unknown}, which replicate_from of {name} names, is the cluster or tier of its source; "
                            "if it is a host, name the cluster, the tier, or a host that has a row, and restart the node",
                            "the registry begins at the hosts that a node names: of a host without a row it offers nothing",
                        )
                    ]
                    if unknown and offered
                    else []
                ),
                step(
                    "see below who has the file that it needs (LOG_GAP)"
                    if state == GAPPED
                    else "look at what its log says of candidates",
                    _HAS_NOT_ASKED.get((tiers.seen.nodes.get(name) or {}).get("state") or "", _ASKS_FOR_EVER),
                ),
            ]
        if tiers.contradicts(name):
            why += f"; {_TWO_TABLES.format(tiers.seen.nodes[name]['state'], tiers.parent(name))}"
            fix = [
                step(
                    _READ_AGAIN,
                    "who is Pending or Inactive has no connection: a reset, as before each registering, deletes it",
                ),
                *fix,
            ]
        if state != STOPPED and (ends := sorted(awaited.get(name, ()))):
            says = f"it waits until its source connects to it, as its row in comdb2_physrep_sources says ({some(ends)})"
            why = "what the registry would offer it does not take"
            fix = [
                step(f"do what REVERSE_LINK_MISSING says of {name}", "a node with such a row does not connect itself")
            ]
        if state != STOPPED and (long := waited_before(tiers, name)):
            why += f"; {long}"
        if standing := tiers.standstills.get(name):
            why += f"; {standing.says}"
        yield Finding(
            "REPLICANT_INACTIVE",
            "warning" if state == PENDING else "error",
            f"{name}: {says}; {why}",
            server=name,
            origin=source,
            items=(place_text(tiers.last(name)) or "",) if tiers.last(name) else (),
            evidence=(evidence_of(tiers, name) | {"host": host},),
            assumes=by_default(tiers, name) if state != STOPPED and tiers.offer(name) else (),
            fix=tuple(fix),
        )


def _registers(tiers: Tiers, source: str, name: str) -> Finding:
    """A node that looks for a source, as each does from time to time, and was seen to get on a moment ago."""
    state = tiers.seen.nodes[name]["state"]
    return Finding(
        "REPLICANT_INACTIVE",
        "info",
        f"{name} registers anew: its row says {state}; {tiers.registering[name].says}",
        server=name,
        origin=source,
        items=(place_text(tiers.last(name)) or "",),
        evidence=(evidence_of(tiers, name),),
        fix=(
            step(
                f"collect again in a minute or two; if {name} still has no source then, look at what its log says of candidates",
                "each node registers anew when it starts, once per reconnect interval, and after an election, and asks once a "
                "second until it has a source",
                "there is nothing to restart before",
            ),
        ),
    )


def _contradicted(tiers: Tiers, source: str, name: str) -> Finding:
    """A node that lacks nothing, and of which two tables of the registry say two things."""
    return Finding(
        "REPLICANT_INACTIVE",
        "info",
        f"{name} is level with its source, but {_TWO_TABLES.format(tiers.seen.nodes[name]['state'], tiers.parent(name))}",
        server=name,
        origin=source,
        items=(place_text(tiers.last(name)) or "",),
        evidence=(evidence_of(tiers, name),),
        fix=(
            step(_READ_AGAIN, "who is Pending or Inactive is offered to nobody, and neither is what hangs on it alone"),
        ),
    )


def standing_still(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that look connected and get nothing: by what they count, by what their log says, or as two snapshots show."""
    tiers = tiers_of(context)
    for name, standing in sorted(tiers.standstills.items()):
        state, source, last = tiers.states[name], tiers.source_of(name), tiers.last(name)
        if state in (STOPPED, PENDING, NO_SOURCE, GAPPED):
            continue  # what is told of that says this, too
        donors, _ = tiers.donors(name)
        having = (
            f"by what they tell {some(donors)} ha{'s' if len(donors) == 1 else 've'} what it needs"
            if donors
            else "nobody that answers is known to have what it needs"
        )
        if standing.no_source:
            yield Finding(
                "REPLICANT_INACTIVE",
                "error" if standing.counted else "warning",
                f"{name}: {standing.says}; {having}",
                server=name,
                origin=source,
                items=(place_text(last) or "",),
                evidence=(standing.evidence, evidence_of(tiers, name)),
                fix=(
                    step(
                        f"look at what the log of {name} says of the sources that it tries, and whether it reaches them",
                        "it goes on to try the same ones for ever, and looks like one that is slow",
                    ),
                ),
            )
        else:
            yield Finding(
                "STALLED_BUT_GREEN",
                "warning",
                f"{name} stands at {place_text(last)} and reports itself: {standing.says}",
                server=name,
                origin=source,
                items=(place_text(last) or "",),
                evidence=(standing.evidence, evidence_of(tiers, name)),
                fix=(
                    step(
                        f"look at what the log of {name} says last; if that tells nothing, let it register anew ({FORCE})",
                        f"it looks connected, and gets nothing; {having}",
                    ),
                ),
            )


def reports_to_come(context: DetectorContext) -> Iterator[Finding]:
    """Rows whose time the registry's clock had not come to: they look fresh, whatever became of their nodes."""
    tiers = tiers_of(context)
    names = sorted(tiers.seen.ahead)
    if not names:
        return
    most = max(-(tiers.seen.since_report(name) or 0) for name in names)
    yield Finding(
        "CLOCK_AHEAD",
        "warning",
        f"the last report{'s' if len(names) > 1 else ''} of {some(names)} {'are' if len(names) > 1 else 'is'} up to "
        f"{span_text(most)} ahead of the registry's clock when it was read, {tiers.seen.now:%Y-%m-%d %H:%M:%S}: how old "
        f"{'they are' if len(names) > 1 else 'it is'} nothing tells",
        server=names[0],
        evidence=first_few({"node": name, "seconds_ahead": -(tiers.seen.since_report(name) or 0)} for name in names),
        fix=(
            step(
                "collect the registry's clock and its tables once more, in one go; if it is still so, set the clocks of the "
                "hosts of the registry's database right",
                "until that time has come such a row looks as if its node had just reported itself, though it may be gone",
            ),
        ),
    )


def order_of_snapshots(context: DetectorContext) -> Iterator[Finding]:
    """The last snapshot is taken for the present: by its own clock it is of a time before another one."""
    tiers = tiers_of(context)
    later = {then.label: then.now for then in taken_later(tiers.case, tiers.seen) if then.now}
    if not later or tiers.seen.now is None:
        return
    newest = max(later, key=later.__getitem__)
    most = (later[newest] - tiers.seen.now).total_seconds()
    yield Finding(
        "CLOCK_AHEAD",
        "warning",
        f"snapshot {tiers.seen.label} was given last and is taken for the present, but its clock, "
        f"{tiers.seen.now:%Y-%m-%d %H:%M:%S}, is {span_text(most)} behind that of snapshot {newest}: what is said here "
        "is of the older state, if that clock was not set back since",
        evidence=first_few({"snapshot": label, "clock": str(at)} for label, at in later.items()),
        fix=(
            step(
                f"give the snapshots in the order in which they were taken, {newest} after {tiers.seen.label}",
                "of several snapshots the last one is diagnosed, and those before it tell what has moved since",
            ),
        ),
    )


def set_aside(context: DetectorContext) -> Iterator[Finding]:
    """Nodes of the source that are there, and whose rows say that they are no candidates: nobody is sent to them."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        roots = [name for name in tiers.roots(source) if name in tiers.seen.nodes]
        out = [
            name for name in roots if tiers.seen.nodes[name]["state"] in tiers.told.rules.unfit and tiers.there(name)
        ]
        nobody = len(out) == len(roots)
        for name in out:
            state = tiers.seen.nodes[name]["state"]
            yield Finding(
                "REPLICANT_INACTIVE",
                "error" if nobody else "warning",
                f"{name} is of the source and is there, but its row says {state}: "
                + (
                    "no node of the source is offered to anybody who registers"
                    if nobody
                    else "nobody who registers is sent to it"
                ),
                server=name,
                origin=source,
                evidence=(evidence_of(tiers, name),),
                fix=(
                    step(
                        f"if nobody set it aside on purpose: restart {name}, or set its row to Active in the registry",
                        "a node of the source writes Active when it starts; the query leaves out what is Pending or Inactive",
                    ),
                ),
            )


def names_no_host(tiers: Tiers, name: str) -> str:
    """The names that a node follows, if no row is of any of them: then they stand for all hosts, or for none."""
    source, hosts = tiers.told.sources.get(name, (None, ()))
    if not hosts or not tiers.seen.lists_nodes:
        return ""
    known = {other.partition("@")[2] for other in tiers.seen.nodes if other.startswith(f"{source}@")}
    return some(list(hosts)) if not known.intersection(hosts) else ""


def _which_serve(tiers: Tiers, name: str, offered: list[str]) -> str:
    """Which of the nodes that one would be offered have its file: a row of the registry is older than what the node answered."""
    useful, last = tiers.offered(name) or [], tiers.last(name)
    having = [one for one in useful if last and (tiers.seen.whole_from(one) or 0) <= last[0]]
    if not useful:
        return "; none of those that answer still has its file"
    if not having:
        reported = "it last reported itself" if len(useful) == 1 else "they last reported themselves"
        return f"; of these {some(useful)} had its file when {reported}, and had it no more when asked"
    return f"; of these {some(having)} can serve it" if set(having) != set(offered) else ""


def _why_none(tiers: Tiers, name: str) -> str:
    offer = tiers.offer(name)
    if offer is None:
        return "nothing tells what it would be offered"
    if offer.refused:
        return offer.refused
    reasons = [f"{other}: {why}" for other, why in sorted(offer.reasons.items()) if other != name]
    return f"no node is offered to it ({'; '.join(reasons[:3])})" if reasons else "no node is offered to it"
