"""Who replicates with whom, as one snapshot of a case shows it: the replicas, what each claims and logs, and the links.

Everything is per suffix: two suffixes of one server are two replicas. What the evidence does not tell, or tells wrong, a
person writes into case.yaml (`origin` of a server, `consumer` of a link), and that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.inputs import Input
from workbench.model import Problem, System
from workbench.rules.sending import Supplying
from workbench.rules.vectors import Span, Vector
from workbench.systems import format_with, system_named

if TYPE_CHECKING:
    from workbench.case import Case

_LINK = ["snapshot", "server", "suffix", "name", "consumer_host", "consumer_port", "consumer_origin", "enabled"]
_VECTOR = [
    "snapshot",
    "server",
    "suffix",
    "file",
    "kind",
    "holder",
    "generation",
    "origin",
    "url",
    "min",
    "max",
    "problem",
]

Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Replica:
    """One suffix of one server.

    origin      of the changes made there; None for a read-only one, and where nothing tells
    vector      what the server claims; of several files of the snapshot the highest claim for each origin
    log         the file with its present log; None if none was collected
    keeps_log   False: the server keeps none, so nothing of it is missing here
    purged      origin -> up to where the log was trimmed (None: it was not); None where the log does not say
    log_claims  origin -> last position that the log itself claims to hold
    evidence    the kinds of evidence of the server in this snapshot
    """

    server: str
    suffix: str | None
    origin: str | None = None
    generation: str | None = None
    vector: Vector = field(default_factory=dict)
    log: Input | None = None
    keeps_log: bool = True
    purged: Mapping[str, str | None] | None = None
    log_claims: Mapping[str, str | None] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """One link as its supplier has it. `remembered`: what the supplier remembers of the consumer's vector, which may be old."""

    supplier: str
    suffix: str | None
    name: str
    consumer: str | None
    address: str | None
    enabled: bool | None
    remembered: Vector | None


@dataclass(frozen=True)
class Topology:
    """The replicas of one snapshot, by server and suffix, and the links between them."""

    system: System
    snapshot: str
    replicas: list[Replica]
    links: list[Link]

    @property
    def supplying(self) -> Supplying:
        """What the system's suppliers do."""
        if self.system.supplying is None:
            raise Problem(f"no rules of sending are known for {self.system.title}")
        found: Supplying = self.system.supplying()
        return found

    def pairs(self) -> Iterator[tuple[Replica, Replica, Link | None]]:
        """Every ordered pair of two servers of one suffix that both have a vector, with the link if there is one."""
        links = {(link.supplier, link.consumer, link.suffix): link for link in self.links}
        for supplier in self.replicas:
            for consumer in self.replicas:
                one_suffix = supplier.suffix == consumer.suffix and supplier.server != consumer.server
                if one_suffix and supplier.vector and consumer.vector:
                    yield supplier, consumer, links.get((supplier.server, consumer.server, supplier.suffix))


def topology(case: Case, snapshot: str | None = None) -> Topology:
    """The topology in the last or the named snapshot."""
    label = snapshot or next(reversed(case.snapshots))
    system = system_named(case.system or "")
    inputs = [one for one in case.inputs if one.snapshot == label]
    vectors = [row for row in case.arrow("vectors").select(_VECTOR).to_pylist() if row["snapshot"] == label]
    rows = [row for row in case.arrow("links").select(_LINK).to_pylist() if row["snapshot"] == label]
    about = case.about()
    origins = {**origins_of(case.inputs), **_said_origins(about)}
    held: dict[tuple[str, str | None], set[str]] = {}
    for one in inputs:
        kind = format_with(one.kind) if one.kind else None
        suffixes = {row["suffix"] for row in vectors if row["file"] == one.file} or {one.suffix}
        if kind and kind.evidence:
            for suffix in suffixes:
                held.setdefault((one.server, suffix), set()).add(kind.evidence)
    for row in vectors:
        if row["kind"] == "server":
            held.setdefault((row["server"], row["suffix"]), set()).add("vector")
    replicas = []
    for server, suffix in sorted(held, key=lambda key: (key[1] or "", key[0])):
        mine = [row for row in vectors if (row["server"], row["suffix"]) == (server, suffix)]
        if held[server, suffix] & _OF_REPLICA:
            replicas.append(_replica(server, suffix, origins, mine, inputs, held[server, suffix]))
    links = []
    for link in links_of(case.inputs, rows, vectors):
        own = (link["supplier"], link["suffix"] or None)
        remembered = [row for row in vectors if (row["server"], row["suffix"], row["holder"]) == (*own, link["name"])]
        vector = _vector(row for row in remembered if row["kind"] == "link")
        consumer = _said_consumer(about, link) or link["consumer"]
        links.append(
            Link(*own, link["name"], consumer, link["address"], link["enabled"], vector if remembered else None)
        )
    return Topology(system, label, replicas, links)


