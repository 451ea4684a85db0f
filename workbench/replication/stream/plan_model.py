"""A model of servers that replicate a stream of transactions: what each log has of it, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.replication.stream.diagnosis.appliers import Applied
from workbench.replication.stream.diagnosis.log_comparison import VOID, Streams
from workbench.replication.stream.diagnosis.not_given import not_given
from workbench.replication.stream.rules.repair_model import StreamModel
from workbench.rules.repair_model import ChangeGroup, Link, MissingAt, Model, Server

CONFLICT = "TXN_CONFLICT"
ONLY_ON = "only on"
"""How the generation of a lot begins that one server alone holds."""


class Beside(NamedTuple):
    """What a model does not know of a server: by how much more is missing and pending there.

    behind_gap, held  of what its queue says that it waits for: what stands behind a gap, and what a thread that stands still
                      keeps; None: no queue tells
    """

    missing: int = 0
    pending: int = 0
    behind_gap: int | None = None
    held: int = 0


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


def as_counted(found: Verdicts, rows: Iterable[dict[str, Any]]) -> dict[str, Beside]:
    """Put the numbers of the diagnosis into rows of what each server lacks; server -> by how much they differ from the model's.

    It knows nothing of what the log with most of an origin lacks while nobody knows the source, and takes for lacking what is
    there with another content.
    """
    beside: dict[str, Beside] = {}
    for row in rows if found.streams is not None else ():
        missing = sum(one["server"] == row["server"] for one in found.missing)
        waits = [one for one in found.pending if one["server"] == row["server"]]
        pending, behind, held = (sum(one.get(key, 0) for one in waits) for key in ("count", "behind_gap", "held"))
        queued = any("queued" in one for one in waits)
        if "missing" not in found.cut():
            more = missing - row["missing"], pending - row["pending"]
            beside[row["server"]] = Beside(*more, behind if queued else None, held)
            row["missing"], row["pending"] = missing, pending
    return beside


def add_beside(row: dict[str, Any], beside: Mapping[str, Beside], done: Model) -> None:
    """Count so what is lacking when all is done, too; an applier that runs brings what waits before what its queue lacks."""
    more = beside.get(row["server"], Beside())
    arrives = any(link.runs and link.consumer == row["server"] for link in done.links)
    row["missing"] = max(row["missing"] + more.missing, 0)
    server = done.servers.get(row["server"])
    if more.behind_gap is None:
        row["pending"] = max(row["pending"] + more.pending, 0)
    elif server is None or server.source is None:  # of one that got all data its queue tells nothing any more
        row["pending"] = more.behind_gap + (0 if arrives else more.held)


def conflict_code(model: Model, lacks: Iterable[MissingAt]) -> str:
    """The code of the need of a server that lacks nothing but what it holds with another content; empty: it lacks more."""
    unlike = model.unlike if isinstance(model, StreamModel) else frozenset()
    return CONFLICT if {(lack.server, lack.lot) for lack in lacks} <= unlike else ""


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


def not_judged(context: DetectorContext, suffix: str | None, done: Model | None) -> int:
    """How many of the stretches that nobody can judge are open when all is done.

    Of what the log of its source has damaged, a plan takes what another log has whole.
    """
    given, show = set[tuple[str, str, str]](), context.topology.system.show
    unknown = [one for one in context.verdicts.unknown if one["suffix"] == suffix]
    for server, number in done.taken if isinstance(done, StreamModel) else ():
        if done is not None and number in done.servers[server].holds:
            given.add((server, done.lots[number].origin, show(done.lots[number].last)))
    return sum(one["from"] != one["to"] or (one["server"], one["origin"], one["from"]) not in given for one in unknown)
