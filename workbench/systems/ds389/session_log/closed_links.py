"""Agreements that hold no session now because they were told so: outside their schedule, or waiting between two sessions.

And those in a session that has just begun, and may fail as those before it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from workbench.intake.links import LOOPBACK
from workbench.rules.assumptions import CLOCK_IN_UTC
from workbench.rules.link_failures import BACKING_OFF, SCHEDULE_CLOSED, TRANSIENT, UNKNOWN, LinkFailure
from workbench.rules.vectors import newer
from workbench.systems.ds389.rules.link_reasons import Cause, cause_of, opens_at
from workbench.systems.ds389.session_log.change_fixes import not_begun
from workbench.systems.ds389.session_log.lines import last_start
from workbench.systems.ds389.session_log.link_fixes import Agreement, backing_off, fixes_of
from workbench.systems.ds389.session_log.statuses import statuses_of

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.topology.topology import Link, Topology

Row = Mapping[str, Any]

_LONG_PAUSE = timedelta(seconds=300)
"""Between two sessions: what waits for less arrives soon."""
_MINUTE = timedelta(seconds=60)
_BEGINS_WITHIN = timedelta(seconds=10)
"""An agreement that is switched on tries at once; the servers are read moments apart."""
_OFF = "agreement disabled"
"""What the status of an agreement says that is switched off."""
_AGAIN_WITHIN, _REFUSED_WITHIN = timedelta(seconds=300), timedelta(seconds=60)
"""A supplier waits that long at most before it tries again, and a consumer refuses the first change of a session so soon."""


def answers_another(case: Case, shown: Topology, link: Link, since: datetime | None) -> bool:
    """True if the server at the address of a link took a session over another agreement, for this suffix, since then."""
    statuses = statuses_of(case, shown.snapshot)
    here = LOOPBACK.fullmatch((link.address or "").rpartition(":")[0])  # of each supplier another machine, perhaps
    others = [one for one in shown.links if (one.address, one.suffix) == (link.address, link.suffix) and one != link]
    others = [one for one in others if not here or one.supplier == link.supplier]
    rows = (statuses.get((one.supplier, one.suffix, one.name), {}) for one in others if link.address)
    ended = (row.get("ended_at") for row in rows if not cause_of(row.get("status"), row.get("transport")))
    return since is not None and any(at and at > since for at in ended)


def not_in_session(case: Case, shown: Topology, link: Link, row: Row) -> LinkFailure | None:
    """Why the agreement held no session when its server was read, if it was told to hold none then."""
    return (
        _out_of_schedule(case, shown, link, row)
        or _paused(case, shown, link, row)
        or _backs_off(case, shown, link, row)
        or _not_begun(case, shown, link, row)
    )


def changed_since_tried(case: Case, shown: Topology, link: Link) -> datetime | None:
    """When the agreement was changed, if that was after its last attempt; None: it was not, or nothing tells."""
    return _time_of(case, shown, link, "untried")


def tried_last(case: Case, shown: Topology, link: Link) -> datetime | None:
    """When the agreement made its last attempt, as its status tells."""
    return _time_of(case, shown, link, "tried")


def read_after(case: Case, shown: Topology, link: Link, row: Row, moment: datetime) -> bool:
    """True if the supplier of a link was read more than a minute after a moment, by its own clock."""
    inputs = [x for x in case.inputs if (x.snapshot, x.server) == (shown.snapshot, link.supplier)]
    newest = max(filter(None, _times(inputs, row)), default=None)
    return newest is not None and newest - moment > _MINUTE


def _time_of(case: Case, shown: Topology, link: Link, fact: str) -> datetime | None:
    inputs = (x for x in case.inputs if (x.snapshot, x.server) == (shown.snapshot, link.supplier))
    times = (x.facts.get(fact, {}).get(f"{link.suffix or ''} {link.name}") for x in inputs)
    return max((datetime.fromisoformat(text) for text in times if text), default=None)


def _not_begun(case: Case, shown: Topology, link: Link, row: Row) -> LinkFailure | None:
    """The failure of an agreement that was switched off and on, and began no session since although its consumer is behind.

    A session that begins, and one that cannot begin, write another sentence over the one of the time when it was off.
    """
    changed = changed_since_tried(case, shown, link)
    if changed is None or _OFF not in (row.get("status") or "") or row.get("busy") or row.get("started_at"):
        return None
    mine = [one for one in case.inputs if (one.snapshot, one.server) == (shown.snapshot, link.supplier)]
    read = max(filter(None, _times(mine, row)), default=None)
    ends = {one.server: one for one in shown.replicas if one.suffix == link.suffix}
    supplier, consumer = ends.get(link.supplier), ends.get(link.consumer or "")
    if not (supplier and consumer and read) or read - changed < _BEGINS_WITHIN:
        return None
    if not newer(supplier.vector, consumer.seen()):
        return None
    return LinkFailure(
        UNKNOWN, f"it was changed at {changed:%Y-%m-%d %H:%M:%S}, is switched on, and began no session since: its status is "
        f"still that of the time when it was switched off", "switched on, and began no session", changed, "it was changed last",
        evidence=(status_shown(row),), fix=(not_begun(link.supplier, link.suffix or "SUFFIX", link.name),),
    )  # fmt: skip


def goes_on(row: Row) -> bool:
    """True if the status of an agreement tells of a session that was let in, and of no end of it."""
    return not row.get("ended_at") and "Incremental update started" in (row.get("status") or "")


def fails_still(case: Case, shown: Topology, link: Link, row: Row, last: datetime | None) -> bool:
    """False if a session goes on, and the last failure was too long ago, or the session is longer than one that is refused.

    b refuses every change of a, which tries again every 3 s, the last time at 18:50:30; a was read at 18:50:31
    "Incremental update started" at 18:50:30      it fails still
    the same, and a was read at 18:55             the session goes on, and nothing was refused in it
    """
    if not goes_on(row):
        return True
    mine = [one for one in case.inputs if (one.snapshot, one.server) == (shown.snapshot, link.supplier)]
    now, began = max(filter(None, _times(mine, row)), default=None), row.get("started_at")
    if last is None or now is None or now - last > _AGAIN_WITHIN:
        return False
    return began is None or last >= began or now - began <= _REFUSED_WITHIN


def started_again(link: Link, tried: datetime | None, cause: Cause, logs: Iterable[Any]) -> Cause | None:
    """That the consumer has started after the last attempt that the supplier's log shows, if it has."""
    again = last_start(logs, link.consumer) if tried else None
    if not (again and tried and again > tried):
        return None
    says = f"{link.consumer} started again at {again:%Y-%m-%d %H:%M:%S}, and the supplier has not tried since"
    return Cause(BACKING_OFF, cause.code, says, "consumer just started")