_OF_REPLICA = {"vector", "changelog", "log", "ruv", "change_state"}
"""Evidence kinds that speak of one replica; a log of the whole server does not say which replicas it has."""


def _replica(
    server: str,
    suffix: str | None,
    origins: Mapping[tuple[str, str], str],
    rows: list[dict[str, Any]],
    inputs: list[Input],
    evidence: set[str],
) -> Replica:
    logs = [
        one
        for one in inputs
        if one.server == server and one.suffix == suffix and one.kind and format_with(one.kind).is_log
    ]
    claims = {
        one.file: _vector(row for row in rows if row["kind"] == "log_max" and row["file"] == one.file) for one in logs
    }
    log = max(logs, key=lambda one: (_last(claims[one.file], one), one.accepted, one.file), default=None)
    purged = [row for row in rows if log and row["kind"] == "log_purge" and row["file"] == log.file]
    claimed = [row for row in rows if row["kind"] == "server"]
    without = [one for one in inputs if one.server == server and (suffix or "") in one.facts.get("without_log", {})]
    whole = evidence | ({"changelog_earlier"} if len(logs) > 1 else set())
    return Replica(
        server,
        suffix,
        origins.get((server, suffix or "")) or origins.get((server, "")),
        next((row["generation"] for row in [*claimed, *rows] if row["generation"]), None),
        _vector(claimed),
        log,
        not without,
        {row["origin"]: row["max"] for row in purged if row["origin"]} if purged else None,
        {origin: span.max for origin, span in claims[log.file].items()} if log else {},
        tuple(sorted(whole)),
    )


def _vector(rows: Rows) -> dict[str, Span]:
    """The vector of those rows; of several elements of one origin that with the highest claim. Malformed ones are none."""
    vector: dict[str, Span] = {}
    for row in rows:
        if row["origin"] and not row["problem"]:
            old, new = vector.get(row["origin"], Span()), Span(row["min"], row["max"])
            vector[row["origin"]] = new if (new.max or "") > (old.max or "") else old
    return vector


def _last(claims: Vector, log: Input) -> str:
    """The highest position that a log claims to hold, else the highest that it shows."""
    claimed = max((span.max or "" for span in claims.values()), default="")
    return claimed or max((seen["max"] or "" for seen in log.facts.get("by_origin", {}).values()), default="")


def origins_of(inputs: Iterable[Input]) -> dict[tuple[str, str], str]:
    """(server, suffix) -> the origin of the changes made there, as the server's own entry says."""
    return {
        (one.server, suffix): origin
        for one in inputs  # in the order of time: the last one counts
        for suffix, origin in one.facts.get("origins", {}).items()
    }


def links_of(inputs: Iterable[Input], rows: Rows, vectors: Rows) -> list[dict[str, Any]]:
    """Each link once: supplier, suffix (empty: unnamed), name, address, enabled, and the consumer's server if anything tells it.

    `rows` are those of the table `links`: a server's agreement, its status and its replica entry each tell a part. The
    consumer is known by its origin; else by its address, or by a port that only one server has: an address is what the
    supplier is told to use, `localhost` on one machine and a full name on another.
    """
    by_origin = {(suffix, origin): server for (server, suffix), origin in origins_of(inputs).items()}
    addresses: dict[tuple[str, str], set[str]] = {}
    for vector in vectors:
        if address := (vector["url"] or "").partition("://")[2].strip("/").lower():
            suffix = vector["suffix"] or ""
            # The purge vector of a log is written with the server's own address for all origins.
            own = vector["kind"] == "log_purge"
            server = vector["server"] if own else by_origin.get((suffix, vector["origin"]))
            if server:
                for key in (address, address.rpartition(":")[2]):
                    addresses.setdefault((suffix, key), set()).add(server)
    known: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        about = known.setdefault((row["server"], row["suffix"] or "", row["name"] or ""), {})
        about |= {key: value for key, value in row.items() if value is not None}
    links = []
    for supplier, suffix, name in sorted(known):
        row = known[supplier, suffix, name]
        port = f":{row['consumer_port']}" if "consumer_port" in row else ""
        address = f"{row['consumer_host']}{port}" if "consumer_host" in row else None
        named = by_origin.get((suffix, row.get("consumer_origin") or ""))
        found = {named} if named else set[str]()
        for key in (address or "", port[1:]):
            found = found or (addresses.get((suffix, key.lower()), set()) - {supplier} if key else set())
        consumer = found.pop() if len(found) == 1 else None
        names = {"supplier": supplier, "suffix": suffix, "name": name, "address": address, "consumer": consumer}
        links.append({**names, "enabled": row.get("enabled")})
    return links


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


def _said_consumer(about: Mapping[str, Any], link: Mapping[str, Any]) -> str | None:
    for one in _said(about, "links"):
        if all(str(one.get(key, "")) == (link[key] or "") for key in ("supplier", "name", "suffix")) and one.get(
            "consumer"
        ):
            return str(one["consumer"])
    return None
