"""Replicas that do not replicate: the plug-in of their server is disabled, or they could not be set up at its last start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.model import first_few
from workbench.rules.link_failures import (
    BIND_REFUSED,
    PASSWORD_EXPIRED,
    REPLICATION_OFF,
    SCHEDULE_CLOSED,
    TLS,
    UNREACHABLE,
    LinkFailure,
)
from workbench.systems.ds389.detectors.shown import Row, line_shown
from workbench.systems.ds389.logged.lines import WITH_TEXT, Place, session_logs

if TYPE_CHECKING:
    from workbench.cases.case import Case
    from workbench.fleet.topology import Link, Topology

_NOT_SET_UP = "replica_not_set_up"
_BEFORE_THAT = frozenset({BIND_REFUSED, PASSWORD_EXPIRED, SCHEDULE_CLOSED, TLS, UNREACHABLE})
"""Reasons for which a session does not get as far as to ask for a replica."""


@dataclass(frozen=True)
class SwitchedOff:
    """A server that neither sends nor takes changes.

    suffix    of which; None: of any
    at        when its log says so; None: not known, or its configuration says it
    evidence  rows that prove it
    """

    server: str
    suffix: str | None
    evidence: tuple[Mapping[str, Any], ...]
    by_plugin: bool
    at: str = ""

    @property
    def clause(self) -> str:
        """The cause of a failure at its ends, and what a first line says."""
        if self.by_plugin:
            return f"replication is switched off on {self.server}"
        return f"the replica of {self.server} was not set up at its start"

    def is_end_of(self, link: Link) -> bool:
        """True if the link begins or ends there."""
        return self.suffix in (None, link.suffix) and self.server in (link.supplier, link.consumer)

    def leaves(self, link: Link, told: LinkFailure) -> bool:
        """True if the link fails for a reason of its own, before a session asks this server for anything."""
        return self.server == link.consumer and told.reason in _BEFORE_THAT

    def failure(self, link: Link, told: LinkFailure | None) -> LinkFailure:
        """Why a link from or to it does not run. `told` is what its status says."""
        short = f"replication off on {self.server}" if self.by_plugin else f"replica of {self.server} not set up"
        heard = told if told and self.server == link.consumer else None
        return LinkFailure(
            REPLICATION_OFF,
            self.clause,
            short,
            since=heard.since if heard else None,
            since_is=heard.since_is if heard else "",
            attempts=heard.attempts if heard else None,
            evidence=(*(heard.evidence if heard else ()), *self.evidence),
        )


def switched_off(case: Case, shown: Topology) -> list[SwitchedOff]:
    """The servers of a snapshot on which replication does not run."""
    return [*_plugins(case, shown), *_not_set_up(case, shown)]


def _plugins(case: Case, shown: Topology) -> Iterator[SwitchedOff]:
    """The plug-in that replicates is disabled: the server records nothing, sends nothing, and understands no supplier."""
    told: dict[str, list[Any]] = {}
    for one in case.inputs:
        if one.snapshot == shown.snapshot and one.facts.get("replication"):
            told.setdefault(one.server, []).append(one)
    for server, files in sorted(told.items()):
        if not any("on" in one.facts["replication"] for one in files):
            yield SwitchedOff(server, None, ({"file": files[0].file},), by_plugin=True)


def _not_set_up(case: Case, shown: Topology) -> Iterator[SwitchedOff]:
    """The last start of a server could not set a replica up, as when a file of its database is gone."""
    servers = {one.server for one in case.inputs if one.facts.get("codes", {}).get(_NOT_SET_UP)}
    for log in session_logs(case.until(shown.snapshot)) if servers else ():
        failed: dict[str | None, list[tuple[Row, Place]]] = {}
        of = {one.suffix for one in shown.replicas if one.server == log.server}
        for row, place in log.lines(("starting", _NOT_SET_UP), [*WITH_TEXT, "suffix"]) if log.server in servers else ():
            if row["code"] == "starting":
                failed.clear()
            else:
                suffix = row["suffix"] or (next(iter(of)) if len(of) == 1 else None)
                failed.setdefault(suffix, []).append((row, place))
        for suffix, lines in failed.items():
            if suffix in of:
                at = next((f"{place.at:%Y-%m-%d %H:%M:%S} UTC" for _, place in lines if place.at), "")
                shown_lines = first_few(line_shown(row, place) for row, place in lines)
                yield SwitchedOff(log.server, suffix, shown_lines, by_plugin=False, at=at)
