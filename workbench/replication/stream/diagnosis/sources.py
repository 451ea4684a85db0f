"""Whose log is the source of an origin: what a person names, what the evidence shows, or nobody knows.

A server id is 1 on every server that was not told otherwise, so it names no server. Three equal logs and one more, all of id 1:

    a  1 2 3        4 is d's own, or a, b and c lack it: which one, no log tells. It is errant until somebody names the source.
    b  1 2 3
    c  1 2 3
    d  1 2 3 4
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.engine.streams import StreamLog
from workbench.model import Finding, counted, listed
from workbench.replication.stream.rules.segments import EVENT
from workbench.rules.assumptions import SOURCE_BY_START, SOURCE_NAMED, SOURCE_OPEN
from workbench.topology.topology import Replica

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

PERSON, EVENTS, APPLIERS, ONLY_LOG = "person", "events", "appliers", "only_log"
"""How the source of an origin is known: a person named it; its log alone holds the starts and stops of that server; all other
servers say that they apply what another one committed; no other log has transactions of it."""


@dataclass(frozen=True)
class StreamSource:
    """The log that others are held against, and how it is known that it is the source; None: nobody knows.

    Where nobody knows it is the log with most of the origin, and what no other log has of it counts for nothing.
    """

    server: str
    known_by: str | None

    @property
    def assumes(self) -> tuple[str, ...]:
        """What is taken for granted of it, as codes."""
        return {PERSON: (SOURCE_NAMED,), EVENTS: (SOURCE_BY_START,), None: (SOURCE_OPEN,)}.get(self.known_by, ())


def named_by_person(replicas: Iterable[Replica]) -> dict[str, str]:
    """Origin -> the server that is named as its source; where two are named for one origin, nobody told (DUPLICATE_ORIGIN)."""
    named: dict[str, set[str]] = {}
    for replica in replicas:
        if replica.origin:
            named.setdefault(replica.origin, set()).add(replica.server)
    return {origin: next(iter(servers)) for origin, servers in named.items() if len(servers) == 1}


def source_of(
    origin: str, logs: Mapping[str, StreamLog], named: Mapping[str, str], applying: Collection[str]
) -> StreamSource | None:
    """The source of an origin; None: no log has anything of it. `applying` are servers that say they apply from a master."""
    having = {name: log.committed.get(origin, 0) for name, log in logs.items() if origin in log.sums}
    if not having:
        return None
    if named.get(origin) in having:
        return StreamSource(named[origin], PERSON)
    if len(having) == 1:
        return StreamSource(next(iter(having)), ONLY_LOG)
    started = [name for name in having if logs[name].sums[origin].outcomes[EVENT]]
    if len(started) == 1 and _all_begin_with_its_start(logs, having, started[0], origin):
        return StreamSource(started[0], EVENTS)
    masters = [name for name in having if name not in applying]
    if len(masters) == 1:
        return StreamSource(masters[0], APPLIERS)
    return StreamSource(max(sorted(having), key=having.__getitem__), None)


def with_sources(findings: Iterable[Finding], sources: Mapping[str, StreamSource]) -> Iterator[Finding]:
    """The same findings, those that rest on the source of an origin with what they take for granted of it."""
    for one in findings:
        source = sources.get(one.origin or "")
        rests = source is not None and one.code in _ON_THE_SOURCE
        yield replace(one, assumes=(*one.assumes, *source.assumes)) if source and rests else one


_ON_THE_SOURCE = frozenset({"MISSED_CHANGE", "STRANDED_CHANGE", "PENDING_CHANGES"})


def _all_begin_with_its_start(logs: Mapping[str, StreamLog], names: Collection[str], alone: str, origin: str) -> bool:
    """True if a log begins with a start of that server, and all others with the transaction that follows it.

    A start in the middle proves nothing: a replica that was told no server id notes its own under that of its source. And a log
    that begins elsewhere may have had a start before.

        a  start 1 2 3     a is the source        a  1 2 3           nobody knows
        b        1 2 3                            b  1 start 2 3
    """
    first = logs[alone].sums[origin].first
    if first is None or not logs[alone].begins_with_event(origin):
        return False
    firsts = [logs[name].sums[origin].first for name in names]
    return all(one is not None and one[1] == first[1] for one in firsts)


def perhaps_lacking(context: DetectorContext, suffix: str | None, source: str, server: str) -> str:
    """Why no data are copied from a server of which nothing tells whether it has what the other one has; empty: that is known."""
    copied_over, counts = context.replica(server, suffix), Counter[str]()
    for row in context.verdicts.unknown:
        if (row["server"], row["suffix"]) == (source, suffix) and copied_over and copied_over.top(row["origin"]):
            counts[row["origin"]] += row["count"] or 1
    if not counts:
        return ""
    what = listed([f"{counted(count, 'transaction')} of server {origin}" for origin, count in sorted(counts.items())])
    return f"nothing tells whether {source} has what {server} has of {what}: its log shows nothing of that: collect more of it"
