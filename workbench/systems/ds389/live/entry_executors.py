"""Executors of steps that write one entry: its present values once more, or its deletion and addition.

All of them compare the entry with the plan and with every server first: positions may move on meanwhile, the entry may not.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.model import Problem
from workbench.repair.plan_types import Step
from workbench.systems.ds389.csn import change_of, origin_of
from workbench.systems.ds389.live.connection import BELOW, Connection
from workbench.systems.ds389.live.entries import (
    NOT_BY_USERS,
    addition,
    changes_of,
    differing,
    entry_of,
    replaced_by,
    tombstone_of,
    values_of,
)
from workbench.systems.ds389.native import delete

if TYPE_CHECKING:
    from workbench.systems.ds389.live.planned import PlannedServers

Memo = Mapping[str, Any]

POLL, ARRIVES = 0.2, 15.0
"""Seconds between two looks, and those in which what a server wrote has to have arrived everywhere."""
_MODIFIED = "modifyTimestamp"


class Rewrite:
    """The present values of an entry are written once more."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """The entry has to be the same, with the values that the plan shows, and they have to be the last ones."""
        yield from _not_the_entry(servers, step, step.details["values"])
        yield from _later_elsewhere(servers, step, {_base(name) for name in _names(step)})

    def memo(self, servers: PlannedServers, step: Step) -> dict[str, Any]:
        """The last change of its own before."""
        return {"own": last_own(servers, step)}

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if all values of every one of the attributes were replaced by a later change of this server.

        A step of one change has a number of its own behind that of the change: it is no later change. Emptying what is empty
        leaves no mark on the attribute: then that of the whole entry tells.
        """
        rid = servers.origin(step.suffix, step.on) or ""
        filled = [name for name in _names(step) if step.details["values"].get(name) != []]
        with servers.connected(step.on) as server:
            replaced = replaced_by(server, step.details["dn"], rid)
        return all(replaced.get(_base(name), "") > change_of(memo["own"]) for name in filled or [_MODIFIED])

    def apply(self, servers: PlannedServers, step: Step, memo: Memo) -> None:
        """Of what the plan does not show, the values are read here, sent, and kept nowhere."""
        dn = step.details["dn"]
        with servers.connected(step.on) as server:
            entry = entry_of(server, dn, _names(step))
            there = values_of(entry, _names(step)) if entry else {}
            if unseen := [name for name in step.details["hidden"] if not there.get(name.lower())]:
                raise _unseen(step, unseen)
            mods = [["replace", name, there.get(name.lower(), [])] for name in _names(step)]
            server.send({"dn": dn, "change": "modify", "mods": mods})

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """Every server has the values."""
        yield from servers.lagging(step, step.details["level"])
        yield from servers.unlike(step.suffix, step.details["level"], step.details["dn"], _names(step), whole=False)


class Delete:
    """An entry is deleted, to be added again. Until it is, its values are in its tombstone, secrets included."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """The entry has to be the same, with the values that the plan shows, and the deletion has to reach every server."""
        with servers.connected(step.on) as server:
            entry = entry_of(server, step.details["dn"])
        if entry is not None and (entry.text("numSubordinates") or "0") != "0":
            yield f"{step.details['dn']} has entries below it by now: it cannot be deleted"
        yield from _not_the_entry(servers, step, step.details["values"])
        yield from _later_elsewhere(servers, step, set())
        yield from _conflicts(servers, step)
        yield from _out_of_reach(servers, step)

    def memo(self, servers: PlannedServers, step: Step) -> dict[str, Any]:
        """The unique ID that the entry had: what somebody else deleted before is not ours to add again."""
        with servers.connected(step.on) as server:
            entry = entry_of(server, step.details["dn"])
        return {"entry": entry.text("nsUniqueId") if entry else None}

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if the entry was there before, and is gone, under whatever name."""
        if memo["entry"] != step.details["entry"]:
            return False
        with servers.connected(step.on) as server:
            return not _with_unique(server, step)

    def apply(self, servers: PlannedServers, step: Step, memo: Memo) -> None:
        """Delete, if all that is not shown can be read now: of a tombstone it can be read as well."""
        dn = step.details["dn"]
        with servers.connected(step.on) as server:
            entry = entry_of(server, dn, _names(step))
            shown = values_of(entry, _names(step)) if entry else {}
            if unseen := [name for name in step.details["hidden"] if not shown.get(name.lower())]:
                raise _unseen(step, unseen)
            server.send(delete(dn))

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """No server has it, and every server claims its deletion: only then may it be added again."""
        yield from servers.lagging(step, step.details["level"], servers.origin(step.suffix, step.on))
        yield from _still_there(servers, step)


