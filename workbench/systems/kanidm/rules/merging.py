"""Which state of an entry wins where two servers meet, what of an entry is sent, and when a tombstone is gone for good.

An entry keeps when it was created and, of each attribute, only the last change: there is no log of operations. So the order
in which states arrive does not matter, and merging is the same from both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.replication.entry.rules.entries import Cid, Ranges


@dataclass(frozen=True)
class Live:
    """An entry that exists: when it was created, the last change of each attribute, and the values that are there.

    An attribute with a change and without values was deleted.
    """

    at: Cid
    changes: Mapping[str, Cid] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tombstone:
    """What is left of an entry that was deleted."""

    at: Cid


State = Live | Tombstone

MERGED, KEPT_LOCAL, KEPT_INCOMING, TOMBSTONE = "merged", "kept_local", "kept_incoming", "tombstone"


class Merged(NamedTuple):
    """What becomes of two states of one entry; `loser`: the creation that is turned into a conflict entry, if one is."""

    outcome: str
    state: State
    loser: Cid | None = None

    def conflict_written_by(self, server: str | None) -> bool:
        """True if it falls to that server to write the conflict entry: it made the creation that lost."""
        return self.loser is not None and self.loser[1] == server


def merge(incoming: State, local: State) -> Merged:
    """A tombstone beats everything, of two the earlier stays; of two creations the earlier one stays, whole; else of each
    attribute the later change, a deletion too.
    """
    if isinstance(incoming, Tombstone) or isinstance(local, Tombstone):
        return Merged(TOMBSTONE, min((one for one in (incoming, local) if isinstance(one, Tombstone)), key=_at))
    if incoming.at != local.at:
        first, second = sorted((incoming, local), key=_at)
        return Merged(KEPT_INCOMING if first is incoming else KEPT_LOCAL, _shown(first), second.at)
    changes, values = dict(local.changes), dict(local.values)
    for name, cid in incoming.changes.items():
        if name not in changes or cid > changes[name]:
            changes[name] = cid
            values[name] = incoming.values.get(name)
    return Merged(MERGED, _shown(Live(local.at, changes, values)))


def _at(state: State) -> Cid:
    return state.at


def _shown(state: Live) -> Live:
    return Live(state.at, state.changes, {name: some for name, some in state.values.items() if some is not None})


def sent(state: State, owed: Ranges) -> list[str]:
    """The attributes of an entry that a message carries: those whose last change is owed. A tombstone goes as it is."""
    if isinstance(state, Tombstone):
        return []
    return sorted(
        name
        for name, (time, origin) in state.changes.items()
        if origin in owed and owed[origin][0] < time <= owed[origin][1]
    )


def reaped(tombstones: Mapping[str, int | None], cut_offs: Iterable[int]) -> tuple[list[list[str]], Sequence[str]]:
    """At each cut-off the tombstones that go for good (those strictly before it), and what is left; None: a live entry."""
    left = dict(tombstones)
    gone = []
    for cut_off in cut_offs:
        gone.append(sorted(name for name, time in left.items() if time is not None and time < cut_off))
        for name in gone[-1]:
            del left[name]
    return gone, sorted(left)
