"""Links over which no session is begun although the consumer is behind: the supplier takes it for up to date.

A supplier that opens sessions goes by what it remembers of the consumer, and the consumer was rolled back since:

    19:57:20  the last session of a-to-r ends: r has all that a has
    19:57:46  r is restored from a backup: it lacks 478 changes
    19:58:38  the servers are read: a has made nothing new, and has opened no session since
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.diagnosis.closed_ways import runs
from workbench.model import listed, step
from workbench.rules.send_session import ANCHOR_NOT_FOUND, SEND
from workbench.rules.vectors import last, newer
from workbench.rules.verdicts import REPLACED

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.model import System
    from workbench.topology.topology import Link, Replica, Topology

Row = Mapping[str, Any]

_READ_APART = timedelta(seconds=60)
"""The files of two servers are collected moments apart: a change this young may have come between."""
_NAMED = 3
"""Names in a sentence."""


class Rest(NamedTuple):
    """A link that rests: the row of its pair, and of which origins the consumer is behind.

    session   when the last session ended; None: what is remembered was collected, and tells more
    replaced  when the data of the consumer came from a backup or a file after that
    """

    row: Row
    link: Link
    behind: tuple[str, ...]
    session: datetime | None = None
    replaced: datetime | None = None


def resting(context: DetectorContext) -> list[Rest]:
    """The links that rest, in the order of the pairs; ask `context.once`."""
    return [*_resting(context)] if context.topology.system.supplying else []


def _resting(context: DetectorContext) -> Iterator[Rest]:
    before = context.earlier
    links = {(link.supplier, link.suffix, link.name): link for link in context.topology.links}
    for row in context.pairs:
        link = links.get((row["supplier"], row["suffix"], row["link"]))
        if link is None or not runs(row) or row["decision"] not in (SEND, ANCHOR_NOT_FOUND):
            continue
        supplier, consumer = (context.replica(row[end], row["suffix"]) for end in ("supplier", "consumer"))
        behind = newer(supplier.vector, consumer.seen()) if supplier and consumer else ()
        if not (supplier and consumer and behind):
            continue
        if link.remembered is None:
            if times := _replaced_since(context, link, supplier, consumer):
                yield Rest(row, link, tuple(behind), *times)
        elif row["would_contact"] is False:
            went_back = before is not None and _went_back(before, consumer)
            if went_back or _stands(context.topology.system, supplier, consumer, behind):
                yield Rest(row, link, tuple(behind))


def _went_back(before: Topology, consumer: Replica) -> bool:
    """True if the consumer claimed more of some origin in the snapshot before."""
    then = next((x for x in before.replicas if (x.server, x.suffix) == (consumer.server, consumer.suffix)), None)
    return then is not None and any(origin in consumer.vector for origin in newer(then.vector, consumer.vector))


def _stands(system: System, supplier: Replica, consumer: Replica, behind: Iterable[str]) -> bool:
    """True if what the consumer lacks is older than the time that may lie between reading the two.

    The newest change that either knows is the clock: the servers were read after it.
    """
    newest = _newest(system, supplier, consumer)
    lacks = [at for origin in behind if (at := system.moment(last(supplier.vector, origin) or ""))]
    return newest is not None and bool(lacks) and newest - min(lacks) >= _READ_APART


def _newest(system: System, *replicas: Replica) -> datetime | None:
    """When the newest change was made that any of these claims."""
    tops = (span.max for one in replicas for span in one.vector.values() if span.max)
    return max(filter(None, map(system.moment, tops)), default=None)


def _replaced_since(
    context: DetectorContext, link: Link, supplier: Replica, consumer: Replica
) -> tuple[datetime, datetime] | None:
    """When the last session ended, and when other data came to the consumer after it, if nothing new made a session since."""
    resets = context.verdicts.resets.get((consumer.server, consumer.suffix), ())
    replaced = max((one.ended for one in resets if one.sure and one.kind == REPLACED and not one.failed), default=None)
    status = context.statuses().get((link.supplier, link.suffix, link.name), {})
    began, ended = status.get("started_at"), status.get("ended_at")
    newest, read = _newest(context.topology.system, supplier), context.newest().get(supplier.server)
    if replaced is None or ended is None or newest is None or read is None or status.get("status_code") != 0:
        return None
    quiet = newest <= ended < replaced < read and (began is None or began < replaced) and not status.get("busy")
    filled = status.get("init_ended_at")
    return (ended, replaced) if quiet and (filled is None or filled < replaced) else None


def note_resting(context: DetectorContext, pairs: Iterable[dict[str, Any]]) -> None:
    """Note of pairs that rest that nothing tells whether a session comes, and of what waits for these alone that it is held."""
    rests = context.once(resting)
    for row in pairs:
        if any(one.row is row and one.session for one in rests):
            row["would_contact"] = None
    still = {(one.row["supplier"], one.row["consumer"], one.row["suffix"]): one.link.name for one in rests}
    for row in context.verdicts.pending if still else ():
        ways = [(name, row["server"], row["suffix"]) for name in row["suppliers"]]
        if ways and all(way in still for way in ways):
            row["rests"], row["held"] = sorted(still[way] for way in ways), row["count"]


def how_it_rests(row: Row) -> str:
    """Why no session brings what waits, as the end of a sentence."""
    names, many = listed(row["suppliers"], "and", _NAMED), len(row["suppliers"]) > 1
    links, have = listed(row["rests"], "or", _NAMED), "have" if many else "has"
    return f"{names} {have} them, and nothing shows that a session is begun over {links}"


def rest_step(row: Row) -> Mapping[str, Any]:
    """What makes it come."""
    links = listed(row["rests"], "or", _NAMED)
    return step(f"do what NEVER_CONTACTED says of {links}", "they arrive as soon as a session is begun")
