"""A small fleet whose servers write entries and feed each other, step by step, under the note's rules or today's.

What it shows: how a change travels; that a read-only consumer which two sources feed flips to and fro, and that the supply
condition of the note prevents it; that leaving out a change which seems to change nothing keeps servers apart for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.model import Problem
from workbench.replication.entry.rules import entries as note
from workbench.replication.entry.rules.entries import Cid, Ranges
from workbench.systems.kanidm.rules.merging import Live, State, Tombstone, merge, sent
from workbench.systems.kanidm.rules.ranges import OK, range_diff, supplied

DESIGN, KANIDM = RULE_SETS = ("design", "kanidm")

REFUSED, FLIPS = "gate_shut", "would_go_back"
"""Why nothing is sent under the rules of the note."""


@dataclass
class Server:
    """One server: what it claims, which entries each of its CIDs changed, and its entries.

    read_only  it makes no changes; under the note it takes whole entries blindly, and keeps no list
    """

    name: str
    read_only: bool = False
    vector: dict[str, tuple[int, int]] = field(default_factory=dict)
    listed: dict[Cid, list[str]] = field(default_factory=dict)
    entries: dict[str, State] = field(default_factory=dict)


class Step(NamedTuple):
    """What one session did.

    status     Ok, or why nothing was sent
    cids       what the consumer lacked, in order; of today's rules those that are listed
    entries    the entries that were sent
    before     the consumer's vector, and `after` the session
    went_back  (entry, attribute) of what the consumer had and has no more: it holds an older change of it now
    """

    supplier: str
    consumer: str
    status: str
    cids: Sequence[Cid]
    entries: Sequence[str]
    before: Ranges
    after: Ranges
    went_back: Sequence[tuple[str, str]]


class Walk:
    """The fleet.

    condition  of the note: a source feeds a read-only consumer only if it has seen all that the consumer has
    no_ops     a change to the value that is there already is a change all the same; False: it is left out, wrongly
    """

    def __init__(
        self,
        servers: Iterable[str],
        read_only: Iterable[str] = (),
        rules: str = DESIGN,
        condition: bool = True,
        no_ops: bool = True,
    ) -> None:
        if rules not in RULE_SETS:
            raise Problem(f"there is no rule set {rules}", "", f"the rule sets are {', '.join(RULE_SETS)}")
        self.servers = {name: Server(name) for name in servers}
        self.servers |= {name: Server(name, read_only=True) for name in read_only}
        self.rules, self.condition, self.no_ops = rules, condition, no_ops

    def write(
        self, server: str, entry: str, attribute: str, values: Sequence[Any] | None, at: int, no_op: bool | None = None
    ) -> Cid | None:
        """One server sets an attribute (None: deletes it), by its clock; None if the change was left out.

        A server's clock never goes back, and never stands: a second change at one time is a unit later.
        """
        here = self._writer(server)
        state = here.entries.get(entry)
        if isinstance(state, Tombstone):
            raise Problem(f"{entry} is deleted", server, "write to another entry")
        old = state.values.get(attribute) if state else None
        if not (self.no_ops if no_op is None else no_op) and state is not None and old == values:
            return None
        cid = self._begin(here, at, entry)
        changes, kept = (dict(state.changes), dict(state.values)) if state else ({}, {})
        changes[attribute] = cid
        kept.pop(attribute, None)
        if values is not None:
            kept[attribute] = list(values)
        here.entries[entry] = Live(state.at if state else cid, changes, kept)
        return cid

    def delete(self, server: str, entry: str, at: int) -> Cid:
        """One server deletes an entry: a tombstone is left."""
        here = self._writer(server)
        cid = self._begin(here, at, entry)
        here.entries[entry] = Tombstone(cid)
        return cid

    def _writer(self, name: str) -> Server:
        here = self.servers[name]
        if here.read_only:
            raise Problem(f"{name} is read-only", "", "write on another server")
        return here

    def _begin(self, here: Server, at: int, entry: str) -> Cid:
        low, high = here.vector.get(here.name, note.NOTHING_YET)
        time = note.next_time(high, at)
        # Today's ranges begin at the first change; the note's at 0, which is before every change.
        here.vector[here.name] = (time if self.rules == KANIDM and here.name not in here.vector else low, time)
        here.listed[time, here.name] = [entry]
        return time, here.name

    def session(self, supplier: str, consumer: str) -> Step:
        """The supplier gives the consumer what it lacks."""
        source, target = self.servers[supplier], self.servers[consumer]
        before, had = dict(target.vector), dict(target.entries)
        if self.rules == KANIDM:
            status, cids, entries = self._today(source, target)
        else:
            status, cids, entries = self._noted(source, target)
        back = list(_went_back(had, target.entries))
        return Step(supplier, consumer, status, cids, entries, before, dict(target.vector), back)

    def _noted(self, source: Server, target: Server) -> tuple[str, Sequence[Cid], Sequence[str]]:
        if not note.may_supply(source.vector, target.vector):
            return REFUSED, [], []
        if target.read_only and self.condition and note.flips(source.vector, target.vector):
            return FLIPS, [], []
        listed = None if target.read_only else target.listed
        made = note.entry_session(source.vector, target.vector, source.listed, listed)
        for name in made.entries:
            incoming, local = source.entries[name], target.entries.get(name)
            blindly = target.read_only or local is None
            target.entries[name] = incoming if blindly or local is None else merge(incoming, local).state
        target.vector = dict(made.consumer_after)
        target.listed = {cid: list(some) for cid, some in (made.listed_after or {}).items()}
        return OK, made.cids, made.entries

    def _today(self, source: Server, target: Server) -> tuple[str, Sequence[Cid], Sequence[str]]:
        if not target.vector and source.vector:  # a new server begins with a refresh: everything, and what it rests on
            target.vector, target.entries = dict(source.vector), dict(source.entries)
            target.listed = {cid: list(some) for cid, some in source.listed.items()}
            return OK, sorted(source.listed), sorted(source.entries)
        found = range_diff(target.vector, source.vector)
        cids = note.among(source.listed, found.owed)
        carried = supplied(source.listed, found.owed)
        entries = sorted({name for cid in cids for name in source.listed[cid]})
        for name in entries:
            state, local = source.entries[name], target.entries.get(name)
            if isinstance(state, Live):
                part = sent(state, found.owed)
                state = Live(
                    state.at,
                    {one: state.changes[one] for one in part},
                    {one: state.values.get(one) for one in part},
                )
            target.entries[name] = state if local is None else merge(state, local).state
        for origin, one in carried.items():
            low = target.vector.get(origin, (min([*one.anchors, one.upto]), 0))[0]
            target.vector[origin] = (low, one.upto)
        target.listed |= {cid: list(source.listed[cid]) for cid in cids}
        return found.status, cids, entries

    def content(self, server: str) -> dict[str, dict[str, Any]]:
        """The entries of a server, as somebody reads them there."""
        found = self.servers[server].entries.items()
        return {name: dict(sorted(state.values.items())) for name, state in sorted(found) if isinstance(state, Live)}


def _went_back(had: Mapping[str, State], has: Mapping[str, State]) -> Iterable[tuple[str, str]]:
    for name, old in had.items():
        new = has[name]
        if isinstance(old, Live) and isinstance(new, Live) and old.at == new.at:
            yield from (
                (name, attribute)
                for attribute, cid in old.changes.items()
                if new.changes.get(attribute, (-1, "")) < cid
            )
        elif isinstance(old, Tombstone) and isinstance(new, Live):
            yield (name, "")
