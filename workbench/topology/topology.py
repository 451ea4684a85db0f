"""Who replicates with whom, as one snapshot of a case shows it: the replicas, what each claims and logs, and the links.

Everything is per suffix: two suffixes of one server are two replicas. What the evidence does not tell, or tells wrong, a
person writes into case.yaml (`origin` of a server, `consumer` of a link), and that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.engine.logs import StoredLog
from workbench.intake.files import EMPTY, plain_name
from workbench.intake.inputs import Input
from workbench.intake.links import links_of, not_deleted, origins_as_of
from workbench.intake.readings import Reading, readings_of
from workbench.model import Format, Problem, System
from workbench.replication.entry.rules.entries import Pulling
from workbench.rules.link_failures import LinkFailure
from workbench.rules.send_session import Supplying
from workbench.rules.vectors import Span, Vector, last
from workbench.rules.verdicts import Proving
from workbench.systems import format_with, system_named
from workbench.topology.tier_snapshot import tiered_snapshot
from workbench.topology.tier_sources import followed_source, source_databases

if TYPE_CHECKING:
    from workbench.case.case import Case

VECTOR, EARLIER_SNAPSHOT = "vector", "snapshot"
"""Kinds of evidence that hold for every system; the others are named by the formats."""

DOWN = ".DOWN"
"""How the name of a file ends that says that its server did not answer when it was to be collected."""

_CLOCKS_APART = timedelta(seconds=1)
"""Positions carry whole seconds, and the clock of the machine that collects is not that of the servers."""

_LINK = [
    *("snapshot", "file", "server", "suffix", "name", "role", "supplier_host", "supplier_port"),
    *("consumer_host", "consumer_port", "consumer_origin", "transport", "enabled", "automatic"),
]
_VECTOR = [
    "snapshot",
    "server",
    "suffix",
    "file",
    "offset",
    "kind",
    "holder",
    "generation",
    "origin",
    "url",
    "min",
    "max",
    "problem",
]

Row = Mapping[str, Any]
Rows = Iterable[Row]
Key = tuple[str, str | None]
"""Server and suffix: one replica."""


@dataclass(frozen=True)
class Replica:
    """One suffix of one server.

    origin      of the changes made there; None for a read-only one, and where nothing tells
    vector      what the server claims; of several files of the snapshot the highest claim for each origin, or, where entries have
                to be held against it, that of the latest moment alone
    told_in     then the file of that moment
    log         the file with its present log; None if none was collected
    keeps_log   False: the server keeps none, so nothing of it is missing here
    log_claims  what the log says it holds, where it says so
    purged      origin -> up to where the log was trimmed (None: it was not); None where the log does not say
    evidence    the kinds of evidence of the server
    later       origin -> what its vector claimed at the end of the collection, where that is known and had moved
    """

    server: str
    suffix: str | None
    origin: str | None = None
    generation: str | None = None
    vector: Vector = field(default_factory=dict)
    log: Input | None = None
    keeps_log: bool = True
    log_claims: Vector = field(default_factory=dict)
    purged: Mapping[str, str | None] | None = None
    evidence: tuple[str, ...] = ()
    told_in: str | None = None
    later: Mapping[str, str] = field(default_factory=dict)

    def seen(self) -> dict[str, Span]:
        """What it is known to have seen: its vector, or its log where that goes further, for it was read later."""
        seen = dict(self.vector)
        shown = self.log.facts.get("by_origin", {}) if self.log else {}
        for further in (self.log_claims, {origin: Span(one["min"], one["max"]) for origin, one in shown.items()}):
            for origin, span in further.items():
                if span.max and span.max > (last(seen, origin) or ""):
                    seen[origin] = Span(seen.get(origin, Span()).min or span.min, span.max)
        return seen

    def top(self, origin: str) -> str:
        """Up to where it had seen the changes of an origin when all servers had been read; empty: it has seen none."""
        return max(last(self.seen(), origin) or "", self.later.get(origin, ""))

    @property
    def tells(self) -> bool:
        """True if its vector or its log tells what it has seen."""
        return self.claims or bool(self.log and self.log.facts.get("by_origin"))

    @property
    def empty(self) -> bool:
        """True if its vector was collected and claims nothing: the server has no data."""
        return self.claims and not any(span.max for span in self.vector.values())

    @property
    def claims(self) -> bool:
        """True if its vector was collected. One without elements is a vector: the server claims to hold nothing."""
        return VECTOR in self.evidence


@dataclass(frozen=True)
class Link:
    """One link, as its supplier has it, or where consumers ask, as its consumer and its supplier have it.

    address     where the one end reaches the other: the supplier the consumer, or a consumer that asks the supplier
    remembered  what the supplier remembers of the consumer's vector, which may be old
    unlike      collected servers that the address is not of
    why         why it does not run although it is switched on
    automatic   where it cannot bring the consumer up to date, that takes all data anew without being told to
    failure     why its sessions fail although it is switched on, as the evidence of the snapshot shows
    """

    supplier: str
    suffix: str | None
    name: str
    consumer: str | None
    address: str | None
    enabled: bool | None
    remembered: Vector | None
    unlike: frozenset[str] = frozenset()
    why: str | None = None
    automatic: bool | None = None
    failure: LinkFailure | None = None

    @property
    def runs(self) -> bool:
        """False if it is switched off, or if nothing suggests that a session over it would succeed."""
        return self.enabled is not False and not self.blocked

    @property
    def blind(self) -> bool:
        """True if nothing tells which server it leads to: it may be any."""
        return self.consumer is None and not (self.failure and (self.failure.itself or self.failure.means))

    @property
    def blocked(self) -> str | None:
        """The reason for which what waits behind it is not on its way; None: there is none."""
        return self.failure.reason if self.failure and self.failure.blocks else None


@dataclass(frozen=True)
class Topology:
    """The replicas of one snapshot, by suffix and server, and the links between them.

    down      servers that did not answer
    readings  when each server was read, where `workbench collect` wrote that down
    """

    system: System
    snapshot: str
    replicas: list[Replica]
    links: list[Link]
    down: frozenset[str] = frozenset()
    readings: tuple[Reading, ...] = ()

    def made_meanwhile(self, made: datetime | None) -> bool:
        """True for a change that was made while servers were being read: those that were read before need not show it.

        A later time is no answer: it is that of a clock that is ahead.
        """
        if made is None or not self.readings:
            return False
        began, ended = min(one.began for one in self.readings), max(one.ended for one in self.readings)
        return began - _CLOCKS_APART <= made <= ended + _CLOCKS_APART

    @property
    def supplying(self) -> Supplying:
        """What the system's suppliers do."""
        if self.system.supplying is None:
            raise Problem(f"no rules of sending are known for {self.system.title}")
        found: Supplying = self.system.supplying()
        return found

    @property
    def proving(self) -> Proving:
        """What the system's evidence means."""
        if self.system.proving is None:
            raise Problem(f"no rules of evidence are known for {self.system.title}")
        found: Proving = self.system.proving()
        return found

    @property
    def pulling(self) -> Pulling | None:
        """What the system's suppliers answer; None: they send from a log (`supplying`)."""
        found: Pulling | None = self.system.pulling() if self.system.pulling else None
        return found

    def pairs(self) -> Iterator[tuple[Replica, Replica, Link | None]]:
        """Every ordered pair of two servers of one suffix that both have a vector, with the link if there is one.

        Of several links between the two, one that runs goes before one that is disabled.
        """
        links: dict[tuple[str, str | None, str | None], Link] = {}
        for link in sorted(self.links, key=lambda link: (not link.runs, link.enabled is False, link.name)):
            links.setdefault((link.supplier, link.consumer, link.suffix), link)
        for supplier in self.replicas:
            for consumer in self.replicas:
                one_suffix = supplier.suffix == consumer.suffix and supplier.server != consumer.server
                if one_suffix and supplier.claims and consumer.claims:
                    yield supplier, consumer, links.get((supplier.server, consumer.server, supplier.suffix))

    @cached_property
    def _links_from(self) -> dict[tuple[str, str | None], list[Link]]:
        found: dict[tuple[str, str | None], list[Link]] = {}
        for one in self.links:
            found.setdefault((one.supplier, one.suffix), []).append(one)
        return found

    def leads_elsewhere(self, supplier: str, suffix: str | None, consumer: str) -> bool:
        """True if links of the supplier are known, and each leads to another server than this one."""
        mine = self._links_from.get((supplier, suffix), ())
        to_it = (consumer not in one.unlike if one.consumer is None else one.consumer == consumer for one in mine)
        return bool(mine) and not any(to_it)

    def asks_elsewhere(self, supplier: str, suffix: str | None, consumer: str) -> bool:
        """True if links of the consumer are known, and it asks another server than this one over each."""
        mine = [one for one in self.links if (one.consumer, one.suffix) == (consumer, suffix)]
        return bool(mine) and all(one.supplier != supplier and supplier in one.unlike for one in mine)


