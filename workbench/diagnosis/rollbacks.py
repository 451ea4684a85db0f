"""The finding ROLLED_BACK: a server runs on an older state, for others hold own changes of it that it does not know.

Where servers pull, an earlier file of the same UUID says so as well: `set_back`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.diagnosis.change_findings import moment_of, shares_origin
from workbench.diagnosis.changes_thrown_away import kept_by_entries
from workbench.diagnosis.made_by_others import makers_of
from workbench.diagnosis.missed_by_vector import lost_with
from workbench.diagnosis.replaced_data import replaced_after
from workbench.diagnosis.set_back import set_back
from workbench.model import Finding, counted, first_few, step
from workbench.replication.entry.diagnosis.state_comparison import clock_of
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica, Topology


def rolled_back(context: DetectorContext) -> Iterator[Finding]:
    """Others hold own changes of a server, made before it was read, that it does not know: it runs on an older state."""
    newest, told = context.newest(), set[tuple[str, str | None]]()
    for replica in context.topology.replicas:
        if replica.origin is None or not (replica.claims or replica.log):
            continue
        # What it claimed when it was read once more counts: it wrote on while the others were read.
        own = max(_last(replica, replica.origin), replica.later.get(replica.origin, ""))
        others = {
            other.server: _last(other, replica.origin)
            for other in context.topology.replicas
            if other.suffix == replica.suffix and other is not replica and not _apart(context, other, replica)
        }
        ahead = {server: position for server, position in others.items() if position > own}
        if not ahead:
            continue
        top = max(ahead.values())
        if context.topology.made_meanwhile(context.topology.system.moment(top)):
            continue
        earlier = context.earlier
        before = replica_of(earlier, replica) if earlier else None
        had = _last(before, replica.origin) if before else ""
        # A server that was read first and wrote on meanwhile is behind as well: then nothing of it is younger than the change.
        if not (had > own or _lived_on(context, replica, top, newest.get(replica.server))) or shares_origin(
            context, replica
        ):
            continue
        streams = context.verdicts.streams
        if streams is not None and (replica.server, replica.origin) in streams.gone:
            continue  # its log lacks them, which need not mean that its data do: GONE_FROM_LOG tells of both
        show = context.topology.system.show
        lacked = {
            row["position"]
            for row in context.verdicts.missing
            if (row["server"], row["suffix"], row["origin"]) == (replica.server, replica.suffix, replica.origin)
        }
        if {show(top), *lacked} <= makers_of(context, replica.server, replica.suffix, {show(top), *lacked}).keys():
            continue
        replaced = "" if context.topology.pulling else replaced_after(context, replica.server, replica.suffix, [top])
        why = f"{replaced}, and these data lack them" if replaced else "it was restored from an older state"
        shown = "which was restored from an older state"
        if not own and not replaced and not context.topology.pulling:
            if show(top) in (
                kept_by_entries(context, replica.suffix, replica.origin, replica.server, [show(top)]) or ()
            ):
                continue  # its vector was made anew, and its data are those of before
            why = "its vector was made anew, as where a server is made a supplier again, or it was restored from an older state"
            shown = "or its vector was made anew"
        told.add((replica.server, replica.suffix))
        yield Finding(
            "ROLLED_BACK",
            "error",
            f"{replica.server} knows its own changes up to {show(own) if own else 'none'}, others hold them up to {show(top)}: "
            f"{why}{_refuses(context, replica)}",
            server=replica.server,
            origin=replica.origin,
            suffix=replica.suffix,
            items=(show(top),),
            evidence=first_few(
                {"server": server, "knows": show(position) if position else None, "of_origin": replica.origin}
                for server, position in sorted({**others, replica.server: own}.items())
            ),
            fix=(_given_back(context, replica),),
            root=""
            if context.topology.pulling
            else f"own changes are gone on {replica.server}"
            + (f": {replaced}, without them" if replaced else f", {shown}"),
        )
    if context.topology.pulling:
        yield from set_back(context, told)


def _apart(context: DetectorContext, one: Replica, other: Replica) -> bool:
    """True of servers that pull and are of two domains: what each claims is of other changes."""
    domains = {one.generation, other.generation} - {None}
    return context.topology.pulling is not None and len(domains) > 1


def _refuses(context: DetectorContext, replica: Replica) -> str:
    """How much entries of others still show of what it lost, in words; empty where they show none."""
    key = (replica.server, replica.suffix, replica.origin)
    waits = (row for row in context.verdicts.pending if (row["server"], row["suffix"], row["origin"]) == key)
    count = sum(row["count"] for row in waits) if context.topology.pulling else 0
    return f"; entries of other servers still show {counted(count, 'change')} of these" if count else ""


def _given_back(context: DetectorContext, replica: Replica) -> dict[str, str | None]:
    """How a server comes to what it lost, where suppliers send from a log, and where consumers ask."""
    if context.topology.pulling:
        return step(
            f"let nobody write on {replica.server}, and refresh it from the server with the most complete data",
            "it refuses whatever is supplied to it as long as that holds own changes of it which it does not know",
            "its next own change moves its vector over those that it lost, and hides them; "
            + lost_with(context, replica.server, replica.suffix),
        )
    if context.topology.system.streaming:
        return step(
            f"let nobody write on {replica.server} before its rows are compared with those of the others; if it was set back, or "
            f"made anew, {context.topology.system.refill} it and the others from the one that is right",
            f"what {replica.server} commits next comes behind what the others have already, under the same numbers",
        )
    return step(
        f"let nobody write on {replica.server} until it has its own changes back; "
        f"let another server send to it, and make one change there so that a session begins",
        "its next own change moves its vector over the ones that it lost, and they are never sent to it again",
        "the server itself writes: a keep-alive update soon after its start is enough to hide them",
    )


def _lived_on(context: DetectorContext, replica: Replica, change: str, newest: datetime | None) -> bool:
    """True if the server was read after it made this change.

    Where its files tell its own clock that alone counts: the changes of a server with a clock ahead lie in its future.
    """
    if context.topology.pulling:
        clock = clock_of(context.case, context.topology, replica)
        return clock is not None and context.topology.system.halves(change)[0] <= clock
    known = moment_of(context, *(span.max for span in replica.seen().values() if span.max))
    alive, made = max(filter(None, (newest, known)), default=None), moment_of(context, change)
    return bool(alive and made and made < alive)


def replica_of(shown: Topology, replica: Replica) -> Replica | None:
    """The same replica in another snapshot."""
    return next((old for old in shown.replicas if (old.server, old.suffix) == (replica.server, replica.suffix)), None)


def _last(replica: Replica, origin: str) -> str:
    return last(replica.seen(), origin) or ""
