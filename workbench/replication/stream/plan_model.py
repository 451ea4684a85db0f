"""A model of servers that replicate a stream of transactions: what each log has of it, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from workbench.replication.stream.diagnosis.appliers import Applied
from workbench.replication.stream.diagnosis.log_comparison import VOID, Streams
from workbench.replication.stream.diagnosis.not_given import not_given
from workbench.replication.stream.rules.repair_model import StreamModel
from workbench.rules.repair_model import ChangeGroup, Link, Server

ONLY_ON = "only on"
"""How the generation of a lot begins that one server alone holds."""


def only_there(streams: Streams) -> Iterator[tuple[str, str, str, int]]:
    """Server, origin, position and number of what only the log of that server has, wherever it stands there.

    Each is one transaction; what is only counted, for it is not listed any more, goes with the last that is.
    """
    for server, origin, _, count, positions in streams.alone():
        yield from _counted(server, origin, positions, count)
    for server, origin in streams.differences:
        source = streams.source_of(origin)
        if source is not None and source != server and not streams.is_open(origin):
            back = streams.between(server, source, origin)
            own = {lack.position for lack in back.difference.inside if lack.outcome is None}
            in_part = len(back.difference.inside) - len(own)
            yield from _counted(server, origin, sorted(own), back.counts["inside"] - in_part)


def _counted(server: str, origin: str, positions: Sequence[str], count: int) -> Iterator[tuple[str, str, str, int]]:
    rest = max(count - len(positions), 0)
    yield from ((server, origin, position, 1) for position in positions[:-1])
    yield from ((server, origin, position, 1 + rest) for position in positions[-1:])


def _all_listed(streams: Streams, server: str, origin: str) -> bool:
    """True if all that is known to be on its way to a server stands in a list."""
    both = streams.differences.get((server, origin))
    return both is not None and both.shared is not None and len(both.difference.behind) == both.counts["behind"]


def _suppliers(streams: Streams, told: Applied) -> list[str]:
    """Whose log a replica applies: its master's, or where no log numbers its commits, the known sources of what it has logged."""
    if told.source is not None or told.unmatched:
        return [told.source] if told.source else []
    known = {source.server for source in streams.sources.values() if source.known_by is not None}
    return sorted(known - {told.server})


def model_of_streams(streams: Streams) -> StreamModel:
    """Of a stream: a lot is a transaction that some log lacks, or has with another content than that of its source."""
    made: dict[tuple[str, str], tuple[int, set[str]]] = {}
    """(origin, position) -> its place, and who lacks it."""
    unlike: set[tuple[str, str, str]] = set()
    missed: set[tuple[str, str, str]] = set()
    taken: set[tuple[str, str, str]] = set()
    passed: dict[tuple[str, str], int] = {}
    apart: list[tuple[str, str, str]] = []
    """(server, origin, position) of what one server alone holds: nobody lacks it, and whoever throws it away shall be told."""
    system = streams.shown.system
    for (copy, origin), both in streams.differences.items():
        source = streams.source_of(origin)
        if both.shared is None or source in (None, copy):
            continue  # where it stands in the stream nobody can say
        assert source is not None
        passed[copy, origin] = both.shared.covers
        for lack in (*both.difference.inside, *both.difference.behind):
            made.setdefault((origin, lack.position), (lack.place, set()))[1].add(copy)
        missed |= {(copy, origin, lack.position) for lack in both.difference.inside}
        log = streams.logs[source]
        # What the log of the source has damaged, another log may give: it is needed before what follows.
        for damaged in () if streams.fetches(copy, source) else not_given(streams, copy, origin):
            if damaged.position is not None and damaged.holders:
                made.setdefault((origin, damaged.position), (damaged.place, set()))[1].add(copy)
                taken.add((copy, origin, damaged.position))
        for position, row in log.rows_of(origin, both.difference.conflicts).items():
            apart.append((copy, origin, position))
            if row["outcome"] in VOID:
                continue  # the source took it back: nobody lacks that
            place = row["commit" if log.by_commit else "last"]
            made.setdefault((origin, position), (place, set()))[1].add(copy)
            unlike.add((copy, origin, position))
    sources = {origin: streams.source_of(origin) for origin in streams.origins}
    lots = [ChangeGroup(origin, position, position) for origin, position in made]
    servers = {
        one.server: Server(
            one.server,
            next((origin for origin, of in sources.items() if of == one.server), None),
            None,
            one.seen(),
            None,
        )
        for one in streams.shown.replicas
        if one.server in streams.logs
    }
    maybe = set[tuple[str, int]]()
    for number, ((origin, _), (place, lacking)) in enumerate(made.items()):
        for name, server in servers.items():
            if name in lacking:
                continue
            if sources[origin] == name or passed.get((name, origin), -1) >= place:
                server.holds.add(number)
            elif _all_listed(streams, name, origin) or (name, origin) not in passed:
                # What it surely lacks is listed, and this is not; or nothing tells what it has of the origin: nothing is applied.
                server.holds.add(number)
                maybe.add((name, number))
    for told in streams.applied:
        if told.server not in servers and told.source in servers:  # what it lacks, only its own queue tells
            servers[told.server] = Server(told.server, None, None, {}, None, set(range(len(lots))))
    places = [place for place, _ in made.values()]
    alone = dict.fromkeys(apart, 1)
    for copy, origin, position, count in only_there(streams):
        alone[copy, origin, position] = max(count, alone.get((copy, origin, position), 0))
    for (copy, origin, position), count in alone.items():
        servers[copy].holds.add(len(lots))
        lots.append(ChangeGroup(origin, position, position, count, within=f"{ONLY_ON} {copy}"))
        places.append(-1)
    links = [
        Link(source, told.server, not told.stopped)
        for told in streams.applied
        if told.server in servers
        for source in _suppliers(streams, told)
        if source in servers
    ]

    number_of = {key: number for number, key in enumerate(made)}

    def numbered(found: Set[tuple[str, str, str]]) -> frozenset[tuple[str, int]]:
        return frozenset(
            (name, number_of[origin, position])
            for name, origin, position in found
            if name in servers and (origin, position) in number_of
        )

    return StreamModel(
        lots,
        servers,
        links,
        system.origin_of,
        lambda origin, number: system.order_key(origin, (1 << 31) - 1, number),
        places=places,
        covers=passed,
        maybe=frozenset(maybe),
        missed=numbered(missed),
        unlike=numbered(unlike),
        taken=numbered(taken),
    )
