"""Servers with which no session can begin: what they wait for, and from which server they may be filled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.closed_ways import runs
from workbench.diagnosis.former_origins import in_the_way
from workbench.diagnosis.former_suppliers import unsent_of
from workbench.diagnosis.lost_own_element import lost_elements
from workbench.diagnosis.made_itself import MADE_ITSELF
from workbench.diagnosis.only_holders import (
    keep_only_holder,
    keeps_log,
    lacking_what_others_have,
    write_again_first,
)
from workbench.diagnosis.repair_sources import not_judged_on, unrecorded_on, up_to, with_data
from workbench.diagnosis.restart_order import before_start
from workbench.model import Finding, counted, first_few, listed, step
from workbench.rules.send_session import ANCHOR_NOT_FOUND, NOTHING, SEND

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

_Place = tuple[str, str | None]
"""A server and a suffix."""


def reinit_required(context: DetectorContext) -> Iterator[Finding]:
    """A server waits for changes, and of no other server's log could a session with it begin."""
    waiting: dict[tuple[str, str | None], list[Any]] = {}
    for row in context.verdicts.pending:
        waiting.setdefault((row["server"], row["suffix"]), []).append(row)
    given = context.once(_sessions_to)
    cut_off = _cut_off(context, given)
    for one in context.topology.replicas:
        waits, stuck = (
            waiting.get((one.server, one.suffix), []),
            _stuck(context, given.get((one.server, one.suffix), [])),
        )
        if not waits or (one.server, one.suffix) not in cut_off:
            continue
        if (one.server, one.suffix) in context.once(in_the_way):
            continue  # sessions begin once a former origin is cleaned
        if (one.server, one.suffix) in context.once(lost_elements):
            continue  # sessions begin once it makes a change
        # Data that lack changes themselves are no source.
        lacking = lacking_what_others_have(context, one.suffix)
        lacking |= {server for server, suffix in context.without_data if suffix == one.suffix}
        whole = [row for row in stuck if row["supplier"] not in lacking and _has(context, row, waits)]
        off = {
            name: why
            for row in whole
            if (why := unrecorded_on(context, (name := row["supplier"]), one.server, one.suffix))
        }
        whole = [row for row in whole if row["supplier"] not in off]
        open_ = {row["supplier"]: not_judged_on(context, row["supplier"], one.server, one.suffix) for row in whole}
        doubted = [name for name, some in open_.items() if some]
        whole = [row for row in whole if row["supplier"] not in doubted]
        best = max(whole, key=lambda row: (bool(row["link"]), row["supplier"]), default=None)
        source = f"{best['supplier']}, or from " if best else ""
        about = context, one.server, one.suffix
        again = keep_only_holder(*about) or write_again_first(*about)
        behind = _source_behind(context, one, best["supplier"]) if best and not again else None
        count = sum(row["count"] for row in waits if not row.get(MADE_ITSELF)) or sum(row["count"] for row in waits)
        unread = context.not_collected(one.suffix)
        log = "no collected log" if unread else "no server's log"
        yield Finding(
            "REINIT_REQUIRED",
            "error",
            f"{one.server} waits for {counted(count)}, and {log} has the record that a session would begin at",
            server=one.server,
            suffix=one.suffix,
            items=tuple(row["first"] for row in waits),
            evidence=first_few(
                {key: row[key] for key in ("supplier", "link", "decision", "anchor", "anchor_class")} for row in stuck
            ),
            fix=(
                *([_read_first(context, unread, one.suffix)] if unread else []),
                *(_entries_first(context, one, name, open_[name]) for name in doubted[:1]),
                *([behind] if behind else []),
                *([unsent] if (unsent := _unsent_first(context, one)) and not again else []),
                again
                or _filled_by_nobody(context, one)
                or (_compared_first(one, off) if off and not best else None)
                or (None if best or doubted else mended_first(context, one, lacking))
                or (None if best or doubted else _stranded_first(context, one, waits))
                or step(
                    f"initialise {one.server} from {source}the server with the most complete data",
                    "as the logs are, no session with it can begin",
                    f"an initialisation throws away everything that only {one.server} holds; first see that no other server, "
                    "collected or not, still has the record that a session would begin at",
                ),
            ),
        )


def _sessions_to(context: DetectorContext) -> Mapping[_Place, Sequence[Mapping[str, Any]]]:
    """What a session of each other server with each server would do now."""
    given: dict[_Place, list[Mapping[str, Any]]] = {}
    for pair in context.pairs:
        given.setdefault((pair["consumer"], pair["suffix"]), []).append(pair)
    return given