def not_collected(shown: Topology) -> list[dict[str, Any]]:
    """Servers that there are, and of which the snapshot does not tell what they have seen: server, suffix (None: all), why.

    Of a server that tells one suffix another may not have been collected. Where a link leads nobody may know: it may lead to
    any collected server that no link is known to lead to. But several addresses are of as many servers: of more addresses
    than there are such servers at least one leads elsewhere, and nobody knows which (`NOT_ALL`).
    """
    telling = {(one.server, one.suffix) for one in shown.replicas if one.tells}
    down = shown.down - {one.server for one in shown.replicas if one.claims}
    told = {(one.supplier, one.suffix) for one in shown.links}
    # A supplier of which only an address is known was not collected.
    named = {(one.supplier, one.suffix) for one in shown.links if one.supplier == one.address}
    held = {(one.server, one.suffix) for one in shown.replicas} | told - named
    led = {(one.consumer, one.suffix) for one in shown.links if one.consumer} | named
    rows: dict[Key, str] = {(server, None): IS_DOWN for server in down}
    for server, suffix in (held | led) - telling:
        # A file that names no suffix is about one that is told of.
        if server not in down and (suffix or not any(name == server for name, _ in telling)):
            rows[server, suffix] = NO_VECTOR if any(name == server for name, _ in held) else NOT_COLLECTED
    for supplier, suffix in told:
        there = down | {server for server, of in held if None in (of, suffix) or of == suffix}
        free = there - {server for server, of in led if of == suffix} - {supplier}
        mine = [one for one in shown.links if (one.supplier, one.suffix, one.consumer) == (supplier, suffix, None)]
        own = {one.server for one in shown.replicas if one.suffix == suffix and one.claims}
        mine = [one for one in mine if not (one.failure and (one.failure.itself or one.failure.means in own))]
        may_be = {one.address: free - one.unlike for one in mine if one.address}
        rows |= {(address, suffix): NOT_COLLECTED for address, servers in may_be.items() if not servers}
        open_ = {address for address, servers in may_be.items() if servers}
        if len(open_) > len(frozenset().union(*may_be.values())):
            rows = {(address, suffix): NOT_ALL for address in open_} | rows
    order = sorted(rows, key=lambda key: (key[1] or "", key[0]))
    return [{"server": server, "suffix": suffix, "why": rows[server, suffix]} for server, suffix in order]


