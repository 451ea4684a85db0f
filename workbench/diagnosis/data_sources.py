"""What a server cannot have with the data that came whole from another one: what that one lacked itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.evidence_grounds import Proofs
from workbench.engine.positions import NONE, Positions, union
from workbench.rules.verdicts import Proving, Reset
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica


@dataclass
class JudgedServer:
    """What is known of one server of a suffix before its changes are judged; `missing` is what was found to be missing.

    reach    by origin, from where on its log shows every change, as marks tell behind which nothing can have been trimmed
    unclear  changes of which a line speaks that may be of another suffix: nobody knows whether it lacks them
    """

    replica: Replica
    source: int | None
    seen: dict[str, str]
    marks: dict[str, str]
    first: dict[str, str]
    last: dict[str, str]
    resets: list[Reset]
    reach: dict[str, str] = field(default_factory=dict)
    missing: dict[str, Positions] = field(default_factory=dict)
    unclear: Positions = NONE


ProofsOf = Callable[[JudgedServer], Proofs]


def names_of(servers: Iterable[JudgedServer]) -> set[str]:
    """The servers that are judged together; others of their suffix have data of another beginning."""
    return {one.replica.server for one in servers}


def untrimmed(evidence: Evidence, replica: Replica, proving: Proving, marks: Mapping[str, str]) -> dict[str, str]:
    """Those marks of a log that was made anew, by origin, behind which no change can have been trimmed since."""
    read = evidence.began.get(replica.server)
    facts = [one.facts for one in evidence.case.inputs if one.server == replica.server]
    several = len({one.suffix for one in evidence.shown.replicas if one.server == replica.server}) > 1
    records = sum(one["count"] for one in replica.log.facts.get("by_origin", {}).values()) if replica.log else 0

    def trims(mark: str) -> bool:
        made = evidence.system.moment(mark)
        return proving.trimmed(facts, replica.suffix, several, records, read - made if read and made else None)

    return {origin: mark for origin, mark in marks.items() if not trims(mark)}


def sources_of(proofs: Proofs, servers: Sequence[JudgedServer], proofs_of: ProofsOf) -> list[JudgedServer]:
    """The servers that the data of a server may have come from; none if the data of one of them were replaced since.

    Then what that one lacks now says nothing of what it lacked.
    """
    names = {one.server for one in proofs.filled_by}
    found = [one for one in servers if one.replica.server in names]
    kept = proofs.initialised and all(proofs_of(one).kept_since(proofs.initialised.began) for one in found)
    return found if kept and len(found) == len(names) else []


def not_seen(proofs: Proofs, sources: Sequence[JudgedServer], some: Positions) -> Numbers:
    """For each change: does it lie behind what each of these servers has seen of its origin until now?"""
    found = np.full(len(some), bool(sources))
    for source in sources:
        behind = np.zeros(len(some), bool)
        for origin, seen in source.seen.items():
            top = max(seen, source.replica.later.get(origin, ""))
            behind |= (some.origin == proofs.evidence.numbers.get(origin, -1)) & ~proofs.up_to(some, top)
        found &= behind
    return found


def not_then(proofs: Proofs, servers: Sequence[JudgedServer], proofs_of: ProofsOf, some: Positions) -> Numbers:
    """For each change: is it shown that none of those had it which may have filled the server?"""
    sources = sources_of(proofs, servers, proofs_of)
    return np.asarray(not_seen(proofs, sources, some) | _got_later(proofs, sources, proofs_of, some), bool)


_FEW = 10_000
_SECOND = timedelta(seconds=1)
"""So many changes are looked up in the logs of operations."""


def _got_later(proofs: Proofs, sources: Sequence[JudgedServer], proofs_of: ProofsOf, some: Positions) -> Numbers:
    """For each of a few changes: do the logs of all these servers show that they took it only after the server was filled?

    a filled c at 21:06:33, and took the change of c that b had at 21:07:14, both by the clock of a: a did not send it. If the
    change had come with the data of a, b sent it once more: all of an origin is sent again when the origin was cleaned.
    """
    evidence, until = proofs.evidence, proofs.filled_until
    if not sources or not 0 < len(some) <= _FEW:
        return np.zeros(len(some), bool)
    keys = some.keys(evidence.system, evidence.names)
    where = pc.field("position").isin(pa.array(keys, pa.string())) & (pc.field("outcome") == "applied")
    late: set[str] | None = None
    for source in sources:
        rows = evidence.told("applied", ["position", "at"], where & pc.field("at").is_valid(), source.replica.server)
        first = rows.group_by("position").aggregate([("at", "min")]).to_pylist()
        # When it was filled is told in whole seconds, and a line of a log in fractions of one.
        mine = {row["position"] for row in first if row["at_min"] >= until[source.replica.server] + _SECOND}
        if own := {origin for server, origin in evidence.former if server == source.replica.server}:
            # Once it was no supplier any more it was sent what it had made before.
            mine = {key for key in mine if evidence.system.origin_of(key) not in own}
        with_data = proofs_of(source).came_with_data(some, source.marks)
        mine -= {key for key, came in zip(keys, with_data.tolist(), strict=True) if came}
        late = mine if late is None else late & mine
    return np.array([key in (late or ()) for key in keys], bool)


def came_without(
    proofs: Proofs,
    servers: Sequence[JudgedServer],
    proofs_of: ProofsOf,
    some: Positions,
    has: Callable[[JudgedServer, Positions], Numbers],
) -> tuple[Numbers, Numbers]:
    """For each change: do all servers lack it that the data of this one may have come from? And is it doubtful that they had it?

    A vector may claim more than its server has. If a change is missing on a server judged so far, or may be, no claim to it
    counts. What is above the vector of a server is missing there in any case.
    """
    without, doubted = np.zeros(len(some), bool), np.zeros(len(some), bool)
    if proofs.initialised is None:
        return without, doubted
    sources = sources_of(proofs, servers, proofs_of)
    for one in servers:
        doubted |= some.within(union(one.missing.values())) | some.within(one.unclear)
    unseen = not_then(proofs, servers, proofs_of, some)
    doubted |= unseen
    if not sources or not doubted.any():
        return without, doubted
    without = doubted.copy()
    for source in sources:
        without &= some.within(union(source.missing.values())) | unseen
    left = np.flatnonzero(doubted & ~without)
    if len(left):
        there = np.ones(len(left), bool)
        for source in sources:
            there &= has(source, some[left])
        doubted[left[there]] = False
    return without, doubted
