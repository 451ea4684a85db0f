"""Servers whose database could not be written, as their own errors logs say: a full or broken disk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from workbench.model import Finding, first_few, step
from workbench.rules.verdicts import TOTAL
from workbench.systems import format_with
from workbench.systems.ds389.session_log.change_fixes import make_room
from workbench.systems.ds389.session_log.lines import WITH_TEXT, Place, Row, line_shown, session_logs
from workbench.systems.ds389.session_log.refusals import no_room, said_at

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def database_failing(context: DetectorContext) -> Iterator[Finding]:
    """A server that could not write its database since its last start: what it was sent then it does not have.

    A supplier goes on with later changes, and the vector of the server comes to cover those that were not written.
    """
    case, shown = context.case, context.topology
    failed = {one.server for one in case.inputs if one.facts.get("codes", {}).get("database_failed")}
    for log in session_logs(case.until(shown.snapshot)) if failed else ():
        rows: list[tuple[Row, Place]] = []
        for row, place in log.lines(("starting", "database_failed"), WITH_TEXT) if log.server in failed else ():
            rows = [*rows, (row, place)] if row["code"] == "database_failed" else []
        moments = [place.at for _, place in rows if place.at]
        mine = [one for one in shown.replicas if one.server == log.server]
        if not moments or not mine:
            continue
        first, last = min(moments), max(moments)
        if _filled_after(context, log.server, last):
            continue
        over = wrote_after(context, log.server, last)
        said = said_at(case, log.server, moments)
        why = f" ({said[-1]['text']})" if said else ""
        times = f"{len(moments):,} times, from {first:%Y-%m-%d %H:%M:%S} to" if len(moments) > 1 else "at"
        if not said:
            why = f" ({rows[-1][0]['text']})" if rows[-1][0]["text"] else ""
        logs = (
            one for one in case.inputs if one.server == log.server and format_with(one.kind).evidence == "access_log"
        )
        silent = ". Its access log shows no later write" if any(logs) else ""
        since = "; it has written since then" if over else silent
        yield Finding(
            "DATABASE_FAILING",
            "warning" if over else "error",
            f"{log.server} could not write its database {times} {last:%Y-%m-%d %H:%M:%S} UTC{why}{since}. It may lack "
            "changes of that time, even those that its vector covers",
            server=log.server,
            evidence=first_few(line_shown(*one) for one in rows),
            root="" if over else f"{log.server} could not write its database, last at {last:%Y-%m-%d %H:%M:%S} UTC",
            fix=(
                *(() if over else (_writing_again(log.server, no_room(said)),)),
                step(
                    f"{'' if over else 'then '}collect again with `--entries`, and do what is found missing on {log.server}",
                    "only its entries tell for certain what was not written",
                ),
            ),
        )


def _filled_after(context: DetectorContext, server: str, moment: datetime) -> bool:
    """True if all that it holds came whole from other servers since."""
    mine = [resets for (name, _), resets in context.verdicts.resets.items() if name == server]
    return bool(mine) and all(
        any(one.kind == TOTAL and one.sure and one.began > moment for one in some) for some in mine
    )


def wrote_after(context: DetectorContext, server: str, moment: datetime) -> bool:
    """True if its access log shows a change that succeeded later; its vector goes on without one."""
    where = (pc.field("outcome") == "applied") & (pc.field("at") > moment)
    rows = context.rows("applied", ["at"], where, snapshot=context.topology.snapshot, server=server)
    return any(batch.num_rows for batch in rows)


def _writing_again(server: str, full: str) -> dict[str, str | None]:
    if full:
        return make_room(server, full)
    return step(
        f"see whether the disk under the database of {server} is full or broken (`df`, the messages of the kernel), mend that, "
        f"and restart {server}",
        "changes that it is sent before that may be lost there",
        f"fill {server} with no data before that; delete no file of its database",
    )