IS_DOWN, NO_VECTOR, NOT_COLLECTED, NOT_ALL = "down", "no_vector", "not_collected", "not_all"
"""Why the evidence does not tell what a server has seen."""


def topology(case: Case, snapshot: str | None = None) -> Topology:
    """The topology in the last or the named snapshot. Raises Problem if the case holds nothing."""
    if not case.system:
        raise Problem("the case holds no evidence", str(case.folder), "`workbench load` something into it")
    labels = list(case.snapshots)
    label = snapshot or labels[-1]
    inputs = [one for one in case.inputs if one.kind and one.snapshot == label]
    vectors = [row for row in case.arrow("vectors").select(_VECTOR).to_pylist() if row["snapshot"] == label]
    told_links = not_deleted(case.inputs, case.arrow("links").select(_LINK).to_pylist())
    rows = [row for row in told_links if row["snapshot"] == label]
    held = _held(inputs, vectors)
    for server in _of_empty_files([one for one in case.inputs if one.snapshot == label]) - {name for name, _ in held}:
        held[server, None] = set()
    for one in case.inputs:
        if one.kind and one.snapshot in labels[: labels.index(label)]:
            for key in held:
                if key[0] == one.server and one.may_tell_of(key[1]):
                    held[key].add(EARLIER_SNAPSHOT)
    of_replica: dict[Key, list[Row]] = {}
    for row in vectors:
        of_replica.setdefault((row["server"], row["suffix"]), []).append(row)
    about = case.about()
    shown = origins_as_of(case.inputs, case.until(label).inputs)
    said = _unlike(_said_origins(about), _said_origins(case.told))

    def origin_of(server: str, suffix: str | None) -> str | None:
        own = (server, suffix or "")
        return said.get(own) or said.get((server, "")) or shown.get(own)

    system = system_named(case.system)
    if system.tiering:
        return _tiered(case, label, system)
    readings = tuple(readings_of(case.readings.get(label, [])))
    later = _later(readings, system)
    replicas = [
        _replica(key, origin_of(*key), of_replica.get(key, []), inputs, held[key], system, later.get(key, {}))
        for key in sorted(held, key=lambda key: (key[1] or "", key[0]))
    ]
    links = _links(links_of(case.inputs, rows, vectors), of_replica, _said_consumers(about), _said_consumers(case.told))
    down = frozenset(one.server for one in case.inputs if one.snapshot == label and one.file.endswith(DOWN))
    whole = Topology(system, label, replicas, links, down, readings)
    kept = system.kept_origins()(case, whole) if system.kept_origins else {}
    kept = {
        key: origin for key, origin in kept.items() if not (said.get((key[0], key[1] or "")) or said.get((key[0], "")))
    }
    if kept:
        mine = [replace(one, origin=kept.get((one.server, one.suffix), one.origin)) for one in replicas]
        whole = replace(whole, replicas=mine)
    return _with_failures(case, whole)


