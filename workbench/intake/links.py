"""Whose changes an origin makes, and to which server a link leads, as far as the collected files tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from workbench.intake.inputs import Input
from workbench.systems import format_with

Rows = Iterable[Mapping[str, Any]]

_NOT_COLLECTED = ""
"""Stands for a server whose address is known and whose files are not."""


def origins_of(inputs: Iterable[Input]) -> dict[tuple[str, str], str]:
    """(server, suffix) -> the origin of the changes made there: as the server's own entry says, or the collected case.yaml.

    Inputs come in the order of time, and the last one counts, also where it says that no changes are made there any more.
    """
    inputs, shown = list(inputs), dict[tuple[str, str], str]()
    for one in inputs:
        made = one.facts.get("origins", {})
        for suffix in one.facts.get("replica", {}) if "origins" in one.facts else ():
            shown.pop((one.server, suffix), None)
        shown |= {(one.server, suffix): origin for suffix, origin in made.items()}
    named: dict[tuple[str, str], tuple[str, str]] = {}
    for one in inputs:
        if one.origin:
            mine = one.server, one.suffix or ""
            # A later snapshot that names another server for an origin takes it from the server that was named before.
            moved = {
                key
                for key, (origin, snapshot) in named.items()
                if origin == one.origin and key[1] == mine[1] and snapshot != one.snapshot
            }
            named = {key: told for key, told in named.items() if key not in moved} | {mine: (one.origin, one.snapshot)}
    return shown | {key: origin for key, (origin, _) in named.items()}


def origins_as_of(inputs: Iterable[Input], then: Collection[Input]) -> dict[tuple[str, str], str]:
    """The same at a time, of the inputs until then; later ones count for what these do not name."""
    now, named = origins_of(then), {(one.suffix or "", one.origin) for one in then if one.origin}
    later = origins_of(inputs).items()
    return {key: origin for key, origin in later if key in now or (key[1], origin) not in named} | now


def listing(inputs: Iterable[Input]) -> dict[tuple[str, str], str]:
    """Snapshot and file of those that list all links of a server -> the server."""
    lists = (one for one in inputs if one.kind and format_with(one.kind).tells_links)
    return {(one.snapshot, one.file): one.server for one in lists if one.accepted or not one.rejected}


def not_deleted(inputs: Iterable[Input], rows: Rows) -> list[Mapping[str, Any]]:
    """The rows of links that there are: where a file lists all links of a server, what other files still name is gone.

    A server goes on counting for a link after it was deleted.
    """
    lists, rows = listing(inputs), list(rows)

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return row["snapshot"], row["server"], row["suffix"], row["name"]

    listed = {key(row) for row in rows if (row["snapshot"], row["file"]) in lists}
    told = {(snapshot, server) for (snapshot, _), server in lists.items()}
    return [row for row in rows if (row["snapshot"], row["server"]) not in told or key(row) in listed]


def links_of(inputs: Collection[Input], rows: Rows, vectors: Rows) -> list[dict[str, Any]]:
    """Each link once: supplier, suffix (empty: unnamed), name, address, enabled, and the consumer's server if anything tells it.

    `rows` are those of the table `links`: a server's agreement, its status and its replica entry each tell a part. The
    other end is known by its origin, unless another server is known to listen at the address; else by its address, or by
    a port that only one server has: an address is what a server is told to use, `localhost` on one machine and a full
    name on another. A port tells nothing where both names are full ones and differ, or where another address of the same
    server leads there: of the consumers of a hub none may be known, and all listen where their supplier does. `unlike`:
    the servers that the address is not of.

    Where consumers ask, the address leads to the supplier, which is called by it if nothing else tells who it is; and
    `why` says why a link does not run that its consumer is told to use.

    A file that lists the links counts more than one of the same snapshot that names them in passing: that may tell where a
    link led some time ago.
    """
    by_origin: dict[tuple[str, str], set[str]] = {}
    for (server, suffix), origin in origins_of(inputs).items():
        by_origin.setdefault((suffix, origin), set()).add(server)
    addresses: dict[tuple[str, str], set[str]] = {}
    hosts: dict[str, set[str]] = {}
    listens: dict[str, set[str]] = {}
    main: dict[str, set[str]] = {}
    for one in inputs:
        its = {*map(str.lower, one.facts.get("addresses", {}))}
        listens.setdefault(one.server, set()).update(its)
        if one.kind and not format_with(one.kind).encrypted:
            main.setdefault(one.server, set()).update(its)
    main_ports = {word for one in inputs if one.kind for word in format_with(one.kind).main_port}
    of_nobody: set[tuple[str, str]] = set()
    for vector in vectors:
        if address := (vector["url"] or "").partition("://")[2].strip("/").lower():
            suffix = vector["suffix"] or ""
            # The purge vector of a log is written with the server's own address for all origins.
            own = {vector["server"]} if vector["kind"] == "log_purge" else by_origin.get((suffix, vector["origin"]))
            if own and len(own) > 1:  # where two servers use one origin, the address is of the one that listens there
                own = {name for name in own if address in listens.get(name, ())} or {
                    name for name in own if not listens.get(name)
                }
            if not own:
                of_nobody.add((suffix, address))
            for key in (address, address.rpartition(":")[2]):
                addresses.setdefault((suffix, key), set()).update(own or ())
            if own and len(own) == 1:
                hosts.setdefault(next(iter(own)), set()).add(_host(address))
    lists, snapshots = listing(inputs), list(dict.fromkeys(one.snapshot for one in inputs))
    rows = sorted(rows, key=lambda row: (snapshots.index(row["snapshot"]), (row["snapshot"], row["file"]) in lists))
    suffixes = {row["suffix"] or "" for row in rows}
    for name, its in listens.items():  # a read-only server stands in no vector
        for address in its:
            hosts.setdefault(name, set()).add(_host(address))
            for suffix in suffixes:
                for key in (address, address.rpartition(":")[2]):
                    addresses.setdefault((suffix, key), set()).add(name)
    for suffix, address in of_nobody:
        # A server that was not collected has an address, too: without it another one's port would seem unique. Where a
        # collected server listens, it is an earlier origin of that server.
        if not addresses[suffix, address]:
            for key in (address, address.rpartition(":")[2]):
                addresses[suffix, key].add(_NOT_COLLECTED)
    known: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for row in rows:
        asked = address_in(row, "supplier") if row.get("role") == ASKS else ""
        about = known.setdefault((row["server"], row["suffix"] or "", row["name"] or "", asked), {})
        about |= {key: value for key, value in row.items() if value is not None}
    told: list[dict[str, Any]] = []
    by_port, reached = [], set()
    for server, suffix, name, _ in sorted(known):
        row = known[server, suffix, name, _]
        end = "supplier" if row.get("role") == ASKS else "consumer"
        address = address_in(row, end)
        port = f":{row[f'{end}_port']}" if f"{end}_port" in row else ""
        unlike = {other for other, its in hosts.items() if address and _all_unlike(its, _host(address.lower()))}
        if port and (row.get("transport") or "").lower() in main_ports:
            unlike |= {other for other, its in main.items() if _at_other_ports(its, address.lower())}
        at_port, at_address = addresses.get((suffix, port[1:]), set()), addresses.get((suffix, address.lower()), set())
        of_origin = by_origin.get((suffix, row.get("consumer_origin") or ""), set())
        host = _host(address.lower())
        here = at_address | {other for other in at_port if any(one_machine(its, host) for its in hosts.get(other, ()))}
        if here - {server, _NOT_COLLECTED} and of_origin & hosts.keys() and not of_origin & here:
            of_origin = set()  # it led there once: the address that it has now is another one's
        ways = [of_origin, at_address, set() if at_port <= unlike else at_port]
        found = next((way for way in ways if len(way) == 1), set())
        other = next(iter(found - {server, _NOT_COLLECTED}), None)
        names = {"server": server, "suffix": suffix, "name": name, "address": address or None, "other": other}
        more = {"role": row.get("role"), "enabled": row.get("enabled"), "automatic": row.get("automatic")}
        told.append({**names, **more, "unlike": frozenset(unlike)})
        reached.add((server, suffix, other, address.lower()))
        if found is at_port:
            by_port.append(told[-1])
    leading = Counter((server, suffix, other) for server, suffix, other, _ in reached)
    for link in by_port:
        if leading[link["server"], link["suffix"], link["other"]] > 1:
            link["other"] = None
    labels = {row["snapshot"] for row in rows}
    return _both_ends(told, {server for (snapshot, _), server in listing(inputs).items() if snapshot in labels})


ASKS, ALLOWS = "asks", "allows"
"""What a server does with a link that its consumer uses: the consumer asks, the supplier allows it."""

_NOT_ALLOWED = "its supplier does not let the consumer ask"


def _both_ends(told: list[dict[str, Any]], listing: set[str]) -> list[dict[str, Any]]:
    """The links, of what one end or the other tells; `listing`: the servers of which all that they tell is known."""
    asks, allows = ([link for link in told if link["role"] == role] for role in (ASKS, ALLOWS))
    links = [_link(link, link["server"], link["other"]) for link in told if not link["role"]]
    allowed = {(link["server"], link["suffix"], link["other"]) for link in allows}
    asked = {(link["other"], link["suffix"], link["server"]) for link in asks}
    for link in asks:
        # The consumer may know an address that the supplier does not call itself by: then who lets it ask tells.
        alone = sum((one["server"], one["other"]) == (link["server"], None) for one in asks) == 1
        may_be = {key[0] for key in allowed - asked if key[1:] == (link["suffix"], link["server"])} - link["unlike"]
        if link["other"] is None and alone and len(may_be) == 1:
            (link["other"],) = may_be
    seen = set()
    for link in asks:
        supplier, consumer, suffix = link["other"] or link["address"], link["server"], link["suffix"]
        if (supplier, suffix, consumer) in seen:
            continue
        seen.add((supplier, suffix, consumer))
        links.append(_link(link, supplier, consumer))
        if supplier in listing and not {(supplier, suffix, consumer), (supplier, suffix, None)} & allowed:
            links[-1] |= {"enabled": False, "why": _NOT_ALLOWED}
    for link in allows:
        # A consumer that does not ask, or of which it is not known whether it does.
        key = link["server"], link["suffix"], link["other"]
        if key not in seen and link["other"] not in listing:
            links.append(_link(link, link["server"], link["other"]))
    return sorted(links, key=lambda link: (link["supplier"], link["suffix"], link["name"]))


def _link(link: Mapping[str, Any], supplier: str, consumer: str | None) -> dict[str, Any]:
    kept = {key: link[key] for key in ("suffix", "name", "address", "enabled", "automatic", "unlike")}
    return {"supplier": supplier, "consumer": consumer, **kept, "why": None}


def address_in(row: Mapping[str, Any], end: str) -> str:
    """Host and port of that end; empty if they are not told."""
    host, port = row.get(f"{end}_host"), row.get(f"{end}_port")
    return "" if host is None else f"{host}:{port}" if port is not None else host


def _host(address: str) -> str:
    """The host of an address with or without a port."""
    host, _, port = address.rpartition(":")
    return host or port


def _all_unlike(hosts: Iterable[str], other: str) -> bool:
    """True if all are full names, and not that one. An address in numbers or a short name may be of any server."""
    return _full(other) and all(_full(host) and host != other for host in hosts)


def _at_other_ports(addresses: Iterable[str], other: str) -> bool:
    """True if all these addresses may be of that machine, and none has its port."""
    host, _, port = other.rpartition(":")
    known = [address.rpartition(":") for address in addresses]
    return bool(known) and all(one_machine(its, host) and at.isdigit() and at != port for its, _, at in known)


def _full(host: str) -> bool:
    machine, _, domain = host.partition(".")
    in_numbers = ":" in host or host.replace(".", "").isdigit()
    return bool(domain) and machine != "localhost" and not in_numbers


LOOPBACK = re.compile(r"localhost(\..+)?|127\.0\.0\.1|\[?::1\]?", re.IGNORECASE)
"""Names of the machine itself."""


def one_machine(one: str, other: str) -> bool:
    """True if two names may be of one machine: the same, or the short and the full name of it."""
    if LOOPBACK.fullmatch(one) and LOOPBACK.fullmatch(other):
        return True
    short = {one.partition(".")[0], other.partition(".")[0]}
    return one == other or (len(short) == 1 and bool({one, other} & short) and not next(iter(short)).isdigit())
