"""Servers whose clock is behind, by access logs: a change that arrives before it was made.

    s1, 10:00:00  makes a change, CSN of 10:00:00; s2 likewise at 10:01:00
    s2, 10:00:01  gets the change of s1; s1, 10:01:01 that of s2: these two clocks agree
    s3, 09:50:02  gets the change of s1, at 09:51:02 that of s2: the clock of s3 is 10 minutes behind both

A change may arrive late, never early, so each early one bounds the difference from below. Where two servers disagree and no
third one tells who is right, nothing is said. CSNs alone are no clock, for a clock that was ahead pulls them along: a server
counts if its own log shows that its CSNs are not ahead of its own clock.

Two clocks that agree may be wrong together. The clock of the machine that collected tells, where the last lines of a log are of
the moment at which it was read:

    s1, s2 right when read           s3 is behind
    s1 or s2 ahead when read         nothing is said of s3
    s3 right when read               it was behind, or the others are ahead: nobody sets the clock of s3
    nothing is known of the reading  s3 is behind, or the others are ahead: a warning at most
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.intake.inputs import set_back_in
from workbench.model import Finding, first_few, listed, step, time_passed
from workbench.rules.assumptions import CLOCKS_AGREE
from workbench.rules.link_failures import CLOCK_REFUSED
from workbench.systems.ds389.detectors.clocks import right_when_read
from workbench.systems.ds389.formats.access_operations import Column, nibbles
from workbench.systems.ds389.rules.clocks import FURTHEST
from workbench.topology.suffix_evidence import last_line_at

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_AGREE = 60
"""Seconds: what two clocks may differ by and agree."""
_WARN = 300
"""Seconds: Kerberos refuses a login from there on."""
_CLOSE = timedelta(seconds=20)
_NO_DIGIT, _CSN_DIGITS = 255, 20
_PLACES = 16.0 ** np.arange(7, -1, -1)


class Lead(NamedTuple):
    """How far, in seconds, a change of an origin lay ahead of the clock of a server as that logged it, at the most."""

    seconds: float
    position: str
    at: datetime
    again: bool = False
    """A change of the origin that was made after the last early one arrived promptly."""
    last: float = 0.0
    """When the last early one was made."""


class Slow(NamedTuple):
    """A server whose clock is behind: by how much at least, and the change of each other server that shows it.

    over  changes arrived promptly since, or the clock was right when the server was read: it was set right, if it was wrong
    sure  the clocks of others were right when they were read: it is this one that was wrong
    """

    server: str
    seconds: float
    shown: dict[str, Lead]
    over: bool
    sure: bool

    @property
    def grave(self) -> bool:
        """True if sessions fail because of it."""
        return self.sure and not self.over and self.seconds >= FURTHEST.total_seconds()


def clock_behind(context: DetectorContext) -> Iterator[Finding]:
    """Servers that get changes of all other servers before these were made, while the others agree with each other."""
    for one in context.once(slow_servers):
        much, names = time_passed(timedelta(seconds=one.seconds)), ", ".join(sorted(one.shown))
        grade = "error" if one.grave else "warning" if one.seconds >= _WARN and not one.over else "info"
        last = max(lead.at for lead in one.shown.values())
        since = ""
        if any(lead.again for lead in one.shown.values()):
            since = "; later changes arrived promptly, so the clocks agree again"
        elif one.over:
            since = f"; the clock of {one.server} was right when it was read"
        why = f"the clocks of {names} agree, and were right when the servers were read"
        if not one.sure:
            why = f"the clocks of {names} agree; either {one.server} was behind, or all of these were ahead"
        yield Finding(
            "CLOCK_BEHIND",
            grade,
            f"the clock of {one.server} was at least {much} behind at {last:%Y-%m-%d %H:%M:%S} UTC by that clock: its access log "
            f"shows changes of {names} before these were made; {why}{since}",
            server=one.server,
            items=tuple(sorted(lead.position for lead in one.shown.values())),
            evidence=first_few(
                {
                    "server": one.server,
                    "made_by": other,
                    "position": lead.position,
                    "at": lead.at.isoformat(),
                    "seconds_before": round(lead.seconds),
                }
                for other, lead in sorted(one.shown.items())
            ),
            root=f"the clock of {one.server} is {much} behind" if grade == "error" else "",
            assumes=() if one.sure else (CLOCKS_AGREE,),
            fix=(
                step(
                    f"see that a time service keeps the clocks of {one.server}, {names} right",
                    "the clocks differed then, and agree now",
                )
                if one.over
                else step(
                    f"compare the clocks of {one.server}, {names} with a time service, and set right the one that is wrong",
                    "the collected files do not say which of them was: `workbench collect` notes when it reads each server",
                    "a clock that is set wrong pulls the CSNs of all servers along",
                )
                if not one.sure
                else _set_right(one.server),
            ),
        )


def behind_when_read(context: DetectorContext) -> Iterator[Finding]:
    """Servers whose logs end long before they were read, and with which others hold no session because of the clocks.

    A server that makes no changes, or gets none, shows its clock by nothing else.
    """
    told = {one.server for one in context.once(slow_servers)}
    failing = [one for one in context.topology.links if one.failure and one.failure.reason == CLOCK_REFUSED]
    newest = context.once(_newest)
    for reading in context.topology.readings:
        server = reading.server
        if server in told or not any(server in (one.supplier, one.consumer) for one in failing):
            continue
        ends = last_line_at(context.case, context.topology.snapshot, server)
        latest = newest.get(server)
        if ends is None or latest is None or reading.began - ends < FURTHEST:
            continue
        if reading.began - latest < FURTHEST and latest - ends < FURTHEST:
            continue  # its errors log has nothing to say since then
        mine = [one for one in failing if server in (one.supplier, one.consumer)]
        others = {one.supplier if server == one.consumer else one.consumer or "" for one in mine}
        right = sorted(name for name in others if name and _when_read(context, name) == "right")
        if not right:
            continue
        behind, links = reading.began - ends, ", ".join(sorted(one.name for one in mine))
        yield Finding(
            "CLOCK_BEHIND",
            "error",
            f"the clock of {server} is {time_passed(behind)} behind: its errors log ends at {ends:%Y-%m-%d %H:%M:%S} UTC, it was "
            f"read at {reading.began:%Y-%m-%d %H:%M:%S}, and the sessions of {links} are refused because "
            f"the clocks differ; {listed(right)} {'was' if len(right) == 1 else 'were'} right when read",
            server=server,
            evidence=(_behind_row(server, ends, reading.began),),
            root=f"the clock of {server} is {time_passed(behind)} behind",
            fix=(_set_right(server),),
        )


def set_back(context: DetectorContext) -> Iterator[Finding]:
    """Servers whose clock was set back, as the times of their own logs show, and was still behind when they were read."""
    told = {one.server for one in context.once(slow_servers)} | {one.server for one in behind_when_read(context)}
    for reading in context.topology.readings:
        server, shown = reading.server, context.topology.snapshot
        logs = [one for one in context.inputs if (one.server, one.snapshot) == (server, shown)]
        spans = [span for given in logs if (span := set_back_in(given))]
        ends = last_line_at(context.case, shown, server)
        if not spans or ends is None or reading.down or server in told:
            continue
        behind, jump = reading.began - ends, max(high - low for low, high in spans)
        if behind < timedelta(seconds=_WARN) or abs(behind - jump) > timedelta(seconds=_WARN):
            continue
        whole = [given.facts.get("time", {}).get("max") for given in logs if not set_back_in(given)]
        latest = max((datetime.fromisoformat(end).astimezone(UTC) for end in whole if end), default=ends)
        if latest >= reading.began - timedelta(seconds=_AGREE):
            continue  # a log that begins behind that tells that the clock is right
        since = max(high for _, high in spans)
        grave = behind >= FURTHEST
        yield Finding(
            "CLOCK_BEHIND",
            "error" if grave else "warning",
            f"the clock of {server} was set back: its logs reach {since:%Y-%m-%d %H:%M:%S} UTC, go on {time_passed(jump)} "
            f"earlier, and end at {ends:%Y-%m-%d %H:%M:%S}; it was read at {reading.began:%Y-%m-%d %H:%M:%S}. The times of its "
            "logs since then are too early by as much",
            server=server,
            evidence=(_behind_row(server, ends, reading.began),),
            root=f"the clock of {server} is {time_passed(behind)} behind",
            fix=(_set_right(server),),
        )


def _behind_row(server: str, ends: datetime, read: datetime) -> Mapping[str, object]:
    """What shows that a clock was behind: where a log ends, and when it was read."""
    behind = round((read - ends).total_seconds())
    return {"server": server, "log_ends": ends.isoformat(), "read": read.isoformat(), "seconds_before": behind}


def _set_right(server: str) -> Mapping[str, Any]:
    return step(
        f"set the clock of {server} right, and see that a time service keeps it so",
        "its CSNs are moved up to those of the others, by a day at the most: from there on it refuses sessions and "
        "writes; Kerberos refuses logins from 5 minutes on, and times in its entries and logs are wrong",
        "a clock that is set forward takes nothing back: no change is lost by it",
    )


def slow_servers(context: DetectorContext) -> list[Slow]:
    """The servers that are behind at least two others which agree with each other, each with what shows it."""
    makers: dict[str, set[str]] = {}
    for one in context.topology.replicas:
        if one.origin:
            makers.setdefault(one.origin, set()).add(one.server)
    # An origin of several servers, or of two suffixes on two servers, tells of no one's clock.
    maker = {origin: next(iter(names)) for origin, names in makers.items() if len(names) == 1}
    leads = {server: _leads(context, server, maker) for server in sorted({x.server for x in context.topology.replicas})}
    # A server whose own CSNs are ahead of its own clock shows no time by them.
    own = {server: mine[server].seconds for server, mine in leads.items() if server in mine}
    true = {server for server, seconds in own.items() if abs(seconds) <= _AGREE}
    found = []
    for server, mine in leads.items():
        shown = {other: lead for other, lead in mine.items() if other != server and other in true}
        shown = {other: lead for other, lead in shown.items() if lead.seconds > _AGREE}
        prompt = any(abs(lead.seconds) <= _AGREE for other, lead in mine.items() if other != server)
        if len(shown) < 2 or prompt:
            continue
        agreed = all(
            (lead := leads[one].get(other)) is not None and lead.seconds <= _AGREE
            for one in shown
            for other in shown
            if one != other
        )
        if agreed:
            least = min(lead.seconds - max(own[other], 0) for other, lead in shown.items())
            if least > _AGREE:
                read = {name: _when_read(context, name) for name in (server, *shown)}
                since = max(lead.last for lead in shown.values())
                newest = context.once(_newest).get(server)
                right = read[server] == "right" and newest is not None and newest.timestamp() >= since
                over = any(lead.again for lead in shown.values()) or right
                others = {read[name] for name in shown}
                if "ahead" not in others:
                    found.append(Slow(server, least, shown, over, "right" in others))
    # As many against as many: nothing tells which side is right.
    return [one for one in found if len(one.shown) > len(found)]


def _leads(context: DetectorContext, server: str, maker: dict[str, str]) -> dict[str, Lead]:
    """Server -> how far its changes lay ahead of the clock of this one when it logged that it had applied them."""
    where = (pc.field("outcome") == "applied") & (pc.field("evidence") == "access_log") & pc.field("at").is_valid()
    where &= pc.field("origin").isin(pa.array(sorted(maker), pa.string())) & pc.field("position").is_valid()
    found: dict[str, Lead] = {}
    last_early: dict[str, float] = {}
    last_prompt: dict[str, float] = {}
    shown = context.topology.snapshot
    for batch in context.rows("applied", ["origin", "position", "at"], where, snapshot=shown, server=server):
        if not len(batch):
            continue
        made, fine = _seconds(batch["position"])
        at = batch["at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() / 1_000_000
        ahead = np.where(fine, made - at, -np.inf)
        origins = batch["origin"].dictionary_encode()
        which = origins.indices.to_numpy()
        for number, origin in enumerate(origins.dictionary.to_pylist()):
            mine = np.flatnonzero((which == number) & fine)
            if not len(mine):
                continue
            best = int(mine[np.argmax(ahead[mine])])
            other, seconds = maker[origin], float(ahead[best])
            if other not in found or seconds > found[other].seconds:
                found[other] = Lead(seconds, batch["position"][best].as_py(), datetime.fromtimestamp(at[best], UTC))
            # By the clock of the origin: that of the server may have been set back between the two.
            early, prompt = (made[mine[some]] for some in (ahead[mine] > _AGREE, np.abs(ahead[mine]) <= _AGREE))
            last_early[other] = max(last_early.get(other, 0.0), early.max(initial=0.0))
            last_prompt[other] = max(last_prompt.get(other, 0.0), prompt.max(initial=0.0))
    return {
        other: lead._replace(again=last_prompt[other] > last_early[other], last=last_early[other])
        for other, lead in found.items()
    }


def _when_read(context: DetectorContext, server: str) -> str:
    """`right` or `ahead`: how the clock of a server was when it was read, by that of who collected; empty: unknown."""
    reading = next((one for one in context.topology.readings if one.server == server), None)
    its = context.once(_newest).get(server)
    if reading is None or its is None:
        return ""
    if right_when_read(context, reading) or reading.began - _CLOSE <= its <= reading.ended + _CLOSE:
        return "right"
    return "ahead" if its > reading.ended else ""


def _newest(context: DetectorContext) -> dict[str, datetime]:
    return context.newest()


def _seconds(positions: pa.Array) -> tuple[Column, Column]:
    """The time of each CSN in seconds since 1970, and where it is one at all."""
    fine = pc.equal(pc.binary_length(positions), _CSN_DIGITS)
    texts = pc.if_else(fine, positions, "." * _CSN_DIGITS).cast(pa.binary(_CSN_DIGITS))
    digits = nibbles(np.array(texts.to_numpy(zero_copy_only=False), f"S{_CSN_DIGITS}"))
    return digits[:, :8] @ _PLACES, (digits != _NO_DIGIT).all(axis=1)
