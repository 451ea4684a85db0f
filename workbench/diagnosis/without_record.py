"""Links that fail, and over which nothing of what waits would come if they ran: their suppliers keep no log to send from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import counted, listed, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Row


def keeps_none(context: DetectorContext, server: str, suffix: str | None) -> bool:
    """True if the server keeps no log at all: no record was ever taken out of it."""
    replica = context.replica(server, suffix)
    return replica is not None and not replica.keeps_log and replica.log is None


def no_record(context: DetectorContext, supplier: str, suffix: str | None) -> str:
    """Why no session of a server can begin, in words."""
    if keeps_none(context, supplier, suffix):
        return f"{supplier} keeps no log that a session could send from"
    return f"the collected log of {supplier} has no record for a session to begin at"


def without_record(context: DetectorContext, row: Row, failing: Sequence[str]) -> Mapping[str, Any] | None:
    """What to do about what waits behind such links alone; None: the supplier of one of them keeps a log."""
    to, suppliers = (row["server"], row["suffix"]), set[str]()
    for link in context.topology.links:
        if (link.consumer, link.suffix) == to and link.name in failing:
            suppliers.add(link.supplier)
    if not suppliers or not all(keeps_none(context, name, row["suffix"]) for name in suppliers):
        return None
    who = listed([no_record(context, name, row["suffix"]) for name in sorted(suppliers)])
    waits = f"{counted(row['count'])} that {'waits' if row['count'] == 1 else 'wait'}"
    return step(
        f"do what is said on {listed(failing)}",
        f"{who}: a link that runs again brings at most what is written from then on, not the {waits}",
    )
