"""Up to when the logs of servers were read."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from workbench.systems import format_with

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def logs_end(context: DetectorContext, evidence: str) -> dict[str, datetime]:
    """Server -> the newest time in its logs of this snapshot, of one kind of evidence (`Format.evidence`)."""
    ends: dict[str, datetime] = {}
    for one in context.inputs:
        mine = one.snapshot == context.topology.snapshot and one.kind and format_with(one.kind).evidence == evidence
        if mine and (end := one.facts.get("time", {}).get("max")):
            at = datetime.fromisoformat(end)
            ends[one.server] = max(at, ends.get(one.server, at))
    return ends