def agreement_shown(row: Row, *more: str) -> dict[str, Any]:
    """The row of an agreement as evidence, with `more` of its columns."""
    return {key: row.get(key) for key in ("file", "offset", "name", *more)}


def status_shown(row: Row) -> dict[str, Any]:
    """What an agreement says of its last session, as evidence."""
    return agreement_shown(row, "status") | {"ended_at": row["ended_at"].isoformat() if row.get("ended_at") else None}


def _out_of_schedule(case: Case, shown: Topology, link: Link, row: Row) -> LinkFailure | None:
    """The failure of an agreement that was outside its schedule when its server was read."""
    schedule = row.get("schedule")
    mine = [one for one in case.inputs if (one.snapshot, one.server) == (shown.snapshot, link.supplier)]
    read = max(filter(None, _times(mine, row)), default=None)
    if not schedule or read is None:
        return None
    zones = {zone for one in mine for zone in one.facts.get("zones", {})}
    zone = _zone(next(iter(zones))) if len(zones) == 1 else UTC
    now = read.astimezone(zone).replace(tzinfo=None)
    opens = opens_at(schedule, now)
    if opens == now:
        return None
    assumed = "" if len(zones) == 1 else ", if the clock of the server runs in UTC"
    until = opens.replace(tzinfo=zone).astimezone(UTC) if opens else None
    when = f"it opens at {until:%Y-%m-%d %H:%M} UTC{assumed}" if until else "it never opens"
    agreement = Agreement(link.name, link.supplier, link.consumer or "", link.suffix or "SUFFIX", link.address or "")
    return LinkFailure(
        SCHEDULE_CLOSED, f"outside its schedule ({schedule}): {when}", "outside its schedule", row.get("ended_at"),
        "its last session ended" if row.get("ended_at") else "", opens=until, assumes=(CLOCK_IN_UTC,) if assumed else (),
        evidence=({**status_shown(row), "schedule": schedule},), fix=fixes_of(SCHEDULE_CLOSED, agreement),
    )  # fmt: skip


