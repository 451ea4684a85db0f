"""A case with its diagnosis at hand: what a page asks again and again is answered from memory, from digests and by few reads.

    incident = Incident("incident-42")
    incident.found                        what `diagnose` says, made once
    incident.cell("s3", "1")              what s3 has, misses and waits for of origin 1
    incident.session("s1", "s3").page()   what a session would do, change by change

Nothing here grows with the data but what somebody asks for page by page.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.demo import demo_case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story_in
from workbench.diagnosis.snapshot_choice import case_at
from workbench.model import Problem
from workbench.replication.changelog.diagnosis.planned_sessions import session_in
from workbench.rules.send_session import Bound
from workbench.systems import system_named
from workbench.topology.topology import Replica, Topology, logs_of, topology

if TYPE_CHECKING:
    from workbench.engine.logs import StoredLog
    from workbench.model import System
    from workbench.replication.changelog.diagnosis.planned_sessions import PlannedSession

CASE = "WORKBENCH_CASE"
"""Names the case of notebooks that name none; `workbench lab CASE` sets it."""

RECORD = "WORKBENCH_RUN_RECORD"
"""In the environment of a run without a person: the file that the last cell of its notebook writes (`workbench.runs.facts`)."""

ALL = "*"
"""Stands for all servers, or all origins, where one can be chosen."""


def open_case(folder: str | Path = "") -> Case:
    """The case in this folder; without a name the one of WORKBENCH_CASE, else the demo incident, made if it is not there."""
    named = str(folder) or os.environ.get(CASE, "")
    return Case.open(named) if named else demo_case()


class Incident:
    """A case, diagnosed as of one of its snapshots.

    case    the whole case; `then` is the case as of the chosen snapshot
    found   the diagnosis (`findings.json`)
    """

    def __init__(self, case: Case | str | Path = "", as_of: str | None = None) -> None:
        self.case = case if isinstance(case, Case) else open_case(case)
        self.then = self.case
        self.go_to(as_of)

    def go_to(self, as_of: str | None) -> None:
        """Look at the case as of an earlier snapshot (its label, or a time); None: the last one."""
        self.then = case_at(self.case, as_of or None)
        for made in ("found", "topology", "_logs", "_sessions"):
            self.__dict__.pop(made, None)

    @property
    def then_label(self) -> str:
        """The label of the chosen snapshot."""
        return next(reversed(self.then.snapshots), "")

    @property
    def system(self) -> System:
        """The replicated system that the evidence comes from."""
        if self.case.system is None:
            raise Problem("the case holds no evidence", str(self.case.folder), "`workbench load` something into it")
        return system_named(self.case.system)

    @cached_property
    def topology(self) -> Topology:
        """The replicas and links of the chosen snapshot."""
        return topology(self.then)

    @cached_property
    def found(self) -> dict[str, Any]:
        """The diagnosis."""
        return diagnose(self.then)

    @cached_property
    def _logs(self) -> dict[str, StoredLog]:
        return logs_of(self.then, self.topology)

    @cached_property
    def _sessions(self) -> dict[tuple[str | None, ...], PlannedSession]:
        return {}

    def log_of(self, replica: Replica) -> StoredLog | None:
        """The present log of a server, to be asked; it remembers what it read. None: it was not collected, or it keeps none."""
        return self._logs.get(replica.log.file) if replica.log else None

    def when(self, position: str | None) -> str | None:
        """When a change was made, by the clock of its origin, as text for people (UTC); None: its position does not tell."""
        key = self.system.typed(position) if position else None
        moment = self.system.moment(key) if key else None
        return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else None

    def written(self, origin: str, position: str) -> str:
        """A position as it is to be typed: with its origin in front where the system takes it for that of another one else."""
        key = self.system.typed(position)
        return position if key and self.system.origin_of(key) == origin else f"{origin}:{position}"

    def session(
        self, supplier: str, consumer: str, suffix: str | None = None, rules: str | None = None
    ) -> PlannedSession:
        """The session that this supplier would hold with this consumer; asked again, it remembers what it read."""
        asked = supplier, consumer, suffix, rules
        if asked not in self._sessions:
            self._sessions[asked] = session_in(self.topology, self._logs, supplier, consumer, suffix, rules)
        return self._sessions[asked]

    def story(self, position: str, server: str | None = None) -> dict[str, Any]:
        """One change: who has it, what proves that, who would send it."""
        return story_in(self.then, self.topology, self._logs, position, server)

    def cell(self, server: str, origin: str, suffix: str | None = None) -> dict[str, Any]:
        """What a server has of an origin: its claim, its log, and the rows of the diagnosis about both.

        Keys: server, suffix, origin, min, max, changes, first, last (of its present log), missing, pending, unknown, stranded.
        """
        replica = next(
            (one for one in self.topology.replicas if one.server == server and suffix in (None, one.suffix)), None
        )
        if replica is None:
            names = ", ".join(sorted({one.server for one in self.topology.replicas if suffix in (None, one.suffix)}))
            of = f" of {suffix}" if suffix else ""
            raise Problem(f"no server{of} is named {server}", self.topology.snapshot, f"there are {names or 'none'}")
        show, span = self.system.show, replica.vector.get(origin)
        log = self.log_of(replica)
        if self.system.streaming:  # what such a log holds of an origin is all that its server claims
            seen, span = replica.log.facts.get("by_origin", {}) if replica.log else {}, replica.seen().get(origin)
            logged = seen[origin]["count"] if origin in seen else 0, span and span.min, span and span.max
        else:
            first = log.first_of(origin) if log else None
            held = log.tally(origin, Bound(first, True), None) if log and first else None
            logged = (held.changes, held.first, held.last) if held else (0, None, None)

        def mine(name: str) -> list[dict[str, Any]]:
            return [
                row
                for row in self.found[name]
                if (row["server"], row["origin"], row["suffix"]) == (server, origin, replica.suffix)
            ]

        return {
            "server": server,
            "suffix": replica.suffix,
            "origin": origin,
            "min": show(span.min) if span and span.min else None,
            "max": show(span.max) if span and span.max else None,
            "changes": logged[0],
            "first": show(logged[1]) if logged[1] else None,
            "last": show(logged[2]) if logged[2] else None,
            **{name: mine(name) for name in ("missing", "pending", "unknown", "stranded")},
        }