def _stuck(context: DetectorContext, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The sessions that cannot begin. Who keeps no log sends nothing, and fills nobody."""
    return [
        row
        for row in rows
        if row["decision"] == ANCHOR_NOT_FOUND and keeps_log(context, row["supplier"], row["suffix"])
    ]


def _cut_off(context: DetectorContext, given: Mapping[_Place, Sequence[Mapping[str, Any]]]) -> set[_Place]:
    """The servers to which nobody could send anything now or later.

    no session from c can begin; b has what a has, and feeds a over a link that runs     a is not cut off unless b is
    """
    found = {
        place
        for place, rows in given.items()
        if _stuck(context, rows) and not any(row["decision"] in (SEND, "unknown") for row in rows)
    }
    while reached := {place for place in found if _passing_on(given[place], found)}:
        found -= reached
    return found


def _passing_on(rows: Iterable[Mapping[str, Any]], cut_off: Collection[_Place]) -> list[str]:
    """The servers that have nothing new for the consumer of these sessions, and pass on what they get, over links that run."""
    return sorted(
        row["supplier"]
        for row in rows
        if row["decision"] == NOTHING and runs(row) and (row["supplier"], row["suffix"]) not in cut_off
    )


def fed_by(context: DetectorContext, server: str, suffix: str | None) -> list[str]:
    """The servers that pass on to a server what they get, although they have nothing new for it now."""
    given = context.once(_sessions_to)
    return _passing_on(given.get((server, suffix), ()), _cut_off(context, given))


def _read_first(context: DetectorContext, unread: Sequence[str], suffix: str | None) -> Mapping[str, Any]:
    """The step before all others where a server was not read: its log may have what the others lack."""
    it = "its log" if len(unread) == 1 else "the log of one of them"
    before = [first["repair"] for name in unread for first in before_start(context, name, suffix)]
    steps = "".join(f"{repair}; then " for repair in before)
    them = "it" if len(unread) == 1 else "them"
    return step(
        f"{'' if steps.startswith('first ') else 'first '}{steps}start {listed(unread)}, if down, and collect with {them} again",
        f"{it} may have the record with which a session can begin",
    )


def _filled_by_nobody(context: DetectorContext, one: Replica) -> Mapping[str, Any] | None:
    """What to do for a server that is the only one with data; None for another."""
    others = [other.server for other in context.topology.replicas if other.suffix == one.suffix and other is not one]
    typed = context.topology.system.typed
    waits = [row for row in context.verdicts.pending if (row["server"], row["suffix"]) == (one.server, one.suffix)]
    whole = with_data(context, others, one.suffix)
    gives = [
        other
        for other in context.topology.replicas
        if other.suffix == one.suffix and other.server in whole
        if any(other.top(row["origin"]) >= (typed(row["first"]) or "") for row in waits)
    ]
    if not others or gives or len(whole) == len(others):
        return None
    others = [name for name in others if name not in whole]
    return step(
        f"do not initialise {one.server}: no other collected server has data"
        + (" with anything that it waits for" if whole else ""),
        f"what it waits for, only {listed(others, 'and')} may have, in a changelog of before",
    )


def holders_of_waits(context: DetectorContext, server: str, suffix: str | None) -> list[str]:
    """The other servers with data that have all the changes for which a server waits."""
    typed = context.topology.system.typed
    waits = [row for row in context.verdicts.pending if (row["server"], row["suffix"]) == (server, suffix)]
    return sorted(
        replica.server
        for replica in context.topology.replicas
        if replica.suffix == suffix and replica.server != server
        if (replica.server, suffix) not in context.without_data
        if all(replica.top(row["origin"]) >= (typed(row["last"]) or "") for row in waits)
    )


def mended_first(context: DetectorContext, one: Replica, lacking: Collection[str]) -> Mapping[str, Any] | None:
    """What to do for a server where only such have what it waits for as lack changes themselves; None: others have it, too."""
    holders = holders_of_waits(context, one.server, one.suffix)
    if not holders or not set(holders) <= set(lacking):
        return None
    names, has = listed(holders, "and"), "has" if len(holders) == 1 else "have"
    return step(
        f"do not initialise {one.server}: first do what is said of {names}",
        f"only {names} {has} what it waits for, and {'lacks' if len(holders) == 1 else 'lack'} changes: filled from there, "
        f"{one.server} would lack them, too",
    )


def _source_behind(context: DetectorContext, one: Replica, source: str) -> Mapping[str, Any] | None:
    """What comes first where the source waits for changes that the server has; None: it waits for none of these."""
    typed = context.topology.system.typed
    rows = [
        row
        for row in context.verdicts.pending
        if (row["server"], row["suffix"]) == (source, one.suffix)
        and one.top(row["origin"]) >= (typed(row["first"]) or "")
    ]
    if not rows:
        return None
    count = sum(row["count"] for row in rows)
    return step(
        f"first let {source} get the {counted(count)} that it waits for: see PENDING_CHANGES of {source}",
        f"{one.server} has them, and loses them if it is filled from {source} before",
    )


def _unsent_first(context: DetectorContext, one: Replica) -> Mapping[str, Any] | None:
    """What comes before a server is filled that made changes which nobody else has, as an origin that it is no more."""
    origins, typed = unsent_of(context, one.server, one.suffix), context.topology.system.typed
    others = [other for other in context.topology.replicas if other.suffix == one.suffix and other is not one]
    rows = [
        row
        for row in context.verdicts.pending
        if row["suffix"] == one.suffix and row["server"] != one.server and row["origin"] in origins
        if not any(other.top(row["origin"]) >= (typed(row["first"]) or "") for other in others)
    ]
    if not rows:
        return None
    waiting = sorted({row["server"] for row in rows})
    return step(
        f"first do what PENDING_CHANGES says of {listed(waiting)}",
        f"{one.server} made what {listed(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for, as origin "
        f"{listed(sorted({row['origin'] for row in rows}))} that it had before: filled before that, it loses what only it has",
    )


def _stranded_first(
    context: DetectorContext, one: Replica, waits: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """What comes first where no supplier has all that a server waits for, and several servers hold parts of it alone."""
    wanted = {row["origin"] for row in waits}
    held: dict[str, set[str]] = {}
    for row in context.verdicts.stranded:
        if row["suffix"] == one.suffix and row["server"] != one.server and row["origin"] in wanted:
            held.setdefault(row["server"], set()).add(row["origin"])
    if not held:
        return None
    names = listed(sorted(held), "and")
    return step(
        f"do what STRANDED_CHANGE says of {names}, and collect again",
        f"{names} alone hold{'s' * (len(held) == 1)} changes that {one.server} waits for: no server has the data to fill it with",
        f"do not initialise {one.server} before that",
    )


def to_be_filled(context: DetectorContext) -> set[tuple[str, str | None]]:
    """The servers and suffixes of which REINIT_REQUIRED is said."""
    return {(one.server or "", one.suffix) for one in reinit_required(context)}


def _entries_first(context: DetectorContext, one: Replica, source: str, open_: Mapping[str, int]) -> Mapping[str, Any]:
    count, other = sum(open_.values()), context.replica(source, one.suffix)
    whether = f"whether {source} has {up_to(count)} that {one.server} has"
    loses = f"filled from there it might lose {'it' if count == 1 else 'them'}"
    if other is not None and "entry_state" in other.evidence and "entry_state" in one.evidence:
        return step(f"find out first {whether}", f"what was collected does not tell: {loses}")
    return step("first collect with the entries: `workbench collect --entries`", f"nothing tells {whether}: {loses}")


def _compared_first(one: Replica, off: Mapping[str, str]) -> Mapping[str, Any]:
    """What to do for a server where only such have what it waits for as took changes that no log recorded."""
    names = listed(sorted(off), "or")
    return step(
        f"collect with the entries (`workbench collect --entries`) before {one.server} is initialised from {names}",
        f"{listed(sorted(off.values()), 'and')}: what was changed and deleted there would be changed and deleted on "
        f"{one.server}, too",
        f"do what REPLICATION_WAS_OFF says of {listed(sorted(off), 'and')} first",
    )


def _has(context: DetectorContext, pair: Mapping[str, Any], waits: Iterable[Mapping[str, Any]]) -> bool:
    """True if the supplier of the pair can fill others, and claims all that these rows wait for, or gets the rest itself."""
    by = context.replica(pair["supplier"], pair["suffix"])
    typed = context.topology.system.typed
    if by is None:
        return True
    coming = {
        row["origin"]
        for row in context.verdicts.pending
        if (row["server"], row["suffix"]) == (by.server, by.suffix) and (row["suppliers"] or row.get("through"))
    }
    return by.keeps_log and all(
        row["origin"] in coming or by.top(row["origin"]) >= (typed(row["last"]) or "") for row in waits
    )