def _paused(case: Case, shown: Topology, link: Link, row: Row) -> LinkFailure | None:
    """The same of one that was told to wait long between two sessions, and did when its server was read."""
    mine = [one for one in case.inputs if (one.snapshot, one.server) == (shown.snapshot, link.supplier)]
    told = (one.facts.get("pauses", {}).get(f"{link.suffix or ''} {link.name}") for one in mine)
    pause = timedelta(seconds=max((int(text) for text in told if text), default=0))
    read, ended = max(filter(None, _times(mine, row)), default=None), row.get("ended_at")
    if pause < _LONG_PAUSE or not (read and ended) or read >= ended + pause or row.get("status_code"):
        return None
    if row.get("started_at") and row["started_at"] > ended:
        return None  # a session has begun since
    until = ended + pause
    agreement = Agreement(
        link.name, link.supplier, link.consumer or "", link.suffix or "SUFFIX", link.address or "", paused=True
    )
    says = f"it waits {pause.total_seconds():,.0f} s between sessions (nsds5ReplicaSessionPauseTime): the next one begins at "
    return LinkFailure(
        SCHEDULE_CLOSED, f"{says}{until:%Y-%m-%d %H:%M} UTC", "waits between sessions", ended, "its last session ended",
        opens=until, evidence=({**status_shown(row), "pause": pause.total_seconds()},),
        fix=fixes_of(SCHEDULE_CLOSED, agreement),
    )  # fmt: skip


def _backs_off(case: Case, shown: Topology, link: Link, row: Row) -> LinkFailure | None:
    """The same of one whose last session broke off, where its server was told to wait long before it tries again."""
    cause = cause_of(row.get("status"), row.get("transport"))
    if cause is None or cause.reason not in TRANSIENT:
        return None
    mine = [one for one in case.inputs if (one.snapshot, one.server) == (shown.snapshot, link.supplier)]
    told = [texts for one in mine if (texts := one.facts.get("backoff", {}).get(link.suffix or ""))]
    least = timedelta(seconds=max((int(low) for low, _ in told if low), default=0))
    most = max(least, timedelta(seconds=max((int(high) for _, high in told if high), default=300)))
    read = max(filter(None, _times(mine, row)), default=None)
    tried = max(filter(None, (row.get("started_at"), row.get("ended_at"))), default=None)
    if least < _LONG_PAUSE or not (read and tried) or read >= tried + most:
        return None
    agreement = Agreement(link.name, link.supplier, link.consumer or "", link.suffix or "SUFFIX", link.address or "")
    opens = tried + least if tried + least > read else None  # it may try again any time now
    when = f"not before {opens:%Y-%m-%d %H:%M} UTC" if opens else f"at {tried + most:%Y-%m-%d %H:%M} UTC at the latest"
    says = (
        f"its last session broke off, and {link.supplier} waits {least.total_seconds():,.0f} to {most.total_seconds():,.0f} s "
        f"before it tries again (nsds5ReplicaBackoffMin, nsds5ReplicaBackoffMax): {when}"
    )
    return LinkFailure(
        SCHEDULE_CLOSED, says, "waits before it tries again", tried, "its last session broke off", opens=opens,
        evidence=(status_shown(row),), fix=backing_off(agreement),
    )  # fmt: skip


def _times(inputs: Iterable[Any], row: Row) -> Iterator[datetime | None]:
    """Times that the files of a server show: it was read then, or later."""
    yield from (row.get("started_at"), row.get("ended_at"))
    for one in inputs:
        if text := one.facts.get("time", {}).get("max"):
            yield datetime.fromisoformat(str(text))


def _zone(text: str) -> timezone:
    minutes = int(text[1:3]) * 60 + int(text[3:5])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
