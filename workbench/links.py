"""Whose changes an origin makes, and to which server a link leads, as far as the collected files tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.inputs import Input
from workbench.systems import format_with

Rows = Iterable[Mapping[str, Any]]

_NOT_COLLECTED = ""
"""Stands for a server whose address is known and whose files are not."""


def origins_of(inputs: Iterable[Input]) -> dict[tuple[str, str], str]:
    """(server, suffix) -> the origin of the changes made there: as the server's own entry says, or the collected case.yaml."""
    shown = {
        (one.server, suffix): origin
        for one in inputs  # in the order of time: the last one counts
        for suffix, origin in one.facts.get("origins", {}).items()
    }
    return shown | {(one.server, one.suffix or ""): one.origin for one in inputs if one.origin}


def _listing(inputs: Iterable[Input]) -> dict[tuple[str, str], str]:
    """Snapshot and file of those that list all links of a server -> the server."""
    return {(one.snapshot, one.file): one.server for one in inputs if one.kind and format_with(one.kind).tells_links}


def not_deleted(inputs: Iterable[Input], rows: Rows) -> list[Mapping[str, Any]]:
    """The rows of links that there are: where a file lists all links of a server, what other files still name is gone.

    A server goes on counting for a link after it was deleted.
    """
    listing, rows = _listing(inputs), list(rows)

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return row["snapshot"], row["server"], row["suffix"], row["name"]

    listed = {key(row) for row in rows if (row["snapshot"], row["file"]) in listing}
    told = {(snapshot, server) for (snapshot, _), server in listing.items()}
    return [row for row in rows if (row["snapshot"], row["server"]) not in told or key(row) in listed]


def links_of(inputs: Iterable[Input], rows: Rows, vectors: Rows) -> list[dict[str, Any]]:
    """Each link once: supplier, suffix (empty: unnamed), name, address, enabled, and the consumer's server if anything tells it.

    `rows` are those of the table `links`: a server's agreement, its status and its replica entry each tell a part. The
    consumer is known by its origin; else by its address, or by a port that only one server has: an address is what the
    supplier is told to use, `localhost` on one machine and a full name on another. A port tells nothing where both names
    are full ones and differ, or where another address of the same supplier leads to that server: of the consumers of a hub
    none may be known, and all listen where their supplier does. `unlike`: the servers that the address is not of.

    A file that lists the links counts more than one of the same snapshot that names them in passing: that may tell where a
    link led some time ago.
    """
    by_origin: dict[tuple[str, str], set[str]] = {}
    for (server, suffix), origin in origins_of(inputs).items():
        by_origin.setdefault((suffix, origin), set()).add(server)
    addresses: dict[tuple[str, str], set[str]] = {}
    hosts: dict[str, set[str]] = {}
    for vector in vectors:
        if address := (vector["url"] or "").partition("://")[2].strip("/").lower():
            suffix = vector["suffix"] or ""
            # The purge vector of a log is written with the server's own address for all origins.
            own = {vector["server"]} if vector["kind"] == "log_purge" else by_origin.get((suffix, vector["origin"]))
            for key in (address, address.rpartition(":")[2]):
                # A server that was not collected has an address, too: without it another one's port would seem unique.
                addresses.setdefault((suffix, key), set()).update(own or {_NOT_COLLECTED})
            if own and len(own) == 1:
                hosts.setdefault(next(iter(own)), set()).add(_host(address))
    lists, snapshots = _listing(inputs), list(dict.fromkeys(one.snapshot for one in inputs))
    rows = sorted(rows, key=lambda row: (snapshots.index(row["snapshot"]), (row["snapshot"], row["file"]) in lists))
    for one in inputs:
        for address in one.facts.get("addresses", {}):  # a read-only server stands in no vector
            hosts.setdefault(one.server, set()).add(_host(address))
            for suffix in {row["suffix"] or "" for row in rows}:
                for key in (address, address.rpartition(":")[2]):
                    addresses.setdefault((suffix, key), set()).add(one.server)
    known: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        about = known.setdefault((row["server"], row["suffix"] or "", row["name"] or ""), {})
        about |= {key: value for key, value in row.items() if value is not None}
    links: list[dict[str, Any]] = []
    by_port, reached = [], set()
    for supplier, suffix, name in sorted(known):
        row = known[supplier, suffix, name]
        port = f":{row['consumer_port']}" if "consumer_port" in row else ""
        address = f"{row['consumer_host']}{port}" if "consumer_host" in row else None
        unlike = {server for server, its in hosts.items() if address and _all_unlike(its, _host(address.lower()))}
        at_port = addresses.get((suffix, port[1:]), set())
        ways = [
            by_origin.get((suffix, row.get("consumer_origin") or ""), set()),
            addresses.get((suffix, (address or "").lower()), set()),
            set() if at_port <= unlike else at_port,
        ]
        found = next((way for way in ways if len(way) == 1), set())
        consumer = next(iter(found - {supplier, _NOT_COLLECTED}), None)
        names = {"supplier": supplier, "suffix": suffix, "name": name, "address": address, "consumer": consumer}
        links.append({**names, "enabled": row.get("enabled"), "unlike": frozenset(unlike)})
        reached.add((supplier, suffix, consumer, (address or "").lower()))
        if found is at_port:
            by_port.append(links[-1])
    leading = Counter((supplier, suffix, consumer) for supplier, suffix, consumer, _ in reached)
    for link in by_port:
        if leading[link["supplier"], link["suffix"], link["consumer"]] > 1:
            link["consumer"] = None
    return links


def _host(address: str) -> str:
    """The host of an address with or without a port."""
    host, _, port = address.rpartition(":")
    return host or port


def _all_unlike(hosts: Iterable[str], other: str) -> bool:
    """True if all are full names, and not that one. An address in numbers or a short name may be of any server."""
    return _full(other) and all(_full(host) and host != other for host in hosts)


def _full(host: str) -> bool:
    machine, _, domain = host.partition(".")
    in_numbers = ":" in host or host.replace(".", "").isdigit()
    return bool(domain) and machine != "localhost" and not in_numbers
