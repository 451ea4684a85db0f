"""Servers whose clock is ahead, or was: by how much, who refuses them, and until when they refuse writes themselves.

A CSN is never taken back. A server whose clock was ahead goes on making CSNs of that time when the clock is right again, as long
as they lie no more than a day ahead; beyond that it makes none: every client write ends with `Operations error (1)`.

    clock     its files are of a time after the moment at which they were read
    positions its own last CSN lies ahead of the newest time in its files
    set back  its log has lines of after that moment, and goes on behind them at a time before it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import Finding, first_few, step
from workbench.systems.ds389.rules.clocks import FURTHEST, HEALTH_LEVELS

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.intake.readings import Reading

_TIME_SKEW, _NO_CSN = 2, 8
"""Codes of the last session: the other side's CSNs are too far away; the supplier cannot make a CSN itself."""
_LEAST = timedelta(seconds=HEALTH_LEVELS[-1][0])
_CLOSE = timedelta(seconds=20)


@dataclass
class Skew:
    """What is wrong with the clock of one server, or with the CSNs that it made by it.

    clock      how far its clock was ahead when it was read; None: not at all, or not known
    positions  how far its own last CSN lay ahead of that moment, or of what it logged itself
    last       that CSN, and when it lies
    pulled     CSNs of others that it holds are ahead, too: its own may have been pulled along
    beyond     the suffixes of which its own last CSN lies more than a day ahead; `sound`: the others that it makes changes of
    refusing   the links over which sessions fail for it
    back       its log, and the times of its last line before the clock was set back and of the first one behind it; None: no
               log shows that
    stopped    when it said that it makes no more CSNs, and how far these would have to lie ahead, in seconds
    """

    server: str
    clock: timedelta | None = None
    positions: timedelta = timedelta(0)
    last: tuple[str, datetime] | None = None
    pulled: bool = False
    beyond: list[str] = field(default_factory=list)
    sound: list[str] = field(default_factory=list)
    refusing: list[Mapping[str, Any]] = field(default_factory=list)
    stopped: tuple[datetime, int] | None = None
    back: tuple[str, datetime, datetime] | None = None
    evidence: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ahead(self) -> timedelta:
        """By how much, whichever shows it."""
        return max(self.clock or timedelta(0), self.positions)


def server_clocks(context: DetectorContext) -> Iterator[Finding]:
    """One finding for each server whose clock is, or was, hours ahead; for all together where nothing tells whose it was."""
    found = skews(context)
    blamed = [one for one in found if one.clock] or [one for one in found if not one.pulled]
    if found and not blamed:
        for one in found:
            one.back = _set_back(context, one.server)
        blamed = [one for one in found if one.back]
    for one in blamed:
        # A clock that is ahead pulls the CSNs of all servers along that accept its changes: they are not to blame.
        yield _finding(context, one, [other for other in found if other not in blamed])
    if found and not blamed:
        yield _of_all(found)


def skews(context: DetectorContext) -> list[Skew]:
    """The servers whose clock or whose own CSNs are ahead by hours.

    That takes a moment to hold them against: when the server was read, or when it said itself that its CSNs are too far ahead.
    The newest line of a log is none, for a server may have been silent since.
    """
    newest = context.newest()
    readings = {one.server: one for one in context.topology.readings}
    moment, found = context.topology.system.moment, []
    for server in sorted({one.server for one in context.topology.replicas}):
        one, reading = Skew(server, stopped=_stopped(context, server)), readings.get(server)
        at, its = (reading.ended if reading else one.stopped and one.stopped[0]), newest.get(server)
        if at is None:
            continue
        if reading and its and its - at >= _LEAST and not right_when_read(context, reading):
            one.clock = its - at
            one.evidence.append({"server": server, "read_at": at.isoformat(), "its_time": its.isoformat()})
        for replica in context.topology.replicas:
            if replica.server != server:
                continue
            tops = {
                origin: max(span.max or "", replica.later.get(origin, "")) for origin, span in replica.vector.items()
            }
            leads = {origin: (top, made) for origin, top in tops.items() if (made := moment(top) if top else None)}
            own = leads.get(replica.origin or "")
            if replica.origin:
                (one.beyond if own and own[1] - at > FURTHEST else one.sound).append(replica.suffix or "")
            if own and (one.last is None or own[1] > one.last[1]):
                one.last, one.positions = own, max(own[1] - at, timedelta(0))
            one.pulled |= any(made - at >= _LEAST for origin, (_, made) in leads.items() if origin != replica.origin)
        one.refusing = _refusing(context, server)
        mute = {row["suffix"] or "" for row in one.refusing if (row["server"], row["code"]) == (server, _NO_CSN)}
        if one.last is None or (one.ahead < _LEAST and not (mute and one.stopped)):
            continue
        # A suffix that was at rest while the clock was ahead has no CSN that shows it, and makes none either.
        one.beyond += sorted(mute - {*one.beyond})
        one.sound = [suffix for suffix in one.sound if suffix not in mute]
        if one.ahead >= _LEAST:
            one.evidence.append({"server": server, "position": one.last[0], "position_at": one.last[1].isoformat()})
        found.append(one)
    return found


