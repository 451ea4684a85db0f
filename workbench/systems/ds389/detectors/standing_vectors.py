"""A server whose RUV stands still while it applies what it is sent: it tells neither what arrived nor what is on its way.

Seen on 2.3.1 where a read-only server was made a supplier and a consumer again while it ran, until it was restarted:

    17:21:05  the RUV of r ends here; its links run, and each session sends what is behind that
    17:22:44  r answers change 77 of these with success
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.dropped_changes import answers_that_count
from workbench.diagnosis.evidence_grounds import ANSWERED_BEFORE
from workbench.diagnosis.former_suppliers import was_maker
from workbench.model import Finding, counted, listed, step
from workbench.rules.vectors import last
from workbench.systems.ds389.detectors.shown import Row
from workbench.topology.suffix_evidence import Evidence, readings_began

if TYPE_CHECKING:
    from datetime import datetime

    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

_LEAST = 10
"""Changes behind the RUV of which the server's answer was success: of a few ANSWERED_NOT_APPLIED tells."""


def vector_stands_still(context: DetectorContext) -> Iterator[Finding]:
    """Told of a server that was read while it ran, by its answers since its last start and since its data came."""
    began = readings_began(context.case, context.topology)
    closed = {one.server for one in context.topology.replicas if one.origin and _closed(context, one)}
    for replica in context.topology.replicas:
        if replica.server not in began or replica.server in closed or not _live(context, replica):
            continue
        rows = _answered(context, replica, began[replica.server])
        positions = {row["position"] for row in rows}
        if len(positions) < _LEAST:
            continue
        server, show = replica.server, context.topology.system.show
        origins, in_time = sorted({row["origin"] for row in rows}), sorted(rows, key=lambda row: row["at"])
        first, newest = in_time[0]["at"], in_time[-1]["at"]
        times = f"{first:%Y-%m-%d %H:%M:%S} to {newest:%Y-%m-%d %H:%M:%S} UTC"
        yield Finding(
            "VECTOR_STANDS_STILL",
            "warning",
            f"the RUV of {server} stands still for origin {listed(origins)}: from {times} {server} answered "
            f"{counted(len(positions))} with success, and its RUV, read later, covers none of them",
            server=server,
            suffix=replica.suffix,
            items=tuple(show(one) for one in sorted(positions)[:2]),
            evidence=tuple(_shown(next(row for row in in_time if row["origin"] == origin)) for origin in origins),
            root=f"the RUV of {server} stands still for origin {listed(origins)} while it applies changes",
            fix=(
                step(
                    f"restart {server}, and collect again",
                    "as long as its RUV stands still, each session sends what lies behind it once more, and nothing tells what "
                    "is lacking; it was seen after the role of a server was changed while it ran",
                    "compare its entries with those of the others afterwards (`workbench collect --entries`)",
                ),
            ),
        )


def _shown(row: Row) -> Row:
    return {**row, "at": row["at"].isoformat()}


def _live(context: DetectorContext, replica: Replica) -> bool:
    """True if its replica entry was collected: the RUV in it is that of the moment, the one in an export of entries is older."""
    mine = (one for one in context.case.inputs if one.server == replica.server)
    here = (one for one in mine if one.snapshot == context.topology.snapshot)
    return any((replica.suffix or "") in one.facts.get("replica", {}) for one in here)


def _closed(context: DetectorContext, replica: Replica) -> bool:
    """True if a supplier has no changelog open: CHANGELOG_CLOSED says why its RUV stands still."""
    evidence = Evidence(context.case, context.topology, replica.suffix, [replica.server])
    proving = context.topology.system.proving
    code = proving().log_closed if proving else ""
    starts = _starts(evidence, replica.server)
    return any(at > max(starts, default=at) for at in evidence.moments(replica.server, {code}))


def _starts(evidence: Evidence, server: str) -> list[datetime]:
    return evidence.moments(server, {evidence.shown.proving.started})


def _answered(context: DetectorContext, replica: Replica, read: datetime) -> list[Row]:
    """The changes of others that it answered with success well before it was read, and that its RUV does not cover.

    What it made as an origin that it is no more, its RUV never covers.

    Nothing where no line tells of a start: it may run with older data.
    """
    server = replica.server
    evidence = Evidence(context.case, context.topology, replica.suffix, [*replica.vector])
    resets = context.verdicts.resets.get((server, replica.suffix), ())
    starts = _starts(evidence, server)
    if not starts:
        return []
    since = max([*starts, *(one.ended for one in resets)])
    utc = pa.timestamp("us", "UTC")
    where = (pc.field("at") > pa.scalar(since, utc)) & (pc.field("at") < pa.scalar(read - ANSWERED_BEFORE, utc))
    where &= pc.field("link").is_null() & (pc.field("outcome") == "applied") & answers_that_count(evidence, server)
    behind = pc.scalar(False)
    for origin in replica.vector:
        top = max(last(replica.vector, origin) or "", replica.later.get(origin, ""))
        if top and origin != replica.origin and not was_maker(context, server, replica.suffix, origin):
            behind |= (pc.field("origin") == origin) & (pc.field("position") > top)
    rows = evidence.told("applied", ["position", "origin", "at", "file", "offset"], where & behind, server)
    found: list[Row] = rows.to_pylist()
    return found
