"""The finding ERRANT_CHANGE: transactions of one log alone, of which nothing tells whether the others should have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import ITEMS_SHOWN, Finding, first_few, listed, step
from workbench.replication.stream.diagnosis.log_comparison import AHEAD, LOST_THERE, NO_SOURCE, OWN_ID, Streams
from workbench.replication.stream.rules.streams import LOST
from workbench.systems.drizzle.ahead_otherwise import in_another_order

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = Mapping[str, Any]


def errant(context: DetectorContext) -> Iterator[Finding]:
    """Transactions of one log alone; what only follows the end of its source's log may be younger than that."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    rows: dict[tuple[str, str, str], list[Row]] = {}
    for row in context.verdicts.errant:
        rows.setdefault((row["server"], row["origin"], row["why"]), []).append(row)
    alone = [*streams.alone()]
    ahead = {(server, origin): positions for server, origin, why, _, positions in alone if why == AHEAD}
    for server, origin, why, count, positions in alone:  # of some no row may be left in a list that was cut
        mine = rows.get((server, origin, why), [])
        many = f"{count:,} transaction{'' if count == 1 else 's'} of server {origin}"
        named = ", ".join(map(show, positions[:3])) + (f" and {count - 3:,} more" if count > 3 else "")
        says, mend = _SAYS[why](streams, server, origin, f"{many} ({named})", count > 1)
        whole = why == AHEAD and count == len(positions)
        passed = _passed_over(streams, ahead, server, origin, positions) if whole else {}
        for other, (lacks, unsure) in passed.items():
            behind = "it" if len(lacks or unsure) == 1 else "them"
            if lacks:
                says += f"; {other}, which goes on behind {behind}, lacks {listed([*map(show, lacks)])} of these"
            if unsure:
                says += f"; {other} lost records there: nothing tells whether it has {listed([*map(show, unsure)])} of these"
        if others := in_another_order(streams, ahead, server, origin) if whole else []:
            says += f"; {listed(others, 'and')} ha{'s' if len(others) == 1 else 've'} some of these in another order"
        lacked = f"only {server} has {many}, {_ROOT[why]}" if why in _ROOT else ""
        yield Finding(
            "ERRANT_CHANGE",
            "info" if why in (AHEAD, LOST_THERE) and not passed else "warning",
            says,
            server=server,
            origin=origin,
            items=tuple(map(show, positions[:ITEMS_SHOWN])),
            evidence=first_few({key: row[key] for key in ("position", "operation", "target", "why")} for row in mine)
            or ({"count": count, "why": why},),
            fix=(mend,),
            root="" if context.verdicts.missing else lacked,  # what is missing for sure is said first
        )


