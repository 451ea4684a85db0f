"""Changes that only an earlier file of a server shows: its data were replaced since, or a deletion was forgotten unseen.

    B.json of the first snapshot    mail of an entry changed at 250 by B
    B.json of the last snapshot     B has another UUID, mail as it was at 0: B was refreshed before anybody pulled 250 from it
    A.json of the last snapshot     mail as it was at 0

A change that a later one of the attribute replaced, or the deletion of its entry, is without effect: no server lacks it. Nor is
anything told of an entry that may have been deleted since and forgotten, as every deletion is after a while.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.case.case import Case
from workbench.diagnosis.entry_names import names_of
from workbench.engine.states import LOOKED_AT, EntryStates, Lacked, differing, held_together, states_in, unlike
from workbench.intake.inputs import Input
from workbench.replication.entry.rules.entries import Ranges
from workbench.rules.vectors import Span
from workbench.rules.verdicts import SAYS
from workbench.systems import format_with
from workbench.topology.topology import EARLIER_SNAPSHOT, VECTOR, Replica, Row, Topology

CHANGE_STATE = "change_state"
"""The kind of evidence that this rests on."""

LACKS = "state_lacks"
"""The rule by which a change is missing (`workbench.rules.verdicts`)."""

FORGOTTEN_SINCE = "the servers that had the deletion have forgotten it since, as they do after a week"
REPLACED_SINCE = "an earlier file shows it, and no collected server has it any more"


@dataclass(frozen=True)
class ServerFile:
    """What one file shows of a server: its claims, and what time it was there."""

    replica: Replica
    file: Input
    ranges: Ranges
    now: int


@dataclass(frozen=True)
class GoneChange:
    """A change that earlier files show, and no present one.

    change      its row, with the server that showed it: its maker, if that is among them
    files       the earlier files that show it
    missed_by   servers whose vector covers it
    may_have    servers whose vector covers it and whose entries were not collected
    forgotten   a deletion old enough for the servers that had it to have forgotten it
    """

    change: Row
    files: Sequence[ServerFile]
    missed_by: Sequence[str]
    may_have: Sequence[str]
    forgotten: bool = False


def gone_changes(
    case: Case, shown: Topology, present: Sequence[ServerFile], without_entries: Sequence[tuple[str, Ranges]]
) -> list[GoneChange]:
    """What earlier files of servers of one domain show, and none of the present ones nor anything in its place.

    without_entries  the servers of the domain whose entries were not collected, with what they claim
    """
    earlier = list(_earlier_files(case, shown, present))
    if not earlier or not present:
        return []
    names = {one.replica.server for one in present}
    newest: dict[str, ServerFile] = {}
    for one in earlier:
        if one.replica.server not in names:
            newest[one.replica.server] = (
                one  # of a server that was not collected again its last file counts as the present one
            )
    last = [*present, *newest.values()]
    before = [one for one in earlier if one.replica.server in names]
    files = [*last, *before]
    states, digests = ([case.parts(name, one.file) for one in files] for name in ("states", "digests"))
    found: list[GoneChange] = []
    for buckets in held_together(differing(digests), LOOKED_AT):
        for numbers in held_together(unlike(states, buckets)):
            held = states_in(states, numbers)
            some = held.gone_since(
                len(last), _forgotten(shown, last, before), np.array([one.file.whole for one in last])
            )
            found += _told(case, shown, held, some, (last, before), len(present), without_entries)
    return found


def _earlier_files(case: Case, shown: Topology, present: Sequence[ServerFile]) -> Iterator[ServerFile]:
    """Files with the entries of servers of the same domain that are not the present ones, in the order of time."""
    assert shown.pulling is not None
    labels = list(case.snapshots)
    known = labels[: labels.index(shown.snapshot) + 1] if shown.snapshot in labels else []
    of_file: dict[tuple[str, str], list[Row]] = {}
    for row in (
        case.arrow("vectors").select(["snapshot", "file", "kind", "generation", "origin", "min", "max"]).to_pylist()
    ):
        if row["kind"] == "server":
            of_file.setdefault((row["snapshot"], row["file"]), []).append(row)
    domains = {one.replica.generation for one in present}
    now = {(one.file.snapshot, one.file.file) for one in present}
    clock = {one.replica.server: one.now for one in present}
    found = []
    for one in case.inputs:
        rows = of_file.get((one.snapshot, one.file))
        if not one.kind or not rows or one.snapshot not in known or (one.snapshot, one.file) in now:
            continue
        domain = next((row["generation"] for row in rows if row["generation"]), None)
        if domain not in domains or not any(part["table"] == "states" for part in one.parts):
            continue
        told = shown.pulling.now(one.facts)
        if one.snapshot == shown.snapshot and (told is None or told >= clock.get(one.server, 0)):
            continue
        vector = {row["origin"]: Span(row["min"], row["max"]) for row in rows if row["origin"] and row["min"]}
        own = one.facts.get("origins", {}).get(one.suffix or "")
        evidence = (format_with(one.kind).evidence, VECTOR)
        replica = Replica(one.server, one.suffix, own, domain, vector, evidence=evidence, told_in=one.file)
        halves = shown.system.halves
        ranges = {
            of: (halves(span.min)[0], halves(span.max)[0]) for of, span in vector.items() if span.min and span.max
        }
        time = told if told is not None else max((end for _, end in ranges.values()), default=0)
        found.append((known.index(one.snapshot), time, one.file, ServerFile(replica, one, ranges, time)))
    yield from (one for *_, one in sorted(found, key=lambda each: each[:3]))


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
    case: Case,
    shown: Topology,
    held: EntryStates,
    some: Lacked,
    files: tuple[Sequence[ServerFile], Sequence[ServerFile]],
    present: int,
    without_entries: Sequence[tuple[str, Ranges]],
) -> Iterator[GoneChange]:
    last, before = files
    assert shown.pulling is not None
    newest = max(one.now for one in last[:present])
    some = some[some.time <= newest]  # what is younger than all present files may be there by now
    if not len(some):
        return
    holders = held.holders(some)[len(last) :]
    lacks = [held.lacking(number, some) for number in range(present)]
    clock = {one.replica.server: one.now for one in last[:present]}
    names = names_of(case, [one.file for one in [*before, *last]], {held.entries[at] for at in some.entry.tolist()})
    for at in range(len(some)):
        time, origin = held.cid(some, at)
        having = [one for one, has in zip(before, holders, strict=True) if has[at]]
        maker = next((one for one in having if one.replica.origin == origin), having[-1])
        entry, attribute = held.entries[int(some.entry[at])], int(some.attribute[at])
        key = shown.system.order_key(origin, time, 0)
        row = {
            "server": maker.replica.server,
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
            having,
            [
                one.replica.server
                for number, one in enumerate(last[:present])
                if _covers(one.ranges, origin, time) and lacks[number][at]
            ],
            sorted(server for server, ranges in without_entries if _covers(ranges, origin, time)),
            attribute < 0 and all(time < before_that for before_that in cut),
        )


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
