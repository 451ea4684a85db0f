"""Logs of which no file tells the suffix: what such a log has, is not on another server alone.

of s2 only a changelog was collected, which names no suffix, and has the 3 changes of s1 that s3 waits for     s1 and s2 have them
its records of these CSNs are of entries below o=other     they are changes of another suffix, and tell nothing of these 3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.diagnosis.left_in_logs import suffix_of
from workbench.engine.logs import StoredLog
from workbench.engine.positions import of_keys
from workbench.engine.selective_read import rows_at

if TYPE_CHECKING:
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.intake.inputs import Input
    from workbench.model import System
    from workbench.topology.topology import Topology


def drop_what_unnamed_logs_hold(case: Case, shown: Topology, logs: Mapping[str, StoredLog], found: Verdicts) -> None:
    """Take out of what is stranded the changes that such a log of another server has."""
    unnamed = [one for one in shown.replicas if one.suffix is None and one.log is not None and not one.claims]
    for replica in unnamed:
        assert replica.log is not None
        log = logs.get(replica.log.file) or case.log(replica.log)
        asked = {
            id(row): key
            for row in found.stranded
            if row["suffix"] is not None and row["server"] != replica.server
            if log.holds(key := shown.system.typed(row["position"]) or "")
        }
        targets = _targets(case, replica.log, shown.system, sorted({*asked.values()}))
        kept = [row for row in found.stranded if not _has(targets.get(asked.get(id(row), ""), ()), row, shown.system)]
        found.totals["stranded"] -= len(found.stranded) - len(kept)
        found.stranded[:] = kept


def _has(targets: Sequence[str | None], row: Mapping[str, Any], system: System) -> bool:
    """True if a record of the position is of an entry in the suffix of the row, or does not tell of which entry it is."""
    return any(not target or suffix_of(system.spelled(target), row["suffix"]) is not None for target in targets)


def _targets(case: Case, log: Input, system: System, keys: Sequence[str]) -> dict[str, list[str | None]]:
    """Position -> the entries that the records of this position are about."""
    names = sorted({system.origin_of(key) for key in keys})
    numbers = _Numbers({name: number for number, name in enumerate(names)})
    found: dict[str, list[str | None]] = {}
    for there, rows in rows_at(case.parts("changes", log), of_keys(system, keys, numbers), numbers, ["target"]):
        for key, target in zip(there.keys(system, names), rows["target"].to_pylist(), strict=True):
            found.setdefault(key, []).append(target)
    return found


class _Numbers(dict[str, int]):
    """Origin -> number; those of other origins, which stand beside the wanted records, are -1."""

    def __missing__(self, name: str) -> int:
        return -1