def _later(readings: Iterable[Reading], system: System) -> dict[Key, dict[str, str]]:
    """What the vector of each replica claimed at the end of the collection, as order keys."""
    found: dict[Key, dict[str, str]] = {}
    for reading in readings:
        for suffix, vector in reading.moved.items():
            keys = {origin: system.typed(position) for origin, position in vector.items()}
            found[reading.server, system.spelled(suffix)] = {origin: key for origin, key in keys.items() if key}
    return found


def _with_failures(case: Case, shown: Topology) -> Topology:
    """The same with what the evidence says of links that are switched on and do not run."""
    found = shown.system.link_failures()(case, shown) if shown.system.link_failures else {}
    if not found:
        return shown
    links = [replace(link, failure=found.get((link.supplier, link.suffix, link.name))) for link in shown.links]
    return replace(shown, links=links)


def _tiered(case: Case, label: str, system: System) -> Topology:
    """The topology of nodes that pull a physical log from each other, as a registry and the nodes themselves tell it."""
    seen = tiered_snapshot(case, label)
    assert system.tiering is not None
    settings = system.tiering().told(seen.settings)
    told = {name: database for name, (database, _) in settings.sources.items()}
    followed, _ = followed_source(seen, source_databases(seen, told), told, settings.outside)
    replicas = []
    for name, source in sorted(followed.items()):
        first, last = seen.first(name), seen.last(name)
        spans = {source: Span(*(place and system.order_key(source, *place) for place in (first, last)))} if last else {}
        # The one that its cluster calls its master makes the changes; the others of the source cluster could.
        origin = source if (seen.probes.get(name) or {}).get("leads") and name.startswith(f"{source}@") else None
        kinds = {VECTOR} if last else set()
        kinds |= {format_with(one.kind).evidence for one in seen.logs.get(name, ())}
        log = max(seen.logs.get(name, ()), key=lambda one: (one.accepted, one.file), default=None)
        replicas.append(Replica(name, None, origin, None, spans, log, evidence=tuple(sorted(kinds))))
    links = [
        Link(pull.source, None, f"{pull.name} from {pull.source}", pull.name, None, True, None) for pull in seen.pulls
    ]
    silent = {name for name in followed if seen.answered(name) is False}
    return Topology(
        system, label, replicas, sorted(links, key=lambda link: (link.supplier, link.name)), frozenset(silent)
    )


