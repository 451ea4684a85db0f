"""Which files of all snapshots are of one server: its UUID tells it, whatever the file is called; else its name.

s1 B.json, UUID b    s2 B2.json, UUID b                   B2 was called B
s1 B.json, UUID b    s2 B.json, UUID x                    B was refreshed
s1 B.json, UUID b    s2 B.json, UUID x; C.json, UUID b    C was called B; B is another server
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.case.case import Case
from workbench.intake.inputs import Input
from workbench.replication.entry.rules.entries import Ranges
from workbench.rules.vectors import Span
from workbench.systems import format_with
from workbench.topology.topology import VECTOR, Replica, Row, Topology


@dataclass(frozen=True)
class ServerFile:
    """What one file shows of a server: its claims, and what time it was there."""

    replica: Replica
    file: Input
    ranges: Ranges
    now: int


def own_origins(case: Case, shown: Topology, suffix: str | None) -> set[str]:
    """The origins that servers had as their own in any file up to this snapshot."""
    known = _known(case, shown)
    found = {one.origin for one in shown.replicas if one.suffix == suffix and one.origin}
    for one in case.inputs:
        if one.snapshot in known and (own := own_of(one)):
            found.add(own)
    return found


def earlier_files(case: Case, shown: Topology, present: Sequence[ServerFile]) -> Iterator[ServerFile]:
    """Files with the entries of servers of the same domain that are not the present ones, in the order of time.

    Each with the name that its server has now, or had in its last file. A file that does not tell its domain is of the only one
    that others tell.
    """
    assert shown.pulling is not None
    now = {(one.file.snapshot, one.file.file) for one in present}
    clock = {one.replica.server: one.now for one in present}

    def told_earlier(one: Input) -> bool:
        if (one.snapshot, one.file) in now or not any(part["table"] == "states" for part in one.parts):
            return False
        told = shown.pulling.now(one.facts) if shown.pulling else None
        return one.snapshot != shown.snapshot or (told is not None and told < clock.get(one.server, 0))

    files = _read(case, shown, told_earlier)
    domains = {each.replica.generation for each in [*files, *present]} | {each.generation for each in shown.replicas}
    told_domains = domains - {None}
    only = next(iter(told_domains)) if len(told_domains) == 1 else None
    mine = {each.replica.generation or only for each in present}
    mine = mine - {None} or mine
    there = [(each.server, each.origin, shown.snapshot) for each in shown.replicas if each.claims]
    names = _present_names([*((each.file.server, each.replica.origin, each.file.snapshot) for each in files), *there])
    for each, name in zip(files, names, strict=False):
        if (each.replica.generation or only) in mine:
            yield replace(each, replica=replace(each.replica, server=name))


def not_again(case: Case, shown: Topology) -> list[tuple[str, str | None]]:
    """Servers of earlier snapshots that have no file in this one, though vectors of it still name their UUIDs."""
    if not shown.pulling:
        return []
    there = {one.server for one in shown.replicas} | shown.down
    named = {origin for one in shown.replicas for origin in one.vector} - {one.origin for one in shown.replicas}
    before = (one for one in case.inputs if one.snapshot in _known(case, shown)[:-1] and one.server not in there)
    return sorted({(one.server, one.suffix) for one in before if own_of(one) in named}, key=str)


def earlier_of_uuid(case: Case, shown: Topology, replica: Replica) -> list[ServerFile]:
    """The files of earlier snapshots that are of the UUID of a server, with their entries or without, in the order of time.

    None of a UUID that several servers had in one snapshot.
    """

    def of_uuid(one: Input) -> bool:
        return one.snapshot != shown.snapshot and own_of(one) == replica.origin and one.suffix == replica.suffix

    files = _read(case, shown, of_uuid) if replica.origin else []
    shared = _shared((each.file.server, each.replica.origin, each.file.snapshot) for each in files)
    return [] if shared else files


def _read(case: Case, shown: Topology, wanted: Callable[[Input], bool]) -> list[ServerFile]:
    """What these files show of their servers, up to this snapshot, in the order of time."""
    assert shown.pulling is not None
    known = _known(case, shown)
    of_file: dict[tuple[str, str], list[Row]] = {}
    for row in (
        case.arrow("vectors").select(["snapshot", "file", "kind", "generation", "origin", "min", "max"]).to_pylist()
    ):
        if row["kind"] == "server" and row["snapshot"] in known:
            of_file.setdefault((row["snapshot"], row["file"]), []).append(row)
    found = []
    for one in case.inputs:
        rows = of_file.get((one.snapshot, one.file))
        if not one.kind or not rows or not wanted(one):
            continue
        told = shown.pulling.now(one.facts)
        vector = {row["origin"]: Span(row["min"], row["max"]) for row in rows if row["origin"] and row["min"]}
        domain = next((row["generation"] for row in rows if row["generation"]), None)
        evidence = (format_with(one.kind).evidence, VECTOR)
        replica = Replica(one.server, one.suffix, own_of(one), domain, vector, evidence=evidence, told_in=one.file)
        halves = shown.system.halves
        ranges = {
            of: (halves(span.min)[0], halves(span.max)[0]) for of, span in vector.items() if span.min and span.max
        }
        time = told if told is not None else max((end for _, end in ranges.values()), default=0)
        found.append((known.index(one.snapshot), time, one.file, ServerFile(replica, one, ranges, time)))
    return [each for *_, each in sorted(found, key=lambda each: each[:3])]


def _known(case: Case, shown: Topology) -> list[str]:
    labels = list(case.snapshots)
    return labels[: labels.index(shown.snapshot) + 1] if shown.snapshot in labels else []


def own_of(one: Input) -> str | None:
    """The origin that a file tells as that of its server."""
    origins: Mapping[str, str] = one.facts.get("origins", {})
    return origins.get(one.suffix or "")


Told = tuple[str, str | None, str]
"""What a file tells: the name of its server, its UUID, and the snapshot."""


def _present_names(files: Sequence[Told]) -> list[str]:
    """For each file, in the order of time, the last name of its server."""
    shared = _shared(files)
    own: list[str | None] = [None if uuid in shared else uuid for _, uuid, _ in files]
    by_uuid: dict[str, int] = {}
    names: list[str] = []  # of each server, the last one
    uuids: list[str | None] = []
    servers: list[int] = []
    for number, (name, _, snapshot) in enumerate(files):
        uuid = own[number]
        server = by_uuid.get(uuid) if uuid else None
        if server is None:
            called = [at for at, other in enumerate(names) if other == name]
            server = called[-1] if called else None
            if server is not None and uuid and _moved(files, own, uuids[server], name, (number, snapshot)):
                server = None
        if server is None:
            server = len(names)
            names.append(name)
            uuids.append(uuid)
        names[server] = name
        uuids[server] = uuid or uuids[server]
        if uuid:
            by_uuid[uuid] = server
        servers.append(server)
    bears = dict(zip((name for name, *_ in files), servers, strict=True))  # who was called so last
    unlike = [name if bears[name] == at else f"{name} of UUID {uuids[at]}" for at, name in enumerate(names)]
    return [unlike[server] for server in servers]


def _moved(files: Sequence[Told], own: Sequence[str | None], uuid: str | None, name: str, at: tuple[int, str]) -> bool:
    """True if a server of this UUID is there under another name, in this snapshot or behind it."""
    number, snapshot = at
    later = (one for place, one in enumerate(files) if own[place] == uuid and (place > number or one[2] == snapshot))
    return uuid is not None and any(called != name for called, *_ in later)


def _shared(files: Iterable[Told]) -> set[str]:
    """The UUIDs that files of several names have in one snapshot: of them nothing tells which server is which."""
    found: dict[tuple[str, str], set[str]] = {}
    for name, uuid, snapshot in files:
        if uuid:
            found.setdefault((snapshot, uuid), set()).add(name)
    return {uuid for (_, uuid), names in found.items() if len(names) > 1}