class Add:
    """The entry that was deleted is added again, from its tombstone."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """No server may have the old entry: it would keep both."""
        return _still_there(servers, step)

    def memo(self, servers: PlannedServers, step: Step) -> dict[str, Any]:
        """Nothing has to be remembered."""
        return {}

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if the entry is there under another unique ID than before, by whomever."""
        with servers.connected(step.on) as server:
            entry = entry_of(server, step.details["dn"])
        return entry is not None and entry.text("nsUniqueId") != step.details["entry"]

    def apply(self, servers: PlannedServers, step: Step, memo: Memo) -> None:
        """Add what its tombstone has."""
        dn, unique = step.details["dn"], step.details["entry"]
        with servers.connected(step.on) as server:
            entry = tombstone_of(server, step.suffix or "", unique, _names(step))
            if entry is None:
                do = "add the entry by hand with the values that the plan shows, set its secrets again, and resume"
                raise Problem(f"{dn} is deleted, and its tombstone is purged", step.on, do)
            shown = values_of(entry, _names(step))
            if unseen := [name for name in step.details["hidden"] if not shown.get(name.lower())]:
                raise _unseen(step, unseen)
            try:
                server.send(addition(dn, entry))
            except Problem as problem:
                do = "mend that and resume: its values, secrets too, are in its tombstone until the purge delay is over"
                raise Problem(f"{dn} is deleted and was not added again: {problem.what}", problem.where, do) from None

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """Every server has the entry with the same values, and none has two of them."""
        yield from servers.lagging(step, step.details["level"], servers.origin(step.suffix, step.on))
        yield from servers.unlike(step.suffix, step.details["level"], step.details["dn"], _names(step))
        yield from _conflicts(servers, step)


def _with_unique(server: Connection, step: Step) -> bool:
    """True if the server has the entry, not only its tombstone, wherever it was moved."""
    match = f"(nsUniqueId={step.details['entry']})"
    return bool(server.search(step.suffix or "", BELOW, match, ("nsUniqueId",), absent=True))


def _still_there(servers: PlannedServers, step: Step) -> Iterable[str]:
    """The servers that have the deleted entry."""
    for name in step.details["level"]:
        with servers.connected(name) as server:
            if _with_unique(server, step):
                yield f"{name} still has {step.details['dn']}, which {step.on} has deleted"


def _conflicts(servers: PlannedServers, step: Step) -> Iterable[str]:
    """The servers that have another entry of the same name set aside."""
    dn = step.details["dn"].lower()
    for name in step.details["level"]:
        for entry in servers.conflicts(step.suffix, name):
            if dn in (entry.text("nsds5ReplConflict") or "").lower():
                yield f"{name} has a conflict entry of {step.details['dn']}: {entry.dn}"


def _out_of_reach(servers: PlannedServers, step: Step) -> Iterable[str]:
    """The servers that do not get what the server writes: they would keep an entry that it deletes."""
    rid = servers.origin(step.suffix, step.on) or ""
    own, end = servers.own(step) or "", time.monotonic() + ARRIVES
    while True:
        vectors = servers.vectors(step.suffix)
        late = [name for name in step.details["level"] if vectors.get(name, {}).get(rid, "") < own]
        if not late or time.monotonic() > end:
            break
        time.sleep(POLL)
    for name in late:
        yield f"{name} has not got what {step.on} wrote up to {own}: a deletion would not reach it"


def _unseen(step: Step, names: Iterable[str]) -> Problem:
    """Sent as if it were empty, what only others may read would be deleted on all servers."""
    what = f"{', '.join(names)} of {step.details['dn']} is not shown, or is gone by now"
    return Problem(what, step.on, "ask as one who may read it, as the Directory Manager may; if it is gone, plan anew")


def last_own(servers: PlannedServers, step: Step) -> str:
    """The last change of the server's own that was known; if it went back since the plan, what it had then does not count."""
    planned = servers.planned(step.suffix, step.on).get(servers.origin(step.suffix, step.on) or "", "")
    return max(servers.own(step) or "", planned)


def _names(step: Step) -> list[str]:
    return [*step.details["values"], *step.details["hidden"]]


def _base(name: str) -> str:
    return name.split(";", 1)[0].lower()


def _not_the_entry(servers: PlannedServers, step: Step, planned: Mapping[str, list[str]]) -> Iterable[str]:
    dn = step.details["dn"]

    def looked(server: Connection) -> Iterable[str]:
        entry = entry_of(server, dn, _names(step))
        if entry is None:
            yield f"{step.on} has no {dn} any more"
        elif entry.text("nsUniqueId") != step.details["entry"]:
            yield f"{dn} on {step.on} is another entry by now"
        else:
            for name in differing(entry, planned):
                yield f"{name} of {dn} on {step.on} is no longer what the plan shows"
            shown = values_of(entry, _names(step))
            if unseen := [name for name in step.details["hidden"] if not shown.get(name.lower())]:
                yield str(_unseen(step, unseen))

    with servers.connected(step.on) as server:
        return list(looked(server))


def _later_elsewhere(servers: PlannedServers, step: Step, names: set[str]) -> Iterable[str]:
    """Who has values of the entry that the server has yet to get: its own, written now, would undo them everywhere.

    Without names it is about all that users write: memberOf is computed on every server, and may not be sent at all.
    """
    dn, wrote = step.details["dn"], {}
    for name in servers.names(step.suffix):
        if name != step.on:
            with servers.connected(name) as server:
                wrote[name] = changes_of(server, dn)
    held = servers.vectors(step.suffix).get(step.on, {})  # asked last: what it got meanwhile is not later
    for name, there in wrote.items():
        late = sorted(
            attribute
            for attribute, some in there.items()
            if (attribute in names if names else attribute not in NOT_BY_USERS)
            and any(change_of(csn) > held.get(origin_of(csn), "") for csn in some)
        )
        if late:
            yield f"{name} has a change of {', '.join(late)} of {dn} that {step.on} has not got: wait until it has, or plan anew"