def _of_empty_files(inputs: Iterable[Input]) -> set[str]:
    """The servers of documents that are empty, where other documents tell what their servers hold."""
    documents = [one for one in inputs if plain_name(Path(one.file)).endswith(".json")]
    telling = any(one.kind and format_with(one.kind).evidence for one in documents)
    return {one.server for one in inputs if one.why == EMPTY} if telling else set()


def _held(inputs: Iterable[Input], vectors: Rows) -> dict[Key, set[str]]:
    """The replicas, each with the kinds of evidence that it has in this snapshot.

    A log of the whole server (`access.log`) speaks of every replica that it has, and does not say which these are.
    """
    held: dict[Key, set[str]] = {}
    in_file: dict[str, set[str | None]] = {}
    for row in vectors:
        if row["kind"] == "server" and not row["problem"]:
            held.setdefault((row["server"], row["suffix"]), set()).add(VECTOR)
            in_file.setdefault(row["file"], set()).add(row["suffix"])
    of_all: list[tuple[str, str]] = []
    for one in inputs:
        for suffix in {**one.facts.get("origins", {}), **one.facts.get("without_log", {})}:
            held.setdefault((one.server, suffix or None), set())
        kind = format_with(one.kind)
        if kind.evidence and (one.suffix or kind.is_log or one.file in in_file):
            for suffix in in_file.get(one.file) or {one.suffix}:
                held.setdefault((one.server, suffix), set()).add(kind.evidence)
        elif kind.evidence:
            of_all.append((one.server, kind.evidence))
    servers = {server for server, _ in held}
    for server, evidence in of_all:
        if server not in servers:
            held.setdefault((server, None), set())
        for key in held:
            if key[0] == server:
                held[key].add(evidence)
    return held


def _replica(
    key: Key,
    origin: str | None,
    rows: list[Row],
    inputs: list[Input],
    evidence: set[str],
    system: System,
    later: Mapping[str, str],
) -> Replica:
    server, suffix = key
    mine = {one.file: (one, format_with(one.kind)) for one in inputs if one.server == server}
    logs = [one for one, kind in mine.values() if kind.is_log and one.suffix == suffix]
    log = max(logs, key=lambda one: (_last(rows, one), one.accepted, one.file), default=None)
    if len(logs) > 1:
        evidence = evidence | {f"{format_with(one.kind).evidence}_earlier" for one in logs if one is not log}
    of_log = [row for row in rows if log and row["file"] == log.file]
    purged = [row for row in of_log if row["kind"] == "log_purge"]
    claimed = _claimed(rows, {file: kind for file, (_, kind) in mine.items()})
    if system.pulling:
        claimed = _of_one_moment(claimed, {file: system.pulling().now(one.facts) for file, (one, _) in mine.items()})
    own = [*claimed, *(row for row in rows if row["kind"] != "link")]  # what is remembered of others is theirs
    return Replica(
        server,
        suffix,
        origin,
        next((row["generation"] for row in own if row["generation"]), None),
        _vector(claimed),
        log,
        not any((suffix or "") in one.facts.get("without_log", {}) for one, _ in mine.values()),
        _vector(row for row in of_log if row["kind"] == "log_max"),
        {row["origin"]: row["max"] for row in purged if row["origin"]} if purged else None,
        tuple(sorted(evidence)),
        claimed[0]["file"] if system.pulling and claimed else None,
        later,
    )


def _of_one_moment(claimed: list[Row], times: Mapping[str, int | None]) -> list[Row]:
    """The rows of the file that was written last, and there of the last place.

    What a server claimed at one moment and its entries of another must not be held against each other.
    """

    def moment(row: Row) -> tuple[int, str, int]:
        return times[row["file"]] or 0, row["file"], row["offset"]

    last = max(map(moment, claimed), default=None)
    return [row for row in claimed if moment(row) == last]


