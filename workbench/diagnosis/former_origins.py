"""Former origins of servers that keep every session with them from beginning, and that a cleaning takes out of the way.

c made changes as origin 3, was given origin 33, and its vector lost 3; those of a and b name it, with the first change of 3:

    a session with c has to begin at that change, the logs of a and b were trimmed    nothing is sent, 308 changes wait
    3 is cleaned                                                                      sessions begin where c stands in the others
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.diagnosis.closed_ways import runs
from workbench.diagnosis.former_suppliers import maker_before
from workbench.model import step
from workbench.rules.send_session import ANCHOR_NOT_FOUND, SEND, Plan, plan

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

NAMES_FORMER = "BROKEN_VECTOR"
"""Code of a server whose vector names an origin that is gone."""


class InTheWay(NamedTuple):
    """What keeps sessions with a server away.

    origins    former origins, of which no server waits for anything
    maker      who made changes as these, and makes them as another origin now
    suppliers  whose sessions begin without them and bring all that waits; `links`: over which
    waits      how many changes wait
    """

    origins: tuple[str, ...]
    maker: str
    suppliers: tuple[str, ...]
    links: tuple[str, ...]
    waits: int


def in_the_way(context: DetectorContext) -> Mapping[tuple[str, str | None], InTheWay]:
    """(server, suffix) -> what keeps sessions with it away; ask `context.once`."""
    if not context.topology.system.supplying:
        return {}
    found = {}
    for consumer in context.topology.replicas:
        about = consumer.server, consumer.suffix
        waits = [row for row in context.verdicts.pending if (row["server"], row["suffix"]) == about]
        to_it = [pair for pair in context.pairs if (pair["consumer"], pair["suffix"]) == about and runs(pair)]
        stuck = [pair for pair in to_it if pair["decision"] == ANCHOR_NOT_FOUND]
        if not waits or not stuck or len(stuck) < len(to_it) or context.not_collected(consumer.suffix):
            continue  # who was not collected may lack what a cleaning loses
        former = _former(context, consumer, stuck)
        if not former:
            continue
        begin = [pair for pair in stuck if _brings(context, consumer, pair, former, waits)]
        if begin:
            found[about] = InTheWay(
                tuple(sorted(former)),
                next(iter(former.values())),
                tuple(sorted({pair["supplier"] for pair in begin})),
                tuple(sorted({pair["link"] for pair in begin})),
                sum(row["count"] for row in waits),
            )
    return found


def _former(context: DetectorContext, consumer: Replica, stuck: list[Any]) -> dict[str, str]:
    """Origins that suppliers name and the server does not, of servers that have another one now -> that server.

    Of none of them anything may be lacking anywhere, or known to one server alone: a cleaning would lose it.
    """
    suffix, found = consumer.suffix, dict[str, str]()
    replicas = [one for one in context.topology.replicas if one.suffix == suffix]
    lists = context.verdicts.pending, context.verdicts.missing, context.verdicts.stranded
    open_ = {row["origin"] for rows in lists for row in rows if row["suffix"] == suffix}
    live = {one.origin for one in replicas}
    for name in {pair["supplier"] for pair in stuck}:
        supplier = context.replica(name, suffix)
        for origin in supplier.vector if supplier else ():
            maker = context.replica(maker_before(context, suffix, origin), suffix)
            if origin not in {*consumer.vector, *live, *open_} and maker and maker.origin is not None:
                found[origin] = maker.server
    return found if len(set(found.values())) == 1 and not context.verdicts.cut() else {}


def _brings(
    context: DetectorContext, consumer: Replica, pair: Mapping[str, Any], former: Mapping[str, str], waits: list[Any]
) -> bool:
    """True if a session begins once these origins are gone, and brings all that waits."""
    supplier, supplying = context.replica(pair["supplier"], pair["suffix"]), context.topology.supplying
    if supplier is None or supplier.log is None or pair["unrelated"]:
        return False
    rules, log = next(iter(supplying.rule_sets.values()))(), context.case.log(supplier.log)
    left = {origin: span for origin, span in supplier.vector.items() if origin not in former}
    planned = plan(rules, log, left, consumer.vector, consumer.origin or "")
    return planned.decision == SEND and all(sends(context, planned, row) for row in waits)


def sends(context: DetectorContext, planned: Plan, row: Mapping[str, Any]) -> bool:
    """True if a session as planned brings all that this row waits for."""
    sent = planned.to_send.get(row["origin"])
    typed = context.topology.system.typed
    return bool(sent and sent.last and sent.last >= (typed(row["last"]) or "") and sent.changes >= row["count"])


def cleaning_first(context: DetectorContext, server: str, suffix: str | None) -> Mapping[str, Any] | None:
    """What brings a server what it waits for, where only former origins are in the way; None: they are not."""
    about = context.once(in_the_way).get((server, suffix))
    if about is None:
        return None
    names = ", ".join(about.origins)
    return step(
        f"do what {NAMES_FORMER} says of {about.suppliers[0]}: clean origin {names}",
        f"without it sessions with {server} begin, and bring what it waits for: {server} need not be initialised",
    )
