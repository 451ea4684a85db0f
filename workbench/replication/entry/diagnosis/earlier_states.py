"""Changes that only an earlier file of a server shows: its data were replaced since, or a deletion was forgotten unseen.

    B.json of the first snapshot    mail of an entry changed at 250 by B
    B.json of the last snapshot     B has another UUID, mail as it was at 0: B was refreshed before anybody pulled 250 from it
    A.json of the last snapshot     mail as it was at 0

The same where B.json of the last snapshot is of another domain: who is refreshed into that keeps nothing of its former one.

A change that a later one of the attribute replaced, or the deletion of its entry, is without effect: no server lacks it. Nor is
anything told of an entry that may have been deleted since and forgotten, as every deletion is after a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.case.case import Case
from workbench.diagnosis.entry_names import names_of
from workbench.engine.states import (
    LOOKED_AT,
    EntryStates,
    Lacked,
    differing,
    held_together,
    states_in,
    states_of_named,
    unlike,
)
from workbench.replication.entry.diagnosis.server_files import ServerFile, earlier_files, own_origins
from workbench.replication.entry.rules.entries import Ranges
from workbench.rules.verdicts import SAYS
from workbench.tables import Numbers
from workbench.topology.topology import EARLIER_SNAPSHOT, Row, Topology

CHANGE_STATE = "change_state"
"""The kind of evidence that this rests on."""

LACKS = "state_lacks"
"""The rule by which a change is missing (`workbench.rules.verdicts`)."""

FORGOTTEN_SINCE = "the servers that had the deletion have forgotten it since, as they do after a week"
REPLACED_SINCE = "an earlier file shows it, and no collected server has it any more"


@dataclass(frozen=True)
class GoneChange:
    """A change that earlier files show, and no present one.

    change        its row, with a server that showed it and does not any more: its maker, if that is among them
    files         the earlier files of that server that show it
    last          the last file of that server, which does not: in another domain, if it is there now
    missed_by     servers whose vector covers it
    may_have      servers whose vector covers it and whose entries were not collected
    not_again     last files of servers that were not collected again, and that show it or may have received it since
    shown_by      which of them show it
    maker_unseen  no file is known to be of the server that made it
    forgotten     a deletion old enough for the servers that had it to have forgotten it
    """

    change: Row
    files: Sequence[ServerFile]
    last: ServerFile
    missed_by: Sequence[str]
    may_have: Sequence[str]
    not_again: Sequence[ServerFile] = ()
    shown_by: Sequence[ServerFile] = ()
    maker_unseen: bool = False
    forgotten: bool = False


@dataclass(frozen=True)
class _Files:
    """The files that are compared.

    last      the last file of each server: those of the servers that were collected come first, then those of the servers that
              are there without telling their domain, then those of the servers that were not collected again
    before    the others, in the order of time
    moved     the present file of each server that is in another domain now
    present   how many of the last files are of servers that were collected
    closed    how many of the last files come before those of the servers that were not collected again
    """

    last: Sequence[ServerFile]
    before: Sequence[ServerFile]
    moved: Mapping[str, ServerFile]
    present: int
    closed: int

    def last_of(self, server: str) -> int | None:
        """The number of the last file of a server; None: it is in another domain now."""
        return next((number for number, one in enumerate(self.last) if one.replica.server == server), None)

    def last_file(self, server: str) -> ServerFile:
        """The last file of a server."""
        number = self.last_of(server)
        return self.moved[server] if number is None else self.last[number]

    def lost_in(self, server: str, after: ServerFile) -> ServerFile:
        """The first file of a server behind one that shows a change, the last one that does."""
        mine = [one for one in self.before if one.replica.server == server]
        later = mine[next(number for number, one in enumerate(mine) if one is after) + 1 :]
        return later[0] if later else self.last_file(server)


def gone_changes(
    case: Case,
    shown: Topology,
    present: Sequence[ServerFile],
    without_entries: Sequence[tuple[str, Ranges]],
    elsewhere: Sequence[ServerFile] = (),
) -> list[GoneChange]:
    """What earlier files of servers of one domain show, and none of the present ones nor anything in its place.

    without_entries  the servers of the domain whose entries were not collected, with what they claim
    elsewhere        present files of the servers of other domains
    """
    earlier = list(earlier_files(case, shown, present))
    if not earlier or not present:
        return []
    names = {one.replica.server for one in present}
    newest = {one.replica.server: one for one in earlier if one.replica.server not in names}
    blind = {server for server, _ in without_entries}
    moved = {one.replica.server: one for one in elsewhere if one.replica.server in newest}
    there = {one.server for one in shown.replicas if one.claims} - blind - moved.keys()
    untold = [one for server, one in newest.items() if server in there]
    away = [one for server, one in newest.items() if server not in there and server not in moved]
    last = [*present, *untold, *away]
    before = [one for one in earlier if all(one is not other for other in [*untold, *away])]
    files = _Files(last, before, moved, len(present), len(present) + len(untold))
    everything = [*last, *before]
    states, digests = ([case.parts(name, one.file) for one in everything] for name in ("states", "digests"))
    found: list[GoneChange] = []
    for buckets in held_together(differing(digests), LOOKED_AT):
        for numbers in held_together(unlike(states, buckets)):
            held = states_in(states, numbers)
            whole = np.array([one.file.whole for one in last])
            some = held.gone_since(files.closed, len(last), _forgotten(shown, last, before), whole)
            found += _told(case, shown, held, some, files, dict(without_entries))
    return found


def _forgotten(shown: Topology, last: Sequence[ServerFile], before: Sequence[ServerFile]) -> np.ndarray[Any, Any]:
    """Per earlier file and server: up to when nobody had deleted what it shows; and before when a deletion may be forgotten.

    Of a snapshot that has all servers no entry was deleted that no file of it shows as deleted.
    """
    assert shown.pulling is not None
    found = np.full((len(before), len(last), 2), -1, np.int64)
    for number, one in enumerate(before):
        same = [other for other in before if other.file.snapshot == one.file.snapshot]
        all_there = {other.replica.server for other in same} >= {other.replica.server for other in last}
        if all_there and one.file.snapshot != shown.snapshot:
            found[number, :, 0] = min(other.now for other in same)
        found[number, :, 1] = [other.now - shown.pulling.remember for other in last]
    return found


def _told(
    case: Case, shown: Topology, held: EntryStates, some: Lacked, files: _Files, without_entries: Mapping[str, Ranges]
) -> Iterator[GoneChange]:
    assert shown.pulling is not None
    last, before, present = files.last, files.before, files.last[: files.present]
    newest = max(one.now for one in present)
    some = some[some.time <= newest]  # what is younger than all present files may be there by now
    if not len(some):
        return
    holders = held.holders(some)
    lacks = [held.lacking(number, some) for number in range(len(present))]
    clock = {one.replica.server: one.now for one in [*last, *files.moved.values()]}
    kept = _kept(case, held, some, files.moved.values())
    names = names_of(case, [one.file for one in [*before, *last]], {held.entries[at] for at in some.entry.tolist()})
    known = own_origins(case, shown, last[0].replica.suffix)
    labels = list(case.snapshots)
    numbers = {one.replica.server: files.last_of(one.replica.server) for one in [*last, *before]}
    in_part = [(number, one.ranges) for number, one in enumerate(last) if not one.file.whole]
    for at in range(len(some)):
        time, origin = held.cid(some, at)
        if any(held.at[number][some.entry[at]] < 0 and _covers(ranges, origin, time) for number, ranges in in_part):
            continue  # it may be in what could not be read
        having = [one for one, has in zip(before, holders[len(last) :], strict=True) if has[at]]
        ends_without = {name: (of := numbers[name]) is None or not holders[of][at] for name in _names(having)}
        losing = [one for one in having if ends_without[one.replica.server]]
        if not losing or kept[at]:  # the last file of every server that had it shows it
            continue
        maker = next((one for one in losing if one.replica.origin == origin), losing[-1])
        server = maker.replica.server
        ends = {one.replica.server: one for one in losing}
        lost = {name: labels.index(files.lost_in(name, one).file.snapshot) for name, one in ends.items()}
        shown_by = [one for number, one in enumerate(last) if number >= files.closed and holders[number][at]]
        away = [one for one in last[files.closed :] if one.replica.server not in without_entries]
        entry, attribute = held.entries[int(some.entry[at])], int(some.attribute[at])
        key = shown.system.order_key(origin, time, 0)
        row = {
            "server": server,
            "suffix": last[0].replica.suffix,
            "origin": origin,
            "position": shown.system.show(key),
            "operation": "delete" if attribute < 0 else None,
            "target": names.get(entry, entry),
            "entry": entry,
            "attribute": None if attribute < 0 else held.attributes[attribute],
        }
        cut = [clock[one.replica.server] - shown.pulling.remember for one in having]
        yield GoneChange(
            row,
            [one for one in having if one.replica.server == server],
            files.last_file(server),
            [
                one.replica.server
                for number, one in enumerate(present)
                if _covers(one.ranges, origin, time) and lacks[number][at]
            ],
            sorted(name for name, ranges in without_entries.items() if _covers(ranges, origin, time)),
            [one for one in away if one in shown_by or _may_have_received(one, lost, labels)],
            shown_by,
            origin not in known,
            attribute < 0 and all(time < before_that for before_that in cut),
        )


def _names(files: Iterable[ServerFile]) -> set[str]:
    return {one.replica.server for one in files}


def _kept(case: Case, held: EntryStates, some: Lacked, files: Iterable[ServerFile]) -> Numbers:
    """Which of these changes present files of other domains show, all the same."""
    found = np.zeros(len(some), bool)
    entries = sorted({held.entries[at] for at in some.entry.tolist()})
    columns = ["entry", "attribute", "origin", "hi"]
    for one in files:
        rows = states_of_named(case.parts("states", one.file), entries, columns).to_pylist()
        shows = {(row["entry"], row["attribute"] or None, row["hi"], row["origin"]) for row in rows}
        for at in np.flatnonzero(~found).tolist():
            attribute = int(some.attribute[at])
            name = None if attribute < 0 else held.attributes[attribute]
            found[at] = (held.entries[int(some.entry[at])], name, *held.cid(some, at)) in shows
    return found


def _may_have_received(one: ServerFile, lost: Mapping[str, int], labels: Sequence[str]) -> bool:
    """True of a server that was not collected again, if another one still had the change after its last file was written.

    lost  server that had it -> the number of the first snapshot in which it has it no more
    """
    number = labels.index(one.file.snapshot)
    return any(number < later for server, later in lost.items() if server != one.replica.server)


def _covers(ranges: Ranges, origin: str, time: int) -> bool:
    return origin in ranges and time <= ranges[origin][1]


def missed_rows(one: GoneChange) -> Iterator[dict[str, Any]]:
    """A row of the missing changes for each server that misses a change which only earlier files show."""
    for server in one.missed_by:
        yield {
            **one.change,
            "server": server,
            "held_by": [],
            "evidence": [CHANGE_STATE, EARLIER_SNAPSHOT],
            "cause": None if one.forgotten else "CHANGES_THROWN_AWAY",
            "reasons": [FORGOTTEN_SINCE if one.forgotten else REPLACED_SINCE],
            "rule": LACKS,
            "says": SAYS[LACKS],
        }