def _set_back(context: DetectorContext, server: str) -> tuple[str, datetime, datetime] | None:
    """The log of a server that tells that its clock was set back, since it was ahead of the moment at which it was read.

    30/Nov 05:50:04  stopped
    29/Nov 19:50:16  starting up    it was read at 19:53
    """
    read = next((one.ended for one in context.topology.readings if one.server == server), None)
    if read is None:
        return None
    shown = context.topology.snapshot
    for table in ("messages", "applied"):
        lines: dict[str, list[tuple[int, datetime]]] = {}
        for batch in context.rows(
            table, ["file", "offset", "at"], pc.field("at").is_valid(), snapshot=shown, server=server
        ):
            for row in batch.to_pylist():
                lines.setdefault(row["file"], []).append((row["offset"], row["at"]))
        for file, some in sorted(lines.items()):
            for (_, before), (_, after) in pairwise(sorted(some)):
                if before - after >= _LEAST and before > read + _CLOSE and after <= read + _CLOSE:
                    return file, before, after
    return None


def of_session(row: Mapping[str, Any]) -> bool:
    """True for a status that tells how a session ended: where none came about, the same numbers are results of LDAP."""
    return "ldap error" not in str(row.get("status") or "").lower()


def _refusing(context: DetectorContext, server: str) -> list[Mapping[str, Any]]:
    """The links of the server, to it or from it, over which sessions fail because of clocks."""
    ends = {(link.supplier, link.suffix, link.name): link.consumer for link in context.topology.links}
    return [
        {
            "link": key[2],
            "suffix": key[1],
            "server": key[0],
            "status": row.get("status"),
            "code": row.get("status_code"),
        }
        for key, row in sorted(context.statuses().items(), key=str)
        if server in (key[0], ends.get(key))
        and of_session(row)
        and (row.get("status_code") == _TIME_SKEW or (row.get("status_code") == _NO_CSN and key[0] == server))
    ]


def _of_all(found: list[Skew]) -> Finding:
    """Where the CSNs of several servers are ahead, and nothing tells by whose clock."""
    most = max(found, key=lambda one: one.ahead)
    names = ", ".join(one.server for one in found)
    return Finding(
        "CLOCK_AHEAD",
        _grade(most.ahead),
        f"the last CSNs that {names} made lie up to {_days(most.ahead)} ahead of the moment at which they were read; a clock was "
        "ahead, and what was collected does not tell whose: the others' CSNs were pulled along",
        evidence=first_few([row for one in found for row in one.evidence]),
        root=f"the CSNs of {names} lie up to {_days(most.ahead)} ahead" if _grade(most.ahead) == "error" else "",
        fix=(_CLOCK,),
    )


def _grade(ahead: timedelta) -> str:
    return next((grade for seconds, grade in HEALTH_LEVELS if ahead.total_seconds() >= seconds), "info")


def right_when_read(context: DetectorContext, reading: Reading) -> bool:
    """True if its log has lines of the very time at which it was read: reading a changelog makes it write some.

    A server that was started moments before with a clock that is ahead has such lines of before, and later ones behind them.
    """
    began, ended = reading.began - _CLOSE, reading.ended + _CLOSE
    columns, where = ["file", "offset", "at"], pc.field("at") >= pa.scalar(began)
    near, last = set[str](), dict[str, tuple[int, bool]]()
    for batch in context.rows("messages", columns, where, snapshot=context.topology.snapshot, server=reading.server):
        for row in batch.to_pylist():
            if row["at"] <= ended or row["at"] - ended >= _LEAST:
                right = row["at"] <= ended
                near |= {row["file"]} if right else set()
                last[row["file"]] = max((row["offset"], right), last.get(row["file"], (-1, False)))
    return bool(near) and all(last[file][1] for file in near)


def _stopped(context: DetectorContext, server: str) -> tuple[datetime, int] | None:
    """The last time at which the server logged that the CSN it needs lies beyond the limit."""
    where = (pc.field("code") == "time_skew") & pc.starts_with(pc.field("function"), "_csngen_adjust_local")
    last: tuple[datetime, int] | None = None
    shown = context.topology.snapshot
    for batch in context.rows("messages", ["at", "numbers"], where, snapshot=shown, server=server):
        for row in batch.to_pylist():
            value = dict(row["numbers"] or ()).get("value", "")
            if row["at"] and value.lstrip("-").isdecimal() and (last is None or row["at"] > last[0]):
                last = row["at"], int(value)
    return last