def errant_before(context: DetectorContext) -> Iterator[Finding]:
    """Transactions of a copy's own that only an earlier log of it shows."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for told in streams.alone_before:
        gone = {lost.position for lost in streams.gone.get((told.server, told.origin), ())}
        positions = [at for at in told.positions if at not in gone]  # GONE_FROM_LOG tells of the others
        if not positions:
            continue
        count, them = len(positions), "it" if len(positions) == 1 else "them"
        named = ", ".join(map(show, positions[:3])) + (f" and {count - 3:,} more" if count > 3 else "")
        yield Finding(
            "ERRANT_CHANGE",
            "warning",
            f"only {told.earlier.place} has {count:,} transaction{'' if count == 1 else 's'} of server {told.origin} ({named}): "
            f"no log of another server has {them}, and the present log of {told.server} has {them} no more",
            server=told.server,
            origin=told.origin,
            items=tuple(map(show, positions[:ITEMS_SHOWN])),
            evidence=first_few({"position": show(at), "snapshot": told.earlier.snapshot} for at in positions),
            fix=(
                step(
                    f"look for the rows of {them} on {told.server}; if they are there, save them before {told.server} is "
                    "provisioned",
                    "a log that was begun anew, or lost records, does not take the rows with it",
                    f"find out who wrote on {told.server}: nobody else has them",
                ),
            ),
        )


def _passed_over(
    streams: Streams, ahead: Mapping[tuple[str, str], Sequence[str]], server: str, origin: str, positions: Sequence[str]
) -> dict[str, tuple[list[str], list[str]]]:
    """Other servers with something behind the end of the same log -> what of these they lack, although they have a later one.

    Then what may be among records that the other log lost. What is damaged there, or came in part, is there.
    """
    found = dict[str, tuple[list[str], list[str]]]()
    for (other, of), theirs in sorted(ahead.items()):
        both = [place for place, position in enumerate(positions) if position in theirs]
        lacks = [position for position in positions[: max(both, default=0)] if position not in theirs]
        if other != server and of == origin and lacks:
            one = streams.between(server, other, origin).difference
            sure = {lack.position for lack in one.inside if lack.outcome is None}
            lost = {position for position, _, why in one.unknown if why == LOST}
            told = [at for at in lacks if at in sure], [at for at in lacks if at in lost]
            found |= {other: told} if any(told) else {}
    return found


def _without_source(
    streams: Streams, server: str, origin: str, what: str, several: bool
) -> tuple[str, Mapping[str, Any]]:
    others = [name for name, log in sorted(streams.logs.items()) if name != server and origin in log.sums]
    they, them = ("they are", "them") if several else ("it is", "it")
    lack = f"{listed(others)} lack{'s' if len(others) == 1 else ''} {them}"
    return (
        f"only {server} has {what}, and nothing tells which log is the source of that id: {they} {server}'s own, or {lack}",
        step(
            f"find out which server makes the transactions of id {origin}, and name it: `--source {origin}=SERVER` for this run, "
            f"or `origin: '{origin}'` of that server in case.yaml; then diagnose again",
            f"if {server} makes them, {lack}; if another server does, {they} errant on {server}",
            f"until then apply {them} nowhere, and do not provision {server}: that throws {them} away",
        ),
    )


def _of_its_own_id(
    streams: Streams, server: str, origin: str, what: str, several: bool
) -> tuple[str, Mapping[str, Any]]:
    they, them = ("they are", "them") if several else ("it is", "it")
    return (
        f"only {server} has {what}: no other log has anything of that id",
        step(
            f"find out who wrote on {server}: if it is a replica, {they} errant there; save {them} before {server} is "
            "provisioned",
            f"{server} shares transactions of another id with other servers, and of this one with none",
            "if other servers replicate from it, collect their logs, too",
        ),
    )


def _ahead(streams: Streams, server: str, origin: str, what: str, several: bool) -> tuple[str, Mapping[str, Any]]:
    source = streams.source_of(origin)
    they, them = ("they are", "them") if several else ("it is", "it")
    if not_applied := _not_applied(streams, server, origin):
        return (
            f"{server} has {what}, and lacks {not_applied}, which {source} committed before all that it makes later: a replica "
            f"applies in the order of commits, so {they} {server}'s own",
            step(
                f"find out who wrote on {server}; compare {them} with the error of its applier, if it stands still",
                f"{they} in no log of {source}, and {server} says that it has not applied what comes first",
                f"do not provision {server} before that: it throws {them} away",
            ),
        )
    return (
        f"{server} has {what} behind the last that the log of {source} has: {source} was read before it made {them}, or {they} "
        f"{server}'s own",
        step(
            f"collect the log of {source} once more, later than that of {server}: what it lacks then is errant on {server}",
            "a log that was read earlier ends earlier",
            f"do not provision {server} before that: if {they} its own, that throws {them} away",
        ),
    )


def _not_applied(streams: Streams, server: str, origin: str) -> str:
    """The first that the log of a known source has behind all that a replica says it applied, and its log lacks; empty: none."""
    source = streams.source_of(origin)
    if source in (None, server) or streams.is_open(origin) or not streams.fetches(server, source or ""):
        return ""
    first = streams.between(source or "", server, origin).first
    row = streams.logs[source or ""].rows_of(origin, [first])[first] if first else None
    said = (one.commit for one in streams.applied if (one.server, one.source) == (server, source))
    upto = max((commit for commit in said if commit is not None), default=None)
    waits = row is not None and upto is not None and row["commit"] is not None and row["commit"] > upto
    return streams.shown.system.show(first) if first and waits else ""


def _where_source_lost(
    streams: Streams, server: str, origin: str, what: str, several: bool
) -> tuple[str, Mapping[str, Any]]:
    source = streams.source_of(origin)
    they, them, were = ("they are", "them", "they were") if several else ("it is", "it", "it was")
    return (
        f"only {server} has {what}, and the log of {source} lost records there: {were} among these, or {they} {server}'s own",
        step(
            f"look for the rows of {them} on {source}: if these are missing, {they} errant on {server}",
            f"records of the log of {source} are damaged, and no other log has {them}",
            f"do not provision {server} before that: if {they} its own, that throws {them} away",
        ),
    )


_SAYS = {NO_SOURCE: _without_source, OWN_ID: _of_its_own_id, AHEAD: _ahead, LOST_THERE: _where_source_lost}
_ROOT = {NO_SOURCE: "and nothing tells whether the others lack them", OWN_ID: "an id of its own"}
"""Why -> how the clause of the first line ends; what only follows the end of a log is not said there."""
