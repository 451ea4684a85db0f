"""CleanAllRUV: whom the task waits for, and which changes of the cleaned replica ID nobody will be sent again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.systems.ds389.versions import Version
    from workbench.topology.topology import Topology

SELF, DIRECT, INDIRECT = "self", "direct", "indirect"
WAITS, PROCEEDS, ABORT_WAITS, ABORT_ENDS = "waits", "proceeds", "abort_waits", "abort_ends"

_TASK = re.compile(r"0*([0-9]{1,5}):(?:([0-9a-fA-F]{20}):)?(yes|no):([01])(?::.*)?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class CleanTask:
    """A value of nsds5ReplicaCleanRUV: it survives a restart of the server.

    max_csn  up to where all have to be before it is cleaned; empty: the value does not tell it, as in newer versions
    """

    rid: str
    max_csn: str
    force: bool
    original: bool


@dataclass(frozen=True)
class Server:
    """What a server is to the task; `reach` is seen from where the task runs, `max` the last CSN it claims of the rid."""

    reach: str
    enabled: bool
    online: bool
    max: str | None

    def covers(self, csn: str) -> bool:
        """True if its vector claims the CSN."""
        return self.max is not None and csn <= self.max


def clean_task(value: str) -> CleanTask | None:
    """The task that a value `rid:maxcsn:force:original` or `rid:force:original:suffix` stands for; None if it is neither."""
    found = _TASK.fullmatch(value.strip())
    if not found:
        return None
    return CleanTask(str(int(found[1])), (found[2] or "").lower(), found[3].lower() == "yes", found[4] == "1")


def waits_for(task: CleanTask, servers: Mapping[str, Server]) -> list[str]:
    """The servers without which the task does not go on; a forced one asks nobody, not even its own server.

    Those behind a disabled agreement and those more than one hop away are never waited for: they are who loses.
    """

    def awaited(server: Server) -> bool:
        if server.reach == SELF:
            return not server.covers(task.max_csn)
        asked = server.reach == DIRECT and server.enabled
        return asked and not (server.online and server.covers(task.max_csn))

    return [] if task.force else sorted(name for name, server in servers.items() if awaited(server))


def state_of(
    task: CleanTask, servers: Mapping[str, Server], aborted: bool, certify_all: bool = False
) -> tuple[str, list[str]]:
    """What the task does now, and whom it waits for. An abort that is certified waits for every server, however far."""
    if aborted:
        offline = sorted(name for name, server in servers.items() if not server.online) if certify_all else []
        return (ABORT_WAITS if offline else ABORT_ENDS), offline
    names = waits_for(task, servers)
    return (WAITS if names else PROCEEDS), names


def lost_by_cleaning(changes: Iterable[str], servers: Mapping[str, Server]) -> dict[str, list[str]]:
    """Server -> the changes that it lacks: once the rid is cleaned, no session sends them to it."""
    changes = sorted(set(changes))
    lacking = {name: [csn for csn in changes if not server.covers(csn)] for name, server in servers.items()}
    return {name: csns for name, csns in lacking.items() if csns}


def safe_to_clean(task: CleanTask, servers: Mapping[str, Server]) -> bool:
    """True if every server is there and has everything of the rid."""
    return all(server.online and server.covers(task.max_csn) for server in servers.values())


CRASHES_ALONE = "2.3.1 was seen to crash when a read-only server is told to clean itself"
_SURVIVES = (3, 1, 2)
"""The first version of which a read-only server was seen to clean itself and to run on."""


def may_clean_itself(keeps_log: bool, version: Version | None) -> bool:
    """True if a server may be told to take a replica ID out of its own RUV (`CLEANRUV`): one without a changelog may crash."""
    return keeps_log or (version is not None and version >= _SURVIVES)


CRASHES_REACHED = (
    "2.3.1 was seen to crash as the cleaning reaches a read-only server, and again at each start while the task runs"
)


def read_only_reached(shown: Topology, suffix: str | None) -> list[str]:
    """The servers without a changelog to which a cleaning comes: a link of a supplier that is on leads there."""
    mine = [one for one in shown.replicas if one.suffix == suffix and one.claims]
    makers = {one.server for one in mine if one.origin is not None}
    led = {
        one.consumer
        for one in shown.links
        if one.suffix == suffix and one.enabled is not False and one.supplier in makers
    }
    return sorted({one.server for one in mine if not one.keeps_log} & led)


def survives_cleaning(version: Version | None) -> bool | None:
    """True if a read-only server of this version was seen to run on where a cleaning reaches it; None: it may be any version."""
    return version >= _SURVIVES if version is not None else None


def behind_hubs(shown: Topology, suffix: str | None) -> list[str]:
    """The servers to which no known link of a supplier leads, those behind known hubs first, the nearest first.

    Hubs pass no cleaning on; who feeds the others, nothing tells.
    """
    mine = [one for one in shown.replicas if one.suffix == suffix and one.claims]
    makers = {one.server for one in mine if one.origin is not None}
    on = [link for link in shown.links if link.suffix == suffix and link.enabled is not False]
    cleaned = {link.consumer for link in on if link.supplier in makers} | makers
    found: list[str] = []
    reached = {one.server for one in mine} & cleaned
    while step := {link.consumer for link in on if link.supplier in reached and link.consumer} - cleaned - {*found}:
        reached = step & {one.server for one in mine}
        found += sorted(reached)
    return found + sorted({one.server for one in mine} - cleaned - {*found})
