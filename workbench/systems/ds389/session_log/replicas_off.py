"""Replicas that do not replicate: the plug-in of their server is disabled, or they could not be set up at its last start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.model import first_few, step
from workbench.rules.link_failures import (
    BIND_REFUSED,
    PASSWORD_EXPIRED,
    REPLICATION_OFF,
    TLS,
    UNREACHABLE,
    LinkFailure,
    LinkKey,
)
from workbench.systems.ds389.rules.link_reasons import NO_LISTENER
from workbench.systems.ds389.session_log.initialisations import last_success
from workbench.systems.ds389.session_log.lines import WITH_TEXT, Place, line_shown, session_logs
from workbench.systems.ds389.session_log.link_fixes import Agreement, start_again
from workbench.systems.ds389.session_log.statuses import statuses_of

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.topology.topology import Link, Topology

Row = Mapping[str, Any]

_NOT_SET_UP, _ID_CHANGED = "replica_not_set_up", "replica_id_changed"
_CONNECTING = frozenset({BIND_REFUSED, PASSWORD_EXPIRED, TLS, UNREACHABLE})


@dataclass(frozen=True)
class ReplicaOff:
    """A server that neither sends nor takes changes.

    suffix     of which; None: of any
    evidence   rows that prove it
    by_plugin  its plug-in is disabled; else the replica was not set up at the last start
    at         when its log says so; None: not known, or its configuration says it
    in_force   False: the plug-in was disabled since the start, and still runs
    ids        the replica ID of its configuration and the one that it made changes with, where that is why it was not set up
    """

    server: str
    suffix: str | None
    evidence: tuple[Mapping[str, Any], ...]
    by_plugin: bool
    at: datetime | None = None
    in_force: bool = True
    ids: tuple[str, str] | None = None

    @property
    def clause(self) -> str:
        """The cause of a failure at its ends, and what a first line says."""
        if self.by_plugin:
            return f"replication is switched off on {self.server}"
        return f"the replica of {self.server} was not set up at its start"

    @property
    def short(self) -> str:
        """The same in a few words."""
        return f"replication off on {self.server}" if self.by_plugin else f"replica of {self.server} not set up"

    def is_end_of(self, link: Link, told: LinkFailure | None) -> bool:
        """True if the link begins or ends there; `told` may say which server its address means."""
        ends = {link.supplier, link.consumer or (told.means if told else None)}
        return self.suffix in (None, link.suffix) and self.server in ends


def not_reached(failure: LinkFailure) -> bool:
    """True if a session does not get as far as to ask the consumer for its replica."""
    return failure.itself or failure.reason in _CONNECTING or failure.short == NO_LISTENER


def link_begins(link: Link, ends: Iterable[ReplicaOff]) -> bool:
    """True if the link begins at one of these: whatever its status still says, no session begins there."""
    return any(one.server == link.supplier for one in ends)


def off_at(ends: Sequence[ReplicaOff], link: Link, told: LinkFailure | None) -> LinkFailure:
    """Why a link between these does not run. `told` is what its status says."""
    consumer = link.consumer or (told.means if told else None) or link.address or ""
    agreement = Agreement(link.name, link.supplier, consumer, link.suffix or "SUFFIX", link.address or "")
    first = step("do what REPLICATION_OFF says", " and ".join(one.clause for one in ends))
    return replace(
        told or LinkFailure(REPLICATION_OFF, "", ""),
        reason=REPLICATION_OFF,
        says=" and ".join(one.clause for one in ends),
        short=", ".join(one.short for one in ends),
        evidence=(*(told.evidence if told else ()), *(row for one in ends for row in one.evidence)),
        fix=(first, *([start_again(agreement)] if told else [])),
    )


def replicas_off(case: Case, shown: Topology, statuses: Mapping[LinkKey, Row]) -> list[ReplicaOff]:
    """The servers of a snapshot on which replication does not run, or will not run after their next start."""
    return [*_plugins(case, shown, statuses), *_not_set_up(case, shown, statuses)]


def kept_origins(case: Case, shown: Topology) -> dict[tuple[str, str | None], str]:
    """Server and suffix -> the replica ID that its data has, where its configuration has another one and it refuses that."""
    if not any(one.facts.get("codes", {}).get(_ID_CHANGED) for one in case.inputs):
        return {}
    statuses = statuses_of(case, shown.snapshot)
    return {(one.server, one.suffix): one.ids[1] for one in _not_set_up(case, shown, statuses) if one.ids}


def _plugins(case: Case, shown: Topology, statuses: Mapping[LinkKey, Row]) -> Iterator[ReplicaOff]:
    """The plug-in that replicates is disabled: the server records nothing, sends nothing, and understands no supplier.

    While it runs, its agreements show a status, and its replicas their RUV.
    """
    told: dict[str, list[Any]] = {}
    for one in case.inputs:
        if one.snapshot == shown.snapshot and one.facts.get("replication"):
            told.setdefault(one.server, []).append(one)
    for server, files in sorted(told.items()):
        if any("on" in one.facts["replication"] for one in files):
            continue
        runs = any(row.get("status") for (supplier, _, _), row in statuses.items() if supplier == server)
        runs = runs or any(one.facts.get("vectors") for one in files)
        yield ReplicaOff(server, None, ({"file": files[0].file},), by_plugin=True, in_force=not runs)


def _not_set_up(case: Case, shown: Topology, statuses: Mapping[LinkKey, Row]) -> Iterator[ReplicaOff]:
    """The last start of a server could not set a replica up, as when a file of its database is gone.

    Nothing is said where its log was not collected with this snapshot, or a session with it succeeded since.
    """
    here = {one.server for one in case.inputs if one.snapshot == shown.snapshot and one.facts.get("codes")}
    servers = {one.server for one in case.inputs if one.facts.get("codes", {}).get(_NOT_SET_UP)} & here
    for log in session_logs(case.until(shown.snapshot)) if servers else ():
        failed: dict[str | None, list[tuple[Row, Place]]] = {}
        changed: dict[str | None, tuple[str, str]] = {}
        ids: tuple[str, str] | None = None
        of = {one.suffix for one in shown.replicas if one.server == log.server}
        codes = ("starting", "replica_removed", _NOT_SET_UP, _ID_CHANGED)
        for row, place in log.lines(codes, [*WITH_TEXT, "suffix"]) if log.server in servers else ():
            if row["code"] == "starting":
                failed.clear()
                changed.clear()
                ids = None
            elif row["code"] == "replica_removed":  # what is set up since is another one
                failed.pop(row["suffix"], None)
            elif row["code"] == _ID_CHANGED:
                told = dict(row["numbers"])
                ids = told["now"], told["before"]
            else:
                suffix = row["suffix"] or (next(iter(of)) if len(of) == 1 else None)
                failed.setdefault(suffix, []).append((row, place))
                if ids:  # the line before: of this replica
                    changed[suffix], ids = ids, None
        for suffix, lines in failed.items():
            at = next((place.at for _, place in lines if place.at), None)
            if suffix in of and not _exchanged(shown, statuses, log.server, suffix, at):
                rows = first_few(line_shown(row, place) for row, place in lines)
                ids = changed.get(suffix)
                if ids and not _of_this(case, shown, log.server, suffix, ids):
                    continue  # it was set up anew since
                yield ReplicaOff(log.server, suffix, rows, by_plugin=False, at=at, ids=ids)


def _of_this(case: Case, shown: Topology, server: str, suffix: str | None, ids: tuple[str, str]) -> bool:
    """True if the replica has one of these IDs, and no vector names the new one with an address of this server."""
    origins = {one.origin for one in shown.replicas if (one.server, one.suffix) == (server, suffix)}
    mine = [one for one in case.inputs if (one.server, one.snapshot) == (server, shown.snapshot)]
    at = {address for one in mine for address in one.facts.get("addresses", {})}
    elements = [
        (row["url"] or "").partition("://")[2].strip("/").lower()
        for row in (case.arrow("vectors").to_pylist() if at else ())
        if (row["snapshot"], row["kind"], row["suffix"], row["origin"]) == (shown.snapshot, "server", suffix, ids[0])
    ]
    return bool(origins & {*ids}) and at.isdisjoint(elements)


def _exchanged(
    shown: Topology, statuses: Mapping[LinkKey, Row], server: str, suffix: str | None, since: datetime | None
) -> bool:
    """True if a session from or to the server succeeded after that."""
    rows = (
        statuses.get((link.supplier, suffix, link.name), {})
        for link in shown.links
        if link.suffix == suffix and server in (link.supplier, link.consumer)
    )
    return since is not None and any((ended := last_success(row)) and ended > since for row in rows)
