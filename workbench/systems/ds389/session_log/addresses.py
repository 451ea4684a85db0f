"""Where the collected servers listen, as far as vectors, agreements and logs tell it."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.intake.links import one_machine
from workbench.rules.link_failures import LinkKey
from workbench.systems.ds389.formats.directory import REPLICA
from workbench.systems.ds389.rules.link_reasons import LDAPS
from workbench.systems.ds389.session_log.fillings_begun import Fillings, fillings_of
from workbench.systems.ds389.session_log.statuses import statuses_of

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link, Topology


def addresses_of(context: DetectorContext) -> Addresses:
    """Those of a case: to be asked for by `context.once`."""
    return Addresses(context.case, context.topology)


class Addresses:
    """Where the collected servers listen, by their own vectors and by the links that lead to them."""

    def __init__(self, case: Case, shown: Topology) -> None:
        self.case, self.shown = case, shown
        self.of: dict[str, Counter[str]] = {}
        self.silent: dict[str, str] = {}
        """Address -> a server that did not answer, and whose log names the address as its own."""
        for link in shown.links:
            if link.consumer and link.address:
                self.of.setdefault(link.consumer, Counter())[link.address] += 1
        used = Counter((one.suffix, one.origin) for one in shown.replicas)
        # Of an origin that two replicas use the address is that of either, also in the vectors of both.
        own = {(x.server, x.suffix, x.origin) for x in shown.replicas if x.origin and used[x.suffix, x.origin] == 1}
        for row in case.arrow("vectors").select(["snapshot", "server", "suffix", "origin", "url", "kind"]).to_pylist():
            server = row["server"]
            told = row["kind"] == "server" and row["snapshot"] == shown.snapshot and row["url"]
            if told and (server, row["suffix"], row["origin"]) in own:
                self.of.setdefault(server, Counter())[row["url"].partition("://")[2].strip("/").lower()] += 1
        self.configured: dict[str, Counter[str]] = {}
        """Where servers listen by their own configuration; of a log nothing tells which of its addresses is of now."""
        self.only: dict[str, str] = {}
        """Server -> the one name or address on which it listens, of those that do not on all."""
        for one in case.inputs:
            if one.server in shown.down:
                self.silent |= dict.fromkeys(one.facts.get("addresses", {}), one.server)
            if one.snapshot == shown.snapshot and one.kind == REPLICA.key:
                self.configured.setdefault(one.server, Counter()).update(one.facts.get("addresses", {}))
            if one.snapshot == shown.snapshot and (only := one.facts.get("listens_only_at")):
                self.only[one.server] = only

    def meant(self, link: Link) -> tuple[str, str] | None:
        """(server, address) of the consumer that a link probably means to reach at another address; None: nothing tells.

        Where the consumer is not known, it is a server of the suffix on the same host that no link of the supplier leads to: the
        one whose name the name of the link ends in, else the only one, if no link of any server leads to it. Where a server did
        not answer and no link is known to lead to it, the address may be its own.
        """
        mine = {one.consumer for one in self.shown.links if one.supplier == link.supplier and one.suffix == link.suffix}
        host = (link.address or "").rpartition(":")[0]
        there = {one.server for one in self.shown.replicas if one.suffix == link.suffix} - {link.supplier}
        led = {one.consumer for one in self.shown.links if one.suffix == link.suffix}
        if link.consumer is None and self.shown.down - led:
            return None
        known = []
        for server in sorted({link.consumer or ""} if link.consumer in there else there - mine):
            its = self.of.get(server) or (
                Counter() if self._from_the_start(link) else self.configured.get(server, Counter())
            )
            found = [one.rpartition(":") for one, _ in its.most_common()]
            at = [f"{host}:{port}" for where, _, port in found if one_machine(where, host)]
            if others := [one for one in at if one != link.address]:
                known.append((server, others[0]))
        named = [one for one in known if re.search(rf"(?:^|[^0-9A-Za-z]){re.escape(one[0])}$", link.name)]
        if len(named) == 1 or link.consumer:
            return next(iter(named or known), None)
        return known[0] if len(known) == 1 and known[0][0] not in led else None

    def _from_the_start(self, link: Link) -> bool:
        """True if a link encrypts its connection from the start: it needs a port of its own."""
        row = self._statuses.get((link.supplier, link.suffix, link.name), {})
        return (row.get("transport") or "").lower() in LDAPS

    @cached_property
    def _statuses(self) -> dict[LinkKey, dict[str, Any]]:
        return statuses_of(self.case, self.shown.snapshot)

    def elsewhere(self, link: Link, transport: str | None) -> str:
        """The one name or address on which the consumer takes plain connections, where the link leads to another one."""
        only = self.only.get(link.consumer or "", "")
        host = (link.address or "").lower().rpartition(":")[0]
        secure = (transport or "").lower() in ("ldaps", "ssl")
        return "" if secure or link.consumer in self.shown.down or one_machine(only, host) else only

    def is_at(self, server: str, address: str | None) -> bool:
        """True if the server listens at this address, as vectors or other links tell."""
        host, _, port = (address or "").lower().rpartition(":")
        known = (one.lower().rpartition(":") for one in self.of.get(server, ()))
        return any(port == its_port and one_machine(its, host) for its, _, its_port in known)

    def is_of(self, server: str, address: str | None) -> bool:
        """The same, also of a server that did not answer."""
        return self.is_at(server, address) or self.silent_at(address) == server

    @cached_property
    def fillings(self) -> Fillings:
        """The fillings that suppliers began, by their logs."""
        return fillings_of(self.case, self.shown)

    def leads_back(self, link: Link) -> bool:
        """True if the address of a link is that of its own supplier, and nothing but the link has it for that of its consumer."""
        known = self.of.get(link.consumer or "", Counter())
        others = {address for address, count in known.items() if count > (address == link.address)}
        host, _, port = (link.address or "").lower().rpartition(":")
        there = (address.lower().rpartition(":") for address in others)
        if link.consumer != link.supplier and any(
            its_port == port and one_machine(its, host) for its, _, its_port in there
        ):
            return False
        return self.is_at(link.supplier, link.address)

    def listening(self, link: Link) -> str | None:
        """The only collected server of the suffix that is known to listen at the address of a link."""
        there = {one.server for one in self.shown.replicas if one.suffix == link.suffix} - {link.supplier}
        found = [server for server in sorted(there) if self.is_at(server, link.address)]
        return found[0] if len(found) == 1 else None

    def silent_at(self, address: str | None) -> str | None:
        """The server that did not answer, and whose log names this address, or the other name of its machine, as its own."""
        host, _, port = (address or "").lower().rpartition(":")
        for known, server in sorted(self.silent.items()):
            its, _, its_port = known.lower().rpartition(":")
            if port == its_port and one_machine(its, host):
                return server
        return None
