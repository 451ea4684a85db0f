"""A model of servers that replicate a stream of transactions: what each log has of it, and what it lacks."""

from __future__ import annotations

from workbench.diagnosing.by_stream import Streams
from workbench.rules.mending import Link, Lot, Server
from workbench.rules.streamed import StreamModel


def model_of_streams(streams: Streams) -> StreamModel:
    """Of a stream: a lot is a transaction that some log lacks, or the last one that a log has of that of its source."""
    made: dict[tuple[str, str], tuple[int, set[str]]] = {}
    """(origin, position) -> its place, and who lacks it."""
    unlike: set[tuple[str, str]] = set()
    passed: dict[tuple[str, str], int] = {}
    system = streams.shown.system
    for (copy, origin), both in streams.differences.items():
        source = streams.source_of(origin)
        if both.shared is None or source is None:
            continue  # where it stands in the stream nobody can say
        passed[copy, origin] = both.shared.covers
        if both.shared.last is not None:
            made.setdefault((origin, both.shared.last), (both.shared.covers, set()))
        for lack in (*both.difference.inside, *both.difference.behind):
            made.setdefault((origin, lack.position), (lack.place, set()))[1].add(copy)
        log = streams.logs[source]
        for position, row in log.rows_of(origin, both.difference.conflicts).items():
            place = row["commit" if log.by_commit else "last"]
            made.setdefault((origin, position), (place, set()))[1].add(copy)
            unlike.add((origin, position))
    sources = {origin: streams.source_of(origin) for origin in streams.origins}
    lots = [Lot(origin, position, position) for origin, position in made]
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
    for number, ((origin, _), (place, lacking)) in enumerate(made.items()):
        for name, server in servers.items():
            if name not in lacking and (sources[origin] == name or passed.get((name, origin), -1) >= place):
                server.holds.add(number)
    for told in streams.applied:
        if told.server not in servers and told.source in servers:  # what it lacks, only its own queue tells
            servers[told.server] = Server(told.server, None, None, {}, None, set(range(len(lots))))
    places = [place for place, _ in made.values()]
    for (copy, origin), both in streams.differences.items():
        for position in both.difference.errant:  # nobody lacks it, and whoever throws it away shall be told
            servers[copy].holds.add(len(lots))
            lots.append(Lot(origin, position, position, within=f"only on {copy}"))
            places.append(-1)
    links = [
        Link(told.source, told.server, not told.stopped)
        for told in streams.applied
        if told.source in servers and told.server in servers
    ]
    return StreamModel(
        lots,
        servers,
        links,
        system.origin_of,
        lambda origin, number: system.order_key(origin, (1 << 31) - 1, number),
        places=places,
        unlike=frozenset(number for number, key in enumerate(made) if key in unlike),
    )