def _finding(context: DetectorContext, one: Skew, dragged: list[Skew]) -> Finding:
    assert one.last is not None, "a server without own changes is not looked at"
    # Where no CSN shows it any more, its log says how far they would have to lie ahead.
    by_log = one.stopped if one.ahead < _LEAST else None
    ahead = timedelta(seconds=by_log[1]) if by_log else one.ahead
    much, server = _days(ahead), one.server
    grade = _grade(ahead)
    # CSNs may lie a day ahead of the clock, no more.
    opens = (by_log[0] + ahead if by_log else one.last[1]) - FURTHEST
    beyond = ahead > FURTHEST
    every = f"every write of {' and '.join(one.beyond)}" if one.beyond and one.sound else "every write"
    told = [
        f"the clock of {server} was {much} ahead: its log says at {by_log[0]:%Y-%m-%d %H:%M:%S} that the CSNs of "
        f"{' and '.join(one.beyond)} would have to lie that far ahead, and it makes none"
        if by_log
        else f"the clock of {server} is {much} ahead of the moment at which it was read"
        if one.clock
        else f"the clock of {server} was {much} ahead: {one.back[0]} has lines of up to {one.back[1]:%Y-%m-%d %H:%M:%S} UTC, and "
        f"behind them lines of {one.back[2]:%Y-%m-%d %H:%M:%S} UTC, when it was set right"
        if one.back
        else f"the clock of {server} was {much} ahead when it made its last change {one.last[0]}, and is no longer"
    ]
    if one.refusing:
        links = ", ".join(dict.fromkeys(str(row["link"]) for row in one.refusing))
        told.append(f"the sessions of {links} are refused because of it")
    if dragged:
        told.append(f"the CSNs of {', '.join(other.server for other in dragged)} were pulled forward, too")
    if beyond and one.clock is None:
        since = "" if one.sound else " since its clock was set back"
        said = f"has refused {every}" if one.stopped and not one.sound else f"refuses {every}"
        told.append(
            f"{server} {said}{since}, and will until {opens:%Y-%m-%d %H:%M} UTC, when its CSNs lie no "
            "more than a day ahead"
        )
    elif beyond:
        told.append(
            f"once the clock is right, {server} will refuse {every} until {opens:%Y-%m-%d %H:%M} UTC, when its CSNs lie no "
            "more than a day ahead"
        )
    way_out = (_way_out(context, one),) if beyond else ()
    evidence = [*one.evidence, *one.refusing]
    if one.back:
        evidence.append({"file": one.back[0], "at": one.back[1].isoformat(), "set_back_to": one.back[2].isoformat()})
    if one.stopped:
        evidence.append({"server": server, "at": one.stopped[0].isoformat(), "seconds_ahead": one.stopped[1]})
    return Finding(
        "CLOCK_AHEAD",
        grade,
        "; ".join(told),
        server=server,
        evidence=first_few(evidence),
        root=f"the clock of {server} {'is' if one.clock else 'was'} {much} ahead" if grade == "error" else "",
        fix=(_CLOCK, *way_out) if one.clock else (*way_out, _RIGHT),
    )


_CLOCK = step(
    "set the clock right, and see that a time service keeps it so, before anything else",
    "each new change carries its time to every server that accepts it",
    "CSNs are never taken back: those that were made stay ahead until time has caught up",
)
_RIGHT = step(
    "see that a time service keeps the clock right",
    "the CSNs that were made stay ahead until time has caught up",
)


def _way_out(context: DetectorContext, one: Skew) -> dict[str, str | None]:
    """How a server comes to a new CSN generator: its own replica entry holds the state of the old one."""
    server = one.server
    others = sorted(
        {other.server for other in context.topology.replicas if other.origin and other.server != server}
        - {other.server for other in skews(context)}
    )
    source = others[0] if others else "a supplier whose CSNs are not ahead"
    mine = {other.suffix or "" for other in context.topology.replicas if other.server == server}
    suffixes = sorted(one.beyond or mine)
    stranded = sum(
        1 for row in context.verdicts.pending if row["origin"] in _origins(context, server) and row["server"] != server
    )
    return step(
        f"with the clock right, make a new replica of {server}: save what only it has, and write down its agreements and who "
        "may bind there (nsDS5ReplicaBindDN), for both go with the replica; "
        f"for each suffix ({', '.join(suffixes)}) `dsconf {server} replication disable --suffix SUFFIX`, restart it, "
        f"`dsconf {server} replication enable --suffix SUFFIX --role supplier --replica-id ID --bind-dn DN` with the replica "
        "ID and the bind DN that it had (--bind-passwd, if that entry is gone as well), "
        f"initialise it from {source}; wait until every server that it feeds has what {source} had "
        "then, and create its agreements only after that; at last disable and enable each agreement that gave up",
        "an initialisation alone is refused as well: the state of the CSN generator is in the replica's own entry",
        f"its new changelog has nothing for a consumer that is behind: a session from {server} would pass over for good what "
        f"that one lacks; the repair throws away the changes that {server} made and no other server accepted"
        + (
            " (they are listed as pending on the others): write once more what of them is still wanted"
            if stranded
            else ""
        )
        + "; nsslapd-ignore-time-skew on every server is the other way, and moves the CSNs of all servers ahead for good",
    )


def _origins(context: DetectorContext, server: str) -> set[str]:
    return {one.origin for one in context.topology.replicas if one.server == server and one.origin}


def _days(much: timedelta) -> str:
    hours = much.total_seconds() / 3600
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"
