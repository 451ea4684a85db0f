"""Changes that a server answers with success and drops: it cleaned their origin, and was not restarted since.

389 Directory Server, a read-only server (`multisupplier_extop_cleanruv` in repl_extop.c):

    10:00  Successfully cleaned rid(1)     from here on every change of replica ID 1 is answered with success and dropped
    10:05  initialised online              still: the ID is remembered by the process, for all of its suffixes
    10:10  389-Directory/2.3.1 starting    from here on it takes them, by the next session

A supplier releases the ID before it says that it has cleaned it: it drops nothing afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.engine.rows import rows_where
from workbench.fleet.told import Evidence
from workbench.model import step
from workbench.rules.vectors import last
from workbench.rules.verdicts import REPLACED, TOTAL

if TYPE_CHECKING:
    from workbench.diagnosing.proofs import Proofs

CLEANED_ORIGIN_BACK = "CLEANED_ORIGIN_BACK"


def _remembered(evidence: Evidence, server: str) -> dict[str, datetime]:
    """Origin -> when a server logged that it cleaned it, of those that it remembers: no start of it is logged after that."""
    proving = evidence.shown.proving
    if not proving.remembers_cleaned:
        return {}
    codes = pc.field("code").isin([proving.cleaned, *proving.forgets_cleaned])
    columns = ["at", "code", "function", "origin"]
    rows = rows_where(evidence.parts("messages", server), columns, codes & pc.field("at").is_valid()).to_pylist()
    started = max((row["at"] for row in rows if row["code"] != proving.cleaned), default=None)
    found: dict[str, datetime] = {}
    for row in rows:
        kept = row["code"] == proving.cleaned and row["function"] in proving.remembers_cleaned
        if kept and row["origin"] and (started is None or row["at"] > started):
            found[row["origin"]] = max(row["at"], found.get(row["origin"], row["at"]))
    return found


def dropped_since(proofs: Proofs, newest: str, origin: str) -> datetime | None:
    """Since when a server drops the changes of an origin that it waits for, up to the newest; None: nothing shows that it does.

    Changes that were made after it cleaned the origin show that the origin is in use again. One of them in its vector shows that
    the server takes them, so it was restarted, unless the vector came with data of another server.
    """
    system, replica = proofs.system, proofs.replica
    at = _remembered(proofs.evidence, replica.server).get(origin)
    made, top = system.moment(system.typed(newest) or ""), last(replica.seen(), origin)
    if at is None or made is None or made <= at:
        return None
    taken = system.moment(top) if top else None
    brought = any(one.kind in (TOTAL, REPLACED) and taken and one.ended >= taken for one in proofs.resets)
    return None if taken and taken > at and not brought else at


def why_dropped(proofs: Proofs, position: str) -> tuple[str, str] | None:
    """The rule by which a change does not come to a server that drops it, and its sentence; None where nothing shows that."""
    system = proofs.system
    if since := dropped_since(proofs, system.show(position), system.origin_of(position)):
        return "dropped_here", f"it cleaned the origin at {_time(since)} and drops its changes until it is restarted"
    return None


def dropped_rows(rows: Iterable[Mapping[str, Any]], server: str, suffix: str | None) -> dict[str, Mapping[str, Any]]:
    """Origin -> the row of what a server waits for and drops."""
    return {
        row["origin"]: row
        for row in rows
        if (row["server"], row["suffix"]) == (server, suffix) and row.get("dropped_since")
    }


def how_dropped(row: Mapping[str, Any]) -> str:
    """Why no session brings these changes, in words."""
    at = _time(datetime.fromisoformat(row["dropped_since"]))
    return f"{row['server']} cleaned this origin at {at} and drops its changes until it is restarted"


def restart_first(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What to do about changes that a server drops."""
    return step(
        f"do what {CLEANED_ORIGIN_BACK} says on {row['server']}", "sessions deliver them, and the server drops them"
    )


def dropped_say(count: int, on: str, least: str) -> str:
    """`3 changes do not arrive at c, h, which drop them until they are restarted`, for a headline."""
    does, it = ("change does", "it") if count == 1 else ("changes do", "them")
    drops = f"drop {it} until they are" if "," in on else f"drops {it} until it is"
    return f"{least}{count:,} {does} not arrive at {on}, which {drops} restarted"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
