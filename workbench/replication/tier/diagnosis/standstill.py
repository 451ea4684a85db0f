"""Nodes that look connected and apply nothing: they stand where they stood before, or say so themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.replication.tier.diagnosis.commit_times import overdue
from workbench.replication.tier.diagnosis.earlier_snapshots import told_anew
from workbench.replication.tier.rules.conditions import FED, RETIRED
from workbench.replication.tier.rules.tiers import Lsn
from workbench.topology.tier_snapshot import messages_of, place_of

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers
    from workbench.topology.tier_snapshot import TieredSnapshot

LONG = timedelta(seconds=60)
"""The program itself warns of a node that applied nothing for longer than that."""

NO_VIABLE_SOURCE = "physrep_no_viable_source"
"""The metric: no source that the node tried has what it needs next."""

_NOBODY, _STILL = "no_viable_source", "inactive"
_GOES_ON = frozenset({"attached", "replicating", "worker_started"})

Evidence = Mapping[str, str | float | None]


class Line(NamedTuple):
    """A line of a program's log: when, where the node says that it is, and the text."""

    at: str
    place: Lsn | None
    text: str


@dataclass(frozen=True)
class Standstill:
    """Why a node that lacks something is known to get nothing.

    no_source  no source that it tried has what it needs; else it just stands still
    counted    the node counts that itself now: the metric; else its log says it
    says       the same as a clause
    sure       else it may wait on purpose, as its configuration file alone would tell
    """

    no_source: bool
    counted: bool
    says: str
    evidence: Evidence = field(default_factory=dict)
    sure: bool = True


def standstills(tiers: Tiers) -> dict[str, Standstill]:
    """Node -> why; nodes of the source, those that need nothing, and those that were taken out are not among them."""
    said = _said(tiers)
    before = tiers.before
    found = {}
    for source in tiers.sources:
        own = set(tiers.roots(source))
        for name in tiers.members[source]:
            if name in own or not tiers.needs(name) or tiers.states[name] == RETIRED:
                continue
            if standing := _standstill(tiers, name, said.get(name, {}), before):
                found[name] = standing
    return found


def _standstill(tiers: Tiers, name: str, said: Mapping[str, Line], before: TieredSnapshot | None) -> Standstill | None:
    if (count := tiers.seen.metric(name, NO_VIABLE_SOURCE)) not in (None, "0"):
        evidence: Evidence = {"node": name, "setting": NO_VIABLE_SOURCE, "value": count}
        says = f"it counts itself that no source that it tried has what it needs next ({NO_VIABLE_SOURCE} {count})"
        return Standstill(True, True, says, evidence)
    nobody, still = said.get(_NOBODY), said.get(_STILL)
    if nobody and count is None:
        evidence = {"node": name, "at": nobody.at, "text": nobody.text}
        says = f"its log says last, at {nobody.at}, that no source that it tried has what it needs next"
        return Standstill(True, False, says, evidence)
    if tiers.states[name] not in FED or tiers.gap(name) or overdue(tiers, name):
        return None
    if still and still.place == tiers.last(name):
        evidence = {"node": name, "at": still.at, "text": still.text}
        says = f"its log says at {still.at} that it applied nothing for more than a minute, and it is still where it was then"
        return Standstill(False, False, says, evidence)
    return _unmoved(tiers, name, before) if before else None


def _unmoved(tiers: Tiers, name: str, before: TieredSnapshot) -> Standstill | None:
    """A node that was behind then already, is at the same place now, and whose supplier had more for it in both snapshots."""
    last, place, now = tiers.last(name), tiers.place(name), tiers.seen.now
    if last is None or place is None or before.now is None or now is None or before.last(name) != last:
        return None
    between = now - before.now
    wait = tiers.told.delays.get(name)
    if between <= LONG or (wait is not None and between <= timedelta(seconds=wait)):
        return None
    if not told_anew(tiers.seen, before, name) or name in tiers.seen.cut_since:
        return None
    # Of a parent that is silent nothing shows that it had any more to send.
    above = [one for one in place.parents if told_anew(tiers.seen, before, one)]
    ahead = [one for one in above if (before.last(one) or last) > last and (tiers.last(one) or last) > last]
    if not ahead:
        return None
    minutes = between.total_seconds() / 60
    says = f"it is where it was {minutes:,.0f} min before, in snapshot {before.label}, and {ahead[0]}, from which it pulls, "
    says += "had more for it in both snapshots"
    sure = wait is not None or bool(tiers.seen.settings.get(name, {}).get("line"))
    says += "" if sure else ", unless it waits on purpose (a delay stands in its configuration file alone)"
    evidence: Evidence = {"node": name, "snapshot": before.label, "seconds_between": between.total_seconds()}
    return Standstill(False, False, says, evidence, sure)


def _said(tiers: Tiers) -> dict[str, dict[str, Line]]:
    """Node -> code -> what its log says last of it, if it does not say behind that that the node found a source."""
    found: dict[str, dict[str, Line]] = {}
    for code, name, line in sorted(_lines(tiers), key=lambda told: told[2].at):
        if code in _GOES_ON:
            found[name] = {}
        else:
            found.setdefault(name, {})[code] = line
    return found


def _lines(tiers: Tiers) -> Iterator[tuple[str, str, Line]]:
    for row in messages_of(tiers.case, tiers.seen.label, {_NOBODY, _STILL, *_GOES_ON}):
        if row["at"] is None:
            continue
        place, numbers = place_of(row["position"]), dict(row["numbers"] or ())
        if row["code"] == _STILL and numbers.get("ahead") == "true":
            continue  # a false alarm: file and offset are compared each by itself
        name = tiers.seen.full_names.get((row["server"], row["file"]), row["server"])
        yield row["code"], name, Line(f"{row['at']:%Y-%m-%d %H:%M:%S}", place, (row["text"] or "")[:200])


STOP_CODES = ("worker_stopped", "watcher_stopped")
"""Codes of messages with which a node says that its replication ended."""


def said_stops(messages: Iterable[Mapping[str, Any]], full_names: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Node -> what its own log says last, if that is the end of its replication."""
    last: dict[str, tuple[datetime, str, str]] = {}
    for row in messages:
        name = full_names.get((row["server"], row["file"]), row["server"])
        newest = last.get(name)
        if newest is None or row["at"] >= newest[0]:
            last[name] = row["at"], row["code"], row["text"]
    return {name: text for name, (_, code, text) in last.items() if code in STOP_CODES}


def held_above(tiers: Tiers, name: str, parent: str) -> bool:
    """Whether most of what a node lacks is lacked by its source, too: a chain that moves is never at one place."""
    last, above, head = tiers.last(name), tiers.last(parent), tiers.known_head(tiers.source_of(name) or "")
    if last is None or above is None or head is None or not last <= above < head:
        return False
    own, theirs = tiers.lag(last, above)[0], tiers.lag(above, head)[0]
    return last == above or (own is not None and theirs is not None and own <= theirs)
