"""merge_entry, attributes_to_send, tombstone_reap: what becomes of entries."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from workbench.input_validation import Inputs
from workbench.systems.kanidm.rules.merging import Live, State, Tombstone, merge, reaped, sent
from workbench.systems.kanidm.scenarios.fields import Cid, Ranges, Time


class LiveGiven(Inputs):
    """When the entry was created, the last change of each attribute, and its values; null: deleted."""

    at: Cid
    changes: dict[str, Cid]
    values: dict[str, list[Any] | None]


class StateGiven(Inputs):
    """An entry, or what is left of it."""

    live: LiveGiven | None = None
    tombstone: Cid | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> StateGiven:
        if (self.live is None) == (self.tombstone is None):
            raise ValueError("is neither live nor a tombstone, or both: give one of the two")
        return self

    def state(self) -> State:
        """As the rules take it."""
        if self.live is not None:
            return Live(self.live.at, self.live.changes, self.live.values)
        assert self.tombstone is not None
        return Tombstone(self.tombstone)


class MergeEntry(Inputs):
    """Two states of one entry, and the server where they meet."""

    incoming: StateGiven
    local: StateGiven
    local_server: str | None


def merge_entry(given: MergeEntry) -> dict[str, Any]:
    """The state that wins."""
    made = merge(given.incoming.state(), given.local.state())
    return {
        "outcome": made.outcome,
        "entry": _written(made.state),
        "conflict_entry_created": made.conflict_written_by(given.local_server),
    }


def _written(state: State) -> dict[str, Any]:
    if isinstance(state, Tombstone):
        return {"tombstone": list(state.at)}
    changes = {name: list(cid) for name, cid in state.changes.items()}
    return {"live": {"at": list(state.at), "changes": changes, "values": dict(state.values)}}


class EntryGiven(Inputs):
    """An entry without its values, or a tombstone."""

    at: Cid | None = None
    changes: dict[str, Cid] | None = None
    tombstone: Cid | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> EntryGiven:
        live = self.at is not None and self.changes is not None
        if live == (self.tombstone is not None):
            raise ValueError("is neither an entry (at, changes) nor a tombstone, or both: give one of the two")
        return self


class AttributesToSend(Inputs):
    """What is owed, and an entry."""

    ranges: Ranges
    entry: EntryGiven


def attributes_to_send(given: AttributesToSend) -> dict[str, Any]:
    """What of it the message carries."""
    at, tombstone = given.entry.at, given.entry.tombstone
    if tombstone is not None or at is None:
        return {"at": None, "sent": [], "tombstone": list(tombstone or ())}
    return {"at": list(at), "sent": sent(Live(at, given.entry.changes or {}), given.ranges), "tombstone": None}


class TombstoneReap(Inputs):
    """Tombstones by name (null: a live entry), and the cut-offs of the purges in their order."""

    entries: dict[str, Time | None]
    trim_ts: list[Time]


def tombstone_reap(given: TombstoneReap) -> dict[str, Any]:
    """Which go at which purge."""
    gone, left = reaped(given.entries, given.trim_ts)
    return {"reaped": gone, "left": list(left)}
