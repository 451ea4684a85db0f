"""Changes that only the log of a server without data still has: to fill it throws the log away.

c made 14 changes while its links were off, was initialised, and was killed in it
    its RUV names no position, its changelog was not replaced yet and has the 14, and no other server has them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from workbench.cases.case import Case
from workbench.engine.logs import StoredLog
from workbench.engine.positions import of_keys
from workbench.fleet.told import Evidence
from workbench.fleet.topology import Replica, Topology

if TYPE_CHECKING:
    from workbench.diagnosing.verdict_rows import Verdicts

LOG_ONLY = "log_only"
"""The key of such a row among those of stranded changes: the server itself has them no more."""


def note_left_in_logs(case: Case, shown: Topology, logs: Mapping[str, StoredLog], found: Verdicts, limit: int) -> None:
    """Add such changes to what is stranded."""
    for replica in shown.replicas:
        if replica.log is None or not replica.claims or any(span.max for span in replica.vector.values()):
            continue
        log = logs.get(replica.log.file) or case.log(replica.log)
        keys = sorted(islice(_of_nobody_else(shown, replica, log), limit))
        found.totals["stranded"] += len(keys)
        evidence = Evidence(case, shown, replica.suffix, sorted(log.origins()))
        about = evidence.described(of_keys(shown.system, keys, evidence.numbers), [replica.log]) if keys else {}
        found.stranded += [_row(shown, replica, key, about.get(key, {})) for key in keys]


def _of_nobody_else(shown: Topology, replica: Replica, log: StoredLog) -> Iterator[str]:
    """The changes of its log behind what every other server of the suffix has seen of their origins."""
    others = [one for one in shown.replicas if one.suffix == replica.suffix and one.server != replica.server]
    for origin in sorted(log.origins()) if others else ():
        newest = str((replica.log.facts["by_origin"] if replica.log else {})[origin]["max"])
        yield from log.of_origin(origin, max(other.top(origin) for other in others), newest)


def _row(shown: Topology, replica: Replica, key: str, about: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "server": replica.server,
        "suffix": replica.suffix,
        "origin": shown.system.origin_of(key),
        "position": shown.system.show(key),
        "operation": about.get("operation"),
        "target": about.get("target"),
        LOG_ONLY: True,
    }


def left_in_log(found: Verdicts, server: str | None, suffix: str | None) -> list[Mapping[str, Any]]:
    """The rows of such changes of one server."""
    return [row for row in found.stranded if row.get(LOG_ONLY) and (row["server"], row["suffix"]) == (server, suffix)]
