"""At which ports a server listens for LDAP and for LDAPS, by its own files, and why a supplier did not reach one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.intake.links import one_machine
from workbench.rules.link_failures import REFUSED, TLS, UNREACHABLE
from workbench.systems.ds389.formats.certificates import CERTIFICATES
from workbench.systems.ds389.rules.ldap_results import in_words
from workbench.systems.ds389.rules.link_reasons import (
    CONNECTED,
    CONSUMER_DOWN,
    LDAPS,
    NO_LISTENER,
    NO_WAY,
    NOT_CONNECTED,
    NOTHING_LISTENS,
    PLAIN_PORT,
    TLS_FAILS,
    Cause,
    encrypted,
)
from workbench.systems.ds389.session_log.lines import WITH_TEXT, SessionLog

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.topology.topology import Link

_LISTENS = re.compile(r"Listening on .{0,300} port ([0-9]{1,5}) for (LDAPS?) requests")


@dataclass(frozen=True)
class PlainPort:
    """The port of an agreement that starts with LDAPS, where its consumer listens for plain LDAP.

    encrypted  the port at which the consumer listens for LDAPS; empty: its files name none
    """

    consumer: str
    encrypted: str


def plain_port(
    case: Case, snapshot: str, link: Link, consumer: str | None, transport: str | None, logs: Iterable[SessionLog]
) -> PlainPort | None:
    """The plain port of its consumer that an LDAPS agreement leads to; None: no file of the consumer tells that it does.

    What the server said as it last started counts, as long as it has not stopped since.
    """
    host, _, port = (link.address or "").lower().rpartition(":")
    if consumer is None or (transport or "").lower() not in LDAPS:
        return None
    files = [one for one in case.inputs if (one.server, one.snapshot) == (consumer, snapshot)]
    known = {address.rpartition(":")[0] for one in files for address in one.facts.get("addresses", {})}
    ports: dict[str, set[str]] = {"LDAP": set(), "LDAPS": set()}
    for log in (log for log in logs if log.server == consumer):
        for row, _ in log.lines(("started", "listening_encrypted", "stopped"), WITH_TEXT):
            if row["code"] != "listening_encrypted":
                ports = {"LDAP": set(), "LDAPS": set()}
            if found := _LISTENS.search(row["text"] or ""):
                ports[found[2]].add(found[1])
    if port not in ports["LDAP"] or not any(one_machine(its, host) for its in known):
        return None
    of_certificates = {
        address.rpartition(":")[2]
        for one in files
        if one.kind == CERTIFICATES.key
        for address in one.facts.get("addresses", {})
    }
    others = (ports["LDAPS"] or of_certificates) - {port}
    return PlainPort(consumer, next(iter(others)) if len(others) == 1 else "")


def why_not_reached(
    link: Link,
    row: Mapping[str, Any],
    code: int,
    network: int | None,
    down: str | None,
    live: bool,
    only: str,
    plain: PlainPort | None,
) -> Cause:
    """What kept the supplier from connecting, by the network error in its log.

    code: the result of the attempt. down: the consumer did not answer. live: it did, when it was collected; else somebody put its
    files together. only: the one address on which it listens, if the agreement leads to another one.
    """
    address = link.address or "its address"
    refused = network in NOTHING_LISTENS
    way = NO_WAY.get(network or 0, "")
    if plain and not down and (network is None or network in CONNECTED or network == NOT_CONNECTED):
        says = f"the agreement uses LDAPS, and {plain.consumer} listens at {address} for plain LDAP (its errors log says so)"
        return Cause(TLS, code, f"{says}: {in_words(code)}", PLAIN_PORT)
    if refused or down:
        what = f"connection refused, nothing listens at {address}" if refused else "no connection"
        what = f"{what}, {way}" if way else what
        elsewhere = f"; {link.consumer} listens at {only} alone (nsslapd-listenhost)" if refused and only else ""
        asked = f"; {down} could not be read when servers were collected" if down else ""
        says = f"{what}{asked}{elsewhere}: {in_words(code)}"
        return Cause(UNREACHABLE if down else REFUSED, code, says, CONSUMER_DOWN if down else NO_LISTENER)
    if way:
        says = f"no connection to {address}, {way} (network error {network}): {in_words(code)}"
        return Cause(UNREACHABLE, code, says, way)
    if encrypted(row.get("transport")) and network in CONNECTED:
        says = f"{address} accepts connections, and no encrypted connection comes about: {in_words(code)}"
        return Cause(TLS, code, says, TLS_FAILS)
    if encrypted(row.get("transport")) and link.consumer and network is None:
        runs = f"{link.consumer} runs" if live else f"the files of {link.consumer} were collected"
        says = f"no encrypted connection to {address} comes about, and {runs}: {in_words(code)}"
        return Cause(TLS, code, says, TLS_FAILS)
    says = f"no connection to {address}{f' (network error {network})' if network else ''}: {in_words(code)}"
    return Cause(UNREACHABLE, code, says, "no connection")
