"""Logs of which no file tells the suffix: what such a log has, is not on another server alone.

of s2 only a changelog was collected, which names no suffix, and has the 3 changes of s1 that s3 waits for     s1 and s2 have them
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.cases.case import Case
from workbench.engine.logs import StoredLog

if TYPE_CHECKING:
    from workbench.diagnosing.verdict_rows import Verdicts
    from workbench.fleet.topology import Topology


def drop_what_unnamed_logs_hold(case: Case, shown: Topology, logs: Mapping[str, StoredLog], found: Verdicts) -> None:
    """Take out of what is stranded the changes that such a log of another server has."""
    unnamed = [one for one in shown.replicas if one.suffix is None and one.log is not None and not one.claims]
    for replica in unnamed:
        assert replica.log is not None
        log = logs.get(replica.log.file) or case.log(replica.log)
        kept = [
            row
            for row in found.stranded
            if row["suffix"] is None
            or row["server"] == replica.server
            or not log.holds(shown.system.typed(row["position"]) or "")
        ]
        found.totals["stranded"] -= len(found.stranded) - len(kept)
        found.stranded[:] = kept
