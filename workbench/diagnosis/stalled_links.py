"""The finding STALLED_BUT_GREEN: links that run and call themselves well while nothing of what waits moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.detector_context import replica_in
from workbench.diagnosis.dropped_changes import dropped_rows
from workbench.model import Finding, counted, step
from workbench.rules.send_session import SEND
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Row, Topology

WAITS = timedelta(seconds=300)
"""Servers are read moments apart, and a supplier may wait minutes between two sessions: less is no standstill."""

_SESSION_WAITS = timedelta(seconds=60)
"""A session that is open sends all the time: one that has sent nothing for so long stands still."""


def stalled_but_green(context: DetectorContext) -> Iterator[Finding]:
    """Links that run and call themselves well while nothing of what waits has moved for minutes.

    That something waits is no standstill, for servers are read moments apart. It is one if the same changes waited in the
    snapshot before, minutes ago; or if the last session ended minutes before the supplier itself made what waits first.
    """
    statuses, newest, before = context.statuses(), context.newest(), context.earlier
    then = context.newest(before.snapshot) if before else {}
    earlier = context.statuses(before.snapshot) if before else {}
    for row in context.pairs:
        status = statuses.get((row["supplier"], row["suffix"], row["link"] or ""), {})
        green = status.get("state", "green" if status.get("status_code") == 0 else None) == "green"
        now = newest.get(row["supplier"])
        if row["decision"] != SEND or not row["to_send"] or row["link_enabled"] is False or not green or not now:
            continue
        if row.get("link_failing"):
            continue  # one that fails is a finding of its own, which says why
        if row["to_send"].keys() <= dropped_rows(context.verdicts.pending, row["consumer"], row["suffix"]).keys():
            continue  # sessions run, and the consumer drops what they bring: CLEANED_ORIGIN_BACK says so
        if status.get("busy"):
            same = earlier.get((row["supplier"], row["suffix"], row["link"] or ""), {})
            since = _session_stands_still(context, row, before, (same, status), now - then.get(row["supplier"], now))
        else:
            since = _stood(context, row, before, then, now) or _never_begun(context, row, status, now)
        if since and not _seen_meanwhile(context, row):
            waiting = sum(sent["count"] for sent in row["to_send"].values())
            yield Finding(
                "STALLED_BUT_GREEN",
                "warning",
                f"the link {row['link']} calls itself well, and {row['consumer']} still lacks {counted(waiting)} that "
                f"{row['supplier']} can send: {since}",
                server=row["consumer"],
                link=row["link"],
                suffix=row["suffix"],
                items=tuple(sorted(sent["first"] for sent in row["to_send"].values())),
                evidence=(
                    status_of(status),
                    *({"origin": origin, **sent} for origin, sent in sorted(row["to_send"].items())),
                ),
                root=f"the link {row['link']} stands still" if status.get("busy") else "",
                fix=(_end_session(row) if status.get("busy") else _ONE_CHANGE,),
            )


_ONE_CHANGE = step(
    "make one change on the supplier, then look again",
    "a supplier that believes its consumer up to date opens a session at the next change only",
    "the status is that of the last session, not of the data: compare the vectors",
)


def _end_session(row: Row) -> Row:
    return step(
        f"collect once more in a minute; if the same session is still open then, restart {row['consumer']}, which ends it",
        f"while it is open, {row['supplier']} opens no other one to {row['consumer']}, and {row['consumer']} may refuse those of "
        "others",
        f"first do what is said of {row['consumer']} itself, above all what is to be saved before it is restarted",
    )


def _seen_meanwhile(context: DetectorContext, row: Row) -> bool:
    """True if the consumer's log, read after its vector, has some of what seems to wait."""
    consumer, system = context.replica(row["consumer"], row["suffix"]), context.topology.system
    seen = consumer.seen() if consumer else {}
    return any(
        (last(seen, origin) or "") >= (system.typed(sent["first"]) or "") for origin, sent in row["to_send"].items()
    )


def _session_stands_still(
    context: DetectorContext, row: Row, before: Topology | None, statuses: tuple[Row, Row], apart: timedelta
) -> str | None:
    """Why an open session stands still: it was open in the snapshot before, and has sent nothing and brought nothing since."""
    then, now = statuses
    same = all(then.get(key) == now.get(key) for key in ("busy", "started_at", "sent"))
    if not same or not now.get("started_at") or not _unmoved(context, row, before, apart, _SESSION_WAITS):
        return None
    assert before is not None
    return (
        f"the session that it began at {now['started_at']:%Y-%m-%d %H:%M:%S} UTC was open in the snapshot {before.snapshot} "
        f"already, {apart.total_seconds():,.0f} s before, and has sent nothing since"
    )


def _stood(
    context: DetectorContext, row: Row, before: Topology | None, then: Mapping[str, datetime], now: datetime
) -> str | None:
    """Why it stands still, if the same changes waited in the snapshot before."""
    if before is None or not _unmoved(context, row, before, now - then.get(row["supplier"], now), WAITS):
        return None
    return f"they waited in the snapshot {before.snapshot} already, and nothing has moved since"


def _unmoved(context: DetectorContext, row: Row, before: Topology | None, apart: timedelta, least: timedelta) -> bool:
    """Whether the same changes waited in the snapshot before, which is old enough to tell."""
    if before is None or apart < least:
        return False
    supplier, consumer = (replica_in(before, row[end], row["suffix"]) for end in ("supplier", "consumer"))
    present = context.replica(row["consumer"], row["suffix"])
    ran = any(
        link.name == row["link"] and link.supplier == row["supplier"] and link.enabled is not False
        for link in before.links
    )
    if not (ran and supplier and consumer and consumer.claims and present):
        return False
    held = {origin: last(consumer.vector, origin) for origin in row["to_send"]}
    return all(
        at == last(present.vector, origin) and (last(supplier.vector, origin) or "") > (at or "")
        for origin, at in held.items()
    )


def _never_begun(context: DetectorContext, row: Row, status: Row, now: datetime) -> str | None:
    """Why it stands still, if the last session ended before the supplier made the first change that waits."""
    system, ended = context.topology.system, status.get("ended_at")
    supplier = context.replica(row["supplier"], row["suffix"])
    own = row["to_send"].get(supplier.origin) if supplier else None
    made = system.moment(system.typed(own["first"]) or "") if own else None
    if not (made and ended) or made - ended < WAITS or now - made < WAITS:
        return None
    return (
        f"its last session ended at {ended:%Y-%m-%d %H:%M:%S}, the first of them was made at {made:%Y-%m-%d %H:%M:%S}"
    )


def status_of(row: Row) -> dict[str, Any]:
    """What the files say of a link, as evidence of a finding."""
    about = {
        key: row.get(key) for key in ("file", "offset", "name", "role", "enabled", "state", "status_code", "status")
    }
    about = {key: value for key, value in about.items() if key != "role" or value}
    return about | {key: row[key].isoformat() for key in ("started_at", "ended_at") if row.get(key)}