def _claimed(rows: Rows, formats: Mapping[str, Format]) -> list[Row]:
    """The rows that say what the server claims.

    The vector that comes with other evidence, in an export of all entries, is of that moment: it counts where no file tells
    the vector alone. Else a server restored since its last export would seem to hold what it lost. But an element whose address
    a server does not know yet, it shows in the export alone.
    """
    claimed = [row for row in rows if row["kind"] == "server"]
    alone = [row for row in claimed if not formats[row["file"]].evidence]
    if not any(row["url"] for row in alone):
        return alone or claimed
    shown = {row["origin"] for row in alone}
    return [*alone, *(row for row in claimed if not row["url"] and row["max"] and row["origin"] not in shown)]


def _vector(rows: Rows) -> dict[str, Span]:
    """The vector of those rows; of several elements of one origin that with the highest claim. Malformed ones are none."""
    vector: dict[str, Span] = {}
    for row in rows:
        if row["origin"] and not row["problem"]:
            old, new = vector.get(row["origin"], Span()), Span(row["min"], row["max"])
            vector[row["origin"]] = new if (new.max or "") > (old.max or "") else old
    return vector


def _last(rows: Rows, log: Input) -> str:
    """The highest position that a log claims to hold, else the highest that it shows."""
    claimed = [row["max"] or "" for row in rows if row["kind"] == "log_max" and row["file"] == log.file]
    shown = [seen["max"] or "" for seen in log.facts.get("by_origin", {}).values()]
    return max(claimed, default="") or max(shown, default="")


def _links(
    known: Iterable[dict[str, Any]],
    of_replica: Mapping[Key, list[Row]],
    said: Mapping[tuple[str, ...], str],
    told: Mapping[tuple[str, ...], str],
) -> list[Link]:
    """The links by suffix, supplier and name.

    The consumer is the one that a person names, else that of this snapshot, else the one of which an earlier one told.
    """
    remembered: dict[tuple[str, str | None, str], list[Row]] = {}
    for (supplier, suffix), rows in of_replica.items():
        for row in rows:
            if row["kind"] == "link":
                remembered.setdefault((supplier, suffix, row["holder"]), []).append(row)
    theirs = _unlike(said, told)
    links = []
    for link in known:
        name, own = tuple(link[key] for key in _LINK_KEY), (link["supplier"], link["suffix"] or None, link["name"])
        consumer = theirs.get(name) or link["consumer"] or told.get(name)
        vector = _vector(remembered[own]) if own in remembered else None
        more = link["unlike"], link["why"], link["automatic"]
        links.append(Link(*own, consumer, link["address"], link["enabled"], vector, *more))
    return sorted(links, key=lambda link: (link.suffix or "", link.supplier, link.name))


def _said(about: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = about.get(key)
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _said_origins(about: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    said: dict[tuple[str, str], str] = {}
    for server in _said(about, "servers"):
        if isinstance(server.get("origin"), str):
            said[str(server.get("name")), ""] = server["origin"]
        if isinstance(server.get("origins"), Mapping):
            said |= {
                (str(server.get("name")), str(suffix)): str(origin) for suffix, origin in server["origins"].items()
            }
    return said


_LINK_KEY = ("supplier", "suffix", "name")


def _said_consumers(about: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    return {
        tuple(str(link.get(key, "")) for key in _LINK_KEY): str(link["consumer"])
        for link in _said(about, "links")
        if link.get("consumer")
    }


def _unlike(said: Mapping[Any, str], told: Mapping[Any, str]) -> dict[Any, str]:
    """What a person wrote into case.yaml: all that load did not."""
    return {key: value for key, value in said.items() if told.get(key) != value}


def logs_of(case: Case, shown: Topology) -> dict[str, StoredLog]:
    """The present log of every replica that has one, by the name of its file, to be asked without Spark.

    They remember what they read: keep them for the next question.
    """
    return {one.log.file: case.log(one.log) for one in shown.replicas if one.log}


def is_shared(shown: Topology, replica: Replica) -> bool:
    """True if another server makes changes as the same origin."""
    mine = (replica.suffix, replica.origin)
    return replica.origin is not None and sum((one.suffix, one.origin) == mine for one in shown.replicas) > 1
